"""trireme erase: what is erased is gone, wrapped keys first, and a signed certificate says so. An
independent reader of some lines checks the certificates as docs/evidence.md describes them."""
import base64
import json
import os
import shlex
import shutil
import signal
import subprocess
import unittest

import harness
from provenance_harness import is_signed_by, pae, sha256

FOLDER = harness.workspace()
KEY, TRUST, SITE_KEY = FOLDER / "key", FOLDER / "key.pub", FOLDER / "site.key"
LOG = FOLDER / "audit.log"
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 259, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2}
run: {dir: %s}
encryption: {keys: [file:%s], accept_plain_data: true}
"""


def setUpModule():
    data, _ = harness.make_datasets(FOLDER, 20_000)
    (FOLDER / "run.yaml").write_text(CONFIG % (data, FOLDER / "run", SITE_KEY))
    harness.must(harness.run("keys", "create", "--out", SITE_KEY))
    harness.must(harness.run("audit", "keygen", "--out", KEY))
    harness.must(harness.run("train", FOLDER / "run.yaml", ranks=2))


def files_of(folder):
    return {str(path.relative_to(folder)): sha256(path)
            for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()}


def predicate_of(certificate):
    """Returns the predicate and the files of a certificate whose signature is good."""
    envelope = json.loads(certificate.read_text())
    body = base64.b64decode(envelope["payload"])
    (signature,) = envelope["signatures"]
    assert is_signed_by(TRUST, pae(envelope["payloadType"].encode(), body),
                        base64.b64decode(signature["sig"]))
    statement = json.loads(body)
    assert statement["predicateType"] == "urn:trireme:erasure:1"
    return statement["predicate"], {each["name"]: each["digest"]["sha256"]
                                    for each in statement["subject"]}


def verify(certificate, trust=TRUST):
    result = harness.run("verify", certificate, "--trust", trust)
    return result.returncode, result.stdout + result.stderr


def events(name):
    return [json.loads(line) for line in LOG.read_text().splitlines()
            if json.loads(line)["event"] == name]


class Erase(unittest.TestCase):
    def setUp(self):
        self.place = FOLDER / self.id().rsplit(".", 1)[1]
        shutil.copytree(FOLDER / "run", self.place)
        self.checkpoints = self.place / "checkpoints"
        self.step = self.checkpoints / "step-00000002"
        self.certificate = FOLDER / (self.place.name + ".erased")

    def erase(self, folder, *words, confirm=2, certificate=None, sign=KEY, env=None):
        confirmed = ["--confirm", os.path.basename(folder)] * confirm
        return harness.run("erase", folder, "--certificate", certificate or self.certificate,
                           *(["--sign", sign] if sign else []), *confirmed, *words, env=env)

    def refused(self, code, text, *args, **kw):
        before = files_of(self.place)
        result = self.erase(*args, **kw)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(text, result.stderr)
        self.assertEqual(files_of(self.place), before)
        self.assertFalse(self.certificate.exists())

    def test_a_checkpoint_goes_with_its_keys_first(self):
        before = files_of(self.step)
        with open(self.step / "keys.json", "rb") as keys, \
                open(self.step / "shard-00000.safetensors", "rb") as shard:
            size, data = os.fstat(keys.fileno()).st_size, shard.read()
            result = harness.must(self.erase(self.step, "--reason", "the contract has ended",
                                             env={"TRIREME_AUDIT__LOG": str(LOG)}))
            self.assertEqual(keys.read(), bytes(size))
            shard.seek(0)
            self.assertEqual(shard.read(), data)
        self.assertFalse(self.step.exists())
        self.assertTrue((self.checkpoints / "step-00000004").exists())
        self.assertIn("erased:", result.stdout)
        predicate, files = predicate_of(self.certificate)
        self.assertEqual(files, before)
        self.assertEqual(predicate["uri"], f"file://{self.step}")
        self.assertEqual(predicate["kind"], "checkpoint")
        self.assertEqual(predicate["method"],
                         {"keys": ["keys.json"], "overwritten": False, "removed": True})
        self.assertEqual(predicate["reason"], "the contract has ended")
        self.assertEqual(predicate["uid"], os.getuid())
        self.assertLessEqual(predicate["started"], predicate["finished"])
        code, page = verify(self.certificate)
        self.assertEqual(code, 0, page)
        self.assertIn("the contract has ended", page)
        self.assertIn("The certificate is as it was signed.", page)
        (event,) = events("checkpoint.erased")
        self.assertEqual(event["details"]["folder"], str(self.step))
        self.assertEqual(event["details"]["certificate_sha256"], sha256(self.certificate))
        self.assertEqual(len(events("erase.start")), 1)
        self.assertEqual(events("erase.end")[0]["details"]["code"], 0)

    def test_everything_is_overwritten_if_asked(self):
        paths = [path for path in self.step.iterdir() if path.is_file()]
        opened = [open(path, "rb") for path in paths]
        sizes = [path.stat().st_size for path in paths]
        harness.must(self.erase(self.step, "--overwrite"))
        for file, size in zip(opened, sizes):
            with file:
                self.assertEqual(file.read(), bytes(size), file.name)
        self.assertTrue(predicate_of(self.certificate)[0]["method"]["overwritten"])

    def test_a_folder_of_checkpoints_and_a_dataset(self):
        before = files_of(self.checkpoints)
        harness.must(self.erase(self.checkpoints))
        self.assertFalse(self.checkpoints.exists())
        predicate, files = predicate_of(self.certificate)
        self.assertEqual((predicate["kind"], files), ("checkpoints", before))
        self.assertEqual(predicate["method"]["keys"],
                         ["step-00000002/keys.json", "step-00000004/keys.json"])
        data = self.place / "data"
        shutil.copytree(FOLDER / "train", data)
        before = files_of(data)
        certificate = FOLDER / "data.erased"
        result = harness.must(self.erase(data, certificate=certificate, sign=None,
                                         env={"TRIREME_AUDIT__KEY": str(KEY)}))
        self.assertIn("its bytes stay on the disk", result.stderr)
        self.assertFalse(data.exists())
        predicate, files = predicate_of(certificate)
        self.assertEqual((predicate["kind"], predicate["method"]["keys"], files),
                         ("dataset", [], before))
        self.assertEqual(verify(certificate)[0], 0)

    def test_what_is_there_again_is_found(self):
        kept = FOLDER / "kept"
        shutil.copytree(self.step, kept)
        harness.must(self.erase(self.step))
        shutil.copytree(kept, self.step)
        code, page = verify(self.certificate)
        self.assertEqual(code, 65)
        self.assertIn("manifest.json is there, with the contents that were erased", page)
        stranger = FOLDER / "stranger"
        harness.must(harness.run("audit", "keygen", "--out", stranger))
        code, page = verify(self.certificate, FOLDER / "stranger.pub")
        self.assertEqual(code, 77)
        self.assertNotIn("is there", page)
        for path in self.step.iterdir():
            path.write_text("something else")
        code, page = verify(self.certificate)
        self.assertEqual(code, 0, page)
        self.assertIn("of the same name and other contents", page)

    def test_forged_certificates(self):
        harness.must(self.erase(self.step))
        text = self.certificate.read_text()
        envelope = json.loads(text)
        body = base64.b64decode(envelope["payload"])
        other = FOLDER / "other"
        harness.must(harness.run("audit", "keygen", "--out", other))
        for name, changed, trust, code in [
                ("another key", text, FOLDER / "other.pub", 77),
                ("a changed payload", text.replace(
                    envelope["payload"], base64.b64encode(body.replace(
                        b"step-00000002", b"step-00000004")).decode()), TRUST, 65),
                ("no signature", json.dumps({**envelope, "signatures": []},
                                            separators=(",", ":")) + "\n", TRUST, 77),
                ("spaces", json.dumps(envelope) + "\n", TRUST, 65),
                ("a cut", text[:-10], TRUST, 65),
                ("nothing", "", TRUST, 66)]:
            with self.subTest(name):
                self.certificate.write_text(changed)
                self.assertEqual(verify(self.certificate, trust)[0], code)

    def test_refusals_change_nothing(self):
        for confirm in (0, 1):
            self.refused(77, "confirm twice", self.step, confirm=confirm)
        self.refused(77, "confirm twice", self.step, "--confirm", "step", confirm=1)
        self.refused(2, "no key to sign", self.step, sign=None)
        self.refused(66, "is no folder", self.place / "absent")
        self.refused(2, "nothing else is erased", self.place)
        self.refused(2, "belongs to the run in", self.checkpoints,
                     certificate=self.checkpoints / "erased")
        link = self.checkpoints / "link"
        link.symlink_to(self.step)
        self.refused(2, "is a symbolic link", link)
        link.unlink()
        os.link(self.step / "shard-00000.safetensors", self.place / "other-name")
        self.refused(77, "has other names", self.step)
        (self.place / "other-name").unlink()
        self.refused(77, "replaces no file", self.step, certificate=f"{KEY}.pub")
        self.assertIn("PRIVATE KEY", KEY.read_text())

    def test_links_out_of_the_folder_are_refused(self):
        outside = FOLDER / "outside"
        shutil.copytree(self.step, outside / "step-00000003")
        linked = self.checkpoints / "step-00000003"
        linked.symlink_to(outside / "step-00000003")
        self.refused(77, f"{linked} is a symbolic link to {outside}", self.checkpoints)
        linked.unlink()
        for name in ("keys.json", "shard-00000.safetensors"):
            with self.subTest(name):
                path = self.step / name
                path.rename(outside / name)
                path.symlink_to(outside / name)
                self.refused(77, f"{path} is a symbolic link to {outside}", self.checkpoints)
                self.refused(77, f"{path} is a symbolic link to {outside}", self.step)
                path.unlink()
                (outside / name).rename(path)
        harness.must(self.erase(self.checkpoints))
        self.assertEqual(len(files_of(outside)), len(files_of(FOLDER / "run/checkpoints" /
                                                             self.step.name)))

    def interrupted(self, number):
        """Erases a step of many files and ends the command when keys.json is gone."""
        for _ in range(5):  # on a busy machine, the command may have ended before the signal comes
            shutil.rmtree(self.step, ignore_errors=True)
            shutil.copytree(FOLDER / "run/checkpoints" / self.step.name, self.step)
            self.certificate.unlink(missing_ok=True)
            for file in range(20_000):
                (self.step / f"more-{file:05}").touch()
            process = harness.start("erase", self.step, "--certificate", self.certificate,
                                    "--sign", KEY, "--confirm", self.step.name, "--confirm",
                                    self.step.name, ranks=0, log=FOLDER / "interrupted.log")
            while (self.step / "keys.json").exists() and process.poll() is None:
                pass
            process.send_signal(number)
            if process.wait() != 0:
                break
        self.assertEqual(process.returncode, -number)
        self.assertFalse(self.certificate.exists())

    def test_an_interrupted_command_can_be_given_again(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(number):
                before = files_of(FOLDER / "run/checkpoints" / self.step.name)
                self.interrupted(number)
                self.assertTrue((self.step / "manifest.json").exists())
                draft = FOLDER / f"{self.certificate.name}.draft"
                self.assertEqual(verify(draft)[0], 65)
                harness.must(self.erase(self.step))
                self.assertFalse(self.step.exists())
                predicate, files = predicate_of(self.certificate)
                self.assertEqual({name: files[name] for name in before}, before)
                self.assertEqual(len(files), len(before) + 20_000)
                self.assertEqual(predicate["method"]["keys"], [])
                self.assertIn("keys.json", predicate["method"]["gone_before"])
                code, page = verify(self.certificate)
                self.assertEqual(code, 0, page)
                self.assertIn("begun by a command that was interrupted", page)
                self.assertIn("its wrapped keys were gone when the erasure was given again", page)
                self.assertNotIn("not encrypted", page)
                self.assertEqual(sorted(FOLDER.glob(f"{self.certificate.name}*")),
                                 [self.certificate])
                self.certificate.unlink()

    def test_another_certificate_says_that_the_keys_were_gone(self):
        self.interrupted(signal.SIGKILL)
        other = FOLDER / "other.erased"
        harness.must(self.erase(self.step, certificate=other))
        method = predicate_of(other)[0]["method"]
        self.assertEqual((method["keys"], method["missing_keys"]), ([], ["keys.json"]))
        code, page = verify(other)
        self.assertEqual(code, 0, page)
        self.assertIn("it was encrypted, and had no wrapped keys any more", page)

    def in_own_mounts(self, script):
        """Runs a shell script in which $erase stands for the command, as root of its mounts."""
        words = [str(word) for word in harness.command(
            ["erase", self.step, "--certificate", self.certificate, "--sign", KEY, "--confirm",
             self.step.name, "--confirm", self.step.name])]
        result = subprocess.run(
            [harness.OWN_MOUNTS, "sh", "-c", f"erase() {{ {shlex.join(words)}; }}\n{script}"],
            env={**harness.ENVIRONMENT, "step": str(self.step), "folder": str(FOLDER)},
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if result.returncode == 99 or "unshare:" in result.stderr:
            self.skipTest("this user may not mount")
        return result

    def test_a_folder_that_could_not_be_removed_gets_its_certificate(self):
        before = files_of(self.step)
        result = self.in_own_mounts('mount --bind "$step" "$step" || exit 99; erase')
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("the same command finishes it", result.stderr)
        self.assertEqual(list(self.step.iterdir()), [])
        self.assertFalse(self.certificate.exists())
        self.step.rmdir()
        harness.must(self.erase(self.step))
        predicate, files = predicate_of(self.certificate)
        self.assertEqual(files, before)
        self.assertEqual(sorted(predicate["method"]["gone_before"]), sorted(before))

    def test_a_full_disk_erases_nothing_or_leaves_room(self):
        self.certificate = FOLDER / "small" / "erased"
        self.certificate.parent.mkdir()
        before = files_of(self.step)
        result = self.in_own_mounts(
            'mount -t tmpfs -o size=8k none "$folder/small" || exit 99; erase; code=$?\n'
            'ls -A "$folder/small" >&2; exit $code')
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("the file system is full", result.stderr)
        self.assertNotIn("erased.draft\n", result.stderr)
        self.assertEqual(files_of(self.step), before)
        # The second half finds a full disk, and has its room.
        (self.step / "mounted").mkdir()
        result = self.in_own_mounts(
            'mount -t tmpfs -o size=64k none "$folder/small" || exit 99\n'
            'mount -t tmpfs none "$step/mounted" || exit 99\n'
            'erase; [ $? = 74 ] || exit 98\n'
            'umount "$step/mounted"; cat /dev/zero > "$folder/small/fill"\n'
            'erase || exit 97\n'
            'ls "$folder/small" >&2; cp "$folder/small/erased" "$folder/copy"')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stderr.endswith("erased\nfill\n"), result.stderr)
        self.assertEqual(predicate_of(FOLDER / "copy")[1], before)

    def test_a_missing_permission_is_77_and_can_be_repeated(self):
        keep = self.step / "shard-00000.safetensors"
        before = files_of(self.step)
        if subprocess.run(["chattr", "+i", keep], capture_output=True, check=False).returncode:
            self.skipTest("no file can be made immutable here")
        try:
            result = self.erase(self.step)
        finally:
            subprocess.run(["chattr", "-i", keep], check=True)
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertIn(f"{keep}: Operation not permitted", result.stderr)
        self.assertFalse(self.certificate.exists())
        self.assertEqual(sorted(files_of(self.step)), sorted(set(before) - {"keys.json"}))
        harness.must(self.erase(self.step))
        predicate, files = predicate_of(self.certificate)
        self.assertEqual((predicate["method"]["keys"], files), ([], before))
        self.assertEqual(predicate["method"]["gone_before"], ["keys.json"])

    def test_beside_a_run(self):
        live = self.place / "live"
        process = harness.start("train", FOLDER / "run.yaml", f"run.dir={live}",
                                "train.steps=1000000", "checkpoint.every=50",
                                "checkpoint.keep=1000", ranks=1, log=FOLDER / "live.log")
        try:
            step = live / "checkpoints/step-00000050"
            harness.until("a checkpoint", 120, step.exists)
            for folder in (step, live / "checkpoints"):
                result = self.erase(folder)
                self.assertEqual(result.returncode, 77, result.stderr)
                self.assertIn("a run writes to", result.stderr)
            self.assertTrue((step / "manifest.json").exists())
            self.assertFalse(self.certificate.exists())
        finally:
            harness.end_group(process)

    def test_a_failure_in_the_middle_gives_no_certificate(self):
        # A folder on which something is mounted cannot be removed.
        before = files_of(self.step)
        (self.step / "mounted").mkdir()
        result = self.in_own_mounts('mount -t tmpfs none "$step/mounted" || exit 99; erase')
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("mounted", result.stderr)
        self.assertFalse(self.certificate.exists())
        harness.must(self.erase(self.step))  # outside of that namespace, nothing is mounted
        self.assertFalse(self.step.exists())
        self.assertEqual(predicate_of(self.certificate)[1], before)


class Retention(unittest.TestCase):
    def test_deleted_steps_are_recorded(self):
        log = FOLDER / "retention.log"
        harness.must(harness.run(
            "train", FOLDER / "run.yaml", f"run.dir={FOLDER / 'kept-two'}", f"audit.log={log}",
            "train.steps=6", "checkpoint.every=1", "checkpoint.keep=2", ranks=2))
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        saved = {line["details"]["step"]: line["details"]["folder"] for line in lines
                 if line["event"] == "checkpoint.saved"}
        deleted = {line["details"]["step"]: line["details"] for line in lines
                   if line["event"] == "checkpoint.deleted"}
        self.assertEqual(sorted(saved), [1, 2, 3, 4, 5, 6])
        self.assertEqual(sorted(deleted), [1, 2, 3, 4])
        for step, details in deleted.items():
            self.assertEqual(details["folder"], saved[step])
            self.assertRegex(details["manifest_sha256"], "^[0-9a-f]{64}$")
            self.assertFalse(os.path.exists(details["folder"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
