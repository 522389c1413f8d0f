"""Tests for the same bits with any number of ranks and threads: both families, fp32 and bf16, odd
sizes."""

import unittest

import harness


STEPS = 4


class SameBits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    def train(self, name, ranks, model, precision, **keys):
        config = harness.write_config(
            self.folder / f"{name}.yaml", self.datasets, model, precision,
            train__steps=STEPS, **keys
        )
        harness.must(harness.run("train", config, ranks=ranks))
        return harness.loss_bits(config), harness.digest(config)

    def test_ranks_and_threads_do_not_matter(self):
        for model in ["gpt2", "llama"]:
            for precision in ["fp32", "bf16"]:
                with self.subTest(model=model, precision=precision):
                    name = f"{model}-{precision}"
                    alone = self.train(f"{name}-1", 0, model, precision)
                    self.assertEqual(sorted(alone[0]), list(range(1, STEPS + 1)))
                    self.assertEqual(alone, self.train(f"{name}-2", 2, model, precision))
                    self.assertEqual(alone, self.train(f"{name}-4", 4, model, precision))
                    two_threads = self.train(f"{name}-t", 1, model, precision, train__threads=2)
                    self.assertEqual(alone, two_threads)

    def test_odd_batches_dropout_and_buckets(self):
        keys = dict(
            train__global_batch=12,
            train__micro_batch=2,
            model__dropout=0.1,
            parallel__bucket_bytes=20000,
        )
        alone = self.train("odd-1", 0, "gpt2", "fp32", **keys)
        self.assertEqual(alone, self.train("odd-2", 2, "gpt2", "fp32", **keys))
        # Another seed gives other bits, which shows that the comparison can fail.
        self.assertNotEqual(alone, self.train("odd-s", 2, "gpt2", "fp32", train__seed=2, **keys))

    def test_layout_takes_what_elastic_refuses(self):
        config = harness.write_config(
            self.folder / "three.yaml", self.datasets, train__global_batch=6, train__steps=2
        )
        refused = harness.run("train", config, ranks=3)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("layout", refused.stderr)
        for word in ["layout", "fast"]:
            harness.must(
                harness.run(
                    "train",
                    config,
                    f"numerics.reproducibility={word}",
                    f"run.dir={self.folder}/three-{word}",
                    ranks=3,
                )
            )


if __name__ == "__main__":
    unittest.main(verbosity=2)
