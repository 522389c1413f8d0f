"""Tests for running a site with GPUs: faults of GPUs under `trireme launch`, GPUs that do not fit a
job, and what doctor, health, metrics and logs report about them. The devices and their driver are
simulated (tests/device/nvml/library)."""

import base64
import json
import os
import pathlib
import subprocess
import unittest

import harness
import launch_harness

SIMULATED = os.environ["TRIREME_SIM"]
STANDIN = str(pathlib.Path(SIMULATED).with_name("nvml_standin.so"))
UUID = "GPU-73696d75-6c61-7465-6420-6465766963{:02x}"


class GpuOperations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)
        harness.PROGRAM = SIMULATED

    def config(self, name, **keys):
        keys = {
            "data__sequence": 8,
            "model__layers": 1,
            "train__steps": 2,
            "train__global_batch": 2,
            "train__eval_samples": 2,
            "train__device": "cuda",
            "numerics__self_check": "false",
            **keys,
        }
        layers = keys.pop("model__layers")
        path = self.folder / f"{name}.yaml"
        config = harness.write_config(path, self.datasets, "gpt2", "fp32", **keys)
        path.write_text(path.read_text().replace("layers: 5", f"layers: {layers}"))
        return config

    def script(self, text):
        """Returns the environment in which the driver behaves as the script says."""
        path = self.folder / f"driver-{abs(hash(text))}"
        path.write_text(text)
        return {"TRIREME_SIM_NVML": STANDIN, "TRIREME_SIM_NVML_SCRIPT": str(path)}

    def reason(self, config):
        return json.loads((harness.run_dir(config) / "exit_reason.json").read_text())

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

    # Reports about GPUs

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
            self.assertNotIn("76", other.stdout)
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
