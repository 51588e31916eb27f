"""Answers held to OpenAI's own description of its API, where it is at hand (UNISONO_OPENAPI or ../shared/data)."""
import json
import os
from pathlib import Path

import jsonschema
import pytest
import yaml

from conftest import MODEL, ROOT

DESCRIPTION = Path(os.environ.get("UNISONO_OPENAPI", ROOT.parent / "shared/data/openai/openapi.yaml"))


@pytest.fixture(scope="module")
def schema():
    if not DESCRIPTION.is_file():
        pytest.skip(f"{DESCRIPTION} is not there")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = as_json_schema(yaml.load(DESCRIPTION.read_text(), loader))

    def check(name, value):
        jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": document["components"]}).validate(value)

    return check


def as_json_schema(node):
    """OpenAPI's `nullable`, which JSON Schema lacks."""
    if isinstance(node, list):
        return [as_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: as_json_schema(value) for key, value in node.items()}
    if out.pop("nullable", None) is True:
        return {"anyOf": [out, {"type": "null"}]}
    return out


def chat(server, **fields):
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "seed": 1} | fields
    return server.post("/v1/chat/completions", body)[1]


def test_chat(server, schema):
    schema("CreateChatCompletionResponse", chat(server))
    schema("CreateChatCompletionResponse", chat(server, n=2, logprobs=True, top_logprobs=3, stop=["a"]))


def test_completions(server, schema):
    body = {"model": MODEL, "prompt": "Hi", "max_tokens": 4, "seed": 1}
    schema("CreateCompletionResponse", server.post("/v1/completions", body)[1])
    schema("CreateCompletionResponse", server.post("/v1/completions", body | {"logprobs": 2, "n": 2})[1])


def test_chunks(client, schema):
    fields = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "stream_options": {"include_usage": True}}
    chunks = 0
    with client.chat.completions.with_streaming_response.create(stream=True, logprobs=True, **fields) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                schema("CreateChatCompletionStreamResponse", json.loads(line[6:]))
                chunks += 1
    assert chunks >= 4


def test_models_and_errors(server, schema):
    schema("ListModelsResponse", server.get("/v1/models"))
    schema("Model", server.get(f"/v1/models/{MODEL}"))
    schema("ErrorResponse", chat(server, temperature="hot"))
    schema("ErrorResponse", server.post("/v1/nothing", {})[1])
