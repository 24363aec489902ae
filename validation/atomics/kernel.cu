// Atomics and reductions on global and shared memory, all types; contended ones without looking at the old value.
typedef unsigned long long u64;
#define I (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void own_int(int* m, int* old, const int* x) {
    int i = I, n = gridDim.x * blockDim.x, a = x[i], k = 0;
#define O(e) old[(k) * n + i] = (int)(e); ++k;
#define P (m + k * n + i)
    O(atomicAdd(P, a)) O(atomicSub(P, a)) O(atomicExch(P, a)) O(atomicMin(P, a)) O(atomicMax(P, a)) O(atomicMin((unsigned*)P, (unsigned)a)) O(atomicMax((unsigned*)P, (unsigned)a)) O(atomicInc((unsigned*)P, 40u)) O(atomicDec((unsigned*)P, 40u)) O(atomicCAS(P, 5, a)) O(atomicAnd(P, a)) O(atomicOr(P, a)) O(atomicXor(P, a))
}
extern "C" __global__ void own_wide(u64* m, u64* old, const u64* x) {
    int i = I, n = gridDim.x * blockDim.x, k = 0; u64 a = x[i];
#undef O
#define O(e) old[(k) * n + i] = (u64)(e); ++k;
    O(atomicAdd(P, a)) O(atomicExch(P, a)) O(atomicMin(P, a)) O(atomicMax((long long*)P, (long long)a)) O(atomicCAS(P, 5ull, a)) O(atomicAnd(P, a)) O(atomicOr(P, a)) O(atomicXor(P, a))
    O(__double_as_longlong(atomicAdd((double*)P, 1.5))) O(__float_as_uint(atomicAdd((float*)P, 2.25f)))
}
extern "C" __global__ void shared_all(int* out, const int* x) {
    __shared__ int s[12]; __shared__ u64 w[4]; __shared__ float f[2];
    int t = threadIdx.x, a = x[I]; if (t < 12) s[t] = t == 5 || t == 3 ? 1000 : 0; if (t < 4) w[t] = t; if (t < 2) f[t] = 0;
    __syncthreads();
    atomicAdd(s, a); atomicSub(s + 1, a); atomicMax(s + 2, a); atomicMin(s + 3, a); atomicMax((unsigned*)s + 4, (unsigned)a); atomicMin((unsigned*)s + 5, (unsigned)a); atomicAnd(s + 6, a); atomicOr(s + 7, a); atomicXor(s + 8, a); atomicInc((unsigned*)s + 9, 20u); atomicDec((unsigned*)s + 10, 7u); atomicAdd(s + 11, 1);
    atomicAdd(w, (u64)a); atomicMax(w + 1, (u64)a); atomicMin((long long*)w + 2, (long long)a); atomicXor(w + 3, (u64)a << 20); atomicAdd(f, (float)(a & 15)); if (a & 1) atomicAdd(f + 1, 0.5f);
    __syncthreads();
    if (t < 12) out[blockIdx.x * 32 + t] = s[t]; else if (t < 16) { out[blockIdx.x * 32 + t] = (int)w[t - 12]; out[blockIdx.x * 32 + t + 4] = (int)(w[t - 12] >> 32); } else if (t >= 20 && t < 22) out[blockIdx.x * 32 + t] = __float_as_int(f[t - 20]);
}
extern "C" __global__ void global_all(int* m, u64* w, float* f, double* d, const int* x) {
    int a = x[I];
    atomicAdd(m, a); atomicSub(m + 1, a); atomicMax(m + 2, a); atomicMin(m + 3, a); atomicMax((unsigned*)m + 4, (unsigned)a); atomicMin((unsigned*)m + 5, (unsigned)a); atomicAnd(m + 6, a); atomicOr(m + 7, a); atomicXor(m + 8, a); atomicInc((unsigned*)m + 9, 20u); atomicDec((unsigned*)m + 10, 7u); if (a > 50) atomicAdd(m + 11, 1);
    atomicAdd(w, (u64)a); atomicMax(w + 1, (u64)a); atomicMin((long long*)w + 2, (long long)a); atomicXor(w + 3, (u64)a << 20); atomicAdd(f, (float)(a & 15)); atomicAdd(d, (double)(a & 7) * 0.25);
}
extern "C" __global__ void histogram(int* bins, const unsigned char* x, int n) {
    __shared__ int h[64]; int t = threadIdx.x; if (t < 64) h[t] = 0; __syncthreads();
    for (int i = I; i < n; i += gridDim.x * blockDim.x) atomicAdd(h + (x[i] >> 2), 1);
    __syncthreads(); if (t < 64 && h[t]) atomicAdd(bins + t, h[t]);
}
// A float maximum by compare-and-swap.
extern "C" __global__ void cas_max(float* out, const float* x) {
    int* p = (int*)out + (threadIdx.x & 3); float v = x[I]; int old = *p, seen;
    do { seen = old; if (__int_as_float(seen) >= v) break; old = atomicCAS(p, seen, __float_as_int(v)); } while (old != seen);
}
