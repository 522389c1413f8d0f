"""Runs benchmarks/gpu/run.sh on the simulated device, so that it works when there is a GPU at last.
"""

import argparse
import contextlib
import importlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest
import unittest.mock

import harness

SIMULATED = pathlib.Path(os.environ["TRIREME_SIM"])
GOLDEN_TESTS = SIMULATED.parent / "tests/golden/on_device/golden_cuda_test"
KERNEL_TESTS = SIMULATED.parent / "tests/kernels/on_device/kernels_cuda_test"
BENCHMARK = SIMULATED.parent / "benchmarks/kernels/kernels_benchmark"
SPEEDS = 13  # parts that measure speed
HARDWARE_ONLY = ["operations: two ranks on one GPU, MPS", "operations: power by the driver"]
MODELS = ["ALiBi", "adapters (LoRA)", "frozen modules", "a teacher (distillation)",
          "training of pruned weights"]


def module(name):
    """Returns a module of the suite."""
    sys.path.insert(0, str(harness.SOURCE / "benchmarks/gpu"))
    return importlib.import_module(name)


def suite(*arguments, script=harness.SOURCE / "benchmarks/gpu/run.sh"):
    # A version of NCCL that connects two ranks on one GPU.
    environment = {**harness.ENVIRONMENT, "TRIREME_SIM_NCCL": "23007"}
    return subprocess.run(
        [script, "--quick", *map(str, arguments)],
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
                       GOLDEN_TESTS, "--out", self.folder / "good", "--jobs", 2, "--parts",
                       "^(?!models)")
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

    def test_models_have_the_losses_of_the_cpu(self):
        result = suite("--trireme", SIMULATED, "--out", self.folder / "models", "--jobs", 2,
                       "--parts", "^models")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"^estimated [0-9.]+ of 8.5 minutes with --jobs 2\n")
        parts = self.results("models")
        self.assertEqual(list(parts), [f"models: {name}" for name in MODELS])
        self.assertEqual({part["result"] for part in parts.values()}, {"passed"})
        self.assertEqual(len(parts["models: ALiBi"]["figures"]), 3)

    # All subprocesses of a part share the time that is left for the suite.
    def test_the_time_is_kept(self):
        slow = self.folder / "slow"
        slow.write_text(f'#!/bin/sh\n[ "$1" = train ] && sleep 14\nexec {SIMULATED} "$@"\n')
        slow.chmod(0o755)
        begun = time.monotonic()
        result = suite("--trireme", slow, "--out", self.folder / "time", "--minutes", 0.6,
                       "--parts", "checkpoint from CPU|from GPU|kernels over")
        took = time.monotonic() - begun
        self.assertEqual(result.returncode, 4, result.stdout + result.stderr)
        self.assertIn("time will be short for: checkpoint from GPU to CPU", result.stdout)
        parts = self.results("time")
        late = parts["checkpoint from CPU to GPU"]
        self.assertEqual(late["result"], "failed")
        self.assertIn("no end within", late["words"])
        self.assertLess(late["seconds"], 36 + module("processes").GRACE)
        self.assertLess(took, 45)
        self.assertEqual(parts["checkpoint from GPU to CPU"]["words"], "no time was left")

    def announced(self, cores, gpus):
        """Returns what the suite says of its time on a machine with PyTorch and the sanitizer."""
        suite_module = module("suite")
        options = argparse.Namespace(jobs=suite_module.jobs_for(cores), minutes=8.5, parts="",
                                     quick=False, out=self.folder, kernel_tests="", golden_tests="")
        found = {"program": "trireme", "gpus": ["NVIDIA H200"] * gpus,
                 "versions": {"pytorch": "2.11"}}
        with unittest.mock.patch("shutil.which", return_value="/bin/true"), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            suite_module.Suite(options).announce(
                suite_module.parts_together(options),
                suite_module.operations.parts_alone(options)
                + suite_module.parts_with_speeds(options, found))
        return out.getvalue()

    def test_everything_fits_into_the_time_by_default(self):
        for cores in (12, 16, 64):
            text = self.announced(cores, gpus=1)
            self.assertRegex(text, r"^estimated [78]\.\d of 8.5 minutes with --jobs 6\n$")
        self.assertRegex(self.announced(2, gpus=1), r"--jobs 1\ntime will be short for: .*7B")
        self.assertIn("time will be short for: ", self.announced(16, gpus=8))

    def bundle(self):
        """Makes and unpacks a bundle as of the preset `cuda`, with the tests and the program on the
        simulated device in place of those for GPUs."""
        build = self.folder / "build"
        build.mkdir()
        for name in ("trireme", "cmake_install.cmake"):
            (build / name).symlink_to(SIMULATED.parent / name)
        (build / "late_libraries").write_text("")  # of a build with CUDA
        harness.must(subprocess.run(
            [harness.SOURCE / "src/packaging/bundle.sh", build, self.folder],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False))
        [archive] = self.folder.glob("trireme-*-bundle.tar.gz")
        subprocess.run(["tar", "-xzf", archive, "-C", self.folder], check=True)
        root = self.folder / archive.name.removesuffix(".tar.gz")
        shutil.copy(SIMULATED, root / "bin/trireme")
        return root

    def test_it_runs_from_a_bundle(self):
        root = self.bundle()
        harness.check_bundle(self, root)
        for name in ("kernels_cuda_test", "golden_cuda_test", "kernels_benchmark"):
            self.assertTrue(os.access(root / "libexec" / name, os.X_OK), name)
        for path in [*(harness.SOURCE / "benchmarks/gpu").glob("*.py"),
                     harness.SOURCE / "benchmarks/peers/pytorch_gpu.py",
                     harness.SOURCE / "benchmarks/peers/pytorch_step.py"]:
            self.assertTrue((root / "share/trireme/gpu" / path.name).exists(), path)
        script = root / "share/trireme/gpu/run.sh"
        result = suite("--out", self.folder / "bundled", "--parts", "^kernels|^golden|sgd",
                       script=script)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        parts = self.results("bundled")
        self.assertGreater(parts["golden losses"]["figures"]["tests"], 0)
        self.assertEqual({name: part["result"] for name, part in parts.items()},
                         {"kernels against the reference": "passed", "golden losses": "passed",
                          "operations: sgd": "passed", "kernels over a copy": "refused"})

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
        speeds = module("speeds")
        found = json.loads(report.read_text())
        self.assertIn("simulated device", found["context"]["device"])
        rates = speeds.rates_of(found)
        self.assertGreater(len(rates), 20)
        self.assertTrue(set(speeds.NOT_BOUND_BY_MEMORY) - {"triad"} <= rates.keys())
        self.assertIn("embedding_backward/257", rates)


if __name__ == "__main__":
    unittest.main(verbosity=2)
