"""Tests that `trireme verify` follows a fine-tuned model to the base that was pruned, the model
that was imported, and the files from which it was imported."""
import json
import os
import shutil
import signal
import unittest
import urllib.parse

import harness
from provenance_harness import (BUNDLE, CHECKPOINTS, FOLDER, SITE, TRUST, make_everything, sha256,
                                statements_of, train, verify)

MODEL, IMPORTED, PRUNED = FOLDER / "hf", FOLDER / "models/imported", FOLDER / "models/pruned"
TUNED = FOLDER / "tuned"
AUDITED = {**SITE, "TRIREME_AUDIT__LOG": str(FOLDER / "commands.jsonl")}


def setUpModule():
    make_everything()
    harness.must(harness.run("export", CHECKPOINTS, "--format", "hf", "--out", MODEL))
    (MODEL / "generation_config.json").write_text("{}")
    (FOLDER / "models").mkdir()
    harness.must(harness.run("import", MODEL, "--out", IMPORTED, env=AUDITED))
    harness.must(harness.run("sparsify", IMPORTED, "--out", PRUNED, "--sparsity", 0.5,
                             ranks=2, env=AUDITED))
    harness.must(train(f"run.dir={TUNED}", f"checkpoint.init_from={PRUNED}", "train.steps=2"))


def paths_of(statement, name):
    """Returns the paths of the dependencies of this name, with the digests that are stated."""
    return {urllib.parse.unquote(each["uri"].removeprefix("file://")): each["digest"]["sha256"]
            for each in statement["predicate"]["buildDefinition"]["resolvedDependencies"]
            if each["name"] == name}


class ModelLineage(unittest.TestCase):
    def setUp(self):
        """Each test changes the files, which are put back afterwards."""
        self.saved = FOLDER / "saved"
        for folder in (MODEL, FOLDER / "models", TUNED):
            shutil.copytree(folder, self.saved / folder.name, symlinks=True)
        self.addCleanup(self.put_back)

    def put_back(self):
        for folder in (MODEL, FOLDER / "models", TUNED):
            shutil.rmtree(folder)
            shutil.copytree(self.saved / folder.name, folder, symlinks=True)
        shutil.rmtree(self.saved)

    def expect(self, code, sentence, what=TUNED):
        got, found = verify(what)
        self.assertEqual(got, code, found)
        self.assertTrue(any(sentence in fault["what"] for fault in found["faults"]), found)

    def test_what_the_statements_say(self):
        imported, = statements_of(IMPORTED, TRUST)
        definition = imported["predicate"]["buildDefinition"]
        self.assertEqual(definition["buildType"], "urn:trireme:import:1")
        self.assertEqual(paths_of(imported, "input"),
                         {str(path): sha256(path) for path in MODEL.iterdir()})
        pruned, = statements_of(PRUNED, TRUST)
        definition = pruned["predicate"]["buildDefinition"]
        self.assertEqual(definition["buildType"], "urn:trireme:sparsify:1")
        self.assertEqual(definition["externalParameters"]["arguments"][0], "sparsify")
        for name, file in (("base", "manifest.json"), ("base.provenance", BUNDLE)):
            path = IMPORTED / file
            self.assertEqual(paths_of(pruned, name), {str(path): sha256(path)})
        for folder, statement in ((IMPORTED, imported), (PRUNED, pruned)):
            self.assertEqual({each["name"]: each["digest"]["sha256"]
                              for each in statement["subject"]},
                             {path.name: sha256(path) for path in folder.iterdir()
                              if path.name != BUNDLE})
        ends = [json.loads(line) for line in (FOLDER / "commands.jsonl").read_text().splitlines()]
        ends = {each["event"]: each["details"] for each in ends if each["event"].endswith(".end")}
        for event, folder in (("import.end", IMPORTED), ("sparsify.end", PRUNED)):
            self.assertEqual(ends[event]["folder"], str(folder))
            self.assertEqual(ends[event]["manifest_sha256"], sha256(folder / "manifest.json"))
            self.assertEqual(ends[event]["provenance_sha256"], sha256(folder / BUNDLE))

    def test_the_walk_ends_at_the_files_of_the_model(self):
        code, found = verify(TUNED)
        self.assertEqual(code, 0, found)
        items = [(item["depth"], item["role"], item["place"]) for item in found["items"]]
        self.assertIn((1, "base", str(PRUNED)), items)
        self.assertIn((2, "base", str(IMPORTED)), items)
        self.assertIn((3, "inputs", "3 files"), items)
        for folder in (IMPORTED, PRUNED):
            self.assertEqual(verify(folder)[0], 0)
        moved = FOLDER / "models/step-00000000"  # the number of its step
        IMPORTED.rename(moved)
        code, found = verify(moved)
        self.assertEqual(code, 0, found)
        self.expect(66, f"the base {IMPORTED} is gone", TUNED)

    def test_changes_are_found(self):
        weights = MODEL / "model.safetensors"
        weights.write_bytes(weights.read_bytes() + b"x")
        self.expect(65, f"the input file {weights} was changed since it was read")
        weights.unlink()
        self.expect(66, f"the input file {weights} is gone")
        for folder, name in ((IMPORTED, "generation_config.json"), (PRUNED, "manifest.json")):
            (folder / name).write_bytes((folder / name).read_bytes() + b" ")
            self.expect(65, f"{folder / name} was changed", folder)
        (PRUNED / "tokenizer.json").write_text("{}")
        self.expect(65, "tokenizer.json was added", PRUNED)

    def test_provenance_that_was_removed(self):
        for folder in (IMPORTED, PRUNED):
            (folder / BUNDLE).unlink()
            self.expect(65, f"{folder / BUNDLE} was removed")

    def test_a_model_that_changes_while_it_is_imported_is_refused(self):
        out, log = FOLDER / "touched", FOLDER / "touched.log"
        process = harness.start("import", MODEL, "--out", out, ranks=0, log=log,
                                env={**SITE, "TRIREME_FAULTS": "file.sync:0:1:stop"})
        self.assertTrue(os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1]), log.read_text())
        (MODEL / "config.json").chmod(0o600)
        os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(process.wait(60), 65, log.read_text())
        self.assertIn("config.json was changed while it was read: import the model again",
                      log.read_text())
        self.assertEqual(list(FOLDER.glob("*touched*/")), [])

    def test_a_card_names_parents_data_and_results(self):
        out, step = FOLDER / "card.md", TUNED / "checkpoints/step-00000002"
        words = ("export", "card", TUNED / "checkpoints", "--out", out)
        harness.must(harness.run(*words))
        text = out.read_text()
        data = FOLDER / "data/train"
        for role, folder in (("base", PRUNED), ("data.train", data)):
            self.assertIn(f"| {role} | {folder} | {sha256(folder / 'manifest.json')} |", text)
        digest = json.loads(harness.must(harness.run("data", "info", data, "--json")).stdout)
        self.assertIn(f"| digest of the data | {digest['digest']} |", text)
        self.assertIn(f"| manifest, SHA-256 | {sha256(step / 'manifest.json')} |", text)
        last = json.loads((TUNED / "metrics.jsonl").read_text().splitlines()[-1])
        self.assertIn(f"| loss | {last['loss']:.10g} |", text)
        self.assertEqual(harness.run(*words).returncode, 77)
        harness.must(harness.run("export", "card", PRUNED, "--out", FOLDER / "card-2.md"))
        self.assertIn(f"| base | {IMPORTED} |", (FOLDER / "card-2.md").read_text())
        store = FOLDER / "mlruns"
        harness.must(harness.run("export", "mlflow", TUNED, store))
        tag, = store.glob("*/*/tags/trireme.from.base")
        self.assertEqual(tag.read_text(), f"{PRUNED} sha256:{sha256(PRUNED / 'manifest.json')}")
        self.assertEqual((tag.parent / "trireme.digest_of_the_data").read_text(), digest["digest"])

    def test_without_a_key_nothing_is_signed(self):
        plain, half = FOLDER / "plain", FOLDER / "plain-half"
        harness.must(harness.run("import", MODEL, "--out", plain))
        harness.must(harness.run("sparsify", plain, "--out", half, "--sparsity", 0.5))
        self.assertFalse((plain / BUNDLE).exists() or (half / BUNDLE).exists())
        run = FOLDER / "from-plain"
        harness.must(train(f"run.dir={run}", f"checkpoint.init_from={half}", "train.steps=2",
                           "audit.log="))
        code, found = verify(run)
        self.assertEqual(code, 66, found)
        self.assertIn("UNSIGNED", [item["state"] for item in found["items"]])
        harness.must(harness.run("export", "card", half, "--out", FOLDER / "plain.md"))
        card = (FOLDER / "plain.md").read_text()
        self.assertIn("which nobody has signed", card)
        self.assertIn(f"| base | {plain} | {sha256(plain / 'manifest.json')} |", card)


if __name__ == "__main__":
    unittest.main()
