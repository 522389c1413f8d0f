"""Runs trireme launch on several hosts that die, fall silent and come back. They have their own
networks, processes and memory (tests/support/hosts.py). Needs root."""

import os
import pathlib
import sys
import unittest

import harness
from launch_harness import Launch, eventually

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import hosts  # noqa: E402

STEPS = 40
SLOW = "step.forward:*:*:sleep=0.02"
ENTER = os.path.join(hosts.HERE, "enter_host.sh")


@unittest.skipIf(hosts.reason_to_skip(), hosts.reason_to_skip())
class LaunchNodesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.reference = cls.make_config("reference")
        harness.must(harness.run("train", cls.reference, ranks=2))
        cls.bits = harness.loss_bits(cls.reference)
        cls.digest = harness.digest(cls.reference)

    @classmethod
    def make_config(cls, name, **keys):
        return harness.write_config(
            cls.folder / f"{name}.yaml", cls.datasets, "small", "bf16",
            **{"train__steps": STEPS, "checkpoint__every": 5, **keys})

    def setUp(self):
        self.hosts = hosts.Hosts(3)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.close)

    def start(self, config, *arguments, options=("--spares", 1)):
        path = config.with_suffix(".hosts")
        path.write_text("".join(f"{name} slots=1\n" for name in self.hosts.names))
        pids = " ".join(f"{n}={self.hosts.pid(n)}" for n in self.hosts.names)
        return Launch(
            config, *arguments, options=("--hosts", path, "--ssh", ENTER, *options),
            env={**hosts.ENVIRONMENT, **hosts.LAUNCHER_ENVIRONMENT, "TRIREME_HOSTS": pids,
                 "TRIREME_FAULTS": SLOW},
            prefix=("nsenter", "-t", str(self.hosts.switch.pid), "-n", "--"))

    def kill_host(self, name):
        holder = self.hosts.holders[name]
        holder.kill()
        holder.wait()

    def assert_good_end(self, launch, config, causes, nodes):
        self.assertEqual(launch.wait(), 0, launch.text())
        self.assertEqual(launch.causes(), causes)
        self.assertEqual(launch.events("launch")[-1]["nodes"], nodes)
        launch.assert_no_process()
        self.assertEqual(self.digest, harness.digest(config))
        self.assertEqual(self.bits, harness.loss_bits(config))
        return launch.report()

    def test_a_host_dies_and_the_spare_takes_its_place(self):
        for victim, nodes in (("host1", ["host0", "host2"]), ("host0", ["host1", "host2"])):
            with self.subTest(victim=victim):
                self.setUp()
                config = self.make_config(f"dies-{victim}")
                with self.start(config) as launch:
                    launch.wait_for("first_step")
                    eventually(lambda: list(launch.run.glob("checkpoints/step-*")), 60)
                    self.kill_host(victim)
                    report = self.assert_good_end(launch, config, ["node_death", "finished"], nodes)
                print(f"{victim} killed: recovery {report['attempts'][1]['recovery_seconds']:.1f} s"
                      f" after {report['attempts'][0]['detect_seconds']:.1f} s", flush=True)

    # No connection is reset, so only silence shows the loss. The lost host's ranks must not count
    # later.
    def test_a_host_falls_silent_and_comes_back(self):
        config = self.make_config("silent")
        with self.start(config) as launch:
            launch.wait_for("first_step")
            eventually(lambda: list(launch.run.glob("checkpoints/step-*")), 60)
            self.hosts.set_link("host1", "down")
            self.assertIn("no heartbeat", launch.wait_for("node_lost")["why"])
            launch.wait_for("launch", 2)
            self.hosts.set_link("host1", "up")
            self.assert_good_end(launch, config, ["node_death", "finished"], ["host0", "host2"])

    def test_without_spares_it_goes_on_with_fewer(self):
        config = self.make_config("fewer")
        with self.start(config, options=("--min-nodes", 1, "--spares", 1)) as launch:
            launch.wait_for("first_step")
            self.kill_host("host2")
            launch.wait_for("node_lost")
            self.kill_host("host1")
            report = self.assert_good_end(launch, config, ["node_death", "finished"], ["host0"])
            self.assertEqual(report["attempts"][1]["ranks"], 1)

    # Nothing is on disk, so the dead host's shards are read from its partner's memory.
    def test_a_partners_copy_replaces_the_memory_of_a_dead_host(self):
        config = self.make_config("partner", checkpoint__every=1000, checkpoint__memory_every=2)
        with self.start(config) as launch:
            launch.wait_for("first_step")
            def copied():
                memory = pathlib.Path("/proc", str(self.hosts.pid("host0")), "root", "dev", "shm")
                return list(memory.glob("trireme-*/memory/partner/host1/step-*"))
            eventually(copied, 60, "a copy at the partner")
            self.kill_host("host1")
            self.assert_good_end(launch, config, ["node_death", "finished"], ["host0", "host2"])
            self.assertGreater(launch.events("first_step")[1]["from"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
