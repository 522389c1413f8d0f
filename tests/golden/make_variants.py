#!/usr/bin/env python3
"""Makes variants.json beside it: ten steps of tiny models with the other optimizers, the other
terms of the loss, a moving average of the weights, dropout of attention's weights, samples of
several documents, and a teacher.

Models, weights and tokens are those of make_golden.py; optimizers and losses are PyTorch's, in
float64. Dropout's masks come from a Philox written out here after the paper (Salmon et al., 2011).
Documents are kept apart by a mask of the whole samples' scores and by positions from 0 in each.

    pip install torch numpy && python3 make_variants.py
    pip install transformers && python3 make_variants.py --check   # the masks, with transformers
"""

import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

import make_golden as base

CLIP = 0.5
VARIANTS = {
    "terms": {"case": "gpt2", "label_smoothing": 0.1, "z_loss": 0.01},
    "terms_llama": {"case": "llama", "label_smoothing": 0.25, "z_loss": 0.001},
    "sgd": {"case": "llama", "optimizer": "sgd", "lr": 0.5, "momentum": 0.75, "nesterov": False,
            "weight_decay": 0.01},
    "sgd_nesterov": {"case": "gpt2", "optimizer": "sgd", "lr": 0.25, "momentum": 0.75,
                     "nesterov": True, "weight_decay": 0.01},
    "muon": {"case": "llama", "optimizer": "muon", "lr": 0.01, "momentum": 0.95, "nesterov": True,
             "weight_decay": 0.1},
    "muon_gpt2": {"case": "gpt2", "optimizer": "muon", "lr": 0.01, "momentum": 0.5,
                  "nesterov": False, "weight_decay": 0.1},
    "average": {"case": "llama3_tied", "ema": 0.5},
    "attention_dropout": {"case": "gpt2", "attention_dropout": 0.25, "seed": 77},
    "attention_dropout_llama": {"case": "llama3_tied", "attention_dropout": 0.5, "seed": 78},
    "documents": {"case": "llama",
                  "documents": [[0, 0, 5], [0, 5, 1], [0, 6, 11], [1, 0, 9], [1, 9, 8]]},
    "documents_scaled": {"case": "llama3_tied",
                         "documents": [[0, 0, 17], [1, 0, 1], [1, 1, 1], [1, 2, 15]]},
    "distillation": {"case": "llama", "teacher": "gpt2", "weight": 0.75, "temperature": 3.0},
    "distillation_documents": {
        "case": "llama3_tied", "teacher": "llama", "weight": 0.5, "temperature": 0.5,
        "label_smoothing": 0.1, "documents": [[0, 0, 5], [0, 5, 12], [1, 0, 9], [1, 9, 8]]},
}


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def kept(variant, step, layer, sample, head, query, key):
    """What a weight is multiplied with: 0 or 1 / (1 - p)."""
    mix = base.splitmix64
    seed = mix(mix(variant["seed"]) ^ ((layer + 1) << 32 | head))
    words = philox((query, step, sample, key // 4), (seed & 0xFFFFFFFF, seed >> 32))
    p = variant["attention_dropout"]
    return 1 / (1 - p) if (words[key % 4] >> 8) * 2.0**-24 >= p else 0.0


def dropping_attention(variant, step):
    """make_golden's attention with dropout; called once per layer, in order."""
    layer = -1

    def attention(q, k, v):
        nonlocal layer
        layer += 1
        b, h, t, d = q.shape
        group = h // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d)
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(-1)
        mask = torch.tensor([[[[kept(variant, step, layer, i, j, x, y) for y in range(t)]
                               for x in range(t)] for j in range(h)] for i in range(b)])
        return (weights * mask) @ v
    return attention


def number_and_position(documents):
    """Two tensors [B,T]: the number of each token's document, and the token's position in it."""
    number = torch.full((base.BATCH, base.TIME), -1)
    position = torch.full((base.BATCH, base.TIME), -1)
    for i, (row, first, time) in enumerate(documents):
        number[row, first:first + time] = i
        position[row, first:first + time] = torch.arange(time)
    return number, position


def visible(number):
    """[B,1,T,T]: whether a query sees a key, which is of its document and not after it."""
    same = number[:, None, :, None] == number[:, None, None, :]
    return same & torch.ones(base.TIME, base.TIME, dtype=torch.bool).tril()


def separated(documents):
    """make_golden's attention and rope for documents that are apart."""
    number, position = number_and_position(documents)

    def attention(q, k, v):
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        return scores.masked_fill(~visible(number), -math.inf).softmax(-1) @ v

    def rope(x, freqs):
        angles = position[:, None, :, None] * freqs
        x1, x2 = x.chunk(2, -1)
        return torch.cat((x1 * angles.cos() - x2 * angles.sin(),
                          x2 * angles.cos() + x1 * angles.sin()), -1)
    return attention, rope


def without_next_documents(targets, documents):
    """The targets, of which those in the next document of a sample do not count."""
    targets = targets.clone()
    for row, first, time in documents:
        if first + time < base.TIME:
            targets[row, first + time - 1] = -100
    return targets


def divergence_of(variant, logits, ids, targets):
    """temperature^2 x KL(teacher || student), the mean over the targets that count."""
    teacher = base.CASES[variant["teacher"]]
    with torch.no_grad():
        taught = base.logits_of(teacher, base.initial(teacher), ids).flatten(0, 1)
    t, counts = variant["temperature"], targets.flatten() != -100
    divergence = F.kl_div((logits[counts] / t).log_softmax(-1),
                          (taught[counts] / t).log_softmax(-1), log_target=True, reduction="sum")
    return t * t * divergence / counts.sum()


def loss_of(c, variant, w, step, training=True):
    plain, plain_rope = base.attention, base.rope
    documents = variant.get("documents", [])
    if documents:
        base.attention, base.rope = separated(documents)
    if training and "attention_dropout" in variant:
        base.attention = dropping_attention(variant, step)
    ids, targets = base.tokens(step, c["vocab"])
    targets = without_next_documents(targets, documents)
    logits = base.logits_of(c, w, ids).flatten(0, 1)
    taught = divergence_of(variant, logits, ids, targets) if "teacher" in variant else None
    base.attention, base.rope = plain, plain_rope
    if not training:
        return F.cross_entropy(logits, targets.flatten())
    loss = F.cross_entropy(logits, targets.flatten(),
                           label_smoothing=variant.get("label_smoothing", 0.0))
    loss = loss + variant.get("z_loss", 0.0) * logits.logsumexp(-1).square().mean()
    if taught is None:
        return loss
    return (1 - variant["weight"]) * loss + variant["weight"] * taught


def orthogonal(g):
    """Five Newton-Schulz steps, as Keller Jordan published them, without rounding to bf16."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    if g.shape[0] > g.shape[1]:
        x = x.T
    for _ in range(5):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x.T if g.shape[0] > g.shape[1] else x


class Muon:
    """Matrices inside the layers; the rest is AdamW's."""

    def __init__(self, variant, w):
        self.variant = variant
        self.hidden = [p for n, p in w.items() if p.dim() == 2 and (".h." in n or ".layers." in n)]
        rest = [p for p in w.values() if all(p is not h for h in self.hidden)]
        o = base.OPTIMIZER
        self.rest = torch.optim.AdamW(
            [{"params": [p for p in rest if p.dim() == 2], "weight_decay": variant["weight_decay"]},
             {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0}],
            lr=variant["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"])
        self.buffers = [torch.zeros_like(p) for p in self.hidden]

    def zero_grad(self):
        for p in self.hidden:
            p.grad = None
        self.rest.zero_grad()

    @torch.no_grad()
    def step(self):
        self.rest.step()
        v = self.variant
        for p, buffer in zip(self.hidden, self.buffers):
            buffer.mul_(v["momentum"]).add_(p.grad)
            update = p.grad + v["momentum"] * buffer if v["nesterov"] else buffer
            p.mul_(1 - v["lr"] * v["weight_decay"])
            p.sub_(v["lr"] * 0.2 * math.sqrt(max(p.shape)) * orthogonal(update))


def optimizer_of(variant, w):
    """The optimizer; and what decays before each of its steps, by which factor."""
    matrices = [p for p in w.values() if p.dim() >= 2]
    vectors = [p for p in w.values() if p.dim() < 2]
    if variant.get("optimizer") == "sgd":
        factor = 1 - variant["lr"] * variant["weight_decay"]
        return torch.optim.SGD(list(w.values()), lr=variant["lr"], momentum=variant["momentum"],
                               nesterov=variant["nesterov"]), matrices, factor
    if variant.get("optimizer") == "muon":
        return Muon(variant, w), [], 1
    o = base.OPTIMIZER
    groups = [{"params": matrices, "weight_decay": o["weight_decay"]},
              {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]),
                             eps=o["eps"]), [], 1


def train(c, variant):
    w = base.initial(c)
    optimizer, decaying, factor = optimizer_of(variant, w)
    average = {n: p.detach().clone() for n, p in w.items()}
    losses, norms = [], []
    for step in range(base.STEPS):
        optimizer.zero_grad()
        loss = loss_of(c, variant, w, step)
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(list(w.values()), CLIP)))
        with torch.no_grad():
            for p in decaying:
                p.mul_(factor)
        optimizer.step()
        decay = min(variant.get("ema", 0.0), (1 + step + 1) / (10 + step + 1))
        for n, p in w.items():
            average[n].lerp_(p.detach(), 1 - decay)
        losses.append(float(loss.detach()))
    result = {"losses": losses, "gradient_norms": norms}
    if "ema" in variant:
        result["average_loss"] = float(loss_of(c, variant, average, 0, training=False))
    return result


def compare(name, variant):
    """Compares the logits of separate documents with transformers'."""
    c = base.CASES[variant["case"]]
    model = base.transformers_model(c).double().eval()
    w = base.initial(c)
    model.load_state_dict({n: p.detach() for n, p in w.items()}, strict=False)
    model.tie_weights()
    ids, _ = base.tokens(0, c["vocab"])
    number, position = number_and_position(variant["documents"])
    mask = torch.zeros(base.BATCH, 1, base.TIME, base.TIME)
    mask = mask.masked_fill(~visible(number), torch.finfo(torch.float64).min)
    plain = base.attention, base.rope
    base.attention, base.rope = separated(variant["documents"])
    with torch.no_grad():
        theirs = model(ids, attention_mask=mask, position_ids=position).logits
        difference = float((theirs - base.logits_of(c, w, ids)).abs().max())
    base.attention, base.rope = plain
    print(f"{name}: largest difference of logits from transformers {difference:.2e}")
    assert difference < 1e-5, "transformers computes rotary angles in float32; more is an error"


if __name__ == "__main__":
    if "--check" in sys.argv:
        for name, variant in VARIANTS.items():
            if "documents" in variant:
                compare(name, variant)
        sys.exit()
    golden = {}
    for name, variant in VARIANTS.items():
        golden[name] = {**variant, "clip": CLIP, **train(base.CASES[variant["case"]], variant)}
        print(f"{name}: loss {golden[name]['losses'][0]:.6f} -> {golden[name]['losses'][-1]:.6f}")
    path = pathlib.Path(__file__).parent / "variants.json"
    path.write_text(json.dumps(golden, indent=1) + "\n")
