#!/usr/bin/env bash
# usage: sanitize.sh asan|tsan
# Builds the unit tests with sanitizers and runs them, without the real models, which would take too long here.
. "$(dirname "$0")/common.sh"

preset=$1
"$ROOT/tools/build.sh" "$preset" all
export UBSAN_OPTIONS=print_stacktrace=1 UNISONO_MODELS=/nonexistent UNISONO_QUICK=1
GTEST_BRIEF=1 ctest --test-dir "$ROOT/build/$preset" --output-on-failure --no-tests=error
