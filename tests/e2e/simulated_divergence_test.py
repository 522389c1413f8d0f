"""Skipped steps and rewinds on the simulated CUDA device, where micro-batches are repeated as CUDA
graphs and fp8 keeps a history of magnitudes. Steps have the same bits without graphs, in other
layouts, and after restarts."""

import json
import unittest

import harness
from simulated import SimulatedTest

STEPS = 28
EVERY = 4
NOISE = (16 * 4 * 24, 3 * 4 * 24)  # batches have 4 samples of 24 tokens


class SimulatedDivergence(SimulatedTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.noisy = (harness.make_noisy_dataset(cls.folder, *NOISE), cls.datasets[1])

    def config(self, name, model="small", **keys):
        keys = {"train__steps": STEPS, "checkpoint__every": EVERY, "checkpoint__keep": 3,
                "data__shuffle": "none",
                "optimizer__lr": 1e-2, "divergence__window": 8, **keys}
        return super().config(name, model, **keys)

    def events(self, config, name):
        log = harness.run_dir(config) / "logs/rank-00000.jsonl"
        return [e for e in map(json.loads, log.read_text().splitlines()) if e.get("event") == name]

    def counters(self, config):
        steps = sorted((harness.run_dir(config) / "checkpoints").glob("step-*"))
        return json.loads((steps[-1] / "manifest.json").read_text())["extra"]["counters"]

    # A rewind builds a new engine, and with it new recordings.
    def test_a_rewind_has_the_same_bits_with_and_without_graphs(self):
        seen = []
        self.datasets = self.noisy
        for name, ranks, keys in [("graphs", 0, {"train__graphs": "on"}),
                                  ("none", 0, {"train__graphs": "off"}),
                                  ("pp", 2, {"train__graphs": "on", "parallel__pp": 2})]:
            config = self.config(f"rewind-{name}", divergence__spike="rewind",
                                 divergence__rewind_steps=4, divergence__skip_batches=3, **keys)
            result = self.train(config, ranks)
            self.assertIn("it has the same bits", result.stderr)
            self.assertEqual(len(self.events(config, "rewind")), 1, result.stderr)
            counters = self.counters(config)
            self.assertEqual(counters["rewinds"], 1)
            graphs = [line["device_graphs"] for line in harness.metrics(config)]
            self.assertEqual(min(graphs) > 0, keys["train__graphs"] == "on")
            seen.append((harness.loss_bits(config), harness.digest(config), counters["left_out"]))
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])

    # The magnitudes of a skipped step are part of the history, which is part of the checkpoint.
    def test_a_skipped_step_in_fp8_has_the_same_bits_in_all_layouts_and_when_resumed(self):
        nan = "step.gradient:1:7:nan"
        seen = []
        for name, zero, faults in [("dp", 0, [nan]), ("zero", 2, [nan]),
                                   ("resumed", 0, [f"{nan},step.forward:0:13:kill", ""])]:
            config = self.config(f"skipped-{name}", data__sequence=32, train__steps=8,
                                 checkpoint__async="false", parallel__zero=zero)
            for fault in faults:
                result = harness.run(
                    "train", config, "train.products=fp8", "train.fp8.scaling=delayed",
                    "train.fp8.history=2", ranks=2, env={"TRIREME_FAULTS": fault})
                self.assertEqual(result.returncode == 0, "kill" not in fault, result.stderr)
                if nan in fault:
                    self.assertIn("skipped, weights and moments are unchanged", result.stderr)
            counters = self.counters(config)
            self.assertEqual((counters["updates"], counters["skipped_steps"]), (7, 1))
            seen.append((harness.loss_bits(config), harness.digest(config)))
        self.assertRegex(result.stderr, "resumed from .*step-00000004")
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
