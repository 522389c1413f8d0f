#!/usr/bin/env python3
"""The suite of run.sh: tests of the CUDA kernels, training on a GPU against training on the CPU,
and speeds. Writes results.json and results.md; exits with 0 if nothing has failed or is slower than
docs/gpu.md asks for, else with 4.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

import models
import operations
import sharing
import speeds
import training
from processes import Deadline, ends_of, finished, output_of

# The tests that run under compute-sanitizer: few, since it makes kernels a hundred times slower.
SANITIZED = ":".join(("Digest.*", "Embedding*", "Sum.*", "Norm*", "ColumnSum.*",
                      "Attention.AgreesAtTheEdgesOfBlocks", "Product.HasTheBitsOfGeluAfterIt",
                      "Fp8.ProductsAgreeWithTheReference",
                      "*/EachCase.AgreesWithTheReference/cross_entropy*7x257_bf16"))
MOST_SECONDS_SANITIZED = 60  # for each tool
MOST_JOBS = 6  # by default: that many small runs leave a GPU time for each
CORES_PER_JOB = 2
JOBS_BESIDE_SANITIZER = 4  # with fewer, everything else comes before it
SANITIZER_REMEDY = "it is part of NVIDIA's toolkit (docs/gpu.md says how to get it alone)"
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
BUNDLE = HERE.parents[2]


def jobs_for(cores):
    """Returns how many parts run at a time by default."""
    return max(1, min(MOST_JOBS, cores // CORES_PER_JOB))


def parse_arguments():
    in_bundle = (BUNDLE / "share/trireme/bundle").exists()
    program = BUNDLE / "bin/trireme" if in_bundle else SOURCE / "build/cuda/trireme"
    kernels = (BUNDLE / "libexec/kernels_cuda_test" if in_bundle
               else SOURCE / "build/cuda/tests/kernels/on_device/kernels_cuda_test")
    golden = (BUNDLE / "libexec/golden_cuda_test" if in_bundle
              else SOURCE / "build/cuda/tests/golden/on_device/golden_cuda_test")
    benchmark = (BUNDLE / "libexec/kernels_benchmark" if in_bundle
                 else SOURCE / "build/cuda/benchmarks/kernels/kernels_benchmark")
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__.split("\n\n")[0])
    parser.add_argument("--trireme", default=program, type=pathlib.Path, help="the program")
    parser.add_argument("--kernel-tests", default=kernels, type=pathlib.Path,
                        help="the tests of the kernels")
    parser.add_argument("--golden-tests", default=golden, type=pathlib.Path,
                        help="the tests against PyTorch's losses")
    parser.add_argument("--kernel-benchmark", default=benchmark, type=pathlib.Path,
                        help="the program that times kernels")
    parser.add_argument("--python", default=sys.executable, type=pathlib.Path,
                        help="a Python that may have PyTorch (this one)")
    parser.add_argument("--out", default="runs/gpu", type=pathlib.Path,
                        help="a new folder for results and runs (runs/gpu)")
    parser.add_argument("--minutes", default=8.5, type=float,
                        help="begin nothing that could end later than this, and end what still "
                        "runs then (8.5)")
    parser.add_argument("--parts", default="", metavar="PATTERN",
                        help="only parts in whose names this regular expression is found")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", default=jobs_for(cores), type=int, metavar="N",
                        help="run N parts at a time, except those that measure or need the whole "
                        f"GPU (one per {CORES_PER_JOB} cores, at most {MOST_JOBS}: %(default)s)")
    parser.add_argument("--quick", action="store_true",
                        help="fewer tests and steps, and no speeds: to try the suite itself")
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    options.threads = max(1, cores // options.jobs)
    options.golden_files = BUNDLE / "share/trireme/golden" if in_bundle else SOURCE / "tests/golden"
    return options


class Suite:
    """Runs the parts and keeps what they found."""

    def __init__(self, options):
        self.options = options
        self.deadline = Deadline(60 * options.minutes)
        self.parts = []

    def announce(self, together, alone):
        """Prints how long all parts are going to take, and for which of them time will be short.
        together: those that run several at a time; then come those in `alone`."""
        together, alone = ([part for part in parts if re.search(self.options.parts, part[0])]
                           for parts in (together, alone))
        ends = ends_of([seconds for _, seconds, _ in together], self.options.jobs)
        ends += [max(ends, default=0) + end for end in ends_of([part[1] for part in alone], 1)]
        spent = 60 * self.options.minutes - self.deadline.left()
        late = [name for (name, seconds, _), end in zip(together + alone, ends)
                if seconds and spent + end > 60 * self.options.minutes]
        print(f"estimated {(spent + max(ends, default=0)) / 60:.1f} of {self.options.minutes:g} "
              f"minutes with --jobs {self.options.jobs}")
        if late:
            print(f"time will be short for: {'; '.join(late)}")
        sys.stdout.flush()

    def run_all(self, parts):
        """Runs parts that do not disturb each other, several at a time if this is asked for. Each
        is a tuple of the arguments of `run`."""
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as threads:
            for done in [threads.submit(self.run, *part) for part in parts]:
                done.result()
        order = [part[0] for part in parts]
        self.parts.sort(key=lambda part: order.index(part["name"]) if part["name"] in order else -1)

    def run(self, name, seconds, part):
        """Runs part(deadline), which returns (result, words, figures). `seconds` is about how long
        it takes."""
        if not re.search(self.options.parts, name):
            return
        begun = time.monotonic()
        left = self.deadline.left()
        if left <= seconds:
            outcome = ("not run", "no time was left", {})
        else:
            try:
                outcome = part(self.deadline)
            except subprocess.TimeoutExpired:
                outcome = ("failed", f"no end within {left:.0f} s, when the suite's time was over",
                           {})
            except subprocess.CalledProcessError as error:
                words = f"exit code {error.returncode}: {error.stderr[-2000:]}"
                outcome = ("failed", " ".join(words.split()), {})
            except (OSError, KeyError, ValueError) as error:
                outcome = ("failed", repr(error), {})
        result, words, figures = outcome
        self.parts.append({"name": name, "result": result, "words": words.strip(),
                           "seconds": round(time.monotonic() - begun, 1),
                           "estimated_seconds": seconds, "figures": figures})
        print(f"{result:8} {name:30} {self.parts[-1]['seconds']:7.1f} s  {words.strip()[:100]}",
              flush=True)


def versions(options, deadline):
    """Returns the versions that are in use at run time: of the driver, CUDA, cuBLASLt and NCCL as
    `trireme doctor` finds them, and of PyTorch and its libraries."""
    try:
        found = operations.doctor(options, deadline.within(60))
        devices = json.loads(found.stdout)["devices"]
    except subprocess.TimeoutExpired:
        devices = ["`trireme doctor` did not end"]
    except (ValueError, KeyError):
        devices = [found.stderr[-300:]]
    pytorch = output_of(deadline, options.python, "-c", "import torch; print(torch.__version__, "
                        "'CUDA', torch.version.cuda, 'cuDNN', torch.backends.cudnn.version(), "
                        "'NCCL', torch.cuda.nccl.version())")
    return {"devices": devices, "pytorch": pytorch}


def version_of_cudnn(options):
    """Returns the version of cuDNN as a run has logged it."""
    log = options.out / "cudnn/logs/rank-00000.jsonl"
    found = re.search(r"cuDNN [\d.]+\d", log.read_text()) if log.exists() else None
    return found[0] if found else ""


def facts(options, deadline):
    fields = "name,uuid,driver_version,memory.total,clocks.max.sm"
    gpus = output_of(deadline, "nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader")
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "program": output_of(deadline, options.trireme, "--version"),
            "gpus": gpus.splitlines(),
            "versions": versions(options, deadline),
            "kernel": platform.release(),
            "processors": len(os.sched_getaffinity(0)),
            "python": platform.python_version()}


def tests(options, program, log, prefix=(), filters="*"):
    """Returns the part that runs a program's tests, under a tool if a prefix is given. What they
    print is kept in the file `log`."""
    def part(deadline):
        report = options.out / f"{log}.json"
        report.unlink(missing_ok=True)
        command = [*prefix, program, f"--gtest_filter={filters}", f"--gtest_output=json:{report}"]
        done = finished(command, deadline, {"TRIREME_GOLDEN": str(options.golden_files)})
        (options.out / log).write_text(done.stdout + done.stderr)
        if not report.exists():
            return "failed", f"exit code {done.returncode}\n{done.stdout}{done.stderr}"[-2000:], {}
        all_run = [test for suite in json.loads(report.read_text())["testsuites"]
                   for test in suite["testsuite"] if test["status"] == "RUN"]
        run = [test for test in all_run if test["result"] != "SKIPPED"]
        failed = [f"{test['classname']}.{test['name']}" for test in run if "failures" in test]
        bad = done.returncode != 0 or failed or not run
        words = f"{len(run) - len(failed)} of {len(run)} passed"
        if len(all_run) > len(run):
            words += f", {len(all_run) - len(run)} skipped"
        if bad:
            words += f"; exit code {done.returncode}; failed: {', '.join(failed)}"
            words += f"\n{done.stderr[-1000:]}"
        return "failed" if bad else "passed", words, {"tests": len(run), "failed": failed}
    return part


def sanitizer(options, tool, most_seconds):
    """Returns the part that runs a few tests under one tool of compute-sanitizer."""
    def part(deadline):
        program = shutil.which("compute-sanitizer")
        if not program:
            return "not run", f"compute-sanitizer is not installed: {SANITIZER_REMEDY}", {}
        prefix = [program, "--tool", tool, "--error-exitcode", "99"]
        own = deadline.within(most_seconds)
        try:
            return tests(options, options.kernel_tests, f"{tool}.log", prefix, SANITIZED)(own)
        except subprocess.TimeoutExpired:
            return "not run", f"no end within {most_seconds} s", {}
    return part


def tests_of_programs(options):
    """Returns (name, about how many seconds it takes, part) of each."""
    kernels, golden = ("Digest.*:Norm*", "*llama_cuda_f32") if options.quick else ("*", "*")
    return [
        ("kernels against the reference", 30,
         tests(options, options.kernel_tests, "kernels.log", filters=kernels)),
        ("golden losses", 10, tests(options, options.golden_tests, "golden.log", filters=golden)),
    ]


def sanitizers(options):
    """Returns (name, about how many seconds it takes, part) of each tool of compute-sanitizer."""
    installed = shutil.which("compute-sanitizer") is not None
    # Beside others, everything takes longer.
    most_seconds = MOST_SECONDS_SANITIZED * (1 if options.jobs == 1 else 2)
    return [(f"compute-sanitizer {tool}", min(seconds, most_seconds) if installed else 0,
             sanitizer(options, tool, most_seconds))
            for tool, seconds in (("memcheck", 60), ("racecheck", 120), ("synccheck", 40))]


def parts_together(options):
    """Returns the parts that may run several at a time, the most important first. The sanitizer is
    slow: with many at a time, it begins early, so that the others do not end long before it."""
    most = [*training.parts(options), *models.parts(options), *operations.parts(options),
            *sharing.parts(options)]
    slow = sanitizers(options)
    return tests_of_programs(options) + (
        slow + most if options.jobs >= JOBS_BESIDE_SANITIZER else most + slow)


def parts_with_speeds(options, found):
    """Returns the parts that measure speed, or parts that say why they cannot be measured."""
    why = ""
    if "simulated" in found["program"]:
        why = ("refused", "a simulated device has no speed")
    elif options.quick:
        why = ("not run", "--quick measures nothing")
    elif not found["gpus"]:
        why = ("not run", "nvidia-smi names no GPU")
    parts = speeds.Speeds(options, found).parts()
    return [(name, 0, lambda _: (*why, {})) for name, _, _ in parts] if why else parts


def markdown(results):
    lines = [f"Trireme on {', '.join(results['facts']['gpus']) or 'no GPU'}; "
             f"{results['facts']['program']}; {results['facts']['date']}", "",
             f"Versions at run time: {'; '.join(results['facts']['versions']['devices'])}; "
             f"{results['facts']['versions']['cudnn'] or 'no cuDNN'}; "
             f"PyTorch {results['facts']['versions']['pytorch'] or 'not installed'}", "",
             "| part | result | seconds | words |", "|---|---|---|---|"]
    for part in results["parts"]:
        words = part["words"].splitlines()[0] if part["words"] else ""
        lines.append(f"| {part['name']} | {part['result']} | {part['seconds']} | {words} |")
    fractions = {name: fraction for part in results["parts"]
                 for name, fraction in part["figures"].get("fraction_of_copy", {}).items()}
    if fractions:
        lines += ["", "| kernel | over the bandwidth of a copy |", "|---|---|"]
        lines += [f"| {name} | {fraction:.2f} |" for name, fraction in fractions.items()]
    return "\n".join(lines) + "\n"


def main():
    options = parse_arguments()
    options.trireme = options.trireme.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    suite = Suite(options)
    try:
        training.prepare(options, suite.deadline)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"run.sh: {options.trireme} cannot pack text into {options.out}: {error} "
              f"{getattr(error, 'stderr', None) or ''}", file=sys.stderr)
        return 2
    found = facts(options, suite.deadline)
    together = parts_together(options)
    alone = operations.parts_alone(options) + parts_with_speeds(options, found)
    suite.announce(together, alone)
    suite.run_all(together)
    for part in alone:
        suite.run(*part)
    found["versions"]["cudnn"] = version_of_cudnn(options)
    results = {"schema": 1, "facts": found, "parts": suite.parts}
    (options.out / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    (options.out / "results.md").write_text(markdown(results))
    print(f"results: {options.out}/results.json, results.md")
    return 4 if any(part["result"] in ("failed", "below") for part in suite.parts) else 0


if __name__ == "__main__":
    sys.exit(main())
