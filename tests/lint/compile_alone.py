#!/usr/bin/python3
"""Checks that every source compiles alone: with what it includes itself, and not by what the
sources before it in a unity build include. Only reads the sources (-fsyntax-only), with one
compiler per processor. Takes half an hour for all; `compile_alone.py src/policy tests/io` checks
some folders."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import sources

WITH_VALUE = ("-o", "-MF", "-MT", "-MQ")  # options that name what a compiler writes
WITHOUT = ("-c", "-MD", "-MMD", "-Werror", "-O2", "-O3", "-g1", "-g")


def commands(top, build):
    """Returns the commands of a build without unity sources: [(source, folder, words)]."""
    made = subprocess.run(["cmake", "-S", top, "-B", build, "-G", "Ninja",
                           "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_UNITY_BUILD=OFF",
                           "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"],
                          capture_output=True, text=True, check=False)
    if made.returncode != 0:
        sys.exit(f"cmake: {made.stderr}")
    listed = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    return [(pathlib.Path(each["file"]), each["directory"], shlex.split(each["command"]))
            for each in listed]


def reading(words):
    """Returns the command that only reads the source: without outputs, warnings and ccache."""
    kept = []
    rest = iter(words[1:] if pathlib.Path(words[0]).name == "ccache" else words)
    for word in rest:
        if word in WITH_VALUE:
            next(rest)
        elif word not in WITHOUT:
            kept.append(word)
    return [*kept, "-fsyntax-only", "-w"]


def trouble(command):
    source, folder, words = command
    done = subprocess.run(reading(words), cwd=folder, capture_output=True, text=True, check=False)
    return f"{source} does not compile alone:\n{done.stderr}" if done.returncode != 0 else None


def main():
    top = pathlib.Path(__file__).resolve().parents[2]
    wanted = [top / word for word in sys.argv[1:]] or [top]
    with tempfile.TemporaryDirectory(prefix="trireme-alone-") as folder:
        chosen = [each for each in commands(top, pathlib.Path(folder))
                  if any(each[0].is_relative_to(one) for one in wanted)]
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
            found = [each for each in workers.map(trouble, chosen) if each]
    sources.finish("compile_alone", found, len(chosen))


if __name__ == "__main__":
    main()
