"""Runs trireme launch beside hostile processes and connections of other users. They neither keep it
from relaunching, nor does it affect them."""

import os
import shutil
import signal
import subprocess
import unittest

import harness
from launch_harness import Launch, command_line, eventually

NOBODY = 65534
STRANGERS = 3000
# Opens this many connections to the port, reads nothing, and waits until its input ends.
CONNECT = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
for _ in range(int(sys.argv[2])):
    try:
        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5))
    except OSError:
        break
print("connected", flush=True)
sys.stdin.read()
"""


def wake_ups(pid):
    """Returns how often the process has been switched out so far."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["voluntary_ctxt_switches"]) + int(fields["nonvoluntary_ctxt_switches"])


class NeighboursTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)

    def start(self, name):
        config = harness.write_config(self.folder / f"{name}.yaml", self.datasets, "small", "fp32",
                                      train__steps=60, checkpoint__every=5)
        return Launch(config, options=("--local", 2, "--ranks-per-node", 1),
                      env={"TRIREME_FAULTS": "step.forward:*:*:sleep=0.05"})

    def users(self):
        """Returns command prefixes for this user and, if possible, for another one."""
        as_nobody = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
        can = os.geteuid() == 0 and shutil.which("setpriv")
        return [[], as_nobody] if can else [[]]

    def spawn(self, command, **more):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, **more)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_processes_that_only_look_like_old_ranks(self):
        with self.start("impostors") as launch:
            launch.wait_for("first_step")
            mark = f"{launch.number()}.0"
            words = ["sh", "-c", "read line", "sh", "-mca", "trireme_launch", mark]
            impostors = [self.spawn(user + words) for user in self.users()]
            if len(impostors) > 1:
                node = {"TRIREME_LAUNCH_ID": launch.number(), "TRIREME_NODE": "local0",
                        "OMPI_MCA_trireme_launch": mark}
                impostors.append(self.spawn(self.users()[1] + ["sh", "-c", "read line"],
                                            env={**os.environ, **node}))
            os.kill(launch.rank(1), signal.SIGKILL)
            self.assertEqual(launch.wait(), 0, launch.text())
            self.assertEqual(launch.causes(), ["process_death", "finished"])
            self.assertEqual(launch.events("node_lost"), [])
            for impostor in impostors:
                self.assertIsNone(impostor.poll(), impostor.args)

    def test_idle_connections(self):
        with self.start("connections") as launch:
            launch.wait_for("first_step")
            agents = eventually(lambda: launch.children("agent"), 30, "agents")
            words = command_line(agents[1])
            port = words[words.index("--port") + 1]
            for user in self.users():
                stranger = self.spawn([*user, "/usr/bin/python3", "-c", CONNECT, port,
                                       str(STRANGERS)], stdout=subprocess.PIPE)
                self.assertEqual(stranger.stdout.readline(), "connected\n")
            before, seen = wake_ups(launch.process.pid), len(launch.events("status"))
            launch.wait_for("status", seen + 2)
            # The limit covers ten ticks per second, reports, and the last strangers.
            self.assertLess(wake_ups(launch.process.pid) - before, 3000)
            os.kill(agents[1], signal.SIGKILL)
            launch.wait_for("agent_lost")
            self.assertEqual(launch.wait(), 0, launch.text())
            self.assertEqual(launch.causes(), ["finished"])
            self.assertEqual(launch.events("node_lost"), [])
            self.assertEqual(len(launch.events("agent_ready")), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
