"""Runs trireme launch as a whole job of a real Slurm with a topology: failure groups, variables in
spite of --export=NONE, and a batch step that dies while its node is alive."""

import contextlib
import json
import os
import pathlib
import signal
import sys
import unittest

import harness
from launch_harness import deputies, eventually

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
from slurm_cluster import SlurmCluster, reason_to_skip  # noqa: E402
from slurm_keeper import descendants  # noqa: E402

SWITCHES = """\
SwitchName=s0 Nodes=n[1-2]
SwitchName=s1 Nodes=n[3-4]
SwitchName=top Switches=s[0-1]
"""
# Sites that require --export=NONE have their modules set the variables in the script.
SCRIPT = """#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=1 --no-kill --requeue --open-mode=append --time=10
#SBATCH --output={log} --export=NONE
export PATH='{path}' {variables}
exec {program} launch {options} -- train {config}
"""


class LaunchClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        cls.folder = harness.workspace()
        slurm = cls.folder / "slurm"
        slurm.mkdir()
        (slurm / "topology.conf").write_text(SWITCHES)
        cls.cluster = SlurmCluster(slurm, extra_config="TopologyPlugin=topology/tree\n")
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.stop)
        cls.datasets = harness.make_datasets(cls.folder)

    def make_config(self, name, steps):
        return harness.write_config(self.folder / f"{name}.yaml", self.datasets, "small", "bf16",
                                    train__steps=steps, checkpoint__every=5)

    def submit(self, config, *options, faults=""):
        """Submits a job and returns its id and the log of its launch."""
        log = config.with_suffix(".log")
        script = config.with_suffix(".sh")
        environment = {**self.cluster.environment, "TRIREME_SITE_DIR": harness.NO_SITE,
                       "TRIREME_FAULTS": faults}
        variables = " ".join(f"{k}='{v}'" for k, v in environment.items()
                             if k.startswith(("OMPI_", "OMP_", "SLURM_CONF", "TRIREME_")) and v)
        script.write_text(SCRIPT.format(
            log=log, path=environment["PATH"], variables=variables, config=config,
            program=pathlib.Path(harness.PROGRAM).resolve(), options=" ".join(options)))
        return self.cluster.sbatch(script), log

    def events(self, config, name):
        journal = harness.run_dir(config) / "journal.jsonl"
        if not journal.exists():
            return []
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        return [e for e in events if e["event"] == name]

    def assert_completes(self, job, log):
        state, code, _ = self.cluster.wait_job(job)
        self.assertEqual((state, code), ("COMPLETED", 0), log.read_text()[-4000:])

    def test_switches_are_failure_groups(self):
        for launcher in ("mpirun", "srun"):
            with self.subTest(launcher):
                config = self.make_config(launcher, 5)
                self.assert_completes(*self.submit(config, "--launcher", launcher))
                launch = self.events(config, "launch")[0]
                self.assertEqual(dict(zip(launch["nodes"], launch["groups"])),
                                 {"n1": "s0", "n2": "s0", "n3": "s1", "n4": "s1"})

    # The kill also ends the supervisor and its srun processes. The deputy, on another node, has the
    # time that Slurm gives the job's other steps (KillWait) to requeue the job.
    def test_a_killed_batch_step_is_requeued(self):
        reference = self.make_config("reference", 40)
        harness.must(harness.run("train", reference, ranks=4))
        config = self.make_config("step", 40)
        job, log = self.submit(config, faults="step.forward:*:*:sleep=0.05")
        run = harness.run_dir(config)
        eventually(lambda: list(run.glob("checkpoints/step-*")), 90, "a checkpoint")
        eventually(lambda: deputies(job), 30, "a deputy")
        supervisor = self.events(config, "begin")[0]["pid"]
        for pid in [supervisor, *descendants(supervisor)]:
            with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: len(self.events(config, "begin")) > 1, 120, "another start",
                   lambda: f"{self.cluster.show('job', job)}\n{log.read_text()[-4000:]}")
        self.assert_completes(job, log)
        self.assertEqual(int(self.cluster.show("job", job)["Restarts"]), 1)
        self.assertEqual(harness.digest(config), harness.digest(reference))
        self.assertEqual(harness.loss_bits(config), harness.loss_bits(reference))


if __name__ == "__main__":
    unittest.main(verbosity=2)
