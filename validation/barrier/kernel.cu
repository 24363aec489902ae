// Block barriers reached in divergent code.
__device__ __forceinline__ unsigned ck() { unsigned c; asm volatile("mov.u32 %0,%%clock;" : "=r"(c) :: "memory"); return c; }
#define T threadIdx.x
#define B blockDim.x

// The same barrier in both arms of a branch.
extern "C" __global__ void bar_both_arms(int* out, unsigned* clk, const int* arm) {
    __shared__ int s[128];
    int t = T, a = arm[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0;
    s[t] = t * 3;
    if (a) { v = v * 5 + 1; c0 = ck(); __syncthreads(); c1 = ck(); v ^= s[B - 1 - t]; }
    else   { v = v * 3 + 7; c0 = ck(); __syncthreads(); c1 = ck(); v += s[B - 1 - t]; }
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[B + t] = c1; clk[2 * B + t] = c2;
}
// The barrier in one arm only: the other lanes skip it.
extern "C" __global__ void bar_one_arm(int* out, unsigned* clk, const int* arm) {
    __shared__ int s[128];
    int t = T, a = arm[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0;
    s[t] = t * 3;
    if (a) { v = v * 5 + 1; c0 = ck(); __syncthreads(); c1 = ck(); v ^= s[B - 1 - t]; }
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[B + t] = c1; clk[2 * B + t] = c2;
}
// A barrier in a loop that lanes leave at different times.
extern "C" __global__ void bar_in_loop(int* out, unsigned* clk, const int* trips) {
    __shared__ int s[128];
    int t = T, n = trips[t], v = t, i = 0; unsigned c0, c1 = 0, c2 = 0;
    s[t] = t; c0 = ck();
    #pragma unroll 1
    do { v = v * 3 + 1; __syncthreads(); v += s[(t + i) % B]; } while (++i < n);
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[B + t] = c1; clk[2 * B + t] = c2;
}
// Lanes leave the kernel before the barrier.
extern "C" __global__ void bar_after_exit(int* out, unsigned* clk, const int* arm) {
    __shared__ int s[128];
    int t = T, a = arm[t], v = t; unsigned c0 = 0, c1 = 0;
    if (a < 0) { out[t] = -1; return; }
    s[t] = t * 3;
    if (a > 0) { int i = 0;
        #pragma unroll 1
        do v = v * 3 + 1; while (++i < a); out[t] = v; }
    c0 = ck(); __syncthreads(); c1 = ck();
    out[t] = v + s[B - 1 - t]; clk[t] = c0; clk[B + t] = c1;
}
// Barriers that also count and vote, after divergent loops.
extern "C" __global__ void bar_count(int* out, const int* trips) {
    int t = T, n = trips[t], v = t, i = 0;
    #pragma unroll 1
    do v = v * 3 + 1; while (++i < n);
    int c = __syncthreads_count(v & 1), a = __syncthreads_and(v > 2), o = __syncthreads_or(v == 77);
    out[t] = c * 4 + (a != 0) * 2 + (o != 0);
}
// The same in one arm, where the other lanes exit.
extern "C" __global__ void bar_count_arm(int* out, const int* trips) {
    int t = T, n = trips[t], v = t, i = 0;
    out[t] = -1;
    if (n > 2) {
        #pragma unroll 1
        do v = v * 3 + 1; while (++i < n);
        int c = __syncthreads_count(v & 1), a = __syncthreads_and(v > 2), o = __syncthreads_or(v == 77);
        out[t] = c * 4 + (a != 0) * 2 + (o != 0);
    }
}
// Named barriers: two warps hand over to two others; thread counts given.
extern "C" __global__ void bar_named(int* out, const int* x) {
    __shared__ int s[128];
    int t = T, w = t >> 5;
    if (w < 2) { s[t] = x[t] * 2; asm volatile("bar.arrive 1, 128;" ::: "memory"); out[t] = s[t]; }
    else { asm volatile("bar.sync 1, 128;" ::: "memory"); out[t] = s[t - 64] + x[t]; }
    if (w & 1) { asm volatile("bar.sync 2, 64;" ::: "memory"); out[t] += 1; }
    else       { asm volatile("bar.sync 3, 64;" ::: "memory"); out[t] += 2; }
}
// A barrier count smaller than the block, reached by some lanes of each warp.
extern "C" __global__ void bar_partial_count(int* out, unsigned* clk, const int* arm, int count) {
    int t = T, a = arm[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0;
    if (a) { c0 = ck(); v = v * 5 + 1; asm volatile("barrier.sync 1, %0;" :: "r"(count) : "memory"); c1 = ck(); }
    else { v = v * 3; c0 = ck(); }
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[B + t] = c1; clk[2 * B + t] = c2;
}
