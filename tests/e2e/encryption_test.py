"""Trains with encrypted checkpoints: the same bits as without, no plain text in any file, resuming
on other layouts, rotation, destruction, and refusals. An independent reader, this file's decrypt(),
knows the format from docs/encryption.md alone."""
import base64
import json
import os
import shutil
import struct
import unittest

import harness

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError:  # pragma: no cover
    AESGCM = None

FOLDER = harness.workspace()
KEY = FOLDER / "site.key"
OTHER = FOLDER / "other.key"
CONFIG = """
model: {family: gpt2, layers: 2, hidden: 64, heads: 2, vocab: 1003, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 6, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 3}
run: {dir: %s}
"""
MIB = 1 << 20


def derived(key, info, length=32):
    return HKDF(hashes.SHA256(), length, None, info.encode()).derive(key)


def key_of(file):
    return base64.b64decode(file.read_text().split("TRIREME-KEY-1 ")[1])


def data_key(step, wrapping):
    keys = json.loads((step / "keys.json").read_text())
    for recipient in keys["recipients"]:
        if recipient["kind"] == "file" and recipient["key"] == derived(
                wrapping, "trireme id", 16).hex():
            wrapped = base64.b64decode(recipient["wrapped"])
            return AESGCM(wrapping).decrypt(
                wrapped[:12], wrapped[12:], f"trireme recipient {keys['data_key']}".encode())
    raise KeyError("no recipient")


def decrypt(step, shard, key):
    """Returns the plain bytes of a shard's file."""
    cipher = AESGCM(derived(key, f"trireme file {shard['file']}"))
    sealed = (step / shard["file"]).read_bytes()
    tags = bytes.fromhex(shard["tags"])
    plain = b""
    blocks = len(tags) // 16
    for block in range(blocks):
        nonce = block.to_bytes(11, "big") + bytes([block + 1 == blocks])
        part = sealed[block * MIB:(block + 1) * MIB] + tags[16 * block:16 * block + 16]
        plain += cipher.decrypt(nonce, part, None)
    return plain


def tensors_of(shard_bytes):
    """Returns the tensors of a safetensors file as bytes, by name."""
    [head] = struct.unpack("<Q", shard_bytes[:8])
    header = json.loads(shard_bytes[8:8 + head])
    data = shard_bytes[8 + head:]
    return {name: data[slice(*entry["data_offsets"])]
            for name, entry in header.items() if name != "__metadata__"}


def step_folder(run, step):
    return FOLDER / run / "checkpoints" / f"step-{step:08}"


def output(*words):
    return harness.must(harness.run(*words)).stdout


def train(run, *settings, ranks=1, code=0):
    result = harness.run("train", FOLDER / "run.yaml", f"run.dir={FOLDER / run}", *settings,
                         ranks=ranks)
    assert result.returncode == code, (result.returncode, result.stderr)
    return result


def digest(run, step, *words):
    return output("ckpt", "digest", step_folder(run, step), *words).strip()


def setUpModule():
    for key in (KEY, OTHER):
        harness.must(harness.run("keys", "create", "--out", key, "--name", key.stem))
    data, _ = harness.make_datasets(FOLDER)
    (FOLDER / "run.yaml").write_text(CONFIG % (data, FOLDER / "never"))
    train("plain")
    train("sealed", f"encryption.keys=[file:{KEY}]", ranks=2)


class Encryption(unittest.TestCase):
    def test_digests_are_those_of_the_plain_run(self):
        for step in (3, 6):
            self.assertEqual(digest("plain", step), digest("sealed", step, "--key", f"file:{KEY}"))

    def test_no_plain_text_in_any_file(self):
        plain = step_folder("plain", 6)
        manifest = json.loads((plain / "manifest.json").read_text())
        files = [file for file in (FOLDER / "sealed").rglob("*") if file.is_file()]
        self.assertGreater(len(files), 5)
        contents = b"".join(file.read_bytes() for file in files)
        count = 0
        for shard in manifest["shards"]:
            for name, data in tensors_of((plain / shard["file"]).read_bytes()).items():
                canary = data[len(data) // 2:len(data) // 2 + 16]
                if len(canary) == 16 and any(canary):
                    count += 1
                    self.assertNotIn(canary, contents, name)
        self.assertGreater(count, 20)

    def test_resumes_on_another_layout(self):
        key = f"encryption.keys=[file:{KEY}]"
        shutil.copytree(FOLDER / "sealed", FOLDER / "again")
        shutil.rmtree(step_folder("again", 6))
        (FOLDER / "again/DONE").unlink()
        train("again", key, ranks=1)
        self.assertEqual(digest("plain", 6), digest("again", 6, "--key", f"file:{KEY}"))

    def test_commands_need_the_key(self):
        checkpoints = FOLDER / "sealed/checkpoints"
        generate = ["generate", "--checkpoint", checkpoints, "--prompt", "1 2", "--ids",
                    "--tokens", "2"]
        words = {"digest": ["ckpt", "digest", checkpoints], "generate": generate}
        for name, command in words.items():
            with self.subTest(name):
                for key in ([], ["--key", f"file:{OTHER}"]):
                    refused = harness.run(*command, *key)
                    self.assertEqual(refused.returncode, 77, refused.stderr)
                    self.assertIn("encrypted for file", refused.stderr)
                site = {"TRIREME_ENCRYPTION__KEYS": f"[file:{KEY}]"}
                self.assertEqual(harness.run(*command, env=site).returncode, 0)
        refused = train("sealed", "train.steps=7", code=77)
        self.assertIn("encryption.keys", refused.stderr)

    def test_verify_with_and_without_key(self):
        checkpoints = FOLDER / "sealed/checkpoints"
        self.assertIn("no key was given",
                      output("ckpt", "verify", checkpoints, "--all"))
        self.assertIn("every block opens",
                      output("ckpt", "verify", checkpoints, "--all", "--key", f"file:{KEY}"))
        wrong = harness.run("ckpt", "verify", checkpoints, "--key", f"file:{OTHER}")
        self.assertEqual(wrong.returncode, 77, wrong.stderr)

    def test_plain_checkpoint_is_no_substitute(self):
        shutil.copytree(FOLDER / "plain", FOLDER / "downgraded")
        (FOLDER / "downgraded/DONE").unlink()
        key = f"encryption.keys=[file:{KEY}]"
        refused = train("downgraded", key, "train.steps=8", code=77)
        self.assertIn("encryption.accept_plain", refused.stderr)
        train("downgraded", key, "encryption.accept_plain=true", "train.steps=8",
              "checkpoint.allow_change=[optimizer.schedule.steps]")
        self.assertTrue((step_folder("downgraded", 8) / "keys.json").exists())

    @unittest.skipUnless(AESGCM, "the Python package cryptography is not installed")
    def test_another_reader_decrypts(self):
        step, plain = step_folder("sealed", 6), step_folder("plain", 6)
        manifest = json.loads((step / "manifest.json").read_text())
        key = data_key(step, key_of(KEY))
        self.assertEqual(derived(key, "trireme id", 16).hex(), manifest["encryption"]["data_key"])
        self.assertEqual(len(manifest["shards"]), 2)
        [whole] = json.loads((plain / "manifest.json").read_text())["shards"]
        expected = b"".join(tensors_of((plain / whole["file"]).read_bytes()).values())
        found = 0
        for shard in manifest["shards"]:
            for name, data in tensors_of(decrypt(step, shard, key)).items():
                self.assertIn(data, expected, name)
                found += len(data)
        self.assertEqual(found, len(expected))
        with self.assertRaises(InvalidTag):
            decrypt(step, dict(manifest["shards"][0], file="shard-00001.safetensors"), key)

    def test_recipients_change(self):
        shutil.copytree(FOLDER / "sealed", FOLDER / "rotated")
        checkpoints = FOLDER / "rotated/checkpoints"
        data = {file: file.read_bytes() for file in checkpoints.rglob("*.safetensors")}
        key, other = f"file:{KEY}", f"file:{OTHER}"
        self.assertNotEqual(harness.run("keys", "add", checkpoints, "--to", other).returncode, 0)
        harness.must(harness.run("keys", "add", checkpoints, "--key", key, "--to", other))
        for opening in (key, other):
            self.assertEqual(digest("rotated", 6, "--key", opening), digest("plain", 6))
        listed = json.loads(output("keys", "list", checkpoints, "--json"))
        names = [[r["name"] for r in step["recipients"]] for step in listed["checkpoints"]]
        self.assertEqual(names, [["site", "other"]] * 2)
        identity = listed["checkpoints"][0]["recipients"][0]["key"]
        harness.must(harness.run("keys", "remove", checkpoints, "--key", other, "--recipient",
                                 identity))
        self.assertEqual(harness.run("ckpt", "digest", step_folder("rotated", 6), "--key",
                                     key).returncode, 77)
        last = json.loads(output("keys", "list", checkpoints, "--json"))
        refused = harness.run("keys", "remove", checkpoints, "--key", other, "--recipient",
                              last["checkpoints"][0]["recipients"][0]["key"])
        self.assertEqual(refused.returncode, 77, refused.stderr)
        harness.must(harness.run("keys", "rotate", checkpoints, "--key", other, "--to", key))
        self.assertEqual(digest("rotated", 3, "--key", key), digest("plain", 3))
        self.assertEqual({file: file.read_bytes() for file in data}, data)
        harness.must(harness.run("ckpt", "verify", checkpoints, "--all", "--key", key))

    def test_destroy(self):
        shutil.copytree(FOLDER / "sealed", FOLDER / "doomed")
        checkpoints = FOLDER / "doomed/checkpoints"
        for confirm in ([], ["--confirm", "checkpoints"],
                        ["--confirm", "checkpoints", "--confirm", "checkpoint"]):
            refused = harness.run("keys", "destroy", checkpoints, *confirm)
            self.assertEqual(refused.returncode, 77, refused.stderr)
            self.assertEqual(digest("doomed", 6, "--key", f"file:{KEY}"), digest("plain", 6))
        harness.must(harness.run("keys", "destroy", checkpoints, "--confirm", "checkpoints",
                                 "--confirm", "checkpoints"))
        gone = harness.run("ckpt", "digest", checkpoints, "--key", f"file:{KEY}")
        self.assertEqual(gone.returncode, 77, gone.stderr)
        self.assertIn("its last recipient was removed", gone.stderr)

    def test_bad_keys(self):
        shared = FOLDER / "shared.key"
        shutil.copy(KEY, shared)
        shared.chmod(0o640)
        cases = {f"file:{shared}": (77, "chmod 600"), f"file:{FOLDER}/none": (66, "none"),
                 f"file:{FOLDER}/run.yaml": (77, "chmod 600"), "site.key": (2, "is not understood")}
        for uri, (code, words) in cases.items():
            with self.subTest(uri):
                refused = train("never", f"encryption.keys=[{uri}]", code=code, ranks=2)
                self.assertIn(words, refused.stderr)
        again = harness.run("keys", "create", "--out", KEY)
        self.assertEqual(again.returncode, 77, again.stderr)
        self.assertEqual(os.stat(KEY).st_mode & 0o777, 0o600)


if __name__ == "__main__":
    unittest.main(verbosity=2)
