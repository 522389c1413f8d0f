"""Helpers for runs under `trireme launch`: start one, disturb it, wait, and check what is left."""

import json
import os
import pathlib
import signal
import subprocess
import time

import harness

SHM = pathlib.Path("/dev/shm")


def memory_group(folder, most_bytes):
    """Makes a control group of version 1 or 2 with this memory limit; returns None if it cannot."""
    for top, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                       ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(top) / f"{folder.name}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(most_bytes))
            return group
        except OSError:
            group.rmdir()
    return None


def limited_memory(test, most_bytes):
    """Returns a program that starts another one in a control group with this memory limit, which
    lasts as long as the test."""
    group = memory_group(test.folder, most_bytes)
    if group is None:
        test.skipTest("needs control groups for memory: run as root, /sys/fs/cgroup writable")
    test.addCleanup(group.rmdir)
    enter = test.folder / "enter.sh"
    enter.write_text(f'#!/bin/sh\necho $$ > {group}/cgroup.procs\nexec "$@"\n')
    enter.chmod(0o755)
    return enter


def processes(**variables):
    """Returns processes that were started with these variables in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                pairs = (entry / "environ").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            wanted = {f"{k}={v}".encode() for k, v in variables.items()}
            if wanted <= set(pairs) and state not in "ZX":
                found.append(int(entry.name))
    return sorted(found)


def deputies(job):
    """Returns the deputies of a Slurm job that have begun to ignore the signals of its end."""
    def is_deputy(pid):
        folder = pathlib.Path(f"/proc/{pid}")
        try:
            ignored = next(line for line in (folder / "status").read_text().splitlines()
                           if line.startswith("SigIgn:"))
            return (b"deputy" in (folder / "cmdline").read_bytes()
                    and int(ignored.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
        except OSError:
            return False  # it has ended
    return [pid for pid in processes(SLURM_JOB_ID=str(job)) if is_deputy(pid)]


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []


def eventually(condition, seconds=60, what="it", more=lambda: ""):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come about within {seconds} s\n{more()}")


class Launch:
    """A supervisor and its processes, as a context manager that ends all of them."""

    def __init__(self, config, *arguments, options=("--local", 2, "--ranks-per-node", 2), env=None,
                 prefix=(), log=None):
        self.run = harness.run_dir(config)
        self.log = log or config.with_suffix(".launch.log")
        self.older = len(self.events())
        words = ["launch", *options, "--", "train", config, *arguments]
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                [*prefix, harness.PROGRAM, *map(str, words)],
                env={**harness.ENVIRONMENT, **(env or {})}, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.ranks() if self.number() else []:
            os.kill(pid, signal.SIGKILL)

    def events(self, name=None):
        """Returns the events of this launch, if `name` is given only those of that kind."""
        path = self.run / "journal.jsonl"
        if not path.exists():
            return []
        events = [json.loads(line) for line in path.read_text().splitlines()]
        events = events[getattr(self, "older", 0):]
        return [e for e in events if name in (None, e["event"])]

    def number(self):
        begun = self.events("begin")
        return begun[-1]["launch"] if begun else None

    def wait_for(self, name, count=1, seconds=90):
        """Waits until `count` events of the kind have happened, and returns the last of them."""
        def there():
            if self.process.poll() is not None and len(self.events(name)) < count:
                raise AssertionError(f"it ended before '{name}':\n{self.text()}")
            return len(self.events(name)) >= count
        eventually(there, seconds, f"event {name}")
        return self.events(name)[count - 1]

    def ranks(self, node=None):
        wanted = {"TRIREME_LAUNCH_ID": self.number()}
        if node is not None:
            wanted["TRIREME_NODE"] = node
        pids = [p for p in processes(**wanted) if "train" in command_line(p)]
        return [p for p in pids if "mpirun" not in command_line(p)[0]]

    def rank(self, number):
        def find():
            pids = processes(TRIREME_LAUNCH_ID=self.number(), OMPI_COMM_WORLD_RANK=number)
            return [p for p in pids if command_line(p)[:2] == ["trireme", "train"]]
        return eventually(find, 30, f"rank {number}")[0]

    def children(self, word):
        """Returns the supervisor's children with this word in their command line."""
        path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(p) for p in path.read_text().split() if word in command_line(int(p))]

    def folders(self):
        return sorted(SHM.glob(f"trireme-*-{self.number()}-*"))

    def wait(self, seconds=150):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end:\n{self.text()}") from None

    def text(self):
        return self.log.read_text(errors="replace")[-6000:]

    def causes(self):
        return [e["cause"] for e in self.events("attempt_end")]

    def report(self):
        return json.loads(harness.must(harness.run("launch", "report", self.run, "--json")).stdout)

    def assert_no_process(self, seconds=10):
        end = time.monotonic() + seconds
        while processes(TRIREME_LAUNCH_ID=self.number()):
            if time.monotonic() > end:
                left = processes(TRIREME_LAUNCH_ID=self.number())
                raise AssertionError(f"left: {[(p, command_line(p)) for p in left]}")
            time.sleep(0.1)

    def assert_nothing_left(self, seconds=10):
        self.assert_no_process(seconds)
        eventually(lambda: not self.folders(), seconds, "no folder")
