"""Trains students that learn from a teacher: several layouts, a kill and a resume, an encrypted and
an imported teacher, provenance, plans, a simulated GPU, and what is refused."""
import json
import shutil
import unittest

import harness
from simulated import SIMULATED


class Distillation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)
        cls.teacher = cls.config("teacher", "llama", train__steps=40, optimizer__lr=0.01)
        harness.must(harness.run("train", cls.teacher))
        cls.student = cls.taught("student")
        harness.must(harness.run("train", cls.student))

    @classmethod
    def config(cls, name, model="small", **keys):
        return harness.write_config(cls.folder / f"{name}.yaml", cls.datasets, model,
                                    **{"train__steps": 8, "data__sequence": 24, **keys})

    @classmethod
    def taught(cls, name, **keys):
        return cls.config(name, **{"distill__teacher": cls.steps_of(cls.teacher),
                                   "distill__weight": 0.75, "distill__temperature": 2,
                                   "checkpoint__every": 2, **keys})

    @staticmethod
    def steps_of(config):
        return harness.run_dir(config) / "checkpoints"

    def refused(self, code, text, *words):
        result = harness.run(*words)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertIn(text, result.stderr)

    def assert_same(self, config):
        self.assertEqual(harness.loss_bits(config), harness.loss_bits(self.student))
        self.assertEqual(harness.digest(config), harness.digest(self.student))

    def test_layouts_have_the_same_bits(self):
        for name, keys in [("replicas", {}), ("zero", {"parallel__zero": 3}),
                           ("stages", {"parallel__pp": 2, "parallel__schedule": "gpipe"})]:
            config = self.taught(name, **keys)
            harness.must(harness.run("train", config, ranks=2))
            self.assert_same(config)

    def test_a_killed_run_resumes_with_the_same_bits(self):
        config = self.taught("killed")
        killed = harness.run("train", config, ranks=2, env={"TRIREME_FAULTS": "step.end:1:5:kill"})
        self.assertNotEqual(killed.returncode, 0, killed.stderr)
        harness.must(harness.run("train", config, ranks=2))
        self.assert_same(config)

    def test_a_report_draws_both_parts(self):
        report = self.folder / "report.html"
        for config, shown in ((self.student, True), (self.teacher, False)):
            harness.must(harness.run("report", harness.run_dir(config), "--out", report))
            self.assertEqual("divergence from the teacher" in report.read_text(), shown)

    def test_metrics_show_both_parts(self):
        for line in harness.metrics(self.student):
            self.assertAlmostEqual(
                line["loss"], 0.25 * line["cross_entropy"] + 0.75 * 4 * line["kl_divergence"],
                delta=1e-5 * line["loss"])

    def test_the_student_is_a_model_like_any_other(self):
        found = json.loads(harness.must(harness.run(
            "eval", "--checkpoint", self.steps_of(self.student), "--data", self.datasets[1],
            "--samples", 8, "--sequence", 24, "--json")).stdout)
        self.assertAlmostEqual(found["loss"], harness.metrics(self.student)[-1]["val_loss"],
                               delta=1e-6)

    def test_the_configuration_shows_the_keys(self):
        shown = harness.must(harness.run("config", "show", self.student)).stdout
        for word in ("distill", "teacher", "temperature"):
            self.assertIn(word, shown)

    def test_plans_and_the_doctor_know_the_teacher(self):
        plan = ("plan", "--cluster", "cpu-genoa", "--nodes", "1", "--json")
        step, shorter = (
            json.loads(harness.must(harness.run(*plan, self.student, *keys)).stdout)
            ["layouts"][0]["step_seconds"]
            for keys in ([], ["distill.teacher=", "distill.weight=0.5"]))
        self.assertGreater(step, 1.1 * shorter)
        gone = harness.run(*plan, self.student, "distill.teacher=/nonexistent")
        self.assertEqual(gone.returncode, 66, gone.stderr)
        for code, teacher in ((0, self.steps_of(self.teacher)), (66, "/nonexistent")):
            found = harness.run("doctor", self.student, f"run.dir={self.folder / 'examined'}",
                                f"distill.teacher={teacher}")
            self.assertEqual(found.returncode, code, found.stdout + found.stderr)

    def test_a_simulated_gpu(self):
        shared = {"train__device": "cuda", "train__steps": 3, "train__micro_batch": 2}
        cpu = self.taught("on-cpu", train__steps=3, train__micro_batch=2)
        harness.must(harness.run("train", cpu))
        previous, harness.PROGRAM = harness.PROGRAM, SIMULATED
        self.addCleanup(setattr, harness, "PROGRAM", previous)
        one, two = self.taught("on-gpu", **shared), self.taught("on-gpus", **shared)
        log = harness.must(harness.run("train", one)).stderr
        self.assertIn("no CUDA graphs: distill.teacher is set", log)
        harness.must(harness.run("train", two, ranks=2))
        self.assertEqual(harness.loss_bits(one), harness.loss_bits(two))
        self.assertEqual(harness.digest(one), harness.digest(two))
        for key in ("loss", "cross_entropy", "kl_divergence"):
            for ours, theirs in zip(harness.metrics(one), harness.metrics(cpu)):
                self.assertAlmostEqual(ours[key], theirs[key], delta=1e-4)

    def test_a_teacher_that_went_on_is_named(self):
        teacher = self.config("growing", "llama", train__steps=2)
        words = (teacher, "optimizer.schedule.steps=4")
        harness.must(harness.run("train", *words))
        config = self.taught("of-growing", distill__teacher=self.steps_of(teacher))
        shorter = ("train.steps=4", "optimizer.schedule.steps=8")
        harness.must(harness.run("train", config, *shorter))
        harness.must(harness.run("train", *words, "train.steps=4"))
        fits = self.steps_of(teacher) / "step-00000002"
        self.refused(2, f"set distill.teacher={fits}", "train", config)
        harness.must(harness.run("train", config, f"distill.teacher={fits}"))
        shutil.rmtree(fits)
        self.refused(2, "not beside it any more", "train", config, "train.steps=9")

    def test_an_imported_teacher(self):
        plain, again = self.folder / "hf", self.folder / "imported"
        harness.must(harness.run("export", self.steps_of(self.teacher), "--format", "hf", "--out",
                                 plain))
        harness.must(harness.run("import", plain, "--out", again))
        config = self.taught("from-imported", distill__teacher=again)
        harness.must(harness.run("train", config))
        self.assertEqual(harness.loss_bits(config), harness.loss_bits(self.student))

    def test_an_encrypted_teacher(self):
        key = self.folder / "key"
        harness.must(harness.run("keys", "create", "--out", key))
        sealed = self.config("sealed", "llama", train__steps=2)
        opens = [f"encryption.keys=[file:{key}]", "encryption.accept_plain_data=true"]
        harness.must(harness.run("train", sealed, *opens))
        config = self.taught("from-sealed", distill__teacher=self.steps_of(sealed))
        found = harness.run("doctor", config)
        self.assertEqual(found.returncode, 77, found.stdout + found.stderr)
        self.assertIn("distill.teacher", found.stdout)
        self.assertIn(harness.run("doctor", config, *opens).returncode, (0, 4))
        self.refused(77, "name a key that opens it in encryption.keys", "train", config)
        harness.must(harness.run("train", config, *opens))
        self.assertIn("kl_divergence", harness.metrics(config)[-1])

    def test_an_unsigned_teacher_is_compared_with_its_manifest(self):
        key, trust = self.folder / "signing-2", self.folder / "signing-2.pub"
        harness.must(harness.run("audit", "keygen", "--out", key))
        teacher = self.folder / "unsigned" / "step-00000040"
        shutil.copytree(self.steps_of(self.teacher) / teacher.name, teacher)
        config = self.taught("beside-unsigned", audit__key=key, train__steps=2,
                             distill__teacher=teacher)
        harness.must(harness.run("train", config))
        words = ("verify", self.steps_of(config) / "step-00000002", "--trust", trust,
                 "--allow-missing")
        whole = harness.must(harness.run(*words)).stdout
        self.assertRegex(whole, f"UNSIGNED +teacher {teacher}: not signed")
        self.assertNotIn("GONE", whole)
        self.assertIn("about files that are gone or not signed", whole)
        shard = next(teacher.glob("shard-*"))
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data)
        for _ in range(2):
            bad = harness.run(*words)
            self.assertEqual(bad.returncode, 65, bad.stdout + bad.stderr)
            self.assertRegex(bad.stdout, f"BAD +teacher {teacher}")
            self.assertIn(shard.name, bad.stdout)
            shard.unlink(missing_ok=True)

    def test_provenance_names_the_teacher(self):
        key, trust = self.folder / "signing", self.folder / "signing.pub"
        harness.must(harness.run("audit", "keygen", "--out", key))
        config = self.taught("signed", audit__key=key, train__steps=2)
        harness.must(harness.run("train", config))
        step = self.steps_of(config) / "step-00000002"
        unsigned = harness.run("verify", step, "--trust", trust)
        self.assertEqual(unsigned.returncode, 66, unsigned.stdout + unsigned.stderr)
        self.assertIn("the teacher", unsigned.stdout + unsigned.stderr)
        signed = self.config("signed-teacher", "llama", train__steps=2, audit__key=key)
        harness.must(harness.run("train", signed))
        teacher = self.steps_of(signed) / "step-00000002"
        config = self.taught("signed-student", audit__key=key, train__steps=2,
                             distill__teacher=teacher)
        harness.must(harness.run("train", config))
        step = self.steps_of(config) / "step-00000002"
        found = harness.run("verify", step, "--trust", trust)
        self.assertIn(f"teacher {teacher}", found.stdout)
        provenance = teacher / "provenance.intoto.jsonl"
        text = provenance.read_bytes()
        provenance.unlink()
        found = harness.run("verify", step, "--trust", trust, "--allow-missing")
        self.assertEqual(found.returncode, 65, found.stdout + found.stderr)
        self.assertIn(f"{provenance} was removed: the provenance of a checkpoint names it",
                      found.stdout)
        provenance.write_bytes(text)
        manifest = teacher / "manifest.json"
        manifest.write_text(manifest.read_text() + " ")
        found = harness.run("verify", step, "--trust", trust)
        self.assertEqual(found.returncode, 65, found.stdout + found.stderr)
        self.assertIn(f"the teacher {teacher} was changed", found.stdout + found.stderr)

    def test_refusals(self):
        teacher = self.steps_of(self.teacher)
        other = self.folder / "other"
        for code, text, *keys in [
                (2, "distill.temperature", "distill.temperature=.nan"),
                (2, "distill.weight", "distill.weight=1.5"),
                (2, "parallel.tp 1", "parallel.tp=3"),
                (2, "vocabulary of 1003 ids, but model.vocab is 1004", "model.vocab=1004"),
                (2, "context of 64", "model.context=80", "data.sequence=80"),
                (66, "distill.teacher", "distill.teacher=/nonexistent"),
        ]:
            with self.subTest(keys=keys):
                self.refused(code, text, "train", self.student, f"run.dir={other}", *keys)
        damaged = self.folder / "damaged"
        shutil.copytree(teacher, damaged)
        for shard in damaged.rglob("*.safetensors"):
            data = bytearray(shard.read_bytes())
            data[len(data) // 3] ^= 4
            shard.write_bytes(data)
        self.refused(65, "distill.teacher", "train", self.student, f"run.dir={other}",
                     f"distill.teacher={damaged}")
        self.refused(2, "distill.teacher", "train", self.student, "train.steps=9",
                     f"distill.teacher={self.steps_of(self.student)}")


if __name__ == "__main__":
    unittest.main()
