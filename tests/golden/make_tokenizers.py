"""Writes text/tokenizers.json: digests of the ids that the oracles (Hugging Face tokenizers, sentencepiece) give for three
real texts and 10,000 random strings, for each vocabulary at hand.

    make_tokenizers.py VOCABULARIES_DIR TEXTS_DIR MODEL.gguf ...   (versions in requirements.txt)

A vocabulary is a GGUF file. Control tokens are text for the oracle ("plain"), as for a user's message; for models that have
them, "special" is with control tokens matched. tests/text/random_strings.h makes the same strings.

For Gemma 3 the oracle is SentencePiece, which its tokenizer was made with. Hugging Face's conversion (BPE by ranks, user-defined
pieces as added tokens) gives the same ids for the three texts and 9,811 of the strings; the other 189 have more than 31 spaces
in a row (SentencePiece takes the longest piece first, merges by rank end elsewhere) or a U+2581 written as such (to SentencePiece
it is a space, to Hugging Face's added tokens it isn't).
"""
import json
import pathlib
import re
import sys

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as sp_model
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

SEED, STRINGS, GROUP = 20261129, 10_000, 100
TEXTS = ["botchan.txt", "wagahaiwa_nekodearu.txt", "wikitext2-test.txt"]
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
MASK = (1 << 64) - 1


class SplitMix:
    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, n):
        return self.next() % n


# What strings are made of. The tables are the same, in the same order, in random_strings.h.
RANGES = [(0x00, 0x20), (0x21, 0x2F), (0x30, 0x39), (0x30, 0x39), (0x3A, 0x40), (0x41, 0x5A), (0x61, 0x7A), (0x61, 0x7A),
          (0x61, 0x7A), (0x7B, 0xA0), (0xA1, 0x24F), (0x250, 0x36F), (0x300, 0x36F), (0x370, 0x52F), (0x531, 0x6FF),
          (0x700, 0x97F), (0x980, 0xDFF), (0xE00, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x1DFF), (0x1E00, 0x1FFF),
          (0x2000, 0x206F), (0x2070, 0x2BFF), (0x2C00, 0x2FFF), (0x3000, 0x30FF), (0x3040, 0x30FF), (0x3100, 0x4DFF),
          (0x4E00, 0x9FFF), (0x4E00, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7A3), (0xE000, 0xFAFF), (0xFB00, 0xFEFF),
          (0xFF00, 0xFFFF), (0x10000, 0x10FFF), (0x11000, 0x1BCFF), (0x1D000, 0x1D7FF), (0x1E000, 0x1EFFF),
          (0x1F000, 0x1FAFF), (0x1F300, 0x1F64F), (0x20000, 0x323AF), (0xE0000, 0xE01EF), (0x80, 0x10FFFF)]
WORDS = ["'s", "'S", "'ll", "'LL", "'Ve", "'re", "'D", "don't", "\r\n", "\n\n", "\t\t\t", " \n ", "\u3000", "\u00a0",
         "\u2581", "\u2581\u2581", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "</s>", "<s>", "<bos>", "<eos>", "<unk>",
         "<pad>", "<start_of_turn>", "<end_of_turn>", "<unused7>", "<0x0A>", "[multimodal]", "<table>", "</h1>",
         "<|eot_id|>", "[PAD151646]", "\u200d", "\ufe0f", "e\u0301", "\uac00\u11a8", "\u1100\u1161", "\u212b", "\U0001F468\u200d\U0001F469\u200d\U0001F467",
         "3.14159", "1000000", "http://a.b/c?d=e", "SELECT * FROM t;", "    return x", "The quick brown fox", " the", "ing "]


def random_string(index):
    rng = SplitMix(SEED ^ (index << 32))
    out = []
    for _ in range(1 + rng.below(24)):
        kind = rng.below(8)
        if kind < 4:
            low, high = RANGES[rng.below(len(RANGES))]
            for _ in range(1 + rng.below(6)):
                code = low + rng.below(high - low + 1)
                out.append("\ufffd" if 0xD800 <= code <= 0xDFFF else chr(code))
        elif kind < 6:
            out.append(WORDS[rng.below(len(WORDS))])
        elif kind == 6:
            out.append(" " * (1 + rng.below(3)))
        else:
            out.append(" \n\t"[rng.below(3)] * (1 + rng.below(40)))
    return "".join(out)


def digest(lists):
    """FNV-1a over the ids as little-endian 32 bits, 0xFFFFFFFF after each list."""
    hash = 0xCBF29CE484222325
    for ids in lists:
        for id in [*ids, 0xFFFFFFFF]:
            for byte in id.to_bytes(4, "little"):
                hash = ((hash ^ byte) * 0x100000001B3) & MASK
    return f"{hash:016x}"


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
CASED = (r"A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-"
         r"\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}"
         r"\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-"
         r"\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-"
         r"\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}"
         r"-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}"
         r"\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-"
         r"\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}"
         r"\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}"
         r"\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}"
         r"\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}"
         r"\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}")


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False)


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def sequence(*steps):
    return pre_tokenizers.Sequence(list(steps))


def digits():
    return pre_tokenizers.Digits(individual_digits=True)


# How each model's tokenizer.json cuts text: (pre-tokenizer, normal form C, ignore_merges).
PRE = {
    "gpt-2": (byte_level(True), False, False),
    "mpt": (byte_level(True), True, False),
    "smollm": (sequence(digits(), byte_level(True)), False, False),
    "starcoder": (sequence(digits(), byte_level(True)), False, False),
    "refact": (sequence(digits(), byte_level(True)), False, False),
    "command-r": (sequence(digits(), byte_level(True)), True, False),
    "llama-bpe": (sequence(split(LLAMA3), byte_level(False)), False, True),
    "qwen2": (sequence(split(QWEN2), byte_level(False)), True, False),
    "qwen35": (sequence(split(QWEN35), byte_level(False)), True, False),
    "deepseek-llm": (sequence(split("[\r\n]"), split(rf"\s?[{CASED}]+"), split(r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+"), split(r"\s+$"),
                              split(r"[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+"), digits(), byte_level(False)), False, False),
    "deepseek-coder": (sequence(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(r"[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+"), digits(),
                                byte_level(False)), False, False),
}


class Vocabulary:
    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields
        get = lambda key, default=None: fields[f"tokenizer.ggml.{key}"].contents() if f"tokenizer.ggml.{key}" in fields else default
        self.model, self.pre = get("model"), get("pre")
        self.tokens = [t for t in get("tokens")]
        self.types = get("token_type")
        self.scores, self.merges = get("scores"), get("merges", [])
        self.unknown, self.bos, self.eos = get("unknown_token_id"), get("bos_token_id"), get("eos_token_id")
        self.space_prefix = get("add_space_prefix", True)

    def is_filler(self, i):
        return self.types[i] in (USER_DEFINED, UNKNOWN) and self.tokens[i] == f"[PAD{i}]"

    def is_marker(self, i):
        text = self.tokens[i]
        framed = re.fullmatch(r"<\|.*>|<.*\|>|<｜.*｜>", text, re.S) is not None
        return self.types[i] in (CONTROL, UNKNOWN) or self.types[i] == USER_DEFINED and (framed or i in (self.bos, self.eos))

    def byte_level(self, special):
        """An encoder: text to ids."""
        cut, nfc, ignore_merges = PRE[self.pre]
        added = [i for i in range(len(self.tokens)) if self.types[i] in (CONTROL, UNKNOWN, USER_DEFINED)
                 and not self.is_filler(i) and (special or not self.is_marker(i))]
        wanted = set(added)
        # Added tokens stand in the model's vocabulary too, so that they have their ids; no merge leads to them.
        vocabulary = {t: i for i, t in enumerate(self.tokens) if self.types[i] == NORMAL or i in wanted}
        merges = [(m[: (at := m.index(" ", 1))], m[at + 1 :]) for m in self.merges]
        tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=ignore_merges))
        tokenizer.pre_tokenizer, tokenizer.decoder = cut, decoders.ByteLevel()
        if nfc:
            tokenizer.normalizer = normalizers.NFC()
        tokenizer.add_tokens([AddedToken(self.tokens[i], normalized=False, special=False) for i in added])
        assert all(tokenizer.token_to_id(self.tokens[i]) == i for i in added)
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids

    def sentencepiece(self):
        proto = sp_model.ModelProto()
        kinds = sp_model.ModelProto.SentencePiece
        for i, text in enumerate(self.tokens):
            kind = kinds.CONTROL if self.types[i] == UNKNOWN and i != self.unknown else self.types[i]
            text = text.replace(" ", "\u2581") if kind == USER_DEFINED else text
            proto.pieces.add(piece=text, score=self.scores[i], type=kinds.UNKNOWN if i == self.unknown else kind)
        proto.trainer_spec.model_type = sp_model.TrainerSpec.BPE
        proto.trainer_spec.byte_fallback = True
        proto.trainer_spec.unk_id, proto.trainer_spec.bos_id, proto.trainer_spec.eos_id = self.unknown, self.bos, self.eos
        proto.trainer_spec.pad_id = -1
        proto.trainer_spec.unk_piece = self.tokens[self.unknown]
        proto.trainer_spec.bos_piece, proto.trainer_spec.eos_piece = self.tokens[self.bos], self.tokens[self.eos]
        proto.normalizer_spec.name = "identity"
        proto.normalizer_spec.add_dummy_prefix = self.space_prefix
        proto.normalizer_spec.remove_extra_whitespaces = False
        proto.normalizer_spec.escape_whitespaces = True
        return sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString()).encode

    def encoder(self, special=False):
        """None: no oracle here."""
        if self.model == "gpt2" and self.pre in PRE:
            return self.byte_level(special)
        if self.model == "llama" and not special:
            return self.sentencepiece()
        return None


def measure(encode, texts, strings):
    ids = [list(encode(s)) for s in strings]
    return {"texts": {name: digest([encode(text)]) for name, text in texts.items()},
            "groups": [digest(ids[i : i + GROUP]) for i in range(0, STRINGS, GROUP)]}


def main():
    vocabularies, texts_dir, *given = map(pathlib.Path, sys.argv[1:])
    texts = {name: (texts_dir / name).read_bytes().decode() for name in TEXTS}
    strings = [random_string(i) for i in range(STRINGS)]
    golden = {"seed": SEED, "group": GROUP, "strings": digest([[ord(c) for c in s] for s in strings]), "vocabularies": {}}
    for path in [*given, *sorted(vocabularies.glob("*.gguf"))]:
        vocabulary = Vocabulary(path)
        for way in ("plain", "special"):
            encode = vocabulary.encoder(way == "special")
            if encode is None or (way == "special" and vocabulary.pre not in ("smollm", "qwen2", "llama-bpe")):
                continue
            print(path.name, way, flush=True)
            golden["vocabularies"].setdefault(path.name, {})[way] = measure(encode, texts, strings)
    out = pathlib.Path(__file__).parent / "text" / "tokenizers.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(golden, indent=0) + "\n")


if __name__ == "__main__":
    main()
