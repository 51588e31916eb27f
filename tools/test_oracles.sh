#!/usr/bin/env bash
# usage: test_oracles.sh REPORTS_DIR
# Compares with the Python oracles and the real models, where both are here; adds its results to REPORTS_DIR/checks.tsv.
# Uses UNISONO_MODELS and UNISONO_ORACLE_PYTHON, and writes gigabytes of reference logits to the cache, once.
. "$(dirname "$0")/common.sh"
cd "$ROOT"

checks=$1/checks.tsv
record() { printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >> "$checks"; }
python=${UNISONO_ORACLE_PYTHON:-}
text=$ROOT/../shared/data/text/wikitext2-test.txt

if [ -z "$python" ]; then
  record skipped "oracles" "the Python oracles (transformers, torch) are not installed"
  exit
fi

say "goldens: what the pinned oracles make of them today"
if "$python" tests/golden/make.py --check 2> "$1/make.log"; then
  record passed "goldens as transformers computes them"
else
  tail -5 "$1/make.log"
  record failed "goldens as transformers computes them"
fi

# divergence MODEL CHUNKS LIMIT FLAG...: mean KL of our distributions from the reference's, at most LIMIT.
divergence() {
  local model=$UNISONO_MODELS/$1.gguf reference=$CACHE/oracle/$1.ukl chunks=$2 limit=$3
  shift 3
  if [ ! -f "$reference" ]; then
    say "$(basename "$model"): reference logits of $chunks x 512 tokens"
    "$python" tests/golden/kl.py "$model" "$text" "$reference" "$chunks" 2> "$CACHE/oracle.log" || { tail -5 "$CACHE/oracle.log"; return 1; }
  fi
  build/release/unisono perplexity "$model" --kl "$reference" --json "$@" | tee /dev/stderr |
    python3 -c "import json, sys; sys.exit(not json.load(sys.stdin)['mean_kl'] <= $limit)"
}

# check_divergence NAME MODEL CHUNKS LIMIT FLAG...
check_divergence() {
  local name="$1: mean KL at most $4"
  if [ ! -f "$UNISONO_MODELS/$2.gguf" ] || [ ! -f "$text" ]; then
    record skipped "$name" "needs the model $2 and the development data"
  elif divergence "${@:2}"; then
    record passed "$name"
  else
    record failed "$name"
  fi
}

# The second limit of each is what llama.cpp's quantised arithmetic reaches on the same text.
say "distance of our distributions from float32"
f32=(--activations f32 --kv-type f32)
check_divergence "SmolLM2, f32" SmolLM2-135M-Instruct.Q4_1 8 1e-6 "${f32[@]}"
check_divergence "SmolLM2, int8" SmolLM2-135M-Instruct.Q4_1 8 0.00251
check_divergence "Gemma 3, f32" gemma-3-270m.Q4_K_M 4 1e-6 "${f32[@]}"
check_divergence "Gemma 3, int8" gemma-3-270m.Q4_K_M 4 0.00364
