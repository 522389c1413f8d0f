"""Kills ranks at random moments and resumes, also with other numbers of ranks; the bits are those
of the uninterrupted run. After SIGTERM and the user signals, the run saves and exits with code 75.
"""

import json
import os
import random
import re
import signal
import time
import unittest

import harness

KILLS = 12
SEED = 20240229


class KillAndResume(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.reference = cls.make_config("reference")
        started = time.monotonic()
        harness.must(harness.run("train", cls.reference, ranks=2))
        cls.seconds = time.monotonic() - started
        cls.bits = harness.loss_bits(cls.reference)
        cls.digest = harness.digest(cls.reference)

    @classmethod
    def make_config(cls, name):
        return harness.write_config(
            cls.folder / f"{name}.yaml",
            cls.datasets,
            "small",
            "bf16",
            train__steps=60,
            checkpoint__every=5,
        )

    def assert_same_as_reference(self, config):
        self.assertEqual(self.digest, harness.digest(config))
        self.assertEqual(self.bits, harness.loss_bits(config))

    def finish(self, config, ranks):
        harness.must(harness.run("train", config, ranks=ranks))

    def test_sigkill_at_random_moments(self):
        chance = random.Random(SEED)
        config = None
        killed = 0
        for start in range(4 * KILLS):
            if killed == KILLS:
                break
            if config is None:
                config = self.make_config(f"killed-{start}")
            ranks = chance.choice([1, 2, 2, 4])
            log = self.folder / "killed.log"
            process = harness.start("train", config, ranks=ranks, log=log)
            try:
                pids = harness.pids_of_ranks(harness.run_dir(config) / "logs", ranks)
                time.sleep(chance.uniform(0.0, 0.6 * self.seconds))
                victim = chance.randrange(ranks)
                try:
                    os.kill(pids[victim], signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass
                code = process.wait(timeout=60)
            finally:
                harness.end_group(process)
            done = (harness.run_dir(config) / "DONE").exists()
            # A kill after DONE changes the exit code, but not the result.
            self.assertTrue(done or code != 0, log.read_text()[-2000:])
            if done:
                self.assert_same_as_reference(config)
                config = None
        if config is not None:
            self.finish(config, 2)
            self.assert_same_as_reference(config)
        self.assertEqual(killed, KILLS)

    def test_the_message_names_rank_and_host(self):
        config = self.make_config("named")
        log = self.folder / "named.log"
        process = harness.start("train", config, ranks=2, log=log)
        try:
            pids = harness.pids_of_ranks(harness.run_dir(config) / "logs", 2)
            os.kill(pids[1], signal.SIGKILL)
            self.assertNotEqual(process.wait(timeout=60), 0)
        finally:
            harness.end_group(process)
        text = log.read_text()
        self.assertRegex(text, r"rank 1 .*(on node|on) \S+")
        self.assertRegex(text, r"(?i)killed|signal 9")

    def test_other_numbers_of_ranks(self):
        config = self.make_config("elastic")
        for steps, ranks in [(20, 4), (40, 1), (60, 2)]:
            harness.must(
                harness.run("train", config, f"train.steps={steps}",
                            "optimizer.schedule.steps=60", ranks=ranks)
            )
        self.assert_same_as_reference(config)

    def test_signals_save_and_ask_for_requeue(self):
        for number in [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGXCPU]:
            with self.subTest(signal=number):
                config = self.make_config(f"signal-{number}")
                log = self.folder / f"signal-{number}.log"
                process = harness.start("train", config, "checkpoint.every=0", ranks=2, log=log)
                try:
                    pids = harness.pids_of_ranks(harness.run_dir(config) / "logs", 2)
                    self.wait_for_step(config)
                    # A signal to one rank is enough, as all ranks agree at the next step.
                    os.kill(pids[1], number)
                    self.assertEqual(process.wait(timeout=60), 75, log.read_text()[-2000:])
                finally:
                    harness.end_group(process)
                reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
                self.assertEqual((reason["code"], reason["signal"]), (75, number))
                if number == signal.SIGXCPU:
                    self.assertIn("limit of processor time (SIGXCPU", reason["message"])
                self.finish(config, 2)
                self.assert_same_as_reference(config)

    def wait_for_step(self, config):
        path = harness.run_dir(config) / "metrics.jsonl"
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if path.exists() and re.search(r'"step":\s*[1-9]', path.read_text()):
                return
            time.sleep(0.02)
        raise AssertionError("no step was done")


if __name__ == "__main__":
    unittest.main(verbosity=2)
