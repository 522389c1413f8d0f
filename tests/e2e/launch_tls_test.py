"""The connections of `trireme launch` in TLS: what crosses the network is watched, in a network
namespace of its own, and settings and certificates that are not valid are refused."""
import pathlib
import shutil
import subprocess
import sys
import unittest

import harness
from launch_harness import Launch

STEPS = 12
# Bytes of messages and of copied checkpoints. In plain, all of them cross the network.
CANARIES = (b'"kind":"hello"', b'"kind":"report"', b'"kind":"order"', b'"copy":"begin"',
            b"__metadata__", b"data_offsets")
SNIFFER = """
import socket, sys
taken = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
taken.bind(("lo", 0))
with open(sys.argv[1], "wb", buffering=0) as out:
    print("ready", flush=True)
    while True:
        out.write(taken.recv(1 << 17))
"""
INSIDE = """
ip link set lo up
"$1" -c "$2" "$3" >"$3.ready" & sniffer=$!
until [ -s "$3.ready" ]; do sleep 0.05; done
shift 3
"$@"; code=$?
kill $sniffer
exit $code
"""


def can_sniff():
    return subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"],
                          capture_output=True, check=False).returncode == 0


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], capture_output=True, check=True,
                   stdin=subprocess.DEVNULL)


class LaunchTls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    made = 0

    def config(self):
        LaunchTls.made += 1
        return harness.write_config(self.folder / f"run{self.made}.yaml", self.datasets, "small",
                                    train__steps=STEPS, checkpoint__every=6,
                                    checkpoint__memory_every=2)

    def launch(self, *arguments, prefix=()):
        config = self.config()
        with Launch(config, *arguments, options=("--local", 2), prefix=prefix,
                    env={"TRIREME_FAULTS": "step.forward:*:*:sleep=0.1"}) as launch:
            code = launch.wait()
        return code, launch.text()

    def seen(self, *arguments):
        """Returns what crossed the network during a launch of two nodes."""
        packets = self.folder / f"packets{self.made}"
        prefix = ["unshare", "--net", "bash", "-c", INSIDE, "bash", sys.executable, SNIFFER,
                  packets]
        code, text = self.launch(*arguments, prefix=prefix)
        self.assertEqual(code, 0, text)
        return packets.read_bytes()

    @unittest.skipUnless(can_sniff(), "needs root, to watch packets in a network namespace")
    def test_nothing_crosses_the_network_in_plain(self):
        plain = self.seen("launch.tls=false")
        missing = [canary for canary in CANARIES if canary not in plain]
        self.assertEqual(missing, [], "what is looked for crosses the network without TLS")
        sealed = self.seen()
        self.assertGreater(len(sealed), 100_000)
        self.assertEqual([canary for canary in CANARIES if canary in sealed], [])


@unittest.skipUnless(shutil.which("openssl"), "needs openssl, to make certificates")
class LaunchCertificates(LaunchTls):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority("authority")
        cls.authority("stranger")
        cls.certificate("node", "authority", 2)
        cls.certificate("late", "authority", -1)

    test_nothing_crosses_the_network_in_plain = None

    @classmethod
    def authority(cls, name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", 2, "-subj", f"/CN={name}", "-keyout", cls.folder / f"{name}.key", "-out",
                cls.folder / f"{name}.pem")

    @classmethod
    def certificate(cls, name, issuer, days):
        path = cls.folder / name
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", f"/CN={name}", "-keyout", f"{path}.key", "-out", f"{path}.csr")
        openssl("x509", "-req", "-in", f"{path}.csr", "-CA", cls.folder / f"{issuer}.pem", "-CAkey",
                cls.folder / f"{issuer}.key", "-CAcreateserial", "-days", days, "-out",
                f"{path}.pem")
        pathlib.Path(f"{path}.key").chmod(0o600)

    def words(self, name="node", ca="authority"):
        own = self.folder / name
        return [f"launch.tls.certificate={own}.pem", f"launch.tls.key={own}.key",
                f"launch.tls.ca={self.folder / ca}.pem"]

    def test_certificates_of_the_site(self):
        code, text = self.launch(*self.words())
        self.assertEqual(code, 0, text)

    def test_certificates_that_are_not_valid(self):
        for words, expected, said in [
                (self.words("late"), 77, "certificate has expired: renew it"),
                (self.words(ca="stranger"), 77, "is not valid: unable to get local issuer"),
                (self.words("gone"), 66, "gone.pem"),
                (self.words()[:2], 2, "launch.tls.ca"),
                ([*self.words(), "launch.tls=false"], 2, "contradicts")]:
            with self.subTest(said):
                code, text = self.launch(*words)
                self.assertEqual(code, expected, text)
                self.assertIn(said, text)

    def test_the_resolved_configuration_can_be_read_again(self):
        config = self.config()
        shown = harness.must(harness.run("config", "show", config, *self.words())).stdout
        again = self.folder / "again.yaml"
        again.write_text(shown)
        self.assertIn("tls.certificate:", shown)
        self.assertEqual(harness.run("config", "show", again).returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
