#!/usr/bin/python3
"""Compiles the CUDA sources for one GPU and reads what the compiler made of each kernel: nothing
may spill to memory, attention must use tensor cores and asynchronous copies, and kernels that
memory bounds must access 16 bytes at a time, in PTX and, where nvdisasm is installed, in the
machine code. Needs nvcc, but no GPU. With --table, prints the table of docs/gpu-kernels.md."""
import re
import subprocess
import sys
import unittest

from cuda_code import NVCC, NVDISASM, ROOT, all_kernels

# What the kernels must contain. The first pattern of a source that matches a kernel's name holds;
# <...> stands for the arguments of its template.
NOTHING, WIDE_READS, WIDE, TENSOR_CORES = [], ["reads"], ["reads", "writes"], ["mma", "copies"]
WARPGROUPS = ["wgmma", "copies"]
KERNELS = {
    "attention_forward": {"forward_kernel<": TENSOR_CORES},
    "attention_backward": {"keys_kernel<": TENSOR_CORES, "queries_kernel<": TENSOR_CORES},
    "attention_plain": {r"delta_kernel<.*true>": WIDE_READS, "delta_kernel<": NOTHING,
                        "(forward|dq|dkv)_kernel<": NOTHING},
    "attention_warpgroup_backward": {"warpgroup_(keys|queries)_kernel<": WARPGROUPS},
    "attention_warpgroup_forward": {"warpgroup_forward_kernel<": WARPGROUPS},
    "column_sum": {r"column_sum_kernel<.*true>": WIDE_READS, "column_sum_kernel<": NOTHING},
    "distillation": {"distillation_kernel<": WIDE},
    "dropout": {"drop_kernel<": WIDE, "each_kernel<": WIDE},
    "elementwise": {"each_kernel<.*Fill": ["writes"], "each_kernel<.*Cast": NOTHING,
                    "each_kernel<": WIDE},
    "embedding": {"each_kernel<": ["writes"], "(lookup|few_rows)_kernel<.*true>": WIDE,
                  "many_rows_kernel<.*true>": ["copies"],
                  "(lookup|few_rows|many_rows)_kernel<": NOTHING},
    "fp8": {"most_kernel": WIDE_READS, "scale_kernel": NOTHING,
            "round(_transposed)?_kernel<": WIDE},
    "norm_backward": {"norm_backward_kernel<.*true>": WIDE, "norm_backward_kernel<": NOTHING,
                      "norm_backward_held_kernel<": ["copies", "writes"]},
    "norms": {"norm_forward_kernel<.*true>": WIDE, "norm_forward_kernel<": NOTHING},
    "optimizer": {"each_kernel<": WIDE},
    "product_kernels": {"bias_kernel<.*true>": WIDE, "each_kernel<": WIDE,
                        "bias_kernel<|ones_kernel<": NOTHING},
    "reductions": {"each_kernel<": WIDE, "squares_kernel|digest_parts_kernel": WIDE_READS,
                   "(sum|factor|digest)_kernel": NOTHING},
    "rope": {"rope_kernel<.*true>": WIDE, "rope_kernel<": NOTHING},
    "row_sort": {"(count|place)_kernel": NOTHING},
    "rows": {"softmax_part_kernel<": WIDE_READS, "cross_entropy_of_parts_kernel<": WIDE,
             "cross_entropy_kernel<": [*WIDE, "copies"]},
    "short_copy": {"copy_kernel<uint4>": WIDE, "copy_kernel<": NOTHING},
    "tree_sum": {"sum_kernel<": WIDE, "reduce_kernel<": NOTHING},
}
# Their calls go as deep as the tree of the ranks, which needs a frame.
FRAMES = {"tree_sum": r"\breduce_kernel<"}
PTX = {"mma": r"\bmma\.sync", "wgmma": r"\bwgmma\.mma_async",
       "copies": r"\bcp\.async\.c[ga]\S* .*, 16",
       "reads": r"\bld\.global\S*\.v4\.\w32|\bld\.global\S*\.v2\.\w64",
       "writes": r"\bst\.global\S*\.v4\.\w32|\bst\.global\S*\.v2\.\w64"}
SASS = {"mma": r"\bHMMA\.", "wgmma": r"\bHGMMA\.", "copies": r"\bLDGSTS\.E\S*\.128",
        "reads": r"\bLDG\.E\S*\.128", "writes": r"\bSTG\.E\S*\.128"}
LOCAL_MEMORY = r"\b(LDL|STL)\b"
REMEDY = "run ./dev install-cuda, and put the folder of nvcc into PATH (docs/gpu.md)"


def rule_of(kernel):
    """Returns what a kernel must contain, or None if no rule names it."""
    rules = [rule for name, rule in KERNELS.get(kernel.source, {}).items()
             if re.search(name, kernel.name)]
    return rules[0] if rules else None


def lacking(code, patterns, wanted):
    return [what for what in wanted if not re.search(patterns[what], code)]


def has_frame(kernel):
    return re.search(FRAMES.get(kernel.source, "(?!)"), kernel.name) is not None


def table(kernels):
    """Returns the table of the kernels that have to be fast."""
    lines = ["| source | kernel | registers | threads | shared bytes | blocks | occupancy |",
             "|---|---|---|---|---|---|---|"]
    for found in kernels.values():
        for one in sorted(found, key=lambda kernel: kernel.name):
            if rule_of(one):
                lines.append(f"| {one.source} | `{one.name}` | {one.registers} | {one.threads} | "
                             f"{one.shared()} | {one.blocks()} | {100 * one.occupancy():.0f} % |")
    return "\n".join(lines) + "\n"


class CudaCode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernels = all_kernels()

    def check(self, problem_of):
        """Fails with all kernels for which problem_of(kernel) is not empty."""
        problems = [f"{kernel.source}: {kernel.name}: {problem_of(kernel)}"
                    for kernels in self.kernels.values() for kernel in kernels
                    if problem_of(kernel)]
        self.assertEqual(problems, [])

    def test_nothing_spills(self):
        self.check(lambda kernel: "spills" if kernel.spills else
                   "has a frame" if kernel.frame and not has_frame(kernel) else "")

    def test_kernels_use_what_makes_them_fast(self):
        self.assertEqual(self.kernels.keys(), KERNELS.keys())
        self.check(lambda kernel: "no rule for it" if rule_of(kernel) is None else
                   lacking(kernel.ptx, PTX, rule_of(kernel)))

    @unittest.skipIf(NVDISASM is None, f"nvdisasm is missing: {REMEDY}")
    def test_the_machine_code_uses_it_and_no_local_memory(self):
        self.check(lambda kernel: "no code" if not kernel.sass else
                   lacking(kernel.sass, SASS, rule_of(kernel) or []))
        self.check(lambda kernel: "local memory" if not has_frame(kernel) and
                   re.search(LOCAL_MEMORY, kernel.sass) else "")

    def test_a_block_of_each_kernel_fits(self):
        self.check(lambda kernel: "" if kernel.blocks() >= 1 else "needs too much")

    # Other versions of the compiler use other numbers of registers.
    def test_the_table_is_in_the_documents(self):
        version = subprocess.run([NVCC, "--version"], capture_output=True, text=True, check=True)
        if "release 13.0" not in version.stdout:
            self.skipTest(f"the table needs nvcc 13.0: {REMEDY}")
        page = (ROOT / "docs/gpu-kernels.md").read_text(encoding="utf-8")
        self.assertIn(table(self.kernels), page, "run cuda_code_test.py --table")


if __name__ == "__main__":
    if NVCC is None:
        print(f"skipped 'nvcc is missing: {REMEDY}'")
        sys.exit(77)
    if sys.argv[1:] == ["--table"]:
        print(table(all_kernels()), end="")
    else:
        unittest.main(verbosity=2)
