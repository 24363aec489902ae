// Scheduling of more than two groups of a warp: yields in eight arms, deep nests, four arms that meet.
__device__ __forceinline__ unsigned ck() { unsigned c; asm volatile("mov.u32 %0,%%clock;" : "=r"(c) :: "memory"); return c; }
#define GID (blockIdx.x * 32 + threadIdx.x)
#define N (gridDim.x * 32)
#define PUT(k, c) clk[(k) * N + t] = (c)
#define W __nanosleep(123)
#define ARM(m) { c0 = ck(); v = v * m + 3; W; c1 = ck(); v = v * m + 5; W; c2 = ck(); v = v * m + 7; }
// NANOSLEEP 0x7b is replaced by YIELD in the y_ kernels.
extern "C" __global__ void y_eight(int* out, unsigned* clk, const int* code) {
    int t = GID, a = code[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    if (a & 4) { if (a & 2) { if (a & 1) ARM(7) else ARM(11) } else { if (a & 1) ARM(13) else ARM(17) } }
    else       { if (a & 2) { if (a & 1) ARM(19) else ARM(23) } else { if (a & 1) ARM(29) else ARM(31) } }
    c3 = ck(); out[t] = v; PUT(0, c0); PUT(1, c1); PUT(2, c2); PUT(3, c3);
}
// Yields before, between and after divergent loops.
extern "C" __global__ void y_mix(int* out, unsigned* clk, const int* code) {
    int t = GID, a = code[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    if (a & 1) {
        W; c0 = ck(); int i = 0;
        #pragma unroll 1
        do { v = v * 3 + 1; if (v & 1) { W; v ^= 0x5a; } } while (++i < ((a >> 4) & 3));
        c1 = ck();
    } else {
        c0 = ck(); int i = 0;
        #pragma unroll 1
        do v = v * 5 + 1; while (++i < ((a >> 4) & 3));
        W; c1 = ck(); W;
        if (a & 2) { v ^= 0x77; W; c2 = ck(); } else { v += 9; c2 = ck(); W; v ^= 3; }
    }
    W; c3 = ck(); out[t] = v; PUT(0, c0); PUT(1, c1); PUT(2, c2); PUT(3, c3);
}
// Sixteen levels of nesting; lane t goes as deep as depth[t].
extern "C" __global__ void deep(int* out, unsigned* clk, const int* depth) {
    int t = GID, a = depth[t], v = t; unsigned c0 = 0, c1 = 0;
#define L(k, REST) if (a > k) { v = v * 3 + k; asm volatile("" ::: "memory"); REST v ^= k; asm volatile("" ::: "memory"); } else { c0 = ck(); v += k * 100; }
    L(0, L(1, L(2, L(3, L(4, L(5, L(6, L(7, L(8, L(9, L(10, L(11, L(12, L(13, L(14, L(15, c0 = ck(); v = v * 7;))))))))))))))))
    c1 = ck(); out[t] = v; PUT(0, c0); PUT(1, c1);
}
// A chain of else-ifs: every level parks one more group.
extern "C" __global__ void ladder(int* out, unsigned* clk, const int* code) {
    int t = GID, a = code[t], v = t; unsigned c0 = 0, c1 = 0;
#define E(k) if (a == k) { c0 = ck(); v = v * (2 * k + 3) + k; int i = 0; _Pragma("unroll 1") do v ^= v << 1; while (++i < (v & 3)); } else
    E(0) E(1) E(2) E(3) E(4) E(5) E(6) E(7) E(8) E(9) E(10) E(11) { c0 = ck(); v = -v; }
    c1 = ck(); out[t] = v; PUT(0, c0); PUT(1, c1);
}
// Four arms that meet in a sync under a run-time mask.
#define MEET(m) { c0 = ck(); v = v * m + 1; __syncwarp(k); c1 = ck(); v ^= m; }
extern "C" __global__ void meet_four(int* out, unsigned* clk, const int* code, const unsigned* mask) {
    int t = GID, a = code[t], v = t; unsigned k = mask[t], c0 = 0, c1 = 0, c2 = 0;
    if (a & 2) { if (a & 1) MEET(7) else MEET(11) } else { if (a & 1) MEET(13) else MEET(17) }
    c2 = ck(); out[t] = v; PUT(0, c0); PUT(1, c1); PUT(2, c2);
}
// The same with a shuffle.
#define TALK(m) { c0 = ck(); v = v * m + 1; v += __shfl_xor_sync(k, v, 1); c1 = ck(); v ^= m; }
extern "C" __global__ void talk_four(int* out, unsigned* clk, const int* code, const unsigned* mask) {
    int t = GID, a = code[t], v = t; unsigned k = mask[t], c0 = 0, c1 = 0, c2 = 0;
    if (a & 2) { if (a & 1) TALK(7) else TALK(11) } else { if (a & 1) TALK(13) else TALK(17) }
    c2 = ck(); out[t] = v; PUT(0, c0); PUT(1, c1); PUT(2, c2);
}
// Ballot and any under a mask in both arms.
extern "C" __global__ void vote_two(int* out, const int* code, const unsigned* mask) {
    int t = GID, a = code[t], v = t; unsigned k = mask[t];
    if (a & 1) { v = v * 7 + __popc(__ballot_sync(k, v & 2)); v ^= 5; } else { v = v * 11 + __popc(__ballot_sync(k, v & 4)); if (__any_sync(k, v == 77)) v += 3; }
    out[t] = v;
}
// Tiles of a run-time size.
extern "C" __global__ void tile_sum(int* out, const int* x, int width, int limit) {
    int t = GID, l = t & 31, v = x[t]; unsigned m = (width == 32 ? 0xffffffffu : ((1u << width) - 1u) << (l / width * width));
    if (v < limit) {
        unsigned in = __ballot_sync(__activemask(), 1) & m; int s = v;
        for (int o = width / 2; o; o >>= 1) { int u = __shfl_xor_sync(in, s, o); if (in >> ((t ^ o) & 31) & 1) s += u; }
        out[t] = s;
    } else out[t] = -1;
}
// Sum over the lanes that are here, found again at every step.
extern "C" __global__ void active_sum(int* out, const int* x, int n) {
    int t = GID, v = x[t], s = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        if ((v >> i) & 1) { unsigned m = __activemask(); s += __reduce_add_sync(m, v & 15) + __popc(m); }
        else if ((v >> (i + 3)) & 1) { unsigned m = __activemask(); s += __shfl_sync(m, v, __ffs(m) - 1) & 7; }
    }
    out[t] = s;
}
