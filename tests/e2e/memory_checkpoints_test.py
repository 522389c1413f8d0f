"""Checkpoints in the nodes' memory: ranks are killed, nodes lose their memory, and the run resumes
from the nearest copies with the bits of the uninterrupted run. This machine simulates two nodes,
each with its own folder; the copies are made like those of the agents of `trireme launch`."""

import atexit
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness

STEPS = 40


def node_folders(count):
    """Makes folders in the machine's memory, which are removed when the test ends."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="trireme-e2e-", dir="/dev/shm"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    folders = [base / f"node{i}" for i in range(count)]
    for folder in folders:
        folder.mkdir()
    return folders


def command(nodes, ranks_a_node, *arguments):
    parts = []
    for i, node in enumerate(nodes):
        parts += [":"] if parts else [harness.MPIEXEC]
        parts += ["-n", str(ranks_a_node), "-x", f"TRIREME_NODE_DIR={node}",
                  "-x", f"TRIREME_NODE=n{i}", harness.PROGRAM]
        parts += [str(a) for a in arguments]
    return parts


def run(nodes, ranks_a_node, *arguments, env=None):
    return subprocess.run(command(nodes, ranks_a_node, *arguments),
                          env={**harness.ENVIRONMENT, **(env or {})}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=240, errors="replace",
                          check=False)


def steps_in(node):
    return sorted(p.name for p in (node / "memory" / "own").glob("step-*"))


def copy_newest(source, target):
    """Makes the copy that the agents of two partner nodes would make."""
    newest = (source / "memory" / "own") / steps_in(source)[-1]
    shutil.copytree(newest, target / "memory" / "partner" / source.name / newest.name)


class MemoryCheckpoints(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        cls.reference = cls.make_config("reference", checkpoint__every=0)
        harness.must(harness.run("train", cls.reference, ranks=2))
        cls.bits = harness.loss_bits(cls.reference)
        cls.digest = harness.digest(cls.reference)

    @classmethod
    def make_config(cls, name, **keys):
        values = {"train__steps": STEPS, "checkpoint__every": 1000, "checkpoint__memory_every": 2}
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, "small", "bf16",
                                    **{**values, **keys})

    def assert_same_as_reference(self, config):
        self.assertEqual(self.digest, harness.digest(config))
        self.assertEqual(self.bits, harness.loss_bits(config))

    def kill_amidst(self, config, nodes, ranks_a_node=2, steps=12):
        """Kills a rank with SIGKILL after this many steps of the run are logged, and after this
        start has begun to train."""
        path = harness.run_dir(config) / "metrics.jsonl"
        before = path.read_text() if path.exists() else ""
        log = self.folder / f"{config.stem}.log"
        with open(log, "ab") as out:
            process = subprocess.Popen(command(nodes, ranks_a_node, "train", config),
                                       env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT,
                                       start_new_session=True)
        try:
            ranks = ranks_a_node * len(nodes)
            pids = harness.pids_of_ranks(harness.run_dir(config) / "logs", ranks)
            end = time.monotonic() + 60
            now = before
            while now == before or len(now.splitlines()) < steps:
                now = path.read_text() if path.exists() else before
                self.assertLess(time.monotonic(), end, log.read_text()[-2000:])
                time.sleep(0.02)
            os.kill(pids[ranks - 1], signal.SIGKILL)
            self.assertNotEqual(process.wait(timeout=60), 0)
        finally:
            harness.end_group(process)
        self.assertFalse((harness.run_dir(config) / "DONE").exists())

    def resumed_step(self, result, of="memory, step "):
        return self.resumed_step_of(harness.must(result), of)

    def resumed_step_of(self, result, of="memory, step "):
        found = re.search(rf"resumed from {of}(\d+)", result.stderr)
        self.assertTrue(found, result.stderr[-3000:])
        return int(found[1])

    def test_killed_ranks_go_on_from_memory(self):
        nodes = node_folders(2)
        config = self.make_config("killed")
        self.kill_amidst(config, nodes)
        self.assertGreaterEqual(self.resumed_step(run(nodes, 2, "train", config)), 8)
        self.assert_same_as_reference(config)

    def test_encrypted_memory_has_no_plain_text(self):
        """Copies included. The header of a plain shard would have the types of its tensors."""
        key = self.folder / "site.key"
        harness.must(harness.run("keys", "create", "--out", key))
        nodes = node_folders(2)
        config = self.make_config("encrypted", encryption__keys=f"[file:{key}]",
                                  encryption__accept_plain_data="true")
        self.kill_amidst(config, nodes)
        copy_newest(nodes[0], nodes[1])
        shards = [shard for node in nodes for shard in node.rglob("shard-*.safetensors")]
        self.assertGreaterEqual(len(shards), 6)
        for shard in shards:
            self.assertNotIn(b'"dtype"', shard.read_bytes()[:4096], shard)
            # The keys of a save are written after its shards.
            is_unfinished = shard.parent.name.startswith(".tmp-")
            self.assertTrue(is_unfinished or (shard.parent / "keys.json").exists(), shard)
        refused = run(nodes, 2, "train", config, "encryption.keys=[]")
        self.assertEqual(refused.returncode, 77, refused.stderr)
        shutil.rmtree(nodes[0])
        nodes[0].mkdir()
        self.resumed_step(run(nodes, 2, "train", config))
        digest = harness.must(harness.run("ckpt", "digest", harness.run_dir(config) / "checkpoints",
                                          "--key", f"file:{key}")).stdout
        self.assertEqual(self.digest.strip(), digest.strip())

    def test_another_layout_goes_on_from_memory(self):
        nodes = node_folders(2)
        config = self.make_config("elastic")
        self.kill_amidst(config, nodes)
        self.assertGreaterEqual(self.resumed_step(run(nodes, 1, "train", config)),
                                8)
        self.assert_same_as_reference(config)

    def test_a_lost_node_is_made_good_by_its_partner(self):
        nodes = node_folders(2)
        config = self.make_config("lost")
        self.kill_amidst(config, nodes)
        copy_newest(nodes[1], nodes[0])
        shutil.rmtree(nodes[1])
        result = run(nodes[:1], 2, "train", config)
        self.assertGreaterEqual(self.resumed_step(result), 8)
        self.assertIn("a partner's copy on this node", result.stderr)
        self.assert_same_as_reference(config)

    def test_without_a_copy_the_disk_has_to_do(self):
        nodes = node_folders(2)
        config = self.make_config("disk", checkpoint__every=9, checkpoint__memory_every=1)
        self.kill_amidst(config, nodes, steps=14)
        shutil.rmtree(nodes[1])
        result = run(nodes[:1], 2, "train", config)
        harness.must(result)
        self.assertRegex(result.stderr,
                         r"skipped step \d+ in memory: 2 of 4 shards can be found neither")
        # If the kill came before step 9 was dropped from memory, its first half is read there.
        self.assertRegex(result.stderr,
                         r"resumed from (\S*/step-0*9:|memory, step 9 .* from disk\))")
        self.assert_same_as_reference(config)

    def test_damage_in_memory_is_seen(self):
        nodes = node_folders(2)
        config = self.make_config("damaged", checkpoint__every=5)
        self.kill_amidst(config, nodes)
        copy_newest(nodes[0], nodes[1])
        newest = nodes[0] / "memory" / "own" / steps_in(nodes[0])[-1]
        shard = sorted(newest.glob("shard-*"))[0]
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)
        result = run(nodes, 2, "train", config)
        self.resumed_step(result)
        self.assertIn("used another copy of a damaged file", result.stderr)
        self.assert_same_as_reference(config)

    def test_again_and_again(self):
        nodes = node_folders(2)
        config = self.make_config("often")
        for steps in (6, 10, 14):  # far from the end, which a starved test could miss
            self.kill_amidst(config, nodes, steps=steps)
        self.assertGreaterEqual(self.resumed_step(run(nodes, 2, "train", config)), 10)
        self.assert_same_as_reference(config)
        for node in nodes:
            names = [p.name for p in (node / "memory" / "own").iterdir()]
            self.assertLessEqual(sum(n.startswith("step-") for n in names), 3, names)
            self.assertTrue(all(n.startswith("step-") or n == ".free-4" for n in names), names)

    def test_sigkill_at_every_point_of_a_save(self):
        # Ranks 0 and 2 are the nodes' leaders, which alone rename.
        points = ["snapshot", "snapshot_taken", "gather", "rename", "renamed"]
        cells = [[(point, 0) for point in points],
                 [(point, 2 if point.startswith("rename") else 3) for point in points]]
        # For half of its time, a killed run is an mpirun that waits for ranks to end.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            killed = sum(pool.map(self.kill_one_after_the_other, cells))
        self.assertEqual(killed, 10)

    def kill_one_after_the_other(self, cells):
        """Each start resumes from what the previous one has left, and is killed in its third save.
        Returns the number of kills."""
        nodes = node_folders(2)
        config = self.make_config(f"kill-{cells[0][1]}-{cells[-1][1]}")
        plans = [f"memory.{point}:{rank}:3:kill" for point, rank in cells]
        resumed = 0
        for number, plan in enumerate([*plans, ""]):
            result = run(nodes, 2, "train", config, env={"TRIREME_FAULTS": plan})
            if number > 0:
                before, resumed = resumed, self.resumed_step_of(result)
                self.assertIn(resumed, (before + 2, before + 4, before + 6), plan)
            if plan:
                self.assertNotEqual(result.returncode, 0, plan)
                self.assertIn(f"planned fault: {plan}", result.stderr)
        harness.must(result)
        self.assert_same_as_reference(config)
        return len(plans)

    def test_a_flip_on_the_way_is_seen(self):
        nodes = node_folders(4)
        config = self.make_config("transit")
        self.kill_amidst(config, nodes[:2])
        copy_newest(nodes[1], nodes[2])
        # Rank 1 sends damaged blocks, and rank 2 has a copy.
        result = run(nodes, 1, "train", config, env={"TRIREME_FAULTS": "memory.serve:1:1:corrupt"})
        self.resumed_step(result)
        self.assertIn("or on the way", result.stderr)
        self.assertIn("copies on other nodes", result.stderr)
        self.assert_same_as_reference(config)

    def stop(self, config, nodes):
        """Starts two ranks, and stops them after the first step."""
        with open(self.folder / f"{config.stem}.log", "ab") as out:
            process = subprocess.Popen(command(nodes, 2, "train", config),
                                       env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT,
                                       start_new_session=True)
        try:
            pids = harness.pids_of_ranks(harness.run_dir(config) / "logs", 2)
            while not (harness.run_dir(config) / "metrics.jsonl").exists():
                time.sleep(0.02)
            os.kill(pids[0], signal.SIGUSR2)
            self.assertEqual(process.wait(timeout=60), 75)
        finally:
            harness.end_group(process)

    def test_a_stop_saves_on_disk(self):
        nodes = node_folders(1)
        config = self.make_config("stopped")
        self.stop(config, nodes)
        shutil.rmtree(nodes[0])
        harness.must(harness.run("train", config, ranks=2))
        self.assert_same_as_reference(config)

    def test_a_stop_saves_what_is_encrypted_in_memory(self):
        """A stop after a step that is in memory already writes that copy to disk."""
        key = self.folder / "stop.key"
        harness.must(harness.run("keys", "create", "--out", key))
        nodes = node_folders(1)
        config = self.make_config("stopped-encrypted", encryption__keys=f"[file:{key}]",
                                  encryption__accept_plain_data="true",
                                  checkpoint__memory_every=1)
        self.stop(config, nodes)
        verified = harness.must(harness.run("ckpt", "verify", "--all", "--key", f"file:{key}",
                                            harness.run_dir(config) / "checkpoints"))
        self.assertIn("every block opens", verified.stdout)

    def test_a_full_disk_and_a_start_from_encrypted_memory(self):
        """The last step is in memory only; the next start loads it and saves it on disk."""
        key = self.folder / "full.key"
        harness.must(harness.run("keys", "create", "--out", key))
        nodes = node_folders(1)
        config = self.make_config("full-encrypted", encryption__keys=f"[file:{key}]",
                                  encryption__accept_plain_data="true")
        full = run(nodes, 2, "train", config,
                   env={"TRIREME_FAULTS": "ckpt.shard_write:*:*:errno=ENOSPC"})
        self.assertEqual(full.returncode, 74, full.stderr)
        self.assertEqual(self.resumed_step(run(nodes, 2, "train", config)), STEPS)
        verified = harness.must(harness.run("ckpt", "verify", "--all", "--key", f"file:{key}",
                                            harness.run_dir(config) / "checkpoints"))
        self.assertIn("every block opens", verified.stdout)

    def test_without_node_folders_it_says_so_once(self):
        config = self.make_config("plain")
        result = harness.must(harness.run("train", config, ranks=2))
        self.assertEqual(result.stderr.count("checkpoint.memory_every is set"), 1)
        self.assert_same_as_reference(config)

    def test_no_room_in_memory(self):
        nodes = node_folders(1)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs",
                                  nodes[0]],
                                 check=False, capture_output=True).returncode == 0
        if not mounted:
            self.skipTest("needs to mount a file system: run as root with CAP_SYS_ADMIN")
        try:
            config = self.make_config("full")
            result = harness.must(run(nodes, 2, "train", config))
            self.assertIn("was not saved in memory, training continues", result.stderr)
            self.assert_same_as_reference(config)
        finally:
            subprocess.run(["umount", nodes[0]], check=False)

    def test_copies_are_counted_where_there_is_a_partner(self):
        bytes_on = {}
        for nodes, ranks in ((1, 2), (2, 1)):
            config = self.make_config(f"counted{nodes}", train__steps=4)
            harness.must(run(node_folders(nodes), ranks, "train", config))
            bytes_on[nodes] = harness.predicted_memory(config)[0]["snapshot"]
        self.assertEqual(5 * bytes_on[1], 3 * bytes_on[2])

    # Every shard in memory is damaged, and nothing was ever on disk.
    def test_damage_in_memory_alone_is_no_fresh_start(self):
        nodes = node_folders(1)
        config = self.make_config("ruined")
        self.kill_amidst(config, nodes)
        for shard in nodes[0].glob("memory/own/step-*/shard-*"):
            data = bytearray(shard.read_bytes())
            data[len(data) // 2] ^= 1
            shard.write_bytes(data)
        result = run(nodes, 2, "train", config)
        self.assertEqual(result.returncode, 65, result.stderr[-2000:])
        self.assertIn("the nodes' memory holds checkpoints, but none is valid", result.stderr)
        # A new launch finds nothing and starts afresh.
        harness.must(run(node_folders(1), 2, "train", config))
        self.assert_same_as_reference(config)

    # Ranks of one host read common data once, which is all data here, as the ranks are replicas.
    def test_replicas_read_the_disk_once(self):
        config = self.make_config("once", checkpoint__memory_every=0, checkpoint__every=20)
        harness.must(harness.run("train", config, ranks=2))
        steps = harness.run_dir(config) / "checkpoints"
        whole = sum(p.stat().st_size for p in (steps / "step-00000020").glob("shard-*"))
        shutil.rmtree(steps / f"step-{STEPS:08}")
        harness.must(harness.run("train", config, ranks=4))
        lines = (harness.run_dir(config) / "logs" / "rank-00000.jsonl").read_text().splitlines()
        told = [line for line in map(json.loads, lines) if line.get("event") == "resumed"]
        self.assertEqual(told[-1]["step"], 20)
        self.assertLessEqual(sum(told[-1]["bytes"]), whole)
        self.assert_same_as_reference(config)

    def test_intervals_of_their_own(self):
        nodes = node_folders(1)
        config = self.make_config("auto", checkpoint__every="auto",
                                  checkpoint__memory_every="auto", checkpoint__mtbf=0.001)
        result = harness.must(run(nodes, 2, "train", config))
        for key in ("checkpoint.every", "checkpoint.memory_every"):
            self.assertRegex(result.stderr,
                             key + r": every \d+ steps, .* a failure is expected every 0.001 h")
        self.assert_same_as_reference(config)

    def test_listing_tells_of_memory(self):
        nodes = node_folders(2)
        config = self.make_config("listed")
        self.kill_amidst(config, nodes)
        copy_newest(nodes[1], nodes[0])
        disk = harness.run_dir(config) / "checkpoints"
        listed = harness.must(harness.run("ckpt", "ls", disk, "--memory", nodes[0], "--json"))
        memory = json.loads(listed.stdout)["memory"]
        self.assertTrue(any(step["copy"] for step in memory))
        self.assertEqual({step["shards"] for step in memory}, {4})
        text = harness.must(harness.run("ckpt", "ls", disk, "--memory", nodes[0])).stdout
        self.assertIn("copy for a partner", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
