"""Compiles the CUDA kernels for one GPU and returns their PTX, their machine code where nvdisasm is
installed, and what the assembler reports about registers and memory."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SEARCHED = f"{os.environ['PATH']}:/usr/local/cuda/bin"
NVCC = shutil.which("nvcc", path=SEARCHED)
NVDISASM = shutil.which("nvdisasm", path=SEARCHED)
ARCHITECTURE = "sm_90a"
FLAGS = ["-std=c++20", f"-arch={ARCHITECTURE}", "-O3", "--expt-relaxed-constexpr",
         "-DTRIREME_WARPGROUP_CODE=true", "-Werror=all-warnings", "-cubin", "--keep",
         "-Xptxas", "-v"]
FOLDERS = [".", "src/device/cuda/language", "src/device/cuda/native"]
RESOURCES = r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"

# Limits of one multiprocessor of compute capability 9.0 (CUDA C++ Programming Guide, "Compute
# Capabilities"): registers, the unit in which warps get them, warps, blocks, shared memory, and the
# part of it that each block reserves.
REGISTERS, REGISTER_UNIT, WARPS, BLOCKS, SHARED, SHARED_OF_BLOCK = 65536, 256, 64, 32, 233472, 1024
SUBPARTITIONS = 4  # each runs a quarter of the warps

# Dynamic shared memory, in bytes, by source and kernel, as the host's code computes it from the
# template's arguments, or from the channels and the vocabulary (as in GPT-2 124M).
CHANNELS, VOCABULARY = 768, 50257


def block_rows(d, is_plain):
    """Returns the rows of a block of attention (kRowTiles in attention_tiles.h). is_plain: it has
    neither dropout nor ALiBi's bias."""
    return 128 if d <= 64 and is_plain else 64


def attention_forward_tiles(d, keys, is_plain=True):
    return 2 * (block_rows(d, is_plain) + 4 * keys) * (d + 8)


def attention_backward_tiles(d, read, is_plain=True):
    return 2 * (2 * block_rows(d, is_plain) + 4 * read) * (d + 8) + 4 * 4 * read


def warpgroup_backward_tiles(d, read):
    return 2 * (2 * 64 + 4 * read) * d + -(-4 * 4 * read // 1024) * 1024


def held_row(element):
    """Returns the bytes of a row of logits that a block of 512 threads holds (held_groups in
    rows.cu)."""
    groups, per_round = VOCABULARY * element // 16 + 2, 16 * 512
    half = (SHARED - 2 * SHARED_OF_BLOCK) // 2
    return min((half - 1024) // per_round, -(-groups // 512)) * per_round


DYNAMIC = {
    "attention_forward": {
        r"forward_kernel<\w+, (\d+), (\d+), false, false": attention_forward_tiles,
        r"forward_kernel<\w+, (\d+), (\d+),":
            lambda d, keys: attention_forward_tiles(d, keys, is_plain=False)},
    "attention_backward": {
        r"(?:keys|queries)_kernel<\w+, (\d+), (\d+),.* false, false": attention_backward_tiles,
        r"(?:keys|queries)_kernel<\w+, (\d+), (\d+),":
            lambda d, read: attention_backward_tiles(d, read, is_plain=False)},
    "attention_warpgroup_forward": {
        r"warpgroup_forward_kernel<\w+, (\d+), (\d+),": lambda d, keys: 2 * (64 + 4 * keys) * d},
    "attention_warpgroup_backward": {
        r"warpgroup_(?:keys|queries)_kernel<\w+, (\d+), (\d+),": warpgroup_backward_tiles},
    "norms": {r"norm_forward_kernel<float": lambda: 4 * CHANNELS,
              r"norm_forward_kernel<": lambda: 2 * CHANNELS},
    # Four rows of three arrays that are copied ahead, or two sums.
    "norm_backward": {r"norm_backward_held_kernel<float": lambda: 48 * CHANNELS,
                      r"norm_backward_held_kernel<": lambda: 24 * CHANNELS,
                      r"norm_backward_kernel<": lambda: 8 * CHANNELS},
    "rope": {r"rope_kernel<": lambda: 2 * 4 * 256},  # sines and cosines
    "rows": {r"cross_entropy_kernel<float": lambda: held_row(4),
             r"cross_entropy_kernel<": lambda: held_row(2)},
}


class Kernel:
    """One kernel: its source and readable name, its PTX and SASS (empty without nvdisasm), and what
    the assembler reports."""

    def __init__(self, source, name, ptx, sass, reported):
        self.source, self.name, self.ptx, self.sass = source, name, ptx, sass
        self.frame, self.spills, self.registers, self.static = reported
        self.threads = int(re.search(r"\.maxntid (\d+)", ptx)[1])

    def shared(self):
        """Returns the bytes of shared memory of a block."""
        for pattern, bytes_of in DYNAMIC.get(self.source, {}).items():
            if found := re.search(pattern, self.name):
                return self.static + bytes_of(*(int(number) for number in found.groups()))
        return self.static

    def blocks(self):
        """Returns how many blocks a multiprocessor holds."""
        warps = -(-self.threads // 32)
        of_warp = -(-self.registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
        by_registers = REGISTERS // SUBPARTITIONS // of_warp * SUBPARTITIONS // warps
        by_shared = SHARED // (self.shared() + SHARED_OF_BLOCK)
        return min(BLOCKS, WARPS // warps, by_registers, by_shared)

    def occupancy(self):
        return self.blocks() * -(-self.threads // 32) / WARPS


def readable(names):
    shown = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return [re.sub(r"\(anonymous namespace\)::|trireme::(cuda::)?|\(bool\)|\(int\)|^void |\(.*", "",
                   re.sub(r"\((bool|int|trireme::Fp8Format)\)", "",
                          name.replace("<unnamed>", "(anonymous namespace)")
                          .replace("(anonymous namespace)::", "")))
            for name in shown]


def resources(text):
    """Returns a kernel's symbol; and the bytes of its frame and of what it spills, with those of
    the functions that it calls, its registers, and the bytes of its static shared memory."""
    functions = [[int(x) for x in found] for found in re.findall(RESOURCES, text)]
    registers = int(re.search(r"Used (\d+) registers", text)[1])
    static = re.search(r"(\d+) bytes smem", text)
    return re.match(r"'(\w+)'", text)[1], (
        max(frame for frame, _, _ in functions), sum(one + two for _, one, two in functions),
        registers, int(static[1]) if static else 0)


def disassembled(cubin):
    """Returns the machine code by symbol."""
    if NVDISASM is None:
        return {}
    text = subprocess.run([NVDISASM, "-c", cubin], capture_output=True, text=True,
                          check=True).stdout
    pieces = re.split(r"(?m)^\.text\.(\w+):", text)
    return dict(zip(pieces[1::2], pieces[2::2]))


def compiled(source):
    """Returns the kernels of a source."""
    with tempfile.TemporaryDirectory() as folder:
        includes = [f"-I{ROOT / one}" for one in FOLDERS]
        command = [NVCC, *FLAGS, *includes, "--keep-dir", folder, "-o", f"{folder}/cubin", source]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise AssertionError(f"{source}: {result.stderr}")
        ptx = (pathlib.Path(folder) / source.with_suffix(".ptx").name).read_text(encoding="utf-8")
        sass = disassembled(f"{folder}/cubin")
    if slow := re.search("Potential Performance Loss: .*", result.stderr):
        raise AssertionError(f"{source}: {slow[0]}")
    bodies = dict(re.findall(r"\.entry (\w+)\((.*?\n)\}\n", ptx, re.DOTALL))
    reported = dict(resources(text) for text in
                    result.stderr.split("Compiling entry function ")[1:])
    if bodies.keys() != reported.keys():
        raise AssertionError(f"{source}: nvcc reports {sorted(reported)} of {sorted(bodies)}")
    return [Kernel(source.stem, name, bodies[key], sass.get(key, ""), reported[key])
            for key, name in zip(bodies, readable(bodies))]


def all_kernels():
    """Returns the kernels by their source's name."""
    sources = sorted([*(ROOT / "src/kernels/cuda").glob("*.cu"), *(ROOT / "mpi/nccl").glob("*.cu"),
                      ROOT / "src/device/cuda/short_copy.cu"])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip([one.stem for one in sources], pool.map(compiled, sources)))
    return {stem: kernels for stem, kernels in found.items() if kernels}
