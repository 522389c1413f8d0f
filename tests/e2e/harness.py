"""Common parts of the end-to-end tests: running the program, alone or under mpirun, and small
inputs."""

import atexit
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

PROGRAM = os.environ.get("TRIREME", "build/release/trireme")
MPIEXEC = os.environ.get("MPIEXEC", "mpirun")
SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Runs the command that follows where nobody else sees what it mounts.
OWN_MOUNTS = str(SOURCE / "tests/support/own_mounts.sh")
NO_SITE = str(SOURCE / "tests/support/no_site")  # no settings of the machine's site

ENVIRONMENT = dict(
    os.environ,
    OMPI_ALLOW_RUN_AS_ROOT="1",
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    OMPI_MCA_rmaps_base_oversubscribe="1",
    OMPI_MCA_hwloc_base_binding_policy="none",
    # Waiting compute threads sleep, because ranks and tests share the cores.
    OMP_WAIT_POLICY="passive",
    TRIREME_SITE_DIR=NO_SITE,
)

GPT2 = """
  family: gpt2
  layers: 5
  hidden: 48
  heads: 3
  vocab: 1003
  context: 64
"""
LLAMA = """
  family: llama
  layers: 5
  hidden: 48
  heads: 3
  kv_heads: 1
  ffn: 104
  vocab: 1003
  context: 64
"""
# A step of this model takes half as long; it is for tests of starts, ends and faults.
SMALL = GPT2.replace("layers: 5", "layers: 2")
MODELS = {"gpt2": GPT2, "llama": LLAMA, "small": SMALL}


def workspace():
    """Returns a new folder, which is removed when the tests end."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="trireme-e2e-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def command(arguments, ranks=0):
    launcher = [MPIEXEC, "-n", str(ranks)] if ranks else []
    return launcher + [PROGRAM] + [str(a) for a in arguments]


def run(*arguments, ranks=0, timeout=240, env=None):
    """Runs the program to its end; the result has returncode, stdout and stderr."""
    return subprocess.run(
        command(arguments, ranks),
        env={**ENVIRONMENT, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )


def run_on_full_output(*arguments):
    """Runs the program with a full standard output; the result has returncode and stderr."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        return subprocess.run(command(arguments), env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False)


def start(*arguments, ranks, log, env=None, prefix=()):
    """Starts the program in its own process group, writing to the file `log`. The words of `prefix`
    precede the launcher."""
    with open(log, "ab") as out:
        return subprocess.Popen(
            [*prefix, *command(arguments, ranks)],
            env={**ENVIRONMENT, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def pids_of_ranks(log_folder, ranks, deadline=60.0):
    """Returns the process ids of the newest start's ranks, from the first lines of their logs."""
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        pids = {}
        for path in sorted(pathlib.Path(log_folder).glob("rank-*.jsonl")):
            starts = [json.loads(x) for x in path.read_text().splitlines() if '"start"' in x]
            starts = [x for x in starts if x.get("event") == "start" and x.get("ranks") == ranks]
            if starts and pathlib.Path(f"/proc/{starts[-1]['pid']}").exists():
                pids[starts[-1]["rank"]] = starts[-1]["pid"]
        if len(pids) == ranks:
            return pids
        time.sleep(0.02)
    raise AssertionError(f"no {ranks} ranks in {log_folder}")


def end_group(process):
    """Kills what start() has started, whatever state it is in."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def processes_with(text):
    """Returns the processes that have `text` in their command line, except for ended ones and for
    this one."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in words and int(path.parent.name) != os.getpid():
            found[int(path.parent.name)] = words
    return found


def until(what, seconds, condition):
    """Waits until the condition holds, and returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return value


def commands_of(*words):
    """Returns the commands that a help text lists."""
    listed = must(run(*words)).stdout
    if "\nCommands:\n" not in listed:
        return []
    lines = listed.split("\nCommands:\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]


def must(result):
    if result.returncode != 0:
        raise AssertionError(
            f"exit code {result.returncode} of {result.args}\n{result.stdout}\n{result.stderr}"
        )
    return result


def make_text(folder, bytes_wanted, seed):
    """Makes text with some structure: words chosen by a hash, so that it is the same everywhere."""
    words = "the ship sails under oars along three banks of water while wind and wave turn".split()
    folder.mkdir(parents=True, exist_ok=True)
    out, n = [], 0
    while n < bytes_wanted:
        digest = hashlib.sha256(f"{seed}:{len(out)}".encode()).digest()
        line = " ".join(words[b % len(words)] for b in digest[:10]) + ".\n"
        out.append(line)
        n += len(line)
    for part in range(3):
        third = out[part * len(out) // 3 : (part + 1) * len(out) // 3]
        (folder / f"text{part}.txt").write_text("".join(third))
    return folder


def make_datasets(folder, bytes_wanted=120_000):
    """Returns (train, validation), two datasets of bytes."""
    result = []
    for seed, name in enumerate(["train", "validation"]):
        text = make_text(folder / f"text-{name}", bytes_wanted, seed)
        out = folder / name
        must(run("data", "pack", "--out", out, text))
        result.append(out)
    return result


def make_noisy_dataset(folder, first, count):
    """Makes a dataset of text in which `count` tokens from `first` on are noise."""
    text = folder / "text-noisy"
    make_text(text, 120_000, 0)
    whole = bytearray(b"".join((text / f"text{i}.txt").read_bytes() for i in range(3)))
    # The noise is printable ASCII, with all characters equally likely.
    drawn = random.Random(5)
    whole[first:first + count] = bytes(drawn.randrange(33, 127) for _ in range(count))
    shutil.rmtree(text)
    text.mkdir()
    # There are two documents, and the noise is in the second one.
    (text / "a.txt").write_bytes(whole[:first - 1000])
    (text / "b.txt").write_bytes(whole[first - 1000:])
    out = folder / "noisy"
    must(run("data", "pack", "--out", out, text))
    return out


def write_config(path, datasets, model="gpt2", precision="fp32", **keys):
    """Writes a run's configuration file; keys such as train__steps=5 change its values."""
    values = {
        "data.train": datasets[0],
        "data.validation": datasets[1],
        "data.sequence": 48,
        "train.steps": 8,
        "train.global_batch": 8,
        "train.micro_batch": 1,
        "train.precision": precision,
        "train.log_every": 1,
        "train.eval_samples": 8,
        "train.threads": 1,
        "optimizer.lr": 1e-3,
        "optimizer.schedule.warmup": 2,
        "run.dir": path.parent / path.stem,
    }
    values.update({k.replace("__", "."): v for k, v in keys.items()})
    sections = {}
    for key, value in values.items():
        section, _, rest = key.partition(".")
        sections.setdefault(section, []).append((rest, value))
    text = f"model:{MODELS[model]}"
    text += "".join(f"  {k}: {v}\n" for k, v in sections.pop("model", []))
    for section, entries in sections.items():
        text += f"{section}:\n"
        for key, value in entries:
            *outer, last = key.split(".")
            if outer:
                text += f"  {outer[0]}: {{{last}: {value}}}\n"
            else:
                text += f"  {last}: {value}\n"
    path.write_text(text)
    return path


def run_dir(config):
    return config.parent / config.stem


def metrics(config):
    lines = (run_dir(config) / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def predicted_memory(config):
    """Returns the predicted bytes by part for each rank, as the last start logged them."""
    lines = (run_dir(config) / "logs" / "rank-00000.jsonl").read_text().splitlines()
    told = [line for line in map(json.loads, lines) if line.get("event") == "memory_predicted"]
    return told[-1]["ranks"]


def loss_bits(config):
    return {m["step"]: m["loss_bits"] for m in metrics(config)}


def loss_of(checkpoint, dataset, *words):
    """Returns the loss that `trireme eval` finds."""
    return json.loads(must(run("eval", "--checkpoint", checkpoint, "--data", dataset, *words,
                               "--json")).stdout)["loss"]


def generated_ids(checkpoint):
    """Returns the most likely continuation of a short prompt in a vocabulary of bytes."""
    return must(run("generate", "--checkpoint", checkpoint, "--ids", "--prompt", "116 104 101 32",
                    "--temperature", 0, "--tokens", 20, "--precision", "fp32")).stdout


def train_with_a_stop(config, stop, steps):
    """Trains to the step `stop` on two ranks, and in another start on one rank to the end."""
    must(run("train", config, f"train.steps={stop}", f"optimizer.schedule.steps={steps}", ranks=2))
    must(run("train", config))


def digest(config):
    result = must(run("ckpt", "digest", run_dir(config) / "checkpoints"))
    line = result.stdout.strip()
    assert line.startswith("sha256:") and len(line) == 71, line
    return line


def check_bundle(test, root):
    """Checks that an unpacked bundle has the program, its manual pages and all configurations."""
    for name in ("bin/trireme", "bin/mpirun", "share/man/man1/trireme.1",
                 "share/man/man1/trireme-train.1", "share/man/man5/trireme.yaml.5"):
        test.assertGreater((root / name).stat().st_size, 0, name)
    configs = SOURCE / "configs"
    for path in configs.rglob("*.yaml"):
        test.assertEqual((root / "share/trireme" / path.relative_to(configs)).read_bytes(),
                         path.read_bytes())
