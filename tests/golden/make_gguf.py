"""Makes the goldens that the gguf package answers for. Never part of the build; run by hand when a case is added:

    python -m venv venv && venv/bin/pip install gguf==0.19.0 numpy==2.4.6
    venv/bin/python tests/golden/make_gguf.py FOLDER_OF_GGUF_FILES ...

The real files in the folders are described, not copied.
"""

import json
import pathlib
import struct
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Kind
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


def value_text(value) -> str:
    """One spelling of a scalar that both sides can write: floats by their bits as a double."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    return str(value)


def field_text(field) -> str:
    if field.types[0] == Kind.ARRAY:
        # The package reads no type for an array without elements.
        kind = field.types[-1].name if len(field.types) > 1 else Kind(int(field.parts[3][0])).name
        lines = [
            bytes(field.parts[i]) if kind == "STRING" else value_text(field.parts[i].tolist()[0]).encode()
            for i in field.data
        ]
        return f"{kind}[{len(lines)}]:" + fnv1a(b"".join(line + b"\n" for line in lines))
    if field.types[0] == Kind.STRING:
        text = bytes(field.parts[-1])
        return "STRING:" + (text.decode() if len(text) <= 40 else "fnv1a:" + fnv1a(text))
    return f"{field.types[0].name}:" + value_text(field.parts[-1].tolist()[0])


def describe(path: pathlib.Path):
    reader = gguf.GGUFReader(path)
    tensors = [
        f"{t.name} {t.tensor_type.name} [{', '.join(str(d) for d in reversed(t.shape.tolist()))}]" for t in reader.tensors
    ]
    shown = sorted({0, len(tensors) // 2, len(tensors) - 1}) if tensors else []
    raw = path.read_bytes() if tensors else b""
    return {
        "file": path.name,
        "size": path.stat().st_size,
        "metadata": {k: field_text(f) for k, f in reader.fields.items() if not k.startswith("GGUF.")},
        "tensors": len(tensors),
        "tensors_digest": fnv1a("".join(t + "\n" for t in tensors).encode()),
        "shown": [
            {
                "at": i,
                "tensor": tensors[i],
                "bytes": reader.tensors[i].n_bytes,
                "begin": raw[(o := reader.tensors[i].data_offset) : o + 16].hex(),
                "end": raw[o + reader.tensors[i].n_bytes - 16 : o + reader.tensors[i].n_bytes].hex(),
            }
            for i in shown
        ],
    }


def make_all_values(path: pathlib.Path) -> None:
    """A file without tensors and with every type of metadata, alone and in an array."""
    out = gguf.GGUFWriter(path, "llama")
    numbers = {
        "u8": (out.add_uint8, 2**8 - 1, Kind.UINT8),
        "i8": (out.add_int8, -(2**7), Kind.INT8),
        "u16": (out.add_uint16, 2**16 - 1, Kind.UINT16),
        "i16": (out.add_int16, -(2**15), Kind.INT16),
        "u32": (out.add_uint32, 2**32 - 1, Kind.UINT32),
        "i32": (out.add_int32, -(2**31), Kind.INT32),
        "u64": (out.add_uint64, 2**64 - 1, Kind.UINT64),
        "i64": (out.add_int64, -(2**63), Kind.INT64),
        "f32": (out.add_float32, 0.1, Kind.FLOAT32),
        "f64": (out.add_float64, -1e300, Kind.FLOAT64),
        "bool": (out.add_bool, True, Kind.BOOL),
    }
    for name, (add, value, kind) in numbers.items():
        add(f"one.{name}", value)
        out.add_key_value(f"many.{name}", [value, type(value)(0), value], Kind.ARRAY, sub_type=kind)
    out.add_string("one.string", "a\u00e9\u4e00\U0001f600\n")
    out.add_array("many.string", ["", "x", "\u2581the", "two\nlines"])
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.close()


def make_all_types(path: pathlib.Path) -> None:
    """A file with a tensor of every type that is supported, with another alignment than the usual."""
    random = np.random.default_rng(7)
    out = gguf.GGUFWriter(path, "llama")
    out.add_custom_alignment(64)
    for i, (kind, (size, _)) in enumerate(BLOCKS.items()):
        columns = gguf.GGML_QUANT_SIZES[kind][0] * (5 if size <= 4 else 1)
        shape = [[columns], [3, columns], [2, 1, columns], [1, 2, 1, columns]][i % 4]
        rows = [*shape[:-1], size * (5 if size <= 4 else 1)]
        out.add_tensor(f"blk.{i}.{kind.name.lower()}", random.integers(0, 256, rows, dtype=np.uint8), raw_dtype=kind)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


(GOLDEN / "checkpoint").mkdir(exist_ok=True)
made = [GOLDEN / "checkpoint" / "all_values.gguf", GOLDEN / "checkpoint" / "all_types.gguf"]
make_all_values(made[0])
make_all_types(made[1])
real = sorted(p for folder in sys.argv[1:] for p in pathlib.Path(folder).glob("*.gguf"))
write("checkpoint/files.json", [describe(p) for p in made + real])
write("kernels/quant.json", {"rows": quant_cases(), "halves": half_cases()})
