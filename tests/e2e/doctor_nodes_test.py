"""Runs trireme doctor on several hosts that differ (tests/support/hosts.py). Needs root."""

import json
import pathlib
import subprocess
import sys
import unittest

import harness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import hosts  # noqa: E402


@unittest.skipIf(hosts.reason_to_skip(), hosts.reason_to_skip())
class DoctorNodesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.config = harness.write_config(cls.folder / "run.yaml",
                                          harness.make_datasets(cls.folder))
        cls.runs = cls.folder / "runs"
        cls.runs.mkdir()

    def setUp(self):
        self.hosts = hosts.Hosts(2)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.close)

    def on_host1(self, script):
        subprocess.run(["nsenter", "-t", str(self.hosts.pid("host1")), "-m", "-r", "--", "sh",
                        "-ec", script], check=True)

    def doctor(self, *arguments):
        """Returns the exit code and the findings as [(where, what)]."""
        words = [harness.PROGRAM, "doctor", str(self.config), f"run.dir={self.runs}/first",
                 "--json", *arguments]
        process = self.hosts.start_mpirun(2, words, stdout=subprocess.PIPE, text=True)
        try:
            out, _ = process.communicate(timeout=240)
        finally:
            hosts.end(process)
        report = json.loads(out)
        self.assertEqual(report["ranks"], 4)
        self.assertEqual(report["exit_code"], process.returncode)
        return process.returncode, [(f["where"], f["what"]) for f in report["findings"]]

    def test_hosts_that_are_alike(self):
        code, found = self.doctor()
        self.assertIn(code, (0, 4), found)
        self.assertEqual([f for f in found if "differ" in f[1] or "another" in f[1]], [])

    def test_a_host_with_another_run_folder(self):
        self.on_host1(f"mount -t tmpfs tmpfs {self.runs}")
        code, found = self.doctor()
        self.assertEqual(code, 2, found)
        self.assertIn(("host1", "run.dir here is not the same folder as on host0"), found)

    def test_a_host_that_may_not_write(self):
        self.on_host1(f"mount -t tmpfs -o ro tmpfs {self.runs}")
        code, found = self.doctor()
        self.assertNotIn(code, (0, 4), found)
        self.assertTrue(any(where == "host1" and "cannot write to run.dir" in what
                            for where, what in found), found)

    def test_a_host_without_data(self):
        self.on_host1(f"mount -t tmpfs tmpfs {self.folder}/train")
        code, found = self.doctor()
        self.assertEqual(code, 65, found)
        self.assertTrue(any(where == "host1" and what.startswith("data.train")
                            for where, what in found), found)

    def test_a_host_with_little_shared_memory(self):
        self.on_host1("mount -o remount,size=40m /dev/shm")
        code, found = self.doctor()
        self.assertTrue(any(where == "host1" and what.startswith("/dev/shm has")
                            for where, what in found), found)
        self.assertEqual(code, 4, found)

    def test_a_host_with_another_program(self):
        other = self.folder / "other"
        program = pathlib.Path(harness.PROGRAM).resolve()
        other.write_bytes(program.read_bytes() + b"\0")
        other.chmod(0o755)
        self.on_host1(f"mount --bind {other} {program}")
        code, found = self.doctor()
        self.assertEqual(code, 2, found)
        self.assertTrue(any(where == "host1" and "the program is " in what
                            for where, what in found), found)


if __name__ == "__main__":
    unittest.main(verbosity=2)
