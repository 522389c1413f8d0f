"""security.transport: ranks on hosts of their own may exchange data over what it allows, and are
refused before training otherwise. Needs root. A kernel may have no WireGuard and no XFRM; that
these kinds of interfaces are accepted is tested on messages of the kernel (tests/mpi/network)."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
import hosts  # noqa: E402

REFUSED = 77


class OneHost(unittest.TestCase):
    def test_memory_and_loopback_need_no_tunnel(self):
        folder = harness.workspace()
        config = harness.write_config(folder / "run.yaml", harness.make_datasets(folder), "small",
                                      train__steps=2, security__transport="tunnel:wg9")
        for backend in ("auto", "mpi", "ucx"):
            with self.subTest(backend=backend):
                result = harness.must(harness.run(
                    "train", config, f"comm.backend={backend}", f"run.dir={folder / backend}",
                    ranks=2, env={"OMPI_MCA_btl": "tcp,self"}))
                self.assertIn("tunnel:wg9: the ranks obey it, with 0 connections", result.stderr)

    def test_impossible_rules_are_refused(self):
        folder = harness.workspace()
        config = harness.write_config(folder / "run.yaml", ("data", "data"), "small")
        for words, text in [
                (["security.transport=wireguard"], "any, isolated and tunnel:INTERFACE"),
                (["security.transport=isolated"], "needs security.networks"),
                (["security.transport=isolated", "security.networks=[10.77.0.1/24]"],
                 "'10.77.0.1/24' is no network"),
                (["security.transport=tunnel:wg0", "checkpoint.memory_every=2", "launch.tls=false"],
                 "go past the tunnel")]:
            result = harness.run("train", config, *words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(text, result.stderr)


@unittest.skipIf(hosts.reason_to_skip(), hosts.reason_to_skip())
class SeveralHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.update(harness.ENVIRONMENT)  # class Hosts passes them on
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    def setUp(self):
        self.hosts = hosts.Hosts(2)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.close)

    def config(self, name, **keys):
        return harness.write_config(
            self.folder / f"{name}.yaml", self.datasets, "small",
            **{"train__steps": 4, "checkpoint__every": 2, "security__networks": "[10.77.0.0/24]",
               "audit__log": self.folder / f"{name}.audit", **keys})

    def start(self, *words, **popen):
        return self.hosts.start_mpirun(1, [harness.PROGRAM, *map(str, words)],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, **popen)

    def ends_with(self, code, *words):
        process = self.start(*words)
        text, _ = process.communicate(timeout=240)
        self.assertEqual(process.returncode, code, text)
        return text

    def findings(self, name):
        lines = (self.folder / f"{name}.audit").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        return [event["details"] for event in events if event.get("event") == "transport.checked"]

    def on(self, name, script):
        self.hosts._on(self.hosts.pid(name), script)

    def refused(self, name, config, text):
        output = self.ends_with(REFUSED, "train", config)
        self.assertIn(text, output)
        self.assertIn("point the transports there", output)
        self.assertFalse((harness.run_dir(config) / "metrics.jsonl").exists())
        self.assertFalse((harness.run_dir(config) / "checkpoints").exists())
        (finding,) = self.findings(name)
        self.assertFalse(finding["obeyed"])
        self.assertIn(text, finding["breaches"])

    def test_connections_within_the_networks_are_allowed(self):
        for backend in ("mpi", "ucx"):
            with self.subTest(backend=backend):
                config = self.config(backend, security__transport="isolated", comm__backend=backend)
                output = self.ends_with(0, "train", config)
                self.assertIn("security.transport: isolated: the ranks obey it", output)
                self.assertIn("over eth0 (veth)", output)
                (finding,) = self.findings(backend)
                self.assertTrue(finding["obeyed"])
                self.assertEqual(finding["hosts"], 2)
                self.assertGreaterEqual(finding["connections"], 2)
                self.assertEqual(finding["interfaces"], ["eth0 (veth)"])
                self.assertEqual(finding["rdma"], [])

    def test_other_networks_are_refused(self):
        for backend in ("mpi", "ucx"):
            with self.subTest(backend=backend):
                name = f"{backend}-elsewhere"
                config = self.config(name, security__transport="isolated", comm__backend=backend,
                                     security__networks="[10.78.0.0/16]")
                self.refused(name, config, "which is in none of security.networks (10.78.0.0/16)")

    def test_a_tunnel_that_is_missing_is_refused(self):
        config = self.config("missing", security__transport="tunnel:wg0")
        self.refused("missing", config, "this host has no interface wg0")

    def test_an_interface_that_is_only_called_wg0_is_refused(self):
        for name in self.hosts.names:
            self.on(name, "ip link add wg0 type veth peer name far && ip link set wg0 up")
        config = self.config("called", security__transport="tunnel:wg0")
        self.refused("called", config, "wg0 is of the kind veth, which does not encrypt")

    def test_a_tunnel_that_one_host_lacks_names_the_rank(self):
        self.on("host1", "ip link set eth0 down && ip link set eth0 name wg0 && ip link set wg0 up")
        os.environ["OMPI_MCA_btl_tcp_if_include"] = "10.77.0.0/24"
        self.addCleanup(os.environ.pop, "OMPI_MCA_btl_tcp_if_include")
        config = self.config("one", security__transport="tunnel:wg0", comm__backend="mpi")
        output = self.ends_with(REFUSED, "train", config)
        self.assertRegex(output, r"rank 0 \(host0\): this host has no interface wg0")
        self.assertRegex(output, r"rank 1 \(host1\): wg0 is of the kind veth")

    def test_rdma_is_refused_where_encryption_is_demanded(self):
        os.environ["UCX_TLS"] = "rc,tcp,self"
        self.addCleanup(os.environ.pop, "UCX_TLS")
        config = self.config("rdma", security__transport="tunnel:eth0", comm__backend="mpi")
        output = self.ends_with(REFUSED, "train", config)
        self.assertIn("UCX_TLS=rc,tcp,self chooses RDMA, which goes past eth0", output)

    def test_doctor_finds_it_before_the_launch(self):
        config = self.config("doctor", security__transport="tunnel:wg0")
        output = self.ends_with(REFUSED, "doctor", config)
        self.assertIn("security.transport: tunnel:wg0: this host has no interface wg0", output)
        config = self.config("healthy", security__transport="isolated")
        self.assertNotIn("security.transport", self.start("doctor", config).communicate()[0])

    def test_a_route_that_changes_is_found_at_the_next_save(self):
        config = self.config("rerouted", security__transport="isolated", comm__backend="mpi",
                             train__steps=100000, checkpoint__every=200)
        process = self.start("train", config)
        self.addCleanup(hosts.end, process)
        harness.until("steps", 120, lambda: (
            harness.run_dir(config) / "metrics.jsonl").exists() and harness.metrics(config))
        # The other host is reached over another cable from now on, which is in no network.
        # Meanwhile the ranks do not look, so that they never see the interface without its route.
        ranks = harness.processes_with(str(config))
        self.assertTrue(ranks)
        for rank in ranks:
            os.kill(rank, signal.SIGSTOP)
        pid = self.hosts.pid("host0")
        self.hosts._on(self.hosts.switch.pid, f"""
            ip link add spare type veth peer name eth1 netns {pid}
            ip link set spare master br0 up""")
        self.on("host0", "ip link set eth1 up && "
                         "ip route add 10.77.0.2/32 dev eth1 src 10.77.0.1")
        for rank in ranks:
            os.kill(rank, signal.SIGCONT)
        started = time.monotonic()
        output, _ = process.communicate(timeout=240)
        self.assertEqual(process.returncode, REFUSED, output)
        self.assertRegex(output, r"\(step \d+\) rank 0 \(host0\): \d connections? to 10.77.0.2 "
                                 r"over eth1 \(veth\), which has no address in security.networks")
        print(f"found {time.monotonic() - started:.1f} s after the change", flush=True)
        self.assertEqual([finding["obeyed"] for finding in self.findings("rerouted")],
                         [True, False])


if __name__ == "__main__":
    unittest.main(verbosity=2)
