"""Ranks hang under mpirun. Every rank that can report names the culprit, the job ends with 85, and
every rank that can write leaves a dump.
    hanging_ranks_test.py PROGRAM MPIRUN..."""
import json
import os
import subprocess
import sys
import tempfile

RANKS = 4

failures = 0


def expect(holds, what, output):
    global failures
    if not holds:
        failures += 1
        print(f"FAILED: {what}; it said:\n{output}")


def run(how, folder, **environment):
    done = subprocess.run(sys.argv[2:] + ["-n", str(RANKS), sys.argv[1], how, folder],
                          env={**os.environ, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    expect(done.returncode == 85, f"{how}: exit code {done.returncode}", done.stdout)
    return done.stdout


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def check_dumps(how, folder, ranks, output):
    """Checks that these ranks left whole dumps. mpirun continues a stopped rank before it ends it,
    so the dump of that rank may be whole or not."""
    names = [f"flight-rank-{rank:05}.jsonl" for rank in ranks]
    others = [name for name in os.listdir(folder)
              if name not in names and not name.startswith(f"flight-rank-{RANKS - 1:05}")]
    expect(set(names) <= set(os.listdir(folder)) and not others,
           f"{how}: dumps {os.listdir(folder)}", output)
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            lines = [json.loads(line, parse_constant=refuse_constant) for line in file]
        expect(lines[0]["event"] == "flight_recorder", f"{how}: head of {name}", lines[0])
        ids = [group["id"] for group in lines[0]["groups"]]
        expect(len(set(ids)) == len(ids), f"{how}: groups of {name} have ids of their own", ids)
        expect(any(line["operation"] == "barrier" and line["state"] == "finished"
                   for line in lines[1:]), f"{how}: {name} has the barrier", lines)


def check(how, texts, speakers, dumpers):
    """Checks that each of `speakers` has one of `texts` in its message."""
    with tempfile.TemporaryDirectory() as folder:
        output = run(how, folder)
        for rank in speakers:
            said = [line for line in output.splitlines() if line.startswith(f"rank {rank}: ")]
            expect(said and all(any(text in line for text in texts) for line in said),
                   f"{how}: rank {rank} names the culprit", output)
        check_dumps(how, folder, dumpers, output)


def main():
    others = range(RANKS - 1)
    check("absent", ["never entered all_reduce #1 (273.4 KiB, group dp 0..3); it has been in "
                     "data_load"], others, range(RANKS))
    check("stopped", ["did not answer within 3.0s: it is stopped"], others, others)
    with tempfile.TemporaryDirectory() as folder:
        output = run("desync", folder)
        expect("the ranks are out of step" in output and "broadcast #1" in output and
               "all_reduce #1" in output, "desync is named", output)
        output = run("stopped_at_start", folder, TRIREME_START_DEADLINE="2")
        expect("MPI did not connect all ranks within 2.0s" in output, "start is named", output)
    if failures == 0:
        print("every hang is named")
    sys.exit(failures > 0)


main()
