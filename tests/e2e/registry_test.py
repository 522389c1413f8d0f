"""Tests `trireme registry`: versions of real checkpoints and exported models, promoted by the gates
of an evaluation, rolled back, and read by programs that know only the files or only SQLite."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import unittest

import harness


class Registry(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        (cls.folder / "text.txt").write_text("the ship sails under oars. " * 400)
        harness.must(harness.run("data", "pack", "--out", cls.folder / "data",
                                 cls.folder / "text.txt"))
        cls.config = cls.folder / "run.yaml"
        cls.config.write_text(
            "model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 257, context: 32}\n"
            f"data: {{train: {cls.folder / 'data'}, sequence: 32}}\n"
            "train: {steps: 40, global_batch: 4, precision: fp32, threads: 1}\n"
            "checkpoint: {every: 20, keep: 9}\n"
            "optimizer: {lr: 0.01, schedule: {warmup: 5}}\n"
            f"run: {{dir: {cls.folder / 'run'}}}\n")
        harness.must(harness.run("train", cls.config))
        cls.checkpoints = harness.run_dir(cls.config) / "checkpoints"
        harness.must(harness.run("export", cls.checkpoints, "--format", "hf",
                                 "--out", cls.folder / "hf"))

    def setUp(self):
        self.root = self.folder / self.id().rsplit(".", 1)[-1]

    def registry(self, action, *words, code=0):
        result = harness.run("registry", action, "--registry", self.root, *words)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def step(self, number):
        return self.checkpoints / f"step-{number:08}"

    def evaluated(self, number, bound, *options):
        """Returns the file with the result of a step, whose loss has to be below the bound."""
        gates = self.folder / "gates.yaml"
        gates.write_text(f"gates:\n  quality: {{figure: loss, at_most: {bound}}}\n")
        out = self.folder / f"eval-{number}.json"
        result = harness.run("eval", "--checkpoint", self.step(number), "--data",
                             self.folder / "data", "--gate", gates, "-J", out, *options)
        self.assertIn(result.returncode, (0, 4), result.stderr)
        return out

    def listed(self, *words):
        versions = json.loads(self.registry("list", "--json", *words).stdout)["versions"]
        return [(each["model"], each["version"], each["stages"]) for each in versions]

    def test_from_the_first_version_to_a_rollback(self):
        self.registry("add", "ship", self.step(20), "--note", "half trained")
        good = self.evaluated(40, 5)
        self.registry("add", "ship", self.checkpoints, "--result", good)
        self.registry("add", "ship-hf", self.folder / "hf")
        self.registry("promote", "ship:1", "--stage", "production")
        self.registry("promote", "ship", "--stage", "production", "--result", good,
                      "--reason", "lower loss")
        self.assertEqual(self.listed(), [("ship", 1, []), ("ship", 2, ["production"]),
                                         ("ship-hf", 1, [])])
        path = self.registry("path", "ship@production").stdout.rstrip("\n")
        self.assertEqual(path, str(self.step(40)))
        harness.must(harness.run("generate", "--checkpoint", path, "--prompt", "the ",
                                 "--tokens", "3"))
        self.registry("rollback", "ship", "--stage", "production", "--reason", "too slow")
        self.assertEqual(self.registry("path", "ship@production").stdout,
                         f"{self.step(20)}\n")
        shown = self.registry("show", "ship@production").stdout
        for part in ("half trained", "lower loss", "rolled back to version 1: too slow"):
            self.assertIn(part, shown)
        self.registry("rollback", "ship", "--stage", "production", code=66)
        self.assertIn("3 versions unchanged", self.registry("check").stdout)
        loss = json.loads(good.read_text())["loss"]
        self.assertEqual(self.listed("--where", f"loss<={loss + 0.1}", "--where", "loss>0"),
                         [("ship", 2, [])])
        self.assertEqual(self.listed("--stage", "production"), [("ship", 1, ["production"])])

    def test_gates_decide(self):
        self.registry("add", "ship", self.step(40))
        missed = self.evaluated(40, 0.0001)
        result = self.registry("promote", "ship", "--stage", "production", "--result", missed,
                               code=4)
        self.assertIn("gates", result.stderr)
        self.registry("path", "ship@production", code=66)
        other = self.evaluated(20, 100)
        self.assertIn("of step 20", self.registry("promote", "ship", "--stage", "production",
                                                  "--result", other, code=65).stderr)
        ungated = json.loads(self.evaluated(40, 100).read_text())
        del ungated["gates_met"]
        (self.folder / "ungated.json").write_text(json.dumps(ungated))
        self.assertIn("no gates", self.registry("promote", "ship", "--stage", "production",
                                                "--result", self.folder / "ungated.json",
                                                code=2).stderr)

    def test_a_result_names_the_weights_and_the_data(self):
        result = json.loads(self.evaluated(40, 100).read_text())

        def digest(path):
            return hashlib.sha256(path.read_bytes()).hexdigest()
        self.assertEqual(result["manifest_sha256"], digest(self.step(40) / "manifest.json"))
        self.assertEqual(result["data"], {"sha256": digest(self.folder / "data/manifest.json"),
                                          "sequence": 32, "documents": "joined"})
        manifest = json.loads((self.folder / "data/manifest.json").read_text())
        self.assertEqual(result["tokenizer"]["name"], manifest["tokenizer"]["name"])
        again = self.folder / "again"
        harness.must(harness.run("import", self.folder / "hf", "--out", again))
        gates = self.folder / "any.yaml"
        gates.write_text("gates:\n  any: {figure: loss, at_most: 100}\n")
        out = self.folder / "again.json"
        harness.must(harness.run("eval", "--checkpoint", again, "--data", self.folder / "data",
                                 "--any-tokenizer", "--gate", gates, "-J", out))
        self.registry("add", "again", again, "--result", out)
        other = self.folder / "other"  # other weights under the same number of a step
        harness.must(harness.run("sparsify", again, "--out", other, "--sparsity", 0.5))
        self.registry("add", "other", other)
        self.assertIn("other weights", self.registry("promote", "other", "--stage", "production",
                                                     "--result", out, code=65).stderr)
        self.assertIn("judges checkpoints", self.registry("add", "hf", self.folder / "hf",
                                                          "--result", out, code=2).stderr)
        gates.write_text(f"baseline: {out}\n"
                         "gates:\n  any: {figure: loss, rise_at_most: 100}\n")
        judged = ("eval", "--checkpoint", other, "--data", self.folder / "data",
                  "--any-tokenizer", "--gate", gates)
        harness.must(harness.run(*judged))
        refused = harness.run(*judged, "--sequence", 16)
        self.assertEqual(refused.returncode, 65, refused.stderr)
        self.assertIn("data.sequence", refused.stderr)

    def test_a_result_counts_for_the_weights_that_it_judged(self):
        promote = ("promote", "ship", "--stage", "production")
        self.registry("add", "ship", self.step(40))
        for words, options in (("int8", ("--quantize", "int8")),
                               ("int4,bf16", ("--quantize", "int4", "--precision", "bf16"))):
            result = self.evaluated(40, 100, *options)
            self.assertEqual(json.loads(result.read_text())["weights"], words)
            refused = self.registry(*promote, "--result", result, code=65)
            self.assertIn(f"'{words}', not 'plain'", refused.stderr)
            self.registry("path", "ship@production", code=66)
        self.registry(*promote, "--result", result, "--weights", words)
        change = json.loads((self.root / "models/ship/changes/1.json").read_text())
        self.assertEqual(change["weights"], words)
        self.registry("add", "ship", self.step(40), "--result", result, code=65)
        self.registry("add", "ship", self.step(40), "--result", result, "--weights", words)
        self.assertIn(f"weights    {words}\n", self.registry("show", "ship").stdout)
        self.registry(*promote, code=65)
        self.registry(*promote, "--weights", words)
        plain = self.evaluated(40, 100, "--precision", "fp32")  # that of training
        self.registry(*promote, "--result", plain)
        self.registry(*promote, "--result", plain, "--weights", words, code=65)
        earlier = {name: value for name, value in json.loads(plain.read_text()).items()
                   if name != "weights"}
        plain.write_text(json.dumps(earlier))
        self.assertIn("of which weights",
                      self.registry(*promote, "--result", plain, code=65).stderr)

    def test_an_output_that_cannot_be_written_is_refused_at_the_start(self):
        words = ("eval", "--checkpoint", self.step(40), "--data", self.folder / "data")
        for code, file in ((2, self.folder / ("n" * 250)), (77, self.folder),
                           (66, self.folder / "nowhere/eval.json")):
            for option in ("-J", "--details"):
                result = harness.run(*words, option, file)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertNotIn("step 40", result.stdout + result.stderr)

    def test_what_was_done_is_said_even_if_it_cannot_be_printed(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([harness.PROGRAM, "registry", "add", "--registry", self.root,
                                     "ship", self.folder / "hf"], stdout=full,
                                    stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("was added as version 1", result.stderr)
        self.assertEqual(self.listed(), [("ship", 1, [])])

    def test_changed_and_missing_files(self):
        copy = self.folder / "copy"
        shutil.copytree(self.folder / "hf", copy)
        self.registry("add", "ship", copy)
        weights = copy / "model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        weights.write_bytes(data)
        for action in (("promote", "ship", "--stage", "production"), ("path", "ship"), ("check",)):
            result = self.registry(*action, code=65)
            self.assertIn("has changed", result.stdout + result.stderr)
        self.assertEqual(self.registry("path", "ship", "--unchecked").stdout, f"{copy}\n")
        shutil.rmtree(copy)
        self.registry("check", code=66)
        step = self.folder / "step-00000020"
        shutil.copytree(self.step(20), step)
        self.registry("add", "step", step)
        next(step.glob("shard-*")).unlink()
        self.registry("promote", "step", "--stage", "production", code=65)

    def test_what_is_no_model_or_registry(self):
        self.registry("list", code=66)
        self.registry("add", "ship", self.folder / "nowhere", code=66)
        self.assertIn("checkpoints", self.registry("add", "ship", harness.run_dir(self.config),
                                                   code=66).stderr)
        self.registry("add", "../ship", self.folder / "hf", code=2)
        self.assertFalse(self.root.exists())
        self.root.mkdir()
        (self.root / "notes.txt").write_text("mine")
        self.registry("add", "ship", self.folder / "hf", code=77)
        self.assertEqual(os.listdir(self.root), ["notes.txt"])

    def test_the_records_are_the_truth_and_sqlite_reads_the_index(self):
        self.registry("add", "ship", self.folder / "hf")
        self.registry("promote", "ship", "--stage", "staging")
        before = self.listed()
        record = json.loads((self.root / "models/ship/versions/1.json").read_text())
        self.assertEqual(record["path"], str(self.folder / "hf"))
        with sqlite3.connect(self.root / "index.sqlite") as index:
            self.assertEqual(index.execute("SELECT model, stage, version FROM stages").fetchall(),
                             [("ship", "staging", 1)])
            self.assertEqual(index.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        (self.root / "index.sqlite").unlink()
        self.assertEqual(self.listed(), before)
        strays = [self.root / "models/ship/versions/001.json", self.root / "models/Ship"]
        for stray in strays:
            shutil.copy(self.folder / "gates.yaml", stray)
        for action in ("list", "check"):
            result = self.registry(action, code=65)
            for stray in strays:
                self.assertIn(f"{stray} has no name", result.stdout + result.stderr)
                self.assertEqual(str(stray) in result.stderr, action == "list")
        for stray in strays:
            stray.unlink()
        self.assertEqual(self.listed(), before)
        damaged = self.root / "models/ship/versions/1.json"
        damaged.write_text(damaged.read_text()[:50])
        result = self.registry("list", code=65)
        self.assertIn("versions/1.json", result.stderr)

    def test_many_writers_on_one_registry(self):
        self.registry("add", "ship", self.folder / "hf")
        command = [harness.PROGRAM, "registry", "add", "--registry", self.root, "ship",
                   self.folder / "hf"]
        writers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for _ in range(6)]
        for writer in writers:
            output, _ = writer.communicate()
            self.assertEqual(writer.returncode, 0, output)
        self.assertEqual([version for _, version, _ in self.listed()], list(range(1, 8)))

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount")
    def test_a_read_only_registry_is_read(self):
        self.registry("add", "ship", self.folder / "hf")
        (self.root / "index.sqlite").unlink(missing_ok=True)
        script = (f"mount --bind {self.root} {self.root} && "
                  f"mount -o remount,bind,ro {self.root} && "
                  f"exec {harness.PROGRAM} registry list --registry {self.root}")
        result = subprocess.run([harness.OWN_MOUNTS, "sh", "-c", script],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("ship", result.stdout)
        self.assertIn("index cannot be kept", result.stderr)


if __name__ == "__main__":
    unittest.main()
