"""Runs every benchmark of `trireme bench`, and checks what it writes: JSON by the strict validator,
CSV and OpenMetrics against the JSON."""

import copy
import csv
import json
import os
import re
import subprocess
import sys
import time
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "benchmarks/schema"))
import validate  # noqa: E402

# Command: its runs, each with the number of ranks (0: without mpirun) and arguments.
RUNS = {
    "step": [(2, ["--model", "tiny-gpt2", "--sequence", 32, "--rounds", 2])],
    "pipeline": [(2, ["--forward-ms", 1, "--input-ms", 1, "--weight-ms", 1, "--micro-batches", 2,
                      "--rounds", 2])],
    "loader": [(0, ["--rounds", 1]), (0, ["--rounds", 1, "--encrypt"]),
               (2, ["--emulate", "cosmoflow", "--dir", "/tmp", "--steps", 3, "--scale", 0.01,
                    "--data-bytes", "1M"])],
    "ckpt": [(0, ["--bytes", "2M", "--rounds", 1, "--memory", "/dev/shm",
                   "--encrypt"]),
             (2, ["--size", "llama3-8b", "--dir", "/tmp", "--bytes", "2M", "--rounds", 1])],
    "train": [(2, ["/dev/null.yaml", "--dir", "/tmp", "--steps", 2])],
    "all": [(2, ["--only", "noise,p2p", "--minutes", 0.3])],
    "gemm": [(3, ["--size", "33,64", "--duration", 0.2]),
             (0, ["--model", "tiny-gpt2", "--tokens", 24, "--precision", "bf16", "--duration",
                  0.2])],
    "mem": [(0, ["--bytes", "1M", "--duration", 0.2])],
    "noise": [(0, ["--quantum", 200, "--duration", 0.2])],
    "io": [(3, ["--dir", "/tmp", "-b", "1M", "-t", "64K", "-n", 20, "-i", 2])],
    "coll": [(3, ["--op", "all_reduce,broadcast,all_to_all,barrier", "-b", "1M", "-e", "1M", "-n",
                  3, "--peer", "mpi", "--backend", "mpi"]),
             (2, ["-c", 0, "-b", 0, "-e", 0, "-n", 3]),
             (2, ["-e", 8, "-n", 3, "--write-tuning", "/dev/null.json"])],
    "p2p": [(3, ["-m", "4:8", "-i", 20, "--pair", "2,0"])],
    "pairs": [(3, ["-n", 2]), (2, ["-n", 1, "--threshold", "0.000001GB/s"])],
}
# Has a CSV of its own, a matrix.
OWN_CSV = {"pairs"}
SAMPLE = re.compile(r'([a-z_A-Z0-9:]+)\{((?:[a-z_A-Z0-9]+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)')


def commands():
    """Returns the benchmarks that the program has."""
    text = harness.must(harness.run("bench", "--help")).stdout
    listed = re.split(r"\n\S*Commands?:\n", text, maxsplit=1, flags=re.IGNORECASE)[1]
    return {line.split()[0] for line in listed.split("\n\n")[0].splitlines()
            if re.match(r"  \S", line)}


def metrics_of(text):
    """Parses the text of --openmetrics strictly, and returns the samples."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""], lines[-2:]
    samples, family = [], None
    seen = set()
    for line in lines[:-2]:
        if line.startswith("# "):
            _, kind, name, rest = line.split(" ", 3)
            if kind == "HELP":
                assert name not in seen, f"{name} stands twice"
                family, _ = name, seen.add(name)
            else:
                assert (kind, name, rest) == ("TYPE", family, "gauge"), line
            continue
        match = SAMPLE.fullmatch(line)
        assert match and match[1] == family, line
        samples.append((match[1], match[2], float(match[3])))
    return samples


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        harness.write_config(cls.folder / "run.yaml",
                             harness.make_datasets(cls.folder, 20_000), model="small")

    def measured(self, name, ranks, arguments):
        """Runs a benchmark with all of the common options. Returns its files."""
        files = [self.folder / f"out.{kind}" for kind in ("json", "csv", "prom")]
        for file in files:
            file.unlink(missing_ok=True)
        stands_for = {"/dev/null.json": self.folder / "tuning.json",
                      "/dev/null.yaml": self.folder / "run.yaml"}
        words = [stands_for.get(a, a) for a in arguments]
        harness.must(harness.run("bench", name, *words, "-J", files[0], "--csv", files[1],
                                 "--openmetrics", files[2], ranks=ranks, timeout=120))
        return files

    def check_csv(self, file, results):
        with open(file, encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened, strict=True))
        self.assertEqual(len(rows), len(results))
        for row, result in zip(rows, results):
            self.assertEqual(row["name"], result["name"])
            for key, value in {**result["params"], **result["metrics"]}.items():
                if isinstance(value, bool):
                    self.assertEqual(row[key], str(value).lower())
                elif isinstance(value, (int, float)):
                    self.assertAlmostEqual(float(row[key]), value, delta=1e-9 * abs(value))
                elif value is None:
                    self.assertEqual(row[key], "")

    def check_openmetrics(self, file, document):
        samples = metrics_of(file.read_text(encoding="utf-8"))
        self.assertEqual(samples[0][:2], ("trireme_bench_time_seconds",
                                          f'command="{document["command"]}"'))
        numbers = sum(isinstance(value, (int, float)) for result in document["results"]
                      for value in result["metrics"].values())
        pairs = sum(isinstance(value, (int, float)) for result in document["results"]
                    for name in ("bandwidth_GBps", "latency_us")
                    for row in result.get("matrices", {}).get(name, []) for value in row)
        self.assertEqual(len(samples) - 4, numbers + pairs)
        self.assertEqual(len({sample[:2] for sample in samples}), len(samples))

    def test_every_benchmark(self):
        self.assertEqual(set(RUNS), commands())
        schema = json.loads(validate.SCHEMA.read_text(encoding="utf-8"))
        met = set()
        for name, runs in RUNS.items():
            for ranks, arguments in runs:
                with self.subTest(name, arguments=arguments):
                    files = self.measured(name, ranks, arguments)
                    text = files[0].read_text(encoding="utf-8")
                    self.assertEqual(validate.problems_of(text), [])
                    document = validate.parse(text)
                    self.assertEqual(document["command"], name)
                    self.assertIn(len(document["ranks"]), {ranks, max(ranks, 1)})
                    met |= {result["name"] for result in document["results"]}
                    for result in document["results"]:
                        for samples in result["samples"].values():
                            rows = len(samples["by_rank"] or [None])
                            self.assertIn(rows, {max(ranks, 1), 1})
                    if name not in OWN_CSV:
                        self.check_csv(files[1], document["results"])
                    self.check_openmetrics(files[2], document)
        # The schema describes no result that nothing writes. scale_test.py runs `trireme scale`,
        # and only a GPU gives mem_device.
        described = schema["$defs"]["result"]["properties"]["name"]["enum"]
        self.assertEqual(met | {"scale", "scale_fit", "mem_device"}, set(described))

    def test_duration_takes_the_place_of_a_count(self):
        for name, (ranks, arguments) in {
                "pipeline": (2, ["--forward-ms", 1, "--input-ms", 1, "--weight-ms", 1]),
                "coll": (2, ["-b", 8, "-e", 8]), "p2p": (2, ["-m", "8:8"]),
                "pairs": (2, ["-n", 1])}.items():
            with self.subTest(name):
                file = self.folder / "duration.json"
                harness.must(harness.run("bench", name, *arguments, "--duration", 0.3, "-J", file,
                                         ranks=ranks, timeout=120))
                document = validate.parse(file.read_text(encoding="utf-8"))
                self.assertEqual(validate.problems_of(file.read_text(encoding="utf-8")), [])
                for result in document["results"]:
                    stop = result["measurement"]["stop"]
                    self.assertEqual(stop["rule"], "duration")
                    for samples in result["samples"].values():
                        self.assertGreaterEqual(len(samples["values"]), 3)

    def test_refusals(self):
        missing = self.folder / "none" / "x.json"
        for code, words, arguments in [
                (66, f"cannot write -J {missing}: No such", ["-J", missing]),
                (66, f"cannot write --csv {missing}: No such", ["--csv", missing]),
                (66, "cannot write --openmetrics", ["--openmetrics", missing]),
                (77, "or a folder; name a regular file", ["-J", self.folder]),
                (77, "or a folder; name a regular file", ["--csv", self.folder]),
                (77, f"--openmetrics {self.folder} is", ["--openmetrics", self.folder]),
                (77, "is a device", ["-J", "/dev/full"]),
                (2, "-J '-' does not mean standard output", ["-J", "-"]),
                (2, "--duration", ["--duration", 0]),
                (2, "--duration", ["--duration", "nan"]),
                (2, "--duration", ["--duration", "1h"])]:
            with self.subTest(arguments):
                result = harness.run("bench", "loader", *arguments, timeout=60)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(words, result.stderr)
                self.assertEqual(result.stdout, "", "nothing was measured")

    def test_the_table_is_printed_though_a_file_cannot_be_written(self):
        """A folder takes the place of one of them after the check."""
        out, other = self.folder / "late.json", self.folder / "late.csv"
        process = harness.start("bench", "noise", "--duration", 3, "-J", out, "--csv", other,
                                ranks=0, log=self.folder / "late.log")
        time.sleep(1)
        out.mkdir()
        self.assertIn(process.wait(60), (74, 77))
        self.assertIn("# Trireme noise", (self.folder / "late.log").read_text())
        self.assertTrue(other.read_text().startswith("name,"), "the other file was written")


class Surroundings(unittest.TestCase):
    """What results tell about ranks and hosts."""

    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()

    def strict(self, path):
        text = path.read_text(encoding="utf-8")
        self.assertEqual(validate.problems_of(text), [])
        return validate.parse(text)

    def test_ranks_that_share_a_core(self):
        """Their results are right, and a warning says that the rates mean little."""
        path = self.folder / "shared.json"
        core = min(os.sched_getaffinity(0))
        ran = subprocess.run(
            ["taskset", "-c", str(core), *harness.command(
                ["bench", "coll", "-b", "64K", "-n", 20, "-J", path], ranks=5)],
            env=harness.ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        document = self.strict(path)
        self.assertGreater(document["waited_fraction"], 0.1)
        self.assertIn("the machine was busy", ran.stderr)
        self.assertEqual(document["results"][0]["params"]["ranks"], 5)
        self.assertEqual(document["results"][0]["metrics"]["wrong"], 0)

    def test_nodes_of_slurm_on_one_machine_are_measured_each(self):
        path = self.folder / "nodes.json"
        own_node = 'SLURMD_NODENAME=n$OMPI_COMM_WORLD_RANK exec "$@"'
        ran = subprocess.run(
            [harness.MPIEXEC, "-n", "2", "bash", "-c", own_node, "_", harness.PROGRAM, "bench",
             "noise", "--quantum", "200", "--method", "work", "--duration", "0.1", "-J", path],
            env=harness.ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual({r["params"]["host"] for r in self.strict(path)["results"]}, {"n0", "n1"})
        self.assertEqual(re.findall(r"^# node (\S+):$", ran.stdout, re.MULTILINE), ["n0", "n1"])

    def test_hosts_are_named_as_slurm_names_its_nodes(self):
        """Tables and rows have the name by which scontrol drains a node; `ranks` and `host` have
        the host's own name beside it."""
        path = self.folder / "named.json"

        def on_node(*arguments):
            out = harness.must(harness.run(
                "bench", *arguments, "-J", path, ranks=2, timeout=120,
                env={"SLURMD_NODENAME": "n77"})).stdout
            document = self.strict(path)
            self.assertEqual(document["host"]["node"], "n77")
            self.assertEqual([r["node"] for r in document["ranks"]], ["n77", "n77"])
            self.assertEqual({r["host"] for r in document["ranks"]}, {document["host"]["name"]})
            return out, document["results"][0]

        out, result = on_node("pairs", "--bytes", "64K", "-n", 3)
        self.assertEqual(len(re.findall(r"^ +[01]  n77 ", out, re.MULTILINE)), 4)
        self.assertEqual(result["matrices"]["hosts"], ["n77", "n77"])
        out, result = on_node("p2p", "--test", "latency", "-m", "8:8", "-i", 3, "-x", 1)
        self.assertEqual(result["params"]["hosts"], ["n77", "n77"])
        out, result = on_node("coll", "-b", "8", "-n", 3, "-w", 1)
        self.assertEqual(len(re.findall(r"^#  Rank  [01] .* on +n77 device", out, re.MULTILINE)), 2)
        self.assertEqual(result["params"]["hosts"], 1)
        _, result = on_node("all", "--minutes", 0.3, "--only", "noise")
        self.assertEqual(result["params"]["host"], "n77")


class Validator(unittest.TestCase):
    """The validator finds what is planted in a good document."""

    @classmethod
    def setUpClass(cls):
        file = harness.workspace() / "good.json"
        harness.must(harness.run("bench", "coll", "-b", 8, "-e", 8, "-n", 4, "-J", file, ranks=2,
                                 timeout=120))
        cls.good = validate.parse(file.read_text(encoding="utf-8"))

    def planted(self, change):
        document = copy.deepcopy(self.good)
        change(document)
        return validate.problems_of(json.dumps(document))

    def test_planted_faults(self):
        self.assertEqual(self.planted(lambda document: None), [])
        result = lambda document: document["results"][0]
        time = lambda document: result(document)["samples"]["in_place_us"]
        for words, change in [
                ("unknown key 'extra'", lambda d: d.update(extra=1)),
                ("unknown key 'busbw'", lambda d: result(d)["metrics"].update(busbw=1)),
                ("unknown key 'HOME'", lambda d: d["environment"].update(HOME="/root")),
                ("'time_us' is missing", lambda d: result(d)["metrics"].pop("time_us")),
                ("'samples' is missing", lambda d: result(d).pop("samples")),
                ("is none of", lambda d: result(d).update(name="colle")),
                ("is not 2", lambda d: d.update(schema=1)),
                ("is not of type", lambda d: result(d)["params"].update(bytes="8")),
                ("is not of type", lambda d: result(d)["params"].update(bytes=True)),
                ("is not of type", lambda d: result(d)["metrics"].update(wrong=0.5)),
                ("out of range", lambda d: d.update(waited_fraction=1.5)),
                ("'failed' is missing", lambda d: d.update(results=[])),
                ("median is", lambda d: time(d).update(median=time(d)["high"] * 2)),
                ("more or fewer", lambda d: time(d)["by_rank"][0].pop()),
                ("NaN is not JSON", lambda d: d.update(time=float("nan")))]:
            with self.subTest(words):
                problems = self.planted(change)
                self.assertTrue(any(words in problem for problem in problems), problems)
        text = json.dumps(self.good)
        self.assertIn("stands twice", validate.problems_of(text[:-1] + ', "schema": 2}')[0])
        self.assertIn("not JSON", validate.problems_of(text[:-20])[0])

    def test_files_that_cannot_be_read_are_named(self):
        folder = harness.workspace()
        (folder / "bytes.json").write_bytes(b"\xff\xfe")
        (folder / "wrong.json").write_text("{}")
        files = [str(folder / name) for name in ("absent.json", "bytes.json", "wrong.json")]
        result = subprocess.run([sys.executable, validate.__file__, *files], text=True,
                                capture_output=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        for file, words in zip(files, ("cannot be read", "cannot be read", "is missing")):
            self.assertRegex(result.stdout, rf"(?m)^{re.escape(file)}: .*{words}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
