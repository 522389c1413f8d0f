"""Tests train.attention: cudnn, on the simulated CUDA device and its stand-in for the library."""

import json
import unittest

import harness
from simulated import STEPS, SimulatedTest

LONGER = "checkpoint.allow_change=[optimizer.schedule.steps]"


class SimulatedCudnn(SimulatedTest):
    def config(self, name, model="llama", **keys):
        return super().config(name, model, **{"train__attention": "cudnn", **keys})

    def engines(self, config):
        """Returns what the log says was chosen for each call of attention."""
        log = harness.run_dir(config) / "logs" / "rank-00000.jsonl"
        events = [json.loads(line) for line in log.read_text().splitlines()]
        chosen = [event["chosen"] for event in events if event.get("event") == "algorithms"]
        return {call: engine for call, engine in chosen[-1].items() if call.startswith("attention")}

    def test_it_trains_like_own_attention(self):
        losses = {}
        for attention in ["own", "cudnn"]:
            config = self.config(f"like-{attention}", train__attention=attention)
            self.train(config, more=["train.steps=10"])
            losses[attention] = [row["loss"] for row in harness.metrics(config)]
        self.assertNotEqual(losses["own"], losses["cudnn"])
        self.assertLess(losses["cudnn"][-1], losses["cudnn"][0])
        for own, other in zip(losses["own"], losses["cudnn"]):
            self.assertLess(abs(own - other), 5e-3, losses)

    def test_its_engines_are_chosen_logged_and_stored(self):
        config = self.config("chosen")
        result = self.train(config)
        self.assertIn("; cuDNN 9.19.0 computes attention", result.stdout + result.stderr)
        engines = self.engines(config)
        self.assertEqual(set(engines.values()),
                         {"cuDNN 9.19.0, engine 2", "cuDNN 9.19.0, engine 6"})
        shown = json.loads(harness.must(harness.run(
            "ckpt", "show", harness.run_dir(config) / "checkpoints", "--json")).stdout)
        self.assertEqual(shown["numerics"]["attention"], "cudnn")
        self.assertLessEqual(engines.items(), shown["numerics"]["algorithms"].items())
        lines = harness.metrics(config)[1:-1]  # the first step allocates, the last evaluates
        self.assertTrue(all(m["device_graphs"] > 0 for m in lines))
        self.assertEqual([m["device_waits"] for m in lines], [1] * (STEPS - 2))
        self.assertEqual([m["device_allocations"] for m in lines], [0] * (STEPS - 2))

    def test_layouts_have_the_same_bits(self):
        alone = self.trained("alone")
        random_first = {"TRIREME_SIM_FAULT": "cudnnHeuristic:1:other"}
        late = {"TRIREME_SIM_SEED": "3", "TRIREME_SIM_DELAYS": "1"}
        for name, ranks, env, keys in [
            ("no-graphs", 0, late, {"train__graphs": "off"}),
            ("random-first", 0, random_first, {"numerics__self_check": "true"}),
            ("recomputed", 0, None, {"train__recompute": "full"}),
            ("zero", 2, late, {"parallel__zero": 3}),
            ("pp", 2, None, {"parallel__pp": 2}),
        ]:
            with self.subTest(layout=name):
                self.assertEqual(alone, self.trained(f"layout-{name}", ranks, env, **keys))

    # Each start has another layout, and each but the last one is killed after a save.
    def test_a_killed_run_resumes_in_other_layouts(self):
        whole = self.trained("whole", train__steps=6)
        config = self.config("killed", train__steps=6, checkpoint__every=2,
                             checkpoint__async="false")
        for ranks, keys, fault in [(0, [], "step.forward:0:9:kill"),
                                   (2, ["parallel.zero=2"], "step.forward:0:5:kill"),
                                   (2, ["parallel.pp=2"], None)]:
            result = harness.run("train", config, *keys, ranks=ranks,
                                 env={"TRIREME_FAULTS": fault} if fault else None)
            self.assertEqual(result.returncode == 0, fault is None, result.stderr)
        self.assertRegex(result.stderr, "resumed from .*step-00000004")
        self.assertNotIn("computes differently", result.stderr)
        self.assertEqual((harness.loss_bits(config), harness.digest(config)), whole)

    def test_a_resumed_run_says_that_its_attention_differs(self):
        config = self.config("changed")
        self.train(config)
        for attention, steps in [("own", 5), ("cudnn", 6)]:
            result = self.train(config, more=[f"train.attention={attention}",
                                              f"train.steps={steps}", LONGER])
            self.assertIn(f"computes differently from the one that wrote step {steps - 1}",
                          result.stderr)
            self.assertRegex(result.stderr, r"\battention: checkpoint ")

    def test_it_is_refused_where_it_cannot_be(self):
        config = self.config("refused")
        for more, words in [
            (["train.attention=flash"], "flash is not allowed; allowed: own|cudnn"),
            (["train.device=cpu"], "needs train.precision bf16 or fp16 and CUDA devices"),
            (["train.precision=fp32"], "needs train.precision bf16 or fp16 and CUDA devices"),
            (["model.attention_dropout=0.1"], "other masks than model.attention_dropout"),
            (["model.heads=8", "model.kv_heads=4"], "multiple of 8 up to 128, but model.head_dim"),
        ]:
            with self.subTest(words):
                self.assertIn(words, self.train(config, more=more, code=2).stderr)
        result = self.train(config, env={"TRIREME_SIM_DEVICES": "0"}, code=2,
                            more=["train.device=auto"])
        self.assertIn("cudnn needs CUDA devices, but this run computes on the CPU", result.stderr)
        for env, words in [
            ({"TRIREME_SIM_CUDNN": "0"}, "cuDNN cannot be used"),
            ({"TRIREME_SIM_CUDNN": "90800"}, "this node has cuDNN 9.8.0"),
            ({"TRIREME_SIM_FAULT": "cudnnHeuristic:1:1"}, "has no deterministic engine"),
        ]:
            with self.subTest(words):
                result = self.train(config, env=env, code=2)
                self.assertIn(words, result.stderr)
                self.assertIn("train.attention=own", result.stderr)
        result = harness.run("doctor", config, env={"TRIREME_SIM_CUDNN": "0"})
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("cuDNN cannot be used", result.stdout)
        # Other runs do not ask for the library.
        self.train(config, env={"TRIREME_SIM_CUDNN": "0"}, more=["train.attention=own"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
