"""Imports golden models of Hugging Face, generates with them, exports them again, alone and on
several ranks, encrypted and not."""
import base64
import hashlib
import json
import pathlib
import shutil
import struct
import subprocess
import unittest

import harness
import mutation_kinds

FOLDER = harness.workspace()
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "interchange/golden"


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def tensors_of(data):
    """Returns the bytes of each tensor in a safetensors file."""
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    head.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   data[8 + size:][slice(*entry["data_offsets"])])
            for name, entry in head.items()}


class Interchange(unittest.TestCase):
    def refused(self, code, text, *words):
        result = harness.run(*words)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(text, result.stderr)

    def test_an_imported_model_continues_as_in_transformers(self):
        # The continuation goes on beyond the token that ends a text.
        model, out = FOLDER / "endless", FOLDER / "llama3"
        shutil.copytree(GOLDEN / "llama3", model)
        config = json.loads((model / "config.json").read_text())
        config["eos_token_id"] = None  # a missing one would stand for the family's, which is 2
        (model / "config.json").write_text(json.dumps(config))
        result = harness.must(harness.run("import", model, "--out", out, "--json"))
        report = json.loads(result.stdout)
        self.assertEqual(report["dtype"], "bfloat16")
        self.assertLess(report["logits"]["largest_difference"], 1e-5)
        self.assertTrue(report["logits"]["same_choice"])
        expected = json.loads((GOLDEN / "llama3/expected.json").read_text())
        text = harness.must(harness.run(
            "generate", "--checkpoint", out, "--ids", "--prompt",
            " ".join(str(i) for i in expected["ids"]), "--temperature", 0, "--tokens", 200,
            "--precision", "fp32")).stdout
        ids = [int(word) for word in text.split()]
        self.assertEqual(ids, expected["ids"] + expected["continuation"])
        harness.must(harness.run("ckpt", "verify", out))

    def test_a_jais_is_imported_trained_and_exported(self):
        imported = FOLDER / "jais"
        report = json.loads(harness.must(harness.run(
            "import", GOLDEN / "jais", "--out", imported, "--json")).stdout)
        self.assertEqual(report["model_type"], "jais")
        self.assertTrue(report["model"]["alibi"] and report["model"]["swiglu"])
        expected = json.loads((GOLDEN / "jais/expected.json").read_text())
        text = harness.must(harness.run(
            "generate", "--checkpoint", imported, "--ids", "--prompt",
            " ".join(str(i) for i in expected["ids"]), "--temperature", 0, "--tokens", 200,
            "--precision", "fp32")).stdout
        ids = [int(word) for word in text.split()]
        self.assertEqual(ids, expected["ids"] + expected["continuation"])
        weights = (GOLDEN / "jais/model.safetensors").read_bytes()
        harness.must(harness.run("export", imported, "--format", "hf", "--out", FOLDER / "again",
                                 ranks=2))
        written = (FOLDER / "again/model.safetensors").read_bytes()
        self.assertEqual(tensors_of(written), tensors_of(weights))
        self.assertIn(b"transformer.relative_pe.slopes", written)

    def test_ranks_write_the_same_export_and_the_same_weights(self):
        harness.must(harness.run("import", GOLDEN / "gpt2", "--out", FOLDER / "one"))
        harness.must(harness.run("import", GOLDEN / "gpt2", "--out", FOLDER / "two", ranks=2))
        digests = {harness.must(harness.run("ckpt", "digest", FOLDER / name)).stdout
                   for name in ("one", "two")}
        self.assertEqual(len(digests), 1)
        # Both export one checkpoint: files name its manifest, which has the time of the import.
        for ranks in (0, 2):
            harness.must(harness.run("export", FOLDER / "one", "--format", "hf", "--out",
                                     FOLDER / f"export-{ranks}", ranks=ranks))
        self.assertEqual(files_of(FOLDER / "export-0"), files_of(FOLDER / "export-2"))
        self.assertEqual(sorted(files_of(FOLDER / "export-0")),
                         ["config.json", "model.safetensors"])

    def test_an_encrypted_checkpoint_is_exported_only_on_request(self):
        key = FOLDER / "site.key"
        harness.must(harness.run("keys", "create", "--out", key, "--name", "site"))
        sealed, exported = FOLDER / "sealed", FOLDER / "from-sealed"
        harness.must(harness.run("import", GOLDEN / "gpt2_untied", "--out", sealed, "--key",
                                 f"file:{key}"))
        words = ("export", sealed, "--format", "hf", "--out", exported)
        self.refused(77, "key", *words)
        self.refused(77, "--plain", *words, "--key", f"file:{key}")
        self.assertFalse(exported.exists())
        harness.must(harness.run(*words, "--key", f"file:{key}", "--plain"))
        self.assertIn("model.safetensors", files_of(exported))

    def test_an_export_is_signed_and_verified(self):
        key, sealed = FOLDER / "models.key", FOLDER / "signed"
        harness.must(harness.run("audit", "keygen", "--out", key, "--algorithm", "ecdsa"))
        harness.must(harness.run("import", GOLDEN / "gpt2", "--out", FOLDER / "to-sign"))
        words = ("export", FOLDER / "to-sign", "--format", "hf", "--out", sealed, "--sign")
        other = FOLDER / "other.key"
        harness.must(harness.run("audit", "keygen", "--out", other))
        self.refused(2, "--algorithm ecdsa", *words, other)
        self.assertFalse(sealed.exists())
        harness.must(harness.run(*words, key, ranks=2))
        bundle = json.loads((sealed / "model.sig").read_text())
        statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
        digests = {each["name"]: each["digest"] for each in statement["predicate"]["resources"]}
        self.assertEqual(digests, {name: hashlib.sha256(data).hexdigest()
                                   for name, data in files_of(sealed).items()
                                   if name != "model.sig"})
        verify = ("verify", sealed, "--trust", f"{key}.pub")
        self.assertIn("2 files as signed", harness.must(harness.run(*verify)).stdout)
        result = harness.run("verify", sealed, "--trust", f"{other}.pub")
        self.assertEqual(result.returncode, 77, result.stdout)
        with open(sealed / "model.safetensors", "r+b") as file:
            file.seek(-1, 2)
            last = file.read(1)[0]
            file.seek(-1, 2)
            file.write(bytes([last ^ 1]))
        result = harness.run(*verify)
        self.assertEqual(result.returncode, 65, result.stdout)
        self.assertIn("model.safetensors was changed", result.stdout)

    def test_a_gguf_file_is_written(self):
        imported, out = FOLDER / "imported", FOLDER / "gguf"
        harness.must(harness.run("import", GOLDEN / "llama2", "--out", imported))
        harness.must(harness.run("export", imported, "--format", "gguf", "--out", out))
        self.assertEqual((out / "model.gguf").read_bytes()[:8], b"GGUF\x03\0\0\0")
        self.refused(2, "--dtype q4_0", "export", imported, "--format", "hf", "--dtype", "q4_0",
                     "--out", FOLDER / "y")

    def test_a_graph_of_onnx_is_written(self):
        imported, out = FOLDER / "for-onnx", FOLDER / "repository" / "small"
        harness.must(harness.run("import", GOLDEN / "gpt2", "--out", imported))
        out.parent.mkdir()
        result = json.loads(harness.must(harness.run(
            "export", imported, "--format", "triton", "--dtype", "bf16", "--out", out, "--json",
            ranks=2)).stdout)
        self.assertEqual((result["format"], result["dtype"]), ("triton", "bfloat16"))
        self.assertIn('name: "small"', (out / "config.pbtxt").read_text())
        graph, weights = out / "1/model.onnx", out / "1/model.onnx.data"
        self.assertIn(b"trireme", graph.read_bytes()[:32])
        self.assertEqual(result["bytes"], graph.stat().st_size + weights.stat().st_size)
        refused = harness.run("export", imported, "--format", "onnx", "--dtype", "q8_0", "--out",
                              FOLDER / "q8")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("GGUF", refused.stderr)

    def test_refusals_name_the_cause_and_leave_nothing(self):
        bad = FOLDER / "bad"
        bad.mkdir()
        (bad / "config.json").write_text('{"model_type": "falcon"}')
        before = sorted(FOLDER.iterdir())
        self.refused(65, "'falcon'", "import", bad, "--out", FOLDER / "x")
        self.refused(66, "does not exist", "import", FOLDER / "nowhere", "--out", FOLDER / "x")
        self.refused(77, "exists", "import", GOLDEN / "gpt2", "--out", bad)
        self.refused(2, "--format is missing", "export", bad, "--out", FOLDER / "x")
        self.refused(2, "unknown option", "export", bad, "--bogus")
        self.refused(66, "", "export", FOLDER / "nowhere", "--format", "hf", "--out", FOLDER / "x")
        self.assertEqual(sorted(FOLDER.iterdir()), before)

    def test_an_output_in_its_source_or_with_a_long_name_is_refused(self):
        source, made = FOLDER / "around", FOLDER / "made"
        shutil.copytree(GOLDEN / "gpt2", source)
        harness.must(harness.run("import", source, "--out", made / "step-00000000"))
        step = made / "step-00000000"
        before = {path: files_of(path) for path in (source, step)}
        for out in (source / "a", source):
            self.refused(2, str(source), "import", source, "--out", out)
        self.refused(2, f"lies in the checkpoint {step}", "import", source, "--out", step / "a")
        for checkpoint, out in ((made, made / "a"), (made, made), (made, step / "a"),
                                (step, step / "a/b"), (step, step)):
            for words in (("export", checkpoint, "--format", "hf"),
                          ("export", checkpoint, "--format", "onnx"),
                          ("sparsify", checkpoint, "--sparsity", 0.5)):
                self.refused(2, "outside", *words, "--out", out)
        self.refused(2, f"lies in the checkpoint {step}", "import", source, "--out",
                     made / "step-00000000/../step-00000000/a")
        self.assertEqual({path: files_of(path) for path in (source, step)}, before)
        self.assertEqual(list(made.iterdir()), [step])
        for out, text in ((FOLDER / ("n" * 245), "has 245 bytes"),
                          (FOLDER / ("n" * 256) / "a", "255 bytes")):
            for words in (("import", source), ("export", step, "--format", "hf"),
                          ("sparsify", step, "--sparsity", 0.5)):
                self.refused(2, text, *words, "--out", out)
        harness.must(harness.run("import", source, "--out", FOLDER / ("n" * 200)))

    def test_an_import_ends_with_the_model_of_a_configuration(self):
        header = "{'descr': '<u2', 'fortran_order': False, 'shape': (400,), }".ljust(117) + "\n"
        ids = FOLDER / "ids.npy"
        ids.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                        bytes(byte for i in range(400) for byte in (i % 30, 0)))
        for name in ("gpt2_untied", "llama3"):
            out, config = FOLDER / f"shown-{name}", FOLDER / f"tune-{name}.yaml"
            text = harness.must(harness.run("import", GOLDEN / name, "--out", out)).stdout
            model = text[text.index("model:\n"):]
            vocab = int(model.split("vocab: ")[1].split()[0])
            harness.must(harness.run("data", "convert", ids, "--vocab", vocab, "--tokenizer", "own",
                                     "--out", FOLDER / f"ids-{name}"))
            config.write_text(
                f"{model}data: {{train: {FOLDER / f'ids-{name}'}, sequence: 16}}\n"
                f"train: {{steps: 1, global_batch: 2, micro_batch: 1, threads: 1}}\n"
                f"optimizer: {{lr: 1e-3, schedule: {{warmup: 1}}}}\n"
                f"run: {{dir: {FOLDER / f'run-{name}'}}}\n")
            harness.must(harness.run("train", config, f"checkpoint.init_from={out}"))

    def test_weights_that_the_configuration_does_not_use_are_refused(self):
        made = FOLDER / "fewer"
        harness.must(harness.run("import", GOLDEN / "llama3", "--out", made))
        layers = json.loads((made / "manifest.json").read_text())["config"]["model.layers"]
        for key, value, text in (("model.layers", layers - 1, f"model.layers.{layers - 1}."),
                                 ("train.precision", "fp64", "'train.precision' is 'fp64'")):
            edited = FOLDER / f"edited-{key}"
            shutil.copytree(made, edited)
            mutation_kinds.edit(edited / "manifest.json",
                                lambda fields: fields["config"].update({key: value}))
            self.refused(65, text, "generate", "--checkpoint", edited, "--ids", "--prompt", "1 2")
            self.refused(65, text, "export", edited, "--format", "hf", "--out", FOLDER / "never")
            self.refused(65, text, "sparsify", edited, "--out", FOLDER / "never", "--sparsity",
                         "0.5")
            verified = harness.run("ckpt", "verify", edited)
            self.assertEqual(verified.returncode, 65, verified.stdout)
            self.assertIn(text, verified.stdout)

    def test_too_little_memory_leaves_no_draft(self):
        made = FOLDER / "for-little-memory"
        harness.must(harness.run("import", GOLDEN / "llama3", "--out", made))
        codes = set()
        for words in (("import", GOLDEN / "llama3"), ("export", made, "--format", "hf")):
            for kilobytes in range(60_000, 400_000, 20_000):
                out = FOLDER / f"little-{words[0]}-{kilobytes}"
                result = subprocess.run(
                    ["bash", "-c", f'ulimit -v {kilobytes} && exec "$@"', "bash",
                     *harness.command([*words, "--out", out])],
                    env=harness.ENVIRONMENT, capture_output=True, text=True, check=False)
                self.assertEqual(list(FOLDER.glob(".little-*")), [], (kilobytes, result.stderr))
                self.assertNotIn(result.returncode, (65, 74), (kilobytes, result.stderr))
                self.assertNotIn("micro-batch", result.stderr)
                self.assertEqual(result.returncode == 0, out.exists(), result.stderr)
                codes.add(result.returncode)
        self.assertLessEqual({0, 76}, codes)


if __name__ == "__main__":
    unittest.main()
