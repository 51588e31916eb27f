#!/usr/bin/env bash
# usage: [FUZZ_SECONDS=600] fuzz.sh [NAME...]      (default: every target of tests/fuzz)
# Builds the fuzz targets with Clang and runs each for FUZZ_SECONDS, as many at once as there are cores. What they learn stays
# in build/fuzz/corpus; an input that breaks something is written to build/fuzz/found.
. "$(dirname "$0")/common.sh"

targets=("${@/#/fuzz_}")
"$ROOT/tools/build.sh" fuzz "${targets[@]:-fuzz}"
cd "$ROOT/build/fuzz"
mkdir -p found
if [ $# -eq 0 ]; then
  set -- tests/fuzz/fuzz_*
fi

# fuzz_one PROGRAM: the committed seeds are read, never written.
fuzz_one() {
  local name=${1##*fuzz_} seeds=
  case $name in
    gguf) seeds=$ROOT/tests/golden/checkpoint ;;
    *) seeds=$ROOT/tests/fuzz/corpus/$name ;;
  esac
  [ -d "$seeds" ] || seeds=
  mkdir -p "corpus/$name"
  if "tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="found/$name-" \
    -print_final_stats=1 "corpus/$name" $seeds > "$name.log" 2>&1; then
    echo "$name: clean, $(awk '/number_of_executed_units/ {print $2}' "$name.log") inputs in $seconds s"
  else
    tail -30 "$name.log"
    echo "$name: FAILED, see $PWD/$name.log and $PWD/found"
    return 1
  fi
}
export -f fuzz_one
export ROOT seconds=${FUZZ_SECONDS:-600}
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one {}'
