"""PTX of real producers with launches and results that NumPy computed.

    pip install triton==3.5.1 numba-cuda==0.30.4 'nvidia-cuda-nvcc-cu12==12.9.*' 'nvidia-cuda-runtime-cu12==12.9.*' \\
        'nvidia-cuda-nvrtc-cu12==12.9.*' 'nvidia-nvjitlink-cu12==12.9.*' numpy
    python generate.py [triton] [numba] [clang]

No GPU is needed. Each case is PRODUCER/NAME.ptx with a launch NAME.toml, NAME.arg<K>.expected.npy for each output, and a
line in tolerance.txt for each output that may differ from its expected value: `|x - expected| <= abs + rel * |expected|`.
Inputs come from the generator that docs/launch-file.md describes, so they are not stored. Expected values are
computed in double precision where a tolerance is given, and in the kernel's own order and types where none is.
"""

import re
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i16": np.int16,
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
}


def stream(n, seed):
    x = (np.arange(n, dtype=np.uint64) * 0x9E3779B9 + seed).astype(np.uint32)
    x ^= x >> 16
    x *= np.uint32(0x7FEB352D)
    x ^= x >> 15
    x *= np.uint32(0x846CA68B)
    return x ^ (x >> 16)


class Random:
    """A buffer that the launch file makes. `data` is what the kernel gets."""

    def __init__(self, dtype, n, seed, low=None, high=None):
        r = stream(n, seed)
        bounds = "" if low is None else f", low = {low}, high = {high}"
        self.text = f'random = {{ dtype = "{dtype}", len = {n}, seed = {seed}{bounds} }}'
        if dtype[0] in "fb":
            low, high = (0.0, 1.0) if low is None else (low, high)
            x = low + (high - low) * (r / 2.0**32)
            self.data = bf16_round(x) if dtype == "bf16" else x.astype(TYPES[dtype])
        elif low is None:
            self.data = r.astype(np.uint32).view(np.int32).astype(TYPES[dtype]) if dtype == "i32" else r.astype(TYPES[dtype])
        else:
            self.data = (low + r.astype(np.int64) % (high - low)).astype(TYPES[dtype])
        self.n, self.dtype = n, dtype


class Full:
    """A buffer of one value."""

    def __init__(self, dtype, n, value=0):
        self.text = f'full = {{ dtype = "{dtype}", len = {n}, value = {value} }}' if value else f'zeros = {{ dtype = "{dtype}", len = {n} }}'
        self.data = np.full(n, value, TYPES.get(dtype, np.uint16))
        self.n, self.dtype = n, dtype


class Scalar:
    def __init__(self, dtype, value):
        self.text = f"{dtype} = {value}"
        self.dtype, self.data = dtype, value


def bf16_bits(x):
    """Nearest bfloat16, ties to even, of finite float32 values."""
    b = np.asarray(x, np.float32).view(np.uint32)
    return ((b + 0x7FFF + ((b >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_round(x):
    # The launch file rounds a double once; going through float32 is the same unless a tie appears on the way.
    return (bf16_bits(np.asarray(x).astype(np.float32)).astype(np.uint32) << 16).view(np.float32)


class Close:
    """An expected output with a tolerance."""

    def __init__(self, value, rel=0.0, abs=0.0):
        self.value, self.rel, self.abs = np.asarray(value, np.float64), rel, abs


def hide_paths(ptx):
    """Leaves base names in `.file` and blanks the compilation folder in the debug data, length kept."""
    ptx = re.sub(r'(\.file\s+\d+\s+")[^"]*/([^"/]+")', r"\1\2", ptx)
    out, inside = [], False
    for line in ptx.splitlines():
        inside = inside or "DW_AT_comp_dir" in line
        if inside and (m := re.match(r"(\s*\.b8 )(\d+)(.*)", line)):
            inside = m[2] != "0"
            line = f"{m[1]}{46 if inside else 0}{m[3]}"
        out.append(line.rstrip())
    return "\n".join(out) + "\n"


def write(producer, name, ptx, entry, grid, block, shared, args, expected, note=""):
    """One case. `args` are what the parameters get; `expected` maps their numbers to arrays."""
    folder = HERE / producer
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.ptx").write_text(hide_paths(ptx))
    lines = [f'module = "{name}.ptx"', f'kernel = "{entry}"', f"grid = [{', '.join(map(str, grid))}]",
             f"block = [{', '.join(map(str, block))}]"]
    if shared:
        lines.append(f"dynamic_shared = {shared}")
    for a in args:
        lines += ["", "[[arg]]", a.text]
    (folder / f"{name}.toml").write_text("\n".join(lines) + "\n")
    rules = []
    for k, want in expected.items():
        if isinstance(want, Close):
            rules.append(f"{producer}/{name} arg{k} rel {want.rel:g} abs {want.abs:g}")
            want = want.value
        np.save(folder / f"{name}.arg{k}.expected.npy", np.ascontiguousarray(want))
    return rules


def main():
    wanted = sys.argv[1:] or ["triton", "numba", "clang"]
    table = HERE / "tolerance.txt"
    old = table.read_text().splitlines() if table.exists() else []
    rules = [r for r in old if r and not r.startswith("#") and r.split("/")[0] not in wanted]
    for producer in wanted:
        module = __import__(f"cases_{producer}")
        for rule in module.cases():
            rules += rule
    head = "# PRODUCER/CASE ARGUMENT rel R abs A: outputs that may differ from their expected value by A + R * |value|.\n"
    table.write_text(head + "\n".join(sorted(rules)) + "\n")


if __name__ == "__main__":
    sys.modules["generate"] = sys.modules["__main__"]
    main()
