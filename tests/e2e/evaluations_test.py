"""Tests evaluations during training: a bad validation set never costs weights, the best steps are
kept, a run that no longer improves ends, and a killed run makes the same decisions as an
uninterrupted one."""

import ctypes
import os
import pathlib
import shutil
import signal
import time
import unittest

import harness


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


def shard_of(dataset):
    return sorted((dataset / "shards").glob("*.h5"))[0]


def wait_until_stopped(pid, deadline=120.0):
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        if stat.rpartition(")")[2].split()[0] == "T":
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} did not stop")


class Evaluations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, bytes_wanted=40_000)

    def config(self, name, validation=None, **keys):
        keys.setdefault("train__steps", 6)
        keys.setdefault("train__eval_every", 2)
        return harness.write_config(self.folder / f"{name}.yaml",
                                    [self.datasets[0], validation or self.datasets[1]], **keys)

    def copy_of_validation(self, name):
        copy = self.folder / name
        shutil.copytree(self.datasets[1], copy)
        return copy

    def saved_steps(self, config):
        folder = harness.run_dir(config) / "checkpoints"
        return sorted(int(path.name[5:]) for path in folder.glob("step-*"))

    def refused(self, code, words, *arguments, ranks=0):
        result = harness.run(*arguments, ranks=ranks, timeout=120)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout + result.stderr)

    def test_a_bad_set_is_refused_before_the_first_step(self):
        damaged = self.copy_of_validation("damaged")
        flip(shard_of(damaged), shard_of(damaged).stat().st_size // 2)
        config = self.config("damaged-start", damaged)
        self.refused(65, [shard_of(damaged).name, "XXH3"], "train", config, ranks=2)
        (self.folder / "small.txt").write_text("a set of one sentence")
        harness.must(harness.run("data", "pack", "--out", self.folder / "small",
                                 self.folder / "small.txt"))
        short = self.config("short-start", self.folder / "small")
        self.refused(65, ["48"], "train", short, ranks=2)
        for refused in (config, short):
            self.assertFalse((harness.run_dir(refused) / "metrics.jsonl").exists())

    def test_damage_at_an_evaluation_costs_that_evaluation_alone(self):
        for layout, ranks in [([], 2), (["parallel.pp=2"], 2), (["parallel.tp=2"], 2)]:
            with self.subTest(layout):
                name = "met-" + "".join(layout)
                copy = self.copy_of_validation(f"data-{name}")
                config = self.config(name, copy, train__compare_every=0)
                process = harness.start(
                    "train", config, *layout, "model.heads=4", ranks=ranks,
                    log=self.folder / f"{name}.log",
                    env={"TRIREME_FAULTS": "step.evaluate:0:1:stop"})
                try:
                    pids = harness.pids_of_ranks(harness.run_dir(config) / "logs", ranks)
                    wait_until_stopped(pids[0])
                    flip(shard_of(copy), shard_of(copy).stat().st_size // 2)
                    os.kill(pids[0], signal.SIGCONT)
                    code = process.wait(timeout=240)
                finally:
                    harness.end_group(process)
                log = (self.folder / f"{name}.log").read_text()
                self.assertEqual(code, 0, log)
                self.assertIn("the evaluation failed, training continues", log)
                self.assertIn(shard_of(copy).name, log)
                lines = {m["step"]: m for m in harness.metrics(config)}
                self.assertEqual(sorted(lines), [1, 2, 3, 4, 5, 6])
                self.assertEqual([lines[step]["val_loss"] for step in (2, 4, 6)], [None] * 3)
                self.assertTrue((harness.run_dir(config) / "DONE").exists())
                self.assertIn(6, self.saved_steps(config))

    def stop_at(self, name, copy, fault, change, **keys):
        """Stops a run at `fault`, calls change(), continues the run, and returns config, exit code
        and log."""
        config = self.config(name, copy, **keys)
        process = harness.start("train", config, "train.global_batch=2", "train.micro_batch=2",
                                ranks=1, log=self.folder / f"{name}.log",
                                env={"TRIREME_FAULTS": fault})
        try:
            pids = harness.pids_of_ranks(harness.run_dir(config) / "logs", 1)
            wait_until_stopped(pids[0])
            change()
            os.kill(pids[0], signal.SIGCONT)
            code = process.wait(timeout=240)
        finally:
            harness.end_group(process)
        return config, code, (self.folder / f"{name}.log").read_text()

    def test_damage_to_blocks_that_were_verified_is_found(self):
        """The first evaluation has verified the whole set. A training set is one digest block, too.
        """
        copy = self.copy_of_validation("data-later")
        shard = shard_of(copy)
        config, code, log = self.stop_at("later", copy, "step.evaluate:0:2:stop",
                                         lambda: flip(shard, shard.stat().st_size // 2))
        self.assertEqual(code, 0, log)
        self.assertIn(shard.name, log)
        values = {m["step"]: m["val_loss"] for m in harness.metrics(config) if "val_loss" in m}
        self.assertEqual([step for step in (2, 4, 6) if values[step] is None], [4, 6])

        train = self.folder / "data-training"
        shutil.copytree(self.datasets[0], train)
        shard = shard_of(train)
        config, code, log = self.stop_at("training", copy, "step.optimizer:0:2:stop",
                                         lambda: flip(shard, shard.stat().st_size // 2),
                                         data__train=train, data__validation='""', train__steps=40)
        self.assertEqual(code, 65, log)
        self.assertIn(f"{shard.name}: block 0", log)
        self.assertLess(len(harness.metrics(config)), 40)

    def test_a_run_with_weights_goes_on_without_its_set(self):
        copy = self.copy_of_validation("data-lost")
        config = self.config("lost", copy, checkpoint__every=2)
        harness.must(harness.run("train", config, "train.steps=2"))
        shutil.rmtree(copy)
        result = harness.must(harness.run("train", config,
                                          "checkpoint.allow_change=[optimizer.schedule.steps]"))
        self.assertIn("continues without evaluations", result.stderr)
        self.assertEqual([m["val_loss"] for m in harness.metrics(config) if m["step"] > 2 and
                          "val_loss" in m], [None, None])

    def test_a_kill_between_save_and_evaluation_changes_nothing(self):
        keys = {"train__log_every": 3, "checkpoint__every": 2}
        whole = self.config("whole", **keys)
        harness.must(harness.run("train", whole, ranks=2))
        killed = self.config("killed", **keys)
        for passage in (2, 2, 1):  # during the evaluations of steps 4, 6 and 6
            result = harness.run("train", killed, ranks=2,
                                 env={"TRIREME_FAULTS": "ckpt.shard_sync:*:*:sleep=0.3,"
                                                        f"step.evaluate:0:{passage}:kill"})
            self.assertNotEqual(result.returncode, 0)
        harness.must(harness.run("train", killed, ranks=2))
        exact = ["step", "loss", "loss_bits", "loss_mean", "grad_norm", "lr", "tokens", "val_loss",
                 "val_loss_bits"]

        def lines(config):
            return [{key: m.get(key) for key in exact} for m in harness.metrics(config)]

        self.assertEqual(lines(killed), lines(whole))
        # A stopped run leaves the evaluation of its last step to the next start.
        stopped = self.config("stopped", **keys)
        process = harness.start("train", stopped, ranks=2, log=self.folder / "stopped.log",
                                env={"TRIREME_FAULTS": "step.end:0:3:stop"})
        try:
            pids = harness.pids_of_ranks(harness.run_dir(stopped) / "logs", 2)
            wait_until_stopped(pids[0])
            os.kill(pids[1], signal.SIGUSR1)
            # Another thread than the one that was stopped at the step's end could receive a signal
            # to the process after that one has looked for it.
            self.assertEqual(ctypes.CDLL(None).tgkill(pids[0], pids[0], signal.SIGUSR1), 0)
            os.kill(pids[0], signal.SIGCONT)
            process.wait(timeout=240)
        finally:
            harness.end_group(process)
        self.assertEqual(harness.metrics(stopped)[-1]["step"], 4)
        self.assertNotIn("val_loss", harness.metrics(stopped)[-1])
        harness.must(harness.run("train", stopped))
        self.assertEqual(lines(stopped), lines(whole))
        self.assertEqual([m["step"] for m in harness.metrics(whole)], [2, 3, 4, 6])
        self.assertEqual(harness.digest(killed), harness.digest(whole))

    def test_the_mean_covers_the_steps_since_the_last_line(self):
        each = self.config("each", train__eval_every=0)
        harness.must(harness.run("train", each))
        loss = {m["step"]: m["loss"] for m in harness.metrics(each)}
        self.assertTrue(all(m["loss_mean"] == m["loss"] for m in harness.metrics(each)))
        some = self.config("some", train__eval_every=0, train__log_every=3,
                           run__log_format="megatron")
        log = harness.must(harness.run("train", some)).stderr
        for m in harness.metrics(some):
            mean = sum(loss[m["step"] - i] for i in (2, 1, 0)) / 3
            self.assertAlmostEqual(m["loss_mean"], mean, places=12)
            self.assertEqual(m["loss"], loss[m["step"]])
            self.assertIn(f"lm loss: {mean:.9E}", log)

    def test_best_steps_are_kept(self):
        keys = {"train__steps": 12, "train__eval_every": 1, "checkpoint__keep_best": 2,
                "optimizer__lr": "0.3", "optimizer__schedule__warmup": 0,
                "divergence__spike": "ignore"}
        config = self.config("best", **keys)
        harness.must(harness.run("train", config, ranks=2))
        by_loss = sorted((m["val_loss"], m["step"]) for m in harness.metrics(config))
        best = sorted(step for _, step in by_loss[:2])
        self.assertTrue(set(best) < set(range(1, 13)))
        self.assertTrue(set(best) <= set(self.saved_steps(config)), self.saved_steps(config))
        again = self.config("best-killed", **keys)
        for passage in (4, 5):
            harness.run("train", again, ranks=2,
                        env={"TRIREME_FAULTS": f"step.evaluate:1:{passage}:kill"})
        harness.must(harness.run("train", again, ranks=1))
        self.assertTrue(set(best) <= set(self.saved_steps(again)), self.saved_steps(again))
        self.assertEqual(harness.digest(again), harness.digest(config))

    def test_a_run_that_no_longer_improves_ends(self):
        config = self.config("early", train__steps=50)
        stops = ["train.early_stop.patience=2", "train.early_stop.min_delta=100"]
        result = harness.must(harness.run("train", config, *stops, ranks=2))
        self.assertIn("stopped early at step 6", result.stderr)
        self.assertEqual(harness.metrics(config)[-1]["step"], 6)
        done = (harness.run_dir(config) / "DONE").read_text()
        self.assertIn("train.early_stop.patience 2", done)
        self.assertIn(6, self.saved_steps(config))
        again = harness.must(harness.run("train", config, *stops))
        self.assertIn("stopped early at step 6", again.stderr)
        self.assertEqual(harness.metrics(config)[-1]["step"], 6)
        harness.must(harness.run("train", config, stops[1],
                                 "train.early_stop.patience=3", ranks=2))
        self.assertEqual(harness.metrics(config)[-1]["step"], 8)
        without = self.config("without", data__validation='""')
        for key in ("train.early_stop.patience", "checkpoint.keep_best"):
            self.refused(2, [key, "data.validation"], "train", without, f"{key}=1")
        never = self.config("never", train__eval_every=0)
        self.refused(2, ["train.eval_every"], "train", never, "train.early_stop.patience=1")


if __name__ == "__main__":
    unittest.main()
