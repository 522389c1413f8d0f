"""Power cuts. Every change that a run makes to its checkpoint folder is recorded, over saves,
retention, a resume, and a step that is repeated and replaced. For each point in time, the test
constructs every disk that a power cut may leave. On each of them, the newest checkpoint that a run
would load must be a committed one with the digest of the uninterrupted run, not older than the
latest one reported as durable nor than the one that DONE promises. The next run must be able to
take over the folder and to save into it."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
import power_cut  # noqa: E402

BUILT = pathlib.Path(harness.PROGRAM).resolve().parent
RECORDER = BUILT / "tests/support/libtrireme_call_recorder.so"
CHECKER = BUILT / "tests/support/power_cut_check"
SMALL = ["model.layers=1", "model.hidden=16", "model.heads=2", "model.vocab=300",
         "model.context=16", "data.sequence=16", "checkpoint.every=1"]
SEED = 20240301
AT_ONCE = 250


RUN = "run"
CHECKPOINTS = f"{RUN}/checkpoints"
DONE = f"{RUN}/DONE"


def step_of(name):
    found = re.fullmatch(r"step-(\d{8})", name)
    return int(found[1]) if found else 0


def counts(change):
    """Returns whether a change matters; logs and metrics promise nothing."""
    name = change.path
    if name == "":
        return change.kind == power_cut.SYNC
    return name in (RUN, CHECKPOINTS) or name.startswith((CHECKPOINTS + "/", DONE))


class PowerCut(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)
        cls.expected = cls.digests_of_the_uninterrupted_run()
        cls.changes = cls.recorded_run()

    @classmethod
    def train(cls, name, steps, keep, *arguments, env=None):
        run_dir = cls.folder / name / RUN
        config = harness.write_config(cls.folder / f"{name}.yaml", cls.datasets,
                                      train__steps=steps, run__dir=run_dir)
        harness.must(harness.run("train", config, *SMALL, f"checkpoint.keep={keep}",
                                 "optimizer.schedule.steps=6", *arguments, ranks=2, env=env))
        return run_dir / "checkpoints"

    @classmethod
    def digests_of_the_uninterrupted_run(cls):
        checkpoints = cls.train("whole", 6, 100)
        return {step_of(path.name): harness.must(harness.run("ckpt", "digest", path)).stdout.strip()
                for path in checkpoints.glob("step-*")}

    @classmethod
    def recorded_run(cls):
        logs = [cls.folder / f"changes-{start}" for start in range(3)]
        env = {
            "LD_PRELOAD": str(RECORDER),
            "TRIREME_RECORD_ROOT": str(cls.folder / "cut"),
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
        }
        starts = [(4, []), (6, []), (6, ["checkpoint.resume=5"])]  # the last one replaces step 6
        for log, (steps, arguments) in zip(logs, starts):
            cls.train("cut", steps, 2, *arguments, env={**env, "TRIREME_RECORD_LOG": str(log)})
        changes = [list(filter(counts, power_cut.read_log(log))) for log in logs]
        cls.replacing = len(changes[0]) + len(changes[1])
        return [change for start in changes for change in start]

    def check_done(self, folder, step, line):
        """Checks that the step in DONE exists, unless it has been deleted since."""
        done = folder / DONE
        if done.exists():
            promised = json.loads(done.read_text())["step"]
            if (folder / CHECKPOINTS / f"step-{promised:08d}").exists():
                self.assertGreaterEqual(step, promised, line)

    def good_step(self, text, line):
        """Returns the step in "STEP DIGEST", or 0 for "none"."""
        if text == "none":
            return 0
        step, digest = text.split(" ", 1)
        self.assertEqual(digest, self.expected[int(step)], line)
        return int(step)

    def check(self, images):
        """Checks images, a list of (folder, oldest step that is acceptable)."""
        folders = "".join(f"{folder / CHECKPOINTS}\n" for folder, _ in images)
        lines = subprocess.run([CHECKER], input=folders, text=True, capture_output=True,
                               check=True).stdout.splitlines()
        self.assertEqual(len(lines), len(images))
        for line, (folder, floor) in zip(lines, images):
            path, *found = line.split("\t")
            self.assertEqual(path, str(folder / CHECKPOINTS))
            self.assertEqual(len(found), 3, line)
            before, after = (self.good_step(text, line) for text in found[:2])
            self.assertGreaterEqual(before, floor, line)
            self.assertGreaterEqual(after, before, line)
            self.assertEqual(found[2], "saved", line)
            self.check_done(folder, after, line)

    def test_every_cut(self):
        chance = random.Random(SEED)
        writer = power_cut.ImageWriter(pathlib.Path(tempfile.mkdtemp(dir=self.folder)))
        disk = power_cut.Disk()
        seen, waiting = set(), []
        cuts = images = floor = 0
        for change in self.changes:
            disk.follow(change)
            cuts += 1
            floor = max([floor, *map(step_of, disk.safe_names(CHECKPOINTS))])
            # While step 6 is replaced, step 5 may be the newest one.
            floor = min(floor, 5) if cuts > self.replacing else floor
            for image in disk.images(chance):
                images += 1
                key = (frozenset(image.items()), floor)
                if key in seen:
                    continue
                seen.add(key)
                waiting.append((writer.write(disk, image, f"image-{len(seen)}"), floor))
            if len(waiting) >= AT_ONCE:
                self.check(waiting)
                for folder, _ in waiting:
                    shutil.rmtree(folder)
                waiting = []
        self.check(waiting)
        print(f"{cuts} cuts, {images} images of the disk, {len(seen)} different")
        self.assertEqual(floor, 5, "the run was recorded whole")
        self.assertGreater(cuts, 150)
        self.assertGreater(len(seen), 500)

    def test_the_record_is_what_happened(self):
        disk = power_cut.Disk()
        for change in self.changes:
            disk.follow(change)
        names = range(len(disk.pending_names))
        image = disk.image(names, lambda _: "all")
        root = self.folder / "cut"
        there = {str(p.relative_to(root)) for p in (root / CHECKPOINTS).rglob("*")}
        self.assertEqual(set(image), there | {RUN, CHECKPOINTS, DONE})
        for path, entry in image.items():
            if entry is not None:
                followed = disk.contents(entry[0], entry[2])
                self.assertEqual(followed, (root / path).read_bytes(), path)

    def test_a_writer_that_does_not_sync_is_found_out(self):
        """Shows that the test finds faults: it must fail without the syncs of shards and manifests.
        """
        weak = [c for c in self.changes
                if not (c.kind == power_cut.SYNC and "/.tmp" in c.path)]
        whole, self.changes = self.changes, weak
        try:
            # The error must come from an image, not from the end of the run.
            with self.assertRaisesRegex(AssertionError, "image-"):
                self.test_every_cut()
        finally:
            self.changes = whole


if __name__ == "__main__":
    os.environ.pop("LD_PRELOAD", None)
    unittest.main(verbosity=2)
