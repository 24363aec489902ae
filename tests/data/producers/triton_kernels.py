"""Small Triton kernels, compiled to PTX by generate.py."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def vector_add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def relu_tail(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m, other=0.0)
    tl.store(o + i, tl.maximum(v, 0.0), mask=m)


@triton.jit
def gelu(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(o + i, 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476)), mask=i < n)


@triton.jit
def softmax(x, o, cols, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + row * cols + c, mask=c < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + row * cols + c, e / tl.sum(e, 0), mask=c < cols)


@triton.jit
def layer_norm(x, w, b, o, cols, eps, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < cols
    v = tl.load(x + row * cols + c, mask=m, other=0.0)
    mean = tl.sum(v, 0) / cols
    d = tl.where(m, v - mean, 0.0)
    r = 1.0 / tl.sqrt(tl.sum(d * d, 0) / cols + eps)
    tl.store(o + row * cols + c, d * r * tl.load(w + c, mask=m) + tl.load(b + c, mask=m), mask=m)


@triton.jit
def rms_norm(x, w, o, cols, eps, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < cols
    v = tl.load(x + row * cols + c, mask=m, other=0.0)
    r = tl.rsqrt(tl.sum(v * v, 0) / cols + eps)
    tl.store(o + row * cols + c, v * r * tl.load(w + c, mask=m), mask=m)


@triton.jit
def row_sum(x, o, R: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, R)
    c = tl.arange(0, C)
    tl.store(o + r, tl.sum(tl.load(x + r[:, None] * C + c[None, :]), 1))


@triton.jit
def row_max_int(x, o, p, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + row * B + c)
    tl.store(o + row, tl.max(v, 0))
    tl.store(p + row, tl.min(v, 0))


@triton.jit
def argmax(x, o, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(o + row, tl.argmax(tl.load(x + row * B + c), 0))


@triton.jit
def cumulative_sum(x, o, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(o + row * B + c, tl.cumsum(tl.load(x + row * B + c), 0))


@triton.jit
def _affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def linear_scan(a, b, o, B: tl.constexpr):
    c = tl.arange(0, B)
    i = tl.program_id(0) * B + c
    _, h = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, _affine)
    tl.store(o + i, h)


@triton.jit
def matmul_by_sum(a, b, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for k in range(K):
        acc += tl.load(a + m * K + k) * tl.load(b + k * N + n)
    tl.store(o + m * N + n, acc)


@triton.jit
def gather(x, index, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    j = tl.load(index + i, mask=m, other=0)
    tl.store(o + i, tl.load(x + j, mask=m & (j >= 0), other=-1.0), mask=m)


@triton.jit
def scatter(x, index, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + tl.load(index + i, mask=m), tl.load(x + i, mask=m), mask=m)


@triton.jit
def atomic_histogram(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.atomic_add(o + tl.load(x + i, mask=m, other=0), 1, mask=m)


@triton.jit
def block_histogram(x, o, B: tl.constexpr, BINS: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * B + tl.arange(0, B))
    tl.atomic_add(o + tl.arange(0, BINS), tl.histogram(v, BINS))


@triton.jit
def atomic_kinds(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m, other=0)
    k = v & 7
    tl.atomic_max(o + k, v, mask=m)
    tl.atomic_min(o + 8 + k, v, mask=m)
    tl.atomic_and(o + 16 + k, v | 255, mask=m)
    tl.atomic_or(o + 24 + k, v & 0xFFF0, mask=m)
    tl.atomic_xor(o + 32 + k, v, mask=m)


@triton.jit
def where_clamp(x, o, n, low, high, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    v = tl.where(v > high, high, tl.where(v < low, low, v))
    tl.store(o + i, tl.where(i % 3 == 0, -v, v), mask=i < n)


@triton.jit
def sort_rows(x, o, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.sort(tl.load(x + i)))


@triton.jit
def top_k(x, o, B: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * B + tl.arange(0, B))
    tl.store(o + row * K + tl.arange(0, K), tl.topk(v, K))


@triton.jit
def integer_ops(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a = tl.load(x + i, mask=m, other=1)
    b = tl.load(y + i, mask=m, other=1)
    tl.store(o + i, a // b, mask=m)
    tl.store(o + n + i, a % b, mask=m)
    tl.store(o + 2 * n + i, (a << (b & 31)) ^ (a >> 3), mask=m)
    tl.store(o + 3 * n + i, tl.abs(a) & ~b | tl.minimum(a, b), mask=m)


@triton.jit
def mul_high(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a = tl.load(x + i, mask=m, other=1)
    b = tl.load(y + i, mask=m, other=1)
    tl.store(o + i, tl.umulhi(a, b), mask=m)
    wide = a.to(tl.uint64) * b.to(tl.uint64)
    tl.store(o + n + i, (wide % 1000003).to(tl.uint32), mask=m)


@triton.jit
def narrow_floats(x, h, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    tl.store(h + i, v.to(tl.float16), mask=m)
    tl.store(b + i, v.to(tl.bfloat16), mask=m)


@triton.jit
def half_math(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a = tl.load(x + i, mask=m)
    b = tl.load(y + i, mask=m)
    tl.store(o + i, (a * b).to(tl.float32) + tl.maximum(a, b).to(tl.float32), mask=m)


@triton.jit
def bfloat_add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m).to(tl.float32) + tl.load(y + i, mask=m).to(tl.float32), mask=m)


@triton.jit
def float_to_int(x, o, u, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    tl.store(o + i, v.to(tl.int32), mask=m)
    tl.store(u + i, v.to(tl.int32).to(tl.int8).to(tl.float32), mask=m)


@triton.jit
def rope(q, cos, sin, o, HALF: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, HALF)
    a = tl.load(q + row * 2 * HALF + c)
    b = tl.load(q + row * 2 * HALF + HALF + c)
    k = tl.load(cos + row * HALF + c)
    s = tl.load(sin + row * HALF + c)
    tl.store(o + row * 2 * HALF + c, a * k - b * s)
    tl.store(o + row * 2 * HALF + HALF + c, b * k + a * s)


@triton.jit
def dropout(x, o, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    keep = tl.rand(seed, i) > p
    tl.store(o + i, tl.where(keep, v, 0.0), mask=m)


@triton.jit
def random_integers(o, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.randint(seed, i))


@triton.jit
def transpose(x, o, R: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, R)
    c = tl.arange(0, C)
    v = tl.load(x + r[:, None] * C + c[None, :])
    tl.store(o + c[:, None] * R + r[None, :], tl.trans(v))


@triton.jit
def cross_entropy(x, label, o, cols, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + row * cols + c, mask=c < cols, other=-float("inf"))
    top = tl.max(v, 0)
    total = tl.log(tl.sum(tl.exp(v - top), 0)) + top
    tl.store(o + row, total - tl.load(x + row * cols + tl.load(label + row)))


@triton.jit
def roundings(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    tl.store(o + i, tl.floor(v), mask=m)
    tl.store(o + n + i, tl.ceil(v), mask=m)
    tl.store(o + 2 * n + i, libdevice.rint(v), mask=m)
    tl.store(o + 3 * n + i, tl.where(v > 0, 1.0, tl.where(v < 0, -1.0, 0.0)), mask=m)
    tl.store(o + 4 * n + i, tl.sqrt_rn(tl.abs(v)), mask=m)
    tl.store(o + 5 * n + i, tl.div_rn(v, 3.7), mask=m)


@triton.jit
def transcendental(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m, other=1.0)
    tl.store(o + i, tl.exp2(v), mask=m)
    tl.store(o + n + i, tl.log2(v), mask=m)
    tl.store(o + 2 * n + i, tl.rsqrt(v), mask=m)
    tl.store(o + 3 * n + i, tl.sqrt(v), mask=m)
    tl.store(o + 4 * n + i, tl.sin(v), mask=m)
    tl.store(o + 5 * n + i, tl.cos(v), mask=m)
    tl.store(o + 6 * n + i, tl.log(v), mask=m)
    tl.store(o + 7 * n + i, libdevice.tanh(v), mask=m)


@triton.jit
def collatz(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m, other=1)
    steps = tl.zeros((B,), tl.int32)
    while tl.max(v, 0) > 1:
        more = v > 1
        v = tl.where(more, tl.where(v % 2 == 0, v // 2, 3 * v + 1), v)
        steps += more.to(tl.int32)
    tl.store(o + i, steps, mask=m)


@triton.jit
def double_dot(x, y, o, n, B: tl.constexpr):
    acc = tl.zeros((B,), tl.float64)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        acc += tl.load(x + i, mask=i < n, other=0.0) * tl.load(y + i, mask=i < n, other=0.0)
    tl.store(o, tl.sum(acc, 0))


@triton.jit
def matmul_dot(a, b, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    k = tl.arange(0, K)
    acc = tl.dot(tl.load(a + m * K + k[None, :]), tl.load(b + k[:, None] * N + n))
    tl.store(o + m * N + n, acc)


@triton.jit
def matmul_ieee(a, b, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, STEP):
        k = start + tl.arange(0, STEP)
        acc = tl.dot(tl.load(a + m * K + k[None, :]), tl.load(b + k[:, None] * N + n), acc, input_precision="ieee")
    tl.store(o + m * N + n, acc)


@triton.jit
def row_max_float(x, o, B: tl.constexpr):
    row = tl.program_id(0)
    tl.store(o + row, tl.max(tl.load(x + row * B + tl.arange(0, B)), 0))


@triton.jit
def spin_lock(x, lock, o):
    i = tl.program_id(0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(o, tl.load(o) * 3 + tl.load(x + i))
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)
