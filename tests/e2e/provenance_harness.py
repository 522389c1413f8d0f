"""What the tests of signed provenance share: a key, a dataset and a run that are signed, and an
independent reader of some lines of Python, written from docs/evidence.md alone."""
import base64
import hashlib
import json
import shutil
import subprocess
import unittest

import harness

FOLDER = harness.workspace()
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 259, context: 16}
data: {train: %s, validation: %s, sequence: 16}
train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1, steps: 100}}
checkpoint: {every: 2, keep: 5}
parallel: {zero: 1}
run: {dir: %s}
audit: {log: %s, key: %s}
"""
BUNDLE = "provenance.intoto.jsonl"
KEY, TRUST, RUN = FOLDER / "key", FOLDER / "key.pub", FOLDER / "run"
CHECKPOINTS = RUN / "checkpoints"
SITE = {"TRIREME_AUDIT__KEY": str(KEY)}


def pae(kind, body):
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)


def is_signed_by(public_key, message, signature):
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        (FOLDER / "message").write_bytes(message)
        (FOLDER / "signature").write_bytes(signature)
        return subprocess.run(
            ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public_key, "-rawin", "-in",
             FOLDER / "message", "-sigfile", FOLDER / "signature"], capture_output=True,
            check=False).returncode == 0
    try:
        key = load_pem_public_key(public_key.read_bytes())
        is_ec = isinstance(key, ec.EllipticCurvePublicKey)
        key.verify(signature, message, *([ec.ECDSA(hashes.SHA256())] if is_ec else []))
        return True
    except InvalidSignature:
        return False


def statements_of(folder, public_key):
    """Reads the statements of a checkpoint or dataset, the newest first."""
    statements = []
    for line in (folder / BUNDLE).read_text().splitlines():
        envelope = json.loads(line)
        body = base64.b64decode(envelope["payload"])
        assert envelope["payloadType"] == "application/vnd.in-toto+json"
        assert any(is_signed_by(public_key, pae(envelope["payloadType"].encode(), body),
                                base64.b64decode(each["sig"])) for each in envelope["signatures"])
        statement = json.loads(body)
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
        statements.append(statement)
    return statements


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def verify(what, *words, trust=TRUST):
    result = harness.run("verify", what, "--trust", trust, "--json", *words)
    if not result.stdout:
        return result.returncode, result.stderr
    found = json.loads(result.stdout)
    assert found["code"] == result.returncode
    return result.returncode, found


def train(*words, ranks=2, **kw):
    return harness.run("train", FOLDER / "run.yaml", *words, ranks=ranks, **kw)


def make_everything():
    harness.must(harness.run("audit", "keygen", "--out", KEY, "--name", "Site A"))
    harness.must(harness.run("audit", "keygen", "--out", FOLDER / "other", "--name", "Site B"))
    text = harness.make_text(FOLDER / "text", 60_000, 1)
    harness.must(harness.run("data", "pack", "--out", FOLDER / "data", "--validation-fraction",
                             "0.3", "--shard-size", "64K", text, env=SITE))
    (FOLDER / "run.yaml").write_text(CONFIG % (
        FOLDER / "data/train", FOLDER / "data/validation", RUN, FOLDER / "audit.jsonl", KEY))
    harness.must(train())
    (RUN / "DONE").unlink()
    harness.must(train("train.steps=6", ranks=1))  # another layout


class Copies(unittest.TestCase):
    """For tests that change a copy of everything and verify that."""

    def setUp(self):
        self.all = FOLDER / "copy"
        shutil.rmtree(self.all, ignore_errors=True)
        self.all.mkdir()
        for name in ("run", "data", "text"):
            shutil.copytree(FOLDER / name, self.all / name, symlinks=True)
        self.steps = self.all / "run/checkpoints"
        self.step = self.steps / "step-00000006"

    def verify(self, what, *words, **kw):
        moved = [word for name in ("run", "data", "text")
                 for word in ("--moved", f"{FOLDER / name}={self.all / name}")]
        return verify(what, *moved, *words, **kw)

    def expect(self, code, sentence, what=None, **kw):
        got, found = self.verify(what or self.step, **kw)
        self.assertEqual(got, code, found)
        self.assertTrue(any(sentence in fault["what"] for fault in found["faults"]), found)

    def flip(self, path, at=-1):
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    def signed_again(self, path, change, key=None):
        """Changes the first statement; without a key, the old signature remains."""
        lines = path.read_text().splitlines()
        envelope = json.loads(lines[0])
        statement = json.loads(base64.b64decode(envelope["payload"]))
        body = base64.b64decode(envelope["payload"])
        if change:
            change(statement)
            body = json.dumps(statement, separators=(",", ":")).encode()
        envelope["payload"] = base64.b64encode(body).decode()
        if key:
            (FOLDER / "body").write_bytes(pae(envelope["payloadType"].encode(), body))
            signature = subprocess.run(
                ["openssl", "pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", FOLDER / "body"],
                capture_output=True, check=True).stdout
            der = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"],
                                 capture_output=True, check=True).stdout
            envelope["signatures"] = [{"keyid": hashlib.sha256(der).hexdigest(),
                                       "sig": base64.b64encode(signature).decode()}]
        lines[0] = json.dumps(envelope, separators=(",", ":"))
        path.write_text("".join(line + "\n" for line in lines))
