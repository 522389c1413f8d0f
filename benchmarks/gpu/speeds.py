"""Speeds of the suite: kernels over the bandwidth of a copy, products, attention, training steps,
stalls of saves, several GPUs; each beside what it is to be compared with."""

import json
import pathlib
import subprocess

import processes
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
MODEL_STEPS = 6  # of the models above, whose steps are long
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


NO_KERNELS = ("not run", "there is nothing to compare with: kernels have not been measured", {})
NO_TOKENS = ("not run", "there is nothing to compare: GPT-2 124M has not been measured", {})


class Speeds:
    """Measures one part at a time, and keeps the results that later parts are compared with."""

    def __init__(self, options, found):
        """found: the facts about this machine."""
        self.options = options
        self.gpus = found["gpus"]
        self.has_pytorch = bool(found["versions"]["pytorch"])
        self.kernels = {}  # by name: bytes or operations per second
        self.tokens = {}   # of GPT-2 124M by micro-batch
        self.pytorch = {}
        self.measured = {}  # tokens per second by a run's keys, for parts that need the same run

    # Each part returns (result, words, figures); the result is "below" if a bound is missed.

    def measure_kernels(self, deadline):
        report = self.options.out / "kernels.json"
        command = [self.options.kernel_benchmark, "--device=cuda", "--benchmark_min_time=0.05",
                   "--benchmark_out_format=json", f"--benchmark_out={report}"]
        processes.finished(command, deadline).check_returncode()
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

    def measure_pytorch(self, deadline):
        if not self.tokens:
            return NO_TOKENS
        report = self.options.out / "pytorch.json"
        report.unlink(missing_ok=True)
        command = [self.options.python, PEERS / "pytorch_gpu.py", "-J", report,
                   "--seconds", min(deadline.left() - 30, MOST_SECONDS_OF_PYTORCH)]
        processes.finished(command, deadline).check_returncode()
        self.pytorch = json.loads(report.read_text())
        if "skipped" in self.pytorch:
            return "not run", self.pytorch["skipped"], {}
        ours, theirs = max(self.tokens.values()), max(self.pytorch["tokens_per_s"].values())
        ratio = ours / theirs
        return ("passed" if ratio >= LEAST["pytorch"] else "below",
                f"{ours:.0f} tokens/s, PyTorch {self.pytorch['torch']} {theirs:.0f}: "
                f"{ratio:.2f}", {"ratio": ratio, "pytorch": self.pytorch})

    def compare_attention(self, _):
        if not self.kernels:
            return NO_KERNELS
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

    def measure_gpt2(self, deadline):
        keys = {"model.preset": "gpt2-124m"}
        for micro_batch in (32, 64, 16):
            if deadline.left() < 25 and self.tokens:
                break
            self.tokens[micro_batch] = training.tokens_per_second(
                self.options, f"speed-{micro_batch}", keys, micro_batch, micro_batch, deadline)
        best = max(self.tokens, key=self.tokens.get)
        words = f"{self.tokens[best]:.0f} tokens/s with steps of one micro-batch of {best}"
        figures = {"tokens_per_s": self.tokens, "best": best}
        if deadline.left() < 25:
            return "passed", f"{words}; no time was left for longer steps", figures
        figures["whole_steps"] = training.tokens_per_second(
            self.options, "speed-whole", keys, best, max(best, SEQUENCES_PER_STEP), deadline)
        words += f"; {figures['whole_steps']:.0f} with steps of {SEQUENCES_PER_STEP} sequences"
        return self.beside("llm.c", figures["whole_steps"], LLM_C, words, figures)

    def compare_graphs(self, deadline):
        """CUDA graphs around micro-batches, on against off: of few sequences, whose kernels are
        short, and of many."""
        rates = {}
        for micro_batch in (4, 16):
            for graphs in ("off", "on"):
                rates[f"{graphs}, micro-batch {micro_batch}"] = self.rate_of_two(
                    micro_batch, deadline, graphs=graphs)
        ratios = {count: rates[f"on, micro-batch {count}"] / rates[f"off, micro-batch {count}"]
                  for count in (4, 16)}
        words = "; ".join(f"micro-batches of {count}: {ratio:.3f}"
                          for count, ratio in ratios.items())
        return "passed", f"tokens/s with graphs over without: {words}", {
            "tokens_per_s": rates, "ratio": ratios}

    def rate_of_two(self, micro_batch, deadline, attention="own", graphs="on"):
        """Returns the tokens per second of GPT-2 124M with two micro-batches per step. Each way is
        measured once."""
        way = (micro_batch, attention, graphs)
        if way not in self.measured:
            keys = {"model.preset": "gpt2-124m", "train.attention": attention,
                    "train.graphs": graphs}
            self.measured[way] = training.tokens_per_second(
                self.options, f"two-{attention}-{graphs}-{micro_batch}", keys, micro_batch,
                2 * micro_batch, deadline)
        return self.measured[way]

    def compare_cudnn(self, deadline):
        """Attention by cuDNN against the program's own kernels, where cuDNN is installed."""
        rates = {}
        for attention in ("own", "cudnn"):
            try:
                rates[attention] = self.rate_of_two(16, deadline, attention=attention)
            except subprocess.CalledProcessError as error:
                if attention == "cudnn" and error.returncode == 2:  # which says why
                    return "not run", error.stderr.strip().splitlines()[-1], {}
                raise
        ratio = rates["cudnn"] / rates["own"]
        return "passed", f"tokens/s with cuDNN's attention over own: {ratio:.3f}", {
            "tokens_per_s": rates, "ratio": ratio}

    def measure_model(self, name):
        def part(deadline):
            keys = self.keys_of_model(name)
            words, rate = self.first_that_fits(name, keys, deadline)
            if rate is None:
                return "not run", words, {}
            flops = rate * training.flops_per_token(self.options, keys, deadline)
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

    def first_that_fits(self, name, keys, deadline):
        """Returns words about the way of training that was measured, and its rate; or the reason
        why none fits, and None."""
        why = ""
        for micro_batch, count, recompute in MODELS[name][1]:
            try:
                rate = training.tokens_per_second(
                    self.options, f"speed-{name}-{micro_batch}-{recompute}",
                    {**keys, "train.recompute": recompute}, micro_batch, count * micro_batch,
                    deadline, steps=MODEL_STEPS)
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

    def measure_stall(self, deadline):
        if not self.kernels:
            return NO_KERNELS
        stall, written = training.stall_of_a_save(self.options, deadline)
        copy = written / self.kernels["copy_to_host"]
        ratio = stall / copy
        return ("passed" if ratio <= MOST_STALL else "below",
                f"a save of {written / 1e9:.2f} GB stalls {stall * 1e3:.1f} ms; copying it to the "
                f"host takes {copy * 1e3:.1f} ms: {ratio:.2f}",
                {"stall_s": stall, "copy_s": copy, "ratio": ratio})

    def measure_collectives(self, deadline):
        count = min(len(self.gpus), 8)
        if count < 2:
            return "not run", "there is one GPU", {}
        report = self.options.out / "coll.json"
        done = self.on_ranks(count, deadline, "bench", "coll", "--backend", "nccl", "-b", "1M",
                             "-e", "1G", "-f", "16", "-J", report)
        if done.returncode == 2:
            return "not run", done.stderr[-300:], {}
        done.check_returncode()
        rows = json.loads(report.read_text())["results"]
        best = max(row["metrics"]["busbw_GBps"] for row in rows)
        return "passed", f"all-reduce over {count} GPUs: {best:.0f} GB/s bus bandwidth", {
            "results": rows}

    def measure_scaling(self, deadline):
        if len(self.gpus) < 2:
            return "not run", "there is one GPU", {}
        if not self.tokens:
            return NO_TOKENS
        best = max(self.tokens, key=self.tokens.get)
        rate = training.tokens_per_second(
            self.options, "speed-dp2", {"model.preset": "gpt2-124m", "parallel.dp": 2}, best,
            2 * best, deadline, prefix=training.mpirun(self.options, 2))
        ratio = rate / (2 * self.tokens[best])
        return "passed", f"{rate:.0f} tokens/s on two GPUs: {ratio:.2f} of twice one", {
            "tokens_per_s": rate, "efficiency": ratio}

    def on_ranks(self, ranks, deadline, *arguments):
        command = [*training.mpirun(self.options, ranks), self.options.trireme, *arguments]
        return processes.finished(command, deadline)

    def parts(self):
        """Returns (name, about how many seconds it takes, part), the most important first."""
        several = len(self.gpus) > 1
        return [
            ("kernels over a copy", 30, self.measure_kernels),
            ("GPT-2 124M, bf16, T 1024", 30, self.measure_gpt2),
            ("1.5B, bf16, T 1024", 20, self.measure_model("1.5B")),
            ("GPT-2 124M beside PyTorch", 70 if self.has_pytorch else 0, self.measure_pytorch),
            ("attention beside PyTorch", 0, self.compare_attention),
            ("all-reduce over several GPUs", 30 if several else 0, self.measure_collectives),
            ("dp 2 over one GPU", 20 if several else 0, self.measure_scaling),
            ("stall of a save", 15, self.measure_stall),
            ("graphs, on over off", 30, self.compare_graphs),
            ("attention by cuDNN over own", 10, self.compare_cudnn),
            ("0.5B, bf16, T 1024", 15, self.measure_model("0.5B")),
            ("3B, bf16, T 1024", 30, self.measure_model("3B")),
            ("7B, bf16, T 1024", 45, self.measure_model("7B")),
        ]
