"""Generates and evaluates with weights of 8 and 4 bits: losses beside those of the weights as they
are, memory, texts, and what is refused."""

import json
import os
import unittest

import harness


class Quantize(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)
        config = harness.write_config(cls.folder / "run.yaml", cls.datasets, "llama", "bf16",
                                      train__steps=30, data__sequence=24, optimizer__lr=0.01,
                                      model__tie_embeddings="false")
        harness.must(harness.run("train", config))
        cls.checkpoints = harness.run_dir(config) / "checkpoints"

    def evaluated(self, *more, ranks=0):
        return harness.must(harness.run(
            "eval", "--checkpoint", self.checkpoints, "--data", self.datasets[1], "--samples", 8,
            *more, ranks=ranks)).stdout

    def generated(self, *more):
        return harness.must(harness.run(
            "generate", "--checkpoint", self.checkpoints, "--prompt", "the ", "--tokens", 16,
            "--temperature", 0, *more)).stdout

    def test_losses_and_memory_are_compared(self):
        plain = json.loads(self.evaluated("--json"))
        self.assertNotIn("quantize", plain)
        # The embedding stays in bf16, and no row of this model is a multiple of a group.
        for word, loss_gap, most_memory in [("int8", 0.02, 0.85), ("int4", 0.3, 0.7)]:
            result = json.loads(self.evaluated("--quantize", word, "--json"))
            report = result["quantize"]
            self.assertEqual(report["plain"]["type"], "bf16")
            self.assertEqual(report["plain"]["loss"], plain["loss"])
            self.assertEqual(report["packed"]["type"], word)
            self.assertEqual(report["packed"]["loss"], result["loss"])
            self.assertNotEqual(result["loss"], plain["loss"])
            self.assertLess(abs(result["loss"] - plain["loss"]), loss_gap)
            self.assertLess(report["packed"]["bytes"], most_memory * report["plain"]["bytes"])
            for figures in (report["packed"], report["plain"]):
                self.assertGreater(figures["tokens_per_s"], 0)

    def test_ranks_evaluate_the_same_loss(self):
        alone, together = (json.loads(self.evaluated("--quantize", "int4", "--json", ranks=ranks))
                           for ranks in (0, 2))
        self.assertEqual(alone["loss"], together["loss"])
        text = self.evaluated("--quantize", "int8")
        self.assertRegex(text, r"int8 by bf16: loss [+-]0\.\d+, memory x 0\.\d+, decoding x \d")

    def test_texts_are_generated_and_depend_on_nothing_else(self):
        for word in ("int8", "int4"):
            text = self.generated("--quantize", word)
            self.assertTrue(text.startswith("the "), text)
            self.assertEqual(self.generated("--quantize", word, "--threads", 2), text)

    def test_refusals(self):
        for program, words, text in [
                (harness.PROGRAM, ["--quantize", "int2"], "int2"),
                (os.environ["TRIREME_SIM"], ["--quantize", "int8"], "--device cpu")]:
            for command in (["generate", "--prompt", "x"], ["eval", "--data", self.datasets[1]]):
                previous, harness.PROGRAM = harness.PROGRAM, program
                try:
                    result = harness.run(*command, "--checkpoint", self.checkpoints, *words)
                finally:
                    harness.PROGRAM = previous
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(text, result.stderr)
                self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    unittest.main()
