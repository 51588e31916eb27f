"""Answers of a model with random weights, at temperature 1.5, to random schemas of MaskBench: each one parses and is judged
valid by Python's jsonschema, or was cut by its length and says so.

UNISONO_GENERATIONS: how many (60). UNISONO_SHARED_DIR: the folder with
data/maskbench-dev.jsonl.gz; without it this is skipped.
"""
import gzip
import json
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/grammar"))
from validate import judge  # noqa: E402

COUNT = int(os.environ.get("UNISONO_GENERATIONS", "60"))
DATA = Path(os.environ.get("UNISONO_SHARED_DIR", ROOT.parent / "shared")) / "data/maskbench-dev.jsonl.gz"
# Random weights would rarely end a string: what closes things is made likelier, which changes nothing of what is allowed.
CLOSING = {'"': 4, "}": 3, "]": 3, ",": 1}


def test_every_answer_is_of_its_schema(start_server):
    if not DATA.is_file():
        pytest.skip(f"{DATA} is not there")
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    chosen = random.Random(1).choices(cases, k=COUNT)
    server = start_server(model=ROOT / "tests/golden/tiny/llama.gguf", context=512)
    try:
        bias = {}
        for text, value in CLOSING.items():
            status, body = server.post("/tokenize", {"prompt": text, "add_special_tokens": False})
            assert status == 200
            bias[str(body["tokens"][-1])] = value
        counts = {"valid": 0, "cut": 0, "refused": 0, "unjudged": 0, "wrong": 0}
        wrong = []

        def one(numbered):
            seed, case = numbered
            status, body = server.post("/v1/completions", {
                "prompt": "{", "max_tokens": 500, "temperature": 1.5, "seed": seed, "logit_bias": bias,
                "structured_outputs": {"json": case["schema"]}})
            if status == 400:
                assert body["error"]["code"] in ("invalid_constraint", "invalid_json"), (case["name"], body)  # too much, or too deep
                return "refused"
            assert status == 200, (case["name"], body)
            choice = body["choices"][0]
            if choice["finish_reason"] == "length":
                return "cut"
            try:
                judge(case["schema"], choice["text"])
            except (ValueError, jsonschema.ValidationError) as error:
                wrong.append(f"{case['name']}, seed {seed}: {choice['text'][:300]}: {str(error)[:200]}")
                return "wrong"
            except Exception:  # the judge itself can't read the schema
                return "unjudged"
            return "valid"

        with ThreadPoolExecutor(16) as pool:
            for what in pool.map(one, enumerate(chosen)):
                counts[what] += 1
        print(json.dumps(counts))
        assert not wrong, wrong
        assert counts["valid"] > COUNT / 2 and counts["refused"] < COUNT / 20 + 3, counts
    finally:
        assert server.stop() == 0
