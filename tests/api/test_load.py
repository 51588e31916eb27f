"""A load generator that people measure servers with, guidellm, against a real model: a tiny run, that every request is
answered in full and counted. UNISONO_GUIDELLM: the program, from an environment with requirements-load.txt."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import MODEL


@pytest.fixture(scope="module")
def guidellm():
    program = os.environ.get("UNISONO_GUIDELLM") or shutil.which("guidellm")
    if not program:
        pytest.skip("guidellm isn't installed (tests/api/requirements-load.txt, UNISONO_GUIDELLM)")
    return program


@pytest.mark.parametrize("request_format", ["/v1/chat/completions", "/v1/completions"])
def test_guidellm(server, guidellm, tmp_path, request_format):
    prompts = [{"prompt": f"Tell me about the number {i}.", "output_tokens_count": 16} for i in range(8)]
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts)))
    subprocess.run(
        [guidellm, "run", "--disable-console",
         "--backend", f"kind=openai_http,target={server.url},model={MODEL},request_format={request_format}",
         "--profile", "kind=concurrent,streams=4", "--constraint", "kind=max_requests,count=8",
         "--data", f"kind=json_file,path={tmp_path}/prompts.jsonl", "--output", f"kind=json,path={tmp_path}/report.json"],
        check=True, timeout=300, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    metrics = json.loads((tmp_path / "report.json").read_text())["benchmarks"][0]["metrics"]
    assert metrics["request_totals"]["successful"] == 8 and metrics["request_totals"]["errored"] == 0
    tokens = metrics["output_token_count"]["successful"]
    assert tokens["min"] == tokens["max"] == 16  # ignore_eos is honoured, the stream's usage understood
    assert metrics["time_to_first_token_ms"]["successful"]["count"] == 8
