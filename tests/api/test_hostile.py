"""Bytes that no honest client sends, against the real server: the right status, and a second client isn't held up."""
import json
import socket
import threading
import time
from urllib.parse import urlparse

import pytest

from conftest import MODEL

GOOD = json.dumps({"model": MODEL, "prompt": "Hi", "max_tokens": 1}).encode()


def connect(server):
    to = urlparse(server.url)
    return socket.create_connection((to.hostname, to.port), timeout=30)


def head(length, extra=""):
    return (f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{extra}"
            f"Content-Length: {length}\r\n\r\n").encode()


def status_of(server, sent, half_close=False):
    """The status line's number, or None when the server only hangs up."""
    with connect(server) as connection:
        connection.sendall(sent)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)
        return int(answer[9:12]) if answer else None


@pytest.mark.parametrize(
    "body, status",
    [
        (b'{"prompt": "a", "max_tokens": 1' + b" " * 10, 400),
        (b'{"prompt": "a\x00b", "max_tokens": 1}', 400),
        (b'{"prompt": "a\\u0000b", "max_tokens": 1}', 200),
        (b'{"prompt": "\xc3\x28", "max_tokens": 1}', 400),
        (b'{"prompt": "a", "prompt": "b", "max_tokens": 1}', 400),
        (b'{"logit_bias": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}", 400),
        (b'{"prompt": "a", "max_tokens": 1e400}', 400),
        (b'{"prompt": "a", "max_tokens": -9223372036854775809}', 400),
        (b'{"prompt": "a", "max_tokens": 1, "temperature": NaN}', 400),
        (b'{"prompt": [49152], "max_tokens": 1}', 400),
        (b'{"prompt": [], "max_tokens": 1}', 400),
        (b'{"prompt": "a", "max_tokens": 1, "timeout": -1}', 400),
    ],
)
def test_bodies(server, body, status):
    assert status_of(server, head(len(body)) + body) == status


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(server):
    assert status_of(server, head(1 << 40)) == 413


def test_a_header_that_is_too_large(server):
    assert status_of(server, head(2, "X-Long: " + "x" * 20000 + "\r\n")) == 431


def test_two_lengths_are_no_request(server):
    assert status_of(server, head(len(GOOD), "Content-Length: 3\r\n") + GOOD) == 400


def test_a_body_cut_short_ends_the_connection_and_nothing_else(server):
    assert status_of(server, head(len(GOOD)) + GOOD[:10], half_close=True) is None
    assert server.post("/v1/completions", GOOD)[0] == 200


def test_a_second_client_is_unharmed(server):
    """200 slow or silent connections, half a body each, and large refused bodies: a short request takes what it took before."""
    def seconds(n=5):
        times = []
        for _ in range(n):
            begin = time.monotonic()
            assert server.post("/v1/completions", GOOD)[0] == 200
            times.append(time.monotonic() - begin)
        return sorted(times)[n // 2]

    quiet = seconds()
    held = [connect(server) for _ in range(200)]
    stop = threading.Event()

    def drip():
        while not stop.wait(0.05):
            for connection in held[:100]:
                connection.sendall(b"x")

    try:
        for i, connection in enumerate(held):
            connection.sendall(head(1 << 20) if i < 100 else b"POST /v1/comp" if i < 150 else b"")
        dripping = threading.Thread(target=drip)
        dripping.start()
        crowded = seconds()
        stop.set()
        dripping.join()
    finally:
        for connection in held:
            connection.close()
    assert crowded < 5 * quiet + 0.25
    assert server.wait_idle()["running"] == 0
