"""Thoughts in Anthropic's messages, with the anthropic client and a model that is made to think: the default one, with a
template that opens a thought. It knows no end of it, so the budget decides."""
import json

import anthropic
import pytest

from conftest import MODEL

BEGIN = b"{% for message in messages %}"
TEMPLATE = (r"{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.reasoning_content %}<think>{{ m.reasoning_content }}"
            r"</think>{% endif %}{{ m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant"
            r"{{ '\n<think>\n' }}{% if not enable_thinking %}{{ '</think>\n' }}{% endif %}{% endif %}")
QUESTION = [{"role": "user", "content": "Tell me a long story about the sea."}]
THINK = {"type": "enabled", "budget_tokens": 24}


@pytest.fixture(scope="module")
def thinker(server, start_server, tmp_path_factory):
    """The model's file with another template of the same length in its metadata."""
    file = bytearray(server.model.read_bytes())
    at = file.index(BEGIN)
    length = int.from_bytes(file[at - 8:at], "little")
    assert len(TEMPLATE) + 4 <= length, length
    file[at:at + length] = (TEMPLATE + "{#" + " " * (length - len(TEMPLATE) - 4) + "#}").encode()
    path = tmp_path_factory.mktemp("thinker") / f"{MODEL}.gguf"
    path.write_bytes(file)
    running = start_server(model=path)
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def claude(thinker):
    return anthropic.Anthropic(base_url=thinker.url, api_key="none", max_retries=0, timeout=600)


def ask(claude, messages=QUESTION, **fields):
    fields = {"max_tokens": 60, "thinking": THINK} | fields
    return claude.messages.create(model=MODEL, messages=messages, extra_body={"temperature": 0}, **fields)


def test_thoughts_end_at_their_budget(thinker, claude):
    answer = ask(claude)
    assert [b.type for b in answer.content] == ["thinking", "text"]
    thought, text = answer.content
    assert thought.thinking and text.text and "think>" not in thought.thinking + text.text
    status, told = thinker.post("/tokenize", {"prompt": thought.thinking, "add_special_tokens": False})
    assert status == 200 and 20 <= told["count"] <= 25  # less the white space around it
    longer = ask(claude, thinking={"type": "enabled", "budget_tokens": 40}).content[0].thinking
    assert longer.startswith(thought.thinking.rstrip()) and len(longer) > len(thought.thinking)
    assert [b.type for b in ask(claude, thinking={"type": "adaptive"}).content] == ["thinking"], "it never ends of itself"


def test_streams_what_it_thinks(claude):
    whole = ask(claude)
    events = list(ask(claude, stream=True))
    starts = [e.content_block.type for e in events if e.type == "content_block_start"]
    assert starts == ["thinking", "text"]
    deltas = [e.delta for e in events if e.type == "content_block_delta"]
    assert "".join(d.thinking for d in deltas if d.type == "thinking_delta") == whole.content[0].thinking
    assert "".join(d.text for d in deltas if d.type == "text_delta") == whole.content[1].text
    assert [d.type for d in deltas].count("signature_delta") == 1
    with claude.messages.stream(model=MODEL, messages=QUESTION, max_tokens=60, thinking=THINK,
                                extra_body={"temperature": 0}) as stream:
        message = stream.get_final_message()
    assert [b.model_dump(exclude_none=True) for b in message.content] == [b.model_dump(exclude_none=True) for b in whole.content]


def test_thoughts_come_back_in_the_conversation(thinker, claude):
    answer = ask(claude)
    talk = QUESTION + [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "And about the sky?"}]
    assert [b.type for b in ask(claude, talk).content] == ["thinking", "text"]
    without = QUESTION + [{"role": "assistant", "content": answer.content[1:]}, talk[2]]
    count = lambda messages: claude.messages.count_tokens(model=MODEL, messages=messages).input_tokens
    assert count(talk) - count(without) >= 20


def test_thoughts_can_be_off_or_untold(claude):
    assert [b.type for b in ask(claude, thinking={"type": "disabled"}).content] == ["text"]
    assert [b.type for b in ask(claude, thinking=THINK | {"display": "omitted"}).content] == ["text"]
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}
    shaped = ask(claude, output_config={"format": {"type": "json_schema", "schema": schema}})
    assert shaped.content[0].type == "thinking" and list(json.loads(shaped.content[1].text)) == ["city"]


def test_sampled_thoughts_are_the_same_again(claude):
    ask_warm = lambda: claude.messages.create(model=MODEL, messages=QUESTION, max_tokens=60, thinking=THINK,
                                              extra_body={"seed": 3, "temperature": 1}).content
    assert ask_warm() == ask_warm()
