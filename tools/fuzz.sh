#!/usr/bin/env bash
# usage: [FUZZ_SECONDS=600] fuzz.sh
# Builds the fuzz targets with Clang and runs each for FUZZ_SECONDS, as many at once as there are cores. What they learn stays
# in build/fuzz/corpus; an input that breaks something is written to build/fuzz/found.
. "$(dirname "$0")/common.sh"

seconds=${FUZZ_SECONDS:-600}
mapfile -t targets < <(cd "$ROOT/tests/fuzz" && ls ./*_fuzz.cpp | sed 's,^\./,,; s,\.cpp$,,')
"$ROOT/tools/build.sh" fuzz "${targets[@]}"
cd "$ROOT/build/fuzz"
mkdir -p found

# fuzz_one NAME: the committed seeds are read, never written.
fuzz_one() {
  local name=$1 seeds=$ROOT/tests/fuzz/corpus/${1%_fuzz}
  mkdir -p "corpus/$name"
  [ -d "$seeds" ] || seeds=
  if "$(find . -name "$name" -type f -perm -u+x | head -1)" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="found/$name-" -print_final_stats=1 "corpus/$name" $seeds > "$name.log" 2>&1; then
    echo "$name: clean, $(awk '/number_of_executed_units/ {print $2}' "$name.log") inputs in $seconds s"
  else
    tail -30 "$name.log"
    echo "$name: FAILED, see $PWD/$name.log and $PWD/found"
    return 1
  fi
}
export -f fuzz_one
export ROOT seconds
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one {}'
