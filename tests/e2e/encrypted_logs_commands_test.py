"""Tries every command that reads the logs, metrics or traces of runs on one whose logs are
encrypted: with its key, without one, and with a key that is no recipient. A launch with a fault and
`launch.on_event`, the planner, a study of scaling and a replay work as they do in plain."""
import json
import unittest

import harness

FOLDER = harness.workspace()
KEY, OTHER = FOLDER / "site.key", FOLDER / "other.key"
RUN, HEARD = FOLDER / "run", FOLDER / "heard"
CLUSTER = harness.SOURCE / "configs/cluster/test.yaml"
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 32, heads: 2, vocab: 1003, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 8, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2, async: false}
encryption: {accept_plain_data: true, keys: ["file:%s"], logs: true}
run: {dir: %s, trace: 2}
plan: {cluster: %s}
"""


def setUpModule():
    for key in (KEY, OTHER):
        harness.must(harness.run("keys", "create", "--out", key, "--name", key.stem))
    data, _ = harness.make_datasets(FOLDER)
    (FOLDER / "run.yaml").write_text(CONFIG % (data, KEY, RUN, CLUSTER))
    harness.must(harness.run(
        "launch", "--ranks-per-node", 2, "--", "train", FOLDER / "run.yaml",
        f"launch.on_event=cat >> {HEARD}", env={"TRIREME_FAULTS": "step.end@1:1:5:kill"}))


def with_key(words, key=KEY):
    return harness.run(*words, "--key", f"file:{key}")


class EveryCommand(unittest.TestCase):
    # What reads the run's files and has nothing to say without them.
    NEEDS_THE_KEY = (
        ["log", RUN], ["log", RUN, "--rank", 1], ["log", RUN / "metrics.jsonl"],
        ["log", RUN / "trace/rank-00000.json"], ["plot", RUN, "-o", FOLDER / "loss.svg"],
        ["trace", "summary", RUN], ["compare", RUN, RUN],
        ["history", FOLDER / "history.jsonl", "--add", RUN],
        ["export", "mlflow", RUN, FOLDER / "mlruns"])

    def test_with_the_key(self):
        for words in self.NEEDS_THE_KEY:
            with self.subTest(words=words):
                told = with_key(words)
                self.assertIn(told.returncode, (0, 2) if words[0] == "compare" else (0,),
                              told.stderr)  # two equal runs of few steps may not be judged
                self.assertNotIn("encrypted", told.stderr)
                self.assertTrue(told.stdout)

    def test_without_or_with_another_one(self):
        for words in self.NEEDS_THE_KEY:
            for told in (harness.run(*words), with_key(words, OTHER)):
                with self.subTest(words=words):
                    self.assertEqual((told.returncode, told.stdout), (77, ""), told.stderr)
                    self.assertIn("encrypted for file", told.stderr)
                    self.assertIn("'site'", told.stderr, "it names the key that opens the file")

    def test_a_key_that_is_not_there(self):
        for words in self.NEEDS_THE_KEY:
            with self.subTest(words=words):
                told = with_key(words, FOLDER / "none.key")
                self.assertEqual((told.returncode, told.stdout), (66, ""), told.stderr)
                self.assertIn("none.key", told.stderr)

    def test_what_has_more_to_say(self):
        state = json.loads(harness.must(with_key(["status", RUN, "--json"])).stdout)
        self.assertEqual((state["step"], state["metrics_are_encrypted"]), (8, False))
        state = json.loads(harness.must(harness.run("status", RUN, "--json")).stdout)
        self.assertEqual((state["step"], state["metrics_are_encrypted"]), (8, True))
        page = harness.must(with_key(["report", RUN, "--markdown"])).stdout
        self.assertNotIn("encrypted for file", page)
        self.assertIn("Timeline of attempts", page)
        self.assertIn("encrypted for file",
                      harness.must(harness.run("report", RUN, "--markdown")).stdout)

    def test_what_needs_no_key(self):
        account = json.loads(harness.must(harness.run("launch", "report", RUN, "--json")).stdout)
        self.assertTrue(account)
        harness.must(harness.run("archive", RUN, "-o", FOLDER / "run.tar"))
        harness.must(harness.run("config", "show", FOLDER / "run.yaml"))

    def test_the_planner_fits_to_the_run(self):
        out = FOLDER / "fitted.yaml"
        harness.must(harness.run("plan", "calibrate", "--from", RUN, "--cluster", CLUSTER, "--out",
                                 out))
        self.assertIn("residual_percent", out.read_text())

    def test_job_scripts_take_the_keys_of_the_configuration(self):
        words = ["slurm", "render", FOLDER / "run.yaml", "--cluster",
                 harness.SOURCE / "configs/site/test.yaml", "--nodes", 1]
        own = harness.must(harness.run(*words)).stdout
        guessed = harness.must(harness.run(*words, f"run.dir={FOLDER}/none")).stdout
        self.assertNotEqual(own.replace(str(RUN), ""), guessed.replace(f"{FOLDER}/none", ""))

    def test_doctor_and_another_start(self):
        told = harness.run("doctor", FOLDER / "run.yaml")
        self.assertIn(told.returncode, (0, 4), told.stdout + told.stderr)
        again = harness.must(harness.run("train", FOLDER / "run.yaml", ranks=2))
        self.assertIn("finished", again.stdout)


class Launch(unittest.TestCase):
    def test_events_reach_the_site(self):
        events = [json.loads(line) for line in HEARD.read_text().splitlines()]
        self.assertEqual([event["event"] for event in events],
                         ["started", "fault", "relaunch", "finished"])
        for event in events:
            self.assertNotIn("loss", json.dumps(event))

    def test_all_steps_are_there(self):
        lines = harness.must(with_key(["log", RUN / "metrics.jsonl"])).stdout.splitlines()
        self.assertEqual([json.loads(line)["step"] for line in lines], list(range(1, 9)))


class Replay(unittest.TestCase):
    def test_logged_steps_have_the_same_bits(self):
        told = harness.must(harness.run("train", FOLDER / "run.yaml", "--replay", 2, ranks=2))
        self.assertIn("same bits", told.stdout + told.stderr)


class Scaling(unittest.TestCase):
    def test_a_study_of_encrypted_runs(self):
        words = ["scale", FOLDER / "run.yaml", "--nodes", 1, "--ranks-per-node", 1, "--steps", 3,
                 "--repeat", 1, "--dir", FOLDER / "study"]
        refused = harness.run(*words)
        self.assertEqual(refused.returncode, 77, refused.stdout + refused.stderr)
        self.assertIn("encrypted for file", refused.stderr)
        self.assertTrue(harness.must(with_key(words)).stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
