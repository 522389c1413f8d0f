"""Tests that a model leaves a site in plain only if several people have signed its release."""
import base64
import hashlib
import json
import os
import shutil
import unittest

import harness
import policy_harness

FOLDER = harness.workspace()
AUDIT = FOLDER / "audit.jsonl"


def label_of_export(kind, folder):
    """Returns the label in an exported model."""
    if kind == "hf":
        data = (folder / "model.safetensors").read_bytes()
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        return json.loads(header["__metadata__"]["trireme_label"])
    name = {"gguf": "model.gguf", "onnx": "model.onnx", "triton": "1/model.onnx"}[kind]
    _, value = (folder / name).read_bytes().split(b"trireme.label" if kind == "gguf" else
                                                  b"trireme_label")
    # GGUF has the type, 8 bytes of length and the text, ONNX a tag, 1 byte or 2 of length and it.
    return json.JSONDecoder().raw_decode(value[value.index(b"{"):].decode(errors="replace"))[0]


@unittest.skipUnless(policy_harness.can_mount(), "file systems cannot be mounted here")
class Releases(unittest.TestCase):
    """An export of a checkpoint needs two of three releasers."""

    @classmethod
    def setUpClass(cls):
        cls.run_folder = FOLDER / "released"
        data = policy_harness.pack(FOLDER, "internal", *policy_harness.INTERNAL)
        run = policy_harness.config(FOLDER, "run.yaml", data, "released")
        harness.must(harness.run("train", run, ranks=2))
        cls.steps = cls.run_folder / "checkpoints"
        for name in ("sara", "omar", "layla", "stranger"):
            harness.must(harness.run("audit", "keygen", "--out", FOLDER / f"{name}.key", "--name",
                                     name))
        cls.trust = FOLDER / "releasers.pem"
        cls.trust.write_text("".join((FOLDER / f"{name}.key.pub").read_text()
                                     for name in ("sara", "omar", "layla")))

        def add_keys(files):
            shutil.copy(cls.trust, files / "releasers.pem")

        cls.site = policy_harness.Site(FOLDER, policy_harness.POLICY + (
            "release: {keys: /etc/trireme/releasers.pem, signers: 2, above: public}\n"), add_keys)

    def setUp(self):
        AUDIT.unlink(missing_ok=True)
        self.out = FOLDER / "model.safetensors"
        self.out.unlink(missing_ok=True)
        self.release = FOLDER / "release.json"
        self.release.unlink(missing_ok=True)

    def request(self, checkpoint=None):
        harness.must(harness.run("release", "request", checkpoint or self.steps, "--out",
                                 self.release, "--recipient", "University X", "--reason", "paper"))

    def sign(self, name):
        return harness.run("release", "sign", self.release, "--key", FOLDER / f"{name}.key")

    def export(self, role="releaser", release=True):
        more = ["--release", self.release] if release else []
        return self.site.run(role, "ckpt", "export", self.steps, "--out", self.out, *more,
                             env={"TRIREME_AUDIT__LOG": str(AUDIT)})

    def export_folder(self, kind):
        shutil.rmtree(FOLDER / "model", ignore_errors=True)
        return self.site.run("releaser", "export", self.steps, "--format", kind, "--out",
                             FOLDER / "model", "--release", self.release,
                             env={"TRIREME_AUDIT__LOG": str(AUDIT)})

    def refused(self, told, words, code=77):
        self.assertEqual(told.returncode, code, told.stdout + told.stderr)
        self.assertIn(words, told.stderr)
        self.assertFalse(self.out.exists())

    def test_two_people_release(self):
        self.request()
        self.refused(self.export(release=False), "the signatures of 2 releasers")
        self.refused(self.export(), "0 of the releasers have signed")
        harness.must(self.sign("sara"))
        self.refused(self.export(), "1 of the releasers has signed it")
        self.assertIn("has signed already", self.sign("sara").stderr)
        harness.must(self.sign("stranger"))
        self.refused(self.export(), "1 of the releasers has signed it")
        harness.must(self.sign("omar"))
        self.refused(self.export("trainer"), "the role trainer cannot export a checkpoint")
        told = harness.must(self.export())
        self.assertIn("released by sara", told.stdout)
        exported = [event["details"] for event in policy_harness.events(FOLDER)
                    if event["event"] == "checkpoint.exported"]
        self.assertEqual(len(exported), 1)
        self.assertIn("omar", exported[0]["released_by"])
        shown = harness.run("release", "show", self.release, "--trust", self.trust)
        self.assertIn("University X", harness.must(shown).stdout)

    def test_exported_model(self):
        harness.must(harness.run("ckpt", "export", self.steps, "--out", self.out))
        data = self.out.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])
        label = json.loads(header.pop("__metadata__")["trireme_label"])
        self.assertEqual(label["classification"], "internal")
        digest = hashlib.sha256()
        for name, entry in sorted(header.items()):
            shape = ", ".join(map(str, entry["shape"]))
            digest.update(f"{name}\0{entry['dtype']}\0[{shape}]\0".encode())
            begin, end = entry["data_offsets"]
            digest.update(data[8 + length + begin:8 + length + end])
        told = harness.must(harness.run("ckpt", "digest", self.steps, "--model"))
        self.assertEqual(told.stdout.strip(), "sha256:" + digest.hexdigest())
        again = harness.run("ckpt", "export", self.steps, "--out", self.out)
        self.assertEqual(again.returncode, 77, again.stderr)

    def test_release_of_another_checkpoint(self):
        self.request(self.steps / "step-00000002")
        for name in ("sara", "omar"):
            harness.must(self.sign(name))
        self.refused(self.export(), "it releases another checkpoint")

    def test_edited_release(self):
        self.request()
        for name in ("sara", "omar"):
            harness.must(self.sign(name))
        envelope = json.loads(self.release.read_text())
        payload = json.loads(base64.b64decode(envelope["payload"]))
        payload["recipient"] = "somebody else"
        envelope["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()
        self.release.write_text(json.dumps(envelope))
        self.refused(self.export(), "is not of that key")
        before = self.release.read_text()
        harness.must(harness.run("audit", "keygen", "--out", FOLDER / "late.key"))
        for words in (["show", self.release], ["show", self.release, "--trust", self.trust],
                      ["sign", self.release, "--key", FOLDER / "late.key"]):
            self.refused(harness.run("release", *words), "does not fit", 65)
        self.assertEqual(self.release.read_text(), before)
        for each in envelope["signatures"]:  # as they were before they had their public keys
            del each["publicKey"]
        self.release.write_text(json.dumps(envelope))
        self.refused(harness.run("release", "show", self.release, "--trust", self.trust),
                     "does not fit", 65)
        envelope["payloadType"] = "application/vnd.in-toto+json"
        self.release.write_text(json.dumps(envelope))
        told = self.export()
        self.refused(told, "not a release", 65)
        self.assertNotIn("other step", told.stderr)  # the checkpoint is sound

    def test_damaged_keys_of_the_releasers(self):
        self.request()
        for name in ("sara", "omar"):
            harness.must(self.sign(name))
        keys = self.site.files / "releasers.pem"
        whole = keys.read_text()
        self.addCleanup(keys.write_text, whole)
        for damaged in (whole[:-40], "revoked: alway x\n" + whole):
            keys.write_text(damaged)
            told = self.export()
            self.refused(told, "/etc/trireme/releasers.pem", 65)
            self.assertNotIn("another checkpoint", told.stderr)

    def test_release_with_another_label(self):
        self.request()
        envelope = json.loads(self.release.read_text())
        payload = json.loads(base64.b64decode(envelope["payload"]))
        payload.update(label={"classification": "public"}, uri="file:///tmp/harmless")
        envelope["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()
        self.release.write_text(json.dumps(envelope))
        for name in ("sara", "omar"):
            told = self.sign(name)
            self.assertIn("no whole checkpoint at file:///tmp/harmless", told.stderr)
            harness.must(told)
        self.refused(self.export(), "it gives the label public to the checkpoint")
        self.refused(self.export_folder("hf"), "it gives the label public to the checkpoint")

    def test_every_format_is_recorded(self):
        self.request()
        for name in ("sara", "omar"):
            harness.must(self.sign(name))
        for kind in ("hf", "gguf", "onnx", "triton"):
            AUDIT.unlink(missing_ok=True)
            told = harness.must(self.export_folder(kind))
            self.assertIn("released by sara", told.stdout)
            exported = [event["details"] for event in policy_harness.events(FOLDER)
                        if event["event"] == "checkpoint.exported"]
            self.assertEqual(len(exported), 1, kind)
            self.assertEqual(exported[0]["format"], kind)
            self.assertEqual(exported[0]["file"], str(FOLDER / "model"))
            self.assertEqual(exported[0]["label"]["classification"], "internal")
            self.assertEqual(label_of_export(kind, FOLDER / "model"), exported[0]["label"])
            self.assertEqual(exported[0]["manifest_sha256"], hashlib.sha256(
                (self.steps / "step-00000004/manifest.json").read_bytes()).hexdigest())
            self.assertIn("omar", exported[0]["released_by"])

    def test_adapters_and_their_base_are_released(self):
        run = policy_harness.config(FOLDER, "tuned.yaml", FOLDER / "internal", "tuned")
        harness.must(harness.run("train", run, "lora.products=all",
                                 f"checkpoint.init_from={self.steps}"))
        tuned, releases = FOLDER / "tuned/checkpoints", []

        def export(kind):
            shutil.rmtree(FOLDER / "model", ignore_errors=True)
            return self.site.run("releaser", "export", tuned, "--format", kind, "--out",
                                 FOLDER / "model", *releases)

        for checkpoint in (tuned, self.steps):
            for kind in ("hf", "peft"):
                self.refused(export(kind), "release")
                self.assertFalse((FOLDER / "model").exists())
            self.release.unlink(missing_ok=True)
            self.request(checkpoint)
            for name in ("sara", "omar"):
                harness.must(self.sign(name))
            releases += ["--release", shutil.copy(self.release, FOLDER / f"{len(releases)}.json")]
        for kind in ("hf", "peft"):
            self.assertIn("released by sara", harness.must(export(kind)).stdout)

    def test_import_keeps_the_label(self):
        secret, back = FOLDER / "secret", FOLDER / "back"
        label = ["--label", "classification=public", "--label", "jurisdiction=AE"]
        harness.must(harness.run("export", self.steps, "--format", "hf", "--out", FOLDER / "own"))
        harness.must(harness.run("import", FOLDER / "own", "--out", secret, "--label",
                                 "classification=secret"))
        harness.must(harness.run("export", secret, "--format", "hf", "--out", FOLDER / "foreign"))
        told = self.site.run("trainer", "import", FOLDER / "foreign", "--out", back, *label)
        self.refused(told, "secret")
        self.assertFalse(back.exists())
        told = self.site.run("trainer", "import", FOLDER / "own", "--out", back, *label)
        harness.must(told)
        shown = harness.must(harness.run("ckpt", "show", back))
        self.assertIn("label: internal; jurisdiction AE; owner health", shown.stdout)

    def test_a_shard_is_no_model_of_another_program(self):
        made, alone = FOLDER / "made", FOLDER / "alone"
        harness.must(harness.run("export", self.steps, "--format", "hf", "--out", FOLDER / "again"))
        harness.must(harness.run("import", FOLDER / "again", "--out", made))
        for put in (shutil.copy, os.symlink, os.link):
            shutil.rmtree(alone, ignore_errors=True)
            alone.mkdir()
            shutil.copy(FOLDER / "again/config.json", alone)
            put(made / "shard-00000.safetensors", alone / "model.safetensors")
            told = self.site.run("trainer", "import", alone, "--out", FOLDER / "washed", "--label",
                                 "classification=public", "--label", "jurisdiction=AE")
            self.refused(told, "is a shard of a checkpoint", 2)
            self.assertFalse((FOLDER / "washed").exists())

    def test_registry_asks_about_exported_models(self):
        models = FOLDER / "models"
        harness.must(harness.run("export", self.steps, "--format", "hf", "--out", FOLDER / "open"))
        harness.must(harness.run("import", FOLDER / "open", "--out", FOLDER / "closed",
                                 "--label", "classification=secret"))
        for kind in ("hf", "gguf", "onnx", "triton"):
            folder = FOLDER / f"closed-{kind}"
            harness.must(harness.run("export", FOLDER / "closed", "--format", kind, "--out",
                                     folder))
            words = ["registry", "add", f"closed-{kind}", folder, "--registry", models]
            self.refused(self.site.run("trainer", *words), "secret")
            harness.must(harness.run(*words))
            told = self.site.run("trainer", "registry", "path", f"closed-{kind}", "--registry",
                                 models)
            self.refused(told, "secret")
            shown = harness.run("registry", "show", f"closed-{kind}", "--registry", models)
            self.assertIn("secret", harness.must(shown).stdout)
        told = self.site.run("trainer", "registry", "add", "open", FOLDER / "open", "--registry",
                             FOLDER / "others")
        harness.must(told)

    def test_too_few_keys(self):
        def one_key(files):
            shutil.copy(FOLDER / "sara.key.pub", files / "releasers.pem")

        self.request()
        site = policy_harness.Site(FOLDER, self.site.policy.read_text(), one_key)
        told = site.run("releaser", "ckpt", "export", self.steps, "--out", self.out, "--release",
                        self.release)
        self.refused(told, "holds 1 keys, but the policy asks for 2 signers")


if __name__ == "__main__":
    unittest.main(verbosity=2)
