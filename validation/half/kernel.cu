// Half precision and bfloat16, packed and single.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define I (blockIdx.x * blockDim.x + threadIdx.x)
__device__ unsigned bits(__half2 h) { return *(unsigned*)&h; }
__device__ unsigned bits(__nv_bfloat162 h) { return *(unsigned*)&h; }
__device__ __half2 h2(unsigned u) { return *(__half2*)&u; }
__device__ __nv_bfloat162 b2(unsigned u) { return *(__nv_bfloat162*)&u; }
#define O(e) o[(k++) * n + i] = (e);
extern "C" __global__ void half_packed(unsigned* o, const unsigned* x, const unsigned* y, const unsigned* z) {
    int i = I, n = gridDim.x * blockDim.x, k = 0; __half2 a = h2(x[i]), b = h2(y[i]), c = h2(z[i]);
    O(bits(__hadd2(a, b))) O(bits(__hmul2(a, b))) O(bits(__hfma2(a, b, c))) O(bits(__hadd2_sat(a, b))) O(bits(__hmin2(a, b))) O(bits(__hmax2(a, b))) O(bits(__hneg2(a))) O(bits(__habs2(a)))
    O(bits(__hlt2(a, b))) O(bits(__hge2(a, b))) O(bits(__heq2(a, b))) O(bits(__hfma2_relu(a, b, c))) O(bits(__lows2half2(a, b))) O(bits(__lowhigh2highlow(a))) O(__hbeq2(a, b) * 2 + __hbgt2(a, c)) O(bits(__hmax2_nan(a, b)))
}
extern "C" __global__ void half_single(unsigned* o, const unsigned* x, const unsigned* y, const float* f) {
    int i = I, n = gridDim.x * blockDim.x, k = 0; __half a = __ushort_as_half(x[i] & 0xffff), b = __ushort_as_half(y[i] & 0xffff); float g = f[i];
    O(__half_as_ushort(a + b)) O(__half_as_ushort(a * b)) O(__float_as_uint(__half2float(a))) O(__half_as_ushort(__float2half_rn(g))) O(__half_as_ushort(__float2half_rz(g))) O(__half_as_ushort(__float2half_ru(g)))
    O((unsigned)__half2int_rz(a)) O(__half_as_ushort(__int2half_rn((int)x[i] >> 12))) O(a < b) O(a == b) O(__half_as_ushort(__hfma(a, b, a))) O(bits(__floats2half2_rn(g, -g))) O((unsigned)__half2short_rn(a)) O(__half_as_ushort(hfloor(a))) O(__half_as_ushort(hrint(b)))
}
extern "C" __global__ void bfloat(unsigned* o, const unsigned* x, const unsigned* y, const unsigned* z) {
    int i = I, n = gridDim.x * blockDim.x, k = 0; __nv_bfloat162 a = b2(x[i]), b = b2(y[i]), c = b2(z[i]); float g = __uint_as_float(z[i]);
    O(bits(__hadd2(a, b))) O(bits(__hmul2(a, b))) O(bits(__hfma2(a, b, c))) O(bits(__hmin2(a, b))) O(bits(__hmax2(a, b))) O(bits(__hlt2(a, b))) O(__bfloat16_as_ushort(__float2bfloat16_rn(g))) O(bits(__floats2bfloat162_rn(g, -g))) O(__float_as_uint(__bfloat162float(a.x))) O((unsigned)__bfloat162int_rz(a.x)) O(__bfloat16_as_ushort(__float2bfloat16_rz(g)))
}
extern "C" __global__ void half_dot(float* o, const unsigned* x, const unsigned* y, int n) {
    int t = threadIdx.x; __half2 s = __float2half2_rn(0.f); float f = 0;
    #pragma unroll 1
    for (int k = t; k < n; k += 37) { s = __hfma2(h2(x[k] & 0x3fff3fff), h2(y[k] & 0x3fff3fff), s); if (__low2float(s) > 8.f) { f += __low2float(s) + __high2float(s); s = __float2half2_rn(0.f); } }
    o[t] = f + __low2float(s);
}
