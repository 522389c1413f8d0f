#!/usr/bin/python3
"""Takes one safeguard at a time out of the CUDA back end and of what uses it (a barrier, a wait, a
bound, ...), or out of audit logs, policies and provenance, and runs the test that must fail without
it; those of the CUDA back end run on the simulated device. Each mutation is compiled from a changed
copy and linked with the objects of a finished build, so that nothing in the build changes.

    tests/mutations/run.py               all mutations
    tests/mutations/run.py NAME...       some
    tests/mutations/run.py --check       compiles nothing: does every mutation still fit the
                                         sources, and do the documents list them?
    tests/mutations/run.py --table PAGE  the table of such a document

Exit codes: 0 if every mutation was found, 4 if one survived, 2 if one does not fit or compile.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from audit_mutations import AUDIT
from mutations import CUDA_MUTATIONS
from policy_mutations import POLICIES
from provenance_mutations import PROVENANCE

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The documents, and the mutations that they list.
PAGES = {"docs/gpu-kernels.md": CUDA_MUTATIONS,
         "docs/mutations.md": [*AUDIT, *POLICIES, *PROVENANCE]}
MUTATIONS = [one for listed in PAGES.values() for one in listed]
LIBRARY = "trireme_cuda_sim.dir"
NO_TESTS = "no test ran"
TIMEOUT = 120  # seconds for one test: some mutations make it hang


class Misfit(Exception):
    """A mutation that cannot be made or compiled."""


def mutated(mutation):
    """Returns the text of the mutation's file with the change in it."""
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    if text.count(mutation.old) != mutation.times:
        raise Misfit(f"{mutation.name}: {mutation.file} has its text {text.count(mutation.old)} "
                     f"times, not {mutation.times}")
    return text.replace(mutation.old, mutation.new, 1)


class Build:
    """A finished build, and what it says about compiling and linking."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        commands = json.loads((self.folder / "compile_commands.json").read_text())
        commands.sort(key=lambda one: LIBRARY not in one["command"])
        self.commands = {}
        for one in commands:
            self.commands.setdefault(pathlib.Path(one["file"]), shlex.split(one["command"]))

    def unit_of(self, source):
        """Returns the file that is compiled for a source: itself, or one that includes it."""
        path = ROOT / source
        for unit in self.commands:
            if unit == path or (unit.suffix == ".cxx" and f'"{path}"' in unit.read_text()):
                return unit
        raise Misfit(f"{source} is not compiled")

    def compile(self, mutation, scratch):
        """Compiles the source of a mutation, and returns the old object and the new one."""
        overlay = scratch / "overlay"
        changed = overlay / mutation.file
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(mutated(mutation), encoding="utf-8")
        unit = self.unit_of(mutation.source)
        if unit.suffix == ".cxx":
            copy = scratch / "unit.cxx"
            text = unit.read_text().replace(f'"{ROOT / mutation.file}"', f'"{changed}"')
            copy.write_text(text)
        else:
            copy = changed if mutation.source == mutation.file else unit
        command = [*self.commands[unit]]
        old = command[command.index("-o") + 1]
        command[command.index("-o") + 1] = str(scratch / "unit.o")
        command[command.index("-c") + 1] = str(copy)
        first = next(i for i, word in enumerate(command) if word.startswith("-I"))
        command[first:first] = [f"-I{overlay}"]
        run = subprocess.run([*command, "-w", "-g0"], cwd=self.folder, capture_output=True,
                             text=True, check=False)
        if run.returncode != 0:
            raise Misfit(f"{mutation.name} does not compile: {run.stderr[-1500:]}")
        return old, str(scratch / "unit.o")

    def link(self, target, old, new, program):
        """Links a test with one object replaced."""
        listed = subprocess.run(["ninja", "-t", "commands", target], cwd=self.folder,
                                capture_output=True, text=True, check=True).stdout
        command = shlex.split(listed.splitlines()[-1])
        # The changed object comes first, so that its inline functions win, and that a library's
        # object of the same functions is not linked.
        words = [word for word in command if word != old]
        first = next(i for i, word in enumerate(words) if word.endswith(".o") and i > 0
                     and words[i - 1] != "-o")
        words.insert(first, new)
        words[words.index("-o") + 1] = str(program)
        run = subprocess.run(" ".join(words), shell=True, cwd=self.folder, capture_output=True,
                             text=True, check=False)
        if run.returncode != 0:
            raise Misfit(f"cannot link {target}: {run.stderr[-1500:]}")


def verdict(program, test):
    """Runs one test; returns whether it failed, and why."""
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("TRIREME_")}
    try:
        run = subprocess.run([program, f"--gtest_filter={test}"], env=environment,
                             capture_output=True, text=True, errors="replace", timeout=TIMEOUT,
                             check=False)
    except subprocess.TimeoutExpired:
        return True, f"no end within {TIMEOUT} s"
    if run.returncode == 0:
        ran = re.search(r"\[==========\] (\d+) tests? from .* ran", run.stdout)
        return False, f"{ran[1]} tests passed" if ran and ran[1] != "0" else NO_TESTS
    if run.returncode > 0 and "[  FAILED  ]" in run.stdout:
        found = re.search(r"(?m)^.*: Failure\n((?:.+\n){1,3})", run.stdout)
        return True, " ".join((found[1] if found else "failed").split())[:110]
    said = run.stderr.strip().splitlines()
    return True, said[-1][:110] if said else f"exit status {run.returncode}"


def check_test(build, mutation):
    """Makes sure that the test of a mutation exists and passes without it."""
    program = build.folder / mutation.program
    if not program.exists():
        raise Misfit(f"{mutation.name}: {program} is not built")
    failed, why = verdict(program, mutation.test)
    if failed or why == NO_TESTS:
        raise Misfit(f"{mutation.name}: without it, {mutation.test}: {why}")


def try_mutation(build, mutation):
    check_test(build, mutation)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        old, new = build.compile(mutation, scratch)
        program = scratch / "test"
        build.link(mutation.program, old, new, program)
        return verdict(program, mutation.test)


def table(mutations):
    lines = ["| what is taken out | from | the test that fails |", "|---|---|---|"]
    for one in mutations:
        lines.append(f"| {one.what} | `{one.file}` | `{one.test}` |")
    return "\n".join(lines) + "\n"


def check():
    """Returns what is wrong with the list of mutations."""
    problems = []
    names = [one.name for one in MUTATIONS]
    problems += [f"{name} is there twice" for name in set(names) if names.count(name) > 1]
    for one in MUTATIONS:
        try:
            mutated(one)
        except Misfit as misfit:
            problems.append(str(misfit))
    for page, mutations in PAGES.items():
        if table(mutations) not in (ROOT / page).read_text(encoding="utf-8"):
            problems.append(f"{page} does not have the table that --table {page} prints")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path,
                        help="a finished build of the preset release")
    parser.add_argument("--check", action="store_true", help="compile nothing")
    parser.add_argument("--table", choices=PAGES, help="print the table and do nothing else")
    options = parser.parse_args()
    if options.table:
        print(table(PAGES[options.table]), end="")
        return 0
    if options.check:
        problems = check()
        print("\n".join(problems) or f"{len(MUTATIONS)} mutations fit")
        return 2 if problems else 0
    unknown = set(options.names) - {one.name for one in MUTATIONS}
    if unknown:
        parser.error(f"no such mutation: {', '.join(sorted(unknown))}")
    chosen = [one for one in MUTATIONS if not options.names or one.name in options.names]
    build = Build(options.build)
    survived, misfits = [], []
    for one in chosen:
        try:
            found, why = try_mutation(build, one)
        except Misfit as misfit:
            print(f"misfit    {misfit}", flush=True)
            misfits.append(one.name)
            continue
        print(f"{'found' if found else 'SURVIVED':9} {one.name:34} {why}", flush=True)
        if not found:
            survived.append(one.name)
    print(f"{len(chosen) - len(survived) - len(misfits)} of {len(chosen)} mutations were found")
    return 2 if misfits else 4 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
