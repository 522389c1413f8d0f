"""Tests optimizers, loss terms, dropouts and averages other than the defaults, as a user runs them:
with real ranks, a resume in another layout, and what is refused."""

import json
import shutil
import unittest

import harness

OPTIONS = dict(
    model__dropout=0.1, model__attention_dropout=0.2, train__label_smoothing=0.1,
    train__z_loss=1e-3, optimizer__name="sgd", optimizer__nesterov="true", optimizer__lr=0.05,
    optimizer__ema=0.7)


class TrainingOptions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 40_000)
        cls.config = harness.write_config(
            cls.folder / "all.yaml", cls.datasets, "llama", checkpoint__every=4, **OPTIONS)
        cls.config.write_text(cls.config.read_text().replace(
            "{warmup: 2}", "{warmup: 2, kind: inverse_sqrt}"))
        harness.must(harness.run("train", cls.config, ranks=2))
        cls.plain = harness.write_config(cls.folder / "plain.yaml", cls.datasets, "llama",
                                         train__steps=2)
        harness.must(harness.run("train", cls.plain))

    def refused(self, words, *command):
        result = harness.run(*command)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout + result.stderr)

    def copy_of(self, config, name):
        copy = config.parent / f"{name}.yaml"
        copy.write_text(config.read_text().replace(str(harness.run_dir(config)),
                                                   str(config.parent / name)))
        shutil.copytree(harness.run_dir(config), harness.run_dir(copy))
        return copy

    def test_the_same_bits_in_other_layouts_and_after_a_resume(self):
        for name, words in {"pipeline": ["parallel.pp=2", "parallel.zero=2"],
                            "sharded": ["parallel.zero=3", "train.recompute=full"]}.items():
            with self.subTest(name):
                config = self.folder / f"{name}.yaml"
                config.write_text(self.config.read_text().replace(
                    str(harness.run_dir(self.config)), str(self.folder / name)))
                harness.must(harness.run("train", config, *words, ranks=4))
                self.assertEqual(harness.loss_bits(config), harness.loss_bits(self.config))
                self.assertEqual(harness.digest(config), harness.digest(self.config))
        resumed = self.copy_of(self.config, "resumed")
        steps = sorted((harness.run_dir(resumed) / "checkpoints").glob("step-*"))
        shutil.rmtree(steps[-1])
        (harness.run_dir(resumed) / "DONE").unlink()
        harness.must(harness.run("train", resumed, "parallel.pp=2", ranks=2))
        self.assertEqual(harness.loss_bits(resumed), harness.loss_bits(self.config))
        self.assertEqual(harness.digest(resumed), harness.digest(self.config))

    def test_eval_and_generate_take_the_average(self):
        checkpoints = harness.run_dir(self.config) / "checkpoints"

        def loss(*words):
            return json.loads(harness.must(harness.run(
                "eval", "--checkpoint", checkpoints, "--data", self.datasets[1], "--samples", 8,
                "--micro-batch", 1, "--precision", "fp32", "--json", *words)).stdout)["loss"]

        self.assertNotEqual(loss("--ema"), loss())
        # The model was trained with a smoothed loss, which the evaluation does not use.
        self.assertAlmostEqual(loss(), harness.metrics(self.config)[-1]["val_loss"], places=5)
        harness.must(harness.run("generate", "--checkpoint", checkpoints, "--tokens", 5, "--ema"))
        plain = harness.run_dir(self.plain) / "checkpoints"
        for command in (["generate", "--tokens", 5], ["eval", "--data", self.datasets[1]]):
            self.refused(["optimizer.ema"], *command, "--checkpoint", plain, "--ema")

    def test_a_run_keeps_its_optimizer(self):
        grow = ["train.steps=10"]
        allow = "checkpoint.allow_change=[optimizer, train, model]"
        plain = self.copy_of(self.plain, "other")
        self.refused(["optimizer adamw", "optimizer.name is sgd"], "train", plain, *grow, allow,
                     "optimizer.name=sgd")
        self.refused(["no moving average of the weights"], "train", plain, *grow, allow,
                     "optimizer.ema=0.9")
        self.refused(["train.z_loss: checkpoint 0.0, run 0.5"], "train", plain, *grow,
                     "train.z_loss=0.5")
        for words in (["parallel.zero=1"], ["parallel.tp=2"], ["parallel.tp=auto"]):
            self.refused(["optimizer.name", "whole matrices"], "config", "show", self.plain,
                         "optimizer.name=muon", *words)
        harness.must(harness.run("config", "show", self.plain, "optimizer.name=muon"))
        full = self.copy_of(self.config, "full")
        # A run may give up its average.
        harness.must(harness.run("train", full, *grow, allow, "optimizer.ema=0", ranks=2))
        self.refused(["optimizer.ema"], "generate", "--ema", "--checkpoint",
                     harness.run_dir(full) / "checkpoints")


if __name__ == "__main__":
    unittest.main()
