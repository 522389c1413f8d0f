"""Injects errors of several kinds into every call of CUDA, cuBLASLt, cuDNN and NCCL that the
simulated device has, at several moments of a run: each must end the run with the code and the
reason of a device fault or of exhausted memory, or be harmless. Calls are found in the simulator's
sources, so that a new one is covered at once."""

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
# Each moment of a call has another kind of error, and the next call begins with the next kind.
ERRORS = {"cuda": ["cudaErrorIllegalAddress", "cudaErrorMemoryAllocation", "cudaErrorUnknown",
                   "cudaErrorECCUncorrectable", "cudaErrorLaunchFailure"],
          "nccl": ["ncclInternalError", "ncclSystemError", "ncclUnhandledCudaError",
                   "ncclRemoteError"],
          "cublas": ["CUBLAS_STATUS_EXECUTION_FAILED", "CUBLAS_STATUS_ALLOC_FAILED",
                     "CUBLAS_STATUS_INTERNAL_ERROR", "CUBLAS_STATUS_NOT_INITIALIZED"]}
MOMENTS = (1, 2, 7, 40, 150)  # numbers of calls
KERNELS = range(1, 400, 13)  # numbers of kernels that fail after they were started


def calls():
    """Returns the names of the functions into which the simulator can inject an error."""
    text = "".join(path.read_text() for path in sorted(SIMULATOR.glob("*.cc")))
    names = set(re.findall(r'"((?:cuda|nccl|cublasLt)[A-Z][A-Za-z]+)"', text))
    return sorted(name for name in names
                  if not re.search("Error|Success$|InProgress|ncclInvalid", name))


def fault_of(name, number, turn):
    """Returns the fault of the call's run `number`, with the kind of error whose turn it is."""
    kinds = ERRORS[re.match("[a-z]+", name)[0]]
    return f"{name}:{number}:{kinds[turn % len(kinds)]}"


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

    def end_of(self, fault, ranks=1, more=()):
        """Returns the exit code, the reason, and the output of a run with this fault."""
        run = self.folder / re.sub(r"\W", "-", fault)
        result = harness.run("train", self.config, f"run.dir={run}",
                             f"checkpoint.dir={run}/checkpoints", f"train.global_batch={2 * ranks}",
                             *more, ranks=ranks, env={"TRIREME_SIM_FAULT": fault})
        file = run / "exit_reason.json"
        reason = json.loads(file.read_text()) if file.exists() else None
        shutil.rmtree(run, ignore_errors=True)
        return result.returncode, reason, result.stderr

    def sweep(self, faults, ranks=1, more=()):
        """Checks how a run with each of the faults ends. Returns the codes."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            ends = pool.map(lambda fault: self.end_of(fault, ranks, more), faults)
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
        faults = [fault_of(name, number, at + moment) for at, name in enumerate(names)
                  for moment, number in enumerate(MOMENTS)]
        codes = self.sweep(faults)
        # Calls that the run makes less often return no error.
        self.assertGreater(len(faults) - codes.count(0), 60)

    def test_calls_between_ranks(self):
        """Here, ranks exchange data through NCCL."""
        names = [name for name in calls() if name.startswith("nccl")]
        faults = [fault_of(name, number, at + moment).replace(":", "@1/1:", 1)
                  for at, name in enumerate(names) for moment, number in enumerate((1, 5))]
        codes = self.sweep(faults, ranks=2)
        self.assertGreater(len(faults) - codes.count(0), 8)

    def test_calls_of_cudnn(self):
        failed = 5000  # CUDNN_STATUS_EXECUTION_FAILED
        faults = [f"cudnnBackendExecute:{number}:{failed}" for number in (1, 2, 3, 4)]
        codes = self.sweep(faults, more=["train.attention=cudnn", "train.precision=bf16"])
        self.assertEqual(codes, [76] * len(faults))

    def test_kernels_that_fail_later(self):
        kinds = [kind for kind in ERRORS["cuda"] if kind != "cudaErrorMemoryAllocation"]
        faults = [f"cudaLaunchKernelEx:{number}:{kinds[turn % len(kinds)]}:later"
                  for turn, number in enumerate(KERNELS)]
        codes = self.sweep(faults)
        self.assertGreater(codes.count(76), 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
