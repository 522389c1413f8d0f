"""What the tests of GPUs under operation share: a small run on simulated devices, and a driver that
behaves as a script says (tests/device/nvml/library)."""

import json
import os
import pathlib
import unittest

import harness

SIMULATED = os.environ["TRIREME_SIM"]
STANDIN = str(pathlib.Path(SIMULATED).with_name("nvml_standin.so"))
UUID = "GPU-73696d75-6c61-7465-6420-6465766963{:02x}"


class GpuRuns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)
        harness.PROGRAM = SIMULATED

    def config(self, name, **keys):
        keys = {
            "data__sequence": 8,
            "model__layers": 1,
            "train__steps": 2,
            "train__global_batch": 2,
            "train__eval_samples": 2,
            "train__device": "cuda",
            "numerics__self_check": "false",
            **keys,
        }
        layers = keys.pop("model__layers")
        path = self.folder / f"{name}.yaml"
        config = harness.write_config(path, self.datasets, "gpt2", "fp32", **keys)
        path.write_text(path.read_text().replace("layers: 5", f"layers: {layers}"))
        return config

    def script(self, text):
        """Returns the environment in which the driver behaves as the script says."""
        path = self.folder / f"driver-{abs(hash(text))}"
        path.write_text(text)
        return {"TRIREME_SIM_NVML": STANDIN, "TRIREME_SIM_NVML_SCRIPT": str(path)}

    def reason(self, config):
        return json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
