"""Tests that `trireme verify` finds and names every change of what was signed."""
import json
import os
import shutil
import unittest

import harness
from provenance_harness import (BUNDLE, FOLDER, KEY, RUN, TRUST, Copies, make_everything, sha256,
                                train, verify)


def setUpModule():
    make_everything()


class Mutations(Copies):
    """Each change of a copy of everything, with its exit code and its sentence."""

    def test_untouched(self):
        for what in (self.all / "run", self.steps, self.step, self.all / "data/train"):
            code, found = self.verify(what)
            self.assertEqual((code, found["faults"]), (0, []), found)

    def test_changed_files(self):
        for name in sorted(os.listdir(self.step)):
            for at in (0, -2):
                with self.subTest((name, at)):
                    good = (self.step / name).read_bytes()
                    self.flip(self.step / name, at)
                    code, found = self.verify(self.step)
                    self.assertEqual(code, 65, found)
                    self.assertTrue(any(name in fault["what"] for fault in found["faults"]), found)
                    (self.step / name).write_bytes(good)
        self.assertEqual(self.verify(self.step)[0], 0)

    def test_cut_file(self):
        shard = next(self.step.glob("shard-*"))
        os.truncate(shard, shard.stat().st_size - 1)
        self.expect(65, f"{shard} was changed: its SHA-256 is")

    def test_missing_file(self):
        next(self.step.glob("shard-*")).unlink()
        self.expect(65, "is missing: the provenance names it")

    def test_added_file(self):
        (self.step / "shard-00009.safetensors").write_text("x")
        self.expect(65, "shard-00009.safetensors was added")

    def test_folder_in_place_of_a_file(self):
        shard = next(self.step.glob("shard-*"))
        shard.unlink()
        shard.mkdir()
        self.expect(65, f"{shard} is missing: the provenance names it; a folder has its name")

    def test_decoy_inside_what_is_checked(self):
        for what in (self.step, self.all / "data/train"):
            with self.subTest(what):
                shutil.copytree(self.steps / "step-00000002", what / "checkpoints/step-00000002")
                self.expect(65, f"the folder {what}/checkpoints was added", what)
                (what / "manifest.json").unlink()
                (what / BUNDLE).unlink()
        self.expect(77, "nothing in it is signed")

    def test_other_spellings_of_a_folder(self):
        shutil.rmtree(self.step)
        shutil.copytree(self.steps / "step-00000002", self.step)
        (self.all / "elsewhere").symlink_to(self.step / "..")
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.step)
        for what in (f"{self.step}/.", f"{self.step}//", f"{self.step}/./", ".", "./",
                     "../step-00000006", f"{self.all}/elsewhere/../checkpoints/step-00000006"):
            with self.subTest(what):
                self.expect(65, "holds step 2, as its provenance states", what)

    def test_what_is_beside_the_steps(self):
        planted = self.steps / "planted"
        planted.mkdir()
        (self.steps / "LATEST.tmp-12").write_text("")
        (self.steps / ".tmp-8-9").mkdir()
        self.expect(65, f"{planted} was added", self.all / "run")
        planted.rmdir()
        code, found = self.verify(self.all / "run")
        self.assertEqual(code, 0, found)
        self.assertTrue(any("has not ended" in note for note in found["notes"]), found)
        (self.steps / "step-00000002").rename(self.steps / ".replaced-2-0")
        self.expect(77, "was left by an interrupted save", self.steps)
        (self.steps / "LATEST").unlink()
        (self.steps / "LATEST").mkdir()
        self.expect(65, "LATEST is a folder, where a run keeps a regular file", self.steps)
        (self.steps / "LATEST").rmdir()
        (self.steps / "LATEST").symlink_to("nowhere")
        self.expect(65, "LATEST is a symbolic link, where a run keeps", self.steps)
        (self.steps / "LATEST").unlink()
        for path in list(self.step.iterdir()):
            if path.name != BUNDLE:
                shutil.copy(path, self.steps)
        self.expect(65, f"{self.steps}/manifest.json was added", self.all / "run")
        self.expect(77, "nothing in it is signed", self.steps)

    def test_linked_file(self):
        shard = next(self.step.glob("shard-*"))
        shard.rename(self.all / "moved")
        shard.symlink_to(self.all / "moved")
        self.expect(65, f"{shard} is a symbolic link")

    def test_linked_step(self):
        self.step.rename(self.all / "moved")
        self.step.symlink_to(self.all / "moved")
        self.expect(65, "step-00000006 is a symbolic link", self.steps)

    def test_missing_statement(self):
        (self.step / BUNDLE).unlink()
        self.expect(77, "nothing in it is signed")

    def test_swapped_statements(self):
        shutil.copy(self.steps / "step-00000004" / BUNDLE, self.step / BUNDLE)
        self.expect(65, "was changed: its SHA-256 is")

    def test_older_step_under_a_new_name(self):
        shutil.rmtree(self.step)
        shutil.copytree(self.steps / "step-00000002", self.step)
        self.expect(65, "holds step 2, as its provenance states")

    def test_step_of_another_run(self):
        other = FOLDER / "other-run"
        harness.must(train(f"run.dir={other}", "train.seed=5", "train.steps=2", "audit.log="))
        step = self.steps / "step-00000002"
        shutil.rmtree(step)
        shutil.copytree(other / "checkpoints/step-00000002", step)
        self.expect(65, f"{step} was made for {other}/checkpoints: a step of another run",
                    self.all / "run")
        code, found = self.verify(step)
        self.assertEqual(code, 0, found)
        self.assertEqual(found["notes"][0], f"{step} was made for {other}/checkpoints")

    def test_moved_run(self):
        moved = self.all / "run"
        code, found = verify(moved)
        self.assertEqual(code, 65, found)
        advice = f"--moved {RUN}/checkpoints={self.steps}"
        self.assertTrue(found["faults"][0]["what"].endswith(advice), found)
        self.assertEqual(verify(moved, *advice.split())[0], 0)
        link = self.all / "link"
        link.symlink_to(RUN)
        self.assertEqual(verify(link)[0], 0)

    def test_step_of_a_later_start(self):
        (self.steps / "GENERATION").write_text("1\n")
        self.expect(65, f"{self.step} was saved by start 2 of its run, but", self.all / "run")

    def test_the_count_of_starts_was_removed(self):
        (self.steps / "GENERATION").unlink()
        code, found = self.verify(self.all / "run")
        self.assertEqual((code, found["faults"]), (0, []), found)
        self.assertTrue(any("GENERATION was not copied" in note for note in found["notes"]), found)
        count = RUN / "checkpoints/GENERATION"
        count.rename(self.all / "GENERATION")
        try:
            code, found = verify(RUN)
            self.assertEqual(code, 66, found)
            self.assertIn(f"{count} is gone, in which each start of the run counts itself",
                          found["faults"][0]["what"])
            self.assertEqual(verify(RUN, "--allow-missing")[0], 0)
        finally:
            (self.all / "GENERATION").rename(count)

    def test_cut_statement(self):
        text = (self.step / BUNDLE).read_text()
        (self.step / BUNDLE).write_text(text[:-1])
        self.expect(65, "ends within line 2: it was cut")
        (self.step / BUNDLE).write_text("")
        self.expect(65, "is empty")

    def test_changed_lines(self):
        own, parent = (self.step / BUNDLE).read_text().splitlines(keepends=True)
        (self.step / BUNDLE).write_text(own)
        self.expect(65, "has 0 lines about ancestors, but its first line states that there are 1: "
                        "lines were removed at the end")
        (self.step / BUNDLE).write_text(parent + own)
        self.expect(65, "line 2 is not about the parent of line 1")
        (self.step / BUNDLE).write_text(own + parent + parent)
        self.expect(65, "line 3 is not about the parent of line 2")
        (self.step / BUNDLE).write_text(own.replace('"sig"', '"note":1,"sig"') + parent)
        self.expect(65, "line 1: it is not written as Trireme writes it")

    def test_forged_statement(self):
        shard = next(self.step.glob("shard-*"))
        self.flip(shard)

        def state_new_digest(statement):
            for subject in statement["subject"]:
                subject["digest"]["sha256"] = sha256(self.step / subject["name"])
        self.signed_again(self.step / BUNDLE, state_new_digest)
        self.expect(65, "line 1 was changed: the signature is not that of Site A")

    @unittest.skipUnless(shutil.which("openssl"), "the openssl command is not installed")
    def test_statement_of_another_key(self):
        self.signed_again(self.step / BUNDLE, None, FOLDER / "other")
        self.expect(77, "which the trust file does not hold")

    @unittest.skipUnless(shutil.which("openssl"), "the openssl command is not installed")
    def test_untrusted_statements_lead_nowhere(self):
        """Whoever may write a statement could otherwise make the checker open any file."""
        def lead_away(statement):
            for each in statement["predicate"]["buildDefinition"]["resolvedDependencies"]:
                each["uri"] = f"file://{TRUST}"
        self.signed_again(self.step / BUNDLE, lead_away, FOLDER / "other")
        code, found = self.verify(self.step)
        self.assertEqual(code, 77, found)
        self.assertEqual([item["role"] for item in found["items"]], ["checkpoint", "materials"])
        self.assertIn("not followed", found["items"][1]["summary"])
        self.assertNotIn(sha256(TRUST), json.dumps(found))

    @unittest.skipUnless(shutil.which("openssl"), "the openssl command is not installed")
    def test_what_the_key_has_signed_is_compared(self):
        def change_parent(statement):
            for each in statement["predicate"]["buildDefinition"]["resolvedDependencies"]:
                if each["name"] == "parent":
                    each["digest"]["sha256"] = "0" * 64
            statement["predicate"]["buildDefinition"]["internalParameters"]["ancestors"] = 0
        path = self.step / BUNDLE
        path.write_text(path.read_text().splitlines(keepends=True)[0])
        self.signed_again(path, change_parent, KEY)
        self.expect(66, "step-00000004 is gone")

        def change_config(statement):
            statement["predicate"]["buildDefinition"]["externalParameters"]["config"] += "\n"
        self.signed_again(path, change_config, KEY)
        self.expect(65, "does not have the digest that it states")

        def lead_out(statement):
            statement["subject"][0]["name"] = "../manifest.json"
        self.signed_again(path, lead_out, KEY)
        self.expect(65, "is not the name of a file in this folder")

    @unittest.skipUnless(shutil.which("openssl"), "the openssl command is not installed")
    def test_second_signature(self):
        path = self.steps / "step-00000002" / BUNDLE
        envelope = json.loads(path.read_text())
        self.signed_again(path, None, FOLDER / "other")
        envelope["signatures"] += json.loads(path.read_text())["signatures"]
        path.write_text(json.dumps(envelope, separators=(",", ":")) + "\n")
        code, found = self.verify(self.steps / "step-00000002")
        self.assertEqual(code, 0, found)
        self.assertIn("also signed by the key", found["notes"][0])
        both = FOLDER / "both.pem"
        both.write_text((FOLDER / "other.pub").read_text() + TRUST.read_text())
        code, found = self.verify(path.parent, trust=both)
        self.assertEqual((code, [note for note in found["notes"] if "signed by" in note]), (0, []))
        self.assertEqual([fact.split(" (")[0] for fact in found["items"][0]["facts"][:2]],
                         ["signed by Site A", "signed by Site B"])
        envelope["signatures"][1]["keyid"] = envelope["signatures"][0]["keyid"]
        path.write_text(json.dumps(envelope, separators=(",", ":")) + "\n")
        self.expect(65, "two signatures have the keyid", path.parent)

    def test_other_trust_files(self):
        self.expect(77, "which the trust file does not hold", trust=FOLDER / "other.pub")
        both = FOLDER / "both.pem"
        both.write_text((FOLDER / "other.pub").read_text() + TRUST.read_text())
        self.assertEqual(self.verify(self.step, trust=both)[0], 0)
        damaged = FOLDER / "damaged.pem"
        damaged.write_text(TRUST.read_text()[:-8])
        for trust, code, words in [
                (damaged, 65, "has no end"), (FOLDER / "none", 66, "none"),
                (KEY, 2, "holds a private key"), ("/dev/null", 2, "is no trust file"),
                (FOLDER, 2, "is no trust file"), (FOLDER / "run.yaml", 2, "holds no key in PEM"),
                (RUN / "checkpoints/step-00000002/manifest.json", 2, "holds no key in PEM")]:
            with self.subTest(trust):
                got, said = self.verify(self.step, trust=trust)
                self.assertEqual(got, code, said)
                self.assertIn(words, said)

    def test_nothing_to_verify(self):
        for what, code in [(self.all / "none", 66), (self.all / "text", 66),
                           (self.step / "manifest.json", 66)]:
            with self.subTest(what):
                self.assertEqual(self.verify(what)[0], code)
        self.assertEqual(harness.run("verify", self.step).returncode, 2)
        self.assertEqual(self.verify(self.step, "--moved", "x")[0], 2)


class Report(Copies):
    def page(self, run):
        return harness.must(harness.run("report", run, "--markdown", "--trust", TRUST)).stdout

    def test_a_report_has_the_page(self):
        page = self.page(RUN)
        self.assertIn("Everything that was signed was checked and is unchanged", page)
        self.assertIn("This page helps demonstrate where the files come from", page)
        shard = next((RUN / "checkpoints/step-00000006").glob("shard-*"))
        good = shard.read_bytes()
        self.flip(shard)
        try:
            page = self.page(RUN)
        finally:
            shard.write_bytes(good)
        self.assertIn("NOT verified", page)
        self.assertIn(f"BAD: {shard} was changed", page.replace("\\", ""))

    def test_a_secret_in_the_name_of_the_folder_is_not_shown(self):
        run = FOLDER / "token=q7Zab12cd34"
        shutil.copytree(RUN, run)
        try:
            page = self.page(run).replace("\\", "")
        finally:
            shutil.rmtree(run)
        self.assertIn("What trireme verify found", page)
        self.assertIn("token=REDACTED", page)
        self.assertNotIn("q7Zab12cd34", page)

    def test_without_checkpoints_or_with_other_keys(self):
        run = FOLDER / "empty-run"
        run.mkdir()
        (run / "config.yaml").write_text("")
        self.assertIn("Nothing could be verified", self.page(run))
        told = harness.run("report", RUN, "--markdown", "--trust", FOLDER / "none.pem")
        self.assertEqual(told.returncode, 66, told.stderr)


class Bills(Copies):
    def test_a_changed_bill_of_materials(self):
        bill = next((self.all / "run").glob("sbom-*.cyclonedx.json"))
        good = bill.read_bytes()
        self.flip(bill, 5)
        self.expect(65, f"the bill of materials {bill} was changed")
        bill.unlink()
        self.expect(66, f"the bill of materials {bill} is gone")
        bill.write_bytes(good)
        self.assertEqual(self.verify(self.step)[0], 0)


if __name__ == "__main__":
    unittest.main()
