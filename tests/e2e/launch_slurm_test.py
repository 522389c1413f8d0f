"""Jobs of `trireme slurm submit --supervised` on a real Slurm (tests/support/slurm_cluster.py).
Ranks, nodes and the batch host are killed, and the job is signalled, requeued and cancelled. The
bits stay the same."""

import os
import pathlib
import shutil
import signal
import sys
import time
import unittest

import harness
from launch_harness import SHM, Launch, deputies, eventually, processes

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
from slurm_cluster import SlurmCluster, reason_to_skip  # noqa: E402

TEST_CLUSTER = harness.SOURCE / "configs/site/test.yaml"
PROGRAM = str(pathlib.Path(harness.PROGRAM).resolve())
SLOW = "step.forward:*:*:sleep=0.05"


class Job(Launch):
    """A launch that runs in a Slurm job."""

    def __init__(self, cluster, environment, config, *arguments, launcher="mpirun", nodes=4):
        self.cluster = cluster
        self.launcher = launcher
        self.run = harness.run_dir(config)
        profile = config.with_suffix(".site.yaml")
        profile.write_text(TEST_CLUSTER.read_text().replace("program: trireme",
                                                            f"program: {PROGRAM}")
                           .replace("launcher: mpirun", f"launcher: {launcher}"))
        submit = cluster.command(PROGRAM, "slurm", "submit", config, "--cluster", profile,
                                 "--supervised", "--nodes", nodes, *arguments, cwd=config.parent,
                                 env={**environment, "TRIREME_FAULTS": SLOW}, check=False)
        assert submit.returncode == 0, submit.stderr
        self.job = int(submit.stdout)
        self.log = config.parent / f"{config.stem}-{self.job}.out"

    def __exit__(self, *_):
        self.cluster.cancel(self.job)
        self.cluster.wait_job(self.job, 60)

    def forget(self):
        """Removes the node folders, which a real node would lose when it dies; another launch would
        remove them here."""
        for launch in {e["launch"] for e in self.events()}:
            for folder in SHM.glob(f"trireme-*-{launch}-*"):
                shutil.rmtree(folder, ignore_errors=True)

    def wait_for(self, name, count=1, seconds=90):
        def there():
            if self.cluster.job_state(self.job) in ("COMPLETED", "FAILED"):
                raise AssertionError(f"it ended before '{name}':\n{self.text()}")
            return len(self.events(name)) >= count
        eventually(there, seconds, f"event {name}")
        return self.events(name)[count - 1]

    def causes(self):
        """Returns the causes of the ends. Under srun, it omits up to three attempts whose rank died
        while MPI started, which is not tested here: Slurm's PMIx sometimes lets a rank leave
        MPI_Init early, and its messages then kill a rank that is not ready (docs/slurm.md)."""
        ends = self.events("attempt_end")
        early = [e for e in ends if self.launcher == "srun" and e["cause"] == "process_death"
                 and e.get("rank0", {}).get("phase") == "start"]
        return [e["cause"] for e in ends if e not in early[:3]]

    def text(self):
        return self.log.read_text(errors="replace")[-6000:] if self.log.exists() else ""

    def launches(self):
        return [e["launch"] for e in self.events("begin")]


class LaunchSlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.reference = cls.make_config("reference")
        harness.must(harness.run("train", cls.reference, ranks=4))
        cls.bits = harness.loss_bits(cls.reference)
        cls.digest = harness.digest(cls.reference)

    def setUp(self):
        self.cluster = SlurmCluster(nodes=5)
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        self.environment = {**self.cluster.environment, "TRIREME_SITE_DIR": harness.NO_SITE,
                            "TRIREME_START_DEADLINE": "40"}

    @classmethod
    def make_config(cls, name, **keys):
        return harness.write_config(
            cls.folder / f"{name}.yaml", cls.datasets, "small", "bf16",
            **{"train__steps": 40, "checkpoint__every": 5, **keys})

    def start(self, config, *arguments, **options):
        job = Job(self.cluster, self.environment, config, *arguments, **options)
        self.addCleanup(job.forget)
        return job

    def at_work(self, job, attempt=1):
        job.wait_for("first_step", attempt)
        eventually(lambda: list(job.run.glob("checkpoints/step-*")), 60, "a checkpoint")

    def assert_good_end(self, job, config, causes, seconds=200):
        try:
            state, code, _ = self.cluster.wait_job(job.job, seconds)
        except TimeoutError as error:
            self.fail(f"{error}\n{job.text()}")
        self.assertEqual((state, code), ("COMPLETED", 0), job.text())
        self.assertEqual(job.causes(), causes, job.text())
        self.assertEqual(int(self.cluster.show("job", job.job)["Restarts"]),
                         len(job.launches()) - 1)
        for number in job.launches():
            eventually(lambda: not processes(TRIREME_LAUNCH_ID=number), 15, "no process")
        self.assertEqual(self.digest, harness.digest(config))
        self.assertEqual(self.bits, harness.loss_bits(config))
        return job.report()

    def tell(self, what, report, killed, job):
        steps = [e for e in job.events("first_step") if e["time"] > killed]
        attempt = report["attempts"][-1]
        print(f"{what}: {steps[0]['time'] - killed:.1f} s to the next first step (exclude "
              f"{attempt['exclude_seconds']:.1f}, ranks up {attempt['ranks_up_seconds']:.1f}, "
              f"load {attempt['load_seconds']:.1f})", flush=True)

    def test_a_killed_rank(self):
        for launcher in ("mpirun", "srun"):
            with self.subTest(launcher=launcher):
                config = self.make_config(f"rank-{launcher}")
                with self.start(config, launcher=launcher) as job:
                    self.at_work(job)
                    pids = processes(TRIREME_LAUNCH_ID=job.number(), TRIREME_NODE="n3")
                    os.kill(pids[0], signal.SIGKILL)
                    killed = time.time()
                    report = self.assert_good_end(job, config, ["process_death", "finished"])
                    self.tell(f"rank killed, {launcher}", report, killed, job)

    def test_a_killed_node(self):
        for launcher in ("mpirun", "srun"):
            with self.subTest(launcher=launcher):
                config = self.make_config(f"node-{launcher}")
                with self.start(config, "--spares", 1, launcher=launcher) as job:
                    self.at_work(job)
                    victim = job.events("launch")[0]["nodes"][1]
                    self.cluster.kill_node(victim)
                    killed = time.time()
                    report = self.assert_good_end(job, config, ["node_death", "finished"])
                    self.assertNotIn(victim, job.events("launch")[-1]["nodes"])
                    self.tell(f"node killed, {launcher}", report, killed, job)
                self.cluster.restart_node(victim)

    def test_a_killed_batch_host(self):
        config = self.make_config("batch-host")
        with self.start(config) as job:
            self.at_work(job)
            host = self.cluster.show("job", job.job)["BatchHost"]
            eventually(lambda: deputies(job.job), 30, "a deputy")
            self.cluster.kill_node(host)
            killed = time.time()
            eventually(lambda: len(job.launches()) > 1, 120, "another start")
            report = self.assert_good_end(job, config, ["finished"], 240)
            self.assertEqual(report["launches"], 2)
            self.assertGreater(job.events("first_step")[-1]["from"], 0)
            self.tell("batch host killed", report, killed, job)
        self.cluster.restart_node(host)

    def test_a_killed_supervisor_is_requeued(self):
        config = self.make_config("supervisor")
        with self.start(config) as job:
            self.at_work(job)
            eventually(lambda: deputies(job.job), 30, "a deputy")
            os.kill(job.events("begin")[0]["pid"], signal.SIGKILL)
            eventually(lambda: len(job.launches()) > 1, 120, "another start")
            self.assert_good_end(job, config, ["finished"], 240)

    def test_a_signal_saves_and_requeues(self):
        config = self.make_config("signal", checkpoint__every=0)
        with self.start(config) as job:
            job.wait_for("first_step")
            self.cluster.command("scancel", "--batch", "--signal=USR1", job.job)
            eventually(lambda: len(job.launches()) > 1, 120, "another start")
            self.assert_good_end(job, config, ["stopped", "finished"], 240)

    def test_a_cancelled_job_stays_cancelled(self):
        config = self.make_config("cancelled")
        with self.start(config) as job:
            self.at_work(job)
            eventually(lambda: deputies(job.job), 30, "a deputy")
            self.cluster.cancel(job.job)
            self.assertEqual(self.cluster.wait_job(job.job, 60)[0], "CANCELLED")
            eventually(lambda: not processes(TRIREME_LAUNCH_ID=job.number()), 20, "no process")
            eventually(lambda: not job.folders(), 20, "no folder")
            # No deputy is left that could requeue the job.
            self.assertEqual(self.cluster.job_state(job.job), "CANCELLED")
            self.assertEqual(len(job.launches()), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
