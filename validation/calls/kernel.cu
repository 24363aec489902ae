// Calls through a register, recursion, and subroutines reached from several places.
__device__ __forceinline__ unsigned ck() { unsigned c; asm volatile("mov.u32 %0,%%clock;" : "=r"(c) :: "memory"); return c; }
__device__ __noinline__ int f0(int x, unsigned* c) { *c = ck(); return x * 3 + 1; }
__device__ __noinline__ int f1(int x, unsigned* c) { *c = ck(); int s = 0; for (int i = 0; i < (x & 7); ++i) s += x * i; return s; }
__device__ __noinline__ int f2(int x, unsigned* c) { *c = ck(); return (x ^ 0x155) - (x >> 2); }
__device__ __noinline__ int f3(int x, unsigned* c) { *c = ck(); return x / 7 + x % 5; }
__device__ __noinline__ int f4(int x, unsigned* c) { *c = ck(); return __popc(x) * 100; }
__device__ __noinline__ int f5(int x, unsigned* c) { *c = ck(); return x & 1 ? -x : x + 9; }
typedef int (*fn)(int, unsigned*);
__device__ fn table[6] = { f0, f1, f2, f3, f4, f5 };
extern "C" __global__ void by_pointer(int* out, unsigned* clk, const int* sel) {
    int t = blockIdx.x * 32 + threadIdx.x, n = gridDim.x * 32; unsigned c0 = 0, c1;
    int v = table[sel[t]](t * 37, &c0);
    c1 = ck();
    out[t] = v; clk[t] = c0; clk[n + t] = c1;
}
struct Shape { __device__ virtual float area() const = 0; float a, b; };
struct Box : Shape { __device__ float area() const override { return a * b; } };
struct Disc : Shape { __device__ float area() const override { return 3.14159265f * a * a; } };
struct Ring : Shape { __device__ float area() const override { float s = 0; for (int i = 0; i < (int)b; ++i) s += a * i; return s; } };
extern "C" __global__ void virtual_area(float* out, const int* kind, const float* p) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    Box x; Disc y; Ring z; Shape* s = &x; int k = kind[t];
    if (k == 1) s = &y; else if (k == 2) s = &z;
    s->a = p[2 * t]; s->b = p[2 * t + 1];
    out[t] = s->area();
}
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void fibonacci(int* out, const int* n) { int t = threadIdx.x; out[t] = fib(n[t]); }
__device__ __noinline__ int ack(int m, int n) { if (m == 0) return n + 1; if (n == 0) return ack(m - 1, 1); return ack(m - 1, ack(m, n - 1)); }
extern "C" __global__ void ackermann(int* out, const int* n) { int t = threadIdx.x; out[t] = ack(n[t] & 3, n[t] >> 2); }
__device__ __noinline__ int gcd(int a, int b) { while (b) { int r = a % b; a = b; b = r; } return a; }
extern "C" __global__ void two_sites(int* out, const int* x) {
    int t = threadIdx.x, v = x[t];
    if (v & 1) v = gcd(v, 360) * 5; else v = gcd(v + 7, 5040) + 3;
    out[t] = v;
}
__device__ void qs(int* a, int lo, int hi) {
    while (lo < hi) {
        int p = a[(lo + hi) >> 1], i = lo, j = hi;
        while (i <= j) { while (a[i] < p) ++i; while (a[j] > p) --j; if (i <= j) { int u = a[i]; a[i] = a[j]; a[j] = u; ++i; --j; } }
        if (j - lo < hi - i) { if (lo < j) qs(a, lo, j); lo = i; } else { if (i < hi) qs(a, i, hi); hi = j; }
    }
}
extern "C" __global__ void quicksort(int* data, int n) { int t = threadIdx.x; qs(data + t * n, 0, n - 1); }
