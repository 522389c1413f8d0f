"""Speeds of the suite: kernels over the bandwidth of a copy, products, attention, training steps,
stalls of saves, several GPUs; each beside what it is to be compared with."""

import json
import os
import pathlib
import shutil
import subprocess
import time

import sharing
import training

PEERS = pathlib.Path(__file__).resolve().parent
if not (PEERS / "pytorch_gpu.py").exists():  # in the source tree; a bundle has it beside this file
    PEERS = PEERS.parent / "peers"

# What others have published for one H100 with bf16, in tokens per second and GPU at T 1024.
# llm.c: GPT-2 124M on 8 GPUs, 524,288 tokens in 139 ms (modded-nanogpt, records/101324_llmc).
# llmq: its README; the models are Qwen2.5's.
LLM_C = 471e3
LLMQ = {"0.5B": 144e3, "1.5B": 58e3, "3B": 30e3, "7B": 14e3}
# Qwen2.5's shapes, and how they are trained: sequences per micro-batch, micro-batches per step, and
# what is recomputed. The first way that the program predicts to fit into the GPU's memory is taken:
# long micro-batches add fewer gradients per token. More than one micro-batch needs memory for sums.
MODELS = {
    "0.5B": ({"layers": 24, "hidden": 896, "heads": 14, "kv_heads": 2, "ffn": 4864},
             [(32, 2, "none"), (16, 4, "none"), (8, 4, "none")]),
    "1.5B": ({"layers": 28, "hidden": 1536, "heads": 12, "kv_heads": 2, "ffn": 8960},
             [(32, 2, "none"), (16, 4, "none"), (8, 4, "none"), (4, 4, "none")]),
    "3B": ({"layers": 36, "hidden": 2048, "heads": 16, "kv_heads": 2, "ffn": 11008},
           [(16, 2, "none"), (8, 4, "none"), (4, 2, "none"), (4, 1, "full")]),
    "7B": ({"layers": 28, "hidden": 3584, "heads": 28, "kv_heads": 4, "ffn": 18944},
           [(16, 1, "full"), (8, 1, "full"), (4, 1, "full")]),
}
SEQUENCES_PER_STEP = 64  # as in llm.c's run
MODEL_STEPS = 12  # of the models above, whose steps are long
NOT_BOUND_BY_MEMORY = ("copy", "copy_to_host", "product", "attention_forward",
                       "attention_backward", "triad")
# The bounds in docs/gpu.md. All are lower bounds, except that of the stall.
LEAST = {"kernels": 0.8, "attention": 0.8, "pytorch": 1.15, "llm.c": 1.0, "llmq": 1.0,
         "model": 0.6}
MOST_STALL = 0.1
MOST_SECONDS_OF_PYTORCH = 60  # after which it compiles for no further micro-batch


def rates_of(report):
    """Returns the operations per second of each benchmark, or the bytes if it counts none."""
    rates = {}
    for one in report["benchmarks"]:
        rate = one.get("flops_per_second", one.get("bytes_per_second"))
        if rate:
            rates[one["name"].removesuffix("/manual_time")] = rate
    return rates


class Speeds:
    """Measures one part at a time, and keeps the results that later parts are compared with."""

    def __init__(self, options, gpus):
        self.options = options
        self.gpus = gpus
        self.kernels = {}  # by name: bytes or operations per second
        self.tokens = {}   # of GPT-2 124M by micro-batch
        self.pytorch = {}

    # Each part returns (result, words, figures); the result is "below" if a bound is missed.

    def measure_kernels(self, limit):
        report = self.options.out / "kernels.json"
        command = [self.options.kernel_benchmark, "--device=cuda", "--benchmark_min_time=0.05",
                   "--benchmark_out_format=json", f"--benchmark_out={report}"]
        subprocess.run([str(word) for word in command], capture_output=True, text=True,
                       timeout=limit, check=True)
        self.kernels = rates_of(json.loads(report.read_text()))
        fractions = {name: rate / self.kernels["copy"] for name, rate in self.kernels.items()
                     if name not in NOT_BOUND_BY_MEMORY}
        slow = {name: f"{fraction:.2f}" for name, fraction in fractions.items()
                if fraction < LEAST["kernels"]}
        words = (f"a copy moves {self.kernels['copy'] / 1e12:.2f} TB/s, the product reaches "
                 f"{self.kernels['product'] / 1e12:.0f} TFLOP/s; "
                 f"{len(fractions) - len(slow)} of {len(fractions)} kernels at "
                 f"{LEAST['kernels']} of the copy or more; others: {slow or 'none'}")
        return ("below" if slow else "passed", words,
                {"fraction_of_copy": fractions, "rates": self.kernels})

    def measure_pytorch(self, limit):
        report = self.options.out / "pytorch.json"
        report.unlink(missing_ok=True)
        command = [self.options.python, PEERS / "pytorch_gpu.py", "-J", report,
                   "--seconds", min(limit - 30, MOST_SECONDS_OF_PYTORCH)]
        subprocess.run([str(word) for word in command], capture_output=True, text=True,
                       timeout=limit, check=True)
        self.pytorch = json.loads(report.read_text())
        if "skipped" in self.pytorch:
            return "not run", self.pytorch["skipped"], {}
        ours, theirs = max(self.tokens.values()), max(self.pytorch["tokens_per_s"].values())
        ratio = ours / theirs
        return ("passed" if ratio >= LEAST["pytorch"] else "below",
                f"{ours:.0f} tokens/s, PyTorch {self.pytorch['torch']} {theirs:.0f}: "
                f"{ratio:.2f}", {"ratio": ratio, "pytorch": self.pytorch})

    def compare_attention(self, _):
        peers = self.pytorch.get("attention_flops_per_s", {})
        own = {way: self.kernels[f"attention_{way}"] for way in ("forward", "backward")}
        words = "; ".join(f"{way} {rate / 1e12:.0f} TFLOP/s" for way, rate in own.items())
        if not peers:
            return "passed", f"{words}; nothing to compare it with", {"own": own}
        ratios = {way: rate / max(peer[way] for peer in peers.values())
                  for way, rate in own.items()}
        words += "; over PyTorch's best: " + ", ".join(f"{way} {ratio:.2f}"
                                                       for way, ratio in ratios.items())
        good = min(ratios.values()) >= LEAST["attention"]
        return "passed" if good else "below", words, {"own": own, "peers": peers, "ratio": ratios}

    def measure_gpt2(self, limit):
        keys = {"model.preset": "gpt2-124m"}
        for micro_batch in (32, 64, 16):
            begun = time.monotonic()
            if limit < 25 and self.tokens:
                break
            self.tokens[micro_batch] = training.tokens_per_second(
                self.options, f"speed-{micro_batch}", keys, micro_batch, micro_batch, limit)
            limit -= time.monotonic() - begun
        best = max(self.tokens, key=self.tokens.get)
        words = f"{self.tokens[best]:.0f} tokens/s with steps of one micro-batch of {best}"
        figures = {"tokens_per_s": self.tokens, "best": best}
        if limit < 25:
            return "passed", f"{words}; no time was left for longer steps", figures
        figures["whole_steps"] = training.tokens_per_second(
            self.options, "speed-whole", keys, best, max(best, SEQUENCES_PER_STEP), limit)
        words += f"; {figures['whole_steps']:.0f} with steps of {SEQUENCES_PER_STEP} sequences"
        return self.beside("llm.c", figures["whole_steps"], LLM_C, words, figures)

    def compare_graphs(self, limit):
        """CUDA graphs around micro-batches, on against off: of few sequences, whose kernels are
        short, and of many."""
        keys = {"model.preset": "gpt2-124m"}
        rates = {}
        for micro_batch in (4, 16):
            for graphs in ("off", "on"):
                rates[f"{graphs}, micro-batch {micro_batch}"] = training.tokens_per_second(
                    self.options, f"graphs-{graphs}-{micro_batch}",
                    {**keys, "train.graphs": graphs}, micro_batch, 2 * micro_batch, limit / 4)
        ratios = {count: rates[f"on, micro-batch {count}"] / rates[f"off, micro-batch {count}"]
                  for count in (4, 16)}
        words = "; ".join(f"micro-batches of {count}: {ratio:.3f}"
                          for count, ratio in ratios.items())
        return "passed", f"tokens/s with graphs over without: {words}", {
            "tokens_per_s": rates, "ratio": ratios}

    def compare_cudnn(self, limit):
        """Attention by cuDNN against the program's own kernels, where cuDNN is installed."""
        rates = {}
        for attention in ("own", "cudnn"):
            keys = {"model.preset": "gpt2-124m", "train.attention": attention}
            try:
                rates[attention] = training.tokens_per_second(
                    self.options, f"attention-{attention}", keys, 16, 32, limit / 2)
            except subprocess.CalledProcessError as error:
                if attention == "cudnn" and error.returncode == 2:  # which says why
                    return "not run", error.stderr.strip().splitlines()[-1], {}
                raise
        ratio = rates["cudnn"] / rates["own"]
        return "passed", f"tokens/s with cuDNN's attention over own: {ratio:.3f}", {
            "tokens_per_s": rates, "ratio": ratio}

    def measure_model(self, name):
        def part(limit):
            keys = self.keys_of_model(name)
            words, rate = self.first_that_fits(name, keys, limit)
            if rate is None:
                return "not run", words, {}
            flops = rate * training.flops_per_token(self.options, keys)
            words, figures = f"{rate:.0f} tokens/s with {words}", {"tokens_per_s": rate,
                                                                 "flops_per_s": flops}
            result, words, figures = self.beside("llmq", rate, LLMQ[name], words, figures)
            if "product" in self.kernels:
                figures["of_product_rate"] = flops / self.kernels["product"]
                words += f"; {figures['of_product_rate']:.2f} of the product's rate"
                if name == "1.5B" and figures["of_product_rate"] < LEAST["model"]:
                    result = "below"
            return result, words, figures
        return part

    @staticmethod
    def keys_of_model(name):
        return {"model.family": "llama", "model.vocab": 151936, "model.context": 1024,
                "model.tie_embeddings": str(name != "7B").lower(),
                **{f"model.{key}": value for key, value in MODELS[name][0].items()}}

    def first_that_fits(self, name, keys, limit):
        """Returns words about the way of training that was measured, and its rate; or the reason
        why none fits, and None."""
        ends = time.monotonic() + limit
        why = ""
        for micro_batch, count, recompute in MODELS[name][1]:
            try:
                rate = training.tokens_per_second(
                    self.options, f"speed-{name}-{micro_batch}-{recompute}",
                    {**keys, "train.recompute": recompute}, micro_batch, count * micro_batch,
                    ends - time.monotonic(), steps=MODEL_STEPS)
            except subprocess.CalledProcessError as error:
                if error.returncode != 2:  # which says why
                    raise
                why = error.stderr.strip().splitlines()[-1]
                continue
            again = "" if recompute == "none" else ", computing all layers twice"
            many = "micro-batch" if count == 1 else "micro-batches"
            return f"{count} {many} of {micro_batch} a step{again}", rate
        return why, None

    def beside(self, whose, rate, published, words, figures):
        """Compares a rate with a published one, which holds for an H100. An H200 computes as fast
        and has a faster memory: a rate below the published one falls short there, too, and one
        above it says less."""
        figures["published"] = {whose: published}
        gpu = next((name for name in ("H100", "H200") if name in self.gpus[0]), None)
        if gpu is None:
            return "passed", f"{words}; {whose} reports {published:.0f} on an H100", figures
        figures["ratio"] = rate / published
        result = "passed" if figures["ratio"] >= LEAST[whose] else "below"
        words += f"; {figures['ratio']:.2f} of {whose}'s {published:.0f}"
        return result, words + (" on an H100" if gpu == "H200" else ""), figures

    def measure_stall(self, limit):
        stall, written = training.stall_of_a_save(self.options, limit)
        copy = written / self.kernels["copy_to_host"]
        ratio = stall / copy
        return ("passed" if ratio <= MOST_STALL else "below",
                f"a save of {written / 1e9:.2f} GB stalls {stall * 1e3:.1f} ms; copying it to the "
                f"host takes {copy * 1e3:.1f} ms: {ratio:.2f}",
                {"stall_s": stall, "copy_s": copy, "ratio": ratio})

    def measure_collectives(self, limit):
        count = min(len(self.gpus), 8)
        if count < 2:
            return "not run", "there is one GPU", {}
        report = self.options.out / "coll.json"
        done = self.on_ranks(count, limit, "bench", "coll", "--backend", "nccl", "-b", "1M",
                             "-e", "1G", "-f", "16", "-J", report)
        if done.returncode == 2:
            return "not run", done.stderr[-300:], {}
        done.check_returncode()
        rows = json.loads(report.read_text())["results"]
        best = max(row["metrics"]["busbw_GBps"] for row in rows)
        return "passed", f"all-reduce over {count} GPUs: {best:.0f} GB/s bus bandwidth", {
            "results": rows}

    def measure_scaling(self, limit):
        if len(self.gpus) < 2:
            return "not run", "there is one GPU", {}
        best = max(self.tokens, key=self.tokens.get)
        rate = training.tokens_per_second(
            self.options, "speed-dp2", {"model.preset": "gpt2-124m", "parallel.dp": 2}, best,
            2 * best, limit, prefix=training.mpirun(self.options, 2))
        ratio = rate / (2 * self.tokens[best])
        return "passed", f"{rate:.0f} tokens/s on two GPUs: {ratio:.2f} of twice one", {
            "tokens_per_s": rate, "efficiency": ratio}

    def share_one_gpu(self, limit):
        """Two ranks on one GPU under MPS."""
        control = shutil.which("nvidia-cuda-mps-control")
        if control is None:
            return "not run", "nvidia-cuda-mps-control is not installed", {}
        folder = self.options.out.absolute() / "mps"
        folder.mkdir(exist_ok=True)
        environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(folder),
                       "CUDA_MPS_LOG_DIRECTORY": str(folder), **sharing.ONE_GPU}
        subprocess.run([control, "-d"], env=environment, check=True, timeout=30)
        try:
            done = training.attempt(
                self.options, "shared", limit, training.SHARED, environment, ranks=2)
        finally:
            subprocess.run([control], input="quit\n", text=True, env=environment, timeout=30,
                           check=False)
        if done.returncode == 2:
            return "not run", f"refused: {done.stderr[-300:]}", {}
        return ("passed" if done.returncode == 0 else "failed",
                "two ranks train on one GPU" if done.returncode == 0 else done.stderr[-500:], {})

    def on_ranks(self, ranks, limit, *arguments):
        command = [*training.mpirun(self.options, ranks), self.options.trireme, *arguments]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              errors="replace", timeout=limit, check=False)

    def parts(self):
        """Returns (name, about how many seconds it takes, part), the most important first."""
        return [
            ("kernels over a copy", 30, self.measure_kernels),
            ("GPT-2 124M, bf16, T 1024", 40, self.measure_gpt2),
            ("GPT-2 124M beside PyTorch", 60, self.measure_pytorch),
            ("attention beside PyTorch", 0, self.compare_attention),
            ("1.5B, bf16, T 1024", 30, self.measure_model("1.5B")),
            ("stall of a save", 15, self.measure_stall),
            ("attention by cuDNN over own", 20, self.compare_cudnn),
            ("graphs, on over off", 40, self.compare_graphs),
            ("all-reduce over several GPUs", 30, self.measure_collectives),
            ("dp 2 over one GPU", 20, self.measure_scaling),
            ("two ranks on one GPU", 20, self.share_one_gpu),
            ("0.5B, bf16, T 1024", 30, self.measure_model("0.5B")),
            ("3B, bf16, T 1024", 50, self.measure_model("3B")),
            ("7B, bf16, T 1024", 60, self.measure_model("7B")),
        ]

