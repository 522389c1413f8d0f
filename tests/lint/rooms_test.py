#!/usr/bin/python3
"""Checks that every include obeys the rooms of docs/architecture.md: no folder includes one above
it, and headers of foreign libraries are included only where FOREIGN allows it. No two folders
include each other, not even by way of others or within one room. A source includes its own header
first, which proves that the header compiles alone (for headers without a source see
CMakeLists.txt)."""
import collections
import posixpath
import re

import sources

# Room: the rooms it may include besides itself.
DEVICE = ["src/base", "src/device"]
MPI = DEVICE + ["mpi"]
TRANSPORT = MPI + ["mpi/watch", "mpi/collective"]
NN = DEVICE + ["src/kernels", "src/compute", "src/tensor"]
PARALLEL = NN + ["src/trace", "src/nn", "src/optim", "mpi"]
DATA = DEVICE + ["src/keys", "src/policy", "src/tensor", "io/archive", "io/chat", "io/h5"]
CHECKPOINT = DEVICE + ["src/keys", "src/policy", "src/tensor", "mpi", "io/keys"]
RUN = PARALLEL + ["src/keys", "src/policy", "io/keys", "mpi/session", "mpi/links", "mpi/network",
                  "mpi/nccl", "src/parallel", "src/parallel/pipeline", "io/data"]
ENGINE = RUN + ["mpi/watch", "io/checkpoint", "src/train/run"]
WATCHED = ENGINE + ["io/checkpoint/memory", "src/train/engine"]
SAVING = WATCHED + ["src/evidence", "io/checkpoint/load", "src/train/memory"]
PARTS = SAVING + ["src/train/start", "src/train/report", "src/train/saving", "src/train/numerics",
                  "src/train/text", "src/train/watch", "src/train/ending"]
TRAIN = PARTS + ["src/figures", "src/plan", "src/train/parts", "src/train/prediction",
                 "src/train/recovery", "io/h5", "slurm",
                 "slurm/job"]
LAUNCH = ["slurm/job", "slurm/process", "slurm/wire", "slurm/policy", "slurm/journal",
          "slurm/agent"]
SITE = ["slurm/render", "slurm/doctor", "slurm/health", "slurm/launch"] + LAUNCH
ROOMS = {
    "src/base": [],
    "src/keys": ["src/base"],
    "src/policy": ["src/base"],
    "src/evidence": ["src/base", "src/keys"],
    "src/figures": ["src/base"],
    "src/trace": DEVICE,
    "src/device": ["src/base"],
    "src/kernels": DEVICE,
    "src/kernels/mirrored": DEVICE + ["src/kernels"],
    "src/compute": DEVICE + ["src/kernels"],
    "src/tensor": DEVICE,
    "mpi": DEVICE,
    "mpi/watch": MPI,
    "mpi/links": MPI,
    "mpi/network": MPI,
    "mpi/collective": TRANSPORT,
    "mpi/thread": TRANSPORT,
    "mpi/shm": TRANSPORT,
    "mpi/ucx": TRANSPORT,
    "mpi/hierarchy": TRANSPORT + ["mpi/shm"],
    "mpi/nccl": MPI + ["mpi/watch", "mpi/links"],
    "mpi/session": TRANSPORT + ["mpi/shm", "mpi/ucx", "mpi/hierarchy", "mpi/nccl",
                                "mpi/links"],
    "src/nn": NN,
    "src/optim": NN + ["src/nn"],
    "io/archive": ["src/base"],
    "io/h5": ["src/base"],
    "io/keys": MPI + ["src/keys"],
    "io/data": DATA,
    "io/chat": ["src/base"],
    "io/tokens": ["src/base", "io/data"],
    "io/quality": ["src/base", "io/data", "io/tokens"],
    "io/checkpoint": CHECKPOINT,
    "io/checkpoint/memory": CHECKPOINT + ["io/checkpoint"],
    "io/checkpoint/load": CHECKPOINT + ["io/checkpoint", "io/checkpoint/memory"],
    "src/parallel": PARALLEL,
    "src/parallel/pipeline": NN + ["src/figures", "src/trace", "mpi"],
    "src/report": DEVICE + ["src/figures", "src/trace", "slurm/journal"],
    "slurm": ["src/base"],
    "slurm/job": ["src/base"],
    "slurm/render": ["src/base", "slurm/job"],
    "slurm/doctor": ["src/base", "slurm/job"],
    "slurm/health": ["src/base"],
    "slurm/process": ["src/base"],
    "slurm/wire": ["src/base"],
    "slurm/policy": ["src/base", "slurm/wire"],
    "slurm/journal": ["src/base"],
    "slurm/agent": ["src/base", "slurm/process", "slurm/wire", "slurm/policy"],
    "slurm/launch": ["src/base"] + LAUNCH,
    "src/train/run": RUN,
    "src/train/start": RUN + ["mpi/nccl", "src/train/run", "io/checkpoint"],
    "src/train/report": RUN + ["src/figures", "src/train/run"],
    "src/train/numerics": NN + ["src/kernels/mirrored", "src/nn", "src/train/run"],
    "src/train/engine": ENGINE,
    "src/train/memory": WATCHED,
    "src/train/watch": WATCHED,
    "src/train/saving": SAVING,
    "src/train/text": SAVING + ["io/tokens", "src/train/saving", "src/train/start"],
    "src/train/ending": ["src/base", "mpi", "slurm/job"],
    "src/train/prediction": RUN + ["src/plan", "src/train/run", "src/train/engine"],
    "src/train/parts": PARTS,
    "src/train/recovery": PARTS + ["src/train/parts"],
    "src/train": PARTS + ["src/train/parts", "src/train/prediction", "src/train/recovery"],
    "src/evaluation": PARALLEL + ["io/data", "io/tokens"],
    "src/interchange/onnx": NN + ["src/nn", "io/checkpoint"],
    "src/interchange": PARTS + ["io/chat", "io/tokens", "src/train", "src/interchange/onnx"],
    "src/lineage": CHECKPOINT + ["src/evidence", "io/checkpoint", "io/h5", "io/data", "io/tokens"],
    "src/registry": CHECKPOINT + ["src/evidence", "io/checkpoint"],
    "src/app/sbom": ["src/base"],
    "src/app/command": RUN + ["src/evidence", "src/train/run", "src/train/start",
                               "src/app/sbom"],
    "benchmarks": TRAIN + ["src/train", "src/app/command", "slurm/health"],
    "benchmarks/kernels": NN,
    "src/study": ["src/base", "benchmarks"],
    "src/study/redaction": ["src/base"],
    "src/study/anonymity": ["src/base", "src/study/redaction", "slurm/job"],
    "src/study/records": ["src/base"],
    "src/plan": RUN + ["src/train/run"],
    "src/plan/network": ["src/base", "src/figures"],
    "src/plan/simulate": ["src/base", "src/figures", "slurm/journal"],
    "src/app": TRAIN + SITE + ["mpi/nccl", "io/chat", "io/tokens", "io/quality", "src/train",
                               "src/evaluation", "src/interchange",
                               "src/lineage", "src/registry", "src/app/command", "benchmarks",
                               "src/study", "src/study/redaction", "src/study/anonymity",
                               "src/study/records", "src/plan", "src/plan/network",
                               "src/plan/simulate", "src/report"],
    "tests": TRAIN + TRANSPORT + SITE + ["mpi/thread", "io/archive", "io/chat", "io/tokens",
                                         "io/quality",
                                         "mpi/shm", "mpi/ucx", "mpi/hierarchy",
                                         "src/kernels/mirrored", "src/keys", "src/policy",
                                         "src/report",
                                         "src/train", "src/evaluation", "src/interchange",
                                         "src/interchange/onnx",
                                         "src/lineage", "src/registry", "src/app",
                                         "src/app/command", "src/app/sbom", "benchmarks",
                                         "src/study", "src/study/redaction",
                                         "src/study/anonymity", "src/study/records", "src/plan",
                                         "src/plan/network", "src/plan/simulate"],
}

# Headers of other libraries, and the only places that may name them.
FOREIGN = {
    r"mpi\.h": r"mpi/session/[^/]*\.cc",
    r"hdf5\w*\.h|H5\w*\.h": r"io/h5/.*",
    r"cuda.*|cublas.*|cudnn.*":
        r"src/device/.*|src/kernels/cuda/.*|mpi/nccl.*|tests/device/sim/.*",
    r"nvml\.h": r"src/device/nvml/.*|tests/device/nvml/.*",
    r"nvtx.*": r"src/device/.*",
    r"nccl.*": r"mpi/nccl.*|src/device/sim/.*|src/device/cuda/native/.*|tests/device/sim/.*",
    r"uc[pst]/.*": r"mpi/ucx/.*",
    r"(oneapi/dnnl/)?dnnl.*": r"src/kernels/(cpu/.*|product_library\.cc)|benchmarks/.*",
    r"zstd.*": r"(tests/)?io/archive/.*",
    r"yaml-cpp/.*": r"src/base/.*",
    r"spdlog/.*": r"src/base/.*",
    r"openssl/.*": r"src/(base|evidence|keys)/.*|(tests/)?slurm/wire/.*",
    r"p11-kit/.*": r"(src|tests)/keys/.*",
    r"simdjson\.h": r"io/data/line_text\.cc",
    r"sqlite3\.h": r"src/registry/sqlite_database\.cc",
    r"CLI/.*": r"src/app/command/(command_line|written_files)\.cc",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
BACKEND_SWITCH = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|NCCL|UCX)")


def room_of(path):
    fitting = [room for room in ROOMS if str(path).startswith(room + "/")]
    return max(fitting, key=len, default=None)


def problems_of(top, path, text):
    room = room_of(path)
    if room is None:
        yield f"{path}:1: no room of docs/architecture.md holds this file"
        return
    own = path.with_suffix(".h")
    first = re.search(INCLUDE.pattern, text, re.MULTILINE)
    if path.suffix == ".cc" and (top / own).is_file() and first and first[2] != str(own):
        yield f"{path}:1: its own header, {own}, must be its first include"
    for number, line in enumerate(text.splitlines(), 1):
        if BACKEND_SWITCH.match(line):
            yield f"{path}:{number}: a switch on a back end: link another file instead"
        found = INCLUDE.match(line)
        if not found:
            continue
        quote, name = found.groups()
        for headers, places in FOREIGN.items():
            if re.fullmatch(headers, name) and not re.fullmatch(places, str(path)):
                yield f"{path}:{number}: <{name}> may be included only by {places}"
        if quote != '"':
            continue
        target = room_of(name)
        if not (top / name).is_file():
            yield f"{path}:{number}: \"{name}\" is not a file below the repository's root"
        elif target != room and target not in ROOMS[room]:
            yield f"{path}:{number}: {room} may not include {target} (\"{name}\")"


def folder_cycles(texts):
    """Yields one problem for each pair of folders that include each other, directly or not.
    texts: the text of each file, by path."""
    into = collections.defaultdict(lambda: collections.defaultdict(str))
    for path, text in texts.items():
        folder = posixpath.dirname(str(path))
        for line in text.splitlines():
            found = INCLUDE.match(line)
            if found and found[1] == '"' and posixpath.dirname(found[2]) != folder:
                into[folder][posixpath.dirname(found[2])] = f'{path} includes "{found[2]}"'

    def reached(start):
        seen, left = set(), [start]
        while left:
            for folder in into.get(left.pop(), ()):
                if folder not in seen:
                    seen.add(folder)
                    left.append(folder)
        return seen

    reach = {folder: reached(folder) for folder in into}
    for folder, others in into.items():
        for other, why in others.items():
            if folder in reach.get(other, ()):
                yield f"{folder} and {other} include each other: {why}"


def main():
    top = sources.root()
    checked = sources.files(top, ".h", ".cc", ".cu", ".cuh")
    texts = {path: (top / path).read_text(encoding="utf-8") for path in checked}
    problems = [p for path, text in texts.items() for p in problems_of(top, path, text)]
    problems += folder_cycles(texts)
    sources.finish("rooms", problems, len(checked))


if __name__ == "__main__":
    main()
