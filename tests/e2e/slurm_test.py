"""Tests on a real Slurm of four nodes (tests/support/slurm_cluster.py): srun and sbatch train,
rendered scripts do what they promise, and the bits are those of a run without Slurm.
launch_slurm_test.py has the tests of `trireme launch`."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import harness
from launch_harness import eventually

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
from slurm_cluster import SlurmCluster, alive, descendants, reason_to_skip  # noqa: E402

TEST_CLUSTER = harness.SOURCE / "configs/site/test.yaml"
PROGRAM = str(pathlib.Path(harness.PROGRAM).resolve())


def slow(seconds):
    """Makes every step take this long. Slurm's clock is coarse, and the model computes almost
    nothing."""
    return {"TRIREME_FAULTS": f"step.end:*:*:sleep={seconds}"}


class OnSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.reference = cls.make_config("reference")
        harness.must(harness.run("train", cls.reference, ranks=4))
        cls.digest = harness.digest(cls.reference)
        cls.cluster = SlurmCluster(nodes=4, gpus=2)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        cls.environment = {**cls.cluster.environment, "TRIREME_SITE_DIR": harness.NO_SITE}

    @classmethod
    def make_config(cls, name, **keys):
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, "small", "bf16",
                                    train__steps=20, checkpoint__every=10, **keys)

    def assert_same_as_reference(self, config):
        self.assertEqual(harness.digest(config), self.digest)
        self.assertEqual(harness.loss_bits(config), harness.loss_bits(self.reference))

    def run_here(self, *argv, code=0, env=None):
        result = self.cluster.command(*argv, env={**self.environment, **(env or {})}, check=False,
                                      timeout=240, cwd=self.folder)
        self.assertEqual(result.returncode, code, f"{argv}\n{result.stdout}\n{result.stderr}")
        return result

    def submit(self, config, *arguments, nodes=4, env=None, program=PROGRAM):
        """Runs `trireme slurm submit` and returns its output."""
        profile = self.folder / "site.yaml"
        profile.write_text(TEST_CLUSTER.read_text().replace("program: trireme",
                                                            f"program: {program}"))
        return self.run_here(PROGRAM, "slurm", "submit", config, "--cluster", profile, "--nodes",
                             nodes, *arguments, env=env).stdout

    def job_of(self, *arguments, **options):
        return int(self.submit(*arguments, **options))

    def log_of(self, job):
        paths = list(self.folder.glob(f"*-{job}.out"))
        return "".join(p.read_text(errors="replace") for p in paths) or f"no output of job {job}"

    def finished(self, job, seconds=240):
        try:
            state, code, _ = self.cluster.wait_job(job, seconds)
        except TimeoutError as error:
            self.fail(f"{error}\n{self.cluster.show('job', job)}\n{self.log_of(job)}\n"
                      f"{self.cluster.controller_log()}")
        self.assertEqual((state, code), ("COMPLETED", 0), self.log_of(job))

    def wait_for_step(self, config, step=1, seconds=90):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if harness.metrics(config)[-1]["step"] >= step:
                    return
            except (OSError, IndexError, ValueError):
                pass
            time.sleep(0.1)
        raise AssertionError(f"no step {step} of {config}")

    def test_scaling_study(self):
        """Two numbers of nodes, as jobs; a study without waiting is continued."""
        config = self.make_config("scaling")
        profile = self.folder / "scale-site.yaml"
        profile.write_text(TEST_CLUSTER.read_text().replace("program: trireme",
                                                            f"program: {PROGRAM}"))
        words = [PROGRAM, "scale", config, "--nodes", "1,2", "--cluster", profile, "--repeat", 1,
                 "--steps", 4, "--dir", self.folder / "study"]
        first = self.run_here(*words, "--no-wait")
        self.assertIn("the jobs are submitted", first.stdout)
        again = self.run_here(*words, "-J", self.folder / "scale.json")
        self.assertNotIn("submitted", again.stderr)
        self.assertIn("# knee: ", again.stdout)
        results = json.loads((self.folder / "scale.json").read_text())["results"]
        self.assertEqual([r["params"]["nodes"] for r in results if r["name"] == "scale"], [1, 2])
        self.assertEqual(results[0]["params"]["launcher"], "slurm")

    # Launchers

    def test_srun(self):
        """Repeats starts in which a rank dies in MPI_Init, which is a fault of Slurm and not
        tested here (docs/slurm.md, srun and PMIx)."""
        config = self.make_config("srun")
        train = ["srun", "--mpi=pmix", "-N4", "-n4", "--kill-on-bad-exit=1", PROGRAM, "train",
                 config]
        for _ in range(5):
            first = self.cluster.command(*train, env=self.environment, check=False, timeout=240,
                                         cwd=self.folder)
            if first.returncode != 139 or (harness.run_dir(config) / "metrics.jsonl").exists():
                break
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assert_same_as_reference(config)

    def test_benchmarks_that_slurm_ends_leave_no_files(self):
        for name, end in [("srun", lambda process: process.send_signal(signal.SIGUSR1)),
                          ("scancel",
                           lambda _: self.cluster.command("scancel", "--name=bench-io"))]:
            with self.subTest(name):
                disk = self.folder / f"disk-{name}"
                disk.mkdir()
                process = subprocess.Popen(
                    ["srun", "--mpi=pmix", "-N2", "-n2", "--job-name=bench-io", PROGRAM, "bench",
                     "io", "--dir", disk, "-F", "-b", "4M", "--duration", "300"],
                    env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    stdin=subprocess.DEVNULL, start_new_session=True)
                self.addCleanup(harness.end_group, process)
                harness.until("files", 90, lambda: [p for p in disk.rglob("*") if p.is_file()])
                end(process)
                process.wait(timeout=90)
                harness.until("the ranks' end", 60, lambda: not harness.processes_with(str(disk)))
                self.assertEqual(os.listdir(disk), [])

    def test_health_of_each_node(self):
        """They share two cores, so a limit of 1 s makes every node fail at once, by name."""
        health = [PROGRAM, "health", "--seconds", "1"]
        result = self.run_here("srun", "-N4", "--ntasks-per-node=1", *health, code=4)
        self.assertEqual((result.stdout + result.stderr).count("health FAILED on "), 4)
        result = self.run_here("srun", "-N2", "-n4", *health, code=2)
        self.assertIn("--ntasks-per-node=1", result.stderr)

    def test_mpirun_in_a_batch_script(self):
        config = self.make_config("mpirun")
        script = self.folder / "mpirun.sh"
        script.write_text(f"#!/bin/bash\nexec mpirun -n 4 {PROGRAM} train {config}\n")
        job = self.cluster.sbatch("-N4", "-n4", script, cwd=self.folder, env=self.environment)
        self.finished(job)
        self.assert_same_as_reference(config)

    def test_srun_without_pmix(self):
        config = self.make_config("no-pmix")
        result = self.run_here("srun", "--mpi=none", "-N2", "-n2", PROGRAM, "train", config, code=2)
        self.assertIn("srun --mpi=pmix", result.stderr)
        self.assertFalse(harness.run_dir(config).exists())

    def test_doctor(self):
        config = self.make_config("doctor")
        result = self.run_here("srun", "--mpi=pmix", "-N2", "-n2", PROGRAM, "doctor", config,
                               "--json", "parallel.tp=3", code=2)
        found = json.loads(result.stdout)
        self.assertEqual(found["ranks"], 2)
        self.assertIn("the number of ranks", found["findings"][0]["what"])
        result = self.run_here("srun", "--mpi=none", "-N2", "-n2", PROGRAM, "doctor", config,
                               code=2)
        self.assertEqual(result.stdout.count("srun --mpi=pmix"), 1)

    # Rendered scripts

    def test_submitted(self):
        config = self.make_config("submitted")
        self.finished(self.job_of(config))
        self.assert_same_as_reference(config)

    def test_slurm_accepts_every_option(self):
        config = self.make_config("accepted")
        for arguments in [[], ["--array", "train.seed=1,2", "--at-once", 1], ["--chain", 2],
                          ["--spares", 0, "--supervised"], ["--time", "30"]]:
            with self.subTest(arguments):
                self.assertRegex(self.submit(config, "--test-only", *arguments),
                                 r"Job \d+ to start at")

    def test_each_rank_takes_the_gpu_that_slurm_gives_it(self):
        """Two ranks on one node (all nodes here are one host, and so have the same GPUs), on the
        simulated device. With --gpu-bind, each rank sees one GPU of the node; otherwise both."""
        for name, bind, indices in [("bound", "gpu_bind: single:1", [0, 0]), ("free", "", [0, 1])]:
            with self.subTest(name):
                config = self.make_config(f"gpus-{name}", train__device="cuda", data__sequence=16,
                                          numerics__self_check="false")
                profile = self.folder / f"site-{name}.yaml"
                text = TEST_CLUSTER.read_text()
                for old, new in [("program: trireme", f"program: {os.environ['TRIREME_SIM']}"),
                                 ("ranks: 1", "ranks: 2\n  gpus: 2\n  gpu_type: sim"),
                                 ("launcher: mpirun", f"launcher: srun\n  {bind}")]:
                    text = text.replace(old, new)
                profile.write_text(text)
                result = self.run_here(PROGRAM, "slurm", "submit", config, "--cluster", profile,
                                       "--nodes", 1, "train.steps=2")
                self.finished(int(result.stdout))
                for rank in range(2):
                    log = harness.run_dir(config) / f"logs/rank-{rank:05}.jsonl"
                    lines = [json.loads(line) for line in log.read_text().splitlines()]
                    device = next(line for line in lines if line.get("event") == "device")
                    self.assertEqual(device["index"], indices[rank])
                    self.assertTrue(device["uuid"].endswith(f"0{rank}"), device)
                    self.assertTrue(device["simulated"])

    def test_told_before_the_time_limit(self):
        """USR1 arrives 92 s before the end or up to a minute earlier; all ranks save, and the job
        is requeued and continues."""
        config = self.make_config("limited")
        # Only the first start is slow.
        program = self.folder / "slow_at_first"
        program.write_text('#!/bin/sh\n'
                           '[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || unset TRIREME_FAULTS\n'
                           f'exec {PROGRAM} "$@"\n')
        program.chmod(0o755)
        job = self.job_of(config, "--time", "3", "--step-seconds", "0.5", "--save-seconds", "0.5",
                          "run.stop_before_end=never", env=slow(5), program=program)
        self.cluster.wait_state(job, "RUNNING", seconds=60)
        self.cluster.wait_state(job, "PENDING", "COMPLETED", seconds=240)
        self.assertIn("USR1: saving", self.log_of(job))
        self.finished(job, 300)
        self.assertGreaterEqual(int(self.cluster.show("job", job)["Restarts"]), 1)
        self.assertIn("resumed from", self.log_of(job))
        self.assert_same_as_reference(config)

    def test_knows_when_the_job_ends(self):
        """The job requests no signal; the run stops by itself."""
        config = self.make_config("timed")
        script = self.folder / "timed.sh"
        script.write_text(f"#!/bin/bash\nmpirun -n 4 {PROGRAM} train {config} "
                          "run.stop_before_end=35\nexit $?\n")
        arguments = ["-N4", "-n4", "--no-requeue"]
        job = self.cluster.sbatch(*arguments, "--time=1", script, cwd=self.folder,
                                  env={**self.environment, **slow(2)})
        state, code, _ = self.cluster.wait_job(job, 120)
        self.assertEqual((state, code), ("FAILED", 75), self.log_of(job))
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual((reason["code"], reason["kind"]), (75, "time_limit"))
        self.assertIn("the job ends in less than 35 s", self.log_of(job))
        self.finished(self.cluster.sbatch(*arguments, "--time=5", script, cwd=self.folder,
                                          env=self.environment))
        self.assert_same_as_reference(config)

    def test_cancelled_is_not_requeued(self):
        config = self.make_config("cancelled")
        job = self.job_of(config, env=slow(5))
        self.wait_for_step(config)
        self.cluster.cancel(job)
        state, *_ = self.cluster.wait_job(job, 60)
        self.assertEqual(state, "CANCELLED")
        self.assertEqual(self.cluster.show("job", job)["Restarts"], "0")

    def test_preempted_goes_on(self):
        config = self.make_config("preempted")
        job = self.job_of(config, env=slow(1))
        self.wait_for_step(config, 3)
        urgent = self.cluster.sbatch("-N4", "--exclusive", "-p", "urgent", "--wrap",
                                     "sleep 2", cwd=self.folder)
        self.cluster.wait_job(urgent, 120)
        self.assertRegex(self.log_of(job), "(USR1|TERM): saving")
        self.finished(job)
        self.assertIn("resumed from", self.log_of(job))
        self.assert_same_as_reference(config)

    def test_a_killed_rank_is_requeued(self):
        config = self.make_config("killed")
        job = self.job_of(config, "checkpoint.every=5", env=slow(0.5))
        self.wait_for_step(config, 7)
        pids = harness.pids_of_ranks(harness.run_dir(config) / "logs", 4)
        os.kill(pids[2], 9)
        self.finished(job)
        self.assertEqual(self.cluster.show("job", job)["Restarts"], "1")
        self.assertIn("resumed from", self.log_of(job))
        self.assert_same_as_reference(config)

    def test_a_lost_node_is_requeued(self):
        """Slurm requeues the job on the remaining nodes, with the same bits on two of them. The
        lost node can return."""
        config = self.make_config("node")
        job = self.job_of(config, "checkpoint.every=5", nodes=2, env=slow(1))
        self.wait_for_step(config, 6)
        self.cluster.kill_node("n2")
        self.assertEqual(self.cluster.processes_of("n2"), [])
        self.assertNotEqual(self.cluster.processes_of("n1"), [])
        try:
            self.cluster.wait_node("n2", "DOWN", seconds=90)
            self.finished(job)
        finally:
            self.cluster.restart_node("n2")
        self.assertGreaterEqual(int(self.cluster.show("job", job)["Restarts"]), 1)
        self.assert_same_as_reference(config)
        self.cluster.command("srun", "-N1", "-w", "n2", "true")

    def test_wrong_configurations_are_not_requeued(self):
        config = self.make_config("wrong")
        self.finished(self.job_of(config))
        job = self.job_of(config, "data.seed=9", "train.steps=30")
        state, code, _ = self.cluster.wait_job(job, 120)
        self.assertEqual((state, code), ("FAILED", 2), self.log_of(job))

    def test_chain(self):
        config = self.make_config("chain")
        jobs = [int(line) for line in self.submit(config, "--chain", 3).split()]
        self.assertEqual(len(jobs), 3)
        for job in jobs:
            self.finished(job)
        self.assert_same_as_reference(config)
        self.assertIn("finished, step 20 of 20", self.log_of(jobs[2]))

    def test_a_chain_ends_where_a_person_is_needed(self):
        config = self.make_config("broken-chain")
        jobs = self.submit(config, "--chain", 2, f"data.train={self.folder}/absent").split()
        for job in jobs:
            state, code, _ = self.cluster.wait_job(job, 120)
            self.assertEqual((state, code), ("FAILED", 66), self.log_of(job))
        self.assertIn("the previous job of the chain ended with exit code 66", self.log_of(jobs[1]))
        self.assertNotIn("start 0", self.log_of(jobs[1]))

    def test_array(self):
        config = self.make_config("array")
        job = self.job_of(config, "--array", "train.seed=1,2")
        for task in (0, 1):
            self.finished(f"{job}_{task}")
        self.assert_two_seeds(config)

    def assert_two_seeds(self, config):
        tasks = sorted(harness.run_dir(config).glob("task-000[01]-*"))
        digests = {harness.must(harness.run("ckpt", "digest", task / "checkpoints")).stdout.strip()
                   for task in tasks}
        self.assertEqual((len(tasks), len(digests)), (2, 2))
        self.assertIn(self.digest, digests)

    def test_a_task_of_an_array_is_requeued_alone(self):
        """One of the tasks has the same number as the array."""
        config = self.make_config("tasks")
        job = self.job_of(config, "--array", "train.seed=1,2", nodes=2, env=slow(0.5))
        for task in (0, 1):
            folder = harness.run_dir(config)
            log = eventually(lambda: list(folder.glob(f"task-000{task}-*/metrics.jsonl")))
            eventually(lambda: len(log[0].read_text().splitlines()) > 2)
            self.cluster.command("scancel", "--batch", "--signal=USR1", f"{job}_{task}")
            eventually(lambda: "saved" in self.log_of(f"{job}_{task}"))
        for task in (0, 1):
            self.finished(f"{job}_{task}")
            self.assertEqual(self.cluster.show("job", f"{job}_{task}")["Restarts"], "1")
        self.assert_two_seeds(config)


class ClustersEnd(unittest.TestCase):
    """A test cluster ends together with its maker, however that ends."""

    def setUp(self):
        reason = reason_to_skip()
        if reason:
            self.skipTest(reason)

    def test_with_their_maker(self):
        folder = harness.workspace()
        maker = os.fork()
        if maker == 0:
            try:
                cluster = SlurmCluster(folder, nodes=2)
                cluster.start()
                cluster.sbatch("-N2", "--wrap", "sleep 600", cwd=folder)
                (folder / "up").touch()
                time.sleep(120)
            finally:
                os._exit(1)
        end = time.monotonic() + 90
        while not (folder / "up").exists() and time.monotonic() < end:
            time.sleep(0.1)
        keeper = int((folder / "keeper.pid").read_text())
        everything = [keeper, *descendants(keeper)]
        self.assertGreater(len(everything), 4)
        os.kill(maker, 9)
        os.waitpid(maker, 0)
        end = time.monotonic() + 30
        while any(alive(pid) for pid in everything) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual([pid for pid in everything if alive(pid)], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
