#!/usr/bin/env python3
"""Makes the initial corpus of the fuzz targets from files that the program writes and from texts
that other programs print.

    tests/fuzz/make_corpus.py build/release/trireme

packs a dataset, trains for four steps under `trireme launch` and writes inputs made from the
resulting files to tests/fuzz/corpus/<target>/. Sealed files are stored without their seals, because
the targets add them.
"""

import base64
import hmac
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CORPUS = SOURCE / "tests/fuzz/corpus"

RUN = """
model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 259, context: 16}
data: {train: data/train, validation: data/validation, sequence: 16}
train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32, log_every: 1, threads: 1}
optimizer: {lr: 0.001, schedule: {warmup: 1}}
checkpoint: {every: 2}
run: {dir: run, trace: 2}
"""


MIXTURE = """\
model: {preset: tiny-llama, context: 64}
data: {train: [{path: a, weight: {0: 1, 9: 0.5}}, {name: b, path: c/train, weight: 2, epochs: 3}],
       validation: [{path: a}, {name: x, path: d}]}
train: {steps: 2}
run: {dir: r}
"""


def put(target, name, contents):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    data = contents if isinstance(contents, bytes) else contents.encode()
    (folder / name).write_bytes(data)


def body_of(text):
    """Returns the text of a sealed file without its seal."""
    return text[: text.rindex(',\n "seal"')]


def train(program, folder):
    environment = dict(os.environ, TRIREME_SITE_DIR=str(SOURCE / "tests/support/no_site"),
                       OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")

    def must(*words):
        subprocess.run([program, *words], cwd=folder, env=environment, check=True,
                       stdout=subprocess.DEVNULL)

    (folder / "text").mkdir()
    for i in range(3):
        (folder / f"text/{i}.txt").write_text("The ship sails under oars along the coast.\n" * 400)
    (folder / "run.yaml").write_text(RUN)
    must("data", "pack", "--out", "data", "--validation-fraction", "0.3", "text")
    must("launch", "--ranks-per-node", "2", "--", "train", "run.yaml")


def from_run(folder):
    manifest = (folder / "run/checkpoints/step-00000004/manifest.json").read_text()
    put("checkpoint_manifest_fuzz", "two-ranks", body_of(manifest))
    golden = SOURCE / "tests/io/checkpoint/golden/version-1/step-00000003/manifest.json"
    put("checkpoint_manifest_fuzz", "version-1", body_of(golden.read_text()))
    fields = json.loads(manifest)
    put("checkpoint_meta_fuzz", "model", json.dumps(fields["config"], indent=1))
    put("checkpoint_meta_fuzz", "counters", json.dumps(fields["extra"]["counters"]))
    put("checkpoint_meta_fuzz", "rewound", json.dumps(
        {"step": 7, "updates": 6, "skipped_steps": 1, "skipped_in_a_row": 0, "rewinds": 1,
         "left_out": [{"step": 3, "first": 3, "count": 2}],
         "history": {"losses": [3.5, 3.25], "grad_norms": [1.0, 0.5]}}))
    table = {"shards": fields["shards"][:1], "tensors": [
        dict(t, blocks=[b for b in t["blocks"] if b["shard"] == 0]) for t in fields["tensors"][:2]]}
    put("rank_messages_fuzz", "shard-table", json.dumps(table))
    shard = (folder / "run/checkpoints/step-00000004/shard-00000.safetensors").read_bytes()
    length = struct.unpack("<Q", shard[:8])[0]
    put("safetensors_fuzz", "padded", shard[: 8 + length])
    small = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    put("safetensors_fuzz", "small", struct.pack("<Q", len(small)) + small + bytes(8))
    dataset = (folder / "data/train/manifest.json").read_text()
    put("dataset_manifest_fuzz", "bytes", body_of(dataset))
    encrypted = json.loads(dataset)
    del encrypted["digest"], encrypted["seal"]
    encrypted.update(version=2, encryption={"cipher": "AES-256-GCM", "data_key": "0" * 32})
    for shard in encrypted["shards"]:
        shard.update(path=shard["path"] + ".sealed", salt="1" * 32, plain_xxh3="3" * 48,
                     tags="2" * (2 * len(shard["blocks"])))
    put("dataset_manifest_fuzz", "encrypted", json.dumps(encrypted, indent=1)[:-2])
    put("trace_fuzz", "rank-0", (folder / "run/trace/rank-00000.json").read_bytes()[:8000])
    lines = (folder / "run/trace/rank-00000.json").read_text()
    if len(lines) < 60_000:
        put("trace_fuzz", "whole", lines)
    put("run_files_fuzz", "metrics", (folder / "run/metrics.jsonl").read_text())
    put("run_files_fuzz", "log", (folder / "run/logs/rank-00000.jsonl").read_text()[:8000])
    put("run_files_fuzz", "done", (folder / "run/DONE").read_text())
    put("journal_fuzz", "finished", (folder / "run/journal.jsonl").read_text())
    resolved = (folder / "run/config.yaml").read_text()
    put("run_config_fuzz", "resolved", resolved)
    put("run_config_fuzz", "arguments", RUN + "---\ntrain.steps=10\ndata.validation=\n"
        "checkpoint.every=auto\nparallel.dp=2\nmodel={layers: 2}\n")
    put("run_config_fuzz", "preset",
        "model: {preset: tiny-llama, context: 64}\ndata: {train: d}\ntrain: {steps: 2}\n"
        "divergence: {spike: rewind}\nrun: {dir: r}\n")
    put("run_config_fuzz", "mixture", MIXTURE)
    put("config_fuzz", "run", RUN)
    put("config_fuzz", "mappings", "a: [{b: 1, c: {d: \"e f\", 0: ~}}, {}]\n")
    put("config_fuzz", "lists", "a: [1, x, \"y z\"]\nb: {c: ~, d: 'e'}\n# f\ng: |\n  h\n  i\n")


def texts():
    put("fault_plan_fuzz", "several", "ckpt.rename@2:0:1:kill,step.end:*:3+:sleep=0.25,"
        "file.write:1:*:errno=ENOSPC,step.end:7:2:exit=3")
    put("fault_plan_fuzz", "lines", "step.end:0:3:kill,file.sync:1:1:errno=EIO")
    put("host_list_fuzz", "ranges", "n[1-3,7],gpu[08-11]x,login")
    put("host_list_fuzz", "time", "1-02:03:04")
    put("site_profile_fuzz", "cpu", (SOURCE / "configs/site/cpu.yaml").read_text())
    put("site_profile_fuzz", "gpu", (SOURCE / "configs/site/gpu.yaml").read_text())
    put("cluster_fuzz", "test", (SOURCE / "configs/cluster/test.yaml").read_text())
    lines = (SOURCE / "benchmarks/plan/published_runs.csv").read_text().splitlines(keepends=True)
    put("published_runs_fuzz", "runs", "".join(lines[i] for i in (0, 1, 59, 149, 279)))
    put("cluster_fuzz", "cpu", (SOURCE / "configs/cluster/cpu-genoa.yaml").read_text())
    put("slurm_texts_fuzz", "topology", "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
        "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]\n"
        "BlockName=b1 BlockIndex=0 Nodes=n[3-4] BlockSize=2\n")
    put("slurm_texts_fuzz", "job",
        "JobId=42 JobName=train\n   JobState=RUNNING Reason=None Dependency=(null)\n"
        "   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0\n")
    put("slurm_texts_fuzz", "environment",
        "SLURM_JOB_ID=42\nSLURM_JOB_NODELIST=n[1-2]\nSLURM_RESTART_COUNT=1\nSLURM_STEP_ID=0\n"
        "SLURM_NTASKS=8\nSLURM_STEP_NUM_TASKS=8\nSLURM_ARRAY_JOB_ID=40\nSLURM_ARRAY_TASK_ID=2\n"
        "SLURM_JOB_END_TIME=1800000000\nSLURMD_NODENAME=n1\nSLURM_JOB_PARTITION=main\n")
    put("launch_files_fuzz", "exit-reason", json.dumps(
        {"code": 74, "kind": "io", "message": "disk full", "rank": 1, "host": "n2", "signal": 0,
         "step": 5, "phase": "train", "time": 1.5}))
    put("launch_files_fuzz", "hosts", "# nodes\nn1 slots=2\nn2 slots=2 group=s1\n")
    put("launch_files_fuzz", "site-list", "n3\t1799999000\tnode_death\n")
    put("launch_files_fuzz", "baseline", json.dumps(
        {"version": 1, "node": "n1", "time": 1, "folder": "/tmp",
         "rates": {"memory": {"median": 1.5, "deviation": 0.1, "unit": "MB/s"}},
         "facts": {"cores": "2"}, "counters": {"link eth0 rx_errors": 0}}, indent=1)[:-2])
    lock = json.dumps({"host": "n1", "pid": 5, "boot_id": "b", "start_time": 7,
                       "nonce": "0123456789abcdef", "job_id": "42", "restart_count": 0,
                       "launch": "l", "attempt": 1, "since": "2026-11-01T00:00:00Z"},
                      separators=(",", ":"))
    put("checkpoint_folder_fuzz", "lock", lock + "\n0123456789abcdef\n")
    put("checkpoint_folder_fuzz", "names",
        "step-00000100\nshard-00000.safetensors\n.tmp-100-3\n.replaced-100-3\n.trash-1-2\n"
        "step-00000050-g000003\nLATEST\n")
    put("packing_notes_fuzz", "note",
        '{\n "version": 1,\n "fingerprint": "f",\n "files": 1,\n "binary_files": 0,\n'
        ' "empty_documents": 0,\n "skipped_members": 0,\n "duplicates": 0,\n "shard": null')
    put("text_inputs_fuzz", "lines",
        '{"id": 1, "text": "a\\u00e9\\n"}\n{"meta": {"text": 2}, "text": "b"}\n')
    put("text_inputs_fuzz", "prompts", '{"prompt": "The ship"}\r\n\n{"prompt": "sails", "n": [1]}')
    put("text_inputs_fuzz", "paths", "text/a.txt\n\n/data/b c.txt\n")
    put("tuning_fuzz", "table", json.dumps(
        {"schema": 1, "ranks": 4, "hosts": 2, "ranks_per_host": 2, "entries": [
            {"op": "all_reduce", "max_bytes": 65536, "backend": "mpi"},
            {"op": "all_reduce", "max_bytes": 1048576, "backend": "hierarchical"}]}))
    put("rank_messages_fuzz", "findings", json.dumps(
        [{"severity": "error", "code": 66, "what": "no data", "where": "n1", "remedy": "pack it"}]))
    put("rank_messages_fuzz", "facts", json.dumps(
        {"host": "n1", "build": "b", "mpi": "m", "kernels": "avx2", "clock": 0.5, "threads": 1,
         "cores": 2, "sharers": 1, "shares_run_dir": True, "shares_checkpoint_dir": True}))
    put("rank_messages_fuzz", "question", json.dumps(
        {"asker": 1, "group": "0123456789abcdef", "number": 7, "why": "30 s"}))
    put("rank_messages_fuzz", "report", json.dumps(
        {"rank": 1, "host": "n2", "phase": "train", "phase_seconds": 1.5, "knows_group": True,
         "left_group": False, "entered": 7, "finished": None, "waiting": ["recv #3"],
         "overdue": None, "last": {"kind": 1, "dtype": 0, "order": 0, "op": 0, "root": 0,
                                   "number": 7, "bytes": 4096}}))


def messages():
    """Writes frames of a launch's connections (slurm/wire/frame.h)."""
    def frame(payload):
        text = json.dumps(payload, separators=(",", ":")).encode()
        return b"TRL1" + struct.pack("<I", len(text)) + text

    put("launch_wire_fuzz", "challenge",
        frame({"version": 3, "kind": "challenge", "nonce": "00" * 16}))
    put("launch_wire_fuzz", "hello", frame(
        {"version": 3, "kind": "hello", "role": "agent", "node": "n1", "nonce": "00", "proof": "11",
         "pid": 7, "port": 4000, "addresses": ["127.0.0.1"]}))
    rank = {"pid": 7, "rank": 0, "attempt": 1, "step": 5, "begun_at": 0, "phase": "train",
            "deadline": 300.0, "changes": 9, "created": 1, "changed": 2, "first_step": 3,
            "spent": [1, 2, 3, 0, 0, 0], "exit_code": 0, "age": 0.5, "lived": 9.5, "gone": False,
            "state": "R"}
    put("launch_wire_fuzz", "report", frame(
        {"version": 3, "kind": "report", "healthy": True, "settled": True, "trouble": "",
         "oom_kills": 0, "cleared": 0, "memory_generation": 1, "memory_step": 6, "ranks": [rank]}))
    put("launch_wire_fuzz", "order", frame(
        {"version": 3, "kind": "order", "order": "partner", "attempt": 1, "node": "n1",
         "port": 1, "addresses": []}))
    put("launch_wire_fuzz", "copies",
        frame({"copy": "begin", "node": "n1", "step": "step-00000050-g000003"})
        + frame({"copy": "file", "name": "shard-00000.safetensors", "bytes": 5, "xxh3": "0" * 16})
        + frame({"copy": "end"}) + frame({"copy": "done", "whole": True, "why": ""}))


def studies():
    """Writes what comparisons and histories read."""
    times = {"values": [1.5, 1.4, None, 1.6], "median": 1.5, "low": 1.4, "high": 1.6,
             "by_rank": None}
    bench = json.dumps(
        {"schema": 2, "command": "gemm",
         "program": {"version": "0.1.0", "commit": "c", "mpi": None, "built_with": {"fmt": "9"}},
         "host": {"name": "n1", "cores": 2, "memory_bytes": 1 << 34},
         "ranks": [{"rank": 0, "host": "n1", "cpus": "0-1"}],
         "environment": {"OMP_NUM_THREADS": "1"}, "clock": {"name": "m", "source": None},
         "time": 1.8e9, "waited_fraction": 0, "results": [
             {"name": "gemm", "params": {"m": 96, "rounds": 4}, "samples": {"time_us": times},
              "metrics": {"flops_per_s": 1e9, "lost_fraction": 0.1}}]})
    put("measured_result_fuzz", "bench", bench)
    put("accept_fuzz", "bench", bench)
    put("measured_result_fuzz", "run",
        '{"step":1,"step_ms":9}\n{"step":2,"step_ms":3,"data_wait_ms":1}\n{"step":3,"step_ms":4}\n'
        "\0train: {global_batch: 8}\n")
    text = ('password: "a" --token b https://u:p@h/ Bearer abcdefghi -----BEGIN 1 PRIVATE KEY----\n'
            '{"host": {"name": "n1.site"}, "nodes": ["n2"], "user": "joe"} /users/mary n[1-2] '
            '10.0.0.1:22 fe80::1:2:3 a@b.org\n')
    put("archive_fuzz", "texts", text)
    put("redaction_fuzz", "texts", text)
    for name, listed in (("zero", b"ab\0cd"), ("return", b"ab\rcd"), ("mark", b"\xef\xbb\xbfab")):
        put("redaction_fuzz", f"refused_{name}", b"x\n" + listed)
    put("known_records_fuzz", "lines", '{"host":"n1","loss_bits":"0x40200000","pin":4711}\n')
    put("known_records_fuzz", "config", "data: {train: [{path: /x, weight: 2}], x.y: nan(z)}\n")
    put("accept_fuzz", "profile", (SOURCE / "configs/accept/slurm.yaml").read_text())
    put("accept_fuzz", "health", json.dumps(
        {"schema": 1, "node": "n1", "healthy": False, "complaints": ["link eth0 is down"],
         "rates": {"memory": {"median": 2e4, "deviation": 1.5, "unit": "MB/s"}}}))
    put("history_fuzz", "lines", "".join(json.dumps(
        {"schema": 1, "time": time, "command": "gemm", "name": "gemm", "params": {"m": "96"},
         "samples": "time_us", "count": 4, "median": median, "low": 1.4, "high": 1.6,
         "host": "n1", "machine": "0123456789abcdef", "commit": "c"}) + "\n"
        for time, median in enumerate([1.5] * 9 + [1.7] * 9, 1)) + '{"schema": 1, "ti')


def reports():
    """Writes lines of metrics and results of benchmarks as tests of `trireme report` make them."""
    sys.path.insert(0, str(SOURCE / "tests/support"))
    import report_run  # pylint: disable=import-outside-toplevel

    lines = report_run.metrics(6, random.Random(1))
    put("report_fuzz", "metrics", "".join(json.dumps(line) + "\n" for line in lines))
    results = report_run.bench_results()
    curves = [[r for r in results["results"] if r["name"] == name][:3] for name in ("coll", "step")]
    put("report_fuzz", "bench", json.dumps(dict(results, results=sum(curves, []))))
    pairs = next(r for r in results["results"] if r["name"] == "pairs")
    pairs["matrices"] = {"members": [0, 1], "hosts": ["a", "b"],
                         "bandwidth_GBps": [[None, 9], [8, None]],
                         "latency_us": [[None, 1], [2, None]]}
    put("report_fuzz", "pairs", json.dumps(dict(results, results=[pairs])))
    finding = {"name": "gemm", "value": 9.5, "typical": 3, "unit": "us", "percent": 32, "score": 8,
               "limit": True, "details": "m", "agreed": {"name": "t", "value": 5, "at_least": True}}
    node = {"nodes": ["n1"], "good": False, "judged": True, "findings": [finding],
            "complaints": ["clock"], "notes": ["busy"], "figures": [finding], "sentence": "Slow."}
    asked = {"measures": ["gemm"], "at_least": 90, "score": 3, "limits": {"time_us": 5}}
    put("report_fuzz", "acceptance", json.dumps(
        {"schema": 1, "accepted": False, "verdict": "rejected", "doubt": None, "time": 1.8e9,
         "profile": {"file": "p.yaml", "sha256": "0" * 64, "node": asked, "link": asked},
         "seconds": 56, "rounds": 3, "nodes": [node], "links": [dict(node, nodes=["n1", "n2"])],
         "partner_tests": [], "nodes_with_bad_links": [], "drain_commands": ["scontrol n1"]}))
    terms = ["products", "head", "attention", "kernels", "recompute", "tensor", "accumulate",
             "transfer", "bubble", "gradients", "parameters", "optimizer", "checkpoint"]
    parts = ["parameters", "gradients", "optimizer", "activations", "communication", "snapshot",
             "reserved"]
    layout = {"layout": "dp 8", "nodes": 2, "on_front": True, "step_seconds": 0.1, "days": 3,
              "kilowatt_hours": 9, "terms": dict.fromkeys(terms, 0.01),
              "memory": dict.fromkeys(parts, 1 << 30)}
    steps = [{"kind": kind, "from": 0, "to": 0.1, "what": kind}
             for kind in ("forward", "backward", "weight gradients", "replicas", "optimizer")]
    put("report_fuzz", "plan", json.dumps(
        {"schema": 2, "cluster": "c", "residual_percent": 7.5, "tried": 40, "fit": 30,
         "warnings": ["vocab"], "layouts": [layout, dict(layout, nodes=1)],
         "timeline": {"micro_batches": 8, "drawn_micro_batches": 6, "stages": [
             {"busy_seconds": 0.1, "idle_seconds": 0.01, "steps": steps}]},
         "goodput": {"draws": 200, "days": 3, "quantiles": [0.9, 0.95, 0.99]}}))


def policies():
    """Writes a policy, a label, a list of mounts and answers of Slurm as tests have them."""
    put("policy_fuzz", "policy", """version: 1
site: {name: north, jurisdiction: AE, hosts: ["n*"], mounts: [/data]}
classifications: [public, secret]
unlabelled: allow
roles:
  trainer:
    groups: [ml]
    accounts: [a]
    read: {highest: secret, folders: [/data], owners: [x]}
    write: {highest: secret, folders: [/data/out]}
  releaser: {groups: [r], export: {highest: public, folders: [/data]}}
release: {keys: /etc/trireme/r.pem, signers: 2, above: public}
slurm: /opt/slurm/bin
""")
    put("policy_fuzz", "label", json.dumps({"label": {
        "classification": "secret", "jurisdictions": ["AE", "SA"], "owners": ["x"],
        "retention": "2030-12-31"}}))
    put("policy_fuzz", "release", json.dumps({
        "version": 1, "manifest_sha256": "a" * 64, "uri": "file:///runs/a",
        "label": {"classification": "secret"}, "recipient": "X", "reason": "paper",
        "user": "sara", "host": "n1", "time": "2026-11-26T12:00:00Z"}))
    put("policy_fuzz", "mounts", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "30 22 0:25 / /data\\040one rw,nosuid shared:1 - nfs4 host:/x rw\n")
    put("policy_fuzz", "pidinfo", "Slurm job id 42 ends at Thu Nov 26 23:00:00 2026\n")
    put("policy_fuzz", "squeue", "0 project1\n0 project1\n")


def evidence(program, folder):
    """Makes an audit log and statements that are signed by the key which the target trusts."""
    der = bytes.fromhex("302e020100300506032b657004220420") + bytes([1, 2, 3]) + bytes(29)
    key = folder / "key"
    label = "PRIVATE KEY-----"
    key.write_text(f"-----BEGIN {label}\n{base64.b64encode(der).decode()}\n-----END {label}\n")
    key.chmod(0o600)
    log = folder / "audit.jsonl"
    subprocess.run([program, "generate", "--checkpoint", folder / "none"], check=False,
                   stderr=subprocess.DEVNULL,
                   env=dict(os.environ, TRIREME_SITE_DIR=str(SOURCE / "tests/support/no_site"),
                            TRIREME_AUDIT__LOG=str(log), TRIREME_AUDIT__KEY=str(key)))
    put("evidence_fuzz", "signed-log", log.read_text())
    head = next(json.loads(line) for line in log.read_text().splitlines() if '"head"' in line)
    put("evidence_fuzz", "envelope", json.dumps(head["head"]) + "\n")
    put("evidence_fuzz", "head", "12:" + head["prev"])
    site = dict(os.environ, TRIREME_SITE_DIR=str(SOURCE / "tests/support/no_site"),
                TRIREME_AUDIT__KEY=str(key))
    (folder / "raw.txt").write_text("a raw file\n" * 20)
    subprocess.run([program, "data", "pack", "--out", folder / "signed", folder / "raw.txt"],
                   check=True, stdout=subprocess.DEVNULL, env=site)
    bundle = (folder / "signed/provenance.intoto.jsonl").read_text()
    statement = json.loads(base64.b64decode(json.loads(bundle)["payload"]))
    put("evidence_fuzz", "bundle-of-dataset", bundle)
    subprocess.run([program, "erase", folder / "signed", "--certificate", folder / "erased",
                    "--confirm", "signed", "--confirm", "signed"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=site)
    put("evidence_fuzz", "certificate", (folder / "erased").read_text())
    manifest = next(each for each in statement["subject"] if each["name"] == "manifest.json")
    statement["predicate"]["buildDefinition"]["resolvedDependencies"] = [
        dict(manifest, name="parent", uri="file:///runs/a%20b/step-00000002/manifest.json")]
    put("evidence_fuzz", "statement", json.dumps(statement))
    child = {"payloadType": "application/vnd.in-toto+json", "payload": base64.b64encode(
        json.dumps(statement).encode()).decode(), "signatures": []}
    put("evidence_fuzz", "bundle", json.dumps(child, separators=(",", ":")) + "\n" + bundle)
    signed = json.loads((SOURCE / "tests/evidence/golden/model/model.sig").read_text())
    put("evidence_fuzz", "model-signature", json.dumps(signed))
    put("evidence_fuzz", "model-statement",
        base64.b64decode(signed["dsseEnvelope"]["payload"]).decode())
    put("evidence_fuzz", "uri", "file:///a%20b/%C3%A4")
    put("evidence_fuzz", "digest-list", f"{'1' * 64}  a.tar.gz\n{'a' * 64}  b.deb\n")
    subprocess.run([program, "audit", "keygen", "--out", folder / "new", "--name", "a"], check=True,
                   stdout=subprocess.DEVNULL)
    put("evidence_fuzz", "trust", (folder / "new.pub").read_text() + "# b\n" +
        (folder / "new.pub").read_text())


def logs():
    """Makes encrypted logs with the key of the fuzz target, which consists of zeros."""
    def derived(info, length):  # RFC 5869, one block
        secret = hmac.digest(bytes(32), bytes(32), "sha256")
        return hmac.digest(secret, info.encode() + b"\1", "sha256")[:length]

    fields = f"TRIREME-SEALED-1 {derived('trireme id', 16).hex()} {'5a' * 16} {'0' * 64}"
    mac = hmac.digest(derived("trireme mac section", 32), f"f\n{fields}".encode(), "sha256").hex()
    head = f"{fields} {mac}\n"
    records = [base64.b64encode(data).decode() + "\n" for data in (bytes(range(40)), bytes(16))]
    put("sealed_text_fuzz", "head", head)
    put("sealed_text_fuzz", "records", head + "".join(records))
    put("sealed_text_fuzz", "log-lines",
        '{"time": 1.5, "level": "info", "rank": 0, "host": "n", "event": "step", "step": 1}\n' * 3)
    put("sealed_text_fuzz", "newer", "TRIREME-SEALED-2 a b c d\n")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        train(program, folder)
        from_run(folder)
        evidence(program, folder)
    for make in (texts, messages, studies, reports, policies, logs):
        make()


if __name__ == "__main__":
    main()
