"""Anthropic's messages, with the anthropic client."""
import json

import anthropic
import pytest

from conftest import MODEL

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def claude(server):
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=600)


def ask(claude, messages=QUESTION, extra=None, **fields):
    fields.setdefault("max_tokens", 24)
    return claude.messages.create(model=MODEL, messages=messages, extra_body={"temperature": 0} | (extra or {}), **fields)


def test_answers_as_chat_does(claude, client):
    answer = ask(claude)
    chat = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=24)
    assert answer.content[0].type == "text" and answer.content[0].text == chat.choices[0].message.content
    assert answer.role == "assistant" and answer.type == "message" and answer.id.startswith("msg_")
    assert answer.stop_reason == {"stop": "end_turn", "length": "max_tokens"}[chat.choices[0].finish_reason]
    usage = answer.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == chat.usage.prompt_tokens
    assert usage.output_tokens == chat.usage.completion_tokens


def test_system_and_blocks(claude, client):
    blocks = [{"type": "text", "text": "My name is"}, {"type": "text", "text": "Ada.", "cache_control": {"type": "ephemeral"}}]
    messages = [{"role": "user", "content": blocks}, {"role": "user", "content": "What is my name?"}]
    answer = ask(claude, messages, system=[{"type": "text", "text": "Answer in one word."}])
    chat = client.chat.completions.create(
        model=MODEL, temperature=0, max_tokens=24,
        messages=[{"role": "system", "content": "Answer in one word."},
                  {"role": "user", "content": "My name is\nAda.\nWhat is my name?"}])
    assert answer.content[0].text == chat.choices[0].message.content


def test_goes_on_from_an_assistants_beginning(claude):
    answer = ask(claude, QUESTION + [{"role": "assistant", "content": "The capital of France is"}], max_tokens=1)
    assert answer.content[0].text.startswith(" Paris") and answer.stop_reason == "max_tokens"


def test_stop_sequences(claude):
    whole = ask(claude).content[0].text
    stop = whole[6:9]
    answer = ask(claude, stop_sequences=[stop, "never to be seen"])
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", stop)
    assert answer.content[0].text == whole[: whole.index(stop)]


def test_streams_what_it_answers_whole(claude):
    for fields in ({}, {"max_tokens": 3}, {"stop_sequences": ["a", " the"]}, {"extra": {"temperature": 1, "seed": 5, "top_k": 20, "top_p": 0.9}}):
        whole = ask(claude, **fields)
        events = list(ask(claude, stream=True, **fields))  # the client leaves out pings
        kinds = [e.type for e in events]
        texts = kinds.count("content_block_delta")
        block = ["content_block_start", *["content_block_delta"] * texts, "content_block_stop"] if texts else []
        assert kinds == ["message_start", *block, "message_delta", "message_stop"]
        assert "".join(e.delta.text for e in events if e.type == "content_block_delta") == "".join(b.text for b in whole.content)
        assert events[0].message.content == [] and events[0].message.stop_reason is None
        assert (events[-2].delta.stop_reason, events[-2].delta.stop_sequence) == (whole.stop_reason, whole.stop_sequence)
        assert events[-2].usage.output_tokens == whole.usage.output_tokens


def test_the_clients_own_stream(claude):
    with claude.messages.stream(model=MODEL, messages=QUESTION, max_tokens=16, extra_body={"temperature": 0}) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text == message.content[0].text == ask(claude, max_tokens=16).content[0].text
    assert message.usage.output_tokens == 16 or message.stop_reason == "end_turn"


def test_structured_answers(claude):
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}
    answer = ask(claude, max_tokens=40, output_config={"format": {"type": "json_schema", "schema": schema}})
    assert list(json.loads(answer.content[0].text)) == ["city"]


def test_calls_of_tools(claude):
    tool = {"name": "weather", "description": "The weather in a city.",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}}
    question = [{"role": "user", "content": "What is the weather in Paris?"}]
    fields = dict(tools=[tool], tool_choice={"type": "tool", "name": "weather"}, max_tokens=60)
    answer = ask(claude, question, **fields)
    call = answer.content[0]
    assert (answer.stop_reason, call.type, call.name, list(call.input)) == ("tool_use", "tool_use", "weather", ["city"])
    events = list(ask(claude, question, stream=True, **fields))
    assert json.loads("".join(e.delta.partial_json for e in events if e.type == "content_block_delta")) == call.input
    assert events[-2].delta.stop_reason == "tool_use"
    with claude.messages.stream(model=MODEL, messages=question, extra_body={"temperature": 0}, **fields) as stream:
        assert stream.get_final_message().content[0].input == call.input
    for said in ([block.model_dump() for block in answer.content], answer.content):  # what was answered goes back as it came
        talk = question + [{"role": "assistant", "content": said},
                           {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "Rain."}]}]
        assert ask(claude, talk, tools=[tool], tool_choice={"type": "none"}).content[0].type == "text"
    assert claude.messages.count_tokens(model=MODEL, messages=talk, tools=[tool]).input_tokens > \
        claude.messages.count_tokens(model=MODEL, messages=talk).input_tokens


def test_counts_tokens(claude):
    count = claude.messages.count_tokens(model=MODEL, messages=QUESTION, system="Be brief.")
    usage = ask(claude, system="Be brief.", max_tokens=1).usage
    assert count.input_tokens == usage.input_tokens + usage.cache_read_input_tokens


@pytest.mark.parametrize("fields, says", [
    ({"max_tokens": None}, "max_tokens"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": "long " * 3000}]}, "2048"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_k": 1.5}, "top_k"),
    ({"stop_sequences": [""]}, "stop_sequences"),
    ({"stop": ["a"]}, "stop"),
    ({"max_tokens": 1100, "thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking.type"),
    ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking.budget_tokens"),
    ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
    ({"container": "c"}, "container"),
    ({"unheard_of": 1}, "unheard_of"),
])
def test_refusals_have_anthropics_shape(server, fields, says):
    status, body = server.post("/v1/messages", {"model": MODEL, "messages": QUESTION, "max_tokens": 1} | fields)
    assert status == 400, body
    assert body["type"] == "error" and body["error"]["type"] == "invalid_request_error" and says in body["error"]["message"], body


def test_the_client_raises(claude, start_server, tmp_path):
    with pytest.raises(anthropic.BadRequestError):
        ask(claude, stop_sequences=[""])
    with pytest.raises(anthropic.NotFoundError):
        claude.messages.create(model="other", messages=QUESTION, max_tokens=1)
    (tmp_path / "keys").write_text("secret\n")
    guarded = start_server("--api-key-file", str(tmp_path / "keys"))
    try:
        fields = dict(model=MODEL, messages=QUESTION, max_tokens=1)
        assert anthropic.Anthropic(base_url=guarded.url, api_key="secret").messages.create(**fields).content
        with pytest.raises(anthropic.AuthenticationError) as caught:
            anthropic.Anthropic(base_url=guarded.url, api_key="wrong", max_retries=0).messages.create(**fields)
        assert caught.value.body["error"]["type"] == "authentication_error"
    finally:
        assert guarded.stop() == 0


def test_a_closed_stream_is_cancelled(claude, server):
    stream = ask(claude, stream=True, max_tokens=1500, extra={"ignore_eos": True})
    for _, event in zip(range(4), stream):
        assert event.type
    stream.close()
    assert server.wait_idle(seconds=5)["running"] == 0
