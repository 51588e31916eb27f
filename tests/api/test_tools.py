"""Tools with the openai client: called when asked for, arguments of the schema, streamed as answered whole, and a loop."""
import json
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import openai
import pytest

from conftest import MODEL

WEATHER = {"type": "object", "properties": {"city": {"type": "string", "minLength": 1, "maxLength": 20},
                                            "days": {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 1}},
           "required": ["city", "days"]}
SUM = {"type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 4}},
       "required": ["numbers"]}
SCHEMAS = {"get_weather": WEATHER, "add": SUM}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city for some days.", "parameters": WEATHER}},
         {"type": "function", "function": {"name": "add", "description": "Adds numbers.", "parameters": SUM, "strict": True}}]
QUESTION = [{"role": "user", "content": "What's the weather in Paris for 3 days?"}]


def chat(client, messages=QUESTION, **fields):
    fields = {"max_tokens": 120, "tools": TOOLS} | fields
    return client.chat.completions.create(model=MODEL, messages=messages, **fields)


def check(calls):
    for call in calls:
        jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name] | {"additionalProperties": False})
    assert len({call.id for call in calls}) == len(calls)


def test_required_is_a_call_of_a_tool(client):
    for seed in range(8):
        choice = chat(client, tool_choice="required", parallel_tool_calls=False, seed=seed, temperature=1.5).choices[0]
        if choice.finish_reason == "length":
            continue
        assert choice.finish_reason == "tool_calls" and choice.message.content is None
        assert len(choice.message.tool_calls) == 1
        check(choice.message.tool_calls)


def test_a_named_tool_is_the_one_called(client):
    for name in SCHEMAS:
        choice = chat(client, tool_choice={"type": "function", "function": {"name": name}}, temperature=0).choices[0]
        assert [call.function.name for call in choice.message.tool_calls] == [name]
        check(choice.message.tool_calls)


def test_only_allowed_tools_are_called(client):
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "add"}}]}}
    choice = chat(client, tool_choice=allowed, parallel_tool_calls=False, temperature=0).choices[0]
    assert [call.function.name for call in choice.message.tool_calls] == ["add"]


def test_several_calls_in_one_answer(client):
    choice = chat(client, tool_choice="required", temperature=0, max_tokens=100).choices[0]
    calls = choice.message.tool_calls
    assert len(calls) > 1  # this model can't stop
    check(calls if choice.finish_reason == "tool_calls" else calls[:-1])


def test_auto_and_none(client):
    for seed in range(6):
        choice = chat(client, seed=seed, temperature=1.2, max_tokens=60).choices[0]
        if choice.finish_reason == "tool_calls":
            check(choice.message.tool_calls)
    choice = chat(client, tool_choice="none", temperature=0, max_tokens=20).choices[0]
    assert choice.message.tool_calls is None and choice.message.content


def from_stream(chunks, n=1):
    """The choices as the parts of a stream make them up: (content, calls, finish_reason), and each call's first part."""
    made = [{"content": "", "calls": [], "finish": None} for _ in range(n)]
    for chunk in chunks:
        for part in chunk.choices:
            one = made[part.index]
            assert one["finish"] is None
            one["content"] += part.delta.content or ""
            for call in part.delta.tool_calls or []:
                if call.index == len(one["calls"]):
                    assert call.id and call.type == "function" and call.function.name and call.function.arguments == ""
                    one["calls"].append([call.function.name, ""])
                else:
                    assert call.index == len(one["calls"]) - 1 and call.id is None and call.function.name is None
                one["calls"][-1][1] += call.function.arguments or ""
            one["finish"] = part.finish_reason
    return made


@pytest.mark.parametrize("fields", [
    {"tool_choice": "required", "seed": 3, "n": 2},
    {"tool_choice": "required", "seed": 3, "stop": ["Paris"]},
    {"tool_choice": "auto", "seed": 5, "n": 3},
    {"tool_choice": "required", "temperature": 0, "logprobs": True, "top_logprobs": 2},
])
def test_streams_what_it_answers_whole(client, fields):
    whole = chat(client, **fields)
    made = from_stream(chat(client, stream=True, **fields), fields.get("n", 1))
    for choice, one in zip(whole.choices, made):
        assert one["content"] == (choice.message.content or "")
        assert one["calls"] == [[c.function.name, c.function.arguments] for c in choice.message.tool_calls or []]
        assert one["finish"] == choice.finish_reason
    if fields.get("logprobs"):
        streamed = [entry for chunk in chat(client, stream=True, **fields) for c in chunk.choices
                    for entry in (c.logprobs.content if c.logprobs else [])]
        assert streamed == whole.choices[0].logprobs.content
        assert "".join(entry.token for entry in streamed).startswith("<tool_call>\n")


def test_the_parse_and_stream_helpers(client):
    pydantic = pytest.importorskip("pydantic")

    class GetWeather(pydantic.BaseModel):
        """The weather of a city."""
        city: str
        days: int

    tool = openai.pydantic_function_tool(GetWeather, name="get_weather")
    fields = dict(model=MODEL, messages=QUESTION, tools=[tool], tool_choice="required", parallel_tool_calls=False, temperature=0, max_tokens=120)
    parsed = client.chat.completions.parse(**fields).choices[0].message.tool_calls[0].function.parsed_arguments
    assert isinstance(parsed, GetWeather)
    with client.chat.completions.stream(**fields) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds and "tool_calls.function.arguments.done" in kinds
    assert final.choices[0].message.tool_calls[0].function.parsed_arguments == parsed

    # What the client read into the message goes back with it, and changes no prompt.
    message, told = final.choices[0].message, {"role": "tool", "tool_call_id": final.choices[0].message.tool_calls[0].id, "content": "Sun."}
    plain = {"role": "assistant", "tool_calls": [{"id": told["tool_call_id"], "type": "function", "function": {
        "name": "get_weather", "arguments": message.tool_calls[0].function.arguments}}]}
    again = [chat(client, QUESTION + [said, told], temperature=0, max_tokens=8) for said in (plain, message, message.model_dump())]
    assert len({(answer.usage.prompt_tokens, answer.choices[0].message.content) for answer in again}) == 1


def test_a_loop_of_call_result_and_answer(client):
    """The call goes back as it came, with its result, and the model answers in words."""
    messages = list(QUESTION)
    weather = {"type": "function", "function": {"name": "get_weather"}}
    message = chat(client, messages, tool_choice=weather, temperature=0).choices[0].message
    arguments = json.loads(message.tool_calls[0].function.arguments)
    assert message.tool_calls[0].function.name == "get_weather" and arguments["city"] == "Paris"
    messages += [message.model_dump(exclude_none=True),
                 {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Sunny, 21 degrees, for 3 days."},
                 {"role": "user", "content": "So how warm will it be? Answer in one sentence."}]
    answer = chat(client, messages, tool_choice="none", temperature=0, max_tokens=40).choices[0]
    assert answer.message.tool_calls is None and answer.message.content  # what it says is the small model's own affair


def test_calls_and_results_reach_the_prompt(server):
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{\"numbers\": [1, 2]}"}}
    messages = QUESTION + [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call_1", "content": "3"}]
    status, body = server.post("/apply-template", {"messages": messages, "tools": TOOLS})
    assert status == 200
    for text in ('"name":"get_weather"', '<tool_call>\n{"name": "add", "arguments": {"numbers": [1, 2]}}\n</tool_call>', "<tool_response>\n3\n</tool_response>"):
        assert text in body["prompt"]


def test_free_neighbours_keep_their_bits_beside_calls(client):
    free = {"seed": 11, "max_tokens": 40, "logprobs": True, "tools": openai.omit}
    alone = chat(client, **free).choices[0]
    with ThreadPoolExecutor(7) as pool:
        others = [pool.submit(chat, client, seed=i, tool_choice="required") for i in range(6)]
        beside = pool.submit(chat, client, **free).result().choices[0]
        for other in others:
            other.result()
    assert alone.message.content == beside.message.content and alone.logprobs == beside.logprobs


def test_the_same_calls_when_preempted(client, start_server):
    """Memory for a few of them only: who is put off goes on where it was."""
    ask = lambda to, seed: chat(to, seed=seed, tool_choice="required", temperature=1.2, max_tokens=100).choices[0]
    told = lambda c: ([(t.function.name, t.function.arguments) for t in c.message.tool_calls], c.finish_reason)
    alone = [told(ask(client, seed)) for seed in range(10)]
    small = start_server("--kv-memory", "64M", "--token-budget", "32")
    try:
        other = openai.OpenAI(base_url=small.url + "/v1", api_key="none", max_retries=0, timeout=600)
        with ThreadPoolExecutor(10) as pool:
            assert [told(c) for c in pool.map(lambda seed: ask(other, seed), range(10))] == alone
    finally:
        assert small.stop() == 0


@pytest.mark.parametrize("fields, param", [
    ({"tool_choice": {"type": "function", "function": {"name": "nobody"}}}, "tool_choice.function.name"),
    ({"tools": TOOLS + [{"type": "function", "function": {"name": "x", "parameters": {"type": "object", "properties": {"a": {"$ref": "https://example.com/x"}}}}}]},
     "tools[2].function.parameters/properties/a/$ref"),
    ({"tools": openai.omit, "tool_choice": "required"}, "tool_choice"),
])
def test_refusals_name_the_place(client, fields, param):
    with pytest.raises(openai.BadRequestError) as refused:
        chat(client, **fields)
    assert refused.value.body["param"] == param


def test_other_syntaxes_by_a_flag(start_server):
    """A syntax that the server explains itself; the family's own templates are held to theirs in the unit tests."""
    running = start_server("--tool-syntax", "granite")
    try:
        other = openai.OpenAI(base_url=running.url + "/v1", api_key="none", max_retries=0, timeout=600)
        choice = chat(other, tool_choice="required", parallel_tool_calls=False, temperature=0).choices[0]
        assert choice.finish_reason == "tool_calls"
        check(choice.message.tool_calls)
        status, body = running.post("/apply-template", {"messages": QUESTION, "tools": TOOLS})
        assert status == 200 and '<|tool_call|>[{"name": "function-name"' in body["prompt"]
    finally:
        assert running.stop() == 0
