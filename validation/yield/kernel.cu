// What a yielding group does while others wait. NANOSLEEP 0x7b is replaced by YIELD in the y_ kernels.
__device__ __forceinline__ unsigned ck() { unsigned c; asm volatile("mov.u32 %0,%%clock;" : "=r"(c) :: "memory"); return c; }
#define GID (blockIdx.x * 32 + threadIdx.x)
#define N (gridDim.x * 32)
#define PUT(k, c) clk[(k) * N + t] = (c)
#define ARM(m, W) { c0 = ck(); v = v * m + 3; W; c1 = ck(); v = v * m + 5; W; c2 = ck(); v = v * m + 7; W; c3 = ck(); }
#define TREE(NAME, W) extern "C" __global__ void NAME(int* out, unsigned* clk, const int* code) { \
    int t = GID, a = code[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0, c3 = 0, c4 = 0; \
    if (a & 2) { if (a & 1) ARM(7, W) else ARM(11, W) } else { if (a & 1) ARM(13, W) else ARM(17, W) } \
    c4 = ck(); out[t] = v; PUT(0, c0); PUT(1, c1); PUT(2, c2); PUT(3, c3); PUT(4, c4); }
#define LOOP(NAME, W) extern "C" __global__ void NAME(int* out, unsigned* clk, const int* trips) { \
    int t = GID, n = trips[t], v = t, i = 0; unsigned c0 = 0, c1 = 0, c2 = 0, c3 = 0, c4 = 0; \
    _Pragma("unroll 1") do { v = v * 3 + 1; unsigned c = ck(); W; c0 = i == 0 ? c : c0; c1 = i == 1 ? c : c1; c2 = i == 2 ? c : c2; c3 = i == 3 ? c : c3; } while (++i < n); \
    c4 = ck(); out[t] = v; PUT(0, c0); PUT(1, c1); PUT(2, c2); PUT(3, c3); PUT(4, c4); }
TREE(y_tree, __nanosleep(123))
TREE(sleep_tree, __nanosleep(2000))
TREE(sleep0_tree, __nanosleep(0))
LOOP(y_loop, __nanosleep(123))
LOOP(sleep_loop, __nanosleep(2000))
