"""Looks for keys in all memory of a run that reads encrypted data, learns from an encrypted
teacher, begins with encrypted weights that were pruned, saves encrypted checkpoints and writes
encrypted logs: all of them lie in pages that are locked against swapping and left out of core
files, and nowhere else. With security.lock_memory, all memory is locked. sealed_reader.py derives
the keys from docs/encryption.md."""
import base64
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import harness
from sealed_reader import AESGCM, data_key, derived, key_of, unwrapped

FOLDER = harness.workspace()
KEY, RUN, DATA = FOLDER / "site.key", FOLDER / "run", FOLDER / "data"
TEACHER, BASE = FOLDER / "teacher/checkpoints/step-00000002", FOLDER / "base"
PASSPHRASE = "six random words are long enough"
CANARY = "the secret recipe of the sovereign kitchen"
TOKENS = "".join(c + "\0" for c in CANARY).encode()  # of 16 bits
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 32, heads: 2, vocab: 257, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 8, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, ema: 0.9, schedule: {warmup: 1}}
checkpoint: {every: 2, async: false}
encryption: {keys: ["file:%s", "passphrase-file:%s"], logs: true}
run: {dir: %s}
"""
PART = 1 << 24


def mappings(pid):
    """Yields (begin, end, name, flags) of the memory of a process that is not that of a file."""
    text = pathlib.Path(f"/proc/{pid}/smaps").read_text()
    for head, rest in re.findall(r"^([0-9a-f]+-[0-9a-f]+ \S+ .*)\n((?:[A-Z].*\n)+)", text, re.M):
        words = head.split()
        begin, end = (int(each, 16) for each in words[0].split("-"))
        if "r" in words[1]:
            flags = re.search(r"^VmFlags: (.*)$", rest, re.M)[1].split()
            yield begin, end, " ".join(words[5:]), flags


def places_of(pid, secrets):
    """Returns {secret's name: [(mapping's name, flags)]} for all places in memory."""
    found = {name: [] for name in secrets}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for begin, end, name, flags in mappings(pid):
            if "io" in flags or name in ("[vvar]", "[vsyscall]"):
                continue
            for at in range(begin, end, PART):
                memory.seek(at)
                try:
                    part = memory.read(min(PART + 64, end - at))
                except OSError:
                    continue
                for title, secret in secrets.items():
                    if secret in part:
                        found[title].append((name or "anonymous", flags))
    return found


def ranks_of(launcher):
    """Returns the process ids of the ranks, or less while they start."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        parents[int(path.parent.name)] = (int(text.rsplit(")", 1)[1].split()[1]), name)
    return [pid for pid, (parent, name) in parents.items()
            if name.startswith("trireme") and parent == launcher]


def is_stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def wait_for_stop(launcher, ranks):
    """Returns the process ids of the ranks when all of them have stopped."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert launcher.poll() is None, "the run ended"
        pids = ranks_of(launcher.pid)
        if len(pids) == ranks and all(map(is_stopped, pids)):
            return pids
        time.sleep(0.05)
    raise AssertionError("the ranks did not stop")


def secrets_of(run):
    """Returns the keys that the run may hold, by name."""
    wrapping = key_of(KEY)
    secrets = {"the wrapping key": wrapping, "the text of the key file": base64.b64encode(wrapping),
               "the passphrase": PASSPHRASE.encode()}
    data = data_key(DATA, wrapping)
    secrets["the key of the data"] = data
    for shard in json.loads((DATA / "manifest.json").read_text())["shards"]:
        secrets[f"the key of {shard['path']}"] = derived(
            data, f"trireme file {shard['path']} {shard['salt']}")
    for step in [TEACHER, BASE, *sorted(run.glob("checkpoints/step-*"))]:
        key = data_key(step, wrapping)
        secrets[f"the key of {step}"] = key
        for shard in step.glob("shard-*"):
            secrets[f"the key of {shard}"] = derived(key, f"trireme file {shard.name}")
    [keys] = run.glob("log-keys/*/keys.json")
    logs = unwrapped(json.loads(keys.read_text()), wrapping)
    secrets["the key of the logs"] = logs
    for name in ("metrics.jsonl", "logs/rank-00000.jsonl", "logs/rank-00001.jsonl"):
        salt = (run / name).read_text().split(" ")[2]
        secrets[f"the key of {name}"] = derived(logs, f"trireme file {name} {salt}")
    return secrets


STOPPED = {"TRIREME_FAULTS": "step.end:*:5:stop"}


def start(run, *words):
    """Starts a run and waits until its ranks have stopped in the middle."""
    process = harness.start("train", FOLDER / "run.yaml", f"run.dir={run}", *words, ranks=2,
                            log=FOLDER / "told", env=STOPPED,
                            prefix=("bash", "-c", 'ulimit -c unlimited; exec "$@"', "_"))
    return process, wait_for_stop(process, 2)


def end(process, pids):
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    assert process.wait(60) == 0, (FOLDER / "told").read_text()


def setUpModule():
    harness.must(harness.run("keys", "create", "--out", KEY))
    (FOLDER / "passphrase").write_text(PASSPHRASE + "\n")
    (FOLDER / "passphrase").chmod(0o600)
    text = harness.make_text(FOLDER / "text", 60_000, 1)
    (text / "canary.txt").write_text(CANARY)
    harness.must(harness.run("data", "pack", text, "--out", DATA, "--key", f"file:{KEY}"))
    (FOLDER / "run.yaml").write_text(CONFIG % (DATA, KEY, FOLDER / "passphrase", RUN))
    harness.must(harness.run("train", FOLDER / "run.yaml", "train.steps=2",
                             f"run.dir={FOLDER / 'teacher'}"))
    harness.must(harness.run("sparsify", TEACHER, "--out", BASE, "--sparsity", "0.5", "--ema",
                             "--key", f"file:{KEY}"))


class Searched(unittest.TestCase):
    """A test of the memory of ranks that have stopped, `pids`."""
    pids = ()

    def places(self, secrets):
        """Returns the places of each secret in the memory of all ranks."""
        try:
            found = [places_of(pid, secrets) for pid in self.pids]
            return {name: [place for each in found for place in each[name]] for name in secrets}
        except PermissionError:
            self.skipTest("this system does not let users read the memory of their processes")


@unittest.skipUnless(AESGCM, "the Python package cryptography is not installed")
class KeyMemory(Searched):
    @classmethod
    def setUpClass(cls):
        cls.process, cls.pids = start(
            RUN, f"distill.teacher={TEACHER}", f"checkpoint.init_from={BASE}",
            "optimizer.keep_zeros=true")

    @classmethod
    def tearDownClass(cls):
        end(cls.process, cls.pids)

    def test_keys_lie_in_locked_memory_alone(self):
        found = self.places(secrets_of(RUN))
        for title in ("the wrapping key", "the passphrase", "the key of the data",
                      "the key of the logs", "the key of shards/00000.h5.sealed",
                      "the key of metrics.jsonl", "the key of logs/rank-00001.jsonl"):
            self.assertTrue(found[title], f"{title} is in use, so that it must be found")
        for title, places in found.items():
            for name, flags in places:
                self.assertIn("lo", flags, f"{title} lies in {name}, which may be swapped out")
                self.assertIn("dd", flags, f"{title} lies in {name}, which a core file holds")

    def test_the_search_finds_what_is_there(self):
        """The tokens of the data are in plain in the memory of the process, and may be swapped out
        without security.lock_memory."""
        places = self.places({"tokens": TOKENS})["tokens"]
        self.assertTrue(any("lo" not in flags for _, flags in places), places)

    def test_no_core_file_is_written(self):
        for pid in self.pids:
            limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
            self.assertRegex(limits, r"Max core file size +0 +0 ")

    def test_no_file_of_the_run_holds_a_key(self):
        secrets = secrets_of(RUN)
        secrets["the canary"] = CANARY.encode()
        secrets["the tokens"] = TOKENS
        for folder, _, files in os.walk(FOLDER):
            for file in files:
                path = pathlib.Path(folder, file)
                if path in (KEY, FOLDER / "passphrase") or path.parent.name == "text":
                    continue
                contents = path.read_bytes()
                for title, secret in secrets.items():
                    self.assertNotIn(secret, contents, f"{title} in {path}")


class LockedMemory(Searched):
    def test_nothing_may_be_swapped_out(self):
        """What cannot be locked are pages of the kernel and of devices."""
        process, self.pids = start(FOLDER / "locked", "security.lock_memory=true")
        try:
            places = self.places({"the tokens": TOKENS})["the tokens"]
            swappable = [(name, flags) for pid in self.pids
                         for _, _, name, flags in mappings(pid)
                         if not {"lo", "io", "pf"} & set(flags) and not name.startswith("[v")]
        finally:
            end(process, self.pids)
        self.assertTrue(places)
        for name, flags in places:
            self.assertIn("lo", flags, f"the tokens lie in {name}, which may be swapped out")
        self.assertEqual(swappable, [])

    def limited(self, command):
        """Runs a command that may lock little memory."""
        words = harness.command([command, FOLDER / "run.yaml", f"run.dir={FOLDER / 'never'}",
                                 "security.lock_memory=true"])
        drop = "setpriv --bounding-set=-ipc_lock" if os.geteuid() == 0 else ""
        return subprocess.run(["bash", "-c", f'ulimit -l 64; exec {drop} "$@"', "_", *words],
                              env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)

    def test_where_it_is_not_allowed(self):
        refused, told = self.limited("train"), self.limited("doctor")
        self.assertEqual((refused.returncode, told.returncode), (77, 77), told.stdout)
        self.assertIn("security.lock_memory: the memory of this process cannot be kept out of swap",
                      refused.stderr)
        self.assertIn("a process may lock only 64 KiB of memory", told.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
