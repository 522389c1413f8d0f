"""Runs trireme launch on this machine with two nodes of two ranks, and injects faults. In every
case the bits are those of the uninterrupted run, and nothing is left behind."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import harness
from launch_harness import SHM, Launch, eventually, limited_memory, processes

STEPS = 40
FAULTY = pathlib.Path(harness.PROGRAM).resolve().parent / "tests/support/libtrireme_faulty_calls.so"
SLOW = "step.forward:*:*:sleep=0.02"  # long enough for faults to happen meanwhile


class LaunchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.reference = cls.make_config("reference")
        harness.must(harness.run("train", cls.reference, ranks=4))
        cls.bits = harness.loss_bits(cls.reference)
        cls.digest = harness.digest(cls.reference)

    @classmethod
    def make_config(cls, name, **keys):
        return harness.write_config(
            cls.folder / f"{name}.yaml", cls.datasets, "small", "bf16",
            **{"train__steps": STEPS, "checkpoint__every": 5, **keys})

    def start(self, config, *arguments, faults="", **more):
        plan = f"{SLOW},{faults}" if faults else SLOW
        return Launch(config, *arguments, env={"TRIREME_FAULTS": plan}, **more)

    def at_work(self, launch, attempt=1):
        launch.wait_for("first_step", attempt)
        eventually(lambda: list(launch.run.glob("checkpoints/step-*")), 60, "a checkpoint")

    def assert_same_as_reference(self, config):
        self.assertEqual(self.digest, harness.digest(config))
        self.assertEqual(self.bits, harness.loss_bits(config))

    def assert_good_end(self, launch, config, causes):
        self.assertEqual(launch.wait(), 0, launch.text())
        self.assertEqual(launch.causes(), causes)
        launch.assert_nothing_left()
        self.assert_same_as_reference(config)
        report = launch.report()
        self.assertLess(abs(report["accounted_seconds"] - report["wall_seconds"]),
                        0.01 * report["wall_seconds"])
        return report

    def test_nothing_happens(self):
        config = self.make_config("calm")
        with self.start(config) as launch:
            report = self.assert_good_end(launch, config, ["finished"])
        self.assertEqual(report["failures"], 0)
        self.assertGreater(report["seconds"]["train"], 0)

    def test_a_killed_rank(self):
        for victim in (0, 3):
            config = self.make_config(f"killed-{victim}")
            with self.start(config) as launch:
                self.at_work(launch)
                os.kill(launch.rank(victim), signal.SIGKILL)
                killed = time.time()
                gone = launch.wait_for("rank_gone")
                report = self.assert_good_end(launch, config, ["process_death", "finished"])
            print(f"rank {victim}: known after {gone['time'] - killed:.2f} s, first step "
                  f"{report['attempts'][1]['recovery_seconds']:.2f} s later", flush=True)

    def test_a_stopped_rank(self):
        config = self.make_config("stopped")
        # The others may wait in a step or at its end, where saves are advanced.
        with self.start(config, "comm.deadline.step=3", "comm.deadline.checkpoint=6") as launch:
            self.at_work(launch)
            pid = launch.rank(2)
            os.kill(pid, signal.SIGSTOP)
            self.assert_good_end(launch, config, ["hang", "finished"])
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    # The rank computes forever: its process is alive, but makes no progress.
    def test_a_rank_that_spins(self):
        config = self.make_config("spins")
        with self.start(config, "comm.deadline.step=3",
                        faults="step.backward@1:1:60:spin") as launch:
            self.assert_good_end(launch, config, ["hang", "finished"])
            stack = (launch.run / "logs/rank-00001.stack").read_text()
        frames = re.findall(r"trireme\(\+(0x[0-9a-f]+)\)", stack)
        self.assertGreater(len(frames), 3, stack)
        names = subprocess.run(["addr2line", "-Cfe", harness.PROGRAM, *frames],
                               capture_output=True, text=True, check=False)
        if names.returncode == 0:
            self.assertIn("trireme::meet_fault", names.stdout)  # the function in which it spins

    def test_a_killed_agent(self):
        config = self.make_config("agent")
        with self.start(config) as launch:
            self.at_work(launch)
            os.kill(launch.children("agent")[1], signal.SIGKILL)
            launch.wait_for("agent_lost")
            self.assert_good_end(launch, config, ["finished"])
            self.assertEqual(len(launch.events("agent_ready")), 3)

    def test_a_killed_mpirun(self):
        config = self.make_config("mpirun")
        with self.start(config) as launch:
            self.at_work(launch)
            os.kill(launch.children("mpirun")[0], signal.SIGKILL)
            self.assert_good_end(launch, config, ["process_death", "finished"])

    def test_a_killed_supervisor_leaves_nothing_behind(self):
        config = self.make_config("supervisor")
        with self.start(config) as launch:
            self.at_work(launch)
            self.assertEqual(len(launch.folders()), 2)
            launch.process.kill()
            launch.process.wait()
            launch.assert_nothing_left(10)
        with self.start(config) as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
            self.assert_same_as_reference(config)
            self.assertEqual(launch.report()["launches"], 2)

    def test_a_rank_that_ends_with_code_0(self):
        config = self.make_config("exit0")
        with self.start(config, faults="step.optimizer@1:1:12:exit=0") as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
            self.assertIn(launch.causes()[0], ("process_death", "early_exit"))
            self.assert_same_as_reference(config)

    def test_a_crash_loop_is_given_up(self):
        config = self.make_config("loop", checkpoint__every=20)
        with self.start(config, faults="step.optimizer:1:3:segv") as launch:
            self.assertEqual(launch.wait(), 93, launch.text())
            self.assertEqual(len(launch.causes()), 4)
            launch.assert_nothing_left()
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual(reason["code"], 93)

    def test_out_of_memory_is_tried_three_times(self):
        if b"__asan_init" in pathlib.Path(harness.PROGRAM).read_bytes():
            self.skipTest("AddressSanitizer needs more address space: run another build")
        config = self.make_config("memory")
        options = ("--ranks-per-node", 1, "--launcher-arg=prlimit",
                   "--launcher-arg=--as=1500000000")
        # The weights alone exceed the limit, so the run fails before it computes anything.
        with self.start(config, "model.hidden=3072", "model.heads=24", "model.layers=5",
                        "run.memory_check=off", options=options) as launch:
            self.assertEqual(launch.wait(), 2, launch.text())
            self.assertEqual(launch.causes(), ["out_of_memory"] * 3)
            self.assertIn("micro_batch", launch.text())

    # The chosen step applies until the run has saved a step of its own.
    def test_a_start_from_a_chosen_step_goes_on_when_a_rank_dies(self):
        config = self.make_config("chosen", checkpoint__keep=4)
        with self.start(config, "checkpoint.resume=never") as launch:
            self.at_work(launch)
            os.kill(launch.rank(1), signal.SIGKILL)
            self.assert_good_end(launch, config, ["process_death", "finished"])
        (harness.run_dir(config) / "DONE").unlink()
        dies = "step.forward@1:1:25:kill"  # at step 38: the save of step 35 follows that of step 30
        with self.start(config, "checkpoint.resume=25", faults=dies) as launch:
            self.assert_good_end(launch, config, ["process_death", "finished"])
            first = [e["from"] for e in launch.events("first_step")]
            self.assertEqual(first[0], 25)
            self.assertGreater(first[1], 25)

    # The ranks are refused before they have the folder in which they could write the reason.
    def test_a_launch_into_a_used_folder_is_refused_without_a_trace(self):
        config = self.make_config("taken")
        log = self.folder / "taken.log"
        other = harness.start("train", config, "checkpoint.every=0", ranks=1, log=log,
                              env={"TRIREME_FAULTS": "step.forward:0:3:sleep=60"})
        try:
            eventually(lambda: (harness.run_dir(config) / "metrics.jsonl").exists(), 60, "a run")
            with self.start(config) as launch:
                self.assertEqual(launch.wait(), 77, launch.text())
                self.assertIn("another run", launch.text())
                self.assertEqual(launch.events(), [])
            state = json.loads(harness.must(
                harness.run("status", harness.run_dir(config), "--json")).stdout)
            self.assertEqual((state["state"], state["last_fault"]), ("running", None))
        finally:
            harness.end_group(other)

    def test_one_launch_a_run(self):
        config = self.make_config("twice")
        with self.start(config) as launch:
            launch.wait_for("first_step")
            second = harness.run("launch", "--", "train", config)
            self.assertEqual(second.returncode, 77, second.stderr)
            self.assertIn("another trireme launch", second.stderr)
            self.assert_good_end(launch, config, ["finished"])

    # The node has room for one run, but not for another one beside what the first has left in
    # memory.
    def test_checkpoints_in_memory_make_room_for_their_successors(self):
        alone = self.make_config("alone", train__steps=2, checkpoint__memory_every=2)
        config = self.make_config("room", train__steps=12, checkpoint__memory_every=2)
        model = ("model.hidden=512", "model.heads=8", "model.layers=4")
        options = ["--local", 1, "--ranks-per-node", 1]
        with Launch(alone, *model, options=options) as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
        plan = harness.predicted_memory(alone)[0]
        enter = limited_memory(self, plan["total"] + plan["snapshot"] // 3)
        with self.start(config, *model, options=[*options, "--launcher-arg", enter]) as launch:
            launch.wait_for("first_step")
            eventually(lambda: len(list(SHM.glob(
                f"trireme-*-{launch.number()}-*/memory/own/step-*"))) >= 2, 60, "two steps")
            os.kill(launch.rank(0), signal.SIGKILL)
            self.assertEqual(launch.wait(), 0, launch.text())
            self.assertEqual(launch.causes(), ["process_death", "finished"])
            launch.assert_nothing_left()

    # The run's file system hangs for longer than agents wait for a message of the supervisor.
    def test_a_file_system_that_hangs_under_the_journal(self):
        config = self.make_config("hangs")
        # The steps sleep, so that the run lasts long with little computation.
        env = {"LD_PRELOAD": str(FAULTY), "TRIREME_FAULTS": "step.forward:*:*:sleep=0.1",
               "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
               "TRIREME_FAULTY_CALLS": "*/journal.jsonl|write|5|delay=15"}
        with Launch(config, "train.steps=80", "checkpoint.every=20", env=env) as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
            self.assertEqual(launch.causes(), ["finished"])
            self.assertEqual(len(launch.events("agent_ready")), 2)
            launch.assert_nothing_left()

    # A stop does not wait for a hanging file system, neither before the ranks start nor after they
    # have ended.
    def test_a_stop_while_the_file_system_hangs(self):
        for name, call in (("before", "*/DONE|open|1"), ("after", "*/DONE|open|2")):
            with self.subTest(name):
                config = self.make_config(f"stop-{name}", train__steps=400)
                env = {"LD_PRELOAD": str(FAULTY), "TRIREME_FAULTS": SLOW,
                       "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
                       "TRIREME_FAULTY_CALLS": f"{call}|delay=300"}
                with Launch(config, env=env) as launch:
                    launch.wait_for("launch" if name == "before" else "first_step")
                    launch.process.send_signal(signal.SIGTERM)
                    self.assertEqual(launch.wait(), 75, launch.text())
                    self.assertIn("ending without writing to it", launch.text())
                    launch.assert_nothing_left()

    def test_root_is_told_at_once_what_mpirun_wants(self):
        if os.geteuid() != 0:
            self.skipTest("mpirun refuses only root: run as root")
        config = self.make_config("root")
        result = harness.run("launch", "--", "train", config, env={"OMPI_ALLOW_RUN_AS_ROOT": ""})
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", result.stderr)
        doctor = harness.run("doctor", config, env={"OMPI_ALLOW_RUN_AS_ROOT": ""})
        self.assertIn("mpirun refuses to run as root", doctor.stdout)

    # mpirun crashes or hangs under some of these, and would do so in four attempts.
    def test_limits_that_are_too_low_are_named_at_once(self):
        config = self.make_config("limits")
        for limit in ["ulimit -n 20", "ulimit -f 1", "ulimit -v 300000", "ulimit -s 64"]:
            with self.subTest(limit):
                limited = ["bash", "-c", f'{limit} && exec "$@"', "bash"]
                result = subprocess.run(
                    limited + harness.command(["launch", "--", "train", config]), text=True,
                    env=harness.ENVIRONMENT, capture_output=True, timeout=60, check=False)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(limit[:len("ulimit -x")], result.stderr)
                self.assertFalse(harness.run_dir(config).exists())

    # Some daemons ignore SIGCHLD, and their children inherit that.
    def test_where_sigchld_is_ignored(self):
        config = self.make_config("sigchld")
        ignoring = ("/bin/sh", "-c", 'trap "" CHLD; exec "$@"', "sh")
        with self.start(config, prefix=ignoring) as launch:
            self.assert_good_end(launch, config, ["finished"])

    def test_what_only_a_person_can_mend_is_not_repeated(self):
        config = self.make_config("data")
        harness.must(harness.run("train", config, "train.steps=5", "optimizer.schedule.steps=40",
                                 ranks=2))
        shard = next(harness.run_dir(config).glob("checkpoints/step-*/shard-00000.safetensors"))
        shard.write_bytes(shard.read_bytes()[:-1])
        with self.start(config) as launch:
            self.assertEqual(launch.wait(), 65, launch.text())
            self.assertEqual(launch.causes(), ["data"])
        for number, wrong in enumerate(["no.such.key=1", "train.device=cuda"]):
            config = self.make_config(f"wrong-{number}")
            with self.start(config, wrong) as launch:
                self.assertEqual(launch.wait(), 2, launch.text())
                self.assertIn(launch.causes(), [[], ["usage"]])
                self.assertNotIn("left out", launch.text())

    def test_signals_save_and_ask_for_a_requeue(self):
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            config = self.make_config(f"signal-{number}", checkpoint__every=0)
            with self.start(config) as launch:
                launch.wait_for("first_step")
                launch.process.send_signal(number)
                self.assertEqual(launch.wait(), 75, launch.text())
                self.assertEqual(launch.causes(), ["stopped"])
                launch.assert_nothing_left()
            saved = harness.run("ckpt", "verify", harness.run_dir(config) / "checkpoints")
            self.assertEqual(saved.returncode, 0, saved.stderr)
        with self.start(config) as launch:  # after the last of these signals
            self.assert_good_end(launch, config, ["finished"])
            self.assertGreater(launch.events("first_step")[0]["from"], 0)

    def test_a_second_signal_does_not_claim_a_save(self):
        config = self.make_config("second-signal", checkpoint__every=0)
        with self.start(config, options=("--ranks-per-node", 2),
                        faults="step.forward:*:*:sleep=4") as launch:
            launch.wait_for("first_step")
            for count in (1, 2):  # two pending signals of one kind would be one
                launch.process.send_signal(signal.SIGTERM)
                launch.wait_for("stop_asked", count)
            self.assertEqual(launch.wait(), 128 + signal.SIGTERM, launch.text())
            self.assertEqual(launch.text().count("not saved: a second signal (SIGTERM)"), 1)
            launch.assert_nothing_left()
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual((reason["code"], reason["step"], reason["phase"]), (143, 1, "train"))
        self.assertIn("the last step was 1, and there is no checkpoint", reason["message"])
        state = harness.must(harness.run("status", harness.run_dir(config))).stdout
        self.assertIn("state       interrupted: not saved: a second signal", state)

    def test_a_failed_health_check_leaves_a_node_out(self):
        config = self.make_config("unfit")
        sites = self.folder / "bad-nodes"
        options = ("--local", 3, "--ranks-per-node", 2, "--spares", 1, "--site-list", sites)
        # The agent's own command line contains this text, too, and must not match it.
        check = "! tr '\\0' ' ' </proc/$PPID/cmdline | grep -q 'node loca[l]0'"
        with self.start(config, options=(*options, "--health", check)) as launch:
            self.assert_good_end(launch, config, ["finished"])
            self.assertEqual(launch.events("launch")[0]["nodes"], ["local1", "local2"])
        self.assertIn("local0\t", sites.read_text())
        with self.start(config, "train.steps=41", options=options) as launch:
            launch.wait()
            self.assertEqual(launch.events("excluded")[0]["node"], "local0")

    def test_fewer_nodes_where_the_layout_allows(self):
        config = self.make_config("smaller")
        options = ("--local", 2, "--ranks-per-node", 2, "--min-nodes", 1, "--health",
                   "! tr '\\0' ' ' </proc/$PPID/cmdline | grep -q 'node loca[l]1'")
        with self.start(config, options=options) as launch:
            self.assert_good_end(launch, config, ["finished"])
            self.assertEqual(launch.events("launch")[0]["ranks"], 2)

    def test_no_rank_of_this_test_is_left(self):
        eventually(lambda: not processes(TRIREME_NODE="local0"), 10, "an empty machine")


if __name__ == "__main__":
    unittest.main(verbosity=2)
