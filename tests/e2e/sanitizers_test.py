"""Builds a part of the program with each of the sanitizers' presets, and runs tests with it. The
whole takes half an hour of two cores (docs/architecture.md, "Tests under sanitizers"); this finds
options and sources with which these presets do not build."""
import os
import pathlib
import subprocess
import unittest

import harness

BUILD = pathlib.Path(harness.PROGRAM).resolve().parent
# The simulated device has sources that are optimized in every build type.
TARGETS = ["trireme_sim", "trireme_mpi", "base_test"]


def must(*words):
    return harness.must(subprocess.run([str(word) for word in words], cwd=harness.SOURCE,
                                       stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                       errors="replace", timeout=1200, check=False)).stdout


@unittest.skipUnless(BUILD == harness.SOURCE / "build/release", "one build is enough to try it")
class Sanitizers(unittest.TestCase):
    def test_presets_build_and_find_nothing_in_base(self):
        for preset, sanitizer in [("debug", b"__asan_init"), ("tsan", b"__tsan_init")]:
            with self.subTest(preset):
                build = harness.workspace() / preset
                must("cmake", "--preset", preset, "-B", build)
                must("cmake", "--build", build, "-j", os.cpu_count(), "--target", *TARGETS)
                (test,) = build.rglob("base_test")
                self.assertIn(sanitizer, test.read_bytes())
                self.assertIn("[  PASSED  ]", must(test))


if __name__ == "__main__":
    unittest.main(verbosity=2)
