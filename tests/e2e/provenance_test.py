"""Tests the signed provenance of checkpoints and datasets: what it says, that it is committed
together with the checkpoint, and how it is kept."""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import unittest
import urllib.parse

import harness
from provenance_harness import (BUNDLE, CHECKPOINTS, FOLDER, KEY, RUN, SITE, TRUST, make_everything,
                                sha256, statements_of, train, verify)


def setUpModule():
    make_everything()


class Statements(unittest.TestCase):
    def test_independent_reader(self):
        for folder in [CHECKPOINTS / "step-00000002", CHECKPOINTS / "step-00000006",
                       FOLDER / "data/train", FOLDER / "data/validation"]:
            statement = statements_of(folder, TRUST)[0]
            for subject in statement["subject"]:
                self.assertEqual(subject["digest"]["sha256"], sha256(folder / subject["name"]))
            names = {subject["name"] for subject in statement["subject"]} | {BUNDLE}
            found = {str(path.relative_to(folder)) for path in folder.rglob("*")
                     if path.is_file()}
            self.assertEqual(names, found)
            for each in statement["predicate"]["buildDefinition"]["resolvedDependencies"]:
                if each["name"] == "config":
                    continue
                path = pathlib.Path(urllib.parse.unquote(each["uri"].removeprefix("file://")))
                self.assertEqual(each["digest"]["sha256"], sha256(path), each)

    def test_what_a_statement_says(self):
        own, parent = statements_of(CHECKPOINTS / "step-00000006", TRUST)
        definition = own["predicate"]["buildDefinition"]
        self.assertEqual(definition["buildType"], "urn:trireme:train:1")
        self.assertEqual(definition["internalParameters"]["step"], 6)
        self.assertEqual(definition["internalParameters"]["ranks"], 1)
        self.assertIn("hidden: 16", definition["externalParameters"]["config"])
        materials = {each["name"]: each for each in definition["resolvedDependencies"]}
        self.assertEqual(set(materials),
                         {"data.train", "data.train.provenance", "data.validation",
                          "data.validation.provenance", "program", "sbom", "config", "parent"})
        self.assertEqual(materials["config"]["digest"]["sha256"], hashlib.sha256(
            definition["externalParameters"]["config"].encode()).hexdigest())
        bill = json.loads(pathlib.Path(urllib.parse.unquote(
            materials["sbom"]["uri"].removeprefix("file://"))).read_text())
        self.assertEqual(bill["bomFormat"], "CycloneDX")
        self.assertIn("libmpi", " ".join(each["name"] for each in bill["components"]))
        step4 = CHECKPOINTS / "step-00000004"
        self.assertEqual(materials["parent"]["digest"]["sha256"], sha256(step4 / "manifest.json"))
        self.assertEqual((CHECKPOINTS / "step-00000006" / BUNDLE).read_text().splitlines()[1:],
                         (step4 / BUNDLE).read_text().splitlines())
        self.assertEqual(parent["predicate"]["buildDefinition"]["internalParameters"]["ranks"], 2)

    def test_audit_log_names_the_provenance(self):
        saved = [json.loads(line)["details"]
                 for line in (FOLDER / "audit.jsonl").read_text().splitlines()
                 if '"checkpoint.saved"' in line]
        self.assertEqual([each["provenance_sha256"] for each in saved],
                         [sha256(CHECKPOINTS / f"step-0000000{step}" / BUNDLE)
                          for step in (2, 4, 6)])

    def test_without_a_key_nothing_is_written(self):
        harness.must(train("audit.key=", "audit.log=", f"run.dir={FOLDER / 'plain'}"))
        step = FOLDER / "plain/checkpoints/step-00000004"
        self.assertFalse((step / BUNDLE).exists())
        self.assertNotIn("sha256\":", (step / "manifest.json").read_text())
        code, found = verify(step)
        self.assertEqual(code, 77, found)
        self.assertIn("nothing in it is signed", found["faults"][0]["what"])

    def test_pages(self):
        for what, words in [(RUN, ["checkpoint", "step-00000002", "step-00000006"]),
                            (CHECKPOINTS, ["checkpoint"]),
                            (CHECKPOINTS / "step-00000006",
                             ["parent", "data.train", "data.validation", "inputs", "program",
                              "config", "signed by Site A (key "]),
                            (FOLDER / "data/train", ["dataset", "inputs"])]:
            with self.subTest(what):
                page = harness.must(harness.run("verify", what, "--trust", TRUST)).stdout
                for word in words + ["Everything that was signed was checked", "helps demonstrate"]:
                    self.assertIn(word, page)
                self.assertNotIn("compliant", page)

    def test_packing_again_keeps_the_statement(self):
        before = (FOLDER / "data/train" / BUNDLE).read_bytes()
        harness.must(harness.run("data", "pack", "--out", FOLDER / "data", "--validation-fraction",
                                 "0.3", "--shard-size", "64K", FOLDER / "text", env=SITE))
        self.assertEqual((FOLDER / "data/train" / BUNDLE).read_bytes(), before)

    def test_the_tokenizer_in_a_dataset_is_signed(self):
        tokenizer, data = FOLDER / "tokenizer", FOLDER / "with-tokenizer"
        harness.must(harness.run("tokenizer", "train", FOLDER / "text", "--vocab", 300, "--out",
                                 tokenizer))
        harness.must(harness.run("data", "pack", FOLDER / "text", "--tokenizer", tokenizer, "--out",
                                 data, env=SITE))
        code, found = verify(data)
        self.assertEqual(code, 0, found)
        file = data / "tokenizer/tokenizer.json"
        file.write_bytes(file.read_bytes() + b" ")
        code, found = verify(data)
        self.assertEqual(code, 65, found)
        self.assertIn(f"{file} was changed", found["faults"][0]["what"])

    def test_what_was_packed_before_is_not_signed(self):
        words = ("data", "pack", "--out", FOLDER / "before", FOLDER / "text")
        harness.must(harness.run(*words))
        again = harness.must(harness.run(*words, env=SITE))
        self.assertIn("is not signed, because it was packed before", again.stderr)
        self.assertFalse((FOLDER / "before" / BUNDLE).exists())

    def test_what_changes_while_it_is_packed_is_not_signed(self):
        text = FOLDER / "touched-text"
        harness.make_text(text, 30_000, 3)
        out = FOLDER / "touched"

        def touch():
            (text / "text0.txt").chmod(0o600)  # size and modification time remain

        def damage():
            shard = bytearray((out / "shards/00000.h5").read_bytes())
            shard[-1] ^= 1
            (out / "shards/00000.h5").write_bytes(shard)

        for change, words in [(touch, "text0.txt was changed while it was read"),
                              (damage, "00000.h5 was changed since it was packed")]:
            with self.subTest(words):
                shutil.rmtree(out, ignore_errors=True)
                log = FOLDER / f"{change.__name__}.log"
                # The third rename is that of the manifest.
                process = harness.start("data", "pack", "--out", out, text, ranks=0, log=log,
                                        env={**SITE, "TRIREME_FAULTS": "file.rename:0:3:stop"})
                self.assertTrue(os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1]),
                                log.read_text())
                change()
                os.kill(process.pid, signal.SIGCONT)
                self.assertEqual(process.wait(60), 65)
                self.assertIn(words, log.read_text())
                self.assertFalse((out / BUNDLE).exists())

    def test_the_check_of_a_dataset_expects_the_statement(self):
        checked = harness.must(harness.run("data", "verify", FOLDER / "data/train", "--json"))
        self.assertEqual(json.loads(checked.stdout)["extra_files"], [])

    def test_staged_datasets_keep_the_statement(self):
        staged = FOLDER / "staged"
        words = ("data", "stage", FOLDER / "data/train", staged)
        harness.must(harness.run(*words))
        self.assertEqual(verify(staged)[0], 0)
        (staged / BUNDLE).unlink()
        harness.must(harness.run(*words))
        self.assertEqual(verify(staged)[0], 0)

    def test_datasets_are_staged_without_a_statement_that_cannot_be_read(self):
        source = FOLDER / "unreadable"
        shutil.copytree(FOLDER / "data/train", source)
        (source / BUNDLE).unlink()
        (source / BUNDLE).mkdir()
        for _ in range(2):
            result = harness.must(harness.run("data", "stage", source, FOLDER / "staged-unsigned"))
            self.assertIn("staged without its provenance", result.stderr)
        self.assertFalse((FOLDER / "staged-unsigned" / BUNDLE).exists())


class Races(unittest.TestCase):
    """A file that another one replaces right after it was loaded, or saved, is stated as it was."""

    def replace_at(self, point, run, path, *words):
        """Trains with a key. While it is stopped at a point, replaces the file. Returns the digest
        of the file before, and the newest details of each event of the audit log."""
        before = sha256(path) if path.exists() else None
        log = FOLDER / f"{run.name}.jsonl"
        process = harness.start(
            "train", FOLDER / "run.yaml", f"run.dir={run}", "train.steps=8", f"audit.log={log}",
            *words, ranks=0, log=FOLDER / f"{run.name}.log",
            env={"TRIREME_FAULTS": f"{point}:0:1:stop"})
        try:
            self.assertTrue(os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1]))
            before = before or sha256(path)
            path.write_text("{}\n")
            os.kill(process.pid, signal.SIGCONT)
            self.assertEqual(process.wait(120), 0, (FOLDER / f"{run.name}.log").read_text())
        finally:
            harness.end_group(process)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return before, {line["event"]: line["details"] for line in lines if "details" in line}

    def copy_of_run(self, name):
        run = FOLDER / name
        shutil.copytree(RUN, run)
        (run / "DONE").unlink()
        return run

    def material(self, run, name):
        statement = statements_of(run / "checkpoints/step-00000008", TRUST)[0]
        return {each["name"]: each["digest"]["sha256"] for each in
                statement["predicate"]["buildDefinition"]["resolvedDependencies"]}[name]

    def test_parent(self):
        run = self.copy_of_run("raced-parent")
        path = run / "checkpoints/step-00000006/manifest.json"
        loaded, events = self.replace_at("load.manifest", run, path)
        self.assertEqual(self.material(run, "parent"), loaded)
        self.assertEqual(events["checkpoint.resumed"]["manifest_sha256"], loaded)

    def test_dataset(self):
        data = FOLDER / "raced-data"
        shutil.copytree(FOLDER / "data/train", data)
        run = self.copy_of_run("raced-dataset")
        loaded, _ = self.replace_at("data.open", run, data / "manifest.json", f"data.train={data}")
        self.assertEqual(self.material(run, "data.train"), loaded)

    def test_saved_step(self):
        run = self.copy_of_run("raced-step")
        path = run / "checkpoints/step-00000008/manifest.json"
        saved, events = self.replace_at("ckpt.renamed", run, path)
        self.assertEqual(events["checkpoint.saved"]["manifest_sha256"], saved)


class Saves(unittest.TestCase):
    def test_killed_while_saving(self):
        for point in ("ckpt.manifest_write", "ckpt.provenance_written", "ckpt.manifest_written",
                      "ckpt.rename", "ckpt.renamed"):
            with self.subTest(point):
                run = FOLDER / ("killed-" + point)
                killed = train(f"run.dir={run}", "audit.log=",
                               env={"TRIREME_FAULTS": f"{point}:0:2:kill"})
                self.assertNotEqual(killed.returncode, 0)
                for step in (run / "checkpoints").glob("step-*"):
                    self.assertEqual(verify(step)[0], 0)
                harness.must(train(f"run.dir={run}", "audit.log="))
                code, found = verify(run)
                self.assertEqual(code, 0, found)
                for step in (run / "checkpoints").glob("step-*"):
                    self.assertTrue((step / BUNDLE).exists())
                self.assertEqual(list((run / "checkpoints").glob(".tmp-*")), [])

    def test_retention_deletes_both_and_keeps_the_lineage(self):
        run = FOLDER / "kept"
        shutil.copytree(RUN, run)
        (run / "DONE").unlink()
        harness.must(train(f"run.dir={run}", "train.steps=12", "checkpoint.keep=2", "audit.log="))
        steps = sorted(path.name for path in (run / "checkpoints").glob("step-*"))
        self.assertEqual(steps, ["step-00000010", "step-00000012"])
        code, found = verify(run)
        self.assertEqual(code, 66, found)
        gone = [item["place"] for item in found["items"] if item["state"] == "GONE"]
        self.assertEqual([pathlib.Path(place).name for place in gone],
                         ["step-00000006"])
        self.assertEqual(verify(run, "--allow-missing")[0], 0)
        self.assertEqual(len(statements_of(run / "checkpoints/step-00000012", TRUST)), 3)

    def test_encrypted_checkpoints_are_signed(self):
        run, key = FOLDER / "encrypted", FOLDER / "wrapping.key"
        harness.must(harness.run("keys", "create", "--out", key, "--name", "site"))
        harness.must(train(f"run.dir={run}", "audit.log=", f"encryption.keys=[file:{key}]",
                           "encryption.accept_plain_data=true"))
        code, found = verify(run)
        self.assertEqual((code, found["faults"]), (0, []), found)
        (run / "checkpoints/step-00000004/keys.json").write_text("changed")
        code, found = verify(run)
        self.assertEqual(code, 65, found)
        self.assertIn("keys.json", found["faults"][0]["what"])

    def test_validation_set_that_is_gone(self):
        """A run that is resumed goes on without it, and so does the replay of a step."""
        folder = FOLDER / "diverges"
        folder.mkdir()
        validation = folder / "validation"
        shutil.copytree(FOLDER / "data/validation", validation)
        noisy = harness.make_noisy_dataset(folder, 20 * 8 * 48, 3 * 8 * 48)
        config = harness.write_config(
            folder / "run.yaml", (noisy, validation), train__steps=32, checkpoint__every=4,
            checkpoint__keep=3, data__shuffle="none", optimizer__lr=1e-2, divergence__window=8,
            divergence__spike="rewind", divergence__rewind_steps=4, divergence__skip_batches=3,
            audit__key=KEY)
        harness.must(harness.run("train", config, "train.steps=4", "optimizer.schedule.steps=32",
                                 ranks=2))
        (harness.run_dir(config) / "DONE").unlink()
        shutil.rmtree(validation)
        resumed = harness.must(harness.run("train", config, "optimizer.schedule.steps=32",
                                           ranks=2))
        self.assertIn("the run continues without evaluations", resumed.stderr)
        self.assertIn("it has the same bits", resumed.stderr)
        step = harness.run_dir(config) / "checkpoints/step-00000032"
        names = [each["name"] for each in statements_of(step, TRUST)[0]["predicate"]
                 ["buildDefinition"]["resolvedDependencies"]]
        self.assertNotIn("data.validation", names)
        self.assertIn("data.train", names)

    def test_damaged_provenance_of_the_parent(self):
        run = FOLDER / "damaged"
        shutil.copytree(RUN, run)
        (run / "DONE").unlink()
        (run / "checkpoints/step-00000006" / BUNDLE).write_text("x\n")
        resumed = train(f"run.dir={run}", "train.steps=8", "audit.log=")
        harness.must(resumed)
        self.assertIn("the provenance of later checkpoints does not include that of",
                      resumed.stderr)
        self.assertEqual(len(statements_of(run / "checkpoints/step-00000008", TRUST)), 1)
        self.assertEqual(verify(run / "checkpoints/step-00000008")[0], 65)

    def test_provenance_of_the_parent_that_cannot_be_read(self):
        run = FOLDER / "unread"
        shutil.copytree(RUN, run)
        (run / "DONE").unlink()
        path = run / "checkpoints/step-00000006" / BUNDLE
        good = path.read_bytes()
        path.unlink()
        path.mkdir()
        resumed = harness.must(train(f"run.dir={run}", "train.steps=8", "audit.log="))
        self.assertIn("does not include that of", resumed.stderr)
        path.rmdir()
        path.symlink_to(path)
        again = FOLDER / "unread-link"
        shutil.copytree(run, again, symlinks=True)
        shutil.rmtree(again / "checkpoints/step-00000008")
        (again / "DONE").unlink()
        resumed = harness.must(train(f"run.dir={again}", "train.steps=8", "audit.log="))
        self.assertIn("does not include that of", resumed.stderr)
        path.unlink()
        path.write_bytes(good)
        code, found = verify(run, "--moved", f"{RUN}={run}")
        self.assertEqual(code, 66, found)
        self.assertIn("a run could not read", found["faults"][0]["what"])

    def test_provenance_of_the_parent_that_is_too_large(self):
        run = FOLDER / "large"
        shutil.copytree(RUN, run)
        (run / "DONE").unlink()
        os.truncate(run / "checkpoints/step-00000006" / BUNDLE, (16 << 20) + 1)
        resumed = harness.must(train(f"run.dir={run}", "train.steps=8", "audit.log="))
        self.assertIn("more than the 16777216 that are allowed", resumed.stderr)
        details = statements_of(run / "checkpoints/step-00000008", TRUST)[0]["predicate"][
            "buildDefinition"]["internalParameters"]
        self.assertEqual(details["lineage"], "unreadable")

    def test_inputs_that_are_gone_do_not_sign(self):
        key = FOLDER / "no.key"
        refused = harness.run("data", "pack", "--out", FOLDER / "unsigned", FOLDER / "text",
                              env={"TRIREME_AUDIT__KEY": str(key)})
        self.assertEqual(refused.returncode, 66, refused.stderr)


if __name__ == "__main__":
    unittest.main()
