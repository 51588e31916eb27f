#!/usr/bin/env bash
# usage: get_oracles.sh
# Prints a Python with the pinned oracles of tests/golden/requirements.txt (transformers, torch ...). One that
# UNISONO_ORACLE_PYTHON names is used when it has them; else they are installed into the cache (5 GB, some minutes).
. "$(dirname "$0")/common.sh"

requirements=$ROOT/tests/golden/requirements.txt
has_them() {
  "$1" - "$requirements" 2> /dev/null << 'PY'
import sys
from importlib.metadata import version
for line in open(sys.argv[1]):
    if not line.startswith("#"):
        name, _, pinned = line.strip().partition("==")
        assert version(name) == pinned
PY
}

for python in "${UNISONO_ORACLE_PYTHON:-}" "$CACHE/../unisono-peers/hf/bin/python"; do
  if [ -x "$python" ] && has_them "$python"; then
    realpath -s "$python"
    exit
  fi
done
free=$(df -Pk "$HOME" | awk 'NR == 2 {print int($4 / 1048576)}')
[ "$free" -ge 12 ] || die "the Python oracles need 12 GB of free disk, $free are left"
venv_with oracles "$requirements"
