"""Requests sent alone, then all at once: equal texts and log-probabilities."""
import random
from concurrent.futures import ThreadPoolExecutor

from conftest import MODEL

WORDS = "river stone winter engine garden silver paper cloud market signal".split()


def requests():
    """16 requests, no two alike: short and long, greedy and sampled, with stops, choices, penalties."""
    made = []
    for i in range(16):
        rng = random.Random(i)
        prompt = f"{i}. " + " ".join(rng.choice(WORDS) for _ in range([4, 30, 120, 400][i % 4]))
        fields = {"max_tokens": 8 + 3 * i, "seed": i, "logprobs": 3}
        fields |= [{"temperature": 0}, {"temperature": 0.7, "top_p": 0.9}, {"top_k": 20}, {"min_p": 0.05, "n": 2}][i // 4]
        fields |= [{}, {"stop": [" the", "."]}, {"frequency_penalty": 0.5}, {"repetition_penalty": 1.2}][i % 4]
        made.append({"model": MODEL, "prompt": prompt} | fields)
    return made


def told(answer):
    status, body = answer
    assert status == 200, body
    del body["usage"]["prompt_tokens_details"]  # what was cached is the one thing that may depend on other requests
    return [(c["text"], c["logprobs"], c["finish_reason"], c["stop_reason"]) for c in body["choices"]], body["usage"]


def test_alone_and_together(server):
    ask = lambda body: told(server.post("/v1/completions", body))
    bodies = requests()
    alone = [ask(body) for body in bodies]
    for order in range(2):
        shuffled = random.Random(order).sample(range(16), 16)
        with ThreadPoolExecutor(16) as pool:
            together = dict(zip(shuffled, pool.map(lambda i: ask(bodies[i]), shuffled)))
        for i, answer in enumerate(alone):
            assert together[i] == answer, f"request {i} in order {order}"


def test_other_threads_chunks_and_memory(server, start_server):
    """The same from a server that cuts prompts into small pieces, has other threads, and preempts for lack of memory."""
    bodies = requests()[::2]
    alone = [told(server.post("/v1/completions", body)) for body in bodies]
    other = start_server("--threads", "1", "--token-budget", "16", "--max-running", "8", "--kv-memory", "64M")
    try:
        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(lambda body: told(other.post("/v1/completions", body)), bodies)) == alone
    finally:
        assert other.stop() == 0
