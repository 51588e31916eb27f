"""Mixed requests, sent alone and then all at once in random order to servers of other settings, while strangers come and leave
in the middle: equal texts and log-probabilities, and all blocks free afterwards. UNISONO_SOAK=all (`make soak`): 64 requests
and every setting; otherwise a few."""
import itertools
import json
import os
import random
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlparse

from conftest import MODEL

ALL = os.environ.get("UNISONO_SOAK") == "all"
COUNT = 64 if ALL else 12
WORDS = "river stone winter engine garden silver paper cloud market signal".split()
LONGEST, CONTEXT, MEMORY = (1900, 3072, "80M") if ALL else (450, 704, "17M")  # one long sequence: requests give way
# Prefix cache, token budget, threads.
SETTINGS = list(itertools.product(["on", "off"], [512, 64, 16], [2, 1])) if ALL else [("on", 64, 2)]


def requests():
    """Short ones and ones of up to 2,000 tokens, many with one beginning, greedy and sampled, with choices and stops."""
    shared = " ".join(random.Random(99).choice(WORDS) for _ in range(300 if ALL else 100))
    for i in range(COUNT):
        rng = random.Random(i)
        own = " ".join(rng.choice(WORDS) for _ in range(LONGEST if i % 16 == 3 else [5, 40, 100, 150][i % 4]))
        fields = {"max_tokens": 8 + i % 5 * 20, "seed": i, "logprobs": 2, "ignore_eos": i % 2 == 0}
        fields |= [{"temperature": 0}, {"temperature": 0.8, "top_p": 0.9}, {"n": 3}, {"top_k": 20}][i // 4 % 4]
        fields |= [{}, {"stop": [" the", "."]}, {"priority": -1}, {"repetition_penalty": 1.2, "timeout": 3600}][i // 3 % 4]
        yield {"model": MODEL, "prompt": (shared + " " if i % 8 in (1, 2) else "") + f"{i}. " + own} | fields


def told(answer):
    status, body = answer
    assert status == 200, body
    return [(c["text"], c["logprobs"], c["finish_reason"], c["stop_reason"]) for c in body["choices"]]


def leave(server, seed):
    """A stranger that asks for a long stream and hangs up."""
    rng = random.Random(seed)
    body = json.dumps({"prompt": " ".join(rng.choice(WORDS) for _ in range(200)), "max_tokens": 500, "stream": True}).encode()
    to = urlparse(server.url)
    with socket.create_connection((to.hostname, to.port), timeout=60) as connection:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        whole = rng.random() < 0.8
        connection.sendall(head.encode() + body[: None if whole else 100])
        if whole and rng.random() < 0.7:
            connection.recv(1)


def resident(server):
    """MiB."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def all_at_once(server, bodies, alone, seed):
    order = random.Random(seed).sample(range(COUNT), COUNT)
    with ThreadPoolExecutor(COUNT + 8) as pool:
        strangers = [pool.submit(leave, server, seed * 100 + i) for i in range(COUNT // 2)]
        answers = {i: pool.submit(server.post, "/v1/completions", bodies[i]) for i in order}
        for i, answer in answers.items():
            assert told(answer.result()) == alone[i], f"request {i}"
        for stranger in strangers:
            stranger.result()
    state = server.wait_idle(30)
    assert (state["running"], state["waiting"]) == (0, 0)
    assert state["blocks_free"] == state["blocks_total"]


def test_soak(start_server):
    bodies = list(requests())
    first = start_server("--prefix-cache", "off", "--kv-memory", "512M", context=CONTEXT)
    alone = [told(first.post("/v1/completions", body)) for body in bodies]
    assert first.stop() == 0
    preempted = 0
    for number, (cache, budget, threads) in enumerate(SETTINGS):
        server = start_server("--prefix-cache", cache, "--token-budget", str(budget), "--threads", str(threads),
                              "--kv-memory", MEMORY, context=CONTEXT)
        try:
            all_at_once(server, bodies, alone, 2 * number)
            grown = 0
            if number == 0:
                before = resident(server)
                all_at_once(server, bodies, alone, 2 * number + 1)
                grown = resident(server) - before
            metrics = server.text("/metrics")
            some = next(int(float(line.split()[-1])) for line in metrics.splitlines() if line.startswith("vllm:num_preemptions_total{"))
            preempted += some
            print(f"prefix cache {cache}, budget {budget}, {threads} threads: equal; {some} preemptions", flush=True)
            assert grown < 32  # MiB from the first round to the second, keys and values that became resident included
        finally:
            assert server.stop() == 0
    assert preempted > 0 or not ALL
