"""Tests the effects of the environment: under each variable and limit, a run either has the bits of
a clean run, or is refused with the right exit code and a message that names the cause
(docs/reproducibility.md, "What the environment may do")."""

import concurrent.futures
import itertools
import json
import os
import pathlib
import resource
import shutil
import subprocess
import time
import unittest

import harness
from environment_rows import (CHANGES, LIMITS, REFUSED, SETTINGS, SOURCE, TABLES, TEAMS,
                              WHILE_RUNNING, Row, has_table, variables)

numbers = itertools.count()
SMALL = ["model.layers=2", "model.vocab=259"]


class Environment(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.datasets = harness.make_datasets(cls.folder, 20_000)
        cls.config = harness.write_config(
            cls.folder / "run.yaml",
            cls.datasets,
            model="gpt2",
            precision="bf16",
            model__dropout=0.1,
            data__sequence=64,
            train__steps=2,
            train__global_batch=4,
            train__micro_batch=2,
            train__eval_samples=2,
            train__threads=2,
        )
        cls.clean = {}

    def train(self, row):
        """Returns the result of the run and, if it succeeded, the digest of its checkpoint."""
        folder = self.folder / f"run-{next(numbers)}"
        folder.mkdir()
        env = {**harness.ENVIRONMENT, **row.env}

        def prepare():
            for which, value in row.limits.items():
                resource.setrlimit(which, (value, value))
            if row.before:
                row.before()

        result = subprocess.run(
            harness.command(["train", self.config, *SMALL, f"run.dir={folder / 'run'}", *row.keys]),
            env={k: str(v) for k, v in env.items() if v is not None},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=False,
            preexec_fn=prepare,
        )
        bits = None
        if result.returncode == 0:
            kept = [k.partition("=")[2] for k in row.keys if k.startswith("checkpoint.dir=")]
            shown = harness.must(
                harness.run("ckpt", "digest", kept[0] if kept else folder / "run/checkpoints"))
            losses = (folder / "run/metrics.jsonl").read_text().splitlines()
            bits = shown.stdout.strip(), [json.loads(x)["loss_bits"] for x in losses]
        return result, bits

    def check(self, rows, clean):
        """Runs two rows at a time, as a start of one process mostly waits for other things than a
        processor."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for row, (result, bits) in zip(rows, pool.map(self.train, rows)):
                with self.subTest(row.name):
                    told = f"{row.name}: exit code {result.returncode}\n{result.stderr}"
                    self.assertEqual(result.returncode, row.code, told)
                    if row.code == 0:
                        self.assertEqual(bits, clean, told)
                    for word in row.words:
                        self.assertIn(word, result.stderr, told)

    def clean_run(self, env=None, keys=()):
        which = json.dumps([env, keys])
        if which not in self.clean:
            result, self.clean[which] = self.train(Row("clean", env, keys=keys))
            harness.must(result)
        return self.clean[which]

    def test_smaller_teams_for_every_kernel_table(self):
        for table in filter(has_table, TABLES):
            env = {"TRIREME_KERNELS": table}
            rows = [Row(f"{table} {list(team)[0]}", {**env, **team}) for team in TEAMS]
            self.check(rows, self.clean_run(env))

    def test_a_smaller_team_is_warned_of(self):
        row = Row("limit", {"OMP_THREAD_LIMIT": 1}, words=["OMP_THREAD_LIMIT is 1", "1 of the 2"])
        self.check([row], self.clean_run())

    def test_evaluation_and_generation_in_smaller_teams(self):
        result, _ = self.train(Row("a model", keys=[f"checkpoint.dir={self.folder}/model"]))
        harness.must(result)
        checkpoints = self.folder / "model"
        results = []
        for team in [{}, *TEAMS]:
            loss = harness.run("eval", "--checkpoint", checkpoints, "--data", self.datasets[1],
                               "--json", env=team)
            text = harness.run("generate", "--checkpoint", checkpoints, "--prompt", "the ",
                               "--tokens", 24, "--temperature", 0, "--threads", 2, env=team)
            results.append((harness.must(loss).stdout, harness.must(text).stdout))
        self.assertEqual(results, [results[0]] * len(results))

    def test_processors_that_are_taken_away(self):
        clean = self.clean_run()
        run_dir = self.folder / "shrinking"
        words = ["train", self.config, *SMALL, f"run.dir={run_dir}"]
        process = harness.start(*words, ranks=0, log=self.folder / "shrinking.log")
        one = {min(os.sched_getaffinity(0))}
        try:
            while process.poll() is None:
                for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*"):
                    try:
                        os.sched_setaffinity(int(task.name), one)
                    except ProcessLookupError:
                        pass  # the thread has ended
                time.sleep(0.05)
        finally:
            harness.end_group(process)
        self.assertEqual(process.returncode, 0)
        shown = harness.must(harness.run("ckpt", "digest", run_dir / "checkpoints"))
        self.assertEqual(shown.stdout.strip(), clean[0])

    def test_variables_do_not_matter(self):
        self.check(variables(), self.clean_run())

    def test_products_in_fp32_stay_in_fp32(self):
        keys = ["train.precision=fp32"]
        modes = [Row(f"fp32 {k}={v}", {k: v}, keys=keys)
                 for k, v in SETTINGS if "FPMATH" in k or "HINTS" in k]
        self.check(modes, self.clean_run(keys=keys))

    def test_other_instructions_are_told(self):
        """The instructions that oneDNN may use are part of the fingerprint: ranks must agree on
        them, and a run that resumes with other instructions prints a warning."""
        if not has_table("avx512"):
            self.skipTest("needs a processor with AVX-512: others take AVX2 in any case")
        limited = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
        clean = self.clean_run()
        result, other = self.train(Row("limited", limited))
        self.assertNotEqual(other, clean)  # different bits, so the fingerprints must differ
        words = r"warning.* matrix products use avx2 instead of avx512_core\w* \(%s=AVX2\)"
        self.assertRegex(result.stderr, words % "ONEDNN_MAX_CPU_ISA")
        result, _ = self.train(Row("older name", {"DNNL_MAX_CPU_ISA": "AVX2"}))
        self.assertRegex(result.stderr, words % "DNNL_MAX_CPU_ISA")
        result, _ = self.train(Row("all", {"ONEDNN_MAX_CPU_ISA": "ALL"}))
        self.assertNotIn("instead of", result.stderr)
        self.check([Row("the table decides", {**limited, "TRIREME_KERNELS": "avx512"})],
                   self.clean_run({"TRIREME_KERNELS": "avx512"}))

        train = [harness.PROGRAM, "train", str(self.config), *SMALL, f"run.dir={self.folder}/two"]
        ranks = [harness.MPIEXEC, "-n", "1", *train, ":", "-n", "1"]
        apart = subprocess.run(
            [*ranks, "-x", "ONEDNN_MAX_CPU_ISA=AVX2", *train],
            env=harness.ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=120, check=False)
        self.assertEqual(apart.returncode, 2, apart.stderr)
        self.assertIn("ONEDNN_MAX_CPU_ISA", apart.stderr)

        longer = ["train.steps=3", "optimizer.schedule.steps=2", f"run.dir={self.folder}/longer"]
        harness.must(harness.run("train", self.config, *SMALL, longer[2]))
        resumed = harness.must(harness.run("train", self.config, *SMALL, *longer, env=limited))
        self.assertIn("instructions: checkpoint", resumed.stderr)

    def test_the_self_check_names_host_and_kernel(self):
        host = os.uname().nodename
        for nth, kernel in [(3, "matmul (attention input, weight gradient)"), ("*", "matmul")]:
            wrong = {"TRIREME_FAULTS": f"start.kernel:0:{nth}:scale=1.5"}
            words = [f"self-check: {kernel}", host, "2 threads", "tolerance", "off by"]
            self.check([Row("train", wrong, code=76, words=words)], None)
        doctor = harness.run("doctor", self.config, *SMALL, f"run.dir={self.folder}/doctor",
                             env=wrong)
        self.assertEqual(doctor.returncode, 76, doctor.stdout)
        self.assertIn("self-check: matmul", doctor.stdout)
        self.check([Row("unchecked", wrong, keys=["numerics.self_check=false"])],
                   self.clean_run())

    def test_limits_do_not_matter(self):
        limits = LIMITS
        if b"__asan_init" in pathlib.Path(harness.PROGRAM).read_bytes():
            # AddressSanitizer needs more address space and stack itself.
            limits = [row for row in LIMITS if resource.RLIMIT_AS not in row.limits]
        self.check(limits, self.clean_run())

    def test_with_little_memory_a_start_ends_with_words(self):
        if b"__asan_init" in pathlib.Path(harness.PROGRAM).read_bytes():
            self.skipTest("AddressSanitizer needs more address space: run another build")
        rows = [Row(f"{kib} KiB", limits={resource.RLIMIT_AS: kib * 1024})
                for kib in range(76_000, 172_000, 6_000)]
        codes = set()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for row, (result, _) in zip(rows, pool.map(self.train, rows)):
                codes.add(result.returncode)
                with self.subTest(row.name):
                    if "Fatal glibc error: failed to register TLS destructor" in result.stderr:
                        continue  # the C library found no memory, says so, and aborts
                    if "Out of memory allocating bitmask" in result.stderr:
                        continue  # libnuma, likewise, which exits with 1
                    # 74: a save that fails for lack of memory. 127: no room for the libraries.
                    self.assertIn(result.returncode, [0, 74, 76, 127], result.stderr)
                    if result.returncode == 76:
                        self.assertRegex(result.stderr, "memory|no thread|ulimit -v")
        self.assertIn(76, codes)

    def test_what_cannot_be_used_is_refused(self):
        self.check(REFUSED, None)

    def test_libraries_that_change_the_arithmetic(self):
        if shutil.which("cc") is None:
            self.skipTest("no compiler")
        rows = []
        for number, (name, what) in enumerate(CHANGES.items()):
            source, library = self.folder / f"p{number}.c", self.folder / f"p{number}.so"
            source.write_text(SOURCE.replace("WHAT", what))
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
            rows.append(Row(name, {"LD_PRELOAD": library, "LC_ALL": "de_DE.UTF-8"}))
        self.check(rows, self.clean_run())

    def test_a_library_that_changes_the_arithmetic_all_the_time(self):
        if shutil.which("cc") is None:
            self.skipTest("no compiler")
        source, library = self.folder / "running.c", self.folder / "running.so"
        source.write_text(WHILE_RUNNING)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        for ranks in (0, 2):
            found = {}
            for where in ("", "thread", "pread", "yield"):
                name = f"changing-{ranks}-{where}"
                train = ["train", self.config, *SMALL, f"run.dir={self.folder / name}",
                         "checkpoint.every=2", "train.eval_every=1"]
                env = {"LD_PRELOAD": library, "CHANGE_IN": where} if where else {}
                first = harness.must(harness.run(*train, ranks=ranks, env=env, timeout=120))
                longer = ["train.steps=4", "optimizer.schedule.steps=2"]
                harness.must(harness.run(*train, *longer, ranks=ranks, env=env, timeout=120))
                lines = (self.folder / name / "metrics.jsonl").read_text().splitlines()
                shown = harness.run("ckpt", "digest", self.folder / name / "checkpoints")
                found[where] = (harness.must(shown).stdout,
                                [(m["loss_bits"], m["val_loss"]) for m in map(json.loads, lines)])
                with self.subTest(f"{ranks} ranks, {where}"):
                    self.assertEqual(found[where], found[""])
                    told = "a library changes how this program rounds"
                    if where in ("", "pread"):
                        self.assertEqual(told in first.stderr, where == "pread", first.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
