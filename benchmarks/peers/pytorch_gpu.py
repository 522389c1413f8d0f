#!/usr/bin/env python3
"""Measures PyTorch on one GPU: training steps of GPT-2 124M, and attention.
benchmarks/gpu/run.sh starts this with a Python that has PyTorch and compares Trireme with it.
Alone:

    python3 benchmarks/peers/pytorch_gpu.py -J peer.json

PyTorch runs as its users would run it: torch.compile, autocast to bf16, TF32, scaled_dot_product_
attention, fused AdamW, clipping. Every micro-batch that fits is measured until the time is over.
Without PyTorch or a GPU, says so and writes {"skipped": reason}.
"""

import argparse
import json
import sys
import time

from pytorch_step import HEADS, HIDDEN, VOCAB, build_model

WARM_UP, TIMED = 5, 20


class GpuStep:
    def __init__(self, torch, micro_batch, sequence):
        torch.manual_seed(1)
        self.torch = torch
        with torch.device("cuda"):
            self.module = build_model(torch)(sequence)
            self.ids = torch.randint(0, VOCAB, (micro_batch, sequence))
            self.targets = torch.randint(0, VOCAB, (micro_batch, sequence))
        self.call = torch.compile(self.module)
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-4, fused=True)

    def __call__(self):
        with self.torch.autocast("cuda", dtype=self.torch.bfloat16):
            loss = self.call(self.ids, self.targets)
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def seconds_of(torch, work, warm_up=WARM_UP, timed=TIMED):
    """Returns the seconds of one call on the device."""
    for _ in range(warm_up):
        work()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(timed):
        work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3 / timed


def training(torch, options, deadline):
    """Returns the tokens per second by micro-batch."""
    rates, longest = {}, 0
    for micro_batch in options.micro_batches:
        begun = time.monotonic()
        if begun + longest > deadline:
            break
        try:
            seconds = seconds_of(torch, GpuStep(torch, micro_batch, options.sequence))
        except torch.cuda.OutOfMemoryError:
            print(f"micro-batch {micro_batch}: out of memory")
            continue
        rates[micro_batch] = micro_batch * options.sequence / seconds
        print(f"micro-batch {micro_batch}: {rates[micro_batch]:.0f} tokens/s", flush=True)
        longest = time.monotonic() - begun
        torch.compiler.reset()
        torch.cuda.empty_cache()
    return rates


def attention(torch, options):
    """Returns FLOP/s of causal attention by implementation, forward and backward; half of the
    weights are masked and do not count."""
    backends = torch.nn.attention.SDPBackend
    flops = 2.0 * options.attention_batch * options.sequence**2 * HIDDEN
    shape = (options.attention_batch, HEADS, options.sequence, HIDDEN // HEADS)
    rates = {}
    for name, backend in {"flash": backends.FLASH_ATTENTION,
                          "cudnn": backends.CUDNN_ATTENTION}.items():
        q, k, v, dout = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(4))
        for tensor in (q, k, v):
            tensor.requires_grad_()
        try:
            with torch.nn.attention.sdpa_kernel(backend):
                def forward():
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v,
                                                                            is_causal=True)
                ahead = seconds_of(torch, forward)
                out = forward()
                back = seconds_of(torch, lambda: torch.autograd.grad(out, (q, k, v), dout,
                                                                     retain_graph=True))
        except RuntimeError as error:
            print(f"attention, {name}: {str(error).splitlines()[0]}")
            continue
        rates[name] = {"forward": flops / ahead, "backward": 2.5 * flops / back}
        print(f"attention, {name}: {flops / ahead / 1e12:.0f} TFLOP/s forward, "
              f"{2.5 * flops / back / 1e12:.0f} backward", flush=True)
    return rates


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--micro-batches", type=numbers, default=[32, 64, 16],
                        help="micro-batches to measure, in this order (32,64,16)")
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--attention-batch", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=150,
                        help="skip micro-batches that could end after this time (150)")
    parser.add_argument("-J", "--json-file")
    return parser.parse_args()


def measure(options):
    try:
        import torch
        import torch.nn.attention
    except ImportError:
        return {"skipped": "PyTorch is not installed"}
    if not torch.cuda.is_available():
        return {"skipped": f"PyTorch {torch.__version__} finds no GPU"}
    deadline = time.monotonic() + options.seconds
    torch.set_float32_matmul_precision("high")
    return {"torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(), "device": torch.cuda.get_device_name(),
            "attention_flops_per_s": attention(torch, options),
            "tokens_per_s": training(torch, options, deadline)}


def main():
    options = parse_arguments()
    results = measure(options)
    if "skipped" in results:
        print(f"skipped: {results['skipped']}")
    if options.json_file:
        with open(options.json_file, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, **results}, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
