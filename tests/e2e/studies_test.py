"""Tests the commands that turn results into answers; scale_test.py tests `trireme scale`."""

import fcntl
import hashlib
import json
import os
import re
import socket
import statistics
import sys
import tarfile
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "benchmarks/schema"))
import validate  # noqa: E402


def strict(text, kind=None):
    """Parses JSON, which obeys the schema of its kind if there is one."""
    if kind:
        problems = validate.problems_of(text, kind)
        if problems:
            raise AssertionError("\n".join(problems))
    return validate.parse(text)


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.measured = cls.folder / "measured.json"
        harness.must(harness.run("bench", "gemm", "--size", 64, "--duration", 0.5, "-J",
                                 cls.measured))
        cls.measured = cls.steady(1)

    @classmethod
    def variant(cls, name, change):
        document = json.loads(cls.measured.read_text())
        change(document)
        path = cls.folder / name
        path.write_text(json.dumps(document))
        return path

    @classmethod
    def steady(cls, factor):
        """The measured result with samples within 2 % of factor times their median: how much those
        of a busy machine scatter must not decide what the comparison finds."""
        def change(document):
            for result in document["results"]:
                for samples in result["samples"].values():
                    median = statistics.median(samples["values"])
                    samples["values"] = [factor * median * (1 + i % 5 / 200)
                                         for i in range(len(samples["values"]))]
        return cls.variant(f"steady-{factor}.json", change)

    def compare(self, *arguments, code=0):
        result = harness.run("compare", *arguments, timeout=60)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_a_result_and_itself(self):
        out = self.compare(self.measured, self.measured).stdout
        self.assertIn("# 0 regressions", out)
        comparison = strict(self.compare(self.measured, self.measured, "--json").stdout,
                            "compare")
        self.assertEqual((comparison["regressions"], comparison["improvements"]), (0, 0))
        self.assertTrue(all(row["change"] == 0 for row in comparison["rows"]))

    def test_too_few_samples_are_no_success(self):
        def few(document):
            for result in document["results"]:
                result["samples"]["time_us"].update(values=[5.0, 5.1, 5.2], by_rank=None)
        few = self.variant("few.json", few)
        result = self.compare(few, few, code=2)
        self.assertIn("2 undecided", result.stdout)
        self.assertIn("nothing could be decided", result.stderr)

    def test_a_slowdown_ends_with_4(self):
        fast, slow = self.measured, self.steady(2.5)
        out = self.compare(fast, slow, code=4).stdout
        self.assertIn("REGRESSION", out)
        self.assertIn("improvement", self.compare(slow, fast).stdout)
        self.compare(fast, slow, "--threshold", 200)
        row = strict(self.compare(fast, slow, "--json", code=4).stdout, "compare")["rows"][0]
        self.assertAlmostEqual(row["change"], 1.5, delta=0.1)
        self.assertLessEqual(row["change_low"], row["change"])
        self.assertEqual((row["better"], row["verdict"]), ("lower", "regression"))

    def test_unlike_results_are_refused(self):
        def other(document):
            document["host"]["cores"] = 4096
            document["environment"]["OMP_NUM_THREADS"] = "<b>'\"\x1b[31m"
        unlike = self.variant("unlike.json", other)
        message = self.compare(self.measured, unlike, code=2).stderr
        self.assertIn("host.cores: ", message)
        self.assertIn("--allow-unlike", message)
        self.assertNotIn("\x1b", message)
        warned = self.compare(self.measured, unlike, "--allow-unlike", "--json")
        self.assertIn("4096", warned.stderr)
        self.assertEqual(len(strict(warned.stdout, "compare")["unlike"]), 2)
        command = self.variant("command.json", lambda d: d.update(command="mem"))
        self.assertIn("one measures gemm, the other mem",
                      self.compare(self.measured, command, "--allow-unlike", code=2).stderr)

    def test_units(self):
        """Samples in milliseconds are not those in microseconds, and nothing is converted."""
        def milliseconds(every):
            def change(document):
                for result in document["results"][:None if every else 1]:
                    result["samples"]["time_ms"] = result["samples"].pop("time_us")
            return change
        other = self.variant("ms.json", milliseconds(True))
        message = self.compare(self.measured, other, code=2).stderr
        self.assertIn("have no samples in common", message)
        some = self.variant("some-ms.json", milliseconds(False))
        found = strict(self.compare(self.measured, some, "--json").stdout, "compare")
        self.assertEqual([row["samples"] for row in found["rows"]], ["time_us"])
        self.assertIn("time_us", found["only_a"][0])
        self.assertIn("time_ms", found["only_b"][0])

    def test_files_that_are_no_results(self):
        text = self.measured.read_text()
        for name, damaged in [("half.json", text[:len(text) // 2]), ("empty.json", ""),
                              ("nan.json", text.replace('"time": ', '"time": NaN, "x": ', 1)),
                              ("old.json", text.replace('"schema": 2', '"schema": 1', 1))]:
            with self.subTest(name):
                path = self.folder / name
                path.write_text(damaged)
                self.assertIn(name, self.compare(self.measured, path, code=65).stderr)
        self.compare(self.measured, self.folder / "missing.json", code=66)
        self.compare(self.measured, self.folder, code=66)


    def test_samples_without_an_answer_are_no_success(self):
        def with_samples(values):
            def change(document):
                for result in document["results"]:
                    result["samples"]["time_us"].update(values=values, by_rank=[values])
            return change
        for name, values, shown in [("zero", [0.0] * 9, "-> 0, no ratio"),
                                    ("null", [None] * 9, "-> none, no ratio"),
                                    ("empty", [], "-> none, no ratio")]:
            with self.subTest(name):
                odd = self.variant(f"{name}.json", with_samples(values))
                result = self.compare(self.measured, odd, code=2)
                self.assertIn(shown, result.stdout)
                self.assertIn("2 not judged", result.stdout)
                self.assertIn("nothing could be judged", result.stderr)
                history = self.folder / f"{name}.jsonl"
                result = harness.run("history", history, "--add", odd)
                self.assertEqual(result.returncode, 65, result.stdout + result.stderr)
                self.assertIn("nothing in it belongs into a history", result.stderr)


class History(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.file = cls.folder / "history.jsonl"
        measured = cls.folder / "measured.json"
        harness.must(harness.run("bench", "gemm", "--size", 64, "--precision", "fp32",
                                 "--duration", 0.2, "-J", measured))
        document = json.loads(measured.read_text())
        for day in range(24):
            document["time"] = 1.8e9 + 86400 * day
            level = (100 if day < 14 else 120) * (1 + 0.01 * (day * 7 % 5))
            document["program"]["commit"] = "old" if day < 14 else "new<b>"
            document["results"][0]["samples"]["time_us"]["values"] = [level] * 5
            (cls.folder / f"{day}.json").write_text(json.dumps(document))
        adds = [word for day in range(24) for word in ("--add", cls.folder / f"{day}.json")]
        cls.added = harness.must(harness.run("history", cls.file, *adds)).stdout

    def test_finds_the_change(self):
        self.assertEqual(self.added.count("1 line added"), 24)
        for line in self.file.read_text().splitlines():
            strict(line, "history-line")
        out = harness.must(harness.run("history", self.file)).stdout
        self.assertRegex(out, r"2027-01-29 to 2027-02-07 +10 x .* SLOWER, commit old -> new<b>")
        series = strict(harness.must(harness.run("history", self.file, "--json")).stdout,
                        "history")["series"]
        self.assertEqual([level["begin"] for level in series[0]["levels"]], [0, 14])
        self.assertEqual(harness.run("history", self.file, "--check").returncode, 4)
        self.assertEqual(harness.run("history", self.file, "--check", "--threshold",
                                     30).returncode, 0)

    def test_a_result_is_added_once(self):
        again = harness.must(harness.run("history", self.file, "--add", self.folder / "3.json"))
        self.assertIn("0 lines added", again.stdout)
        self.assertEqual(len(self.file.read_text().splitlines()), 24)

    def test_a_lock_that_is_never_released(self):
        locked = self.folder / "locked.jsonl"
        with open(locked, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            result = harness.run("history", locked, "--add", self.folder / "1.json", timeout=60)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("lslocks", result.stderr)

    def test_damage(self):
        torn = self.folder / "torn.jsonl"
        torn.write_text(self.file.read_text()[:-30])
        result = harness.must(harness.run("history", torn))
        self.assertIn("ignored 1 line", result.stderr)
        other = self.folder / "other.jsonl"
        other.write_text('{"schema": 9}\n')
        self.assertEqual(harness.run("history", other).returncode, 65)
        self.assertEqual(harness.run("history", self.folder / "missing.jsonl").returncode, 66)
        self.assertEqual(harness.run("history", "/dev/full", "--add",
                                     self.folder / "1.json").returncode, 77)
        zeros = self.folder / "zeros.jsonl"
        zeros.write_bytes(bytes(4096))
        for arguments in [[], ["--add", self.folder / "1.json"]]:
            result = harness.run("history", zeros, *arguments)
            self.assertEqual(result.returncode, 65)
            self.assertIn("zeros instead of a history", result.stderr)
        self.assertEqual(zeros.read_bytes(), bytes(4096))


class Archive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.run_dir = cls.folder / "run"
        (cls.run_dir / "logs").mkdir(parents=True)
        (cls.run_dir / "checkpoints").mkdir()
        (cls.run_dir / "checkpoints/weights.json").write_text("{}")
        (cls.run_dir / "config.yaml").write_text(
            "data: {train: /users/mary/corpus}\napi_key: hunter2\n")
        (cls.run_dir / "logs/rank-00000.jsonl").write_text(
            '{"host":"gpu07.site.org","message":"peer 10.1.2.3, password=hunter2 \\"<b>"}\n{"half')
        (cls.run_dir / "metrics.jsonl").write_text('{"step":1,"tokens_per_s":5}\n')
        (cls.run_dir / "core.json").write_bytes(b"\0\1")
        (cls.run_dir / "link.json").symlink_to("/etc/passwd")
        (cls.run_dir / "weights.bin").write_text("x")
        (cls.run_dir / "password=hunter2.bin").write_text("x")
        os.mkfifo(cls.run_dir / "fifo.log")

    def archive(self, *arguments, code=0):
        result = harness.run("archive", *arguments, timeout=60)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def contents(self, path):
        with tarfile.open(path) as tar:
            self.assertTrue(all(m.isfile() and m.uid == 0 and m.uname == "" for m in tar))
            return {m.name: tar.extractfile(m).read().decode() for m in tar.getmembers()}

    def test_secrets_and_what_stays_here(self):
        out = self.folder / "a.tar"
        job = self.folder / "job.out"
        job.write_text("Bearer hunter2hunter2\n")
        text = self.archive(self.run_dir, "-o", out, "--with", job).stdout
        self.assertIn("3 secrets removed", text)
        files = self.contents(out)
        self.assertEqual(set(files), {f"run/{name}" for name in (
            "MANIFEST.json", "config.yaml", "logs/rank-00000.jsonl", "metrics.jsonl",
            "more/job.out")})
        self.assertNotIn("hunter2", "".join(files.values()))
        self.assertIn("gpu07", files["run/logs/rank-00000.jsonl"])
        manifest = strict(files["run/MANIFEST.json"])
        for each in manifest["files"]:
            text = files["run/" + each["name"]].encode()
            self.assertEqual((each["bytes"], each["sha256"]),
                             (len(text), hashlib.sha256(text).hexdigest()))
        self.assertEqual({each["name"] for each in manifest["left_out"]},
                         {"checkpoints/", "core.json", "fifo.log", "link.json", "weights.bin",
                          "password=REDACTED"})

    def test_names(self):
        out = self.folder / "b.tar"
        self.archive(self.run_dir, "-o", out, "--anonymous")
        files = self.contents(out)
        everything = "".join(files.values()) + "".join(files)
        for name in ("gpu07", "site.org", "mary", "10.1.2.3", "hunter2"):
            self.assertNotIn(name, everything)
        self.assertIn("/users/user-", files["archive/config.yaml"])

    def test_strict(self):
        out = self.folder / "c.tar"
        text = self.archive(self.run_dir, "-o", out, "--strict").stdout
        self.assertIn("3 files", text)
        mark = "-[0-9a-f]{6}-[0-9]+"  # differs from archive to archive
        files = {name: re.sub(mark, "-N", text) for name, text in self.contents(out).items()}
        manifest = strict(files.pop("archive/MANIFEST.json"))
        self.assertTrue(manifest["strict"])
        self.assertEqual({name: json.loads(text) for name, text in files.items()
                          if name.endswith(".jsonl")},
                         {"archive/metrics.jsonl": {"step": 1, "tokens_per_s": 5},
                          "archive/logs/rank-00000.jsonl": {"host": "host-N",
                                                            "message": "text-N"}})
        self.assertEqual(files["archive/config.yaml"], "data:\n  train: text-N\ntext-N: text-N\n")
        self.assertEqual(sorted(each["name"] for each in manifest["left_out"]),
                         ["checkpoints/", "file-N", "file-N", "file-N.json", "file-N.json",
                          "file-N.log"])
        result = self.archive(self.run_dir, "--strict", "--with", "/etc/hostname", code=2)
        self.assertIn("no record of this program", result.stderr)

    def test_refusals(self):
        self.archive(self.folder / "missing", code=66)
        (self.folder / "empty").mkdir(exist_ok=True)
        self.archive(self.folder / "empty", code=66)
        self.archive(self.run_dir, "--with", self.folder / "missing", code=66)
        self.archive(self.run_dir, "-o", "/dev/full", code=77)


class StrictArchive(unittest.TestCase):
    """An archive with --strict of a real run: all figures, and no name."""

    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.config = harness.write_config(
            cls.folder / "jane.yaml", harness.make_datasets(cls.folder), train__steps=6,
            train__eval_every=3, run__name="acme-13", checkpoint__every=2)
        harness.must(harness.run("train", cls.config, ranks=2))
        cls.run_dir = harness.run_dir(cls.config)
        harness.must(harness.run("archive", cls.run_dir, "--strict", "-o", cls.folder / "a.tar"))
        with tarfile.open(cls.folder / "a.tar") as tar:
            tar.extractall(cls.folder)
        cls.archive = cls.folder / "archive"

    def test_no_name_is_in_it(self):
        everything = (self.folder / "a.tar").read_bytes()
        self.assertTrue(re.search(rb"host-[0-9a-f]{6}-[0-9]+", everything))
        for name in (socket.gethostname(), "jane", "acme", str(self.folder), self.folder.name):
            self.assertFalse(name.encode() in everything, name)

    def test_all_figures_are_in_it(self):
        lines = [[json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
                 for folder in (self.run_dir, self.archive)]
        self.assertEqual(lines[0], lines[1])
        self.assertEqual(len(lines[0]), 6)

    def test_events_are_in_it(self):
        events = [{json.loads(line).get("event")
                   for line in (folder / "logs/rank-00000.jsonl").read_text().splitlines()}
                  for folder in (self.run_dir, self.archive)]
        self.assertIn("step", events[0])
        self.assertEqual(events[0], events[1])

    def test_its_configuration_is_one(self):
        shown = [json.loads(harness.must(
            harness.run("config", "show", folder / "config.yaml", "--json")).stdout)
            for folder in (self.run_dir, self.archive)]
        keys = [{each["key"]: each["value"] for each in document["keys"]} for document in shown]
        self.assertEqual(set(keys[0]), set(keys[1]))
        changed = {key for key in keys[0] if keys[0][key] != keys[1][key]}
        self.assertEqual(changed, {"data.train", "data.validation", "energy.currency", "run.dir",
                                   "run.name"})

    def test_choices_of_configurations_are_in_it(self):
        shown = json.loads(
            harness.must(harness.run("config", "show", self.config, "--json")).stdout)
        choices = [{each["key"].split(".")[-1]: choice}
                   for each in shown["keys"]
                   if "|" in each["allowed"] and each["allowed"] != "true|false"
                   for choice in each["allowed"].split("|") if re.fullmatch("[a-z0-9_]+", choice)]
        self.assertIn({"precision": "bf16"}, choices)
        folder = self.folder / "choices"
        folder.mkdir()
        (folder / "study.json").write_text(json.dumps({"rows": choices}))
        harness.must(harness.run("archive", folder, "--strict", "-o", self.folder / "b.tar"))
        with tarfile.open(self.folder / "b.tar") as tar:
            self.assertEqual(json.load(tar.extractfile("archive/study.json")),
                             {"rows": choices})


if __name__ == "__main__":
    unittest.main(verbosity=2)
