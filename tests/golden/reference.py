"""The reference for real models: Hugging Face transformers in float32 on the dequantised weights of a GGUF file."""
import os
from pathlib import Path

os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import torch
from gguf import GGUFReader
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer


def load_model(path):
    path = Path(path)
    return AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32,
                                                attn_implementation="eager").eval()


def load_tokenizer(path):
    """The model's tokenizer, with what transformers loses when it reads a GGUF file put back: whether text begins with the
    begin token, and that SmolLM2 splits digits one by one before anything else."""
    path = Path(path)
    fields = GGUFReader(path).fields
    entry = lambda key: fields[key].contents() if key in fields else None
    add_bos = entry("tokenizer.ggml.add_bos_token")
    if add_bos is None:
        add_bos = entry("tokenizer.ggml.model") == "llama"
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, add_bos_token=bool(add_bos))
    if entry("tokenizer.ggml.pre") == "smollm":
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    return tokenizer, bool(add_bos)


@torch.no_grad()
def greedy(model, prompt, tokens, end=None):
    """(ids, gaps): the greedy continuation up to and with `end`, and the distance of the two best logits at each step."""
    ids, gaps, cache, step = [], [], None, torch.tensor([prompt])
    while len(ids) < tokens:
        output = model(step, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache = output.past_key_values
        best = output.logits[0, -1].topk(2)
        ids.append(int(best.indices[0]))
        gaps.append(round(float(best.values[0] - best.values[1]), 5))
        if ids[-1] == end:
            break
        step = torch.tensor([[ids[-1]]])
    return ids, gaps
