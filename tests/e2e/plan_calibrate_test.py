"""Tests `trireme plan calibrate` and what a run with plan.cluster leaves: a cluster file that the
planner reads, a comparison at the end of the run, and a calibration that learns from it."""

import json
import re
import unittest

import harness

PARTS = ["compute", "tensor", "pipeline", "replicas", "update", "data", "checkpoint"]


class Calibrate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.disk = cls.folder / "disk"
        cls.disk.mkdir()
        cls.data = harness.make_datasets(cls.folder, 20_000)
        cls.config = cls.folder / "run.yaml"
        harness.write_config(cls.config, cls.data, model="small", train__eval_every=0)

    def calibrate(self, *arguments, out, ranks=0, code=0):
        file = self.folder / out
        quick = ["--seconds", 2, "--steps", 3, "--rounds", 1, "--dir", self.disk]
        ran = harness.run("plan", "calibrate", *arguments, *quick, "--out", file, ranks=ranks,
                          timeout=200)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        self.assertEqual(list(self.disk.iterdir()), [], "files are left behind")
        return file, ran

    def train(self, name, cluster, *arguments, ranks=2):
        run = self.folder / name
        harness.must(harness.run("train", self.config, f"run.dir={run}", f"plan.cluster={cluster}",
                                 "data.validation=", *arguments, ranks=ranks))
        return run

    def test_a_machine_of_two_ranks(self):
        table = self.folder / "steps.json"
        file, ran = self.calibrate(self.config, "-J", table, out="two.yaml", ranks=2)
        text = file.read_text(encoding="utf-8")
        for figure in ("bf16_tflops", "memory_gb_per_s", "links", "write_gb_per_s", "tensor",
                       "residual_percent"):
            self.assertRegex(text, rf"(?m)^ *{figure}:")
        self.assertRegex(text, r"bf16_tflops: [0-9.]+  # bench gemm")
        self.assertRegex(text, r"memory_gb_per_s: [0-9.]+  # bench mem")
        self.assertRegex(text, r"latency_us: [0-9.]+  # bench p2p")
        self.assertRegex(text, r"write_gb_per_s: [0-9.]+  # bench io")
        self.assertRegex(text, r"  tensor: [0-9.]+  # fitted to 0?1 measured step|tensor: 1\n")
        self.assertRegex(ran.stdout, r"residual [0-9.]+ %")
        steps = json.loads(table.read_text(encoding="utf-8"))["steps"]
        self.assertGreaterEqual({step["layout"]["pp"] for step in steps}, {1, 2})
        self.assertGreaterEqual({step["layout"]["zero"] for step in steps}, {0, 1, 3})
        # The planner reads it.
        planned = harness.must(harness.run("plan", self.config, "--cluster", file, "--json"))
        residual = json.loads(planned.stdout)["residual_percent"]
        self.assertIn(f"residual_percent: {residual:g} ", text)
        harness.must(harness.run("plan", "cluster", file))

        # A run compares itself with it, in the log, in its folder and in the report.
        run = self.train("first", file)
        prediction = json.loads((run / "prediction.json").read_text(encoding="utf-8"))
        self.assertEqual(list(prediction["measured"]), PARTS)
        self.assertEqual(prediction["doubts"], [])
        log = (run / "logs/rank-00000.jsonl").read_text(encoding="utf-8")
        self.assertIn('"event":"prediction"', log)
        page = harness.must(harness.run("report", run, "--markdown")).stdout
        self.assertIn("Predicted and measured time of a step", page)
        self.assertRegex(page, r"\| memory \|")

        # Its residuals feed the next calibration.
        learned, ran = self.calibrate("--from", run, "--cluster", file, out="learned.yaml")
        again = json.loads((self.train("second", learned) / "prediction.json")
                           .read_text(encoding="utf-8"))
        self.assertNotEqual(again["predicted"], prediction["predicted"])
        rows = re.findall(r"([+-][0-9.]+) %", ran.stdout)
        self.assertLess(abs(float(rows[0])), 1, "a fit to one run meets it")

    def test_one_rank_alone(self):
        file, _ = self.calibrate(self.config, "train.precision=fp32", "--name", "my host",
                                 out="one.yaml")
        text = file.read_text(encoding="utf-8")
        self.assertRegex(text, r"(?m)^name: \"?my host")
        self.assertRegex(text, r"per_node: 1 ")
        # A run of two ranks has other rates, and is told so.
        run = self.train("other", file, "train.precision=fp32")
        doubts = json.loads((run / "prediction.json").read_text(encoding="utf-8"))["doubts"]
        self.assertRegex(" ".join(doubts), "1 rank per node")

    def test_bad_input(self):
        cluster = harness.SOURCE / "configs/cluster/test.yaml"
        for arguments, code, words in (
                ([], 2, "give the YAML file of a run"),
                (["--from", self.folder], 2, "--from alone measures nothing"),
                (["train.steps=4", "--from", self.folder, "--cluster", cluster], 2, "KEY=VALUE"),
                (["--from", self.folder, "--cluster", cluster], 66, "plan.cluster"),
                ([self.folder / "none.yaml"], 66, "none.yaml"),
                ([self.config, "parallel.dp=x"], 2, "parallel.dp"),
                ([self.config, "--cluster", "a100-selen"], 2, "a100-selene")):
            with self.subTest(arguments):
                _, ran = self.calibrate(*arguments, out="bad.yaml", code=code)
                self.assertIn(words, ran.stderr)
        self.assertFalse((self.folder / "bad.yaml").exists())
        damaged = self.folder / "damaged"
        damaged.mkdir()
        for text in ("", "[]", "{\"schema\": 2}", "{\"schema\": 1}"):
            (damaged / "prediction.json").write_text(text, encoding="utf-8")
            _, ran = self.calibrate("--from", damaged, "--cluster", cluster, out="bad.yaml",
                                    code=65)
            self.assertIn("prediction.json", ran.stderr)

    def test_a_run_with_a_wrong_cluster_file_does_not_begin(self):
        ran = harness.run("train", self.config, f"run.dir={self.folder / 'wrong'}",
                          "plan.cluster=h100-pot", ranks=2)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertIn("h100-pod", ran.stderr)
        self.assertFalse((self.folder / "wrong/metrics.jsonl").exists())


if __name__ == "__main__":
    unittest.main()
