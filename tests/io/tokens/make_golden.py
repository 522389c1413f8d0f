#!/usr/bin/env python3
"""Makes the golden vectors of the tokenizers with Hugging Face's tokenizers.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
    venv/bin/python tests/io/tokens/make_golden.py

trains a small tokenizer of each kind and writes it, with texts and what they encode and decode to,
to tests/io/tokens/golden/KIND.json. What equals the text, the ids or the decoded text is left out.
"""
import io
import json
import pathlib
import random

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers as pre
from tokenizers import processors, trainers

FOLDER = pathlib.Path(__file__).resolve().parent / "golden"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

TEXTS = [
    "The ship sails under oars along the coast, and we're sure they'll see it: isn't that 1234567?",
    "  leading, trailing  \t and   many   blanks \n\n\n  next line\r\n\r\n\tindented\n ",
    "السفينة تبحر على طول الساحل، والريح ١٢٣٤ قوية. اَلْعَرَبِيَّةُ لغة",
    "Корабль плывёт вдоль берега, 42 весла; Это — быстро!",
    "Το πλοίο πλέει κατά μήκος της ακτής.", "船は海岸に沿って進む。オールが１２３本ある。ﾊﾝｶｸ",
    "船沿着海岸航行，有四十二支桨。", "배가 해안을 따라 항해한다. 한글 자모", "ספינה שטה לאורך החוף שָׁלוֹם",
    "जहाज़ तट के साथ चलता है। १२३ क्षत्रिय",
    "เรือแล่นไปตามชายฝั่ง ๑๒๓", "கப்பல் கடற்கரையோரம் செல்கிறது",
    "Նավը լողում է ափի երկայնքով", "გემი მიცურავს ნაპირის გასწვრივ", "জাহাজটি উপকূল বরাবর চলে",
    "መርከቡ በባሕር ዳርቻ ይጓዛል",
    "Tàu đi dọc bờ biển, e\u0301tude na\u00efve \u1e9b\u0323 \ufb01n \u00bd \u2460 \u212b",
    "👩‍👩‍👧‍👦 family 🇩🇪 flag ☕️ café 😀😃",
    "int main() { return f(x)->y[3] != 0x1F; } // 'tis C++'s",
    "I'M HE'LL 'S 'ſ don'T x'ſy CamelCaseWORD lowerUPPER ǅ a/b\n/c//d", "", " ", "\n", "   ", "a",
    "\u00a0nbsp\u3000ideographic\u2028separator\u200bzero\ufeffbom", "null\u0000byte \u007f\u0085",
    "hello<s> world</s>  <mask>  x<|endoftext|>y <|endoftext|> z",
    "<s><s></s> a<tok>b <tok> c ntok n tok",
    "▁▁mark▁ed ▁text", "<0x41> <0xE2> looks like bytes", "1 12 123 1234 12345 ١٢٣٤ ½¾²³ 3.14159",
    "¹²³ abc¼ def 10²  7½ \u06dd", "!!!??... ,,, --- ((())) «quoted» “curly” ‚low‛",
]


def random_texts(count):
    """Returns strings of characters that are next to each other by chance only."""
    draw = random.Random(1)
    pools = [list(" \t\n\r'stdrevml"), list("abcXYZ019.,/-"), [c for t in TEXTS for c in t]]
    return ["".join(draw.choice(draw.choice(pools)) for _ in range(draw.randrange(2, 40)))
            for _ in range(count)]


def trained(pre_tokenizer, normalizer=None, vocab=330, **options):
    model = Tokenizer(models.BPE(**options))
    model.pre_tokenizer = pre_tokenizer
    if normalizer:
        model.normalizer = normalizer
    bytes_too = pre.ByteLevel.alphabet() if "ByteLevel" in str(pre_tokenizer) else []
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=["<unk>", "<s>", "</s>"],
                                  initial_alphabet=bytes_too, show_progress=False)
    model.train_from_iterator(TEXTS * 3, trainer)
    return model


def byte_level(steps, **settings):
    model = trained(pre.Sequence(steps) if len(steps) > 1 else steps[0], **settings)
    model.decoder = decoders.ByteLevel()
    return model


def changed(tokenizer, change):
    """Returns the tokenizer of a changed tokenizer.json."""
    definition = json.loads(tokenizer.to_str())
    change(definition)
    return Tokenizer.from_str(json.dumps(definition))


def sentencepiece_style(pre_tokenizer, normalizer, decoder):
    """Returns a tokenizer whose blanks are U+2581 and whose unknown characters become bytes."""
    model = trained(pre.Metaspace(prepend_scheme="always"), vocab=200)

    def change(definition):
        old = definition["model"]
        names = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
        names += [t for t in old["vocab"] if t not in names and not "ა" <= t[0] <= "ჿ"]
        merges = [m for m in old["merges"] if {*m, "".join(m)} <= set(names)]
        old.update(vocab={t: i for i, t in enumerate(names)}, merges=merges, unk_token="<unk>",
                   fuse_unk=True, byte_fallback=True)
    model = changed(model, change)
    model.pre_tokenizer = pre_tokenizer
    model.normalizer = normalizer
    model.decoder = decoder
    model.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return model


def llama2():
    return sentencepiece_style(
        None, normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                           decoders.Strip(" ", 1, 0)]))


def mistral():
    model = sentencepiece_style(
        pre.Metaspace(prepend_scheme="first", split=False), None,
        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                           decoders.Strip(" ", 1, 0)]))
    model.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True)])
    model.add_tokens([AddedToken("tok", single_word=True), AddedToken("<tok>", normalized=True)])
    return model


def llama3():
    model = byte_level([pre.Split(Regex(LLAMA3), "isolated"),
                        pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    model = changed(model, lambda d: d["model"].update(ignore_merges=True))
    model.add_special_tokens(["<|endoftext|>"])
    model.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A $B", special_tokens=[("<s>", 1), ("</s>", 2)])])
    return model


def kinds():
    plain = pre.ByteLevel(add_prefix_space=False)
    raw = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    yield "gpt2", byte_level([plain])
    yield "gpt2-prefix", byte_level([pre.ByteLevel(add_prefix_space=True)])
    yield "llama3", llama3()
    yield "qwen2", byte_level([pre.Split(Regex(QWEN2), "isolated"), raw],
                              normalizer=normalizers.NFC())
    yield "tekken", byte_level([pre.Split(Regex(TEKKEN), "isolated"), raw])
    yield "falcon", byte_level([pre.Punctuation("contiguous"), plain, pre.Digits(False),
                                pre.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    yield "llama2", llama2()
    yield "mistral", mistral()
    words = trained(pre.Sequence([pre.WhitespaceSplit(), pre.Digits(True), pre.Punctuation()]),
                    normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(True, True)]),
                    vocab=320, unk_token="<unk>", fuse_unk=False)
    yield "words", changed(words, lambda d: d["model"]["vocab"].pop("ა", 0))
    marked = trained(pre.Metaspace(prepend_scheme="never"), normalizers.NFKD(), vocab=320)
    marked.decoder = decoders.Metaspace(prepend_scheme="never")
    yield "metaspace", marked


def sentencepiece_model():
    """Writes a model that SentencePiece trained, and the ids that it gives itself."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS[:5] * 3), model_writer=model, model_type="bpe",
        vocab_size=420, character_coverage=0.98, byte_fallback=True, minloglevel=2,
        normalization_rule_name="identity", remove_extra_whitespaces=False)
    (FOLDER / "sentencepiece.model").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    # SentencePiece takes <s> for text, Hugging Face for a token.
    texts = [t for t in TEXTS + random_texts(2) if "<s>" not in t and "\0" not in t]
    cases = [{"text": t, "ids": processor.encode(t),
              "decoded": processor.decode(processor.encode(t))} for t in texts]
    (FOLDER / "sentencepiece.json").write_text(
        json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def main():
    FOLDER.mkdir(exist_ok=True)
    sentencepiece_model()
    for name, tokenizer in kinds():
        cases = []
        for text in TEXTS + random_texts(2):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            case = {"text": text, "ids": ids, "with_special": tokenizer.encode(text).ids,
                    "decoded": tokenizer.decode(ids),
                    "decoded_special": tokenizer.decode(ids, skip_special_tokens=False)}
            for key, same in (("decoded_special", "decoded"), ("decoded", "text"),
                                ("with_special", "ids")):
                if case[key] == case[same]:
                    del case[key]
            if len(cases) > 4:
                case.pop("with_special", None)  # the same for all texts
            cases.append(case)
        whole = {"tokenizer": json.loads(tokenizer.to_str()), "cases": cases}
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(name, len(cases), "cases,", len(text.encode()), "bytes")


if __name__ == "__main__":
    main()
