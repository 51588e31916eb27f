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
    for said in (choice.message, choice.message.model_dump()):  # an answer goes back as it came
        chat(client, messages=QUESTION + [said] + QUESTION, max_tokens=1)
    answer = client.responses.parse(model=MODEL, input=QUESTION, text_format=Pet, max_output_tokens=100, temperature=0)
    client.responses.create(model=MODEL, input=[item.model_dump() for item in answer.output] + QUESTION, max_output_tokens=1)


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


def test_lark_and_structural_tags(client):
    lark = 'start: "a" INT\n%import common.INT'
    text = chat(client, seed=1, max_tokens=20, extra_body={"structured_outputs": {"grammar": lark}}).choices[0].message.content
    assert re.match("a[0-9]*", text)
    older = {"type": "structural_tag", "triggers": ["<n"],
             "structures": [{"begin": "<n>", "schema": {"type": "integer", "maximum": 9, "minimum": 0}, "end": "</n>"}]}
    newer = {"type": "structural_tag", "format": {"type": "sequence", "elements": [
        {"type": "const_string", "value": "So: "},
        {"type": "tag", "begin": "<n>", "content": {"type": "json_schema", "json_schema": {"enum": ["p", "qq"]}}, "end": "</n>"},
        {"type": "or", "elements": [{"type": "regex", "pattern": "[a-c]{2}"}, {"type": "grammar", "grammar": 'root ::= "x"'}]}]}}
    for seed in range(4):
        text = chat(client, seed=seed, response_format=newer, max_tokens=40).choices[0].message.content
        assert re.fullmatch('So: <n>("p"|"qq")</n>([a-c]{2}|x)', text), text
        text = chat(client, seed=seed, response_format=older, max_tokens=40).choices[0].message.content
        assert not re.search("<n(?!>[0-9])", text) or "<n" in text[-4:], text
    as_text = chat(client, seed=2, max_tokens=40, extra_body={"structured_outputs": {"structural_tag": json.dumps(newer)}})
    assert re.fullmatch('So: <n>("p"|"qq")</n>([a-c]{2}|x)', as_text.choices[0].message.content)


@pytest.mark.parametrize("triggers", [["<n", "<n"], ["<n", "<"], ["<n"] * 300])
def test_triggers_that_begin_alike_are_refused(client, triggers):
    tag = {"type": "structural_tag", "triggers": triggers, "structures": [{"begin": "<n>", "schema": {"type": "integer"}, "end": "</n>"}]}
    with pytest.raises(openai.BadRequestError) as refused:
        chat(client, response_format=tag)
    assert refused.value.param == "response_format.triggers"


def test_white_space_and_order_of_keys(client):
    schema = {"type": "object", "properties": {"a": {"const": "x"}, "b": {"const": [True]}}, "required": ["a", "b"], "additionalProperties": False}
    said = set()
    for seed in range(8):
        fields = {"seed": seed, "temperature": 2, "response_format": schema_format(schema)}
        text = chat(client, **fields, extra_body={"schema_options": {"whitespace": "compact", "any_order": True}}).choices[0].message.content
        assert " " not in text and "\n" not in text
        said.add(text)
        assert list(json.loads(chat(client, **fields).choices[0].message.content)) == ["a", "b"]
    assert said == {'{"a":"x","b":[true]}', '{"b":[true],"a":"x"}'}


@pytest.mark.parametrize("fields", [
    {"n": 3, "seed": 5, "stop": ["cat", "}"]},
    {"seed": 6, "logprobs": True, "top_logprobs": 3, "n": 2},
    {"seed": 7, "frequency_penalty": 0.5, "extra_body": {"min_tokens": 4}},
])
def test_structured_answers_stream_stop_and_tell_like_others(client, fields):
    fields = fields | {"response_format": schema_format(PET)}
    whole = chat(client, **fields).choices
    texts, logprobs = [""] * len(whole), [[] for _ in whole]
    for chunk in chat(client, stream=True, **fields):
        for part in chunk.choices:
            texts[part.index] += part.delta.content or ""
            logprobs[part.index] += part.logprobs.content if part.logprobs else []
    assert texts == [choice.message.content for choice in whole]
    for choice, told in zip(whole, logprobs):
        if choice.logprobs:
            assert told == choice.logprobs.content
        if "stop" in fields and choice.finish_reason == "stop":
            assert not any(stop in choice.message.content for stop in fields["stop"])


def test_structured_answers_are_the_same_when_preempted(client, start_server):
    from concurrent.futures import ThreadPoolExecutor
    ask = lambda to, seed: chat(to, seed=seed, temperature=1.2, response_format=schema_format(PET)).choices[0].message.content
    alone = [ask(client, seed) for seed in range(10)]
    small = start_server("--kv-memory", "64M", "--token-budget", "32")
    try:
        other = openai.OpenAI(base_url=small.url + "/v1", api_key="none", max_retries=0, timeout=600)
        with ThreadPoolExecutor(10) as pool:
            assert list(pool.map(lambda seed: ask(other, seed), range(10))) == alone
    finally:
        assert small.stop() == 0


HOSTILE = [
    {"regex": "((a*)*)*" * 400 + "("},
    {"regex": "(.{0,500}x){0,500}" * 40},
    {"regex": "(a|b)*a" + "(a|b)" * 5000 + "(?=x)"},
    {"json": {"allOf": [{"not": {"pattern": f"^.*a.{{{i}}}$"}} for i in range(200)], "type": "string"}},
    {"json": {"oneOf": [{"properties": {f"k{i}{j}": {"type": "string"} for j in range(20)}} for i in range(190)]}},
    {"json": {"$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"not": {"$ref": f"#/$defs/d{i + 1}"}}]} for i in range(300)},
              "$ref": "#/$defs/d0"}},
    {"json": {"$ref": "#"}},
    {"grammar": "root ::= " + "(" * 5000},
    {"grammar": "root ::= a\na ::= b\nb ::= a"},
    {"grammar": 'root ::= r0\n' + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(3000)) + 'r3000 ::= "x"'},
    {"structural_tag": {"format": {"type": "or", "elements": []}}},
]


def test_hostile_constraints_cost_their_sender_an_error(server, client):
    """Refused (or taken, where they aren't as bad as they look) in a moment, and neighbours are answered meanwhile. That
    compiling stands in nobody's way is a property: the engine makes steps while it goes on."""
    import threading
    import time
    slowest, stop = [0.0], threading.Event()

    def neighbour():
        while not stop.is_set():
            begin = time.monotonic()
            client.completions.create(model=MODEL, prompt="Hi", max_tokens=2, temperature=0)
            slowest[0] = max(slowest[0], time.monotonic() - begin)

    beside = threading.Thread(target=neighbour)
    beside.start()
    try:
        for wanted in HOSTILE:
            begin = time.monotonic()
            status, body = server.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "structured_outputs": wanted})
            took = time.monotonic() - begin
            assert status in (200, 400), body
            if status == 400:
                assert body["error"]["param"].startswith("structured_outputs"), body
            assert took < 5, (took, str(wanted)[:100])  # 0.1 s on a machine with nothing else to do
    finally:
        stop.set()
        beside.join()
    assert slowest[0] < 5


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
