"""Tests run.trace: every rank's file is strict JSON, on one clock, with its lanes in order; the
summary adds up; a slow rank is named; and a trace that cannot be written does not end the run."""

import json
import shutil
import subprocess
import unittest

import harness

LAYOUTS = {"pipeline": (4, ["parallel.dp=2", "parallel.pp=2"]),
           "zero": (4, ["parallel.dp=2", "parallel.tp=2", "parallel.zero=3", "model.heads=4"])}
PARTS = ["compute_ms", "exposed_tp_ms", "exposed_dp_ms", "exposed_pp_ms", "bubble_ms", "data_ms",
         "optimizer_ms", "other_ms"]


def strict_json(text):
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def spans_of(trace, lane):
    events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["tid"] == lane]
    return sorted(((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e) for e in events),
                  key=lambda x: (x[0], -x[1]))


class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.runs = {}
        for name, (ranks, keys) in LAYOUTS.items():
            config = cls.config(name, train__steps=5, train__eval_every=4)
            harness.must(harness.run("train", config, "run.trace=2", *keys, ranks=ranks))
            cls.runs[name] = config

    @classmethod
    def config(cls, name, **keys):
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, **keys)

    def traces(self, name):
        files = sorted((harness.run_dir(self.runs[name]) / "trace").iterdir())
        self.assertEqual([f.name for f in files], [f"rank-{r:05}.json" for r in range(4)])
        return [strict_json(f.read_text()) for f in files]

    def summary(self, folder):
        return strict_json(harness.must(harness.run("trace", "summary", folder, "--json")).stdout)

    def test_every_rank_has_its_steps(self):
        for name in LAYOUTS:
            with self.subTest(name):
                for rank, trace in enumerate(self.traces(name)):
                    self.assertEqual(trace["trireme"]["rank"], rank)
                    self.assertEqual(trace["trireme"]["dropped"], 0)
                    kinds = {}
                    for _, _, event in spans_of(trace, 0):
                        kinds.setdefault(event["cat"], []).append(event)
                    steps = [e["args"]["number"] for e in kinds["step"]]
                    self.assertEqual(steps, [3, 4])
                    self.assertEqual(len(kinds["evaluation"]), 1)
                    self.assertEqual(len(kinds["meet"]), 2)
                    names = [e["name"] for e in kinds["compute"]]
                    # There are 8 micro-batches on 2 replicas in 2 steps. The evaluation adds
                    # forward passes.
                    self.assertEqual(names.count("backward"), 8)
                    self.assertGreater(names.count("forward"), 8)
                    waits = "pp" if name == "pipeline" else "tp"
                    self.assertIn(waits, kinds)
                    self.assertIn("dp", kinds)

    def test_events_of_a_lane_do_not_overlap(self):
        for name in LAYOUTS:
            for trace in self.traces(name):
                lanes = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"]
                         if e["name"] == "thread_name"}
                self.assertEqual(lanes[0], "main")
                self.assertIn("dp", lanes.values())
                for lane in lanes:
                    open_spans = []
                    for start, end, event in spans_of(trace, lane):
                        if lane != 0 and start == end:
                            continue
                        while open_spans and open_spans[-1] <= start:
                            open_spans.pop()
                        # Only spans of the main thread can be nested.
                        if open_spans:
                            self.assertEqual(lane, 0, event)
                            self.assertLessEqual(end, open_spans[-1], event)
                        open_spans.append(end)

    def test_all_ranks_are_on_one_clock(self):
        # Ranks of one machine share a clock, so the measured offset must be within its uncertainty.
        for name in LAYOUTS:
            traces = self.traces(name)
            for trace in traces:
                clock = trace["trireme"]["clock"]
                self.assertLessEqual(abs(clock["offset_us"]), clock["uncertainty_us"])
            # A tensor is not received before it is sent.
            sent = {}
            for trace in traces:
                place = trace["trireme"]["place"]
                for start, _, e in spans_of(trace, 0):
                    if e["cat"] == "send":
                        key = (place["dp"], place["tp"], place["pp"], e["args"]["stage"], e["name"],
                               e["args"]["number"])
                        sent.setdefault(key, []).append(start)
            received = 0
            for trace in traces:
                place = trace["trireme"]["place"]
                slack = 2000 * trace["trireme"]["clock"]["uncertainty_us"] + 1e6
                for _, end, e in spans_of(trace, 0):
                    if e["cat"] == "pp" and "stage" in e["args"]:
                        key = (place["dp"], place["tp"], e["args"]["stage"], place["pp"], e["name"],
                               e["args"]["number"])
                        self.assertLessEqual(min(sent[key]), end + slack)
                        received += 1
            self.assertEqual(received > 0, name == "pipeline")

    def test_the_summary_adds_up(self):
        for name in LAYOUTS:
            summary = self.summary(harness.run_dir(self.runs[name]))
            self.assertEqual(summary["steps"], [3, 4])
            self.assertEqual([r["rank"] for r in summary["ranks"]], [0, 1, 2, 3])
            traces = self.traces(name)
            for row, trace in zip(summary["ranks"], traces):
                steps = [e["dur"] for _, _, e in spans_of(trace, 0) if e["cat"] == "step"]
                duration = sum(steps) / len(steps) / 1000
                self.assertAlmostEqual(row["t_iter_ms"], duration, delta=1e-6 * duration)
                self.assertAlmostEqual(sum(row[p] for p in PARTS), duration, delta=0.01 * duration)
                self.assertTrue(all(row[p] >= 0 for p in PARTS), row)
                self.assertGreater(row["compute_ms"], 0)
                self.assertGreater(row["evaluation_ms"], 0)
            self.assertEqual(summary["mean"]["bubble_ms"] > 0, name == "pipeline")
            self.assertEqual(summary["mean"]["exposed_tp_ms"] > 0, name == "zero")
            text = harness.must(harness.run("trace", "summary",
                                            harness.run_dir(self.runs[name]) / "trace")).stdout
            self.assertIn("rank 3", text)
            self.assertIn("bubble", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_a_slow_rank_is_named(self):
        # Use kernels that are many times slower than those of the others.
        config = self.config("slow", train__steps=6)
        train = harness.command(["train", config, "parallel.dp=2", "parallel.pp=2", "run.trace=4",
                                 "numerics.reproducibility=fast", "train.compare_every=0"])
        slow = ["env", "TRIREME_KERNELS=reference", *train]
        launch = [harness.MPIEXEC, "-n", "2", *train, ":", "-n", "1", *slow, ":", "-n", "1", *train]
        harness.must(subprocess.run(launch, env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL,
                                    capture_output=True, text=True, timeout=240, check=False))
        folder = harness.run_dir(config)
        summary = self.summary(folder)
        host = summary["ranks"][2]["host"]
        self.assertEqual(summary["stragglers"], [{"rank": 2, "host": host}], summary)
        text = harness.must(harness.run("trace", "summary", folder)).stdout
        self.assertIn(f"straggler: rank 2 on {host}", text)

    def refused(self, code, words, folder):
        result = harness.run("trace", "summary", folder)
        self.assertEqual(result.returncode, code, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_bad_traces(self):
        self.refused(66, ["nowhere"], self.folder / "nowhere")
        empty = self.folder / "empty"
        empty.mkdir()
        self.refused(66, ["run.trace"], empty)
        copy = self.folder / "copy"
        shutil.copytree(harness.run_dir(self.runs["pipeline"]) / "trace", copy)
        file = copy / "rank-00001.json"
        text = file.read_text()
        for damaged, word in [(text[: len(text) // 2], "not JSON"), ("[]", "trireme"),
                              (text.replace('"dur":', '"dur":-', 1), "dur"),
                              (text.replace('"ts":', '"ts":1e999,"was":', 1), "rank-00001.json"),
                              (text.replace('"ts":', '"ts":[],"was":', 1), "ts")]:
            file.write_text(damaged)
            self.refused(65, ["rank-00001.json", word], copy)
        file.unlink()
        self.refused(65, ["rank 1 of 4 is missing"], copy)

    def test_a_trace_that_cannot_be_written_is_lost_alone(self):
        config = self.config("full", train__steps=5)
        harness.run_dir(config).mkdir()
        (harness.run_dir(config) / "trace").write_text("in the way")
        result = harness.must(harness.run("train", config, "run.trace=2", ranks=2))
        self.assertIn("cannot write the trace of rank 1", result.stderr)
        plain = self.config("plain", train__steps=5)
        harness.must(harness.run("train", plain, ranks=2))
        self.assertEqual(harness.loss_bits(plain), harness.loss_bits(config))


if __name__ == "__main__":
    unittest.main(verbosity=2)
