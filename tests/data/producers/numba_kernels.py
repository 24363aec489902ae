"""Small Numba CUDA kernels, compiled to PTX by generate.py."""

import math

from numba import cuda, float32, int32, uint32


def vector_add(x, y, o):
    i = cuda.grid(1)
    if i < o.size:
        o[i] = x[i] + y[i]


def grid_stride_axpy(a, x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] = a * x[i] + y[i]


def block_sum(x, o):
    shared = cuda.shared.array(128, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        o[cuda.blockIdx.x] = shared[0]


def warp_scan(x, o):
    i = cuda.grid(1)
    lane = cuda.laneid
    v = x[i]
    step = 1
    while step < 32:
        up = cuda.shfl_up_sync(0xFFFFFFFF, v, step)
        if lane >= step:
            v += up
        step *= 2
    o[i] = v


def votes(x, o):
    i = cuda.grid(1)
    odd = cuda.ballot_sync(0xFFFFFFFF, x[i] & 1)
    same = cuda.match_any_sync(0xFFFFFFFF, x[i])
    o[i, 0] = odd
    o[i, 1] = same
    o[i, 2] = cuda.popc(same) + 100 * cuda.any_sync(0xFFFFFFFF, x[i] == 7) + 1000 * cuda.all_sync(0xFFFFFFFF, x[i] < 9)


def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


def atomic_extremes(x, o):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(o, 0, x[i])
        cuda.atomic.min(o, 1, x[i])
        cuda.atomic.add(o, 2, 1.0)


def transpose(x, o):
    tile = cuda.shared.array((16, 17), float32)
    c, r = cuda.grid(2)
    if r < x.shape[0] and c < x.shape[1]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[r, c]
    cuda.syncthreads()
    r = cuda.blockIdx.x * 16 + cuda.threadIdx.y
    c = cuda.blockIdx.y * 16 + cuda.threadIdx.x
    if r < o.shape[0] and c < o.shape[1]:
        o[r, c] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def tiled_matmul(a, b, o):
    left = cuda.shared.array((8, 8), float32)
    right = cuda.shared.array((8, 8), float32)
    c, r = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    acc = float32(0)
    for k in range(a.shape[1] // 8):
        left[ty, tx] = a[r, k * 8 + tx]
        right[ty, tx] = b[k * 8 + ty, c]
        cuda.syncthreads()
        for j in range(8):
            acc += left[ty, j] * right[j, tx]
        cuda.syncthreads()
    o[r, c] = acc


def mandelbrot(o, limit):
    x, y = cuda.grid(2)
    if y < o.shape[0] and x < o.shape[1]:
        cr = -2.0 + 3.0 * x / o.shape[1]
        ci = -1.0 + 2.0 * y / o.shape[0]
        a = b = 0.0
        n = 0
        while n < limit and a * a + b * b <= 4.0:
            a, b = a * a - b * b + cr, 2.0 * a * b + ci
            n += 1
        o[y, x] = n


def bitonic_sort(x):
    shared = cuda.shared.array(128, uint32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[t] = x[i]
    cuda.syncthreads()
    k = 2
    while k <= 128:
        j = k // 2
        while j > 0:
            other = t ^ j
            if other > t:
                a, b = shared[t], shared[other]
                if (a > b) == ((t & k) == 0):
                    shared[t] = b
                    shared[other] = a
            cuda.syncthreads()
            j //= 2
        k *= 2
    x[i] = shared[t]


def bit_tricks(x, o):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        o[i, 0] = cuda.popc(v)
        o[i, 1] = cuda.clz(v)
        o[i, 2] = cuda.brev(v)
        o[i, 3] = cuda.ffs(v)
        o[i, 4] = cuda.selp(v > 5, v, uint32(17))


def gcd(x, y, o):
    i = cuda.grid(1)
    if i < x.size:
        a, b = x[i], y[i]
        while b != 0:
            a, b = b, a % b
        o[i] = a


def binary_search(table, x, o):
    i = cuda.grid(1)
    if i < x.size:
        low, high = 0, table.size
        while low < high:
            mid = (low + high) // 2
            if table[mid] < x[i]:
                low = mid + 1
            else:
                high = mid
        o[i] = low


def black_scholes(s, k, t, call):
    i = cuda.grid(1)
    if i < s.size:
        root = math.sqrt(t[i])
        d1 = (math.log(s[i] / k[i]) + (0.02 + 0.045) * t[i]) / (0.3 * root)
        d2 = d1 - 0.3 * root
        n1 = 0.5 * math.erfc(-d1 * 0.7071067811865476)
        n2 = 0.5 * math.erfc(-d2 * 0.7071067811865476)
        call[i] = s[i] * n1 - k[i] * math.exp(-0.02 * t[i]) * n2


def single_math(x, o):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        o[i, 0] = math.sin(v)
        o[i, 1] = math.exp(v)
        o[i, 2] = math.log1p(v)
        o[i, 3] = math.atan2(v, float32(0.5))
        o[i, 4] = math.pow(v, float32(1.7))
        o[i, 5] = math.floor(v) + math.trunc(v * float32(2))


def julia(o):
    i = cuda.grid(1)
    z = complex(i / o.size * 3 - 1.5, 0.1)
    n = 0
    while abs(z) < 4.0 and n < 50:
        z = z * z + complex(-0.8, 0.156)
        n += 1
    o[i] = n


def local_array(x, o):
    window = cuda.local.array(8, int32)
    i = cuda.grid(1)
    for k in range(8):
        window[k] = x[(i * 7 + k * 3) % x.size]
    for a in range(1, 8):
        v = window[a]
        b = a - 1
        while b >= 0 and window[b] > v:
            window[b + 1] = window[b]
            b -= 1
        window[b + 1] = v
    o[i] = window[3]
