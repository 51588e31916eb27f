"""What constraints cost: 16 answers at once held to a JSON Schema against 16 free ones, tokens/s and their ratio.

usage: constrained.py BINARY MODEL.gguf [--rounds 7] [--tokens 128] [--answers 16] [-- SERVE FLAGS...]
Both kinds take turns on one server, whose prompt is in its cache; the time of one token is taken off, so that decoding is
left. The schema's arrays are too long to end, and it has strings, numbers, choices and objects.
"""
import argparse
import json
import os
import statistics
import sys
import time
import urllib.request

from common import served

ITEM = {"type": "object", "required": ["name", "age", "kind", "tags", "at"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 40}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
    "kind": {"enum": ["cat", "dog", "fish", "bird"]}, "tags": {"type": "array", "items": {"type": "string", "maxLength": 16}, "maxItems": 4},
    "at": {"type": "string", "pattern": "^[a-z]{2,8}-[0-9]{1,4}$"}}}
CONSTRAINT = {"structured_outputs": {"json": {"type": "array", "items": ITEM, "minItems": 10000}}}


def ask(server, answers, tokens, fields):
    body = {"messages": [{"role": "user", "content": "Write a long JSON list of pets."}], "n": answers, "max_tokens": tokens,
            "seed": 1, "temperature": 0.8, "ignore_eos": True} | fields
    url = f"http://127.0.0.1:{server.port}/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    begin = time.perf_counter()
    with urllib.request.urlopen(request, timeout=600) as answer:
        used = json.load(answer)["usage"]["completion_tokens"]
    return time.perf_counter() - begin, used


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rates(server, answers, tokens, fields):
    """Tokens by the second of wall time, and by the second of all threads' CPU time."""
    first, one = ask(server, answers, 1, fields)
    cpu = cpu_seconds(server.process.pid)
    whole, all_of_them = ask(server, answers, tokens, fields)
    return (all_of_them - one) / (whole - first), all_of_them / (cpu_seconds(server.process.pid) - cpu)


def main():
    mine, flags = sys.argv[1:], []
    if "--" in mine:
        mine, flags = mine[:mine.index("--")], mine[mine.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--answers", type=int, default=16)
    options = parser.parse_args(mine)
    with served(options.binary, options.model, "--max-context", "2048", *flags) as server:
        kinds = {"free": {}, "constrained": CONSTRAINT}
        wall, cpu = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
        for turn in range(options.rounds + 1):
            for kind, fields in list(kinds.items())[::1 if turn % 2 else -1]:
                by_wall, by_cpu = rates(server, options.answers, options.tokens, fields)
                if turn:  # the first fills caches
                    wall[kind].append(by_wall)
                    cpu[kind].append(by_cpu)
        told = {"answers": options.answers, "tokens": options.tokens}
        for name, measured in {"tok_s": wall, "tok_cpu_s": cpu}.items():
            told |= {f"{kind}_{name}": round(statistics.median(measured[kind])) for kind in kinds}
            ratios = [c / f for c, f in zip(measured["constrained"], measured["free"])]
            told |= {f"ratio_{name}": round(statistics.median(ratios), 3), f"ratios_{name}": [round(r, 3) for r in ratios]}
        print(json.dumps(told))


if __name__ == "__main__":
    main()
