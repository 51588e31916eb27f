#!/usr/bin/env python3
"""usage: make.py [--check] [NAME...]      (default: all)

Writes tiny random models as GGUF files into tiny/, each with the float32 logits that Hugging Face transformers computes
from the same weights. One model per family, and one whose tensors have all the quantised types between them.

    NAME.gguf   the model
    NAME.json   prompt, greedy tokens, and the smallest gap between the two best logits
    NAME.f32    logits, little-endian float32 [steps + 1][vocabulary]: row 0 follows the prompt, row i the i-th token

The Hugging Face model comes first, the GGUF file is exported from it. As a check of the export, transformers then loads
the GGUF file itself and must compute the same logits; not Mixtral's, whose files it takes for Llama's.

--check writes nothing: it makes all anew and fails where that differs from what is committed, logits beyond rounding.
"""
import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from transformers import (AutoModelForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM, MixtralConfig,
                          MixtralForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen2MoeConfig, Qwen2MoeForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM)

import tiny_tokenizers

OUT = Path(__file__).parent / "tiny"
PROMPT_TOKENS = 40  # longer than Gemma's window here
STEPS = 24


@dataclass
class Tiny:
    """A model to make: its Hugging Face class and config, and how its GGUF file differs."""
    name: str
    arch: str
    model_class: type
    config: object
    tokenizer: object                          # writes the tokenizer's keys into a GGUF file
    bos: int | None = None                     # first token of the prompt
    weight_type: Type = Type.F32
    types: dict = field(default_factory=dict)  # GGUF name without "blk.N." and ".weight" -> its type, if another
    keys: dict = field(default_factory=dict)   # further keys, without the architecture's name
    unsaid: dict = field(default_factory=dict)  # config entries that follow from GGUF's conventions, not from its keys
    norm_offset: float = 0                     # GGUF's norm weight minus Hugging Face's
    loads: bool = True                         # transformers can read the file
    permute_rope: bool = False                 # GGUF has the rows of q and k in pairs, Hugging Face in halves


def tiny_models():
    common = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512)
    bpe, spm = tiny_tokenizers.VOCABULARY_BPE, tiny_tokenizers.VOCABULARY_SPM
    llama = dict(rms_norm_eps=1e-5, tie_word_embeddings=False)
    theta = lambda base: {"rope_type": "default", "rope_theta": base}
    gemma = dict(vocab_size=spm, hidden_size=32, intermediate_size=64, head_dim=32, query_pre_attn_scalar=32, sliding_window=16,
                 rms_norm_eps=1e-6, **common | {"num_hidden_layers": 7})  # the sixth layer sees everything, the others a window
    gemma_file = dict(arch="gemma3", model_class=Gemma3ForCausalLM, tokenizer=tiny_tokenizers.write_spm, bos=2, weight_type=Type.F16,
                      norm_offset=1)
    gemma_keys = {"attention.sliding_window": 16, "attention.key_length": 32, "attention.value_length": 32}
    qwen3moe = dict(vocab_size=bpe, hidden_size=64, intermediate_size=96, moe_intermediate_size=32, head_dim=32, num_experts=8,
                    num_experts_per_tok=3, rms_norm_eps=1e-6, tie_word_embeddings=False, rope_parameters=theta(1000000.0), **common)
    qwen3moe_keys = {"attention.key_length": 32, "attention.value_length": 32, "expert_count": 8, "expert_used_count": 3,
                     "expert_feed_forward_length": 32}
    scaled = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
              "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    return [
        Tiny("llama", "llama", LlamaForCausalLM,
             LlamaConfig(vocab_size=bpe, hidden_size=64, intermediate_size=96, rope_parameters=theta(10000.0), **llama, **common),
             tiny_tokenizers.write_gpt2, keys={"rope.dimension_count": 16, "vocab_size": bpe}, permute_rope=True),
        Tiny("llama-mixed", "llama", LlamaForCausalLM,
             LlamaConfig(vocab_size=bpe, hidden_size=256, intermediate_size=256, rope_parameters=theta(100000.0), **llama,
                         **common | {"num_hidden_layers": 1}),
             tiny_tokenizers.write_gpt2, keys={"rope.dimension_count": 64, "vocab_size": bpe}, permute_rope=True,
             types={"token_embd": Type.Q8_0, "output": Type.BF16, "attn_q": Type.Q4_K, "attn_k": Type.Q5_K, "attn_v": Type.Q6_K,
                    "attn_output": Type.Q5_0, "ffn_gate": Type.Q4_0, "ffn_up": Type.Q4_1, "ffn_down": Type.Q5_1}),
        Tiny("qwen2", "qwen2", Qwen2ForCausalLM,
             Qwen2Config(vocab_size=bpe, hidden_size=64, intermediate_size=96, rms_norm_eps=1e-6, tie_word_embeddings=True,
                         rope_parameters=theta(1000000.0), **common),
             tiny_tokenizers.write_qwen2),
        # Heads wider than their part of the model.
        Tiny("qwen3", "qwen3", Qwen3ForCausalLM,
             Qwen3Config(vocab_size=bpe, hidden_size=64, intermediate_size=96, head_dim=32, rms_norm_eps=1e-6, tie_word_embeddings=True,
                         rope_parameters=theta(1000000.0), **common),
             tiny_tokenizers.write_qwen2, keys={"attention.key_length": 32, "attention.value_length": 32}, unsaid={"head_dim": 32}),
        # Experts of two types; that which all tokens share is wider.
        Tiny("qwen2moe", "qwen2moe", Qwen2MoeForCausalLM,
             Qwen2MoeConfig(vocab_size=bpe, hidden_size=64, intermediate_size=96, moe_intermediate_size=32,
                            shared_expert_intermediate_size=96, num_experts=6, num_experts_per_tok=2, norm_topk_prob=False,
                            rms_norm_eps=1e-6, tie_word_embeddings=False, rope_parameters=theta(1000000.0), **common),
             tiny_tokenizers.write_qwen2, weight_type=Type.Q8_0,
             types={"token_embd": Type.F16, "ffn_gate_shexp": Type.BF16, "ffn_up_shexp": Type.BF16, "ffn_down_shexp": Type.Q5_1},
             keys={"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 32,
                   "expert_shared_feed_forward_length": 96},
             unsaid={"moe_intermediate_size": 32, "shared_expert_intermediate_size": 96}),
        Tiny("qwen3moe", "qwen3moe", Qwen3MoeForCausalLM, Qwen3MoeConfig(norm_topk_prob=True, **qwen3moe), tiny_tokenizers.write_qwen2,
             keys=qwen3moe_keys),
        # A row's weights as the soft-max gives them; and products of experts in bf16.
        Tiny("qwen3moe-bf16", "qwen3moe", Qwen3MoeForCausalLM, Qwen3MoeConfig(norm_topk_prob=False, **qwen3moe),
             tiny_tokenizers.write_qwen2, weight_type=Type.BF16, keys=qwen3moe_keys | {"expert_weights_norm": False},
             unsaid={"norm_topk_prob": False}),
        Tiny("mixtral", "llama", MixtralForCausalLM,
             MixtralConfig(vocab_size=bpe, hidden_size=256, intermediate_size=64, num_local_experts=6, num_experts_per_tok=2,
                           rope_parameters=theta(1000000.0), **llama, **common | {"num_hidden_layers": 1}),
             tiny_tokenizers.write_gpt2, permute_rope=True, loads=False, weight_type=Type.Q8_0,
             keys={"rope.dimension_count": 64, "vocab_size": bpe, "expert_count": 6, "expert_used_count": 2},
             types={"ffn_gate_exps": Type.Q4_K, "ffn_up_exps": Type.Q6_K, "ffn_down_exps": Type.Q4_0}),
        Tiny("gemma3", config=Gemma3TextConfig(**gemma), keys=gemma_keys, unsaid={"query_pre_attn_scalar": 32}, **gemma_file),
        Tiny("gemma3-scaled", config=Gemma3TextConfig(rope_parameters=scaled, **gemma),
             keys=gemma_keys | {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
             unsaid={"query_pre_attn_scalar": 32, "rope_parameters": scaled}, **gemma_file),
    ]


# Hugging Face's names of the parts of a layer -> GGUF's.
LAYER = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp", "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
         "mlp.shared_expert.up_proj": "ffn_up_shexp", "mlp.shared_expert.down_proj": "ffn_down_shexp",
         "mlp.shared_expert_gate": "ffn_gate_inp_shexp", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
SANDWICH = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
            "post_feedforward_layernorm": "post_ffw_norm"}
OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(tiny, name):
    """model.layers.3.self_attn.q_proj.weight -> blk.3.attn_q.weight"""
    stem, suffix = name.rsplit(".", 1)
    if stem in OUTER:
        return f"{OUTER[stem]}.{suffix}"
    _, _, layer, part = stem.split(".", 3)
    names = LAYER | SANDWICH if tiny.arch == "gemma3" else LAYER
    return f"blk.{layer}.{names[part]}.{suffix}"


def parts(tiny, name, parameter):
    """What a parameter is in the file: (GGUF name, that part of the parameter). An expert's gate and up are one in transformers."""
    stem, _, last = name.rpartition(".mlp.experts.")
    if not stem:
        return [(gguf_name(tiny, name), parameter)]
    layer = stem.rpartition(".")[2]
    if last == "down_proj":
        return [(f"blk.{layer}.ffn_down_exps.weight", parameter)]
    gate, up = parameter.chunk(2, dim=1)
    return [(f"blk.{layer}.ffn_gate_exps.weight", gate), (f"blk.{layer}.ffn_up_exps.weight", up)]


def paired_rows(rows, head_dim):
    """Within each head, row i of the first half and row i of the second become neighbours: GGUF's order for rope in pairs."""
    heads = rows.reshape(-1, 2, head_dim // 2, *rows.shape[1:])
    return np.ascontiguousarray(np.swapaxes(heads, 1, 2).reshape(rows.shape))


def halved_rows(rows, head_dim):
    """The inverse of paired_rows."""
    heads = rows.reshape(-1, head_dim // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(np.swapaxes(heads, 1, 2).reshape(rows.shape))


# The gguf package can't quantise to these: (bytes of a block, byte offsets of its f16 scales, their values). The scales are
# such that random bytes everywhere else give weights around zero with a deviation near 0.06.
K_QUANTS = {Type.Q4_K: (144, (0, 2), (2.5e-4, 1.9e-3)), Type.Q5_K: (176, (0, 2), (1.2e-4, 1.9e-3)),
            Type.Q6_K: (210, (208,), (6.5e-5,))}


def stored(values, kind, rng):
    """The bytes that go into the file for these values. For K-quants they are random and the values count for nothing."""
    if kind not in K_QUANTS:
        return gguf.quants.quantize(values, kind)
    size, offsets, scales = K_QUANTS[kind]
    blocks = rng.integers(0, 256, (*values.shape[:-1], values.shape[-1] // 256, size), dtype=np.uint8)
    for offset, scale in zip(offsets, scales):
        spread = (scale * rng.uniform(0.7, 1.3, blocks.shape[:-1])).astype("<f2")
        blocks[..., offset:offset + 2] = spread[..., None].view(np.uint8)
    return blocks.reshape(*values.shape[:-1], -1)


def random_value(name, shape, rng):
    """Weights that spread the logits over several units and make neither attention nor softmax degenerate."""
    if name.endswith("bias"):
        return rng.normal(0, 0.3, shape)
    if name.startswith("output_norm"):
        return rng.normal(0, 1, shape)  # of both signs: else a model with tied embeddings repeats its last token for ever
    if "norm" in name:
        return rng.normal(1, 0.25, shape)
    if name.startswith(("token_embd", "output.")):
        return rng.normal(0, 0.25, shape)
    return rng.normal(0, 1.3 / shape[-1] ** 0.5, shape)


def fill(tiny, model, rng):
    """Gives the model random weights, exactly as its file will hold them. Returns the file's tensors: name -> (bytes, type)."""
    head_dim = getattr(tiny.config, "head_dim", None) or tiny.config.hidden_size // tiny.config.num_attention_heads
    tensors = {}
    for there, parameter in (p for name, whole in model.named_parameters() for p in parts(tiny, name, whole.data)):
        part = there.removesuffix(".weight").split(".")[-1]
        plain = parameter.dim() == 1 or part.startswith("ffn_gate_inp")
        kind = Type.F32 if plain else tiny.types.get(part, tiny.weight_type)
        paired = tiny.permute_rope and part in ("attn_q", "attn_k")
        values = random_value(there, tuple(parameter.shape), rng).astype(np.float32)
        data = stored(paired_rows(values, head_dim) if paired else values, kind, rng)
        values = gguf.quants.dequantize(data, kind).reshape(parameter.shape)
        if paired:
            values = halved_rows(values, head_dim)
        if "norm" in part:
            values = values - np.float32(tiny.norm_offset)
            data = values + np.float32(tiny.norm_offset)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(values, np.float32)))
        if part == "ffn_gate_inp_shexp":
            data = data.reshape(-1)  # a vector in the file
        tensors[there] = (data, kind)
    return tensors


def write_gguf(tiny, path, tensors):
    c = tiny.config
    writer = gguf.GGUFWriter(path, tiny.arch)
    writer.add_name(f"tiny random {tiny.name}")
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_block_count(c.num_hidden_layers)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    rope = c.rope_parameters.get("full_attention", c.rope_parameters)
    writer.add_rope_freq_base(rope["rope_theta"])
    for key, value in tiny.keys.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)]
        add(f"{tiny.arch}.{key}", value)
    tiny.tokenizer(writer)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@torch.no_grad()
def greedy(model, prompt):
    """(tokens, logits [STEPS + 1][vocabulary]), without a cache: every step computes all positions anew."""
    ids, rows = list(prompt), []
    for _ in range(STEPS + 1):
        rows.append(model(torch.tensor([ids]), use_cache=False).logits[0, -1].numpy())
        ids.append(int(rows[-1].argmax()))
    return ids[len(prompt):-1], np.stack(rows)


def smallest_gap(logits):
    best = np.sort(logits, axis=1)[:, -2:]
    return float((best[:, 1] - best[:, 0]).min())


def make(tiny, out):
    """Writes the three files of this model into the folder `out`. Takes the first seed whose greedy tokens vary and are beyond doubt: else equal tokens would prove little."""
    model = tiny.model_class._from_config(tiny.config, attn_implementation="eager").float().eval()
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        tensors = fill(tiny, model, rng)
        prompt = [int(t) for t in rng.integers(*tiny_tokenizers.PLAIN[tiny.tokenizer], PROMPT_TOKENS)]
        if tiny.bos is not None:
            prompt[0] = tiny.bos
        tokens, logits = greedy(model, prompt)
        spread = float(np.ptp(logits, axis=1).min())
        low, high = tiny_tokenizers.PLAIN[tiny.tokenizer]
        if (smallest_gap(logits) > 2e-3 * spread and spread > 3 and len(set(tokens)) >= STEPS // 2
                and all(low <= t < high for t in tokens)):
            break
    else:
        sys.exit(f"error: no seed gives {tiny.name} a continuation that tells right from wrong")

    path = out / f"{tiny.name}.gguf"
    write_gguf(tiny, path, tensors)
    loaded_tokens, loaded_logits = tokens, logits
    if tiny.loads:
        loaded = AutoModelForCausalLM.from_pretrained(out, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager",
                                                      **tiny.unsaid).eval()
        loaded_tokens, loaded_logits = greedy(loaded, prompt)
    difference = float(np.abs(loaded_logits - logits).max())
    if loaded_tokens != tokens or difference > 1e-5 * spread:
        sys.exit(f"error: {path.name}, loaded by transformers, differs by {difference:g} from the model it was exported from")

    logits.astype("<f4").tofile(out / f"{tiny.name}.f32")
    golden = {"model": path.name, "seed": seed, "vocab_size": logits.shape[1], "prompt": prompt, "tokens": tokens,
              "smallest_gap": smallest_gap(logits), "smallest_spread": spread}
    (out / f"{tiny.name}.json").write_text(json.dumps(golden) + "\n")
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, seed {seed}, logits spread {spread:.1f}, gap "
          f"{golden['smallest_gap']:.3f}, {len(set(tokens))} different tokens, loaded again: {f'{difference:.1e}' if tiny.loads else 'not'}")


def check(tiny):
    """Makes the model again and compares with what is committed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        make(tiny, out)
        for file in (f"{tiny.name}.gguf", f"{tiny.name}.json", f"{tiny.name}.f32"):
            new, old = (out / file).read_bytes(), (OUT / file).read_bytes()
            if file.endswith(".json"):
                new, old = (tuple(json.loads(text)[key] for key in ("seed", "prompt", "tokens")) for text in (new, old))
            elif file.endswith(".f32"):
                new, old = (np.frombuffer(data, "<f4") for data in (new, old))
                if new.size == old.size and np.abs(new - old).max() <= 1e-6 * np.ptp(old):
                    continue  # another CPU sums in another order
                new, old = 0, 1
            if new != old:
                sys.exit(f"error: {file} is not what the oracle makes of it now")


def main():
    if sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    torch.set_num_threads(1)  # one order of sums
    OUT.mkdir(exist_ok=True)
    checking = sys.argv[1:2] == ["--check"]
    wanted = sys.argv[2:] if checking else sys.argv[1:]
    models = [t for t in tiny_models() if not wanted or t.name in wanted]
    if not models or len(models) < len(set(wanted)):
        sys.exit(f"error: the models are {', '.join(t.name for t in tiny_models())}")
    for tiny in models:
        check(tiny) if checking else make(tiny, OUT)


if __name__ == "__main__":
    main()
