"""Runs benchmarks/gpu/run.sh on the simulated device, so that it works when there is a GPU at last.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import harness

SIMULATED = pathlib.Path(os.environ["TRIREME_SIM"])
GOLDEN_TESTS = SIMULATED.parent / "tests/golden/on_device/golden_cuda_test"
KERNEL_TESTS = SIMULATED.parent / "tests/kernels/on_device/kernels_cuda_test"
BENCHMARK = SIMULATED.parent / "benchmarks/kernels/kernels_benchmark"
SPEEDS = 14  # parts that measure speed
HARDWARE_ONLY = ["operations: power by the driver"]


def speeds_module():
    sys.path.insert(0, str(harness.SOURCE / "benchmarks/gpu"))
    import speeds
    return speeds


def suite(*arguments):
    # A version of NCCL that connects two ranks on one GPU.
    environment = {**harness.ENVIRONMENT, "TRIREME_SIM_NCCL": "23007"}
    return subprocess.run(
        [harness.SOURCE / "benchmarks/gpu/run.sh", "--quick", *map(str, arguments)],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500,
        check=False)


class GpuSuite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()

    def results(self, name):
        parts = json.loads((self.folder / name / "results.json").read_text())["parts"]
        return {part["name"]: part for part in parts}

    def results_without_sanitizer(self, parts):
        return [part["result"] for name, part in parts.items()
                if not name.startswith("compute-sanitizer")]

    def test_everything_passes(self):
        result = suite("--trireme", SIMULATED, "--kernel-tests", KERNEL_TESTS, "--golden-tests",
                       GOLDEN_TESTS, "--out", self.folder / "good", "--jobs", 2)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        parts = self.results("good")
        results = self.results_without_sanitizer(parts)
        self.assertEqual(set(results), {"passed", "refused", "not run"})
        self.assertEqual([name for name, part in parts.items() if part["result"] == "not run"
                          and not name.startswith("compute-sanitizer")], HARDWARE_ONLY)
        self.assertEqual(results.count("refused"), SPEEDS)
        self.assertEqual(parts["kernels over a copy"]["words"], "a simulated device has no speed")
        self.assertGreater(parts["kernels against the reference"]["figures"]["tests"], 1)
        self.assertIn("the same bits", parts["20 steps with cuDNN's attention"]["words"])
        text = (self.folder / "good/results.md").read_text()
        self.assertIn("simulated CUDA device", text)
        self.assertEqual(text.count("| passed |"), results.count("passed"))
        self.assertIn("NCCL 2.30.7", text)

    # One device computes wrong results, and one test crashes.
    def test_failures_are_found(self):
        wrong = self.folder / "wrong"
        wrong.write_text("#!/bin/sh\nexport TRIREME_FAULTS='start.kernel:0:*:scale=1.5'\n"
                         f'exec {SIMULATED} "$@"\n')
        wrong.chmod(0o755)
        result = suite("--trireme", wrong, "--kernel-tests", "/bin/false", "--golden-tests",
                       "/bin/false", "--out", self.folder / "bad", "--parts", "^(?!operations)")
        self.assertEqual(result.returncode, 4, result.stdout + result.stderr)
        parts = self.results("bad")
        self.assertEqual(parts["kernels against the reference"]["words"].splitlines()[0],
                         "exit code 1")
        self.assertIn("self-check", parts["10 steps, fp32, against the CPU"]["words"])
        self.assertEqual(set(self.results_without_sanitizer(parts)), {"failed", "refused"})

    # On the simulated device, the benchmarks for GPUs run over small arrays.
    def test_kernels_are_timed(self):
        report = self.folder / "kernels.json"
        command = [BENCHMARK, "--device=cuda", "--benchmark_min_time=0.000001",
                   "--benchmark_out_format=json", f"--benchmark_out={report}"]
        refused = subprocess.run(command, env=harness.ENVIRONMENT, capture_output=True, text=True,
                                 timeout=200, check=False)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("a simulated device has no speed", refused.stderr)
        self.assertFalse(report.exists())
        subprocess.run([*command, "--simulated"], env=harness.ENVIRONMENT,
                       stdout=subprocess.DEVNULL, timeout=200, check=True)
        speeds = speeds_module()
        found = json.loads(report.read_text())
        self.assertIn("simulated device", found["context"]["device"])
        rates = speeds.rates_of(found)
        self.assertGreater(len(rates), 20)
        self.assertTrue(set(speeds.NOT_BOUND_BY_MEMORY) - {"triad"} <= rates.keys())
        self.assertIn("embedding_backward/257", rates)


if __name__ == "__main__":
    unittest.main(verbosity=2)
