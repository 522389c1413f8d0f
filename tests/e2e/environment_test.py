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

TABLES = ["reference", "baseline", "avx2", "avx512"]
numbers = itertools.count()


class Row:
    """One start: its environment, and how it ends."""

    def __init__(self, name, env=None, limits=None, code=0, words=(), before=None, keys=()):
        self.name = name
        self.env = env or {}  # None removes a variable
        self.limits = limits or {}
        self.code = code  # 0 also means the bits of a clean run
        self.words = words  # expected on stderr
        self.before = before  # called in the child
        self.keys = keys  # keys of the configuration


# These lead to fewer than the two threads that the run asks for.
TEAMS = [
    {"OMP_DYNAMIC": "true"},
    {"OMP_THREAD_LIMIT": "1"},
    {"OMP_MAX_ACTIVE_LEVELS": "0"},
]


def has_table(name):
    """Returns whether this processor supports the kernels."""
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    needed = {"avx2": " avx2 ", "avx512": " avx512vl "}.get(name, "")
    return needed in flags


def variables():
    """Variables of OpenMP, oneDNN, the C library, MPI, UCX and the shell, which must not change any
    bit."""
    rows = [Row(f"{k}={v}", {k: v}) for k, v in SETTINGS]
    rows += [Row(f"{k} unset", {k: None}) for k in ["HOME", "PATH", "USER", "LANG"]]
    return rows


SETTINGS = [
    ("OMP_NUM_THREADS", "1"),
    ("OMP_NUM_THREADS", "7"),
    ("OMP_NESTED", "true"),
    ("OMP_PROC_BIND", "close"),
    ("OMP_PLACES", "{0}"),
    ("OMP_SCHEDULE", "dynamic,1"),
    ("OMP_STACKSIZE", "64M"),
    ("OMP_STACKSIZE", "64P"),  # libgomp ignores an unknown unit
    ("OMP_STACKSIZE", "64KB"),
    ("OMP_WAIT_POLICY", "passive"),
    ("OMP_CANCELLATION", "true"),
    ("GOMP_SPINCOUNT", "0"),
    ("GOMP_CPU_AFFINITY", "0"),
    ("KMP_AFFINITY", "disabled"),
    ("ONEDNN_DEFAULT_FPMATH_MODE", "BF16"),
    ("DNNL_DEFAULT_FPMATH_MODE", "ANY"),
    ("ONEDNN_CPU_ISA_HINTS", "PREFER_YMM"),
    ("ONEDNN_VERBOSE", "1"),
    ("ONEDNN_JIT_DUMP", "1"),
    ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0"),
    ("MALLOC_PERTURB_", "165"),
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_TOP_PAD_", "0"),
    ("GLIBC_TUNABLES", "glibc.malloc.perturb=90"),
    ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"),
    ("OMP_DISPLAY_ENV", "true"),
    ("UCX_TLS", "tcp"),
    ("UCX_NET_DEVICES", "none0"),
    ("OMPI_MCA_btl", "self"),
    ("LC_ALL", "de_DE.UTF-8"),
    ("LC_NUMERIC", "de_DE.UTF-8"),
    ("TZ", "Pacific/Chatham"),
    ("TMPDIR", "/nonexistent"),
    ("LD_BIND_NOW", "1"),
]
SMALL = ["model.layers=2", "model.vocab=259"]
MIB = 1 << 20
LIMITS = [
    Row("stack without a limit", limits={resource.RLIMIT_STACK: resource.RLIM_INFINITY}),
    Row("a stack of 1 MiB", limits={resource.RLIMIT_STACK: MIB}),
    Row("400 MiB of address space", limits={resource.RLIMIT_AS: 400 * MIB}),
    Row("64 open files", limits={resource.RLIMIT_NOFILE: 64}),
    Row("no locked memory", limits={resource.RLIMIT_MEMLOCK: 0}),
    Row("no core file", limits={resource.RLIMIT_CORE: 0}),
    Row("one processor", before=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})),
]
REFUSED = [
    Row("a small stack for threads", {"OMP_STACKSIZE": "16K"}, code=2, words=["OMP_STACKSIZE"]),
    Row("a huge stack for threads", {"OMP_STACKSIZE": "4000G"}, code=76,
        words=["1 of 2 compute threads", "OMP_STACKSIZE", "ulimit -u"]),
]
REFUSED += [Row(f"attempt {value}", {"TRIREME_GENERATION": value}, code=2,
                words=["TRIREME_GENERATION", value])
            for value in ["-5", "0", "99999999999999999999", "1x"]]
REFUSED += [Row("a node's folder that is a file", {"TRIREME_NODE_DIR": "/dev/null"}, code=2,
                words=["TRIREME_NODE_DIR", "/dev/null"])]
# A library that is loaded before the program may have done this.
SOURCE = """
#include <fenv.h>
#include <locale.h>
#include <xmmintrin.h>
__attribute__((constructor)) static void change(void) { WHAT; }
"""
# A library may do this while the program runs, in new threads or in calls.
WHILE_RUNNING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xmmintrin.h>
static void change(const char* where) {
  const char* wanted = getenv("CHANGE_IN");
  if (wanted && strcmp(wanted, where) == 0) _mm_setcsr(_mm_getcsr() | 0xE040);
}
struct call { void* (*function)(void*); void* argument; };
static void* begin(void* data) {
  struct call call = *(struct call*)data;
  free(data);
  change("thread");
  return call.function(call.argument);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) {
  int (*real)() = (int (*)())dlsym(RTLD_NEXT, "pthread_create");
  struct call* call = malloc(sizeof *call);
  call->function = function;
  call->argument = argument;
  return real(thread, attributes, begin, call);
}
ssize_t pread64(int fd, void* to, size_t bytes, off64_t at) {
  ssize_t (*real)(int, void*, size_t, off64_t) =
      (ssize_t (*)(int, void*, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
  change("pread");
  return real(fd, to, bytes, at);
}
ssize_t pread(int fd, void* to, size_t bytes, off_t at) { return pread64(fd, to, bytes, at); }
int sched_yield(void) { change("yield"); return 0; }
"""
CHANGES = {
    "denormals are flushed to zero": "_mm_setcsr(_mm_getcsr() | 0x8040)",
    "rounding is upward": "fesetround(FE_UPWARD)",
    "a locale is set": 'setlocale(LC_ALL, "")',
}


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
            self.skipTest("oneDNN takes AVX2 in any case")
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
            self.skipTest("AddressSanitizer needs more address space itself")
        rows = [Row(f"{kib} KiB", limits={resource.RLIMIT_AS: kib * 1024})
                for kib in range(76_000, 172_000, 6_000)]
        codes = set()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for row, (result, _) in zip(rows, pool.map(self.train, rows)):
                codes.add(result.returncode)
                with self.subTest(row.name):
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
