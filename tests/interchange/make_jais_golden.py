#!/usr/bin/env python3
"""Makes the golden Jais models in golden/, which transformers has no class for.

    pip install torch safetensors
    python3 make_jais_golden.py      # writes golden/jais and golden/jais_untied

The model is written out here in plain PyTorch, in float64, from the published description (Sengupta
et al., Jais and Jais-chat, 2023, section 3; Press et al., ALiBi, 2022; Shazeer, SwiGLU, 2020) with
the names, layouts and options of the published models. Each model is tiny, with random weights.
expected.json beside it has the ids of a prompt, the logits after each of them, and the ids of a
greedy continuation.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parent / "golden"
PROMPT, CONTINUATION = 9, 200
VOCAB, CONTEXT, HIDDEN, HEADS, INNER, LAYERS = 40, 224, 12, 3, 17, 2
COMMON = {
    "activation_function": "swiglu", "architectures": ["JAISLMHeadModel"], "attn_pdrop": 0.0,
    "auto_map": {"AutoConfig": "configuration_jais.JAISConfig",
                 "AutoModelForCausalLM": "modeling_jais.JAISLMHeadModel"},
    "bos_token_id": 0, "embd_pdrop": 0.0, "eos_token_id": 0, "initializer_range": 0.3,
    "layer_norm_epsilon": 1e-05, "model_type": "jais", "n_embd": HIDDEN, "n_head": HEADS,
    "n_inner": INNER, "n_layer": LAYERS, "n_positions": CONTEXT, "pad_token_id": 0,
    "position_embedding_type": "alibi", "reorder_and_upcast_attn": False, "resid_pdrop": 0.0,
    "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True, "use_cache": True,
    "transformers_version": "4.28.1", "vocab_size": VOCAB}
# Name: (further options, element type). The second has the option names of the first release.
MODELS = {
    "jais": ({"mup_embeddings_scale": 2.5, "mup_output_alpha": 1.5, "mup_width_scale": 0.3,
              "mup_scale_qk_dot_by_d": True, "alibi_scaling": None, "torch_dtype": "float32"},
             torch.float32),
    "jais_untied": ({"embeddings_scale": 1.5, "width_scale": 0.625, "scale_qk_dot_by_d": False,
                     "tie_word_embeddings": False, "torch_dtype": "bfloat16"}, torch.bfloat16),
}


def slopes_of(heads):
    """The rule of the ALiBi paper, and of its authors' code where heads is no power of two."""
    if math.log2(heads).is_integer():
        first = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [first * first**i for i in range(heads)]
    below = 2 ** math.floor(math.log2(heads))
    return slopes_of(below) + slopes_of(2 * below)[0::2][:heads - below]


def shapes(config):
    yield "transformer.wte.weight", (VOCAB, HIDDEN)
    for layer in range(LAYERS):
        name = f"transformer.h.{layer}."
        for norm in ("ln_1", "ln_2"):
            yield name + norm + ".weight", (HIDDEN,)
            yield name + norm + ".bias", (HIDDEN,)
        for product, rows, columns in (("attn.c_attn", HIDDEN, 3 * HIDDEN),
                                       ("attn.c_proj", HIDDEN, HIDDEN),
                                       ("mlp.c_fc", HIDDEN, INNER), ("mlp.c_fc2", HIDDEN, INNER),
                                       ("mlp.c_proj", INNER, HIDDEN)):
            yield name + product + ".weight", (rows, columns)
            yield name + product + ".bias", (columns,)
    yield "transformer.ln_f.weight", (HIDDEN,)
    yield "transformer.ln_f.bias", (HIDDEN,)
    if not config.get("tie_word_embeddings", True):
        yield "lm_head.weight", (VOCAB, HIDDEN)


def random_weights(config, dtype):
    weights = {}
    for name, shape in shapes(config):
        values = torch.randn(shape, dtype=torch.float64)
        values *= 0.3 if len(shape) == 2 else 0.2
        is_norm = name.split(".")[-2].startswith("ln_") and name.endswith(".weight")
        weights[name] = (values + (1 if is_norm else 0)).to(dtype)
    slopes = torch.tensor(slopes_of(HEADS), dtype=torch.float64)
    weights["transformer.relative_pe.slopes"] = slopes[:, None].to(dtype)
    return weights


def logits_of(config, weights, ids):
    w = {name: values.double() for name, values in weights.items()}
    conv1d = lambda x, name: x @ w[name + ".weight"] + w[name + ".bias"]
    norm = lambda x, name: F.layer_norm(x, (HIDDEN,), w[name + ".weight"], w[name + ".bias"],
                                        config["layer_norm_epsilon"])
    by_width = config.get("mup_scale_qk_dot_by_d", config.get("scale_qk_dot_by_d", False))
    width = HIDDEN // HEADS
    times = torch.arange(len(ids))
    distance = (times[None, :] - times[:, None]).abs()
    slopes = torch.tensor(slopes_of(HEADS), dtype=torch.float64)
    bias = -slopes[:, None, None] * distance
    hidden_keys = times[None, :] > times[:, None]
    x = w["transformer.wte.weight"][torch.tensor(ids)]
    x = x * config.get("mup_embeddings_scale", config.get("embeddings_scale"))
    for layer in range(LAYERS):
        name = f"transformer.h.{layer}."
        q, k, v = (part.unflatten(-1, (HEADS, width)).transpose(0, 1) for part in
                   conv1d(norm(x, name + "ln_1"), name + "attn.c_attn").split(HIDDEN, -1))
        scores = q @ k.transpose(1, 2) / width ** (1.0 if by_width else 0.5) + bias
        mixed = scores.masked_fill(hidden_keys, -math.inf).softmax(-1) @ v
        x = x + conv1d(mixed.transpose(0, 1).flatten(1), name + "attn.c_proj")
        y = norm(x, name + "ln_2")
        inner = conv1d(y, name + "mlp.c_fc") * F.silu(conv1d(y, name + "mlp.c_fc2"))
        x = x + conv1d(inner, name + "mlp.c_proj")
    head = w.get("lm_head.weight", w["transformer.wte.weight"])
    scale = (config["width_scale"] if "width_scale" in config else
             config["mup_output_alpha"] * config["mup_width_scale"])
    return norm(x, "transformer.ln_f") @ head.T * scale


def make(name):
    options, dtype = MODELS[name]
    config = {**COMMON, **options}
    torch.manual_seed(len(name))
    weights = random_weights(config, dtype)
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    ids = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(PROMPT)]
    logits = logits_of(config, weights, ids).tolist()
    text = list(ids)
    for _ in range(CONTINUATION):
        text.append(int(logits_of(config, weights, text)[-1].argmax()))
    expected = {"ids": ids, "logits": [[round(x, 8) for x in row] for row in logits],
                "continuation": text[PROMPT:]}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    for each in MODELS:
        make(each)
