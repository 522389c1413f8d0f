"""A rank dies or stops in the middle of every operation over every transport. Every rank that can
report names it, the job ends, and no process and no memory is left. A death has to be noticed by
itself: the deadline of operations is far beyond the time that a run may take.
    faults_test.py FAULT_RANKS BACKEND,... MPIRUN..."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

STOP_DEADLINE, DEATH_DEADLINE = 2, 600
PROGRAM, BACKENDS, MPIRUN = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
RANKS = {"hierarchical": 4}
OPERATIONS = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "send",
              "recv"]
# mpirun kills ranks that do not end when it asks them to, but not before they have reported.
PATIENCE = ["--mca", "odls_base_sigkill_timeout", "4"]

OWN_MOUNTS = os.path.join(os.path.dirname(__file__), "../../support/own_mounts.sh")

failures = []


def expected_names(backend):
    kinds = ["small", "large"] + (["in_place"] if backend in ("shm", "hierarchical") else [])
    return {"barrier"} | {f"{o}/{k}" for o in OPERATIONS for k in kinds}


def processes_of(folder):
    """Returns the ranks, whose command lines contain their folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0] == PROGRAM.encode() and folder.encode() in words:
            found.append(int(pid))
    return found


def in_own_memory(words):
    """Gives the command a /dev/shm of its own if the test may, and lists what remains there."""
    if os.geteuid() != 0:
        return words
    script = ('mount -t tmpfs none /dev/shm || exit 99; "$@"; code=$?; '
              'for each in $(ls -A /dev/shm); do echo "left behind: $each"; done; exit $code')
    return [OWN_MOUNTS, "sh", "-c", script, "sh", *words]


class Run:
    def __init__(self, backend, fault, victim):
        self.backend, self.fault, self.victim = backend, fault, victim
        self.ranks = RANKS.get(backend, 3)
        self.reports = {}

    def run(self):
        with tempfile.TemporaryDirectory(prefix="trireme-faults-") as folder:
            stops = self.fault == "stop"
            words = [*MPIRUN, *([] if stops else PATIENCE), "-n", str(self.ranks), PROGRAM,
                     self.backend, self.fault, str(self.victim),
                     str(STOP_DEADLINE if stops else DEATH_DEADLINE),
                     folder]
            done = subprocess.run(in_own_memory(words), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
            self.code, self.output = done.returncode, done.stdout
            for rank in range(self.ranks):
                self.reports[rank] = self.read(os.path.join(folder, f"rank-{rank}"))
            self.left = processes_of(folder)
        return self

    @staticmethod
    def read(path):
        """Returns {operation: (seconds of the monotonic clock, kind, message)}."""
        if not os.path.exists(path):
            return {}
        with open(path, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        return {name: (int(at) * 1e-9, kind, text) for name, at, kind, text in lines}

    def expect(self, holds, what, shown=""):
        if not holds:
            failures.append(f"{self.backend}, {self.fault} of rank {self.victim}: {what}\n{shown}")

    def check(self):
        self.expect("left behind" not in self.output, "memory was left", self.output)
        self.expect(not self.left, f"processes were left: {self.left}", self.output)
        end = self.reports[self.victim].get("end")
        self.expect(end, "the victim never came so far", self.output)
        if end:
            self.check_fault(end[0])

    def check_fault(self, end):
        if self.fault == "stop":
            self.expect(self.code == 85, f"exit code {self.code}", self.output)
            self.check_messages(end, "hang", "did not answer within")
        elif self.backend == "mpi":
            # The launcher has to notice and report the death.
            self.expect(self.code != 0, "exit code 0", self.output)
            self.expect(f"process rank {self.victim} with PID" in self.output, "not named",
                        self.output)
        else:
            self.expect(self.code != 0, "exit code 0", self.output)
            self.check_messages(end, "communication", "")

    def check_messages(self, end, kind, word):
        names = expected_names(self.backend)
        named = {name: set() for name in names}
        latest = 0
        for rank in set(range(self.ranks)) - {self.victim}:
            for name, (at, its_kind, text) in self.reports[rank].items():
                latest = max(latest, at - end)
                self.expect(its_kind == kind, f"rank {rank}, {name}: {its_kind}", text)
                if f"rank {self.victim} (host " in text and word in text:
                    named[name].add(rank)
                else:
                    self.expect(self.by_neighbours(text), f"rank {rank}, {name}: nobody is named",
                                text)
        for name, ranks in named.items():
            enough = 1 if self.may_be_told() else self.ranks - 1
            self.expect(len(ranks) >= enough, f"{name}: only ranks {ranks} name the culprit",
                        self.output)
        print(f"{self.backend}, {self.fault} of rank {self.victim}: known after {latest:.2f} s")

    def may_be_told(self):
        """Returns whether ranks without a connection to the dead one learn of it from others."""
        return self.fault == "kill" and self.backend in ("ucx", "hierarchical")

    def by_neighbours(self, text):
        told = ("gave up", "stopped communicating", "withdrew its message")
        return self.may_be_told() and any(words in text for words in told)


def main():
    # Once the victim is the rank that is first in every tree, otherwise the last one.
    first = {("shm", "stop")}
    table = [(backend, fault, 0 if (backend, fault) in first else RANKS.get(backend, 3) - 1)
             for fault in ("stop", "kill") for backend in BACKENDS]
    # Two cases run at a time, since most of the time all ranks wait.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for run in pool.map(lambda row: Run(*row).run(), table):
            run.check()
    for text in failures:
        print("FAILED:", text)
    print("every fault was named" if not failures else f"{len(failures)} failures")
    sys.exit(bool(failures))


main()
