"""Tests a batch that grows during a run: the same bits in every layout and after a resume within
the ramp, the counts in logs and checkpoints, a rewind, and what is refused."""

import json
import re
import unittest

import divergence_test
import harness

SEQUENCE = 48
STEPS = 12
FULL = 8


def ramp(start, by, every):
    return [f"train.batch_ramp.from={start}", f"train.batch_ramp.by={by}",
            f"train.batch_ramp.every={every}"]


def size(batch, start=2, by=2, every=3, full=FULL):
    return min(full, start + batch // every * by)


RAMP = ramp(2, 2, 3)
LAYOUTS = [(1, []), (2, ["parallel.zero=2"]), (2, ["parallel.pp=2"]),
           (4, ["parallel.pp=2", "parallel.zero=3"])]


class BatchRamp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.reference = cls.config("reference")
        cls.said = harness.must(harness.run("train", cls.reference, *RAMP)).stderr

    @classmethod
    def config(cls, name, datasets=None, **keys):
        return harness.write_config(
            cls.folder / f"{name}.yaml", datasets or cls.datasets,
            **{"train__steps": STEPS, "train__global_batch": FULL, "checkpoint__every": 4, **keys})

    def refused(self, words, *command, ranks=0):
        result = harness.run(*command, ranks=ranks)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout + result.stderr)

    def manifest(self, config):
        steps = sorted((harness.run_dir(config) / "checkpoints").glob("step-*"))
        return json.loads((steps[-1] / "manifest.json").read_text())

    def assert_same_as_reference(self, config):
        self.assertEqual(harness.loss_bits(config), harness.loss_bits(self.reference))
        self.assertEqual(harness.digest(config), harness.digest(self.reference))

    def test_the_same_bits_in_every_layout(self):
        for number, (ranks, words) in enumerate(LAYOUTS):
            config = self.config(f"layout-{number}")
            harness.must(harness.run("train", config, *RAMP, *words, ranks=ranks))
            self.assert_same_as_reference(config)
        # Another ramp is another run, which shows that the comparison can fail.
        other = self.config("other")
        harness.must(harness.run("train", other, *ramp(2, 2, 4)))
        self.assertNotEqual(harness.digest(other), harness.digest(self.reference))

    def test_the_same_bits_after_a_resume(self):
        # The run resumes from step 6, where the batch changes, and from step 8, where it does not.
        config = self.config("killed", checkpoint__every=2, checkpoint__async="false")
        for (ranks, words), step in zip(LAYOUTS[1:], (7, 3, 0)):
            plan = f"step.end:0:{step}:kill" if step else ""
            result = harness.run("train", config, *RAMP, *words, ranks=ranks,
                                 env={"TRIREME_FAULTS": plan})
            self.assertEqual(result.returncode == 0, not plan, result.stderr)
        self.assertRegex(result.stderr, "resumed from .*step-00000008:")
        self.assert_same_as_reference(config)
        harness.must(harness.run("train", config, *RAMP, "--replay", STEPS))

    def test_logs_and_checkpoints_count_the_real_batches(self):
        self.assertIn("batch ramp: 2 sequences at first, 2 more every 3 steps, 8 from step 10 on",
                      self.said)
        self.assertIn("2 to 8 micro-batches per replica and step", self.said)
        seen = 0
        for line in harness.metrics(self.reference):
            seen += size(line["step"] - 1)
            self.assertEqual(line["tokens"], seen * SEQUENCE)
            # Every step has its own line.
            tokens = 1e-3 * line["step_ms"] * line["tokens_per_s"]
            self.assertAlmostEqual(tokens / (size(line["step"] - 1) * SEQUENCE), 1, places=6)
        self.assertEqual(self.manifest(self.reference)["samples"], seen)
        megatron = self.config("megatron")
        said = harness.must(harness.run("train", megatron, *RAMP, "run.log_format=megatron")).stderr
        found = re.findall(r"consumed samples: +(\d+) .* global batch size: +(\d+) ", said)
        expected = [(sum(map(size, range(step))), size(step - 1)) for step in range(1, STEPS + 1)]
        self.assertEqual([tuple(map(int, pair)) for pair in found], expected)

    def test_the_configuration_shows_the_ramp(self):
        said = harness.must(harness.run("config", "show", self.reference, *RAMP)).stdout
        self.assertRegex(said, r"batch_ramp:\n +from: 2 ")
        self.assertIn("# batch ramp: 2 sequences at first", said)
        again = self.folder / "shown.yaml"
        again.write_text(said)
        self.assertEqual(harness.must(harness.run("config", "show", again)).stdout.split("#")[-1],
                         said.split("#")[-1])

    def test_a_rewind_leaves_batches_of_the_ramp_out(self):
        noisy = (harness.make_noisy_dataset(self.folder, *divergence_test.NOISE), self.datasets[1])
        words = ramp(2, 2, 10)  # the noise, samples 160 to 183, is in batches of 8
        bits = []
        for number, (ranks, layout) in enumerate(LAYOUTS[:4:2]):
            config = self.config(f"rewind-{number}", noisy, train__global_batch=16,
                                 train__steps=44, data__shuffle="none", optimizer__lr=2e-3,
                                 divergence__window=8, divergence__threshold=20,
                                 divergence__spike="rewind", divergence__rewind_steps=4,
                                 divergence__skip_batches=2, checkpoint__keep=3)
            harness.must(harness.run("train", config, *words, *layout, ranks=ranks))
            bits.append((harness.loss_bits(config), harness.digest(config)))
        self.assertEqual(bits[1], bits[0])
        (window,) = self.manifest(config)["extra"]["counters"]["left_out"]
        sizes = [size(batch, 2, 2, 10, 16) for batch in range(44 + window["count"])]
        self.assertEqual(self.manifest(config)["samples"], sum(sizes))
        first, end = window["first"], window["first"] + window["count"]
        # The batches left out have 6 and 8 samples; the noise is in batches 35 to 37.
        self.assertEqual((first, end), (28, 38))
        trained = sum(sizes[:first]) + sum(sizes[end:])
        self.assertEqual(harness.metrics(config)[-1]["tokens"], trained * SEQUENCE)

    def test_another_ramp_is_another_run(self):
        config = self.config("grown")
        harness.must(harness.run("train", config, *RAMP))
        grow = ["train.steps=20"]
        self.refused(["train.batch_ramp.by: checkpoint 2, run 3"], "train", config, *grow,
                     *ramp(2, 3, 3))
        self.refused(["train.batch_ramp.from: checkpoint 2, run 0"], "train", config, *grow)
        allow = "checkpoint.allow_change=[train, optimizer]"
        self.refused(["has seen 60 samples, which are not 12 batches of train.global_batch 8 and "
                      "train.batch_ramp"], "train", config, *grow, *ramp(2, 2, 2), allow)
        # A run that has used the same samples so far may resume.
        self.refused(["train.global_batch: checkpoint 8, run 12", "accept a field"], "train",
                     config, *grow, *RAMP, "train.global_batch=12")
        harness.must(harness.run("train", config, *grow, *RAMP, allow, "train.global_batch=12"))
        self.assertEqual(harness.metrics(config)[-1]["tokens"],
                         sum(size(batch, full=12) for batch in range(20)) * SEQUENCE)

    def test_what_no_rank_could_share_is_refused(self):
        config = self.config("refused")
        self.refused(["train.batch_ramp.every", "a ramp needs from, by and every"],
                     "train", config, *RAMP[:2])
        self.refused(["from step 1 on", "the nearest size that works is 4"], "train", config,
                     *RAMP, ranks=4)
        self.refused(["the batch of 6 sequences from step 4 on", "4 and 8"], "train", config,
                     *ramp(4, 2, 3), ranks=4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
