#!/usr/bin/env python3
"""Compares token ids and speeds with Hugging Face's tokenizers on much text.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3
    venv/bin/python benchmarks/tokenizers/compare.py build/release/trireme TOKENIZER... \\
        [--text FOLDER]... [--megabytes 20]

TOKENIZER: tokenizer.json, or a golden file of tests/io/tokens. The text is made of random words in
many scripts, emoji, random characters and bytes that are not UTF-8, and of the files in the
folders. Prints for each tokenizer whether all ids are equal, and the megabytes per second of one
thread of each program; the exit code is 1 if any ids differ.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer  # noqa: E402 (reads the environment)

SCRIPTS = {
    "latin": (0x61, 0x7A), "latin-extended": (0xC0, 0x24F), "greek": (0x3B1, 0x3C9),
    "cyrillic": (0x430, 0x44F), "armenian": (0x561, 0x586), "hebrew": (0x5D0, 0x5EA),
    "arabic": (0x620, 0x652), "devanagari": (0x904, 0x939), "bengali": (0x995, 0x9B9),
    "tamil": (0xB85, 0xBB9), "thai": (0xE01, 0xE30), "georgian": (0x10D0, 0x10F0),
    "hangul": (0xAC00, 0xD7A3), "ethiopic": (0x1200, 0x1248), "hiragana": (0x3041, 0x3096),
    "han": (0x4E00, 0x9FFF), "emoji": (0x1F300, 0x1F64F),
}


def random_document(draw):
    kind = draw.choice(list(SCRIPTS) + ["any", "broken"])
    if kind == "broken":
        return bytes(draw.choices(range(1, 256), k=draw.randrange(1, 400)))
    if kind == "any":
        # No characters of which the versions of Unicode in tokenizers differ (docs/tokenizers.md).
        codes = draw.choices(range(1, 0x600), k=200)
        return "".join(map(chr, codes)).encode()
    low, high = SCRIPTS[kind]
    words = []
    for _ in range(draw.randrange(1, 300)):
        word = "".join(chr(draw.randint(low, high)) for _ in range(draw.randrange(1, 9)))
        words.append(word + draw.choice(["", "", "", "", ",", ".", "!", "'s", " 123", "\n", "\t"]))
    return draw.choice([" ", " ", "  "]).join(words).encode()


def documents(folders, size):
    """Returns texts of `size` bytes together: up to half from files, the others random."""
    draw = random.Random(7)
    found = []
    total = 0
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if total < size * 3 // 4 and path.is_file() and path.stat().st_size < 1 << 20:
                data = path.read_bytes().replace(b"\0", b"")
                found.append(data)
                total += len(data)
    while total < size:
        found.append(random_document(draw))
        total += len(found[-1])
    return [each for each in found if each]


def load(path):
    definition = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    definition = definition.get("tokenizer", definition)
    return definition, Tokenizer.from_str(json.dumps(definition))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("tokenizers", nargs="+")
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--megabytes", type=float, default=20)
    options = parser.parse_args()
    texts = documents(options.text, int(options.megabytes * 1e6))
    megabytes = sum(map(len, texts)) * 1e-6
    print(f"{len(texts)} texts, {megabytes:.1f} MB")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = pathlib.Path(folder, "texts")
        corpus.write_bytes(b"\0".join(texts) + b"\0")
        strings = [text.decode(errors="replace") for text in texts]
        for path in options.tokenizers:
            definition, other = load(path)
            own = pathlib.Path(folder, "tokenizer.json")
            own.write_text(json.dumps(definition), encoding="utf-8")
            command = [options.program, "tokenizer", "encode", own, corpus, "--null"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                differ = 0
                seconds = 0.0
                for text, line in zip(strings, process.stdout):
                    start = time.process_time()
                    ids = other.encode(text, add_special_tokens=False).ids
                    seconds += time.process_time() - start
                    if line.split() != [str(i) for i in ids]:
                        differ += 1
                        if differ <= 3:
                            print(f"  differs: {text[:200]!r}")
                rest = process.stdout.read()
            if rest or process.returncode != 0:
                sys.exit(f"{path}: the program ended with {process.returncode}")
            counted = json.loads(subprocess.run([*command, "--count", "--json"], check=True,
                                                stdout=subprocess.PIPE).stdout)
            speed = megabytes / counted["seconds"]
            print(f"{pathlib.Path(path).stem}: {differ} of {len(texts)} texts differ; "
                  f"{speed:.1f} MB/s, tokenizers {megabytes / seconds:.1f} MB/s, "
                  f"ratio {speed * seconds / megabytes:.2f}")
            wrong += differ
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
