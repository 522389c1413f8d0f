"""Tests `trireme scale`: studies that are made, continued, refused and interrupted."""

import json
import re
import signal
import sys
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "benchmarks/schema"))
import validate  # noqa: E402


class Scale(unittest.TestCase):
    """Studies with mpirun on this machine; slurm_test.py has one with Slurm jobs."""

    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.config = harness.write_config(cls.folder / "run.yaml", cls.datasets, "small",
                                          train__steps=99, checkpoint__every=0)
        cls.study = cls.folder / "study"

    def scale(self, *arguments, nodes="1,2", code=0):
        result = harness.run("scale", self.config, "--nodes", nodes, "--ranks-per-node", 1,
                             "--steps", 4, "--dir", self.study, *arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_a_study_that_grows_and_is_continued(self):
        file = self.folder / "strong.json"
        first = self.scale("--repeat", 1, "-J", file)
        self.assertEqual(first.stderr.count("scale: run"), 2)
        self.assertIn("# Amdahl: serial fraction", first.stdout)
        self.assertIn("# knee: ", first.stdout)
        self.assertEqual([x for x in first.stdout.splitlines() if len(x) > 80], [])
        self.assertEqual(validate.problems_of(file.read_text()), [])
        points = [r for r in json.loads(file.read_text())["results"] if r["name"] == "scale"]
        for point in points:
            metrics, steps = point["metrics"], point["samples"]["step_ms"]["values"]
            self.assertEqual(len(steps), 4)
            parts = sum(metrics[f"{part}_ms"] for part in (
                "compute", "communication", "imbalance", "bubble", "input", "optimizer",
                "checkpoint", "other"))
            self.assertAlmostEqual(parts, metrics["trace_step_ms"], places=6)
            self.assertAlmostEqual(metrics["efficiency"] * point["params"]["nodes"],
                                   metrics["speedup"], places=9)
        self.assertFalse((self.study / "n0001-r01/checkpoints").exists())

        # A run that was cut short is repeated, and the others are kept.
        (self.study / "n0002-r01/DONE").unlink()
        again = self.scale("--repeat", 1)
        self.assertEqual(again.stderr.count("scale: run"), 1)
        more = self.scale("--repeat", 2, "--json")
        self.assertEqual(more.stderr.count("scale: run"), 2)
        self.assertEqual(validate.problems_of(more.stdout), [])

        # Another study does not fit into the folder.
        for words, arguments in [("scaling", ["--weak"]), ("arguments", ["train.seed=5"])]:
            message = self.scale(*arguments, "--repeat", 1, code=2).stderr
            self.assertIn(f"holds a study with other {words}", message)
        for file in (self.study / "study.json", self.study / "n0001-r01/metrics.jsonl",
                     self.folder / "train/manifest.json", self.config):
            before = file.read_bytes()
            self.scale("--repeat", 1, "-J", file, code=2)
            self.assertEqual(file.read_bytes(), before)
        (self.study / "study.json").write_text('{"schema": 1, "half')
        self.assertIn("study.json", self.scale("--repeat", 1, code=65).stderr)

    def test_a_weak_study(self):
        """The global batch grows with the nodes, and so does the work that speedups count."""
        self.study = self.folder / "weak"
        file = self.folder / "weak.json"
        out = self.scale("--weak", "--repeat", 1, "-J", file).stdout
        self.assertIn("# weak scaling of run, 1 rank per node", out)
        self.assertIn("# Gustafson: serial fraction", out)
        self.assertEqual(validate.problems_of(file.read_text()), [])
        points = [r for r in json.loads(file.read_text())["results"] if r["name"] == "scale"]
        one, two = (point["metrics"] for point in points)
        self.assertEqual([point["params"]["nodes"] for point in points], [1, 2])
        self.assertAlmostEqual(two["speedup"], 2 * one["step_ms"] / two["step_ms"], places=6)
        self.assertAlmostEqual(two["efficiency"], two["speedup"] / 2, places=9)
        batches = []
        for name in ("n0001-r01", "n0002-r01"):
            text = (self.study / name / "config.yaml").read_text()
            batches.append(int(re.search(r"global_batch: (\d+)", text)[1]))
        self.assertEqual(batches[1], 2 * batches[0])

    def test_a_warmup_that_is_longer(self):
        self.study = self.folder / "warmup"
        self.scale("--repeat", 1, "optimizer.schedule.kind=cosine", "optimizer.schedule.warmup=50",
                   "train.threads=auto", nodes="1")
        text = (self.study / "n0001-r01/config.yaml").read_text()
        self.assertRegex(text, r"(?s)schedule:.*warmup: 50.*steps: 99")
        # Ranks on the same cores would otherwise have fewer threads the more of them there are.
        self.assertRegex(text, r"threads: 1 ")

    def test_an_interruption_ends_the_ranks(self):
        study = self.folder / "interrupted"
        log = self.folder / "interrupted.log"
        process = harness.start(
            "scale", self.config, "--nodes", "2", "--ranks-per-node", 1, "--steps", 100_000,
            "--repeat", 1, "--dir", study, ranks=0, log=log)
        self.addCleanup(harness.end_group, process)
        metrics = study / "n0002-r01/metrics.jsonl"
        harness.until("a step", 90, lambda: metrics.exists() and metrics.stat().st_size > 0)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), -signal.SIGINT)
        self.assertIn("the same command continues the study", log.read_text())
        harness.until("the ranks' end", 30, lambda: not harness.processes_with(str(study)))

    def test_runs_that_are_unlike_are_refused(self):
        self.study = self.folder / "unlike"
        self.scale("--repeat", 1)
        config = self.study / "n0002-r01/config.yaml"
        config.write_text(config.read_text().replace("micro_batch: 1 ", "micro_batch: 2 "))
        message = self.scale("--repeat", 1, code=2).stderr
        self.assertIn("train.micro_batch: 2, and the study asks for 1", message)

    def test_a_run_that_was_spread_otherwise_is_refused(self):
        """A run on one node says nothing about two, even if it has the ranks of two."""
        self.study = self.folder / "spread"
        threads = ("train.threads=1",)
        self.scale("--repeat", 1, *threads)
        file = self.study / "study.json"
        study = json.loads(file.read_text())
        study["launcher"] = "slurm"
        file.write_text(json.dumps(study))
        slurm = ("--repeat", 1, "--cluster", harness.SOURCE / "configs/site/test.yaml")
        message = self.scale(*slurm, *threads, code=2).stderr
        self.assertIn("n0002-r01 is not a run that this study asks for", message)
        self.assertIn("ranks on nodes: 2 ranks on 1 node, and the study asks for 1 rank on each of "
                      "2 nodes", message)
        log = self.study / "n0002-r01/logs/rank-00000.jsonl"
        text = log.read_text()
        log.write_text(re.sub(r'"event":"nodes","ranks":\[2\]', '"event":"nodes","ranks":[1,1]',
                              text))
        self.assertNotEqual(log.read_text(), text)
        self.assertIn("# knee: ", self.scale(*slurm, *threads).stdout)

    def test_impossible_studies(self):
        self.study = self.folder / "none"
        self.assertIn("on 3 nodes: ", self.scale(nodes="1,3", code=2).stderr)
        self.scale(nodes="0", code=2)
        message = self.scale("--weak", "train.global_batch=3", nodes="2,3", code=2).stderr
        self.assertIn("gives no whole batch on 3", message)
        self.assertFalse(self.study.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
