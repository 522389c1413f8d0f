"""Tests what users see when they stop a run or look at its state: Ctrl-C on mpirun, Open MPI's
banners, and `trireme status`."""

import json
import os
import signal
import subprocess
import time
import unittest

import harness
from launch_harness import Launch, eventually

BANNERS = ("MPI_ABORT was invoked", "Primary job", "non-zero exit")


class StopsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    def make_config(self, name, **keys):
        return harness.write_config(self.folder / f"{name}.yaml", self.datasets, "small", "fp32",
                                    **{"train__steps": 60, "checkpoint__every": 0, **keys})

    def status(self, config):
        return json.loads(harness.must(
            harness.run("status", harness.run_dir(config), "--json")).stdout)

    def assert_no_banner(self, text):
        for banner in BANNERS:
            self.assertNotIn(banner, text)

    def start(self, config, sleep, *options):
        """Starts plain mpirun with two ranks and steps of this length, and waits for the first
        step."""
        log = config.with_suffix(".log")
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [harness.MPIEXEC, "-n", "2", *options, harness.PROGRAM, "train", str(config)],
                env={**harness.ENVIRONMENT, "TRIREME_FAULTS": f"step.forward:*:*:sleep={sleep}"},
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        eventually(lambda: (harness.run_dir(config) / "metrics.jsonl").exists() and
                   (harness.run_dir(config) / "metrics.jsonl").read_text(), 60, "a step")
        return process, log

    def test_ctrl_c_on_mpirun(self):
        config = self.make_config("ctrl-c")
        process, log = self.start(config, 0.01)
        self.assertEqual(self.status(config)["state"], "running")
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
        self.assertIn("Ctrl-C: saves a checkpoint if", log.read_text())
        state = self.status(config)
        self.assertEqual(state["state"], "stopped", log.read_text())
        self.assertGreater(state["step"], 0)
        self.assertTrue(list(harness.run_dir(config).glob("checkpoints/step-*")))

    # The run warns about this beforehand, and SIGUSR2 saves in any case, without a banner about a
    # failed job.
    def test_steps_that_take_longer_than_mpirun_waits(self):
        config = self.make_config("long")
        process, log = self.start(config, 0.3, "--mca", "odls_base_sigkill_timeout", "0")
        eventually(lambda: "Ctrl-C would lose" in log.read_text(), 60, "a warning")
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(process.wait(60), 75, log.read_text())
        self.assertEqual(self.status(config)["state"], "stopped")
        self.assert_no_banner(log.read_text())

    # oneDNN's fp32 products use the stack pointer for data on the heap, which the frame of a signal
    # handler would overwrite. The products of this model take most of a step's time.
    def test_signals_while_products_are_computed(self):
        config = self.folder / "products.yaml"
        config.write_text(
            "model: {preset: tiny-gpt2}\n"
            f"data: {{train: {self.datasets[0]}, sequence: 128}}\n"
            "train: {steps: 100000, global_batch: 16, micro_batch: 16, precision: fp32, "
            "threads: 1}\n"
            f"run: {{dir: {self.folder / 'products'}}}\n")
        for _ in range(3):
            log = config.with_suffix(".log")
            process = harness.start("train", config, ranks=0, log=log)
            self.addCleanup(harness.end_group, process)
            eventually(lambda: "matrix products" in log.read_text(), 60, "the first step")
            for _ in range(20):
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGHUP)
                time.sleep(0.02)
            self.assertEqual(process.wait(60), 75, log.read_text())
            log.unlink()

    # UCX handles SIGHUP from the start of the program, unless it is kept from doing so.
    def test_the_end_of_a_terminal_ends_a_command(self):
        process = subprocess.Popen([harness.PROGRAM, "bench", "loader", "--duration", "60"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        process.stderr.readline()  # it has begun
        process.send_signal(signal.SIGHUP)
        process.stderr.close()
        self.assertEqual(process.wait(60), -signal.SIGHUP)

    def test_usage_errors_have_no_banner(self):
        config = self.make_config("usage")
        result = harness.run("train", config, "parallel.tp=7", ranks=2)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assert_no_banner(result.stderr + result.stdout)

    def test_status_of_a_launch(self):
        config = self.make_config("launched", checkpoint__every=5)
        with Launch(config, options=("--ranks-per-node", 2),
                    env={"TRIREME_FAULTS": "step.forward:*:*:sleep=0.05"}) as launch:
            launch.wait_for("first_step")
            self.assertEqual(launch.report()["attempts"][0]["cause"], "running")
            self.assertEqual(launch.report()["failures"], 0)
            eventually(lambda: self.status(config)["step"] > 6, 60, "steps")
            state = self.status(config)
            self.assertEqual((state["state"], state["steps"]), ("running", 60))
            self.assertGreater(state["seconds_left"], 0)
            os.kill(launch.rank(1), signal.SIGKILL)
            self.assertEqual(launch.wait(), 0, launch.text())
        state = self.status(config)
        self.assertEqual((state["state"], state["step"]), ("finished", 60))
        self.assertEqual(state["last_fault"]["cause"], "process_death")
        self.assertIn("rank 1 on local0 died", state["last_fault"]["what"])
        text = harness.must(harness.run("status", harness.run_dir(config))).stdout
        self.assertIn("state       finished", text)

    def test_what_is_no_run(self):
        result = harness.run("status", self.folder)
        self.assertEqual(result.returncode, 66, result.stderr)
        config = self.make_config("plain", train__steps=2)
        harness.must(harness.run("train", config))
        result = harness.run("launch", "report", harness.run_dir(config))
        self.assertEqual(result.returncode, 66, result.stderr)
        self.assertIn("not started by 'trireme launch'", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
