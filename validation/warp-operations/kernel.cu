// Shuffles of all modes and widths, votes, matches and warp reductions, in whole and partial warps.
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define F 0xffffffffu
extern "C" __global__ void shuffles(int* o, const int* x, const int* s) {
    int i = I, n = gridDim.x * blockDim.x, v = x[i], b = s[i], k = 0;
#define O(e) o[(k++) * n + i] = (int)(e);
    O(__shfl_sync(F, v, b)) O(__shfl_sync(F, v, 5)) O(__shfl_sync(F, v, b, 8)) O(__shfl_up_sync(F, v, 3)) O(__shfl_up_sync(F, v, 1, 4)) O(__shfl_down_sync(F, v, 7)) O(__shfl_down_sync(F, v, 2, 16)) O(__shfl_xor_sync(F, v, 21)) O(__shfl_xor_sync(F, v, 3, 2)) O(__shfl_xor_sync(F, v, b & 31, 8)) O(__shfl_up_sync(F, v, b & 31)) O(__shfl_down_sync(F, v, b & 31, 8))
    long long w = ((long long)v << 32) | b; O(__shfl_sync(F, w, 9) >> 16) double d = v; O(__shfl_xor_sync(F, d, 16)) O(__shfl_down_sync(F, (float)v, 1))
    int r, p; asm volatile("{ .reg .pred q; shfl.sync.down.b32 %0|q, %2, 4, 0x181f, -1; selp.b32 %1, 1, 0, q; }" : "=r"(r), "=r"(p) : "r"(v)); O(r) O(p)
    asm volatile("{ .reg .pred q; shfl.sync.idx.b32 %0|q, %2, %3, 0x0f0f, -1; selp.b32 %1, 1, 0, q; }" : "=r"(r), "=r"(p) : "r"(v), "r"(b)); O(r) O(p)
    asm volatile("{ .reg .pred q; shfl.sync.up.b32 %0|q, %2, 2, 0x1c00, -1; selp.b32 %1, 1, 0, q; }" : "=r"(r), "=r"(p) : "r"(v)); O(r) O(p)
    asm volatile("{ .reg .pred q; shfl.sync.bfly.b32 %0|q, %2, 12, 0x0c1f, -1; selp.b32 %1, 1, 0, q; }" : "=r"(r), "=r"(p) : "r"(v)); O(r) O(p)
}
extern "C" __global__ void votes(int* o, const int* x) {
    int i = I, n = gridDim.x * blockDim.x, v = x[i], k = 0, p = 0;
    O(__ballot_sync(F, v & 1)) O(__any_sync(F, v == 3)) O(__all_sync(F, v < 1000)) O(__all_sync(F, v & 2)) O(__match_any_sync(F, v & 3)) O(__match_all_sync(F, v & 0, &p)) O(p) O(__match_all_sync(F, v & 1, &p)) O(p) O(__match_any_sync(F, (long long)(v & 1) << 40))
    O(__reduce_add_sync(F, v)) O(__reduce_min_sync(F, v)) O(__reduce_max_sync(F, v)) O(__reduce_min_sync(F, (unsigned)v)) O(__reduce_max_sync(F, (unsigned)v)) O(__reduce_and_sync(F, v)) O(__reduce_or_sync(F, v)) O(__reduce_xor_sync(F, v)) O(__activemask())
    int u; asm volatile("{ .reg .pred q, r; setp.ne.s32 q, %1, 0; vote.sync.uni.pred r, q, -1; selp.b32 %0, 1, 0, r; }" : "=r"(u) : "r"(v & 4)); O(u)
}
// Votes and reductions by those inside a branch.
extern "C" __global__ void inside(int* o, const int* x, int limit) {
    int i = I, v = x[i]; unsigned m = __ballot_sync(F, v < limit);
    if (v < limit) { int s = __reduce_add_sync(m, v), r = __popc(__ballot_sync(m, v & 1)), q = __shfl_sync(m, v, __ffs(m) - 1); o[i] = s * 100 + r * 10 + (q & 7); } else { unsigned b = __match_any_sync(~m, v & 7); o[i] = __popc(b); }
}
// Stream compaction in a block that is not a multiple of the warp.
extern "C" __global__ void compact(int* out, int* count, const int* x, int n) {
    int i = I; bool keep = i < n && x[i] % 3 == 0; unsigned act = __activemask(), m = __ballot_sync(act, keep); int lane = threadIdx.x & 31, base = 0;
    if (lane == 0 && m) base = blockIdx.x * 256 + (threadIdx.x >> 5) * 32;
    base = __shfl_sync(act, base, 0);
    if (keep) out[base + __popc(m & ((1u << lane) - 1))] = x[i];
    if (lane == 0) atomicAdd(count, __popc(m));
}
// Inclusive scan and segmented maximum.
extern "C" __global__ void scan(int* out, const int* x, const int* head) {
    int i = I, l = threadIdx.x & 31, v = x[i], mx = v, f = head[i];
    for (int o = 1; o < 32; o <<= 1) { int u = __shfl_up_sync(F, v, o), w = __shfl_up_sync(F, mx, o), g = __shfl_up_sync(F, f, o); if (l >= o) { v += u; if (!f) { mx = max(mx, w); f = g; } } }
    out[i] = v * 1000 + mx;
}
