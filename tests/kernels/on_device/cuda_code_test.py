#!/usr/bin/python3
"""Compiles the CUDA sources for one GPU and reads what the compiler made of each kernel: nothing
may spill to memory, attention must use tensor cores and asynchronous copies, and kernels that
memory bounds must access 16 bytes at a time. Needs nvcc, but no GPU. With --table, prints the
registers of all kernels."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
NVCC = shutil.which("nvcc", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
ARCHITECTURE = "sm_90a"
FLAGS = ["-std=c++20", f"-arch={ARCHITECTURE}", "-O3", "--expt-relaxed-constexpr",
         "-Werror=all-warnings", "-cubin", "--keep", "-Xptxas", "-v"]
FOLDERS = [".", "src/device/cuda/language", "src/device/cuda/native"]

# What the kernels must contain. The first pattern of a source that matches a kernel's name holds;
# <...> stands for the arguments of its template.
NOTHING, WIDE_READS, WIDE, TENSOR_CORES = [], ["reads"], ["reads", "writes"], ["mma", "copies"]
KERNELS = {
    "attention_forward": {"forward_kernel<": TENSOR_CORES},
    "attention_backward": {"keys_kernel<": TENSOR_CORES, "queries_kernel<": TENSOR_CORES},
    "attention_plain": {r"delta_kernel<.*true>": WIDE_READS, "delta_kernel<": NOTHING,
                        "(forward|dq|dkv)_kernel<": NOTHING},
    "column_sum": {r"column_sum_kernel<.*true>": WIDE_READS, "column_sum_kernel<": NOTHING},
    "elementwise": {"each_kernel<.*Fill": ["writes"], "each_kernel<.*Cast": NOTHING,
                    "each_kernel<": WIDE},
    "embedding": {"each_kernel<": ["writes"], "(lookup|token_gradient)_kernel<.*true>": WIDE,
                  "(lookup|token_gradient)_kernel<|list_kernel": NOTHING},
    "norms": {"norm_(forward|backward)_kernel<.*true>": WIDE,
              "norm_(forward|backward)_kernel<": NOTHING},
    "optimizer": {"each_kernel<": WIDE},
    "product_kernels": {"bias_kernel<.*true>": WIDE, "bias_kernel<|ones_kernel<": NOTHING},
    "reductions": {"each_kernel<": WIDE, "squares_kernel|digest_parts_kernel": WIDE_READS,
                   "(sum|factor|digest)_kernel": NOTHING},
    "rope": {"each_kernel<": WIDE},
    "rows": {"softmax_part_kernel<": WIDE_READS, "cross_entropy(_of_parts)?_kernel<": WIDE},
    "tree_sum": {"sum_kernel<": WIDE, "reduce_kernel<": NOTHING},
}
# Their calls go as deep as the tree of the ranks, which needs a frame.
FRAMES = {"tree_sum": r"\breduce_kernel<"}
CONTENTS = {"mma": r"\bmma\.sync", "copies": r"\bcp\.async\.c[ga]\S* .*, 16",
            "reads": r"\bld\.global\S*\.v4\.\w32|\bld\.global\S*\.v2\.\w64",
            "writes": r"\bst\.global\S*\.v4\.\w32|\bst\.global\S*\.v2\.\w64"}
RESOURCES = r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"

class Kernel:
    """One kernel: its readable name, its PTX and what the assembler reports."""

    def __init__(self, name, ptx, frame, spills, registers):
        self.name, self.ptx = name, ptx
        self.frame, self.spills, self.registers = frame, spills, registers

    def lacks(self, wanted):
        return [what for what in wanted if not re.search(CONTENTS[what], self.ptx)]


def readable(names):
    shown = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return [re.sub(r"\(anonymous namespace\)::|trireme::(cuda::)?|\(bool\)|\(int\)|^void ", "",
                   name.replace("<unnamed>", "(anonymous namespace)")) for name in shown]


def resources(text):
    """Returns a kernel's name, and the bytes of its frame and of what it spills, with those of the
    functions that it calls, and its registers."""
    functions = [[int(x) for x in found] for found in re.findall(RESOURCES, text)]
    registers = int(re.search(r"Used (\d+) registers", text)[1])
    return re.match(r"'(\w+)'", text)[1], (max(frame for frame, _, _ in functions),
                                           sum(one + two for _, one, two in functions), registers)


def compiled(source):
    """Returns the kernels of a source."""
    with tempfile.TemporaryDirectory() as folder:
        includes = [f"-I{ROOT / one}" for one in FOLDERS]
        command = [NVCC, *FLAGS, *includes, "--keep-dir", folder, "-o", f"{folder}/cubin", source]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise AssertionError(f"{source}: {result.stderr}")
        ptx = (pathlib.Path(folder) / source.with_suffix(".ptx").name).read_text(encoding="utf-8")
    bodies = dict(re.findall(r"\.entry (\w+)\((.*?\n)\}\n", ptx, re.DOTALL))
    reported = dict(resources(text) for text in
                    result.stderr.split("Compiling entry function ")[1:])
    if bodies.keys() != reported.keys():
        raise AssertionError(f"{source}: nvcc reports {sorted(reported)} of {sorted(bodies)}")
    return [Kernel(name, bodies[key], *reported[key])
            for key, name in zip(bodies, readable(bodies))]


def all_kernels():
    """Returns the kernels by their source's name."""
    sources = sorted([*(ROOT / "src/kernels/cuda").glob("*.cu"), *(ROOT / "mpi/nccl").glob("*.cu")])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip([one.stem for one in sources], pool.map(compiled, sources)))
    return {stem: kernels for stem, kernels in found.items() if kernels}


@unittest.skipIf(NVCC is None, "nvcc is not installed")
class CudaCode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernels = all_kernels()

    def each(self):
        return [(source, kernel) for source, kernels in self.kernels.items() for kernel in kernels]

    def test_nothing_spills(self):
        for source, kernel in self.each():
            with self.subTest(source=source, kernel=kernel.name):
                self.assertEqual(kernel.spills, 0)
                if not re.search(FRAMES.get(source, "(?!)"), kernel.name):
                    self.assertEqual(kernel.frame, 0)

    def test_kernels_use_what_makes_them_fast(self):
        self.assertEqual(self.kernels.keys(), KERNELS.keys())
        for source, kernel in self.each():
            with self.subTest(source=source, kernel=kernel.name):
                rules = [rule for name, rule in KERNELS[source].items()
                         if re.search(name, kernel.name)]
                self.assertTrue(rules, "no rule for this kernel")
                self.assertEqual(kernel.lacks(rules[0]), [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        for stem, found in all_kernels().items():
            for one in found:
                print(f"{stem:20}{one.registers:4}  {one.name}")
    else:
        unittest.main()
