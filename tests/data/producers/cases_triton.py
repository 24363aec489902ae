"""Launches of triton_kernels.py and what NumPy says they give."""

import re
from math import erf

import numpy as np
import triton
import triton_kernels as kernels
from generate import Close, Full, Random, Scalar, bf16_bits, write
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

POINTERS = {"f16": "*fp16", "bf16": "*bf16", "f32": "*fp32", "f64": "*fp64"}
SCALARS = {"f32": "fp32", "f64": "fp64"}


def case(name, args, grid, expected, warps=4, arch=90, file=None, **constants):
    fn = getattr(kernels, name)
    runtime = [p for p in fn.arg_names if p not in constants]
    signature = {p: POINTERS.get(a.dtype, "*" + a.dtype) if not isinstance(a, Scalar) else SCALARS.get(a.dtype, a.dtype)
                 for p, a in zip(runtime, args, strict=True)}
    signature = {p: signature.get(p, "constexpr") for p in fn.arg_names}
    source = ASTSource(fn, signature=signature, constexprs=constants)
    built = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps})
    ptx = built.asm["ptx"]
    entry = built.metadata.name
    extra = re.search(r"\.entry \w+\((.*?)\)\s*\n", ptx, re.S)[1].count(".param") - len(args)
    # Triton adds pointers to its scratch buffers, here of no bytes.
    assert built.metadata.global_scratch_size == 0 and built.metadata.profile_scratch_size == 0
    args = list(args) + [Scalar("u64", 0)] * extra
    threads = built.metadata.num_warps * 32
    shared = built.metadata.shared
    yield write("triton", file or name, ptx, entry, (*grid, 1, 1)[:3], (threads, 1, 1), shared, args, expected)


def double(a):
    return a.data.astype(np.float64)


def philox(seed, n):
    """First word of Philox 4x32-10 with counter (i, 0, 0, 0)."""
    m32 = np.uint64(0xFFFFFFFF)
    c = [np.arange(n, dtype=np.uint64)] + [np.zeros(n, np.uint64)] * 3
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[2] * np.uint64(0xCD9E8D57), c[0] * np.uint64(0xD2511F53)
        c = [(a >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), a & m32, (b >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), b & m32]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0].astype(np.uint32)


def cases():
    n = 700
    x, y = Random("f32", n, 1, -4, 4), Random("f32", n, 2, -4, 4)
    o, size = Full("f32", n), Scalar("i32", n)
    yield from case("vector_add", [x, y, o, size], (3,), {2: x.data + y.data}, B=256)
    yield from case("relu_tail", [x, o, size], (6,), {1: np.maximum(x.data, 0)}, B=128)
    want = np.array([0.5 * v * (1 + erf(v / 2**0.5)) for v in double(x)])
    yield from case("gelu", [x, o, size], (3,), {1: Close(want, 2e-6, 1e-6)}, B=256)

    rows, cols = 5, 300
    x = Random("f32", rows * cols, 3, -3, 3)
    w, b, o = Random("f32", cols, 4, 0.5, 1.5), Random("f32", cols, 5, -1, 1), Full("f32", rows * cols)
    c, eps = Scalar("i32", cols), Scalar("f32", 1e-5)
    v = double(x).reshape(rows, cols)
    e = np.exp(v - v.max(1, keepdims=True))
    yield from case("softmax", [x, o, c], (rows,), {1: Close((e / e.sum(1, keepdims=True)).ravel(), 4e-6)}, B=512)
    d = v - v.mean(1, keepdims=True)
    want = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * double(w) + double(b)
    yield from case("layer_norm", [x, w, b, o, c, eps], (rows,), {3: Close(want.ravel(), 2e-6, 2e-6)}, B=512)
    want = v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-5) * double(w)
    yield from case("rms_norm", [x, w, o, c, eps], (rows,), {2: Close(want.ravel(), 2e-6)}, B=512, warps=8)
    label = Random("i32", rows, 6, 0, cols)
    want = np.log(e.sum(1)) + v.max(1) - v[np.arange(rows), label.data]
    yield from case("cross_entropy", [x, label, Full("f32", rows), c], (rows,), {2: Close(want, 2e-6, 2e-6)}, B=512)

    x = Random("f32", 32 * 64, 7, -1, 1)
    want = double(x).reshape(32, 64).sum(1)
    yield from case("row_sum", [x, Full("f32", 32)], (1,), {1: Close(want, 0, 1e-5)}, R=32, C=64)
    x = Random("i32", 4 * 512, 8)
    v = x.data.reshape(4, 512)
    yield from case("row_max_int", [x, Full("i32", 4), Full("i32", 4)], (4,), {1: v.max(1), 2: v.min(1)}, B=512)
    x = Random("i32", 4 * 256, 9, 0, 50)
    v = x.data.reshape(4, 256)
    yield from case("argmax", [x, Full("i32", 4)], (4,), {1: v.argmax(1).astype(np.int32)}, B=256)
    yield from case("cumulative_sum", [x, Full("i32", 1024)], (4,), {1: v.cumsum(1).astype(np.int32).ravel()}, B=256)
    a, b = Random("f32", 256, 10, 0.2, 0.95), Random("f32", 256, 11, -1, 1)
    h, want = 0.0, []
    for k, s in zip(double(a), double(b)):
        h = k * h + s
        want.append(h)
    yield from case("linear_scan", [a, b, Full("f32", 256)], (1,), {2: Close(want, 4e-6, 4e-6)}, B=256)
    a, b = Random("f32", 16 * 24, 12, -1, 1), Random("f32", 24 * 32, 13, -1, 1)
    want = double(a).reshape(16, 24) @ double(b).reshape(24, 32)
    yield from case("matmul_by_sum", [a, b, Full("f32", 512)], (1,), {2: Close(want.ravel(), 0, 4e-6)}, M=16, N=32, K=24)

    x, i = Random("f32", 100, 14), Random("i32", n, 15, -20, 100)
    want = np.where(i.data >= 0, x.data[np.maximum(i.data, 0)], np.float32(-1))
    yield from case("gather", [x, i, Full("f32", n), size], (3,), {2: want}, B=256)
    # Several elements go to one place; which is last is not defined, so all have the same value.
    i = Random("i32", n, 16, 0, 4096)
    ones = Full("f32", n, 2.5)
    want = np.zeros(4096, np.float32)
    want[i.data] = 2.5
    yield from case("scatter", [ones, i, Full("f32", 4096), size], (3,), {2: want}, B=256)
    x = Random("i32", n, 17, 0, 20)
    want = np.bincount(x.data, minlength=20).astype(np.int32)
    yield from case("atomic_histogram", [x, Full("i32", 20), size], (3,), {1: want}, B=256)
    x = Random("i32", 1024, 18, 0, 64)
    want = np.bincount(x.data, minlength=64).astype(np.int32)
    yield from case("block_histogram", [x, Full("i32", 64)], (2,), {1: want}, B=512, BINS=64)
    x = Random("i32", n, 19)
    v, start = x.data, 1000
    parts = [(np.maximum, v), (np.minimum, v), (np.bitwise_and, v | 255), (np.bitwise_or, v & 0xFFF0), (np.bitwise_xor, v)]
    want = np.full(40, start, np.int32)
    for p, (op, values) in enumerate(parts):
        op.at(want, 8 * p + (v & 7), values)
    yield from case("atomic_kinds", [x, Full("i32", 40, start), size], (3,), {1: want}, B=256)

    x = Random("f32", n, 20, -4, 4)
    want = np.clip(x.data, np.float32(-1.5), np.float32(2.25))
    want[::3] *= -1
    args = [x, Full("f32", n), size, Scalar("f32", -1.5), Scalar("f32", 2.25)]
    yield from case("where_clamp", args, (3,), {1: want}, B=256)
    x = Random("i32", 2 * 128, 21)
    v = np.sort(x.data.reshape(2, 128), 1)
    yield from case("sort_rows", [x, Full("i32", 256)], (2,), {1: v.ravel()}, B=128)
    yield from case("top_k", [x, Full("i32", 16)], (2,), {1: v[:, ::-1][:, :8].ravel()}, B=128, K=8)

    x, y = Random("i32", n, 22, -100000, 100000), Random("i32", n, 23, 1, 300)
    a, b = x.data.astype(np.int64), y.data.astype(np.int64)
    q = np.sign(a) * (np.abs(a) // b)
    want = np.concatenate([q, a - q * b, (a << (b & 31)) ^ (a >> 3), np.abs(a) & ~b | np.minimum(a, b)])
    yield from case("integer_ops", [x, y, Full("i32", 4 * n), size], (3,), {2: want.astype(np.int32)}, B=256)
    x, y = Random("u32", n, 24), Random("u32", n, 25)
    wide = x.data.astype(np.uint64) * y.data.astype(np.uint64)
    want = np.concatenate([wide >> np.uint64(32), wide % np.uint64(1000003)]).astype(np.uint32)
    yield from case("mul_high", [x, y, Full("u32", 2 * n), size], (3,), {2: want}, B=256)

    x = Random("f32", n, 26, -70, 70)
    outs = {1: x.data.astype(np.float16), 2: bf16_bits(x.data)}
    yield from case("narrow_floats", [x, Full("f16", n), Full("bf16", n), size], (3,), outs, B=256)
    x, y = Random("f16", n, 27, -8, 8), Random("f16", n, 28, -8, 8)
    want = (x.data * y.data).astype(np.float32) + np.maximum(x.data, y.data).astype(np.float32)
    yield from case("half_math", [x, y, Full("f32", n), size], (3,), {2: want}, B=256)
    x, y = Random("bf16", n, 29, -8, 8), Random("bf16", n, 30, -8, 8)
    yield from case("bfloat_add", [x, y, Full("f32", n), size], (3,), {2: x.data + y.data}, B=256)
    x = Random("f32", n, 31, -300, 300)
    whole = x.data.astype(np.int32)
    outs = {1: whole, 2: whole.astype(np.int8).astype(np.float32)}
    yield from case("float_to_int", [x, Full("i32", n), Full("f32", n), size], (3,), outs, B=256)

    q, k, s = Random("f32", 4 * 64, 32, -1, 1), Random("f32", 4 * 32, 33, -1, 1), Random("f32", 4 * 32, 34, -1, 1)
    a, b = double(q).reshape(4, 2, 32).transpose(1, 0, 2)
    kk, ss = double(k).reshape(4, 32), double(s).reshape(4, 32)
    want = np.stack([a * kk - b * ss, b * kk + a * ss], 1)
    yield from case("rope", [q, k, s, Full("f32", 256)], (4,), {3: Close(want.ravel(), 0, 2e-7)}, HALF=32, warps=1)
    x, p, seed = Random("f32", n, 35, -1, 1), 0.3, 1234
    word = philox(seed, n).view(np.int32)
    uniform = np.where(word < 0, -word - 1, word).astype(np.float32) * np.float32(4.6566127342e-10)
    want = np.where(uniform > np.float32(p), x.data, np.float32(0))
    args = [x, Full("f32", n), size, Scalar("f32", p), Scalar("i32", seed)]
    yield from case("dropout", args, (3,), {1: want}, B=256)
    want = philox(99, 512).view(np.int32)
    yield from case("random_integers", [Full("i32", 512), Scalar("i32", 99)], (4,), {0: want}, B=128)
    x = Random("f32", 32 * 64, 36)
    want = x.data.reshape(32, 64).T.ravel()
    yield from case("transpose", [x, Full("f32", 2048)], (1,), {1: want}, R=32, C=64)

    x = Random("f32", n, 37, -9, 9)
    v = x.data
    want = np.concatenate([np.floor(v), np.ceil(v), np.rint(v), np.sign(v), np.sqrt(np.abs(v)), v / np.float32(3.7)])
    yield from case("roundings", [x, Full("f32", 6 * n), size], (3,), {1: want}, B=256)
    x = Random("f32", n, 38, 0.1, 6)
    v = double(x)
    fs = [np.exp2, np.log2, lambda v: v**-0.5, np.sqrt, np.sin, np.cos, np.log, np.tanh]
    want = np.concatenate([f(v) for f in fs])
    yield from case("transcendental", [x, Full("f32", 8 * n), size], (3,), {1: Close(want, 1e-6, 3e-7)}, B=256)

    x = Random("i32", 200, 39, 1, 1000)
    steps = []
    for v in x.data.tolist():
        count = 0
        while v > 1:
            v, count = (v // 2 if v % 2 == 0 else 3 * v + 1), count + 1
        steps.append(count)
    args = [x, Full("i32", 200), Scalar("i32", 200)]
    yield from case("collatz", args, (2,), {1: np.array(steps, np.int32)}, B=128)
    x, y = Random("f64", 1000, 40, -1, 1), Random("f64", 1000, 41, -1, 1)
    want = np.array([np.dot(x.data, y.data)])
    yield from case("double_dot", [x, y, Full("f64", 1), Scalar("i32", 1000)], (1,), {2: Close(want, 0, 1e-13)}, B=128)

    a, b = Random("f16", 64 * 32, 42, -1, 1), Random("f16", 32 * 32, 43, -1, 1)
    want = Close((double(a).reshape(64, 32) @ double(b).reshape(32, 32)).ravel(), 0, 1e-5)
    for arch in (80, 90):
        yield from case("matmul_dot", [a, b, Full("f32", 2048)], (1,), {2: want}, arch=arch,
                        file=f"matmul_dot.sm_{arch}", M=64, N=32, K=32)

    # Products in single precision without tensor cores; the loop's loads become cp.async.
    a, b = Random("f32", 16 * 128, 44, -1, 1), Random("f32", 128 * 16, 45, -1, 1)
    want = Close((double(a).reshape(16, 128) @ double(b).reshape(128, 16)).ravel(), 0, 1e-5)
    yield from case("matmul_ieee", [a, b, Full("f32", 256)], (1,), {2: want}, arch=80, M=16, N=16, K=128, STEP=32)
    x = Random("f32", 2 * 256, 46, -9, 9)
    outs = {1: x.data.reshape(2, 256).max(1)}
    for arch in (90, 100, 120):
        yield from case("row_max_float", [x, Full("f32", 2)], (2,), outs, arch=arch, file=f"row_max_float.sm_{arch}",
                        B=256)
    # The order of the blocks does not matter when all values are equal.
    x, total = Full("i32", 9, 2), 1
    for _ in range(9):
        total = total * 3 + 2
    args = [x, Full("i32", 1), Full("i32", 1, 1)]
    yield from case("spin_lock", args, (9,), {1: np.zeros(1, np.int32), 2: np.array([total], np.int32)})
