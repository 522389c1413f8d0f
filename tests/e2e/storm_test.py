"""A storm: a supervised run of some minutes suffers a random fault every half minute, of every kind
that this machine allows. At its end, the bits are those of an undisturbed run, the journal accounts
for the time, and nothing is left behind.

TRIREME_STORM_SECONDS (300) is the approximate duration, TRIREME_STORM_SEED (1) determines the
faults and their moments, and TRIREME_STORM_MEAN (30) is the mean time between them. Runs of hours
are for a night, not for CI."""

import json
import os
import random
import signal
import time
import unittest

import harness
from launch_harness import Launch, eventually

SECONDS = float(os.environ.get("TRIREME_STORM_SECONDS", 300))
SEED = int(os.environ.get("TRIREME_STORM_SEED", 1))
MEAN = float(os.environ.get("TRIREME_STORM_MEAN", 30))
STEP_SECONDS = 0.1  # sleep in each step, which makes a small model last
RANKS = 4
OPTIONS = ("--local", 3, "--spares", 1, "--ranks-per-node", 2)
ARGUMENTS = ("comm.deadline.step=3", "comm.deadline.checkpoint=10", "comm.deadline.start=30",
             "comm.deadline.evaluate=5")


def newest_step(run):
    return max(run.glob("checkpoints/step-*"), default=None)


class Storm:
    """Injects faults into a launch and restarts it when it ends on request."""

    def __init__(self, start):
        self.start = start
        self.launch = start()
        self.random = random.Random(SEED)
        self.struck = []
        self.flipped = None
        self.actions = [self.kill_rank, self.kill_rank, self.stop_rank, self.hold_rank,
                        self.kill_agent, self.kill_mpirun, self.kill_supervisor, self.ask_to_leave,
                        self.flip_a_byte, self.tear_the_hint]

    def rank(self):
        return self.launch.rank(self.random.randrange(RANKS))

    def kill_rank(self):
        os.kill(self.rank(), signal.SIGKILL)

    def stop_rank(self):
        os.kill(self.rank(), signal.SIGSTOP)

    def hold_rank(self):
        pid = self.rank()
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1)
        os.kill(pid, signal.SIGCONT)

    def kill_agent(self):
        os.kill(self.random.choice(self.launch.children("agent")), signal.SIGKILL)

    def kill_mpirun(self):
        os.kill(self.launch.children("mpirun")[0], signal.SIGKILL)

    def kill_supervisor(self):
        self.launch.process.kill()
        self.launch.process.wait()
        self.launch.assert_no_process(20)
        self.launch = self.start()

    def ask_to_leave(self):
        self.launch.process.send_signal(signal.SIGTERM)
        code = self.launch.wait()
        if code != 75:
            raise AssertionError(f"left with {code} instead of 75:\n{self.launch.text()}")
        self.launch = self.start()

    # Damages the newest step on disk, but never two in a row, as the older one must be valid.
    def flip_a_byte(self):
        newest = newest_step(self.launch.run)
        if newest is None or self.flipped is not None:
            return
        shard = self.random.choice(sorted(newest.glob("shard-*")))
        with open(shard, "r+b") as file:
            place = self.random.randrange(shard.stat().st_size)
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ (1 << self.random.randrange(8))]))
        self.flipped = newest
        self.kill_rank()

    def tear_the_hint(self):
        (self.launch.run / "checkpoints" / "LATEST").write_bytes(self.random.randbytes(100))
        self.kill_rank()

    def strike(self):
        action = self.random.choice(self.actions)
        try:
            action()
        except (ProcessLookupError, IndexError, FileNotFoundError):
            return  # no process to strike, for example between two attempts
        self.struck.append(action.__name__)

    # An attempt may end without a step, if a fault hits it before.
    def is_training_or_over(self):
        kinds = ("launch", "first_step", "attempt_end")
        events = [e["event"] for e in self.launch.events() if e["event"] in kinds]
        return self.launch.process.poll() is not None or events[-1:] == ["first_step"]

    def blow(self):
        """Injects faults until the run has finished."""
        while True:
            end = time.monotonic() + self.random.expovariate(1 / MEAN)
            while time.monotonic() < end:
                if self.launch.process.poll() is not None:
                    return self.launch.process.returncode
                time.sleep(0.05)
            eventually(self.is_training_or_over, 90, "the first step of an attempt")
            if self.launch.process.poll() is None:
                self.strike()


class StormTest(unittest.TestCase):
    def test_the_bits_stay(self):
        folder = harness.workspace()
        datasets = harness.make_datasets(folder)
        steps = max(int(SECONDS / STEP_SECONDS / 1.2), 100)

        def make_config(name):
            return harness.write_config(
                folder / f"{name}.yaml", datasets, "gpt2", "bf16", train__steps=steps,
                train__eval_every=500, checkpoint__every=40, checkpoint__memory_every=10,
                checkpoint__keep=3)

        reference = make_config("reference")
        harness.must(harness.run("train", reference, ranks=2, timeout=SECONDS + 600))
        config = make_config("storm")

        def start():
            # Every rank has two micro-batches per step.
            plan = f"step.forward:*:*:sleep={STEP_SECONDS / 2}"
            return Launch(config, *ARGUMENTS, options=OPTIONS, env={"TRIREME_FAULTS": plan})

        storm = Storm(start)
        print(f"seed {SEED}, a fault every {MEAN:.0f} s", flush=True)
        try:
            code = storm.blow()
            self.assertEqual(code, 0, storm.launch.text())
            storm.launch.assert_nothing_left()
        finally:
            storm.launch.__exit__()
        self.assertEqual(harness.digest(reference), harness.digest(config), storm.struck)
        self.assertEqual(harness.loss_bits(reference), harness.loss_bits(config), storm.struck)
        report = storm.launch.report()
        print(f"{len(storm.struck)} faults: {' '.join(storm.struck)}\n"
              f"{report['wall_seconds']:.0f} s, effective {report['effective_ratio']:.3f}, "
              f"{report['seconds']}", flush=True)
        self.assertLess(abs(report["accounted_seconds"] - report["wall_seconds"]),
                        0.01 * report["wall_seconds"])
        self.check_replay(storm.launch.run)

    # A simulation of the same faults, with all recoveries as long as they were on average, must
    # come to the goodput that was measured.
    def check_replay(self, run):
        out = harness.must(harness.run("plan", "simulate", "--journal", run, "--replay", "--json"))
        replay = json.loads(out.stdout)
        print(f"replay: goodput {replay['measured_goodput']:.4f} measured, "
              f"{replay['simulated_goodput']:.4f} simulated", flush=True)
        self.assertLess(abs(replay["simulated_goodput"] / replay["measured_goodput"] - 1), 0.03)


if __name__ == "__main__":
    unittest.main()
