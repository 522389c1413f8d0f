"""Prunes a trained model, by share and by the pattern 2:4, and trains what is left in several
layouts. The weights are read here, without the program."""
import array
import json
import os
import unittest

import harness


def tensors_in(checkpoint):
    """Returns (shape, elements) of each f32 tensor in the shards of a step's folder, by name."""
    tensors = {}
    for path in sorted(checkpoint.glob("shard-*.safetensors")):
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8:8 + length]).items():
            if name != "__metadata__":
                first, end = entry["data_offsets"]
                tensors[name] = (entry["shape"],
                                 array.array("f", data[8 + length + first:8 + length + end]))
    return tensors


def products_in(checkpoint):
    return {name: tensor for name, tensor in tensors_in(checkpoint).items()
            if name.endswith("_proj.weight") and not name.startswith("optimizer.")}


def zeros_in(checkpoint):
    return {name: [x == 0 for x in elements]
            for name, (_, elements) in products_in(checkpoint).items()}


class Pruning(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 60_000)
        cls.base = cls.config("base", train__steps=30)
        harness.must(harness.run("train", cls.base))
        cls.checkpoint = harness.run_dir(cls.base) / "checkpoints"
        cls.half = cls.folder / "half"
        cls.text = harness.must(harness.run("sparsify", cls.checkpoint, "--out", cls.half,
                                            "--sparsity", 0.5)).stdout
        cls.recovered = cls.recovery("recovered")
        cls.log = harness.must(harness.run("train", cls.recovered)).stderr

    @classmethod
    def config(cls, name, **keys):
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, "llama",
                                    **{"optimizer__lr": 0.003, **keys})

    @classmethod
    def recovery(cls, name, **keys):
        return cls.config(name, train__steps=12, checkpoint__init_from=cls.half,
                          optimizer__keep_zeros="true", checkpoint__every=6, **keys)

    def test_a_start_says_how_much_stays_zero(self):
        matrices = [elements for name, (shape, elements) in tensors_in(self.half).items()
                    if len(shape) == 2 and not name.startswith("optimizer.")]
        zeros = sum(sum(x == 0 for x in elements) for elements in matrices)
        share = 100 * zeros / sum(len(elements) for elements in matrices)
        text = f"optimizer.keep_zeros: {share:.1f} % of the weights of matrices stay zero"
        self.assertIn(text, self.log)
        one = ("train.steps=1", "optimizer.schedule.warmup=0")
        for name, key, ranks in (("said-tensor", "parallel__tp", 3),
                                 ("said-zero", "parallel__zero", 2)):
            config = self.recovery(name, **{key: 3})
            several = harness.must(harness.run("train", config, *one, ranks=ranks))
            self.assertIn(text, several.stderr)
        whole = self.recovery("said-whole")
        log = harness.must(harness.run("train", whole, *one,
                                       f"checkpoint.init_from={self.checkpoint}")).stderr
        self.assertIn("optimizer.keep_zeros has no effect", log)

    def newest(self, config):
        return max((harness.run_dir(config) / "checkpoints").glob("step-*"))

    def loss_of(self, checkpoint):
        return harness.loss_of(checkpoint, self.datasets[1], "--samples", 16)

    def test_the_smallest_half_of_each_matrix_is_zero(self):
        before, after = products_in(max(self.checkpoint.glob("step-*"))), products_in(self.half)
        self.assertEqual(len(after), 35)
        self.assertEqual(before.keys(), after.keys())
        for name, (_, elements) in after.items():
            old = before[name][1]
            self.assertEqual(sum(x == 0 for x in elements), len(elements) // 2, name)
            kept = min(abs(x) for x in elements if x != 0)
            self.assertTrue(all(x == y or (x == 0 and abs(y) <= kept)
                                for x, y in zip(elements, old)), name)
        self.assertIn("50.0 % zero in 5 matrices", self.text)
        shown = json.loads(harness.must(harness.run("ckpt", "show", self.half, "--json")).stdout)
        record = shown["extra"]["pruned"]
        self.assertEqual((record["sparsity"], record["parent"]),
                         (0.5, str(max(self.checkpoint.glob("step-*")))))
        harness.must(harness.run("ckpt", "verify", self.half))

    def test_training_lowers_the_loss_again_and_keeps_the_zeros(self):
        whole, half = self.loss_of(self.checkpoint), self.loss_of(self.half)
        again = self.loss_of(self.newest(self.recovered))
        self.assertGreater(half, whole)
        self.assertLess(again, half)
        self.assertEqual(zeros_in(self.newest(self.recovered)), zeros_in(self.half))

    def test_other_layouts_and_a_resume_have_the_same_bits(self):
        for name, ranks, keys in [("replicas", 2, {}), ("shards", 2, {"parallel__zero": 3}),
                                  ("stages", 2, {"parallel__pp": 2})]:
            config = self.recovery(name, **keys)
            harness.must(harness.run("train", config, ranks=ranks))
            self.assertEqual(harness.loss_bits(config), harness.loss_bits(self.recovered), name)
            self.assertEqual(harness.digest(config), harness.digest(self.recovered), name)
        stopped = self.recovery("stopped")
        harness.train_with_a_stop(stopped, 6, 12)
        self.assertEqual(harness.digest(stopped), harness.digest(self.recovered))

    def test_two_of_four_inputs_are_zero(self):
        out = self.folder / "pattern"
        result = json.loads(harness.must(harness.run(
            "sparsify", self.checkpoint, "--out", out, "--pattern", "2:4", "--products",
            "q_proj,down_proj", "--json", ranks=2)).stdout)
        self.assertEqual([p["name"] for p in result["products"]], ["q_proj", "down_proj"])
        for name, ((_, columns), elements) in products_in(out).items():
            counts = {sum(x == 0 for x in elements[at:at + 4])
                      for at in range(0, len(elements), 4)}
            chosen = ".q_proj." in name or ".down_proj." in name
            self.assertEqual(columns % 4, 0)
            self.assertEqual(counts, {2} if chosen else {0}, name)
        for words in (("generate", "--checkpoint", out, "--ids", "--prompt", "116 104 101",
                       "--tokens", 5), ("export", out, "--format", "hf", "--out",
                                        self.folder / "exported")):
            harness.must(harness.run(*words))

    def test_refusals_name_the_cause_and_leave_nothing(self):
        never = self.folder / "never"
        key = self.folder / "site.key"
        harness.must(harness.run("keys", "create", "--out", key, "--name", "site"))
        sealed = self.folder / "sealed"
        exported = self.folder / "for-sealed"
        harness.must(harness.run("export", self.half, "--format", "hf", "--out", exported))
        harness.must(harness.run("import", exported, "--out", sealed, "--key", f"file:{key}"))
        half = ("--sparsity", 0.5)
        cases = [(2, "above 0 and below 1", self.half, ("--sparsity", share))
                 for share in (1.5, 1, 0, -1)]
        cases += [(2, "--sparsity", self.half, ("--sparsity", share))
                  for share in ("nan", "0.5x", "")]
        cases += [
            (2, "only one of", self.half, (*half, "--pattern", "2:4")),
            (2, "give one of", self.half, ()),
            (2, "2:4", self.half, ("--pattern", "1:4")),
            (2, "'c_fc'", self.half, (*half, "--products", "c_fc")),
            (2, "its embedding", self.half, (*half, "--products", "all,lm_head")),
            (66, "nowhere", self.folder / "nowhere", half),
            (77, "key", sealed, half),
        ]
        for code, text, checkpoint, words in cases:
            result = harness.run("sparsify", checkpoint, "--out", never, *words)
            self.assertEqual(result.returncode, code, (words, result.stderr))
            self.assertIn(text, result.stderr)
        self.assertFalse(never.exists())
        exists = harness.run("sparsify", self.half, "--out", sealed, *half)
        self.assertEqual(exists.returncode, 77)
        self.assertIn("exists", exists.stderr)
        (self.folder / "data.txt").write_text("x")
        result = harness.run("sparsify", self.half, "--out", self.folder / "data.txt" / "x", *half)
        self.assertEqual(result.returncode, 66, result.stderr)
        self.assertIn("data.txt", result.stderr)
        if os.geteuid() != 0:
            closed = self.folder / "closed"
            closed.mkdir(mode=0o500)
            result = harness.run("sparsify", self.half, "--out", closed / "x", *half)
            self.assertIn(result.returncode, (74, 77))
        harness.must(harness.run("sparsify", sealed, "--out", never, "--key", f"file:{key}", *half))
        self.assertTrue((never / "keys.json").exists())
        refused = harness.run("train", self.base, "optimizer.keep_zeros=true")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("checkpoint.init_from", refused.stderr)


if __name__ == "__main__":
    unittest.main()
