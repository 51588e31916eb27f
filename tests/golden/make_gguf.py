"""Makes the goldens that the gguf package answers for. Never part of the build; run by hand when a case is added:

    python -m venv venv && venv/bin/pip install gguf==0.19.0 numpy==2.4.6
    venv/bin/python tests/golden/make_gguf.py
"""

import json
import pathlib

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

GOLDEN = pathlib.Path(__file__).parent

# Where each block keeps its binary16 scales, and its size: random bytes there would be NaN or infinite too often.
BLOCKS = {
    Type.F32: (4, []),
    Type.F16: (2, []),
    Type.BF16: (2, []),
    Type.Q8_0: (34, [0]),
    Type.Q4_0: (18, [0]),
    Type.Q4_1: (20, [0, 2]),
    Type.Q5_0: (22, [0]),
    Type.Q5_1: (24, [0, 2]),
    Type.Q4_K: (144, [0, 2]),
    Type.Q5_K: (176, [0, 2]),
    Type.Q6_K: (210, [208]),
}
# Scales that every type meets: zeros, the least and greatest subnormal, the least normal, ordinary ones, the greatest.
SCALES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x2E66, 0xA5D3, 0x7BFF]


def fnv1a(data: bytes) -> str:
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return f"{digest:016x}"


def quant_cases():
    random = np.random.default_rng(20250101)
    cases = []
    for kind, (size, scale_places) in BLOCKS.items():
        n_blocks = 8 if scale_places else 64
        blocks = random.integers(0, 256, (n_blocks, size), dtype=np.uint8)
        if not scale_places:  # keep plain values finite: their exponent loses its top bit
            blocks[:, -1] &= 0xBF
        for turn, place in enumerate(scale_places):
            for block in range(n_blocks):
                scale = SCALES[(block + 3 * turn) % len(SCALES)]
                blocks[block, place : place + 2] = np.frombuffer(np.uint16(scale).tobytes(), np.uint8)
        values = np.ascontiguousarray(dequantize(blocks.reshape(1, -1), kind), dtype="<f4").view("<u4").reshape(-1)
        cases.append(
            {
                "type": kind.name,
                "row": blocks.tobytes().hex(),
                "elements": int(values.size),
                "first": [f"{v:08x}" for v in values[:: max(1, values.size // 16)][:16]],
                "every": max(1, int(values.size) // 16),
                "digest": fnv1a(values.tobytes()),
            }
        )
    return cases


def half_cases():
    halves = np.arange(65536, dtype=np.uint16)
    widened = halves.view(np.float16).astype(np.float32).view(np.uint32)
    nan = (widened & 0x7FFFFFFF) > 0x7F800000
    widened = np.where(nan, widened | 0x400000, widened)  # quiet, as the conversion instructions answer
    # A walk that meets every exponent.
    floats = (np.arange(1 << 17, dtype=np.uint64) * 0x9E3779B1 % 2**32).astype(np.uint32)
    with np.errstate(all="ignore"):
        narrowed = floats.view(np.float32).astype(np.float16).view(np.uint16)
    nan = (narrowed & 0x7FFF) > 0x7C00
    narrowed = np.where(nan, (narrowed & 0x8000) | 0x7E00, narrowed).astype("<u2")  # what a NaN carries is left open
    return {"all_halves_digest": fnv1a(widened.astype("<u4").tobytes()), "floats_digest": fnv1a(narrowed.tobytes())}


def write(path: str, content) -> None:
    target = GOLDEN / path
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


write("kernels/quant.json", {"rows": quant_cases(), "halves": half_cases()})
