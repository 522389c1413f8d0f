"""Makes every change that docs/mutations.md lists to encrypted checkpoints, datasets and logs, and
compares the answers with those of the document."""
import hashlib
import json
import re
import shutil
import unittest

import harness
from mutation_kinds import FOLDER, KINDS, MIB, shards, xxh3

KEY, OTHER = FOLDER / "site.key", FOLDER / "other.key"
CONFIG = """
model: {family: gpt2, layers: 2, hidden: 128, heads: 2, vocab: 1003, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1, steps: 100}}
checkpoint: {every: 2, keep: 9}
encryption: {accept_plain_data: true, keys: ["file:%s", "file:%s"], logs: true}
run: {dir: %s}
"""
DOCUMENT = harness.SOURCE / "docs/mutations.md"
ROW = re.compile(r"^\| ([CDL]\d+) \| (.+?) \| (\d+) \| `(.+?)` \|$", re.M)


def train(name, *words):
    harness.must(harness.run("train", FOLDER / "run.yaml", f"run.dir={FOLDER / name}", *words,
                             ranks=2))


def pack(name, text, *words):
    harness.must(harness.run("data", "pack", text, "--out", FOLDER / name, "--shard-size", "3M",
                             *words))


def setUpModule():
    for key in (KEY, OTHER):
        harness.must(harness.run("keys", "create", "--out", key, "--name", key.stem))
    data, _ = harness.make_datasets(FOLDER)
    (FOLDER / "run.yaml").write_text(CONFIG % (data, KEY, OTHER, FOLDER / "never"))
    train("run")
    (FOLDER / "run/DONE").unlink()
    train("run", "train.steps=6", "checkpoint.every=100")
    train("foreign")
    train("plain", "encryption.keys=[]", "encryption.logs=false")
    text = harness.make_text(FOLDER / "text", 2_500_000, 1)
    keys = ["--key", f"file:{KEY}", "--key", f"file:{OTHER}"]
    pack("data", text, *keys)
    pack("other-data", harness.make_text(FOLDER / "other-text", 2_500_000, 2), *keys)
    pack("plain-data", text)


def told(result):
    return result.returncode, result.stdout + result.stderr


def answer(name):
    """Makes the change, and returns the exit code and what the program says."""
    copy = FOLDER / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    key = ["--key", f"file:{KEY}"]
    if name[0] == "C":
        step = copy / "step-00000004"
        shutil.copytree(FOLDER / "run/checkpoints/step-00000004", step)
        KINDS[name](step)
        return told(harness.run("ckpt", "verify", step, *key))
    if name[0] == "D":
        shutil.copytree(FOLDER / "data", copy)
        KINDS[name](copy)
        return told(harness.run("data", "verify", copy, *key))
    shutil.copytree(FOLDER / "run", copy, ignore=shutil.ignore_patterns("checkpoints"))
    KINDS[name](copy)
    return told(harness.run("log", copy / "metrics.jsonl", *key))


class Mutations(unittest.TestCase):
    def test_every_kind_has_the_answer_of_the_document(self):
        rows = {name: (int(code), words) for name, _, code, words in
                ROW.findall(DOCUMENT.read_text())}
        self.assertEqual(sorted(rows), sorted(KINDS), "docs/mutations.md lists others")
        self.assertGreaterEqual(len(rows), 40)
        for name, (code, words) in rows.items():
            with self.subTest(name):
                got, said = answer(name)
                self.assertEqual(got, code, said)
                self.assertIn(words, said)

    def test_what_was_not_changed_is_accepted(self):
        KINDS["C0"] = KINDS["D0"] = KINDS["L0"] = lambda folder: None
        try:
            for name in ("C0", "D0", "L0"):
                got, said = answer(name)
                self.assertEqual(got, 0, said)
        finally:
            for name in ("C0", "D0", "L0"):
                del KINDS[name]

    def test_the_seals_and_digests_of_this_test_fit(self):
        """Otherwise the program would find those, and not what was changed."""
        step = FOLDER / "run/checkpoints/step-00000004"
        for name in ("manifest.json", "keys.json"):
            fields = json.loads((step / name).read_text())
            body = (step / name).read_text().split(',\n "seal"')[0]
            self.assertEqual(fields["seal"],
                             "sha256:" + hashlib.sha256(body.encode()).hexdigest())
        for folder in (step, FOLDER / "data"):
            for entry, path in zip(json.loads((folder / "manifest.json").read_text())["shards"],
                                   shards(folder)):
                self.assertEqual(xxh3(path.read_bytes()), entry["xxh3"])
                self.assertGreater(path.stat().st_size, MIB + 1000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
