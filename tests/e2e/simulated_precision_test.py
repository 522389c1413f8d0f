"""Tests for training in fp16 and with products in fp8, which CUDA devices alone have, on the
simulated device. The digest of a run on one device is the oracle for all layouts and faults."""

import unittest

import harness
from simulated import SIMULATED, SimulatedTest


class SimulatedPrecision(SimulatedTest):
    # The first scale lets gradients overflow, so that steps are skipped; later it grows again.
    SCALING = ["train.loss_scale.initial=268435456", "train.loss_scale.growth_interval=2",
               "train.steps=12", "train.max_skipped_steps=0", "model.layers=2"]

    def test_fp16_has_the_same_bits_in_all_layouts_and_when_resumed(self):
        alone = self.trained("half-1", precision="fp16", more=self.SCALING)
        rows = harness.metrics(self.folder / "half-1.yaml")
        scales = [row["loss_scale"] for row in rows]
        overflows = [row["overflows"] for row in rows]
        self.assertEqual(scales[0], 2.0**27)
        self.assertIsNone(rows[0]["grad_norm"])
        self.assertGreater(overflows[-1], overflows[0])
        self.assertEqual(rows[-1]["skipped_steps"], overflows[-1])
        self.assertTrue(any(b > a for a, b in zip(scales, scales[1:])), scales)
        for ranks, name, keys in [(2, "dp", {"parallel__zero": 3}), (2, "pp", {"parallel__pp": 2})]:
            with self.subTest(layout=name):
                this = self.trained(f"half-{name}", ranks, precision="fp16", more=self.SCALING,
                                    **keys)
                self.assertEqual(alone, this)
        # Each start of this run has another layout and skips steps, and each but the last one is
        # killed right after a save, by a fault that counts the passes of rank 0.
        config = self.config("half-killed", precision="fp16", checkpoint__every=4,
                             checkpoint__async="false")
        for ranks, keys, fault in [(0, [], "step.forward:0:17:kill"),
                                   (2, ["parallel.zero=3"], "step.forward:0:9:kill"),
                                   (2, ["parallel.pp=2"], None)]:
            result = harness.run("train", config, *self.SCALING, *keys, ranks=ranks,
                                 env={"TRIREME_FAULTS": fault} if fault else None)
            self.assertEqual(result.returncode == 0, fault is None, result.stderr)
        self.assertRegex(result.stderr, "resumed from .*step-00000008")
        self.assertEqual((harness.loss_bits(config), harness.digest(config)), alone)
        again = harness.metrics(config)
        self.assertEqual([row["loss_scale"] for row in again], scales)
        self.assertEqual([row["overflows"] for row in again], overflows)
        self.assertLess(0, overflows[3])
        self.assertLess(overflows[3], overflows[7])
        self.assertLess(overflows[7], overflows[11])

    def test_fp16_that_overflows_at_the_smallest_scale_diverges(self):
        config = self.config("half-diverged", precision="fp16")
        scale = 1 << 30
        result = self.train(config, more=[f"train.loss_scale.{key}={scale}"
                                          for key in ["initial", "minimum"]], code=3)
        self.assertIn("was not finite 4 times in a row at loss scale 1073741824", result.stderr)

    def test_fp16_needs_a_device_but_its_checkpoints_do_not(self):
        config = self.config("half-on-cpu", precision="fp16", train__steps=2)
        for device, env in [("cpu", {}), ("auto", {"TRIREME_SIM_DEVICES": "0"})]:
            result = self.train(config, env=env, more=[f"train.device={device}"], code=2)
            self.assertIn("fp16 needs CUDA devices", result.stderr)
            self.assertIn("bf16", result.stderr)
        self.train(config)
        self.use(harness.PROGRAM.replace("-sim", ""))
        checkpoints = harness.run_dir(config) / "checkpoints"
        evaluate = ["eval", "--checkpoint", checkpoints, "--data", self.datasets[1]]
        harness.must(harness.run(*evaluate))
        result = harness.run(*evaluate, "--precision", "fp16")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--precision fp16 needs a CUDA device", result.stderr)
        accept = "checkpoint.allow_change=[train.precision,optimizer.schedule.steps]"
        stderr = self.train(config, more=["train.precision=bf16", "train.device=cpu",
                                          "train.steps=4"], code=2).stderr
        self.assertIn('train.precision: checkpoint "fp16", run "bf16"', stderr)
        self.assertIn("checkpoint.allow_change=[FIELD]", stderr)
        self.train(config, more=["train.precision=bf16", "train.device=cpu", "train.steps=4",
                                 accept])
        self.use(SIMULATED)
        self.train(config, more=["train.steps=6", accept])
        losses = [row["loss"] for row in harness.metrics(config)]
        self.assertEqual(len(losses), 6)
        self.assertLess(losses[-1], losses[0])

    FP8 = ["train.products=fp8", "data.sequence=32", "model.layers=2"]

    def test_fp8_has_the_same_bits_in_all_layouts(self):
        for scaling, keys in [("current", {"parallel__zero": 2}), ("delayed", {"parallel__pp": 2})]:
            with self.subTest(scaling=scaling, layout=keys):
                more = self.fp8_with(scaling)
                alone = self.trained(f"fp8-{scaling}-1", more=more)
                this = self.trained(f"fp8-{scaling}-2", 2, more=more, **keys)
                self.assertEqual(alone, this)

    def fp8_with(self, scaling):
        return [*self.FP8, f"train.fp8.scaling={scaling}", "train.fp8.history=2", "train.steps=6"]

    # The history of magnitudes is part of the checkpoint. Each start has another layout, and each
    # but the last one is killed right after a save.
    def test_fp8_with_delayed_scaling_resumes_in_other_layouts(self):
        more = self.fp8_with("delayed")
        whole = self.trained("fp8-whole", more=more)
        config = self.config("fp8-resumed", checkpoint__every=2, checkpoint__async="false")
        for ranks, keys, fault in [(0, [], "step.forward:0:9:kill"),
                                   (2, ["parallel.zero=2"], "step.forward:0:5:kill"),
                                   (2, ["parallel.pp=2"], None)]:
            result = harness.run("train", config, *more, *keys, ranks=ranks,
                                 env={"TRIREME_FAULTS": fault} if fault else None)
            self.assertEqual(result.returncode == 0, fault is None, result.stderr)
        self.assertRegex(result.stderr, "resumed from .*step-00000004")
        self.assertEqual((harness.loss_bits(config), harness.digest(config)), whole)

    def test_a_step_with_delayed_scaling_waits_once_and_allocates_nothing(self):
        for name, ranks, keys in [("one", 0, []), ("zero", 2, ["parallel.zero=3"]),
                                  ("tp", 2, ["parallel.tp=2", "model.hidden=64", "model.heads=4"])]:
            config = self.config(f"fp8-waits-{name}")
            self.train(config, ranks, {"TRIREME_SIM_SEED": "1", "TRIREME_SIM_DELAYS": "1"},
                       more=[*self.fp8_with("delayed"), *keys])
            lines = harness.metrics(config)[1:-1]  # the first step allocates, the last evaluates
            self.assertEqual([m["device_waits"] for m in lines], [1] * 4)
            self.assertEqual([m["device_allocations"] for m in lines], [0] * 4)

    def test_the_self_check_covers_fp8(self):
        config = self.config("fp8-checked", numerics__self_check="true")
        self.train(config, more=self.FP8)
        config = self.config("fp8-wrong", numerics__self_check="true")
        result = self.train(config, more=self.FP8, code=76,
                            env={"TRIREME_FAULTS": "start.kernel:0:3:scale=1.5"})
        self.assertIn("matmul (attention input, forward, fp8) of the cuda kernels computes wrong",
                      result.stderr)

    def test_fp8_losses_are_near_those_of_bf16(self):
        losses = {}
        for name, more in [("bf16", ["train.products=precision"]), ("current", []),
                           ("delayed", ["train.fp8.scaling=delayed"])]:
            config = self.config(f"near-{name}")
            self.train(config, more=[*self.FP8, *more, "train.steps=10"])
            losses[name] = [row["loss"] for row in harness.metrics(config)]
        for name in ["current", "delayed"]:
            for whole, eighth in zip(losses["bf16"], losses[name]):
                self.assertLess(abs(whole - eighth), 2e-2, losses)
            self.assertNotEqual(losses["bf16"], losses[name])

    def test_fp8_is_refused_where_it_cannot_be(self):
        config = self.config("fp8-refused")
        for more, words in [
            (["train.device=cpu"], "fp8 needs train.precision bf16 and CUDA devices"),
            (["train.precision=fp16"], "fp8 needs train.precision bf16 and CUDA devices"),
            (["data.sequence=24"], "multiples of 16, but train.micro_batch x data.sequence is 24"),
        ]:
            result = self.train(config, more=[*self.FP8, *more], code=2)
            self.assertIn(words, result.stderr)
        result = self.train(config, env={"TRIREME_SIM_DEVICES": "0"}, code=2,
                            more=[*self.FP8, "train.device=auto"])
        self.assertIn("compute capability 8.9 or later, but this run computes on the CPU",
                      result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
