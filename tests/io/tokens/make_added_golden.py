"""Makes golden/added.json and golden/vocabulary.json: what transformers' own tokenizers give for
tokens that files beside a SentencePiece model add, and for a vocab.json with a merges.txt and such
files. The vocabulary and the merges are those in golden/gpt2.json.

    python3 -m venv venv && venv/bin/pip install transformers==4.51.3 sentencepiece protobuf
    venv/bin/python tests/io/tokens/make_added_golden.py

Later versions of transformers have no such tokenizers any more: they convert the files.
"""

import json
import pathlib
import shutil
import tempfile

from transformers import GPT2Tokenizer, LlamaTokenizer, Qwen2Tokenizer

FOLDER = pathlib.Path(__file__).resolve().parent / "golden"
TEXTS = ["a plain text", "<|im_start|>user\nHello there<|im_end|>\n", "x<tool>y <tool> z", "<tool>",
         "<s>begins", "and <s> within</s>", "two  blanks<|im_end|>  and more", " blank first",
         "<|im_start|> blank after", "<|im_start|><|im_end|><tool>", "<|im_start|>", "\n<tool>\n",
         "wide \t<wide>\n  text", "a<wide>b", "<widest><wide>", "ب<|im_end|>ج", "🙂<tool>🙂", "<tool",
         "tool>", "<<tool>>", "<|im_end|>a b<|im_end|>c d"]
WORDS = ["I'LL don't", "1234 12", "e\u0301 and \u00e9", "line\r\n\r\n  next", "<|endoftext|>",
         "<unk>"]


def entry(content, special, **options):
    return {"content": content, "lstrip": False, "normalized": False, "rstrip": False,
            "single_word": False, "special": special, **options}


def decoder(tokens, first):
    """Returns an added_tokens_decoder of tokens of the model, and of others from id `first` on."""
    added = [entry("<|im_start|>", True), entry("<|im_end|>", True), entry("<tool>", False),
             entry("<wide>", False, lstrip=True, rstrip=True), entry("<widest>", False)]
    return {**tokens, **{str(first + i): token for i, token in enumerate(added)}}


def added_from(first):
    return {"<|im_start|>": first, "<|im_end|>": first + 1, "<tool>": first + 2}


PIECES = {str(i): entry(text, True) for i, text in enumerate(["<unk>", "<s>", "</s>"])}
DECODER = decoder(PIECES, 420)
MODEL_CASES = {
    "file": {"added_tokens.json": added_from(420)},
    "file with names": {
        "added_tokens.json": added_from(420),
        "special_tokens_map.json": {"additional_special_tokens": ["<|im_start|>"]},
        "tokenizer_config.json": {"eos_token": "<|im_end|>"}},
    "decoder": {"added_tokens.json": {"<other>": 420},
                "tokenizer_config.json": {"added_tokens_decoder": DECODER, "legacy": True}},
    "not legacy": {"tokenizer_config.json": {
        "added_tokens_decoder": DECODER, "legacy": False,
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}},
    "not legacy, no tokens": {"tokenizer_config.json": {"legacy": False}},
    "no blank": {"tokenizer_config.json": {"legacy": False, "add_prefix_space": None}},
    "an end": {"tokenizer_config.json": {"add_bos_token": False, "add_eos_token": True}},
}

NAMES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
VOCABULARY_DECODER = decoder({"1": PIECES["1"], "330": entry("<|endoftext|>", True)}, 331)
VOCABULARY_CASES = {
    "names": {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", **NAMES}},
    "names in another file": {"special_tokens_map.json": NAMES,
                              "tokenizer_config.json": {"eos_token": "<s>"}},
    "file": {"added_tokens.json": added_from(330),
             "special_tokens_map.json": {**NAMES, "additional_special_tokens": ["<|im_start|>"]}},
    "decoder": {"added_tokens.json": {"<other>": 330},
                "special_tokens_map.json": {"eos_token": "</s>"},
                "tokenizer_config.json": {
                    "tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": VOCABULARY_DECODER,
                    "eos_token": "<|im_end|>"}},
    "qwen2": {"tokenizer_config.json": {
        "tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": VOCABULARY_DECODER,
        "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": True}},
    "a begin": {"tokenizer_config.json": {"add_bos_token": True, "add_eos_token": True, **NAMES}},
}


def is_the_same(name, text):
    """Returns whether Trireme, and the tokenizer that transformers makes of a model's files, which
    is the one that users get, treat the text in the same way."""
    if name.startswith("not legacy"):  # no blank in front of a blank, and of such added tokens
        return not text.startswith((" ", "<tool>", "<wide"))
    return name != "file with names" or "</s>" not in text  # a piece that ends no text any more


def write_model(folder):
    shutil.copy(FOLDER / "sentencepiece.model", folder / "tokenizer.model")


def write_vocabulary(folder):
    model = json.loads((FOLDER / "gpt2.json").read_text(encoding="utf-8"))["tokenizer"]["model"]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    merges = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]
    (folder / "merges.txt").write_text("\n".join(merges) + "\n", encoding="utf-8")


def case(name, files, family, write, texts):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write(folder)
        for file, value in files.items():
            (folder / file).write_text(json.dumps(value))
        tokenizer = family.from_pretrained(folder)
        return {"name": name, "files": files, "vocab": len(tokenizer),
                "end": tokenizer.eos_token_id,
                "around": tokenizer.build_inputs_with_special_tokens([]),
                "special": sorted(tokenizer.all_special_ids),
                "texts": [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False)}
                          for t in texts]}


def write_golden(name, cases):
    (FOLDER / name).write_text(json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n",
                               encoding="utf-8")


def main():
    write_golden("added.json",
                 [case(name, files, LlamaTokenizer, write_model,
                       [t for t in TEXTS if is_the_same(name, t)])
                  for name, files in MODEL_CASES.items()])
    write_golden("vocabulary.json",
                 [case(name, files, Qwen2Tokenizer if name == "qwen2" else GPT2Tokenizer,
                       write_vocabulary, TEXTS + WORDS)
                  for name, files in VOCABULARY_CASES.items()])


if __name__ == "__main__":
    main()
