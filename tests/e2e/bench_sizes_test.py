"""Tests which sizes `trireme bench coll` measures, and which it leaves out for lack of time or
memory."""

import unittest

from bench_test import coll, strict, table
import harness


class Sizes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()

    def test_collectives_end_in_time_and_name_what_they_left_out(self):
        """The warm-up alone would take hours."""
        path = self.folder / "late.json"
        out = harness.must(harness.run(
            "bench", "coll", "--op", "all_reduce,all_gather", "-b", "1K", "-e", "64M", "-f", 4,
            "-w", 1_000_000, "--duration", 0.1, "-J", path, ranks=2, timeout=120)).stdout
        document = strict(path)
        self.assertIn("all_reduce, 64 MiB", document["left_out"])
        self.assertEqual(out.count("\n# left out, as --duration was too short: "), 2)
        self.assertEqual(len(table(out)), len(document["results"]))
        self.assertEqual(len(document["results"]) + len(document["left_out"]), 2 * 9)
        for result in document["results"]:
            self.assertLess(result["measurement"]["warmup"], 1_000_000)

    def test_sizes_without_memory_are_left_out_and_named(self):
        """No host has room for four arrays of 1 TiB."""
        sizes = ["-b", "1M", "-e", "1024G", "-f", 1, "-i", f"{(1 << 20) - 1}M"]
        path = self.folder / "large.json"
        for tuning in ([], ["--write-tuning", self.folder / "small.json"]):
            out = coll("--op", "all_reduce,all_gather", *sizes, "-J", path, *tuning).stdout
            self.assertEqual(
                out.count("\n# left out, as the memory is too small: 1 TiB\n"), 2, out)
            document = strict(path)
            self.assertEqual(document["left_out"], ["all_reduce, 1 TiB", "all_gather, 1 TiB"])
            self.assertEqual({r["params"]["bytes"] for r in document["results"]}, {1 << 20})
        refused = harness.run("bench", "coll", "-b", "1024G", "-e", "1024G", ranks=2)
        self.assertEqual(refused.returncode, 76, refused.stderr)
        self.assertRegex(refused.stderr, r"1 TiB: the memory is too small: its 4 arrays .* free")

    def test_sizes_without_time_take_no_memory(self):
        path = self.folder / "late_and_large.json"
        harness.must(harness.run("bench", "coll", "-b", "1M", "-e", "1024G", "-f", 1024, "-w",
                                 1_000_000, "--duration", 0.1, "-J", path, ranks=2, timeout=120))
        self.assertEqual(strict(path)["left_out"], ["all_reduce, 1 GiB", "all_reduce, 1 TiB"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
