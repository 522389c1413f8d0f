"""Evidence that a token signs (SoftHSM, ECDSA on P-256): the audit log, the provenance of a dataset
and of checkpoints, and lists of files. Python's cryptography and openssl check the signatures,
too."""
import base64
import json
import os
import shutil
import subprocess
import unittest

import harness
import provenance_harness as provenance

MODULE = "/usr/lib/softhsm/libsofthsm2.so"
FOLDER = provenance.FOLDER
TRUST = FOLDER / "hsm.pub"
LOG = FOLDER / "token.audit.jsonl"


def token_uri(name, pin="pin"):
    return (f"pkcs11:token=site;object={name}?module-path={MODULE}"
            f"&pin-source=file:{FOLDER / pin}")


def make_token():
    (FOLDER / "tokens").mkdir()
    (FOLDER / "softhsm2.conf").write_text(f"directories.tokendir = {FOLDER / 'tokens'}\n"
                                          "objectstore.backend = file\nlog.level = ERROR\n")
    os.environ["SOFTHSM2_CONF"] = harness.ENVIRONMENT["SOFTHSM2_CONF"] = str(
        FOLDER / "softhsm2.conf")
    subprocess.run(["softhsm2-util", "--init-token", "--free", "--label", "site", "--so-pin",
                    "1234", "--pin", "5678"], check=True, capture_output=True)
    for name, digits in (("pin", "5678"), ("wrong-pin", "9999")):
        (FOLDER / name).write_text(digits + "\n")
        (FOLDER / name).chmod(0o600)


@unittest.skipUnless(os.path.exists(MODULE), "SoftHSM is not installed")
class TokenEvidence(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        make_token()
        made = harness.must(harness.run("audit", "keygen", "--pkcs11", token_uri("evidence"),
                                        "--out", FOLDER / "hsm", "--name", "Site HSM"))
        assert "pkcs11:" in made.stdout and not (FOLDER / "hsm").exists()
        harness.must(harness.run("audit", "keygen", "--out", FOLDER / "file", "--name", "Site F"))
        text = harness.make_text(FOLDER / "text", 30_000, 1)
        site = {"TRIREME_AUDIT__KEY": token_uri("evidence"), "TRIREME_AUDIT__LOG": str(LOG)}
        harness.must(harness.run("data", "pack", "--out", FOLDER / "data", "--validation-fraction",
                                 "0.3", text, env=site))
        cls.config = FOLDER / "token.yaml"
        cls.config.write_text(provenance.CONFIG % (
            FOLDER / "data/train", FOLDER / "data/validation", FOLDER / "token", LOG,
            f'"{token_uri("evidence")}"'))
        harness.must(harness.run("train", cls.config, ranks=2))
        cls.step = FOLDER / "token/checkpoints/step-00000004"

    def trusting(self, *parts):
        file = FOLDER / "trust.pem"
        file.write_text("".join(part if isinstance(part, str) else part.read_text()
                                for part in parts))
        return file

    def test_another_implementation_agrees(self):
        [statement] = provenance.statements_of(self.step, TRUST)
        self.assertEqual({s["name"]: s["digest"]["sha256"] for s in statement["subject"]}, {
            path.relative_to(self.step).as_posix(): provenance.sha256(path)
            for path in self.step.rglob("*") if path.is_file()
            and path.name != provenance.BUNDLE})
        heads = [json.loads(line)["head"] for line in LOG.read_text().splitlines()
                 if '"event":"head"' in line]
        self.assertGreater(len(heads), 4)
        for head in heads:
            message = provenance.pae(head["payloadType"].encode(),
                                     base64.b64decode(head["payload"]))
            signature = base64.b64decode(head["signatures"][0]["sig"])
            self.assertTrue(provenance.is_signed_by(TRUST, message, signature))
            self.assertFalse(provenance.is_signed_by(TRUST, message + b" ", signature))

    def test_verify_walks_the_lineage(self):
        code, found = provenance.verify(FOLDER / "token", trust=TRUST)
        self.assertEqual(code, 0, found)
        self.assertIn("Site HSM", json.dumps(found))
        harness.must(harness.run("audit", "verify", LOG, "--trust", TRUST))

    def test_both_kinds_of_keys_are_trusted_side_by_side(self):
        both = self.trusting(FOLDER / "file.pub", TRUST)
        self.assertEqual(provenance.verify(self.step, trust=both)[0], 0)
        other = FOLDER / "other"
        harness.must(harness.run("train", self.config, f"audit.key={FOLDER / 'file'}", "audit.log=",
                                 f"run.dir={other}", "train.steps=2"))
        self.assertEqual(provenance.verify(other, trust=both)[0], 0)
        code, found = provenance.verify(self.step, trust=FOLDER / "file.pub")
        self.assertEqual(code, 77, found)

    def test_every_part_of_a_signature_counts(self):
        copy = FOLDER / "copy"
        for at in (0, 1, 3, 20, 60, 69):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.step, copy)
            bundle = copy / provenance.BUNDLE
            envelope = json.loads(bundle.read_text())
            signature = bytearray(base64.b64decode(envelope["signatures"][0]["sig"]))
            signature[at] ^= 1
            envelope["signatures"][0]["sig"] = base64.b64encode(signature).decode()
            bundle.write_text(json.dumps(envelope, separators=(",", ":")) + "\n")
            code, found = provenance.verify(copy, trust=TRUST)
            self.assertEqual(code, 65, found)

    def test_revoked_keys(self):
        for line, code, words in [
                ("revoked: always stolen\n", 77, "which was revoked (stolen)"),
                ("revoked: 2020-01-01T00:00:00Z replaced\n", 77,
                 "which was revoked on 2020-01-01T00:00:00Z (replaced)"),
                ("revoked: 2999-01-01T00:00:00Z\n", 0, "Site HSM")]:
            with self.subTest(line):
                trust = self.trusting("# Site HSM\n", line, TRUST.read_text().split("\n", 1)[1])
                got, found = provenance.verify(self.step, trust=trust)
                self.assertEqual(got, code, found)
                self.assertIn(words, json.dumps(found))
                audit = harness.run("audit", "verify", LOG, "--trust", trust)
                self.assertEqual(audit.returncode, code, audit.stdout)
                self.assertIn(words, audit.stdout)

    def test_signed_lists(self):
        sums = FOLDER / "SHA256SUMS"
        sums.write_text(f"{provenance.sha256(self.config)}  {self.config.name}\n")
        harness.must(harness.run("audit", "sign", sums, "--key", token_uri("evidence")))
        harness.must(harness.run("verify", sums, "--trust", TRUST))
        checked = subprocess.run(
            ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", TRUST, "-rawin", "-in", sums,
             "-sigfile", f"{sums}.sig"], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        revoked = self.trusting("revoked: 2999-01-01T00:00:00Z\n", TRUST)
        self.assertEqual(harness.run("verify", sums, "--trust", revoked).returncode, 77)

    def test_without_the_token_nothing_runs(self):
        for uri, code, words in [(token_uri("evidence", "wrong-pin"), 77, "PIN"),
                                 (token_uri("nobody"), 66, "the private key nobody is absent"),
                                 (token_uri("evidence", "none"), 66, "none")]:
            run = FOLDER / "unsigned"
            refused = harness.run("train", self.config, f"audit.key={uri}", f"run.dir={run}")
            self.assertEqual(refused.returncode, code, refused.stderr)
            self.assertIn(words, refused.stderr)
            self.assertFalse((run / "checkpoints").exists())
        # The right PIN works again, since a wrong one is tried once.
        harness.must(harness.run("audit", "sign", self.sums(), "--key", token_uri("evidence")))

    def sums(self):
        sums = FOLDER / "sums"
        sums.write_text(f"{'0' * 64}  nothing\n")
        return sums


if __name__ == "__main__":
    unittest.main(verbosity=2)
