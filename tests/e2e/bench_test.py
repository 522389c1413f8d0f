"""Tests the output of `trireme bench coll|p2p|pairs` as site scripts parse it: text by position,
and strict JSON."""

import csv
import math
import os
import re
import sys
import unittest
import xml.etree.ElementTree

import harness

sys.path.insert(0, str(harness.SOURCE / "benchmarks/schema"))
import validate  # noqa: E402

# The columns of nccl-tests' printf: widths 12, 12, 8, 6 and 6 with two blanks between, then twice
# 7, 6, 6 and 6.
STARTS = [0, 14, 28, 38, 46, 54, 63, 71, 79, 87, 96, 104, 112]
ENDS = [12, 26, 36, 44, 52, 61, 69, 77, 85, 94, 102, 110, 118]
COLUMNS = ["size", "count", "type", "redop", "root", "time", "algbw", "busbw", "wrong", "in_time",
           "in_algbw", "in_busbw", "in_wrong"]
FACTORS = {"all_reduce": lambda n: 2 * (n - 1) / n, "reduce_scatter": lambda n: (n - 1) / n,
           "all_gather": lambda n: (n - 1) / n, "alltoall": lambda n: (n - 1) / n,
           "broadcast": lambda n: 1}


def strict(path):
    return validate.parse(path.read_text(encoding="utf-8"))


def table(text):
    """Returns the rows of a table, parsed by position. nccl-tests prints N/A one character too
    early."""
    rows = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        columns = line.replace("    N/A", "     N/A")
        assert len(columns) == ENDS[-1], line
        rows.append({c: columns[a:b].strip() for c, a, b in zip(COLUMNS, STARTS, ENDS)})
    return rows


def coll(*arguments, ranks=2):
    return harness.must(harness.run("bench", "coll", *arguments, "-n", 5, "-w", 1, "--backend",
                                    "mpi", ranks=ranks, timeout=120))


class Coll(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()

    def check_rows(self, rows, factor):
        self.assertTrue(rows)
        for row in rows:
            for prefix in ("", "in_"):
                time, algbw, busbw = (float(row[prefix + c]) for c in ("time", "algbw", "busbw"))
                self.assertGreater(time, 0)
                # Each is rounded to two decimals: algbw = size / time, busbw = algbw x factor.
                self.assertAlmostEqual(busbw, algbw * factor, delta=0.005 * (1 + factor) + 1e-9)
                exact = int(row["size"]) / (time * 1e-6) / 1e9
                slack = exact * 0.005 / time + 0.0051
                self.assertAlmostEqual(algbw, exact, delta=slack)

    def test_table_by_position(self):
        out = coll("-b", 1024, "-e", "1M", "-f", 32).stdout
        rows = table(out)
        self.assertEqual([r["size"] for r in rows], ["1024", "32768", "1048576"])
        self.assertEqual([r["count"] for r in rows], ["256", "8192", "262144"])
        for row in rows:
            self.assertEqual((row["type"], row["redop"], row["root"]), ("float", "sum", "-1"))
            self.assertEqual((row["wrong"], row["in_wrong"]), ("0", "0"))
        self.check_rows(rows, 1.0)
        self.assertIn("# Out of bounds values : 0 OK\n", out)
        average = float(out.split("# Avg bus bandwidth    : ")[1].split()[0])
        mean = sum(float(r["busbw"]) + float(r["in_busbw"]) for r in rows) / 2 / len(rows)
        self.assertAlmostEqual(average, mean, delta=0.01)

    def test_every_size_is_printed_once(self):
        path = self.folder / "sizes.json"
        out = coll("--op", "all_gather", "-b", 8, "-e", 256, "-f", 2, "-J", path, ranks=3).stdout
        self.assertEqual([row["size"] for row in table(out)], ["0", "48", "96", "240"])
        self.assertEqual([r["params"]["bytes"] for r in strict(path)["results"]], [0, 48, 96, 240])

    def test_header_is_that_of_nccl_tests(self):
        lines = coll("-b", "1K", "-e", "2K", "-i", "512", "-c", 0).stdout.splitlines()
        self.assertEqual(lines[1], "# Collective test starting: all_reduce_perf")
        self.assertEqual(lines[2], "# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048 step: "
                         "512(bytes) warmup iters: 1 iters: 5 agg iters: 0 validation: 0 graph: 0 "
                         "unalign: 0")
        self.assertRegex(lines[5],
                         r"^#  Rank  0 Group  0 Pid +\d+ on +\S+ device  0 \[[0-9a-f:]+\] ")
        self.assertRegex(lines[6], r"^#  Rank  1 ")
        self.assertEqual(lines[8],
                         "#" + " " * 62 + "out-of-place" + " " * 23 + "in-place" + " " * 10)
        self.assertEqual(lines[9].split(), ("# size count type redop root " + 2 * (
            "time algbw busbw #wrong ")).split())
        self.assertEqual([r["wrong"] for r in table("\n".join(lines))], ["N/A"] * 3)

    def test_every_operation_on_three_ranks(self):
        path = self.folder / "all.json"
        names = "all_reduce,reduce_scatter,all_gather,broadcast,all_to_all"
        out = coll("--op", names, "-b", "96K", "-e", "96K", "-d", "bfloat16", "-r", 1,
                   "--peer", "mpi", "-J", path, ranks=3).stdout
        parts = out.split("# Collective test starting: ")[1:]
        self.assertEqual([p.split("_perf")[0] for p in parts],
                         ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "alltoall"])
        for part in parts:
            self.check_rows(table(part.split("\n", 1)[1]), FACTORS[part.split("_perf")[0]](3))
        alltoall = table(parts[4].split("\n", 1)[1])[0]
        self.assertEqual((alltoall["wrong"], alltoall["in_wrong"]), ("0", "N/A"))
        broadcast = table(parts[3].split("\n", 1)[1])[0]
        self.assertEqual((broadcast["redop"], broadcast["root"]), ("none", "1"))
        document = strict(path)
        self.assertEqual(document["schema"], 2)
        for result in document["results"]:
            metrics, samples = result["metrics"], result["samples"]
            self.assertEqual(result["params"]["ranks"], 3)
            self.assertEqual(metrics["wrong"], 0)
            self.assertEqual(len(samples["in_place_us"]["values"]), 5)
            self.assertLessEqual(metrics["time_us_low"], metrics["time_us"])
            self.assertLessEqual(metrics["time_us"], metrics["time_us_high"])
            # MPI cannot reduce bfloat16.
            reduces = result["params"]["redop"] is not None
            self.assertEqual("ratio" in metrics, not reduces, result["params"])
            if not reduces:
                self.assertTrue(math.isclose(metrics["ratio"],
                                             metrics["busbw_GBps"] / metrics["peer_busbw_GBps"]))

    def test_json_beside_mpi(self):
        path = self.folder / "coll.json"
        out = coll("-b", "1M", "-e", "1M", "--peer", "mpi", "-J", path).stdout
        self.assertIn("# Compared with MPI_Allreduce", out)
        [result] = strict(path)["results"]
        expected = {"op": "all_reduce", "bytes": 1 << 20, "dtype": "float", "backend": "mpi",
                    "ranks": 2}
        self.assertEqual({k: result["params"][k] for k in expected}, expected)
        metrics = result["metrics"]
        self.assertTrue(math.isclose(
            metrics["ratio"], metrics["busbw_GBps"] / metrics["peer_busbw_GBps"]))
        self.assertTrue(math.isclose(metrics["fraction_of_memory_ceiling"],
                                     2 * (1 << 20) / (metrics["time_us"] * 1e-6) /
                                     metrics["memory_ceiling_bytes_per_s"]))
        self.assertEqual(sorted(result["samples"]),
                         ["in_place_us", "out_of_place_us", "peer_in_place_us",
                          "peer_out_of_place_us"])

    def shared_memory(self, word):
        """Returns the files of the memory that the ranks share, for processes with this word in
        their command line."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                if words[0] == harness.PROGRAM.encode() and str(word).encode() in words:
                    fds = [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
                    found += [fd for fd in fds if "memfd:trireme" in os.readlink(fd)]
            except OSError:
                pass
        return found

    def corrupt(self, path, rounds):
        """Flips bits in the middle of the memory, where the arrays are."""
        try:
            with open(path, "r+b", buffering=0) as file:
                size = file.seek(0, os.SEEK_END)
                for i in range(rounds if size > 32 << 20 else 0):
                    os.pwrite(file.fileno(), b"\x7f" * 64, size * 3 // 10 + i * size // 2 // rounds)
        except OSError:
            pass

    def test_wrong_data_is_a_fault_of_the_node(self):
        path, log = self.folder / "wrong.json", self.folder / "wrong.log"
        process = harness.start("bench", "coll", "-b", "16M", "-e", "16M", "-c", 100, "-n", 1, "-w",
                                0, "--backend", "shm", "-J", path, ranks=2, log=log)
        try:
            while process.poll() is None:
                for each in self.shared_memory(path):
                    self.corrupt(each, 50)
        finally:
            harness.end_group(process)
        text = log.read_text()
        self.assertEqual(process.returncode, 76, text)
        self.assertRegex(text, r"# Out of bounds values : [12] FAILED\n")
        [result] = strict(path)["results"]
        self.assertGreater(result["metrics"]["wrong"], 0)

    def test_barrier_has_one_line(self):
        rows = table(coll("--op", "barrier").stdout)
        self.assertEqual([(r["size"], r["wrong"]) for r in rows], [("0", "N/A")])

    def test_collectives_as_reframe_reads_osu(self):
        for op, title in [("all_reduce", "Allreduce"),
                          ("all_to_all", "All-to-All Personalized Exchange")]:
            out = coll("--op", op, "-b", 32, "-e", 32, "--table", "osu").stdout
            self.assertIn(f"\n# OSU MPI {title} Latency Test v7.4\n# Datatype: MPI_FLOAT.\n"
                          "# Size       Avg Latency(us)        Validation\n", out)
            size = 32 if op == "all_reduce" else 16  # OSU's size is that of a block
            self.assertRegex(out, re.compile(rf"^{size}.*Pass", re.MULTILINE))
            value = re.search(rf"^{size}\s+(\S+)", out, re.MULTILINE)
            self.assertGreater(float(value[1]), 0)

    def test_tuning_table(self):
        path = self.folder / "tuning.json"
        coll("--op", "all_reduce,all_gather", "-e", "4K", "--write-tuning", path)
        tuning = strict(path)
        self.assertEqual((tuning["schema"], tuning["ranks"], tuning["hosts"]), (1, 2, 1))
        self.assertEqual({e["op"] for e in tuning["entries"]}, {"all_reduce", "all_gather"})
        self.assertEqual(tuning["entries"][-1]["max_bytes"], 1 << 60)


class PointToPoint(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()

    def test_p2p_as_reframe_reads_osu(self):
        # hpctestlib/microbenchmarks/mpi/osu.py of ReFrame: sanity and performance, for its sizes.
        for test, size in [("latency", 8), ("bandwidth", 4194304)]:
            out = harness.must(harness.run("bench", "p2p", "--test", test, "-m", f"{size}", "-x", 1,
                                           "-i", 2, "-c", ranks=2, timeout=120)).stdout
            self.assertRegex(out, re.compile(rf"^{size}.*Pass", re.MULTILINE))
            value = re.search(rf"^{size}\s+(\S+)", out, re.MULTILINE)
            self.assertGreater(float(value[1]), 0)
            self.assertRegex(out, re.compile(r"^# Size .*Validation$", re.MULTILINE))

    def test_p2p_in_the_form_of_osu(self):
        path = self.folder / "p2p.json"
        out = harness.must(harness.run("bench", "p2p", "-m", "4:64K", "-i", 20, "-x", 2, "--pair",
                                       "2,0", "-J", path, ranks=3, timeout=120)).stdout
        for test, column in [("Latency", " Avg Latency(us)"), ("Bandwidth", "Bandwidth (MB/s)")]:
            self.assertIn(f"\n# OSU MPI {test} Test v7.4\n# Datatype: MPI_CHAR.\n"
                          f"# Size      {column}\n", out)
        latency, bandwidth = out.split("# Trireme bandwidth")
        sizes = [4 << i for i in range(15)]
        for part in (latency, bandwidth):
            rows = [line for line in part.splitlines() if line[:1].isdigit()]
            self.assertEqual([int(r[:10]) for r in rows], sizes)
            self.assertTrue(all(len(r) == 28 and float(r[10:]) >= 0 for r in rows), rows)
        results = strict(path)["results"]
        self.assertEqual(len(results), 30)
        for result in results:
            self.assertEqual(result["params"]["pair"], [2, 0])
            self.assertEqual(result["metrics"]["wrong"], 0)

    def test_p2p_ends_in_time_and_names_what_it_left_out(self):
        """A window of the largest size is 16 GiB, and would be measured 60 times."""
        path = self.folder / "late.json"
        out = harness.must(harness.run(
            "bench", "p2p", "--test", "bandwidth", "-m", "64K:4M", "-W", 4096, "--duration", 1,
            "-J", path, ranks=2, timeout=120)).stdout
        self.assertRegex(out, r"\n# left out, as --duration was too short: .*4 MiB\n")
        document = strict(path)
        self.assertIn("p2p_bw 4 MiB", document["left_out"])
        self.assertEqual(len(document["results"]) + len(document["left_out"]), 7)
        self.assertEqual(document["results"][0]["params"]["bytes"], 65536)

    def test_p2p_beside_mpi_itself(self):
        path = self.folder / "peer.json"
        out = harness.must(harness.run("bench", "p2p", "-m", "8:16", "-i", 20, "-x", 2, "--peer",
                                       "mpi", "-J", path, ranks=2, timeout=120)).stdout
        results = strict(path)["results"]
        rows = re.findall(r"^# (8|16) +([\d.]+) +([\d.]+) +([\d.]+)$", out, re.MULTILINE)
        self.assertEqual([row[0] for row in rows], ["8", "16"] * 2, out)
        for row, result in zip(rows, results):
            metrics = result["metrics"]
            if result["name"] == "p2p_latency":
                shown = metrics["mean_us"], metrics["peer_mean_us"]
                ratio = metrics["peer_mean_us"] / metrics["mean_us"]
            else:
                shown = 1e3 * metrics["bandwidth_GBps"], 1e3 * metrics["peer_bandwidth_GBps"]
                ratio = metrics["bandwidth_GBps"] / metrics["peer_bandwidth_GBps"]
            self.assertAlmostEqual(metrics["ratio"], ratio)
            for text, value in zip(row[1:], (*shown, ratio)):
                self.assertAlmostEqual(float(text), value, delta=0.0051)
            self.assertEqual(len(result["samples"]["peer_time_us"]["values"]), 20)

    def pairs(self, *arguments, ranks=3):
        return harness.run("bench", "pairs", "--bytes", "64K", "-n", 3, *arguments, ranks=ranks,
                           timeout=120)

    def test_pairs_matrix(self):
        table_file, figure = self.folder / "p.csv", self.folder / "p.svg"
        path = self.folder / "p.json"
        harness.must(self.pairs("--csv", table_file, "--svg", figure, "-J", path))
        with open(table_file, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["from", "host", "0", "1", "2"])
        [result] = strict(path)["results"]
        for i, row in enumerate(rows[1:]):
            self.assertEqual(row[0], str(i))
            for j, cell in enumerate(row[2:]):
                known = result["matrices"]["bandwidth_GBps"][i][j]
                if i == j:
                    self.assertEqual((cell, known), ("", None))
                else:
                    self.assertTrue(math.isclose(float(cell), known, rel_tol=1e-5))
                    self.assertGreater(result["matrices"]["latency_us"][i][j], 0)
        titles = [t for t in xml.etree.ElementTree.parse(figure).iter() if t.tag.endswith("title")]
        self.assertEqual(len(titles), 9)

    def test_a_matrix_of_many_ranks_fits_a_terminal(self):
        lines = harness.must(self.pairs(ranks=6)).stdout.splitlines()
        rows = [line for line in lines if re.match(r" +[0-5]  \S", line)]
        self.assertEqual(len(rows), 2 * 2 * 6)  # two matrices, each in two parts
        self.assertEqual([line for line in rows if len(line) > 80], [])

    def test_pairs_below_the_threshold(self):
        result = self.pairs("--threshold", "1000000GB/s")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertEqual(result.stdout.count(" FAILED\n"), 6)
        harness.must(self.pairs("--threshold", "0.000001GB/s"))

    def test_small_messages_have_a_unit_of_their_own(self):
        result = harness.must(harness.run("bench", "pairs", "--bytes", "1", "-n", 3, ranks=2))
        median = re.search(r"^# median (\S+) \S*B/s$", result.stdout, re.MULTILINE)
        self.assertGreater(float(median[1]), 0)
        self.assertRegex(result.stdout, r"# Bandwidth \((M|k)B/s\), row to column")

    def test_pairs_of_one_host(self):
        result = self.pairs("--by", "host")
        self.assertEqual(result.returncode, 2)
        self.assertIn("at least two hosts", result.stderr)


class Refusals(unittest.TestCase):
    def test_wrong_flags(self):
        for words, arguments in [
                (["prod", "sum, max, min"], ["coll", "-o", "prod"]),
                (["half", "bfloat16"], ["coll", "-d", "half"]),
                (["gather", "all_gather"], ["coll", "--op", "gather"]),
                (["nccl", "hierarchical"], ["coll", "--backend", "nccl"]),
                (["-e 8", "-b 16"], ["coll", "-b", 16, "-e", 8]),
                (["-f needs -b above 0"], ["coll", "-b", 0, "-e", 8, "-f", 2]),
                (["10000 sizes"], ["coll", "-b", 8, "-e", "1G", "-i", 8]),
                (["--stepfactor", "1024"], ["coll", "-f", 0]),
                (["--iters"], ["coll", "-n", "-1"]),
                (["8X"], ["coll", "-b", "8X"]),
                (["1024 GiB"], ["coll", "-e", "9999T"]),
                (["-r 1"], ["coll", "-r", 1]),
                (["--peer"], ["coll", "--peer", "nccl"]),
                (["no MPI"], ["coll", "--peer", "mpi"]),
                (["at least two"], ["coll", "--write-tuning", "x.json"]),
                (["mpirun -n 2"], ["pipeline"]),
                (["mpirun -n 2"], ["coll", "-b", 8, "-e", 8]),
                (["mpirun -n 2"], ["p2p"]),
                (["largest", "smallest"], ["p2p", "-m", "8:4"]),
                (["1 GiB"], ["p2p", "-m", "2G"]),
                (["--peer"], ["p2p", "--peer", "nccl"]),
                (["at least two ranks"], ["pairs"]),
                (["at least 1 MiB"], ["ckpt", "--bytes", 0]),
                (["80%", "GB/s"], ["pairs", "--threshold", "80%"])]:
            with self.subTest(arguments):
                result = harness.run("bench", *arguments, timeout=60)
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                for word in words:
                    self.assertIn(word, result.stderr)
        result = harness.run("bench", "p2p", "--pair", "1,1", ranks=2, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("--pair 1,1", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
