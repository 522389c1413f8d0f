"""Tests `trireme bench gemm|mem|noise`, which measure a node."""

import hashlib
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


def sealed(fields):
    """Returns sealed JSON (src/base/sealed_json.h)."""
    body = "{\n" + ",\n".join(f' "{key}": {json.dumps(value)}' for key, value in fields.items())
    body += "\n"
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f'{body},\n "seal": "sha256:{digest}"\n}}\n'


class Machine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()

    def bench(self, *arguments, ranks=0, env=None):
        return harness.run("bench", *arguments, ranks=ranks, env=env, timeout=120)

    def results(self, *arguments, ranks=0, code=0, env=None):
        """Returns the results, and what was printed."""
        file = self.folder / "out.json"
        file.unlink(missing_ok=True)
        ran = self.bench(*arguments, "-J", file, ranks=ranks, env=env)
        self.assertEqual(ran.returncode, code, ran.stderr)
        text = file.read_text(encoding="utf-8")
        self.assertEqual(validate.problems_of(text), [])
        return json.loads(text)["results"], ran.stdout

    def refused(self, words, *arguments, code=2, ranks=0):
        result = self.bench(*arguments, ranks=ranks)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertIn(words, result.stderr)


class Gemm(Machine):
    def baseline(self, gigaflops, name="node.baseline"):
        rates = {f"products {p}": {"median": gigaflops, "deviation": 0, "unit": "GFLOP/s"}
                 for p in ("bf16", "fp32")}
        path = self.folder / name
        fields = {"format": "trireme health baseline", "version": 1, "node": "n1", "time": 1,
                  "folder": "/tmp", "rates": rates, "facts": {}, "counters": {}}
        path.write_text(sealed(fields), encoding="utf-8")
        return path

    def test_rates_of_every_rank(self):
        results, text = self.results("gemm", "--size", 96, "--duration", 0.2, ranks=3)
        self.assertEqual([r["params"]["precision"] for r in results], ["bf16", "fp32"])
        for result in results:
            metrics, params = result["metrics"], result["params"]
            flops = 2 * 96 ** 3
            self.assertAlmostEqual(metrics["flops_per_s"] * metrics["time_us"] * 1e-6 / flops, 3,
                                   places=6)
            samples = result["samples"]["time_us"]
            self.assertEqual(len(samples["by_rank"]), 3)
            for all_end, *own in zip(samples["values"], *samples["by_rank"]):
                self.assertGreaterEqual(all_end, max(own))
            self.assertEqual((metrics["wrong"], params["ranks"]), (0, 3))
            self.assertIsNone(metrics["fraction_of_baseline"])  # nothing is invented
            self.assertLessEqual(metrics["slowest_rank_flops_per_s"],
                                 metrics["fastest_rank_flops_per_s"])
            self.assertLess(metrics["slowest_rank"], 3)
        self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])

    def test_shapes_of_a_model(self):
        results, _ = self.results("gemm", "--model", "tiny-llama", "--tokens", 16, "--precision",
                                  "fp32", "--duration", 0.2)
        self.assertEqual(len(results), 15)
        self.assertEqual({r["params"]["pass"] for r in results},
                         {"forward", "data_gradient", "weight_gradient"})
        self.assertEqual({r["params"]["model"] for r in results}, {"tiny-llama"})

    def test_baseline(self):
        path = self.baseline(1000.0)
        results, text = self.results("gemm", "--size", 64, "--duration", 0.1, "--baseline", path)
        for result in results:
            metrics = result["metrics"]
            self.assertEqual(metrics["baseline_flops_per_s"], 1e12)
            self.assertAlmostEqual(metrics["fraction_of_baseline"], metrics["flops_per_s"] / 1e12,
                                   delta=1e-3)
        self.assertRegex(text, r"at least \d\.\d\d of the node's baseline\n")
        # The site's folder has the node's baseline.
        results, _ = self.results("gemm", "--size", 64, "--duration", 0.1,
                                  env={"TRIREME_SITE_DIR": str(self.folder)})
        self.assertEqual(results[0]["metrics"]["baseline_flops_per_s"], 1e12)

    def test_demands(self):
        run = ["gemm", "--size", 64, "--duration", 0.1, "--at-least", 50, "--baseline"]
        self.results(*run, self.baseline(1e9), code=4)
        self.results(*run, self.baseline(1e-9))

    def test_refusals(self):
        damaged = self.baseline(10.0, "damaged")
        damaged.write_text(damaged.read_text().replace("10.0", "10.5", 1))
        for code, words, arguments in [
                (2, "there is none", ["--at-least", 90]),
                (66, "none", ["--baseline", self.folder / "none"]),
                (65, "--save-baseline", ["--baseline", damaged]),
                (2, "--size", ["--size", 0]),
                (2, "--size", ["--size", "8,x"]),
                (2, "--precision", ["--precision", "fp64"]),
                (2, "no kernel for processors multiplies in fp16", ["--precision", "bf16,fp16"]),
                (2, "no kernel for processors multiplies in fp8", ["--precision", "fp8"]),
                (2, "built without CUDA", ["--device", "cuda"]),
                (2, "one of auto, cpu, cuda", ["--device", "tpu"]),
                (2, "are free", ["--size", 131072]),
                (2, "unknown preset", ["--model", "gpt5"])]:
            with self.subTest(arguments):
                self.refused(words, "gemm", *arguments, code=code)


class Mem(Machine):
    def test_stream(self):
        results, text = self.results("mem", "--bytes", "2M", "--duration", 0.5)
        streams = [r for r in results if r["name"] == "mem_stream"]
        self.assertEqual({(r["params"]["kernel"], r["params"]["stores"]) for r in streams
                          if r["params"]["numa_node"] is None},
                         {(k, s) for k in ("copy", "scale", "add", "triad")
                          for s in ("ordinary", "streaming")})
        for result in streams:
            elements = result["params"]["array_bytes"] // 8
            counted = {"copy": 16, "scale": 16, "add": 24, "triad": 24}[result["params"]["kernel"]]
            metrics, times = result["metrics"], result["samples"]["time_us"]
            self.assertEqual((elements, metrics["wrong"]), (1 << 18, 0))
            for rate, time in [("bytes_per_s", times["median"]), ("bytes_per_s_low", times["high"]),
                               ("best_bytes_per_s", min(times["values"]))]:
                self.assertAlmostEqual(metrics[rate] * time * 1e-6 / (counted * elements), 1,
                                       places=6)
        # The table has STREAM's form, for which sites have parsers.
        rows = re.findall(r"^(Copy|Scale|Add|Triad): +\d+\.\d  +\d\.\d{6}  +\d\.\d{6}  "
                          r"+\d\.\d{6}$", text, re.MULTILINE)
        self.assertEqual(rows[:4], ["Copy", "Scale", "Add", "Triad"])
        self.assertIn("Function    Best Rate MB/s  Avg time     Min time     Max time\n", text)
        [latency] = [r for r in results if r["name"] == "mem_latency"
                     and r["params"]["from_numa_node"] == r["params"]["to_numa_node"]][:1]
        self.assertGreater(latency["metrics"]["latency_ns"], 0)

    def test_one_test_alone(self):
        results, _ = self.results("mem", "--bytes", "1M", "--duration", 0.2, "--test", "latency")
        self.assertEqual({r["name"] for r in results}, {"mem_latency"})

    def test_says_when_caches_hold_the_arrays(self):
        result = self.bench("mem", "--bytes", "1M", "--duration", 0.1)
        self.assertRegex(result.stderr, "warning: (the arrays are|this system does not tell)")

    def test_refusals(self):
        for words, arguments in [("the free memory allows", ["--bytes", "99T"]),
                                 ("at least", ["--bytes", 8]),
                                 ("something to measure", ["--bytes", 0]),
                                 ("12X", ["--bytes", "12X"]),
                                 ("--test", ["--test", "stream"])]:
            with self.subTest(arguments):
                self.refused(words, "mem", *arguments)
        self.refused("without mpirun", "mem", "--bytes", "1M", ranks=2)


class Noise(Machine):
    def test_every_core(self):
        results, text = self.results("noise", "--quantum", 200, "--duration", 0.4)
        for method in ("fixed_work", "fixed_time"):
            cores = [r for r in results if r["params"]["method"] == method
                     and r["name"] == "noise_core"]
            [summary] = [r for r in results if r["params"]["method"] == method
                         and r["name"] == "noise"]
            self.assertEqual(len({r["params"]["cpu"] for r in cores}), len(cores))
            lost = {r["params"]["cpu"]: r["metrics"]["lost_fraction"] for r in cores}
            metrics = summary["metrics"]
            self.assertAlmostEqual(metrics["lost_fraction"], sum(lost.values()) / len(lost))
            self.assertEqual(metrics["worst_cpu_lost_fraction"], max(lost.values()))
            self.assertEqual(lost[metrics["worst_cpu"]], max(lost.values()))
            for result in cores:
                [samples] = result["samples"].values()
                self.assertEqual(len(samples["values"]), result["metrics"]["quanta"])
        for result in results:
            if result.get("worst_detours"):
                metrics = result["metrics"]
                self.assertAlmostEqual(result["worst_detours"][0]["detour_us"],
                                       metrics["most_us"] - metrics["least_us"], places=3)
        self.assertIn("# longest detour", text)
        self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])

    def test_finds_a_hog(self):
        """A thread that shares its core with another one loses time to it."""
        cpu = min(os.sched_getaffinity(0))
        hog = subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c",
                                "while True: pass"])
        try:
            file = self.folder / "hog.json"
            words = ["taskset", "-c", str(cpu)] + harness.command(
                ["bench", "noise", "--method", "work", "--duration", 1, "-J", file])
            subprocess.run(words, env=harness.ENVIRONMENT, check=True, capture_output=True,
                           timeout=120)
        finally:
            hog.kill()
            hog.wait()
        document = json.loads(file.read_text(encoding="utf-8"))
        core = document["results"][0]
        self.assertEqual(core["params"]["cpu"], cpu)
        self.assertGreater(core["metrics"]["lost_fraction"], 0.2)
        self.assertGreater(core["metrics"]["involuntary_switches"], 0)
        self.assertGreater(document["waited_fraction"], 0.1)

    def test_refusals(self):
        for words, arguments in [("--quantum", ["--quantum", 1]), ("--method", ["--method", "x"]),
                                 ("--duration", ["--duration", 0])]:
            with self.subTest(arguments):
                self.refused(words, "noise", *arguments)
        self.refused("without mpirun", "noise", ranks=2)


class OneTaskPerNode(Machine):
    """mem and noise measure each node of a job at once, by one rank per node."""

    def on_hosts(self, *arguments):
        file = self.folder / "hosts.json"
        file.unlink(missing_ok=True)
        ran = subprocess.run(
            [harness.SOURCE / "tests/support/hosts.py", "--hosts", "2", "--ranks-per-host", "1",
             "--", harness.PROGRAM, "bench", *map(str, arguments), "-J", file],
            env=harness.ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
        if ran.returncode == 77:
            self.skipTest(ran.stdout + ran.stderr)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        text = file.read_text(encoding="utf-8")
        self.assertEqual(validate.problems_of(text), [])
        return json.loads(text)["results"], ran.stdout

    def test_every_node_is_measured(self):
        for arguments in (["mem", "--bytes", "1M", "--test", "latency", "--duration", 0.1],
                          ["noise", "--quantum", 200, "--method", "work", "--duration", 0.1]):
            with self.subTest(arguments[0]):
                results, text = self.on_hosts(*arguments)
                self.assertEqual({r["params"]["host"] for r in results}, {"host0", "host1"})
                self.assertEqual(text.count("# node host"), 2)


class All(Machine):
    def test_one_table_and_one_document(self):
        only = ["all", "--only", "noise,gemm", "--minutes"]
        try:
            results, text = self.results(*only, 0.25)
        except AssertionError:  # a busy machine may need more time than that
            results, text = self.results(*only, 2)
        self.assertEqual({r["name"] for r in results}, {"gemm", "noise", "noise_core"})
        for line in ("gemm bf16 512", "gemm fp32 2048", "noise fixed_work", "noise fixed_time"):
            self.assertIn(line, text)
        self.assertNotIn("Trireme noise", text)  # the benchmark's own table

    def test_a_question_that_fails_stands_in_the_document(self):
        """Each with its own reason; the others are answered."""
        for only, answered in [("io,ckpt,loader", set()), ("noise,io", {"noise", "noise_core"})]:
            with self.subTest(only):
                path = self.folder / "failed.json"
                result = harness.run("bench", "all", "--minutes", 1, "--only", only, "--dir",
                                     "/proc/sys", "-J", path)
                self.assertIn(result.returncode, (66, 74, 77), result.stderr)
                self.assertEqual(validate.problems_of(path.read_text()), [])
                document = json.loads(path.read_text())
                self.assertEqual({r["name"] for r in document["results"]}, answered)
                asked = [word for word in only.split(",") if word != "noise"]
                self.assertEqual({each["question"] for each in document["failed"]}, set(asked))
                self.assertNotIn("left_out", document)
                for each in document["failed"]:
                    self.assertIn(f"# {each['question']}: failed: {each['reason']}", result.stdout)
                    self.assertIn(f"{each['question']} failed: ", result.stderr)

    def test_the_deadline_leaves_nothing_unnamed(self):
        """The time for measuring mem alone is longer than the time until the deadline."""
        path = self.folder / "late.json"
        gauges = self.folder / "late.prom"
        result = harness.run("bench", "all", "--minutes", 0.055, "--only", "mem,noise", "-J", path,
                             "--openmetrics", gauges)
        self.assertEqual(result.returncode, 85, result.stderr)
        self.assertIn("# mem: failed: did not end in time\n"
                      "# noise: left out: mem did not end in time\n", result.stdout)
        self.assertIn("bench all: mem failed: did not end in time", result.stderr)
        self.assertEqual(validate.problems_of(path.read_text()), [])
        document = json.loads(path.read_text())
        self.assertEqual(document["failed"],
                         [{"question": "mem", "reason": "did not end in time"}])
        self.assertEqual(document["left_out"], ["noise"])
        self.assertIsInstance(document["waited_fraction"], float)
        self.assertGreater(document["waited_fraction"], 0)
        self.assertIn('trireme_bench_left_out{command="all"} 1\n', gauges.read_text())
        page = harness.must(harness.run("report", path, "--markdown")).stdout
        self.assertIn("mem has failed: did not end in time", page)

    def test_the_deadline_keeps_what_was_measured(self):
        """The first product ends long before the deadline, the time for all of them after it."""
        path, rows = self.folder / "rows.json", self.folder / "rows.csv"
        result = harness.run("bench", "all", "--minutes", 0.06, "--only", "gemm", "-J", path,
                             "--csv", rows)
        self.assertEqual(result.returncode, 85, result.stderr)
        self.assertEqual(validate.problems_of(path.read_text()), [])
        results = json.loads(path.read_text())["results"]
        if not results:
            self.skipTest("the machine was too busy for a single product")
        self.assertEqual({(r["name"], r["unfinished"]) for r in results}, {("gemm", True)})
        self.assertRegex(result.stdout, r"(?m)^gemm bf16 512 .*FLOP/s, unfinished$")
        self.assertTrue(all(line.endswith(",true") for line in rows.read_text().splitlines()[1:]))
        history = self.folder / "history.jsonl"
        added = harness.must(harness.run("history", history, "--add", path))
        self.assertIn("no complete answer of gemm: did not end in time", added.stderr)
        compared = harness.run("compare", path, path)
        self.assertIn("A: no complete answer of gemm: did not end in time", compared.stdout)

    def test_a_signal_keeps_what_was_measured(self):
        # mpirun passes SIGUSR1 on; at SIGTERM, it kills its ranks after a second.
        for ranks, number in ((0, signal.SIGTERM), (2, signal.SIGUSR1)):
            with self.subTest(ranks=ranks):
                path, log = self.folder / f"ended-{ranks}.json", self.folder / f"ended-{ranks}.log"
                process = harness.start("bench", "all", "--minutes", 0.8, "--only", "noise,step",
                                        "-J", path, ranks=ranks, log=log)
                self.addCleanup(harness.end_group, process)
                harness.until(f"noise: {log.read_text()}", 280,
                              lambda: "bench all: step" in log.read_text())
                process.send_signal(number)
                code = process.wait(60)
                if ranks == 0:
                    self.assertEqual(code, -number)
                harness.until(path, 10, path.exists)
                self.assertEqual(validate.problems_of(path.read_text()), [])
                document = json.loads(path.read_text())
                self.assertEqual({r["name"] for r in document["results"]}, {"noise", "noise_core"})
                reason = f"was interrupted by signal {int(number)}"
                self.assertEqual(document["failed"], [{"question": "step", "reason": reason}])
                self.assertIn(f"# step: failed: {reason}\n", log.read_text())

    def test_any_number_of_ranks_can_step(self):
        path = self.folder / "three.json"
        result = harness.must(harness.run("bench", "step", "--model", "tiny-gpt2", "--sequence", 32,
                                          "--rounds", 2, "-J", path, ranks=3))
        self.assertIn("3 replicas are no power of two", result.stderr)
        self.assertEqual(validate.problems_of(path.read_text()), [])
        (step,) = json.loads(path.read_text())["results"]
        self.assertEqual((step["params"]["dp"], step["params"]["reproducibility"]), (3, "layout"))

    def test_a_refused_option_is_not_offered(self):
        def help_of(command):
            return harness.must(harness.run("bench", command, "--help")).stdout

        for command in ["all", "train"]:
            self.assertNotIn("--duration", help_of(command))
        self.assertIn("--duration", help_of("gemm"))

    def test_refusals(self):
        for words, arguments in [("no benchmark had time", ["--minutes", 0.05, "--only", "step"]),
                                 ("--minutes", ["--minutes", 0]),
                                 ("instead of --duration", ["--duration", 1]),
                                 ("--only", ["--only", "disk"]),
                                 ("one rank", ["--only", "coll"])]:
            with self.subTest(arguments):
                self.refused(words, "all", *arguments)


if __name__ == "__main__":
    unittest.main(verbosity=2)
