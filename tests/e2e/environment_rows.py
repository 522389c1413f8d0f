"""The environments of environment_test.py: variables, limits, and libraries that are loaded before
the program and change how it computes."""

import os
import pathlib
import resource

TABLES = ["reference", "baseline", "avx2", "avx512"]


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
    rows += [Row(f"{k} unset", {k: None})
             for k in ["HOME", "PATH", "USER", "LANG", "OMP_WAIT_POLICY"]]
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
REFUSED += [Row("a stack of 64 KiB", limits={resource.RLIMIT_STACK: 64 << 10}, code=2,
                words=["64 KiB of stack", "ulimit -s"])]
REFUSED += [Row(f"attempt {value}", {"TRIREME_GENERATION": value}, code=2,
                words=["TRIREME_GENERATION", value])
            for value in ["-5", "0", "99999999999999999999", "1x"]]
REFUSED += [Row(f"{name} {value!r}", {name: value}, code=2, words=[f"{name} is '{shown}'"])
            for name, value, shown in [
                ("TRIREME_GENERATION", "4\n", "4\\n"),
                ("TRIREME_LAUNCH_ID", os.fsdecode(b"a\xff"), "a\\xff"),
                ("SLURM_RESTART_COUNT", "-1", "-1")]]
REFUSED += [Row(f"{name} with line ends", {name: "x\ntrireme: OK"}, code=2,
                words=[name, "x\\ntrireme: OK"])
            for name in ["TRIREME_KERNELS", "TRIREME_FAULTS", "TRIREME_SITE_DIR",
                         "TRIREME_START_DEADLINE"]]
REFUSED += [Row("a node's folder that is a file", {"TRIREME_NODE_DIR": "/dev/null"}, code=2,
                words=["TRIREME_NODE_DIR", "/dev/null"]),
            Row("the root as a node's folder", {"TRIREME_NODE_DIR": "/"}, code=2,
                words=["TRIREME_NODE_DIR", "/ is the root of the file system"])]
# This code stands for a library that is loaded before the program and changes its state.
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
