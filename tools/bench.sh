#!/usr/bin/env bash
# usage: bench.sh [MODEL.gguf]      (default: the default model)
# Measures the parts (bench/*_bench.cpp) and the whole: prefill and decode of a model, alone and with others. Each figure of
# the whole is the median of five; leave the machine alone meanwhile. bench/compare and bench/serve measure other engines too.
. "$(dirname "$0")/common.sh"
cd "$ROOT"

model=${1:-$(tools/get_model.sh)}
mapfile -t parts < <(cd bench && ls ./*_bench.cpp | sed 's,^\./,,; s,\.cpp$,,')
cmake -S . -B build/release -DUNISONO_BENCH=ON > build/release/configure.log || die "cmake failed; the log is build/release/configure.log"
tools/build.sh release unisono "${parts[@]}"

# English to tokenise: the project's own pages.
text=build/release/bench/pages.txt
cat README.md docs/*.md > "$text"
for part in "${parts[@]}"; do
  say "$part"
  arguments=()
  case $part in
    tokenizer_bench) arguments=("$text" "$model") ;;
    kernel_bench) arguments=(--benchmark_min_time=0.1) ;;
  esac
  "build/release/bench/$part" "${arguments[@]}"
done
say "$(basename "$model")"
build/release/unisono bench "$model" --generate 0
build/release/unisono bench "$model" --prompt 0 --generate 32 --depth 128,4096 --sequences 1,4,16
build/release/unisono bench "$model" --prompt 0 --generate 16 --depth 1600 --sequences 16 --shared-prefix
