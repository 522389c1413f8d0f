"""What a run does besides its steps, on a GPU: evaluations, rewinds, replays, saves, traces,
refusals, other optimizers, reports."""

import json
import re
import shutil
import signal
import statistics
import subprocess
import time

import processes
import training

LARGEST = 65536  # sequences in a micro-batch that fits into no GPU
POWER_STEPS = 200
POWER_TOLERANCE = 0.1
GPT2 = {"model.layers": 12, "model.hidden": 768, "model.heads": 12, "model.ffn": 3072,
        "model.context": 1024, "data.sequence": 1024, "model.vocab": 50257,
        "train.micro_batch": 8, "train.global_batch": 16, "checkpoint.every": 0}
POOLS = r"held by the pools of this rank: parameters, gradients and optimizer state [\d.]+ \w+"


def keys_of(options, **changes):
    """Returns the keys of a run of 20 steps in bf16 on a GPU, or of fewer steps for --quick."""
    steps = 6 if options.quick else 20
    keys = {"train.device": "cuda", "train.precision": "bf16", "train.steps": steps,
            "optimizer.schedule.steps": steps, "checkpoint.every": steps // 2}
    return {**keys, **{key.replace("__", "."): value for key, value in changes.items()}}


def reason_of(options, name):
    """Returns what a run that has failed says of its reason."""
    path = options.out / name / "exit_reason.json"
    return json.loads(path.read_text()) if path.exists() else {}


def verdict(problems, words, figures=None):
    """Returns a part's result: its words if there are no problems, else the problems."""
    return ("failed" if problems else "passed", "; ".join(problems) or words, figures or {})


def end_of(process):
    """Returns the code and the last words of a finished process."""
    return f"exit code {process.returncode}: {' '.join(process.stderr.split())[-600:]}"


def doctor(options, deadline):
    """Returns the finished `doctor --json` for a run on a GPU."""
    small = training.SMALL if options.quick else {}
    keys = {**training.MODEL, **small, "data.train": options.out / "data",
            "run.dir": options.out / "doctor", **keys_of(options)}
    return training.run(options, deadline, "doctor", options.out / "empty.yaml", "--json",
                        *(f"{key}={value}" for key, value in keys.items()), check=False)


def evaluated(options):
    """Evaluations in a run, and `eval` and `generate` with its checkpoint, on GPU and CPU."""
    def part(deadline):
        keys = keys_of(options, train__precision="fp32", train__eval_every=2,
                       train__eval_samples=8, data__validation=options.out / "data")
        runs = {device: training.train(options, f"evaluated-{device}", deadline,
                                       {**keys, "train.device": device})
                for device in ("cuda", "cpu")}
        steps = [step for step, line in runs["cpu"].items() if "val_loss" in line]
        largest = max(abs(runs["cuda"][step]["val_loss"] / runs["cpu"][step]["val_loss"] - 1)
                      for step in steps)
        checkpoints = options.out / "evaluated-cuda/checkpoints"
        losses, texts = [], []
        for device in ("cuda", "cpu"):
            more = ("--checkpoint", checkpoints, "--device", device, "--json")
            done = training.run(options, deadline, "eval", "--data", options.out / "data",
                                "--samples", 16, *more)
            losses.append(json.loads(done.stdout)["loss"])
            done = training.run(options, deadline, "generate", "--prompt", "the ", "--tokens", 16,
                                "--temperature", 0, *more)
            texts.append(json.loads(done.stdout)["text"])
        difference = abs(losses[0] / losses[1] - 1)
        problems = []
        if max(largest, difference) > training.TOLERANCE["fp32"]:
            problems.append("losses differ")
        if texts[0] != texts[1]:
            problems.append(f"texts differ: {texts}")
        words = (f"{len(steps)} evaluations in a run differ by {largest:.1e} at most from the "
                 f"CPU's, `eval` by {difference:.1e}")
        return verdict([f"{problem}; {words}" for problem in problems],
                       f"{words}; `generate` writes the same text",
                       {"evaluations": largest, "eval": difference})
    return part


def recomputed(options):
    """Recomputation leaves the bits as they are; and a step waits once and allocates nothing."""
    def part(deadline):
        digests, problems = {}, []
        for way in ("none", "selective", "full"):
            name = f"recompute-{way}"
            lines = training.train(options, name, deadline,
                                   keys_of(options, train__recompute=way, checkpoint__every=0))
            digests[way] = training.digest(options, name, deadline)
            first, last = min(lines), max(lines)
            middle = [line for step, line in lines.items() if first < step < last]
            if any(line["device_waits"] != 1 or line["device_allocations"] for line in middle):
                problems.append(f"{way}: a step waits more than once, or allocates memory")
        if len(set(digests.values())) > 1:
            problems.append(f"other bits: {digests}")
        return verdict(problems, "selective and full recomputation have the bits of none; each "
                       "step waits once and allocates nothing")
    return part


def noisy(options, first, count, deadline):
    """Packs a dataset in which `count` bytes from `first` on are noise, and returns its folder."""
    text, folder = options.out / "noisy-text", options.out / "noisy"
    text.mkdir()
    whole = "".join(json.loads(line)["text"] + "\n" for line in
                    (options.out / "text.jsonl").read_text().splitlines()[:400])
    noise = "".join(chr(33 + 71 * place * place % 94) for place in range(count))
    (text / "a.txt").write_text(whole[:first])
    (text / "b.txt").write_text(noise + whole[first:])
    training.run(options, deadline, "data", "pack", text, "--out", folder)
    return folder


def rewound(options):
    """A run goes back when noise in its data makes the loss jump, and leaves the noise out."""
    def part(deadline):
        small = training.SMALL if options.quick else {}
        tokens = 8 * {**training.MODEL, **small}["data.sequence"]
        data = noisy(options, 16 * tokens, 3 * tokens, deadline)
        keys = keys_of(options, train__steps=28, optimizer__schedule__steps=28,
                       data__train=data, data__shuffle="none", optimizer__lr=1e-2,
                       checkpoint__every=4, divergence__spike="rewind",
                       divergence__window=8, divergence__rewind_steps=4,
                       divergence__skip_batches=3)
        done = training.attempt(options, "rewound", deadline, keys)
        log = options.out / "rewound/logs/rank-00000.jsonl"
        events = [line for line in training.lines_of(log) if line.get("event") == "rewind"]
        problems = [] if done.returncode == 0 and len(events) == 1 else [
            f"{len(events)} rewinds; {end_of(done)}"]
        if not problems and "it has the same bits" not in done.stderr:
            problems.append("the steps before it were not found to have the same bits")
        return verdict(problems, "went back once after noise in the data; the steps before it had "
                       "the same bits when they were computed again")
    return part


def replayed(options):
    """Logged steps have the same bits again, with graphs and without; other bits are found."""
    def part(deadline):
        keys = keys_of(options)
        training.train(options, "replayed", deadline, keys)
        last = keys["train.steps"]
        problems = []
        for graphs in ("on", "off"):
            done = training.attempt(options, "replayed", deadline, {**keys, "train.graphs": graphs},
                                    more=("--replay", last - 1))
            if done.returncode != 0 or "have the same bits" not in done.stderr:
                problems.append(f"graphs {graphs}: {end_of(done)}")
        done = training.attempt(options, "replayed", deadline, keys, more=("--replay", last - 1),
                                environment={"TRIREME_FAULTS": "step.gradient:0:3:scale=2"})
        if done.returncode != 76 or "has different bits" not in done.stderr:
            problems.append(f"a wrong gradient is not found: {end_of(done)}")
        return verdict(problems, "logged steps have the same bits again, with and without graphs; "
                       "a wrong gradient is found (76)")
    return part


def too_large(options):
    """A run that does not fit is refused by the prediction."""
    def part(deadline):
        keys = keys_of(options, train__micro_batch=LARGEST, train__global_batch=LARGEST)
        done = training.attempt(options, "too-large", deadline, keys)
        lines = [line for line in done.stderr.splitlines() if "does not fit" in line]
        problems = [] if done.returncode == 2 and lines else [end_of(done)]
        if not problems and "cheapest change" not in done.stderr:
            problems.append("no advice")
        return verdict(problems, f"refused with 2 and advice: {''.join(lines)[-200:]}")
    return part


def out_of_memory(options):
    """Memory runs out when the prediction is not obeyed."""
    def part(deadline):
        keys = keys_of(options, train__micro_batch=LARGEST, train__global_batch=LARGEST,
                       run__memory_check="off")
        done = training.attempt(options, "out-of-memory", deadline, keys)
        reason = reason_of(options, "out-of-memory")
        message = reason.get("message", "")
        problems = [] if (done.returncode, reason.get("kind")) == (76, "memory") else [
            f"{reason.get('kind')}; {end_of(done)}"]
        if not problems and not re.search(POOLS, message):
            problems.append(f"the message does not say what the pools hold: {message}")
        return verdict(problems, f"ended with 76: {message}"[:700])
    return part


def predicted(options):
    """The memory of the GPU that a run takes, over what was predicted."""
    def part(deadline):
        keys = keys_of(options, **({} if options.quick else GPT2))
        done = training.attempt(options, "predicted", deadline, keys)
        done.check_returncode()
        ratios = [float(ratio) for ratio in
                  re.findall(r"measured over predicted memory: [\d.]+ to ([\d.]+)", done.stderr)]
        words = f"measured over predicted: {ratios[0]:.3f} on the GPU, {ratios[1]:.3f} on the host"
        return verdict([] if ratios[0] <= 1 else [words], words, {"ratios": ratios})
    return part


def optimizer(options, name, changes):
    """Losses with an optimizer on the GPU against those of the CPU, in fp32."""
    def part(deadline):
        return beside_the_cpu(options, name, {"train.precision": "fp32", **changes}, deadline)
    return part


def beside_the_cpu(options, name, changes, deadline):
    """Returns the result of a part that compares each loss of a run with the CPU's."""
    keys = {**keys_of(options), **changes}
    runs = [training.train(options, f"{name}-{device}", deadline,
                           {**keys, "train.device": device}) for device in ("cuda", "cpu")]
    difference = training.largest_difference(*runs)
    words = f"losses of {len(runs[0])} steps differ by {difference:.1e} at most from the CPU's"
    return verdict([] if difference <= training.TOLERANCE[keys["train.precision"]] else [words],
                   words, {"largest_difference": difference})


def traced(options):
    """A trace by the GPU's clock, and its summary."""
    def part(deadline):
        training.train(options, "traced", deadline, keys_of(options, run__trace=2))
        done = training.run(options, deadline, "trace", "summary", options.out / "traced", "--json")
        summary = json.loads(done.stdout)
        mean = summary["mean"]
        problems = [] if summary["steps"] == [3, 4] else [f"traced steps: {summary['steps']}"]
        if not 0 < mean["compute_ms"] <= mean["t_iter_ms"]:
            problems.append(f"a step of {mean['t_iter_ms']} ms computes {mean['compute_ms']} ms")
        if not summary["ranks"][0]["device"]:
            problems.append("the trace names no device")
        return verdict(problems, f"a step of {mean['t_iter_ms']:.2f} ms computes "
                       f"{mean['compute_ms']:.2f} ms, by the GPU's clock", {"mean": mean})
    return part


def killed(options):
    """A run that is killed in the middle of a step and started again ends with the same bits."""
    def part(deadline):
        # The save is to be whole before the step in which the run dies.
        keys = keys_of(options, checkpoint__async="false")
        training.train(options, "not-killed", deadline, keys)
        last = keys["train.steps"]
        done = training.attempt(options, "killed", deadline, keys, {
            "TRIREME_FAULTS": f"step.optimizer:0:{last - 1}:kill"})
        problems = [] if done.returncode == -signal.SIGKILL else [f"not killed: {end_of(done)}"]
        done = training.attempt(options, "killed", deadline, keys)
        if done.returncode != 0 or "resumed from" not in done.stderr:
            problems.append(f"not resumed: {end_of(done)}")
        elif len({training.digest(options, name, deadline)
                  for name in ("killed", "not-killed")}) > 1:
            problems.append("other bits")
        return verdict(problems, f"killed in step {last - 1} and resumed from step {last // 2}: "
                       "the same bits")
    return part


def saved_in_the_background(options):
    """Saves after each step beside the next one, against saves that the run waits for."""
    def part(deadline):
        found, stalls = {}, {}
        for way in ("true", "false"):
            name = f"saves-{way}"
            keys = keys_of(options, checkpoint__every=1, checkpoint__keep=20,
                           checkpoint__async=way)
            lines = training.train(options, name, deadline, keys)
            steps = sorted((options.out / name / "checkpoints").glob("step-*"))[::3]
            found[way] = {step.name: training.run(options, deadline, "ckpt", "digest", step).stdout
                          for step in steps}
            stalls[way] = statistics.mean(line["checkpoint_stall_ms"] for line in lines.values())
        words = (f"saves beside the next step stall {stalls['true']:.1f} ms per step, saves that "
                 f"the run waits for {stalls['false']:.1f} ms")
        problems = [] if found["true"] == found["false"] else [f"other bits; {words}"]
        return verdict(problems, f"{len(found['true'])} checkpoints with the same bits; {words}",
                       {"stall_ms": stalls})
    return part


def reported(options):
    """The JSON of `doctor` and `health`."""
    def part(deadline):
        simulated = "simulated" in training.run(options, deadline, "--version").stdout
        checked = doctor(options, deadline)
        found = json.loads(checked.stdout)
        problems = [] if checked.returncode in (0, 4) and found["devices"] else [
            f"doctor: {end_of(checked)} {found.get('findings')}"]
        words = (f"doctor names {', '.join(found['devices'])}; "
                 f"{len(found['findings'])} findings")
        if options.quick:
            return verdict(problems, words, {"doctor": found})
        done = training.run(options, deadline, "health", "--json", check=False)
        health = json.loads(done.stdout)
        if done.returncode != 0 or not health["healthy"]:
            problems.append(f"health: exit code {done.returncode}: {health['complaints']}")
        if not simulated and not any("GPU" in name for name in health["rates"]):
            problems.append(f"health measures no rate of a GPU: {health['notes']}")
        return verdict(problems, f"{words}; health takes {health['seconds']:.1f} s",
                       {"doctor": found, "health": health})
    return part


def power(options):
    """The power that a run's metrics tell, against what nvidia-smi samples meanwhile."""
    def part(deadline):
        if not shutil.which("nvidia-smi"):
            return "not run", "nvidia-smi is not installed", {}
        folder = options.out / "power"
        keys = {"model.preset": "gpt2-124m", "train.steps": POWER_STEPS, "train.log_every": 20}
        command = [options.trireme, "train", options.out / "empty.yaml",
                   *training.speed_keys(options, folder, keys, 16, 16)]
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) as run:
            try:
                samples = sampled_power(run, folder / "metrics.jsonl", deadline)
            finally:
                processes.kill_session(run)
        lines = training.lines_of(folder / "metrics.jsonl")[1:]
        told = [line["gpu_watts"] for line in lines if line["gpu_watts"]]
        if run.returncode != 0 or not samples:
            return "failed", f"exit code {run.returncode}, {len(samples)} samples", {}
        if not told:
            return "not run", "the driver counts no energy", {}
        told, seen = statistics.median(told), statistics.median(samples)
        words = f"gpu_watts {told:.0f} W, nvidia-smi {seen:.0f} W (medians)"
        return verdict([] if abs(told / seen - 1) <= POWER_TOLERANCE else [words], words,
                       {"gpu_watts": told, "nvidia_smi": samples})
    return part


def sampled_power(run, metrics, deadline):
    """Returns the watts that nvidia-smi samples from a run's second logged line to its last."""
    command = ["nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits", "-i", "0"]
    samples = []
    while run.poll() is None:
        if not deadline.left():
            raise subprocess.TimeoutExpired(command, 0)
        logged = training.count_lines(metrics)
        if 2 <= logged < POWER_STEPS // 20:
            told = processes.finished(command, deadline)
            told.check_returncode()
            samples.append(float(told.stdout))
        time.sleep(0.1)
    return samples


def parts(options):
    """Returns (name, about how many seconds it takes, part) of those that may run together."""
    muon, average = {"optimizer.name": "muon"}, {"optimizer.ema": 0.9}
    return [
        ("operations: evaluations, eval and generate", 20, evaluated(options)),
        ("operations: recomputation", 12, recomputed(options)),
        ("operations: a rewind after a spike", 8, rewound(options)),
        ("operations: a replay of logged steps", 12, replayed(options)),
        ("operations: a run that does not fit", 4, too_large(options)),
        ("operations: sgd", 8, optimizer(options, "sgd", {"optimizer.name": "sgd"})),
        ("operations: muon", 8, optimizer(options, "muon", muon)),
        ("operations: a moving average of weights", 8, optimizer(options, "average", average)),
        ("operations: a trace", 5, traced(options)),
        ("operations: killed and resumed", 10, killed(options)),
        ("operations: saves beside steps", 12, saved_in_the_background(options)),
    ]


def parts_alone(options):
    """Returns those that measure, or that need the GPU's memory for themselves."""
    return [
        ("operations: doctor and health", 8, reported(options)),
        ("operations: predicted memory", 6, predicted(options)),
        ("operations: power by the driver", 15, power(options)),
        ("operations: memory runs out", 8, out_of_memory(options)),
    ]
