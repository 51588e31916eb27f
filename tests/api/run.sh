#!/usr/bin/env bash
# usage: run.sh [PYTEST ARGUMENTS...]
# Holds the server to real clients: starts build/release/unisono (or $UNISONO_BINARY) on a free port with the default model
# and runs the tests of this folder against it.
. "$(dirname "$0")/../../tools/common.sh"
cd "$ROOT"

python=$(venv_with api tests/api/requirements.txt) || {
  say "tests/api skipped: the openai client could not be installed (no network?)"
  exit 0
}
UNISONO_MODELS=${UNISONO_MODELS:-$(dirname "$(tools/get_model.sh)")}
UNISONO_BINARY=${UNISONO_BINARY:-$ROOT/build/release/unisono}
export UNISONO_MODELS UNISONO_BINARY
exec "$python" -m pytest -q tests/api "$@"
