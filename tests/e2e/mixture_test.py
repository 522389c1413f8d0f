"""Tests runs that train on several datasets: the same bits and the same numbers of each source on
any ranks and after a kill, labels and provenance of every source, and what is refused."""

import json
import unittest

import harness

STEPS = 9


class Mixture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.web, cls.held_out = harness.make_datasets(cls.folder, 60_000)
        text = harness.make_text(cls.folder / "text-code", 20_000, 7)
        cls.code = cls.folder / "code/train"
        harness.must(harness.run("data", "pack", "--out", cls.code, text, "--label",
                                 "classification=secret"))
        cls.mixed = f"[{{name: web, path: {cls.web}, weight: 2}}, " \
                    f"{{path: {cls.code}, weight: {{0: 0.5, 4: 2}}, epochs: 1}}]"
        cls.sets = f"[{{name: held_out, path: {cls.held_out}}}, {{path: {cls.code}}}]"
        cls.reference = cls.config("reference")
        harness.must(harness.run("train", cls.reference))

    @classmethod
    def config(cls, name, **keys):
        return harness.write_config(
            cls.folder / f"{name}.yaml", [cls.mixed, cls.sets], "small",
            **{"train__steps": STEPS, "checkpoint__every": 4, "train__eval_every": 5, **keys})

    def exact(self, config):
        """Returns what must not depend on ranks and restarts."""
        return [{k: line.get(k) for k in ("step", "loss_bits", "sources", "val_losses")}
                for line in harness.metrics(config)]

    def refused(self, words, *arguments, code=2):
        result = harness.run("train", *arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout + result.stderr)

    def test_counts_and_losses_of_every_source(self):
        lines = self.exact(self.reference)
        # Of 8 samples, 6.4 are from web and 1.6 from code; from step 4 on, half from each.
        tokens = [[line["sources"][name]["tokens"] // 48 for name in ("web", "code")]
                  for line in lines]
        self.assertEqual(tokens[-1], [26 + 20, 6 + 20])
        self.assertEqual([sum(t) for t in tokens], [8 * (i + 1) for i in range(STEPS)])
        self.assertEqual(set(lines[4]["val_losses"]), {"held_out", "code"})
        report = self.folder / "report.html"
        harness.must(harness.run("report", harness.run_dir(self.reference), "--out", report))
        self.assertIn("Loss by source of the training data", report.read_text())

    def test_the_same_bits_on_other_ranks_and_after_a_kill(self):
        expected = self.exact(self.reference)
        two = self.config("two", parallel__zero=1)
        faults = {"TRIREME_FAULTS": "step.end:1:6:kill"}
        killed = harness.run("train", two, ranks=2, env=faults)
        self.assertNotEqual(killed.returncode, 0)
        harness.must(harness.run("train", two, "parallel.pp=2", ranks=4))
        self.assertEqual(self.exact(two), expected)
        self.assertEqual(harness.digest(two), harness.digest(self.reference))

    def test_weights_change_in_the_middle_of_a_run(self):
        changed = self.config("changed")
        killed = harness.run(
            "train", changed, f"data.train=[{{name: web, path: {self.web}, weight: 2}}, "
            f"{{path: {self.code}, weight: 0.5, epochs: 1}}]",
            env={"TRIREME_FAULTS": "step.end:0:6:kill"})
        self.assertNotEqual(killed.returncode, 0)
        self.refused(["data.mixture: checkpoint"], changed)
        harness.must(harness.run("train", changed, "checkpoint.allow_change=[data.mixture]"))
        self.assertEqual(self.exact(changed), self.exact(self.reference))
        self.assertEqual(harness.digest(changed), harness.digest(self.reference))

    def test_labels_and_weights_are_in_the_checkpoint(self):
        step = sorted((harness.run_dir(self.reference) / "checkpoints").glob("step-*"))[-1]
        manifest = json.loads((step / "manifest.json").read_text())
        self.assertEqual(manifest["label"]["classification"], "secret")
        self.refused(["data.mixture: checkpoint"], self.reference, "train.steps=12",
                     f"data.train=[{{name: web, path: {self.web}, weight: 1}}, "
                     f"{{path: {self.code}, weight: 1}}]")

    def test_what_is_refused(self):
        config = self.config("refused")
        self.refused(["data.train.code: the run takes", "`epochs` allows 1"], config,
                     "train.steps=400")
        self.refused(["data.train: [] is not allowed"], config, "data.train=[]")
        self.refused(["entry 1: weight is -1"], config,
                     f"data.train=[{{path: {self.web}, weight: -1}}, {{path: b, weight: 1}}]")
        golden = json.loads((harness.SOURCE / "tests/io/tokens/golden/gpt2.json").read_text())
        (self.folder / "gpt2.json").write_text(json.dumps(golden["tokenizer"]))
        foreign = self.folder / "foreign"
        harness.must(harness.run("data", "pack", "--out", foreign, self.folder / "text-code",
                                 "--tokenizer", self.folder / "gpt2.json"))
        self.refused(["data.train.foreign", "was made with the tokenizer"], config,
                     f"data.train=[{self.web}, {foreign}]")
        self.refused(["nowhere"], config,
                     f"data.train=[{self.web}, {self.folder / 'nowhere'}]", code=66)


if __name__ == "__main__":
    unittest.main()
