// Which side of a branch runs first, and who runs after a barrier releases, with several groups waiting.
__device__ __forceinline__ unsigned ck() { unsigned c; asm volatile("mov.u32 %0,%%clock;" : "=r"(c) :: "memory"); return c; }
#define GID (blockIdx.x * 32 + threadIdx.x)
#define N (gridDim.x * 32)
#define PUT(k, c) clk[(k) * N + t] = (c)

// A three-level tree of branches: up to eight groups, each level with its own join.
extern "C" __global__ void tree(int* out, unsigned* clk, const int* code) {
    int t = GID, a = code[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    if (a & 4) {
        v = v * 3 + 1;
        if (a & 2) { v ^= 0x33; if (a & 1) { c0 = ck(); v = v * 7 + 3; } else { c0 = ck(); v = v * 11 + 5; } c1 = ck(); }
        else       { v ^= 0x44; if (a & 1) { c0 = ck(); v = v * 13 + 3; } else { c0 = ck(); v = v * 17 + 5; } c1 = ck(); }
        c2 = ck();
    } else {
        v = v * 5 + 1;
        if (a & 2) { v ^= 0x55; if (a & 1) { c0 = ck(); v = v * 19 + 3; } else { c0 = ck(); v = v * 23 + 5; } c1 = ck(); }
        else       { v ^= 0x66; if (a & 1) { c0 = ck(); v = v * 29 + 3; } else { c0 = ck(); v = v * 31 + 5; } c1 = ck(); }
        c2 = ck();
    }
    c3 = ck();
    out[t] = v; PUT(0, c0); PUT(1, c1); PUT(2, c2); PUT(3, c3);
}
// Two nested loops with different trips; clocks at both joins.
extern "C" __global__ void nest(int* out, unsigned* clk, const int* outer, const int* inner) {
    int t = GID, a = outer[t], b = inner[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0; int i = 0;
    #pragma unroll 1
    do {
        int j = 0;
        #pragma unroll 1
        do v = v * 3 + 1; while (++j < ((b >> (i * 4)) & 15));
        unsigned c = ck(); c0 = i == 0 ? c : c0; c1 = i == 1 ? c : c1;
        v ^= 0x5a;
    } while (++i < a);
    c2 = ck();
    out[t] = v; PUT(0, c0); PUT(1, c1); PUT(2, c2);
}
// A loop with a break out of a nested region, and a second exit.
extern "C" __global__ void leave(int* out, unsigned* clk, const int* trips, const int* brk) {
    int t = GID, n = trips[t], b = brk[t], v = t; unsigned c0 = 0, c1 = 0, c2 = 0; int i = 0;
    #pragma unroll 1
    while (i < n) {
        if (v & 1) { v = v * 3 + 1; if (i == b) { c0 = ck(); v += 1000; goto done; } }
        else v = (v >> 1) + 5;
        ++i;
    }
    c1 = ck();
    v ^= 0x5a;
done:
    c2 = ck();
    out[t] = v; PUT(0, c0); PUT(1, c1); PUT(2, c2);
}
// Lanes exit inside a region while others wait at its end.
extern "C" __global__ void exit_inside(int* out, unsigned* clk, const int* trips, const int* how) {
    int t = GID, n = trips[t], h = how[t], v = t; unsigned c0 = 0, c1 = 0; int i = 0;
    out[t] = -5;
    if (n > 0) {
        #pragma unroll 1
        do { v = v * 3 + 1; if (i == h) { c0 = ck(); PUT(0, c0); out[t] = v; return; } } while (++i < n);
        v ^= 0x77;
    } else v += 3;
    c1 = ck();
    out[t] = v; PUT(1, c1);
}
// A forward skip in a loop: continue and a second path.
extern "C" __global__ void skip(int* out, unsigned* clk, const int* x, int n) {
    int t = GID, v = x[t], s = 0; unsigned c0 = 0, c1 = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        v = v * 1664525 + 1013904223;
        if (v < 0) { unsigned c = ck(); c0 = i == 0 ? c : c0; s += v >> 20; continue; }
        if ((v >> 8) & 1) { s ^= i; asm volatile("" ::: "memory"); unsigned c = ck(); c1 = i == 0 ? c : c1; }
        s += __popc(v);
    }
    out[t] = s; PUT(0, c0); PUT(1, c1);
}
