#!/usr/bin/env python3
"""Makes an input of evidence_fuzz that needs no program: an audit log of saves and deletions.

    tests/fuzz/make_audit_corpus.py
"""

import hashlib
import json
import pathlib

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def recorded_steps():
    """Makes an audit log of saves and deletions, without signatures."""
    folder, step = "/run/checkpoints", "/run/checkpoints/step-00000002"
    events = [("log.created", {"format": "trireme-audit", "version": 1, "id": "0" * 32}),
              ("checkpoint.saved", {"step": 2, "folder": step, "manifest_sha256": "a" * 64}),
              ("checkpoint.deleted", {"step": 2, "folder": step, "manifest_sha256": "a" * 64}),
              ("ckpt.prune.end", {"folder": folder, "deleted": 1,
                                  "steps": [{"step": 2, "manifest_sha256": "a" * 64}]}),
              ("checkpoint.erased", {"kind": "checkpoints", "folder": folder}),
              ("logs.begun", {"logs": "b" * 32, "start": 1, "key": "c" * 32}),
              ("logs.closed", {"logs": "b" * 32, "start": 1, "key": "c" * 32, "files": 3,
                               "sha256": "d" * 64})]
    text, last = "", "0" * 64
    for number, (event, details) in enumerate(events):
        line = json.dumps({"seq": number, "prev": last, "time": "2026-11-28T04:00:00Z",
                           "host": "n1", "uid": 0, "pid": 7, "event": event, "details": details},
                          separators=(",", ":"))
        last = hashlib.sha256(line.encode()).hexdigest()
        text += line + "\n"
    return text


if __name__ == "__main__":
    (CORPUS / "evidence_fuzz/recorded-steps").write_text(recorded_steps())
