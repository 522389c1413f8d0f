"""Encrypts datasets: packing and training as with plain ones, no plain text in any file, keys that
change, and refusals. sealed_reader.py is an independent reader."""
import json
import os
import shutil
import subprocess
import sys
import unittest

import harness
import sealed_reader
from sealed_reader import AESGCM

try:
    import h5py
except ImportError:
    h5py = None

FOLDER = harness.workspace()
KEY = FOLDER / "site.key"
OTHER = FOLDER / "other.key"
SITE = {"TRIREME_ENCRYPTION__KEYS": f"[file:{KEY}]"}
CANARY = "the secret recipe of the sovereign kitchen"
STORED = "".join(c + "\0" for c in CANARY).encode()  # tokens of 16 bits
CONFIG = """
model: {family: gpt2, layers: 2, hidden: 64, heads: 2, vocab: 257, context: 16}
data: {train: %s, validation: %s, sequence: 16}
train: {steps: 6, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1,
        eval_every: 3, eval_samples: 8}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 3}
run: {dir: %s}
"""


def output(*words, **more):
    return harness.must(harness.run(*words, **more)).stdout


def shown(*words, **more):
    return json.loads(output(*words, "--json", **more))


def train(data, run, *settings, ranks=1, code=0, validation=None):
    config = FOLDER / f"{run}.yaml"
    config.write_text(CONFIG % (data, validation or data, FOLDER / run))
    result = harness.run("train", config, *settings, ranks=ranks)
    assert result.returncode == code, (result.returncode, result.stderr)
    return result


def weights(run, *words):
    return output("ckpt", "digest", FOLDER / run / "checkpoints", *words).strip()


def files_below(folder):
    return {str(file.relative_to(folder)): file.read_bytes()
            for file in folder.rglob("*") if file.is_file()}


def setUpModule():
    for key in (KEY, OTHER):
        harness.must(harness.run("keys", "create", "--out", key, "--name", key.stem))
    text = FOLDER / "text"
    for number in range(4):
        harness.make_text(text / str(number), 400_000, number)
    (text / "canary.txt").write_text(CANARY * 3)
    harness.must(harness.run("data", "pack", text, "--out", FOLDER / "plain", "--shard-size", "1M"))
    harness.must(harness.run("data", "pack", text, "--out", FOLDER / "sealed", "--shard-size", "1M",
                             "--key", f"file:{KEY}", ranks=2))


class Packing(unittest.TestCase):
    def test_same_data_and_no_plain_text(self):
        plain = shown("data", "info", FOLDER / "plain")
        sealed = shown("data", "info", FOLDER / "sealed", "--key", f"file:{KEY}")
        for same in ("digest", "tokens", "documents", "shards", "bytes", "unigram_entropy_nats"):
            self.assertEqual(plain[same], sealed[same], same)
        self.assertGreater(sealed["shards"], 1)
        self.assertEqual((plain["encrypted"], sealed["encrypted"]), (False, True))
        self.assertTrue(any(STORED in data for data in files_below(FOLDER / "plain").values()))
        for name, data in files_below(FOLDER / "sealed").items():
            self.assertNotIn(STORED, data, name)
            self.assertNotIn(CANARY.encode(), data, name)
            self.assertNotIn(plain["digest"].encode(), data, name)

    def test_a_pack_that_is_killed_leaves_no_plain_text(self):
        words = "".join(c + "\0" for c in " ship ").encode()
        self.assertTrue(any(words in data for data in files_below(FOLDER / "plain").values()))
        out = FOLDER / "killed"
        command = ["data", "pack", FOLDER / "text", "--out", out, "--shard-size", "1M", "--key",
                   f"file:{KEY}"]
        looks = 0
        for writes in range(2, 12):  # a later call goes on where the one before was killed
            killed = harness.run(*command, env={"TRIREME_FAULTS": f"file.write:*:{writes}:kill"})
            if killed.returncode == 0:
                break
            looks += 1
            for name, data in files_below(out).items():
                self.assertNotIn(STORED, data, name)
                self.assertNotIn(words, data, name)
        self.assertGreater(looks, 3)
        harness.must(harness.run(*command))
        self.assertEqual(shown("data", "info", out, "--key", f"file:{KEY}")["digest"],
                         shown("data", "info", FOLDER / "plain")["digest"])

    def test_the_site_decides_unless_the_command_does(self):
        note = FOLDER / "note.txt"
        note.write_text("a note " * 50)
        cases = ((["--plain"], SITE, False), ([], SITE, True), ([], {}, False),
                 (["--key", f"file:{OTHER}"], SITE, True))
        for number, (words, site, encrypted) in enumerate(cases):
            out = FOLDER / f"site{number}"
            output("data", "pack", note, "--out", out, *words, env=site)
            self.assertEqual(shown("data", "info", out)["encrypted"], encrypted, words)
        listed = shown("keys", "list", FOLDER / "site3")["datasets"]
        self.assertEqual([r["name"] for r in listed[0]["recipients"]], ["other"])
        both = harness.run("data", "pack", note, "--out", FOLDER / "no", "--plain", "--key", "x")
        self.assertEqual(both.returncode, 2, both.stderr)
        again = harness.run("data", "pack", note, "--out", FOLDER / "site0", env=SITE)
        self.assertEqual(again.returncode, 77, again.stderr)
        self.assertIn("trireme data encrypt", again.stderr)

    @unittest.skipUnless(h5py, "h5py is not installed")
    def test_converted_datasets(self):
        with h5py.File(FOLDER / "foreign.h5", "w") as file:
            file["tokens"] = [5, 6, 7, 8] * 5000
        convert = ["data", "convert", FOLDER / "foreign.h5", "--vocab", 9, "--out"]
        output(*convert, FOLDER / "converted", "--key", f"file:{KEY}")
        output(*convert, FOLDER / "converted-plain")
        self.assertEqual(
            shown("data", "info", FOLDER / "converted", "--key", f"file:{KEY}")["digest"],
            shown("data", "info", FOLDER / "converted-plain")["digest"])

    def test_exports_and_reports_need_the_key(self):
        plain, sealed = FOLDER / "plain", FOLDER / "sealed"
        for command in (["export", "--format", "npy", "--out", FOLDER / "no"], ["report"]):
            refused = harness.run("data", command[0], sealed, *command[1:])
            self.assertEqual(refused.returncode, 77, refused.stderr)
        silent = harness.run("data", "export", sealed, "--format", "npy", "--out", FOLDER / "no",
                             env=SITE)
        self.assertEqual(silent.returncode, 77, silent.stderr)
        self.assertIn("give --plain if they may be written", silent.stderr)
        self.assertFalse((FOLDER / "no.npy").exists())
        for name, folder in (("a", plain), ("b", sealed)):
            output("data", "export", folder, "--format", "npy", "--out", FOLDER / name,
                   "--plain", env=SITE, ranks=2)
        for end in (".npy", ".offsets.npy"):
            self.assertEqual((FOLDER / f"a{end}").read_bytes(), (FOLDER / f"b{end}").read_bytes())
        of_plain = shown("data", "report", plain)
        of_sealed = shown("data", "report", sealed, "--key", f"file:{KEY}")
        self.assertEqual({**of_plain, "inputs": None}, {**of_sealed, "inputs": None})

    @unittest.skipUnless(AESGCM, "the Python package cryptography is not installed")
    def test_another_reader_decrypts(self):
        sealed, plain = FOLDER / "sealed", FOLDER / "plain"
        key = sealed_reader.data_key(sealed, sealed_reader.key_of(KEY))
        shards = json.loads((sealed / "manifest.json").read_text())["shards"]
        originals = json.loads((plain / "manifest.json").read_text())["shards"]
        self.assertEqual(len(shards), len(originals))
        for shard, original in zip(shards, originals):
            data = sealed_reader.decrypt(sealed, shard, key)
            self.assertEqual(data, (plain / original["path"]).read_bytes())
            self.assertEqual(sealed_reader.plain_xxh3(shard, key), original["xxh3"])
        with self.assertRaises(sealed_reader.InvalidTag):
            sealed_reader.decrypt(sealed, dict(shards[0], salt=shards[1]["salt"]), key)
        out = FOLDER / "opened.h5"
        subprocess.run([sys.executable, harness.SOURCE / "tests/e2e/sealed_reader.py", KEY, sealed,
                        shards[0]["path"], out], check=True)
        if h5py:
            with h5py.File(out) as file:
                self.assertEqual(file["tokens"].shape[0], shards[0]["n_tokens"])
                self.assertEqual(file.attrs["tokenizer"].decode(), "bytes")


class Training(unittest.TestCase):
    def test_same_bits_as_with_plain_data(self):
        train(FOLDER / "plain", "on-plain")
        train(FOLDER / "sealed", "on-sealed", f"encryption.keys=[file:{KEY}]", ranks=2)
        self.assertEqual(weights("on-plain"), weights("on-sealed", "--key", f"file:{KEY}"))
        plain, sealed = ([json.loads(line) for line in
                          (FOLDER / run / "metrics.jsonl").read_text().splitlines()]
                         for run in ("on-plain", "on-sealed"))
        self.assertEqual([m.get("loss_bits") for m in plain], [m.get("loss_bits") for m in sealed])
        self.assertEqual(plain[-1]["val_loss"], sealed[-1]["val_loss"])
        checkpoint = ["--checkpoint", FOLDER / "on-sealed/checkpoints", "--key", f"file:{KEY}"]
        losses = [json.loads(output("eval", *checkpoint, "--data", FOLDER / "sealed", "--json",
                                    "--samples", 8, ranks=ranks))["loss"] for ranks in (1, 2)]
        self.assertEqual(losses, [plain[-1]["val_loss"]] * 2)
        # A run that began with plain data goes on with the encrypted copy.
        shutil.copytree(FOLDER / "on-plain", FOLDER / "moved")
        shutil.rmtree(FOLDER / "moved/checkpoints/step-00000006")
        (FOLDER / "moved/DONE").unlink()
        train(FOLDER / "sealed", "moved", f"encryption.keys=[file:{KEY}]",
              "encryption.accept_plain=true")
        self.assertEqual(weights("moved", "--key", f"file:{KEY}"), weights("on-plain"))

    def test_every_order_has_the_same_bits(self):
        digests = set()
        for order in ("global", "none"):
            setting = f"data.shuffle={order}"
            train(FOLDER / "plain", f"plain-{order}", setting)
            train(FOLDER / "sealed", f"sealed-{order}", setting, f"encryption.keys=[file:{KEY}]",
                  ranks=2)
            digests.add(weights(f"plain-{order}"))
            self.assertEqual(weights(f"plain-{order}"),
                             weights(f"sealed-{order}", "--key", f"file:{KEY}"), order)
        self.assertEqual(len(digests), 2)

    def test_refusals(self):
        refused = train(FOLDER / "sealed", "keyless", code=77)
        self.assertIn("no key was given", refused.stderr)
        refused = train(FOLDER / "sealed", "wrong", f"encryption.keys=[file:{OTHER}]", code=77,
                        ranks=2)
        self.assertIn("is encrypted for file", refused.stderr)
        refused = train(FOLDER / "plain", "downgraded", f"encryption.keys=[file:{KEY}]", code=77,
                        ranks=2)
        self.assertIn("encryption.accept_plain_data=true", refused.stderr)
        refused = train(FOLDER / "sealed", "downgraded", f"encryption.keys=[file:{KEY}]", code=77,
                        validation=FOLDER / "plain")
        self.assertIn("trireme data encrypt", refused.stderr)
        train(FOLDER / "plain", "accepted", f"encryption.keys=[file:{KEY}]",
              "encryption.accept_plain_data=true")
        doctor = harness.run("doctor", FOLDER / "accepted.yaml", f"encryption.keys=[file:{KEY}]",
                             f"run.dir={FOLDER}/doctor")
        self.assertIn("accept_plain_data", doctor.stdout + doctor.stderr)

    def test_a_forged_block_ends_the_run(self):
        forged = FOLDER / "forged"
        shutil.copytree(FOLDER / "sealed", forged)
        shard = forged / "shards/00000.h5.sealed"
        shard.chmod(0o644)
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)
        result = train(forged, "on-forged", f"encryption.keys=[file:{KEY}]", "train.steps=2000",
                       code=65)
        self.assertIn("00000.h5.sealed: block", result.stderr)


class Commands(unittest.TestCase):
    def test_info_and_verify_with_and_without_keys(self):
        sealed = FOLDER / "sealed"
        self.assertNotIn("digest", shown("data", "info", sealed))
        self.assertIn("it needs the key", output("data", "info", sealed))
        self.assertIn("no key was given to open it", output("data", "verify", sealed))
        self.assertIn("every block opens",
                      output("data", "verify", sealed, "--key", f"file:{KEY}", ranks=2))
        self.assertIn("every block opens", output("data", "verify", sealed, env=SITE))
        self.assertIn("(encrypted)", output("data", "ls", FOLDER))
        for command in ("info", "verify"):
            wrong = harness.run("data", command, sealed, "--key", f"file:{OTHER}")
            self.assertEqual(wrong.returncode, 77, wrong.stderr)
            plain = harness.run("data", command, FOLDER / "plain", "--key", f"file:{KEY}")
            self.assertEqual(plain.returncode, 77, plain.stderr)
            output("data", command, FOLDER / "plain", env=SITE)

    def test_there_and_back(self):
        copy = FOLDER / "recoded"
        shutil.copytree(FOLDER / "plain", copy)
        before = files_below(copy)
        refused = harness.run("data", "encrypt", copy)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        output("data", "encrypt", copy, "--key", f"file:{KEY}", "--key", f"file:{OTHER}", ranks=2)
        for data in files_below(copy).values():
            self.assertNotIn(STORED, data)
        output("data", "verify", copy, "--key", f"file:{OTHER}")
        self.assertIn("already encrypted",
                      output("data", "encrypt", copy, "--key", f"file:{KEY}"))
        refused = harness.run("data", "decrypt", copy)
        self.assertEqual(refused.returncode, 77, refused.stderr)
        output("data", "decrypt", copy, "--key", f"file:{OTHER}", ranks=2)
        self.assertEqual(files_below(copy), before)

    def test_an_encryption_that_is_killed(self):
        """There is always one whole dataset, and the command can be repeated."""
        for writes in range(1, 40, 6):
            copy = FOLDER / f"killed-{writes}"
            shutil.copytree(FOLDER / "plain", copy)
            command = ["data", "encrypt", copy, "--key", f"file:{KEY}"]
            killed = harness.run(*command, env={"TRIREME_FAULTS": f"file.write:*:{writes}:kill"})
            output("data", "verify", copy, env=SITE)
            harness.must(harness.run(*command))
            output("data", "verify", copy, "--key", f"file:{KEY}")
            self.assertEqual(sorted(files_below(copy)), sorted(files_below(FOLDER / "sealed")))
            shutil.rmtree(copy)
            if killed.returncode == 0:
                break
        self.assertGreater(writes, 6)

    def test_staged_copies(self):
        output("data", "stage", FOLDER / "sealed", FOLDER / "node/copy", ranks=2)
        self.assertEqual(files_below(FOLDER / "node/copy"), files_below(FOLDER / "sealed"))
        train(FOLDER / "node/copy", "on-node", f"encryption.keys=[file:{KEY}]")


class Keys(unittest.TestCase):
    def test_recipients_change(self):
        key, other = f"file:{KEY}", f"file:{OTHER}"
        folder = FOLDER / "rotated"
        for part in ("train", "validation"):
            shutil.copytree(FOLDER / "sealed", folder / part)
        shards = {file: file.read_bytes() for file in folder.rglob("*.sealed")}
        output("keys", "add", folder, "--key", key, "--to", other)
        listed = shown("keys", "list", folder, "--key", other)
        self.assertEqual(listed["checkpoints"], [])
        self.assertEqual([[r["name"] for r in one["recipients"]] for one in listed["datasets"]],
                         [["site", "other"]] * 2)
        identity = listed["datasets"][0]["recipients"][0]["key"]
        output("keys", "remove", folder / "train", "--key", other, "--recipient", identity)
        refused = harness.run("data", "verify", folder / "train", "--key", key)
        self.assertEqual(refused.returncode, 77, refused.stderr)
        output("data", "verify", folder / "train", "--key", other)
        output("data", "verify", folder / "validation", "--key", key)
        output("keys", "rotate", folder, "--key", other, "--to", key)
        for part in ("train", "validation"):
            output("data", "verify", folder / part, "--key", key)
            self.assertEqual(
                harness.run("data", "verify", folder / part, "--key", other).returncode, 77)
        self.assertEqual({file: file.read_bytes() for file in shards}, shards)
        # Whoever puts an older keys.json back has a key that was a recipient then.
        self.assertEqual(harness.run("keys", "list", FOLDER / "plain").returncode, 2)

    def test_destroy(self):
        folder = FOLDER / "doomed"
        shutil.copytree(FOLDER / "sealed", folder)
        (folder / ".pack").mkdir()
        shutil.copy(folder / "keys.json", folder / ".pack/keys.json")
        shutil.copy(folder / "keys.json", folder / "keys.json.tmp-7")
        refused = harness.run("keys", "destroy", folder)
        self.assertEqual(refused.returncode, 77, refused.stderr)
        words = ("keys", "destroy", folder, "--confirm", "doomed", "--confirm", "doomed")
        (folder / "keys.json").chmod(0o400)
        with_rights = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
        refused = subprocess.run([*with_rights, *harness.command(words, 0)], check=False, text=True,
                                 env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL,
                                 capture_output=True, timeout=60)
        self.assertEqual(refused.returncode, 77, refused.stderr)
        (folder / "keys.json").chmod(0o600)
        output(*words)
        for file in folder.rglob("keys.json*"):
            self.assertNotIn('"wrapped"', file.read_text(), file)
        for words in (["data", "verify", folder], ["data", "info", folder],
                      ["data", "stage", folder, FOLDER / "nowhere"]):
            gone = harness.run(*words, env=SITE)
            self.assertEqual(gone.returncode, 65, gone.stderr)
            self.assertIn("was destroyed", gone.stderr)
        self.assertIn("was destroyed", output("data", "ls", folder))
        self.assertIn("nobody", output("keys", "list", folder))


class Evidence(unittest.TestCase):
    def test_encrypted_datasets_are_signed(self):
        signing = FOLDER / "evidence.key"
        output("audit", "keygen", "--out", signing)
        site = {"TRIREME_AUDIT__KEY": str(signing), "TRIREME_AUDIT__LOG": str(FOLDER / "log")}
        folder = FOLDER / "signed"
        output("data", "pack", FOLDER / "text", "--out", folder, "--key", f"file:{KEY}", env=site)
        trust = ["--trust", f"{signing}.pub"]
        output("verify", folder, *trust)
        # Recipients may change; the shards may not, and without its key nobody can use the dataset.
        output("keys", "rotate", folder, "--key", f"file:{KEY}", "--to", f"file:{OTHER}", env=site)
        output("verify", folder, *trust)
        refused = harness.run("data", "decrypt", folder, "--key", f"file:{OTHER}")
        self.assertEqual(refused.returncode, 77, refused.stderr)
        self.assertIn("is signed", refused.stderr)
        (folder / "keys.json").write_text("changed")
        bad = harness.run("verify", folder, *trust)
        self.assertEqual(bad.returncode, 65, bad.stdout)
        self.assertIn("keys.json", bad.stdout + bad.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
