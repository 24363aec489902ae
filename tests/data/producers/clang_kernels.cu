// Small CUDA kernels that need no toolkit's headers, compiled to PTX by clang alone; see generate.py.
#define kernel extern "C" __attribute__((global)) void
#define device __attribute__((device))
#define shared __attribute__((shared))

device static int thread() {
    return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
}

kernel saxpy(int n, float a, const float *x, float *y) {
    int i = thread();
    if (i < n) y[i] = __builtin_fmaf(a, x[i], y[i]);
}

kernel warp_sum(const int *x, int *o) {
    int i = thread();
    int v = x[i];
    for (int step = 16; step; step >>= 1) v += __nvvm_shfl_sync_bfly_i32(~0u, v, step, 31);
    if (i % 32 == 0) o[i / 32] = v;
}

kernel reverse_block(int *x) {
    shared static int tile[128];
    int t = __nvvm_read_ptx_sreg_tid_x();
    tile[t] = x[thread()];
    __syncthreads();
    x[thread()] = tile[127 - t];
}

kernel histogram(int n, const int *x, int *bins) {
    int i = thread();
    if (i < n) __nvvm_atom_add_gen_i(bins + x[i], 1);
}

// A jump table or a tree of branches, and lanes that take all of them.
kernel interpreter(int n, const unsigned *x, unsigned *o) {
    int i = thread();
    if (i >= n) return;
    unsigned v = x[i], acc = 1;
    for (int k = 0; k < 10; ++k, v >>= 3) {
        switch (v & 7) {
        case 0: acc += 3; break;
        case 1: acc *= 5; break;
        case 2: acc ^= acc >> 7; break;
        case 3: acc = acc << 5 | acc >> 27; break;
        case 4: acc -= v; break;
        case 5: acc = acc % 1000003; break;
        case 6: acc = ~acc; break;
        default: acc = acc / 3 + k; break;
        }
    }
    o[i] = acc;
}

device __attribute__((noinline)) static unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

kernel recursion(unsigned *o) {
    unsigned i = thread();
    o[i] = ackermann(i & 1, i >> 1 & 7);
}

struct Affine {
    double scale[2];
    int shift;
    char negate;
};

kernel struct_by_value(int n, struct Affine f, const double *x, double *o) {
    int i = thread();
    if (i >= n) return;
    double v = x[i] * f.scale[i & 1] + f.shift;
    o[i] = f.negate ? -v : v;
}

typedef unsigned (*Step)(unsigned);
device __attribute__((noinline)) static unsigned twice(unsigned x) { return 2 * x; }
device __attribute__((noinline)) static unsigned square(unsigned x) { return x * x; }
device __attribute__((noinline)) static unsigned minus(unsigned x) { return -x; }

kernel function_pointers(const unsigned *x, unsigned *o) {
    int i = thread();
    Step steps[3] = {twice, square, minus};
    o[i] = steps[x[i] % 3](x[i]);
}
