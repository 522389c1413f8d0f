"""Tests continuing trained models and using them: precision, tokenizers, prompts, longer schedules.
"""

import hashlib
import json
import shutil
import subprocess
import unittest

import harness

CONSTANT = "optimizer.schedule.kind=constant"

# The fields that the manifests of version 0.1 at commit ad4fcd10d0b2 contain.
FIRST_CONFIG = {
    "data": "digest seed sequence shuffle",
    "model": "context dropout family ffn head_dim heads hidden initializer_range kv_heads layers "
             "norm_epsilon rope_factor rope_high_frequency rope_low_frequency "
             "rope_original_context rope_theta tie_embeddings vocab",
    "optimizer": "betas clip eps lr name schedule.decay schedule.kind schedule.min_lr "
                 "schedule.steps schedule.warmup weight_decay",
    "train": "global_batch micro_batch precision seed",
}
FIRST_NUMERICS = "kernels products reproducibility sequence_parallel tp".split()
FIRST_EXTRA = "counters tokenizer".split()
FIRST_COUNTERS = "history skipped_in_a_row skipped_steps step updates".split()


def make_first(step):
    """Removes from a checkpoint's manifest what the first version did not write."""
    def keep(fields, names):
        assert set(names) <= set(fields), set(names) - set(fields)
        for name in set(fields) - set(names):
            del fields[name]

    path = step / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["seal"]
    keep(manifest["config"], [f"{section}.{name}" for section, names in FIRST_CONFIG.items()
                              for name in names.split()])
    keep(manifest["numerics"], FIRST_NUMERICS)
    keep(manifest["extra"], FIRST_EXTRA)
    keep(manifest["extra"]["counters"], FIRST_COUNTERS)
    body = json.dumps(manifest, indent=1).removesuffix("\n}")
    seal = hashlib.sha256(body.encode()).hexdigest()
    path.write_text(f'{body},\n "seal": "sha256:{seal}"\n}}\n')


class ModelUse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, bytes_wanted=40_000)
        cls.gpt2 = cls.converted("gpt2", "gpt2")
        cls.trained = cls.config("trained")
        harness.must(harness.run("train", cls.trained, CONSTANT))

    @classmethod
    def converted(cls, name, tokenizer):
        """Converts the training text as if another program had made it with `tokenizer`."""
        [shard] = (cls.datasets[0] / "shards").glob("*.h5")
        out = cls.folder / f"converted-{name}"
        harness.must(harness.run("data", "convert", shard, "--vocab", 257, "--tokenizer", tokenizer,
                                 "--out", out))
        return out

    @classmethod
    def config(cls, name, train=None, **keys):
        keys.setdefault("train__steps", 4)
        return harness.write_config(cls.folder / f"{name}.yaml",
                                    [train or cls.datasets[0], cls.datasets[1]], **keys)

    def checkpoints(self, config):
        return harness.run_dir(config) / "checkpoints"

    def refused(self, words, *arguments):
        result = harness.run(*arguments)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        for word in words:
            self.assertIn(word, result.stderr)

    def evaluate(self, config, data, *more):
        result = harness.must(harness.run("eval", "--checkpoint", self.checkpoints(config),
                                          "--data", data, "--samples", 8, "--micro-batch", 1,
                                          "--json", *more))
        return json.loads(result.stdout)["loss"]

    def generate(self, config, *more, ranks=0):
        return harness.run("generate", "--checkpoint", self.checkpoints(config), "--tokens", 5,
                           *more, ranks=ranks)

    def test_eval_computes_in_the_precision_of_the_run(self):
        logged = harness.metrics(self.trained)[-1]["val_loss"]
        self.assertEqual(self.evaluate(self.trained, self.datasets[1]), logged)
        lower = self.evaluate(self.trained, self.datasets[1], "--precision", "bf16")
        self.assertNotEqual(lower, logged)
        bf16 = self.config("bf16", precision="bf16")
        harness.must(harness.run("train", bf16))
        self.assertEqual(self.evaluate(bf16, self.datasets[1]),
                         harness.metrics(bf16)[-1]["val_loss"])

    def test_generating_takes_memory_for_the_text_and_not_for_the_context(self):
        config = harness.write_config(self.folder / "long.yaml", self.datasets, "llama",
                                      data__sequence=24, train__steps=2,
                                      model__context=1 << 20)
        config.write_text(config.read_text().replace("  context: 64\n", ""))
        harness.must(harness.run("train", config))
        words = harness.command(["generate", "--checkpoint", self.checkpoints(config),
                                 "--prompt", "the ", "--tokens", 5])
        # Keys and values of the whole context would take 1.6 GiB.
        result = subprocess.run(["bash", "-c", 'ulimit -v 1000000 && exec "$@"', "bash", *words],
                                env=harness.ENVIRONMENT, capture_output=True, text=True,
                                errors="replace", timeout=240, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_tokenizers_are_compared(self):
        words = ["'gpt2' (257 ids", "'bytes' (257 ids"]
        self.refused(words, "eval", "--checkpoint", self.checkpoints(self.trained), "--data",
                     self.gpt2)
        self.evaluate(self.trained, self.gpt2, "--any-tokenizer")
        both = self.config("both", train=self.gpt2)
        self.refused([*words, "data.validation"], "train", both)
        self.refused(["data.tokenizer: checkpoint", *words], "train", self.trained, CONSTANT,
                     "train.steps=6", f"data.train={self.gpt2}", f"data.validation={self.gpt2}",
                     "checkpoint.allow_change=[data.digest]")

    def test_ids_end_where_the_model_ends_a_document(self):
        text, data = self.folder / "ab.jsonl", self.folder / "ab-data"
        text.write_text('{"text": "ab"}\n' * 400)
        harness.must(harness.run("data", "pack", text, "--out", data))
        config = self.config("ab", train=data, data__validation='""')
        harness.must(harness.run("train", config, CONSTANT, "train.steps=40", "optimizer.lr=0.01"))
        for words in (["--prompt", "a"], ["--ids", "--prompt", "97"]):
            result = harness.must(harness.run(
                "generate", "--checkpoint", self.checkpoints(config), "--temperature", 0,
                "--tokens", 8, "--json", *words))
            self.assertEqual(json.loads(result.stdout)["finish"], "end", result.stdout)

    def test_models_of_other_tokenizers_are_prompted_with_ids(self):
        config = self.config("ids", train=self.gpt2, data__validation='""')
        harness.must(harness.run("train", config))
        self.refused(["'gpt2' (257 ids", "--ids"], "generate", "--checkpoint",
                     self.checkpoints(config), "--prompt", "the ship")
        result = harness.must(self.generate(config, "--ids", "--prompt", "116 104"))
        printed = result.stdout.split()
        self.assertEqual(printed[:2], ["116", "104"])
        self.assertEqual(len(printed), 7)
        self.assertTrue(all(0 <= int(token) < 257 for token in printed))
        for prompt in (["--prompt=257"], ["--prompt=-1"], ["--prompt=the"], []):
            self.refused(["token id"], "generate", "--checkpoint", self.checkpoints(config),
                         "--ids", *prompt)
        own = self.config("own", train=self.converted("bytes", "bytes"))
        harness.must(harness.run("train", own))
        text = harness.must(self.generate(own, "--prompt", "ship")).stdout
        self.assertTrue(text.startswith("ship"))
        [shard] = (self.datasets[0] / "shards").glob("*.h5")
        self.refused(["'bytes' has 257 ids"], "data", "convert", shard, "--vocab", 300,
                     "--tokenizer", "bytes", "--out", self.folder / "wide")

    def test_long_prompts_are_told(self):
        fits = harness.must(self.generate(self.trained, "--prompt", "x" * 64))
        self.assertNotIn("the prompt has", fits.stderr)
        cut = harness.must(self.generate(self.trained, "--prompt", "x" * 65))
        self.assertIn("the prompt has 65 tokens", cut.stderr)
        self.assertIn("context of 64", cut.stderr)

    def test_positions_beyond_training_are_told_once(self):
        short = self.config("short", data__sequence=32)
        harness.must(harness.run("train", short))
        within = harness.must(self.generate(short, "--prompt", "x" * 28))
        self.assertEqual(within.stderr, "")
        beyond = harness.must(self.generate(short, "--prompt", "x" * 29, "--samples", 2))
        self.assertEqual(beyond.stderr.count("\n"), 1, beyond.stderr)
        self.assertIn("trained on sequences of 32 tokens", beyond.stderr)

    def test_a_damaged_step_is_skipped(self):
        config = self.config("damaged", checkpoint__every=2)
        harness.must(harness.run("train", config))
        newest = sorted(self.checkpoints(config).glob("step-*"))[-1]
        [shard] = newest.glob("shard-*")
        with shard.open("r+b") as file:
            file.seek(-5, 2)
            file.write(b"?!?")
        for result in (self.generate(config, "--prompt", "x"),
                       harness.run("eval", "--checkpoint", self.checkpoints(config), "--data",
                                   self.datasets[1], ranks=2)):
            harness.must(result)
            self.assertEqual(result.stderr.count("skipped "), 1, result.stderr)
            self.assertIn(f"{shard}: ", result.stderr)

    def test_ranks_print_once(self):
        alone, ranks = [json.loads(harness.must(
            self.generate(self.trained, "--prompt", "the ship", "--json", ranks=n)).stdout)
            for n in (0, 2)]
        self.assertEqual(ranks, alone)

    def test_a_checkpoint_of_the_first_version_continues_with_the_same_bits(self):
        keys = {"train__steps": 8, "checkpoint__every": 4, "model__dropout": 0.1}
        whole, resumed = (self.config(name, **keys) for name in ("whole", "first"))
        for config in whole, resumed:
            harness.must(harness.run("train", config))
        (harness.run_dir(resumed) / "DONE").unlink()
        shutil.rmtree(self.checkpoints(resumed) / "step-00000008")
        make_first(self.checkpoints(resumed) / "step-00000004")
        result = harness.must(harness.run("train", resumed))
        self.assertIn("resumed from", result.stderr)
        self.assertIn("does not record", result.stderr)
        self.assertNotIn("computes differently", result.stderr)
        self.assertEqual(harness.digest(resumed), harness.digest(whole))
        self.assertEqual(harness.loss_bits(resumed), harness.loss_bits(whole))

    def test_a_constant_schedule_has_no_length(self):
        constant = self.config("constant")
        harness.must(harness.run("train", constant, CONSTANT))
        harness.must(harness.run("train", constant, CONSTANT, "train.steps=6"))
        self.assertEqual(harness.metrics(constant)[-1]["step"], 6)
        cosine = self.config("cosine")
        harness.must(harness.run("train", cosine))
        self.refused(["optimizer.schedule.steps: checkpoint 4, run 6"], "train", cosine,
                     "train.steps=6")


if __name__ == "__main__":
    unittest.main()
