// Loops with several exits to one place.
extern "C" __global__ void three_exits(int* out, const int* a, const int* b, const int* c, const int* g) {
    int t = blockIdx.x * 32 + threadIdx.x, x = a[t], y = b[t], z = c[t], v = t, i = 0;
    #pragma unroll 1
    for (;;) {
        v = v * 3 + g[(v + i) & 63];
        if (i >= x) break;
        v = v * 5 + g[(v ^ i) & 63];
        if (i >= y) break;
        v = v * 7 + g[(v + 3 * i) & 63];
        if (i >= z) break;
        ++i;
    }
    out[t] = v;
}
extern "C" __global__ void three_exits_alu(int* out, const int* a, const int* b, const int* c, const int* g) {
    int t = blockIdx.x * 32 + threadIdx.x, x = a[t], y = b[t], z = c[t], v = t, i = 0;
    #pragma unroll 1
    for (;;) {
        v = v * 3 + ((v + i) & 63);
        if (i >= x) break;
        v = v * 5 + ((v ^ i) & 63);
        if (i >= y) break;
        v = v * 7 + ((v + 3 * i) & 63);
        if (i >= z) break;
        ++i;
    }
    out[t] = v;
}
// Nested conditions whose negative sides meet in one place.
extern "C" __global__ void ladder4(int* out, const int* a, const int* g) {
    int t = blockIdx.x * 32 + threadIdx.x, n = a[t], v = t;
    if (n > 0) { v = v * 3 + g[v & 63]; v ^= g[(v >> 1) & 63]; v += g[(v * 5) & 63];
    if (n > 1) { v = v * 5 + g[v & 63]; v ^= g[(v >> 2) & 63]; v += g[(v * 3) & 63];
    if (n > 2) { v = v * 7 + g[v & 63]; v ^= g[(v >> 3) & 63]; v += g[(v * 7) & 63];
    if (n > 3) { v = v * 11 + g[v & 63]; v ^= g[(v >> 4) & 63]; v += g[(v * 9) & 63]; } } } }
    out[t] = v;
}
