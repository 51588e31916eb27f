#!/usr/bin/env bash
# usage: build.sh PRESET TARGET...      (presets: CMakePresets.json)
# Configures build/PRESET when that wasn't done yet, then builds the targets with as many jobs as cores and memory allow.
. "$(dirname "$0")/common.sh"

preset=$1
shift
dir=$ROOT/build/$preset
if [ ! -f "$dir/build.ninja" ]; then
  say "configuring build/$preset"
  mkdir -p "$dir"
  (cd "$ROOT" && cmake --preset "$preset") > "$dir/configure.log" 2>&1 || {
    cat "$dir/configure.log" >&2
    die "cmake failed; the log is $dir/configure.log"
  }
fi

# A compiler takes up to a gigabyte on the larger files.
jobs=$(nproc)
gigabytes=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
[ "$gigabytes" -ge "$jobs" ] || jobs=$((gigabytes > 1 ? gigabytes : 1))
export NINJA_STATUS='[%f of %t, %es] '
ninja -C "$dir" -n "$@" | grep -q 'no work to do' && exit 0
say "building $* in build/$preset with $jobs jobs"
exec ninja -C "$dir" -j "$jobs" "$@" >&2
