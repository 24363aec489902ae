"""Launches of numba_kernels.py and what NumPy says they give."""

import math
from unittest import mock

import numba_kernels as kernels
import numpy as np
from generate import Close, Full, Random, Scalar, write
from numba import cuda, types
from numba.cuda.cudadrv import nvvm

Unit = nvvm.CompilationUnit

NUMBA = {"i32": types.int32, "u32": types.uint32, "i64": types.int64, "f32": types.float32, "f64": types.float64}
ITEM = {"i32": 4, "u32": 4, "i64": 8, "f32": 4, "f64": 8}


def flat(arg, shape):
    """Numba passes an array as seven or more parameters; only the pointer, shape and strides matter."""
    item = ITEM[arg.dtype]
    strides = [item * math.prod(shape[k + 1:]) for k in range(len(shape))]
    word = lambda v: Scalar("u64", v)  # noqa: E731
    return [word(0), word(0), word(math.prod(shape)), word(item), arg, *map(word, shape), *map(word, strides)]


def case(name, args, grid, block, expected, fma=True):
    """`args` are scalars, buffers, or buffers with a shape; keys of `expected` number these."""
    kinds, params, place = [], [], {}
    for k, a in enumerate(args):
        a, shape = a if isinstance(a, tuple) else (a, getattr(a, "n", None))
        if isinstance(a, Scalar):
            kinds.append(NUMBA[a.dtype])
            params.append(a)
            continue
        shape = (shape,) if isinstance(shape, int) else shape
        kinds.append(types.Array(NUMBA[a.dtype], len(shape), "C"))
        place[k] = len(params) + 4
        params += flat(a, shape)
    # NumPy rounds products, so where that shows the compiler must not fuse; Numba has no option for it.
    with mock.patch.object(nvvm, "CompilationUnit", lambda options: Unit({**options, "fma": fma})):
        ptx, _ = cuda.compile_ptx(getattr(kernels, name), tuple(kinds), cc=(8, 0), lineinfo=True)
    ptx = ptx if isinstance(ptx, str) else ptx.decode()
    entry = ptx[ptx.index(".entry ") + 7:].split("(")[0].strip()
    # The mangled name is four times longer than all else together.
    ptx = ptx.replace(entry, name)
    expected = {place[k]: v for k, v in expected.items()}
    yield write("numba", name, ptx, name, (*grid, 1, 1)[:3], (*block, 1, 1)[:3], 0, params, expected)


def cases():
    n = 500
    x, y = Random("f32", n, 51, -4, 4), Random("f32", n, 52, -4, 4)
    yield from case("vector_add", [x, y, Full("f32", n)], (4,), (128,), {2: x.data + y.data})
    want = np.float32(1.5) * x.data + y.data
    yield from case("grid_stride_axpy", [Scalar("f32", 1.5), x, y], (2,), (64,), {2: want}, fma=False)
    x = Random("i32", n, 53, -1000, 1000)
    want = np.pad(x.data, (0, 12)).reshape(4, 128).sum(1).astype(np.int32)
    yield from case("block_sum", [x, Full("i32", 4)], (4,), (128,), {1: want})
    x = Random("i32", 256, 54, -1000, 1000)
    want = x.data.reshape(8, 32).cumsum(1).astype(np.int32).ravel()
    yield from case("warp_scan", [x, Full("i32", 256)], (2,), (128,), {1: want})

    x = Random("i32", 128, 55, 0, 12)
    v, bit = x.data.reshape(4, 32), 1 << np.arange(32, dtype=np.uint64)
    odd = ((v & 1).astype(np.uint64) * bit).sum(1)
    same = ((v[:, :, None] == v[:, None, :]) * bit).sum(2)
    third = (v[:, :, None] == v[:, None, :]).sum(2) + 100 * (v == 7).any(1)[:, None] + 1000 * (v < 9).all(1)[:, None]
    want = np.stack([np.repeat(odd, 32), same.ravel(), third.ravel()], 1).astype(np.uint32)
    yield from case("votes", [x, (Full("u32", 384), (128, 3))], (1,), (128,), {1: want.ravel()})

    x = Random("i32", n, 56, 0, 30)
    want = np.bincount(x.data, minlength=30).astype(np.int32)
    yield from case("histogram", [x, Full("i32", 30)], (4,), (128,), {1: want})
    x = Random("f64", n, 57, -9, 9)
    want = np.array([x.data.max(), x.data.min(), n, 0.0])
    yield from case("atomic_extremes", [x, Full("f64", 4)], (4,), (128,), {1: want})

    x = Random("f32", 40 * 24, 58)
    want = x.data.reshape(40, 24).T.ravel()
    yield from case("transpose", [(x, (40, 24)), (Full("f32", 960), (24, 40))], (2, 3), (16, 16), {1: want})
    a, b = Random("f32", 16 * 24, 59, -1, 1), Random("f32", 24 * 16, 60, -1, 1)
    want = a.data.reshape(16, 24).astype(float) @ b.data.reshape(24, 16).astype(float)
    args = [(a, (16, 24)), (b, (24, 16)), (Full("f32", 256), (16, 16))]
    yield from case("tiled_matmul", args, (2, 2), (8, 8), {2: Close(want.ravel(), 0, 4e-6)})

    h, w = 20, 36
    cr = -2.0 + 3.0 * np.arange(w)[None, :] / w + np.zeros((h, 1))
    ci = -1.0 + 2.0 * np.arange(h)[:, None] / h + np.zeros((1, w))
    want, a, b = np.zeros((h, w), np.int32), np.zeros((h, w)), np.zeros((h, w))
    for _ in range(60):
        go = a * a + b * b <= 4.0
        a, b = np.where(go, a * a - b * b + cr, a), np.where(go, 2.0 * a * b + ci, b)
        want += go
    args = [(Full("i32", h * w), (h, w)), Scalar("i32", 60)]
    yield from case("mandelbrot", args, (5, 5), (8, 4), {0: want.ravel()}, fma=False)

    x = Random("u32", 256, 61)
    want = np.sort(x.data.reshape(2, 128), 1).ravel()
    yield from case("bitonic_sort", [x], (2,), (128,), {0: want})
    x = Random("u32", 200, 62)
    v = x.data
    bits = (v[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    clz = np.where(v == 0, 32, np.argmax(bits[:, ::-1], 1))
    brev = (bits[:, ::-1].astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1)
    ffs = np.where(v == 0, 0, np.argmax(bits, 1) + 1)
    want = np.stack([bits.sum(1), clz, brev, ffs, np.where(v > 5, v, 17)], 1).astype(np.uint32)
    yield from case("bit_tricks", [x, (Full("u32", 1000), (200, 5))], (2,), (128,), {1: want.ravel()})
    x, y = Random("i64", n, 63, 1, 100000), Random("i64", n, 64, 1, 100000)
    yield from case("gcd", [x, y, Full("i64", n)], (4,), (128,), {2: np.gcd(x.data, y.data)})
    # The launch file's generator makes no sorted array; a constant one is.
    table, x = Full("i32", 64, 50), Random("i32", n, 65, 0, 100)
    yield from case("binary_search", [table, x, Full("i32", n)], (4,), (128,),
                    {2: np.searchsorted(table.data, x.data).astype(np.int32)})

    s, k, t = Random("f64", 200, 66, 5, 30), Random("f64", 200, 67, 1, 100), Random("f64", 200, 68, 0.25, 10)
    cdf = lambda z: np.array([0.5 * math.erfc(-q / math.sqrt(2)) for q in z])  # noqa: E731
    d1 = (np.log(s.data / k.data) + 0.065 * t.data) / (0.3 * np.sqrt(t.data))
    want = s.data * cdf(d1) - k.data * np.exp(-0.02 * t.data) * cdf(d1 - 0.3 * np.sqrt(t.data))
    yield from case("black_scholes", [s, k, t, Full("f64", 200)], (2,), (128,), {3: Close(want, 1e-12, 1e-13)})
    x = Random("f32", 200, 69, 0.01, 9)
    v = x.data.astype(float)
    twice = (x.data * np.float32(2)).astype(float)
    want = np.stack([np.sin(v), np.exp(v), np.log1p(v), np.arctan2(v, 0.5), v**float(np.float32(1.7)),
                     np.floor(v) + np.trunc(twice)], 1)
    yield from case("single_math", [x, (Full("f32", 1200), (200, 6))], (2,), (128,), {1: Close(want.ravel(), 1e-6, 2e-7)})

    want = []
    for i in range(128):
        z, count = complex(i / 128 * 3 - 1.5, 0.1), 0
        while abs(z) < 4.0 and count < 50:
            re = z.real * z.real - z.imag * z.imag
            im = z.real * z.imag + z.imag * z.real
            z, count = complex(re + -0.8, im + 0.156), count + 1
        want.append(count)
    yield from case("julia", [Full("i32", 128)], (1,), (128,), {0: np.array(want, np.int32)}, fma=False)
    x = Random("i32", 100, 70, 0, 1000)
    places = (np.arange(128)[:, None] * 7 + np.arange(8) * 3) % 100
    want = np.sort(x.data[places], 1)[:, 3].astype(np.int32)
    yield from case("local_array", [x, Full("i32", 128)], (1,), (128,), {1: want})
