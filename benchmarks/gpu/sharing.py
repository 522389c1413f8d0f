"""Two ranks that share one GPU: their bits, their faults, and that they are refused unless this is
asked for. With NCCL before 2.30, which does not connect them, these parts are not run."""

import os
import re
import shutil
import subprocess

import training
from operations import end_of, reason_of, verdict

# Without the last two, ranks on an H200 stood still in their first step (docs/gpu.md).
ONE_GPU = {"CUDA_VISIBLE_DEVICES": "0", "NCCL_MULTI_RANK_GPU_ENABLE": "1",
           "NCCL_CUMEM_ENABLE": "0", "NCCL_LOCAL_REGISTER": "0"}
DEADLINE = 10  # seconds after which a rank is missing


def shared(options, name, changes, same_bits):
    """Two ranks on one GPU against one rank: the same bits, or else losses that are near."""
    def part(deadline):
        alone = training.train(options, f"{name}-alone", deadline, shared_keys(options, {}))
        done = training.attempt(options, name, deadline, shared_keys(options, changes), ONE_GPU,
                                ranks=2)
        if done.returncode == 2:
            return "not run", f"refused: {' '.join(done.stderr.split())[-300:]}", {}
        if done.returncode != 0:
            return "failed", end_of(done), {}
        difference = training.largest_difference(training.metrics_of(options, name), alone)
        equal = len({training.digest(options, run, deadline)
                     for run in (name, f"{name}-alone")}) == 1
        words = (f"{'the same' if equal else 'other'} bits as one rank; losses differ by "
                 f"{difference:.1e} at most; {links(done)}")
        good = equal if same_bits else difference <= training.TOLERANCE["bf16"]
        return verdict([] if good else [words], words, {"largest_difference": difference})
    return part


def links(process):
    """Returns what a run has logged of NCCL's links."""
    return next((re.sub(r"^[-\d]+ [:\d]+ ", "", line) for line in process.stderr.splitlines()
                 if "links GPUs" in line), "NCCL tells no links")


def shared_keys(options, changes):
    """Returns the keys of a run whose ranks share a GPU."""
    layers = {"model.layers": 2} if options.quick else {}
    return {**training.SHARED, **layers, "optimizer.schedule.steps": 10, **changes}


def shared_fault(options, name, fault, changes, code, pattern):
    """Two ranks on one GPU, one of which fails. pattern: found in what the run says of it."""
    def part(deadline):
        done = training.attempt(options, name, deadline, shared_keys(options, changes),
                                {**ONE_GPU, "TRIREME_FAULTS": fault}, ranks=2)
        if done.returncode == 2:
            return "not run", f"refused: {' '.join(done.stderr.split())[-300:]}", {}
        reason = reason_of(options, name)
        message = reason.get("message", "")
        good = reason.get("code") == code and re.search(pattern, message)
        return verdict([] if good else [f"{reason.get('code')}: {message}; {end_of(done)}"],
                       f"{code}: {message}"[:500])
    return part


def refused_to_share(options):
    """Ranks on one GPU are refused unless this is asked for, of the program and of NCCL."""
    def part(deadline):
        problems = []
        for name, changes, environment, pattern in (
                ("not-shared", {"train.share_device": "false"}, ONE_GPU, "train.share_device=true"),
                ("not-connected", {}, {**ONE_GPU, "NCCL_MULTI_RANK_GPU_ENABLE": None},
                 "NCCL_MULTI_RANK_GPU_ENABLE=1")):
            done = training.attempt(options, name, deadline, shared_keys(options, changes),
                                    environment, ranks=2)
            if done.returncode != 2 or pattern not in done.stderr:
                problems.append(f"{name}: {end_of(done)}")
        return verdict(problems, "refused with 2 without train.share_device, and without NCCL's "
                       "permission")
    return part


def under_mps(options):
    """Two ranks on one GPU under CUDA's multi-process service."""
    def part(deadline):
        control = shutil.which("nvidia-cuda-mps-control")
        if control is None:
            return "not run", "nvidia-cuda-mps-control is not installed", {}
        folder = options.out.absolute() / "mps"
        folder.mkdir(exist_ok=True)
        environment = {"CUDA_MPS_PIPE_DIRECTORY": str(folder),
                       "CUDA_MPS_LOG_DIRECTORY": str(folder), **ONE_GPU}
        variables = {**os.environ, **environment}
        subprocess.run([control, "-d"], env=variables, check=True, timeout=30)
        try:
            done = training.attempt(options, "shared", deadline, training.SHARED, environment,
                                    ranks=2)
        finally:
            subprocess.run([control], input="quit\n", text=True, env=variables, timeout=30,
                           check=False)
        if done.returncode == 2:
            return "not run", f"refused: {done.stderr[-300:]}", {}
        return verdict([end_of(done)] if done.returncode else [], "two ranks train on one GPU")
    return part


def parts(options):
    """Returns (name, about how many seconds it takes, part) of each."""
    layouts = {"dp 2": {}, "zero 1": {"parallel.zero": 1}, "zero 3": {"parallel.zero": 3},
               "pp 2": {"parallel.pp": 2}, "tp 2": {"parallel.tp": 2}}
    return [
        ("operations: sharing is refused", 6, refused_to_share(options)),
        *((f"operations: two ranks on one GPU, {name}", 12,
           shared(options, f"shared-{name.replace(' ', '-')}", changes, name != "tp 2"))
          for name, changes in layouts.items()),
        ("operations: two ranks on one GPU, MPS", 20 if shutil.which("nvidia-cuda-mps-control")
         else 0, under_mps(options)),
        ("operations: a rank that is missing", 20,
         shared_fault(options, "missing", "step.backward:1:4:stop",
                      {"comm.deadline.step": DEADLINE}, 85, "rank 1")),
        ("operations: replicas that differ", 8,
         shared_fault(options, "replicas", "step.weights:1:3:corrupt",
                      {"train.compare_every": 1}, 76, "rank 1")),
    ]
