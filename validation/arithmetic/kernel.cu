// Arithmetic on random and special operands; every result is stored as it is.
typedef unsigned long long u64;
#define I (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void f64_basic(double* o, const double* x, const double* y, const double* z) {
    int i = I, n = gridDim.x * blockDim.x; double a = x[i], b = y[i], c = z[i];
    o[i] = a + b; o[n + i] = a * b; o[2 * n + i] = fma(a, b, c); o[3 * n + i] = fmin(a, b); o[4 * n + i] = fmax(a, b);
    o[5 * n + i] = floor(a); o[6 * n + i] = rint(a); o[7 * n + i] = trunc(b); o[8 * n + i] = fabs(a) - b; o[9 * n + i] = a < b ? c : -c;
    o[10 * n + i] = __dadd_ru(a, b); o[11 * n + i] = __dmul_rz(a, b); o[12 * n + i] = __fma_rd(a, b, c);
}
extern "C" __global__ void f64_convert(u64* o, const double* x, const long long* k) {
    int i = I, n = gridDim.x * blockDim.x; double a = x[i]; long long j = k[i];
    o[i] = (unsigned)(int)a; o[n + i] = (unsigned)a; o[2 * n + i] = (u64)(long long)a; o[3 * n + i] = (u64)a; o[4 * n + i] = __float_as_uint((float)a);
    o[5 * n + i] = __double_as_longlong((double)j); o[6 * n + i] = __double_as_longlong((double)(u64)j); o[7 * n + i] = __double_as_longlong((double)(int)j);
    o[8 * n + i] = __double_as_longlong((double)__uint_as_float((unsigned)j)); o[9 * n + i] = (unsigned)__double2int_ru(a); o[10 * n + i] = (unsigned)__double2int_rd(a); o[11 * n + i] = __float_as_uint(__double2float_rz(a));
}
extern "C" __global__ void f64_divide(double* o, const double* x, const double* y) { int i = I; o[i] = x[i] / y[i]; }
extern "C" __global__ void f64_root(double* o, const double* x) { int i = I; o[i] = sqrt(x[i]); }
extern "C" __global__ void f64_poly(double* o, const double* x, int n) {
    int i = I; double a = x[i], s = 0; 
    #pragma unroll 1
    for (int k = 0; k < n; ++k) { if (a > 1.0) a = a * 0.5 - 0.25; else a = a * 3.0 + 0.125; s = fma(a, a, s); }
    o[i] = s;
}
extern "C" __global__ void f32_basic(float* o, const float* x, const float* y, const float* z) {
    int i = I, n = gridDim.x * blockDim.x; float a = x[i], b = y[i], c = z[i];
    o[i] = a + b; o[n + i] = a * b; o[2 * n + i] = fmaf(a, b, c); o[3 * n + i] = fminf(a, b); o[4 * n + i] = fmaxf(a, b);
    o[5 * n + i] = floorf(a); o[6 * n + i] = rintf(a); o[7 * n + i] = truncf(b); o[8 * n + i] = ceilf(b); o[9 * n + i] = roundf(a);
    o[10 * n + i] = __fadd_ru(a, b); o[11 * n + i] = __fmul_rz(a, b); o[12 * n + i] = __fmaf_rd(a, b, c); o[13 * n + i] = __saturatef(a * b); o[14 * n + i] = copysignf(a, b); o[15 * n + i] = a < b ? c : -c;
}
extern "C" __global__ void f32_convert(u64* o, const float* x, const int* k) {
    int i = I, n = gridDim.x * blockDim.x; float a = x[i]; int j = k[i];
    o[i] = (unsigned)(int)a; o[n + i] = (unsigned)a; o[2 * n + i] = (u64)(long long)a; o[3 * n + i] = (u64)a; o[4 * n + i] = __double_as_longlong((double)a);
    o[5 * n + i] = __float_as_uint((float)j); o[6 * n + i] = __float_as_uint((float)(unsigned)j); o[7 * n + i] = (unsigned)__float2int_ru(a); o[8 * n + i] = (unsigned)__float2int_rd(a); o[9 * n + i] = (unsigned)__float2int_rn(a);
    o[10 * n + i] = (unsigned char)a; o[11 * n + i] = (unsigned)(short)a; o[12 * n + i] = __float_as_uint(__int2float_rz(j)); o[13 * n + i] = __float_as_uint(__uint2float_ru(j)); o[14 * n + i] = __float_as_uint((float)(short)j); o[15 * n + i] = __float_as_uint((float)(unsigned char)j);
}
extern "C" __global__ void f32_divide(float* o, const float* x, const float* y) { int i = I; o[i] = x[i] / y[i]; }
extern "C" __global__ void f32_root(float* o, const float* x) { int i = I, n = gridDim.x * blockDim.x; o[i] = sqrtf(x[i]); o[n + i] = rsqrtf(x[i]); o[2 * n + i] = 1.0f / x[i]; }
extern "C" __global__ void f32_special(float* o, const float* x, const float* y) {
    int i = I, n = gridDim.x * blockDim.x; float a = x[i], b = y[i];
    o[i] = __sinf(a); o[n + i] = __cosf(a); o[2 * n + i] = __expf(a); o[3 * n + i] = __logf(b); o[4 * n + i] = __fdividef(a, b); o[5 * n + i] = exp2f(a); o[6 * n + i] = log2f(b); o[7 * n + i] = __powf(b, a);
}
extern "C" __global__ void f32_library(float* o, const float* x, const float* y) {
    int i = I, n = gridDim.x * blockDim.x; float a = x[i], b = y[i];
    o[i] = sinf(a); o[n + i] = expf(a); o[2 * n + i] = logf(b); o[3 * n + i] = powf(b, a); o[4 * n + i] = tanhf(a); o[5 * n + i] = fmodf(a, b); o[6 * n + i] = atan2f(a, b); o[7 * n + i] = erff(a); o[8 * n + i] = cbrtf(b);
}
extern "C" __global__ void int_basic(unsigned* o, const int* x, const int* y, const int* z) {
    int i = I, n = gridDim.x * blockDim.x; int a = x[i], b = y[i], c = z[i]; unsigned ua = a, ub = b, uc = c; int k = 0;
#define O(e) o[(k++) * n + i] = (unsigned)(e);
    O(a + b * c) O(__mulhi(a, b)) O(__umulhi(ua, ub)) O(min(a, b)) O(max(a, b)) O(min(ua, ub)) O(max(ua, min(ub, uc))) O(a >> (b & 31)) O(ua >> (b & 31)) O(a << (b & 31))
    O(__funnelshift_l(a, b, c)) O(__funnelshift_r(a, b, c)) O(__funnelshift_lc(a, b, c)) O(__popc(a)) O(__clz(a)) O(__ffs(a)) O(__brev(a)) O(__byte_perm(a, b, c)) O((a & b) | (~a & c)) O(a ^ b ^ c)
    O((a & b) | (b & c) | (a & c)) O(abs(a) - b) O(__sad(a, b, c)) O(__usad(ua, ub, uc)) O(__dp4a(a, b, c)) O(__dp4a(ua, ub, uc)) O(__dp2a_lo(a, b, c)) O(__vabsdiffs4(a, b)) O(__hadd(a, b)) O(__mul24(a, b))
    int r; asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b & 31), "r"(c & 31)); O(r) asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(c & 31), "r"(a & 31)); O(r)
    asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(c)); O(r) asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); O(r) asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r) : "r"(a)); O(r) asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c & 3)); O(r)
}
extern "C" __global__ void int_wide(u64* o, const u64* x, const u64* y) {
    int i = I, n = gridDim.x * blockDim.x; u64 a = x[i], b = y[i]; long long s = a, t = b; int k = 0;
    O((u64)0) k = 0;
#define Q(e) o[(k++) * n + i] = (u64)(e);
    Q(a + b) Q(a - b) Q(a * b) Q(__umul64hi(a, b)) Q(__mul64hi(s, t)) Q(min(s, t)) Q(max(a, b)) Q(a >> (b & 63)) Q(s >> (b & 63)) Q(a << (b & 63)) Q(__popcll(a)) Q(__clzll(a)) Q(__brevll(a)) Q((u64)(unsigned)a * (unsigned)b) Q((long long)(int)a * (int)b + t) Q(s < t) Q(a <= b) Q((a & b) ^ ~a)
}
extern "C" __global__ void int_divide(u64* o, const u64* x, const u64* y) {
    int i = I, n = gridDim.x * blockDim.x; u64 a = x[i], b = y[i]; long long s = a, t = b; int k = 0;
    Q((int)a / (int)b) Q((int)a % (int)b) Q((unsigned)a / (unsigned)b) Q((unsigned)a % (unsigned)b) Q((unsigned)a / 7u) Q((int)a / 10) Q(a / b) Q(a % b) Q(s / t) Q(s % t)
}
