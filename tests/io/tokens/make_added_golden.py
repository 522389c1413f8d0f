"""Makes golden/added.json: what transformers' own tokenizer for SentencePiece models gives
for tokens that files beside the model add.

    python3 -m venv venv && venv/bin/pip install transformers==4.51.3 sentencepiece protobuf
    venv/bin/python tests/io/tokens/make_added_golden.py

Later versions of transformers have no such tokenizer any more: they convert the files.
"""

import json
import pathlib
import shutil
import tempfile

from transformers import LlamaTokenizer

FOLDER = pathlib.Path(__file__).resolve().parent / "golden"
TEXTS = ["a plain text", "<|im_start|>user\nHello there<|im_end|>\n", "x<tool>y <tool> z", "<tool>",
         "<s>begins", "and <s> within</s>", "two  blanks<|im_end|>  and more", " blank first",
         "<|im_start|> blank after", "<|im_start|><|im_end|><tool>", "<|im_start|>", "\n<tool>\n",
         "wide \t<wide>\n  text", "a<wide>b", "<widest><wide>", "ب<|im_end|>ج", "🙂<tool>🙂", "<tool",
         "tool>", "<<tool>>", "<|im_end|>a b<|im_end|>c d"]
ADDED = {"<|im_start|>": 420, "<|im_end|>": 421, "<tool>": 422}


def entry(content, special, **options):
    return {"content": content, "lstrip": False, "normalized": False, "rstrip": False,
            "single_word": False, "special": special, **options}


PIECES = {str(i): entry(text, True) for i, text in enumerate(["<unk>", "<s>", "</s>"])}
DECODER = {**PIECES, "420": entry("<|im_start|>", True), "421": entry("<|im_end|>", True),
           "422": entry("<tool>", False), "423": entry("<wide>", False, lstrip=True, rstrip=True),
           "424": entry("<widest>", False)}
CASES = {
    "file": {"added_tokens.json": ADDED},
    "file with names": {
        "added_tokens.json": ADDED,
        "special_tokens_map.json": {"additional_special_tokens": ["<|im_start|>"]},
        "tokenizer_config.json": {"eos_token": "<|im_end|>"}},
    "decoder": {"added_tokens.json": {"<other>": 420},
                "tokenizer_config.json": {"added_tokens_decoder": DECODER, "legacy": True}},
    "not legacy": {"tokenizer_config.json": {
        "added_tokens_decoder": DECODER, "legacy": False,
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}},
}


def is_the_same(name, text):
    """Returns whether Trireme, and the tokenizer that transformers makes of the files, which is the
    one that users get, treat the text in the same way."""
    if name == "not legacy":  # they put no blank in front of a blank, and of such added tokens
        return not text.startswith((" ", "<tool>", "<wide"))
    return name != "file with names" or "</s>" not in text  # a piece that ends no text any more


def case(name, files):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shutil.copy(FOLDER / "sentencepiece.model", folder / "tokenizer.model")
        for file, value in files.items():
            (folder / file).write_text(json.dumps(value))
        tokenizer = LlamaTokenizer.from_pretrained(folder)
        texts = [t for t in TEXTS if is_the_same(name, t)]
        return {"name": name, "files": files, "vocab": len(tokenizer),
                "end": tokenizer.eos_token_id, "special": sorted(tokenizer.all_special_ids),
                "texts": [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False)}
                          for t in texts]}


def main():
    cases = [case(name, files) for name, files in CASES.items()]
    (FOLDER / "added.json").write_text(
        json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
