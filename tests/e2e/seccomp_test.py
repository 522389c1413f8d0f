"""security.seccomp: runs train under it as without it, over each transport, and whoever makes a
rank start a program is refused."""
import json
import pathlib
import unittest

import harness

FAULTY = (pathlib.Path(harness.PROGRAM).resolve().parent /
          "tests/support/libtrireme_faulty_calls.so")
REFUSED = 77


class Seccomp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder)
        harness.must(harness.run("train", cls.config("plain"), ranks=2))
        cls.bits = harness.loss_bits(cls.config("plain"))

    @classmethod
    def config(cls, name, **keys):
        return harness.write_config(
            cls.folder / f"{name}.yaml", cls.datasets, "small",
            **{"train__steps": 4, "checkpoint__every": 1,
               "security__seccomp": "false" if name == "plain" else "true", **keys})

    def test_every_transport_trains_under_it(self):
        key = self.folder / "site.key"
        harness.must(harness.run("keys", "create", "--out", key))
        for name, btl, keys in [
                ("shm", "", {}), ("ucx", "", {"comm__backend": "ucx"}),
                ("tcp", "tcp,self", {"comm__backend": "mpi"}),
                ("sealed", "", {"encryption__keys": f"[file:{key}]",
                                "encryption__accept_plain_data": "true",
                                "security__transport": "tunnel:wg9"})]:
            with self.subTest(name):
                config = self.config(name, **keys)
                harness.must(harness.run("train", config, ranks=2,
                                         env={"OMPI_MCA_btl": btl} if btl else {}))
                self.assertEqual(harness.loss_bits(config), self.bits)
                log = (harness.run_dir(config) / "logs/rank-00000.jsonl").read_text()
                self.assertIn("this rank can start no programs", log)

    def run_with_intruder(self, name, *words, ranks=0, **keys):
        """Lets a save of rank 0 start a shell, which makes a file."""
        made = self.folder / f"{name}.made"
        rule = f"*/.tmp-2-*/shard-*|fsync|1|run=touch {made}|0"
        result = harness.run("train", self.config(name, **keys), *words, ranks=ranks,
                             env={"LD_PRELOAD": str(FAULTY), "TRIREME_FAULTY_CALLS": rule})
        return result, made

    def test_no_program_starts(self):
        log = self.folder / "audit.jsonl"
        result, made = self.run_with_intruder("attacked", ranks=2, audit__log=log)
        self.assertEqual(result.returncode, REFUSED, result.stderr)
        self.assertFalse(made.exists())
        self.assertRegex(result.stderr, r"security\.seccomp: process \d+ tried to start the "
                                        r"program '/bin/sh', which was refused: find out what")
        reason = json.loads((harness.run_dir(self.config("attacked")) / "exit_reason.json")
                            .read_text())
        self.assertEqual((reason["code"], reason["kind"]), (REFUSED, "policy"))
        self.assertIn("'/bin/sh'", reason["message"])
        events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
        self.assertEqual(events[-1], "train.refused")

    def test_the_intruder_succeeds_without_it(self):
        result, made = self.run_with_intruder("open", security__seccomp="false")
        harness.must(result)
        self.assertTrue(made.exists())

    def test_one_that_comes_with_the_last_save_is_found_too(self):
        result, made = self.run_with_intruder("late", train__steps=2, checkpoint__every=2)
        self.assertEqual(result.returncode, REFUSED, result.stderr)
        self.assertFalse(made.exists())

    def test_the_launcher_may_start_programs(self):
        event = self.folder / "event"
        config = self.config("launched", launch__on_event=f"cat >> {event}")
        harness.must(harness.run("launch", "--ranks-per-node", 2, "--", "train", config))
        self.assertEqual(harness.loss_bits(config), self.bits)
        self.assertTrue(event.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
