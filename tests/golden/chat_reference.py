#!/usr/bin/env python3
"""usage: chat_reference.py SMOLLM2.gguf GEMMA3.gguf

Writes the reference's greedy answers: smollm2_chat.json (messages through the model's chat template) and gemma3_text.json
(plain completions). For each case: what was asked, the prompt's ids, the answer's ids, and at each step how far apart the
two best logits were: where that is within rounding, another engine may rightly go another way.
"""
import hashlib
import json
import sys
from pathlib import Path

import torch

import reference

HERE = Path(__file__).parent
TOKENS = 48

CHATS = [
    [{"role": "user", "content": "What is the capital of France?"}],
    [{"role": "user", "content": "Write a short poem about the sea."}],
    [{"role": "system", "content": "You answer in one sentence."}, {"role": "user", "content": "Why is the sky blue?"}],
    [{"role": "user", "content": "My name is Ada."}, {"role": "assistant", "content": "Hello Ada! How can I help you?"},
     {"role": "user", "content": "What is my name?"}],
    [{"role": "user", "content": "Count from 1 to 10, separated by commas."}],
    [{"role": "user", "content": "Translate \"good morning\" into German, Spanish and Japanese (日本語)."}],
    [{"role": "user", "content": "Explain this code:\n\n```python\ndef f(n):\n    return 1 if n < 2 else n * f(n - 1)\n```"}],
    [{"role": "user", "content": "List three differences between a cat and a dog. 🐱🐶"}],
]

TEXTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    ",
    "The three laws of motion were formulated by",
    "1, 2, 3, 4, 5,",
    "Die Hauptstadt von Deutschland ist",
    "吾輩は猫である。名前は",
    "Q: What is the boiling point of water at sea level?\nA:",
]


def cases(path, asked):
    tokenizer, _ = reference.load_tokenizer(path)
    model = reference.load_model(path)
    for what in asked:
        if isinstance(what, str):
            prompt = tokenizer(what).input_ids
            case = {"text": what}
        else:
            rendered = tokenizer.apply_chat_template(what, tokenize=False, add_generation_prompt=True)
            prompt = tokenizer(rendered, add_special_tokens=False).input_ids
            case = {"messages": what, "rendered": rendered}
        ids, gaps = reference.greedy(model, prompt, TOKENS, tokenizer.eos_token_id)
        answer = tokenizer.decode(ids, skip_special_tokens=True)
        print(f"--- {what}\n{answer}\n    smallest gap {min(gaps)}", flush=True)
        yield case | {"prompt": prompt, "ids": ids, "gaps": gaps, "answer": answer}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.set_num_threads(2)
    for path, asked, out in zip(map(Path, sys.argv[1:]), (CHATS, TEXTS), ("smollm2_chat.json", "gemma3_text.json")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases(path, asked))
        (HERE / out).write_text(f'{{"model": "{path.name}", "sha256": "{digest}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
