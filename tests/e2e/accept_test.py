"""`trireme accept` on machines with a planted fault: a node of a real Slurm whose core has another
load, and a host or a node of Slurm whose link is limited by tbf. Nodes are measured one after the
other, as all of them share the cores of this machine."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
import hosts as simulated  # noqa: E402
import slurm_cluster  # noqa: E402

sys.path.insert(0, str(harness.SOURCE / "benchmarks/schema"))
import validate  # noqa: E402

PROGRAM = str(pathlib.Path(harness.PROGRAM).resolve())
# Other tests run at the same time, and would slow down all nodes and not the hogs' alone. Where
# the kernel shares a core between sessions first (sched_autogroup), each has a priority of its own.
PRIORITY = "echo -15 2>/dev/null >/proc/self/autogroup; exec nice -n -15"
PROFILE = """
nodes: {nodes}
program: {program}
rounds: {rounds}
at_once: 1
node:
  start: {node_start}
  measures: ["gemm --size 768 --precision fp32 --duration 0.3"]
  at_least: 60
  score: 2.5
link:
  start: {link_start}
  measures: ["p2p --backend mpi --test bandwidth -m 256K:256K -i 4 -x 1 -W 4"]
  at_least: 40
  score: {link_score}
"""


def verdicts(text):
    """Returns the document, which obeys its schema."""
    problems = validate.problems_of(text, "accept")
    if problems:
        raise AssertionError("\n".join(problems))
    return json.loads(text)


def script(path, text):
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(0o755)
    return path


def link_profile(**keys):
    """Returns a profile in which links decide, and nodes are hardly judged."""
    return PROFILE.format(program=PROGRAM, rounds=1, link_score=2, **keys).replace(
        "at_least: 60", "at_least: 1").replace(
            "at_least: 40", "at_least: 40\n  limits: ['p2p_bw time_us=60000']")


def assert_slow_link(test, result, node):
    """Checks that an acceptance in the folder of the test has blamed the link of this node."""
    test.assertEqual(result.returncode, 4, result.stdout + result.stderr)
    found = verdicts((test.folder / "accept/acceptance.json").read_text())
    slow = [v["nodes"] for v in found["links"] if not v["good"]]
    test.assertTrue(slow and all(node in nodes for nodes in slow), result.stdout)
    test.assertEqual([v for v in found["links"] if v["complaints"]], [])
    test.assertEqual(found["nodes_with_bad_links"], [node], result.stdout)
    test.assertIn(f"The links of {node} are slow with known-good partners, too", result.stdout)
    test.assertIn(f"NodeName={node}", result.stdout)


def interrupt(test, number, command, folder, started, environment):
    """Starts an acceptance whose measurements take minutes, interrupts it when `started` holds, and
    checks that nothing is left."""
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([str(word) for word in command], env=environment, stdout=log,
                                   stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    test.addCleanup(harness.end_group, process)
    harness.until(f"measurements: {(folder / 'log').read_text()}", 90, started)
    process.send_signal(number)
    test.assertEqual(process.wait(timeout=60), -number)
    test.assertIn("accept: interrupted", (folder / "log").read_text())
    harness.until("all processes' end", 30, lambda: not harness.processes_with(str(folder)))


HOG = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
HOG_SECONDS = 600


def start_hogs(cpu, count=4, seconds=HOG_SECONDS):
    """Starts processes that keep a core busy. They end with this process, however it ends, and in
    any case after some time: nobody else would stop them."""
    hog = f"{PRIORITY} taskset -c {cpu} {sys.executable} -c '{HOG.format(seconds)}'"
    return [subprocess.Popen(["bash", "-c", hog], start_new_session=True,
                             preexec_fn=simulated.end_with_parent(signal.SIGKILL))
            for _ in range(count)]


def end_hogs(hogs):
    for each in hogs:
        each.kill()
        each.wait()


class Hogs(unittest.TestCase):
    """The hogs of the tests below would slow down everything else if they outlived their test."""

    def test_they_end_with_the_test_that_is_killed(self):
        script = ("import sys, time\nimport accept_test\n"
                  "hogs = accept_test.start_hogs(int(sys.argv[1]), 2)\n"
                  "print(*(each.pid for each in hogs), flush=True)\ntime.sleep(600)\n")
        core = min(os.sched_getaffinity(0))
        test = subprocess.Popen(
            [sys.executable, "-c", script, str(core)], stdout=subprocess.PIPE, text=True,
            cwd=pathlib.Path(__file__).parent, start_new_session=True)
        self.addCleanup(harness.end_group, test)
        hogs = [int(word) for word in test.stdout.readline().split()]
        self.assertEqual(len(hogs), 2)
        test.kill()
        test.wait()
        test.stdout.close()
        harness.until("the hogs' end", 30, lambda: not any(
            pathlib.Path(f"/proc/{pid}/cmdline").exists()
            and pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in hogs))

    def test_they_end_by_themselves(self):
        for each in start_hogs(min(os.sched_getaffinity(0)), 1, seconds=1):
            self.assertEqual(each.wait(timeout=60), 0)


class OnSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = slurm_cluster.reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        cls.folder = harness.workspace()
        cls.cluster = slurm_cluster.SlurmCluster(nodes=4)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def test_a_node_with_a_hog(self):
        """n3 computes on a core that it shares with four other processes."""
        own, shared = sorted(os.sched_getaffinity(0))[:2]
        pin = script(self.folder / "pin.sh",
                     f"cpu={own}; [[ $SLURMD_NODENAME == n3 ]] && cpu={shared}\n"
                     f'{PRIORITY} taskset -c $cpu "$@"\n')
        profile = self.folder / "accept.yaml"
        srun = "srun, --mpi=pmix"
        profile.write_text(PROFILE.format(
            nodes="n[1-4]", program=PROGRAM, rounds=3, link_score=30,
            node_start=f"[{srun}, --nodes=1, --ntasks=1, '--nodelist={{node}}', {pin}]",
            link_start=f"[{srun}, --nodes=2, --ntasks=2, --ntasks-per-node=1, "
                       "'--nodelist={a},{b}']"))
        hogs = start_hogs(shared)
        self.addCleanup(end_hogs, hogs)
        begin = time.monotonic()
        result = self.cluster.command(
            PROGRAM, "accept", profile, "--drain", "--dir", self.folder / "accept",
            env=self.cluster.environment, check=False, timeout=400, cwd=self.folder)
        print(f"a node with a hog: {time.monotonic() - begin:.0f} s", file=sys.stderr)
        self.assertEqual(result.returncode, 4, result.stdout + result.stderr)
        found = verdicts((self.folder / "accept/acceptance.json").read_text())
        self.assertFalse(found["accepted"])
        self.assertEqual([v["nodes"] for v in found["nodes"] if not v["good"]], [["n3"]],
                         result.stdout)
        self.assertEqual([v for v in found["links"] if v["complaints"]], [])
        self.assertIn("Node n3 reaches ", result.stdout)
        self.assertIn("scontrol update NodeName=n3 State=DRAIN", result.stdout)
        self.assertIn("DRAIN", self.cluster.node_state("n3"))
        self.assertNotIn("DRAIN", self.cluster.node_state("n1"))

    def test_a_healthy_machine(self):
        """The example for nodes that share the cores of one machine accepts such a machine."""
        example = (harness.SOURCE / "configs/accept/shared-cores.yaml").read_text()
        first = script(self.folder / "first.sh", f'{PRIORITY} "$@"\n')
        word = '"--nodelist={node}"'
        self.assertIn(word, example)
        profile = self.folder / "shared-cores.yaml"
        profile.write_text(example.replace('nodes: ""', "nodes: n[1-4]").replace(
            word, f"{word}, {first}"))
        begin = time.monotonic()
        result = self.cluster.command(
            PROGRAM, "accept", profile, "--drain", "--dir", self.folder / "healthy",
            check=False, timeout=400, cwd=self.folder)
        print(f"a healthy machine: {time.monotonic() - begin:.0f} s", file=sys.stderr)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        found = verdicts((self.folder / "healthy/acceptance.json").read_text())
        self.assertTrue(found["accepted"])
        self.assertEqual(len(found["nodes"]), 4)
        self.assertEqual(len(found["links"]), 6)
        self.assertTrue(all(v["good"] for v in found["nodes"] + found["links"]), result.stdout)
        self.assertEqual(found["drain_commands"], [])
        for node in ("n1", "n2", "n3", "n4"):
            self.assertNotIn("DRAIN", self.cluster.node_state(node))

    def test_a_rank_that_dies_ends_its_measurement(self):
        """By default, srun lets the other rank wait for it, here in MPI_Init."""
        complaints, errors = self.accept_with("always", "kill -SEGV $$")
        self.assertRegex(complaints[0],
                         r"exit code \d+: srun: error: n\d: task 1: Segmentation fault")
        self.assertEqual(errors.count("is started again"), 1, errors)

    def test_a_rank_that_dies_at_its_start_once(self):
        complaints, errors = self.accept_with("once", "mkdir once.mark && kill -SEGV $$")
        self.assertEqual(complaints, [])
        self.assertRegex(errors, r"\naccept: n1 - n2: p2p .* is started again: srun: error: n\d: ")

    def accept_with(self, name, death):
        """Accepts two nodes. Rank 1 runs `death` before it measures the link. Returns the link's
        complaints, and what was printed on standard error."""
        folder = self.folder / name
        folder.mkdir()
        dies = script(folder / "dies.sh", f'cd {folder}; [[ $SLURM_PROCID == 1 ]] && {death}\n'
                                          'exec "$@"\n')
        profile = folder / "accept.yaml"
        profile.write_text(
            f"nodes: n[1-2]\nprogram: {PROGRAM}\nrounds: 1\nseconds: 100\n"
            "node: {start: [srun, --nodes=1, --ntasks=1, '--nodelist={node}'], "
            "measures: ['gemm --size 64 --precision fp32 --duration 0.1']}\n"
            "link: {start: [srun, --mpi=pmix, --nodes=2, --ntasks=2, --ntasks-per-node=1, "
            f"'--nodelist={{a}},{{b}}', {dies}], "
            "measures: ['p2p --test bandwidth -m 256K:256K -i 2 -x 1 -W 4']}\n")
        result = self.cluster.command(PROGRAM, "accept", profile, "--dir", folder / "accept",
                                      "--json", check=False, timeout=400, cwd=folder)
        [link] = verdicts(result.stdout)["links"]
        return link["complaints"], result.stderr

    def test_an_interruption_ends_the_steps(self):
        folder = self.folder / "interrupted"
        disk = folder / "disk"
        disk.mkdir(parents=True)
        profile = folder / "accept.yaml"
        profile.write_text(
            f"nodes: n[1-2]\nprogram: {PROGRAM}\n"
            "node: {start: [srun, --nodes=1, --ntasks=1, '--nodelist={node}'], "
            f"measures: ['io --dir {disk} -F -b 1M -n 1 --duration 300']}}\n")

        def steps():
            return self.cluster.command("squeue", "--steps", "--noheader").stdout.splitlines()
        interrupt(self, signal.SIGTERM, [PROGRAM, "accept", profile, "--dir", folder / "accept"],
                  folder, lambda: len(steps()) == 2 and len(os.listdir(disk)) == 2,
                  self.cluster.environment)
        self.assertEqual(os.listdir(disk), [])
        harness.until("the jobs' end", 30, lambda: not steps() and not self.cluster.queue())


class OnHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = simulated.reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        cls.folder = harness.workspace()
        cls.hosts = simulated.Hosts(4)
        cls.addClassCleanup(cls.hosts.close)
        cls.hosts.__enter__()

    def test_a_slow_link(self):
        self.hosts.limit_link("host2", "40mbit")
        pids = " ".join(f"{n}={self.hosts.pid(n)}" for n in self.hosts.names)
        on_node = script(self.folder / "on_node.sh",
                         f"for each in {pids}; do [[ $each == $1=* ]] && pid=${{each#*=}}; done\n"
                         'exec nsenter -t "$pid" -n -u -m -i -p -r -- "${@:2}"\n')
        on_pair = script(self.folder / "on_pair.sh",
                         f"exec nsenter -t {self.hosts.switch.pid} -n -- mpirun --oversubscribe "
                         '--bind-to none -H "$1,$2" -n 2 "${@:3}"\n')
        profile = self.folder / "accept.yaml"
        profile.write_text(link_profile(
            nodes="host[0-3]", node_start=f"[{on_node}, '{{node}}']",
            link_start=f"[{on_pair}, '{{a}}', '{{b}}']"))
        environment = {**harness.ENVIRONMENT, **simulated.ENVIRONMENT,
                       **simulated.LAUNCHER_ENVIRONMENT, "TRIREME_HOSTS": pids}
        begin = time.monotonic()
        result = subprocess.run(
            [PROGRAM, "accept", profile, "--dir", self.folder / "accept"], env=environment,
            capture_output=True, text=True, timeout=400, check=False)
        print(f"a slow link: {time.monotonic() - begin:.0f} s", file=sys.stderr)
        assert_slow_link(self, result, "host2")


class OnSlurmWithNetworks(unittest.TestCase):
    """A Slurm whose nodes have networks of their own, behind links to one switch."""

    @classmethod
    def setUpClass(cls):
        reason = slurm_cluster.reason_to_skip() or simulated.reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        cls.folder = harness.workspace()
        cls.hosts = simulated.Hosts(4)
        cls.addClassCleanup(cls.hosts.close)
        cls.hosts.__enter__()
        cls.cluster = slurm_cluster.SlurmCluster(nodes=4, hosts=cls.hosts)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def test_a_slow_link(self):
        self.hosts.limit_link("host2", "40mbit")  # that of n3
        profile = self.folder / "accept.yaml"
        profile.write_text(link_profile(
            nodes="n[1-4]", node_start="[srun, --nodes=1, --ntasks=1, '--nodelist={node}']",
            link_start="[srun, --mpi=pmix, --nodes=2, --ntasks=2, --ntasks-per-node=1, "
                       "'--nodelist={a},{b}']"))
        begin = time.monotonic()
        result = self.cluster.command(PROGRAM, "accept", profile, "--drain", "--dir",
                                      self.folder / "accept", check=False, timeout=400,
                                      cwd=self.folder)
        print(f"a slow link of a node of Slurm: {time.monotonic() - begin:.0f} s", file=sys.stderr)
        assert_slow_link(self, result, "n3")
        self.assertIn("DRAIN", self.cluster.node_state("n3"))
        self.assertNotIn("DRAIN", self.cluster.node_state("n1"))


class Interrupted(unittest.TestCase):
    def test_ranks_of_mpirun(self):
        """mpirun starts its ranks in process groups of their own."""
        folder = harness.workspace()
        profile = folder / "accept.yaml"
        profile.write_text(
            f"nodes: n[1-2]\nnode: {{start: [{harness.MPIEXEC}, --oversubscribe, -n, '2', env, "
            "'N={node}'], measures: ['gemm --size 64 --precision fp32 --duration 300']}\n")
        interrupt(self, signal.SIGINT, [PROGRAM, "accept", profile, "--dir", folder / "accept"],
                  folder, lambda: len([words for words in harness.processes_with(
                      str(folder / "accept")).values() if words.startswith(PROGRAM + " bench")])
                  == 4, harness.ENVIRONMENT)


if __name__ == "__main__":
    unittest.main(verbosity=2)
