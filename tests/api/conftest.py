"""A server with the default model on a free port, and clients of it.

UNISONO_BINARY: the program; UNISONO_MODELS: the folder with the models. Without them everything here is skipped.
"""
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import openai
import pytest

MODEL = "SmolLM2-135M-Instruct"
ROOT = Path(__file__).resolve().parents[2]


class Server:
    def __init__(self, *flags, model=None, context=2048):
        binary = Path(os.environ.get("UNISONO_BINARY", ROOT / "build/release/unisono"))
        models = Path(os.environ.get("UNISONO_MODELS", Path.home() / ".cache/unisono/models"))
        model = self.model = model or models / f"{MODEL}.Q4_1.gguf"
        for path in (binary, model):
            if not path.is_file():
                pytest.skip(f"{path} is not there")
        command = [str(binary), "serve", str(model), "--port", "0", "--max-context", str(context), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.output = []
        for line in self.process.stdout:
            self.output.append(line)
            if found := re.search(r"Listening on (http://\S+)", line):
                self.url = found[1]
                break
        else:
            raise RuntimeError("the server ended: " + "".join(self.output))
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def text(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read().decode()

    def get(self, path):
        return json.loads(self.text(path))

    def post(self, path, body, content_type="application/json"):
        """(status, body as JSON); body: a value, or bytes sent as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def wait_idle(self, seconds=10):
        """The engine's state when nothing runs or waits any more."""
        end = time.monotonic() + seconds
        while True:
            state = self.get("/health")
            if state["running"] + state["waiting"] == 0 or time.monotonic() > end:
                return state
            time.sleep(0.01)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture(scope="session")
def server():
    running = Server()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="session")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=600)


@pytest.fixture(scope="session")
def start_server():
    """Servers of a test's own, with other flags."""
    return Server
