"""Tests for running jobs on GPUs: faults of GPUs under `trireme launch`, and GPUs that do not fit a
job. The devices and their driver are simulated."""

import json
import subprocess
import unittest

import harness
import launch_harness
from gpu_runs import SIMULATED, UUID, GpuRuns


class GpuOperations(GpuRuns):
    # Faults of GPUs

    def test_every_kind_of_fault_ends_with_the_same_bits(self):
        """One launch, with another fault in each attempt."""
        steps = 30
        whole = self.config("whole", train__steps=steps)
        harness.must(harness.run("train", whole, ranks=2))
        config = self.config("faulty", train__steps=steps, checkpoint__every=1,
                             comm__deadline__step=4)
        faults = [
            "cudaLaunchKernelEx@1/0:150:cudaErrorLaunchFailure:later",
            "cudaMemcpyAsync@2/0:40:cudaErrorECCUncorrectable",
            "cudaEventRecord@3/1:60:cudaErrorUnknown",  # with an XID: it has fallen off the bus
            "1@4:12:error",
            "1@5:12:hang",
            "cudaMalloc@6/0:3:cudaErrorMemoryAllocation",
        ]
        env = {**self.script("1 xid 79\n"), "TRIREME_SIM_FAULT": ",".join(faults)}
        options = ("--local", 7, "--ranks-per-node", 1, "--spares", 5)
        with launch_harness.Launch(config, options=options, env=env) as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
            ends = launch.events("attempt_end")
            excluded = launch.events("excluded")
            begun = [e["from"] for e in launch.events("first_step")]
        causes = ["device"] * 5 + ["out_of_memory", "finished"]
        self.assertEqual([e["cause"] for e in ends], causes, launch.text())
        words = ["unspecified launch failure", "cudaErrorECCUncorrectable", "XID 79", "XID 79",
                 "XID 79", "out of memory"]
        for number, (end, word) in enumerate(zip(ends, words)):
            with self.subTest(attempt=number + 1):
                self.assertIn(word, end["what"])
                rank = 0 if number in (0, 1, 5) else 1
                self.assertIn(f"rank {rank} on", end["what"])
                self.assertIn(UUID.format(rank), end["what"])
                self.assertIn(f"0000:0{rank + 1}:00.0", end["what"])
        self.assertEqual(begun, sorted(begun))
        self.assertGreater(begun[-1], begun[0])  # from a checkpoint
        self.assertEqual(len(excluded), 5)  # a node is not blamed for too little memory
        self.assertEqual(harness.digest(config), harness.digest(whole))
        self.assertEqual(harness.loss_bits(config), harness.loss_bits(whole))

    def test_a_full_gpu_is_no_fault_of_its_node(self):
        full = ":1:cudaErrorMemoryAllocation"
        for call in ("cudaSetDevice", "cudaMemGetInfo"):
            with self.subTest(call):
                config = self.config(f"full-{call}")
                result = harness.run("train", config, env={"TRIREME_SIM_FAULT": call + full})
                self.assertEqual(result.returncode, 76, result.stderr)
                reason = self.reason(config)
                self.assertEqual(reason["kind"], "memory")
                self.assertIn("too little left for this process to begin to use it",
                              reason["message"])
                self.assertNotIn("batch", reason["message"])
        config = self.config("full-once")
        env = {"TRIREME_SIM_FAULT": "cudaSetDevice@1/1" + full}
        options = ("--local", 3, "--ranks-per-node", 1, "--spares", 1)
        with launch_harness.Launch(config, options=options, env=env) as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
            causes = [e["cause"] for e in launch.events("attempt_end")]
            self.assertEqual(causes, ["out_of_memory", "finished"], launch.text())
            self.assertEqual(launch.events("excluded"), [])
            self.assertIn(UUID.format(1), launch.events("attempt_end")[0]["what"])

    def test_a_fault_during_the_checks_of_algorithms_is_named(self):
        for number in range(1, 8):
            config = self.config(f"trial-{number}")
            fault = f"cudaStreamSynchronize:{number}:cudaErrorECCUncorrectable"
            result = harness.run("train", config, env={"TRIREME_SIM_FAULT": fault})
            self.assertEqual(result.returncode, 76, result.stderr)
            message = self.reason(config)["message"]
            self.assertIn("cudaErrorECCUncorrectable", message)
            self.assertIn("drain the node and reset the GPU", message)

    def test_the_exit_reason_names_the_device(self):
        config = self.config("reason")
        env = {"TRIREME_SIM_FAULT": "cudaLaunchKernelEx@1/1:20:cudaErrorLaunchFailure"}
        result = harness.run("train", config, ranks=2, env=env)
        self.assertEqual(result.returncode, 76, result.stderr)
        reason = self.reason(config)
        self.assertEqual((reason["code"], reason["kind"], reason["rank"]), (76, "device", 1))
        self.assertEqual(reason["device"]["uuid"], UUID.format(1))
        self.assertEqual(reason["device"]["bus"], "0000:02:00.0")
        self.assertTrue(reason["device"]["simulated"])
        for word in [UUID.format(1), "0000:02:00.0", reason["host"], "cudaErrorLaunchFailure"]:
            self.assertIn(word, reason["message"])

    # GPUs that do not fit the job

    def test_gpus_that_do_not_fit_the_job_are_refused(self):
        mps = self.folder / "mps"
        mps.mkdir()
        (mps / "control").touch()
        busy = "cudaMemGetInfo@1/1:1:cudaErrorDevicesUnavailable"
        by_whom = self.script("1 process 4711\n1 compute_mode 3\n")
        mig = {"TRIREME_SIM_NAMES": "A MIG 1g.10gb,A MIG 1g.10gb"}
        unlike = {"TRIREME_SIM_NAMES": "A,B"}
        old = {"TRIREME_SIM_DRIVER": "12020"}
        broken = {"TRIREME_SIM_FAULT": "cudaGetDeviceCount:1:cudaErrorECCUncorrectable"}
        mismatch = {"TRIREME_SIM_FAULT": "cudaGetDeviceCount:1:cudaErrorSystemDriverMismatch"}
        fabric = {"TRIREME_SIM_FAULT": "cudaGetDeviceCount:1:cudaErrorSystemNotReady"}
        lost = {"TRIREME_SIM_FAULT": "cudaGetDeviceProperties:2:cudaErrorECCUncorrectable"}
        for name, env, ranks, code, words in [
            ("no-driver", {"TRIREME_SIM_DRIVER": "0"}, 1, 2, "no NVIDIA driver is loaded"),
            ("old-driver", old, 1, 2,
             "the driver supports CUDA 12.2, but this program needs 13.0"),
            ("none-visible", {"CUDA_VISIBLE_DEVICES": ""}, 1, 2,
             "CUDA_VISIBLE_DEVICES is '', which hides all GPUs: nvidia-smi -L lists"),
            ("wrong-visible", {"CUDA_VISIBLE_DEVICES": "9"}, 1, 2,
             "CUDA_VISIBLE_DEVICES is '9', but its first entry names no GPU"),
            ("none", {"TRIREME_SIM_DEVICES": "0", **self.script("")}, 1, 2,
             "ask for GPUs (--gpus-per-node) (the driver reports 0 GPUs on this host)"),
            ("prohibited", {"TRIREME_SIM_FAULT": "cudaMemGetInfo:1:cudaErrorDevicesUnavailable",
                            **self.script("0 compute_mode 2\n")}, 1, 76,
             "(its compute mode prohibits computing: nvidia-smi -c 0 allows it)"),
            ("few", {"CUDA_VISIBLE_DEVICES": "5,6"}, 3, 2, "2 CUDA devices for 3 ranks"),
            ("busy", {"TRIREME_SIM_FAULT": busy}, 2, 76, "another process has it exclusively"),
            ("by-whom", {"TRIREME_SIM_FAULT": busy, **by_whom}, 2, 76,
             "(process 4711 computes on it"),
            ("slice", mig, 1, 2, "a MIG slice"),
            ("unlike", unlike, 2, 2, "unlike GPUs may give other bits"),
            ("mps", {"CUDA_MPS_PIPE_DIRECTORY": str(mps)}, 1, 2, "multi-process service"),
            ("shared", {"TRIREME_SIM_DEVICES": "1"}, 2, 2, "have 1 GPU for 2 ranks"),
            ("broken", broken, 1, 76, "uncorrectable ECC error"),
            ("lost", lost, 1, 76, "cudaErrorECCUncorrectable"),
            ("no-nccl", {"TRIREME_SIM_NCCL": "0"}, 2, 2, "NCCL, which connects GPUs, cannot"),
            ("no-cublaslt", {"TRIREME_SIM_CUBLASLT": "0"}, 1, 2, "install cuBLAS of the CUDA"),
            ("one-no-nccl", {"TRIREME_SIM_NCCL": "0"}, 1, 2, "NCCL, which connects GPUs, cannot"),
            ("auto-no-nccl", {"TRIREME_SIM_NCCL": "0"}, 1, 2, "set train.device=cpu"),
            ("old-nccl", {"TRIREME_SIM_NCCL": "22105"}, 2, 2, "NCCL 2.21.5, but this program"),
            ("no-code", {"TRIREME_SIM_CAPABILITY": "70"}, 2, 2,
             "has compute capability 7.0, but this program was built for 8.0 and 9.0: use GPUs of"),
            ("newer", {"TRIREME_SIM_CAPABILITY": "100"}, 1, 2, "CMAKE_CUDA_ARCHITECTURES=100-real"),
            ("auto-no-code", {"TRIREME_SIM_CAPABILITY": "70"}, 1, 2, "train.device=cpu"),
            ("mismatch", mismatch, 1, 76, "after an update: restart the node"),
            ("fabric", fabric, 1, 76, "nvidia-fabricmanager"),
            ("auto-old-driver", old, 1, 2, "set train.device=cpu"),
            ("auto-broken", broken, 1, 76, "set train.device=cpu"),
        ]:
            with self.subTest(name):
                device = "train.device=" + ("auto" if name.startswith("auto") else "cuda")
                result = harness.run("train", self.config(name), device, ranks=ranks, env=env)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(words, result.stderr)
                self.assertNotIn("insufficient for CUDA runtime", result.stderr)
        for name, env, key in [("slice", mig, "train.share_device=true"),
                               ("unlike", unlike, "numerics.reproducibility=fast")]:
            with self.subTest(name, allowed=key):
                result = harness.run("train", self.config(name), key, ranks=2, env=env)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("warning", result.stderr)

    def ranks_of_two_kinds(self, first, second, *command):
        """Returns what a command does on two ranks that have an environment each."""
        parts = []
        for env in (first, second):
            variables = [word for key, value in env.items() for word in ("-x", f"{key}={value}")]
            parts.append(["-n", "1", *variables, SIMULATED, *map(str, command)])
        return subprocess.run([harness.MPIEXEC, *parts[0], ":", *parts[1]],
                              env=harness.ENVIRONMENT, capture_output=True, text=True, timeout=240,
                              check=False)

    def test_gpus_for_which_there_is_no_code_are_refused(self):
        config = self.config("code")
        harness.must(harness.run("train", config))
        old = {"TRIREME_SIM_CAPABILITY": "75"}
        words = "has compute capability 7.5, but this program was built for 8.0 and 9.0"
        generate = ("generate", "--checkpoint", harness.run_dir(config) / "checkpoints",
                    "--tokens", 1, "--device", "cuda")
        for result in [harness.run("doctor", config, env=old), harness.run(*generate, env=old),
                       self.ranks_of_two_kinds({}, old, "train", self.config("one-code"))]:
            output = result.stdout + result.stderr
            self.assertEqual(result.returncode, 2, output)
            self.assertIn(words, output)
            self.assertIn(UUID.format(1 if "rank 1" in output else 0), output)
        harness.must(harness.run("train", self.config("8.6"), env={"TRIREME_SIM_CAPABILITY": "86"}))

    def test_a_node_without_a_library_is_at_fault(self):
        for variable, words in [("NCCL", "NCCL, which connects GPUs, cannot be loaded"),
                                ("CUBLASLT", "cuBLASLt, which computes matrix products, cannot"),
                                ("DRIVER", "no NVIDIA driver is loaded")]:
            with self.subTest(variable):
                config = self.config(f"lacks-{variable}")
                lacks = {f"TRIREME_SIM_{variable}": "0"}
                for command in ("train", "doctor"):
                    result = self.ranks_of_two_kinds({}, lacks, command, config)
                    output = result.stdout + result.stderr
                    self.assertEqual(result.returncode, 76, output)
                    self.assertIn("rank 1", output)
                    self.assertIn(words, output)
                    self.assertIn("LD_LIBRARY_PATH" if variable != "DRIVER" else "libcuda.so.1",
                                  output)

    def test_what_needs_no_nccl_works_without_it(self):
        config = self.config("trained")
        harness.must(harness.run("train", config))
        checkpoint = ("--checkpoint", harness.run_dir(config) / "checkpoints")
        health = ("health", "--json", "--seconds", 600, "--dir", self.folder)
        for words in [("eval", *checkpoint, "--data", self.datasets[1], "--samples", 2, "--device",
                       "cuda"),
                      ("generate", *checkpoint, "--tokens", 1, "--device", "cuda")]:
            with self.subTest(words[0]):
                for env in ({}, {"TRIREME_SIM_DEVICES": "1"}):
                    result = harness.must(
                        harness.run(*words, env={"TRIREME_SIM_NCCL": "0", **env}))
                    self.assertIn("computes on simulated CUDA device 0", result.stderr)
                for variable, lack in [("CUBLASLT", "cuBLASLt, which computes matrix products"),
                                       ("DRIVER", "no NVIDIA driver is loaded")]:
                    result = harness.run(*words, env={f"TRIREME_SIM_{variable}": "0"})
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn(lack, result.stderr)
        with self.subTest("health"):
            env = {**self.script(""), "TRIREME_SIM_DEVICES": "1"}
            result = harness.run(*health, env={**env, "TRIREME_SIM_NCCL": "0"})
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            result = harness.run(*health, env={**env, "TRIREME_SIM_CUBLASLT": "0"})
            self.assertEqual(result.returncode, 4, result.stdout + result.stderr)
            self.assertIn("GPUs: none can be used: cuBLASLt", result.stdout)
        result = harness.run("doctor", config, "--json", env={"TRIREME_SIM_NCCL": "0"})
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        report = json.loads(result.stdout)
        self.assertTrue(report["devices"][0].endswith(", no NCCL"), report["devices"])

    def test_without_the_libraries_cpus_still_compute(self):
        lacks = {"TRIREME_SIM_NCCL": "0", "TRIREME_SIM_CUBLASLT": "0", "TRIREME_SIM_DRIVER": "0"}
        version = json.loads(harness.must(harness.run("--version", "--json", env=lacks)).stdout)
        self.assertEqual(version["built_with"]["nccl"], "NCCL 2.28.9")
        for device in ("cpu", "auto"):
            config = self.config(f"without-{device}")
            result = harness.run("train", config, f"train.device={device}", ranks=2, env=lacks)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(harness.metrics(config)[-1]["device"], "cpu")
        for env, words in [(lacks, "no NVIDIA driver is loaded"),
                           ({"TRIREME_SIM_DRIVER": "12020"}, "the driver supports CUDA 12.2")]:
            result = harness.run("doctor", config, "train.device=cuda", ranks=2, env=env)
            self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
            self.assertEqual(result.stdout.count(words), 1, result.stdout)

    def test_ranks_share_a_gpu_where_nccl_can(self):
        alone = self.config("alone")
        harness.must(harness.run("train", alone))
        config = self.config("together", train__share_device="true")
        env = {"TRIREME_SIM_DEVICES": "1"}
        result = harness.run("train", config, ranks=2, env=env)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("(this is NCCL 2.28.9)", result.stderr)
        env.update(TRIREME_SIM_NCCL="23000", NCCL_MULTI_RANK_GPU_ENABLE="0")
        self.assertEqual(harness.run("train", config, ranks=2, env=env).returncode, 2)
        env.update(NCCL_MULTI_RANK_GPU_ENABLE="1", NCCL_CUMEM_ENABLE="0")
        result = harness.run("train", config, ranks=2, env=env)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("NCCL_LOCAL_REGISTER=0 in the environment", result.stderr)
        env["NCCL_LOCAL_REGISTER"] = "0"
        harness.must(harness.run("train", config, ranks=2, env=env))
        self.assertEqual(harness.digest(config), harness.digest(alone))
        # The GPU must hold what both ranks need.
        log = (harness.run_dir(config) / "logs/rank-00000.jsonl").read_text()
        events = {line.get("event"): line for line in map(json.loads, log.splitlines())}
        needed = max(rank["total"] for rank in events["memory_predicted"]["devices"])
        env["TRIREME_SIM_MEMORY"] = str(needed * 3 // 2)
        result = harness.run("train", config, f"run.dir={self.folder}/too-small", ranks=2, env=env)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("CUDA device 0 of host", result.stderr)
        self.assertIn("but its 2 ranks need", result.stderr)

    def test_versions_of_nccl_must_agree(self):
        result = self.ranks_of_two_kinds({"TRIREME_SIM_NCCL": "22809"},
                                         {"TRIREME_SIM_NCCL": "22703"}, "train",
                                         self.config("nccl"))
        self.assertEqual(result.returncode, 2, result.stderr)
        for each in ("NCCL 2.28.9", "NCCL 2.27.3", "do not understand each other"):
            self.assertIn(each, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
