"""Failing storage under a run of two ranks (tests/support/faulty_calls.c): full disks, errors of
writes, syncs and reads, interrupted and short calls, slow, hung and read-only file systems, and
logs that cannot be written. A save that fails is abandoned and reported, and training continues.
Damaged data is never used, and the bits are those of the uninterrupted run."""

import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import harness

BUILT = pathlib.Path(harness.PROGRAM).resolve().parent
FAULTY = BUILT / "tests/support/libtrireme_faulty_calls.so"
ROOT = os.geteuid() == 0

# Each entry makes one save fail: that of step i + 1. (file, call, which, error)
LOST = [
    ("shard-00001.safetensors", "write", "1", "ENOSPC"),
    ("shard-00000.safetensors", "write", "2+", "EDQUOT"),
    ("shard-00001.safetensors", "fallocate", "1", "ENOSPC"),
    ("shard-00000.safetensors", "open", "1", "EMFILE"),
    ("shard-00001.safetensors", "open", "1", "ENOMEM"),
    ("shard-00000.safetensors", "write", "1", "EIO"),
    ("shard-00001.safetensors", "fsync", "1", "ENOSPC"),
    ("shard-00000.safetensors", "fsync", "1", "EIO"),
    ("shard-00001.safetensors", "close", "1", "ENOSPC"),
    ("shard-00000.safetensors", "read", "1+", "EIO"),
    ("manifest.json", "open", "1", "ENFILE"),
    ("manifest.json", "write", "1", "ENOSPC"),
    ("manifest.json", "fsync", "1", "EDQUOT"),
    ("manifest.json", "close", "1", "EIO"),
    ("", "mkdir", "*", "ENOSPC"),
    ("", "fsync", "1+", "EIO"),
    ("", "statvfs", "1", "EIO"),
    ("shard-00001.safetensors", "write", "1", "ESTALE"),
    ("shard-00001.safetensors", "write", "1", "EROFS"),
    ("step", "rename", "1", "EIO"),
]
WORDS = {"ENOSPC": "No space left", "EDQUOT": "quota", "EMFILE": "Too many open files",
         "ENFILE": "Too many open files", "ENOMEM": "Cannot allocate memory",
         "EIO": "Input/output error", "ESTALE": "Stale file handle", "EROFS": "read-only"}


class Storage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.steps = len(LOST) + 1
        cls.reference = cls.make_config("reference")
        harness.must(harness.run("train", cls.reference, ranks=2))
        cls.bits = harness.loss_bits(cls.reference)
        cls.digest = harness.digest(cls.reference)

    @classmethod
    def make_config(cls, name, **keys):
        keys = {"train__steps": cls.steps, "checkpoint__every": 1, "checkpoint__keep": 100, **keys}
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, **keys)

    def train(self, config, rules, *arguments, timeout=120):
        env = {"LD_PRELOAD": str(FAULTY), "TRIREME_FAULTY_CALLS": ";".join(rules),
               "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}
        return harness.run("train", config, *arguments, ranks=2, timeout=timeout, env=env)

    def assert_same_as_reference(self, config, losses=True):
        self.assertEqual(self.digest, harness.digest(config))
        if losses:
            self.assertEqual(self.bits, harness.loss_bits(config))

    def steps_of(self, config):
        return {int(p.name[5:]) for p in
                (harness.run_dir(config) / "checkpoints").glob("step-*")}

    def remains(self, config):
        return [p.name for p in (harness.run_dir(config) / "checkpoints").glob(".*")]

    def test_a_save_that_fails_is_given_up_and_training_goes_on(self):
        config = self.make_config("lost")
        rules = []
        for i, (file, call, nth, error) in enumerate(LOST):
            attempt = f"*/checkpoints/.tmp-{i + 1}-1"
            place = (f"*/checkpoints/step-{i + 1:08d}" if file == "step" else
                     f"{attempt}/{file}" if file else attempt)
            rules.append(f"{place}|{call}|{nth}|{error}")
        # Saves do not overlap, so every one is tried.
        result = harness.must(self.train(config, rules, "checkpoint.async=false"))
        self.assertEqual(self.steps_of(config), {self.steps}, result.stderr)
        self.assertEqual(self.remains(config), [])
        for i, (file, _, _, error) in enumerate(LOST):
            lines = re.findall(rf"step {i + 1} could not be saved, training continues: (.*)",
                               result.stderr)
            self.assertEqual(len(lines), 1, f"{LOST[i]}: {result.stderr}")
            self.assertIn(WORDS[error], lines[0], LOST[i])
            self.assertIn(file or f".tmp-{i + 1}-", lines[0], LOST[i])
            self.assertRegex(lines[0], r"rank [01] \(", LOST[i])
        self.assert_same_as_reference(config)

    def test_after_the_rename_it_is_a_warning(self):
        config = self.make_config("hint")
        result = harness.must(self.train(
            config, ["*/checkpoints/LATEST.tmp-*|write|2|ENOSPC",
                     "*/checkpoints/.trash-*|unlink|1|EIO"], "checkpoint.keep=2"))
        self.assertRegex(result.stderr, r"saved step \d+: .*LATEST")
        self.assertIn(self.steps, self.steps_of(config))
        self.assert_same_as_reference(config)

    def test_interrupted_and_short_calls_are_invisible(self):
        config = self.make_config("short")
        rules = ["*/checkpoints/*|write|*|short"]
        for call in ["open", "write", "fsync", "read", "close"]:
            for nth in (2, 7):
                rules.append(f"*/checkpoints/*|{call}|{nth}|EINTR")
        rules += ["*/train/*|read|*|short", "*/train/*|read|3|EINTR", "*.jsonl|write|5|EINTR"]
        result = harness.must(self.train(config, rules))
        self.assertNotIn("could not", result.stderr)
        self.assertEqual(self.steps_of(config), set(range(1, self.steps + 1)))
        self.assert_same_as_reference(config)

    def test_a_disk_that_stays_full_ends_with_74_and_the_older_one_stands(self):
        config = self.make_config("full")
        result = self.train(config, ["*/.tmp-[4-9]-*/shard*|write|*|ENOSPC",
                                     "*/.tmp-[1-9][0-9]-*/shard*|write|*|ENOSPC"])
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("step 4 could not be saved, training continues: ", result.stderr)
        self.assertIn(f"step {self.steps} could not be saved: ", result.stderr)
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertIn("No space left", reason["message"])
        self.assertEqual(self.steps_of(config), {1, 2, 3})
        self.assertFalse((harness.run_dir(config) / "DONE").exists())
        harness.must(self.train(config, []))
        self.assert_same_as_reference(config)

    def test_a_checkpoint_that_cannot_be_read_gives_way_to_an_older_one(self):
        for error in ["EIO", "ESTALE"]:
            with self.subTest(error):
                config = self.make_config(f"unread-{error}")
                harness.must(self.train(config, [], "train.steps=6",
                                        f"optimizer.schedule.steps={self.steps}"))
                (harness.run_dir(config) / "DONE").unlink()
                result = harness.must(self.train(
                    config, [f"*/step-00000006/shard-00001*|read|*|{error}|1"]))
                self.assertRegex(result.stderr, rf"skipped .*shard-00001.*{WORDS[error]}")
                self.assertIn("step-00000005", result.stderr)
                self.assert_same_as_reference(config)

    def test_a_dataset_that_cannot_be_read(self):
        config = self.make_config("data")
        result = self.train(config, ["*/train/shards/*|read|2+|EIO|1"])
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertRegex(result.stderr, r"rank 1 .*shards/.*Input/output error")

    def test_slow_storage(self):
        config = self.make_config("slow")
        result = harness.must(self.train(config, ["*/.tmp-*/shard-00001*|write|1|delay=0.3",
                                                  "*/.tmp-*/shard-00001*|fsync|1+|delay=0.2"],
                                         "train.steps=6",
                                         f"optimizer.schedule.steps={self.steps}"))
        self.assertEqual(self.steps_of(config), set(range(1, 7)), result.stderr)
        # Each checkpoint has the state at the end of its step, although later steps ran meanwhile.
        for step in range(1, 7):
            name = f"checkpoints/step-{step:08d}"
            digests = [harness.must(harness.run("ckpt", "digest", harness.run_dir(c) / name)).stdout
                       for c in (config, self.reference)]
            self.assertEqual(*digests)
        stalls = [m["checkpoint_stall_ms"] for m in harness.metrics(config)]
        self.assertGreater(max(stalls), 100, "who waits for a save says so")
        events = (harness.run_dir(config) / "logs/rank-00000.jsonl").read_text()
        self.assertRegex(events, r'"event":"checkpoint".*"waits":[1-9]')

    def test_hung_storage_ends_the_run(self):
        for name, file in [("shard", ".tmp-3-*/shard-00001*"), ("manifest", ".tmp-3-*/manifest*")]:
            with self.subTest(name):
                config = self.make_config(f"hung-{name}")
                result = self.train(config, [f"*/{file}|write|1|delay=100000"],
                                    "comm.deadline.checkpoint=10", timeout=60)
                self.assertEqual(result.returncode, 85, result.stderr)
                self.assertRegex(result.stderr, r"step 3: .*checkpoints.*does not respond")
                self.assertLessEqual({1, 2}, self.steps_of(config))
                self.assertNotIn(3, self.steps_of(config))
                harness.must(self.train(config, []))
                self.assert_same_as_reference(config)

    def test_killed_before_a_requested_save_has_ended(self):
        """Row 23 of docs/faults.md: the grace period is shorter than the save."""
        config = self.make_config("grace")
        log = self.folder / "grace.log"
        process = harness.start("train", config, "checkpoint.every=3", ranks=2, log=log, env={
            "LD_PRELOAD": str(FAULTY), "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
            "TRIREME_FAULTY_CALLS": "*/.tmp-[4-9]-*/shard-00001*|fsync|1|delay=60"})
        try:
            while not (harness.run_dir(config) / "checkpoints/step-00000003").exists():
                self.assertIsNone(process.poll(), log.read_text())
            pids = harness.pids_of_ranks(harness.run_dir(config) / "logs", 2)
            os.kill(process.pid, signal.SIGUSR2)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(timeout=3)
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
            process.wait(timeout=30)
        finally:
            harness.end_group(process)
        self.assertEqual(self.steps_of(config), {3})
        harness.must(self.train(config, []))
        self.assert_same_as_reference(config)

    def test_hung_deletion_does_not_keep_the_run_from_ending(self):
        config = self.make_config("hung-gc")
        result = self.train(config, ["*/.trash-*/*|unlink|1|delay=100000"], "checkpoint.keep=2",
                            "comm.deadline.checkpoint=3", timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_same_as_reference(config)

    def test_logs_that_nobody_takes(self):
        config = self.make_config("lines")
        result = harness.must(self.train(
            config, ["*/logs/*|write|2+|ENOSPC", "*/tensorboard/*|write|*|EIO",
                     "*/metrics.jsonl|write|3+|ENOSPC"]))
        self.assertRegex(result.stderr, "cannot write .*metrics.jsonl: No space left on device.*; "
                                        "lines are missing from step \\d+ on")
        self.assertRegex(result.stderr, "metrics.jsonl lacks \\d+ lines? that could")
        self.assertRegex(result.stderr, "rank-00000.jsonl lacks \\d+ lines? that could")
        self.assert_same_as_reference(config, losses=False)
        config = self.make_config("no-logs")
        result = harness.must(self.train(config, ["*/tensorboard/*|open|*|ENOSPC",
                                                  "*/metrics.jsonl|open|*|EROFS"]))
        self.assertRegex(result.stderr, "cannot write metrics.jsonl, training continues")
        self.assert_same_as_reference(config, losses=False)

    def test_output_that_nobody_reads(self):
        words = "'" + "' '".join(harness.command(["train", "CONFIG"], 0)[:-1]) + "'"
        for name, redirection in [("full", ">/dev/full 2>/dev/full"), ("closed", ">&- 2>&-"),
                                  ("pipe", "2>&1 | head -c 20 >/dev/null; exit ${PIPESTATUS[0]}")]:
            with self.subTest(name):
                config = self.make_config(f"output-{name}")
                script = f"{words} '{config}' {redirection}"
                code = subprocess.run(["bash", "-c", script], env=harness.ENVIRONMENT, timeout=120,
                                      stdin=subprocess.DEVNULL, check=False).returncode
                self.assertEqual(code, 0)
                self.assert_same_as_reference(config)

    @unittest.skipUnless(ROOT, "needs to mount a file system: run as root")
    def test_read_only_at_the_start(self):
        for key in ["run.dir", "checkpoint.dir"]:
            with self.subTest(key):
                config = self.make_config(f"read-only-{key}")
                disk = self.folder / f"disk-{key}"
                disk.mkdir()
                words = "' '".join(harness.command(["train", config, f"{key}={disk}/here"], 2))
                script = (f"mount -t tmpfs -o size=9m,ro none "
                          f"{disk} && '{words}'")
                result = subprocess.run(
                    [harness.OWN_MOUNTS, "bash", "-c", script],
                    env=harness.ENVIRONMENT, capture_output=True, text=True, timeout=120,
                    check=False)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(key, result.stderr)
                self.assertIn("read-only", result.stderr)

    def test_clocks_that_are_off_and_jump(self):
        config = self.make_config("clocks")
        lost = f"optimizer.schedule.steps={self.steps}"
        for steps, offset in [(5, "1:3600:-7200"), (10, "0:-3600:7200"), (self.steps, "0:3600")]:
            env = {"LD_PRELOAD": str(FAULTY), "TRIREME_CLOCK_OFFSET": offset,
                   "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}
            harness.must(harness.run("train", config, f"train.steps={steps}", lost,
                                     "comm.deadline.step=30", ranks=2, env=env))
        times = [m["time"] for m in harness.metrics(config)]
        self.assertGreater(max(times) - min(times), 3000, "the clock was off")
        self.assert_same_as_reference(config)

    def test_the_plan_strikes(self):
        """Shows that the faults happen. Without them, every test above that expects success would
        pass."""
        result = self.train(self.make_config("strikes"), ["*/logs/rank-00000*|open|1|EIO"])
        self.assertEqual(result.returncode, 74, result.stderr)
        result = self.train(self.make_config("strikes"), ["nonsense"])
        self.assertEqual(result.returncode, 99, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
