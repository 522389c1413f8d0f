"""GPT-2 in plain Python, from the safetensors of an export, for independent checks of tiny models.
"""

import json
import math
import struct
from operator import mul


def read_tensors(path):
    """Returns fp32 tensors by name, as (shape, values)."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", entry
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
        tensors[name.removeprefix("transformer.")] = (entry["shape"], values)
    return tensors


class PlainGpt2:
    """The forward pass of transformers' GPT2LMHeadModel, in double."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = read_tensors(folder / "model.safetensors")
        self.columns = {}
        self.kept = {}

    def rows(self, name):
        (rows, width), values = self.tensors[name]
        return [values[i * width:(i + 1) * width] for i in range(rows)]

    def linear(self, name, x):
        """x W + b, where W is stored [in, out]."""
        if name not in self.columns:
            self.columns[name] = list(zip(*self.rows(name + ".weight")))
        bias = self.tensors[name + ".bias"][1]
        return [sum(map(mul, x, column)) + b for column, b in zip(self.columns[name], bias)]

    def norm(self, name, x):
        mean = sum(x) / len(x)
        variance = sum((v - mean) ** 2 for v in x) / len(x)
        scale = 1 / math.sqrt(variance + self.config["layer_norm_epsilon"])
        weight, bias = (self.tensors[f"{name}.{part}"][1] for part in ("weight", "bias"))
        return [(v - mean) * scale * w + b for v, w, b in zip(x, weight, bias)]

    def attention(self, name, stream):
        heads = self.config["n_head"]
        packed = [self.linear(f"{name}.c_attn", x) for x in stream]
        width = len(packed[0]) // 3
        size = width // heads
        out = []
        for t, row in enumerate(packed):
            mixed = []
            for h in range(heads):
                at = [part * width + h * size for part in range(3)]
                query = row[at[0]:at[0] + size]
                scores = [sum(map(mul, query, other[at[1]:at[1] + size])) / math.sqrt(size)
                          for other in packed[:t + 1]]
                most = max(scores)
                weights = [math.exp(s - most) for s in scores]
                total = sum(weights)
                values = [other[at[2]:at[2] + size] for other in packed[:t + 1]]
                mixed += [sum(map(mul, weights, column)) / total for column in zip(*values)]
            out.append(self.linear(f"{name}.c_proj", mixed))
        return out

    def mlp(self, name, x):
        def gelu(v):
            return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))
        return self.linear(f"{name}.c_proj", [gelu(v) for v in self.linear(f"{name}.c_fc", x)])

    def log_probabilities(self, ids):
        """Returns the logarithms of the probabilities that follow each of the ids."""
        ids = tuple(ids)
        if ids in self.kept:
            return self.kept[ids]
        tokens, positions = self.rows("wte.weight"), self.rows("wpe.weight")
        output = self.rows("lm_head.weight") if "lm_head.weight" in self.tensors else tokens
        stream = [[a + b for a, b in zip(tokens[i], positions[t])] for t, i in enumerate(ids)]
        for layer in range(self.config["n_layer"]):
            block = f"h.{layer}"
            change = self.attention(f"{block}.attn",
                                    [self.norm(f"{block}.ln_1", x) for x in stream])
            stream = [[a + b for a, b in zip(x, d)] for x, d in zip(stream, change)]
            change = [self.mlp(f"{block}.mlp", self.norm(f"{block}.ln_2", x)) for x in stream]
            stream = [[a + b for a, b in zip(x, d)] for x, d in zip(stream, change)]
        result = []
        for x in stream:
            y = self.norm("ln_f", x)
            logits = [sum(map(mul, y, row)) for row in output]
            most = max(logits)
            total = most + math.log(sum(math.exp(v - most) for v in logits))
            result.append([v - total for v in logits])
        self.kept[ids] = result
        return result
