"""Injects an error into every call of CUDA, cuBLASLt and NCCL that the simulated device has, at
several moments of a run: each must end the run with the code and the reason of a device fault, or
be harmless. Calls are found in the simulator's sources, so that a new one is covered at once."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import unittest

import harness

SIMULATED = os.environ["TRIREME_SIM"]
SIMULATOR = pathlib.Path(__file__).resolve().parents[2] / "src" / "device" / "sim"
ERRORS = {"cuda": "cudaErrorIllegalAddress", "nccl": "ncclInternalError",
          "cublas": "CUBLAS_STATUS_EXECUTION_FAILED"}
MOMENTS = (1, 2, 7, 40, 150)  # numbers of calls
KERNELS = range(1, 400, 13)  # numbers of kernels that fail after they were started


def calls():
    """Returns the names of the functions into which the simulator can inject an error."""
    text = "".join(path.read_text() for path in sorted(SIMULATOR.glob("*.cc")))
    names = set(re.findall(r'"((?:cuda|nccl|cublasLt)[A-Z][A-Za-z]+)"', text))
    return sorted(name for name in names
                  if not re.search("Error|Success$|InProgress|ncclInvalid", name))


class GpuFaultSweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)
        cls.config = cls.folder / "run.yaml"
        harness.PROGRAM = SIMULATED
        harness.write_config(cls.config, cls.datasets, "gpt2", "fp32", data__sequence=8,
                             train__steps=2, train__global_batch=2, train__eval_samples=2,
                             train__device="cuda")
        cls.config.write_text(cls.config.read_text().replace("layers: 5", "layers: 1"))

    def end_of(self, fault, ranks=1):
        """Returns the exit code, the reason, and the output of a run with this fault."""
        run = self.folder / re.sub(r"\W", "-", fault)
        result = harness.run("train", self.config, f"run.dir={run}",
                             f"checkpoint.dir={run}/checkpoints", f"train.global_batch={2 * ranks}",
                             ranks=ranks, env={"TRIREME_SIM_FAULT": fault})
        file = run / "exit_reason.json"
        reason = json.loads(file.read_text()) if file.exists() else None
        shutil.rmtree(run, ignore_errors=True)
        return result.returncode, reason, result.stderr

    def sweep(self, faults, ranks=1):
        """Checks how a run with each of the faults ends. Returns the codes."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            ends = pool.map(lambda fault: self.end_of(fault, ranks), faults)
        codes = []
        for fault, (code, reason, text) in zip(faults, ends):
            codes.append(code)
            with self.subTest(fault):
                self.assertIn(code, (0, 76, 85), text)
                if code != 0:
                    self.assertIsNotNone(reason, text)
                    self.assertEqual(reason["code"], code, text)
                    self.assertIn(reason["kind"], ("device", "communication", "memory"), text)
                if code != 0 and not fault.startswith("nccl"):
                    self.assertEqual(code, 76, text)
        return codes

    def test_every_call(self):
        names = calls()
        self.assertGreater(len(names), 40)
        faults = [f"{name}:{number}:{ERRORS[re.match('[a-z]+', name)[0]]}"
                  for name in names for number in MOMENTS]
        codes = self.sweep(faults)
        # Calls that the run makes less often return no error.
        self.assertGreater(len(faults) - codes.count(0), 60)

    def test_calls_between_ranks(self):
        """Here, ranks exchange data through NCCL."""
        faults = [f"{name}@1/1:{number}:ncclInternalError"
                  for name in calls() if name.startswith("nccl") for number in (1, 5)]
        codes = self.sweep(faults, ranks=2)
        self.assertGreater(len(faults) - codes.count(0), 8)

    def test_kernels_that_fail_later(self):
        faults = [f"cudaLaunchKernelEx:{number}:cudaErrorIllegalAddress:later"
                  for number in KERNELS]
        codes = self.sweep(faults)
        self.assertGreater(codes.count(76), 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
