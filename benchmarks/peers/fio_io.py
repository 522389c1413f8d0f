#!/usr/bin/env python3
"""Rates of a file system: `trireme bench io` against fio (Debian's package), in alternating rounds.

    python3 benchmarks/peers/fio_io.py build/release/trireme DIR [--ranks 2] [--rounds 5]

Both programs write and read one file per process with the same system calls, sizes and treatment
of the page cache. Prints the median rates, and trireme's ratio to fio with the least and the most
of the rounds. fio counts whole milliseconds: take files that keep it busy for a while (--mib).
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

MIB = 1 << 20
# Name: options of trireme, options of fio.
CASES = {
    "cached, 1 MiB": (["--cache", "keep", "-t", "1M"], ["--bs=1M", "--invalidate=0"]),
    "cached, 64 KiB, random": (["--cache", "keep", "-t", "64K", "-z"],
                               ["--bs=64k", "--invalidate=0", "random"]),
    "synced, evicted, 1 MiB": (["--cache", "evict", "-e", "-t", "1M"],
                               ["--bs=1M", "--invalidate=1", "--end_fsync=1"]),
    "direct, 1 MiB": (["--cache", "bypass", "-t", "1M"], ["--bs=1M", "--direct=1"]),
    "direct, io_uring, depth 8, 64 KiB": (
        ["--cache", "bypass", "-a", "uring", "--depth", "8", "-t", "64K"],
        ["--bs=64k", "--direct=1", "--ioengine=io_uring", "--iodepth=8"]),
}


def run(words, **options):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def trireme_rates(args, folder, options):
    out = folder / "trireme.json"
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    run(["mpiexec", "--oversubscribe", "--bind-to", "none", "-n", str(args.ranks), args.program,
         "bench", "io", "--test", "data", "--dir", str(folder), "-F", "-b", f"{args.mib}M",
         "-i", "1", *options, "-J", str(out)], env=environment, stderr=subprocess.DEVNULL)
    results = json.loads(out.read_text())["results"]
    return [next(r["metrics"]["bytes_per_s"] for r in results if r["name"] == name)
            for name in ("io_write", "io_read")]


def fio_rates(args, folder, options):
    rates = []
    random = "rand" if "random" in options else ""
    engine = [] if any(word.startswith("--ioengine") for word in options) else ["--ioengine=psync"]
    for direction in ("write", "read"):
        text = run(["fio", "--name=peer", f"--directory={folder}", f"--rw={random}{direction}",
                    f"--size={args.mib}M", f"--numjobs={args.ranks}", "--fallocate=none",
                    "--fadvise_hint=0", "--group_reporting", "--output-format=json", *engine,
                    *[word for word in options if word.startswith("-")]])
        rates.append(json.loads(text)["jobs"][0][direction]["bw_bytes"])
    for file in folder.glob("peer.*"):
        file.unlink()
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256, help="MiB per process (default: 256)")
    args = parser.parse_args()
    args.program = str(pathlib.Path(args.program).resolve())
    if shutil.which("fio") is None:
        raise SystemExit("fio_io.py: no fio here: apt install fio")
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        folder = pathlib.Path(folder)
        for case, (ours, theirs) in CASES.items():
            rates = {"trireme": [], "fio": []}
            try:
                for number in range(args.rounds):
                    # Each program is the first one in every other round.
                    turns = [("trireme", trireme_rates, ours), ("fio", fio_rates, theirs)]
                    for name, measure, words in turns[::1 if number % 2 == 0 else -1]:
                        rates[name].append(measure(args, folder, words))
            except subprocess.CalledProcessError as error:
                print(f"{case:36} not possible here: {error.cmd[0]} ended with "
                      f"{error.returncode}")
                continue
            for which, direction in enumerate(("write", "read")):
                own = [round_[which] / MIB for round_ in rates["trireme"]]
                other = [round_[which] / MIB for round_ in rates["fio"]]
                ratios = [a / b for a, b in zip(own, other)]
                print(f"{case:34} {direction:5} trireme {statistics.median(own):6.0f} MiB/s  fio "
                      f"{statistics.median(other):6.0f} MiB/s  ratio "
                      f"{statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})",
                      flush=True)


if __name__ == "__main__":
    main()
