#!/usr/bin/env python3
"""usage: random_gguf.py SHAPE TYPE OUT.gguf [--layers N]

Writes a model of random weights of a real model's shape, without a tokenizer: for measuring speed, which depends on shapes and
types only. Weights are random blocks with one scale, so that all experts of a mixture are chosen about equally often.

TYPE: Q8_0, Q4_0 or BF16; norms and routers are F32.
"""
import argparse
import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFWriter

SHAPES = {
    # a mixture that fits a small machine
    "mixture-1b": dict(arch="qwen3moe", layers=16, wide=1024, heads=16, kv_heads=4, head_dim=64, ff=512, experts=32, used=4,
                       vocabulary=32000, base=1e6),
    # the layers of Qwen3-30B-A3B, of which it has 48
    "qwen3-30b-a3b": dict(arch="qwen3moe", layers=48, wide=2048, heads=32, kv_heads=4, head_dim=128, ff=768, experts=128, used=8,
                          vocabulary=151936, base=1e6),
    # Llama 3.2 1B
    "llama-1b": dict(arch="llama", layers=16, wide=2048, heads=32, kv_heads=8, head_dim=64, ff=8192, experts=0, used=0,
                     vocabulary=128256, base=5e5),
}
BLOCKS = {Type.Q8_0: (32, 32), Type.Q4_0: (32, 16)}  # values, bytes behind the f16 scale
SPREAD = {Type.Q8_0: 74.0, Type.Q4_0: 4.3}           # of the quants themselves


def tensors(s):
    """(name, shape) of each, as in the file."""
    d, q, kv = s["wide"], s["heads"] * s["head_dim"], s["kv_heads"] * s["head_dim"]
    yield "token_embd.weight", (s["vocabulary"], d)
    for i in range(s["layers"]):
        at = f"blk.{i}."
        yield at + "attn_norm.weight", (d,)
        yield at + "attn_q.weight", (q, d)
        yield at + "attn_k.weight", (kv, d)
        yield at + "attn_v.weight", (kv, d)
        yield at + "attn_output.weight", (d, q)
        if s["arch"] == "qwen3moe":
            yield at + "attn_q_norm.weight", (s["head_dim"],)
            yield at + "attn_k_norm.weight", (s["head_dim"],)
        yield at + "ffn_norm.weight", (d,)
        some, suffix = ((s["experts"],), "_exps") if s["experts"] else ((), "")
        if s["experts"]:
            yield at + "ffn_gate_inp.weight", (s["experts"], d)
        for part, shape in (("gate", (s["ff"], d)), ("up", (s["ff"], d)), ("down", (d, s["ff"]))):
            yield f"{at}ffn_{part}{suffix}.weight", some + shape
    yield "output_norm.weight", (d,)
    yield "output.weight", (s["vocabulary"], d)


def type_of(name, shape, kind):
    return Type.F32 if len(shape) == 1 or "gate_inp" in name else kind


def values(shape, kind, rng):
    """Weights with a deviation of 1 / sqrt(columns), as they lie in the file; vectors are ones."""
    spread = shape[-1] ** -0.5
    if len(shape) == 1:
        return np.ones(shape, np.float32)
    if kind == Type.F32:
        return (rng.standard_normal(shape, np.float32) * spread).astype(np.float32)
    if kind == Type.BF16:
        return (rng.standard_normal(shape, np.float32) * spread).view(np.uint32).__rshift__(16).astype(np.uint16).view(np.uint8)
    elements, quants = BLOCKS[kind]
    blocks = np.empty((*shape[:-1], shape[-1] // elements, 2 + quants), np.uint8)
    blocks[..., :2] = np.array([spread / SPREAD[kind]], "<f2").view(np.uint8)
    # No Q4_0 nibble is 0: as many weights above zero as below, or rows would be alike and go to the same experts.
    some = blocks[..., 2:].shape
    if kind == Type.Q4_0:
        blocks[..., 2:] = rng.integers(1, 16, some, np.uint8) << 4 | rng.integers(1, 16, some, np.uint8)
    else:
        blocks[..., 2:] = rng.integers(0, 256, some, np.uint8)
    return blocks.reshape(*shape[:-1], -1)


def file_bytes(shape, kind):
    n = int(np.prod(shape))
    if kind in BLOCKS:
        elements, quants = BLOCKS[kind]
        return n // elements * (2 + quants)
    return n * (4 if kind == Type.F32 else 2)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=["Q8_0", "Q4_0", "BF16"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int)
    flags = parser.parse_args()
    s = SHAPES[flags.shape] | ({"layers": flags.layers} if flags.layers else {})
    writer = GGUFWriter(flags.out, s["arch"])
    writer.add_name(f"random {flags.shape} {flags.type}")
    writer.add_context_length(8192)
    writer.add_embedding_length(s["wide"])
    writer.add_block_count(s["layers"])
    writer.add_feed_forward_length(s["ff"])
    writer.add_head_count(s["heads"])
    writer.add_head_count_kv(s["kv_heads"])
    writer.add_key_length(s["head_dim"])
    writer.add_value_length(s["head_dim"])
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(s["base"])
    writer.add_rope_dimension_count(s["head_dim"])
    writer.add_vocab_size(s["vocabulary"])
    writer.add_tokenizer_model("no_vocab")
    if s["experts"]:
        writer.add_expert_count(s["experts"])
        writer.add_expert_used_count(s["used"])
        writer.add_expert_feed_forward_length(s["ff"])
    all_tensors = [(name, shape, type_of(name, shape, Type[flags.type])) for name, shape in tensors(s)]
    for name, shape, kind in all_tensors:
        writer.add_tensor_info(name, shape, np.dtype(np.float32), file_bytes(shape, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    rng = np.random.default_rng(1)
    for _, shape, kind in all_tensors:
        writer.write_tensor_data(values(shape, kind, rng))
    writer.close()
    print(f"{flags.out}: {flags.out.stat().st_size / 1e6:.0f} MB, {sum(int(np.prod(shape)) for _, shape, _ in all_tensors) / 1e6:.0f} M weights")


if __name__ == "__main__":
    sys.exit(main())
