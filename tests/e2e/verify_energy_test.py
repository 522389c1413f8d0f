"""The energy in the provenance of checkpoints: what counters show, of each start and of all starts
together, and that nothing is stated where no counter can be read. A folder with counters such as
those of the kernel takes the place of /sys/class, in a mount namespace."""
import glob
import pathlib
import re
import subprocess
import time
import unittest

import harness
import policy_harness
from provenance_harness import BUNDLE, CONFIG, FOLDER, KEY, TRUST, statements_of, verify

# Every call of this script adds 1 J to the counters of two packages 20 times a second, until the
# program has ended.
COUNTING = """
set -e
mount -t tmpfs tmpfs /sys/class
for i in 0 1; do
  mkdir -p /sys/class/powercap/intel-rapl:$i
  cd /sys/class/powercap/intel-rapl:$i
  echo package-$i > name; echo 1000000000 > max_energy_range_uj; echo 5000000 > energy_uj
done
cd /
( n=5; while sleep 0.05; do
    n=$((n + 1))
    for i in 0 1; do echo ${n}000000 > /sys/class/powercap/.new-$i
      mv /sys/class/powercap/.new-$i /sys/class/powercap/intel-rapl:$i/energy_uj; done
  done ) &
counter=$!
status=0; "$@" || status=$?
kill $counter
exit $status
"""


def train(run, *settings, counting=False):
    words = harness.command(["train", FOLDER / "run.yaml", f"run.dir={run}", *settings])
    prefix = [harness.OWN_MOUNTS, "sh", "-c", COUNTING, "sh"] if counting else []
    return subprocess.run([*prefix, *map(str, words)], env=harness.ENVIRONMENT,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
                          check=False)


def energies(run):
    """Returns what the statements of each step say, the newest ancestor first."""
    found = {}
    for step in sorted((run / "checkpoints").glob("step-*")):
        assert (step / BUNDLE).exists()
        found[int(step.name[5:])] = [
            statement["predicate"]["buildDefinition"]["internalParameters"]["energy"]
            for statement in statements_of(step, pathlib.Path(TRUST))]
    return found


def facts(run, step):
    _, found = verify(run)
    item = next(item for item in found["items"] if item["place"].endswith(f"step-{step:08}"))
    return [fact for fact in item["facts"] if fact.startswith("energy ")]


def setUpModule():
    harness.must(harness.run("audit", "keygen", "--out", KEY, "--name", "Site A"))
    data, validation = harness.make_datasets(FOLDER)
    text = CONFIG % (data, validation, FOLDER / "run", FOLDER / "audit.jsonl", KEY)
    (FOLDER / "run.yaml").write_text(text.replace("vocab: 259", "vocab: 1003"))


class Unknown(unittest.TestCase):
    @unittest.skipIf(glob.glob("/sys/class/powercap/intel-rapl:*"), "this machine has counters")
    def test_without_counters(self):
        run = FOLDER / "unknown"
        harness.must(train(run))
        for stated in energies(run).values():
            self.assertIsNone(stated[0]["cpu_joules"])
            self.assertNotIn("gpu_joules", stated[0])
            self.assertRegex(stated[0]["unknown"], "processors of .* has no zone")
            self.assertRegex(stated[0]["since"], r"^20..-..-..T..:..:..Z$")
        self.assertRegex(facts(run, 4)[0], "^energy processors not known since .* has no zone")
        (run / "DONE").unlink()
        harness.must(train(run, "train.steps=6"))
        self.assertEqual(facts(run, 6)[1], "energy with that of 1 ancestor: not known")


@unittest.skipUnless(policy_harness.can_mount(), "file systems cannot be mounted here")
class Counted(unittest.TestCase):
    def test_of_each_start_and_of_all(self):
        run = FOLDER / "counted"
        began = time.monotonic()
        harness.must(train(run, counting=True))
        (run / "DONE").unlink()
        harness.must(train(run, "train.steps=6", counting=True))
        most = 2 * 20 * (time.monotonic() - began) + 4  # what the counters can have gained
        stated = energies(run)
        self.assertEqual({step: len(lines) for step, lines in stated.items()}, {2: 1, 4: 1, 6: 2})
        joules = {step: lines[0]["cpu_joules"] for step, lines in stated.items()}
        self.assertLessEqual(joules[2], joules[4])
        self.assertEqual(stated[6][1], stated[4][0], "the line of the parent is repeated")
        for lines in stated.values():
            self.assertNotIn("unknown", lines[0])
            self.assertTrue(0 <= lines[0]["cpu_joules"] <= most, lines)
            self.assertEqual(lines[0]["cpu_joules"] % 1, 0, "whole joules were counted")
        own, together = facts(run, 6)
        self.assertEqual(own, f"energy processors {joules[6]:g} J since {stated[6][0]['since']}")
        self.assertEqual(together,
                         f"energy with that of 1 ancestor: {joules[4] + joules[6]:g} J")
        page = harness.run("verify", run, "--trust", TRUST).stdout
        self.assertTrue(re.search(r"^ +energy processors \d+ J since 20", page, re.MULTILINE), page)

    def test_a_start_without_counters_makes_the_sum_unknown(self):
        if glob.glob("/sys/class/powercap/intel-rapl:*"):
            self.skipTest("this machine has counters")
        run = FOLDER / "partly"
        harness.must(train(run))
        (run / "DONE").unlink()
        harness.must(train(run, "train.steps=6", counting=True))
        own, together = facts(run, 6)
        self.assertRegex(own, r"^energy processors \d+ J since")
        self.assertEqual(together, "energy with that of 1 ancestor: not known")


if __name__ == "__main__":
    unittest.main(verbosity=2)
