"""Mistakes of users and damage by disks lead to the documented exit code and to a message that
names the place and the remedy, never to a wrong result or a silent fresh start."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import harness


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


def reseal(manifest, before, after):
    """Changes the text of a manifest, and its seal with it."""
    text = manifest.read_text()
    assert before in text, text
    body = text[: text.rindex(',\n "seal"')].replace(before, after)
    seal = hashlib.sha256(body.encode()).hexdigest()
    manifest.write_text(f'{body},\n "seal": "sha256:{seal}"\n}}\n')


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.trained = cls.config("trained", train__steps=12, checkpoint__every=4)
        harness.must(harness.run("train", cls.trained, ranks=2))

    @classmethod
    def config(cls, name, **keys):
        keys.setdefault("train__steps", 4)
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, **keys)

    def refused(self, code, words, *arguments, ranks=0, env=None):
        result = harness.run(*arguments, ranks=ranks, env=env, timeout=120)
        text = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, text)
        for word in words:
            self.assertIn(word, text)
        return text

    def copy_of_trained(self, name):
        config = self.config(name, train__steps=12, checkpoint__every=4)
        shutil.copytree(harness.run_dir(self.trained), harness.run_dir(config))
        (harness.run_dir(config) / "DONE").unlink()
        return config

    def test_keys_and_values(self):
        config = self.config("keys")
        cases = [
            ("train.stepz=5", ["train.stepz", "train.steps", "command line"]),
            ("train.steps=many", ["train.steps", "many", "integer"]),
            ("train.steps=0", ["train.steps", "at least 1"]),
            ("train.precision=fp8", ["fp8", "bf16", "fp32"]),
            ("model.heads=5", ["heads", "48"]),
            ("data.sequence=65", ["65", "64", "context"]),
            ("train.micro_batch=3", ["global_batch", "micro_batch"]),
            ("model.preset=gpt5", ["gpt5", "gpt2-124m"]),
            ("parallel.dp=3", ["the number of ranks, 1,", "dp 3"]),
            ("run.dir=/", ["run.dir", "root"]),
            ("data.train=", ["data.train is missing"]),
            ("train.micro_batch=100000000", ["train.micro_batch", "2^28"]),
        ]
        for change, words in cases:
            with self.subTest(change):
                self.refused(2, words, "train", config, change)
        text = self.config("line").read_text() + "modle: {layers: 3}\n"
        path = self.folder / "line.yaml"
        path.write_text(text)
        self.refused(2, [f"line.yaml:{text.count(chr(10))}", "modle", "model"], "train", path)
        self.refused(66, ["no-such.yaml"], "train", self.folder / "no-such.yaml")
        path.write_bytes(b" " * (1 << 20) + b"\n")
        self.refused(2, ["line.yaml", "1048577 bytes"], "train", path)
        bad_variable = {"TRIREME_TRAIN__STEPS": "x"}
        self.refused(2, ["TRIREME_TRAIN__STEPS"], "train", config, env=bad_variable)
        self.refused(2, ["reference", "avx2"], "train", config, env={"TRIREME_KERNELS": "sse9"})
        self.refused(2, ["the number of ranks, 2,", "dp 1"], "train", config, "parallel.dp=1",
                     ranks=2)

    def test_datasets_that_are_none(self):
        config = self.config("nodata")
        self.refused(66, ["nowhere"], "train", config, f"data.train={self.folder}/nowhere")
        empty = self.folder / "empty"
        empty.mkdir()
        self.refused(65, ["empty"], "train", config, f"data.train={empty}")
        self.refused(66, ["missing.txt"], "data", "pack", "--out", self.folder / "x",
                     self.folder / "missing.txt")
        (self.folder / "nothing.txt").write_text("")
        result = harness.run("data", "pack", "--out", self.folder / "y",
                             self.folder / "nothing.txt")
        self.assertIn(result.returncode, (2, 65, 66), result.stderr)
        self.refused(2, ["vocab", "200"], "train", config, "model.vocab=200")

    def test_a_dataset_lies_in_no_dataset_and_no_checkpoint(self):
        text = self.folder / "few.txt"
        text.write_text("few words")
        step = next((harness.run_dir(self.trained) / "checkpoints").glob("step-*"))
        for place in (self.datasets[0], step):
            before = sorted(os.listdir(place))
            for words in (("pack", text, "--out", place / "new"),
                          ("stage", self.datasets[1], place / "new")):
                self.refused(2, [f"lies in {place}"], "data", *words)
            self.assertEqual(sorted(os.listdir(place)), before)

    def test_damaged_dataset(self):
        config = self.config("damaged")
        whole = self.datasets[0]
        for kind in ["flip", "truncate", "missing", "manifest", "newer"]:
            with self.subTest(kind):
                copy = self.folder / f"data-{kind}"
                shutil.copytree(whole, copy)
                shard = sorted((copy / "shards").glob("*.h5"))[0]
                words = [shard.name]
                if kind == "flip":
                    flip(shard, shard.stat().st_size // 2)
                elif kind == "truncate":
                    os.truncate(shard, shard.stat().st_size - 1)
                elif kind == "missing":
                    shard.unlink()
                else:
                    manifest = copy / "manifest.json"
                    if kind == "manifest":
                        flip(manifest, manifest.stat().st_size // 3)
                    else:
                        text = manifest.read_text()
                        manifest.write_text(text.replace('"version":1', '"version":99').replace(
                            '"version": 1', '"version": 99'))
                    words = ["manifest.json"]
                # The text is one digest block, so both verify and the run see the damage.
                verify = harness.run("data", "verify", copy)
                self.assertEqual(verify.returncode, 65, verify.stdout + verify.stderr)
                self.assertIn(words[0], verify.stdout + verify.stderr)
                self.refused(65, words, "train", config, f"data.train={copy}", ranks=2)

    def test_checkpoint_of_another_model(self):
        config = self.copy_of_trained("other")
        text = self.refused(2, ["model.layers: checkpoint 5, run 4"], "train", config,
                            "model.layers=4", "optimizer.lr=0.5", ranks=2)
        self.assertIn("optimizer.lr", text)
        self.assertRegex(text, "allow_change=.FIELD.; no option accepts another model.layers")
        harness.must(harness.run("train", config, "train.steps=13", "optimizer.lr=0.5",
                                 "checkpoint.allow_change=[optimizer.lr, optimizer.schedule.steps]",
                                 ranks=2))

    # The position in the data is counted in batches.
    def test_a_batch_of_another_size(self):
        config = self.copy_of_trained("batch")
        text = self.refused(2, ["no option accepts another train.global_batch"], "train", config,
                            "train.global_batch=4", ranks=2)
        self.assertNotIn("allow_change", text)
        self.refused(2, ["samples", "train.global_batch"], "train", config, "train.steps=13",
                     "train.global_batch=4", "checkpoint.allow_change=[train.global_batch, "
                     "optimizer.schedule.steps]", ranks=2)

    def test_samples_of_another_length(self):
        follows = {
            "data.sequence=24 data.shuffle=none": "tokens 2304 to 4608 .* are read again",
            "data.sequence=60 data.shuffle=none": "tokens 4608 to 5760 .* are left out",
            "data.sequence=24": "cut and shuffled anew",
        }
        allow = "checkpoint.allow_change=[data.sequence, data.shuffle, optimizer.schedule.steps]"
        for number, (values, words) in enumerate(follows.items()):
            config = self.copy_of_trained(f"length{number}")
            result = harness.must(harness.run("train", config, "train.steps=13", allow,
                                              *values.split()))
            self.assertRegex(result.stderr, rf"data.sequence was 48 up to step 12 .*96 so.*{words}")

    def test_damaged_checkpoints(self):
        config = self.copy_of_trained("flipped")
        steps = sorted((harness.run_dir(config) / "checkpoints").glob("step-*"))
        self.assertGreaterEqual(len(steps), 2)
        shard = sorted(steps[-1].glob("*.safetensors"))[0]
        flip(shard, shard.stat().st_size - 5)
        self.refused(65, [shard.name], "ckpt", "verify", steps[-1])
        # The run falls back to an older checkpoint, reports that, and ends with the same bits.
        result = harness.must(harness.run("train", config, ranks=2))
        self.assertIn(steps[-1].name, result.stderr)
        self.assertEqual(harness.digest(config), harness.digest(self.trained))

        config = self.copy_of_trained("all-bad")
        for step in (harness.run_dir(config) / "checkpoints").glob("step-*"):
            flip(step / "manifest.json", 200)
        self.refused(65, ["step-00000012", "manifest.json"], "train", config, ranks=2)
        self.refused(65, ["manifest.json"], "generate", "--checkpoint",
                     harness.run_dir(config) / "checkpoints")

    def test_an_intact_checkpoint_outlives_a_damaged_newer_one(self):
        config = self.copy_of_trained("outlives")
        folder = harness.run_dir(config) / "checkpoints"
        shard = sorted((folder / "step-00000012").glob("*.safetensors"))[0]
        flip(shard, shard.stat().st_size - 5)
        harness.must(harness.run("train", config, "train.steps=9", "checkpoint.keep=2",
                                 "checkpoint.allow_change=optimizer.schedule.steps", ranks=2))
        names = sorted(step.name for step in folder.glob("step-*"))
        self.assertEqual(names, ["step-00000008", "step-00000009", "step-00000012"])
        os.truncate(shard, shard.stat().st_size - 1)  # it is not even complete
        self.refused(65, ["BAD ", "step-00000012", "step-00000009: all"], "ckpt", "verify", folder)

    def test_a_step_that_contradicts_itself_is_skipped(self):
        config = self.copy_of_trained("contradicts")
        manifest = harness.run_dir(config) / "checkpoints/step-00000012/manifest.json"
        reseal(manifest, '"updates":12', '"updates":13')
        self.refused(65, [str(manifest), "updates"], "ckpt", "verify", "--all",
                     manifest.parents[1])
        result = harness.must(harness.run("train", config, ranks=2))
        self.assertRegex(result.stderr, "step-00000012: manifest.json: .*updates")
        self.assertEqual(harness.digest(config), harness.digest(self.trained))

    # Each of these once made every later save fail, hours after the start.
    def test_planted_generations(self):
        for name in ["GENERATION", ".tmp-1-9223372036854775807"]:
            with self.subTest(name):
                config = self.copy_of_trained("planted" + name[:2])
                planted = harness.run_dir(config) / "checkpoints" / name
                if name == "GENERATION":
                    planted.write_text("1152921504606846976\n")
                else:
                    planted.mkdir()
                self.refused(65, [str(planted), "Remove it"], "train", config, "train.steps=13",
                             "checkpoint.allow_change=optimizer.schedule.steps")

    def test_a_manifest_of_another_program(self):
        config = self.copy_of_trained("foreign")
        steps = sorted((harness.run_dir(config) / "checkpoints").glob("step-*"))
        for step in steps[:-1]:
            shutil.rmtree(step)
        manifest = steps[-1] / "manifest.json"
        reseal(manifest, '"counters"', '"count"')
        self.refused(65, [str(steps[-1]), "counters"], "train", config, "train.steps=13",
                     "checkpoint.allow_change=optimizer.schedule.steps")
        reseal(manifest, '"model.context":64', '"model.context":64.5')
        self.refused(65, [str(manifest), "model.context"], "generate", "--checkpoint", steps[-1])
        reseal(manifest, '"model.context":64.5', '"model.context":64000')
        self.refused(65, [str(manifest), "parameters"], "generate", "--checkpoint", steps[-1])

    # The kernel kills a process that writes beyond the limit, unless it ignores the signal.
    def test_a_limit_of_file_sizes(self):
        config = self.config("filesize")
        limited = ["bash", "-c", 'ulimit -f 64 && exec "$@"', "bash"]
        result = subprocess.run(limited + harness.command(["train", config]), text=True,
                                env=harness.ENVIRONMENT, capture_output=True, timeout=120,
                                check=False)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("ulimit -f", result.stderr)
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual((reason["code"], reason["kind"]), (74, "io"))

    def test_a_path_that_is_not_utf8(self):
        config = self.config("bytes")
        path = os.fsdecode(b"data.train=/nowhere-\xff\x1b[2J")
        result = harness.run("doctor", config, path)
        self.assertEqual(result.returncode, 66, result.stdout + result.stderr)
        self.assertNotIn("\x1b", result.stdout + result.stderr)
        self.assertIn("\\x1b[2J", result.stdout)

    def test_never_and_steps(self):
        config = self.copy_of_trained("never")
        self.refused(2, ["checkpoint.resume"], "train", config, "checkpoint.resume=never")
        self.refused(66, ["5"], "train", config, "checkpoint.resume=5")
        harness.must(harness.run("train", config, "checkpoint.resume=8", ranks=2))
        self.assertEqual(harness.digest(config), harness.digest(self.trained))

    def test_second_run_on_one_directory(self):
        config = self.config("twice", train__steps=100000)
        run_dir = harness.run_dir(config)
        harness.must(harness.run("train", config, "train.steps=2"))
        self.assertTrue((run_dir / "DONE").exists())
        log = self.folder / "twice.log"
        process = harness.start("train", config, "checkpoint.allow_change=optimizer.schedule.steps",
                                ranks=1, log=log)
        try:
            # When DONE is gone, the run is past its old end and holds the lock.
            while (run_dir / "DONE").exists():
                self.assertIsNone(process.poll(), log.read_text())
            self.refused(77, ["another run", str(harness.run_dir(config)), "process", "since"],
                         "train", config)
            self.refused(77, ["process"], "train", config, f"run.dir={self.folder}/elsewhere",
                         f"checkpoint.dir={harness.run_dir(config)}/checkpoints")
            self.assertFalse((run_dir / "exit_reason.json").exists(), "not the second run's to say")
            self.assertIsNone(process.poll(), "the first run goes on")
        finally:
            harness.end_group(process)

    def test_a_run_whose_lock_was_taken_ends(self):
        config = self.config("fenced", train__steps=100000, checkpoint__every=20)
        checkpoints = harness.run_dir(config) / "checkpoints"
        log = self.folder / "fenced.log"
        process = harness.start("train", config, ranks=2, log=log)
        try:
            while not list(checkpoints.glob("step-*")):
                self.assertIsNone(process.poll(), log.read_text())
            (checkpoints / "run.lock").unlink()
            process.wait(timeout=120)
        finally:
            harness.end_group(process)
        self.assertEqual(process.returncode, 77, log.read_text())
        self.assertIn("no longer", log.read_text())

    def test_done_counts_while_its_checkpoint_stands(self):
        config = self.copy_of_trained("done")
        (harness.run_dir(config) / "DONE").write_bytes(
            (harness.run_dir(self.trained) / "DONE").read_bytes())
        shutil.rmtree(harness.run_dir(config) / "checkpoints")
        harness.must(harness.run("train", config, ranks=2))
        self.assertEqual(harness.digest(config), harness.digest(self.trained))

    def test_ranks_with_different_configurations(self):
        config = self.config("differ")
        words = harness.command(["train", config], 1)
        other = harness.command(["train", config, "optimizer.lr=0.5"], 1)
        result = subprocess.run(words + [":"] + other[1:], env=harness.ENVIRONMENT, text=True,
                                capture_output=True, timeout=120, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        for word in ["rank 1", "optimizer.lr is 0.5", "command line"]:
            self.assertIn(word, result.stderr)

    def test_a_run_that_ends_on_too_many_nans_is_not_finished(self):
        config = self.config("nan-end", train__steps=3)
        self.refused(3, ["not finite"], "train", config, "optimizer.lr=1e30", "optimizer.clip=0",
                     "optimizer.schedule.warmup=0", "train.max_skipped_steps=1")
        self.assertFalse((harness.run_dir(config) / "DONE").exists())

    def test_unknown_fields_to_allow(self):
        config = self.copy_of_trained("allow")
        self.refused(2, ["optimzer.lr", "optimizer.lr"], "train", config, "train.steps=20",
                     "checkpoint.allow_change=[optimzer.lr]")

    def test_divergence_stops_with_untouched_weights(self):
        config = self.config("diverged", train__steps=40, checkpoint__every=1, train__log_every=1)
        self.refused(3, ["optimizer.lr", "not finite"], "train", config, "optimizer.lr=1e30",
                     "train.max_skipped_steps=2", "optimizer.schedule.warmup=0",
                     "optimizer.clip=0", ranks=2)
        reason = json.loads((harness.run_dir(config) / "exit_reason.json").read_text())
        self.assertEqual((reason["code"], reason["kind"]), (3, "numerics"))
        null = [m for m in harness.metrics(config) if m["loss"] is None or m["grad_norm"] is None]
        self.assertTrue(null)
        # The skipped steps did not change the weights.
        bad = min(m["step"] for m in null)
        steps = sorted((harness.run_dir(config) / "checkpoints").glob("step-*"))
        after = [s for s in steps if int(s.name[5:]) >= bad]
        digests = {harness.must(harness.run("ckpt", "digest", s)).stdout for s in after}
        self.assertEqual(len(digests), 1, steps)

    @unittest.skipUnless(os.geteuid() == 0, "needs to mount a file system: run as root")
    def test_full_and_read_only_disks(self):
        mount = self.folder / "disk"
        mount.mkdir()
        # Mounts are in the command's own namespace and disappear with it.
        def on_disk(options, *arguments):
            words = " ".join(f"'{w}'" for w in harness.command(arguments, 2))
            script = (f"mount -t tmpfs -o {options} none "
                      f"{mount} && mkdir -p {mount}/c && {words}")
            if ",then-ro" in options:
                script = script.replace(",then-ro", "").replace(
                    "&& ", f"&& mount -o remount,ro {mount} && ", 1).replace(
                    f"mkdir -p {mount}/c && ", "")
            return subprocess.run(
                [harness.OWN_MOUNTS, "bash", "-c", script],
                env=harness.ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)

        config = self.config("full", train__steps=6, checkpoint__every=2)
        result = on_disk("size=200k", "train", config, f"checkpoint.dir={mount}/c")
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("free space", result.stderr)
        self.assertRegex(result.stderr, r"the checkpoints will not fit into .*: one takes")
        self.assertEqual(max(m["step"] for m in harness.metrics(config)), 6, "training went on")
        config = self.config("readonly")
        result = on_disk("size=9m,then-ro", "train", config, f"checkpoint.dir={mount}/c")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("read-only", result.stderr.lower())

    def test_usage(self):
        self.refused(2, [], "trian")
        self.refused(2, ["--out"], "data", "pack", self.folder)
        self.refused(66, [], "ckpt", "ls", self.folder / "nowhere")
        self.refused(66, [], "eval", "--checkpoint", self.folder / "nowhere", "--data",
                     self.datasets[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
