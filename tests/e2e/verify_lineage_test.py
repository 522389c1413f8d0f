"""Tests what `trireme verify` finds when it follows a checkpoint to its parents, its datasets and
the files from which they were packed."""
import shutil
import unittest
import urllib.parse

import harness
from provenance_harness import (BUNDLE, FOLDER, RUN, TRUST, Copies, make_everything, sha256,
                                statements_of, train, verify)


def setUpModule():
    make_everything()


class Lineage(Copies):
    def test_ancestors_of_each_child_are_compared(self):
        """Steps 8 and 10 have the same parent."""
        run = FOLDER / "siblings"
        shutil.copytree(RUN, run)
        (run / "DONE").unlink()
        harness.must(train(f"run.dir={run}", "train.steps=10", "audit.log="))
        self.assertEqual(verify(run, "--moved", f"{RUN}={run}")[0], 0)
        path = run / "checkpoints/step-00000010" / BUNDLE
        path.write_text(path.read_text().splitlines(keepends=True)[0])
        self.expect(65, "lines were removed at the end", run)

    def test_changed_parent(self):
        self.flip(next((self.steps / "step-00000004").glob("shard-*")))
        self.expect(65, "step-00000004/shard-0000")
        self.flip(self.steps / "step-00000004/manifest.json", 5)
        self.expect(65, "manifest.json was changed: it is not the checkpoint from which")

    def test_parent_that_is_gone(self):
        shutil.rmtree(self.steps / "step-00000004")
        self.expect(66, "step-00000004 is gone, so that its files were not checked; line 2 of "
                        f"{self.step / BUNDLE} still proves which files it had")
        code, found = self.verify(self.step, "--allow-missing")
        self.assertEqual(code, 0, found)
        own = (self.step / BUNDLE).read_text().splitlines(keepends=True)[0]
        (self.step / BUNDLE).write_text(own)
        self.expect(65, "lines were removed at the end")
        self.assertEqual(self.verify(self.step, "--allow-missing")[0], 65)

    def test_parent_without_provenance_that_is_gone(self):
        run = FOLDER / "late-key"
        harness.must(train(f"run.dir={run}", "train.steps=2", "audit.key=", "audit.log="))
        (run / "DONE").unlink()
        harness.must(train(f"run.dir={run}", "audit.log="))
        steps = run / "checkpoints"
        manifest = sha256(steps / "step-00000002/manifest.json")
        shutil.rmtree(steps / "step-00000002")
        self.expect(66, "it had no provenance when a run was resumed from it: all that is signed "
                        f"of it is that its manifest had the SHA-256 {manifest}", run)

    def test_changed_dataset(self):
        manifest = self.all / "data/train/manifest.json"
        good = manifest.read_bytes()
        self.flip(manifest, 10)
        self.expect(65, "data/train was changed: its manifest has the SHA-256")
        manifest.write_bytes(good)
        shard = self.all / "data/train/shards/00000.h5"
        self.flip(shard)
        self.expect(65, f"{shard} was changed")
        self.expect(65, f"{shard} was changed", self.all / "data/train")
        self.flip(shard)
        (self.all / "data/train/shards/00099.h5").write_text("")
        self.expect(65, "00099.h5 was added")

    def test_dataset_that_is_gone(self):
        shutil.rmtree(self.all / "data/validation")
        self.expect(66, "data/validation is gone: data.validation was not checked")

    def test_unsigned_dataset(self):
        data, run = FOLDER / "unsigned", FOLDER / "on-unsigned"
        shutil.copytree(FOLDER / "data/train", data)
        (data / BUNDLE).unlink()
        harness.must(train(f"run.dir={run}", f"data.train={data}", "train.steps=2", "audit.log="))
        self.expect(66, "the files from which it was packed are unknown", run)
        self.expect(77, "nothing in it is signed", data)
        self.flip(data / "shards/00000.h5")
        self.expect(65, "00000.h5", run)

    def test_tokenizer_of_an_unsigned_dataset(self):
        data, run, tokenizer = (FOLDER / name for name in ("worded", "on-words", "tokenizer"))
        harness.must(harness.run("tokenizer", "train", FOLDER / "text", "--vocab", 259, "--out",
                                 tokenizer))
        harness.must(harness.run("data", "pack", FOLDER / "text", "--tokenizer", tokenizer,
                                 "--validation-fraction", 0.3, "--out", data))
        harness.must(train(f"run.dir={run}", f"data.train={data}/train", "train.steps=2",
                           f"data.validation={data}/validation", "audit.log="))
        self.expect(66, "the files from which it was packed are unknown", run)
        file = data / "train/tokenizer/tokenizer_config.json"
        file.write_text(file.read_text().replace("<|endoftext|>", "a"))
        self.expect(65, "the files in tokenizer/ are not those", run)

    def test_dataset_that_has_lost_its_provenance(self):
        path = self.all / "data/train" / BUNDLE
        good = path.read_text()
        path.unlink()
        self.expect(65, f"{path} was removed: the provenance of a checkpoint names it")
        path.write_text(good[:-1])
        self.expect(65, f"{path} was changed: its SHA-256 is")

    def test_moved_folders(self):
        moved = ("--moved", f"{FOLDER / 'data'}/={self.all / 'data'}//")
        code, found = verify(self.step, *moved, "--moved", f"{FOLDER / 'nothing'}=/x")
        self.assertEqual(code, 0, found)
        places = {item["role"]: item["place"] for item in found["items"]}
        self.assertEqual(places["data.train"], str(self.all / "data/train"))
        notes = [note for note in found["notes"] if "audit log" not in note]
        self.assertEqual(notes, [f"{self.step} was made for {RUN}/checkpoints",
                                 f"--moved {FOLDER / 'nothing'}=/x: no statement names a place "
                                 f"below {FOLDER / 'nothing'}"])

    def test_raw_files(self):
        file = next(path for path in (self.all / "text").rglob("*") if path.is_file())
        file.write_bytes(file.read_bytes() + b"x")
        self.expect(65, f"the input file {file} was changed since it was read")
        file.unlink()
        self.expect(66, f"the input file {file} is gone")

    def test_program_that_is_gone(self):
        statement = statements_of(self.step, TRUST)[0]
        program = next(urllib.parse.unquote(each["uri"].removeprefix("file://")) for each in
                       statement["predicate"]["buildDefinition"]["resolvedDependencies"]
                       if each["name"] == "program")
        code, found = self.verify(self.step, "--moved", f"{program}={self.all / 'none'}")
        self.assertEqual(code, 66, found)
        self.assertIn("none with the SHA-256", found["faults"][0]["what"])
        code, found = self.verify(self.step, "--moved", f"{program}={TRUST}")
        self.assertEqual(code, 66, found)
        self.assertIn("is gone: another one is there", found["faults"][0]["what"])


if __name__ == "__main__":
    unittest.main()
