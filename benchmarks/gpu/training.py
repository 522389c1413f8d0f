"""Training runs of the suite: a GPU's against the CPU's, across restarts, and for speed."""

import json
import math
import random
import re
import shutil
import statistics
import subprocess
import time

from processes import finished, kill_session

WORDS = "the sea was calm and a trireme of three banks left its harbour before dawn".split()
# A GPU adds in another order. In bf16, rounding makes runs drift apart as they learn, so that only
# the first steps are compared one by one, and later ones by their mean.
TOLERANCE = {"fp32": 1e-3, "bf16": 1e-2}
COMPARED = 50
SPEED_STEPS = 30
SPEED_LINES = 6  # of the log, in which a measured run has its rates
MODEL = {"model.family": "gpt2", "model.layers": 4, "model.hidden": 128, "model.heads": 4,
         "model.ffn": 512,
         "model.context": 128, "model.vocab": 257, "data.sequence": 128, "train.global_batch": 8,
         "train.micro_batch": 4, "train.log_every": 1, "optimizer.lr": 1e-3,
         "checkpoint.every": 10, "checkpoint.keep": 8}
SHARED = {"train.steps": 10, "train.precision": "bf16", "train.device": "cuda",
          "train.share_device": "true", "comm.deadline.step": 20}  # of ranks that share a GPU
SMALL = {"model.layers": 1, "model.hidden": 32, "model.heads": 2, "model.ffn": 128,
         "model.context": 32, "data.sequence": 32}


def prepare(options, deadline):
    """Packs text that is the same everywhere."""
    choose = random.Random(1)
    text = options.out / "text.jsonl"
    with open(text, "w", encoding="utf-8") as file:
        for _ in range(2000):
            words = " ".join(choose.choice(WORDS) for _ in range(choose.randrange(50, 300)))
            file.write(json.dumps({"text": words}) + "\n")
    (options.out / "empty.yaml").write_text("")
    run(options, deadline.within(60), "data", "pack", text, "--out", options.out / "data")


def run(options, deadline, *arguments, check=True):
    done = finished([options.trireme, *arguments], deadline)
    if check:
        done.check_returncode()
    return done


def attempt(options, name, deadline, keys, environment=None, ranks=0, more=()):
    """Trains in OUT/name, with `ranks` ranks under mpirun if any, and returns the finished process.
    more: further options of `train`."""
    small = SMALL if options.quick else {}
    all_keys = {**MODEL, **small, "data.train": options.out / "data", "run.dir": options.out / name,
                "train.threads": options.threads, **keys}
    prefix = mpirun(options, ranks) if ranks else ()
    command = [*prefix, options.trireme, "train", options.out / "empty.yaml",
               *(f"{key}={value}" for key, value in all_keys.items()), *more]
    return finished(command, deadline, environment)


def train(options, name, deadline, keys, environment=None, ranks=0):
    """Trains in OUT/name and returns the lines of its metrics by step."""
    attempt(options, name, deadline, keys, environment, ranks).check_returncode()
    return metrics_of(options, name)


def metrics_of(options, name):
    return {line["step"]: line for line in lines_of(options.out / name / "metrics.jsonl")}


def mpirun(options, ranks):
    """Returns the words that start ranks on this host, by the bundle's own mpirun if it has one.
    Ranks are bound to no cores, because several launches run at a time."""
    beside = options.trireme.parent / "mpirun"
    program = beside if beside.exists() else shutil.which("mpirun") or "mpirun"
    return [program, "--allow-run-as-root", "--bind-to", "none", "-n", ranks]


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def digest(options, name, deadline):
    return run(options, deadline, "ckpt", "digest", options.out / name / "checkpoints").stdout


def largest_difference(one, other):
    """Returns the largest relative difference of two runs' losses."""
    steps = one.keys() & other.keys()
    if not steps:
        raise ValueError("the runs have no step in common")
    return max(abs(one[s]["loss"] / other[s]["loss"] - 1) for s in steps)


def against_the_cpu(options, precision, steps):
    def part(deadline):
        keys = {"train.precision": precision, "train.steps": steps,
                "optimizer.schedule.steps": steps}
        gpu = train(options, f"gpu-{precision}", deadline, {**keys, "train.device": "cuda"})
        cpu = train(options, f"cpu-{precision}", deadline, {**keys, "train.device": "cpu"})
        first = largest_difference({s: gpu[s] for s in gpu if s <= COMPARED}, cpu)
        means = [statistics.mean(run[s]["loss"] for s in run if s > len(run) // 2)
                 for run in (gpu, cpu)]
        later = abs(means[0] / means[1] - 1)
        good = math.isfinite(first + later) and max(first, later) <= TOLERANCE[precision]
        return ("passed" if good else "failed",
                f"losses of the first {min(COMPARED, len(gpu))} steps differ by {first:.1e} at "
                f"most, and the mean of the second half of {len(gpu)} steps by {later:.1e}",
                {"largest_difference": first, "difference_of_means": later, "steps": len(gpu)})
    return part


def kept_digest(options, name, keys, device, deadline):
    """Returns the digest of what a device saves after it has loaded the newest checkpoint of a run
    and skipped one step, which leaves weights and moments as they were."""
    kept = f"{name}-kept"
    shutil.copytree(options.out / name, options.out / kept)
    loaded = max(lines_of(options.out / kept / "metrics.jsonl"), key=lambda line: line["step"])
    train(options, kept, deadline,
          {**keys, "train.steps": loaded["step"] + 1, "train.device": device},
          environment={"TRIREME_FAULTS": "step.gradient:0:1:nan"})
    return digest(options, kept, deadline)


def handed_over(options, first, second):
    """Half a run on one device and half on the other, against the whole run on the second. What the
    second one saves at the hand-over must be what the first one has saved."""
    def part(deadline):
        keys = {"train.precision": "fp32", "optimizer.schedule.steps": 20}
        whole = train(options, f"whole-{second}", deadline,
                      {**keys, "train.steps": 20, "train.device": second})
        name = f"{first}-to-{second}"
        train(options, name, deadline, {**keys, "train.steps": 10, "train.device": first})
        saved = digest(options, name, deadline)
        same = kept_digest(options, name, keys, second, deadline) == saved
        rest = train(options, name, deadline, {**keys, "train.steps": 20, "train.device": second})
        difference = largest_difference({s: rest[s] for s in rest if s > 10}, whole)
        return ("passed" if same and difference <= TOLERANCE["fp32"] else "failed",
                f"{'the same' if same else 'other'} bits at the hand-over; losses after it differ "
                f"by {difference:.1e} at most from those without",
                {"largest_difference": difference, "same_bits": same})
    return part


def same_bits(options):
    """Two runs, one without CUDA graphs and one that was resumed leave the same checkpoint."""
    def part(deadline):
        keys = {"train.precision": "bf16", "train.device": "cuda", "optimizer.schedule.steps": 20}
        for name, graphs in (("bits-1", "on"), ("bits-2", "on"), ("bits-without", "off")):
            train(options, name, deadline, {**keys, "train.steps": 20, "train.graphs": graphs})
        for steps in (10, 20):
            train(options, "bits-resumed", deadline, {**keys, "train.steps": steps})
        names = ("bits-1", "bits-2", "bits-without", "bits-resumed")
        digests = {name: digest(options, name, deadline) for name in names}
        same = len(set(digests.values())) == 1
        return ("passed" if same else "failed",
                "two runs, one without graphs and a resumed one have the same bits" if same
                else f"{digests}", {})
    return part


def variant(options, name, steps, changes, allowed):
    """Losses of a run that computes otherwise, against those of a run in bf16 on the same device.
    allowed: the largest relative difference of the mean of the second half."""
    def part(deadline):
        keys = {"train.steps": steps, "optimizer.schedule.steps": steps, "train.device": "cuda",
                "train.precision": "bf16"}
        plain = train(options, f"{name}-plain", deadline, keys)
        try:
            found = train(options, name, deadline, {**keys, **changes})
        except subprocess.CalledProcessError as error:
            if error.returncode == 2:  # which says what this GPU does not compute
                return "not run", error.stderr.strip().splitlines()[-1], {}
            raise
        means = [statistics.mean(run[s]["loss"] for s in run if s > len(run) // 2)
                 for run in (found, plain)]
        difference = abs(means[0] / means[1] - 1)
        falls = found[max(found)]["loss"] < found[min(found)]["loss"]
        good = falls and math.isfinite(difference) and difference <= allowed
        return ("passed" if good else "failed",
                f"the mean loss of the second half of {steps} steps differs by {difference:.1e} "
                f"from that of bf16", {"difference_of_means": difference, "falls": falls})
    return part


def cudnn_attention(options):
    """Losses with cuDNN's attention against those with own, and its bits with and without CUDA
    graphs."""
    def part(deadline):
        keys = {"train.precision": "bf16", "train.steps": 20, "optimizer.schedule.steps": 20,
                "train.device": "cuda"}
        cudnn = {**keys, "train.attention": "cudnn"}
        try:
            found = train(options, "cudnn", deadline, cudnn)
        except subprocess.CalledProcessError as error:
            if error.returncode == 2:  # which says why
                return "not run", error.stderr.strip().splitlines()[-1], {}
            raise
        train(options, "cudnn-without-graphs", deadline, {**cudnn, "train.graphs": "off"})
        own = train(options, "cudnn-own", deadline, keys)
        difference = largest_difference(found, own)
        digests = {digest(options, name, deadline) for name in ("cudnn", "cudnn-without-graphs")}
        equal = len(digests) == 1
        good = equal and difference <= TOLERANCE["bf16"]
        return ("passed" if good else "failed",
                f"losses differ by {difference:.1e} at most from those of own attention; "
                f"{'the same' if equal else 'other'} bits without CUDA graphs",
                {"largest_difference": difference, "same_bits": equal})
    return part


def parts(options):
    """Returns (name, seconds, part) of each."""
    steps, short = (10, 6) if options.quick else (200, 50)
    return [
        (f"{steps} steps, fp32, against the CPU", 40, against_the_cpu(options, "fp32", steps)),
        (f"{steps} steps, bf16, against the CPU", 40, against_the_cpu(options, "bf16", steps)),
        ("checkpoint from CPU to GPU", 30, handed_over(options, "cpu", "cuda")),
        ("checkpoint from GPU to CPU", 30, handed_over(options, "cuda", "cpu")),
        ("same bits again and resumed", 30, same_bits(options)),
        ("20 steps with cuDNN's attention", 20, cudnn_attention(options)),
        (f"{short} steps in fp16", 15,
         variant(options, "fp16", short, {"train.precision": "fp16"}, 0.05)),
        (f"{short} steps in fp8", 15,
         variant(options, "fp8", short, {"train.products": "fp8"}, 0.05)),
        (f"{short} steps with dropout", 15,
         variant(options, "dropout", short, {"model.dropout": 0.1}, 0.2)),
    ]


def speed_keys(options, folder, keys, micro_batch, global_batch, steps=SPEED_STEPS):
    """Returns a training run's arguments for speed, in bf16 at T 1024."""
    all_keys = {"train.precision": "bf16", "data.sequence": 1024, "train.steps": steps,
                "train.global_batch": global_batch, "train.micro_batch": micro_batch,
                "train.device": "cuda", "checkpoint.every": 0, "train.log_every": 1,
                "data.train": options.out / "data", "run.dir": folder, **keys}
    return [f"{key}={value}" for key, value in all_keys.items()]


def tokens_per_second(options, name, keys, micro_batch, global_batch, deadline, prefix=(),
                      steps=SPEED_STEPS):
    """Returns the median rate of SPEED_LINES lines of the log, without the first third of them.
    prefix: how ranks are started, if several. A single rank is ended after its last step, because a
    large model takes long to save."""
    folder = options.out / name
    keys = {**keys, "train.log_every": steps // SPEED_LINES}
    command = [*prefix, options.trireme, "train", options.out / "empty.yaml",
               *speed_keys(options, folder, keys, micro_batch, global_batch, steps)]
    metrics = folder / "metrics.jsonl"
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, errors="replace",
                          start_new_session=True) as process:
        try:
            while process.poll() is None and (prefix or count_lines(metrics) < SPEED_LINES):
                if not deadline.left():
                    raise subprocess.TimeoutExpired(command, 0)
                time.sleep(0.1)
        finally:
            is_over = process.poll() is not None
            kill_session(process)
        if is_over and process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command,
                                                stderr=process.stderr.read())
    return statistics.median(line["tokens_per_s"]
                             for line in lines_of(metrics)[SPEED_LINES // 3:])


def count_lines(path):
    return path.read_text().count("\n") if path.exists() else 0


def flops_per_token(options, keys, deadline):
    """Returns the floating-point operations per token, forward and backward."""
    shown = run(options, deadline, "config", "show", options.out / "empty.yaml",
                *speed_keys(options, options.out / "shown", keys, 1, 1))
    number, unit = re.search(r"([\d.]+) ?([kMGT]?) FLOPs per token", shown.stdout).groups()
    return float(number) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[unit]


def stall_of_a_save(options, deadline):
    """Returns the seconds that a save costs the training of GPT-2 124M, by how much longer the
    steps beside it take than others, and the bytes of the save. It has the disk to itself: a save
    that begins before the last one has been written waits for it."""
    folder, at = options.out / "stall", 20
    keys = {"model.preset": "gpt2-124m", "checkpoint.every": at}
    run(options, deadline, "train", options.out / "empty.yaml",
        *speed_keys(options, folder, keys, 16, 16, steps=2 * at))
    took = {line["step"]: line["step_ms"] / 1e3 for line in lines_of(folder / "metrics.jsonl")}
    beside = range(at, at + 5)
    usual = statistics.median(seconds for step, seconds in took.items()
                              if step > 5 and step not in beside)
    steps = sorted((folder / "checkpoints").glob("step-*"))
    return (max(sum(took[step] - usual for step in beside), 0.0),
            sum(file.stat().st_size for file in steps[-1].iterdir()))
