"""Fine-tunes adapters beside the weights of another run: several layouts, generation, evaluation,
export for PEFT, and export merged with the weights."""
import base64
import json
import shutil
import unittest

import harness


class FineTune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)
        cls.base = cls.config("base", train__steps=2)
        harness.must(harness.run("train", cls.base))
        cls.tuned = cls.adapters("tuned")
        harness.must(harness.run("train", cls.tuned, ranks=2))

    @classmethod
    def config(cls, name, **keys):
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, "llama",
                                    **{"train__steps": 4, "data__sequence": 24, **keys})

    @classmethod
    def adapters(cls, name, **keys):
        return cls.config(name, checkpoint__init_from=harness.run_dir(cls.base) / "checkpoints",
                          lora__products="[q_proj, v_proj, down_proj]", lora__rank=4,
                          optimizer__lr=0.02, **keys)

    @staticmethod
    def steps_of(config):
        return harness.run_dir(config) / "checkpoints"

    def loss_of(self, checkpoint):
        return harness.loss_of(checkpoint, self.datasets[1], "--samples", 8, "--any-tokenizer",
                               "--sequence", 24)

    def test_layouts_have_the_same_bits(self):
        stages = {"parallel__pp": 2, "parallel__schedule": "gpipe"}
        for name, ranks, keys in [("alone", 0, {}), ("stages", 2, stages)]:
            config = self.adapters(name, **keys)
            harness.must(harness.run("train", config, ranks=ranks))
            self.assertEqual(harness.loss_bits(config), harness.loss_bits(self.tuned))
            self.assertEqual(harness.digest(config), harness.digest(self.tuned))
        divided = self.adapters("divided", parallel__tp=3)
        harness.must(harness.run("train", divided, ranks=3))
        for ours, theirs in zip(harness.metrics(divided), harness.metrics(self.tuned)):
            self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=1e-4)

    def test_a_resume_has_the_same_bits_as_a_run_without_a_stop(self):
        config = self.adapters("stopped")
        harness.train_with_a_stop(config, 2, 4)
        self.assertEqual(harness.digest(config), harness.digest(self.tuned))

    def test_the_doctor_examines_the_base(self):
        def examined(config, code, text, *words):
            found = harness.run("doctor", config, f"run.dir={self.folder / 'examined'}", *words)
            self.assertIn(found.returncode, (0, 4) if code == 0 else (code,),
                          found.stdout + found.stderr)
            self.assertIn(text, found.stdout)

        key = self.folder / "key"
        harness.must(harness.run("keys", "create", "--out", key))
        sealed, opens = self.config("sealed", train__steps=2), f"encryption.keys=[file:{key}]"
        plain = "encryption.accept_plain_data=true"
        harness.must(harness.run("train", sealed, opens, plain))
        adapters = ("lora.products=all", "lora.rank=4")
        first = f"checkpoint.init_from={self.steps_of(self.base)}"
        gone = "checkpoint.init_from=/nonexistent"
        encrypted = f"checkpoint.init_from={self.steps_of(sealed)}"
        for words in ((), adapters):
            examined(self.base, 0, "doctor: ", first, *words)
            examined(self.base, 66, "checkpoint.init_from: ", gone, *words)
            examined(self.base, 2, "is of another model", first, "model.ffn=48", *words)
            examined(self.base, 77, "is encrypted", encrypted, *words)
            examined(self.base, 0, "doctor: ", encrypted, opens, plain, *words)
        # A run of all weights that resumes does not read it.
        self.assertIn(harness.run("doctor", self.base, gone).returncode, (0, 4))

    def test_the_doctor_predicts_what_becomes_of_adapters_without_their_base(self):
        base, tuned = self.steps_of(self.base), self.steps_of(self.tuned)
        longer = ("train.steps=5", "checkpoint.allow_change=optimizer.schedule.steps")
        other, moved = self.config("other-base", train__steps=2, train__seed=5), self.folder / "was"
        harness.must(harness.run("train", other))

        def told(code, text, *words):
            for command in ("doctor", "train"):
                result = harness.run(command, self.tuned, *words)
                self.assertIn(result.returncode, (0, 4) if code == 0 else (code,),
                              result.stdout + result.stderr)
                if command == "doctor" or code != 0:
                    self.assertIn(text, result.stdout + result.stderr)
        registry = ("--registry", self.folder / "registry")
        harness.must(harness.run("registry", "add", "tuned", tuned, *registry))
        harness.must(harness.run("registry", "check", *registry))
        shutil.move(base, moved)
        try:
            told(0, "doctor: ")  # the run has finished
            told(66, "checkpoint.init_from: ", *longer)
            self.assertEqual(harness.run("registry", "check", *registry).returncode, 66)
            shutil.copytree(self.steps_of(other), base)
            told(0, "doctor: ")
            told(2, "name the same weights again", *longer)
            checked = harness.run("registry", "check", *registry)
            self.assertEqual(checked.returncode, 65, checked.stdout)
            self.assertIn("another checkpoint is there now", checked.stdout)
            added = harness.run("registry", "add", "tuned", tuned, *registry)
            self.assertEqual(added.returncode, 65, added.stderr)
            shutil.rmtree(base)
            shutil.copytree(moved, base)
            [shard] = (base / "step-00000002").glob("shard-*")
            whole = bytearray(shard.read_bytes())
            whole[-1] ^= 1
            shard.write_bytes(whole)
            self.assertEqual(harness.run("registry", "check", *registry).returncode, 65)
            harness.must(harness.run("registry", "check", "--quick", *registry))
        finally:
            shutil.rmtree(base, ignore_errors=True)
            shutil.move(moved, base)

    def test_merged_weights_continue_and_lose_as_the_adapters_did(self):
        tuned, merged = self.steps_of(self.tuned), self.folder / "merged"
        result = json.loads(harness.must(harness.run(
            "export", tuned, "--format", "hf", "--out", merged, "--json")).stdout)
        self.assertLess(result["logits"]["relative_difference"], 1e-4)
        again = self.folder / "again"
        harness.must(harness.run("import", merged, "--out", again))
        self.assertEqual(harness.generated_ids(again), harness.generated_ids(tuned))
        self.assertAlmostEqual(self.loss_of(again), self.loss_of(tuned), delta=1e-4)
        self.assertLess(self.loss_of(tuned), self.loss_of(self.steps_of(self.base)))

    def test_adapters_are_written_for_peft(self):
        out = self.folder / "peft"
        harness.must(harness.run("export", self.steps_of(self.tuned), "--format", "peft", "--out",
                                 out))
        self.assertEqual(sorted(p.name for p in out.iterdir()),
                         ["adapter_config.json", "adapter_model.safetensors"])
        config = json.loads((out / "adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"], config["target_modules"]),
                         (4, 16, ["q_proj", "v_proj", "down_proj"]))

    def test_provenance_names_the_base(self):
        key, trust = self.folder / "signing", self.folder / "signing.pub"
        harness.must(harness.run("audit", "keygen", "--out", key))
        signed = {"audit__key": key, "checkpoint__every": 2}
        base = self.config("signed-base", **signed)
        harness.must(harness.run("train", base))
        newest = self.steps_of(base) / "step-00000004"
        manifest = newest / "manifest.json"
        for name, adapters in (("whole", {}), ("beside", {"lora__products": "all"})):
            config = self.config(f"signed-{name}", **signed, **adapters,
                                 checkpoint__init_from=self.steps_of(base))
            harness.must(harness.run("train", config, "train.steps=2",
                                     "optimizer.schedule.steps=4"))
            harness.must(harness.run("train", config))  # resumes
            step = self.steps_of(config) / "step-00000004"
            found = harness.run("verify", step, "--trust", trust, "--json")
            page = json.loads(found.stdout)
            self.assertFalse([fault for fault in page["faults"] if "base" in fault["what"]])
            roles = {item["role"]: item["place"] for item in page["items"]}
            self.assertEqual((roles["parent"], roles["base"]),
                             (str(step.with_name("step-00000002")), str(newest)))
            stated = json.loads(base64.b64decode(json.loads(
                (step / "provenance.intoto.jsonl").read_text().splitlines()[0])["payload"]))
            names = [each["name"] for each in
                     stated["predicate"]["buildDefinition"]["resolvedDependencies"]]
            self.assertEqual(names.count("base"), 1 if adapters else 0)
            self.assertEqual(names.count("base.provenance"), 1 if adapters else 0)
            provenance = newest / "provenance.intoto.jsonl"
            signature = provenance.read_bytes()
            provenance.unlink()
            found = harness.run("verify", step, "--trust", trust, "--allow-missing")
            self.assertEqual(found.returncode, 65, found.stdout + found.stderr)
            self.assertIn(f"{provenance} was removed", found.stdout)
            provenance.write_bytes(signature)
            text = manifest.read_text()
            manifest.write_text(text + " ")
            found = harness.run("verify", step, "--trust", trust)
            self.assertEqual(found.returncode, 65, found.stdout + found.stderr)
            self.assertIn(f"the base {newest} was changed", found.stdout + found.stderr)
            manifest.write_text(text)

    def test_refusals(self):
        base, tuned = self.steps_of(self.base), self.steps_of(self.tuned)
        moved = self.folder / "moved"
        cases = [
            (2, "no adapters", ("export", base, "--format", "peft", "--out", moved)),
            (2, "checkpoint.init_from", ("train", self.base, "lora.products=all")),
            (2, "c_attn", ("train", self.tuned, "lora.products=c_attn")),
            (2, "lora.rank", ("train", self.tuned, "lora.rank=5", "train.steps=9")),
            (2, "adapters alone", ("train", self.base, f"checkpoint.init_from={tuned}",
                                   f"run.dir={self.folder / 'other'}")),
        ]
        for code, text, words in cases:
            result = harness.run(*words)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(text, result.stderr)
        self.assertFalse(moved.exists())
        shutil.move(base, moved)
        self.addCleanup(shutil.move, moved, base)
        for words in (("generate", "--checkpoint", tuned, "--prompt", "x"),
                      ("export", tuned, "--format", "hf", "--out", self.folder / "never")):
            result = harness.run(*words)
            self.assertEqual(result.returncode, 66, result.stderr)
            self.assertIn("holds adapters", result.stderr)


if __name__ == "__main__":
    unittest.main()
