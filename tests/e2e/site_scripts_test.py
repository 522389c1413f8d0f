"""Prolog, epilog and health check of slurm/templates in a real Slurm: what killed launches leave is
removed and nothing else, and nodes that are unfit are drained. A benchmark in which a rank fails
under srun leaves nothing either."""
import fcntl
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
from slurm_cluster import SlurmCluster, reason_to_skip  # noqa: E402
from slurm_keeper import until  # noqa: E402

TEMPLATES = harness.SOURCE / "slurm/templates"
SKIP = reason_to_skip()


@unittest.skipIf(SKIP, SKIP)
class SiteScripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="trireme-scripts-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.memory = cls.folder / "memory"
        cls.memory.mkdir()
        cls.memory.chmod(0o1777)
        prolog = cls.script("prolog", f"TRIREME_PROLOG_FOLDERS='{cls.memory}'",
                            "TRIREME_PROLOG_LEAST_MIB="
                            "$(cat \"$TRIREME_LEAST\" 2> /dev/null || echo 1)",
                            least=cls.folder / "least-$SLURMD_NODENAME")
        epilog = cls.script("epilog", f"TRIREME_EPILOG_MEMORY='{cls.memory}'")
        cls.cluster = SlurmCluster(nodes=2, extra_config=f"Prolog={prolog}\nEpilog={epilog}\n"
                                   "PrologFlags=Alloc\n")
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.stop)

    @classmethod
    def script(cls, name, *settings, least=None):
        """Writes a script that runs a template with other settings, and returns its path."""
        path = cls.folder / f"{name}.sh"
        lines = ["#!/bin/bash", *([f"TRIREME_LEAST={least}"] if least else []),
                 *(f"export {setting}" for setting in settings), f"exec '{TEMPLATES}/{name}.sh'"]
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o755)
        return path

    def leftover(self, name):
        folder = self.memory / name
        (folder / "memory").mkdir(parents=True)
        (folder / "lock").write_text("")
        (folder / "memory/shard").write_text("weights")
        return folder

    def run_job(self, node):
        script = self.folder / "job.sh"
        script.write_text("#!/bin/bash\nexit 0\n")
        job = self.cluster.sbatch("--nodelist", node, "--output=/dev/null", script)
        self.assertEqual(self.cluster.wait_job(job), ("COMPLETED", 0, 0))
        self.cluster.wait_node(node, "IDLE")

    def test_epilog_removes_what_dead_launches_left(self):
        uid = os.geteuid()
        for node in ("n1", "n2"):  # an epilog of an earlier job would remove what is made here
            self.cluster.wait_node(node, "IDLE")
        dead = self.leftover(f"trireme-{uid}-0a1b2c3d4e5f-n1")
        alive = self.leftover(f"trireme-{uid}-ffffffffffff-n1")
        of_others = self.leftover(f"trireme-{uid + 1}-0a1b2c3d4e5f-n1")
        precious = self.folder / "precious"
        precious.mkdir(exist_ok=True)
        (precious / "lock").write_text("")
        planted = self.memory / f"trireme-{uid}-planted-n1"
        planted.symlink_to(precious)
        with open(alive / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.run_job("n1")
            until("the epilog's work", 60, lambda: not dead.exists())
        for kept in (alive / "memory/shard", of_others / "memory/shard", precious / "lock",
                     planted):
            self.assertTrue(kept.exists(), kept)

    def test_prolog_drains_a_node_without_space(self):
        (self.folder / "least-n2").write_text("999999999999\n")
        script = self.folder / "job2.sh"
        script.write_text("#!/bin/bash\nexit 0\n")
        job = self.cluster.sbatch("--nodelist=n2", "--output=/dev/null", script)
        until("n2 drained", 60, lambda: "DRAIN" in self.cluster.node_state("n2"), step=0.5)
        self.assertNotEqual(self.cluster.job_state(job), "COMPLETED")
        (self.folder / "least-n2").unlink()
        self.cluster.command("scontrol", "update", "NodeName=n2", "State=RESUME")
        until("the job is held", 60,
              lambda: "held" in self.cluster.show("job", job).get("Reason", "").lower(), step=0.5)
        self.cluster.command("scontrol", "release", job)
        self.assertEqual(self.cluster.wait_job(job), ("COMPLETED", 0, 0))

    def test_a_benchmark_whose_rank_fails_leaves_no_files(self):
        """srun kills rank 0, which has made the folder, as soon as rank 1 has failed."""
        disk = self.folder / "disk"
        disk.mkdir()
        limit = "if [ $SLURM_PROCID = 1 ]; then ulimit -f 1024; fi; exec \"$@\""
        failed = self.cluster.command(
            "srun", "--mpi=pmix", "-N2", "-n2", "bash", "-c", limit, "bash",
            pathlib.Path(harness.PROGRAM).resolve(), "bench", "io", "--dir", disk, "-F", "-b", "4M",
            "--test", "data", check=False, timeout=120, cwd=self.folder)
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("trireme: rank 1 on", failed.stderr)
        self.assertEqual(os.listdir(disk), [])

    def test_health_check_drains_a_node_that_its_program_refuses(self):
        """A limit of 1 s for its measurement makes `trireme health` refuse any node."""
        program = pathlib.Path(harness.PROGRAM).resolve()
        # As it is installed, and with what slurmd passes on: no PATH.
        bin, share = self.folder / "opt/bin", self.folder / "opt/share/trireme"
        bin.mkdir(parents=True)
        share.mkdir(parents=True)
        check = share / "node-health.sh"
        shutil.copy(TEMPLATES / "node-health.sh", check)
        environment = {"SLURMD_NODENAME": "n1",
                       "SLURM_CONF": self.cluster.environment["SLURM_CONF"]}
        # The script asks for a check against /etc/trireme/node.baseline, which this machine lacks.
        (bin / "trireme").write_text(
            f"#!/bin/bash\ntouch '{self.folder}/called'\nexport TRIREME_SITE_DIR="
            f"'{harness.NO_SITE}'\nexec '{program}' \"$@\"\n")
        (bin / "trireme").chmod(0o755)
        done = self.cluster.command(check, env=environment, check=False)
        self.assertEqual(done.returncode, 0, "a missing baseline is no fault of the node")
        self.assertTrue((self.folder / "called").exists(), "the program was not found")
        self.assertNotIn("DRAIN", self.cluster.node_state("n1"))
        (bin / "trireme").write_text(
            f"#!/bin/bash\nexec '{program}' health --seconds 1\n")
        (self.folder / "node-health.sh").symlink_to(check)
        done = self.cluster.command(self.folder / "node-health.sh", env=environment, check=False)
        self.assertEqual(done.returncode, 4)
        until("n1 drained", 30, lambda: "DRAIN" in self.cluster.node_state("n1"), step=0.5)
        self.cluster.command("scontrol", "update", "NodeName=n1", "State=RESUME")


if __name__ == "__main__":
    unittest.main()
