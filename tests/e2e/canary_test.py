"""Tells one story twice, at a site with keys and at one without: data is packed, a teacher trained,
its average pruned, a student distilled from both, adapters trained, a model imported, and all of it
used and registered. The models have the same bits; of the text, the weights, the moments, the
averages and the losses that lie in the plain site's files, nothing may lie in the other's, and
nothing may ever be written there, not even for a moment."""
import json
import re
import shutil
import subprocess
import unittest

import harness
from encryption_test import tensors_of

FOLDER = harness.workspace()
KEY = FOLDER / "site.key"
TEXT = "the secret recipe of the sovereign kitchen"
PROMPT = "who knows the recipe of the kitchen"
SETTINGS = """
model: {family: llama, layers: 2, hidden: 48, heads: 2, kv_heads: 1, ffn: 104, vocab: 257,
        context: 16}
train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.003, ema: 0.9, schedule: {warmup: 1}}
checkpoint: {every: 2, keep: 9}
run: {trace: 1}
"""
MODELS = ("teacher/checkpoints", "half", "student/checkpoints", "adapters/checkpoints", "imported")
WRITES = "trace=write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg"
WRITTEN = re.compile(r'^(?:\d+ +)?\w+\((\d+), (.*)$', re.M)
WORDS = re.compile(r'"((?:\\x[0-9a-f]{2})+)"')


class Site:
    """One telling of the story: a folder, and the settings of its site."""

    def __init__(self, name, settings):
        self.folder = FOLDER / name
        (self.folder / "tmp").mkdir(parents=True)
        self.env = {"TMPDIR": str(self.folder / "tmp"),
                    "TRIREME_AUDIT__LOG": str(self.folder / "audit.jsonl"), **settings}
        (self.folder / "run.yaml").write_text(
            SETTINGS + f"data: {{train: {self.folder / 'data'}, sequence: 16}}\n")

    def run(self, *words, ranks=0, is_killed=False, faults=""):
        env = {**self.env, **({"TRIREME_FAULTS": faults} if faults else {})}
        result = harness.run(*words, ranks=ranks, env=env)
        assert (result.returncode != 0) == is_killed, (result.returncode, result.stderr)
        return result.stdout

    def packing(self, name="data"):
        return ["data", "pack", FOLDER / "text", "--out", self.folder / name]

    def training(self, name, *keys):
        return ["train", self.folder / "run.yaml", f"run.dir={self.folder / name}", *keys]

    def distillation(self, name):
        steps = self.folder / "teacher/checkpoints"
        return self.training(name, f"checkpoint.init_from={self.folder / 'half'}",
                             "optimizer.keep_zeros=true", "distill.weight=0.5",
                             f"distill.teacher={steps / 'step-00000004'}")

    def pruning(self, name="half"):
        return ["sparsify", self.folder / "teacher/checkpoints", "--ema", "--sparsity", "0.5",
                "--out", self.folder / name]

    def importing(self, name="imported"):
        """The model of others that both sites import is the one that the plain site exports."""
        return ["import", FOLDER / "plain/hf", "--out", self.folder / name]

    def tell(self):
        self.run(*self.packing())
        self.run(*self.training("teacher"), ranks=2)
        self.run(*self.pruning())
        student = [*self.distillation("student"), "parallel.zero=1"]
        self.run(*student, ranks=2, is_killed=True, faults="step.end:0:3:kill")
        self.run(*student, ranks=2)
        students = self.folder / "student/checkpoints"
        self.run(*self.training("adapters", f"checkpoint.init_from={students}", "optimizer.ema=0",
                                "lora.products=[q_proj, down_proj]", "lora.rank=4"))
        self.run("generate", "--checkpoint", self.folder / "adapters/checkpoints", "--prompt",
                 PROMPT, "--tokens", "4")
        self.run("eval", "--checkpoint", students, "--data", self.folder / "data", "--samples", "4",
                 "-J", self.folder / "eval.json")
        for words in (["add", "cook", students, "--note", "a student"],
                      ["promote", "cook", "--stage", "use"], ["list"]):
            self.run("registry", *words, "--registry", self.folder / "registry")
        if not (FOLDER / "plain/hf").exists():
            self.run("export", students, "--format", "hf", "--out", FOLDER / "plain/hf")
        self.run(*self.importing())

    def files(self):
        """Yields the contents of all files of the site, by path."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path, path.read_bytes()

    def written(self, words):
        """Returns what a command writes to files, joined, those included that it removes again."""
        trace = FOLDER / "trace"
        traced = ["strace", "-f", "-qq", "-xx", "-s", str(1 << 24), "-e", WRITES, "-o", trace]
        harness.must(subprocess.run([*traced, *harness.command(words)], stdin=subprocess.DEVNULL,
                                    env={**harness.ENVIRONMENT, **self.env}, capture_output=True,
                                    text=True, errors="replace", timeout=240, check=False))
        return b"|".join(bytes.fromhex(word.replace("\\x", ""))
                         for descriptor, rest in WRITTEN.findall(trace.read_text())
                         if descriptor not in ("1", "2") for word in WORDS.findall(rest))


def canaries():
    """Returns 16 bytes of each tensor that the plain site has saved, and its text and losses."""
    found = {"the text": TEXT.encode(), "the tokens": "".join(c + "\0" for c in TEXT).encode()}
    for shard in sorted((FOLDER / "plain").rglob("*.safetensors")):
        for name, data in tensors_of(shard.read_bytes()).items():
            places = range(len(data) // 8 * 4, len(data) - 15, 4)
            windows = (data[at:at + 16] for at in places)
            canary = next((each for each in windows
                           if all(any(each[at:at + 4]) for at in (0, 4, 8, 12))), None)
            if canary and len(set(canary)) > 8:
                found[f"{name} of {shard.relative_to(FOLDER)}"] = canary
    for metrics in sorted((FOLDER / "plain").glob("*/metrics.jsonl")):
        for line in map(json.loads, metrics.read_text().splitlines()):
            found[f"the loss of {metrics.parent.name}, step {line['step']}"] = (
                json.dumps(line["loss_bits"]).encode())
    return found


class Canaries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        evidence = FOLDER / "evidence.key"
        harness.must(harness.run("audit", "keygen", "--out", evidence))
        harness.must(harness.run("keys", "create", "--out", KEY))
        harness.make_text(FOLDER / "text", 20_000, 1)
        (FOLDER / "text/canary.txt").write_text(TEXT)
        cls.plain = Site("plain", {})
        cls.sealed = Site("sealed", {"TRIREME_ENCRYPTION__KEYS": f"[file:{KEY}]",
                                     "TRIREME_ENCRYPTION__LOGS": "true",
                                     "TRIREME_AUDIT__KEY": str(evidence)})
        for site in (cls.plain, cls.sealed):
            site.tell()
        cls.canaries = canaries()

    def search(self, contents, where):
        for title, canary in self.canaries.items():
            self.assertNotIn(canary, contents, f"{title} lies in plain in {where}")

    def test_the_models_are_the_same(self):
        for name in MODELS:
            digests = [site.run("ckpt", "digest", site.folder / name)
                       for site in (self.plain, self.sealed)]
            self.assertEqual(digests[0], digests[1], name)

    def test_the_search_finds_what_is_there(self):
        contents = b"".join(each for _, each in self.plain.files())
        for title, canary in self.canaries.items():
            if title != "the text":  # its file is not in the site's folder
                self.assertIn(canary, contents, title)
        titles = " ".join(self.canaries)
        for word in ("teacher", "half", "student", "adapters", "imported", "hf", "optimizer.",
                     "ema", "the loss of student"):
            self.assertIn(word, titles)
        self.assertGreater(len(self.canaries), 300)

    def test_no_file_holds_anything_in_plain(self):
        count = 0
        for path, contents in self.sealed.files():
            self.search(contents, path)
            self.assertNotIn(PROMPT.encode(), contents, path)
            count += 1
        self.assertGreater(count, 60)

    def test_what_is_killed_leaves_nothing_in_plain(self):
        for words in (self.sealed.pruning("stopped-half"), self.sealed.importing("stopped-import"),
                      self.sealed.distillation("stopped-student")):
            kills = 0
            for write in range(1, 10):
                env = {**self.sealed.env, "TRIREME_FAULTS": f"file.write:*:{write}:kill"}
                if harness.run(*words, env=env).returncode == 0:
                    break
                kills += 1
                for path, contents in self.sealed.files():
                    if "stopped" in str(path):
                        self.search(contents, path)
            self.assertGreater(kills, 2, words[0])

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_nothing_is_written_in_plain_for_a_moment(self):
        for name in ("packing", "pruning", "importing", "distillation"):
            with self.subTest(name):
                words = getattr(self.plain, name)(f"traced-{name}")
                written = self.plain.written(words)
                seen = [title for title, canary in self.canaries.items() if canary in written]
                self.assertTrue(seen, "the search finds what a plain site writes")
                words = getattr(self.sealed, name)(f"traced-{name}")
                written = self.sealed.written(words)
                self.assertGreater(len(written), 10_000)
                self.search(written, f"what is written by {name}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
