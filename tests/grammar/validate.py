"""Judges what grammar_sample wrote: every finished answer must parse and validate with the jsonschema package.

usage: grammar_sample 3 1 < cases.jsonl | python validate.py
needs: pip install 'jsonschema[format]'
"""
import decimal
import json
import sys

import jsonschema


decimal.DefaultContext.prec = 400  # of all threads that begin from now on
decimal.setcontext(decimal.Context(prec=400))


def exact(text):
    return json.loads(text, parse_float=decimal.Decimal)


def validate(schema, value):
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind(schema, format_checker=kind.FORMAT_CHECKER).validate(value)


# White space as ECMA-262 has it; Python's differs, and its \\w and \\d are wider.
SPACE = "\\t-\\r \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"


def python_pattern(pattern):
    """JSON Schema's dialect as Python reads it."""
    out, in_class, at = "(?a)", False, 0
    while at < len(pattern):
        part = pattern[at:at + 2] if pattern[at] == "\\" else pattern[at]
        at += len(part)
        if part == "\\s" or (part == "\\S" and not in_class):
            out += SPACE if in_class else f"[{SPACE}]" if part == "\\s" else f"[^{SPACE}]"
            continue
        in_class = part == "[" or (in_class and part != "]")
        out += part
    return out


def python_patterns(schema):
    if isinstance(schema, list):
        return [python_patterns(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str):
            out[key] = python_pattern(value)
        elif key == "patternProperties" and isinstance(value, dict):
            out[key] = {python_pattern(name): python_patterns(part) for name, part in value.items()}
        else:
            out[key] = python_patterns(value)
    return out


def judge(schema, text):
    """Raises ValueError or jsonschema.ValidationError for an answer that isn't of the schema."""
    value = json.loads(text)
    try:
        validate(schema, value)
        return
    except jsonschema.ValidationError:
        schema = python_patterns(schema)
    try:
        validate(schema, value)
    except jsonschema.ValidationError:
        if '"multipleOf"' not in json.dumps(schema):
            raise
        # In floating point 8.44 is no multiple of 0.01; in decimals it is.
        validate(exact(json.dumps(schema)), exact(text))


def main():
    counts = {"valid": 0, "cut": 0, "refused": 0, "wrong": 0}
    for line in sys.stdin:
        case = json.loads(line)
        if "text" not in case:
            counts["cut" if "cut" in case else "refused"] += 1
            continue
        try:
            judge(case["schema"], case["text"])
            counts["valid"] += 1
        except (ValueError, jsonschema.ValidationError) as error:
            counts["wrong"] += 1
            print("WRONG", case["name"], case["text"][:300], str(error).splitlines()[0][:200])
        except Exception as error:  # the judge itself can't read the schema
            counts["judge failed"] = counts.get("judge failed", 0) + 1
    print(json.dumps(counts))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
