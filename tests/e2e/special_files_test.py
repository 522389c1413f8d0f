"""Puts a FIFO in the place of each file that the program opens. Every command ends by itself, with
the exit code and message for a damaged file, and none waits for the FIFO's other end."""

import contextlib
import os
import pathlib
import unittest

import harness

FAULTY = (pathlib.Path(harness.PROGRAM).resolve().parent /
          "tests/support/libtrireme_faulty_calls.so")


@contextlib.contextmanager
def fifo_at(path):
    """Replaces the file by a FIFO and restores it afterwards."""
    aside = harness.workspace() / "aside"
    there = path.exists()
    if there:
        path.rename(aside)
    os.mkfifo(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        if there:
            aside.rename(path)


class SpecialFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.data = harness.make_datasets(cls.folder, 20_000)
        cls.config = harness.write_config(cls.folder / "run.yaml", cls.data, train__steps=2)
        harness.must(harness.run("train", cls.config))
        cls.run_dir = harness.run_dir(cls.config)
        cls.checkpoints = cls.run_dir / "checkpoints"
        cls.step = sorted(cls.checkpoints.glob("step-*"))[-1]

    def test_every_command_ends(self):
        shard = self.data[0] / "shards/00000.h5"
        tensors = sorted(self.step.glob("*.safetensors"))[0]
        train = ("train", self.config, "train.steps=3", "checkpoint.allow_change="
                 "[optimizer.schedule.steps]")
        table = [
            (self.config, 2, train),
            (self.data[0] / "manifest.json", 65, ("data", "info", self.data[0])),
            (self.data[0] / "manifest.json", 65, ("data", "verify", self.data[0])),
            (self.data[0] / "manifest.json", 65, train),
            (shard, 65, ("data", "info", self.data[0])),
            (shard, 65, ("data", "verify", self.data[0])),
            (shard, 65, ("data", "stage", self.data[0], self.folder / "staged")),
            (shard, 2, ("data", "convert", shard, "--vocab", "300", "--out", self.folder / "c")),
            (shard, 65, train),
            (self.step / "manifest.json", 65, ("ckpt", "verify", self.step)),
            (self.step / "manifest.json", 0, ("ckpt", "ls", self.checkpoints)),
            (self.step / "manifest.json", 65, ("generate", "--checkpoint", self.checkpoints)),
            (self.step / "manifest.json", 65, train),
            (tensors, 65, ("ckpt", "digest", self.step)),
            (tensors, 65, ("eval", "--checkpoint", self.step, "--data", self.data[1])),
            (tensors, 65, train),
            (self.checkpoints / "run.lock", 77, train),
            (self.run_dir / "DONE", 65, train),
            (self.run_dir / ".lock", 77, train),
            (self.run_dir / "logs/rank-00000.jsonl", 77, train),
            (self.run_dir / "metrics.jsonl", 65,
             ("plot", self.run_dir, "-o", self.folder / "loss.svg")),
            (self.run_dir / "journal.jsonl", 65, ("launch", "report", self.run_dir)),
            (self.folder / "baseline", 65, ("health", "--baseline", self.folder / "baseline")),
        ]
        for path, code, arguments in table:
            with self.subTest(path=path.name, command=arguments[:2]):
                with fifo_at(path):
                    result = harness.run(*arguments, timeout=60)
                text = result.stdout + result.stderr
                self.assertEqual(result.returncode, code, text)
                self.assertRegex(text, r"is a FIFO|not a regular file|neither a regular file")
                self.assertIn(path.name, text)

    def test_a_configuration_that_is_a_loop_of_links(self):
        loop = self.folder / "loop.yaml"
        loop.symlink_to(loop)
        result = harness.run("train", loop, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("loop.yaml", result.stderr)
        self.assertIn("symbolic links form a loop", result.stderr)

    def test_training_goes_on_without_what_it_does_not_need(self):
        config = harness.write_config(self.folder / "goes-on.yaml", self.data, train__steps=2)
        checkpoints = harness.run_dir(config) / "checkpoints"
        checkpoints.mkdir(parents=True)
        with (fifo_at(harness.run_dir(config) / "metrics.jsonl"),
              fifo_at(checkpoints / "GENERATION")):
            result = harness.must(harness.run("train", config, timeout=60))
        self.assertRegex(result.stderr, "metrics.jsonl.*is a FIFO")
        self.assertRegex(result.stderr, "warning: .*GENERATION is a FIFO.*replaced")

    def test_a_file_system_that_hangs_at_the_start_is_a_hang(self):
        for file in ["manifest.json", "hang.yaml"]:
            config = harness.write_config(self.folder / "hang.yaml", self.data)
            result = harness.run(
                "train", config, "comm.deadline.start=1", "comm.deadline.checkpoint=1", timeout=60,
                env={"LD_PRELOAD": str(FAULTY), "TRIREME_START_DEADLINE": "3",
                     "TRIREME_FAULTY_CALLS": f"*/{file}|open|1+|delay=1000",
                     "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"})
            self.assertEqual(result.returncode, 85, result.stderr)
            self.assertIn("file system", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
