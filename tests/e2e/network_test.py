"""Nothing phones home: what programs do with the network, as strace sees it. Commands of one
process open no network socket at all, and ranks connect only to this host. A run without any
network computes the same bits."""
import json
import re
import shutil
import subprocess
import unittest

import harness

FOLDER = harness.workspace()
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 259, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2}
run: {dir: %s}
"""
SOCKET = re.compile(r"socket\((AF_[A-Z0-9]+)")
# The address of a connect() or of a message without connection.
TO = re.compile(r"(?:connect|sendto|sendmsg)\(.*?(?:inet_addr\(\"([0-9.]+)\"\)|"
                r"inet_pton\(AF_INET6, \"([0-9a-f:.]+)\")")
LOCAL_FAMILIES = {"AF_UNIX", "AF_NETLINK", "AF_LOCAL"}


def traced(words, name):
    """Runs a program under strace, and returns its calls to the network."""
    log = FOLDER / f"{name}.strace"
    result = subprocess.run(["strace", "-f", "-qq", "-e", "trace=network", "-o", log, *words],
                            env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, errors="replace", timeout=240, check=False)
    harness.must(result)
    return log.read_text(errors="replace").splitlines()


def can_trace():
    if not shutil.which("strace"):
        return False
    tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True,
                           check=False)
    return tried.returncode == 0


def own_addresses():
    listed = subprocess.run(["ip", "-j", "address"], capture_output=True, text=True, check=True)
    return {entry["local"] for link in json.loads(listed.stdout) for entry in link["addr_info"]}


def setUpModule():
    data, _ = harness.make_datasets(FOLDER, 20_000)
    (FOLDER / "run.yaml").write_text(CONFIG % (data, FOLDER / "run"))
    harness.must(harness.run("train", FOLDER / "run.yaml", ranks=2))


@unittest.skipUnless(can_trace(), "strace cannot trace here")
class Network(unittest.TestCase):
    def test_commands_open_no_socket(self):
        checkpoints, data = FOLDER / "run/checkpoints", FOLDER / "train"
        for words in [["--version"], ["config", "show", FOLDER / "run.yaml"],
                      ["data", "verify", data], ["ckpt", "verify", checkpoints, "--all"],
                      ["ckpt", "digest", checkpoints],
                      ["generate", "--checkpoint", checkpoints, "--prompt", "a", "--tokens", "3"],
                      ["eval", "--checkpoint", checkpoints, "--data", data],
                      ["doctor", FOLDER / "run.yaml"],
                      ["report", FOLDER / "run", "-o", FOLDER / "report.html"],
                      ["keys", "create", "--out", FOLDER / "site.key"],
                      ["audit", "keygen", "--out", FOLDER / "evidence.key"],
                      ["train", FOLDER / "run.yaml", f"run.dir={FOLDER / 'alone'}"]]:
            with self.subTest(words[:2]):
                calls = traced(harness.command(words), words[0])
                families = {found[1] for line in calls if (found := SOCKET.search(line))}
                self.assertLessEqual(families, LOCAL_FAMILIES)

    def test_ranks_connect_to_their_host_only(self):
        words = ["train", FOLDER / "run.yaml", f"run.dir={FOLDER / 'traced'}"]
        calls = traced(harness.command(words, ranks=2), "ranks")
        reached = {found[1] or found[2] for line in calls if (found := TO.search(line))}
        self.assertTrue(reached, "mpirun and its ranks are connected")
        strangers = {a for a in reached if not a.startswith("127.")} - own_addresses()
        self.assertEqual(strangers, set())


class Offline(unittest.TestCase):
    def test_same_bits_without_a_network(self):
        alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "alone"]
        if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this user cannot make a network namespace")
        words = ["train", FOLDER / "run.yaml", f"run.dir={FOLDER / 'offline'}"]
        result = subprocess.run([*alone, *harness.command(words, ranks=2)],
                                env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=240, check=False)
        harness.must(result)
        digests = {harness.must(harness.run("ckpt", "digest", FOLDER / run / "checkpoints")).stdout
                   for run in ("run", "offline")}
        self.assertEqual(len(digests), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
