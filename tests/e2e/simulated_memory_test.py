"""When a simulated device runs out of memory outside of a step, the message says what the pools of
the rank held."""

import json
import re
import unittest

import harness
from simulated import SimulatedTest

MIB = 1 << 20
HELD = re.compile(
    r"out of memory on CUDA device 0 .*; held by the pools of this rank: parameters, gradients and "
    r"optimizer state (?P<state>\S+ \S+) \(peak in use .*\), .* activations (?P<activations>\S+ "
    r"\S+) \(peak in use .*\), .* memory of the host for copies ")


class SimulatedMemory(SimulatedTest):
    def held(self, result):
        self.assertEqual(result.returncode, 76, result.stderr)
        found = HELD.search(result.stderr)
        self.assertIsNotNone(found, result.stderr)
        return found

    # The memory that these tests leave is too little for models of this size.
    def config(self, name, **keys):
        return super().config(name, **{"layers": 5, **keys})

    def taken(self, config, **env):
        """Trains, and returns the bytes that the device holds at the end."""
        self.train(config, env=env)
        log = harness.run_dir(config) / "logs" / "rank-00000.jsonl"
        events = [json.loads(line) for line in log.read_text().splitlines()]
        [measured] = [e for e in events if e.get("event") == "memory_measured"]
        return measured["devices"][0]["total"]

    def test_while_the_parts_of_a_run_are_made(self):
        config = self.config("start", run__memory_check="off")
        for memory in [3 * MIB, 5 * MIB]:  # too little for the parameters, and for the rest
            held = self.held(self.train(config, env={"TRIREME_SIM_MEMORY": str(memory)}, code=76))
            self.assertNotEqual(held["state"], "0 B")
            self.assertEqual(held["activations"], "0 B")
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual((reason["kind"], reason["phase"]), ("memory", "start"))

    # The last micro-batch of the evaluation is smaller than the others, so that it needs blocks of
    # other sizes than those that the pools have.
    def test_in_an_evaluation(self):
        large = {"train__global_batch": 16, "train__micro_batch": 16, "train__eval_samples": 26,
                 "run__memory_check": "off", "train__steps": 2}
        without = self.taken(self.config("without", train__eval_every=0,
                                         data__validation="null", **large))
        most = self.taken(self.config("with", train__eval_every=2, **large))
        self.assertGreater(most, without)
        little = {"TRIREME_SIM_MEMORY": str((without + most) // 2)}
        config = self.config("little", train__eval_every=2, **large)
        held = self.held(self.train(config, env=little, code=76))
        self.assertNotEqual(held["state"], "0 B")
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual((reason["kind"], reason["phase"]), ("memory", "evaluate"))

    def test_in_eval_and_generate(self):
        config = self.config("trained", train__steps=2)
        self.train(config)
        checkpoint = ["--checkpoint", harness.run_dir(config) / "checkpoints", "--device", "cuda"]
        evaluate = ["eval", *checkpoint, "--data", self.datasets[1], "--micro-batch", 64]
        generate = ["generate", *checkpoint, "--prompt", "the "]
        for memory in [2 * MIB, 4 * MIB]:  # too little to load the weights, and to compute
            for words in [evaluate, generate]:
                with self.subTest(words[0], memory=memory):
                    held = self.held(harness.run(*words, env={"TRIREME_SIM_MEMORY": str(memory)}))
                    self.assertEqual(held["activations"] == "0 B", memory == 2 * MIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
