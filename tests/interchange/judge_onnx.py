#!/usr/bin/env python3
"""Judges a model that was exported from a golden one to ONNX, with the code of others: onnx checks
the file, and ONNX Runtime computes the logits and a greedy continuation.

    pip install numpy onnx onnxruntime
    python3 judge_onnx.py GOLDEN DIR [MOST]     # DIR: holds model.onnx

MOST is the largest difference of a logit from those of transformers (default: 1e-5). The text is
also given in a batch of two, whose rows must be equal.
"""

import json
import pathlib
import sys

import numpy
import onnx
import onnxruntime

FOLDER = pathlib.Path(__file__).resolve().parent / "golden"


def logits_of(session, ids):
    return session.run(["logits"], {"input_ids": numpy.array(ids, dtype=numpy.int64)})[0]


def main(golden, folder, most=1e-5):
    path = pathlib.Path(folder) / "model.onnx"
    onnx.checker.check_model(str(path), full_check=True)
    expected = json.loads((FOLDER / golden / "expected.json").read_text())
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    ids = list(expected["ids"])
    logits = logits_of(session, [ids, ids])
    difference = float(numpy.abs(logits[0] - numpy.array(expected["logits"])).max())
    alike = bool((logits[0] == logits[1]).all())
    for _ in expected["continuation"]:
        ids.append(int(logits_of(session, [ids])[0, -1].argmax()))
    same = ids[len(expected["ids"]):] == expected["continuation"]
    print(f"{golden}: largest difference {difference:.2g}, equal rows: {alike}, "
          f"same continuation of {len(expected['continuation'])}: {same}")
    return 0 if difference <= float(most) and alike and (same or float(most) > 1e-5) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
