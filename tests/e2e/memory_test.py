"""A run is refused before its first step if its host has too little memory; the change that the
message advises makes it fit; and the predicted memory is what it takes."""

import json
import os
import pathlib
import re
import subprocess
import unittest

import harness

GROUPS = [  # folder of control groups, file with the limit
    (pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (pathlib.Path("/sys/fs/cgroup"), "memory.max"),
]


class ControlGroup:
    """A control group with a memory limit, which contains the processes that this test starts."""

    def __init__(self, limit):
        self.home = self.current()
        for top, file in GROUPS:
            self.folder = top / f"trireme-test-{os.getpid()}"
            try:
                self.folder.mkdir()
                (self.folder / file).write_text(str(limit))
                self.top = top
                return
            except OSError:
                if self.folder.is_dir():
                    self.folder.rmdir()
        raise unittest.SkipTest("this user may not make control groups with a limit of memory")

    @staticmethod
    def current():
        found = {}
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            found[controllers] = path
        return found

    def __enter__(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def __exit__(self, *_):
        name = "memory" if self.top.name == "memory" else ""
        back = self.top / self.home.get(name, "/").lstrip("/")
        back = back if (back / "cgroup.procs").exists() else self.top
        (back / "cgroup.procs").write_text(str(os.getpid()))
        self.folder.rmdir()


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    def config(self, name, **keys):
        return harness.write_config(self.folder / f"{name}.yaml", self.datasets, **keys)

    def test_a_run_that_does_not_fit_is_refused_and_what_it_advises_fits(self):
        config = self.config("small", train__steps=3, train__global_batch=512,
                             train__micro_batch=512)
        with ControlGroup(470_000_000):
            refused = harness.run("train", config)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn("control group", refused.stderr)
            self.assertIn("activations", refused.stderr)
            advice = re.search(r"the cheapest change that makes it fit: (.*); or", refused.stderr)
            self.assertIsNotNone(advice, refused.stderr)
            harness.must(harness.run("train", config, *advice[1].split()))

    def test_where_no_change_is_enough_it_says_so(self):
        config = self.config("large")
        refused = harness.run("train", config, "model.vocab=200000000", "model.hidden=480", ranks=2)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("run.memory_check=off", refused.stderr)
        self.assertIn("smaller model", refused.stderr)

    def test_a_limit_on_the_address_space_is_reported_with_what_is_held(self):
        if b"__asan_init" in pathlib.Path(harness.PROGRAM).read_bytes():
            self.skipTest("AddressSanitizer needs more address space: run another build")
        config = self.config("limited", run__memory_check="off")
        large = ["model.hidden=3072", "model.heads=24", "model.layers=5"]
        limited = subprocess.run(
            ["prlimit", "--as=1500000000", *harness.command(["train", config, *large])],
            env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=240, check=False)
        self.assertEqual(limited.returncode, 76, limited.stderr)
        self.assertRegex(limited.stderr, "out of memory: .*; held by the pools of this rank: ")

    def test_what_is_predicted_is_what_is_taken(self):
        sizes = ["model.hidden=384", "model.heads=6", "model.vocab=8192", "checkpoint.every=1"]
        for name, ranks, changes in [
            ("alone", 1, []),
            ("left-over", 1, ["train.micro_batch=16"]),  # an evaluation ends with fewer samples
            ("sharded", 2, ["parallel.zero=2", "train.precision=bf16",
                            "parallel.bucket_bytes=1M"]),
            ("split", 2, ["parallel.tp=2", "train.recompute=full"]),
            ("staged", 2, ["parallel.pp=2", "train.precision=bf16"]),
        ]:
            config = self.config(name, train__steps=2, train__global_batch=32,
                                 train__micro_batch=8)
            harness.must(harness.run("train", config, *sizes, *changes, ranks=ranks))
            log = harness.run_dir(config) / "logs" / "rank-00000.jsonl"
            events = [json.loads(line) for line in log.read_text().splitlines()]
            (predicted,) = [e for e in events if e.get("event") == "memory_predicted"]
            (measured,) = [e for e in events if e.get("event") == "memory_measured"]
            self.assertEqual(len(measured["ranks"]), ranks)
            for own, taken in zip(predicted["ranks"], measured["ranks"]):
                for part in own.keys() - {"program", "total"}:
                    self.assertLess(abs(taken[part] - own[part]), 0.05 * own[part] + 2**20,
                                    (name, part, own, taken))
                # In such small runs, the program's own memory is a large part, and it varies from
                # start to start.
                slack = max(0.07 * own["total"], 32 * 2**20)
                self.assertLess(abs(taken["total"] - own["total"]), slack, (name, own, taken))


if __name__ == "__main__":
    unittest.main(verbosity=2)
