"""Makes the files of a run, such as a real run leaves, without training: for tests of `trireme
report`. As a script: report_run.py FOLDER STEPS RANKS."""
import json
import math
import pathlib
import random
import sys

BEGAN = 1_795_000_000
PARTS = [("compute", 60), ("dp", 12), ("tp", 6), ("data", 2), ("optimizer", 8)]


def metrics(steps, rng, step_s=0.25):
    """Yields a line for each step of a run that stood still for 20 minutes after two thirds."""
    for step in range(1, steps + 1):
        x = step / steps
        loss = 2.1 + 5 * math.exp(-6 * x) + 0.5 * math.exp(-60 * x) + rng.gauss(0, 0.03)
        rate = 410_000 + rng.gauss(0, 4000) - (150_000 if 0.4 < x < 0.43 else 0)
        saves = step % 500 == 0
        line = {
            "step": step, "loss": loss, "loss_bits": "40000000", "loss_mean": loss,
            "grad_norm": 0.3 + 2 * math.exp(-8 * x) + abs(rng.gauss(0, 0.05)),
            "lr": 6e-4 * min(1, 50 * x) * (0.55 + 0.45 * math.cos(math.pi * x)),
            "tokens": step * 102400, "tokens_per_s": rate, "step_ms": 102400 / rate * 1000,
            "mfu": 0.46 * rate / 410_000, "data_wait_ms": abs(rng.gauss(0.4, 0.2)),
            "comm_exposed_ms": abs(rng.gauss(18, 3)), "tensor_wait_ms": abs(rng.gauss(9, 1)),
            "pipeline_wait_ms": 0.0, "checkpoint_stall_ms": 35.0 if saves else 0.0,
            "memory_bytes": int(21.5e9 + 2e8 * math.sin(20 * x)), "skipped_steps": 0,
            "device": "cpu", "cpu_joules_per_step": 5200 + rng.gauss(0, 80),
            "cpu_joules_per_token": 0.05, "gpu_joules_per_step": None,
            "gpu_joules_per_token": None, "co2_grams_per_step": 0.55,
            "time": BEGAN + 60 + step * step_s + (1200 if x > 2 / 3 else 0)}
        if step % max(steps // 40, 1) == 0:
            line["val_loss"] = loss + 0.08
        yield line


def journal(steps, step_s=0.25):
    """Returns the events of a launch in which a rank died after two thirds of the steps."""
    died = 60 + steps * 2 / 3 * step_s
    back = died + 1200
    end = 60 + steps * step_s + 1200
    resumed = int(steps * 2 / 3) // 500 * 500

    def page(begun, step, seen, train):
        return {"begun_at": begun, "step": step, "phase": "train", "age": 0.1, "seen": seen,
                "spent": {"start": 5.0, "load": 4.0, "train": train}}

    def event(clock, name, **fields):
        return {"time": BEGAN + clock, "clock": clock, "launch": "0a1b2c3d4e5f", "event": name,
                **fields}

    nodes = [f"n{i}" for i in range(8)]
    return [
        event(0, "begin", pid=1, host="n0", run=["train", "run.yaml"], slurm_job="4711"),
        event(20, "launch", attempt=1, nodes=nodes, groups=[""] * 8, ranks=64),
        event(60, "first_step", attempt=1, after_launch=40),
        event(died, "attempt_end", attempt=1, cause="node_death", code=76,
              what="node n5 is lost: no heartbeat for 10 s", launched=20.0, detected=died,
              durable_step=resumed, rank0=page(0, int(steps * 2 / 3), died - 12, died - 70)),
        event(back - 60, "launch", attempt=2, nodes=nodes, groups=[""] * 8, ranks=64),
        event(back, "first_step", attempt=2, after_launch=60),
        event(end, "attempt_end", attempt=2, cause="finished", code=0, what="all steps are done",
              launched=back - 60, detected=end, durable_step=steps,
              rank0=page(resumed, steps, end, end - back)),
        event(end, "over", code=0), event(end + 1, "end", code=0)]


def trace(rank, ranks):
    """Returns the trace of a rank with three steps, in microseconds."""
    events = []
    for step in range(3):
        at = step * 100_000
        events.append({"ph": "X", "name": "step", "cat": "step", "pid": rank, "tid": 0, "ts": at,
                       "dur": 90_000, "args": {"number": step + 10}})
        for kind, ms in PARTS:
            slow = 1.25 if rank == 13 and kind == "compute" else 1
            dur = int(ms * 900 * slow) if kind == "compute" else int(ms * 600)
            events.append({"ph": "X", "name": kind, "cat": kind, "pid": rank, "tid": 0, "ts": at,
                           "dur": dur, "args": {}})
            at += dur
    return {"trireme": {"schema": 1, "id": 1, "rank": rank, "ranks": ranks, "host": f"n{rank // 8}",
                        "place": {"dp": rank, "tp": 0, "pp": 0},
                        "grid": {"dp": ranks, "tp": 1, "pp": 1},
                        "clock": {"offset_us": 0.0, "uncertainty_us": 0.0, "drift_us": 0.0},
                        "dropped": 0},
            "displayTimeUnit": "ms", "traceEvents": events}


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def make_run(folder, steps, ranks, name="llama-1b on 8 nodes"):
    folder = pathlib.Path(folder)
    rng = random.Random(16)
    lines = list(metrics(steps, rng))
    write_lines(folder / "metrics.jsonl", lines)
    write_lines(folder / "journal.jsonl", journal(steps))
    memory = [{"activations": 6_000_000_000 + 40_000_000 * (rank % 7), "gradients": 2_500_000_000,
               "optimizer": 9_900_000_000, "parameters": 2_500_000_000, "program": 400_000_000,
               "total": 21_300_000_000} for rank in range(ranks)]
    head = [{"time": BEGAN + 30, "level": "info", "rank": 0, "host": "n0", "event": "start",
             "pid": 1, "ranks": ranks},
            {"event": "layout", "rank": 0, "host": "n0", "dp": ranks, "tp": 1, "pp": 1, "zero": 1,
             "schedule": "1f1b"},
            {"event": "resumed", "rank": 0, "step": int(steps * 2 / 3) // 500 * 500},
            {"time": BEGAN + 900, "event": "straggler", "rank": 13, "host": "n1",
             "step": steps // 2, "of_peers": 1.21, "score": 5.2},
            {"event": "memory_measured", "ranks": memory}]
    steps_logged = [dict(line, event="step", rank=0, host="n0", level="info") for line in lines]
    write_lines(folder / "logs/rank-00000.jsonl", head[:2] + steps_logged + head[2:])
    for rank in range(1, ranks):
        write_lines(folder / f"logs/rank-{rank:05}.jsonl", [dict(head[0], rank=rank)])
    (folder / "trace").mkdir(exist_ok=True)
    for rank in range(ranks):
        (folder / f"trace/rank-{rank:05}.json").write_text(json.dumps(trace(rank, ranks)))
    (folder / "DONE").write_text(json.dumps({"step": steps}))
    (folder / "config.yaml").write_text(
        "model:\n  preset: llama-1b  # run.yaml:1\ntrain:\n"
        f"  steps: {steps}  # run.yaml:4\nrun:\n  dir: runs/a  # run.yaml:9\n"
        f"  name: {json.dumps(name)}  # run.yaml:10\n")
    return folder


def bench_results():
    """Returns results of the commands coll, pairs and step in one document of the schema's form,
    though of fewer keys."""
    rng = random.Random(5)
    results = []
    for op, peak in (("all_reduce", 9.5), ("all_gather", 11.0)):
        for power in range(10, 28):
            size = 1 << power
            rate = peak * size / (size + 400_000)
            us = size / rate / 1e3
            results.append({"name": "coll", "params": {"op": op, "bytes": size},
                            "metrics": {"busbw_GBps": rate, "time_us": us, "time_us_low": us * 0.95,
                                        "time_us_high": us * 1.08}})
    hosts = [f"n{i}" for i in range(12)]
    rates = [[None if i == j else (4.1 if 7 in (i, j) else 9.1 + rng.gauss(0, 0.15))
              for j in range(12)] for i in range(12)]
    results.append({"name": "pairs", "params": {"by": "host"}, "metrics": {"median_GBps": 9.1},
                    "matrices": {"members": list(range(12)), "hosts": hosts,
                                 "bandwidth_GBps": rates,
                                 "latency_us": [[None if i == j else 1.8 + 0.1 * abs(i - j)
                                                 for j in range(12)] for i in range(12)]}})
    for ranks in (1, 2, 4, 8, 16, 32, 64):
        rate = 7000 * ranks / (1 + 0.004 * ranks)
        results.append({"name": "step", "params": {"model": "llama-1b", "precision": "bf16",
                                                   "ranks": ranks},
                        "metrics": {"tokens_per_s": rate},
                        "samples": {"step_ms": {"values": [97, 100, 104], "median": 100, "low": 97,
                                                "high": 104}}})
    return {"schema": 2, "command": "coll",
            "program": {"program": "trireme", "version": "0.1.0", "commit": "0123456"},
            "host": {"name": "n0", "processor": "AMD EPYC 9654", "cores": 192},
            "ranks": [{"rank": i} for i in range(64)], "environment": {},
            "clock": {"name": "CLOCK_MONOTONIC"}, "time": BEGAN, "waited_fraction": 0.01,
            "results": results}


if __name__ == "__main__":
    make_run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
