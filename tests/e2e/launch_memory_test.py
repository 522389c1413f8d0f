"""Runs trireme launch in a control group with little memory. Linux counts the processes that it
kills for want of memory by machine, so no other launch may lose a rank meanwhile."""

import unittest

import harness
from launch_harness import Launch, limited_memory

SLOW = {"TRIREME_FAULTS": "step.forward:*:*:sleep=0.02"}  # long enough for faults to happen


class LaunchMemoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    # The kernel's count of such kills distinguishes them from other kills.
    def test_the_kernel_kills_for_want_of_memory(self):
        enter = limited_memory(self, 200 << 20)
        config = harness.write_config(self.folder / "oom.yaml", self.datasets, "small", "bf16",
                                      train__steps=40, checkpoint__every=5)
        with Launch(config, "model.hidden=1536", "model.heads=12", "run.memory_check=off", env=SLOW,
                    options=("--ranks-per-node", 1, "--launcher-arg", enter)) as launch:
            self.assertEqual(launch.wait(), 2, launch.text())
            self.assertEqual(launch.causes(), ["out_of_memory"] * 3)
            self.assertIn("the kernel ran out of memory and killed", launch.text())
            launch.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)
