"""A client's mistake is always a 4xx that names it; the server goes on."""
import openai
import pytest

from conftest import MODEL

CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
TEXT = {"model": MODEL, "prompt": "Hi", "max_tokens": 1}


@pytest.mark.parametrize(
    "path, body, status, param",
    [
        ("chat/completions", CHAT | {"temperature": "hot"}, 400, "temperature"),
        ("chat/completions", CHAT | {"tools": [{"type": "function"}]}, 400, "tools[0].function"),
        ("chat/completions", CHAT | {"unheard_of": 1}, 400, "unheard_of"),
        ("chat/completions", CHAT | {"model": "gpt-5"}, 404, "model"),
        ("chat/completions", CHAT | {"messages": [{"role": "user", "content": "long " * 3000}]}, 400, "messages"),
        ("chat/completions", CHAT | {"min_tokens": 5}, 400, "min_tokens"),
        ("completions", TEXT | {"prompt": "long " * 3000}, 400, "prompt"),
        ("completions", TEXT | {"prompt": [10**9]}, 400, "prompt"),
        ("completions", TEXT | {"prompt": [[]]}, 400, "prompt"),
        ("completions", TEXT | {"suffix": "end"}, 400, "suffix"),
        ("completions", {"model": MODEL}, 400, "prompt"),
        ("nothing/here", TEXT, 404, None),
    ],
)
def test_refusals(server, path, body, status, param):
    got, answer = server.post("/v1/" + path, body)
    assert (got, answer["error"]["param"]) == (status, param)
    assert answer["error"]["type"] == "invalid_request_error"
    assert answer["error"]["message"].strip()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100000, b'{"prompt": "a", "prompt": "b"}', b'{"prompt": "\\ud800"}'])
def test_bodies_that_are_no_json_objects(server, body):
    assert server.post("/v1/completions", body)[0] == 400


def test_a_prompt_that_is_too_long_tells_both_numbers(server):
    _, answer = server.post("/v1/completions", TEXT | {"prompt": "long " * 3000})
    assert "3001" in answer["error"]["message"] or "3000" in answer["error"]["message"]
    assert "2048" in answer["error"]["message"]
    assert answer["error"]["code"] == "context_length_exceeded"


def test_the_client_raises_what_it_should(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=CHAT["messages"], temperature=3)
    assert caught.value.param == "temperature"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="other", messages=CHAT["messages"])
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_other_types_of_content(server):
    assert server.post("/v1/completions", TEXT, content_type="text/plain")[0] == 415


def test_models(client):
    assert [m.id for m in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).owned_by == "unisono"


def test_keys(start_server, tmp_path):
    (tmp_path / "keys").write_text("first\n# a comment\nsecond\n")
    guarded = start_server("--api-key-file", str(tmp_path / "keys"))
    try:
        for key in ("first", "second"):
            assert openai.OpenAI(base_url=guarded.url + "/v1", api_key=key).models.list().data
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=guarded.url + "/v1", api_key="third", max_retries=0).models.list()
        assert guarded.get("/health")["status"] == "ok"
    finally:
        assert guarded.stop() == 0


def test_a_full_queue_is_429(start_server):
    small = start_server("--max-running", "1", "--max-waiting", "1")
    try:
        client = openai.OpenAI(base_url=small.url + "/v1", api_key="none", max_retries=0)
        fields = dict(model=MODEL, prompt="a", max_tokens=1500, stream=True, extra_body={"ignore_eos": True})
        with client.completions.create(**fields) as running:
            next(iter(running))
            with client.completions.create(**fields):
                with pytest.raises(openai.RateLimitError) as caught:
                    client.completions.create(**fields)
                assert caught.value.response.headers["retry-after"]
        assert small.wait_idle()["running"] == 0
    finally:
        assert small.stop() == 0
