#!/usr/bin/env python3
"""usage: server_cost.py gap MODEL.gguf [--budgets 128 256 512] [--binary PATH]
       server_cost.py cpu MODEL.gguf [--streams 64] [--binary PATH]

gap: the worst time between two tokens of a stream, alone and while a 4,000-token prompt arrives, for token budgets of a step.
cpu: where the server's processor time goes with many streams: by thread, and how much of the engine's steps is neither the
forward pass nor choosing tokens. Standard library only; the clients' own time isn't counted.
"""
import argparse
import http.client
import json
import os
import random
import re
import threading
import time
from pathlib import Path

from common import ROOT, served


def get(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("GET", path)
    return connection.getresponse().read().decode()


def metric(server, name):
    return float(re.search(rf"^{name}{{[^}}]*}} (\S+)$", get(server, "/metrics"), re.M)[1])


def stream(server, n_prompt, n_tokens, seed):
    """Yields the time of each part of an answer."""
    rng = random.Random(seed)
    body = {"prompt": [rng.randrange(1000, 9000) for _ in range(n_prompt)], "max_tokens": n_tokens, "temperature": 0,
            "ignore_eos": True, "stream": True}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    for line in connection.getresponse():
        if line.startswith(b"data: {"):
            yield time.perf_counter()


def cpu_by_thread(server):
    """Seconds of processor time by thread: {(id, name): seconds}."""
    tick, out = os.sysconf("SC_CLK_TCK"), {}
    for task in Path(f"/proc/{server.process.pid}/task").iterdir():
        name, rest = re.search(r"\((.*)\) (.*)", (task / "stat").read_text()).groups()
        fields = rest.split()
        out[int(task.name), name] = (int(fields[11]) + int(fields[12])) / tick
    return out


def gaps(times, begin=0.0, end=float("inf")):
    return [b - a for a, b in zip(times, times[1:]) if b > begin and a < end]


def measure_gap(options):
    print("| token budget | worst gap alone, ms | median alone | worst while 4,000 tokens arrive | their first token after, s |")
    print("|---|---|---|---|---|")
    for budget in options.budgets:
        with served(options.binary, options.model, "--token-budget", str(budget), "--max-context", "8192") as server:
            list(stream(server, 4000, 2, 0))  # warm
            times, ready = [], threading.Event()

            def read():
                for at in stream(server, 16, 900, 1):
                    times.append(at)
                    if len(times) == 150:
                        ready.set()

            reader = threading.Thread(target=read)
            reader.start()
            ready.wait()
            begin = time.perf_counter()
            first = next(stream(server, 4000, 2, 2 + budget))
            reader.join()
            alone, crowded = sorted(gaps(times, end=begin)), gaps(times, begin, first)
            print(f"| {budget} | {alone[-1] * 1e3:.1f} | {alone[len(alone) // 2] * 1e3:.1f} | {max(crowded) * 1e3:.1f} "
                  f"| {first - begin:.2f} |", flush=True)


def measure_cpu(options):
    with served(options.binary, options.model, "--max-running", str(options.streams), "--max-context", "2048",
                "--kv-memory", "2G") as server:
        started = threading.Barrier(options.streams + 1)

        def read(seed):
            for n, _ in enumerate(stream(server, 32, 500, seed)):
                if n == 20:
                    started.wait()

        readers = [threading.Thread(target=read, args=(seed,)) for seed in range(options.streams)]
        for reader in readers:
            reader.start()
        started.wait()
        begin, before = time.perf_counter(), cpu_by_thread(server)
        steps, model, tokens = (metric(server, f"unisono:{n}") for n in ("step_seconds_sum", "model_seconds_total", "step_tokens_total"))
        time.sleep(options.seconds)
        steps = metric(server, "unisono:step_seconds_sum") - steps
        model = metric(server, "unisono:model_seconds_total") - model
        tokens = metric(server, "unisono:step_tokens_total") - tokens
        wall, after = time.perf_counter() - begin, cpu_by_thread(server)
        spent = {key: seconds - before.get(key, 0) for key, seconds in after.items()}
        total = sum(spent.values())
        print(f"{options.streams} streams, {wall:.1f} s, {tokens / wall:.0f} tokens/s, {total:.1f} s of processor time")
        by_name = {}
        for (_, name), seconds in spent.items():
            by_name[name] = by_name.get(name, 0) + seconds
        for name, seconds in sorted(by_name.items(), key=lambda item: -item[1]):
            print(f"  {name:10} {seconds:7.2f} s  {seconds / total:6.2%}")
        outside = by_name.get("http", 0) + by_name.get("handler", 0)
        rest = steps - model
        print(f"outside the engine (http, handler): {outside / total:.2%}")
        print(f"in the engine's steps, but not in the model: {rest:.2f} s of {steps:.2f} s, {rest / total:.2%} of all")
        print(f"together: {(outside + rest) / total:.2%}")
        for reader in readers:
            reader.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["gap", "cpu"])
    parser.add_argument("model")
    parser.add_argument("--binary", default=str(ROOT / "build/release/unisono"))
    parser.add_argument("--budgets", type=int, nargs="+", default=[64, 128, 256, 512])
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=8)
    options = parser.parse_args()
    {"gap": measure_gap, "cpu": measure_cpu}[options.what](options)


if __name__ == "__main__":
    main()
