#!/usr/bin/env python3
"""Makes templates.json and jinja_cases.json with Jinja2, set up as Hugging Face transformers sets it up.

    make_templates.py TEMPLATE_DIR [SMOLLM2_GGUF]

Needs jinja2 3.1.6 (and gguf, for the template inside a GGUF file). TEMPLATE_DIR holds *.jinja files. They are not ours to
keep, so templates.json holds a hash of each rendered conversation only; the conversations are templates_conversations.json.
"""

import copy
import datetime
import json
import os
import pathlib
import sys
import time

import jinja2
import jinja2.ext
import jinja2.sandbox

from jinja_sources import CASES, VARIABLES

HERE = pathlib.Path(__file__).parent
NOW = 1760000000  # 2025-10-09 08:53:20 UTC
BOS, EOS = "<s>", "</s>"


class Generation(jinja2.ext.Extension):
    """{% generation %}: marks the assistant's words for training; renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(NOW).strftime(format)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def is_content(node):
    """Whether an expression is the content of a message, sliced or filtered."""
    n = jinja2.nodes
    if isinstance(node, n.Name):
        return node.name.endswith("content")
    if isinstance(node, n.Getattr):
        return node.attr == "content"
    if isinstance(node, n.Getitem):
        if isinstance(node.arg, n.Slice):
            return is_content(node.node)
        return isinstance(node.arg, n.Const) and node.arg.value == "content"
    if isinstance(node, n.Filter) and node.node is not None:
        return is_content(node.node)
    return False


def takes_parts(env, source):
    tree = env.parse(source)
    if any(is_content(loop.iter) for loop in tree.find_all(jinja2.nodes.For)):
        return True
    lists = ("selectattr", "rejectattr", "map", "sort")
    return any(f.name in lists and f.node is not None and is_content(f.node) for f in tree.find_all(jinja2.nodes.Filter))


def prepared(messages, parts):
    """OpenAI's conventions, as vLLM applies them: arguments become objects, parts of text become lines."""
    messages = copy.deepcopy(messages)
    for message in messages:
        if isinstance(message.get("content"), list) and not parts:
            message["content"] = "\n".join(part["text"] for part in message["content"])
        for call in message.get("tool_calls") or []:
            arguments = call["function"].get("arguments")
            if isinstance(arguments, str):
                call["function"]["arguments"] = json.loads(arguments) if arguments else {}
    return messages


def rendered(env, source, conversation):
    template = env.from_string(source)
    variables = {"bos_token": BOS, "eos_token": EOS, "documents": None}
    variables.update(conversation.get("variables", {}))
    return template.render(
        messages=prepared(conversation["messages"], takes_parts(env, source)),
        tools=conversation.get("tools"),
        add_generation_prompt=conversation.get("add_generation_prompt", True),
        **variables,
    )


def settled(text):
    """Python prints the addresses of some objects: that is no output anyone could want."""
    if " at 0x" in text:
        raise ValueError("prints an address")
    return text


def fnv(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def sources(directory, gguf_path):
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.jinja"))}
    if gguf_path:
        from gguf import GGUFReader

        field = GGUFReader(gguf_path).fields["tokenizer.chat_template"]
        found["(SmolLM2)"] = bytes(field.parts[field.data[0]]).decode()
    return found


def write(name, data):
    with open(HERE / name, "w", encoding="utf-8") as out:
        out.write(data)


def main():
    os.environ["TZ"] = "UTC"
    time.tzset()
    env = environment()
    cases = []
    for source in CASES:
        try:
            cases.append({"source": source, "output": settled(env.from_string(source).render(**copy.deepcopy(VARIABLES)))})
        except Exception as error:  # any kind is an answer here
            cases.append({"source": source, "error": f"{type(error).__name__}: {error}"})
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    variables = json.dumps(VARIABLES, ensure_ascii=False)
    write("jinja_cases.json", f'{{"now": {NOW}, "variables": {variables},\n"cases": [\n{lines}\n]}}\n')

    conversations = json.loads((HERE / "templates_conversations.json").read_text(encoding="utf-8"))
    found = sources(pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
    rows, errors = [], 0
    for name, source in found.items():
        results = []
        for conversation in conversations:
            try:
                results.append(fnv(settled(rendered(env, source, conversation))))
            except Exception:
                results.append("error")
                errors += 1
        rows.append(f"  {json.dumps(name)}: {json.dumps(results)}")
    # The template inside a model is small and under the Apache licence: kept, for machines without the others.
    kept = found.get("(SmolLM2)", "")
    header = f'"now": {NOW}, "bos_token": "{BOS}", "eos_token": "{EOS}", "smollm2": {json.dumps(kept)}'
    write("templates.json", "{" + header + ',\n"hashes": {\n' + ",\n".join(rows) + "\n}}\n")
    print(len(cases), "cases,", sum("error" in case for case in cases), "of them errors;", len(found), "templates,",
          len(conversations), "conversations,", errors, "errors")


if __name__ == "__main__":
    main()
