"""Runs whose checkpoints are encrypted with a key in a token (SoftHSM): it is taken out and put
back while a run trains, is locked, absent or has another PIN. What fails is a module of PKCS#11
between the program and SoftHSM (tests/keys/faulty_token.cc), as a file tells it."""
import json
import os
import pathlib
import subprocess
import time
import unittest

import harness

SOFTHSM = "/usr/lib/softhsm/libsofthsm2.so"
FAULTY = pathlib.Path(harness.PROGRAM).resolve().parent / "tests/keys/libfaulty_token.so"
FOLDER = harness.workspace()
FAULTS = FOLDER / "faults"
GONE = "absent C_EncryptInit=0x32 C_DecryptInit=0x32"  # CKR_DEVICE_REMOVED
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 32, heads: 2, vocab: 1003, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 8, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1, steps: 100}}
checkpoint: {every: 2, async: false, keep: 9}
encryption: {accept_plain_data: true, keys: ["%s"]}
run: {dir: %s}
"""


def uri(pin="pin"):
    return (f"pkcs11:token=site;object=checkpoints?module-path={FAULTY}"
            f"&pin-source=file:{FOLDER / pin}")


def make_token():
    (FOLDER / "tokens").mkdir()
    (FOLDER / "softhsm2.conf").write_text(f"directories.tokendir = {FOLDER / 'tokens'}\n"
                                          "objectstore.backend = file\nlog.level = ERROR\n")
    FAULTS.write_text("")
    for name, value in (("SOFTHSM2_CONF", FOLDER / "softhsm2.conf"),
                        ("FAULTY_TOKEN_MODULE", SOFTHSM), ("FAULTY_TOKEN", f"@{FAULTS}")):
        os.environ[name] = harness.ENVIRONMENT[name] = str(value)
    subprocess.run(["softhsm2-util", "--init-token", "--free", "--label", "site", "--so-pin",
                    "1234", "--pin", "5678"], check=True, capture_output=True)
    for name, digits in (("pin", "5678"), ("wrong-pin", "9999")):
        (FOLDER / name).write_text(digits + "\n")
        (FOLDER / name).chmod(0o600)
    harness.must(harness.run("keys", "create", "--pkcs11", uri()))


def steps_of(run):
    return sorted(int(path.name[5:]) for path in (run / "checkpoints").glob("step-*"))


def tell(faults):
    draft = FAULTS.with_suffix(".draft")
    draft.write_text(faults)
    draft.rename(FAULTS)


def wait_for_step(run, step):
    end = time.monotonic() + 60
    while not (run / f"checkpoints/step-{step:08}").exists():
        assert time.monotonic() < end, f"step {step} was not saved"
        time.sleep(0.02)


@unittest.skipUnless(os.path.exists(SOFTHSM), "SoftHSM is not installed")
@unittest.skipUnless(FAULTY.exists(), "the faulty module is not built")
class TokenCheckpoints(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        make_token()
        data, _ = harness.make_datasets(FOLDER)
        cls.config = FOLDER / "run.yaml"
        cls.config.write_text(CONFIG % (data, uri(), FOLDER / "never"))

    def setUp(self):
        tell("")

    def start(self, name, ranks):
        """Starts a run whose steps take half a second, and waits for its first save."""
        tell("")
        run, log = FOLDER / name, FOLDER / f"{name}.log"
        process = harness.start("train", self.config, f"run.dir={run}", ranks=ranks, log=log,
                                env={"TRIREME_FAULTS": "step.end:0:1+:sleep=0.5"})
        wait_for_step(run, 2)
        return run, log, process

    def assert_nothing_is_plain(self, run):
        shards = list(run.rglob("*shard-*"))
        self.assertTrue(shards)
        for shard in shards:
            self.assertNotIn(b'"dtype"', shard.read_bytes(), shard)

    def test_taken_out_and_put_back(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                run, log, process = self.start(f"back-{ranks}", ranks)
                tell(GONE)
                while "step 4 is not saved" not in log.read_text():
                    self.assertIsNone(process.poll(), log.read_text())
                    time.sleep(0.05)
                tell("")
                self.assertEqual(process.wait(120), 0, log.read_text())
                self.assertIn("step 4 is not saved, because its key cannot be wrapped",
                              log.read_text())
                self.assertIn("has gone away", log.read_text())
                self.assertEqual(steps_of(run), [2, 6, 8])
                self.assert_nothing_is_plain(run)
                harness.must(harness.run("ckpt", "verify", run / "checkpoints", "--all", "--key",
                                         uri()))

    def test_taken_out_for_good(self):
        run, log, process = self.start("gone", 1)
        tell(GONE)
        self.assertEqual(process.wait(120), 74, log.read_text())
        self.assertIn("step 8 is done but could not be saved", log.read_text())
        self.assertEqual(log.read_text().count("step 8 is not saved"), 1, log.read_text())
        self.assertEqual(steps_of(run), [2])
        self.assert_nothing_is_plain(run)
        reason = json.loads((run / "exit_reason.json").read_text())
        self.assertEqual(reason["code"], 74)
        tell("")
        harness.must(harness.run("train", self.config, f"run.dir={run}"))
        self.assertEqual(steps_of(run), [2, 4, 6, 8])

    def test_at_the_start(self):
        made = FOLDER / "made"
        harness.must(harness.run("train", self.config, f"run.dir={made}", "train.steps=2"))
        for faults, words, code, sentence in (
                ("absent", [], 66, "the token 'site' is absent"),
                ("flags+0x40000", [], 77, "CKR_PIN_LOCKED"),
                ("flags+0x20000", [], 77, "did not try the PIN, since one more wrong one"),
                ("C_Login=0xa3", [], 77, "the PIN has expired"),
                ("C_OpenSession=0xb1", [], 77, "too many sessions"),
                ("C_DecryptInit=0x32", [], 76, "the token or its connection has gone away"),
                ("", [f'encryption.keys=["{uri("wrong-pin")}"]'], 77, "the PIN is wrong"),
                ("", [f'encryption.keys=["{uri("no-pin")}"]'], 66, "no-pin")):
            for name in ("fresh", "made"):
                with self.subTest(faults=faults, run=name):
                    tell(faults)
                    run = FOLDER / name
                    refused = harness.run("train", self.config, f"run.dir={run}", *words,
                                          ranks=2 if faults else 0)
                    self.assertEqual(refused.returncode, code, refused.stderr)
                    self.assertIn(sentence, refused.stderr)
                    self.assertEqual(steps_of(run), [] if name == "fresh" else [2])

    def test_other_commands(self):
        made = FOLDER / "checked"
        harness.must(harness.run("train", self.config, f"run.dir={made}", "train.steps=2"))
        verify = ["ckpt", "verify", made / "checkpoints", "--key", uri()]
        for faults, code, sentence in (
                ("absent", 66, "the token 'site' is absent"),
                ("C_DecryptInit=0x32", 76, "the token or its connection has gone away"),
                ("flags+0x40000", 77, "CKR_PIN_LOCKED")):
            with self.subTest(faults):
                tell(faults)
                refused = harness.run(*verify)
                self.assertEqual(refused.returncode, code, refused.stdout + refused.stderr)
                self.assertIn(sentence, refused.stdout + refused.stderr)
        tell("")
        harness.must(harness.run(*verify))


if __name__ == "__main__":
    unittest.main(verbosity=2)
