"""Trains with encrypted logs, metrics, events and traces, is killed and resumes: nothing lies in
any file in plain, every command that reads them opens them with the key, and what was changed is
refused. sealed_reader.py is an independent reader."""
import json
import re
import shutil
import unittest

import harness
import sealed_reader

FOLDER = harness.workspace()
KEY = FOLDER / "site.key"
OTHER = FOLDER / "other.key"
RUN = FOLDER / "run"
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 32, heads: 2, vocab: 1003, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 6, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2, async: false}
encryption: {accept_plain_data: true, keys: ["file:%s"], logs: true}
run: {dir: %s, trace: 2}
"""


def train(*settings, ranks=2, env=None, folder=RUN):
    return harness.run("train", FOLDER / "run.yaml", f"run.dir={folder}", *settings, ranks=ranks,
                       env=env)


def output(*words):
    return harness.must(harness.run(*words)).stdout


def opened(path, key=KEY):
    return output("log", path, "--key", f"file:{key}")


def lines_of(path):
    return [json.loads(line) for line in opened(path).splitlines()]


def setUpModule():
    for key in (KEY, OTHER):
        harness.must(harness.run("keys", "create", "--out", key, "--name", key.stem))
    data, _ = harness.make_datasets(FOLDER)
    (FOLDER / "run.yaml").write_text(CONFIG % (data, KEY, RUN))
    killed = train(env={"TRIREME_FAULTS": "step.end:0:5:kill"})
    assert killed.returncode != 0, killed.stderr
    harness.must(train())
    harness.must(train("encryption.logs=false", "run.trace=0", folder=FOLDER / "plain"))


class Reading(unittest.TestCase):
    def test_metrics_are_those_of_a_plain_run(self):
        plain = [json.loads(x) for x in (FOLDER / "plain/metrics.jsonl").read_text().splitlines()]
        sealed = lines_of(RUN / "metrics.jsonl")
        self.assertEqual([x["step"] for x in sealed], [1, 2, 3, 4, 5, 6])
        self.assertEqual([x["loss_bits"] for x in sealed], [x["loss_bits"] for x in plain])

    def test_logs_of_both_starts(self):
        for rank in (0, 1):
            events = [x.get("event") for x in
                      map(json.loads, output("log", RUN, "--rank", rank, "--key",
                                             f"file:{KEY}").splitlines())]
            self.assertEqual(events.count("start"), 2)
            self.assertEqual(events.count("rank"), 2)
        text = harness.run("log", RUN, "--key", f"file:{KEY}")
        self.assertIn("1 of 2 sections have no end", text.stderr)

    def test_nothing_lies_in_plain(self):
        secret = [x["loss_bits"].encode() for x in lines_of(RUN / "metrics.jsonl")]
        secret += [b'"loss_bits"', b'"event":"step"', b"traceEvents", b"brain.Event", b"train/loss"]
        files = [file for file in RUN.rglob("*") if file.is_file()]
        names = {file.relative_to(RUN).as_posix() for file in files}
        self.assertLessEqual({"metrics.jsonl", "logs/rank-00000.jsonl", "logs/rank-00001.jsonl",
                              "trace/rank-00000.json", "trace/rank-00001.json"}, names)
        self.assertTrue(any(name.startswith("tensorboard/") for name in names))
        for file in files:
            contents = file.read_bytes()
            for each in secret:
                self.assertNotIn(each, contents, file)
        plain = b"".join(file.read_bytes() for file in (FOLDER / "plain").rglob("*")
                         if file.is_file())
        for each in secret:
            if each != b"traceEvents":
                self.assertIn(each, plain, "the canaries are of the kind that a plain run writes")

    def test_commands_read_them(self):
        key = ["--key", f"file:{KEY}"]
        plotted = json.loads(output("plot", RUN, "-o", FOLDER / "loss.svg", "--json", *key))
        self.assertEqual([x for x, _ in plotted["series"][0]["points"]], [1, 2, 3, 4, 5, 6])
        self.assertIn("restart at 4", (FOLDER / "loss.svg").read_text())
        page = output("report", RUN, "--markdown", *key)
        self.assertNotIn("cannot be used", page)
        state = json.loads(output("status", RUN, "--json", *key))
        self.assertEqual((state["step"], state["loss_step"], state["metrics_are_encrypted"]),
                         (6, 6, False))
        self.assertIn("t_iter", output("trace", "summary", RUN, *key))
        site = {"TRIREME_ENCRYPTION__KEYS": f"[file:{KEY}]"}
        compared = harness.run("compare", RUN, FOLDER / "plain", "--allow-unlike", env=site)
        self.assertIn(compared.returncode, (0, 2, 4), compared.stderr)
        self.assertNotIn("encrypted", compared.stderr)
        harness.must(harness.run("history", FOLDER / "history.jsonl", "--add", RUN, env=site))

    def test_without_a_key(self):
        for words in (["log", RUN], ["log", RUN / "metrics.jsonl"], ["plot", RUN],
                      ["trace", "summary", RUN], ["compare", RUN, RUN]):
            for key in ([], ["--key", f"file:{OTHER}"]):
                if key and words[0] == "compare":
                    continue
                with self.subTest(words=words, key=key):
                    refused = harness.run(*words, *key)
                    self.assertEqual(refused.returncode, 77, refused.stderr)
                    self.assertIn("encrypted for file", refused.stderr)
        state = harness.must(harness.run("status", RUN)).stdout
        self.assertIn("finished", state)
        self.assertRegex(state, "\nmetrics     not shown: .*encrypted for file")
        self.assertIn("encrypted for file", output("report", RUN, "--markdown"))

    @unittest.skipUnless(sealed_reader.AESGCM, "the Python package cryptography is not installed")
    def test_another_reader_decrypts(self):
        wrapping = sealed_reader.key_of(KEY)
        for file in sorted(RUN.rglob("*")):
            name = file.relative_to(RUN).as_posix()
            if re.match(r"metrics.jsonl|logs/rank-.*jsonl|trace/", name):
                with self.subTest(name):
                    self.assertEqual(sealed_reader.opened_log(RUN, name, wrapping).decode(),
                                     opened(file))
            elif name.startswith("tensorboard/"):
                self.assertIn(b"brain.Event:2", sealed_reader.opened_log(RUN, name, wrapping))

    def test_reading_is_audited(self):
        log = FOLDER / "audit.jsonl"
        harness.must(harness.run("log", RUN, "--key", f"file:{KEY}",
                                 env={"TRIREME_AUDIT__LOG": str(log)}))
        self.assertIn('"log.start"', log.read_text())
        self.assertIn(str(RUN), log.read_text())


class Refusals(unittest.TestCase):
    def copy(self, name):
        shutil.copytree(RUN, FOLDER / name)
        return FOLDER / name

    def refused(self, path, code, words):
        result = harness.run("log", path, "--key", f"file:{KEY}")
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertIn(words, result.stderr)

    def test_changed_files(self):
        run = self.copy("changed")
        metrics = run / "metrics.jsonl"
        whole = metrics.read_text().splitlines(keepends=True)
        self.assertEqual(len(whole), 9, "4 steps without an end, 2 with one")
        cases = {
            "line 3: 1 record before this one was removed": whole[:2] + whole[3:],
            "line 3: this record was changed":
                whole[:2] + ["BA"[whole[2][0] == "B"] + whole[2][1:]] + whole[3:],
            "line 4: this record was in the file before": whole[:3] + [whole[1]] + whole[3:],
            "line 5: this section does not follow the line before it": whole[:4] + whole[5:],
            "sections were removed or exchanged": whole[5:],
            "is neither an encrypted record": whole + ['{"step": 7}\n'],
        }
        for words, lines in cases.items():
            with self.subTest(words):
                metrics.write_text("".join(lines))
                self.refused(metrics, 65, words)
        metrics.write_text((FOLDER / "plain/metrics.jsonl").read_text())
        self.refused(metrics, 65, "is not encrypted, although its run encrypts its files")
        shutil.copy(run / "logs/rank-00001.jsonl", run / "logs/rank-00000.jsonl")
        self.refused(run, 65, "comes from another file")
        shutil.rmtree(run / "log-keys")
        self.refused(run / "trace/rank-00000.json", 65, "leave it in its run's folder")

    def test_a_run_does_not_go_on_in_plain(self):
        run = self.copy("in-plain")
        (run / "DONE").unlink()
        refused = train("encryption.logs=false", "train.steps=8", folder=run)
        self.assertEqual(refused.returncode, 77, refused.stderr)
        self.assertIn("but encryption.logs is off", refused.stderr)
        refused = train("encryption.keys=[]", folder=run, ranks=1)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("encryption.logs", refused.stderr)

    def test_a_plain_run_goes_on_encrypted(self):
        run = FOLDER / "later"
        shutil.copytree(FOLDER / "plain", run)
        (run / "DONE").unlink()
        bits = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])["loss_bits"]
        harness.must(train("train.steps=7", "optimizer.schedule.steps=6", "run.trace=0",
                           folder=run))
        self.assertEqual(len(lines_of(run / "metrics.jsonl")), 7)
        for file in run.rglob("*"):
            if file.is_file():
                self.assertNotIn(bits.encode(), file.read_bytes(), file)

    def test_recipients_change(self):
        run = self.copy("rotated")
        keys = run / "log-keys"
        self.assertEqual(len(json.loads(output("keys", "list", keys, "--json"))["logs"]), 2)
        harness.must(harness.run("keys", "rotate", keys, "--key", f"file:{KEY}", "--to",
                                 f"file:{OTHER}"))
        self.refused(run, 77, "encrypted for file")
        self.assertIn('"loss_bits"', opened(run / "metrics.jsonl", OTHER))
        harness.must(harness.run("keys", "destroy", keys, "--confirm", "log-keys", "--confirm",
                                 "log-keys"))
        self.refused(run, 65, "the key was destroyed")

    def test_keys_of_a_whole_run(self):
        """A run has keys in two folders: who names the run, or one of them, is told."""
        run = self.copy("destroyed")
        confirmed = ("--confirm", run.name, "--confirm", run.name)
        for words in (("list", run), ("destroy", run, *confirmed),
                      ("rotate", run, "--key", f"file:{KEY}", "--to", f"file:{OTHER}")):
            told = harness.run("keys", *words)
            self.assertEqual(told.returncode, 66, told.stderr)
            self.assertIn(f"did you mean {run / 'checkpoints'}?; the keys of its logs are in "
                          f"{run / 'log-keys'}", told.stderr)
        told = harness.must(harness.run("keys", "destroy", run / "checkpoints", "--confirm",
                                        "checkpoints", "--confirm", "checkpoints"))
        self.assertIn(f"{run / 'log-keys'}: left as it is", told.stdout)
        self.assertIn('"loss_bits"', opened(run / "metrics.jsonl"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
