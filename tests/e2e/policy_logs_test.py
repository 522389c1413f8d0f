"""Tests that the policy in /etc/trireme judges encrypted logs by the label that is bound to their
key, whatever has become of the checkpoints, and by where they really lie."""
import json
import shutil
import unittest

import harness
import policy_harness

FOLDER = harness.workspace()
AUDIT = FOLDER / "audit.jsonl"
KEY = ("--key", f"file:{FOLDER / 'site.key'}")
SECRET, INTERNAL = FOLDER / "secret-run", FOLDER / "internal-run"
ENCRYPTED = ["encryption.logs=true", f"encryption.keys=[\"file:{FOLDER / 'site.key'}\"]",
             "encryption.accept_plain_data=true"]


def train(data, run, *settings, env=None):
    path = policy_harness.config(FOLDER, f"{run.name}.yaml", data, run.name)
    return harness.run("train", path, *ENCRYPTED, *settings, env=env)


def setUpModule():
    FOLDER.chmod(0o755)
    harness.must(harness.run("keys", "create", "--out", FOLDER / "site.key"))
    for level in ("secret", "internal"):
        policy_harness.pack(FOLDER, level, "--label", f"classification={level}")
    elsewhere = f"checkpoint.dir={FOLDER / 'elsewhere'}"
    harness.must(train(FOLDER / "secret", SECRET, elsewhere, "run.trace=1"))
    harness.must(train(FOLDER / "internal", INTERNAL))


def label_of(run):
    return [json.loads(file.read_text())["contents"].split(" ", 3)[3]
            for file in run.glob("log-keys/*/keys.json")]


@unittest.skipUnless(policy_harness.can_mount(), "file systems cannot be mounted here")
class Logs(unittest.TestCase):
    def setUp(self):
        AUDIT.unlink(missing_ok=True)
        self.site = policy_harness.Site(FOLDER)

    def run_as(self, role, *words):
        return self.site.run(role, *words, *KEY, env={"TRIREME_AUDIT__LOG": str(AUDIT)})

    def refused(self, told, words="covers up to internal, and it is secret", code=77):
        self.assertEqual(told.returncode, code, told.stdout + told.stderr)
        self.assertIn(words, told.stderr)
        self.assertNotIn("loss", told.stdout)

    def test_labels_are_bound_to_the_logs(self):
        self.assertEqual(label_of(SECRET), ['{"classification":"secret"}'])
        self.assertEqual(label_of(INTERNAL), ['{"classification":"internal"}'])

    def test_every_command_is_refused(self):
        self.assertFalse((SECRET / "checkpoints").exists())
        for words in (("log", SECRET), ("log", SECRET / "metrics.jsonl"),
                      ("plot", SECRET, "-o", FOLDER / "loss.svg"),
                      ("compare", SECRET, INTERNAL), ("trace", "summary", SECRET),
                      ("history", FOLDER / "history.jsonl", "--add", SECRET),
                      ("export", "mlflow", SECRET, FOLDER / "mlruns")):
            with self.subTest(words=words):
                AUDIT.unlink(missing_ok=True)
                self.refused(self.run_as("trainer", *words))
                refusals = [event["details"] for event in policy_harness.events(FOLDER)
                            if event["event"] == "policy.refused"]
                self.assertEqual(refusals[-1]["path"], str(SECRET.resolve()))
                self.assertEqual(refusals[-1]["label"], {"classification": "secret"})
        for role, run in (("auditor", SECRET), ("trainer", INTERNAL)):
            self.assertIn('"loss"', harness.must(self.run_as(role, "log", run / "metrics.jsonl"))
                          .stdout)

    def test_status_and_report_say_what_refuses(self):
        page = harness.must(self.run_as("trainer", "report", SECRET, "--markdown")).stdout
        self.assertIn("covers up to internal, and it is secret", page)
        told = harness.must(self.run_as("trainer", "status", SECRET)).stdout
        self.assertIn("covers up to internal, and it is secret", told)
        self.assertNotIn("no key was given", told)
        self.assertNotIn("\nloss ", told)
        self.assertIn("\nloss ", harness.must(self.run_as("auditor", "status", SECRET)).stdout)

    def test_links_do_not_hide_the_place(self):
        inside = FOLDER / "inside"
        run = inside / "run"
        run.mkdir(parents=True, exist_ok=True)
        for name in ("log-keys", "logs", "metrics.jsonl"):
            if not (run / name).is_symlink():
                (run / name).symlink_to(INTERNAL / name)
        self.site.write(policy_harness.POLICY.replace("FOLDER", str(inside.resolve())))
        self.refused(self.run_as("trainer", "log", run),
                     f"does not cover {INTERNAL.resolve()}")
        self.refused(self.run_as("trainer", "log", run / "metrics.jsonl"), "does not cover")
        self.assertIn('"loss"', harness.must(self.run_as("auditor", "log",
                                                         run / "metrics.jsonl")).stdout)

    def test_copies_keep_the_label_and_need_a_grant(self):
        copy = FOLDER / "copy"
        shutil.copytree(SECRET, copy)
        self.refused(self.run_as("trainer", "log", copy))
        self.site.write(policy_harness.POLICY.replace("FOLDER", str(FOLDER.resolve() / "copy")))
        self.refused(self.run_as("trainer", "log", INTERNAL), "does not cover")

    def test_killed_before_the_first_save(self):
        run = FOLDER / "killed"
        killed = train(FOLDER / "secret", run, env={"TRIREME_FAULTS": "step.end:0:1:kill"})
        self.assertNotEqual(killed.returncode, 0)
        self.assertEqual(list((run / "checkpoints").glob("step-*")), [])
        self.refused(self.run_as("trainer", "log", run))
        shutil.rmtree(run / "checkpoints")
        self.refused(self.run_as("trainer", "log", run))

    def test_later_starts_keep_and_raise_the_label(self):
        run = FOLDER / "raised"
        killed = train(FOLDER / "internal", run, env={"TRIREME_FAULTS": "step.end:0:3:kill"})
        self.assertNotEqual(killed.returncode, 0)
        missing = train(FOLDER / "nowhere", run)
        self.assertEqual(missing.returncode, 66, missing.stderr)
        self.assertEqual(set(label_of(run)), {'{"classification":"internal"}'})
        harness.must(train(FOLDER / "internal", run, f"data.validation={FOLDER / 'secret'}"))
        self.assertEqual(set(label_of(run)),
                         {'{"classification":"internal"}', '{"classification":"secret"}'})
        self.refused(self.run_as("trainer", "log", run / "metrics.jsonl"))

    def test_stripped_or_lowered_labels_are_found(self):
        for number, lower in enumerate(("", ' {"classification":"internal"}')):
            run = FOLDER / f"lowered-{number}"
            shutil.copytree(SECRET, run)
            secret, lower = (text.replace('"', '\\"') for text in (
                ' {"classification":"secret"}', lower))
            for file in run.glob("log-keys/*/*.json"):  # the record of their ends, too
                policy_harness.edit_sealed(
                    file, lambda body, words=(secret, lower): body.replace(*words))
            self.site.write(policy_harness.POLICY + "unlabelled: allow\n")
            self.refused(self.run_as("trainer", "log", run),
                         "changed by someone who does not have the data key", 65)
            self.site.write(policy_harness.POLICY)
        self.refused(self.run_as("trainer", "log", FOLDER / "lowered-0"), "has no label")

    def test_unlabelled_logs_are_judged_as_the_policy_says(self):
        run = FOLDER / "unlabelled-run"
        harness.must(train(policy_harness.pack(FOLDER, "unlabelled"), run))
        shutil.rmtree(run / "checkpoints")
        self.refused(self.run_as("trainer", "log", run), "has no label")
        self.site.write(policy_harness.POLICY + "unlabelled: allow\n")
        self.assertIn('"loss"', harness.must(self.run_as("trainer", "log",
                                                         run / "metrics.jsonl")).stdout)

    def test_keys_of_logs_are_changed_by_custodians(self):
        run = FOLDER / "kept"
        shutil.copytree(SECRET, run)
        destroy = ("keys", "destroy", run / "log-keys", "--confirm", "log-keys", "--confirm",
                   "log-keys")
        for role in ("trainer", "auditor"):
            told = self.site.run(role, *destroy)
            self.refused(told, "cannot change the keys of a checkpoint")
        self.assertTrue(json.loads(next(run.glob("log-keys/*/keys.json")).read_text())[
            "recipients"])
        harness.must(self.site.run("key_custodian", *destroy))


if __name__ == "__main__":
    unittest.main(verbosity=2)
