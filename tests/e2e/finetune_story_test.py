"""The whole way of docs/finetune.md, on files that the test makes: a tiny Llama in Hugging Face's
layout is imported, tuned on instructions with adapters on two ranks, judged by gates, merged,
quantized, and asked questions in a chat."""

import array
import json
import random
import shutil
import struct
import subprocess
import unittest

import harness

VOCAB = 400
MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
         "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": VOCAB,
         "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
         "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
         "torch_dtype": "float32"}
TEMPLATE = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + "
            "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assist"
            "ant\n' }}{% endif %}")
ANSWERS = {"Where do the oars lie?": "Along three banks.", "What moves the ship?": "The wind.",
           "What does the ship sail?": "The wave.", "Where is the water?": "Under the banks."}


def shapes():
    """The tensors of the model, by Hugging Face's names."""
    hidden, inner = MODEL["hidden_size"], MODEL["intermediate_size"]
    keys = MODEL["num_key_value_heads"] * MODEL["head_dim"]
    found = {"model.embed_tokens.weight": (VOCAB, hidden), "model.norm.weight": (hidden,),
             "lm_head.weight": (VOCAB, hidden)}
    for i in range(MODEL["num_hidden_layers"]):
        block = f"model.layers.{i}."
        found |= {block + "input_layernorm.weight": (hidden,),
                  block + "post_attention_layernorm.weight": (hidden,),
                  block + "self_attn.q_proj.weight": (hidden, hidden),
                  block + "self_attn.k_proj.weight": (keys, hidden),
                  block + "self_attn.v_proj.weight": (keys, hidden),
                  block + "self_attn.o_proj.weight": (hidden, hidden),
                  block + "mlp.gate_proj.weight": (inner, hidden),
                  block + "mlp.up_proj.weight": (inner, hidden),
                  block + "mlp.down_proj.weight": (hidden, inner)}
    return found


def write_model(folder):
    """Writes config.json and model.safetensors, with weights from a generator of random numbers."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(MODEL))
    drawn = random.Random(18)
    header, data = {}, b""
    for name, shape in sorted(shapes().items()):
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        # Frozen weights of the head limit how sure the tuned model can be.
        deviation = 0.5 if name == "lm_head.weight" else 0.06
        values = [drawn.gauss(0, deviation) if len(shape) == 2 else 1.0 for _ in range(count)]
        raw = array.array("f", values).tobytes()
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


class FinetuneStory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.model, cls.base = cls.folder / "models/tiny", cls.folder / "checkpoints/tiny"
        write_model(cls.model)
        text = harness.make_text(cls.folder / "text", 40_000, 3)
        made = cls.folder / "tokenizer"
        harness.must(harness.run("tokenizer", "train", text, "--vocab", VOCAB, "--out", made,
                                 "--special", "<|im_start|>", "--special", "<|im_end|>"))
        for file in made.iterdir():
            (cls.model / file.name).write_bytes(file.read_bytes())
        config = cls.model / "tokenizer_config.json"
        fields = json.loads(config.read_text())
        config.write_text(json.dumps({**fields, "chat_template": TEMPLATE}))
        chats = cls.folder / "chats.jsonl"
        questions = list(ANSWERS)
        chats.write_text("".join(json.dumps({"messages": [
            {"role": "user", "content": questions[i % len(questions)]},
            {"role": "assistant", "content": ANSWERS[questions[i % len(questions)]]}]}) + "\n"
            for i in range(800)))
        cls.data = cls.folder / "data/chats"
        harness.must(harness.run("data", "pack", chats, "--messages", "--tokenizer", cls.model,
                                 "--validation-fraction", 0.05, "--out", cls.data))
        harness.must(harness.run("import", cls.model, "--out", cls.base, ranks=2))
        cls.tuned = cls.folder / "runs/tuned/checkpoints"
        cls.config = cls.folder / "tune.yaml"
        cls.config.write_text(
            "model: {family: llama, layers: 2, hidden: 64, heads: 4, kv_heads: 2, ffn: 128,\n"
            f"        vocab: {VOCAB}, context: 64, tie_embeddings: false}}\n"
            f"data: {{train: {cls.data}/train, validation: {cls.data}/validation,\n"
            "       documents: separate}\n"
            "train: {steps: 150, global_batch: 8, precision: fp32, threads: 1, log_every: 50}\n"
            "optimizer: {lr: 0.02, weight_decay: 0, schedule: {warmup: 5}}\n"
            f"run: {{dir: {cls.folder}/runs/tuned}}\n")
        harness.must(harness.run(
            "train", cls.config, f"checkpoint.init_from={cls.base}", "lora.products=all",
            "lora.rank=8", ranks=2))
        cls.merged = cls.folder / "models/tuned"
        harness.must(harness.run("export", cls.tuned, "--format", "hf", "--out", cls.merged))
        cls.again = cls.folder / "checkpoints/tuned"
        harness.must(harness.run("import", cls.merged, "--out", cls.again))

    def evaluated(self, checkpoint, *words, code=0):
        result = harness.run("eval", "--checkpoint", checkpoint, "--data",
                             self.data / "validation", "--documents", "separate",
                             "--any-tokenizer", *words)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def loss(self, checkpoint, *words):
        return json.loads(self.evaluated(checkpoint, "--json", *words))["loss"]

    def answers(self, checkpoint, *words):
        """Returns the answers of a chat, each of which begins anew."""
        lines = "".join(json.dumps({"content": question, "reset": True}) + "\n"
                        for question in ANSWERS)
        ran = subprocess.run(
            harness.command(["generate", "--checkpoint", checkpoint, "--tokenizer", self.model,
                             "--chat", "--json-lines", "--temperature", 0, "--tokens", 12, *words]),
            env=harness.ENVIRONMENT, input=lines, text=True, capture_output=True, timeout=120,
            check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return [json.loads(line)["content"].strip() for line in ran.stdout.splitlines()]

    def test_all_weights_keep_the_files_of_the_tokenizer(self):
        model, base = self.folder / "models/ending", self.folder / "checkpoints/ending"
        shutil.copytree(self.model, model)
        (model / "config.json").write_text(json.dumps({**MODEL, "eos_token_id": 3}))
        (model / "generation_config.json").write_text('{"eos_token_id": 3}')
        harness.must(harness.run("import", model, "--out", base))
        pruned = self.folder / "checkpoints/pruned"
        harness.must(harness.run("sparsify", base, "--out", pruned, "--sparsity", 0.25))
        files = {path.name: path.read_bytes() for path in model.iterdir()
                 if path.name not in ("config.json", "model.safetensors")}
        self.assertIn("tokenizer.json", files)

        def train(name, first, *words):
            run = self.folder / "runs" / name
            harness.must(harness.run("train", self.config, f"checkpoint.init_from={first}",
                                     f"run.dir={run}", "optimizer.schedule.warmup=1", *words))
            return run / "checkpoints"

        def check(name, checkpoints):
            out = self.folder / "models" / name
            done = harness.must(harness.run("export", checkpoints, "--format", "hf", "--out", out))
            self.assertNotIn("warning", done.stderr)
            self.assertEqual(json.loads((out / "config.json").read_text())["eos_token_id"], 3)
            self.assertEqual({path.name: path.read_bytes() for path in out.iterdir()
                              if path.name not in ("config.json", "model.safetensors")}, files)

        two = ("train.steps=2", "optimizer.schedule.steps=4")
        whole = train("whole", base, *two)
        check("whole", whole)
        train("whole", base, "train.steps=4")
        self.assertTrue((whole / "step-00000004").exists())
        check("resumed", whole)
        check("pruned", train("recovered", pruned, *two))
        check("again", train("again", whole, *two))
        check("adapters", train("adapters", whole, *two, "lora.products=all"))
        shutil.rmtree(base)
        out = self.folder / "models/lost"
        lost = harness.must(harness.run("export", whole, "--format", "hf", "--out", out))
        self.assertIn("warning: the files beside the model are missing", lost.stderr)
        self.assertIn(str(base), lost.stderr)
        self.assertEqual(json.loads((out / "config.json").read_text())["eos_token_id"], 3)
        info = [json.loads(harness.must(harness.run("tokenizer", "info", folder, "--json")).stdout)
                for folder in (out, model)]
        self.assertEqual(info[0]["digest"], info[1]["digest"])  # from the dataset

    def generated(self, checkpoint, *words):
        done = harness.must(harness.run("generate", "--checkpoint", checkpoint, "--temperature", 0,
                                        "--tokens", 6, "--json", *words))
        return json.loads(done.stdout)

    def imported_copy(self, name, config=None, tokenizer=None, generation=None):
        """Imports the model with other files, and returns the checkpoint."""
        model, checkpoint = self.folder / "models" / name, self.folder / "checkpoints" / name
        shutil.copytree(self.model, model)
        for file, value in (("config.json", config), ("tokenizer.json", tokenizer),
                            ("generation_config.json", generation)):
            if value is not None:
                (model / file).write_text(json.dumps(value))
        harness.must(harness.run("import", model, "--out", checkpoint))
        return checkpoint

    def test_text_begins_and_ends_as_the_files_beside_the_model_say(self):
        question = ("--prompt", next(iter(ANSWERS)))
        for checkpoint in (self.base, self.tuned):
            self.assertEqual(self.generated(checkpoint, *question),
                             self.generated(checkpoint, *question, "--tokenizer", self.model))
        self.assertEqual(self.generated(self.base, *question)["finish"], "length")
        ends = self.imported_copy("ends", config={**MODEL, "eos_token_id": list(range(VOCAB))})
        for words in (question, ("--ids", "--prompt", "5 6 7")):
            sample = self.generated(ends, *words)
            self.assertEqual((sample["finish"], sample["tokens"]), ("end", 1))

        definition = json.loads((self.model / "tokenizer.json").read_text())
        begin = next(token["id"] for token in definition["added_tokens"]
                     if token["content"] == "<|im_start|>")
        definition["post_processor"] = {
            "type": "TemplateProcessing", "pair": [],
            "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [begin],
                                                "tokens": ["<|im_start|>"]}}}
        begins = self.imported_copy("begins", tokenizer=definition)
        begun = self.generated(begins, *question, "--special")["text"]
        self.assertEqual(begun, self.generated(
            begins, "--prompt", f"<|im_start|>{question[1]}")["text"])
        self.assertNotEqual(begun, self.generated(begins, *question)["text"])
        refused = harness.run("generate", "--checkpoint", self.tuned, *question, "--special")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("puts no tokens before a text", refused.stderr)

    def data_of_another_tokenizer(self):
        """Returns a dataset, and what `tokenizer info` says of its tokenizer."""
        text, made = self.folder / "text", self.folder / "other-tokenizer"
        data = self.folder / "data/other"
        harness.must(harness.run("tokenizer", "train", text, "--vocab", 300, "--out", made))
        harness.must(harness.run("data", "pack", text, "--tokenizer", made, "--out", data))
        info = harness.must(harness.run("tokenizer", "info", made, "--json")).stdout
        return data, json.loads(info)

    def test_a_model_that_learned_another_tokenizer_is_exported_with_it(self):
        base = self.imported_copy("first", config={**MODEL, "bos_token_id": 7,
                                                   "eos_token_id": list(range(VOCAB))},
                                  generation={"eos_token_id": 5})
        data, info = self.data_of_another_tokenizer()
        words = (f"data.train={data}", "data.validation=", f"checkpoint.init_from={base}",
                 "train.steps=2", "optimizer.schedule.steps=2", "optimizer.schedule.warmup=1")
        runs = {"learned": (), "adapted": ("lora.products=all",)}
        for name, more in runs.items():
            run = f"run.dir={self.folder}/runs/{name}"
            examined = harness.run("doctor", self.config, run, *words, *more)
            self.assertEqual(examined.returncode, 4, examined.stdout + examined.stderr)
            self.assertIn("pack the data with the model's own", examined.stdout)
            done = harness.must(harness.run("train", self.config, run, *words, *more))
            self.assertIn("pack the data with the model's own", done.stderr)
            self.check_export_of(name, info)
        pruned = self.folder / "checkpoints/pruned-other"
        harness.must(harness.run("sparsify", self.folder / "runs/learned/checkpoints", "--out",
                                 pruned, "--sparsity", 0.25))
        self.check_export_of("pruned-other", info, pruned)
        same = harness.run("doctor", self.config, f"checkpoint.init_from={base}",
                           f"run.dir={self.folder}/runs/same")
        self.assertNotIn("the model's own", same.stdout)
        taught = ("checkpoint.init_from=", f"distill.teacher={base}")
        for command in ("train", "doctor"):
            refused = harness.run(command, self.config, f"run.dir={self.folder}/runs/taught",
                                  *words, *taught)
            self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
            self.assertIn("pack the data with the teacher's tokenizer",
                          refused.stdout + refused.stderr)
        shutil.rmtree(data / "tokenizer")
        for name in runs:
            out = self.folder / "models" / f"{name}-without"
            done = json.loads(harness.must(harness.run(
                "export", self.folder / "runs" / name / "checkpoints", "--format", "hf", "--json",
                "--out", out)).stdout)
            self.assertIn("of another tokenizer, and are left out", done["warning"])
            self.assertEqual({path.name for path in out.iterdir()},
                             {"config.json", "model.safetensors"})
            config = json.loads((out / "config.json").read_text())
            self.assertEqual((config["bos_token_id"], config["eos_token_id"]), (None, None))

    def check_export_of(self, name, info, checkpoint=None):
        checkpoint = checkpoint or self.folder / "runs" / name / "checkpoints"
        end = info["end_of_document"]
        for form in ("hf", "gguf"):
            out = self.folder / "models" / f"{name}-{form}"
            done = json.loads(harness.must(harness.run(
                "export", checkpoint, "--format", form, "--json", "--out", out)).stdout)
            self.assertEqual(done["warning"], "")
            if name != "pruned-other":  # it holds the files itself
                self.assertIn("not that of the model with which the run began", done["notes"][0])
            self.assertFalse((out / "generation_config.json").exists())
            found = json.loads(harness.must(harness.run("tokenizer", "info", out, "--json")).stdout)
            self.assertEqual(found["digest"], info["digest"])
        config = json.loads((self.folder / "models" / f"{name}-hf/config.json").read_text())
        self.assertEqual((config["bos_token_id"], config["eos_token_id"]), (end, end))
        data = (self.folder / "models" / f"{name}-gguf/model.gguf").read_bytes()
        self.assertNotIn(b"tokenizer.ggml.eot_token_id", data)
        # Each id would end a text of the first model.
        sample = self.generated(checkpoint, "--prompt", "The ship ")
        self.assertGreater(sample["tokens"], 1)

    def test_a_short_validation_set_asks_for_a_shorter_sequence(self):
        chat, data = self.folder / "one.jsonl", self.folder / "data/one"
        question, answer = next(iter(ANSWERS.items()))
        chat.write_text(json.dumps({"messages": [{"role": "user", "content": question},
                                                 {"role": "assistant", "content": answer}]}) + "\n")
        harness.must(harness.run("data", "pack", chat, "--messages", "--tokenizer", self.model,
                                 "--out", data))
        words = ("eval", "--checkpoint", self.base, "--data", data, "--documents", "separate",
                 "--any-tokenizer")
        refused = harness.run(*words)
        self.assertEqual(refused.returncode, 65, refused.stderr)
        self.assertIn("shorten data.sequence (for `trireme eval`, --sequence)", refused.stderr)
        harness.must(harness.run(*words, "--sequence", 8))

    def test_gates_judge_the_tuned_model_against_its_base(self):
        before = self.folder / "base.json"
        self.evaluated(self.base, "-J", before)
        gates = self.folder / "gates.yaml"
        gates.write_text(f"baseline: {before}\n"
                         "gates:\n"
                         "  learned: {figure: loss, at_most: 0.5}\n"
                         "  no_regression: {figure: loss, rise_at_most: 2%}\n")
        self.assertIn("no_regression", self.evaluated(self.tuned, "--gate", gates))
        self.evaluated(self.base, "--gate", gates, code=4)

    def test_merged_weights_are_as_good_as_the_adapters(self):
        self.assertAlmostEqual(self.loss(self.again), self.loss(self.tuned), delta=1e-4)

    def test_tuning_has_the_same_bits_on_one_rank(self):
        alone = self.folder / "runs/alone"
        harness.must(harness.run(
            "train", self.config, f"checkpoint.init_from={self.base}", "lora.products=all",
            "lora.rank=8", f"run.dir={alone}"))
        digests = [harness.must(harness.run("ckpt", "digest", folder)).stdout
                   for folder in (self.tuned, alone / "checkpoints")]
        self.assertEqual(*digests)

    def test_quantized_weights_lose_little(self):
        whole = self.loss(self.again)
        self.assertLess(abs(self.loss(self.again, "--quantize", "int8") - whole), 0.02)
        out = self.folder / "gguf"
        harness.must(harness.run("export", self.again, "--format", "gguf", "--dtype", "q8_0",
                                 "--out", out))
        data = (out / "model.gguf").read_bytes()
        self.assertEqual(data[:4], b"GGUF")
        self.assertIn(b"tokenizer.ggml.merges", data)
        self.assertIn(b"tokenizer.chat_template", data)

    def test_a_chat_gives_the_answers(self):
        expected = list(ANSWERS.values())
        self.assertEqual(self.answers(self.tuned), expected)
        self.assertEqual(self.answers(self.tuned, "--quantize", "int8"), expected)


if __name__ == "__main__":
    unittest.main()
