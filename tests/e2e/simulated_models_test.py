"""What follows a run on the simulated CUDA device: checkpoints that CPUs and GPUs hand over to each
other, texts and losses of its model, and replays of its steps."""

import json
import unittest

import harness
from simulated import SIMULATED, STEPS, SimulatedTest

CPU_ONLY = SIMULATED.replace("-sim", "")  # the program without CUDA
LONGER = "checkpoint.allow_change=[optimizer.schedule.steps]"


class SimulatedModels(SimulatedTest):
    def test_checkpoints_pass_between_devices(self):
        config = self.config("between", checkpoint__every=2, train__steps=2)
        self.train(config)
        on_device = harness.digest(config)
        self.use(CPU_ONLY)
        self.assertEqual(harness.digest(config), on_device)
        for program, device, steps in [(CPU_ONLY, "cpu", 4), (SIMULATED, "cuda", 6)]:
            self.use(program)
            self.train(config, more=[f"train.device={device}", f"train.steps={steps}", LONGER])
        losses = [m["loss"] for m in harness.metrics(config)]
        self.assertEqual(len(losses), 6)
        self.assertLess(losses[-1], losses[0])

    def test_devices_save_the_bits_that_they_have_loaded(self):
        config = self.config("handed-over", train__steps=2)
        self.use(CPU_ONLY)
        self.train(config, more=["train.device=cpu"])
        saved = harness.digest(config)
        # A step that is skipped leaves weights and moments as they were loaded.
        skip = {"TRIREME_FAULTS": "step.gradient:0:1:nan"}
        for program, device, step in [(SIMULATED, "cuda", 3), (CPU_ONLY, "cpu", 4)]:
            with self.subTest(device=device):
                self.use(program)
                stderr = self.train(config, env=skip, more=[f"train.device={device}",
                                                            f"train.steps={step}", LONGER]).stderr
                self.assertRegex(stderr, f"resumed from .*step-{step - 1:08}")
                self.assertIn("skipped, weights and moments are unchanged", stderr)
                newest = harness.run_dir(config) / f"checkpoints/step-{step:08}"
                digest = harness.must(harness.run("ckpt", "digest", newest)).stdout.strip()
                self.assertEqual(digest, saved)

    def test_texts_and_losses_of_a_model_are_those_of_the_cpu(self):
        config = self.config("used", precision="fp32", train__steps=20)
        self.train(config)
        checkpoints = harness.run_dir(config) / "checkpoints"
        texts, losses = [], []
        for device in ["cpu", "cuda"]:
            result = harness.must(harness.run(
                "generate", "--checkpoint", checkpoints, "--prompt", "the ", "--tokens", 12,
                "--temperature", 0, "--device", device))
            texts.append(result.stdout)
            self.assertEqual("computes on simulated CUDA device 0" in result.stderr,
                             device == "cuda", result.stderr)
            result = harness.must(harness.run(
                "eval", "--checkpoint", checkpoints, "--data", self.datasets[1], "--samples", 4,
                "--device", device, "--json"))
            losses.append(json.loads(result.stdout)["loss"])
        self.assertTrue(texts[0].startswith("the "))
        self.assertEqual(*texts)
        self.assertAlmostEqual(*losses, delta=2e-5)

    def test_adapters_have_the_same_bits_in_all_layouts(self):
        self.fine_tune("adapters", lora__products="all", lora__rank=4)

    def test_what_is_not_frozen_has_the_same_bits_in_all_layouts(self):
        self.fine_tune("frozen", train__frozen="[model.embed_tokens, model.layers.0]")

    def fine_tune(self, name, **what):
        base = self.config(f"base-of-{name}", "llama", train__steps=2)
        self.train(base)
        keys = {"model": "llama", "optimizer__lr": 0.01, **what,
                "checkpoint__init_from": harness.run_dir(base) / "checkpoints"}
        alone = self.trained(name, **keys)
        for layout, ranks, more in [("replicas", 2, "parallel.zero=2"),
                                    ("stages", 2, "parallel.pp=2"),
                                    ("direct", 0, "train.graphs=off")]:
            self.assertEqual(self.trained(f"{name}-{layout}", ranks, more=[more], **keys), alone)

    def test_alibi_has_the_same_bits_in_all_layouts(self):
        keys = {"model__alibi": "true", "model__swiglu": "true", "model__embedding_scale": 2,
                "model__logit_scale": 0.5, "model__attention_scale": 0.1}
        alone = self.trained("alibi", **keys)
        for name, ranks, more in [("replicas", 2, "parallel.zero=2"),
                                  ("stages", 2, "parallel.pp=2"),
                                  ("recomputed", 0, "train.recompute=selective"),
                                  ("direct", 0, "train.graphs=off")]:
            self.assertEqual(self.trained(f"alibi-{name}", ranks, more=[more], **keys), alone)
        losses = []
        for program, device, ranks, more in [(SIMULATED, "cuda", 3, "parallel.tp=3"),
                                             (SIMULATED, "cuda", 0, "parallel.tp=1"),
                                             (CPU_ONLY, "cpu", 0, "parallel.tp=1")]:
            self.use(program)
            config = self.config(f"alibi-{device}-{ranks}", precision="fp32",
                                 train__device=device, **keys)
            self.train(config, ranks, more=[more])
            losses.append([line["loss"] for line in harness.metrics(config)])
        for one in zip(*losses):
            self.assertLess(max(one) - min(one), 2e-5)
        self.use(SIMULATED)
        stderr = self.train(self.config("alibi-cudnn", **keys), code=2,
                            more=["train.attention=cudnn"]).stderr
        self.assertIn("cudnn is not used with model.alibi", stderr)

    def test_documents_that_are_apart_have_the_same_bits_in_all_layouts(self):
        text = "the ship sails under oars"
        lines = self.folder / "documents.jsonl"
        lines.write_text("".join(json.dumps({"text": text[:1 + 7 * i % 24]}) + "\n"
                                 for i in range(400)))
        data = self.folder / "data-of-documents"
        harness.must(harness.run("data", "pack", lines, "--out", data))
        keys = {"model": "llama", "layers": 3, "data__train": data, "data__documents": "separate"}
        alone = self.trained("documents", **keys)
        for name, ranks, more in [("replicas", 2, "parallel.zero=2"),
                                  ("stages", 3, "parallel.pp=3"),
                                  ("recomputed", 0, "train.recompute=full")]:
            self.assertEqual(self.trained(f"documents-{name}", ranks, more=[more], **keys), alone)
        losses = []
        for program, device in [(SIMULATED, "cuda"), (CPU_ONLY, "cpu")]:
            self.use(program)
            config = self.config(f"documents-{device}", precision="fp32", train__device=device,
                                 **keys)
            stderr = self.train(config).stderr
            self.assertEqual("no CUDA graphs: data.documents is separate" in stderr,
                             device == "cuda", stderr)
            losses.append([line["loss"] for line in harness.metrics(config)])
        for on_device, on_cpu in zip(*losses):
            self.assertAlmostEqual(on_device, on_cpu, delta=2e-5)
        self.use(SIMULATED)
        stderr = self.train(self.config("documents-graphs", **keys), code=2,
                            more=["train.graphs=on"]).stderr
        self.assertIn("train.graphs is on, but data.documents is separate", stderr)

    def test_logged_steps_are_replayed(self):
        config = self.config("replayed", checkpoint__every=2)
        self.train(config, 2)
        logged = (harness.run_dir(config) / "metrics.jsonl").read_bytes()
        for ranks, layout in [(2, "parallel.zero=2"), (0, "train.graphs=off")]:
            stderr = self.train(config, ranks, more=[layout, "--replay", STEPS]).stderr
            self.assertIn(f"from step 2: 2 logged steps up to step {STEPS} have the same bits",
                          stderr)
        stderr = self.train(config, 2, {"TRIREME_FAULTS": "step.gradient:0:3:scale=2"}, code=76,
                            more=["--replay", STEPS]).stderr
        self.assertIn("has different bits: the gradient norm was", stderr)
        self.assertEqual(logged, (harness.run_dir(config) / "metrics.jsonl").read_bytes())


if __name__ == "__main__":
    unittest.main(verbosity=2)
