"""Tests a tokenizer's way: packing with its files, training, and generating with them."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

import harness

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "io/tokens/golden"


class Tokenizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        for kind in ("llama3", "gpt2"):
            definition = json.loads((GOLDEN / f"{kind}.json").read_text())["tokenizer"]
            (cls.folder / f"{kind}.json").write_text(json.dumps(definition))
        cls.llama3 = cls.folder / "llama3.json"

    def tokenizer(self, *words):
        return harness.must(harness.run("tokenizer", *words)).stdout

    def refused(self, code, words, *arguments):
        result = harness.run(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        for word in words:
            self.assertIn(str(word), result.stderr)

    def test_encodes_and_decodes(self):
        for case in json.loads((GOLDEN / "llama3.json").read_text())["cases"][2:5]:
            ids = self.tokenizer("encode", self.llama3, "--text", case["text"]).split()
            self.assertEqual(list(map(int, ids)), case["ids"])
            text = self.tokenizer("decode", self.llama3, "--ids", " ".join(ids))
            self.assertEqual(text, case.get("decoded", case["text"]))
        info = json.loads(self.tokenizer("info", self.llama3, "--json"))
        self.assertEqual((info["before"], info["after"]), ([1], [2]))

    def test_a_text_in_square_brackets_is_no_list(self):
        for text in ("[INST] a ship [/INST]", "[a,b]", ""):
            with self.subTest(text):
                ids = self.tokenizer("encode", self.llama3, "--text", text).strip()
                back = harness.must(harness.run("tokenizer", "decode", self.llama3, "--ids", ids))
                self.assertEqual(back.stdout.rstrip("\n"), text)

    def test_refuses_what_it_does_not_know(self):
        definition = json.loads(self.llama3.read_text())
        definition["normalizer"] = {"type": "BertNormalizer"}
        other = self.folder / "other.json"
        other.write_text(json.dumps(definition))
        self.refused(65, [other, "BertNormalizer"], "tokenizer", "info", other)
        other.write_text("{")
        self.refused(65, [other], "tokenizer", "info", other)
        self.refused(66, ["none.json"], "tokenizer", "info", self.folder / "none.json")
        for path in (self.llama3, self.folder):
            self.refused(2, ["--tokenizer takes the name of a tokenizer", path], "data", "convert",
                         "tokens.npy", "--vocab", 9, "--out", self.folder / "converted",
                         "--tokenizer", path)

    def test_trains_the_same_tokenizer_with_any_threads(self):
        text = harness.make_text(self.folder / "to-train", 60_000, 3)
        (text / "arabic.jsonl").write_text(json.dumps({"text": "السفينة تبحر على طول الساحل " * 9}))
        reports = []
        for threads in (1, 3):
            out = self.folder / f"trained-{threads}"
            reports.append(json.loads(self.tokenizer(
                "train", text, "--vocab", 400, "--out", out, "--threads", threads, "--special",
                "<pad>", "--json")))
        self.assertEqual(reports[0]["digest"], reports[1]["digest"])
        self.assertEqual(reports[0]["arabic"]["words"], 45)
        self.assertGreaterEqual(reports[0]["arabic"]["fertility"], 1)
        self.assertEqual((out / "tokenizer.json").read_bytes(),
                         (self.folder / "trained-1/tokenizer.json").read_bytes())
        ids = self.tokenizer("encode", out, "--text", "the ship<pad>").split()
        self.assertEqual(self.tokenizer("decode", out, "--ids", " ".join(ids)), "the ship")
        self.assertEqual(json.loads(self.tokenizer("info", out, "--json"))["end_of_document"], 0)
        new = self.folder / "new"
        for words, place in (("has a tokenizer.json", out), ("exists", self.llama3)):
            self.refused(77, [words], "tokenizer", "train", text, "--vocab", 400, "--out", place)
        for words, arguments in (("a vocabulary of 9 ids", ["--vocab", 9, "--out", new]),
                                 ("pattern 'x'", ["--vocab", 9, "--out", new, "--pattern", "x"])):
            self.refused(2, [words], "tokenizer", "train", text, *arguments)

    @unittest.skipUnless(os.geteuid() == 0, "needs to mount a file system: run as root")
    def test_leaves_no_half_a_tokenizer_on_a_full_disk(self):
        text = harness.make_text(self.folder / "for-full-disk", 60_000, 3)
        disk = self.folder / "disk"
        disk.mkdir()
        words = harness.command(["tokenizer", "train", text, "--vocab", 400, "--out", disk / "new"])
        script = ('mount -t tmpfs -o size=8k none "$0" || '
                  'exit 99; "$@"; code=$?; ls -A "$0"; exit $code')
        result = subprocess.run(
            [harness.OWN_MOUNTS, "bash", "-c", script, str(disk)]
            + [str(word) for word in words], env=harness.ENVIRONMENT, capture_output=True,
            text=True, timeout=120, check=False)
        self.assertEqual((result.returncode, result.stdout), (74, ""), result.stderr)

    def test_travels_from_the_text_to_the_model(self):
        text = harness.make_text(self.folder / "text", 40_000, 1) / "text0.txt"
        lines = [json.dumps({"text": line}) for line in text.read_text().splitlines()]
        (self.folder / "lines.jsonl").write_text("\n".join(lines))
        data = self.folder / "data"
        harness.must(harness.run("data", "pack", self.folder / "lines.jsonl", "--tokenizer",
                                 self.llama3, "--validation-fraction", 0.2, "--out", data))
        info = json.loads(self.tokenizer("info", data / "train/tokenizer", "--json"))
        config = harness.write_config(self.folder / "run.yaml",
                                      [data / "train", data / "validation"], train__steps=2)
        harness.must(harness.run("train", config, f"model.vocab={info['vocab']}"))
        generate = ["generate", "--checkpoint", self.folder / "run/checkpoints", "--tokens", 5,
                    "--prompt", "The ship "]
        text = harness.must(harness.run(*generate, "--tokenizer", data / "train/tokenizer")).stdout
        self.assertTrue(text.startswith("The ship "), text)
        # The checkpoint knows where its dataset has the files.
        self.assertEqual(harness.must(harness.run(*generate)).stdout, text)
        self.refused(2, ["--tokenizer", info["digest"][:12]], *generate, "--tokenizer",
                     self.folder / "gpt2.json")
        self.exports_take_the_tokenizer_of(data / "train", info)
        self.refused(2, ["--tokenizer", "--ids"], *generate)  # the files are elsewhere now

    def exports_take_the_tokenizer_of(self, dataset, info):
        export = ("export", self.folder / "run/checkpoints", "--format", "hf", "--json", "--out")
        first, second, third = (self.folder / f"exported-{i}" for i in range(3))
        self.assertEqual(json.loads(harness.must(harness.run(*export, first)).stdout)["warning"],
                         "")
        self.assertEqual(json.loads(self.tokenizer("info", first, "--json"))["digest"],
                         info["digest"])
        config = json.loads((first / "config.json").read_text())
        self.assertEqual((config["bos_token_id"], config["eos_token_id"]),
                         (info["end_of_document"], info["end_of_document"]))
        (dataset / "tokenizer").rename(dataset / "elsewhere")
        warning = json.loads(harness.must(harness.run(*export, second)).stdout)["warning"]
        self.assertIn("train/tokenizer has none", warning)
        self.assertEqual(sorted(path.name for path in second.iterdir()),
                         ["config.json", "model.safetensors"])
        (dataset / "tokenizer").mkdir()
        shutil.copy(self.folder / "gpt2.json", dataset / "tokenizer/tokenizer.json")
        warning = json.loads(harness.must(harness.run(*export, third)).stdout)["warning"]
        self.assertIn("of another tokenizer by now", warning)

    def test_an_imported_model_takes_the_tokenizer_that_it_holds(self):
        text = harness.make_text(self.folder / "for-import", 60_000, 3)
        source, imported = self.folder / "hf", self.folder / "imported"
        other = self.folder / "other"
        config = harness.write_config(self.folder / "to-export.yaml",
                                      harness.make_datasets(self.folder), train__steps=2)
        harness.must(harness.run("train", config, "model.vocab=300"))
        harness.must(harness.run("export", self.folder / "to-export/checkpoints", "--format", "hf",
                                 "--out", source))
        special = json.loads((source / "config.json").read_text())
        self.assertEqual((special["bos_token_id"], special["eos_token_id"]), (256, 256))
        tasks = self.folder / "tasks.jsonl"
        tasks.write_text('{"text": "the ship sails far"}\n')
        bare = self.folder / "bare"
        harness.must(harness.run("import", source, "--out", bare))
        told = [f"no files that define it are in {bare}; name them with --tokenizer PATH"]
        result = harness.run("eval", "--checkpoint", bare, "--task", f"lambada:{tasks}")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(told[0], result.stderr)
        self.assertNotIn("--ids", result.stderr)
        self.refused(2, [*told, "--ids"], "generate", "--checkpoint", bare, "--prompt", "a")
        for out, ids in ((source, 300), (other, 299)):
            self.tokenizer("train", text, "--vocab", ids, "--out", out)
        harness.must(harness.run("import", source, "--out", imported))
        words = ["eval", "--checkpoint", imported, "--task", f"lambada:{tasks}", "--tokenizer"]
        for tokenizer in (imported, source):
            harness.must(harness.run(*words, tokenizer))
        self.refused(2, ["was trained on tokens of"], *words, other)


if __name__ == "__main__":
    unittest.main()
