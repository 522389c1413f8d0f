"""Models and ways of training of the suite that begin with other weights or compute in another way:
ALiBi, adapters, frozen modules, a teacher, pruned weights. Losses on a GPU against the CPU's."""

import training
from operations import beside_the_cpu, keys_of, verdict

BASE = {"train.precision": "fp32", "optimizer.lr": 1e-2}  # of the run whose weights are taken over
JAIS = {"model.swiglu": "true", "model.embedding_scale": 2, "model.logit_scale": 0.5,
        "model.attention_scale": 0.1}
HEADS_BY_WARPGROUPS = (64, 128)  # dimensions of the heads that Hopper computes by warpgroups


def alibi(options):
    """ALiBi in fp32 beside SwiGLU and other scales, and in bf16 with each size of heads that has
    kernels of its own."""
    def part(deadline):
        ways = {"fp32, as in Jais": {"train.precision": "fp32", **JAIS},
                **{f"bf16, heads of {size}": {"model.hidden": 128, "model.ffn": 512,
                                              "model.heads": 128 // size}
                   for size in HEADS_BY_WARPGROUPS}}
        found = {way: beside_the_cpu(options, f"alibi-{way.split()[-1]}",
                                     {"model.alibi": "true", **changes}, deadline)
                 for way, changes in ways.items()}
        problems = [f"{way}: {words}" for way, (result, words, _) in found.items()
                    if result != "passed"]
        return verdict(problems, "; ".join(f"{way}: {words}"
                                           for way, (_, words, _) in found.items()),
                       {way: figures for way, (_, _, figures) in found.items()})
    return part


def base(options, name, deadline):
    """Trains a model on the GPU and returns its checkpoints."""
    training.train(options, f"{name}-base", deadline, {**keys_of(options), **BASE})
    return options.out / f"{name}-base/checkpoints"


def begun(options, name, changes, key="checkpoint.init_from"):
    """Losses of a run that has another one's checkpoint as the value of `key`."""
    def part(deadline):
        return beside_the_cpu(options, name, {"train.precision": "fp32", **changes,
                                              key: base(options, name, deadline)}, deadline)
    return part


def pruned(options):
    """Half of the weights is zero and stays zero, while the rest is trained."""
    def part(deadline):
        half = options.out / "pruned-half"
        training.run(options, deadline, "sparsify", base(options, "pruned", deadline), "--out",
                     half, "--sparsity", "0.5")
        return beside_the_cpu(options, "pruned",
                              {"train.precision": "fp32", "checkpoint.init_from": half,
                               "optimizer.keep_zeros": "true"}, deadline)
    return part


def parts(options):
    """Returns (name, about how many seconds it takes, part) of each."""
    adapters = {"lora.products": "all", "lora.rank": 4}
    frozen = {"train.frozen": "[transformer.wte, transformer.h.0]"}
    taught = {"distill.weight": 0.75, "distill.temperature": 2}
    return [
        ("models: ALiBi", 20, alibi(options)),
        ("models: adapters (LoRA)", 10, begun(options, "adapters", adapters)),
        ("models: frozen modules", 10, begun(options, "frozen", frozen)),
        ("models: a teacher (distillation)", 10,
         begun(options, "taught", taught, "distill.teacher")),
        ("models: training of pruned weights", 12, pruned(options)),
    ]
