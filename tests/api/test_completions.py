"""Completions with the openai client."""
import pytest

from conftest import MODEL

PROMPT = "The capital of France is"


def complete(client, prompt=PROMPT, **fields):
    return client.completions.create(model=MODEL, prompt=prompt, **fields)


def test_answers(client):
    answer = complete(client, temperature=0)
    assert answer.object == "text_completion" and answer.id.startswith("cmpl-")
    assert "Paris" in answer.choices[0].text
    assert answer.usage.completion_tokens == 16 and answer.choices[0].finish_reason == "length"


def test_token_ids_and_lists_of_prompts(client, server):
    tokens = server.post("/tokenize", {"prompt": PROMPT})[1]["tokens"]
    alone = complete(client, temperature=0).choices[0].text
    assert complete(client, tokens, temperature=0).choices[0].text == alone
    both = complete(client, [PROMPT, "Once upon a time"], temperature=0, n=2)
    assert [c.index for c in both.choices] == [0, 1, 2, 3]
    assert [c.text for c in both.choices[:2]] == [alone, alone]
    assert both.choices[2].text == complete(client, "Once upon a time", temperature=0).choices[0].text
    assert complete(client, [tokens, tokens], temperature=0).choices[1].text == alone


def test_streams_what_it_answers_whole(client):
    for fields in ({"temperature": 0, "echo": True, "logprobs": 2}, {"seed": 2, "n": 2, "logprobs": 0}):
        whole = complete(client, **fields)
        texts, logprobs = {}, {}
        for chunk in complete(client, stream=True, **fields):
            for choice in chunk.choices:
                texts[choice.index] = texts.get(choice.index, "") + choice.text
                parts = logprobs.setdefault(choice.index, {})
                for name, values in choice.logprobs.to_dict().items():
                    parts.setdefault(name, []).extend(values)
        for choice in whole.choices:
            assert texts[choice.index] == choice.text
            assert logprobs[choice.index] == choice.logprobs.to_dict()


def test_echo_and_logprobs(client):
    answer = complete(client, temperature=0, echo=True, logprobs=3, max_tokens=4)
    choice = answer.choices[0]
    logprobs = choice.logprobs
    assert choice.text.startswith(PROMPT)
    n = answer.usage.total_tokens
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.top_logprobs) == len(logprobs.text_offset) == n
    assert logprobs.token_logprobs[0] is None and logprobs.top_logprobs[0] is None
    for token, offset in zip(logprobs.tokens, logprobs.text_offset):
        assert choice.text[offset : offset + len(token)] == token
    for logprob, top in zip(logprobs.token_logprobs[1:], logprobs.top_logprobs[1:]):
        assert logprob <= 0 and logprob in top.values() and 3 <= len(top) <= 4


def test_a_prompts_logprobs_are_those_of_generating_it(client):
    """What the model said of its own greedy tokens while generating, it says again when they are the prompt."""
    first = complete(client, temperature=0, logprobs=0, max_tokens=8)
    again = complete(client, PROMPT + first.choices[0].text, echo=True, logprobs=0, max_tokens=0)
    assert again.usage.completion_tokens == 0 and again.choices[0].text == PROMPT + first.choices[0].text
    n = len(first.choices[0].logprobs.tokens)
    assert again.choices[0].logprobs.tokens[-n:] == first.choices[0].logprobs.tokens
    assert again.choices[0].logprobs.token_logprobs[-n:] == first.choices[0].logprobs.token_logprobs


def test_text_outside_ascii(client):
    prompt = "東京は日本の首都です。\U0001F600 é "
    choice = complete(client, prompt, seed=1, echo=True, logprobs=1, max_tokens=12).choices[0]
    assert choice.text.startswith(prompt)
    for token, offset in zip(choice.logprobs.tokens, choice.logprobs.text_offset):
        if not token.startswith("bytes:"):
            assert choice.text[offset : offset + len(token)] == token


@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.parametrize("echo", [True, False])
def test_offsets_where_control_tokens_come(client, server, hidden, echo):
    """An offset is the length of the text before, and a control token has a place in it only where it is shown."""
    control = str(server.post("/tokenize", {"prompt": "<|im_start|>"})[1]["tokens"][0])
    more = {"ignore_eos": True, "skip_special_tokens": hidden}
    texts = 0
    for seed in range(8):
        choice = complete(client, "Say <|im_start|> and", seed=seed, echo=echo, logprobs=0, max_tokens=24,
                          logit_bias={control: 13}, extra_body=more).choices[0]
        logprobs, at = choice.logprobs, 0
        n_prompt = len(logprobs.tokens) - 24
        for i, (token, offset) in enumerate(zip(logprobs.tokens, logprobs.text_offset)):
            if token.startswith("bytes:"):
                break
            assert offset == at, (seed, i)
            if not (hidden and token == "<|im_start|>" and i >= n_prompt):
                assert choice.text[at : at + len(token)] == token
                at += len(token)
        texts += "<|im_start|>" in logprobs.tokens[n_prompt:] and len(set(logprobs.tokens[n_prompt:])) > 3
    assert texts > 0


def test_penalties_bias_and_ends(client, server):
    paris = server.post("/tokenize", {"prompt": " Paris"})[1]["tokens"][0]
    assert "Paris" not in complete(client, temperature=0, logit_bias={str(paris): -100}).choices[0].text
    always = complete(client, temperature=0, logit_bias={str(paris): 100}, max_tokens=3)
    assert always.choices[0].text == " Paris Paris Paris"
    tired = complete(client, temperature=0, frequency_penalty=2, presence_penalty=2, max_tokens=16)
    assert tired.choices[0].text != complete(client, temperature=0).choices[0].text
    ended = complete(client, temperature=0, extra_body={"stop_token_ids": [paris]})
    assert ended.choices[0].finish_reason == "stop" and ended.choices[0].text == ""
    assert ended.choices[0].model_extra["stop_reason"] == paris


def test_fills_the_context(client):
    answer = complete(client, "word " * 2030, max_tokens=5000, seed=1, extra_body={"ignore_eos": True})
    assert answer.usage.total_tokens == 2048 and answer.choices[0].finish_reason == "length"
    assert answer.choices[0].model_extra["stop_reason"] == "context"


@pytest.mark.parametrize("text", ["", "Hello, world!", "  two  spaces\n\n", "日本語 \U0001F469‍\U0001F680 é", "<|im_start|>user"])
def test_tokenize_and_back(server, text):
    _, tokens = server.post("/tokenize", {"prompt": text, "add_special_tokens": False, "return_token_strs": True})
    assert tokens["count"] == len(tokens["tokens"]) == len(tokens["token_strs"])
    assert tokens["max_model_len"] == 2048
    assert server.post("/detokenize", {"tokens": tokens["tokens"]})[1] == {"prompt": text}
