#!/usr/bin/env python3
"""The program as a user meets it in a terminal or a script, with tiny random models: what is given wrong ends in one
sentence and exit code 2, nothing given is ignored, and what can't be written doesn't count as done.

UNISONO_BINARY: the program; by default build/release/unisono.
"""
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("UNISONO_BINARY", str(ROOT / "build/release/unisono"))
MODEL = str(ROOT / "tests/golden/tiny/llama.gguf")


def unisono(*args, stdin="", stdout=subprocess.PIPE, **environment):
    return subprocess.run([BINARY, *args], input=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True, errors="replace",
                          timeout=60, env={**os.environ, **environment})


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, text):
        path = Path(self.folder, name)
        path.write_text(text)
        return str(path)

    def assert_refused(self, sentence, *args, **environment):
        """Exit code 2 and, on standard error, this and no more than the hint at --help."""
        ended = unisono(*args, **environment)
        self.assertEqual((ended.returncode, ended.stdout), (2, ""), (args, ended.stderr))
        self.assertIn(sentence, ended.stderr)
        self.assertEqual(len(ended.stderr.replace("Run with --help for more information.\n", "").splitlines()), 1, ended.stderr)

    def test_what_cannot_be_read_is_named(self):
        folder = self.folder
        gone = folder + "/gone"
        for why, path in (("Is a directory", folder), ("No such file or directory", gone)):
            for command in (["tokenize", MODEL, "--file"], ["template", MODEL, "--messages"], ["run", MODEL, "--file"],
                            ["run", MODEL, "hi", "--json-schema"], ["run", MODEL, "hi", "--grammar"], ["perplexity", MODEL],
                            ["serve", MODEL, "--port", "0", "--api-key-file"]):
                self.assert_refused(f"Can't read '{path}': {why}.", *command, path)
        self.assert_refused("Is a directory", "bench", "grammar", folder, "--tokenizer", MODEL)
        self.assert_refused(f"Can't read '{gone}': No such file or directory.", "bench", "grammar", gone, "--tokenizer", MODEL)
        text = self.file("text", "words\n")
        for command in (["info", text], ["tokenize", text, "hi"], ["template", text], ["run", text, "hi"], ["bench", text],
                        ["bench", "grammar", text, "--tokenizer", text]):
            self.assert_refused(f"'{text}': This is not a GGUF file", *command)
        broken = self.file("broken.json", '{"type": ')
        self.assert_refused(f"'{broken}': Not valid JSON", "run", MODEL, "hi", "--json-schema", broken)
        self.assert_refused(f"'{broken}': Not valid JSON", "template", MODEL, "--messages", broken)
        self.assert_refused("--regex: ", "run", MODEL, "hi", "--regex", "(")

    # A large model takes its time: what is wrong with the address is told before.
    def test_where_a_server_cannot_listen_is_told_before_the_model_is_read(self):
        text = self.file("text", "no model\n")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.assert_refused("Address already in use. Choose another port", "serve", text, "--port", str(taken.getsockname()[1]))
        self.assert_refused("No such address to listen on: 192.0.2.1", "serve", text, "--host", "192.0.2.1")
        self.assert_refused("/gone.pem", "serve", text, "--port", "0", "--tls-cert", "/gone.pem", "--tls-key", "/gone.pem")

    def test_a_command_that_there_is_not_is_named(self):
        self.assert_refused("There is no command 'serv'; there are serve, chat, run,", "serv", MODEL)
        self.assert_refused("There is no command '';", "")

    # What clients call a model is told in JSON, which is UTF-8.
    def test_a_models_name_is_text(self):
        model = Path(self.folder, os.fsdecode(b"mod\xe8le.gguf"))
        model.write_bytes(Path(MODEL).read_bytes())
        said = r"The model's name 'mod\xe8le' isn't UTF-8; give it another with --name."
        self.assert_refused(said, "serve", str(model), "--port", "0")
        self.assert_refused(said, "serve", MODEL, "--port", "0", "--name", model.stem)

    # An unset variable in a script must not open a server, or lift a constraint.
    def test_empty_values_are_refused(self):
        for command in (["run", MODEL, "hi", "--max-tokens", "1"], ["serve", MODEL, "--port", "0"], ["tokenize", MODEL],
                        ["template", MODEL], ["perplexity", MODEL]):
            flags = {"run": ["--json-schema", "--grammar", "--regex", "--file", "--kv-memory"],
                     "serve": ["--api-key-file", "--tls-cert", "--tls-key", "--cors-origin", "--name", "--kv-memory"],
                     "tokenize": ["--file"], "template": ["--messages"], "perplexity": ["--kl"]}[command[0]]
            for flag in flags:
                others = {"--tls-cert": ["--tls-key", "x"], "--tls-key": ["--tls-cert", "x"]}.get(flag, [])
                self.assert_refused(flag, *command, flag, "", *others)
        for empty in ("", "\n"):
            self.assert_refused("UNISONO_API_KEY is empty", "serve", MODEL, "--port", "0", UNISONO_API_KEY=empty)
        self.assert_refused("The prompt is empty", "run", MODEL, "")

    def test_an_empty_text_is_a_text(self):
        self.assertEqual(unisono("tokenize", MODEL, "", "--ids", stdin="not this").stdout, "[]\n")
        self.assertEqual(unisono("tokenize", MODEL, "--ids", stdin="hi").stdout, "[104,105]\n")

    def test_an_answer_ends_before_its_speed_is_told(self):
        both = subprocess.run([BINARY, "run", MODEL, "hi", "--max-tokens", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=60).stdout
        self.assertRegex(both, r"\n\d+ tokens in: [^\n]*\n$")

    # An empty system message isn't none: many templates have one of their own for that.
    def test_an_empty_system_message_is_one(self):
        def prompt_tokens(*flags):
            return json.loads(unisono("run", MODEL, "hi", "--max-tokens", "1", "--json", *flags).stdout)["prompt_tokens"]
        self.assertGreater(prompt_tokens("--system", ""), prompt_tokens())

    def test_the_page_of_commands_has_the_flags_that_there_are(self):
        pages = ROOT / "docs"
        parts = re.split(r"^## (.*)\n", (pages / "cli.md").read_text(), flags=re.MULTILINE)
        sections = dict(zip(parts[1::2], parts[2::2]))
        shared, choosing = sections.pop("Flags of every command that runs a model"), sections.pop("Choosing tokens")
        sections["serve"] += (pages / "operations.md").read_text()
        commands = re.findall(r"^  (\w+)", unisono("--help").stdout.partition("Subcommands:")[2], re.MULTILINE)
        known = {"--help", "--version"}
        self.assertIn("serve", commands)
        for command in [*commands, "bench grammar"]:
            told = "".join(text for names, text in sections.items() if command.split()[0] in names.split(", "))
            if command not in ("tokenize", "template", "info", "bench grammar"):
                told += shared
            if command in ("chat", "run"):
                told += choosing
            flags = set(re.findall(r"^  (--[\w-]+)", unisono(*command.split(), "--help").stdout, re.MULTILINE))
            known |= flags
            self.assertEqual(flags - set(re.findall(r"--[\w-]+", told)), set(), command)
        self.assertEqual(set(re.findall(r"--[\w-]+", (pages / "cli.md").read_text())) - known - {"---"}, set())

    def test_flags_that_contradict_are_refused(self):
        self.assert_refused("not both", "tokenize", MODEL, "hi", "--file", self.file("text", "other"))
        self.assert_refused("not both", "run", MODEL, "hi", "--file", self.file("text", "other"))
        for flag in ("--context", "--chunks"):
            self.assert_refused(flag, "perplexity", MODEL, "--kl", "x", flag, "2")
        for command in (["perplexity", MODEL, "x"], ["bench", MODEL]):  # they keep no cache of a size of its own
            self.assert_refused("not expected", *command, "--kv-memory", "1G")

    def test_values_out_of_range_are_refused(self):
        for seed in ("99999999999999999999", "1.5", "x", "-9223372036854775809"):
            self.assert_refused("--seed", "run", MODEL, "hi", "--seed", seed)
        for port in ("65536", "-1", "http"):
            self.assert_refused("--port: Value", "serve", MODEL, "--port", port)
        for size in ("0x10M", " 20M", "nan", "-1G", "2Q", "2Gb", "G", "1e99"):
            self.assert_refused("is no size", "run", MODEL, "hi", "--kv-memory", size)
        self.assert_refused("--kv-memory of 195 TiB is more than the", "run", MODEL, "hi", "--kv-memory", "200000G")
        for origin in ("chat.example.org", "https://chat.example.org/", "https://", "https://Chat.example.org", "http://*.org"):
            self.assert_refused("is no origin", "serve", MODEL, "--port", "0", "--cors-origin", origin)

    def test_seeds_of_64_bits_are_taken(self):
        for seed in ("0", "18446744073709551615", "-9223372036854775808"):
            ended = unisono("run", MODEL, "hi", "--seed", seed, "--max-tokens", "1", "--temperature", "1")
            self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_output_that_could_not_be_written_is_told(self):
        long = self.file("long", "word " * 50_000)
        for command in (["info", MODEL], ["template", MODEL], ["tokenize", MODEL, "hi"], ["tokenize", MODEL, "--file", long],
                        ["run", MODEL, "hi", "--max-tokens", "2"], ["run", MODEL, "hi", "--max-tokens", "2", "--json"],
                        ["--help"]):
            with open("/dev/full", "w") as full:
                ended = unisono(*command, stdout=full)
            self.assertEqual(ended.returncode, 1, (command, ended.stderr))
            self.assertIn("No space left on device.", ended.stderr)

    def test_closed_streams_are_not_written_into(self):
        """The model must not get the number of standard output."""
        script = '"$0" "$@" >&-'
        ended = subprocess.run(["bash", "-c", script, BINARY, "tokenize", MODEL, "hi"], stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("Can't write to standard output: Bad file descriptor.", ended.stderr)

    def test_answers_count_though_nobody_hears_what_stands_beside_them(self):
        for nobody in ("2>&-", "2>/dev/full"):
            for asked, code in (('"$0" run "$1" hi --max-tokens 2', 0), ('"$0" tokenize "$1" hi', 0), ('"$0" run nowhere hi', 2),
                                (r'printf "hi\nhi\n" | "$0" chat "$1" --max-tokens 2', 0)):
                ended = subprocess.run(["bash", "-c", f"{asked} {nobody}", BINARY, MODEL], stdout=subprocess.PIPE, timeout=60)
                self.assertEqual((ended.returncode, ended.stdout != b""), (code, code == 0), (asked, nobody))

    def test_what_a_file_calls_itself_is_safe_to_print(self):
        whole = Path(MODEL).read_bytes()
        model = Path(self.folder, "model.gguf")
        model.write_bytes(whole.replace(b"tiny random llama", b"tiny\x1b[2J\xff\n  llama"))
        self.assertEqual(json.loads(unisono("info", str(model), "--json").stdout)["name"], r"'tiny\x1b[2J\xff\x0a  llama'")
        self.assertNotIn("\x1b", unisono("info", str(model)).stdout)
        for key, value, said in ((b"general.architecture", b"llama", "model family is"),
                                 (b"tokenizer.ggml.model", b"gpt2", "tokenizer is of kind")):
            at = whole.index(key) + len(key) + 12  # behind the value's type and length
            model.write_bytes(whole[:at] + b"\x1b[2J\n"[:len(value)] + whole[at + len(value):])
            self.assert_refused(said + r" '\x1b[2J", "run", str(model), "hi")


class Serve(unittest.TestCase):
    def until_held(self, pid, number):
        """The program has begun: it waits for this signal, which until then would be as whoever started it says."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            held = re.search(r"^SigBlk:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            if int(held[1], 16) >> (number - 1) & 1:
                return
            time.sleep(0.01)
        self.fail("it holds no signals")

    def test_a_signal_ends_it_while_the_model_loads(self):
        with tempfile.TemporaryDirectory() as folder:
            model = folder + "/model.gguf"
            os.mkfifo(model)  # opening it waits for a writer, as reading a large file does for the disk
            for number in (signal.SIGINT, signal.SIGTERM):
                # As a background job of a shell, which ignores SIGINT.
                server = subprocess.Popen([BINARY, "serve", model, "--port", "0"],
                                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
                try:
                    self.until_held(server.pid, signal.SIGINT)
                    server.send_signal(number)
                    self.assertEqual(server.wait(timeout=10), -number)
                finally:
                    server.kill()
                    server.wait()

    def test_keys_are_taken_as_editors_and_shells_write_them(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = Path(folder, "keys")
            keys.write_bytes(b"\xef\xbb\xbffirst\r\n  second \r\n  # no key\n")
            server = subprocess.Popen([BINARY, "serve", MODEL, "--port", "0", "--api-key-file", str(keys)], stdout=subprocess.PIPE,
                                      text=True, env={**os.environ, "UNISONO_API_KEY": "third\n"})
            try:
                while "http://" not in (line := server.stdout.readline()):
                    self.assertIsNone(server.poll())
                address = re.search(r"http://[^\s/]+", line)[0]
                for key in ("first", "second", "third"):
                    request = urllib.request.Request(address + "/v1/models", headers={"Authorization": "Bearer " + key})
                    with urllib.request.urlopen(request, timeout=30) as answer:
                        self.assertEqual(answer.status, 200)
                with self.assertRaisesRegex(urllib.error.HTTPError, "401"):
                    urllib.request.urlopen(address + "/v1/models", timeout=30)
            finally:
                server.kill()
                server.wait()
                server.stdout.close()

    def test_it_outlives_who_read_its_first_lines(self):
        server = subprocess.Popen([BINARY, "serve", MODEL, "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            while "Listening" not in server.stdout.readline():
                self.assertIsNone(server.poll())
            server.stdout.close()
            server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(timeout=20), 0)
        finally:
            server.kill()
            server.wait()

    # A download or a copy that writes over the file takes pages away from whoever has it mapped.
    def test_a_model_that_is_written_over_goes_on_as_it_was(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("llama", "gemma3"):  # whose output head is a tensor of its own, and the embedding
                model = Path(folder, name + ".gguf")
                model.write_bytes(Path(MODEL).with_name(model.name).read_bytes())
                server = subprocess.Popen([BINARY, "serve", str(model), "--port", "0"], stdout=subprocess.PIPE, text=True)
                try:
                    while "http://" not in (line := server.stdout.readline()):
                        self.assertIsNone(server.poll())
                    address = re.search(r"http://[^\s/]+", line)[0]

                    def ask(path, **body):
                        request = urllib.request.Request(address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
                        with urllib.request.urlopen(request, timeout=30) as answer:
                            return json.load(answer)

                    def completion(prompt, **more):
                        return ask("/v1/completions", prompt=prompt, max_tokens=8, temperature=0, **more)["choices"][0]["text"]

                    before = completion("a b c")
                    model.write_bytes(b"")
                    self.assertEqual(completion("a b c"), before)
                    tokens = ask("/tokenize", prompt="Every token has a text: zebra, 12.5, \u00fc")["tokens"]
                    self.assertTrue(ask("/detokenize", tokens=list(range(256)))["prompt"])
                    completion(tokens, structured_outputs={"regex": "[a-z]+"}, logprobs=5)
                finally:
                    server.kill()
                    server.wait()
                    server.stdout.close()


class Chat(unittest.TestCase):
    def talk(self, *lines, flags=()):
        """What a session at a terminal shows; the lines are typed one after another, each after the prompt."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(BINARY, [BINARY, "chat", MODEL, "--max-tokens", "2", *flags])
        shown = b""
        for line in [*lines, None]:
            end = time.monotonic() + 30
            while time.monotonic() < end:
                if line is not None and shown.endswith(b"> "):
                    break
                if select.select([terminal], [], [], 0.1)[0]:
                    try:
                        shown += os.read(terminal, 65536)
                    except OSError:  # it has ended
                        break
            if line is not None:
                typed, interrupt, _ = line.partition("\x03")
                os.write(terminal, typed.encode())
                if interrupt:
                    time.sleep(0.3)  # until what was typed is read, and more waited for
                    os.write(terminal, b"\x03")
                shown += b"|"
        os.close(terminal)
        deadline = time.monotonic() + 10
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        self.assertTrue(os.WIFEXITED(ended[1]) and os.WEXITSTATUS(ended[1]) == 0, shown)
        return shown.decode(errors="replace")

    def prompts(self, shown):
        """How many tokens each prompt had."""
        return [int(part.rsplit("[", 1)[1]) for part in shown.split(" tokens in:")[:-1]]

    def test_one_line_may_hold_a_whole_quoted_message(self):
        one, = self.prompts(self.talk("hi there\n", "/quit\n"))
        for typed in ('"""hi there"""\n', '"""hi""" there\n', '"""\nhi there\n"""\n'):
            self.assertEqual(self.prompts(self.talk(typed, "/quit\n")), [one], typed)

    def test_clear_keeps_the_system_message_that_holds(self):
        first, again, without = self.prompts(self.talk("/system Be brief.\n", "hi\n", "/clear\n", "hi\n", "/system\n", "hi\n", "\x04"))
        self.assertEqual(first, again)
        self.assertLess(without, first)
        none, = self.prompts(self.talk("/systematic\n", "hi\n", "\x04"))  # no command: shows the help
        self.assertEqual(none, without)

    def test_ctrl_c_at_the_prompt_leaves(self):
        self.assertEqual(self.prompts(self.talk("hi\n", "\x03")), self.prompts(self.talk("hi\n", "\x04")))
        self.assertEqual(self.prompts(self.talk('"""half a message\n\x03')), [])  # and takes what was begun along


if __name__ == "__main__":
    unittest.main()
