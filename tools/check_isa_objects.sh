#!/usr/bin/env bash
# usage: check_isa_objects.sh [BUILD_DIR]      (default: build/release)
# Fails if a kernel object built for one instruction set defines a weak symbol: the linker may keep that copy for the
# whole program, which then dies on a CPU without those instructions.
set -euo pipefail
build=${1:-$(dirname "$0")/../build/release}

mapfile -t objects < <(find "$build/src/kernels/CMakeFiles" \( -path '*unisono_kernels_avx*' -o -path '*unisono_kernels_amx*' \) -name '*.o' 2>/dev/null | sort)
if [ ${#objects[@]} -eq 0 ]; then
  if [ "$(uname -m)" = x86_64 ]; then
    echo "error: no AVX objects under $build/src/kernels: build first (make build)" >&2
    exit 1
  fi
  echo "no instruction-set objects on $(uname -m)"
  exit 0
fi

# W and V: defined weak; u: unique to the process. (w and v are references, which add nothing.)
weak=$(nm -C --print-file-name --defined-only "${objects[@]}" | grep -E ' [WVu] ' || true)
if [ -n "$weak" ]; then
  printf '%s\n' "$weak"
  echo "error: the symbols above are weak and built for one instruction set" >&2
  exit 1
fi
echo "${#objects[@]} instruction-set objects define no weak symbols"
