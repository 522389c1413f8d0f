#!/usr/bin/env python3
"""Makes the golden files beside it: losses, gradients and ten AdamW steps of tiny models.

The models are written out here in plain PyTorch, in float64, from the published definitions of
GPT-2, Llama and Jais, under Hugging Face's parameter names. Initial weights and tokens come from an
integer hash that the C++ test repeats, so that the files hold results only.

    pip install torch numpy && python3 make_golden.py            # writes *.json and *.gradients.f32
    pip install transformers && python3 make_golden.py --check   # compares with transformers
"""

import json
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
MASK = (1 << 64) - 1
BATCH, TIME, STEPS = 2, 17, 10
OPTIMIZER = {"lr": 0.01, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "clip": 0.5}

CASES = {
    "gpt2": {
        "family": "gpt2", "layers": 2, "hidden": 21, "heads": 3, "kv_heads": 3, "head_dim": 7,
        "ffn": 84, "vocab": 67, "context": 19, "tie_embeddings": True, "norm_epsilon": 1e-5,
    },
    "gpt2_untied": {
        "family": "gpt2", "layers": 1, "hidden": 15, "heads": 3, "kv_heads": 3, "head_dim": 5,
        "ffn": 31, "vocab": 67, "context": 17, "tie_embeddings": False, "norm_epsilon": 1e-5,
    },
    "jais": {
        "family": "gpt2", "layers": 2, "hidden": 18, "heads": 6, "kv_heads": 6, "head_dim": 3,
        "ffn": 25, "vocab": 67, "context": 19, "tie_embeddings": True, "norm_epsilon": 1e-5,
        "alibi": True, "swiglu": True, "embedding_scale": 1.75, "logit_scale": 0.6,
        "attention_scale": 1 / 3,
    },
    "llama": {
        "family": "llama", "layers": 2, "hidden": 21, "heads": 3, "kv_heads": 1, "head_dim": 6,
        "ffn": 35, "vocab": 67, "context": 32, "tie_embeddings": False, "norm_epsilon": 1e-6,
        "rope_theta": 10000.0,
    },
    "llama3_tied": {
        "family": "llama", "layers": 2, "hidden": 18, "heads": 6, "kv_heads": 2, "head_dim": 6,
        "ffn": 35, "vocab": 67, "context": 64, "tie_embeddings": True, "norm_epsilon": 1e-5,
        "rope_theta": 100.0,
        "rope_scaling": {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_context": 32},
    },
}


# --- numbers that both sides can make ---------------------------------------------------------

def splitmix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def fnv1a(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def weights(name, shape):
    """[-1/4, 1/4) for matrices, [-1/16, 1/16) for biases, 1 +- 1/8 for norms; exact in float32."""
    h = fnv1a(name)
    n = math.prod(shape)
    bits = [splitmix64((h + e) & MASK) >> 40 for e in range(n)]
    u = np.array(bits, dtype=np.float64) * 2.0**-23 - 1
    if len(shape) == 2:
        x = u / 4
    elif name.endswith(".bias"):
        x = u / 16
    else:
        x = 1 + u / 8
    return torch.tensor(x.astype(np.float32).astype(np.float64).reshape(shape))


def tokens(step, vocab):
    """ids and targets [B,T] of a step."""
    n = BATCH * (TIME + 1)
    x = [splitmix64(1000003 * step + i) % vocab for i in range(n)]
    x = torch.tensor(x).reshape(BATCH, TIME + 1)
    return x[:, :-1].contiguous(), x[:, 1:].contiguous()


# --- models ------------------------------------------------------------------------------------

def shapes(c):
    h, f, v = c["hidden"], c["ffn"], c["vocab"]
    q, kv = c["heads"] * c["head_dim"], c["kv_heads"] * c["head_dim"]
    out = {}
    if c["family"] == "gpt2":
        out["transformer.wte.weight"] = (v, h)
        if not c.get("alibi"):
            out["transformer.wpe.weight"] = (c["context"], h)
        for i in range(c["layers"]):
            p = f"transformer.h.{i}."
            for norm in ("ln_1", "ln_2"):
                out[p + norm + ".weight"] = out[p + norm + ".bias"] = (h,)
            gate = (("mlp.c_fc2", h, f),) if c.get("swiglu") else ()
            for name, a, b in (("attn.c_attn", h, 3 * h), ("attn.c_proj", h, h),
                               ("mlp.c_fc", h, f), *gate, ("mlp.c_proj", f, h)):
                out[p + name + ".weight"] = (a, b)
                out[p + name + ".bias"] = (b,)
        out["transformer.ln_f.weight"] = out["transformer.ln_f.bias"] = (h,)
    else:
        out["model.embed_tokens.weight"] = (v, h)
        for i in range(c["layers"]):
            p = f"model.layers.{i}."
            out[p + "input_layernorm.weight"] = out[p + "post_attention_layernorm.weight"] = (h,)
            out[p + "self_attn.q_proj.weight"] = (q, h)
            out[p + "self_attn.k_proj.weight"] = out[p + "self_attn.v_proj.weight"] = (kv, h)
            out[p + "self_attn.o_proj.weight"] = (h, q)
            out[p + "mlp.gate_proj.weight"] = out[p + "mlp.up_proj.weight"] = (f, h)
            out[p + "mlp.down_proj.weight"] = (h, f)
        out["model.norm.weight"] = (h,)
    if not c["tie_embeddings"]:
        out["lm_head.weight"] = (v, h)
    return out


def alibi_slopes(heads):
    """The rule of the ALiBi paper, and of its authors' code where heads is no power of two."""
    if heads & (heads - 1) == 0:
        return [2 ** (-8 * (i + 1) / heads) for i in range(heads)]
    below = 2 ** int(math.log2(heads))
    return alibi_slopes(below) + alibi_slopes(2 * below)[0::2][:heads - below]


def attention(q, k, v, scale=0, alibi=False):
    """q [B,H,T,D], k and v [B,Hkv,T,D]; causal softmax(scale q k^T + bias) v, where the scale is
    1 / sqrt(D) if it is 0, and the bias that of ALiBi, or none."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    t = q.shape[2]
    if alibi:
        distance = torch.arange(t)[None, :] - torch.arange(t)[:, None]
        scores = scores + torch.tensor(alibi_slopes(q.shape[1]))[:, None, None] * distance
    future = torch.ones(t, t, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(-1) @ v


def split_heads(x, d):
    return x.unflatten(-1, (-1, d)).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


def gpt2_logits(c, w, ids):
    x = w["transformer.wte.weight"][ids]
    if not c.get("alibi"):
        x = x + w["transformer.wpe.weight"][: ids.shape[1]]
    x = x * c.get("embedding_scale", 1)
    norm = lambda x, n: F.layer_norm(x, (c["hidden"],), w[n + ".weight"], w[n + ".bias"],
                                     c["norm_epsilon"])
    conv1d = lambda x, n: x @ w[n + ".weight"] + w[n + ".bias"]
    for i in range(c["layers"]):
        p = f"transformer.h.{i}."
        qkv = conv1d(norm(x, p + "ln_1"), p + "attn.c_attn").chunk(3, -1)
        heads = attention(*(split_heads(part, c["head_dim"]) for part in qkv),
                          c.get("attention_scale", 0), c.get("alibi", False))
        x = x + conv1d(merge_heads(heads), p + "attn.c_proj")
        y = norm(x, p + "ln_2")
        inner = conv1d(y, p + "mlp.c_fc")
        inner = (inner * F.silu(conv1d(y, p + "mlp.c_fc2")) if c.get("swiglu")
                 else F.gelu(inner, approximate="tanh"))
        x = x + conv1d(inner, p + "mlp.c_proj")
    head = w.get("lm_head.weight", w["transformer.wte.weight"])
    return norm(x, "transformer.ln_f") @ head.T * c.get("logit_scale", 1)


def rope_frequencies(c):
    d = c["head_dim"]
    freqs = [c["rope_theta"] ** (-2.0 * j / d) for j in range(d // 2)]
    s = c.get("rope_scaling")
    if s is None:
        return torch.tensor(freqs)
    out = []
    for freq in freqs:
        wavelen, old = 2 * math.pi / freq, s["original_context"]
        if wavelen < old / s["high_freq_factor"]:
            out.append(freq)
        elif wavelen > old / s["low_freq_factor"]:
            out.append(freq / s["factor"])
        else:
            smooth = (old / wavelen - s["low_freq_factor"]) / (
                s["high_freq_factor"] - s["low_freq_factor"])
            out.append(freq * ((1 - smooth) / s["factor"] + smooth))
    return torch.tensor(out)


def rope(x, freqs):
    """x [B,H,T,D]: halves rotated, as Hugging Face does."""
    angles = torch.arange(x.shape[2])[:, None] * freqs
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x.chunk(2, -1)
    return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), -1)


def llama_logits(c, w, ids):
    x = w["model.embed_tokens.weight"][ids]
    freqs = rope_frequencies(c)
    norm = lambda x, n: w[n + ".weight"] * (
        x * (x.square().mean(-1, keepdim=True) + c["norm_epsilon"]).rsqrt())
    linear = lambda x, n: x @ w[n + ".weight"].T
    for i in range(c["layers"]):
        p = f"model.layers.{i}."
        y = norm(x, p + "input_layernorm")
        q, k, v = (split_heads(linear(y, p + f"self_attn.{n}_proj"), c["head_dim"]) for n in "qkv")
        heads = attention(rope(q, freqs), rope(k, freqs), v)
        x = x + linear(merge_heads(heads), p + "self_attn.o_proj")
        y = norm(x, p + "post_attention_layernorm")
        inner = F.silu(linear(y, p + "mlp.gate_proj")) * linear(y, p + "mlp.up_proj")
        x = x + linear(inner, p + "mlp.down_proj")
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return norm(x, "model.norm") @ head.T


def logits_of(c, w, ids):
    return (gpt2_logits if c["family"] == "gpt2" else llama_logits)(c, w, ids)


# --- golden values -----------------------------------------------------------------------------

def initial(c):
    return {n: weights(n, s).requires_grad_() for n, s in shapes(c).items()}


def loss_of(c, w, step):
    ids, targets = tokens(step, c["vocab"])
    return F.cross_entropy(logits_of(c, w, ids).flatten(0, 1), targets.flatten())


def train(c):
    w, o = initial(c), OPTIMIZER
    matrices = [p for p in w.values() if p.dim() >= 2]
    vectors = [p for p in w.values() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": o["weight_decay"]},
              {"params": vectors, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"])
    losses, norms = [], []
    for step in range(STEPS):
        adamw.zero_grad()
        loss = loss_of(c, w, step)
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(list(w.values()), o["clip"])))
        adamw.step()
        losses.append(float(loss.detach()))
    return losses, norms


def make(name, c, folder):
    w = initial(c)
    loss = loss_of(c, w, 0)
    loss.backward()
    ids, _ = tokens(0, c["vocab"])
    last = logits_of(c, w, ids[:1])[0, -1].detach()
    losses, norms = train(c)
    order = sorted(w)
    golden = {
        "config": c, "batch": BATCH, "time": TIME, "optimizer": OPTIMIZER,
        "loss": float(loss.detach()), "last_logits": last.tolist(),
        "parameters": [{"name": n, "shape": list(w[n].shape)} for n in order],
        "losses": losses, "gradient_norms": norms,
    }
    (folder / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")
    flat = np.concatenate([w[n].grad.numpy().ravel() for n in order]).astype("<f4")
    flat.tofile(folder / f"{name}.gradients.f32")
    print(f"{name}: {flat.size} parameters, loss {losses[0]:.6f} -> {losses[-1]:.6f}, "
          f"norms {norms[0]:.3f} .. {norms[-1]:.3f}")


# --- the same models by transformers ------------------------------------------------------------

def transformers_model(c):
    import transformers as tf
    if c["family"] == "gpt2":
        config = tf.GPT2Config(
            vocab_size=c["vocab"], n_positions=c["context"], n_embd=c["hidden"],
            n_layer=c["layers"], n_head=c["heads"], n_inner=c["ffn"],
            layer_norm_epsilon=c["norm_epsilon"],
            tie_word_embeddings=c["tie_embeddings"], resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
        return tf.GPT2LMHeadModel(config)
    s = c.get("rope_scaling")
    rope_parameters = {"rope_type": "default", "rope_theta": c["rope_theta"]}
    if s is not None:
        rope_parameters |= {"rope_type": "llama3", "factor": s["factor"],
                            "low_freq_factor": s["low_freq_factor"],
                            "high_freq_factor": s["high_freq_factor"],
                            "original_max_position_embeddings": s["original_context"]}
    config = tf.LlamaConfig(
        vocab_size=c["vocab"], hidden_size=c["hidden"], intermediate_size=c["ffn"],
        num_hidden_layers=c["layers"], num_attention_heads=c["heads"],
        num_key_value_heads=c["kv_heads"], head_dim=c["head_dim"], rms_norm_eps=c["norm_epsilon"],
        max_position_embeddings=c["context"], rope_parameters=rope_parameters,
        tie_word_embeddings=c["tie_embeddings"])
    return tf.LlamaForCausalLM(config)


def compare(name, c):
    if c.get("alibi"):
        print(f"{name}: transformers has no class for it")
        return
    model = transformers_model(c).double().eval()
    w = initial(c)
    _, unexpected = model.load_state_dict({n: p.detach() for n, p in w.items()}, strict=False)
    assert not unexpected, unexpected
    model.tie_weights()
    ids, _ = tokens(0, c["vocab"])
    with torch.no_grad():
        theirs, ours = model(ids).logits, logits_of(c, w, ids)
    difference = float((theirs - ours).abs().max())
    print(f"{name}: largest difference of logits from transformers {difference:.2e}")
    assert difference < 1e-5, "transformers computes rotary angles in float32; more is an error"


if __name__ == "__main__":
    for case, config in CASES.items():
        if "--check" in sys.argv:
            compare(case, config)
        else:
            make(case, config, pathlib.Path(__file__).parent)
