#!/usr/bin/env python3
"""Compares the speed of packed weights with that of llama.cpp, by turns on the same weights.

    trireme export CHECKPOINT --format gguf --dtype q8_0 --out q8
    trireme export CHECKPOINT --format gguf --dtype q4_0 --out q4
    benchmarks/peers/llama_cpp.py build/release/trireme LLAMA-BENCH CHECKPOINT q8 q4 DATA

LLAMA-BENCH: llama.cpp's program of this name, built for this processor. DATA: a dataset of at least
2,048 tokens of the model's vocabulary. Prints, for 8 and 4 bits, the tokens per second of both
programs with as many threads as there are cores, when they generate (32 or 16 tokens) and when they
read (512 tokens), and the ratios of Trireme's to llama.cpp's, with their median. Trireme's rate of
reading is that of an evaluation, which computes the logits of every token and the loss, too;
llama-bench computes those of the last token.
"""
import json
import os
import re
import statistics
import subprocess
import sys

TURNS = 3
TOKENS = 512
SAMPLES = 4


def output(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)


def of_llama_cpp(bench, folder):
    """Returns tokens per second of generating and of reading."""
    told = output(bench, "-m", f"{folder}/model.gguf", "-t", os.cpu_count(), "-p", TOKENS, "-n", 32,
                  "-r", 2, "-o", "jsonl")
    lines = map(json.loads, told.stdout.splitlines())
    rates = {line["n_gen"] > 0: line["avg_ts"] for line in lines}
    return rates[True], rates[False]


def of_trireme(program, checkpoint, data, kind):
    told = output(program, "eval", "--checkpoint", checkpoint, "--data", data, "--quantize", kind,
                  "--sequence", TOKENS, "--samples", SAMPLES, "--precision", "bf16",
                  "--any-tokenizer", "--json")
    # The packed weights are evaluated first, and each evaluation ends with the time that it took.
    seconds = float(re.search(rf"{SAMPLES}/{SAMPLES}\s+in ([0-9.]+)s", told.stderr).group(1))
    return (json.loads(told.stdout)["quantize"]["packed"]["tokens_per_s"],
            TOKENS * SAMPLES / seconds)


def main():
    program, bench, checkpoint, eight, four, data = sys.argv[1:]
    ratios = {}
    for _ in range(TURNS):
        for kind, folder in (("int8", eight), ("int4", four)):
            theirs = of_llama_cpp(bench, folder)
            ours = of_trireme(program, checkpoint, data, kind)
            for what, mine, other in zip(("generating", "reading"), ours, theirs):
                ratios.setdefault((kind, what), []).append(mine / other)
                print(f"{kind} {what:<10} {mine:7.1f} tokens/s, llama.cpp {other:7.1f}: "
                      f"{mine / other:.2f}", flush=True)
    for (kind, what), found in ratios.items():
        print(f"{kind} {what:<10} median ratio {statistics.median(found):.2f} of {len(found)}")


if __name__ == "__main__":
    main()
