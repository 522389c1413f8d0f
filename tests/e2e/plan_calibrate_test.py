"""Tests `trireme plan calibrate`: it measures this machine and writes a cluster file that the
planner reads, with where each figure comes from."""

import json
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
        for step in steps:
            self.assertEqual(list(step["measured"]), PARTS)
            self.assertGreater(step["memory_bytes"], 0)
        self.assertGreaterEqual({step["layout"]["pp"] for step in steps}, {1, 2})
        self.assertGreaterEqual({step["layout"]["zero"] for step in steps}, {0, 1, 3})
        # The planner reads it.
        planned = harness.must(harness.run("plan", self.config, "--cluster", file, "--json"))
        residual = json.loads(planned.stdout)["residual_percent"]
        self.assertIn(f"residual_percent: {residual:g} ", text)
        harness.must(harness.run("plan", "cluster", file))

    def test_one_rank_alone(self):
        file, _ = self.calibrate(self.config, "train.precision=fp32", "--name", "my host",
                                 out="one.yaml")
        text = file.read_text(encoding="utf-8")
        self.assertRegex(text, r"(?m)^name: \"?my host")
        self.assertRegex(text, r"per_node: 1 ")

    def test_bad_input(self):
        for arguments, code, words in (
                ([], 2, "give the YAML file of a run"),
                (["train.steps=4"], 2, "give the YAML file of a run"),
                ([self.folder / "none.yaml"], 66, "none.yaml"),
                ([self.config, "parallel.dp=x"], 2, "parallel.dp"),
                ([self.config, "train.micro_batch=3"], 2, "micro_batch"),
                ([self.config, "--cluster", "a100-selen"], 2, "a100-selene")):
            with self.subTest(arguments):
                _, ran = self.calibrate(*arguments, out="bad.yaml", code=code)
                self.assertIn(words, ran.stderr)
        self.assertFalse((self.folder / "bad.yaml").exists())


if __name__ == "__main__":
    unittest.main()
