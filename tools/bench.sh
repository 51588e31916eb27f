#!/usr/bin/env bash
# usage: bench.sh [MODEL.gguf]      (default: the default model)
# Measures the parts (bench/*_bench.cpp) and the whole: prefill and decode of a model, alone and with others. Each figure of
# the whole is the median of five; leave the machine alone meanwhile.
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
  if [ "$part" = tokenizer_bench ]; then arguments=("$text" "$model"); fi
  "build/release/bench/$part" "${arguments[@]}"
done
say "$(basename "$model")"
for shape in "--prompt 512 --generate 0" "--prompt 2048 --generate 0" "--prompt 0 --generate 64 --depth 128" \
  "--prompt 0 --generate 32 --depth 128 --sequences 4" "--prompt 0 --generate 32 --depth 128 --sequences 16" \
  "--prompt 0 --generate 32 --depth 4096"; do
  build/release/unisono bench "$model" $shape
done
