"""Three axes of parallelism with real ranks: the same bits with every transport, several hosts, a
kill, and a resume in another layout; and impossible layouts."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
import hosts  # noqa: E402

harness.MODELS["even"] = harness.LLAMA.replace("heads: 3", "heads: 4").replace(
    "kv_heads: 1", "kv_heads: 2")
TRAIN_ON_THREADS = os.environ["TRAIN_ON_THREADS"]
CUBE = ["parallel.dp=2", "parallel.tp=2", "parallel.pp=2"]


def rank_process(config, rank):
    """Returns the process of a rank on any host."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if (words[0].endswith(b"trireme") and str(config).encode() in words
                and f"OMPI_COMM_WORLD_RANK={rank}".encode() in variables):
            return int(process.name)
    raise AssertionError(f"no rank {rank} of {config}")


class Layouts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    def config(self, name, **keys):
        keys = {"parallel__bucket_bytes": 20000, **keys}
        return harness.write_config(self.folder / f"{name}.yaml", self.datasets, "even", **keys)

    def test_the_same_bits_over_every_transport(self):
        config = self.config("threads")
        subprocess.run([TRAIN_ON_THREADS, "8", str(config), *CUBE], check=True, timeout=120,
                       env=harness.ENVIRONMENT, capture_output=True)
        expected = harness.loss_bits(config), harness.digest(config)
        for backend in ["mpi", "shm", "ucx", "hierarchical"]:
            with self.subTest(backend=backend):
                config = self.config(backend, comm__backend=backend)
                harness.must(harness.run("train", config, *CUBE, ranks=8))
                self.assertEqual((harness.loss_bits(config), harness.digest(config)), expected)

    def on_hosts(self, config, *keys):
        return [sys.executable, hosts.__file__, "--hosts", "4", "--ranks-per-host", "2", "--",
                harness.PROGRAM, "train", str(config), *keys]

    def test_four_hosts_a_kill_and_another_layout(self):
        skipped = hosts.reason_to_skip()
        if skipped:
            self.skipTest(skipped)
        steps = 60
        alone = self.config("alone", train__steps=steps)
        harness.must(harness.run("train", alone))
        config = self.config("hosts", train__steps=steps, checkpoint__every=5)
        log = self.folder / "hosts.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(self.on_hosts(config, *CUBE), env=harness.ENVIRONMENT,
                                       stdout=out, stderr=subprocess.STDOUT,
                                       start_new_session=True)
        try:
            checkpoints = harness.run_dir(config) / "checkpoints"
            end = time.monotonic() + 120
            while not list(checkpoints.glob("step-*")) and time.monotonic() < end:
                self.assertIsNone(process.poll(), log.read_text())
                time.sleep(0.05)
            os.kill(rank_process(config, 5), signal.SIGKILL)
            self.assertNotEqual(process.wait(timeout=60), 0)
        finally:
            harness.end_group(process)
        self.assertLess(harness.metrics(config)[-1]["step"], steps, "killed in the middle")

        result = subprocess.run(self.on_hosts(config, "parallel.dp=4", "parallel.pp=2"),
                                env=harness.ENVIRONMENT, text=True, timeout=240,
                                capture_output=True, check=False)
        harness.must(result)
        self.assertIn("resumed from", result.stderr)
        self.assertIn("layout: dp 4 x tp 1 x pp 2", result.stderr)
        # The resumed run computes in another way and reports that.
        self.assertIn("tp", result.stderr[result.stderr.index("the bits of an uninterrupted"):])
        expected = {m["step"]: m["loss"] for m in harness.metrics(alone)}
        got = {m["step"]: m["loss"] for m in harness.metrics(config)}
        self.assertEqual(sorted(got), sorted(expected))
        for step, loss in got.items():
            self.assertAlmostEqual(loss / expected[step], 1, delta=1e-4, msg=f"step {step}")

    def test_layouts_that_can_not_be(self):
        config = self.config("refused")
        for ranks, keys, words in [
                (3, ["parallel.tp=3"], ["heads 4 is not a multiple of parallel.tp 3", "1, 2, 4"]),
                (8, ["parallel.tp=8"], ["heads 4 is not a multiple of parallel.tp 8"]),
                (4, ["parallel.dp=2", "parallel.tp=4"],
                 ["the number of ranks, 4, is not dp 2 x tp 4 x pp 1"]),
                (3, ["parallel.pp=2"], ["the number of ranks, 3,", "dp auto x tp 1 x pp 2"]),
                (12, ["parallel.pp=12"], ["12", "10"]),
                (2, ["parallel.pp=2", "parallel.virtual_stages=2"], ["interleaved"]),
                (2, ["parallel.pp=2", "parallel.schedule=interleaved"],
                 ["interleaved", "2 virtual stages"]),
                (2, ["parallel.virtual_stages=2", "parallel.schedule=interleaved"], ["pp"]),
                (3, ["parallel.pp=3", "parallel.schedule=interleaved",
                     "parallel.virtual_stages=2"], ["8", "3"]),
                (3, ["parallel.dp=3", "train.global_batch=8"], ["3"]),
                (2, ["parallel.tp=2", "parallel.sequence=on", "data.sequence=47"],
                 ["data.sequence 47 % tp 2 = 1"]),
                (1, ["parallel.zero=4"], ["parallel.zero", "at most 3"]),
                (1, ["parallel.schedule=2f2b"], ["2f2b", "1f1b"]),
                (1, ["train.recompute=some"], ["train.recompute", "selective"]),
        ]:
            with self.subTest(ranks=ranks, keys=keys):
                result = harness.run("train", config, *keys, ranks=ranks)
                self.assertEqual(result.returncode, 2, result.stderr)
                message = "\n".join(x for x in result.stderr.splitlines() if "trireme" in x)
                for word in words:
                    self.assertIn(word, message)
                self.assertFalse((harness.run_dir(config) / "checkpoints").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
