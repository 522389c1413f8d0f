"""Tests `trireme bench io`, which measures a file system, with what reads the output of IOR and
mdtest, and what it refuses."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "benchmarks/schema"))
import validate  # noqa: E402

MIB = 1 << 20
# What sites read IOR's and mdtest's output with.
IOR_ROW = re.compile(
    r"^(write|read)" + r"\s+(\S+)" * 9 + r"\s+(\d+)", re.MULTILINE)
IOR_MAX = re.compile(r"^Max (Write|Read): +(\S+) MiB/sec \((\S+) MB/sec\)", re.MULTILINE)
MDTEST_ROW = re.compile(r"^   ((?:File|Directory) \w+) +(\S+) +(\S+) +(\S+) +(\S+)$", re.MULTILINE)


class Storage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.disk = cls.folder / "disk"
        cls.disk.mkdir()

    def bench(self, *arguments, ranks=0, code=0, question="io"):
        """Returns the results, what was printed, and the messages."""
        file = self.folder / "out.json"
        file.unlink(missing_ok=True)
        ran = harness.run("bench", question, *arguments, "-J", file, ranks=ranks, timeout=120)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        if code:
            return [], ran.stdout, ran.stderr
        text = file.read_text(encoding="utf-8")
        self.assertEqual(validate.problems_of(text), [])
        self.assertEqual(os.listdir(self.disk), [], "files are left behind")
        return json.loads(text)["results"], ran.stdout, ran.stderr


class Io(Storage):
    def io(self, *arguments, **options):
        return self.bench("--dir", self.disk, *arguments, **options)

    def test_tables_of_ior_and_mdtest(self):
        table = self.folder / "ior.csv"
        results, text, _ = self.io("-F", "-b", "1M", "-t", "256K", "-s", 2, "-C", "-e", "-W", "-R",
                                   "-i", 2, "-n", 30, "-w", 100, "-u", "--ior-csv", table, ranks=3)
        rows = IOR_ROW.findall(text.split("Max Write")[0])
        self.assertEqual([row[0] for row in rows], ["write", "read", "write", "read"])
        self.assertEqual([row[-1] for row in rows], ["0", "0", "1", "1"])
        for row in rows:
            self.assertEqual((float(row[4]), float(row[5])), (1024, 256))
            # What was moved follows from the rate and the time, to their printed digits.
            self.assertAlmostEqual(float(row[1]) * float(row[9]), 3 * 2, delta=0.5)
        self.assertEqual({name for name, *_ in IOR_MAX.findall(text)}, {"Write", "Read"})
        by_name = {result["name"]: result for result in results[:2]}
        for kind in ("write", "read"):
            metrics = by_name[f"io_{kind}"]["metrics"]
            self.assertEqual((metrics["moved_bytes"], metrics["wrong"]), (6 * MIB, 0))
            most = max(float(row[1]) for row in rows if row[0] == kind)
            self.assertAlmostEqual(metrics["best_bytes_per_s"] / MIB / most, 1, delta=0.01)
        with open(table, encoding="utf-8", newline="") as opened:
            lines = list(csv.DictReader(opened, strict=True))
        self.assertEqual([(line["access"], line["iter"], line["numTasks"]) for line in lines],
                         [(row[0], row[-1], "3") for row in rows])
        for line, row in zip(lines, rows):
            self.assertAlmostEqual(float(line["bw(MiB/s)"]) / float(row[1]), 1, delta=0.01)
        rates = MDTEST_ROW.findall(text)
        self.assertEqual(len(rates), 7)
        for (_, most, least, mean, _), result in zip(rates, results[2:]):
            self.assertLessEqual(float(least), float(mean))
            self.assertLessEqual(float(mean), float(most))
            self.assertLessEqual(result["metrics"]["operations_per_s"], float(most) * 1.001)
        self.assertEqual({r["params"]["folders"] for r in results[2:]}, {"rank"})

    def test_every_interface_and_order(self):
        for arguments in (["-a", "hdf5", "-F"], ["-z"], ["-z", "-F", "-C"],
                          ["--cache", "keep", "-C", "-Q", 2]):
            with self.subTest(arguments):
                results, _, _ = self.io("--test", "data", "-b", "512K", "-t", "64K", "-i", 1, "-W",
                                        "-R", *arguments, ranks=2)
                self.assertEqual([r["metrics"]["wrong"] for r in results], [0, 0])
                self.assertEqual(results[0]["metrics"]["moved_bytes"], MIB)
        ran = harness.run("bench", "io", "--dir", self.disk, "--test", "data", "-b", "512K", "-t",
                          "64K", "-a", "uring", "-i", 1, "-R", timeout=60)
        self.assertIn(ran.returncode, (0, 77), ran.stderr)  # a container may forbid io_uring
        if ran.returncode == 77:
            self.assertIn("--api posix", ran.stderr)

    def test_a_stonewall_stops_writing(self):
        results, text, _ = self.io("--test", "data", "-b", "512M", "-t", "4K", "-D", 0.01, "-i", 1,
                                   "--cache", "keep")
        write, read = (result["metrics"]["moved_bytes"] for result in results)
        self.assertLess(write, 512 * MIB)
        self.assertGreater(write, 0)
        self.assertLessEqual(read, write)  # nobody reads what was not written
        # IOR 4 prints these columns so unless its stoneWallingWearOut is on.
        summary = [line.split() for line in text.split("Summary of all tests:\n")[1].splitlines()]
        columns = dict(zip(summary[0][:12], summary[1][:12]))
        self.assertEqual((columns["Stonewall(s)"], columns["Stonewall(MiB)"]), ("NA", "NA"))
        self.assertRegex(text, r"(?m)^stoneWallingWearOut *: 0$")

    def test_direct_io(self):
        try:
            os.close(os.open(self.disk / "probe", os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
        except OSError as error:
            self.skipTest(f"the file system of {self.disk} has no direct I/O: {error}")
        finally:
            (self.disk / "probe").unlink(missing_ok=True)
        for arguments in (["-F", "-C"], ["-z"]):
            with self.subTest(arguments):
                results, _, _ = self.io("--test", "data", "-b", "256K", "-t", "64K", "-i", 1, "-W",
                                        "-R", "--cache", "bypass", *arguments, ranks=2)
                for result in results:
                    self.assertEqual(result["params"]["cache"], "bypass")
                    self.assertEqual(result["metrics"]["moved_bytes"], MIB // 2)
                    self.assertEqual(result["metrics"]["wrong"], 0)

    def test_refusals(self):
        for code, words, arguments in [
                (2, "multiple of the transfer", ["-b", "10K", "-t", "4K"]),
                (2, "multiple of 8", ["-t", 12]),
                (2, "files of this size do not exist", ["-b", "512T", "-s", "4096"]),
                (2, "needs -F", ["-a", "hdf5"]),
                (2, "4 KiB", ["--cache", "bypass", "-t", "1000", "-b", "1000"]),
                (2, "--segments", ["-s", 0]),
                (2, "--stonewall", ["-D", "nan"]),
                (66, "is not a folder", ["--dir", self.folder / "none"]),
                (66, "No such file", ["--ior-csv", self.folder / "none" / "x.csv"]),
                (74, "is too small", ["-b", "4000T", "-i", 1])]:
            with self.subTest(arguments):
                _, _, errors = self.bench("--dir", self.disk, *arguments, code=code) \
                    if "--dir" not in arguments else self.bench(*arguments, code=code)
                self.assertIn(words, errors)
                self.assertEqual(os.listdir(self.disk), [])

    def test_warnings(self):
        _, _, errors = self.io("--test", "data", "-b", "1M", "-i", 1, "--cache", "keep")
        self.assertIn("page cache", errors)
        _, _, errors = self.io("--test", "data", "-b", "1M", "-i", 1, "-e", "-C")
        self.assertIn("-C does nothing with one rank", errors)
        ran = harness.run("bench", "io", "--dir", "/dev/shm", "-b", "1M", "-i", 1, "-n", 1,
                          timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("file system in memory", ran.stderr)


class Emulation(Storage):
    def emulate(self, workload, *arguments, ranks=2, code=0):
        data = [] if "--data-bytes" in arguments else ["--data-bytes", "1M"]
        return self.bench("--emulate", workload, "--dir", self.disk, *data, *arguments,
                          ranks=ranks, code=code, question="loader")

    def test_utilization_follows_from_the_steps(self):
        for workload, scale in [("llm", 0.05), ("unet3d", 0.002), ("resnet50", 0.01),
                                ("cosmoflow", 0.1)]:
            with self.subTest(workload):
                results, text, _ = self.emulate(workload, "--steps", 4, "--scale", scale)
                params, metrics = results[0]["params"], results[0]["metrics"]
                by_rank = results[0]["samples"]["step_ms"]["by_rank"]
                self.assertEqual([len(own) for own in by_rank], [4, 4])
                slowest = max(sum(own) for own in by_rank)
                self.assertAlmostEqual(metrics["accelerator_utilization"],
                                       4 * params["compute_ms"] / slowest, delta=0.01)
                self.assertLessEqual(metrics["accelerator_utilization"], 1)
                # The scale changes neither the bytes that are needed per second nor the verdict.
                needed = 2 * params["batch"] * params["sample_bytes"] / params["compute_ms"] * 1e3
                self.assertAlmostEqual(metrics["needed_bytes_per_s"] / needed, 1, delta=0.01)
                passes = metrics["accelerator_utilization"] >= metrics["least_utilization"]
                self.assertIn("enough" if passes else "too little", text)

    def test_published_figures(self):
        # From mlcommons/storage, configs/dlio/workload/unet3d_h100.yaml.
        results, _, _ = self.emulate("unet3d", "--steps", 1, "--scale", 0.001, ranks=1)
        self.assertEqual(results[0]["params"]["batch"], 7)
        self.assertAlmostEqual(results[0]["metrics"]["needed_bytes_per_s"],
                               7 * 146600628 / 0.323, delta=1)

    def test_few_steps_need_less_than_the_data_that_was_asked_for(self):
        results, _, errors = self.emulate("cosmoflow", "--steps", 3, "--scale", 0.01,
                                          "--data-bytes", "400M", ranks=1)
        self.assertLess(results[0]["params"]["data_bytes"], 1 << 20)
        self.assertIn("less than --data-bytes 400 MiB: 4 steps read no more (--steps)", errors)
        self.assertNotIn("(--data-bytes)", errors)
        _, _, errors = self.emulate("cosmoflow", "--steps", 300, "--scale", 0.01, ranks=1)
        self.assertNotIn("read no more", errors)

    def test_storage_that_is_too_slow_fails(self):
        # A step of 35 ns cannot pass on any storage.
        self.emulate("cosmoflow", "--steps", 3, "--scale", 1e-5, "--must-pass", ranks=1, code=4)

    def test_refusals(self):
        for code, words, arguments in [
                (2, "use h100", ["llm", "--accelerator", "a100"]),
                (2, "--emulate", ["bert"]),
                (2, "--scale", ["llm", "--scale", 0]),
                (2, "--data-bytes 1: a sample of llm has", ["llm", "--data-bytes", 1]),
                (2, "--threads has no effect with --emulate", ["llm", "--threads", 3]),
                (2, "--shuffle has no effect", ["llm", "--shuffle", "global"]),
                (2, "--encrypt has no effect", ["llm", "--encrypt"]),
                (74, "is too small", ["unet3d", "--data-bytes", "4000T", "--steps", 10**5])]:
            with self.subTest(arguments):
                _, _, errors = self.emulate(*arguments, ranks=0, code=code)
                self.assertIn(words, errors)
        for words, arguments in [("--scale", ["--scale", 0.5]), ("--must-pass", ["--must-pass"]),
                                 ("--dir", ["--rounds", 1, "--dir", self.disk])]:
            with self.subTest(arguments):
                _, _, errors = self.bench(*arguments, code=2, question="loader")
                self.assertIn(f"{words} has no effect without --emulate", errors)


class ModelCheckpoints(Storage):
    def checkpoint(self, model, *arguments, ranks=0, code=0):
        return self.bench("--size", model, "--dir", self.disk, "--rounds", 2, *arguments,
                          ranks=ranks, code=code, question="ckpt")

    def test_any_number_of_ranks(self):
        for model, ranks in [("llama3-8b", 3), ("llama3-405b", 2), ("llama3-1t", 1)]:
            with self.subTest(model, ranks=ranks):
                results, _, _ = self.checkpoint(model, "--bytes", "3M", ranks=ranks)
                self.assertEqual([r["name"] for r in results],
                                 ["ckpt_model_write", "ckpt_model_read"])
                for result in results:
                    params, metrics = result["params"], result["metrics"]
                    self.assertEqual(params["full_bytes"], 14 * params["parameters"])
                    self.assertAlmostEqual(params["bytes"] / 3 / MIB, 1, delta=0.01)
                    self.assertEqual(len(result["samples"]["seconds"]["by_rank"]), ranks)
                    self.assertAlmostEqual(metrics["bytes_per_s"] * metrics["seconds"],
                                           params["bytes"], delta=1)
                    self.assertLessEqual(metrics["slowest_rank_bytes_per_s"],
                                         metrics["bytes_per_s"])

    def test_refusals(self):
        for code, words, arguments in [
                (2, "--size", ["llama4"]),
                (2, "give fewer bytes", ["llama3-8b", "--bytes", "1000T"]),
                (2, "--memory", ["llama3-8b", "--memory", "/dev/shm"])]:
            with self.subTest(arguments):
                _, _, errors = self.checkpoint(*arguments, code=code)
                self.assertIn(words, errors)
        _, _, errors = self.bench("--memory", self.disk, code=2, question="ckpt")
        self.assertIn(f"--memory {self.disk} lies on a disk", errors)


class Ends(Storage):
    """Benchmarks that a signal or a full disk ends. None leaves files behind."""

    ENDLESS = {
        "io": ["--test", "both", "-b", "4M", "-n", 20, "-F"],
        "ckpt": ["--bytes", "4M"],
        "ckpt of a model": ["--size", "llama3-8b", "--bytes", "4M"],
        "loader": ["--emulate", "unet3d", "--scale", 0.001, "--data-bytes", "1M"],
        "all": ["--minutes", 5, "--only", "io,ckpt"],
    }

    def test_signals(self):
        for name, ranks, number in [("io", 0, signal.SIGINT), ("io", 3, signal.SIGINT),
                                    ("ckpt", 0, signal.SIGTERM), ("loader", 2, signal.SIGTERM),
                                    ("ckpt of a model", 2, signal.SIGTERM),
                                    ("io", 2, signal.SIGKILL),  # of mpirun alone
                                    ("all", 0, signal.SIGHUP), ("all", 2, signal.SIGINT)]:
            with self.subTest(name, ranks=ranks):
                log = self.folder / f"{name}-{ranks}.log"
                disk = self.folder / f"disk of {name}-{ranks}"
                disk.mkdir()
                duration = [] if name == "all" else ["--duration", 300]
                process = harness.start("bench", name.split()[0], "--dir", disk,
                                        *self.ENDLESS[name], *duration, ranks=ranks, log=log)
                self.addCleanup(harness.end_group, process)
                harness.until(f"files: {log.read_text()}", 60,
                              lambda: [p for p in disk.rglob("*") if not p.is_dir()])
                process.send_signal(number)
                code = process.wait(timeout=60)
                if ranks == 0:
                    self.assertEqual(code, -number, log.read_text())
                harness.until("the ranks' end", 30,
                              lambda: not harness.processes_with(str(disk)))
                self.assertEqual(os.listdir(disk), [], "files are left behind")
                self.assertNotIn("No such file", log.read_text())

    def test_a_closed_pipe(self):
        disk = self.folder / "disk of a pipe"
        disk.mkdir()
        process = subprocess.Popen(
            harness.command(["bench", "io", "--dir", disk, "--duration", 300, *self.ENDLESS["io"]],
                            0),
            env=harness.ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), -signal.SIGPIPE)
        self.assertEqual(os.listdir(disk), [], "files are left behind")

    @unittest.skipUnless(os.geteuid() == 0, "needs to mount a file system: run as root")
    def test_a_read_only_disk_is_found_before_measuring(self):
        disk = self.folder / "read-only"
        disk.mkdir()
        command = " ".join(f"'{w}'" for w in harness.command(
            ["bench", "all", "--only", "mem", "--minutes", 1, "-J", disk / "x.json"], 0))
        ran = subprocess.run(
            [harness.OWN_MOUNTS, "bash", "-c",
             f"mount -t tmpfs -o ro none {disk} && {command}"],
            env=harness.ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(ran.returncode, 74, ran.stdout + ran.stderr)
        self.assertIn("read-only", ran.stderr)
        self.assertNotIn("bench all: mem", ran.stderr)

    def test_full_disks(self):
        disk = self.folder / "small"
        disk.mkdir()
        for name, ranks, words, options, arguments in [
                ("io", 0, "is too small", "size=1m", ["-b", "4M"]),
                ("io", 2, "No space left", "size=9m,nr_inodes=30", ["--test", "metadata"]),
                ("ckpt", 0, "is too small", "size=1m", ["--bytes", "4M"]),
                ("ckpt", 0, "space", "size=6m", ["--bytes", "4M", "--memory", disk]),
                ("ckpt", 2, "is too small", "size=1m", ["--size", "llama3-8b", "--bytes", "4M"]),
                ("loader", 0, "space", "size=1m", []),
                ("loader", 2, "is too small", "size=2m", self.ENDLESS["loader"]),
                ("all", 0, "is too small", "size=1m", ["--only", "io", "--minutes", 0.5]),
                ("all", 2, "io failed: the disk", "size=1m",
                 ["--only", "io,p2p", "--minutes", 0.3])]:
            with self.subTest(name, ranks=ranks):
                if "--emulate" in arguments or name != "loader":
                    arguments = ["--dir", disk, *arguments]
                command = " ".join(f"'{w}'" for w in harness.command(["bench", name, *arguments],
                                                                     ranks))
                # The mount is in the command's own namespace and disappears with it.
                script = (f"mount -t tmpfs -o {options} none "
                          f"{disk} && {command}; code=$?; ls -A {disk}; exit $code")
                ran = subprocess.run(
                    [harness.OWN_MOUNTS, "bash", "-c", script],
                    env={**harness.ENVIRONMENT, "TMPDIR": str(disk)} if arguments == []
                    else harness.ENVIRONMENT, capture_output=True, text=True, timeout=120,
                    check=False)
                self.assertEqual(ran.returncode, 74, ran.stdout + ran.stderr)
                self.assertIn(words, ran.stdout + ran.stderr)
                self.assertNotIn("trireme-bench-", ran.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
