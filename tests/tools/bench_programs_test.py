#!/usr/bin/env python3
"""What the programs of bench/ say before they measure: slips end in one sentence, and figures are told of the model that
they were measured with. Nothing is measured here.
"""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/golden/tiny/llama.gguf"
FIGURES = [f"{name}_p{p}" for name in ("ttft", "itl", "e2e") for p in (50, 99)]


def bench(program, *args):
    return subprocess.run([ROOT / "bench" / program, *args], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "UNISONO": "/bin/true"})


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def assert_refused(self, sentence, program, *args):
        ended = bench(program, *args)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""), ended.stderr)
        self.assertTrue(ended.stderr.startswith(f"error: {sentence}") and ended.stderr.count("\n") == 1, ended.stderr)

    def test_what_is_not_there_is_named(self):
        for program in ("compare", "serve", "load"):
            self.assert_refused("/gone.gguf is not a file", program, "/gone.gguf")
            self.assert_refused("/gone is not there: make build", program, str(MODEL), "--program", "/gone")
        self.assert_refused("no case 'x'; there are prefill-512", "compare", str(MODEL), "--cases", "x")
        self.assert_refused("no shape 'x'; there are qa, chat, long", "serve", str(MODEL), "--shapes", "x")
        self.assert_refused("no server 'OpenVINO'; there are unisono, llama.cpp, vLLM", "serve", str(MODEL), "--engines", "OpenVINO")

    def test_figures_are_those_of_the_model_that_is_asked_for(self):
        for number, model in enumerate(("llama.gguf", "other.gguf")):
            row = {"model": model, "engine": "llama.cpp", "shape": "qa", "kind": "clients", "amount": 1, "round": 0,
                   "requests": 5, "answered": 5, "requests_s": 11 + number, "tok_s": 1, **dict.fromkeys(FIGURES, 1)}
            with (self.folder / "measurements.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
        told = bench("serve", str(MODEL), "--engines", "llama.cpp", "--installed", "/gone", "--out", str(self.folder))
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("11.0", told.stdout)
        self.assertNotIn("12.0", told.stdout)


if __name__ == "__main__":
    unittest.main()
