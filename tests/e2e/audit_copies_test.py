"""Tests the copies of the audit log with services of this test, which listen on sockets as syslog
and journald do."""
import hashlib
import json
import re
import socket
import subprocess
import threading
import unittest

import harness

FOLDER = harness.workspace()
CONFIG = """
model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 259, context: 16}
data: {train: %s, sequence: 16}
train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2}
"""
SYSLOG = re.compile(r"<85>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d trireme\[\d+\]: (\{.*\})")


class Service:
    """Takes datagrams on a socket until it has seen `last`, or is ended."""

    def __init__(self, name, last=None):
        self.path = FOLDER / name
        self.taken = []
        self.last = last
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self):
        while message := self.socket.recv(300 << 10):
            self.taken.append(message.decode())
            if self.last and self.last in self.taken[-1]:
                break
        self.socket.close()

    def end(self):
        """Returns what was taken."""
        if self.thread.is_alive():
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
                own.sendto(b"", str(self.path))
        self.thread.join()
        return self.taken


def train(name, *words, ranks=0):
    return harness.run("train", FOLDER / "run.yaml", f"run.dir={FOLDER / name}",
                       f"audit.log={FOLDER / name}.jsonl", *words, ranks=ranks)


def setUpModule():
    data, _ = harness.make_datasets(FOLDER)
    (FOLDER / "run.yaml").write_text(CONFIG % data)


class Copies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        syslog, journald = Service("log.sock"), Service("journal.sock")
        run = train("run", f"audit.copies=[syslog:{syslog.path},journald:{journald.path}]", ranks=2)
        cls.syslog, cls.journald = syslog.end(), journald.end()
        harness.must(run)
        cls.log = FOLDER / "run.jsonl"
        cls.lines = cls.log.read_text().splitlines()

    def test_syslog_gets_each_line(self):
        self.assertEqual(len(self.lines), 5)
        self.assertEqual([SYSLOG.fullmatch(each)[1] for each in self.syslog], self.lines)

    def test_journald_gets_each_line(self):
        for entry, line in zip(self.journald, self.lines, strict=True):
            self.assertEqual(entry.splitlines(), [
                f"MESSAGE={line}", "PRIORITY=5", "SYSLOG_FACILITY=10", "SYSLOG_IDENTIFIER=trireme",
                f"TRIREME_AUDIT_SHA256={hashlib.sha256(line.encode()).hexdigest()}"])

    def test_a_copy_shows_what_was_cut_off(self):
        cut = FOLDER / "cut.jsonl"
        cut.write_text("".join(line + "\n" for line in self.lines[:-1]))
        harness.must(harness.run("audit", "verify", cut))
        last = dict(field.split("=", 1) for field in self.journald[-1].splitlines())
        head = f"{json.loads(last['MESSAGE'])['seq']}:{last['TRIREME_AUDIT_SHA256']}"
        harness.must(harness.run("audit", "verify", self.log, "--head", head))
        found = harness.run("audit", "verify", cut, "--head", head)
        self.assertEqual(found.returncode, 65, found.stderr)

    def test_the_documented_comparison(self):
        copy, changed = FOLDER / "auth.log", FOLDER / "changed.jsonl"
        copy.write_text("".join(f"Nov 26 10:00:00 n1 {each[4:]}\n" for each in self.syslog))
        changed.write_text("".join(line.replace('"train.start"', '"train.stop"') + "\n"
                                   for line in self.lines))
        for log, missing in [(self.log, []), (changed, [self.lines[1]])]:
            found = subprocess.run(["sh", "-c", "grep -o '{\"seq\".*' \"$0\" | grep -vxFf \"$1\"",
                                    copy, log], capture_output=True, text=True, check=False)
            self.assertEqual(found.stdout.splitlines(), missing)


class Failures(unittest.TestCase):
    def test_nothing_runs_without_a_service(self):
        for kind in ("syslog", "journald"):
            refused = train("unheard", f"audit.copies=[{kind}:{FOLDER / 'none.sock'}]")
            self.assertEqual(refused.returncode, 74, refused.stderr)
            self.assertIn(f"cannot copy the audit log to {kind} at {FOLDER / 'none.sock'}: No such "
                          "file or directory: start or repair the service", refused.stderr)
            self.assertFalse((FOLDER / "unheard.jsonl").exists())
            self.assertFalse((FOLDER / "unheard/checkpoints").exists())

    def test_a_service_that_ends_is_a_warning(self):
        service = Service("ends.sock", last="train.start")
        run = train("alone", f"audit.copies=[syslog:{service.path}]")
        self.assertEqual(len(service.end()), 2)
        harness.must(run)
        self.assertIn("warning: the event train.end is missing from the audit log, or from a copy "
                      "of it: cannot copy the audit log to syslog", run.stderr)
        self.assertEqual(len((FOLDER / "alone.jsonl").read_text().splitlines()), 5)

    def test_misspelt_copies(self):
        for words, message in [
                (["audit.copies=[rsyslog]"], "expected syslog, journald"),
                (["audit.copies=[syslog]", "audit.log="], "audit.copies needs audit.log")]:
            refused = train("misspelt", *words)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(message, refused.stderr)
        refused = harness.run("generate", "--checkpoint", FOLDER / "none",
                              env={"TRIREME_AUDIT__COPIES": "[journald]"})
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("audit.copies needs audit.log", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
