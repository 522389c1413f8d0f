#!/usr/bin/env python3
"""Makes the golden models in golden/, and judges exported ones, with Hugging Face's transformers.

    pip install torch transformers
    python3 make_golden.py [MODEL]...           # writes golden/<model>/
    python3 make_golden.py --judge GOLDEN DIR   # does from_pretrained(DIR) give the golden logits?

Each model is tiny, with random weights, and is saved by transformers itself. expected.json beside
it has the ids of a prompt, the logits after each of them, computed in fp32, and the ids of a greedy
continuation.
"""

import json
import pathlib
import sys

import torch
from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM)

FOLDER = pathlib.Path(__file__).resolve().parent / "golden"
PROMPT = 9
CONTINUATION = 200
VOCAB, CONTEXT = 40, 224
LLAMA = {"vocab_size": VOCAB, "hidden_size": 16, "intermediate_size": 22, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": CONTEXT,
         "rms_norm_eps": 1e-5, "initializer_range": 0.3, "bos_token_id": 1, "eos_token_id": 2}
GPT2 = {"vocab_size": VOCAB, "n_positions": CONTEXT, "n_embd": 12, "n_layer": 2, "n_head": 3,
        "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 0}
SCALING = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 32}

# Name: (model, element type, size of a file).
MODELS = {
    "gpt2": (lambda: GPT2LMHeadModel(GPT2Config(**GPT2)), torch.float32, "14KB"),
    "gpt2_untied": (lambda: GPT2LMHeadModel(GPT2Config(
        **{**GPT2, "n_layer": 1, "n_inner": 20}, tie_word_embeddings=False)), torch.float16, "1GB"),
    "llama2": (lambda: LlamaForCausalLM(LlamaConfig(
        **{**LLAMA, "num_key_value_heads": 4}, rope_theta=10000.0)), torch.float32, "9KB"),
    "llama3": (lambda: LlamaForCausalLM(LlamaConfig(
        **LLAMA, rope_theta=100.0, rope_scaling=SCALING, tie_word_embeddings=True, head_dim=6)),
        torch.bfloat16, "1GB"),
    "mistral": (lambda: MistralForCausalLM(MistralConfig(
        **LLAMA, sliding_window=None, rope_theta=1000.0)), torch.bfloat16, "1GB"),
    "qwen2": (lambda: Qwen2ForCausalLM(Qwen2Config(
        **LLAMA, rope_theta=1000.0, tie_word_embeddings=True)), torch.bfloat16, "1GB"),
}


def logits_of(model, ids):
    with torch.no_grad():
        return model.eval()(torch.tensor([ids])).logits[0]


def continuation_of(model, ids):
    """Chooses the most likely token each time, without a cache, so that nothing is approximated."""
    ids = list(ids)
    for _ in range(CONTINUATION):
        ids.append(int(logits_of(model, ids)[-1].argmax()))
    return ids[PROMPT:]


def make(name):
    build, dtype, file_size = MODELS[name]
    torch.manual_seed(len(name))
    model = build().to(dtype)
    with torch.no_grad():  # biases and norms start as zeros and ones
        for key, value in model.named_parameters():
            if value.dim() == 1:
                value += 0.2 * torch.randn(value.shape).to(dtype)
    folder = FOLDER / name
    model.save_pretrained(folder, max_shard_size=file_size)
    (folder / "generation_config.json").unlink(missing_ok=True)
    # Not the model itself, whose rotary frequencies were rounded with its weights.
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(PROMPT)]
    expected = {"ids": ids, "logits": [[round(x, 8) for x in row] for row in
                                       logits_of(model, ids).tolist()],
                "continuation": continuation_of(model, ids)}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


def judge(golden, exported):
    expected = json.loads((FOLDER / golden / "expected.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(exported, dtype=torch.float32)
    difference = (logits_of(model, expected["ids"]) - torch.tensor(expected["logits"])).abs().max()
    same = continuation_of(model, expected["ids"]) == expected["continuation"]
    print(f"{golden}: largest difference {float(difference):.2g}, same continuation: {same}")
    return 0 if difference <= 1e-5 and same else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--judge"]:
        sys.exit(judge(*sys.argv[2:]))
    for each in sys.argv[1:] or MODELS:
        make(each)
