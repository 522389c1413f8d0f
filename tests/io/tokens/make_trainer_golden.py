#!/usr/bin/env python3
"""Makes the golden vectors of tokenizer training with Hugging Face's trainer.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
    venv/bin/python tests/io/tokens/make_trainer_golden.py

trains byte-level BPEs on small corpora and writes corpora, options and the trained tokens and
merges to tests/io/tokens/golden/trained.json.
"""
import json
import random

from make_golden import FOLDER, LLAMA3, QWEN2, TEXTS
from tokenizers import Regex, Tokenizer, models
from tokenizers import pre_tokenizers as pre
from tokenizers import trainers


def pre_tokenizer(pattern):
    if pattern == "gpt2":
        return pre.ByteLevel(add_prefix_space=False)
    regex = {"llama3": LLAMA3, "qwen2": QWEN2}[pattern]
    return pre.Sequence([pre.Split(Regex(regex), "isolated"),
                         pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def repetitive(count, letters, length):
    """Returns texts in which many pairs occur equally often, and tokens arise in several ways."""
    draw = random.Random(2)
    return ["".join(draw.choice(letters) for _ in range(draw.randrange(1, length)))
            for _ in range(count)]


def trained(texts, pattern, **options):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer(pattern)
    trainer = trainers.BpeTrainer(initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False,
                                  **options)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return {"texts": texts, "pattern": pattern, "vocab": options["vocab_size"],
            "min_frequency": options.get("min_frequency", 0),
            "special": options.get("special_tokens", []),
            "tokens": tokens, "merges": [merge if isinstance(merge, list) else merge.split(" ")
                                         for merge in model["merges"]]}


def main():
    prose = [t for t in TEXTS if t] * 2
    cases = [
        trained(prose, "gpt2", vocab_size=600, special_tokens=["<|endoftext|>"]),
        trained(prose, "llama3", vocab_size=900, min_frequency=2,
                special_tokens=["<|endoftext|>", "<pad>"]),
        trained(prose, "qwen2", vocab_size=400, min_frequency=3),
        trained(repetitive(300, "ab ", 12), "gpt2", vocab_size=500, min_frequency=2),
        trained(repetitive(300, "aaab", 30), "gpt2", vocab_size=420, min_frequency=2),
        trained(repetitive(500, "abcdef", 9), "gpt2", vocab_size=700, special_tokens=["abc"]),
    ]
    path = FOLDER / "trained.json"
    path.write_text(json.dumps({"cases": cases}, ensure_ascii=False, indent=0) + "\n")
    print(path.stat().st_size, [len(case["merges"]) for case in cases])


if __name__ == "__main__":
    main()
