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


def judge(schema, text):
    """Raises ValueError or jsonschema.ValidationError for an answer that isn't of the schema."""
    value = json.loads(text)
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
