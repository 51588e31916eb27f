"""Writes src/text/newer_characters.inc: the characters that Hugging Face's tokenizers know and Unicode 14, which PCRE2 10.42
has tables of, doesn't; each with an older character of the same category that stands in for it.

    make_newer_characters.py > src/text/newer_characters.inc    (Python 3.11: its unicodedata is Unicode 14; tokenizers 0.23.3)
"""
import re
import sys
import unicodedata
from pathlib import Path

from tokenizers import Regex, pre_tokenizers

assert unicodedata.unidata_version == "14.0.0"
NEW = [c for c in range(0x80, 0x110000) if unicodedata.category(chr(c)) == "Cn"]
CATEGORIES = ["Lu", "Ll", "Lm", "Lo", "N", "P", "S", "M"]

# Letters that an expression lists one by one must not stand in for others.
LISTED = set()
source = (Path(__file__).parent.parent / "src/text/pre_tokenizer.cpp").read_text()
listed = source[source.index("#define CASED_LETTERS") : source.index("// clang-format on")]
listed = re.sub(r'\)" \\\n *R"\(', "", listed)
for low, _, high in re.findall(r"\\x\{([0-9A-F]+)\}(-\\x\{([0-9A-F]+)\})?", listed):
    LISTED.update(range(int(low, 16), int(high or low, 16) + 1))


def kin(code):
    """What a stand-in shares with the character: its length in UTF-8 and its side of the expressions' listed ranges."""
    return len(chr(code).encode()), code <= 0x4E00


def find_stand_in(code, category):
    near = sorted((c for c in range(max(0x80, code - 0x8000), min(code + 0x8000, 0x110000))
                   if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)).startswith(category) and c not in LISTED
                   and kin(c) == kin(code)), key=lambda c: abs(c - code))
    return near[0] if near else None


def is_numeric_for_digits(c):
    return len(pre_tokenizers.Digits(True).pre_tokenize_str("a" + chr(c))) == 2


kinds = {}
for category in CATEGORIES:
    expression = pre_tokenizers.Split(Regex(rf"\p{{{category}}}"), "removed")
    for c in NEW:
        if not 0xD800 <= c < 0xE000 and not expression.pre_tokenize_str(chr(c)):
            kinds[c] = category
for c in NEW:
    if c not in kinds and not 0xD800 <= c < 0xE000 and is_numeric_for_digits(c):
        kinds[c] = "digits only"

rows = []
for c, kind in sorted(kinds.items()):
    if rows and rows[-1][1] == c - 1 and rows[-1][2] == kind and kin(c) == kin(rows[-1][0]):
        rows[-1][1] = c
    else:
        rows.append([c, c, kind])
print("// Written by tools/make_newer_characters.py: {first, last, stand-in, known to the splitting of digits only}.")
for first, last, kind in rows:
    category = "N" if kind == "digits only" else kind
    stand_in = find_stand_in(first, category) or find_stand_in(first, category[0])
    if stand_in is None:
        sys.exit(f"U+{first:04X} ({category}): no stand-in")
    print(f"{{0x{first:X}, 0x{last:X}, 0x{stand_in:X}, {'true' if kind == 'digits only' else 'false'}}},  // {category}")
