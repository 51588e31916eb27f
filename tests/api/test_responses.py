"""The text part of OpenAI's responses, with the openai client."""
import json

import openai
import pytest

from conftest import MODEL

QUESTION = "What is the capital of France?"


def respond(client, asked=QUESTION, **fields):
    fields.setdefault("max_output_tokens", 24)
    return client.responses.create(model=MODEL, input=asked, **fields)


def test_answers_as_chat_does(client):
    answer = respond(client, temperature=0)
    chat = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": QUESTION}], temperature=0, max_tokens=24)
    assert answer.output_text == chat.choices[0].message.content
    assert answer.object == "response" and answer.id.startswith("resp_")
    assert answer.status == ("completed" if chat.choices[0].finish_reason == "stop" else "incomplete")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (chat.usage.prompt_tokens, chat.usage.completion_tokens)
    assert answer.output[0].role == "assistant" and answer.output[0].id.startswith("msg_")


def test_says_what_it_was_asked(client):
    answer = respond(client, temperature=0.5, top_p=0.25, metadata={"a": "b"}, instructions="Be brief.", truncation="auto", store=False)
    assert (answer.temperature, answer.top_p, answer.truncation) == (0.5, 0.25, "auto")
    assert answer.metadata == {"a": "b"} and answer.instructions == "Be brief."
    assert answer.max_output_tokens == 24 and answer.store is False
    plain = respond(client)
    assert (plain.temperature, plain.top_p, plain.truncation, plain.metadata, plain.instructions) == (1.0, 1.0, "disabled", {}, None)


def test_cut_answers_are_incomplete(client):
    answer = respond(client, max_output_tokens=2, temperature=0)
    assert answer.status == "incomplete" and answer.incomplete_details.reason == "max_output_tokens"
    assert answer.output[0].status == "incomplete" and answer.usage.output_tokens == 2


def test_instructions_and_items_are_messages(client, server):
    items = [
        {"role": "user", "content": "My name is Ada."},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
         "content": [{"type": "output_text", "text": "Hello Ada.", "annotations": []}]},
        {"role": "user", "content": [{"type": "input_text", "text": "What is"}, {"type": "input_text", "text": "my name?"}]},
    ]
    messages = [
        {"role": "system", "content": "Answer in one word."},
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": "What is\nmy name?"},
    ]
    answer = respond(client, items, instructions="Answer in one word.", temperature=0)
    chat = client.chat.completions.create(model=MODEL, messages=messages, temperature=0, max_tokens=24)
    assert answer.output_text == chat.choices[0].message.content
    assert answer.usage.input_tokens == chat.usage.prompt_tokens


def test_an_answer_can_be_sent_back(client):
    first = respond(client, temperature=0)
    again = respond(client, [{"role": "user", "content": QUESTION}, *first.output, {"role": "user", "content": "Are you sure?"}])
    assert again.output_text


def test_streams_what_it_answers_whole(client):
    for fields in ({"temperature": 0}, {"extra_body": {"seed": 7, "stop": ["a", " the"]}}, {"max_output_tokens": 3, "temperature": 0},
                   {"extra_body": {"seed": 2}, "include": ["message.output_text.logprobs"], "top_logprobs": 2}):
        whole = respond(client, **fields)
        events = list(respond(client, stream=True, **fields))
        assert [e.sequence_number for e in events] == list(range(len(events)))
        kinds = [e.type for e in events]
        n = kinds.count("response.output_text.delta")
        assert kinds == ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                         *["response.output_text.delta"] * n, "response.output_text.done", "response.content_part.done",
                         "response.output_item.done", "response." + whole.status]
        assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == whole.output_text
        final = events[-1].response
        assert events[0].response.status == "in_progress" and events[0].response.id == final.id
        assert events[-4].text == events[-3].part.text == events[-2].item.content[0].text == whole.output_text
        ours, theirs = json.loads(final.model_dump_json()), json.loads(whole.model_dump_json())
        for each in (ours, theirs):
            for item in (each, each["output"][0]):
                del item["id"]
            del each["created_at"], each["usage"]["input_tokens_details"]
        assert ours == theirs


def test_logprobs(client):
    answer = respond(client, temperature=0, include=["message.output_text.logprobs"], top_logprobs=3, max_output_tokens=6)
    logprobs = answer.output[0].content[0].logprobs
    assert len(logprobs) == answer.usage.output_tokens and all(len(entry.top_logprobs) == 3 for entry in logprobs)
    assert "".join(entry.token for entry in logprobs).startswith(answer.output_text)


def test_structured_answers(client):
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}
    answer = respond(client, temperature=0, text={"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}, max_output_tokens=40)
    assert list(json.loads(answer.output_text)) == ["city"]
    assert answer.text.format.type == "json_schema"


WEATHER = {"type": "function", "name": "weather", "description": "The weather in a city.", "strict": True,
           "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}}


def test_calls_of_tools(client):
    ask = "What is the weather in Paris?"
    fields = dict(tools=[WEATHER], tool_choice={"type": "function", "name": "weather"}, temperature=0, max_output_tokens=60)
    answer = respond(client, ask, **fields)
    call = answer.output[0]
    assert (call.type, call.name, call.status) == ("function_call", "weather", "completed")
    assert list(json.loads(call.arguments)) == ["city"]
    events = list(respond(client, ask, stream=True, **fields))
    assert "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta") == call.arguments
    assert next(e for e in events if e.type == "response.function_call_arguments.done").arguments == call.arguments
    assert events[-1].response.output[0].arguments == call.arguments
    for said in (call, call.model_dump()):
        items = [{"role": "user", "content": ask}, said, {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}]
        assert respond(client, items, tools=[WEATHER], tool_choice="none", temperature=0).output[0].type == "message"
    for field in ({"async": True}, {"namespace": "x"}):
        with pytest.raises(openai.BadRequestError, match="input\\[1\\]." + next(iter(field))):
            respond(client, [items[0], call.to_dict() | field, items[2]], tools=[WEATHER])


@pytest.mark.parametrize("fields, param", [
    ({"store": True}, "store"),
    ({"background": True}, "background"),
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"temperature": 3}, "temperature"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"top_logprobs": 3}, "top_logprobs"),
    ({"truncation": "some"}, "truncation"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
    ({"text": {"verbosity": "high"}}, "text.verbosity"),
    ({"metadata": {"a": 5}}, "metadata"),
    ({"include": ["everything"]}, "include"),
    ({"input": []}, "input"),
    ({"input": 5}, "input"),
    ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0].type"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
    ({"input": "long " * 3000}, "input"),
    ({"stream_options": {"include_obfuscation": True}}, "stream_options"),
    ({"messages": []}, "messages"),
    ({"n": 2}, "n"),
])
def test_refusals(server, fields, param):
    status, body = server.post("/v1/responses", {"model": MODEL, "input": "Hi", "max_output_tokens": 1} | fields)
    assert (status, body["error"]["param"]) == (400, param), body


def test_the_client_raises(client):
    with pytest.raises(openai.BadRequestError) as caught:
        respond(client, store=True)
    assert caught.value.param == "store"
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="other", input="Hi")


def test_a_closed_stream_is_cancelled(client, server):
    stream = respond(client, stream=True, max_output_tokens=1500, extra_body={"ignore_eos": True})
    for _, event in zip(range(6), stream):
        assert event.type
    stream.close()
    assert server.wait_idle(seconds=5)["running"] == 0
