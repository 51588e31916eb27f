#!/usr/bin/env python3
"""usage: summary.py REPORTS_DIR

Adds up what a test run left in REPORTS_DIR: ctest.xml (one entry per test program), the programs' own GoogleTest reports
(NAME_test.xml), pytest's (pytest*.xml), and checks.tsv (result, name, reason). Prints what failed and what was skipped and
why; the last line is the count. Fails if anything failed or nothing ran.
"""
import sys
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path


def cases(file):
    """(result, name, reason) for each case of a JUnit report as GoogleTest, pytest or ctest write it."""
    for case in xml.parse(file).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            yield "failed", name, ""
        elif skipped is not None or case.get("result") in ("skipped", "suppressed") or case.get("status") in ("notrun", "disabled"):
            message = (skipped.get("message") or "") if skipped is not None else ""
            yield "skipped", name, message.strip().splitlines()[-1] if message.strip() else "no reason given"
        else:
            yield "passed", name, ""


def programs(folder):
    """The cases inside ctest's programs; a program that failed beyond its cases, by crashing say, is a failure itself."""
    report = folder / "ctest.xml"
    if not report.exists():
        return
    for result, name, reason in cases(report):
        program = name.split(".")[-1]
        inside = folder / f"{program}_test.xml"
        found = list(cases(inside)) if inside.exists() else []
        yield from ((r, f"{program}: {n}", why) for r, n, why in found)
        if not found or (result == "failed" and not any(r == "failed" for r, _, _ in found)):
            yield result, f"{program}: the program as a whole", reason


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    results = list(programs(folder))
    for report in sorted(folder.glob("pytest*.xml")):
        results += cases(report)
    if (folder / "checks.tsv").exists():
        results += [tuple(line.split("\t", 2)) for line in (folder / "checks.tsv").read_text().splitlines()]

    counts = Counter(result for result, _, _ in results)
    for reason, times in Counter(reason for result, _, reason in results if result == "skipped").items():
        print(f"skipped: {times} x {reason}")
    for result, name, reason in results:
        if result == "failed":
            print(f"FAILED: {name} {reason}".rstrip())
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    sys.exit(counts["failed"] > 0 or counts["passed"] == 0)


if __name__ == "__main__":
    main()
