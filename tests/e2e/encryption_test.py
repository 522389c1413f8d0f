"""Trains with encrypted checkpoints: the same bits as without, no plain text in any file, resuming
on other layouts, rotation, destruction, and refusals. sealed_reader.py is an independent reader."""
import json
import os
import shutil
import signal
import struct
import unittest

import harness
from sealed_reader import AESGCM, InvalidTag, data_key, decrypt, derived, key_of

FOLDER = harness.workspace()
KEY = FOLDER / "site.key"
OTHER = FOLDER / "other.key"
CONFIG = """
model: {family: gpt2, layers: 2, hidden: 64, heads: 2, vocab: 1003, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 6, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 3}
encryption: {accept_plain_data: true}
run: {dir: %s}
"""


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
        self.assertIn("REFUSED", wrong.stdout)
        self.assertNotIn("BAD", wrong.stdout)
        missing = harness.run("ckpt", "verify", checkpoints, "--key", f"file:{FOLDER}/none")
        self.assertEqual((missing.returncode, missing.stdout), (66, ""), missing.stderr)

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

    def test_rotation_removes_no_other_recipient_unasked(self):
        shutil.copytree(FOLDER / "sealed", FOLDER / "shared")
        checkpoints = FOLDER / "shared/checkpoints"
        third = FOLDER / "third.key"
        harness.must(harness.run("keys", "create", "--out", third, "--name", "third"))
        key, other = f"file:{KEY}", f"file:{OTHER}"
        harness.must(harness.run("keys", "add", checkpoints, "--key", key, "--to", other))
        rotate = ("keys", "rotate", checkpoints, "--key", other, "--to", f"file:{third}")
        refused = harness.run(*rotate)
        self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
        self.assertIn("'site' could no longer open", refused.stderr)
        self.assertNotIn("'other' could", refused.stderr)
        self.assertEqual(digest("shared", 6, "--key", key), digest("plain", 6))
        self.assertEqual(digest("shared", 6, "--key", other), digest("plain", 6))
        kept = harness.must(harness.run(*rotate, "--to", key)).stdout
        self.assertRegex(kept, r"'third', file \w+ 'site'; removed: file \w+ 'other'\n")
        self.assertEqual(digest("shared", 6, "--key", key), digest("plain", 6))
        rotate = ("keys", "rotate", checkpoints, "--key", key, "--to", other)
        alone = harness.must(harness.run(*rotate, "--all")).stdout
        self.assertRegex(alone, r"'other'; removed: file \w+ 'third', file \w+ 'site'\n")

    def test_destroy(self):
        shutil.copytree(FOLDER / "sealed", FOLDER / "doomed")
        checkpoints = FOLDER / "doomed/checkpoints"
        for confirm in ([], ["--confirm", "checkpoints"],
                        ["--confirm", "checkpoints", "--confirm", "checkpoint"]):
            refused = harness.run("keys", "destroy", checkpoints, *confirm)
            self.assertEqual(refused.returncode, 77, refused.stderr)
            self.assertEqual(digest("doomed", 6, "--key", f"file:{KEY}"), digest("plain", 6))
        os.link(step_folder("doomed", 6) / "keys.json", FOLDER / "backup.json")
        done = harness.must(harness.run("keys", "destroy", checkpoints, "--confirm", "checkpoints",
                                        "--confirm", "checkpoints"))
        self.assertIn("was not overwritten, because it has 1 other name", done.stderr)
        gone = harness.run("ckpt", "digest", checkpoints, "--key", f"file:{KEY}")
        self.assertEqual(gone.returncode, 65, gone.stderr)
        self.assertIn("was destroyed", gone.stderr)
        self.assertIn("was destroyed", output("ckpt", "ls", checkpoints))
        self.assertIn("nobody", output("keys", "list", checkpoints))
        left = [file for file in checkpoints.rglob("keys.json*")
                if "wrapped\"" in file.read_text()]
        self.assertEqual(left, [])

    def test_destroy_finds_every_wrapped_key(self):
        """Those of steps that are being replaced, attempts, remains, and interrupted rotations."""
        shutil.copytree(FOLDER / "sealed", FOLDER / "remains")
        checkpoints = FOLDER / "remains/checkpoints"
        step = step_folder("remains", 6)
        for name in (".replaced-6-1", ".tmp-9-1", ".trash-3-1"):
            shutil.copytree(step, checkpoints / name)
        shutil.copy(step / "keys.json", step / "keys.json.tmp-123")
        victim = FOLDER / "victim"
        victim.write_text("of the administrator")
        damaged = step_folder("remains", 3)
        (damaged / "keys.json").unlink()
        (damaged / "keys.json").symlink_to(victim)
        confirm = ["--confirm", "checkpoints", "--confirm", "checkpoints"]
        refused = harness.run("keys", "destroy", checkpoints, *confirm)
        self.assertEqual(refused.returncode, 77, refused.stderr)
        self.assertIn("keys.json is a symbolic link", refused.stderr)
        self.assertIn("\"wrapped\"", (step / "keys.json").read_text())
        (damaged / "keys.json").unlink()
        (damaged / "keys.json.tmp-7").symlink_to(victim)
        for _ in range(2):  # it can be repeated
            harness.must(harness.run("keys", "destroy", checkpoints, *confirm))
        self.assertEqual(victim.read_text(), "of the administrator")
        for file in checkpoints.rglob("keys.json*"):
            self.assertNotIn("\"wrapped\"", file.read_text(), file)

    def test_rotation_reaches_steps_that_come_back(self):
        shutil.copytree(FOLDER / "sealed", FOLDER / "replaced")
        checkpoints = FOLDER / "replaced/checkpoints"
        step = step_folder("replaced", 6)
        shutil.copytree(step, checkpoints / ".tmp-9-1")
        shutil.copy(step / "keys.json", step / "keys.json.tmp-123")
        step.rename(checkpoints / ".replaced-6-1")
        (step_folder("replaced", 3) / "keys.json").chmod(0o640)
        harness.must(harness.run("keys", "rotate", checkpoints, "--key", f"file:{KEY}", "--to",
                                 f"file:{OTHER}"))
        identity = derived(key_of(KEY), "trireme id", 16).hex() if AESGCM else "?"
        files = list(checkpoints.rglob("keys.json*"))
        self.assertEqual(len(files), 2, files)
        for file in files:
            self.assertNotIn(identity, file.read_text())
        self.assertEqual(os.stat(step_folder("replaced", 3) / "keys.json").st_mode & 0o777, 0o640)

    def test_an_interrupted_rotation_leaves_no_draft(self):
        many = FOLDER / "many"
        for step in range(1, 121):
            shutil.copytree(step_folder("sealed", 6), many / f"step-{step:08}")
        before = {file: file.stat().st_ino for file in many.rglob("keys.json")}
        words = ["keys", "rotate", many, "--key", f"file:{KEY}", "--to", f"file:{OTHER}"]
        rotation = harness.start(*words, ranks=0, log=FOLDER / "rotation.log")
        first = min(before)
        harness.until("the first keys.json was replaced", 60,
                      lambda: first.stat().st_ino != before[first])
        rotation.terminate()
        self.assertEqual(rotation.wait(), -signal.SIGTERM)
        self.assertEqual(list(many.rglob("keys.json.tmp-*")), [])
        self.assertTrue(any(file.stat().st_ino == inode for file, inode in before.items()))
        output("keys", "rotate", many, "--key", f"file:{KEY}", "--key", f"file:{OTHER}", "--to",
               f"file:{OTHER}")
        self.assertNotIn("site", output("keys", "list", many))

    def test_recipients_of_a_live_run_do_not_change(self):
        shutil.copytree(FOLDER / "sealed", FOLDER / "live")
        checkpoints = FOLDER / "live/checkpoints"
        (checkpoints / "run.lock").write_text("not a lock that a run has given back")
        for words in (["rotate", checkpoints, "--key", f"file:{KEY}", "--to", f"file:{OTHER}"],
                      ["destroy", checkpoints, "--confirm", "checkpoints", "--confirm",
                       "checkpoints"]):
            refused = harness.run("keys", *words)
            self.assertEqual(refused.returncode, 77, refused.stderr)
        self.assertEqual(digest("live", 6, "--key", f"file:{KEY}"), digest("plain", 6))

    def test_checks_look_at_the_wrapped_key(self):
        shutil.copytree(FOLDER / "sealed", FOLDER / "keyless")
        checkpoints = FOLDER / "keyless/checkpoints"
        step = step_folder("keyless", 6)
        intact = (step / "keys.json").read_bytes()
        others = (step_folder("keyless", 3) / "keys.json").read_bytes()
        for contents in (None, b"garbage", others, intact.replace(b'"site"', b'"mine"')):
            (step / "keys.json").unlink()
            if contents is not None:
                (step / "keys.json").write_bytes(contents)
            bad = harness.run("ckpt", "verify", checkpoints, "--all")
            self.assertEqual(bad.returncode, 65, bad.stdout)
            self.assertIn("keys.json", bad.stdout)
            self.assertIn("INVALID", output("ckpt", "ls", checkpoints))
            (step / "keys.json").write_bytes(intact)

    def test_secrets_in_uris_are_not_recorded(self):
        log = FOLDER / "audit.jsonl"
        site = {"TRIREME_AUDIT__LOG": str(log)}
        checkpoints = FOLDER / "sealed/checkpoints"
        for uri in ("passphrase:of the administrator", "fiel:of the administrator",
                    "env=of the administrator", "4711471" * 8,
                    "pkcs11:token=t;object=o?pin-value=4711471"):
            for words in (["rotate", checkpoints, "--key", f"file:{KEY}", "--to", uri],
                          ["list", checkpoints, f"--key={uri}"]):
                refused = harness.run("keys", *words, env=site)
                self.assertNotEqual(refused.returncode, 0)
        self.assertIn("keys.rotate.start", log.read_text())
        for secret in ("administrator", "4711471"):
            self.assertNotIn(secret, log.read_text())

    def test_a_key_file_is_no_passphrase(self):
        refused = train("never", f"encryption.keys=[passphrase-file:{KEY}]", code=65)
        self.assertIn("this is a key file", refused.stderr)

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

    def test_a_revoked_key(self):
        site, run = FOLDER / "site", FOLDER / "revoked"
        site.mkdir()
        old, new = FOLDER / "stolen.key", FOLDER / "next.key"
        for key in (old, new):
            harness.must(harness.run("keys", "create", "--out", key))
        train("revoked", f"encryption.keys=[file:{old}]", "train.steps=3",
              "optimizer.schedule.steps=3")
        [listed] = json.loads(output("keys", "list", run / "checkpoints", "--json"))["checkpoints"]
        identity = listed["recipients"][0]["key"]
        self.assertFalse(listed["recipients"][0]["revoked"])
        (site / "revoked-keys").write_text(f"{identity} stolen in March\n")
        here = dict(os.environ, TRIREME_SITE_DIR=str(site))

        def use(code, *words):
            result = harness.run(*words, env=here)
            self.assertEqual(result.returncode, code, result.stderr)
            return result.stdout + result.stderr

        digested = ("ckpt", "digest", step_folder("revoked", 3), "--key")
        self.assertIn("is revoked (stolen in March) and opens nothing",
                      use(77, *digested, f"file:{old}"))
        self.assertIn("is revoked (stolen in March) and encrypts nothing",
                      use(77, "train", FOLDER / "run.yaml", f"run.dir={FOLDER / 'never'}",
                          f"encryption.keys=[file:{old}]"))
        self.assertIn("is revoked (stolen in March)",
                      use(0, "keys", "list", run / "checkpoints", "--key", f"file:{old}"))
        self.assertIn("encrypts nothing", use(77, "keys", "add", run / "checkpoints", "--key",
                                              f"file:{old}", "--to", f"file:{old}"))
        use(0, "keys", "rotate", run / "checkpoints", "--key", f"file:{old}", "--to", f"file:{new}")
        use(0, *digested, f"file:{new}")
        (site / "revoked-keys").write_text("stolen.key stolen in March\n")
        self.assertIn("revoked-keys:1: 'stolen.key' is not the identity of a key",
                      use(77, *digested, f"file:{new}"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
