"""Verifies runs with encrypted logs: what `trireme verify` finds without keys and with them, after
each attack on the files of the run, on their keys and on the records of their ends."""
import base64
import hashlib
import json
import re
import shutil
import unittest

import harness

FOLDER = harness.workspace()
KEY, OTHER, EVIDENCE = FOLDER / "site.key", FOLDER / "other.key", FOLDER / "evidence.key"
RUN, FOREIGN = FOLDER / "run", FOLDER / "foreign"
OPENED = ["--key", f"file:{KEY}"]
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 1003, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 6, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2, async: false, keep: 9}
encryption: {accept_plain_data: true, keys: ["file:%s"], logs: true}
audit: {key: %s}
run: {dir: %s, trace: 2}
"""


def train(folder, env=None):
    return harness.run("train", FOLDER / "run.yaml", f"run.dir={folder}", ranks=2, env=env)


def verify(what, *words):
    """Returns the exit code and the page."""
    told = harness.run("verify", what, "--trust", f"{EVIDENCE}.pub", "--json", *words)
    if not told.stdout:
        return told.returncode, told.stderr
    return told.returncode, json.loads(told.stdout)


def setUpModule():
    for key in (KEY, OTHER):
        harness.must(harness.run("keys", "create", "--out", key, "--name", key.stem))
    harness.must(harness.run("audit", "keygen", "--out", EVIDENCE))
    data = FOLDER / "data"
    harness.must(harness.run("data", "pack", "--out", data,
                             harness.make_text(FOLDER / "text", 60_000, 1),
                             env={"TRIREME_AUDIT__KEY": str(EVIDENCE)}))
    (FOLDER / "run.yaml").write_text(CONFIG % (data, KEY, EVIDENCE, RUN))
    killed = train(RUN, env={"TRIREME_FAULTS": "step.end:1:5:kill"})
    assert killed.returncode != 0, killed.stderr
    harness.must(train(RUN))
    harness.must(train(FOREIGN))


def lines_of(path):
    return path.read_text().splitlines(keepends=True)


def provenance_of(bundle):
    envelope = json.loads(bundle.read_text().splitlines()[0])
    statement = json.loads(base64.b64decode(envelope["payload"]))
    return statement["predicate"]["buildDefinition"]["internalParameters"]


def record_of(run):
    return next(run.glob("log-keys/*/closed.json"))


def seal_again(path, change):
    """Changes sealed JSON, and gives it the seal that fits."""
    text = path.read_text()
    body = text[:text.rindex(',\n "seal"')]
    changed = change(body)
    assert changed != body
    seal = hashlib.sha256(changed.encode()).hexdigest()
    path.write_text(f'{changed},\n "seal": "sha256:{seal}"\n}}\n')


class Page(unittest.TestCase):
    def logs(self, found):
        items = [item for item in found["items"] if item["role"] == "logs"]
        self.assertEqual(len(items), 1, found)
        return items[0]

    def test_without_keys(self):
        code, found = verify(RUN)
        self.assertEqual((code, found["faults"]), (0, []))
        item = self.logs(found)
        self.assertEqual((item["state"], item["place"]), ("ok", str(RUN)))
        self.assertRegex(item["summary"],
                         r"^\d+ encrypted files, .*B, checked without their keys$")
        identity = json.loads(record_of(RUN).read_text())["contents"].split(" ")[1]
        self.assertIn(f"2 starts of the run {identity}", item["facts"])
        self.assertTrue(any("start 2 has left a record of how" in fact for fact in item["facts"]))
        self.assertTrue(any("only the keys (--key) show" in fact for fact in item["facts"]))
        told = harness.run("verify", RUN, "--trust", f"{EVIDENCE}.pub")
        self.assertIn(f"ok        logs {RUN}: ", told.stdout)

    def test_with_keys(self):
        code, found = verify(RUN, *OPENED)
        self.assertEqual((code, found["faults"]), (0, []))
        item = self.logs(found)
        self.assertIn("authenticated with their keys", item["summary"])
        self.assertFalse(any("only the keys" in fact for fact in item["facts"]))

    def test_a_wrong_key_authenticates_nothing(self):
        code, found = verify(RUN, "--key", f"file:{OTHER}")
        self.assertEqual(code, 77)
        self.assertNotIn("authenticated", self.logs(found)["summary"])

    def test_the_statements_name_the_logs(self):
        identity = json.loads(record_of(RUN).read_text())["contents"].split(" ")[1]
        named = {}
        for file in RUN.glob("checkpoints/step-*/provenance.intoto.jsonl"):
            details = provenance_of(file)
            named[details["step"]] = details["logs"]["contents"]
            self.assertTrue((RUN / "log-keys" / details["logs"]["key"] / "keys.json").exists())
        self.assertEqual(named, {2: f"logs {identity} 1", 4: f"logs {identity} 1",
                                 6: f"logs {identity} 2"})

    def test_a_report_has_the_line(self):
        page = harness.must(harness.run("report", RUN, "--markdown", "--trust",
                                        f"{EVIDENCE}.pub", *OPENED)).stdout
        self.assertIn("authenticated with their keys", page)

    def test_a_run_that_was_killed_has_a_note(self):
        run = FOLDER / "killed"
        killed = train(run, env={"TRIREME_FAULTS": "step.end:0:5:kill"})
        self.assertNotEqual(killed.returncode, 0)
        for words in ([], OPENED):
            code, found = verify(run, *words)
            self.assertEqual(code, 0, found)
            self.assertTrue(any("start 1 of the run has left no record" in note
                                for note in found["notes"]), found)

    def test_a_run_without_checkpoints(self):
        run = FOLDER / "no-steps"
        killed = train(run, env={"TRIREME_FAULTS": "step.end:0:1:kill"})
        self.assertNotEqual(killed.returncode, 0)
        code, found = verify(run, *OPENED)
        self.assertEqual(code, 66, found)
        self.assertEqual(self.logs(found)["state"], "ok")

    def test_other_keys(self):
        code, found = verify(RUN, "--key", f"file:{OTHER}")
        self.assertEqual(code, 77)
        self.assertTrue(any("encrypted for file" in each["what"] for each in found["faults"]))
        code, told = verify(RUN, "--key", f"file:{FOLDER}/none.key")
        self.assertEqual(code, 66, told)
        self.assertIn("none.key", told)


class Attacks(unittest.TestCase):
    """Each attack on a copy of the run, with the exit codes without keys and with them."""

    def setUp(self):
        self.run_folder = FOLDER / "copy"
        shutil.rmtree(self.run_folder, ignore_errors=True)
        shutil.copytree(RUN, self.run_folder, symlinks=True)
        self.metrics = self.run_folder / "metrics.jsonl"

    def expect(self, without, with_keys, words):
        for keys, code in (([], without), (OPENED, with_keys)):
            got, found = verify(self.run_folder, "--moved", f"{RUN}={self.run_folder}", *keys)
            self.assertEqual(got, code, found)
            if code:
                self.assertTrue(any(words in each["what"] for each in found["faults"]), found)
                state = {65: "BAD", 66: "GONE", 77: "UNTRUSTED"}[code]
                self.assertTrue(any(item["role"] == "logs" and item["state"] == state
                                    for item in found["items"]) or "logs" in words, found)

    def test_nothing(self):
        self.expect(0, 0, "")

    def test_ends_that_are_cut_off(self):
        for file in ("metrics.jsonl", "logs/rank-00001.jsonl", "trace/rank-00000.json"):
            with self.subTest(file):
                path = self.run_folder / file
                whole = lines_of(path)
                path.write_text("".join(whole[:-3]))
                self.expect(65, 65, "its end was cut off")
                path.write_text("")
                self.expect(65, 65, "and 0 are left")
                path.write_text("".join(whole))

    def test_lines_that_are_taken_out(self):
        whole = lines_of(self.metrics)
        heads = [i for i, line in enumerate(whole) if line.startswith("TRIREME")]
        self.metrics.write_text("".join(whole[:2] + whole[3:]))
        self.expect(65, 65, f"{self.metrics}")
        self.metrics.write_text("".join(whole[:heads[1] - 1] + whole[heads[1]:]))
        self.expect(65, 65, "this section does not follow the line before it")
        self.metrics.write_text("".join(whole[heads[1]:]))
        self.expect(65, 65, "sections were removed or exchanged")

    def test_a_record_that_is_changed(self):
        """Nothing but the key tells one encrypted line from another."""
        whole = lines_of(self.metrics)
        whole[2] = "BA"[whole[2][0] == "B"] + whole[2][1:]
        self.metrics.write_text("".join(whole))
        self.expect(0, 65, "line 3: this record was changed")

    def test_two_ranks_that_are_exchanged(self):
        first, second = (self.run_folder / f"logs/rank-0000{i}.jsonl" for i in (0, 1))
        one, other = first.read_text(), second.read_text()
        first.write_text(other)
        second.write_text(one)
        self.expect(65, 65, "rank-0000")

    def test_what_is_not_encrypted(self):
        self.metrics.write_text('{"step": 1, "loss": 0.1}\n')
        self.expect(65, 65, "is not encrypted, although its run encrypts its files")

    def test_links_and_folders(self):
        self.metrics.rename(self.run_folder / "elsewhere")
        self.metrics.symlink_to(self.run_folder / "elsewhere")
        self.expect(65, 65, "metrics.jsonl is no file")

    def test_a_file_of_another_run(self):
        shutil.copy(FOREIGN / "metrics.jsonl", self.metrics)
        self.expect(65, 65, "the file comes from another run")
        key = next((FOREIGN / "log-keys").iterdir())
        shutil.copytree(key, self.run_folder / "log-keys" / key.name)
        self.expect(65, 65, "holds keys of several runs")

    def test_all_logs_of_another_run(self):
        """They fit each other and open, but the signed checkpoints name other ones."""
        for name in ("metrics.jsonl", "logs", "trace", "tensorboard", "log-keys"):
            ours, theirs = self.run_folder / name, FOREIGN / name
            if ours.is_dir():
                shutil.rmtree(ours)
                shutil.copytree(theirs, ours)
            else:
                shutil.copy(theirs, ours)
        self.expect(65, 65, "logs of another run were put here")

    def test_logs_that_are_removed_or_replaced_by_plain_ones(self):
        for name in ("logs", "trace", "tensorboard", "log-keys"):
            shutil.rmtree(self.run_folder / name)
        self.metrics.unlink()
        self.expect(66, 66, "has encrypted its logs, and none is here any more")
        self.metrics.write_text('{"step": 1, "loss": 0.1}\n')
        self.expect(65, 65, "has encrypted its logs; ")

    def test_a_file_that_is_gone(self):
        (self.run_folder / "logs/rank-00001.jsonl").unlink()
        self.expect(66, 66, "rank-00001.jsonl is gone, which start 2 of the run has left")

    def test_the_key_of_a_start_is_gone(self):
        keys = {json.loads(file.read_text())["contents"].split(" ")[2]: file.parent
                for file in self.run_folder.glob("log-keys/*/keys.json")}
        shutil.rmtree(keys["1"])
        self.expect(65, 65, "the key of start 1 is gone")

    def test_keys_that_are_destroyed(self):
        harness.must(harness.run("keys", "destroy", self.run_folder / "log-keys", "--confirm",
                                 "log-keys", "--confirm", "log-keys"))
        self.expect(65, 65, "the key was destroyed")

    def test_a_record_of_ends_that_is_changed(self):
        record = record_of(self.run_folder)
        text = record.read_text()
        record.write_text(text.replace('"bytes": ', '"bytes": 1', 1))
        self.expect(65, 65, "closed.json")
        record.write_text(text)
        whole = lines_of(self.metrics)
        cut = "".join(whole[:-2])
        last = hashlib.sha256(whole[-3][:-1].encode()).hexdigest()
        seal_again(record, lambda body: re.sub(
            r'("name": "metrics.jsonl",\s+"bytes": )\d+(,\s+"last": ")[0-9a-f]{64}',
            rf"\g<1>{len(cut)}\g<2>{last}", body))
        self.metrics.write_text(cut)
        self.expect(0, 65, "changed by someone who does not have the data key")

    def test_a_record_that_is_removed(self):
        record_of(self.run_folder).unlink()
        code, found = verify(self.run_folder, "--moved", f"{RUN}={self.run_folder}")
        self.assertEqual(code, 0, found)
        self.assertTrue(any("start 2 of the run has left no record" in note
                            for note in found["notes"]), found)


if __name__ == "__main__":
    unittest.main(verbosity=2)
