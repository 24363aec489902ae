"""Launches of clang_kernels.cu and what NumPy says they give. All kernels are in one file, compiled at two levels."""

import struct
import subprocess

import numpy as np
from generate import HERE, Full, Random, Scalar, write


class Bytes:
    def __init__(self, data):
        self.text = f'bytes = "{data.hex()}"'


def interpret(x):
    m, out = 0xFFFFFFFF, []
    for v in x.tolist():
        acc = 1
        for k in range(10):
            acc = [acc + 3, acc * 5, acc ^ acc >> 7, acc << 5 | acc >> 27, acc - v, acc % 1000003, ~acc, acc // 3 + k][v & 7] & m
            v >>= 3
        out.append(acc)
    return np.array(out, np.uint32)


def cases():
    for level in ("O0", "O2"):
        command = ["clang-14", "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_80",
                   "-ffp-contract=off", "-Xclang", "-target-feature", "-Xclang", "+ptx72", f"-{level}", "-S", "-o", "-",
                   "clang_kernels.cu"]
        ptx = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout
        yield from launches(ptx, level)


def launches(ptx, level):
    def case(name, args, grid, block, expected):
        rules = write("clang", f"{name}.{level}", ptx, name, (grid, 1, 1), (block, 1, 1), 0, args, expected)
        # One text holds all kernels.
        (HERE / "clang" / f"{name}.{level}.ptx").rename(HERE / "clang" / f"kernels.{level}.ptx")
        toml = HERE / "clang" / f"{name}.{level}.toml"
        toml.write_text(toml.read_text().replace(f"{name}.{level}.ptx", f"kernels.{level}.ptx"))
        return rules

    n, size = 300, Scalar("i32", 300)
    x, y = Random("f32", n, 71, -4, 4), Random("f32", n, 72, -4, 4)
    # 1.5 has two bits: the product is exact in double precision, and so is its sum with y.
    want = (1.5 * x.data.astype(np.float64) + y.data).astype(np.float32)
    yield case("saxpy", [size, Scalar("f32", 1.5), x, y], 3, 128, {3: want})
    x = Random("i32", 256, 73, -1000, 1000)
    want = x.data.reshape(8, 32).sum(1).astype(np.int32)
    yield case("warp_sum", [x, Full("i32", 8)], 2, 128, {1: want})
    yield case("reverse_block", [x], 2, 128, {0: x.data.reshape(2, 128)[:, ::-1].ravel()})
    x = Random("i32", n, 74, 0, 16)
    want = np.bincount(x.data, minlength=16).astype(np.int32)
    yield case("histogram", [size, x, Full("i32", 16)], 3, 128, {2: want})
    x = Random("u32", n, 75)
    yield case("interpreter", [size, x, Full("u32", n)], 3, 128, {2: interpret(x.data)})
    m, k = np.arange(64) & 1, np.arange(64) >> 1 & 7
    want = np.where(m == 0, k + 1, k + 2).astype(np.uint32)
    yield case("recursion", [Full("u32", 64)], 1, 64, {0: want})
    x = Random("f64", n, 76, -1, 1)
    f = Bytes(struct.pack("<ddibxxx", 0.3, -1.7, 5, 1))
    want = -(x.data * np.where(np.arange(n) & 1, -1.7, 0.3) + 5)
    yield case("struct_by_value", [size, f, x, Full("f64", n)], 3, 128, {3: want})
    x = Random("u32", 128, 77)
    v = x.data
    want = np.choose(v % 3, [v * np.uint32(2), v * v, np.uint32(0) - v]).astype(np.uint32)
    yield case("function_pointers", [x, Full("u32", 128)], 1, 128, {1: want})
