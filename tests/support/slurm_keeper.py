"""The keeper of a test cluster (slurm_cluster.py) is the process from which all others of the
cluster descend. The functions find out about processes through /proc.

    python3 slurm_keeper.py DIR LIFETIME PARENT keep|remove NODE...

starts the daemons that DIR/slurm.conf describes. Where DIR/run/network-NODE holds the id of a
process, the daemon of the node runs in that process's network; network-controller stands for
slurmctld. It ends all its descendants on SIGTERM, when the
process PARENT is gone (0 for none), and after LIFETIME seconds. Then it keeps or removes DIR.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def parents():
    """Returns {pid: pid of the parent} for all processes."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path(f"/proc/{entry}/stat").read_bytes()
            except OSError:
                continue
            found[int(entry)] = int(stat.rsplit(b")", 1)[1].split()[1])
    return found


def descendants(pid):
    """Returns the descendants of a process, nearest first, without zombies."""
    of = {}
    for child, parent in parents().items():
        of.setdefault(parent, []).append(child)
    found, todo = [], [pid]
    while todo:
        children = of.get(todo.pop(0), [])
        found += children
        todo += children
    return [p for p in found if alive(p)]


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0] != b"Z"
    except OSError:
        return False


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def holds_open(pid, path):
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == path
                   for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def environment_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def runs_on(pid, name):
    """Returns whether a process is on this node. A step's srun on one node starts nothing on
    another."""
    marks = [e for e in environment_of(pid) if e.startswith(b"SLURMD_NODENAME=")]
    return not marks or marks == [f"SLURMD_NODENAME={name}".encode()]


def until(what, seconds, condition, step=0.05):
    """Waits for the condition and returns its result."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(step)


class Keeper:
    """The process from which all others of the cluster descend."""

    def __init__(self, folder, lifetime, parent, after, names):
        self.folder = folder
        self.removes = after == "remove"
        self.names = names
        self.parent = parent
        self.end = time.monotonic() + lifetime
        self.ended = threading.Event()

    def run(self):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self.ended.set())
        if self.parent:
            libc.prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG
            if os.getppid() != self.parent:
                return
        (self.folder / "keeper.pid").write_text(f"{os.getpid()}\n")
        try:
            self.start_daemons()
            while not self.ended.wait(0.1) and time.monotonic() < self.end:
                self.restart_nodes()
                reap()
        finally:
            self.end_all()
            if self.removes:
                shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *argv, network=None):
        """Starts a daemon that dies with this process, however that ends."""
        libc = ctypes.CDLL(None)
        of = self.folder / "run" / f"network-{network}"
        enter = ["nsenter", "-t", of.read_text(), "-n", "--"] if of.exists() else []
        subprocess.Popen([*enter, *[str(a) for a in argv]], stdin=subprocess.DEVNULL,
                         env={"PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")},
                         preexec_fn=lambda: libc.prctl(1, signal.SIGKILL, 0, 0, 0))

    def start_daemons(self):
        d = self.folder
        self.start("munged", "--foreground", "--force", f"--key-file={d}/munge.key",
                   f"--socket={d}/run/munge.sock", f"--log-file={d}/munged.log",
                   f"--pid-file={d}/run/munged.pid", f"--seed-file={d}/munge.seed")
        until("munge's socket", 15, (d / "run/munge.sock").exists)
        self.start("slurmctld", "-D", "-f", d / "slurm.conf", network="controller")
        for name in self.names:
            self.start_node(name)

    def start_node(self, name):
        self.start("slurmd", "-D", "-N", name, "-f", self.folder / "slurm.conf", network=name)

    def restart_nodes(self):
        for name in self.names:
            order = self.folder / "run" / f"restart-{name}"
            if order.exists():
                order.unlink()
                self.start_node(name)

    @staticmethod
    def end_all():
        """Kills all descendants until there are none. Those of a killed process become children of
        this one."""
        while True:
            left = descendants(os.getpid())
            for pid in left:
                send(pid, signal.SIGKILL)
            reap()
            if not left:
                return
            time.sleep(0.02)


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    Keeper(pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4],
           sys.argv[5:]).run()
