"""Rows 47 and 48 of docs/faults.md: wrong numbers on one rank, and data that makes a run diverge.
All ranks make the same decision, and every layout that resumes another one ends with the bits of an
uninterrupted run."""

import json
import re
import shutil
import unittest

import harness
from launch_harness import Launch

STEPS = 32
EVERY = 4
# The first token of the noise and how many it has. Batches have 8 samples of 48 tokens; the file is
# read in order.
NOISE = (20 * 8 * 48, 3 * 8 * 48)
POLICY = {
    "divergence__spike": "rewind",
    "divergence__rewind_steps": 4,
    "divergence__skip_batches": 3,
}
# (ranks, layout)
LAYOUTS = [(2, ""), (4, "parallel.zero=3"), (2, "parallel.pp=2"), (1, "")]


class Divergence(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.noisy = (harness.make_noisy_dataset(cls.folder, *NOISE), cls.datasets[1])

    def config(self, name, datasets=None, **keys):
        keys = {"train__steps": STEPS, "checkpoint__every": EVERY, "checkpoint__keep": 3,
                "data__shuffle": "none", "optimizer__lr": 1e-2, "divergence__window": 8,
                **keys}
        return harness.write_config(self.folder / f"{name}.yaml", datasets or self.datasets,
                                    **keys)

    def train(self, config, *arguments, ranks=2, plan="", env=None):
        return harness.run("train", config, *arguments, ranks=ranks,
                           env={"TRIREME_FAULTS": plan, **(env or {})})

    def ends_with(self, code, *arguments, **how):
        result = self.train(*arguments, **how)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr

    def events(self, config, name):
        lines = (harness.run_dir(config) / "logs/rank-00000.jsonl").read_text().splitlines()
        return [e for e in map(json.loads, lines) if e.get("event") == name]

    def counters(self, config):
        steps = sorted((harness.run_dir(config) / "checkpoints").glob("step-*"))
        return json.loads((steps[-1] / "manifest.json").read_text())["extra"]["counters"]

    def test_a_spike_is_told(self):
        config = self.config("warn", self.noisy)
        text = self.ends_with(0, config)
        self.assertRegex(text, r"step 2\d: loss [0-9.]+, [0-9.]+ deviations above the median")
        self.assertIn("the update is made", text)
        self.assertEqual(len(harness.loss_bits(config)), STEPS)
        quiet = self.config("quiet")
        self.assertNotIn("deviations", self.ends_with(0, quiet))
        # The detector alone changes nothing: the bits are those of a run without it.
        ignore = self.config("ignore", self.noisy, divergence__spike="ignore")
        self.assertNotIn("deviations", self.ends_with(0, ignore))
        self.assertEqual(harness.digest(config), harness.digest(ignore))

    def test_weights_that_are_not_finite_displace_no_checkpoint(self):
        """The loss of the only step is finite; its update is not."""
        config = self.config("infinite", train__steps=1, checkpoint__every=1, optimizer__lr=3e38,
                             optimizer__schedule__warmup=0)
        for ranks, layout in LAYOUTS[:3]:
            text = self.ends_with(3, config, *layout.split(), ranks=ranks)
            self.assertEqual(text.count("step 1 is not saved, because the weights have diverged"),
                             1, text)
            self.assertIn("there is no checkpoint", text)
            self.assertFalse((harness.run_dir(config) / "DONE").exists())
            self.assertEqual(list((harness.run_dir(config) / "checkpoints").glob("step-*")), [])
        # The good checkpoints of a run that diverges later stay.
        config = self.config("late", train__steps=8, checkpoint__every=2)
        self.ends_with(0, config, "train.steps=4", "optimizer.schedule.steps=8")
        text = self.ends_with(3, config, "optimizer.lr=3e38", "train.max_skipped_steps=2",
                              "checkpoint.allow_change=optimizer.lr")
        self.assertIn("the loss (nan)", text)
        steps = sorted(p.name for p in (harness.run_dir(config) / "checkpoints").glob("step-*"))
        self.assertEqual(steps, ["step-00000002", "step-00000004"])

    def test_a_spike_is_skipped(self):
        config = self.config("skip", self.noisy, divergence__spike="skip",
                             train__max_skipped_steps=5)
        text = self.ends_with(0, config)
        self.assertIn("skipped, weights and moments are unchanged", text)
        counters = self.counters(config)
        self.assertIn(counters["skipped_steps"], (3, 4))
        self.assertEqual(counters["updates"], STEPS - counters["skipped_steps"])
        again = self.config("skip-bound", self.noisy, divergence__spike="skip",
                            train__max_skipped_steps=1)
        self.assertIn("had a spike 2 times in a row", self.ends_with(3, again))

    def test_a_spike_of_the_data_is_rewound_with_the_same_bits_in_every_layout(self):
        reference = self.config("rewind", self.noisy, **POLICY)
        text = self.ends_with(0, reference)
        self.assertIn("it has the same bits: data or the optimizer caused it, not the hardware",
                      text)
        origins = re.findall(r"micro-batch \d, loss .*: sample (\d+) \(shards/00000.h5 tokens "
                             r"(\d+) to (\d+), document 1\)", text)
        self.assertEqual(len(origins), 3, text)
        for sample, first, last in (map(int, origin) for origin in origins):
            self.assertEqual((first, last), (48 * sample, 48 * sample + 48))
            # There are one or two tokens between the documents.
            self.assertTrue(NOISE[0] - 48 <= first <= sum(NOISE) + 48, text)
        rewound = self.events(reference, "rewind")
        self.assertEqual(len(rewound), 1, text)
        counters = self.counters(reference)
        self.assertEqual(counters["rewinds"], 1)
        window = counters["left_out"][0]
        # The run left out all of the noise, and the requested batches after the step with the
        # spike.
        self.assertEqual(window["step"] % EVERY, 0)
        self.assertLessEqual(window["first"], 20)
        self.assertGreaterEqual(window["first"] + window["count"], 23)
        self.assertEqual(window["first"] + window["count"],
                         rewound[0]["from"] + POLICY["divergence__skip_batches"])
        bits, digest = harness.loss_bits(reference), harness.digest(reference)
        self.assertEqual(sorted(bits), list(range(1, STEPS + 1)))
        for ranks, layout in LAYOUTS[1:]:
            config = self.config(f"rewind-{ranks}-{len(layout)}", self.noisy, **POLICY)
            self.ends_with(0, config, *filter(None, [layout]), ranks=ranks)
            self.assertEqual(bits, harness.loss_bits(config), layout)
            self.assertEqual(digest, harness.digest(config), layout)
        # Tensor parallelism has bits of its own, also with stages, but makes the same decisions.
        config = self.config("rewind-tp", self.noisy, **POLICY)
        self.ends_with(0, config, "parallel.tp=3", ranks=3)
        self.assertEqual(self.counters(config)["left_out"], [window])
        of_tp = harness.loss_bits(config)
        for own, other in zip(harness.metrics(config), harness.metrics(reference)):
            self.assertEqual(own["step"], other["step"])
            self.assertAlmostEqual(own["loss"], other["loss"], delta=1e-3)
        staged = self.config("rewind-tp-pp", self.noisy, **POLICY)
        self.ends_with(0, staged, "parallel.tp=3", "parallel.pp=2", ranks=6)
        self.assertEqual(of_tp, harness.loss_bits(staged))
        # The run is killed in the replay, in the rewind, and before and after its save; every start
        # has another layout.
        config = self.config("rewind-killed", self.noisy, **POLICY)
        plans = ["load.manifest:0:1:kill", "load.manifest:0:3:kill", "ckpt.rename:0:1:kill",
                 "ckpt.latest_written:0:1:kill", ""]
        for (ranks, layout), plan in zip(LAYOUTS + LAYOUTS, plans):
            result = self.train(config, *filter(None, [layout]), ranks=ranks, plan=plan)
            self.assertEqual(result.returncode == 0, not plan, result.stderr)
            self.assertIn(f"planned fault: {plan}" if plan else "resumed", result.stderr)
        self.assertNotIn("replaying steps", result.stderr)
        self.assertEqual(self.counters(config)["left_out"], [window])
        self.assertEqual(bits, harness.loss_bits(config))
        self.assertEqual(digest, harness.digest(config))

    def test_rewinds_are_bounded(self):
        config = self.config("bounded", self.noisy,
                             **{**POLICY, "divergence__max_rewinds": 0})
        text = self.ends_with(3, config)
        self.assertIn("divergence.max_rewinds", text)
        # Every start ends in the same way.
        self.assertIn("divergence.max_rewinds", self.ends_with(3, config))
        # This run reaches the noise again after each rewind.
        config = self.config("twice", self.noisy, **{**POLICY, "divergence__skip_batches": 0,
                                                     "divergence__max_rewinds": 1})
        text = self.ends_with(3, config)
        self.assertEqual(len(self.events(config, "rewind")), 1, text)
        self.assertIn("already rewound 1 time (", text)

    def test_stop_at_once(self):
        config = self.config("stop", self.noisy, divergence__spike="stop")
        text = self.ends_with(3, config)
        self.assertIn("data or the optimizer caused it", text)
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual((reason["code"], reason["kind"]), (3, "numerics"))
        config = self.config("stop-nan", divergence__not_finite="stop",
                             divergence__replay_steps=0)
        text = self.ends_with(3, config, plan="step.loss:1:20:nan")
        self.assertRegex(text, "step 20: loss nan.*not replayed")

    def test_nan_on_one_rank_is_skipped_by_all(self):
        for number, plan in enumerate(["step.gradient:1:20:nan", "step.loss:0:6:nan"]):
            digests = set()
            for layout in ["", "parallel.zero=2", "parallel.pp=2"]:
                if layout == "parallel.pp=2" and "loss" in plan:
                    continue  # the first stage has no loss
                config = self.config(f"nan-{number}-{len(layout)}")
                text = self.ends_with(0, config, *filter(None, [layout]), plan=plan)
                self.assertIn("skipped, weights and moments are unchanged", text)
                counters = self.counters(config)
                self.assertEqual((counters["updates"], counters["skipped_steps"]), (STEPS - 1, 1))
                if layout != "parallel.pp=2":
                    digests.add(harness.digest(config))
            self.assertEqual(len(digests), 1)

    def test_a_run_may_end_with_skipped_steps(self):
        config = self.config("nan-end", train__steps=8, train__max_skipped_steps=1)
        words = "step 8: the run ends with 1 step whose update was skipped.*those after step 7"
        self.assertRegex(self.ends_with(0, config, plan="step.loss:1:8:nan"), words)
        done = harness.run_dir(config) / "DONE"
        self.assertTrue(done.exists())
        # The result is the same after a restart that only has to finish.
        done.unlink()
        self.assertRegex(self.ends_with(0, config), words)
        self.assertTrue(done.exists())
        self.assertEqual(self.counters(config)["skipped_steps"], 1)

    def test_other_bits_are_the_hardware(self):
        cases = [
            ("not_finite", "step.loss:1:21:nan", {},
             "rank 1 .*: the loss of micro-batch 4 was nan"),
            ("not_finite", "step.gradient:1:82:nan", {},
             "the gradient norm was nan and is now .*divergence.digests=true names"),
            ("not_finite", "step.gradient:1:82:nan", {"divergence__digests": "true"},
             "rank 1 .*: the gradient of micro-batch 5 has different bits"),
            ("spike", "step.gradient:0:82:scale=1e4", {"divergence__digests": "true"},
             "rank 0 .*: the gradient of micro-batch 1 has different bits"),
            ("spike", "step.weights:1:21:scale=30", {"train__compare_every": 0},
             "step 22 has different bits: rank 1 .*: the loss of micro-batch 4"),
        ]
        for number, (key, plan, keys, words) in enumerate(cases):
            with self.subTest(plan):
                keys = {f"divergence__{key}": "rewind", "divergence__rewind_steps": 4, **keys}
                config = self.config(f"hardware-{number}", **keys)
                text = self.ends_with(76, config, plan=plan)
                self.assertRegex(text, words)
                self.assertEqual(self.events(config, "rewind"), [])
                # The next start has no fault, and ends with the bits of a run that had none.
                self.ends_with(0, config)
                clean = self.clean_digest()
                self.assertEqual(harness.digest(config), clean)

    def test_launch_leaves_no_data_out_for_the_hardware(self):
        config = self.config("launch", divergence__not_finite="rewind", divergence__rewind_steps=4)
        with Launch(config, options=("--local", 2, "--ranks-per-node", 1),
                    env={"TRIREME_FAULTS": "step.loss@1:1:21:nan"}) as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
            self.assertEqual(launch.causes(), ["device", "finished"], launch.text())
            ended = launch.events("attempt_end")[0]
            self.assertEqual(ended["code"], 76)
            self.assertRegex(ended["what"], "^rank 1 on .*the loss of micro-batch 4 was nan")
        self.assertEqual(harness.digest(config), self.clean_digest())

    def test_a_rewind_beside_copies_in_memory(self):
        """The rewind goes to a step that is also in memory, and later steps in memory are
        discarded."""
        plain, copies = (self.config(name, self.noisy, **POLICY, **keys) for name, keys in
                         [("on-disk", {}), ("in-memory", {"checkpoint__memory_every": 2})])
        self.ends_with(0, plain)
        options = ("--local", 2, "--ranks-per-node", 1)
        with Launch(copies, options=options) as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
            self.assertEqual(launch.causes(), ["finished"], launch.text())
        self.assertEqual(len(self.events(copies, "rewind")), 1)
        self.assertEqual(harness.digest(plain), harness.digest(copies))
        self.assertEqual(harness.loss_bits(plain), harness.loss_bits(copies))
        # The run is killed some steps after the rewind, when the newest steps are in memory only.
        shutil.rmtree(harness.run_dir(copies))
        with Launch(copies, options=options,
                    env={"TRIREME_FAULTS": "step.end@1:1:27:kill"}) as launch:
            self.assertEqual(launch.wait(), 0, launch.text())
            self.assertEqual(launch.causes(), ["process_death", "finished"], launch.text())
        self.assertEqual(len(self.events(copies, "rewind")), 1)
        self.assertEqual(harness.digest(plain), harness.digest(copies))

    def test_replay_of_what_was_logged(self):
        config = self.config("logged")
        self.ends_with(0, config, plan="step.gradient:1:82:scale=20")
        before = sorted(p.name for p in (harness.run_dir(config) / "checkpoints").glob("step-*"))
        logged = (harness.run_dir(config) / "metrics.jsonl").read_bytes()
        # Step 32 and the checkpoint of step 28 both contain all effects of the fault.
        for ranks, layout in [(2, ""), (1, ""), (2, "parallel.pp=2")]:
            text = self.ends_with(0, config, *filter(None, [layout, "--replay", "32"]),
                                  ranks=ranks)
            self.assertIn("from step 28: 4 logged steps up to step 32 have the same bits", text)
            self.assertNotIn("Ctrl-C", text)  # a replay saves nothing
        self.assertIn("step 31 has different bits: the gradient norm was",
                      self.ends_with(76, config, "--replay", "32",
                                     plan="step.gradient:0:10:scale=2"))
        self.assertEqual(logged, (harness.run_dir(config) / "metrics.jsonl").read_bytes())
        self.assertEqual(before, sorted(
            p.name for p in (harness.run_dir(config) / "checkpoints").glob("step-*")))
        self.assertIn("steps 1 to 32 (train.steps)", self.ends_with(2, config, "--replay", "33"))
        self.assertNotEqual(0, self.train(config, "--replay", "0").returncode)
        (harness.run_dir(config) / "metrics.jsonl").write_text("{\n")
        self.assertIn("there is nothing to compare", self.ends_with(66, config, "--replay", "32"))

    def clean_digest(self):
        config = self.folder / "clean.yaml"
        if not config.exists():
            self.ends_with(0, self.config("clean"))
        return harness.digest(config)


if __name__ == "__main__":
    unittest.main(verbosity=2)
