"""On every endpoint a stream says what the whole answer says, byte for byte, whatever the fields: stop strings that lie across
tokens and inside characters of several bytes, limits, seeds, choices."""
import json
import random
import urllib.request

import pytest

from conftest import MODEL

# Asked to repeat them, the model answers with characters that are several tokens each.
TEXTS = ["Repeat: \U0001F600\U0001F680 éàü 日本語", "Count to twenty in words.", "List three colours, with a smiley \U0001F642 each."]
STOPS = ["\U0001F680", "é", "日本", "語", " t", "e", "\n", "wo", ", ", "the ", "一", "\u200d", "ff", "1"]


def events(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        text = answer.read().decode()  # every event is UTF-8 of its own: what is cut in a character would fail here or differ below
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]


def completions(server, fields, text):
    body = {"model": MODEL, "prompt": text, "max_tokens": fields.pop("limit"), "n": 2} | fields
    whole = server.post("/v1/completions", body)[1]["choices"]
    told = {}
    for event in events(server, "/v1/completions", body | {"stream": True}):
        for choice in event["choices"]:
            so_far = told.setdefault(choice["index"], ["", None, None])
            so_far[0] += choice["text"]
            if choice["finish_reason"]:
                so_far[1:] = choice["finish_reason"], choice["stop_reason"]
    return [[c["text"], c["finish_reason"], c["stop_reason"]] for c in whole], [told[i] for i in range(2)]


def chat(server, fields, text):
    body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": fields.pop("limit"), "n": 2} | fields
    whole = server.post("/v1/chat/completions", body)[1]["choices"]
    told = {}
    for event in events(server, "/v1/chat/completions", body | {"stream": True}):
        for choice in event["choices"]:
            so_far = told.setdefault(choice["index"], ["", None, None])
            so_far[0] += choice["delta"].get("content") or ""
            if choice["finish_reason"]:
                so_far[1:] = choice["finish_reason"], choice["stop_reason"]
    return [[c["message"]["content"], c["finish_reason"], c["stop_reason"]] for c in whole], [told[i] for i in range(2)]


def responses(server, fields, text):
    body = {"model": MODEL, "input": text, "max_output_tokens": fields.pop("limit")} | fields
    whole = server.post("/v1/responses", body)[1]
    all_events = events(server, "/v1/responses", body | {"stream": True})
    told = "".join(e["delta"] for e in all_events if e["type"] == "response.output_text.delta")
    last = all_events[-1]["response"]
    return [whole["output"][0]["content"][0]["text"], whole["status"], whole["stop_reason"]], [told, last["status"], last["stop_reason"]]


def messages(server, fields, text):
    body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": fields.pop("limit")} | fields
    body["stop_sequences"] = body.pop("stop")
    whole = server.post("/v1/messages", body)[1]
    all_events = events(server, "/v1/messages", body | {"stream": True})
    told = "".join(e["delta"]["text"] for e in all_events if e["type"] == "content_block_delta")
    end = next(e["delta"] for e in all_events if e["type"] == "message_delta")
    return ["".join(b["text"] for b in whole["content"]), whole["stop_reason"], whole["stop_sequence"]], [told, *end.values()]


@pytest.mark.parametrize("endpoint", [completions, chat, responses, messages])
def test_streams_say_what_whole_answers_say(server, endpoint):
    stopped = 0
    for seed in range(16):
        rng = random.Random(seed)
        fields = {"limit": rng.choice([1, 2, 7, 24]), "seed": seed, "temperature": rng.choice([0, 1, 1.5]), "stop": rng.sample(STOPS, rng.randint(1, 3))}
        stops = fields["stop"]
        whole, streamed = endpoint(server, fields, rng.choice(TEXTS))
        assert streamed == whole, seed
        for text, _, why in whole if isinstance(whole[0], list) else [whole]:
            assert not any(stop in text for stop in stops), (text, stops)
            stopped += why in stops
    assert stopped


def test_a_stop_string_inside_characters_and_tokens(server):
    """Every string of two characters of an answer, used as a stop string, ends it before its first place."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": TEXTS[0]}], "max_tokens": 20, "temperature": 0}
    whole = server.post("/v1/chat/completions", body)[1]["choices"][0]["message"]["content"]
    assert len(whole) > 8
    for at in range(0, min(len(whole) - 1, 8)):
        stop = whole[at : at + 2]
        choice = server.post("/v1/chat/completions", body | {"stop": stop})[1]["choices"][0]
        assert choice["message"]["content"] == whole[: whole.index(stop)]
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
