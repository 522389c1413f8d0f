"""Uses checkpoints of which the newest step is damaged: it is skipped, and where it cannot be, the
message names what to do instead."""
import hashlib
import json
import pathlib
import shutil
import unittest

import harness

HALF = ("--sparsity", 0.5)


def flip_weights(step):
    """Changes one byte in the last weight of a step's first shard."""
    path = sorted(step.glob("shard-*.safetensors"))[0]
    data = bytearray(path.read_bytes())
    length = int.from_bytes(data[:8], "little")
    end = max(entry["data_offsets"][1]
              for name, entry in json.loads(data[8:8 + length]).items()
              if name != "__metadata__" and not name.startswith("optimizer."))
    data[8 + length + end - 1] ^= 1
    path.write_bytes(data)


class DamagedSource(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 30_000)
        first = cls.config("first", train__steps=4, checkpoint__every=2)
        harness.must(harness.run("train", first))
        cls.checkpoints = cls.folder / "damaged"
        shutil.copytree(harness.run_dir(first) / "checkpoints", cls.checkpoints)
        cls.older, cls.newest = sorted(cls.checkpoints.glob("step-*"))
        flip_weights(cls.newest)
        cls.pruned = cls.folder / "pruned"
        cls.skipping = harness.must(harness.run("sparsify", cls.checkpoints, "--out", cls.pruned,
                                                *HALF, ranks=2))

    @classmethod
    def config(cls, name, **keys):
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, "llama", **keys)

    def refused(self, code, *words):
        result = harness.run(*words)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def test_commands_take_the_newest_step_that_is_intact(self):
        self.assertIn(f"skipped {self.newest}", self.skipping.stderr)
        self.assertIn(f"from {self.older}", self.skipping.stdout)
        harness.must(harness.run("ckpt", "verify", self.pruned))
        for name, ranks in (("hf", 2), ("gguf", 0), ("onnx", 0)):
            result = harness.must(harness.run("export", self.checkpoints, "--format", name, "--out",
                                              self.folder / name, ranks=ranks))
            self.assertIn("step 2,", result.stdout)
            self.assertIn(f"skipped {self.newest}", result.stderr)
        self.assertIn(str(self.newest), self.refused(
            65, "sparsify", self.newest, "--out", self.folder / "never", *HALF))
        self.assertFalse(list(self.folder.glob(".*draft*")) + list(self.folder.glob("never")))

    def test_commands_that_name_a_step_take_an_intact_one(self):
        out, release = self.folder / "plain.safetensors", self.folder / "release.json"
        registry = ("--registry", self.folder / "registry")
        own = harness.must(harness.run("ckpt", "digest", self.older)).stdout
        for words, said in (
                (("registry", "add", "chat", self.checkpoints, *registry), str(self.older)),
                (("release", "request", self.checkpoints, "--out", release, "--recipient", "a",
                  "--reason", "b"), str(self.older)),
                (("ckpt", "digest", self.checkpoints), own),
                (("ckpt", "export", self.checkpoints, "--out", out), str(out))):
            result = harness.must(harness.run(*words))
            self.assertIn(said, result.stdout)
            self.assertRegex(result.stderr, f"skipped:? {self.newest}")
        self.assertIn(str(self.older), harness.must(harness.run(
            "registry", "path", "chat", *registry)).stdout)
        with open(out, "rb") as file:
            head = file.read(int.from_bytes(file.read(8), "little"))
        manifest = hashlib.sha256((self.older / "manifest.json").read_bytes()).hexdigest()
        self.assertEqual(json.loads(head)["__metadata__"]["trireme_manifest_sha256"], manifest)
        for words in (("registry", "add", "chat", self.newest, *registry),
                      ("release", "request", self.newest, "--out", release.with_suffix(".no"),
                       "--recipient", "a", "--reason", "b"),
                      ("ckpt", "digest", self.newest),
                      ("ckpt", "export", self.newest, "--out", out.with_suffix(".no"))):
            self.assertIn(f"{self.older} is older", self.refused(65, *words))
        self.assertEqual(list(self.folder.glob("*.no")), [])

    def test_a_step_whose_wrapped_key_is_damaged_is_skipped(self):
        key = self.folder / "wrapping.key"
        harness.must(harness.run("keys", "create", "--out", key, "--name", "site"))
        sealed = self.config("sealed-run", train__steps=4, checkpoint__every=2)
        harness.must(harness.run("train", sealed, f"encryption.keys=[file:{key}]",
                                 "encryption.accept_plain_data=true"))
        checkpoints = harness.run_dir(sealed) / "checkpoints"
        older, newest = sorted(checkpoints.glob("step-*"))
        text = (newest / "keys.json").read_text()
        body = text[:text.rindex(',\n "seal"')]
        wrapped = body.index('"wrapped"') + 20
        body = body[:wrapped] + ("A" if body[wrapped] != "A" else "B") + body[wrapped + 1:]
        seal = hashlib.sha256(body.encode()).hexdigest()
        (newest / "keys.json").write_text(f'{body},\n "seal": "sha256:{seal}"\n}}\n')
        opens = ("--key", f"file:{key}")
        self.refused(65, "ckpt", "digest", newest, *opens)
        for name, words in (
                ("hf-sealed", ("export", checkpoints, "--format", "hf", "--plain")),
                ("half-sealed", ("sparsify", checkpoints, *HALF)),
                ("file-sealed", ("ckpt", "export", checkpoints, "--plain")),
                (None, ("ckpt", "digest", checkpoints)),
                (None, ("generate", "--checkpoint", checkpoints, "--ids", "--prompt", "1 2"))):
            out = () if name is None else ("--out", self.folder / name)
            result = harness.must(harness.run(*words, *out, *opens))
            self.assertRegex(result.stderr, f"skipped:? {newest / 'keys.json'}")
        self.assertTrue(older.exists())

    def test_an_error_of_an_intact_step_is_no_reason_to_take_an_older_one(self):
        whole = self.folder / "whole"
        shutil.copytree(self.folder / "first/checkpoints", whole)
        text = self.refused(2, "sparsify", whole, "--out", self.folder / "never", *HALF,
                            "--products", "c_fc")
        self.assertNotIn("skipped", text)

    def test_a_folder_without_an_intact_step_is_refused_with_all_reasons(self):
        none = self.folder / "none"
        shutil.copytree(self.checkpoints, none)
        flip_weights(none / self.older.name)
        text = self.refused(65, "export", none, "--format", "hf", "--out", self.folder / "never")
        for step in (self.older, self.newest):
            self.assertIn(str(none / step.name), text)
        self.assertIn("no valid checkpoint", self.refused(
            65, "train", self.config("from-none", checkpoint__init_from=none)))

    def test_a_run_begins_with_the_weights_of_the_newest_intact_step(self):
        losses = []
        for name, source, ranks in (("from-folder", self.checkpoints, 2),
                                    ("from-step", self.older, 0)):
            config = self.config(name, checkpoint__init_from=source, train__steps=2)
            result = harness.must(harness.run("train", config, ranks=ranks))
            losses.append(harness.loss_bits(config))
            self.assertIn(f"the weights are those of {self.older}", result.stdout + result.stderr)
            skipped = [line for line in (result.stdout + result.stderr).splitlines()
                       if "skipped " in line and str(self.newest) in line]
            self.assertEqual(len(skipped), 1 if ranks == 2 else 0, result.stderr)
        self.assertEqual(losses[0], losses[1])

    def test_a_damaged_teacher_is_refused_with_the_older_step(self):
        text = self.refused(65, "train", self.config("student", distill__teacher=self.checkpoints))
        self.assertIn(f"{self.older} is older", text)

    def test_the_advice_on_damage_suits_the_checkpoint(self):
        self.assertIn(f"{self.older} is older", self.refused(65, "ckpt", "verify", self.newest))
        bad = self.folder / "bad"
        shutil.copytree(self.pruned, bad)
        flip_weights(bad)
        for words in (("ckpt", "verify", bad),
                      ("generate", "--checkpoint", bad, "--ids", "--prompt", "1 2")):
            text = self.refused(65, *words)
            self.assertIn("make it again from its source", text)
            self.assertNotIn("step-", text)

    def test_a_key_for_a_plain_checkpoint_is_refused_with_a_way_out(self):
        key = self.folder / "site.key"
        harness.must(harness.run("keys", "create", "--out", key, "--name", "site"))
        sealed = self.folder / "sealed"
        words = ("sparsify", self.pruned, "--out", sealed, *HALF, "--key", f"file:{key}")
        self.assertIn("TRIREME_ENCRYPTION__ACCEPT_PLAIN=true", self.refused(77, *words))
        harness.must(harness.run(*words, env={"TRIREME_ENCRYPTION__ACCEPT_PLAIN": "true"}))
        self.assertTrue((sealed / "keys.json").exists())

    def test_options_are_read_as_they_are_meant(self):
        out = self.folder / "blank"
        harness.must(harness.run("sparsify", self.pruned, "--out", out, *HALF, "--products",
                                 "q_proj, v_proj"))
        shown = json.loads(harness.must(harness.run("ckpt", "show", out, "--json")).stdout)
        self.assertEqual(sorted(shown["extra"]["pruned"]["products"]), ["q_proj", "v_proj"])
        self.assertNotIn("ema", shown["extra"]["pruned"])
        text = self.refused(2, "sparsify", self.pruned, "--out", self.folder / "never")
        self.assertTrue(text.startswith("trireme sparsify: give one of"), text)
        self.assertIn("did you mean hf", self.refused(
            2, "export", self.pruned, "--format", "safetensors", "--out", self.folder / "never"))
        for inside in (self.pruned / "half", self.checkpoints / "half",
                       pathlib.Path(f"{self.folder}/hf/../pruned/half")):
            self.assertIn("choose a folder outside", self.refused(
                2, "sparsify", inside.parent, "--out", inside, *HALF))

    def test_a_pruned_average_is_recorded(self):
        config = self.config("average", optimizer__ema=0.9, train__steps=2)
        harness.must(harness.run("train", config))
        out = self.folder / "of-average"
        harness.must(harness.run("sparsify", harness.run_dir(config) / "checkpoints", "--out", out,
                                 *HALF, "--ema"))
        shown = json.loads(harness.must(harness.run("ckpt", "show", out, "--json")).stdout)
        self.assertIs(shown["extra"]["pruned"]["ema"], True)


if __name__ == "__main__":
    unittest.main()
