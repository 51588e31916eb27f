#!/usr/bin/env bash
# usage: sanitize.sh asan|tsan
# Builds the tests with sanitizers and runs them, without the longest: real models, and whole models in every way of running.
. "$(dirname "$0")/common.sh"

preset=$1
"$ROOT/tools/build.sh" "$preset" all
export UBSAN_OPTIONS=print_stacktrace=1 UNISONO_MODELS=/nonexistent GTEST_FILTER="${GTEST_FILTER:--*TheSameBits*:*Stories*:Reference*}"
GTEST_BRIEF=1 ctest --test-dir "$ROOT/build/$preset" --output-on-failure --no-tests=error
