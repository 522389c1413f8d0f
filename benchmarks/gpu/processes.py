"""Subprocesses of the suite, which share the time that their part has, and the times at which parts
end."""

import contextlib
import heapq
import os
import signal
import subprocess
import time

GRACE = 5  # seconds that a process has to end by itself when its time is over


class Deadline:
    """The moment at which a part has to end. All subprocesses of the part share it."""

    def __init__(self, seconds):
        self.ends = time.monotonic() + seconds

    def left(self):
        """Returns the seconds until then, or 0 if it has passed."""
        return max(self.ends - time.monotonic(), 0.0)

    def within(self, seconds):
        """Returns the deadline in `seconds` seconds, or this one if it is earlier."""
        return Deadline(min(seconds, self.left()))


def finished(command, deadline, environment=None):
    """Runs a command, and ends it and what it has started if it still runs at the deadline.
    environment: further variables, or None for one that is to be unset."""
    command = [str(word) for word in command]
    limit = deadline.left()
    if limit == 0:
        raise subprocess.TimeoutExpired(command, limit)
    variables = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace",
                          start_new_session=True,
                          env={name: value for name, value in variables.items()
                               if value is not None}) as process:
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.terminate()  # mpirun then ends its ranks
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=GRACE)
            raise
        finally:
            kill_session(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def kill_session(process):
    """Kills a process that leads a session, and all processes that it has left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def output_of(deadline, *command):
    """Returns what a command prints within a minute, or "" if it is missing or fails."""
    try:
        done = finished(command, deadline.within(60))
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def ends_of(seconds, jobs):
    """Returns after how many seconds each part ends, if parts that take so many seconds start in
    this order and `jobs` of them run at a time."""
    free = [0.0] * jobs  # when each job has ended its last part
    ends = []
    for one in seconds:
        ends.append(free[0] + one)
        heapq.heapreplace(free, ends[-1])
    return ends
