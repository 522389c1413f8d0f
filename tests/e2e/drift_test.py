"""Tests `trireme data drift` against the formulas, computed from the tokens and the embedding that
other commands export."""
import array
import collections
import json
import math
import struct
import unittest

import harness


def tokens_of(folder, name, dataset):
    """Returns how often each token occurs."""
    harness.must(harness.run("data", "export", dataset, "--format", "npy", "--out", folder / name))
    data = (folder / f"{name}.npy").read_bytes()
    head = 10 + struct.unpack("<H", data[8:10])[0]
    code = {b"<u2": "H", b"<u4": "I"}[data[data.index(b"<u"):][:3]]
    return collections.Counter(array.array(code, data[head:]))


class Drift(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.workspace()
        cls.before, validation = harness.make_datasets(cls.folder, 30_000)
        numbers = cls.folder / "numbers.txt"
        numbers.write_text("".join(f"{i * i} " for i in range(3000)))
        cls.after = cls.folder / "numbers"
        harness.must(harness.run("data", "pack", numbers, "--out", cls.after))
        cls.config = harness.write_config(cls.folder / "run.yaml", [cls.before, validation],
                                          "llama", train__steps=2)
        harness.must(harness.run("train", cls.config))
        cls.counts = [tokens_of(cls.folder, name, data)
                      for name, data in (("p", cls.before), ("q", cls.after))]
        cls.checkpoints = harness.run_dir(cls.config) / "checkpoints"

    def drift(self, *words):
        return json.loads(harness.must(harness.run(
            "data", "drift", self.before, self.after, "--json", *words)).stdout)

    def test_tokens(self):
        found = self.drift()
        p, q = self.counts
        shares = {token: (p[token] / p.total(), q[token] / q.total()) for token in p | q}
        bits = {token: sum(x * math.log2(2 * x / sum(both)) for x in both if x) / 2
                for token, both in shares.items()}
        self.assertAlmostEqual(found["divergence_bits"], sum(bits.values()), places=12)
        self.assertAlmostEqual(found["unseen"], sum(b for a, b in shares.values() if a == 0))
        self.assertGreater(found["divergence_bits"], 0.3)
        self.assertEqual([each["token"] for each in found["moved"]],
                         sorted(bits, key=lambda token: (-bits[token], token))[:20])
        self.assertEqual(found["after"]["tokens"], q.total())
        self.assertEqual(found["after"]["documents"], 1)

    def test_embeddings(self):
        found = self.drift("--checkpoint", self.checkpoints)["embedding"]
        out = self.folder / "hf"
        harness.must(harness.run("export", self.checkpoints, "--format", "hf", "--out", out))
        data = (out / "model.safetensors").read_bytes()
        start = 8 + int.from_bytes(data[:8], "little")
        entry = json.loads(data[8:start])["model.embed_tokens.weight"]
        begin, end = entry["data_offsets"]
        rows = array.array("f", data[start + begin:start + end])
        channels = entry["shape"][1]

        def moments(counts):
            total = sum(counts.values())
            mean = [sum(n * rows[t * channels + c] for t, n in counts.items()) / total
                    for c in range(channels)]
            return mean, [sum(n * (rows[t * channels + c] - mean[c]) ** 2
                              for t, n in counts.items()) / total for c in range(channels)]

        (mp, vp), (mq, vq) = map(moments, self.counts)
        distance = math.dist(mp, mq) ** 2
        self.assertAlmostEqual(found["shift"], math.sqrt(distance / sum(vp)), places=6)
        self.assertAlmostEqual(
            found["frechet"], distance + math.dist(map(math.sqrt, vp), map(math.sqrt, vq)) ** 2,
            places=6)
        self.assertAlmostEqual(
            found["cosine"], sum(a * b for a, b in zip(mp, mq)) / math.hypot(*mp) / math.hypot(*mq),
            places=6)

    def test_a_bound_ends_with_4(self):
        words = ("data", "drift", self.before, self.after, "--at-most")
        for bound, code in ((0, 4), (0.01, 4), (1, 0)):
            result = harness.run(*words, bound)
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)
            self.assertIn("divergence of the tokens", result.stdout)
        for bound in ("-1", "", "nan"):
            self.assertEqual(harness.run(*words, bound).returncode, 2, bound)
        same = harness.must(harness.run("data", "drift", self.before, self.before)).stdout
        self.assertIn("0.000000 bits", same)

    def test_different_tokenizers_are_refused(self):
        other, data = self.folder / "tokenizer", self.folder / "other"
        harness.must(harness.run("tokenizer", "train", self.folder / "numbers.txt", "--vocab", 259,
                                 "--out", other))
        harness.must(harness.run("data", "pack", self.folder / "numbers.txt", "--tokenizer", other,
                                 "--out", data))
        result = harness.run("data", "drift", self.before, data)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("different tokenizers", result.stderr)


if __name__ == "__main__":
    unittest.main()
