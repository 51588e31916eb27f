#!/usr/bin/env bash
# usage: [SOAK_REQUESTS=10000] soak.sh
# Random schedules against one engine: cancellations, deadlines, priorities, preemption; then 64 mixed requests against servers
# of all settings, with clients that leave. Every answer must be what it is alone, all counters must end at zero and memory
# must stay flat. Takes some minutes.
. "$(dirname "$0")/common.sh"
cd "$ROOT"

tools/build.sh release unisono engine_test
say "one engine, ${SOAK_REQUESTS:-10000} requests"
UNISONO_SOAK=${SOAK_REQUESTS:-10000} build/release/tests/engine/engine_test --gtest_brief=1 --gtest_filter='Soak.*'
say "servers of all settings"
UNISONO_SOAK=all tests/api/run.sh -s -k soak
