"""Tests starts_without_libraries.sh, which in the preset `cuda` is the test of a program."""

import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("starts_without_libraries.sh")
PROGRAM = "/bin/true"


class StartsWithoutLibraries(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def code(self, program, ldd=None):
        """Returns the exit code of the script, which finds the text `ldd` as the program ldd."""
        path = "/usr/bin:/bin"
        if ldd is not None:
            (self.folder / "ldd").write_text(ldd)
            (self.folder / "ldd").chmod(0o755)
            path = f"{self.folder}:{path}"
        return subprocess.run([SCRIPT, program], env={"PATH": path}, timeout=60, check=False,
                              capture_output=True).returncode

    def test_a_program_that_starts_passes(self):
        self.assertEqual(self.code(PROGRAM), 0)

    def test_a_program_that_is_missing_or_does_not_start_fails(self):
        self.assertNotEqual(self.code(self.folder / "absent"), 0)
        self.assertNotEqual(self.code("/bin/false"), 0)

    def test_a_failure_of_ldd_is_no_success(self):
        self.assertNotEqual(self.code(PROGRAM, "#!/bin/sh\nexit 1\n"), 0)

    def test_a_library_of_cuda_fails(self):
        for library in ("libcudart.so.13", "libcublasLt.so.13", "libnccl.so.2"):
            text = f"#!/bin/sh\necho '{library} => not found'\n"
            self.assertNotEqual(self.code(PROGRAM, text), 0, library)


if __name__ == "__main__":
    unittest.main(verbosity=2)
