#!/usr/bin/env python3
"""usage: check_includes.py [ROOT]      (default: the project this file is in)

Fails on an #include that the room graph forbids. A room includes its own headers, those of the rooms below it, the
standard library, and the third-party headers that were let into it; everything by its full name, "room/file.h", but in
apps/, whose files are nobody else's, by the file's.
"""
import re
import sys
from pathlib import Path

# Who may include whom, beside itself.
ROOMS = {
    "base": [],
    "kernels": ["base"],
    "checkpoint": ["base"],
    "text": ["base"],
    "decode": ["base"],
    "grammar": ["base"],
    "model": ["kernels", "base"],
    "engine": ["model", "kernels", "text", "decode", "grammar", "base"],
    "serve": ["engine", "text", "decode", "grammar", "base"],
    "eval": ["model", "kernels", "base"],
    "apps": ["serve", "eval", "engine", "model", "kernels", "text", "decode", "grammar", "base"],
}
# The one place where a file's bytes become a model, a tokenizer and a template.
EXTRA = {re.compile(r"src/engine/load\w*\.(h|cpp)"): ["checkpoint"]}

# Headers from outside: which rooms, or single files, may include them. First match counts.
THIRD_PARTY = [
    (r"boost/json(/|\.hpp)", ["base", "text", "grammar", "serve", "apps"]),
    (r"boost/multiprecision(/|\.hpp)", ["grammar"]),
    (r"boost/(asio|beast|system)(/|\.hpp)", ["serve"]),
    (r"openssl/", ["serve"]),
    (r"prometheus/", ["src/serve/metrics.cpp"]),
    (r"spdlog/", ["serve", "apps"]),
    (r"fmt/", ["base", "text", "serve", "apps"]),
    (r"CLI/", ["apps"]),
    (r"zlib\.h$", ["apps"]),
    (r"curl/", ["checkpoint"]),
    (r"pcre2\.h", ["text"]),
    (r"utf8proc\.h", ["text", "grammar"]),
    (r"(\w*mmintrin|x86intrin|x86gprintrin|immintrin|cpuid|arm_neon)\.h", ["kernels", "src/base/thread_team.cpp"]),
    (r"string\.h", ["text"]),  # memmem
    (r"linux/mempolicy\.h", ["base"]),
    (r"(sys/\w+|arpa/\w+|netinet/\w+|fcntl|unistd|pthread|sched|signal|poll|termios|dirent|malloc)\.h", ["base", "serve", "apps", "src/kernels/amx.cpp"]),
]
STANDARD = re.compile(r"[a-z_0-9]+")  # <vector>, <cstdint>: the C headers by their C++ names
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def complaint(root, file, quote, name):
    """Why this include is forbidden, or None."""
    path = file.relative_to(root).as_posix()
    room = path.split("/")[1] if path.startswith("src/") else "apps"
    if quote == '"':
        if room == "apps" and "/" not in name:
            return None if (file.parent / name).is_file() else f'"{name}" does not exist'
        target = name.split("/")[0]
        if "/" not in name or ".." in name or target not in ROOMS:
            return f'write "room/file.h", not "{name}"'
        if not (root / "src" / name).is_file():
            return f'"{name}" does not exist'
        allowed = [room, *ROOMS[room], *(r for pattern, rooms in EXTRA.items() if pattern.fullmatch(path) for r in rooms)]
        if target not in allowed:
            return f"{room} may not include {target} (it may: {', '.join(dict.fromkeys(allowed))})"
        return None
    for pattern, allowed in THIRD_PARTY:
        if re.match(pattern, name):
            return None if room in allowed or path in allowed else f"<{name}> belongs in {', '.join(allowed)}, not in {room}"
    return None if STANDARD.fullmatch(name) else f"<{name}> is in no list of allowed headers"


def check(root):
    """All complaints as lines "file:line: why"."""
    files = sorted(f for top in ("src", "apps") for f in (root / top).rglob("*") if f.suffix in (".h", ".cpp"))
    complaints = []
    for file in files:
        room = file.relative_to(root).parts[1]
        if file.is_relative_to(root / "src") and room not in ROOMS:
            complaints.append(f"{file.relative_to(root)}: '{room}' is no room")
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            why = include and complaint(root, file, *include.groups())
            if why:
                complaints.append(f"{file.relative_to(root)}:{number}: {why}")
    return len(files), complaints


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    count, complaints = check(root.resolve())
    if count == 0:
        sys.exit(f"error: {root} has no sources")
    print("\n".join(complaints) if complaints else f"{count} files include only what they may")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
