"""The transport of a run does not affect its bits, and every transport names a rank that stops or
dies."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
import hosts  # noqa: E402

BACKENDS = ["mpi", "shm", "ucx", "hierarchical"]
TRAIN_ON_THREADS = os.environ["TRAIN_ON_THREADS"]
# Gives the run a /dev/shm of its own, which no other test writes to, and lists what remains there.
OWN_MEMORY = [harness.OWN_MOUNTS, "sh", "-c",
              'mount -t tmpfs none /dev/shm || exit 99; "$@"; code=$?; '
              'ls -A /dev/shm | sed "s/^/left behind: /"; echo "that is all"; exit $code', "sh"]


class Transports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    def config(self, name, **keys):
        # Small buckets lead to many operations at a time.
        keys = {"parallel__bucket_bytes": 20000, "train__steps": 4, **keys}
        return harness.write_config(self.folder / f"{name}.yaml", self.datasets, **keys)

    def test_the_same_bits(self):
        config = self.config("alone")
        harness.must(harness.run("train", config))
        expected = harness.loss_bits(config), harness.digest(config)
        for ranks in [1, 2, 4, 8]:
            for backend in BACKENDS:
                with self.subTest(backend=backend, ranks=ranks):
                    config = self.config(f"{backend}-{ranks}", comm__backend=backend)
                    harness.must(harness.run("train", config, ranks=ranks))
                    self.assertEqual((harness.loss_bits(config), harness.digest(config)), expected)
            with self.subTest(backend="thread", ranks=ranks):
                config = self.config(f"thread-{ranks}")
                subprocess.run([TRAIN_ON_THREADS, str(ranks), str(config)], check=True, timeout=120,
                               env=harness.ENVIRONMENT, capture_output=True)
                self.assertEqual((harness.loss_bits(config), harness.digest(config)), expected)

    def test_the_same_bits_on_several_hosts(self):
        skipped = hosts.reason_to_skip()
        if skipped:
            self.skipTest(skipped)
        config = self.config("one-host")
        harness.must(harness.run("train", config))
        expected = harness.loss_bits(config), harness.digest(config)
        for count, ranks in [(2, 2), (4, 1)]:
            for backend in ["mpi", "ucx", "hierarchical", "auto"]:
                with self.subTest(backend=backend, hosts=count):
                    config = self.config(f"{backend}-{count}-hosts", comm__backend=backend)
                    words = [sys.executable, hosts.__file__, "--hosts", str(count),
                             "--ranks-per-host", str(ranks), "--", harness.PROGRAM, "train",
                             str(config)]
                    result = subprocess.run(words, env=harness.ENVIRONMENT, text=True, timeout=120,
                                            capture_output=True, check=False)
                    harness.must(result)
                    self.assertIn(f"host{count - 1}", result.stderr)
                    self.assertNotIn("MPI alone", result.stderr)
                    self.assertNotIn("goes through MPI", result.stderr)
                    self.assertEqual((harness.loss_bits(config), harness.digest(config)), expected)

    def start(self, name, backend, prefix=(), **keys):
        """Starts an endless run of 3 ranks and waits for its first steps; returns its processes by
        rank."""
        config = self.config(name, comm__backend=backend, train__steps=1000000,
                             train__global_batch=6, numerics__reproducibility="layout", **keys)
        process = harness.start("train", config, ranks=3, log=self.folder / f"{name}.log",
                                prefix=prefix)
        metrics = harness.run_dir(config) / "metrics.jsonl"
        while not (metrics.exists() and metrics.read_text().count("\n") > 3):
            self.assertIsNone(process.poll(), (self.folder / f"{name}.log").read_text())
            time.sleep(0.05)
        return config, process, harness.pids_of_ranks(harness.run_dir(config) / "logs", 3)

    def test_a_stopped_rank_is_named(self):
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                name = f"stopped-{backend}"
                config, process, ranks = self.start(name, backend, comm__deadline__step=2)
                try:
                    os.kill(ranks[2], signal.SIGSTOP)
                    # The limit is the deadline and 10 s, with a margin for a busy test machine.
                    process.wait(timeout=2 + 10 + 20)
                finally:
                    harness.end_group(process)
                    self.end(ranks)
                text = (self.folder / f"{name}.log").read_text()
                self.assertEqual(process.returncode, 85, text)
                reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
                self.assertEqual((reason["code"], reason["kind"]), (85, "hang"))
                self.assertIn("rank 2", reason["message"])
                for message in re.findall(r"trireme: .*", text):
                    self.assertIn("rank 2", message)
                # Every rank except the stopped one wrote a dump.
                for rank in [0, 1]:
                    dump = harness.run_dir(config) / "logs" / f"flight-rank-{rank:05}.jsonl"
                    for line in dump.read_text().splitlines():
                        json.loads(line)

    def test_a_killed_rank_is_noticed(self):
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                name = f"killed-{backend}"
                prefix = OWN_MEMORY if os.geteuid() == 0 else ()
                _, process, ranks = self.start(name, backend, prefix, comm__deadline__step=600)
                try:
                    os.kill(ranks[1], signal.SIGKILL)
                    process.wait(timeout=30)
                finally:
                    harness.end_group(process)
                    self.end(ranks)
                self.assertNotEqual(process.returncode, 0)
                text = (self.folder / f"{name}.log").read_text()
                self.assertNotRegex(text, "left behind: .*trireme")
                self.assertTrue("that is all" in text or not prefix, text)

    @staticmethod
    def end(ranks):
        for pid in ranks.values():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass


class NotToBeHad(unittest.TestCase):
    """A backend lacks what it needs. If it was requested, it is refused with a remedy; otherwise
    the run uses another one, with a warning."""

    SIZES = ["-b", "64K", "-e", "64K", "-n", "1", "-w", "0"]
    # Open MPI's own shared memory would need what these ranks lack.
    TCP = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"}

    def coll(self, backend, around=(), env=None, outside=()):
        """Runs two ranks, with the command `around` each; `outside` is the command that runs
        mpirun."""
        rank = [*around, harness.PROGRAM, "bench", "coll", *self.SIZES, "--backend", backend]
        words = [*outside, harness.MPIEXEC, "-n", "2", *rank]
        return self.run_words(words, env)

    def run_words(self, words, env):
        return subprocess.run(words, env={**harness.ENVIRONMENT, **(env or {})}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=100,
                              check=False)

    def refused(self, result, words):
        self.assertEqual(result.returncode, 2, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def goes_on(self, result, words):
        harness.must(result)
        for word in [*words, "warning: "]:
            self.assertIn(word, result.stderr)
        self.assertIn("Out of bounds values : 0 OK", result.stdout)

    def test_memory_to_share(self):
        # The limits are on the address space and on the length of files, which shared memory is
        # subject to: for its header and for more.
        for limit, words in [("ulimit -v 30000000", ["ulimit -v"]),
                             ("ulimit -f 0", ["4 KiB (ulimit -f)"]),
                             ("ulimit -f 100", ["MiB more are needed", "ulimit -f"])]:
            around = ["sh", "-c", limit + '; exec "$@"', "sh"]
            with self.subTest(limit):
                words = ["rank 0 (", "rank 1 (", *words, "comm.backend"]
                self.refused(self.coll("shm", around, self.TCP), words)
                for backend in ["auto", "hierarchical"]:
                    result = self.coll(backend, around, self.TCP)
                    if backend == "auto":
                        self.goes_on(result, [*words, "continues over MPI alone"])
                    else:
                        self.refused(result, words)

    @unittest.skipUnless(os.geteuid() == 0, "needs to make a PID namespace: run as root")
    def test_no_permission(self):
        # One rank is in a container of its own and may not access the other's process.
        def both(backend):
            rank = [harness.PROGRAM, "bench", "coll", *self.SIZES, "--backend", backend]
            return self.run_words([harness.MPIEXEC, "-n", "1", *rank, ":", "-n", "1", "unshare",
                                   "--pid", "--fork", "--mount-proc", "--propagation",
                                   "unchanged", *rank], self.TCP)
        words = ["rank 0 (", "rank 1 (", "Permission denied",
                 "a common PID namespace and the same user"]
        self.refused(both("shm"), words)
        self.goes_on(both("auto"), [*words, "continues over MPI alone"])

    @unittest.skipUnless(os.geteuid() == 0, "needs to mount a small /dev/shm: run as root")
    def test_dev_shm_may_be_small(self):
        outside = [harness.OWN_MOUNTS, "sh", "-c",
                   'mount -t tmpfs -o size=16k none /dev/shm && exec "$@"', "sh"]
        result = harness.must(self.coll("shm", outside=outside, env=self.TCP))
        self.assertNotIn("warning", result.stderr.replace("warning: the machine was busy", ""))

    def test_absent_fabrics(self):
        for env, words in [
                ({"UCX_TLS": "rc"}, ["UCX_TLS=rc, ", "tcp on ", "set UCX_TLS=tcp,self"]),
                ({"UCX_NET_DEVICES": "mlx5_9:1"},
                 ["UCX_NET_DEVICES=mlx5_9:1; ", "interface that"])]:
            with self.subTest(env):
                self.refused(self.coll("ucx", env=env), words)
                self.refused(self.coll("mpi", env={**env, "OMPI_MCA_pml": "ucx"}), words)
        env = {**self.TCP, "OMPI_MCA_btl_tcp_if_include": "ib7"}
        self.refused(self.coll("mpi", env=env),
                     ["OMPI_MCA_btl_tcp_if_include=ib7 names no interface"])

    def test_absent_fabrics_on_several_hosts(self):
        skipped = hosts.reason_to_skip()
        if skipped:
            self.skipTest(skipped)
        for backend, ranks in [("auto", 2), ("hierarchical", 2), ("hierarchical", 1)]:
            with self.subTest(backend=backend, ranks=ranks):
                words = [sys.executable, hosts.__file__, "--hosts", "2", "--ranks-per-host",
                         str(ranks), "--", harness.PROGRAM, "bench", "coll", *self.SIZES,
                         "--backend", backend]
                self.goes_on(self.run_words(words, {"UCX_TLS": "rc"}),
                             ["UCX_TLS=rc", "data between hosts goes through MPI"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
