"""Fine-tunes on conversations as a user does: a tokenizer with a chat template, packing with a loss
mask, the same bits on any ranks, and the other commands on such a dataset."""

import json
import shutil
import subprocess
import unittest

import harness

TEMPLATE = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] | trim + "
            "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assist"
            "ant\n' }}{% endif %}")
CHAT = {"messages": [{"role": "user", "content": " Where is the ship? "},
                     {"role": "assistant", "content": "Along the coast."},
                     {"role": "user", "content": "And the oars?"},
                     {"role": "assistant", "content": "Below."}]}


class Conversations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        text = harness.make_text(cls.folder / "text", 40_000, 3)
        cls.tokenizer = cls.folder / "tokenizer"
        harness.must(harness.run("tokenizer", "train", text, "--vocab", 400, "--out", cls.tokenizer,
                                 "--special", "<|im_start|>", "--special", "<|im_end|>"))
        config = cls.tokenizer / "tokenizer_config.json"
        fields = json.loads(config.read_text())
        config.write_text(json.dumps({**fields, "chat_template": TEMPLATE}))
        words = (text / "text0.txt").read_text().split()
        lines = [json.dumps(CHAT)]
        for i in range(300):
            lines.append(json.dumps({"messages": [
                {"role": "user", "content": " ".join(words[5 * i:5 * i + 3])},
                {"role": "assistant", "content": " ".join(words[5 * i + 3:5 * i + 5])}]}))
        cls.lines = cls.folder / "chats.jsonl"
        cls.lines.write_text("\n".join(lines) + "\n")
        cls.data = cls.folder / "data"
        harness.must(harness.run("data", "pack", cls.lines, "--messages", "--tokenizer",
                                 cls.tokenizer, "--validation-fraction", 0.2, "--out", cls.data,
                                 ranks=2))

    def output(self, *words):
        return harness.must(harness.run(*words)).stdout

    def refused(self, code, words, *arguments):
        result = harness.run(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        for word in words:
            self.assertIn(str(word), result.stderr)

    def test_shows_what_is_learned(self):
        one = self.folder / "one.jsonl"
        one.write_text(json.dumps(CHAT["messages"][:3]))
        text = self.output("tokenizer", "chat", self.tokenizer, one, "--generation-prompt")
        self.assertEqual(text, "<|im_start|>user\nWhere is the ship?<|im_end|>\n<|im_start|>assista"
                               "nt\nAlong the coast.<|im_end|>\n<|im_start|>user\nAnd the oars?<|im"
                               "_end|>\n<|im_start|>assistant\n")
        answers = self.output("tokenizer", "chat", self.tokenizer, self.lines, "--answers")
        count = len(self.lines.read_text().splitlines())
        self.assertTrue(answers.startswith(
            f"--- conversation 1 of {count} ---\nAlong the coast.<|im_end|>\n\nBelow.<|im_end|>\n"))
        texts = self.output("tokenizer", "chat", self.tokenizer, self.lines, "--generation-prompt")
        self.assertEqual(texts.count("\n--- conversation "), count - 1)
        shown = json.loads(self.output("tokenizer", "chat", self.tokenizer, self.lines,
                                       "--json").splitlines()[0])
        learned = [i for i, m in zip(shown["ids"], shown["loss_mask"]) if m]
        self.assertEqual(self.output("tokenizer", "decode", self.tokenizer, "--special", "--ids",
                                     " ".join(map(str, learned))),
                         "Along the coast.<|im_end|>Below.<|im_end|>")
        encoded = self.output("tokenizer", "encode", self.tokenizer, "--text", shown["text"])
        self.assertEqual(list(map(int, encoded.split())), shown["ids"])

    def test_a_chat_uses_the_template(self):
        config = self.folder / "chat.yaml"
        config.write_text(
            "model: {family: llama, layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 400, "
            "context: 96}\n"
            f"data: {{train: {self.data / 'train'}, sequence: 96}}\n"
            "train: {steps: 2, global_batch: 4, precision: fp32, threads: 1}\n"
            f"run: {{dir: {self.folder / 'chat-run'}}}\n")
        harness.must(harness.run("train", config))
        words = ["generate", "--checkpoint", self.folder / "chat-run/checkpoints", "--tokenizer",
                 self.tokenizer, "--chat", "--json-lines", "--tokens", 3]

        def prompt_tokens(*more):
            ran = subprocess.run(harness.command([*words, *more]), env=harness.ENVIRONMENT,
                                 input='{"content": "Where is the ship?"}\n', text=True,
                                 capture_output=True, timeout=120, check=False)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            return json.loads(ran.stdout)["prompt_tokens"]

        def encoded(text):
            return len(self.output("tokenizer", "encode", self.tokenizer, "--text", text).split())

        self.assertEqual(prompt_tokens(), encoded(
            "<|im_start|>user\nWhere is the ship?<|im_end|>\n<|im_start|>assistant\n"))
        self.assertEqual(prompt_tokens("--user-mark", "Q: ", "--assistant-mark", "A: "),
                         encoded("Q: Where is the ship?\nA:"))
        other = self.folder / "plain.jinja"
        other.write_text("{% for m in messages %}[{{ m['content'] }}]{% endfor %}")
        self.assertEqual(prompt_tokens("--chat-template", other),
                         encoded("[Where is the ship?]"))
        self.refused(2, ["both given"], *words, "--chat-template", other, "--user-mark", "Q")
        self.refused(2, ["add --chat"], *words[:5], "--chat-template", other)

    def test_refuses_templates_and_lines_by_name(self):
        other = self.folder / "other.jinja"
        other.write_text("a\n{% macro f() %}{% endmacro %}")
        bad = self.folder / "bad.jsonl"
        bad.write_text(json.dumps(CHAT) + "\n" + json.dumps(CHAT["messages"][:1]) + "\n")
        out = self.folder / "bad"
        pack = ["data", "pack", "--out", out, "--tokenizer", self.tokenizer]
        self.refused(65, [other, "line 2", "'macro'"], *pack, self.lines, "--messages",
                     "--chat-template", other)
        self.refused(65, [bad, "line 2", "no answer"], *pack, bad, "--messages")
        self.refused(2, ["--messages"], *pack, self.lines, "--chat-template", other)
        self.refused(2, ["no chat template"], "data", "pack", self.lines, "--out", out,
                     "--messages")
        other.write_text("{{ messages[0].name.first }}")
        self.refused(65, [self.lines, "line 1", "'name' is undefined"], *pack, self.lines,
                     "--messages", "--chat-template", other)
        self.assertFalse(out.exists())

    def test_trains_with_the_same_bits_on_any_ranks(self):
        results = []
        for name, ranks, keys in (("one", 0, {}), ("two", 2, {}),
                                  ("zero", 2, {"parallel__zero": 2}),
                                  ("stages", 2, {"parallel__pp": 2})):
            config = harness.write_config(
                self.folder / f"{name}.yaml", [self.data / "train", self.data / "validation"],
                "small", train__steps=4, train__eval_every=4, **keys)
            harness.must(harness.run("train", config, ranks=ranks))
            results.append((harness.loss_bits(config), harness.digest(config),
                            harness.metrics(config)[-1]["val_loss"]))
        for other in results[1:]:
            self.assertEqual(results[0], other)
        evaluated = json.loads(self.output(
            "eval", "--checkpoint", self.folder / "one/checkpoints", "--data",
            self.data / "validation", "--json"))
        info = json.loads(self.output("data", "info", self.data / "validation", "--json"))
        self.assertLess(0, evaluated["tokens"])
        self.assertLessEqual(evaluated["tokens"], info["targets"])

    def test_conversations_can_be_kept_apart(self):
        sets = [self.data / "train", self.data / "validation"]
        results = []
        for name, ranks, keys in (("apart", 0, {}), ("apart-two", 2, {"parallel__zero": 2})):
            config = harness.write_config(
                self.folder / f"{name}.yaml", sets, "llama", train__steps=4, train__eval_every=4,
                data__documents="separate", **keys)
            harness.must(harness.run("train", config, ranks=ranks))
            results.append((harness.loss_bits(config), harness.digest(config),
                            harness.metrics(config)[-1]["val_loss"]))
        self.assertEqual(*results)

        def loss(*words):
            return json.loads(self.output(
                "eval", "--checkpoint", self.folder / "apart/checkpoints", "--data", sets[1],
                "--samples", 8, "--json", *words))["loss"]

        self.assertAlmostEqual(loss(), results[0][2], delta=1e-5)
        self.assertEqual(loss("--documents", "separate"), loss())
        self.assertNotAlmostEqual(loss("--documents", "joined"), loss(), delta=1e-4)
        config = self.folder / "apart.yaml"
        self.refused(2, ["data.documents", "separate", "joined"], "train", config,
                     "data.documents=joined", "train.steps=5")
        learned = harness.write_config(self.folder / "learned.yaml", sets, "small",
                                       train__steps=2)
        self.refused(2, ["data.documents", "learned"], "train", learned,
                     "data.documents=separate")
        harness.must(harness.run("train", learned))
        self.refused(2, ["--documents separate", "gpt2"], "eval", "--checkpoint",
                     self.folder / "learned/checkpoints", "--data", sets[1], "--documents",
                     "separate")

    def test_other_commands_know_the_mask(self):
        info = json.loads(self.output("data", "info", self.data / "train", "--json"))
        self.assertTrue(info["loss_mask"])
        self.assertLess(0, info["targets"])
        self.assertLess(info["targets"], info["tokens"] / 2)
        self.assertIn("targets", self.output("data", "info", self.data / "train"))
        self.assertNotIn("note:", self.output("data", "verify", self.data / "train"))
        self.output("data", "report", self.data / "train")
        self.output("data", "export", self.data / "train", "--format", "npy", "--out",
                    self.folder / "made/exported/arrays")
        mask = (self.folder / "made/exported/arrays.loss_mask.npy").read_bytes()[128:]
        self.assertEqual((len(mask), sum(mask)), (info["tokens"], info["targets"]))
        self.refused(65, ["arrays.loss_mask.npy", "would be lost"], "data", "convert",
                     self.folder / "made", "--vocab", 300, "--out", self.folder / "converted")
        self.output("data", "stage", self.data / "train", self.folder / "staged")
        key = self.folder / "site.key"
        harness.must(harness.run("keys", "create", "--out", key))
        self.output("data", "encrypt", self.folder / "staged", "--key", f"file:{key}")
        self.output("data", "verify", self.folder / "staged", "--key", f"file:{key}")
        # The tokenizer in the dataset has the template.
        self.assertEqual(
            self.output("tokenizer", "chat", self.data / "train/tokenizer", self.lines),
            self.output("tokenizer", "chat", self.tokenizer, self.lines))
        changed = self.folder / "changed"
        shutil.copytree(self.data / "train", changed)
        file = changed / "tokenizer/tokenizer.json"
        definition = json.loads(file.read_text())
        definition["model"]["merges"].pop()
        file.write_text(json.dumps(definition))
        verified = harness.run("data", "verify", changed)
        self.assertEqual(verified.returncode, 65)
        self.assertIn("the files in tokenizer/ are not those", verified.stdout)


if __name__ == "__main__":
    unittest.main()
