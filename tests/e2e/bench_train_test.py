"""Tests `trireme bench train`: its breakdown of a step adds up, and its log has the format of
MLPerf Training, by the rules of its compliance checker that can be told without it."""

import json
import os
import re
import signal
import sys
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "benchmarks/schema"))
import validate  # noqa: E402

PARTS = ["compute_ms", "comm_exposed_ms", "bubble_ms", "data_wait_ms", "checkpoint_ms", "other_ms"]
# mlperf_logging/compliance_checker/mlp_parser of github.com/mlcommons/logging.
LINE = re.compile(r"^:::MLLOG (\{.*\})$")
FIELDS = ["namespace", "time_ms", "event_type", "key", "value", "metadata"]
KINDS = {"POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"}
# training_6.0.0/common.yaml and open_common.yaml: keys that must be there exactly once, or more.
ONCE = ["submission_org", "submission_platform", "submission_division", "submission_benchmark",
        "init_stop", "run_start", "run_stop", "train_samples", "eval_samples", "config_filename",
        "tensor_parallelism", "pipeline_parallelism", "context_parallelism", "expert_parallelism",
        "micro_batch_size", *(f"lowest_numerical_precision_in_{part}"
                              for part in ("linear", "attn", "comm"))]
SOME = ["cache_clear", "init_start", "block_start", "block_stop", "eval_start", "eval_stop",
        "eval_accuracy", "gradient_accumulation_steps"]
WITH_SAMPLES = {"block_start", "block_stop", "eval_start", "eval_stop", "eval_accuracy"}


class Train(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.disk = cls.folder / "disk"
        cls.disk.mkdir()
        cls.config = cls.folder / "run.yaml"
        harness.write_config(cls.config, harness.make_datasets(cls.folder, 20_000), model="small",
                             train__eval_every=3, checkpoint__every=4)

    def bench(self, *arguments, ranks=2, code=0):
        file = self.folder / "train.json"
        file.unlink(missing_ok=True)
        ran = harness.run("bench", "train", self.config, *arguments, "--dir", self.disk, "-J", file,
                          ranks=ranks, timeout=120)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        self.assertEqual(os.listdir(self.disk), [], "files are left behind")
        if code:
            return None, ran.stderr
        text = file.read_text(encoding="utf-8")
        self.assertEqual(validate.problems_of(text), [])
        return json.loads(text)["results"][0], ran.stderr

    def test_breakdown_adds_up(self):
        for arguments in ([], ["parallel.pp=2"]):
            with self.subTest(arguments):
                result, errors = self.bench(*arguments, "--steps", 6)
                metrics = result["metrics"]
                self.assertNotIn("cannot write", errors)
                self.assertAlmostEqual(sum(metrics[part] for part in PARTS), metrics["step_ms"],
                                       delta=1e-6 * metrics["step_ms"])
                for part in PARTS:
                    self.assertGreaterEqual(metrics[part], -0.02 * metrics["step_ms"], part)
                self.assertGreater(metrics["checkpoint_ms"], 0)  # one save is among the steps
                samples = result["samples"]["step_ms"]
                self.assertEqual([len(own) for own in samples["by_rank"]], [6, 6])
                seconds = sum(samples["values"]) / 1e3
                self.assertAlmostEqual(metrics["tokens_per_s"] * seconds / (6 * 8 * 48), 1,
                                       delta=1e-3)

    def test_a_warmup_that_is_longer(self):
        """The schedule keeps the shape that it has in the whole run."""
        whole = ["train.steps=100", "optimizer.schedule.kind=cosine",
                 "optimizer.schedule.warmup=50"]
        self.bench(*whole, "--steps", 3, ranks=0)
        too_long = whole + ["optimizer.schedule.warmup=101"]
        self.assertIn("exceeds", self.bench(*too_long, "--steps", 3, ranks=0, code=2)[1])

    def test_log_of_mlperf(self):
        file = self.folder / "mllog.txt"
        self.bench("--steps", 5, "--mllog", file, "--mllog-benchmark", "llama31_8b", "--mllog-org",
                   'A "quoted" name')
        lines = file.read_text(encoding="utf-8").splitlines()
        events = [validate.parse(LINE.match(line)[1]) for line in lines]
        for event in events:
            self.assertEqual(list(event), FIELDS)
            self.assertIn(event["event_type"], KINDS)
            self.assertIsInstance(event["time_ms"], int)
            self.assertIsInstance(event["metadata"]["file"], str)
            self.assertIsInstance(event["metadata"]["lineno"], int)
            if event["key"] in WITH_SAMPLES:
                self.assertIn("samples_count", event["metadata"])
        keys = [event["key"] for event in events]
        for key in ONCE:
            self.assertEqual(keys.count(key), 1, key)
        for key in SOME:
            self.assertIn(key, keys)
        order = [keys.index(k) for k in ("init_start", "init_stop", "run_start", "block_start",
                                         "eval_accuracy", "run_stop")]
        self.assertEqual(order, sorted(order))
        times = [event["time_ms"] for event in events]
        self.assertEqual(times, sorted(times))
        by_key = {event["key"]: event for event in events}
        self.assertEqual(by_key["submission_org"]["value"], 'A "quoted" name')
        self.assertEqual(by_key["submission_division"]["value"], "open")
        self.assertEqual(by_key["run_stop"]["metadata"]["status"], "success")
        self.assertEqual(by_key["run_stop"]["metadata"]["samples_count"], 7 * 8)

    def test_signals_remove_the_folder(self):
        for ranks, number in [(0, signal.SIGINT), (2, signal.SIGTERM)]:
            with self.subTest(ranks=ranks):
                log = self.folder / f"signal-{ranks}.log"
                process = harness.start("bench", "train", self.config, "--steps", 100_000, "--dir",
                                        self.disk, ranks=ranks, log=log)
                self.addCleanup(harness.end_group, process)
                harness.until("a step", 60, lambda: [p for p in self.disk.rglob("metrics.jsonl")
                                                     if p.stat().st_size > 0])
                process.send_signal(number)
                code = process.wait(timeout=60)
                if ranks == 0:
                    self.assertEqual(code, -number, log.read_text())
                harness.until("the ranks' end", 30,
                              lambda: not harness.processes_with(str(self.disk)))
                self.assertEqual(os.listdir(self.disk), [], log.read_text())

    def test_refusals(self):
        for code, words, arguments in [
                (2, "use --steps", ["--duration", 1]),
                (2, "--warmup", ["--warmup", 0]),
                (66, "No such file", ["--mllog", self.folder / "none" / "x"]),
                (66, "none", ["data.train=none"]),
                (2, "train.spets", ["train.spets=3"])]:
            with self.subTest(arguments):
                _, errors = self.bench(*arguments, ranks=0, code=code)
                self.assertIn(words, errors)

    def test_nothing_that_the_run_reads_is_replaced(self):
        cluster = self.folder / "cluster.yaml"
        cluster.write_text("kept")
        manifest = self.folder / "train/manifest.json"
        for option, file in [("-J", self.config), ("-J", cluster), ("--csv", cluster),
                             ("-J", manifest), ("--mllog", manifest)]:
            with self.subTest(option, file=file):
                before = file.read_bytes()
                ran = harness.run("bench", "train", self.config, f"plan.cluster={cluster}",
                                  "--steps", 1, option, file)
                self.assertEqual(ran.returncode, 2, ran.stdout + ran.stderr)
                self.assertRegex(ran.stderr, "name another file")
                self.assertEqual(file.read_bytes(), before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
