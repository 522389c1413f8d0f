#!/usr/bin/env python3
"""Judges GGUF files with ggml's own Python package.

    pip install numpy gguf
    python3 judge_gguf.py FILE REFERENCE      # two exports of one checkpoint, the second as fp32
    python3 judge_gguf.py --golden            # writes golden_gguf
    python3 judge_gguf.py --tokens LLAMA_TOKENIZE FILE TEXT ...   # tokenizers, sentencepiece

The first form prints, for each type in FILE, how many tensors have it, and the root mean square of
their differences from REFERENCE, relative to that of their elements. The second one writes blocks
of arbitrary bytes and what the package reads from them. The third one compares the ids that
llama.cpp's program llama-tokenize gives to each text, with the tokenizer in FILE, with those of
Hugging Face's tokenizers, with the tokenizer.json beside FILE, or else of SentencePiece, with the
tokenizer.model.
"""

import collections
import math
import pathlib
import subprocess
import sys

import gguf
import numpy

FOLDER = pathlib.Path(__file__).resolve().parent / "golden_gguf"
BLOCKS = 4


def elements_of(tensor):
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).ravel()


def judge(path, reference):
    expected = {tensor.name: tensor for tensor in gguf.GGUFReader(reference).tensors}
    counts, errors, squares = (collections.Counter() for _ in range(3))
    for tensor in gguf.GGUFReader(path).tensors:
        kind = tensor.tensor_type.name
        right = elements_of(expected.pop(tensor.name)).astype(numpy.float64)
        counts[kind] += 1
        errors[kind] += numpy.square(elements_of(tensor) - right).sum()
        squares[kind] += numpy.square(right).sum()
    assert not expected, f"missing: {sorted(expected)}"
    for kind, count in counts.items():
        error = math.sqrt(errors[kind] / squares[kind])
        print(f"{kind}: {count} tensors, relative error {error:.4g}")


def make_golden():
    kind = gguf.GGMLQuantizationType.Q4_K
    _, size = gguf.GGML_QUANT_SIZES[kind]
    random = numpy.random.default_rng(1)
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=numpy.uint8)
    blocks[:, :4] = random.normal(0, 0.01, (BLOCKS, 2)).astype(numpy.float16).view(numpy.uint8)
    values = gguf.quants.dequantize(blocks, kind).astype(numpy.float32)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "q4_k.blocks").write_bytes(blocks.tobytes())
    (FOLDER / "q4_k.f32").write_bytes(values.tobytes())


def llama_ids(program, path, text):
    command = [program, "-m", path, "-f", text, "--ids", "--log-disable", "--no-escape"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [int(number) for number in printed.strip().strip("[]").split(",") if number.strip()]


def opened(folder):
    """Returns how the tokenizer's own files encode and decode."""
    if (folder / "tokenizer.json").exists():
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        return lambda text: tokenizer.encode(text).ids, tokenizer.decode
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    return lambda text: model.encode(text, add_bos=True), model.decode


def judge_tokens(program, path, texts):
    encode, decode = opened(pathlib.Path(path).parent)
    for text in texts:
        expected = encode(pathlib.Path(text).read_bytes().decode())
        found = llama_ids(program, path, text)
        pairs = enumerate(zip(expected, found))
        at = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(found)))
        if found == expected:
            print(f"{text}: {len(expected)} ids, all equal")
            continue
        near = decode(expected[max(at - 5, 0):at + 5])
        print(f"{text}: {len(expected)} and {len(found)} ids, different from id {at} on, "
              f"near {near!r}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--golden"]:
        make_golden()
    elif sys.argv[1:2] == ["--tokens"]:
        judge_tokens(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        judge(*sys.argv[1:])
