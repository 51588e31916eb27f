"""vLLM's and our own fields beyond OpenAI's."""
import time

from conftest import MODEL

PROMPT = "The capital of France is"
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 8, "temperature": 0}
TEXT = {"model": MODEL, "prompt": PROMPT, "max_tokens": 8, "temperature": 0}


def ok(server, path, body):
    status, answer = server.post(path, body)
    assert status == 200, answer
    return answer


def complete(server, **fields):
    return ok(server, "/v1/completions", TEXT | fields)


def chat(server, **fields):
    return ok(server, "/v1/chat/completions", CHAT | fields)


def text_of(server, ids):
    return ok(server, "/detokenize", {"tokens": ids})["prompt"]


def test_token_ids(server):
    choice = complete(server, return_token_ids=True, n=2)["choices"][1]
    assert text_of(server, choice["prompt_token_ids"]) == PROMPT
    assert text_of(server, choice["token_ids"]) == choice["text"] and len(choice["token_ids"]) == 8
    answer = chat(server, return_token_ids=True)
    assert answer["prompt_token_ids"] == ok(server, "/tokenize", {"messages": CHAT["messages"]})["tokens"]
    ids = answer["choices"][0]["token_ids"]
    assert len(ids) == answer["usage"]["completion_tokens"]
    assert text_of(server, ids).startswith(answer["choices"][0]["message"]["content"])


def test_prompt_logprobs_are_those_of_an_echo(server):
    choice = complete(server, prompt_logprobs=3, echo=True, logprobs=3)["choices"][0]
    scores = choice["prompt_logprobs"]
    ids = ok(server, "/tokenize", {"prompt": PROMPT})["tokens"]
    assert scores[0] is None and len(scores) == len(ids)
    for i, entry in enumerate(scores[1:], 1):
        own = entry[str(ids[i])]
        assert own["logprob"] == choice["logprobs"]["token_logprobs"][i]
        assert own["decoded_token"] == choice["logprobs"]["tokens"][i]
        ranked = sorted(entry.values(), key=lambda one: one["rank"])
        assert [one["rank"] for one in ranked[:3]] == [1, 2, 3]
        assert [one["logprob"] for one in ranked] == sorted((one["logprob"] for one in ranked), reverse=True)
    answer = chat(server, prompt_logprobs=1, n=2, seed=1)
    assert len(answer["prompt_logprobs"]) == answer["usage"]["prompt_tokens"]
    assert "prompt_logprobs" not in answer["choices"][0]


def test_best_of_tells_the_likeliest(server):
    fields = {"temperature": 1.0, "seed": 3, "logprobs": 0}
    mean = lambda choice: sum(choice["logprobs"]["token_logprobs"]) / len(choice["logprobs"]["token_logprobs"])
    all_of_them = sorted(complete(server, n=6, **fields)["choices"], key=mean, reverse=True)
    best = complete(server, n=2, best_of=6, **fields)
    assert [c["text"] for c in best["choices"]] == [c["text"] for c in all_of_them[:2]]
    assert [c["index"] for c in best["choices"]] == [0, 1]
    assert best["usage"]["completion_tokens"] == 48


def test_timeouts_end_answers(server):
    for path, body, text in (("/v1/completions", TEXT, lambda c: c["text"]),
                             ("/v1/chat/completions", CHAT, lambda c: c["message"]["content"])):
        begun = time.monotonic()
        choice = ok(server, path, body | {"max_tokens": 1900, "ignore_eos": True, "timeout": 0.5})["choices"][0]
        assert time.monotonic() - begun < 30
        assert (choice["finish_reason"], choice["stop_reason"]) == ("length", "deadline")
        assert text(choice)
    assert complete(server, timeout=600, priority=-5)["choices"][0]["stop_reason"] is None


def test_timings(server):
    answer = complete(server, return_timings=True, n=2, seed=1)
    for choice in answer["choices"]:
        timings = choice["timings"]
        assert timings["predicted_n"] == 8 and timings["predicted_ms"] > 0 and timings["prompt_ms"] > 0
        assert timings["prompt_n"] + timings["cache_n"] == answer["usage"]["prompt_tokens"]
    assert "timings" not in complete(server)["choices"][0]


def test_truncation(server):
    long = "word " * 3000 + PROMPT
    status, error = server.post("/v1/completions", TEXT | {"prompt": long})
    assert status == 400 and error["error"]["code"] == "context_length_exceeded"
    ids = ok(server, "/tokenize", {"prompt": long})["tokens"]
    for fields, kept in (({"truncate_prompt_tokens": 100}, 100), ({"truncate_prompt_tokens": -1}, 2040), ({"truncation": "auto"}, 2040)):
        choice = complete(server, prompt=long, return_token_ids=True, **fields)["choices"][0]
        assert choice["prompt_token_ids"] == ids[-kept:]
    short = complete(server, prompt_logprobs=0, truncate_prompt_tokens=2, return_token_ids=True)["choices"][0]
    assert len(short["prompt_logprobs"]) == 2


def test_chats_drop_their_oldest_turns(server):
    talk = [{"role": "system", "content": "Be brief."}]
    for i in range(30):
        talk += [{"role": "user", "content": f"Number {i}. " + "word " * 150}, {"role": "assistant", "content": f"Answer {i}."}]
    talk.append({"role": "user", "content": "What was the last number?"})
    status, error = server.post("/v1/chat/completions", CHAT | {"messages": talk})
    assert status == 400 and "2048" in error["error"]["message"]
    answer = chat(server, messages=talk, truncation="auto", return_token_ids=True)
    prompt = text_of(server, answer["prompt_token_ids"])
    kept = [i for i in range(30) if f"Number {i}. " in prompt]
    assert "Be brief." in prompt and "What was the last number?" in prompt
    assert kept == list(range(kept[0], 30)) and 0 < kept[0] < 30
    assert len(answer["prompt_token_ids"]) <= 2040


def test_numbers_out_of_every_range(server):
    values = (1e308, -1e308, 2**63 - 1, -(2**63), 10**30, 0.5, -1)
    fields = ("temperature", "top_p", "top_k", "min_p", "seed", "n", "max_tokens", "min_tokens", "frequency_penalty", "presence_penalty",
              "repetition_penalty", "timeout", "priority", "prompt_logprobs", "truncate_prompt_tokens")
    for path, body in (("/v1/completions", TEXT | {"max_tokens": 2}), ("/v1/chat/completions", CHAT | {"max_tokens": 2}),
                       ("/v1/messages", CHAT | {"max_tokens": 2}), ("/v1/responses", {"model": MODEL, "input": "Hi", "max_output_tokens": 2})):
        for field in fields:
            for value in values:
                status, answer = server.post(path, body | {field: value})
                assert status in (200, 400), (path, field, value, answer)
                if status == 400 and path != "/v1/messages":
                    assert answer["error"]["param"] == field, (path, field, value, answer)
