"""What the programs of bench/ share: where programs are, servers, measurements that survive an interruption, tables.

Never measures anything itself, and never touches a model.
"""
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = Path.home()


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def die(text):
    sys.exit(f"error: {text}")


def check_files(program, models):
    """Ends the program with a sentence when one of these isn't there."""
    for model in models:
        if not model.is_file():
            die(f"{model} is not a file")
    if not program.exists():
        die(f"{program} is not there: make build")


def add_common_arguments(parser, out):
    parser.add_argument("--program", type=Path, default=Path(os.environ.get("UNISONO", ROOT / "build/release/unisono")),
                        help="the unisono to measure (environment: UNISONO)")
    parser.add_argument("--installed", type=Path, default=Path(os.environ.get("PEERS_DIR") or HOME / ".cache/unisono-peers"),
                        help="where llamacpp/build/bin and the Python environments openvino and vllm are (environment: PEERS_DIR)")
    parser.add_argument("--engines", default="unisono,llama.cpp,OpenVINO,vLLM", help="which to measure; those that aren't there are skipped")
    parser.add_argument("--hf-dir", type=Path, help="the model as a Hugging Face folder in bfloat16, which vLLM wants")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=ROOT / "build" / out, help="results; what stands there already is not measured again")


class Peers:
    """The other engines, as far as they are installed."""

    def __init__(self, args):
        self.installed = args.installed
        self.llama = self.installed / "llamacpp/build/bin"

    def missing(self, engine, hf_dir):
        """Why an engine can't be measured; None: it can."""
        if engine == "unisono":
            return None
        if engine == "llama.cpp":
            return None if (self.llama / "llama-bench").exists() else f"{self.llama}/llama-bench is not there"
        if engine == "OpenVINO":
            return None if (self.installed / "openvino/bin/python").exists() else f"{self.installed}/openvino is not there"
        if engine == "vLLM":
            if not (self.installed / "vllm/bin/python").exists():
                return f"{self.installed}/vllm is not there"
            if hf_dir is None or not (hf_dir / "config.json").exists():
                return "no --hf-dir"
            return None
        return "unknown engine"

    def usable(self, engines, hf_dir):
        out = []
        for engine in engines:
            why = self.missing(engine, hf_dir)
            if why:
                say(f"without {engine}: {why}")
            else:
                out.append(engine)
        return out


class Server:
    """A server in a process group of its own, frozen while others are measured."""

    def __init__(self, engine, command, log, environment):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.engine = engine
        self.log = log
        command = [str(c).replace("PORT", str(self.port)) for c in command]
        self.process = subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT, start_new_session=True,
                                        env={**os.environ, **environment})

    def wait(self, seconds):
        """True when it answers; says why not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                say(f"without {self.engine}: it ended with exit code {self.process.returncode}; see {self.log}")
                return False
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                    if answer.status == 200:
                        return True
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.5)
        say(f"without {self.engine}: not ready after {seconds} s; see {self.log}")
        return False

    def send(self, number_of_signal):
        try:
            os.killpg(self.process.pid, number_of_signal)
        except ProcessLookupError:
            pass

    def freeze(self):
        self.send(signal.SIGSTOP)

    def thaw(self):
        self.send(signal.SIGCONT)

    def stop(self):
        self.thaw()
        self.send(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def served(program, model, *flags):
    """unisono's server of this model, ready; `with` stops it. Without one the program ends."""
    log = ROOT / "build/serve.log"
    log.parent.mkdir(exist_ok=True)
    server = Server("unisono", [program, "serve", model, "--port", "PORT", *flags], log, {})
    if not server.wait(600):
        server.stop()
        die("there is no server to measure")
    return server


class Store:
    """Measurements as lines of JSON, each written when it is made; the same key is not measured twice."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "measurements.jsonl"
        self.rows = []
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                try:
                    self.rows.append(json.loads(line))
                except json.JSONDecodeError:
                    pass  # the line that an interruption cut short

    def has(self, **key):
        return any(all(row.get(k) == v for k, v in key.items()) for row in self.rows)

    def find(self, **key):
        return [row for row in self.rows if all(row.get(k) == v for k, v in key.items())]

    def add(self, row):
        row = {**row, "at": time.strftime("%Y-%m-%dT%H:%M:%S"), "load": round(os.getloadavg()[0], 2)}
        self.rows.append(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def run(command, timeout, **environment):
    """(stdout, None), or (None, one sentence)."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        return None, f"no answer within {timeout} s"
    except OSError as error:
        return None, str(error)
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        return None, f"exit code {done.returncode}: {lines[-1][:300]}"
    return done.stdout, None


def json_lines(text):
    out = []
    for line in text.splitlines():
        if line.startswith("{"):
            out.append(json.loads(line))
    return out


def median(values):
    return statistics.median(values) if values else None


def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")),
               "unknown")
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {"cpu": cpu, "cpus": os.cpu_count(), "kernel": os.uname().release, "commit": commit, "date": time.strftime("%Y-%m-%d %H:%M")}


def number(value):
    """Three digits, or as many as stand before the point."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(head, rows):
    """Markdown, with columns padded so that it reads as text too."""
    cells = [head] + [[c if isinstance(c, str) else number(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)


def plotter():
    """matplotlib's pyplot, drawing into files; None, with a message, where it isn't installed."""
    try:
        import matplotlib
    except ImportError:
        say("no plots: matplotlib is not installed (pip install -r bench/requirements.txt)")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


COLOURS = {"unisono": "#1b6e5a", "llama.cpp": "#c9772b", "OpenVINO": "#5a6fae", "vLLM": "#9a4f8f"}
