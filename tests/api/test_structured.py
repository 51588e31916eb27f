"""Constrained answers with the openai client, judged by Python's jsonschema and re."""
import json
import re

import jsonschema
import openai
import pytest

from conftest import MODEL

QUESTION = [{"role": "user", "content": "Describe a pet."}]
PET = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "legs": {"type": "integer", "minimum": 0, "maximum": 8},
        "kind": {"enum": ["cat", "dog", "fish"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 3},
    },
    "required": ["name", "legs", "kind", "tags"],
    "additionalProperties": False,
}


def chat(client, messages=QUESTION, **fields):
    fields.setdefault("max_tokens", 200)
    return client.chat.completions.create(model=MODEL, messages=messages, **fields)


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "pet", "strict": True, "schema": schema}}


def test_answers_are_of_the_schema(client):
    for seed in range(6):
        answer = chat(client, seed=seed, temperature=1.5, n=2, response_format=schema_format(PET))
        for choice in answer.choices:
            if choice.finish_reason == "length":
                continue
            jsonschema.validate(json.loads(choice.message.content), PET)
            assert choice.finish_reason == "stop"


def test_streams_what_it_answers_whole(client):
    fields = {"seed": 4, "response_format": schema_format(PET)}
    whole = chat(client, **fields).choices[0].message.content
    parts = [chunk.choices[0].delta.content or "" for chunk in chat(client, stream=True, **fields) if chunk.choices]
    assert "".join(parts) == whole


def test_the_parse_helper_makes_objects(client):
    pydantic = pytest.importorskip("pydantic")

    class Pet(pydantic.BaseModel):
        name: str
        legs: int

    answer = client.chat.completions.parse(model=MODEL, messages=QUESTION, response_format=Pet, max_tokens=300, temperature=0)
    choice = answer.choices[0]
    assert choice.finish_reason == "length" or isinstance(choice.message.parsed, Pet)


def test_any_object(client):
    answer = chat(client, temperature=0, response_format={"type": "json_object"})
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content), dict)


@pytest.mark.parametrize("wanted, pattern", [
    ({"choice": ["yes", "no", "maybe"]}, "yes|no|maybe"),
    ({"regex": "^[0-9]{4}-(0[1-9]|1[0-2])$"}, "[0-9]{4}-(0[1-9]|1[0-2])"),
    ({"grammar": 'root ::= "a" [b-d]+ "e"'}, "a[bcd]+e"),
])
def test_vllm_names(client, wanted, pattern):
    for seed in range(4):
        answer = client.completions.create(model=MODEL, prompt="Answer: ", max_tokens=60, seed=seed, extra_body={"structured_outputs": wanted})
        choice = answer.choices[0]
        assert choice.finish_reason == "length" or re.fullmatch(pattern, choice.text), choice.text


def test_what_cannot_be_enforced_is_refused_by_name(client):
    with pytest.raises(openai.BadRequestError) as refused:
        chat(client, response_format=schema_format({"type": "object", "properties": {"a": {"$ref": "https://example.com/x"}}}))
    assert refused.value.body["param"].startswith("response_format.json_schema.schema")
    with pytest.raises(openai.BadRequestError):
        chat(client, extra_body={"grammar": "root ::= ("})
    with pytest.raises(openai.BadRequestError):
        chat(client, extra_body={"structured_outputs": {"regex": "("}})


def test_free_neighbours_keep_their_answers(client):
    from concurrent.futures import ThreadPoolExecutor
    free = {"seed": 11, "max_tokens": 40, "logprobs": True}
    alone = chat(client, **free).choices[0]
    with ThreadPoolExecutor(9) as pool:
        others = [pool.submit(chat, client, seed=i, response_format=schema_format(PET)) for i in range(8)]
        beside = pool.submit(chat, client, **free).result().choices[0]
        for other in others:
            other.result()
    assert alone.message.content == beside.message.content
    assert alone.logprobs == beside.logprobs
