#!/usr/bin/env bash
# usage: [CI=true] test.sh
# Builds everything and shows what can be shown on this machine; what can't is skipped with a line that says why. With
# CI=true it also fetches what the larger comparisons need: a second model and the Python oracles (several gigabytes).
. "$(dirname "$0")/common.sh"
cd "$ROOT"

reports=$ROOT/build/release/reports
rm -rf "$reports"
mkdir -p "$reports"
record() { printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >> "$reports/checks.tsv"; }
# check NAME COMMAND...
check() {
  local name=$1
  shift
  if "$@"; then record passed "$name"; else record failed "$name"; fi
}

tools/build.sh release all
if [ "${CI:-}" = true ]; then
  UNISONO_MODELS=$(tools/get_test_models.sh)
  if UNISONO_ORACLE_PYTHON=$(tools/get_oracles.sh); then export UNISONO_ORACLE_PYTHON; fi
else
  tools/get_model.sh > /dev/null || say "without the default model, the tests that run it are skipped"
  UNISONO_MODELS=$MODELS
fi
export UNISONO_MODELS

say "test programs"
GTEST_OUTPUT=xml:$reports/ GTEST_BRIEF=1 ctest --test-dir build/release --output-on-failure --no-tests=error --timeout 3000 \
  --output-junit "$reports/ctest.xml" || true

say "checks of the sources"
check "include graph" tools/check_includes.py
check "the include checker itself" python3 tests/tools/check_includes_test.py
check "the benchmark programs" python3 tests/tools/bench_programs_test.py
check "no weak symbols in instruction-set objects" tools/check_isa_objects.sh build/release

say "the command line"
check "the command line" python3 tests/apps/command_line_test.py

say "clients"
code=0
tests/api/run.sh --junitxml "$reports/pytest-api.xml" || code=$?
if [ "$code" = 77 ] && [ "${CI:-}" != true ]; then
  record skipped "tests/api" "the clients could not be installed"
elif [ "$code" != 0 ]; then
  record failed "tests/api" "see above"
fi

if [ "${CI:-}" = true ]; then
  tools/test_oracles.sh "$reports"
  say "unit tests under ASan and UBSan"
  check "ASan and UBSan" tools/sanitize.sh asan
fi

tools/summary.py "$reports"
