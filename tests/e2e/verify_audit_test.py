"""Verifies runs together with the audit log of their site: what `trireme verify --audit` finds that
the files of a run cannot show, such as a newest step that was removed."""
import json
import os
import re
import shutil
import signal
import unittest

import harness
from provenance_harness import FOLDER, KEY, RUN, TRUST, Copies, make_everything, train, verify
from verify_logs_test import record_of, seal_again

LOG = FOLDER / "audit.jsonl"


def setUpModule():
    make_everything()


def copy_of(folder, name):
    """Copies a folder, or puts the copy back."""
    copy = FOLDER / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, symlinks=True)
    return copy


def put_back(copy, folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(copy, folder, symlinks=True)


class Audited(Copies):
    def expect(self, code, sentence, what=None, log=LOG, **kw):
        """Also returns what was found without the audit log."""
        what = what or self.all / "run"
        got, found = self.verify(what, "--audit", log, **kw)
        self.assertEqual(got, code, found)
        self.assertTrue(not code or any(sentence in each["what"] for each in found["faults"]),
                        found)
        return self.verify(what, **kw)

    def test_a_whole_run(self):
        for what in (self.all / "run", self.steps, self.step):
            code, found = self.verify(what, "--audit", LOG)
            self.assertEqual((code, found["faults"], found["notes"]), (0, [], []), found)
            item = found["items"][0]
            self.assertEqual((item["role"], item["place"], item["state"]),
                             ("audit log", str(LOG), "ok"))
            lines = len(LOG.read_text().splitlines())
            self.assertEqual(item["summary"], f"{lines} lines, each continues the one before it")
            self.assertTrue(any(f"signed up to line {lines} by Site A" in fact
                                for fact in item["facts"]), item)
        told = harness.run("verify", RUN, "--trust", TRUST, "--audit", LOG)
        self.assertIn(f"ok        audit log {LOG}: ", told.stdout)

    def test_without_it_the_page_names_it(self):
        _, found = self.verify(self.all / "run")
        self.assertEqual([note for note in found["notes"] if "audit log" in note],
                         [f"the run was recorded in the audit log {LOG}, which was not read: with "
                          f"--audit {LOG}, it is checked, and removed or older steps are found"])

    def test_the_newest_step_was_removed(self):
        shutil.rmtree(self.step)
        code, found = self.expect(65, "step-00000006 was removed: line ")
        self.assertEqual((code, found["faults"]), (0, []), "nothing in the run shows it")

    def test_an_older_step_was_removed(self):
        shutil.rmtree(self.steps / "step-00000002")
        code, _ = self.expect(66, "step-00000002 is gone: line ")
        self.assertEqual(code, 0)

    # A run records what its retention has deleted some steps later.
    def test_a_step_that_a_run_has_just_deleted(self):
        run, log = FOLDER / "live", FOLDER / "live.jsonl"
        own = [f"run.dir={run}", f"audit.log={log}"]
        harness.must(train(*own))
        (run / "DONE").unlink()
        live = harness.start("train", FOLDER / "run.yaml", *own, "train.steps=8", ranks=1,
                             log=FOLDER / "live.log", env={"TRIREME_FAULTS":
                                                           "step.forward:0:1:sleep=300"})
        try:
            harness.until("a lock", 60, lambda: (run / "checkpoints/run.lock").exists())
            shutil.rmtree(run / "checkpoints/step-00000002")
            code, found = verify(run, "--audit", log, "--allow-missing")
            self.assertEqual(code, 0, found)
            self.assertTrue(any("step-00000002 is gone, and the audit log does not say yet" in note
                                for note in found["notes"]), found)
        finally:
            harness.end_group(live)
            for rank in harness.processes_with(str(run)):
                os.kill(rank, signal.SIGKILL)
        harness.until("the end", 60, lambda: not harness.processes_with(str(run)))
        self.expect(66, "step-00000002 is gone: line ", run, log=log)

    def test_a_deleted_step_was_put_back(self):
        run = FOLDER / "retention"
        harness.must(train(f"run.dir={run}"))
        old = copy_of(run / "checkpoints/step-00000002", "old-step")
        (run / "DONE").unlink()
        harness.must(train(f"run.dir={run}", "train.steps=8", "checkpoint.keep=2"))
        self.assertFalse((run / "checkpoints/step-00000002").exists())
        code, found = verify(run, "--audit", LOG, "--allow-missing")
        self.assertEqual(code, 0, found)
        put_back(old, run / "checkpoints/step-00000002")
        self.assertEqual(verify(run, "--allow-missing")[0], 0)
        self.expect(65, "step-00000002 was deleted, as line ", run)

    def test_an_older_state_of_a_step_was_put_back(self):
        run = FOLDER / "rewound"
        harness.must(train(f"run.dir={run}"))
        old = copy_of(run / "checkpoints/step-00000004", "old-step")
        (run / "DONE").unlink()
        harness.must(train(f"run.dir={run}", "checkpoint.resume=2"))
        code, found = verify(run, "--audit", LOG)
        self.assertEqual(code, 0, found)
        put_back(old, run / "checkpoints/step-00000004")
        code, _ = self.expect(65, "names a later save of this step: the older one was put back",
                              run)
        self.assertEqual(code, 0)

    def test_a_log_that_was_changed_or_that_others_have_signed(self):
        lines = LOG.read_text().splitlines(keepends=True)
        bad = FOLDER / "bad.jsonl"
        edited = [line.replace('"step":2', '"step":3') for line in lines]
        bad.write_text("".join(edited))
        self.expect(65, f"{bad}: line ", log=bad)
        bad.write_text("".join(lines[:4] + lines[5:]))
        self.expect(65, f"{bad}: line 5", log=bad)
        bad.write_text("".join(lines) + lines[1])
        _, found = self.verify(self.all / "run", "--audit", bad)
        self.assertTrue(any("nothing was compared with audit logs" in note
                            for note in found["notes"]), found)
        bad.write_text("".join(line for line in lines if '"event":"head"' not in line))
        self.expect(65, f"{bad}: line ", log=bad)
        bad.write_text("")
        self.expect(65, "the audit log is empty", log=bad)
        unsigned = FOLDER / "unsigned.jsonl"
        harness.run("generate", "--checkpoint", FOLDER / "none",
                    env={"TRIREME_AUDIT__LOG": str(unsigned)})
        self.expect(77, f"{unsigned}: no line is signed by a trusted key", log=unsigned)

    def test_the_log_of_other_runs(self):
        other = FOLDER / "other.jsonl"
        harness.run("generate", "--checkpoint", FOLDER / "none",
                    env={"TRIREME_AUDIT__LOG": str(other), "TRIREME_AUDIT__KEY": str(KEY)})
        for what in (self.all / "run", self.step):
            self.expect(66, "no line of the audit log says that a checkpoint was saved in", what,
                        log=other)
        code, found = self.verify(self.all / "run", "--audit", LOG, "--audit", other)
        self.assertEqual(code, 0, found)

    def test_wrong_words(self):
        code, told = self.verify(self.step, "--audit", FOLDER / "no-log")
        self.assertEqual(code, 66, told)
        self.assertIn("no-log", told)
        certificate = FOLDER / "erased.json"
        name = "step-00000002"
        harness.must(harness.run("erase", self.steps / name, "--certificate", certificate,
                                 "--reason", "a test", "--sign", KEY, "--confirm", name,
                                 "--confirm", name))
        told = harness.run("verify", certificate, "--trust", TRUST, "--audit", LOG)
        self.assertEqual(told.returncode, 2, told.stderr)
        self.assertIn("trireme audit verify", told.stderr)

    def test_what_was_erased_may_be_gone(self):
        run = FOLDER / "erased-run"
        harness.must(train(f"run.dir={run}"))
        harness.must(harness.run("erase", run / "checkpoints/step-00000002", "--certificate",
                                 FOLDER / "erased-2.json", "--reason", "a test", "--sign", KEY,
                                 "--confirm", "step-00000002", "--confirm", "step-00000002",
                                 env={"TRIREME_AUDIT__LOG": str(LOG),
                                      "TRIREME_AUDIT__KEY": str(KEY)}))
        code, found = verify(run, "--audit", LOG)
        self.assertEqual(code, 0, found)

    def test_records_of_the_ends_of_encrypted_logs(self):
        """Without keys, nobody can tell a record that was made to fit; the audit log can."""
        key, run = FOLDER / "site.key", FOLDER / "sealed"
        harness.must(harness.run("keys", "create", "--out", key))
        sealed = [f"run.dir={run}", f"encryption.keys=[file:{key}]", "encryption.logs=true",
                  "encryption.accept_plain_data=true"]
        harness.must(train(*sealed))
        before = copy_of(run / "log-keys", "old-keys")
        (run / "DONE").unlink()
        harness.must(train(*sealed, "train.steps=6"))
        code, found = verify(run, "--audit", LOG)
        self.assertEqual(code, 0, found)
        whole = copy_of(run, "whole-sealed")
        record = max(run.glob("log-keys/*/closed.json"), key=lambda path: path.stat().st_mtime_ns)
        seal_again(record, lambda body: re.sub('"bytes": ', '"bytes": 1', body, count=1))
        self.expect(65, "the audit log has another SHA-256 of the record", run)
        record.unlink()
        self.expect(66, "closed.json is gone, the record of how the logs of start 2 ended", run)
        put_back(whole, run)
        put_back(before, run / "log-keys")
        self.expect(65, "of start 2 was removed, which line ", run)
        put_back(whole, run)
        self.assertEqual(json.loads(record_of(run).read_text())["data_key"],
                         record_of(run).parent.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
