"""Clients that wrap OpenAI's or Anthropic's API, as people have them in their programs. Installed from
requirements-clients.txt; what isn't installed is skipped."""
import pytest

from conftest import MODEL

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def answer(client):
    """What the openai client is told."""
    return client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=16).choices[0].message.content


def wanted(package):
    return pytest.importorskip(package, reason=f"{package} isn't installed (tests/api/requirements-clients.txt)")


def test_litellm(server, answer):
    litellm = wanted("litellm")
    fields = dict(model=f"openai/{MODEL}", api_base=server.url + "/v1", api_key="none", messages=QUESTION, temperature=0, max_tokens=16)
    whole = litellm.completion(**fields)
    assert whole.choices[0].message.content == answer and whole.usage.prompt_tokens > 0
    chunks = list(litellm.completion(stream=True, stream_options={"include_usage": True}, **fields))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == answer
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    text = litellm.text_completion(model=f"text-completion-openai/{MODEL}", api_base=server.url + "/v1", api_key="none",
                                   prompt="The capital of France is", temperature=0, max_tokens=4)
    assert "Paris" in text.choices[0].text
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(**fields | {"temperature": 5}, num_retries=0)


def test_litellm_speaks_anthropic(server, answer):
    litellm = wanted("litellm")
    whole = litellm.completion(model=f"anthropic/{MODEL}", api_base=server.url, api_key="none", messages=QUESTION, temperature=0, max_tokens=16)
    assert whole.choices[0].message.content == answer
    chunks = litellm.completion(model=f"anthropic/{MODEL}", api_base=server.url, api_key="none", messages=QUESTION, temperature=0,
                                max_tokens=16, stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == answer


def test_litellm_speaks_responses(server, answer):
    litellm = wanted("litellm")
    response = litellm.responses(model=f"openai/{MODEL}", api_base=server.url + "/v1", api_key="none",
                                 input=QUESTION[0]["content"], temperature=0, max_output_tokens=16)
    assert response.output[0].content[0].text == answer


def test_langchain(server, answer):
    langchain_openai = wanted("langchain_openai")
    chat = langchain_openai.ChatOpenAI(model=MODEL, base_url=server.url + "/v1", api_key="none", temperature=0, max_tokens=16, max_retries=0)
    message = chat.invoke(QUESTION)
    assert message.content == answer and message.usage_metadata["output_tokens"] > 0
    parts = list(chat.stream(QUESTION))
    assert "".join(part.content for part in parts) == answer
    assert [m.content for m in chat.batch([QUESTION] * 3)] == [answer] * 3
    completions = langchain_openai.OpenAI(model=MODEL, base_url=server.url + "/v1", api_key="none", temperature=0, max_tokens=4, max_retries=0)
    assert "Paris" in completions.invoke("The capital of France is")


def test_langchain_through_responses(server, answer):
    langchain_openai = wanted("langchain_openai")
    chat = langchain_openai.ChatOpenAI(model=MODEL, base_url=server.url + "/v1", api_key="none", temperature=0, max_tokens=16,
                                       max_retries=0, use_responses_api=True)
    assert chat.invoke(QUESTION).text == answer
    assert "".join(part.text for part in chat.stream(QUESTION)) == answer
