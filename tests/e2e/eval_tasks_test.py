"""Tests the tasks and gates of `trireme eval`. The scores are computed a second time: a plain model
in Python reads the exported weights, and lm-evaluation-harness's definitions are applied to it."""

import json
import math
import re
import unittest

import harness
import plain_gpt2

END = 256
CONTEXT = 48
TEXT = "the ship sails under oars along three banks of water. "
NAMES = ["ship", "water", "banks", "oars"]


def encode(text):
    return list(text.encode())


class Judge:
    """The definitions of the harness, over logits that this program has not computed."""

    def __init__(self, model):
        self.model = model

    def score(self, context, continuation):
        """Returns the log-likelihood, and whether each token is the most likely one."""
        ids = (context + continuation)[-(CONTEXT + 1):]
        rows = self.model.log_probabilities(ids[:-1])[-len(continuation):]
        return (sum(row[i] for row, i in zip(rows, continuation)),
                all(row.index(max(row)) == i for row, i in zip(rows, continuation)))

    def pair(self, context, continuation):
        blanks = len(context) - len(context.rstrip())
        if blanks > 0:
            continuation = context[-blanks:] + continuation
            context = context[:-blanks]
        return self.score(encode(context) or [END], encode(continuation))

    def rolling(self, text):
        ids = encode(text)
        total, done = 0, 0
        while done < len(ids):
            count = min(CONTEXT, len(ids) - done)
            end = done + count
            context = [END] if done == 0 else ids[end - CONTEXT - 1:done]
            total += self.score(context, ids[done:end])[0]
            done = end
        return total

    def greedy(self, prompt, tokens):
        ids, text = encode(prompt), ""
        for _ in range(tokens):
            row = self.model.log_probabilities(ids)[-1]
            ids.append(row.index(max(row)))
            if ids[-1] == END:
                break
            text = bytes(ids[len(encode(prompt)):]).decode(errors="replace")
            if "\n" in text:
                break
        return text.split("\n")[0]

    def choice(self, context, choices, gold):
        scores = [self.pair(context, f" {choice}")[0] for choice in choices]
        by = {"acc": scores,
              "acc_norm": [s / len(c) for s, c in zip(scores, choices)],
              "acc_bytes": [s / len(c.encode()) for s, c in zip(scores, choices)]}
        return scores, {name: float(each.index(max(each)) == gold) for name, each in by.items()}


def preprocess(text):
    text = text.strip().replace(" [title]", ". ")
    return re.sub("\\[.*?\\]", "", text).replace("  ", " ")


def hellaswag():
    return [{"ind": i, "activity_label": "Sea" if i % 2 else "Ünder [x] Oars",
             "ctx_a": f"[header] The ship {i} [title] sails.", "ctx_b": f"under {NAMES[i % 4]} ÉT",
             "endings": [f"{name} of  the [step] {'ÄÖÜ' * (i % 3)} {'sea ' * (k % 3)}sail"
                         for k, name in enumerate(NAMES)], "label": str((i * 7) % 4),
             "group": "odd" if i % 2 else "even"} for i in range(9)]


def arc():
    return [{"question": f"What has {NAMES[i % 4]}?",
             "choices": {"text": [NAMES[(i + k) % 4] + " of" * (k % 2) for k in range(3)],
                         "label": ["A", "B", "C"]}, "answerKey": "ABC"[i % 3]} for i in range(7)]


class EvalTasks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        (cls.folder / "text.txt").write_text(TEXT * 400)
        harness.must(harness.run("data", "pack", "--out", cls.folder / "data",
                                 cls.folder / "text.txt"))
        cls.config = cls.folder / "run.yaml"
        cls.config.write_text(
            f"model: {{family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 257, "
            f"context: {CONTEXT}}}\n"
            f"data: {{train: {cls.folder / 'data'}, sequence: 32}}\n"
            "train: {steps: 500, global_batch: 8, precision: fp32, threads: 1}\n"
            "optimizer: {lr: 0.01, schedule: {warmup: 10}}\n"
            f"run: {{dir: {cls.folder / 'run'}}}\n")
        harness.must(harness.run("train", cls.config))
        cls.checkpoints = harness.run_dir(cls.config) / "checkpoints"
        harness.must(harness.run("export", cls.checkpoints, "--format", "hf", "--dtype", "fp32",
                                 "--out", cls.folder / "hf"))
        cls.judge = Judge(plain_gpt2.PlainGpt2(cls.folder / "hf"))

    def written(self, name, examples):
        path = self.folder / name
        path.write_text("".join(json.dumps(example) + "\n" for example in examples))
        return path

    def evaluated(self, *words, ranks=0, code=0):
        result = harness.run("eval", "--checkpoint", self.checkpoints, *words, ranks=ranks)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def task(self, task, *words, ranks=0):
        """Returns the figures and the details of one task."""
        details = self.folder / "details.jsonl"
        result = self.evaluated("--task", task, "--json", "--details", details, *words, ranks=ranks)
        [figures] = json.loads(result.stdout)["tasks"].values()
        return figures, [json.loads(line) for line in details.read_text().splitlines()]

    def check_choices(self, figures, details, expected):
        self.assertEqual(figures["items"], len(expected))
        for detail, (scores, _) in zip(details, expected):
            for found, wanted in zip(detail["log_likelihoods"], scores):
                self.assertAlmostEqual(found, wanted, delta=2e-4)
        for name in ("acc", "acc_norm", "acc_bytes"):
            hits = [each[name] for _, each in expected]
            mean = sum(hits) / len(hits)
            spread = math.sqrt(sum((x - mean) ** 2 for x in hits) / (len(hits) - 1) / len(hits))
            self.assertAlmostEqual(figures[name], mean)
            self.assertAlmostEqual(figures[name + "_stderr"], spread)

    def test_hellaswag_is_scored_as_by_the_harness(self):
        examples = hellaswag()
        path = self.written("hellaswag.jsonl", examples)
        expected = []
        for each in examples:
            context = each["ctx_a"] + " " + each["ctx_b"].capitalize()
            expected.append(self.judge.choice(
                preprocess(each["activity_label"] + ": " + context),
                [preprocess(ending) for ending in each["endings"]], int(each["label"])))
        figures, details = self.task(f"hellaswag:{path}")
        self.check_choices(figures, details, expected)
        odd = [hit["acc"] for (_, hit), each in zip(expected, examples) if each["group"] == "odd"]
        self.assertAlmostEqual(figures["groups"]["odd"]["acc"], sum(odd) / len(odd))
        self.assertEqual(figures["groups"]["odd"]["items"], len(odd))
        together, _ = self.task(f"hellaswag:{path}", ranks=2)
        self.assertEqual(together, figures)
        for words in (["--precision", "bf16"], ["--quantize", "int8"]):
            rounded, _ = self.task(f"hellaswag:{path}", *words)
            self.assertEqual(rounded["items"], len(examples))

    def test_arc_is_scored_as_by_the_harness(self):
        path = self.written("arc.jsonl", arc())
        expected = [self.judge.choice(f"Question: {each['question']}\nAnswer:",
                                      each["choices"]["text"],
                                      each["choices"]["label"].index(each["answerKey"]))
                    for each in arc()]
        self.check_choices(*self.task(f"easy=arc:{path}"), expected)

    def test_lambada_is_scored_as_by_the_harness(self):
        texts = [TEXT[i:].strip()[:length] for i in range(0, 9, 2) for length in (20, 44, 54)]
        texts += ["word", "ends with two  blanks"]
        texts = [text.strip() for text in texts]
        path = self.written("lambada.jsonl", [{"text": text} for text in texts])
        expected = [self.judge.pair(" ".join(text.split(" ")[:-1]), " " + text.split(" ")[-1])
                    for text in texts]
        figures, details = self.task(f"lambada:{path}", ranks=2)
        for detail, (score, greedy) in zip(details, expected):
            self.assertAlmostEqual(detail["log_likelihoods"][0], score, delta=2e-4)
            self.assertEqual(detail["correct"], greedy)
        self.assertIn(True, [greedy for _, greedy in expected])
        self.assertIn(False, [greedy for _, greedy in expected])
        self.assertAlmostEqual(figures["acc"], sum(g for _, g in expected) / len(texts))
        mean = sum(score for score, _ in expected) / len(texts)
        self.assertAlmostEqual(figures["perplexity"] / math.exp(-mean), 1, delta=1e-4)

    def test_perplexity_by_document(self):
        texts = [TEXT, TEXT * 3, "wörter \n\n und ÄÖ ", "x"]
        path = self.written("documents.jsonl", [{"text": text} for text in texts])
        figures, details = self.task(f"perplexity:{path}")
        sums = [self.judge.rolling(text) for text in texts]
        sizes = [len(text.encode()) for text in texts]
        for detail, score, size in zip(details, sums, sizes):
            self.assertAlmostEqual(detail["perplexity"] / math.exp(-score / size), 1, delta=1e-4)
            self.assertEqual(detail["tokens"], size)
        words = sum(len(re.split(r"\s+", text)) for text in texts)
        for name, wanted in [
                ("loss", -sum(sums) / sum(sizes)),
                ("word_perplexity", math.exp(-sum(sums) / words)),
                ("byte_perplexity", math.exp(-sum(sums) / sum(sizes))),
                ("bits_per_byte", -sum(sums) / sum(sizes) / math.log(2)),
                ("document_perplexity_max", max(math.exp(-s / n) for s, n in zip(sums, sizes)))]:
            self.assertAlmostEqual(figures[name] / wanted, 1, delta=1e-4, msg=name)

    def test_exact_answers(self):
        prompts = ["the ship sails under ", "three banks of ", "the ship", "zzz"]
        answers = [self.judge.greedy(prompt, 9) for prompt in prompts]
        examples = [{"prompt": prompts[0], "answer": f" {answers[0]} "},
                    {"prompt": prompts[1], "answer": ["no", answers[1]]},
                    {"prompt": prompts[2], "answer": answers[2] + "x"},
                    {"prompt": prompts[3], "answer": answers[3]}]
        path = self.written("exact.jsonl", examples)
        figures, details = self.task(f"exact:{path}", "--task-tokens", 9, ranks=2)
        self.assertEqual([detail["answer"] for detail in details], answers)
        self.assertEqual([detail["correct"] for detail in details], [True, True, False, True])
        self.assertEqual(figures["exact_match"], 0.75)

    def test_gates_decide_the_exit_code(self):
        path = self.written("hellaswag.jsonl", hellaswag())
        gates = self.folder / "gates.yaml"
        baseline = self.folder / "baseline.json"
        words = ["--data", self.folder / "data", "--samples", 8, "--task", f"hs=hellaswag:{path}"]
        self.evaluated(*words, "-J", baseline)
        first = json.loads(baseline.read_text())
        gates.write_text(
            "baseline: baseline.json\n"
            "gates:\n"
            f"  loss: {{figure: loss, at_most: {first['loss']}, rise_at_most: 0%}}\n"
            "  bias: {figure: tasks.hs.acc, groups_differ_at_most: 1, least_items: 4}\n"
            "  quality: {figure: tasks.hs.acc_norm, drop_at_most: 0, at_least: 0}\n")
        passed = self.evaluated(*words, "--gate", gates, ranks=2)
        self.assertEqual(passed.stdout.count(" met"), 5, passed.stdout)
        baseline.write_text(json.dumps({**first, "loss": first["loss"] / 2}))
        missed = self.evaluated(*words, "--gate", gates, ranks=2, code=4)
        self.assertRegex(missed.stdout, r"loss +loss +rise <= 0% from [\d.]+ +[\d.]+  NOT MET")
        result = json.loads(self.evaluated(*words, "--gate", gates, "--json", code=4).stdout)
        self.assertEqual([gate["met"] for gate in result["gates"]],
                         [True, False, True, True, True])
        self.assertIs(result["gates_met"], False)
        gates.write_text("gates: {a: {figure: tasks.hs.f1, at_least: 0}}")
        refused = self.evaluated(*words, "--gate", gates, code=2)
        self.assertIn("gates.yaml:1: gate a: the result has no figure 'tasks.hs.f1'",
                      refused.stderr)
        self.assertEqual(refused.stdout, "")
        gates.write_text("gates: {a: {figure: perplexity, at_most: 9}}")
        refused = self.evaluated("--task", words[words.index("--task") + 1], "--gate", gates,
                                 code=2)
        self.assertIn("no figure 'perplexity'", refused.stderr)  # of --data, which is not given

    def test_what_is_refused(self):
        path = self.written("bad.jsonl", [{"text": "a b"}, {"txt": "c"}])
        tokens = self.written("tokens.jsonl", [{"text": "a " + "b" * CONTEXT + "c"}])
        answers = self.written("answers.jsonl", [{"prompt": "a", "answer": "b"}])
        for code, text, words in [
                (2, "nothing to evaluate", []),
                (2, "KIND:FILE", ["--task", "mmlu:x"]),
                (2, "two tasks are named lambada", ["--task", "lambada:a", "--task", "lambada:b"]),
                (66, "none.jsonl", ["--task", "lambada:none.jsonl"]),
                (65, "bad.jsonl:2: field 'text' is missing", ["--task", f"lambada:{path}"]),
                (2, "example 1: a continuation has 50 tokens", ["--task", f"lambada:{tokens}"]),
                (2, "--task-tokens 48 leaves no room",
                 ["--task", f"exact:{answers}", "--task-tokens", 48]),
                (2, "--baseline is for", ["--task", f"perplexity:{tokens}", "--baseline", "x"])]:
            result = self.evaluated(*words, code=code, ranks=2 if code == 65 else 0)
            self.assertIn(text, result.stderr)
            self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    unittest.main()
