#!/usr/bin/env python3
"""usage: kl.py MODEL.gguf TEXT OUT.ukl [CHUNKS [CONTEXT]]      (default: 8 chunks of 512 tokens)

Writes the reference's logits over the first CHUNKS x CONTEXT tokens of TEXT, each chunk on its own, for
`unisono perplexity MODEL --kl OUT.ukl`. Where the model's text begins with a begin token, it takes the place of each
chunk's first token. The file, little-endian:

    "UKL1", i32 chunks, i32 context, i32 vocabulary; then per chunk i32 ids[context], f32 logits[context][vocabulary]

It is large (0.8 GB for 8 x 512 tokens of a vocabulary of 49,152), so it is made where it is needed and never committed.
"""
import math
import os
import struct
import sys
from pathlib import Path

import numpy as np
import torch

import reference


def main():
    if len(sys.argv) not in (4, 5, 6):
        sys.exit(__doc__)
    model_path, text, out = map(Path, sys.argv[1:4])
    chunks, context = (*map(int, sys.argv[4:]), *(8, 512)[len(sys.argv) - 4:])
    for path in (model_path, text):
        if not path.is_file():
            sys.exit(f"error: {path} is not a file")

    tokenizer, add_bos = reference.load_tokenizer(model_path)
    # Enough of the text for the tokens wanted; whole lines, so that the cut changes no token before it.
    start = text.read_text()[:chunks * context * 20].rsplit("\n", 1)[0]
    ids = tokenizer(start, add_special_tokens=add_bos, split_special_tokens=True).input_ids  # "<unk>" in a text is text
    if len(ids) < chunks * context:
        sys.exit(f"error: {text} has {len(ids)} tokens, {chunks} x {context} are needed")
    model = reference.load_model(model_path)
    vocabulary = model.config.vocab_size

    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(out.name + ".part")
    loss, predictions = 0.0, 0
    with open(part, "wb") as file, torch.no_grad():
        file.write(b"UKL1" + struct.pack("<3i", chunks, context, vocabulary))
        for i in range(chunks):
            chunk = ids[i * context:(i + 1) * context]
            if add_bos:
                chunk[0] = tokenizer.bos_token_id
            file.write(np.asarray(chunk, "<i4").tobytes())
            logits = model(torch.tensor([chunk]), use_cache=False).logits[0]
            file.write(logits.numpy().astype("<f4", copy=False).data)
            loss += float(torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(chunk[1:]), reduction="sum"))
            predictions += context - 1
            print(f"{i + 1}/{chunks}: perplexity {math.exp(loss / predictions):.4f}", flush=True)
    os.replace(part, out)


if __name__ == "__main__":
    main()
