"""What the tests of the program on the simulated CUDA device share."""

import os
import unittest

import harness

SIMULATED = os.environ["TRIREME_SIM"]
STEPS = 4
# The soak tries more layouts and more orders of the device's work than the daily tests.
WHOLE = os.environ.get("TRIREME_TEST_WHOLE") == "1"


class SimulatedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)

    def setUp(self):
        self.use(SIMULATED)

    def use(self, program):
        previous = harness.PROGRAM
        harness.PROGRAM = program
        self.addCleanup(setattr, harness, "PROGRAM", previous)

    def config(self, name, model="gpt2", precision="bf16", layers=2, **keys):
        """Writes a configuration. Two pipeline stages need two layers; more take longer."""
        keys = {
            "data__sequence": 24,
            "train__steps": STEPS,
            "train__global_batch": 4,
            "train__eval_samples": 2,
            "train__device": "cuda",
            "numerics__self_check": "false",
            **keys,
        }
        path = self.folder / f"{name}.yaml"
        harness.write_config(path, self.datasets, model, precision, **keys)
        path.write_text(path.read_text().replace("layers: 5", f"layers: {layers}"))
        return path

    def train(self, config, ranks=0, env=None, code=0, more=()):
        result = harness.run("train", config, *more, ranks=ranks, env=env)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def trained(self, name, ranks=0, env=None, more=(), **keys):
        config = self.config(name, **keys)
        self.train(config, ranks, env, more=more)
        return harness.loss_bits(config), harness.digest(config)
