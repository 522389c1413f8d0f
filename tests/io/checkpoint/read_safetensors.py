"""Reads the shards of a checkpoint step by the rules of safetensors, puts each tensor together
again from the names of its blocks, and compares it with DIR/expected-NAME.
usage: read_safetensors.py STEP_FOLDER DIR"""
import json
import pathlib
import re
import struct
import sys

import numpy

TYPES = {"F64": "<f8", "F32": "<f4", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
BLOCK = re.compile(r"(.*)\[(flat )?(\d+:\d+(?:,\d+:\d+)*)\]$")


def read(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    assert header.pop("__metadata__")["format"] == "pt" and (8 + length) % 4096 == 0
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        yield name, numpy.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])


step, expected = map(pathlib.Path, sys.argv[1:])
manifest = json.loads((step / "manifest.json").read_text(encoding="utf-8"))
whole = {t["name"]: numpy.zeros(t["shape"], TYPES[t["dtype"]]) for t in manifest["tensors"]}
for shard in sorted(step.glob("shard-*.safetensors")):
    for name, array in read(shard):
        match = BLOCK.match(name)
        target = whole[match[1] if match else name]
        ranges = [slice(*map(int, r.split(":"))) for r in match[3].split(",")] if match else []
        (target.reshape(-1) if match and match[2] else target)[tuple(ranges) or ...] = array
for name, array in whole.items():
    assert array.tobytes() == (expected / f"expected-{name}").read_bytes(), name
print(f"{len(whole)} tensors in {len(manifest['shards'])} shards agree")
