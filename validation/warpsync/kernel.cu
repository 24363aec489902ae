// Warp-level synchronisation reached in divergent code. Every kernel stores, per lane, the clock at each event:
// lanes that share a value were issued together, and the values give the order.
__device__ __forceinline__ unsigned ck() { unsigned c; asm volatile("mov.u32 %0,%%clock;" : "=r"(c) :: "memory"); return c; }
#define GID (blockIdx.x * 32 + threadIdx.x)
#define N (gridDim.x * 32)

// One full-mask sync in each arm of a branch.
extern "C" __global__ void arms_all(int* out, unsigned* clk, const int* arm) {
    int t = GID, a = arm[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0;
    if (a) { c0 = ck(); v = v * 5 + 1; __syncwarp(); c1 = ck(); v ^= 0x55; }
    else   { c0 = ck(); v = v * 3 + 7; __syncwarp(); c1 = ck(); v += 9; }
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[N + t] = c1; clk[2 * N + t] = c2;
}
// A sync under a run-time mask in each arm.
extern "C" __global__ void arms_mask(int* out, unsigned* clk, const int* arm, const unsigned* mask) {
    int t = GID, a = arm[t], v = t; unsigned m = mask[t], c0 = 0, c1 = 0, c2 = 0;
    if (a) { c0 = ck(); v = v * 5 + 1; __syncwarp(m); c1 = ck(); v ^= 0x55; }
    else   { c0 = ck(); v = v * 3 + 7; __syncwarp(m); c1 = ck(); v += 9; }
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[N + t] = c1; clk[2 * N + t] = c2;
}
// Lanes come out of a loop one after the other and meet under a run-time mask; negative trips leave first.
extern "C" __global__ void late_mask(int* out, unsigned* clk, const int* trips, const unsigned* mask) {
    int t = GID, n = trips[t], v = t; unsigned m = mask[t], c0 = 0, c1 = 0, c2 = 0;
    if (n < 0) { out[t] = -1; return; }
    if (n) {
        int i = 0;
        #pragma unroll 1
        do v = v * 3 + 1; while (++i < n);
        c0 = ck(); __syncwarp(m); c1 = ck();
        v ^= 0x55;
    }
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[N + t] = c1; clk[2 * N + t] = c2;
}
// The same with the full mask.
extern "C" __global__ void late_all(int* out, unsigned* clk, const int* trips) {
    int t = GID, n = trips[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0;
    if (n < 0) { out[t] = -1; return; }
    int i = 0;
    #pragma unroll 1
    do v = v * 3 + 1; while (++i < n);
    c0 = ck(); __syncwarp(); c1 = ck();
    v ^= 0x55;
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[N + t] = c1; clk[2 * N + t] = c2;
}
// A shuffle under a run-time mask reached from a loop: BRA.DIV and WARPSYNC.COLLECTIVE.
extern "C" __global__ void late_shfl(int* out, unsigned* clk, const int* trips, const unsigned* mask) {
    int t = GID, n = trips[t], v = t; unsigned m = mask[t], c0 = 0, c1 = 0, c2 = 0;
    if (n < 0) { out[t] = -1; return; }
    if (n) {
        int i = 0;
        #pragma unroll 1
        do v = v * 3 + 1; while (++i < n);
        c0 = ck(); v += __shfl_xor_sync(m, v, 1); c1 = ck();
        v ^= 0x55;
    }
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[N + t] = c1; clk[2 * N + t] = c2;
}
// Full-mask shuffles inside a divergent arm, then outside.
extern "C" __global__ void late_shfl_all(int* out, unsigned* clk, const int* trips) {
    int t = GID, n = trips[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0;
    if (n < 0) { out[t] = -1; return; }
    int i = 0;
    #pragma unroll 1
    do v = v * 3 + 1; while (++i < n);
    c0 = ck(); v += __shfl_xor_sync(0xffffffffu, v, 1); c1 = ck();
    v += __shfl_down_sync(0xffffffffu, v, 3); c2 = ck();
    out[t] = v; clk[t] = c0; clk[N + t] = c1; clk[2 * N + t] = c2;
}
// Vote, match and reduction under a run-time mask.
extern "C" __global__ void late_vote(int* out, unsigned* clk, const int* trips, const unsigned* mask) {
    int t = GID, n = trips[t], v = t; unsigned m = mask[t], c0 = 0, c1 = 0, c2 = 0, c3 = 0, c4 = 0;
    if (n < 0) { out[t] = -1; return; }
    if (n) {
        int i = 0;
        #pragma unroll 1
        do v = v * 3 + 1; while (++i < n);
        c0 = ck(); v += __ballot_sync(m, v & 1); c1 = ck();
        v += __match_any_sync(m, n); c2 = ck();
        v += __reduce_add_sync(m, v); c3 = ck();
        v ^= 0x55;
    }
    c4 = ck();
    out[t] = v; clk[t] = c0; clk[N + t] = c1; clk[2 * N + t] = c2; clk[3 * N + t] = c3; clk[4 * N + t] = c4;
}
// A subroutine called from both arms which synchronises inside: lanes with two return addresses in one group.
__device__ __noinline__ int meet(int v) { v = v * 7 + 3; __syncwarp(); v ^= v >> 3; return v; }
extern "C" __global__ void two_callers(int* out, unsigned* clk, const int* arm) {
    int t = GID, a = arm[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0;
    if (a) { c0 = ck(); v = meet(v * 5 + 1); c1 = ck(); v ^= 0x55; }
    else   { c0 = ck(); v = meet(v * 3 + 7); c1 = ck(); v += 9; }
    c2 = ck();
    out[t] = v; clk[t] = c0; clk[N + t] = c1; clk[2 * N + t] = c2;
}
