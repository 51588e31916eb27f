#!/usr/bin/env bash
# usage: run.sh [PYTEST ARGUMENTS...]
# Holds the server to real clients: starts build/release/unisono (or $UNISONO_BINARY) on a free port with the default model
# and runs the tests of this folder against it. With CI=true the larger clients are installed too; the load generator never is
# (set UNISONO_GUIDELLM to have it run). Exit code 77: skipped, the clients can't be installed.
. "$(dirname "$0")/../../tools/common.sh"
cd "$ROOT"

requirements=tests/api/requirements.txt
if [ "${CI:-}" = true ]; then
  requirements=$(mktemp)
  cat tests/api/requirements.txt tests/api/requirements-clients.txt > "$requirements"
fi
python=$(venv_with api "$requirements") || {
  say "tests/api skipped: the openai client could not be installed (no network?)"
  exit 77
}
UNISONO_MODELS=${UNISONO_MODELS:-$(dirname "$(tools/get_model.sh)")}
UNISONO_BINARY=${UNISONO_BINARY:-$ROOT/build/release/unisono}
export UNISONO_MODELS UNISONO_BINARY
failed=0
"$python" -m pytest -q tests/api "$@" || failed=1
if [ "${CI:-}" = true ]; then
  python=$(venv_with api-instructor tests/api/requirements-instructor.txt)
  "$python" -m pytest -q tests/api/test_instructor.py || failed=1
fi
exit $failed
