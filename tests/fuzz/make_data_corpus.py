#!/usr/bin/env python3
"""Makes the first inputs of text_streams_fuzz, token_arrays_fuzz, eval_tasks_fuzz,
eval_gates_fuzz and registry_fuzz: compressed texts, archives and arrays of tokens, as other
programs write them, examples of evaluation tasks, files of gates, and records of a registry.

    tests/fuzz/make_data_corpus.py
"""
import gzip
import io
import json
import pathlib
import struct
import tarfile

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
# "first\nsecond\n" in two frames, the first one with a checksum, by zstd 1.5.4.
ZSTD = "28b52ffd045831000066697273740ac316ad2c28b52ffd00583900007365636f6e640a"
# The documents [5, 6, 7] and [8, 9] in u16, by Megatron-LM.
MEGATRON = ("4d4d4944494458000001000000000000000802000000000000000300000000000000030000000200000000"
            "000000000000000600000000000000000000000000000001000000000000000200000000000000")
CHATML = (b"{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m.content | trim +"
          b" '<|im_end|>' }}\n{% endfor %}{%- if add_generation_prompt %}<|im_start|>assistan"
          b't{% endif -%}')
LANGUAGE = (b'{#- a -#}{% set ns = namespace(n=0) %}{%- for k, v in messages[0].items() if k !'
            b"= 'x' %}{% if loop.first and not (k in ['a'] or v is none) %}{% set ns.n = ns.n "
            b'+ 1 %}{% elif loop.index0 % 2 == 0 %}{% continue %}{% else %}{{ raise_exception('
            b"'a') }}{% endif %}{{ k ~ v | tojson(indent=2) }}{% endfor %}{{ 'a' if ns.n > 0 e"
            b"lse 'b'[::-1] }}{% generation %}{{ messages | selectattr('role', 'equalto', 'use"
            b"r') | list | length }}{% endgeneration %}{{ 'a,b'.split(',')[-1].strip('b') }}")
CHAT = b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}'
LINES = b'{"text": "first"}\n\n{"id": 1, "text": "second"}\n'

TASKS = {
    "hellaswag": {"activity_label": "Car", "ctx_a": "[header] How [title] Start.",
                  "ctx_b": "then THE m\u00e4n", "endings": [" [title] a  b", "[step] c"],
                  "label": "1", "group": "x"},
    "arc": {"question": "Why?", "choices": {"text": ["a", "b"], "label": ["1", "2"]},
            "answerKey": "2"},
    "arc_authors": {"question": {"stem": "Who?", "choices": [{"text": "a", "label": "A"},
                                                             {"text": "b", "label": "B"}]},
                    "answerKey": "A"},
    "text": {"text": "The ship sails", "group": "y"},
    "exact": {"prompt": "2+2=", "answer": ["4", "four"]},
}
GATES = b"""baseline: last.json
gates:
  quality: {figure: tasks.t.acc, at_least: 0.4, drop_at_most: 2%}
  loss: {figure: loss, at_most: 3, rise_at_most: 0.1}
  bias: {figure: tasks.t.acc, groups_differ_at_most: 0.3, groups: [a, b], least_items: 2}
"""
RESULT = {"schema": 2, "manifest_sha256": "0" * 64, "tokenizer": {"name": "t", "sha256": ""},
          "data": {"sha256": "0" * 64, "sequence": 8, "documents": "joined"}, "loss": 2.5,
          "tasks": {"t": {"acc": None, "groups": {"a": {"acc": 1}}}}}


def put(target, name, contents):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(contents)


def archive(kind, *members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as file:
        for name, contents in members:
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            file.addfile(member, io.BytesIO(contents))
        link = tarfile.TarInfo("link.txt")
        link.type = tarfile.SYMTYPE
        link.linkname = "../" * 20
        file.addfile(link)
    return out.getvalue().rstrip(b"\0") + bytes(1100)


def npy(dictionary, array, major=1):
    text = dictionary.encode() + b"\n"
    length = struct.pack("<H" if major == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([major, 0]) + length + text + array


# Templates whose values share lists and texts, so that looking at all of them takes long.
HOSTILE = (b"{% set n = namespace(a=[1], b=[1], s='x') %}{% for i in range(20) %}"
           b"{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% set n.s = n.s ~ n.s %}"
           b"{% endfor %}"
           b"{% set l = [n.s] %}" + b"{% set l = l + l %}" * 9)
HOSTILE_USES = {
    "shared_lists_equal": b"{{ [n.a, n.a, n.a, n.a] == [n.b, n.b, n.b, n.b] }}",
    "shared_lists_json": b"{{ [n.a, n.a] | tojson | length }}",
    "long_texts_json": b"{{ [l, l, l] | tojson }}",
    "long_texts_join": b"{{ [n.s, n.s, n.s, n.s] | join(n.s) | length }}",
    "long_text_parts": b"{% for i in range(9999) %}{% set t = n.s | length + n.s[-1] | length %}"
                       b"{% set t = (n.s ~ 'y') in n.s %}{% endfor %}",
    "least_number": b"{{ (-9223372036854775807 - 1) | abs }}",
}

WRITTEN = {"figures": {"loss": 2.5}, "gates_met": True, "time": "2026-01-02T03:04:05Z",
           "user": "sara", "host": "n1"}
RECORDS = {
    "version.json": {"record": "version", "version": 1, "kind": "checkpoint", "path": "/runs/a",
                     "sha256": "0" * 64, "step": 3, "label": "", "note": "n", **WRITTEN},
    "change.json": {"record": "change", "change": 1, "stage": "production", "version": 1,
                    "sha256": "0" * 64, "action": "rollback", "reason": "slow",
                    "despite_gates": True, **WRITTEN},
}


def main():
    samples = (("a/1.json", b'{"text": "first"}'), ("a/1.jpg", b"\xff\xd8"), ("b.txt", b"second"),
               ("c" * 120 + ".jsonl", LINES))
    ustar = archive(tarfile.USTAR_FORMAT, *samples[:3])
    put("text_streams_fuzz", "lines.gz", gzip.compress(LINES, mtime=0))
    put("text_streams_fuzz", "text.zst", bytes.fromhex(ZSTD))
    put("text_streams_fuzz", "ustar.tar", ustar)
    put("text_streams_fuzz", "gnu.tar", archive(tarfile.GNU_FORMAT, *samples))
    put("text_streams_fuzz", "pax.tar", archive(tarfile.PAX_FORMAT, *samples))
    put("text_streams_fuzz", "archive.tgz", gzip.compress(ustar, mtime=0))
    put("chat_template_fuzz", "chatml", CHATML)
    put("chat_template_fuzz", "language", LANGUAGE + b"\0" + CHAT)
    for name, use in HOSTILE_USES.items():
        put("chat_template_fuzz", name, HOSTILE + use)
    put("token_arrays_fuzz", "megatron.idx", bytes.fromhex(MEGATRON))
    put("token_arrays_fuzz", "rows.npy",
        npy("{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }", bytes(range(12))))
    put("token_arrays_fuzz", "columns.npy",
        npy("{'descr': '>i4', 'fortran_order': True, 'shape': (3, 2)}", bytes(range(24)), 2))
    put("token_arrays_fuzz", "offsets.npy",
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", bytes([0, 1, 1, 4]), 3))
    for name, example in TASKS.items():
        put("eval_tasks_fuzz", name, json.dumps(example).encode() + b"\n")
    put("eval_tasks_fuzz", "array", json.dumps([TASKS["text"]] * 2, indent=1).encode())
    put("eval_gates_fuzz", "gates.yaml", GATES)
    put("eval_gates_fuzz", "result.json", json.dumps(RESULT).encode())
    for name, record in RECORDS.items():
        put("registry_fuzz", name, json.dumps({"schema": 1, "model": "chat", **record}).encode())
    judged = {"step": 1, "gates_met": True, **RESULT}
    put("registry_fuzz", "result.json", json.dumps(judged).encode())


if __name__ == "__main__":
    main()
