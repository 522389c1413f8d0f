"""Attacks encrypted logs together with what else a site has: ends that are cut off, logs of another
run, stops, hangs, rotation, a policy, the audit log, archives, MLflow and job scripts."""
import hashlib
import json
import re
import shutil
import signal
import tarfile
import unittest

import harness
import policy_harness
import sealed_reader

FOLDER = harness.workspace()
KEY = FOLDER / "site.key"
RUN = FOLDER / "run"
STOPPED = FOLDER / "stopped"
AUDIT = FOLDER / "audit.jsonl"
SITE = {"TRIREME_ENCRYPTION__KEYS": f"[file:{KEY}]"}
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 32, heads: 2, vocab: 257, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 6, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2, async: false}
encryption: {accept_plain_data: true, keys: ["file:%s"], logs: true}
audit: {log: %s}
run: {dir: %s, trace: 2, log_bytes: 8192}
"""


def train(*settings, folder=RUN, ranks=2, env=None):
    return harness.run("train", FOLDER / "run.yaml", f"run.dir={folder}", *settings, ranks=ranks,
                       env=env)


def log(path, *words):
    return harness.run("log", path, "--key", f"file:{KEY}", *words)


def canaries(run):
    """Returns texts of which the run's encrypted files consist, and no other file may."""
    lines = map(json.loads, harness.must(log(run / "metrics.jsonl")).stdout.splitlines())
    return [f'"{line["loss_bits"]}"'.encode() for line in lines] + [
        b'"loss_bits"', b'"event":"step"', b"traceEvents", b"flight_recorder", b"brain.Event"]


def setUpModule():
    FOLDER.chmod(0o755)
    harness.must(harness.run("keys", "create", "--out", KEY))
    data = policy_harness.pack(FOLDER, "data", "--label", "classification=secret", "--label",
                               "jurisdiction=AE", "--label", "owner=health")
    (FOLDER / "run.yaml").write_text(CONFIG % (data, KEY, AUDIT, RUN))
    killed = train(env={"TRIREME_FAULTS": "step.end:1:5:kill"})
    assert killed.returncode != 0, killed.stderr
    assert "start 1 of the run has left no record" in log(RUN).stderr
    harness.must(train())
    stop_in_order()


def stop_in_order():
    """Trains alone until SIGTERM, which ends the run with 75."""
    text = FOLDER / "stopped.log"
    process = harness.start("train", FOLDER / "run.yaml", f"run.dir={STOPPED}",
                            "train.steps=100000", ranks=0, log=text)
    try:
        harness.until("a log that is rotated", 60, (STOPPED / "logs/rank-00000.1.jsonl").exists)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    finally:
        harness.end_group(process)
    assert process.returncode == 75, text.read_text()


class Ends(unittest.TestCase):
    def copy(self, run, name):
        shutil.copytree(run, FOLDER / name)
        return FOLDER / name

    def refused(self, path, words):
        result = log(path)
        self.assertEqual((result.returncode, result.stdout), (65, ""), result.stderr)
        self.assertIn(words, result.stderr)

    def test_an_orderly_end_leaves_a_record(self):
        for run, starts in ((RUN, 2), (STOPPED, 1)):
            told = harness.must(log(run))
            self.assertNotIn("no record", told.stderr)
            keys = [json.loads(file.read_text()) for file in run.glob("log-keys/*/keys.json")]
            identities = {each["contents"].split(" ")[1] for each in keys}
            self.assertEqual((len(keys), len(identities)), (starts, 1))
            self.assertEqual(len(list(run.glob("log-keys/*/closed.json"))), 1)

    def test_sections_that_were_cut_off_are_missed(self):
        for origin in (RUN, STOPPED):
            run = self.copy(origin, f"cut-{origin.name}")
            files = [file for pattern in ("metrics.jsonl", "logs/*.jsonl", "trace/*",
                                          "tensorboard/*") for file in run.glob(pattern)]
            self.assertGreaterEqual(len(files), 4)
            for file in files:
                text = file.read_text()
                whole = text.splitlines(keepends=True)
                heads = [i for i, line in enumerate(whole) if line.startswith("TRIREME")]
                # Logs are open when the record is written: the end of their last section follows.
                last = 2 if re.fullmatch(r"rank-\d{5}\.jsonl", file.name) else 1
                for left in {0, 1, heads[-1], len(whole) - last}:
                    with self.subTest(file=file.name, left=left):
                        file.write_text("".join(whole[:left]))
                        told = log(file)
                        self.assertEqual((told.returncode, told.stdout), (65, ""), told.stderr)
                file.write_text(text)
                harness.must(log(file))

    def test_messages(self):
        run = self.copy(RUN, "messages")
        metrics = run / "metrics.jsonl"
        whole = metrics.read_text()
        head = whole.rfind("\nTRIREME") + 1
        metrics.write_text(whole[:head])
        self.refused(metrics, f"start 2 of the run left {len(whole)} bytes here, and {head} are "
                              "left: its end was cut off")
        metrics.write_text("")
        self.refused(metrics, "and 0 are left")
        plotted = harness.run("plot", run, "-o", FOLDER / "cut.svg", "--key", f"file:{KEY}")
        self.assertEqual(plotted.returncode, 65, plotted.stderr)
        metrics.write_text(whole[:head])
        record = next(run.glob("log-keys/*/closed.json"))
        record.write_text(record.read_text().replace('"bytes": ', '"bytes": 1'))
        self.refused(metrics, "closed.json")
        record.unlink()
        self.assertIn("start 2 of the run has left no record of how its files ended: it still runs "
                      "or was killed, or that record and the ends of files were removed",
                      harness.must(log(metrics)).stderr)

    @unittest.skipUnless(sealed_reader.AESGCM, "the Python package cryptography is not installed")
    def test_another_reader_misses_them_too(self):
        wrapping = sealed_reader.key_of(KEY)
        run = self.copy(STOPPED, "read")
        for name in ("metrics.jsonl", "logs/rank-00000.jsonl", "logs/rank-00000.1.jsonl"):
            with self.subTest(name):
                text = (run / name).read_text()
                self.assertEqual(sealed_reader.opened_log(run, name, wrapping).decode(),
                                 harness.must(log(run / name)).stdout)
                (run / name).write_text("".join(text.splitlines(keepends=True)[:-2]))
                with self.assertRaisesRegex(AssertionError, "its end was cut off"):
                    sealed_reader.opened_log(run, name, wrapping)
                (run / name).write_text(text)

    def test_files_of_another_run_are_named(self):
        run = self.copy(RUN, "mixed")
        shutil.copy(STOPPED / "metrics.jsonl", run)
        self.refused(run / "metrics.jsonl", "the file comes from another run")
        key = next((STOPPED / "log-keys").iterdir())
        shutil.copytree(key, run / "log-keys" / key.name)
        self.refused(run / "metrics.jsonl", "log-keys holds keys of several runs")
        self.refused(run / "trace/rank-00001.json", "log-keys holds keys of several runs")
        (run / "DONE").unlink()
        started = train("train.steps=8", folder=run)
        self.assertEqual(started.returncode, 65, started.stderr)

    def test_a_run_goes_on_after_a_record(self):
        run = self.copy(STOPPED, "longer")
        steps = len(harness.must(log(run / "metrics.jsonl")).stdout.splitlines())
        harness.must(train(f"train.steps={steps + 3}", "optimizer.schedule.steps=100000",
                           folder=run, ranks=0))
        lines = harness.must(log(run / "metrics.jsonl")).stdout.splitlines()
        self.assertEqual(len(lines), steps + 3)
        self.assertNotIn("no record", log(run).stderr)
        self.assertTrue(list(run.glob("log-keys/*/closed.json")))


    def test_a_resumed_run_does_not_make_a_forged_file_authentic(self):
        run = self.copy(RUN, "forged")
        (run / "metrics.jsonl").write_text('{"step": 6, "note": "FORGED"}\n')
        (run / "logs/rank-00001.jsonl").unlink()
        self.refused(run / "metrics.jsonl", "is not encrypted")
        audit = FOLDER / "forged.jsonl"
        resumed = harness.must(train("train.steps=8", "optimizer.schedule.steps=6",
                                     f"audit.log={audit}", folder=run))
        self.assertIn("were moved to set-aside/start-3: metrics.jsonl", resumed.stderr)
        told = harness.must(log(run / "metrics.jsonl"))
        self.assertNotIn("FORGED", told.stdout)
        self.assertIn("a start found plain files in the place of encrypted ones", told.stderr)
        self.assertIn("FORGED", (run / "set-aside/start-3/metrics.jsonl").read_text())
        events = [json.loads(line) for line in audit.read_text().splitlines()]
        details = [event["details"] for event in events if event["event"] == "logs.replaced"][-1]
        self.assertEqual((details["start"], details["set_aside"], details["missing"]),
                         (3, ["metrics.jsonl"], ["logs/rank-00001.jsonl"]))


class Stops(unittest.TestCase):
    def test_a_hang_leaves_encrypted_dumps(self):
        run = FOLDER / "hung"
        told = train("comm.deadline.step=2", folder=run,
                     env={"TRIREME_FAULTS": "step.end:1:4:spin"})
        self.assertNotEqual(told.returncode, 0)
        reason = json.loads((run / "exit_reason.json").read_text())
        self.assertEqual(reason["code"], 85, told.stderr)
        dump = run / "logs/flight-rank-00000.jsonl"
        self.assertTrue(dump.read_text().startswith("TRIREME-SEALED-1 "))
        self.assertIn('"flight_recorder"', harness.must(log(dump)).stdout)
        self.nothing_in_plain(run)

    def test_a_crash_and_an_exception(self):
        for action in ("segv", "abort", "throw"):
            run = FOLDER / f"crashed-{action}"
            told = train(folder=run, ranks=0, env={"TRIREME_FAULTS": f"step.end:0:4:{action}"})
            self.assertNotEqual(told.returncode, 0)
            lines = harness.must(log(run / "metrics.jsonl")).stdout.splitlines()
            self.assertGreaterEqual(len(lines), 3)
            self.assertIn("start 1 of the run has left no record", log(run).stderr)
            self.nothing_in_plain(run)

    def test_nothing_lies_in_plain_after_any_end(self):
        for run in (RUN, STOPPED):
            self.nothing_in_plain(run)

    def test_rotated_logs(self):
        self.assertTrue((STOPPED / "logs/rank-00000.1.jsonl").exists())
        lines = harness.must(log(STOPPED)).stdout.splitlines()
        self.assertTrue(any('"event":"step"' in line for line in lines))
        both = [STOPPED / "logs/rank-00000.1.jsonl", STOPPED / "logs/rank-00000.jsonl"]
        texts = [harness.must(log(file)).stdout for file in both]
        self.assertEqual("".join(texts).splitlines(), lines)

    def nothing_in_plain(self, run):
        secrets = canaries(run)
        for file in run.rglob("*"):
            if file.is_file():
                contents = file.read_bytes()
                for secret in secrets:
                    self.assertNotIn(secret, contents, file)


class Surroundings(unittest.TestCase):
    def test_the_audit_log(self):
        text = AUDIT.read_text()
        for secret in canaries(RUN):
            self.assertNotIn(secret.decode(), text)
        events = [json.loads(line) for line in text.splitlines()]
        named = [event for event in events if event["event"].startswith("logs.")]
        record = next(RUN.glob("log-keys/*/closed.json"))
        identity = json.loads(record.read_text())["contents"].split(" ")[1]
        own = [event for event in named if event["details"]["logs"] == identity]
        self.assertEqual([(event["event"], event["details"]["start"]) for event in own],
                         [("logs.begun", 1), ("logs.begun", 2), ("logs.closed", 2)])
        self.assertEqual(own[-1]["details"]["key"], record.parent.name)
        self.assertEqual(own[-1]["details"]["sha256"],
                         hashlib.sha256(record.read_bytes()).hexdigest())

    def test_a_start_that_is_refused_leaves_no_key(self):
        other = FOLDER / "other-owner.key"
        harness.must(harness.run("keys", "create", "--out", other))
        earlier = FOLDER / "earlier"
        shutil.copytree(RUN, earlier)
        plain = FOLDER / "plain-logs"
        harness.must(train("encryption.logs=false", folder=plain))
        for run, starts in ((earlier, 2), (plain, 0)):
            with self.subTest(run=run.name):
                told = train("train.steps=8", f"encryption.keys=[file:{other}]", "audit.log=",
                             folder=run)
                self.assertEqual(told.returncode, 77, told.stderr)
                self.assertEqual(len(list(run.glob("log-keys/*"))), starts)
        harness.must(log(earlier / "logs/rank-00000.jsonl"))
        harness.must(train("train.steps=8", "checkpoint.allow_change=[optimizer.schedule.steps]",
                           "audit.log=", folder=earlier))

    def test_an_archive(self):
        out = FOLDER / "run.tar"
        harness.must(harness.run("archive", RUN, "-o", out, env=SITE))
        with tarfile.open(out) as archive:
            contents = b"".join(archive.extractfile(member).read() for member in archive
                                if member.isfile())
        for secret in canaries(RUN):
            self.assertNotIn(secret, contents)
        self.assertNotIn(b"closed-logs", contents)

    def test_mlflow_needs_the_key(self):
        refused = harness.run("export", "mlflow", RUN, FOLDER / "refused")
        self.assertEqual(refused.returncode, 77, refused.stderr)
        self.assertFalse((FOLDER / "refused").exists())
        harness.must(harness.run("export", "mlflow", RUN, FOLDER / "mlruns", env=SITE))

    def test_history_needs_the_key(self):
        history = FOLDER / "history.jsonl"
        refused = harness.run("history", history, "--add", RUN)
        self.assertEqual(refused.returncode, 77, refused.stderr)
        self.assertFalse(history.exists())

    def test_job_scripts(self):
        """Without a key, a script is made with guesses; a file in plain is not believed."""
        words = ["slurm", "render", FOLDER / "run.yaml", "--cluster",
                 harness.SOURCE / "configs/site/test.yaml", "--nodes", 1, "train.global_batch=8"]
        guessed = harness.must(harness.run(*words, "encryption.keys=[]", "encryption.logs=false"))
        self.assertIn("#SBATCH", guessed.stdout)
        run = FOLDER / "rendered"
        shutil.copytree(RUN, run)
        (run / "metrics.jsonl").write_text('{"step": 1, "step_ms": 86400000}\n')
        told = harness.run(*words, f"run.dir={run}", env=SITE)
        self.assertEqual(told.returncode, 65, told.stdout)
        self.assertIn("is not encrypted", told.stderr)

    @unittest.skipUnless(policy_harness.can_mount(), "file systems cannot be mounted here")
    def test_a_policy_forbids_to_read_the_run(self):
        """The data, and so the checkpoints, are secret; a trainer may read up to internal."""
        site = policy_harness.Site(FOLDER)
        key = ["--key", f"file:{KEY}"]
        for words in (["log", RUN, *key], ["log", RUN / "metrics.jsonl", *key],
                      ["plot", RUN, "-o", FOLDER / "p.svg", *key],
                      ["trace", "summary", RUN, *key], ["compare", RUN, RUN],
                      ["history", FOLDER / "h.jsonl", "--add", RUN],
                      ["export", "mlflow", RUN, FOLDER / "m"]):
            with self.subTest(words[0]):
                audited = len(AUDIT.read_text().splitlines())
                told = site.run("trainer", *words, env={**SITE, "TRIREME_AUDIT__LOG": str(AUDIT)})
                self.assertEqual((told.returncode, told.stdout), (77, ""), told.stderr)
                self.assertIn("covers up to internal, and it is secret", told.stderr)
                added = AUDIT.read_text().splitlines()[audited:]
                self.assertTrue(any('"policy.refused"' in line for line in added), added)
        for name in ("p.svg", "h.jsonl", "m"):
            self.assertFalse((FOLDER / name).exists(), name)
        page = harness.must(site.run("trainer", "report", RUN, "--markdown", *key)).stdout
        self.assertIn("covers up to internal, and it is secret", page)
        state = json.loads(harness.must(site.run("trainer", "status", RUN, "--json", *key)).stdout)
        self.assertTrue(state["metrics_are_encrypted"])
        harness.must(site.run("auditor", "log", RUN, *key))
        harness.must(site.run("auditor", "trace", "summary", RUN, *key))


if __name__ == "__main__":
    unittest.main(verbosity=2)
