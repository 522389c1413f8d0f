"""Runs docs/demo/sovereign.sh, and looks for its secrets where they must not be."""
import os
import pathlib
import subprocess
import unittest

import harness
import policy_harness

MODULE = "/usr/lib/softhsm/libsofthsm2.so"


@unittest.skipUnless(os.path.exists(MODULE), "SoftHSM is not installed")
class Sovereign(unittest.TestCase):
    def test_story(self):
        folder = harness.workspace() / "site"
        environment = {**harness.ENVIRONMENT, "SOVEREIGN_FOLDER": str(folder),
                       "TRIREME": str(pathlib.Path(harness.PROGRAM).resolve())}
        told = subprocess.run([harness.SOURCE / "docs/demo/sovereign.sh"], cwd=harness.SOURCE,
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=800, check=False)
        harness.must(told)
        for words in ("rank 1", "every block opens", "Everything that was signed was checked",
                      "keys.rotate.end", "was destroyed, and nothing opens it any more",
                      "another layout", "tensors, ", "each continues the one before it",
                      "checked without their keys",
                      "authenticated with their keys"):
            self.assertIn(words, told.stdout)
        if policy_harness.can_mount():
            for words in ("1 of the releasers has signed it", "released by sara",
                          "jurisdiction AE only, and this site is in SA", "policy.refused",
                          "the role trainer cannot export a checkpoint"):
                self.assertIn(words, told.stdout)
        pin = (folder / "pin").read_text().strip().encode()
        secrets = [pin] + [(folder / key).read_text().split("TRIREME-KEY-1 ")[1].strip().encode()
                           for key in ("safe.key", "next.key")]
        kept = {folder / name for name in ("pin", "safe.key", "next.key")}
        for path in folder.rglob("*"):
            if path.is_file() and path not in kept and "tokens" not in path.parts:
                contents = path.read_bytes()
                for secret in secrets:
                    self.assertNotIn(secret, contents, path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
