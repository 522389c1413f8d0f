#!/usr/bin/env python3
"""How near the planner comes on this machine: calibrates it for one rank and for two, trains eight
configurations of other shapes than the calibrated ones, and prints the errors as the table of
docs/planner.md.

    benchmarks/plan/this_machine.py build/release/trireme runs/planner

Takes about a quarter of an hour on two cores, and means something only if they are idle. Needs
Python's standard library and mpirun; as root, start it with chrt -f 10 for steadier figures.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys

VOCAB = 8192
CALIBRATED = {"blocks": 6, "width": 512, "heads": 8, "kv_heads": 4, "sequence": 256}
MEASURED = {"blocks": 8, "width": 640, "heads": 10, "kv_heads": 2}
# Name, family, sequence, ranks, keys of the configuration.
RUNS = [
    ("GPT-2, one rank", "gpt2", 192, 1, []),
    ("Llama, one rank", "llama", 320, 1, []),
    ("GPT-2, dp 2", "gpt2", 192, 2, ["parallel.dp=2"]),
    ("Llama, dp 2, ZeRO 1", "llama", 320, 2, ["parallel.dp=2", "parallel.zero=1"]),
    ("GPT-2, tp 2", "gpt2", 192, 2, ["parallel.tp=2"]),
    ("Llama, tp 2", "llama", 320, 2, ["parallel.tp=2"]),
    ("GPT-2, pp 2", "gpt2", 192, 2, ["parallel.pp=2"]),
    ("Llama, dp 2, ZeRO 3", "llama", 320, 2, ["parallel.dp=2", "parallel.zero=3"]),
]


class Machine:
    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMPI_MCA_hwloc_base_binding_policy": "none"}

    def run(self, ranks, *arguments):
        launcher = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
        command = [*launcher, self.program, *map(str, arguments)]
        print("#", *command, file=sys.stderr, flush=True)
        done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise SystemExit(f"{done.stdout}{done.stderr}this_machine: exit {done.returncode}")

    def make_data(self):
        """Random bytes: what is learned from them does not matter here."""
        text = self.folder / "text.txt"
        text.write_bytes(random.Random(1).randbytes(3_000_000).translate(
            bytes(32 + i % 95 for i in range(256))))
        if not (self.folder / "data").exists():
            self.run(1, "data", "pack", text, "--out", self.folder / "data")

    def config(self, family, blocks, width, heads, kv_heads, sequence):
        file = self.folder / f"{family}-{width}.yaml"
        model = [f"family: {family}", f"layers: {blocks}", f"hidden: {width}", f"heads: {heads}",
                 f"vocab: {VOCAB}", f"context: {sequence}"]
        if family == "llama":
            model += [f"kv_heads: {kv_heads}", f"ffn: {width * 8 // 3 // 64 * 64}"]
        file.write_text("model: {" + ", ".join(model) + "}\n"
                        f"data: {{train: {self.folder / 'data'}}}\n"
                        "train: {steps: 8, global_batch: 8, micro_batch: 2, precision: bf16}\n"
                        "checkpoint: {every: 0}\n"
                        f"run: {{dir: {self.folder / 'run'}}}\n", encoding="utf-8")
        return file

    def calibrate(self):
        configs = [self.config(family, **CALIBRATED) for family in ("gpt2", "llama")]
        for ranks in (1, 2):
            if self.cluster(ranks).exists():
                continue
            self.run(ranks, "plan", "calibrate", *configs, "--seconds", 30, "--steps", 6,
                     "--rounds", 2, "--dir", self.folder, "--out", self.cluster(ranks))

    def cluster(self, ranks):
        return self.folder / f"ranks-{ranks}.yaml"

    def measure(self, index, round_):
        _, family, sequence, ranks, keys = RUNS[index]
        folder = self.folder / f"run-{index}-{round_}"
        shutil.rmtree(folder, ignore_errors=True)
        self.run(ranks, "train", self.config(family, sequence=sequence, **MEASURED),
                 f"run.dir={folder}", f"plan.cluster={self.cluster(ranks)}", *keys)
        return json.loads((folder / "prediction.json").read_text(encoding="utf-8"))


def percent(predicted, measured):
    return 100 * (predicted / measured - 1)


def print_table(results):
    print("| run | predicted | measured | error | of the single runs | memory |")
    print("|---|---|---|---|---|---|")
    errors, memories = [], []
    for (name, *_), rounds in zip(RUNS, results):
        predicted = sum_of_parts(rounds[0]["predicted"])
        measured = [sum_of_parts(each["measured"]) for each in rounds]
        median = statistics.median(measured)
        errors.append(percent(predicted, median))
        memories.append(percent(rounds[0]["predicted_memory_bytes"],
                                rounds[0]["memory_bytes"]))
        single = ", ".join(f"{percent(predicted, each):+.1f}" for each in measured)
        print(f"| {name} | {predicted:.2f} s | {median:.2f} s | {errors[-1]:+.1f} % | {single} % | "
              f"{memories[-1]:+.1f} % |")
    for what, values in (("time", errors), ("memory", memories)):
        sizes = [abs(value) for value in values]
        print(f"\n{what}: {statistics.mean(sizes):.1f} % in the mean, {max(sizes):.1f} % at most")


def sum_of_parts(parts):
    """Without what is not predicted: waiting for data, and the only save, at the end of a run."""
    return sum(seconds for part, seconds in parts.items() if part not in ("data", "checkpoint"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program", type=pathlib.Path, help="build/release/trireme")
    parser.add_argument("folder", type=pathlib.Path,
                        help="for what this makes; a calibration that is there is used again")
    parser.add_argument("--rounds", type=int, default=3,
                        help="of all eight, in turns; their median counts")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    machine = Machine(options.program.resolve(), options.folder.resolve())
    machine.make_data()
    machine.calibrate()
    results = [[] for _ in RUNS]
    for round_ in range(options.rounds):
        for index, rounds in enumerate(results):
            rounds.append(machine.measure(index, round_))
    print_table(results)


if __name__ == "__main__":
    main()
