"""Tests what commands record in the audit log, and that every change of a log or a signature is
found. The openssl command is the independent judge of keys and signatures."""
import base64
import fcntl
import hashlib
import json
import os
import shutil
import stat
import subprocess
import unittest

import harness

FOLDER = harness.workspace()
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 259, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2}
run: {dir: %s}
audit: {log: %s, key: %s}
"""


def openssl(*words, data=None):
    return subprocess.run(["openssl", *map(str, words)], input=data, capture_output=True,
                          check=False)


def lines_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def events_of(log):
    return [line["event"] for line in lines_of(log) if line["event"] != "head"]


def pae(envelope):
    kind, body = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)


def setUpModule():
    harness.must(harness.run("audit", "keygen", "--out", FOLDER / "key", "--name", "Site A"))
    data, _ = harness.make_datasets(FOLDER)
    (FOLDER / "run.yaml").write_text(
        CONFIG % (data, FOLDER / "run", FOLDER / "audit.jsonl", FOLDER / "key"))
    harness.must(harness.run("train", FOLDER / "run.yaml", ranks=2))


class Keys(unittest.TestCase):
    def test_private_key_is_private(self):
        mode = stat.S_IMODE((FOLDER / "key").stat().st_mode)
        self.assertEqual(mode, 0o600)
        again = harness.run("audit", "keygen", "--out", FOLDER / "key")
        self.assertEqual(again.returncode, 77, again.stderr)
        shared = FOLDER / "shared.key"
        shutil.copy(FOLDER / "key", shared)
        shared.chmod(0o644)
        refused = harness.run("train", FOLDER / "run.yaml", f"audit.key={shared}",
                              f"run.dir={FOLDER / 'never'}")
        self.assertEqual(refused.returncode, 77, refused.stderr)
        self.assertIn("chmod 600", refused.stderr)

    @unittest.skipUnless(shutil.which("openssl"), "the openssl command is not installed")
    def test_openssl_agrees(self):
        public = openssl("pkey", "-in", FOLDER / "key", "-pubout").stdout
        own = (FOLDER / "key.pub").read_bytes()
        self.assertEqual(own, b"# Site A\n" + public)
        der = openssl("pkey", "-pubin", "-in", FOLDER / "key.pub", "-outform", "DER").stdout
        head = lines_of(FOLDER / "audit.jsonl")[-1]["head"]
        self.assertEqual(head["signatures"][0]["keyid"], hashlib.sha256(der).hexdigest())
        (FOLDER / "message").write_bytes(pae(head))
        (FOLDER / "signature").write_bytes(base64.b64decode(head["signatures"][0]["sig"]))
        verified = openssl("pkeyutl", "-verify", "-pubin", "-inkey", FOLDER / "key.pub", "-rawin",
                           "-in", FOLDER / "message", "-sigfile", FOLDER / "signature")
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    @unittest.skipUnless(shutil.which("openssl"), "the openssl command is not installed")
    def test_keys_of_openssl_work(self):
        key, log = FOLDER / "theirs.key", FOLDER / "theirs.jsonl"
        key.write_bytes(openssl("genpkey", "-algorithm", "ed25519").stdout)
        key.chmod(0o600)
        public = FOLDER / "theirs.pub"
        public.write_bytes(openssl("pkey", "-in", key, "-pubout").stdout)
        site = {"TRIREME_AUDIT__LOG": str(log), "TRIREME_AUDIT__KEY": str(key)}
        harness.run("generate", "--checkpoint", FOLDER / "none", env=site)
        harness.must(harness.run("audit", "verify", log, "--trust", public))
        rsa = FOLDER / "rsa.key"
        rsa.write_bytes(openssl("genpkey", "-algorithm", "RSA").stdout)
        rsa.chmod(0o600)
        site["TRIREME_AUDIT__KEY"] = str(rsa)
        refused = harness.run("generate", "--checkpoint", FOLDER / "none", env=site)
        self.assertEqual(refused.returncode, 65, refused.stderr)
        self.assertIn("neither an Ed25519 key nor one of ECDSA", refused.stderr)


class Events(unittest.TestCase):
    def test_a_run_records_what_it_did(self):
        log = FOLDER / "audit.jsonl"
        self.assertEqual(events_of(log)[:5], ["log.created", "train.start", "checkpoint.saved",
                                              "checkpoint.saved", "train.end"])
        by_event = {line["event"]: line["details"] for line in lines_of(log) if "details" in line}
        self.assertEqual(by_event["train.start"]["ranks"], 2)
        self.assertEqual(by_event["train.start"]["run"], str(FOLDER / "run"))
        self.assertEqual(by_event["train.start"]["arguments"], ["train", str(FOLDER / "run.yaml")])
        self.assertEqual(by_event["train.end"]["code"], 0)
        manifest = FOLDER / "run/checkpoints/step-00000004/manifest.json"
        self.assertEqual(by_event["checkpoint.saved"]["manifest_sha256"],
                         hashlib.sha256(manifest.read_bytes()).hexdigest())

    def test_each_line_holds_the_digest_of_the_line_before_it(self):
        last = "0" * 64
        for number, line in enumerate((FOLDER / "audit.jsonl").read_bytes().splitlines()):
            fields = json.loads(line)
            self.assertEqual((fields["seq"], fields["prev"]), (number, last))
            last = hashlib.sha256(line).hexdigest()

    def test_resume_and_error(self):
        log = FOLDER / "resume.jsonl"
        run = FOLDER / "resumed"
        shutil.copytree(FOLDER / "run", run)
        (run / "DONE").unlink()
        words = [f"audit.log={log}", f"run.dir={run}", "train.steps=6",
                 "optimizer.schedule.steps=6",
                 "checkpoint.allow_change=optimizer.schedule.steps"]
        harness.must(harness.run("train", FOLDER / "run.yaml", *words))
        self.assertEqual(events_of(log)[1:], ["train.start", "checkpoint.resumed",
                                              "checkpoint.saved", "checkpoint.deleted",
                                              "train.end"])
        shutil.rmtree(run / "checkpoints/step-00000006")
        for step in (run / "checkpoints").glob("step-*"):
            (step / "manifest.json").write_text("{}")
        (run / "DONE").unlink()
        failed = harness.run("train", FOLDER / "run.yaml", *words)
        self.assertEqual(failed.returncode, 65, failed.stderr)
        self.assertEqual(events_of(log)[-2:], ["train.start", "train.end"])
        self.assertEqual(lines_of(log)[-2]["details"]["code"], 65)

    def test_commands_of_the_site(self):
        site = FOLDER / "site"
        site.mkdir()
        log = FOLDER / "site.jsonl"
        (site / "audit.yaml").write_text(f"audit: {{log: {log}}}\n")
        env = {"TRIREME_SITE_DIR": str(site)}
        checkpoint = FOLDER / "run/checkpoints"
        harness.must(harness.run("generate", "--checkpoint", checkpoint, "--prompt", "The secret",
                                 "--tokens", 2, env=env))
        text = harness.make_text(FOLDER / "more", 1000, 3)
        harness.must(harness.run("data", "pack", "--out", FOLDER / "packed", text, env=env))
        self.assertEqual(harness.run("eval", "--bogus", env=env).returncode, 2)
        harness.must(harness.run("eval", "--help", env=env))
        self.assertEqual(events_of(log)[1:], [
            "generate.start", "generate.end", "data.pack.start", "data.pack.end", "eval.start",
            "eval.end"])
        self.assertNotIn("The secret", log.read_text())
        self.assertIn("sha256:" + hashlib.sha256(b"The secret").hexdigest(), log.read_text())
        harness.must(harness.run("audit", "verify", log))
        shown = harness.must(harness.run("audit", "show", log, "--event", "data")).stdout
        self.assertEqual(len(shown.splitlines()), 2)

    def test_launch_records_its_start_and_end(self):
        log = FOLDER / "launch.jsonl"
        harness.must(harness.run("launch", "--ranks-per-node", 2, "--", "train",
                                 FOLDER / "run.yaml", f"audit.log={log}",
                                 f"run.dir={FOLDER / 'launched'}"))
        self.assertEqual(events_of(log)[1:], ["launch.start", "train.start", "checkpoint.saved",
                                              "checkpoint.saved", "train.end", "launch.end"])
        harness.must(harness.run("audit", "verify", log, "--trust", FOLDER / "key.pub"))
        start = lines_of(log)[2]["details"]
        self.assertEqual(start["arguments"][:4], ["launch", "--ranks-per-node", "2", "--"])
        self.assertEqual(start["run"], str(FOLDER / "launched"))

    def test_relative_folders_are_recorded_as_absolute_ones(self):
        log = FOLDER / "relative.jsonl"
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        (FOLDER / "inside").mkdir()
        os.chdir(FOLDER / "inside")
        harness.must(harness.run("launch", "--", "train", "../run.yaml", f"audit.log={log}",
                                 "run.dir=../beside"))
        for line in lines_of(log):
            if line["event"] in ("launch.start", "train.start", "checkpoint.saved"):
                place = line["details"].get("run") or line["details"]["folder"]
                self.assertTrue(place.startswith(str(FOLDER / "beside")), line)

    def test_pruning_names_what_it_deletes(self):
        log = FOLDER / "prune.jsonl"
        run = FOLDER / "to-prune"
        harness.must(harness.run("train", FOLDER / "run.yaml", f"run.dir={run}", "train.steps=8",
                                 "checkpoint.keep=9", "audit.log="))
        steps = run / "checkpoints"
        digests = [hashlib.sha256((steps / f"step-0000000{n}/manifest.json").read_bytes())
                   .hexdigest() for n in (2, 4)]
        harness.must(harness.run("ckpt", "prune", "--keep", 2, steps,
                                 env={"TRIREME_AUDIT__LOG": str(log)}))
        end = lines_of(log)[-1]
        self.assertEqual(end["event"], "ckpt.prune.end")
        self.assertEqual(end["details"]["folder"], str(steps))
        self.assertEqual(end["details"]["deleted"], 2)
        self.assertEqual({each["step"]: each["manifest_sha256"]
                          for each in end["details"]["steps"]}, dict(zip((2, 4), digests)))

    def test_nothing_runs_unrecorded(self):
        for log, code in [("/dev/full", 77), (FOLDER / "no/folder/log", 66), (FOLDER, 77)]:
            with self.subTest(log):
                run = FOLDER / "unrecorded"
                refused = harness.run("train", FOLDER / "run.yaml", f"audit.log={log}",
                                      f"run.dir={run}")
                self.assertEqual(refused.returncode, code, refused.stderr)
                self.assertFalse((run / "checkpoints").exists())
        log = FOLDER / "damaged.jsonl"
        log.write_text("not a log\n")
        refused = harness.run("generate", "--checkpoint", FOLDER / "run/checkpoints",
                              env={"TRIREME_AUDIT__LOG": str(log)})
        self.assertEqual(refused.returncode, 65, refused.stderr)
        self.assertEqual(log.read_text(), "not a log\n")

    def test_a_lock_is_not_waited_for_without_end(self):
        log = FOLDER / "locked.jsonl"
        with log.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            refused = harness.run("generate", "--checkpoint", FOLDER / "none",
                                  env={"TRIREME_AUDIT__LOG": str(log)})
        self.assertEqual(refused.returncode, 74, refused.stderr)
        self.assertIn("another process has locked", refused.stderr)
        self.assertEqual(log.read_text(), "")


class Mutations(unittest.TestCase):
    """Each mutation of a signed log, with the line that must be named and the exit codes without
    and with --trust."""

    @classmethod
    def setUpClass(cls):
        cls.log = FOLDER / "mutated.jsonl"
        cls.good = (FOLDER / "audit.jsonl").read_text().splitlines(keepends=True)[:10]

    def verify(self, lines, *words):
        self.log.write_text("".join(lines))
        result = harness.run("audit", "verify", self.log, "--json", *words)
        return result.returncode, json.loads(result.stdout)

    def expect(self, lines, line, plain, trusted):
        code, found = self.verify(lines)
        self.assertEqual(code, plain, found)
        if plain == 65:
            self.assertIn(line, [fault["line"] for fault in found["faults"]], found)
        code, found = self.verify(lines, "--trust", FOLDER / "key.pub")
        self.assertEqual(code, trusted, found)

    def test_untouched(self):
        code, found = self.verify(self.good, "--trust", FOLDER / "key.pub")
        self.assertEqual(code, 0, found)
        self.assertEqual(found["signed_lines"], 10)
        self.assertIn("Site A (key ", found["signer"])

    def test_edited(self):
        for number in range(1, 11):
            for old, new in [('"event"', '"Event"'), ('"seq":', '"seq": '),
                             ('"prev":"', '"prev":"0')]:
                with self.subTest((number, old)):
                    lines = list(self.good)
                    lines[number - 1] = lines[number - 1].replace(old, new, 1)
                    self.assertNotEqual(lines, self.good)
                    self.expect(lines, number, 65, 65)

    def test_last_event_edited(self):
        lines = self.good[:9]
        lines[8] = lines[8].replace('"pid":', '"pid":1')
        self.expect(lines, 9, 0, 77)
        lines.append(self.good[9])
        self.expect(lines, 9, 65, 65)

    def test_deleted_moved_repeated_inserted(self):
        for at in range(9):
            with self.subTest(at):
                self.expect(self.good[:at] + self.good[at + 1:], at + 1, 65, 65)
                swapped = list(self.good)
                swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
                self.expect(swapped, at + 1, 65, 65)
                self.expect(self.good[:at + 1] + self.good[at:], at + 2, 65, 65)
                self.expect(self.good[:at + 1] + ["{}\n"] + self.good[at + 1:], at + 2, 65, 65)
        self.expect(self.good[1:], 1, 65, 65)

    def test_cut(self):
        self.expect(self.good[:9], 0, 0, 77)
        self.expect(self.good[:8], 0, 0, 0)
        self.expect(self.good[:9] + [self.good[9][:-1]], 10, 65, 65)
        self.expect(self.good[:9] + [self.good[9][:50]], 10, 65, 65)
        _, whole = self.verify(self.good)
        code, found = self.verify(self.good[:8], "--trust", FOLDER / "key.pub", "--head",
                                  whole["head"])
        self.assertEqual(code, 65)
        self.assertIn("cut", found["faults"][0]["what"])
        self.assertEqual(self.verify(self.good, "--head", whole["head"])[0], 0)

    def test_forked(self):
        fork = FOLDER / "fork.jsonl"
        fork.write_text("".join(self.good[:8]))
        harness.run("generate", "--checkpoint", FOLDER / "none",
                    env={"TRIREME_AUDIT__LOG": str(fork),
                         "TRIREME_AUDIT__KEY": str(FOLDER / "key")})
        other = fork.read_text().splitlines(keepends=True)[8:]
        self.expect(self.good + other, 11, 65, 65)

    def test_written_anew_without_the_key(self):
        def written_anew(old):
            lines, last = [], "0" * 64
            for seq, line in enumerate(old):
                fields = dict(json.loads(line), seq=seq, prev=last)
                if fields["event"] == "train.start":
                    fields["details"]["run"] = "/elsewhere"
                text = json.dumps(fields, separators=(",", ":"))
                lines.append(text + "\n")
                last = hashlib.sha256(text.encode()).hexdigest()
            return lines

        def events(lines):
            return [line for line in lines if '"event":"head"' not in line]

        lines = written_anew(self.good)
        self.expect(lines, 4, 65, 65)  # the signatures are of other lines
        self.expect(events(lines), 2, 65, 65)  # the numbers have gaps
        self.expect(written_anew(events(self.good)), 0, 0, 77)

    def test_added_without_the_key_before_an_honest_command(self):
        log = FOLDER / "added.jsonl"
        log.write_text("".join(self.good))
        command = ["generate", "--checkpoint", FOLDER / "none"]
        harness.run(*command, env={"TRIREME_AUDIT__LOG": str(log)})
        added = len(log.read_text().splitlines())
        harness.run(*command, env={"TRIREME_AUDIT__LOG": str(log),
                                  "TRIREME_AUDIT__KEY": str(FOLDER / "key")})
        lines = log.read_text().splitlines(keepends=True)
        self.assertGreater(len(lines), added)
        code, found = self.verify(lines, "--trust", FOLDER / "key.pub")
        self.assertEqual(code, 77, found)
        self.assertIn("the event of line 11 has no signature", found["lack"])

    def test_long_logs_need_little_memory(self):
        log, last, text = FOLDER / "long.jsonl", "0" * 64, "x" * 1000
        with log.open("w") as file:
            for seq in range(64_000):
                line = (f'{{"seq":{seq},"prev":"{last}","time":"","event":"test",'
                        f'"details":{{"text":"{text}"}}}}')
                file.write(line + "\n")
                last = hashlib.sha256(line.encode()).hexdigest()
        for words in (["verify"], ["show", "-n", "2"], ["show", "--json", "--event", "test"]):
            with self.subTest(words):
                peak = {}
                for path in (FOLDER / "audit.jsonl", log):
                    process = harness.start("audit", words[0], path, *words[1:], ranks=0,
                                            log=FOLDER / "long.out")
                    _, status, usage = os.wait4(process.pid, 0)
                    process.returncode = os.waitstatus_to_exitcode(status)
                    self.assertEqual(process.returncode, 0)
                    peak[path] = usage.ru_maxrss  # in KiB
                self.assertLess(peak[log] - peak[FOLDER / "audit.jsonl"], 16 << 10, peak)
        found = json.loads(harness.run("audit", "verify", log, "--json").stdout)
        self.assertEqual((found["lines"], found["head"]), (64_000, f"63999:{last}"))

    def test_other_keys(self):
        harness.must(harness.run("audit", "keygen", "--out", FOLDER / "other"))
        self.log.write_text("".join(self.good))
        self.assertEqual(self.verify(self.good, "--trust", FOLDER / "other.pub")[0], 77)
        both = FOLDER / "both.pem"
        both.write_text((FOLDER / "other.pub").read_text() + (FOLDER / "key.pub").read_text())
        self.assertEqual(self.verify(self.good, "--trust", both)[0], 0)
        for trust, code in [(FOLDER / "key", 2), ("/dev/null", 2), (FOLDER / "none", 66),
                            (self.log, 2)]:
            with self.subTest(trust):
                result = harness.run("audit", "verify", self.log, "--trust", trust)
                self.assertEqual(result.returncode, code, result.stderr)

    def test_no_log(self):
        for content in ["", "\n", "\0\n", "[1]\n", '{"seq":0}\n', "{" * 1000 + "\n"]:
            with self.subTest(content[:10]):
                self.log.write_text(content)
                self.assertEqual(harness.run("audit", "verify", self.log).returncode, 65)
                harness.must(harness.run("audit", "show", self.log))
        self.assertEqual(harness.run("audit", "verify", FOLDER / "none").returncode, 66)
        self.assertEqual(harness.run("audit", "verify", self.log, "--head", "x").returncode, 2)
        os.mkfifo(FOLDER / "pipe")
        self.assertEqual(harness.run("audit", "verify", FOLDER / "pipe").returncode, 65)


if __name__ == "__main__":
    unittest.main()
