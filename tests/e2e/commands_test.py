"""Runs every subcommand once as the documents show it, and parses its JSON strictly."""

import hashlib
import json
import os
import re
import shutil
import unittest
import xml.etree.ElementTree

import harness

SVG = "{http://www.w3.org/2000/svg}"


def strict_json(text):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.config = harness.write_config(
            cls.folder / "run.yaml", cls.datasets, "llama", "bf16", train__steps=20,
            train__eval_every=10, checkpoint__every=10, optimizer__lr=3e-3)
        harness.must(harness.run("train", cls.config, ranks=2))
        cls.checkpoints = harness.run_dir(cls.config) / "checkpoints"

    def test_help_has_examples(self):
        for words in [["train"], ["eval"], ["generate"], ["data", "pack"], ["data", "ls"],
                      ["data", "info"],
                      ["data", "verify"], ["data", "stage"], ["data", "convert"],
                      ["data", "export"], ["data", "report"], ["ckpt", "ls"],
                      ["ckpt", "show"], ["ckpt", "verify"], ["ckpt", "digest"], ["ckpt", "prune"],
                      ["bench", "step"], ["bench", "loader"], ["bench", "ckpt"],
                      ["config", "show"], ["plan"], ["plan", "schedule"], ["plan", "cluster"],
                      ["plan", "network"], ["plan", "simulate"],
                      ["trace", "summary"], ["slurm", "render"],
                      ["slurm", "submit"], ["doctor"], ["health"], ["man"],
                      ["audit", "keygen"], ["audit", "show"], ["audit", "verify"], ["verify"]]:
            with self.subTest(words):
                out = harness.must(harness.run(*words, "--help")).stdout
                self.assertIn("Example", out)

    def test_a_simulated_job_is_described_once(self):
        out = harness.run("plan", "simulate", "--nodes", "50", "nodes=60")
        self.assertEqual(out.returncode, 2)
        self.assertIn("nodes=60 contradicts --nodes 50", out.stderr)
        harness.must(harness.run("plan", "simulate", "--nodes", "50", "days=1", "--draws", "1"))

    def test_a_simulation_takes_the_times_of_saves_from_the_log_of_the_run(self):
        run = self.folder / "storm"
        shutil.copytree(harness.SOURCE / "tests/golden/journal", run)
        (run / "logs").mkdir()
        (run / "logs/rank-00000.jsonl").write_text(
            '{"event":"checkpoint","seconds":0.5,"stall_ms":2,"step":40}\n')
        result = strict_json(harness.must(harness.run(
            "plan", "simulate", "--journal", run, "--draws", "1", "days=0.01", "--no-measures",
            "--json")).stdout)
        self.assertEqual(result["disk_seconds"], 0.5)
        self.assertIn("1 save on disk in the run took 0.5 s", result["notes"][0])

    def test_version(self):
        version = strict_json(harness.must(harness.run("--version", "--json")).stdout)
        self.assertEqual((version["schema"], version["program"]), (1, "trireme"))
        self.assertIn("trireme", harness.must(harness.run("--version")).stdout)

    def test_metrics(self):
        keys = {"step", "loss", "loss_bits", "grad_norm", "lr", "tokens", "tokens_per_s",
                "step_ms", "mfu", "data_wait_ms", "comm_exposed_ms", "checkpoint_stall_ms",
                "memory_bytes", "time"}
        lines = (harness.run_dir(self.config) / "metrics.jsonl").read_text().splitlines()
        steps = [strict_json(line) for line in lines]
        self.assertEqual([m["step"] for m in steps], list(range(1, 21)))
        for m in steps:
            self.assertLessEqual(keys, set(m))
            self.assertLessEqual(m["mfu"], 1)
        page = (harness.SOURCE / "docs/metrics.md").read_text().split("## Prometheus")[0]
        documented = re.findall(r"(?m)^\| `(\w+)` \|", page)
        of_gpus = {"device_waits", "device_allocations", "device_graphs", "loss_scale",
                   "overflows", "co2_grams_per_step", "price_per_step"}
        of_several_sets = {"sources", "val_losses"}  # mixture_test.py
        self.assertEqual(sorted(set().union(*steps) | of_gpus | of_several_sets),
                         sorted(documented))
        self.assertTrue(of_gpus.isdisjoint(set().union(*steps)))
        self.assertEqual([m["step"] for m in steps if "val_loss" in m], [10, 20])
        self.assertLess(steps[-1]["val_loss"], steps[0]["loss"])
        self.assertEqual(steps[-1]["tokens"], 20 * 8 * 48)
        self.assertTrue(list((harness.run_dir(self.config) / "tensorboard").glob("events*")))

    def test_peak_memory_is_that_of_the_program(self):
        """The peak is not that of a larger process which started the program."""
        config = harness.write_config(self.folder / "peak.yaml", self.datasets, train__steps=2)
        held = b"x" * (1 << 30)
        harness.must(harness.run("train", config))
        lines = (harness.run_dir(config) / "logs/rank-00000.jsonl").read_text().splitlines()
        told = [e for e in map(strict_json, lines) if e.get("event") == "memory_measured"]
        self.assertLess(told[0]["ranks"][0]["total"], len(held))

    def test_bench_loader_writes_where_nobody_waits_for_it(self):
        temporary = self.folder / "shared-tmp"
        victim = self.folder / "victim"
        temporary.mkdir()
        victim.mkdir()
        # Plant links under all names that the ids of the next processes could lead to.
        pid = os.getpid()
        for number in range(pid, pid + 4000):
            (temporary / f"trireme-bench-{number}").symlink_to(victim)
        planted = len(list(temporary.iterdir()))
        harness.must(harness.run("bench", "loader", "--rounds", "1",
                                 env={"TMPDIR": str(temporary)}))
        self.assertEqual(list(victim.iterdir()), [])
        self.assertEqual(len(list(temporary.iterdir())), planted)

    def test_log_formats(self):
        def lines(log_format):
            config = harness.write_config(
                self.folder / f"{log_format}.yaml", self.datasets, "llama", "bf16", train__steps=2,
                train__log_every=1, run__log_format=log_format)
            return harness.must(harness.run("train", config)).stderr.splitlines()

        time = r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d "
        plain = lines("plain")
        self.assertEqual(len([x for x in plain if re.search(time + r"step [12]/2  loss \d", x)]), 2)
        for line in plain:
            self.assertRegex(line, time + "|^  ")
            if line.startswith("  "):  # a row of a table
                self.assertLessEqual(len(line), 80)
        megatron = [x for x in lines("megatron") if " iteration " in x]
        self.assertEqual(len(megatron), 2)
        self.assertIn("| lm loss: ", megatron[0])
        events = [strict_json(x) for x in lines("json")]
        self.assertEqual([e["step"] for e in events if e.get("event") == "step"], [1, 2])
        for run in self.folder.glob("*/logs/rank-*.jsonl"):
            for line in run.read_text().splitlines():
                self.assertNotRegex(strict_json(line).get("message", ""), "   ")

    def test_finished_runs_stay_finished(self):
        again = harness.must(harness.run("train", self.config, "run.name=x", ranks=2))
        self.assertIn("finished", again.stdout)
        self.assertIn("run the same command with", again.stdout)
        longer = again.stdout.splitlines()[-1].split()
        self.assertIn("train.steps=40", longer)
        harness.must(harness.run("config", "show", self.config, "run.name=x", *longer))
        shorter = harness.must(harness.run("train", self.config, "train.steps=10", ranks=2))
        self.assertIn("finished at step 20 (train.steps is 10)", shorter.stdout)
        # What was not trained must not pass for trained.
        for key in ("model.layers=3", "optimizer.lr=0.5", "train.global_batch=2"):
            other = harness.run("train", self.config, key, ranks=2)
            self.assertEqual(other.returncode, 2, other.stdout + other.stderr)
            self.assertIn("is finished, and the checkpoint of step 20 belongs to another run",
                          other.stderr)
            self.assertIn(key.split("=")[0], other.stderr)
        # The resolved configuration is a valid configuration.
        resolved = harness.run_dir(self.config) / "config.yaml"
        harness.must(harness.run("train", resolved, ranks=2))

    def test_config_show(self):
        out = harness.must(harness.run("config", "show", self.config, "train.seed=7")).stdout
        self.assertIn("command line", out)
        self.assertIn("run.yaml:", out)
        shown = strict_json(
            harness.must(harness.run("config", "show", self.config, "--json")).stdout)
        documented = (harness.SOURCE / "docs/configuration.md").read_text()
        meanings = {row[1]: row[2] for row in re.finditer(
            r"^\| `([a-z_]+\.[a-z0-9_.]+)` \|[^|]*\| ([^|]*) \|", documented, re.MULTILINE)}
        for key, meaning in meanings.items():
            without_links = re.sub(r"\[\w+\]\((\w+\.md)\)", r"docs/\1", meaning)
            meanings[key] = without_links.replace("`", "")
        # The document and trireme.yaml(5) have the same text for each key.
        self.assertEqual({k["key"]: k["doc"] for k in shown["keys"]}, meanings)

    def test_every_config_in_the_tree_parses(self):
        for file in sorted((harness.SOURCE / "configs/run").glob("*.yaml")):
            with self.subTest(file.name):
                harness.must(harness.run("config", "show", file))
        presets = sorted(p.stem for p in (harness.SOURCE / "configs/model").glob("*.yaml"))
        self.assertIn("gpt2-124m", presets)
        for preset in presets:
            with self.subTest(preset):
                harness.must(harness.run(
                    "config", "show", harness.SOURCE / "configs/run/demo.yaml",
                    f"model.preset={preset}"))

    def test_eval_agrees_with_training(self):
        out = harness.must(harness.run(
            "eval", "--checkpoint", self.checkpoints, "--data", self.datasets[1], "--samples", 8,
            "--micro-batch", 1, "--json", ranks=2)).stdout
        evaluation = strict_json(out)
        self.assertEqual(evaluation["schema"], 2)
        self.assertEqual(evaluation["loss"], harness.metrics(self.config)[-1]["val_loss"])
        self.assertEqual(evaluation["samples"], 8)

    def test_eval_counts_every_sample(self):
        def evaluate(micro_batch, ranks):
            return strict_json(harness.must(harness.run(
                "eval", "--checkpoint", self.checkpoints, "--data", self.datasets[1],
                "--samples", 23, "--micro-batch", micro_batch, "--json", ranks=ranks)).stdout)

        whole = evaluate(23, 0)
        for micro_batch, ranks in [(1, 0), (4, 0), (5, 2), (8, 4), (100, 2)]:
            part = evaluate(micro_batch, ranks)
            self.assertEqual(part["samples"], 23)
            self.assertAlmostEqual(part["loss"], whole["loss"], places=4)

    def test_generate_is_a_function_of_the_seed(self):
        def sample(seed, *more):
            return harness.must(harness.run(
                "generate", "--checkpoint", self.checkpoints, "--prompt", "the ship", "--tokens",
                100, "--seed", seed, "--top-k", 20, *more)).stdout

        first = sample(1)
        self.assertTrue(first.startswith("the ship"))
        self.assertGreater(len(first), 40)
        self.assertEqual(first, sample(1, "--threads", 2))
        self.assertNotEqual(first, sample(2))

    def test_generate_from_files_several_samples_and_stop_strings(self):
        def generate(*words):
            return harness.must(harness.run("generate", "--checkpoint", self.checkpoints, "--top-k",
                                            20, "--tokens", 60, "--seed", 3, *words)).stdout

        def samples(*words):
            return [strict_json(line) for line in generate("--json", *words).splitlines()]

        alone = samples("--prompt", "the ship")[0]
        self.assertEqual(generate("--prompt", "the ship"), "the ship" + alone["text"] + "\n")
        self.assertEqual((alone["finish"], alone["tokens"]), ("length", 60))

        plain = self.folder / "prompts.txt"
        plain.write_text("the ship\n\na harbour\n")
        several = samples("--prompts", plain, "--samples", 2)
        self.assertEqual([(s["prompt_number"], s["sample"], s["prompt"]) for s in several],
                         [(1, 1, "the ship"), (1, 2, "the ship"),
                          (2, 1, "a harbour"), (2, 2, "a harbour")])
        self.assertEqual(several[0], alone)  # independent of the other samples
        self.assertNotEqual(several[1]["text"], alone["text"])
        lines = self.folder / "prompts.jsonl"
        lines.write_text('{"prompt": "the ship"}\n{"prompt": "a harbour"}\n')
        self.assertEqual(samples("--prompts", lines, "--samples", 2), several)
        self.assertEqual(generate("--prompts", plain, "--samples", 2).count("\n--- prompt "), 3)

        cut = alone["text"][20:23]
        stopped = samples("--prompt", "the ship", "--stop", "\x01none", "--stop", cut)[0]
        self.assertEqual(stopped["text"], alone["text"][:alone["text"].index(cut)])
        self.assertEqual(stopped["finish"], "stop")

        for code, words in [(66, ["--prompts", self.folder / "none"]), (2, ["--stop", ""]),
                            (2, ["--prompt", "a", "--prompts", plain]), (2, ["--samples", 0])]:
            self.assertEqual(harness.run("generate", "--checkpoint", self.checkpoints,
                                         *words).returncode, code)

    def test_data_commands(self):
        info = strict_json(
            harness.must(harness.run("data", "info", self.datasets[0], "--json")).stdout)
        self.assertTrue(info)
        harness.must(harness.run("data", "verify", self.datasets[0]))
        staged = self.folder / "staged"
        harness.must(harness.run("data", "stage", self.datasets[0], staged))
        harness.must(harness.run("data", "verify", staged))

    def test_ckpt_commands(self):
        for words in [["ls"], ["show"], ["verify"]]:
            harness.must(harness.run("ckpt", *words, self.checkpoints))
        for words in [["ls"], ["verify", "--all"], ["prune", "--dry-run"]]:
            printed = harness.must(harness.run("ckpt", *words, self.checkpoints, "--json")).stdout
            strict_json(printed)
        whole = harness.must(harness.run("ckpt", "digest", self.checkpoints)).stdout
        model = harness.must(harness.run("ckpt", "digest", "--model", self.checkpoints)).stdout
        self.assertNotEqual(whole, model)
        before = sorted(p.name for p in self.checkpoints.glob("step-*"))
        harness.must(harness.run("ckpt", "prune", self.checkpoints, "--keep", 2, "--dry-run"))
        self.assertEqual(before, sorted(p.name for p in self.checkpoints.glob("step-*")))

    def test_plan(self):
        """Every figure is valid XML, with a box for every step inside its frame."""
        for schedule, chunks in [("gpipe", 1), ("1f1b", 1), ("zero_bubble", 1), ("interleaved", 3)]:
            with self.subTest(schedule):
                file = self.folder / f"{schedule}.svg"
                plan = strict_json(harness.must(harness.run(
                    "plan", "schedule", "--schedule", schedule, "--stages", 4, "--chunks", chunks,
                    "--micro-batches", 8, "--tied", "--schedule-svg", file, "--json")).stdout)
                self.assertEqual(len(plan["by_stage"]), 4)
                svg = xml.etree.ElementTree.parse(file).getroot()
                width = float(svg.get("width"))
                boxes = [e for e in svg.iter(SVG + "rect") if e.get("class") == "box"]
                kinds = 3 if schedule == "zero_bubble" else 2
                self.assertEqual(len(boxes), 4 * 8 * chunks * kinds + 8)
                for box in boxes:
                    self.assertGreater(float(box.get("width")), 0)
                    self.assertLess(float(box.get("x")) + float(box.get("width")), width)
                    self.assertIn("micro-batch", box.find(SVG + "title").text)

    def test_text_of_files_does_not_control_a_terminal(self):
        text = "\u202e\u0085\u009b31m"
        shown = r"\u202e\u0085\u009b31m"
        folder = self.folder / "planted"
        shutil.copytree(self.checkpoints, folder)
        path = folder / "step-00000020/manifest.json"
        body = path.read_text().split(',\n "seal"')[0]
        for old, new in [('"software": "', '"software": "' + text),
                         ('"data.shuffle":"', '"data.shuffle":"' + text),
                         ('"skipped_steps":0', f'"skipped_steps":"{text}"')]:
            self.assertEqual(body.count(old), 1, old)
            body = body.replace(old, new)
        digest = hashlib.sha256(body.encode()).hexdigest()
        path.write_text(f'{body},\n "seal": "sha256:{digest}"\n}}\n')
        for words, count in [(["ckpt", "show", folder], 3),
                             (["config", "show", self.config, f"run.name={text}"], 1)]:
            with self.subTest(words):
                out = harness.must(harness.run(*words)).stdout
                self.assertEqual(out.count(shown), count, out)
                self.assertFalse(set(text[:3]) & set(out))

    def test_full_output(self):
        for words in [["ckpt", "digest"], ["ckpt", "show"], ["ckpt", "ls"],
                      ["generate", "--temperature", 0, "--checkpoint"]]:
            with self.subTest(words):
                result = harness.run_on_full_output(*words, self.checkpoints)
                self.assertEqual(result.returncode, 74, result.stderr)
                self.assertIn("cannot write to standard output", result.stderr)

    def test_benchmarks(self):
        file = self.folder / "bench.json"
        cases = {
            "step": ["--model", "tiny-gpt2", "--sequence", 64, "--rounds", 2],
            "loader": ["--data", self.datasets[0], "--sequence", 48, "--rounds", 2],
            "ckpt": ["--dir", self.folder, "--bytes", "8M", "--rounds", 1],
        }
        for name, options in cases.items():
            with self.subTest(name):
                harness.must(harness.run("bench", name, *options, "-J", file))
                document = strict_json(file.read_text())
                self.assertEqual(document["schema"], 2)
                for result in document["results"]:
                    self.assertIn("fraction_of_ceiling", result["metrics"])

    def test_pipelines(self):
        """Runs two stages that sleep, and two that compute."""
        file = self.folder / "pipeline.json"
        for words in [["pipeline", "--schedule", "zero_bubble", "--micro-batches", 4,
                       "--rounds", 3],
                      ["pipeline", "--schedule", "interleaved", "--chunks", 2, "--rounds", 2],
                      ["step", "--model", "tiny-gpt2", "--sequence", 64, "--pp", 2, "--zero", 1,
                       "--micro-batches", 4, "--rounds", 2, "--recompute", "full"]]:
            with self.subTest(words):
                harness.must(harness.run("bench", *words, "-J", file, ranks=2))
                [result] = strict_json(file.read_text())["results"]
                metrics = result["metrics"]
                self.assertGreater(metrics["bubble_predicted"], 0)
                self.assertGreater(metrics["bubble_fraction"], 0)
                self.assertLess(metrics["bubble_fraction"], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
