#!/usr/bin/env python3
"""Writes io/tokens/unicode_tables.inc from the Unicode Character Database.

    python3 -m venv venv && venv/bin/pip install unicodedata2==16.0.0
    venv/bin/python io/tokens/make_unicode_tables.py > io/tokens/unicode_tables.inc

unicodedata2 is Python's own unicodedata at a chosen version of Unicode; from Python 3.14 on,
unicodedata itself has version 16.0. The version is that of Hugging Face's tokenizers 0.23.
"""

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

VERSION = "16.0.0"
LAST = 0x10FFFF
SPACES = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
          0x202F, 0x205F, 0x3000}
# Characters of \w that their category does not tell: Other_Alphabetic symbols and Join_Control.
ALSO_WORDS = {0x200C, 0x200D, *range(0x24B6, 0x24EA), *range(0x1F130, 0x1F14A),
              *range(0x1F150, 0x1F16A), *range(0x1F170, 0x1F18A)}
# The bits of enum CharacterClass in unicode.h.
LETTER, NUMBER, SPACE, UPPER, LOWER, PUNCTUATION, WORD, MARK = (1 << i for i in range(8))


def class_of(code):
    category = unicodedata.category(chr(code))
    bits = 0
    bits |= LETTER if category[0] == "L" else 0
    bits |= NUMBER if category[0] == "N" else 0
    bits |= SPACE if code in SPACES else 0
    bits |= UPPER if category in ("Lu", "Lt", "Lm", "Lo") or category[0] == "M" else 0
    bits |= LOWER if category in ("Ll", "Lm", "Lo") or category[0] == "M" else 0
    bits |= PUNCTUATION if category[0] == "P" or chr(code) in "$+<=>^`|~" else 0
    bits |= WORD if category[0] in "LM" or category in ("Nd", "Nl", "Pc") else 0
    bits |= WORD if code in ALSO_WORDS else 0
    bits |= MARK if category[0] == "M" else 0
    return bits


def classes():
    """Yields the first code of each run of one class, and the class."""
    before = None
    for code in range(LAST + 1):
        bits = class_of(code)
        if bits != before:
            yield from (code, bits)
        before = bits


def combining_classes():
    for code in range(LAST + 1):
        if order := unicodedata.combining(chr(code)):
            yield from (code, order)


def decompositions():
    """Yields code | length << 21 | kind << 26 and the codes of each decomposition. Kinds: 0
    canonical and composed again, 1 canonical, 2 compatibility."""
    for code in range(LAST + 1):
        words = unicodedata.decomposition(chr(code)).split()
        if not words:
            continue
        kind = 2 if words[0].startswith("<") else 1
        codes = [int(word, 16) for word in words if not word.startswith("<")]
        if kind == 1 and len(codes) == 2:
            pair = "".join(map(chr, codes))
            kind = 0 if unicodedata.normalize("NFC", pair) == chr(code) else 1
        yield code | len(codes) << 21 | kind << 26
        yield from codes


def show(name, words):
    print(f"constexpr std::uint32_t {name}[] = {{")
    line = ""
    for word in words:
        text = f"{word},"
        if len(line) + len(text) > 100:
            print(line)
            line = ""
        line += text
    print(f"{line}\n}};")


def main():
    if unicodedata.unidata_version != VERSION:
        raise SystemExit(f"unicodedata has version {unicodedata.unidata_version}, not {VERSION}: "
                         "install unicodedata2==16.0.0")
    print(f"// Made by make_unicode_tables.py from Unicode {VERSION}.")
    show("kClassRuns", classes())
    show("kCombiningClasses", combining_classes())
    show("kDecompositions", decompositions())


if __name__ == "__main__":
    main()
