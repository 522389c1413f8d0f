"""Planned faults (TRIREME_FAULTS) in a run of two ranks. Each rank is killed at every fault point;
the next start resumes from what is left and is killed at the next point. Other failures follow. The
oracle is the digest and the loss bits of the uninterrupted run."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import time
import unittest

import harness

STEPS = 12
EVERY = 2
# The points that only rank 0 passes.
ROOT_ONLY = re.compile(r"ckpt\.(keys|provenance|manifest|directory|fence|rename|latest|gc_)|"
                       r"finish\.done|file\.rename")
# The points that only a run with a checkpoint passes.
LOADING = re.compile(r"load\.")


def is_running(pid):
    """Returns whether the process runs; a zombie does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        # Some points of a save are passed only if it is signed and encrypted.
        harness.must(harness.run("audit", "keygen", "--out", cls.folder / "key"))
        harness.must(harness.run("keys", "create", "--out", cls.folder / "site.key"))
        harness.ENVIRONMENT["TRIREME_ENCRYPTION__KEYS"] = f"[file:{cls.folder}/site.key]"
        cls.datasets = harness.make_datasets(cls.folder)
        cls.reference = cls.make_config("reference")
        harness.must(harness.run("train", cls.reference, ranks=2))
        cls.bits = harness.loss_bits(cls.reference)
        cls.digest = harness.digest(cls.reference)
        # This run is in the state after a kill: some steps are done and DONE is missing.
        cls.begun = cls.make_config("begun")
        cls.killed(cls.begun, "step.end:1:8:kill")

    @classmethod
    def make_config(cls, name, **keys):
        keys = {"train__steps": STEPS, "checkpoint__every": EVERY, "checkpoint__keep": 2,
                "audit__key": cls.folder / "key", **keys}
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, "small", "bf16",
                                    **keys)

    @classmethod
    def begun_copy(cls, name):
        config = cls.make_config(name)
        shutil.copytree(harness.run_dir(cls.begun), harness.run_dir(config))
        return config

    @classmethod
    def train(cls, config, plan="", *arguments, timeout=120, env=None):
        return harness.run("train", config, *arguments, ranks=2, timeout=timeout,
                           env={"TRIREME_FAULTS": plan, **(env or {})})

    @classmethod
    def killed(cls, config, plan):
        result = cls.train(config, plan)
        assert result.returncode != 0, result.stderr
        assert f"planned fault: {plan}" in result.stderr, result.stderr
        return result

    def assert_same_as_reference(self, config, why=""):
        self.assertEqual(self.digest, harness.digest(config), why)
        self.assertEqual(self.bits, harness.loss_bits(config), why)

    def assert_sound(self, config, why):
        """After any death, the newest checkpoint is valid, LATEST is not newer, and no rank is
        left."""
        run_dir = harness.run_dir(config)
        checkpoints = run_dir / "checkpoints"
        steps = sorted(checkpoints.glob("step-*"))
        if steps:
            result = harness.run("ckpt", "verify", checkpoints)
            self.assertEqual(result.returncode, 0, f"{why}\n{result.stdout}{result.stderr}")
        latest = checkpoints / "LATEST"
        if latest.exists():
            self.assertTrue((checkpoints / latest.read_text().strip()).is_dir(), why)
        for path in (run_dir / "logs").glob("rank-*.jsonl"):
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                if entry.get("event") == "start":
                    self.wait_for_end_of(entry["pid"], why)
        metrics = run_dir / "metrics.jsonl"
        if metrics.exists() and steps:
            done = [json.loads(x)["step"] for x in metrics.read_text().splitlines()]
            newest = int(steps[-1].name[5:])
            # At most one interval is lost, and the one whose save was in progress.
            self.assertLessEqual(max(done, default=0) - newest, 2 * EVERY + 1, why)

    def wait_for_end_of(self, pid, why):
        end = time.monotonic() + 10
        while is_running(pid):
            self.assertLess(time.monotonic(), end, f"{why}: rank {pid} is left")
            time.sleep(0.05)

    def sites(self):
        listed = json.loads(harness.must(harness.run("config", "faults", "--json")).stdout)
        # memory_checkpoints_test.py tests the sites of checkpoints in memory.
        return [site["site"] for site in listed["sites"] if not site["site"].startswith("memory.")]

    def test_sigkill_of_each_rank_at_every_site(self):
        # memory_checkpoints_test.py kills ranks at memory.*.
        cells = [(site, rank) for site in self.sites() for rank in (0, 1)
                 if not site.startswith("memory.") and (rank == 0 or not ROOT_ONLY.match(site))]
        self.assertGreater(len(cells), 60)
        # Run two at a time: for half of its time, a killed run is an mpirun that waits for ranks to
        # end.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            killed = sum(pool.map(self.kill_one_after_the_other, [cells[0::2], cells[1::2]]))
        self.assertEqual(killed, len(cells))

    def kill_one_after_the_other(self, cells):
        """Returns the number of kills. Each start resumes from what the previous one has left."""
        config, killed = None, 0
        for site, rank in cells:
            plan = f"{site}:{rank}:1:kill"
            for attempt in range(2):
                if config is None:
                    begin = self.begun_copy if LOADING.match(site) else self.make_config
                    config = begin(f"cell-{site}-{rank}")
                result = self.train(config, plan)
                struck = f"planned fault: {plan}" in result.stderr
                done = (harness.run_dir(config) / "DONE").exists()
                if struck:
                    killed += 1
                    self.assertTrue(done or result.returncode != 0, f"{plan}\n{result.stderr}")
                    self.assert_sound(config, plan)
                else:
                    self.assertEqual(result.returncode, 0, f"{plan}\n{result.stderr}")
                if done:
                    self.assert_same_as_reference(config, plan)
                    config = None
                if struck:
                    break
                self.assertEqual(attempt, 0, f"{plan} was not passed")
        if config is not None:
            harness.must(self.train(config))
            self.assert_same_as_reference(config)
        return killed

    def test_other_deaths(self):
        cases = [("segv", 0, r"(?i)signal.*11|segmentation"), ("abort", 1, r"(?i)signal.*6|abort"),
                 ("throw", 1, r"planned fault at step.backward"),
                 ("errno=EIO", 0, r"step.backward"),
                 ("exit=0", 1, r"rank 1"), ("exit=7", 0, r"rank 0")]
        for action, rank, words in cases:
            with self.subTest(action):
                config = self.begun_copy(f"death-{action}")
                result = self.killed(config, f"step.backward:{rank}:3:{action}")
                self.assertRegex(result.stderr, words)
                self.assertFalse((harness.run_dir(config) / "DONE").exists())
                self.assert_sound(config, action)
                if action in ("throw", "errno=EIO"):
                    path = harness.run_dir(config) / "exit_reason.json"
                    reason = json.loads(path.read_text())
                    self.assertEqual((reason["rank"], reason["phase"]), (rank, "train"))
                harness.must(self.train(config))
                self.assert_same_as_reference(config, action)

    def test_a_plan_means_its_attempt(self):
        config = self.make_config("attempt")
        plan = "step.end@2:0:2:kill"
        for attempt, dies in [("1", False), ("2", True), ("3", False)]:
            result = self.train(config, plan, env={"TRIREME_GENERATION": attempt})
            self.assertEqual(result.returncode != 0, dies, result.stderr)
            if attempt == "1":
                shutil.rmtree(harness.run_dir(config))
        self.assert_same_as_reference(config)

    def test_a_fault_that_comes_back_costs_no_checkpoint(self):
        """Row 52 of docs/faults.md without a launcher: only people or `trireme launch` can give up.
        """
        config = self.begun_copy("loop")
        checkpoints = harness.run_dir(config) / "checkpoints"
        before = sorted(p.name for p in checkpoints.glob("step-*"))
        for _ in range(3):
            self.killed(config, "step.optimizer:1:1:kill")
            self.assert_sound(config, "loop")
            self.assertEqual(before, sorted(p.name for p in checkpoints.glob("step-*")))
        harness.must(self.train(config))
        self.assert_same_as_reference(config)

    def test_a_bad_plan_is_a_usage_error(self):
        config = self.make_config("plan")
        for plan, words in [("ckpt.renam:0:1:kill", "did you mean ckpt.rename?"),
                            ("step.end:0:1:kil", "did you mean kill?")]:
            result = self.train(config, plan)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(words, result.stderr)
        self.assertFalse(harness.run_dir(config).exists())

    def test_a_slow_rank_changes_nothing(self):
        config = self.make_config("slow")
        harness.must(self.train(config, "step.forward:1:*:sleep=0.02,"
                                        "ckpt.shard_write:0:*:sleep=0.2"))
        self.assert_same_as_reference(config)

    def test_a_slow_rank_is_named(self):
        for zero in (0, 3):
            config = self.make_config(f"straggler-{zero}", train__straggler_every=2,
                                      parallel__zero=zero)
            # This is far longer than a rank waits for a core when other tests run at the same time.
            plan = {"TRIREME_FAULTS": "step.forward:2:*:sleep=0.3"}
            result = harness.must(harness.run("train", config, ranks=4, env=plan))
            named = re.findall(r"straggler: rank (\d+) \(host", result.stderr)
            self.assertEqual(set(named), {"2"}, result.stderr)
            self.assert_same_as_reference(config)

    def test_data_damaged_on_its_way_is_not_used(self):
        config = self.begun_copy("transit")
        result = harness.must(self.train(config, "load.shard:1:1:corrupt"))
        self.assertRegex(result.stderr, r"skipped .*rank 1.*shard-.*digest")
        self.assert_same_as_reference(config)

    def test_a_bit_flipped_on_one_rank_is_found(self):
        config = self.make_config("silent", train__compare_every=1)
        result = self.train(config, "step.weights:1:3:corrupt")
        self.assertEqual(result.returncode, 76, result.stderr)
        self.assertRegex(result.stderr, "ranks that should hold the same parameters do not")

    def test_a_stopped_rank_is_a_hang(self):
        config = self.begun_copy("stopped")
        log = self.folder / "stopped.log"
        process = harness.start("train", config, "comm.deadline.step=2", ranks=2, log=log,
                                env={"TRIREME_FAULTS": "step.backward:1:4:stop"})
        try:
            # The rank that waits for the stopped one ends, and names it.
            while "rank 1" not in log.read_text() or "Hang" not in log.read_text():
                if process.poll() is not None:
                    break
                self.wait_a_little(process)
        finally:
            harness.end_group(process)
        self.assertRegex(log.read_text(), r"did not finish within 2.*rank 1")

    def wait_a_little(self, process):
        try:
            process.wait(timeout=0.2)
        except Exception:
            pass


class Signals(unittest.TestCase):
    """Row 24 of docs/faults.md: one or two signals during start, load and saves."""

    @classmethod
    def setUpClass(cls):
        Faults.setUpClass()

    def stopped_at(self, plan, name, *numbers):
        config = Faults.begun_copy(name)
        log = Faults.folder / f"{name}.log"
        process = harness.start("train", config, ranks=2, log=log, env={"TRIREME_FAULTS": plan})
        try:
            while "planned fault:" not in log.read_text():
                self.assertIsNone(process.poll(), log.read_text())
            for number in numbers:
                os.kill(process.pid, number)
            code = process.wait(timeout=60)
        finally:
            harness.end_group(process)
        return config, code, log.read_text()

    def test_at_any_time_and_twice(self):
        for number, point in enumerate(["start.joined", "load.shard", "ckpt.shard_sync",
                                        "ckpt.rename", "step.optimizer"]):
            with self.subTest(point):
                config, code, text = self.stopped_at(f"{point}:0:1:sleep=1", f"signal-{number}",
                                                     signal.SIGUSR2, signal.SIGUSR1)
                self.assertEqual(code, 75, text)
                reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
                self.assertIn(reason["signal"], (signal.SIGUSR1, signal.SIGUSR2))
                harness.must(Faults.train(config))
                self.assertEqual(Faults.digest, harness.digest(config))
                self.assertEqual(Faults.bits, harness.loss_bits(config))


if __name__ == "__main__":
    unittest.main(verbosity=2)
