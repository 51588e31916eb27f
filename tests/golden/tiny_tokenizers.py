"""Tokenizers for the tiny models: all bytes, a few merges, a few control tokens, with the keys that real files have."""
from gguf import TokenType

CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")

CONTROL_BPE = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["Ġ t", "h e", "Ġt he", "i n", "e r", "Ġ a", "o n"]
VOCABULARY_BPE = 256 + len(MERGES) + len(CONTROL_BPE)

CONTROL_SPM = ["<pad>", "<eos>", "<bos>", "<unk>"]
PIECES = ["▁", *"etaoinshrdlu.,", "th", "he", "▁t", "▁th", "the", "▁the", "in", "er", "an", "▁a", "▁an", "on", "▁o", "▁on", "▁s"]
VOCABULARY_SPM = len(CONTROL_SPM) + 256 + len(PIECES)


def byte_characters():
    """GPT-2's stand-ins: printable bytes are themselves, the others follow from U+0100 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = (b for b in range(256) if b not in plain)
    table = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [table[b] for b in range(256)]


def write_bpe(writer, pre):
    tokens = [*byte_characters(), *(merge.replace(" ", "") for merge in MERGES), *CONTROL_BPE]
    first_control = len(tokens) - len(CONTROL_BPE)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.NORMAL] * first_control + [TokenType.CONTROL] * len(CONTROL_BPE))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(first_control)
    writer.add_eos_token_id(first_control + 2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)


def write_gpt2(writer):
    write_bpe(writer, "gpt-2")


def write_qwen2(writer):
    write_bpe(writer, "qwen2")


def write_spm(writer):
    """Pieces in the order of their scores, so that a longer one is made only when its parts are."""
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([*CONTROL_SPM, *(f"<0x{b:02X}>" for b in range(256)), *PIECES])
    writer.add_token_scores([-1000.0] * len(CONTROL_SPM) + [0.0] * 256 + [-float(i) for i in range(len(PIECES))])
    writer.add_token_types([TokenType.CONTROL] * 3 + [TokenType.UNKNOWN] + [TokenType.BYTE] * 256 + [TokenType.NORMAL] * len(PIECES))
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)


# The ids that are no control tokens: [first, end).
PLAIN = {write_gpt2: (0, 256 + len(MERGES)), write_qwen2: (0, 256 + len(MERGES)), write_spm: (len(CONTROL_SPM), VOCABULARY_SPM)}
