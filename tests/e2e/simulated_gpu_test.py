"""Tests for training on CUDA devices, with the program that is linked with the simulated device.
Its kernels, streams and NCCL calls are those of the CUDA back end. The digest of a run on one
device is the oracle for all layouts and faults."""

import json
import re
import resource
import unittest

import harness
import launch_harness
from simulated import STEPS, WHOLE, SimulatedTest


class SimulatedGpu(SimulatedTest):
    def test_layouts_have_the_same_bits(self):
        # Recomputation and pipeline stages depend on the family; exchanges do not.
        layouts = [
            (2, "selective", {"train__recompute": "selective"}),
            (4, "dp-pp", {"parallel__pp": 2, "parallel__zero": 1}),
        ]
        more = [(2, "zero", {"parallel__zero": 3})]
        if WHOLE:
            more += [(2, "dp", {}), (2, "pp", {"parallel__pp": 2})]
        for model, chosen in [("gpt2", layouts + more), ("llama", layouts)]:
            with self.subTest(model=model):
                alone = self.trained(f"{model}-1", model=model, train__graphs="off")
                self.assertEqual(sorted(alone[0]), list(range(1, STEPS + 1)))
                for ranks, name, keys in chosen:
                    with self.subTest(layout=name):
                        this = self.trained(f"{model}-{name}", ranks, model=model, **keys)
                        self.assertEqual(alone, this)

    def test_pipeline_schedules_have_the_same_bits(self):
        keys = {"layers": 4, "train__steps": 2}
        alone = self.trained("schedule-none", train__graphs="off", **keys)
        # All streams share one queue of the hardware: nothing may be queued before what it needs.
        one_queue = {"TRIREME_SIM_CONNECTIONS": "1"}
        for schedule, stages in [("1f1b", 1), ("gpipe", 1), ("interleaved", 2),
                                 ("zero_bubble", 1)]:
            with self.subTest(schedule):
                this = self.trained(f"schedule-{schedule}", 2, one_queue, parallel__pp=2,
                                    parallel__schedule=schedule,
                                    parallel__virtual_stages=stages, **keys)
                self.assertEqual(alone, this)

    def test_graphs_are_made_where_they_can_be(self):
        config = self.config("graphs", train__eval_every=2)
        self.assertIn("are recorded as CUDA graphs", self.train(config).stderr)
        # The first micro-batch allocates, the second one is recorded.
        self.assertTrue(all(m["device_graphs"] > 0 for m in harness.metrics(config)))
        without = self.config("no-graphs", train__eval_every=2, train__graphs="off")
        self.assertIn("no CUDA graphs: train.graphs is off", self.train(without).stderr)
        self.assertEqual([m["device_graphs"] for m in harness.metrics(without)], [0] * STEPS)
        self.assertEqual(harness.digest(config), harness.digest(without))
        for key in ["loss_bits", "val_loss_bits"]:
            self.assertEqual(*[[m.get(key) for m in harness.metrics(one)]
                               for one in (config, without)])
        refused = self.config("graphs-refused", train__graphs="on", parallel__zero=3)
        self.assertIn("parallel.zero is 3", self.train(refused, 2, code=2).stderr)

    def test_tensor_parallel_ranks_agree(self):
        heads = ["model.heads=4"]  # which two ranks can divide
        two = self.trained("tp-2", 2, more=heads, parallel__tp=2)
        both = self.trained("tp-4", 4, more=heads, parallel__tp=2, parallel__zero=1)
        self.assertEqual(two, both)

    def test_the_order_of_the_devices_work_does_not_matter(self):
        runs = [
            self.trained(f"seed-{seed}", precision="fp32", env={"TRIREME_SIM_SEED": str(seed)})
            for seed in range(3 if WHOLE else 2)
        ]
        for run in runs:
            self.assertEqual(run, runs[0])

    def test_a_step_waits_once_and_allocates_nothing(self):
        layouts = [
            (0, "alone", ["divergence.digests=true"]),
            (2, "zero", ["parallel.zero=3"]),
            (2, "tp", ["parallel.tp=2", "model.heads=4"]),
            (4, "dp-pp", ["parallel.pp=2", "train.global_batch=8"]),
        ]
        if WHOLE:
            layouts += [
                (2, "pp", ["parallel.pp=2"]),
                (4, "tp-pp", ["parallel.pp=2", "parallel.tp=2", "model.heads=4"]),
                (2, "gpipe", ["parallel.pp=2", "parallel.schedule=gpipe"]),
            ]
        for ranks, name, keys in layouts:
            with self.subTest(layout=name):
                config = self.config(f"waits-{name}")
                self.train(config, ranks, {"TRIREME_SIM_SEED": "1", "TRIREME_SIM_DELAYS": "1"},
                           more=keys)
                # The first step allocates, and the last one is evaluated.
                lines = harness.metrics(config)[1:-1]
                self.assertEqual([m["device_waits"] for m in lines], [1] * (STEPS - 2))
                self.assertEqual([m["device_allocations"] for m in lines], [0] * (STEPS - 2))

    def test_a_save_waits_once_and_allocates_nothing(self):
        config = self.config("saves-alone", checkpoint__every=1)
        self.train(config)
        # For the check of the weights, in addition to the step's own wait.
        lines = harness.metrics(config)[1:-1]
        self.assertEqual([m["device_waits"] for m in lines], [2] * (STEPS - 2))
        self.assertEqual([m["device_allocations"] for m in lines], [0] * (STEPS - 2))
        # Two replicas are compared before each save.
        config = self.config("saves-replicas", checkpoint__every=1)
        self.train(config, 2)
        lines = harness.metrics(config)[1:-1]
        self.assertEqual([m["device_allocations"] for m in lines], [0] * (STEPS - 2))

    def test_saves_beside_the_next_step_hold_one_moment(self):
        saves = {"checkpoint__every": 1, "checkpoint__keep": 10, "parallel__zero": 1}
        at_once = self.config("at-once", checkpoint__async="false", **saves)
        self.train(at_once, 2)
        expected = self.digests_of_steps(at_once)
        self.assertEqual(len(set(expected)), STEPS)
        for seed in [1, 2, 3] if WHOLE else [1]:
            with self.subTest(seed=seed):
                config = self.config(f"beside-{seed}", **saves)
                self.train(config, 2, {"TRIREME_SIM_SEED": str(seed), "TRIREME_SIM_DELAYS": "1"})
                self.assertEqual(self.digests_of_steps(config), expected)

    def test_traces_show_the_devices_time(self):
        config = self.config("traced")
        self.train(config, 2, more=["run.trace=2", "train.steps=5", "parallel.pp=2"])
        summary = json.loads(harness.must(
            harness.run("trace", "summary", harness.run_dir(config) / "trace", "--json")).stdout)
        self.assertEqual(summary["steps"], [3, 4])
        # A kernel of the simulated device takes long, and the call that queues it hardly any time.
        trace = json.loads((harness.run_dir(config) / "trace" / "rank-00000.json").read_text())
        self.assertIn("simulated device", trace["trireme"]["device"])
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["tid"] == 0]
        steps = [e["dur"] for e in spans if e["cat"] == "step"]
        computing = [e["dur"] for e in spans if e["cat"] == "compute"]
        self.assertEqual(len(computing), 2 * 2 * 4)
        self.assertGreater(sum(computing), 0.2 * sum(steps))

    def digests_of_steps(self, config):
        steps = sorted((harness.run_dir(config) / "checkpoints").glob("step-*"))
        return [harness.must(harness.run("ckpt", "digest", step)).stdout for step in steps]

    def test_a_killed_run_resumes(self):
        whole = self.config("whole")
        self.train(whole, 2)
        config = self.config("killed", checkpoint__every=2)
        result = harness.run(
            "train", config, ranks=2, env={"TRIREME_FAULTS": "step.optimizer:1:4:kill"}
        )
        self.assertNotEqual(result.returncode, 0)
        self.train(config, 2)
        self.assertEqual(harness.digest(config), harness.digest(whole))

    def test_losses_are_those_of_the_cpu(self):
        for precision, allowed in [("fp32", 2e-5), ("bf16", 2e-2), ("fp16", 3e-3)]:
            losses = []
            for device in ["cpu", "cuda"]:
                on_host = "fp32" if precision == "fp16" else precision
                config = self.config(f"{precision}-{device}", train__device=device,
                                     precision=on_host if device == "cpu" else precision)
                self.train(config)
                losses.append([m["loss"] for m in harness.metrics(config)])
            for cpu, cuda in zip(*losses):
                self.assertLess(abs(cpu - cuda), allowed, (precision, losses))

    def test_a_rank_that_never_comes_is_named(self):
        config = self.config("hang", comm__deadline__step=3)
        process = harness.start("train", config, ranks=2, log=self.folder / "hang.log",
                                env={"TRIREME_FAULTS": "step.backward:1:3:stop"})
        self.addCleanup(harness.end_group, process)
        code = process.wait(120)
        text = (self.folder / "hang.log").read_text()
        self.assertEqual(code, 85, text)
        self.assertRegex(text, r"rank 1 \([^)]*\) (did not answer|never entered)")

    def test_says_what_it_is(self):
        version = json.loads(harness.must(harness.run("--version", "--json")).stdout)
        self.assertEqual(version["built_with"]["cuda"], "simulated CUDA device")
        config = self.config("named")
        self.assertIn("simulated device", self.train(config).stderr)

    def test_the_self_check_covers_the_device(self):
        config = self.config("checked", numerics__self_check="true")
        self.train(config)
        self.train(self.config("checked-half", precision="fp16", numerics__self_check="true"))
        wrong = {"TRIREME_FAULTS": "start.kernel:0:3:scale=1.5"}
        config = self.config("wrong", numerics__self_check="true")
        stderr = self.train(config, env=wrong, code=76).stderr
        self.assertRegex(stderr, r"self-check: matmul .* of the cuda kernels .* CUDA device 0 of ")
        doctor = harness.run("doctor", config, env=wrong)
        self.assertEqual(doctor.returncode, 76, doctor.stdout)
        self.assertIn("self-check: matmul", doctor.stdout)

    def test_a_device_that_is_missing_is_refused(self):
        for count, ranks, words in [("0", 1, "no CUDA device"), ("2", 4, "2 CUDA devices"),
                                    ("1", 2, "the same CUDA device")]:
            config = self.config(f"few-{count}")
            result = self.train(config, ranks, {"TRIREME_SIM_DEVICES": count}, code=2)
            self.assertIn(words, result.stderr)

    def events(self, config, name):
        log = harness.run_dir(config) / "logs" / "rank-00000.jsonl"
        events = [json.loads(line) for line in log.read_text().splitlines()]
        return [event for event in events if event.get("event") == name]

    def test_links_are_logged(self):
        for number, (links, text, kind) in enumerate([
            ("nvls", "NVLink: 1 pair of ranks within a host", "nvlink"),
            ("shm", "the host's memory: 1 pair", "shm"),
            ("ib", "InfiniBand with GPUDirect RDMA: 1 pair", "infiniband"),
            ("roce,1:ib-host", "InfiniBand without GPUDirect RDMA: 1 pair", "infiniband"),
        ]):
            config = self.config(f"links-{number}", train__steps=2)
            result = self.train(config, 2, {"TRIREME_SIM_LINKS": links})
            self.assertIn(f"links GPUs over {text}", result.stderr)
            event = self.events(config, "links")[0]
            self.assertEqual([link["kind"] for link in event["links"]], [kind])
            self.assertEqual(event["links"][0]["groups"], ["dp"])
            self.assertEqual(event["nvls"], ["dp"] if links == "nvls" else [])
        config = self.config("links-pp", train__steps=2, parallel__pp=2)
        self.train(config, 2, {"TRIREME_SIM_LINKS": "pcie"})
        self.assertEqual(self.events(config, "links")[0]["links"][0]["groups"], ["pp"])

    def test_required_links(self):
        for links, required, code, words in [
            ("ib", "[rdma,gpudirect]", 0, ""),
            ("ib-host", "rdma", 0, ""),
            ("ib-host", "gpudirect", 2, "InfiniBand without GPUDirect RDMA (group dp"),
            ("socket", "rdma", 2, "rank 0 (host "),
            ("pcie", "nvlink", 2, "over PCIe between the GPUs"),
        ]:
            config = self.config("required", train__steps=2)
            result = self.train(config, 2, {"TRIREME_SIM_LINKS": links}, code,
                                [f"comm.require={required}", "checkpoint.resume=never",
                                 f"run.dir={self.folder}/required-{links}-{code}"])
            self.assertIn(words, result.stderr)
        config = self.config("required")
        result = self.train(config, 2, code=2,
                            more=["comm.require=rdma", "train.device=cpu"])
        self.assertIn("concerns links between GPUs", result.stderr)
        result = self.train(config, 2, {"NCCL_DEBUG": "INFO"}, code=2, more=["comm.require=rdma"])
        self.assertIn("cannot be checked", result.stderr)
        result = self.train(config, code=2, more=["comm.require=telepathy"])
        self.assertIn("any|rdma|gpudirect|nvlink", result.stderr)

    def test_a_rank_whose_links_are_unfit_is_at_fault(self):
        config = self.config("unfit", train__global_batch=4)
        result = self.train(config, 4, {"TRIREME_SIM_LINKS": "ib,2:socket"}, 76,
                            ["comm.require=rdma"])
        self.assertIn("no link of rank 2", result.stderr)
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual((reason["code"], reason["rank"]), (76, 2))

    def test_layout_uses_the_sums_of_nccl(self):
        runs = [self.trained(f"sums-{number}", 4, precision="fp32",
                             more=[f"numerics.reproducibility={word}"])
                for number, word in enumerate(["elastic", "layout", "layout"])]
        self.assertEqual(runs[1], runs[2])
        self.assertNotEqual(runs[0], runs[1], "the ring of the simulator adds in another order")
        config = self.config("sums-warning", train__steps=2)
        result = self.train(config, 2, {"NCCL_ALGO": "NVLS"},
                            more=["numerics.reproducibility=layout"])
        self.assertIn("uses NCCL_ALGO=Ring instead of NVLS", result.stderr)

    def test_ranks_must_choose_the_same_algorithms(self):
        other = {"TRIREME_SIM_FAULT": "cublasLtMatmulAlgoGetHeuristic@1/1:1:other"}
        config = self.config("choices", precision="fp32")
        result = self.train(config, 2, other, code=2)
        self.assertRegex(
            result.stderr,
            r"rank 0 \(host \S+, CUDA device 0 \(simulated device, GPU-\S+, \S+\)\) computes the "
            r"product \d+x\d+x\d+ F32.* by algorithm 1, tile 20,.*, but rank 1 \(host \S+, CUDA "
            r"device 1 \(.*\)\) by algorithm 1, tile 18,")
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual((reason["code"], reason["phase"]), (2, "start"))
        self.train(config, 2, other, more=["numerics.reproducibility=fast"])
        always = {"TRIREME_SIM_FAULT": "cublasLtMatmulAlgoGetHeuristic:1:other"}
        self.assertNotEqual(self.trained("choices-as-usual", precision="fp32"),
                            self.trained("choices-other", env=always, precision="fp32"))

    def test_a_resumed_run_compares_its_algorithms(self):
        config = self.config("chosen", checkpoint__every=2, train__steps=2)
        self.train(config)
        events = self.events(config, "algorithms")
        shown = json.loads(harness.must(harness.run(
            "ckpt", "show", harness.run_dir(config) / "checkpoints", "--json")).stdout)
        chosen = shown["numerics"]["algorithms"]
        self.assertEqual(events[0]["chosen"], chosen)
        self.assertGreater(len(chosen), 10)
        # Another layout computes some of these products, and others by the same rule.
        longer = "checkpoint.allow_change=[optimizer.schedule.steps]"
        result = self.train(config, 2, more=["train.steps=3", "parallel.pp=2", longer])
        self.assertNotIn("computes differently", result.stderr)
        other = {"TRIREME_SIM_FAULT": "cublasLtMatmulAlgoGetHeuristic:1:other"}
        result = self.train(config, 0, other, more=["train.steps=4", longer])
        self.assertIn("computes differently from the one that wrote step 3", result.stderr)
        self.assertEqual(len(re.findall(r"algorithms\.\d+x\d+x\d+ BF16", result.stderr)), 1)

    def test_memory_of_the_device_is_predicted(self):
        config = self.config("predicted", checkpoint__every=2)
        for number, (ranks, more) in enumerate([
                (1, []), (2, ["parallel.zero=2"]), (2, ["parallel.pp=2"])]):
            folder = f"run.dir={self.folder}/predicted-{number}"
            # The self-check takes the workspace of products before algorithms are chosen.
            self.train(config, ranks if ranks > 1 else 0,
                       more=[*more, folder, "numerics.self_check=true"])
            log = self.folder / f"predicted-{number}" / "logs" / "rank-00000.jsonl"
            events = {e.get("event"): e for e in map(json.loads, log.read_text().splitlines())}
            predicted, measured = events["memory_predicted"], events["memory_measured"]
            self.assertEqual(len(predicted["devices"]), ranks)
            for before, after in zip(predicted["devices"], measured["devices"]):
                for part in ["parameters", "optimizer"]:
                    self.assertEqual(before[part], after[part], (more, part))
                self.assertLessEqual(after["total"], before["total"], (before, after))
                self.assertGreater(after["total"], before["total"] / 2, (before, after))

    def test_a_model_that_does_not_fit_the_device_is_refused_with_advice(self):
        config = self.config("large", train__global_batch=256, train__micro_batch=256, layers=5,
                             train__steps=2)
        self.train(config)
        taken = self.events(config, "memory_measured")[0]["devices"][0]["total"]
        little = {"TRIREME_SIM_MEMORY": str(taken - (2 << 20))}
        config = self.config("larger", train__global_batch=256, train__micro_batch=256, layers=5,
                             train__steps=2)
        result = self.train(config, 0, little, code=2)
        self.assertIn("CUDA device 0 of host", result.stderr)
        doctor = harness.run("doctor", config, env=little)
        self.assertEqual(doctor.returncode, 2, doctor.stdout)
        self.assertIn("CUDA device 0 of host", doctor.stdout)
        advice = re.search(r"the cheapest change that makes it fit: (.*); or", result.stderr)
        self.assertIsNotNone(advice, result.stderr)
        self.train(config, 0, little, more=advice[1].split())
        # The pools free unused blocks before they fail, so the run fits into slightly less memory.
        less = {"TRIREME_SIM_MEMORY": str(taken * 3 // 4)}
        result = self.train(config, 0, less, code=76,
                            more=["run.memory_check=off", f"run.dir={self.folder}/unchecked"])
        self.assertIn("out of memory on CUDA device 0", result.stderr)
        self.assertIn("held by the pools of this rank: parameters", result.stderr)

    def test_devices_run_out_of_memory(self):
        config = self.config("small")
        little = {"TRIREME_SIM_MEMORY": str(2 << 20)}
        result = self.train(config, 0, little, code=76)
        self.assertIn("out of memory on CUDA device 0", result.stderr)
        with launch_harness.Launch(config, env=little) as launch:
            self.assertEqual(launch.wait(), 2, launch.text())
            self.assertEqual(launch.causes(), ["out_of_memory"] * 3)
            self.assertIn("micro_batch", launch.text())

    def test_libraries_and_kernels_run_out_of_memory(self):
        for number, fault in enumerate([
            "cublasLtCreate:1:CUBLAS_STATUS_ALLOC_FAILED",
            "cublasLtMatmul:90:CUBLAS_STATUS_ALLOC_FAILED",
            "cudaLaunchKernelEx:300:cudaErrorMemoryAllocation",
        ]):
            with self.subTest(fault):
                config = self.config(f"exhausted-{number}")
                stderr = self.train(config, 0, {"TRIREME_SIM_FAULT": fault}, code=76).stderr
                self.assertIn("out of memory", stderr)
                self.assertIn("held by the pools of this rank", stderr)
                reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
                self.assertEqual((reason["code"], reason["kind"]), (76, "memory"))

    def test_wrong_variables_of_the_simulator_end_the_start(self):
        config = self.config("variables")
        for name, text, words in [
            ("SEED", "-1", "whole number"), ("SEED", " 1", "whole number"),
            ("SEED", "9" * 30, "whole number"), ("MEMORY", "1G", "from 1048576 to"),
            ("MEMORY", "1", "from 1048576 to"), ("DEVICES", "65", "from 0 to 64"),
            ("DELAYS", "2", "from 0 to 1"), ("LEAKS", "yes", "from 0 to 1"),
            ("FAULT", "cudaMalloc", "cannot read 'cudaMalloc'"),
            ("LINKS", "string", "cannot read 'string'"), ("LINKS", "x:ib", "cannot read 'x:ib'"),
        ]:
            with self.subTest(name, text=text):
                result = self.train(config, 0, {f"TRIREME_SIM_{name}": text}, code=2)
                self.assertIn(f"TRIREME_SIM_{name}", result.stderr)
                self.assertIn(words, result.stderr)
                self.assertFalse(harness.run_dir(config).exists())
        limit = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, limit))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
        result = self.train(config, 0, {"TRIREME_SIM_MEMORY": str(4 << 30)}, code=76)
        self.assertIn("set TRIREME_SIM_MEMORY to fewer", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
