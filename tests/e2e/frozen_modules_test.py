"""Trains a part of another run's model and keeps the rest (train.frozen): layouts, a resume, the
doctor, generation, and exports that hold all weights, the frozen ones with the bits of the base."""
import json
import shutil
import struct
import unittest

import harness

FROZEN = ("model.embed_tokens", "model.layers.0.", "model.norm")


def tensors_of(folder):
    """Returns the tensors of an exported model as bytes, by name."""
    data = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    body = data[8 + length:]
    return {name: body[slice(*entry["data_offsets"])]
            for name, entry in json.loads(data[8:8 + length]).items() if name != "__metadata__"}


class FrozenModules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)
        cls.base = cls.config("base", train__steps=2)
        harness.must(harness.run("train", cls.base))
        cls.tuned = cls.frozen("tuned")
        result = harness.must(harness.run("train", cls.tuned, ranks=2))
        cls.log = result.stdout + result.stderr

    @classmethod
    def config(cls, name, **keys):
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, "llama",
                                    **{"train__steps": 4, "data__sequence": 24,
                                       "optimizer__lr": 0.02, **keys})

    @classmethod
    def frozen(cls, name, **keys):
        return cls.config(name, checkpoint__init_from=cls.steps_of(cls.base),
                          train__frozen="[model.embed_tokens, model.layers.0, model.norm]", **keys)

    @staticmethod
    def steps_of(config):
        return harness.run_dir(config) / "checkpoints"

    def exported(self, config, *words):
        out = self.folder / f"{config.stem}-{'-'.join(words) or 'hf'}"
        harness.must(harness.run("export", self.steps_of(config), "--format", "hf", "--out", out,
                                 *words))
        return out

    def test_the_log_says_what_is_trained(self):
        self.assertRegex(self.log, r"the frozen weights are those of .*step-00000002 \(step 2\); "
                                   r".* of .* parameters are trained")
        self.assertRegex(self.log, r"the weights are those of .*step-00000002 \(step 2\)")

    def test_layouts_and_resumes_have_the_same_bits(self):
        stages = {"parallel__pp": 2, "parallel__schedule": "zero_bubble"}
        for name, ranks, keys in [("alone", 0, {}), ("stages", 2, stages),
                                  ("again", 0, {"train__recompute": "full"})]:
            config = self.frozen(name, **keys)
            harness.must(harness.run("train", config, ranks=ranks))
            self.assertEqual(harness.loss_bits(config), harness.loss_bits(self.tuned))
            self.assertEqual(harness.digest(config), harness.digest(self.tuned))
        stopped = self.frozen("stopped")
        harness.train_with_a_stop(stopped, 2, 4)
        self.assertEqual(harness.digest(stopped), harness.digest(self.tuned))

    def test_an_export_has_the_frozen_bits_and_trained_others(self):
        before = tensors_of(self.exported(self.base))
        after = tensors_of(self.exported(self.tuned))
        self.assertEqual(before.keys(), after.keys())
        for name, data in after.items():
            self.assertEqual(data == before[name], name.startswith(FROZEN), name)

    def test_an_import_of_the_export_is_the_same_model(self):
        out, again = self.folder / "whole", self.folder / "again"
        result = json.loads(harness.must(harness.run(
            "export", self.steps_of(self.tuned), "--format", "hf", "--out", out, "--json")).stdout)
        self.assertLess(result["logits"]["relative_difference"], 1e-4)
        harness.must(harness.run("import", out, "--out", again))
        self.assertEqual(harness.generated_ids(again),
                         harness.generated_ids(self.steps_of(self.tuned)))

    def test_provenance_names_the_base(self):
        key, trust = self.folder / "signing", self.folder / "signing.pub"
        harness.must(harness.run("audit", "keygen", "--out", key))
        signed = {"audit__key": key, "checkpoint__every": 2}
        base = self.config("signed-base", **signed)
        harness.must(harness.run("train", base))
        config = self.config("signed", **signed, checkpoint__init_from=self.steps_of(base),
                             train__frozen="[model.embed_tokens]")
        harness.must(harness.run("train", config))
        found = harness.run("verify", self.steps_of(config) / "step-00000004", "--trust", trust,
                            "--json")
        page = json.loads(found.stdout)
        roles = {item["role"]: item["place"] for item in page["items"]}
        self.assertEqual(roles["base"], str(self.steps_of(base) / "step-00000004"))
        self.assertFalse([fault for fault in page["faults"] if "base" in fault["what"]])

    def test_refusals(self):
        tuned, moved = self.steps_of(self.tuned), self.folder / "moved"
        cases = [
            (2, "checkpoint.init_from", ("train", self.base, "train.frozen=[model.norm]")),
            (2, "no module of this model", ("train", self.tuned, "train.frozen=[model.layer.0]")),
            (2, "end the range there", ("train", self.tuned, "train.frozen=[model.layers.0-99]")),
            (2, "one product", ("train", self.tuned,
                                "train.frozen=[model.layers.0.self_attn.q_proj]")),
            (2, "train.frozen", ("train", self.tuned, "train.frozen=[model.norm]",
                                 "train.steps=9")),
            (2, "trained weights alone", ("train", self.base, f"checkpoint.init_from={tuned}",
                                          f"run.dir={self.folder / 'other'}")),
            (2, "no adapters", ("export", tuned, "--format", "peft", "--out", moved)),
        ]
        for code, text, words in cases:
            result = harness.run(*words)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(text, result.stderr)
        base = self.steps_of(self.base)
        shutil.move(base, moved)
        self.addCleanup(shutil.move, moved, base)
        doctor = harness.run("doctor", self.tuned, "train.steps=9")
        self.assertEqual(doctor.returncode, 66, doctor.stdout)
        for words in (("generate", "--checkpoint", tuned, "--prompt", "x"),
                      ("export", tuned, "--format", "hf", "--out", self.folder / "never")):
            result = harness.run(*words)
            self.assertEqual(result.returncode, 66, result.stderr)
            self.assertIn("the weights of some modules", result.stderr)


if __name__ == "__main__":
    unittest.main()
