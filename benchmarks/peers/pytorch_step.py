#!/usr/bin/env python3
"""A training step of GPT-2 124M on the CPU: `trireme bench step` against PyTorch, same machine,
same number of threads, in alternating rounds of one run.

    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install torch
    /tmp/peer/bin/python benchmarks/peers/pytorch_step.py --json-file peer.json

PyTorch runs as its users would run it: autocast to bf16 (or fp32), scaled_dot_product_attention,
fused AdamW, clipping; eager, and compiled where a compiler is there. Prints tokens a second
(medians) and trireme's ratio to each; skips with a message where torch is missing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

LAYERS, HIDDEN, HEADS, VOCAB = 12, 768, 12, 50257


def build_model(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
            self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
            self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, c // HEADS).unbind(2)
            y = functional.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
            )
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            hidden = functional.gelu(self.up(self.norm2(x)), approximate="tanh")
            return x + self.down(hidden)

    class Gpt2(nn.Module):
        def __init__(self, context):
            super().__init__()
            self.token, self.position = nn.Embedding(VOCAB, HIDDEN), nn.Embedding(context, HIDDEN)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(HIDDEN)

        def forward(self, ids, targets):
            x = self.token(ids) + self.position.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            logits = functional.linear(self.norm(x), self.token.weight)
            return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    return Gpt2


class TorchStep:
    def __init__(self, torch, options, compiled):
        torch.manual_seed(1)
        self.torch, self.options = torch, options
        self.module = build_model(torch)(options.sequence)
        self.call = torch.compile(self.module) if compiled else self.module
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-4, fused=True)
        shape = (options.micro_batch, options.sequence)
        self.ids = torch.randint(0, VOCAB, shape)
        self.targets = torch.randint(0, VOCAB, shape)

    def __call__(self):
        bf16 = self.options.precision == "bf16"
        start = time.perf_counter()
        with self.torch.autocast("cpu", dtype=self.torch.bfloat16, enabled=bf16):
            loss = self.call(self.ids, self.targets)
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - start


def trireme_step(options):
    """Seconds of a step: the median of two, in a process of its own."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [
            options.trireme, "bench", "step", "--model", "gpt2-124m", "--rounds", "3",
            "--precision", options.precision, "--micro-batch", str(options.micro_batch),
            "--sequence", str(options.sequence), "--threads", str(options.threads),
            "-J", file.name,
        ]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(file.name, encoding="utf-8") as results:
            return json.load(results)["results"][0]["metrics"]["step_ms"] / 1e3


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--trireme", default="build/release/trireme")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-compile", action="store_true", help="eager PyTorch only")
    parser.add_argument("-J", "--json-file")
    return parser.parse_args()


def main():
    options = parse_arguments()
    try:
        import torch
    except ImportError:
        print("skipped: PyTorch is not installed (pip install torch)")
        return 0
    torch.set_num_threads(options.threads)
    kinds = {"eager": False} if options.no_compile else {"eager": False, "compiled": True}
    peers = {name: TorchStep(torch, options, compiled) for name, compiled in kinds.items()}
    for step in peers.values():
        for _ in range(2):
            step()
    seconds = {name: [] for name in ["trireme", *peers]}
    for _ in range(options.rounds):
        seconds["trireme"].append(trireme_step(options))
        for name, step in peers.items():
            seconds[name].append(statistics.median(step() for _ in range(3)))
    tokens = options.micro_batch * options.sequence
    rates = {name: tokens / statistics.median(s) for name, s in seconds.items()}
    results = []
    for name in peers:
        ratio = rates["trireme"] / rates[name]
        print(f"trireme {rates['trireme']:.0f} tokens/s, PyTorch {torch.__version__} {name} "
              f"{rates[name]:.0f} tokens/s: ratio {ratio:.2f}")
        results.append({
            "name": "step_against_pytorch",
            "params": {"model": "gpt2-124m", "precision": options.precision, "peer": name,
                       "torch": torch.__version__, "threads": options.threads,
                       "micro_batch": options.micro_batch, "sequence": options.sequence},
            "metrics": {"tokens_per_s": rates["trireme"], "peer_tokens_per_s": rates[name],
                        "ratio": ratio},
            "seconds": {"trireme": seconds["trireme"], "peer": seconds[name]},
        })  # fmt: skip
    if options.json_file:
        with open(options.json_file, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "results": results}, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
