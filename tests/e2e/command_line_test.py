"""Tests what needs no training: impossible values, outputs that are full, help and version."""

import json
import re
import subprocess
import unittest
import xml.etree.ElementTree

import harness

DEMO = harness.SOURCE / "configs/run/demo.yaml"


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()

    def refused(self, code, words, *arguments):
        result = harness.run(*arguments, timeout=60)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertLess(len(result.stderr), 600, result.stderr)

    def test_output_that_cannot_be_written(self):
        for words in [["--version"], ["--version", "--json"], ["--help"], ["bench", "--help"],
                      ["config", "show", DEMO], ["config", "show", DEMO, "--json"]]:
            with self.subTest(words):
                result = harness.run_on_full_output(*words)
                self.assertEqual(result.returncode, 74, result.stderr)
                self.assertIn("cannot write to standard output", result.stderr)

    def test_messages_that_cannot_be_written(self):
        run = self.folder / "damaged"
        run.mkdir()
        (run / "journal.jsonl").write_text("torn {\n")
        for code, words in [(74, ["launch", "report", run]), (2, ["trian"])]:
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run(harness.command(words), env=harness.ENVIRONMENT,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=full, timeout=60, check=False)
                self.assertEqual(result.returncode, code)

    def test_closed_output(self):
        words = harness.command(["config", "show", DEMO])
        result = subprocess.run(["bash", "-c", '"$@" >&-', "bash", *words], check=False,
                                env=harness.ENVIRONMENT, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("cannot write to standard output", result.stderr)

    def test_threads_and_counts(self):
        for command in [["generate", "--checkpoint", "x"], ["bench", "step"], ["bench", "loader"],
                        ["bench", "ckpt"]]:
            for threads in ["0", "-1", "1025", "100000", "9" * 40, "010", "2.5"]:
                with self.subTest((command, threads)):
                    self.refused(2, ["--threads", threads, "1024"], *command, "--threads", threads)
        self.refused(2, ["train.threads", "1024"], "config", "show", DEMO, "train.threads=100000")
        self.refused(2, ["--samples"], "eval", "--checkpoint", "x", "--data", "x", "--samples", 0)
        self.refused(2, ["--tokens"], "generate", "--checkpoint", "x", "--tokens", 0)
        self.refused(2, ["--rounds"], "bench", "step", "--rounds", "3000000000")

    def test_seeds(self):
        generate = ["generate", "--checkpoint", self.folder / "none", "--seed"]
        for seed in ["-1", str(2**64), "1e3", ""]:
            with self.subTest(seed):
                self.refused(2, ["--seed"], *generate, seed)
        self.refused(66, ["none"], *generate, 2**64 - 1)

    def test_sequences_beyond_the_context(self):
        self.refused(2, ["--sequence 2000000000", "256"], "bench", "step", "--model", "tiny-gpt2",
                     "--sequence", 2000000000)

    def test_presets_are_listed(self):
        listed = json.loads(harness.must(harness.run("config", "presets", "--json")).stdout)
        names = [preset["name"] for preset in listed["presets"]]
        files = sorted(p.stem for p in (harness.SOURCE / "configs/model").glob("*.yaml"))
        self.assertEqual(sorted(names), files)
        for line in harness.must(harness.run("config", "presets")).stdout.splitlines():
            self.assertLessEqual(len(line), 80)

    def test_presets_have_neighbours(self):
        self.refused(2, ["command line", "model.preset", "did you mean tiny-gpt2?"], "config",
                     "show", DEMO, "model.preset=tiny-gpt3")
        path = self.folder / "typo.yaml"
        path.write_text(DEMO.read_text().replace("preset: tiny-gpt2", "preset: tiny-gtp2"))
        line = path.read_text().split("preset:")[0].count("\n") + 1
        self.refused(2, [f"typo.yaml:{line}", "did you mean tiny-gpt2?"], "config", "show", path)

    def test_json_whatever_the_bytes(self):
        out = subprocess.run(
            [*harness.command(["config", "show", DEMO, "--json"]), b"run.name=a\xffb"],
            env=harness.ENVIRONMENT, stdout=subprocess.PIPE, timeout=60, check=True).stdout
        keys = {k["key"]: k["value"] for k in json.loads(out)["keys"]}
        self.assertIn("a\ufffdb", keys["run.name"])

    def test_version_names_what_it_was_built_with(self):
        version = json.loads(harness.must(harness.run("--version", "--json")).stdout)
        for part, text in version["built_with"].items():
            self.assertTrue(text, part)

    def test_a_misspelt_command(self):
        self.refused(2, ["trireme: unknown command 'trian'; did you mean 'train'?"], "trian",
                     "run.yaml")
        self.refused(2, ["trireme data: unknown command 'pakc'; did you mean 'pack'?"], "data",
                     "pakc", "x", "--out", "y")
        self.refused(2, ["trireme ckpt ls: unknown option '--jsn'; did you mean '--json'?"], "ckpt",
                     "ls", "x", "--jsn")

    def check_help(self, words):
        """Checks the help of a command and of all its subcommands."""
        text = harness.must(harness.run(*words, "--help")).stdout
        with self.subTest(words):
            self.assertTrue(text.startswith("Usage: " + " ".join(["trireme", *words])), text)
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, line)
            self.assertIn("\nExamples:\n", text)
            self.assertNotRegex(text, r"\b(INT|UINT|FLOAT|ENUM)\b|REQUIRED|\{[a-z]")
            self.assertNotRegex(text, r"(?m)^  +-[^ ].* (agent|deputy|rank)$")
            entries = text.split("\nExamples:\n")[0]
            for part in ("Arguments", "Options", "Commands"):
                if f"\n{part}:\n" in entries:
                    listed = entries.split(f"\n{part}:\n")[1].split("\n\n")[0]
                    self.check_entries(listed, words)
        for name in harness.commands_of(*words, "--help"):
            self.check_help([*words, name])

    def check_entries(self, listed, words):
        """Checks that each entry has a description with a capital letter and no period."""
        described = []
        for line in listed.splitlines():
            head = re.match(r"  (?:    )?(-\S.*?|\S.*?)(?:  +(\S.*))?$", line)
            if line.startswith(" " * 26):
                described[-1] = (described[-1] + " " + line.strip()).strip()
            else:
                self.assertIsNotNone(head, line)
                described.append(head.group(2) or "")
        self.assertTrue(described)
        for text in described:
            self.assertRegex(text, r"^[A-Z$].*[^.]$", (words, listed))

    def test_every_help(self):
        self.check_help([])

    def test_hidden_commands(self):
        self.assertEqual(harness.commands_of("launch", "--help"), ["report"])
        self.assertNotIn("deputy", harness.must(harness.run("man", "launch")).stdout)

    def test_groups_have_their_own_examples(self):
        for group in ["bench", "ckpt", "config", "data"]:
            with self.subTest(group):
                out = harness.must(harness.run(group, "--help")).stdout
                self.assertIn(f"trireme {group} ", out.split("Example")[1])

    def test_commands_in_the_tables_of_controls_exist(self):
        document = (harness.SOURCE / "docs/compliance.md").read_text()
        found = set(re.findall(r"`(?:unshare -n )?trireme ([^`]+)`", document))
        self.assertGreater(len(found), 20)
        for words in sorted(text.split() for text in found):
            path = []
            while words and words[0] in harness.commands_of(*path, "--help"):
                path.append(words.pop(0))
            options = harness.must(harness.run(*path, "--help")).stdout
            with self.subTest((path, words)):
                self.assertTrue(path or words[0] == "--version")
                for word in words:
                    if word.startswith("-"):
                        self.assertRegex(options, rf"(?m)^ +(-\w, +)?{word}\b|, {word}\b")

    def test_figures_are_svg(self):
        (self.folder / "metrics.jsonl").write_text('{"step":1,"loss":5}\n{"step":2,"loss":4}\n')
        self.refused(2, ["p.png", ".svg"], "plot", self.folder, "-o", self.folder / "p.png")
        self.assertFalse((self.folder / "p.png").exists())
        points = json.loads(harness.must(harness.run(
            "plot", self.folder, "-o", self.folder / "p.svg", "--json")).stdout)["series"]
        self.assertEqual(points, [{"name": "training", "points": [[1.0, 5.0], [2.0, 4.0]]}])
        figure = self.folder / "loss.svg"
        title = b"a\x01b\x1b[0m\xff\xef\xbf\xbf<c>"
        subprocess.run([*harness.command(["plot", self.folder, "-o", figure, "--title"]), title],
                       env=harness.ENVIRONMENT, stdout=subprocess.DEVNULL, timeout=60, check=True)
        texts = [t.text for t in xml.etree.ElementTree.parse(figure).iter() if t.text]
        self.assertIn("a\\x01b\\x1b[0m\\xff\ufffd<c>", texts)


if __name__ == "__main__":
    unittest.main(verbosity=2)
