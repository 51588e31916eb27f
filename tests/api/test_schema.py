"""Answers held to OpenAI's own description of its API, where it is at hand (UNISONO_OPENAPI or ../shared/data)."""
import json
import os
import urllib.request
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


def complete(server, **fields):
    return server.post("/v1/completions", {"model": MODEL, "prompt": "Hi", "max_tokens": 4, "seed": 1} | fields)[1]


def respond(server, **fields):
    return server.post("/v1/responses", {"model": MODEL, "input": "Hi", "max_output_tokens": 4, "seed": 1} | fields)[1]


def test_completions(server, schema):
    # The log-probabilities of an echo begin with null, for which the description has no word.
    for fields in ({}, {"logprobs": 2, "n": 2}, {"best_of": 3, "echo": True},
                   {"prompt_logprobs": 1, "return_token_ids": True, "return_timings": True}):
        schema("CreateCompletionResponse", complete(server, **fields))


def test_responses(server, schema):
    for fields in ({}, {"instructions": "Be brief.", "metadata": {"a": "b"}, "temperature": 0, "truncation": "auto"},
                   {"include": ["message.output_text.logprobs"], "top_logprobs": 2}, {"max_output_tokens": 200},
                   {"text": {"format": {"type": "json_object"}}}, {"user": "me", "store": False, "tool_choice": "none", "tools": []},
                   {"tools": [WEATHER], "tool_choice": "required", "max_output_tokens": 60}):
        schema("Response", respond(server, **fields))


WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}}


def chunks(server, path, body):
    """The data of a stream's events, and their names where they have one."""
    request = urllib.request.Request(server.url + path, json.dumps(body | {"stream": True}).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        blocks = answer.read().decode().split("\n\n")
    out = []
    for block in blocks:
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line)
        if lines.get("data", "").startswith("{"):
            out.append((lines.get("event"), json.loads(lines["data"])))
    return out


def test_chat_chunks(server, schema):
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
    for fields in ({}, {"logprobs": True, "n": 2, "stream_options": {"include_usage": True}},
                   {"return_token_ids": True, "return_timings": True, "stream_options": {"continuous_usage_stats": True}}):
        events = chunks(server, "/v1/chat/completions", body | fields)
        assert len(events) >= 4
        for _, event in events:
            schema("CreateChatCompletionStreamResponse", event)


def test_completion_chunks(server, schema):
    body = {"model": MODEL, "prompt": "Hi", "max_tokens": 4}
    for fields in ({}, {"logprobs": 2, "n": 2}, {"stream_options": {"include_usage": True}, "return_token_ids": True}):
        for _, event in chunks(server, "/v1/completions", body | fields):
            # The description has no schema of its own for a chunk of completions: a chunk is a completion that isn't ended.
            for choice in event["choices"]:
                choice["finish_reason"] = choice["finish_reason"] or "stop"
            if event.get("usage", 0) is None:
                del event["usage"]
            schema("CreateCompletionResponse", event)


def test_response_events(server, schema):
    body = {"model": MODEL, "input": "Hi", "max_output_tokens": 6}
    for fields in ({}, {"include": ["message.output_text.logprobs"], "top_logprobs": 2, "instructions": "Be brief."},
                   {"tools": [WEATHER], "tool_choice": "required", "max_output_tokens": 60}):
        events = chunks(server, "/v1/responses", body | fields)
        assert len(events) >= 7
        for name, event in events:
            assert name == event["type"]
            schema("ResponseStreamEvent", event)


def test_models_and_errors(server, schema):
    schema("ListModelsResponse", server.get("/v1/models"))
    schema("Model", server.get(f"/v1/models/{MODEL}"))
    schema("ErrorResponse", chat(server, temperature="hot"))
    schema("ErrorResponse", complete(server, prompt=[]))
    schema("ErrorResponse", respond(server, store=True))
    schema("ErrorResponse", server.post("/v1/nothing", {})[1])
