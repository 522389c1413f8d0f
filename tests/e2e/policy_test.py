"""Tests labels of data, and the policy in /etc/trireme that says who may do what with it."""
import json
import os
import pathlib
import re
import shutil
import time
import unittest

import harness
import policy_harness

FOLDER = harness.workspace()
AUDIT = FOLDER / "audit.jsonl"
INTERNAL = policy_harness.INTERNAL


def pack(name, *words):
    return policy_harness.pack(FOLDER, name, *words)


def config(name, data, run):
    return policy_harness.config(FOLDER, name, data, run)


def edit_manifest(folder, edit):
    policy_harness.edit_sealed(folder / "manifest.json", edit)


def without_label(body):
    return re.sub(r' "label": \{.*?\n \},\n', "", body, flags=re.DOTALL)


def spoil_shards(folder):
    """Changes every byte of the shards: a program that reads one ends with 65."""
    for shard in (folder / "shards").iterdir():
        size = shard.stat().st_size
        shard.chmod(0o644)
        shard.write_bytes(b"\x5a" * size)


def events():
    return policy_harness.events(FOLDER)


def setUpModule():
    FOLDER.chmod(0o755)
    pack("internal", *INTERNAL)
    pack("plain")
    config("run.yaml", FOLDER / "internal", "run")


class Labels(unittest.TestCase):
    def test_checkpoints_inherit_the_join(self):
        validation = pack("secret", "--label", "classification=secret", "--label",
                          "jurisdiction=SA", "--label", "owner=army", "--label",
                          "retention=2099-12-31")
        run = config("joined.yaml", FOLDER / "internal", "joined")
        harness.must(harness.run("train", run, f"data.validation={validation}", ranks=2))
        shown = harness.must(harness.run("ckpt", "show", FOLDER / "joined/checkpoints", "--json"))
        self.assertEqual(json.loads(shown.stdout)["label"],
                         {"classification": "secret", "jurisdictions": ["SA"],
                          "owners": ["army", "health"], "retention": "2099-12-31"})
        # What a checkpoint once was made from stays in it.
        harness.must(harness.run("train", run, "train.steps=6",
                                 "optimizer.schedule.steps=6",
                                 "checkpoint.allow_change=optimizer.schedule.steps"))
        shown = harness.must(harness.run("ckpt", "show", FOLDER / "joined/checkpoints"))
        self.assertIn("step 6", shown.stdout)
        self.assertIn("secret; jurisdiction SA; owner army, health; until 2099-12-31",
                      shown.stdout)

    def test_weights_of_another_run_keep_their_label(self):
        first = config("first.yaml", FOLDER / "internal", "first")
        harness.must(harness.run("train", first))
        public = pack("public", "--label", "classification=public", "--label", "jurisdiction=AE")
        second = config("second.yaml", public, "second")
        harness.must(harness.run("train", second,
                                 f"checkpoint.init_from={FOLDER / 'first/checkpoints'}"))
        shown = harness.must(harness.run("ckpt", "show", FOLDER / "second/checkpoints", "--json"))
        self.assertEqual(json.loads(shown.stdout)["label"],
                         {"classification": "internal", "jurisdictions": ["AE"],
                          "owners": ["health"]})

    def test_info_shows_the_label(self):
        told = harness.must(harness.run("data", "info", FOLDER / "internal"))
        self.assertIn("internal; jurisdiction AE, SA; owner health", told.stdout)
        told = harness.must(harness.run("data", "info", FOLDER / "plain", "--json"))
        self.assertIsNone(json.loads(told.stdout)["label"])

    def test_another_label_is_another_dataset(self):
        again = harness.run("data", "pack", harness.SOURCE / "LICENSE", "--out",
                            FOLDER / "internal", "--label", "classification=public")
        self.assertEqual(again.returncode, 77, again.stderr)
        self.assertIn("other options", again.stderr)

    def test_wrong_labels(self):
        for label, words in (("secret", "KEY=VALUE"), ("clasification=a", "did you mean"),
                             ("owner=a", "needs a classification")):
            told = harness.run("data", "pack", harness.SOURCE / "LICENSE", "--out",
                               FOLDER / "never", "--label", label)
            self.assertEqual(told.returncode, 2, told.stderr)
            self.assertIn(words, told.stderr)
        self.assertFalse((FOLDER / "never").exists())


@unittest.skipUnless(policy_harness.can_mount(), "file systems cannot be mounted here")
class Policy(unittest.TestCase):
    def setUp(self):
        AUDIT.unlink(missing_ok=True)
        self.site = policy_harness.Site(FOLDER)
        shutil.rmtree(FOLDER / "run", ignore_errors=True)

    def refused(self, told, words, code=77):
        self.assertEqual(told.returncode, code, told.stdout + told.stderr)
        self.assertIn(words, told.stderr)

    def test_trainer_trains(self):
        harness.must(self.site.run("trainer", "train", FOLDER / "run.yaml", ranks=2))
        allowed = [e["details"] for e in events() if e["event"] == "policy.allowed"]
        self.assertEqual([(a["deed"], a["thing"]) for a in allowed],
                         [("read", "dataset"), ("write", "checkpoint")])
        self.assertEqual(allowed[0]["label"]["classification"], "internal")
        self.assertEqual(len(allowed[0]["policy_sha256"]), 64)
        told = self.site.run("releaser", "ckpt", "verify", FOLDER / "run/checkpoints")
        harness.must(told)
        told = self.site.run("data_steward", "ckpt", "verify", FOLDER / "run/checkpoints")
        self.refused(told, "the role data_steward cannot read a checkpoint")
        told = self.site.run("trainer", "generate", "--checkpoint", FOLDER / "run/checkpoints",
                             "--prompt", "a", "--tokens", "1")
        harness.must(told)
        told = self.site.run("key_custodian", "generate", "--checkpoint",
                             FOLDER / "run/checkpoints", "--prompt", "a")
        self.refused(told, "the role key_custodian cannot read a checkpoint")
        told = self.site.run("releaser", "ckpt", "prune", FOLDER / "run/checkpoints")
        self.refused(told, "cannot write a checkpoint")

    def test_wrong_jurisdiction_before_any_byte(self):
        data = pack("foreign", "--label", "classification=public", "--label", "jurisdiction=SA")
        spoil_shards(data)
        for ranks in (0, 2):
            told = self.site.run("trainer", "train", FOLDER / "run.yaml", f"data.train={data}",
                                 ranks=ranks)
            self.refused(told, "may lie in the jurisdiction SA only, and this site is in AE")
        told = self.site.run("trainer", "bench", "train", FOLDER / "run.yaml",
                             f"data.train={data}", "--dir", FOLDER, "--steps", "1")
        self.refused(told, "may lie in the jurisdiction SA only")
        names = [event["event"] for event in events()]
        self.assertEqual(names.count("policy.refused"), 2)
        self.assertEqual(names.count("train.refused"), 2)
        for words in (("data", "verify", data), ("data", "info", data),
                      ("data", "stage", data, FOLDER / "staged")):
            self.refused(self.site.run("data_steward", *words), "jurisdiction SA only")
        self.assertFalse((FOLDER / "staged").exists())

    def test_refusals_of_commands_that_are_not_recorded_are(self):
        self.site.run("trainer", "data", "verify", FOLDER / "plain",
                      env={"TRIREME_AUDIT__LOG": str(AUDIT)})
        names = [event["event"] for event in events()]
        self.assertEqual(names[-3:], ["data.verify.start", "policy.refused",
                                      "data.verify.refused"])

    def test_revoked_keys_of_the_host_count_at_every_site(self):
        key, elsewhere = FOLDER / "stolen.key", FOLDER / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        made = harness.must(harness.run("keys", "create", "--out", key))
        identity = made.stdout.split("identity: ")[1].strip()
        data = pack("revoked", "--key", f"file:{key}", *INTERNAL)

        def revoke(files):
            (files / "revoked-keys").write_text(f"{identity} stolen\n")

        told = policy_harness.Site(FOLDER, change=revoke).run(
            "trainer", "data", "verify", data, "--key", f"file:{key}",
            env={"TRIREME_SITE_DIR": str(elsewhere)})
        self.refused(told, "is revoked (stolen) and opens nothing")

    def test_missing_label(self):
        told = self.site.run("trainer", "train", FOLDER / "run.yaml",
                             f"data.train={FOLDER / 'plain'}")
        self.refused(told, "has no label, and the site demands one")
        told = self.site.run("data_steward", "data", "pack", harness.SOURCE / "LICENSE", "--out",
                             FOLDER / "unlabelled")
        self.refused(told, "has no label")
        self.assertFalse((FOLDER / "unlabelled").exists())
        self.site.write(policy_harness.POLICY + "unlabelled: allow\n")
        harness.must(self.site.run("trainer", "train", FOLDER / "run.yaml",
                                   f"data.train={FOLDER / 'plain'}"))

    def test_stripped_label(self):
        """Whoever may write to plain data can strip its label; that must not open it."""
        data = FOLDER / "stripped"
        shutil.copytree(FOLDER / "internal", data)
        edit_manifest(data, lambda body: without_label(body).replace('"version": 3',
                                                                     '"version": 1'))
        harness.must(harness.run("data", "verify", data))  # the seal is right
        self.refused(self.site.run("trainer", "data", "verify", data), "has no label")
        edit_manifest(data, lambda body: body.replace('"version": 1', '"version": 3'))
        self.refused(self.site.run("trainer", "data", "verify", data), "was edited", 65)

    def test_older_manifest_with_a_label(self):
        data = FOLDER / "older"
        shutil.copytree(FOLDER / "internal", data)
        edit_manifest(data, lambda body: body.replace('"version": 3', '"version": 1'))
        self.refused(harness.run("data", "verify", data), "was edited", 65)

    def test_stripped_label_of_encrypted_data(self):
        key = FOLDER / "site.key"
        harness.must(harness.run("keys", "create", "--out", key))
        data = pack("sealed", "--key", f"file:{key}", *INTERNAL)
        edit_manifest(data, lambda body: without_label(body).replace('"version": 3',
                                                                     '"version": 2'))
        told = harness.run("data", "verify", data, "--key", f"file:{key}")
        self.assertEqual(told.returncode, 65, told.stderr)

    def test_separate_duties(self):
        key, other = FOLDER / "a.key", FOLDER / "b.key"
        for each in (key, other):
            harness.must(harness.run("keys", "create", "--out", each))
        data = pack("kept", "--key", f"file:{key}", *INTERNAL)
        add = ("keys", "add", data, "--key", f"file:{key}", "--to", f"file:{other}")
        self.refused(self.site.run("trainer", *add), "cannot change the keys of a dataset")
        harness.must(self.site.run("key_custodian", *add))
        decrypt = ("data", "decrypt", data, "--key", f"file:{key}")
        self.refused(self.site.run("trainer", *decrypt), "cannot export a dataset")
        self.refused(self.site.run("auditor", *decrypt), "cannot export a dataset")
        harness.must(self.site.run("data_steward", *decrypt))
        erase = ("erase", data, "--certificate", FOLDER / "erased.json", "--reason", "test",
                 "--sign", FOLDER / "sign.key", "--confirm", "kept", "--confirm", "kept")
        harness.must(harness.run("audit", "keygen", "--out", FOLDER / "sign.key"))
        self.refused(self.site.run("trainer", *erase), "cannot write a dataset")
        self.assertTrue((data / "manifest.json").exists())
        harness.must(self.site.run("data_steward", *erase))

    def test_nobody(self):
        told = self.site.run("games", "data", "verify", FOLDER / "internal")
        self.refused(told, "no role of the policy names a group or account of this user")

    def test_shards_are_no_files_of_other_programs(self):
        data = pack("shards", "--label", "classification=secret", "--label", "jurisdiction=SA")
        shard = next((data / "shards").iterdir())
        link = FOLDER / "linked.h5"
        link.symlink_to(shard)
        for words in (["data", "convert", data / "shards", "--vocab", "257"],
                      ["data", "convert", shard, "--vocab", "257"],
                      ["data", "convert", link, "--vocab", "257"]):
            told = self.site.run("data_steward", *words, "--out", FOLDER / "lower", "--label",
                                 "classification=public", "--label", "jurisdiction=AE")
            self.refused(told, f"is a part of the dataset {data}", 2)
            self.assertFalse((FOLDER / "lower").exists())
        told = self.site.run("data_steward", "data", "pack", shard, "--out", FOLDER / "lower",
                             "--label", "classification=public", "--label", "jurisdiction=AE")
        self.refused(told, "whose label counts for it", 2)
        plain = next((FOLDER / "plain/shards").iterdir())
        told = self.site.run("data_steward", "data", "convert", plain, "--vocab", "257", "--out",
                             FOLDER / "lower", "--label", "classification=public", "--label",
                             "jurisdiction=AE")
        self.refused(told, "no label")
        for path in (shard, link):
            self.refused(self.site.run("key_custodian", "log", path), "and no log", 2)

    def test_doctor_asks(self):
        told = self.site.run("trainer", "doctor", FOLDER / "run.yaml")
        self.assertIn(told.returncode, (0, 4), told.stdout + told.stderr)
        told = self.site.run("data_steward", "doctor", FOLDER / "run.yaml", "--json")
        self.assertEqual(told.returncode, 77, told.stdout + told.stderr)
        found = [f for f in json.loads(told.stdout)["findings"] if f["code"] == 77]
        self.assertEqual(len(found), 1, found)
        self.assertIn("checkpoint.dir: the policy of the site refuses to write", found[0]["what"])
        self.assertFalse(AUDIT.exists())

    def test_links_do_not_lead_out(self):
        inside = FOLDER / "inside"
        inside.mkdir(exist_ok=True)
        link = inside / "link"
        if not link.exists():
            link.symlink_to(FOLDER / "internal")
        self.site.write(policy_harness.POLICY.replace("FOLDER", str(inside.resolve())))
        self.refused(self.site.run("trainer", "data", "verify", link),
                     f"does not cover {(FOLDER / 'internal').resolve()}")

    def test_other_file_systems(self):
        self.site.write(policy_harness.POLICY.replace(
            "jurisdiction: AE", "jurisdiction: AE, mounts: [/nowhere]").replace("FOLDER", "/"))
        self.refused(self.site.run("trainer", "data", "verify", FOLDER / "internal"),
                     "is not one of site.mounts")

    def test_other_hosts(self):
        self.site.write(policy_harness.POLICY.replace("jurisdiction: AE",
                                                      "jurisdiction: AE, hosts: [elsewhere]"))
        self.refused(self.site.run("trainer", "data", "verify", FOLDER / "internal"),
                     "is not one of this site (site.hosts)")

    def test_environment_counts_for_nothing(self):
        permissive = policy_harness.Site(FOLDER).files
        (permissive / "policy.yaml").write_text(
            (permissive / "policy.yaml").read_text().replace("[adm]", "[games]"))
        told = self.site.run("games", "data", "verify", FOLDER / "internal", env={
            "TRIREME_SITE_DIR": str(permissive), "SLURM_JOB_ACCOUNT": "ml", "SLURM_JOB_ID": "1",
            "USER": "root", "LOGNAME": "root"})
        self.refused(told, "no role of the policy")

    def test_policy_is_no_configuration(self):
        told = self.site.run("trainer", "config", "show", FOLDER / "run.yaml",
                             env={"TRIREME_SITE_DIR": ""})
        harness.must(told)
        self.assertNotIn("policy.yaml", told.stdout)

    def test_bad_policies(self):
        def writable(files):
            (files / "policy.yaml").chmod(0o666)

        def foreign(files):
            os.chown(files / "policy.yaml", 65534, 0)

        def link(files):
            (files / "policy.yaml").rename(files / "real.yaml")
            (files / "policy.yaml").symlink_to("real.yaml")

        def open_folder(files):
            files.chmod(0o777)

        def text(old, new):
            def change(files):
                path = files / "policy.yaml"
                path.write_text(path.read_text().replace(old, new))
            return change

        for change, words, code in (
                (writable, "everybody can write to it", 77),
                (foreign, "belongs to the user 65534", 77),
                (link, "is a symbolic link", 77),
                (open_folder, "can write to this folder", 77),
                (text("trainer:", "trianer:"), "did you mean trainer?", 2),
                (text("highest: internal", "highest: cosmic"), "not among the classifications", 2),
                (text("[adm]", "[no-such-group]"), "a group that this host does not have", 77),
                (text("version: 1", "version: 2"), "reads version 1", 2)):
            site = policy_harness.Site(FOLDER, change=change)
            told = site.run("trainer", "data", "verify", FOLDER / "internal")
            self.refused(told, words, code)
            told = site.run("trainer", "train", FOLDER / "run.yaml", ranks=2)
            self.refused(told, words, code)
            harness.must(site.run("trainer", "--version"))

    def test_clock_behind_the_policy(self):
        data = pack("until", *INTERNAL, "--label", "retention=2099-12-31")
        harness.must(self.site.run("trainer", "data", "verify", data))
        next_year = time.time() + 365 * 86400
        later = policy_harness.Site(FOLDER, change=lambda files: os.utime(files / "policy.yaml",
                                                                          (next_year, next_year)))
        self.refused(later.run("trainer", "data", "verify", data), "is behind: the policy")
        harness.must(later.run("trainer", "data", "verify", FOLDER / "internal"))

    def test_exports_of_data_are_recorded(self):
        harness.must(self.site.run("data_steward", "data", "export", FOLDER / "internal",
                                   "--format", "npy", "-o", FOLDER / "exported",
                                   env={"TRIREME_AUDIT__LOG": str(AUDIT)}))
        self.assertEqual([(e["event"], e["details"].get("deed")) for e in events()],
                         [("log.created", None), ("data.export.start", None),
                          ("policy.allowed", "read"), ("policy.allowed", "export"),
                          ("data.export.end", None)])

    def test_check(self):
        told = self.site.run("trainer", "policy", "check", FOLDER / "run.yaml")
        harness.must(told)
        self.assertIn("roles    trainer (group adm)", told.stdout)
        self.assertIn("The policy allows this run.", told.stdout)
        told = self.site.run("data_steward", "policy", "check", FOLDER / "run.yaml", "--json")
        self.assertEqual(told.returncode, 77, told.stderr)
        answer = json.loads(told.stdout)
        self.assertEqual([(deed["deed"], deed["allowed"]) for deed in answer["deeds"]],
                         [("read", True), ("write", False)])
        self.assertFalse((FOLDER / "run").exists())
        self.assertFalse(AUDIT.exists())
        base = pack("base", "--label", "classification=secret", "--label", "jurisdiction=AE")
        harness.must(harness.run("train", config("base.yaml", base, "base-run")))
        for key in ("checkpoint.init_from", "distill.teacher"):
            words = (FOLDER / "run.yaml", f"run.dir={FOLDER}/of-base",
                     f"{key}={FOLDER}/base-run/checkpoints")
            self.refused(self.site.run("trainer", "train", *words), "and it is secret")
            told = self.site.run("trainer", "policy", "check", *words)
            self.assertEqual(told.returncode, 77, told.stderr)
            self.assertRegex(told.stdout, rf"REFUSED  read the checkpoint .* \({key}\)")
            told = self.site.run("trainer", "doctor", *words)
            self.assertIn(f"{key}: the policy of the site refuses to read", told.stdout)
        told = harness.run("policy", "check", FOLDER / "run.yaml")
        if not pathlib.Path("/etc/trireme/policy.yaml").exists():
            harness.must(told)
            self.assertIn("does not exist, so that nothing is refused", told.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
