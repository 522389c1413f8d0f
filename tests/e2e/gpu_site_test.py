"""Tests what doctor, health, metrics, logs and checkpoints report about GPUs. The devices and their
driver are simulated."""

import base64
import json
import subprocess
import unittest

import harness
import launch_harness
from gpu_runs import STANDIN, UUID, GpuRuns


class GpuSite(GpuRuns):
    def test_a_launch_says_why_a_node_is_not_healthy(self):
        complaint = f"health FAILED on n1: GPU 1 ({UUID.format(1)}): uncorrectable memory errors"
        # The agent's own command line contains this text, too, and must not match it.
        health = (f"tr '\\0' ' ' </proc/$PPID/cmdline | grep -q 'node loca[l]0' || exit 0; "
                  f"echo 'a library warns' >&2; echo '{complaint}'; exit 4")
        options = ("--local", 3, "--ranks-per-node", 1, "--spares", 1, "--health", health)
        with launch_harness.Launch(self.config("unhealthy"), options=options) as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
            why = [e["why"] for e in launch.events("excluded")]
        self.assertEqual(len(why), 1, launch.text())
        self.assertIn(complaint, why[0])
        self.assertIn(complaint, launch.text())

    def test_metrics_logs_and_status_name_the_device(self):
        config = self.config("named")
        env = {**self.script(""), "CUDA_VISIBLE_DEVICES": f"5,{UUID.format(3)}",
               "TRIREME_FAULTS": "step.backward:0:1:sleep=1.5"}  # power is a mean over a second
        result = harness.must(harness.run("train", config, ranks=2, env=env))
        self.assertIn("computes on a simulated CUDA device", result.stderr)
        for rank, number in enumerate([5, 3]):
            log = harness.run_dir(config) / f"logs/rank-{rank:05}.jsonl"
            text = log.read_text()
            # The index counts the devices that the rank sees, so it does not identify one.
            self.assertRegex(text, rf"rank {rank} computes on simulated CUDA device \d+ \([^()]*"
                             + UUID.format(number))
            lines = [json.loads(line) for line in text.splitlines()]
            device = next(line for line in lines if line.get("event") == "device")
            self.assertEqual(device["uuid"], UUID.format(number))
            self.assertTrue(device["simulated"])
        first, last = harness.metrics(config)
        self.assertEqual(last["device"], "simulated CUDA device")
        # Each reading of the two counters, after each step and around each save, adds one joule.
        self.assertAlmostEqual(first["gpu_joules_per_step"], 2.0)
        self.assertAlmostEqual(first["gpu_joules_per_token"], 2.0 / 16)
        self.assertGreaterEqual(last["gpu_joules_per_checkpoint"], 2.0)
        status = harness.must(harness.run("status", harness.run_dir(config), "--json"))
        self.assertEqual(json.loads(status.stdout)["device"], "simulated CUDA device")
        config = self.config("unread")
        env = self.script("0 energy_mj unsupported\n")
        harness.must(harness.run("train", config, ranks=2, env=env))
        self.assertIsNone(harness.metrics(config)[-1]["gpu_joules_per_step"])

    def test_checkpoints_state_the_energy_of_the_gpus(self):
        key = self.folder / "evidence"
        harness.must(harness.run("audit", "keygen", "--out", key))
        for name, text in (("stated", ""), ("unstated", "1 energy_mj unsupported\n")):
            config = self.config(name, audit__key=key, checkpoint__every=2)
            harness.must(harness.run("train", config, ranks=2, env=self.script(text)))
            bundle = harness.run_dir(config) / "checkpoints/step-00000002/provenance.intoto.jsonl"
            payload = json.loads(bundle.read_text().splitlines()[0])["payload"]
            statement = json.loads(base64.b64decode(payload))["predicate"]["buildDefinition"]
            energy = statement["internalParameters"]["energy"]
            if name == "stated":  # each reading of each GPU adds one joule
                self.assertGreaterEqual(energy["gpu_joules"], 4)
            else:
                self.assertIsNone(energy["gpu_joules"])
                self.assertIn("unknown", energy)

    def test_other_users_of_the_gpus_are_named(self):
        config = self.config("in-use")
        env = self.script("1 process 4711\n1 process_memory 3221225472\n"
                          "2 process 4712\n")  # the second is on a GPU that no rank has
        result = harness.must(harness.run("train", config, ranks=2, env=env))
        self.assertRegex(result.stderr, rf"warning: rank 1 .*shares its GPU .*{UUID.format(1)}.*: "
                         "process 4711 computes on it, with 3 GiB of its memory: expect less speed")
        self.assertNotIn("4712", result.stderr)
        ending = self.script("0 process 4711\n0 process_looks 2\n")  # a rank of an earlier attempt
        result = harness.must(harness.run("train", self.config("ending"), env=ending))
        self.assertNotIn("4711", result.stderr)
        # The shell becomes the program, which then is the process in the script.
        own = self.folder / "own-process"
        words = harness.command(["train", self.config("own")])
        script = f'echo "0 process $$" > {own}; exec "$@"'
        result = subprocess.run(["sh", "-c", script, "sh", *words],
                                env={**harness.ENVIRONMENT, "TRIREME_SIM_NVML": STANDIN,
                                     "TRIREME_SIM_NVML_SCRIPT": str(own)},
                                capture_output=True, text=True, timeout=240, check=False)
        self.assertNotIn("shares its GPU", harness.must(result).stderr)
        hidden = self.script("0 memory_total 85899345920\n0 memory_used 12884901888\n")
        result = harness.must(harness.run("train", self.config("hidden"), env=hidden))
        self.assertIn("12 GiB of its 80 GiB are in use, by no process that the driver shows",
                      result.stderr)

    def test_benchmarks_refuse_a_simulated_device(self):
        for words in (["bench", "loader", "--data", self.datasets[0]],
                      ["bench", "gemm", "--device", "cuda"],
                      ["plan", "calibrate", self.config("calibrated"), "--out",
                       self.folder / "calibrated-cluster.yaml"]):
            result = harness.run(*words)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn("has no speed", result.stderr)

    def test_doctor_examines_the_gpus(self):
        config = self.config("doctor")
        env = {**self.script("all persistence 0\n1 ecc_uncorrected 2\n2 process 4711\n3 mig 1\n"),
               "TRIREME_SIM_DEVICES": "4", "NCCL_P2P_DISABLE": "1", "NCCL_DEBUG": "WARN"}
        result = harness.run("doctor", config, "--json", env=env)
        self.assertEqual(result.returncode, 4, result.stdout + result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["gpu_back_end"], "simulated CUDA device")
        self.assertRegex(report["devices"][0], "no speed; 4 GPUs .*driver 580.*NCCL 2.28")
        text = "\n".join(f["what"] for f in report["findings"])
        for words in ["4 GPUs for 1 rank", "persistence mode is off for 4 GPUs",
                      f"GPU 1 (simulated_device, {UUID.format(1)}, 0000:02:00.0): uncorrectable",
                      "process 4711 computes on it", "split into MIG slices", "NCCL_P2P_DISABLE=1"]:
            self.assertIn(words, text)
        self.assertNotIn("NCCL_DEBUG", text)
        # Only the GPUs that the launch sees are judged, and those that its ranks get are errors.
        for script, words in [("1 handle lost\n", "GPU 1, which this launch does not see"),
                              ("3 compute_mode 2\n2 mig 1\n2 process 77\n", "no problems found")]:
            env = {**self.script(script), "CUDA_VISIBLE_DEVICES": "0"}
            other = harness.run("doctor", config, env=env)
            self.assertIn(words, other.stdout)
            self.assertNotIn("exit code 76", other.stdout)
            self.assertNotIn("MIG", other.stdout)
            self.assertNotIn("process 77", other.stdout)
        env = self.script("3 compute_mode 2\n")
        idle = harness.run("doctor", config, env=env)
        self.assertEqual(idle.returncode, 4, idle.stdout)
        self.assertIn("no rank of this launch gets it", idle.stdout)
        busy = harness.run("doctor", config, env=self.script("0 process 4711\n0 compute_mode 3\n"))
        self.assertEqual(busy.returncode, 76, busy.stdout)
        self.assertNotIn("it will run", busy.stdout)
        self.assertNotIn("what is left", busy.stdout)
        lost = harness.run("doctor", config, env=self.script("0 memory_total lost\n"))
        self.assertEqual(lost.returncode, 76, lost.stdout)
        self.assertIn("GPU is lost", lost.stdout)
        self.assertIn("device ", lost.stdout)

    def test_health_examines_the_gpus(self):
        env = self.script("0 ecc_uncorrected 3\n1 clock_reasons 0x40\n")
        result = harness.run("health", "--json", "--seconds", 600, "--dir", self.folder, env=env)
        self.assertEqual(result.returncode, 4, result.stdout + result.stderr)
        report = json.loads(result.stdout)
        text = "\n".join(report["complaints"])
        self.assertIn("uncorrectable memory errors since the driver was loaded: 3", text)
        self.assertIn("hw_thermal_slowdown", text)
        self.assertIn("rates of GPUs: a simulated CUDA device has no speed", report["notes"])
        self.assertFalse([name for name in report["rates"] if name.startswith("GPU")])
        self.assertEqual(report["facts"]["GPUs"], "8")
        self.assertEqual(report["gpus"][1]["uuid"], UUID.format(1))
        hot = self.script("1 later_clock_reasons 0x40\n")
        result = harness.run("health", "--seconds", 600, "--dir", self.folder, env=hot)
        self.assertEqual(result.returncode, 4, result.stdout + result.stderr)
        self.assertIn("hw_thermal_slowdown", result.stdout)
        result = harness.must(harness.run("health", "--seconds", 600, "--dir", self.folder,
                                          env={"TRIREME_SIM_DRIVER": "0"}))
        self.assertIn("; not examined: GPUs: no NVIDIA driver is loaded", result.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
