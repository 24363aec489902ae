// Memory spaces: local arrays, dynamic and static shared memory, constants, device variables, vectors, 2-D and 3-D blocks.
__constant__ int lut[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
__constant__ float weights[3][4] = { { 1, 2, 3, 4 }, { 0.5f, 0.25f, 2, -1 }, { 8, 7, 6, 5 } };
__device__ int counter = 100; __device__ int start_values[8] = { 8, 6, 7, 5, 3, 0, 9, 1 };
extern "C" __global__ void local_array(int* o, const int* x, int n) {
    int a[24], t = blockIdx.x * blockDim.x + threadIdx.x, v = x[t]; for (int k = 0; k < 24; ++k) a[k] = v + k * k;
    #pragma unroll 1
    for (int k = 0; k < n; ++k) { int p = (v >> k) % 24; if (p < 0) p += 24; if (a[p] & 1) a[(p * 7 + k) % 24] ^= v; else a[p] += k; v = v * 5 + a[(k * 11) % 24]; }
    int s = 0; for (int k = 0; k < 24; ++k) s = s * 31 + a[k]; o[t] = s;
}
extern "C" __global__ void dynamic_shared(int* o, const int* x, int n) {
    extern __shared__ int s[]; int t = threadIdx.x; for (int i = t; i < n; i += blockDim.x) s[i] = x[i] * 3; __syncthreads();
    for (int h = n / 2; h > 0; h >>= 1) { for (int i = t; i < h; i += blockDim.x) s[i] = max(s[i] - s[i + h], s[i + h] ^ i); __syncthreads(); }
    if (t < 4) o[blockIdx.x * 4 + t] = s[t];
}
extern "C" __global__ void constants(float* o, const int* x) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, v = x[t]; float s = weights[blockIdx.x % 3][1];
    s += lut[v & 15]; if (v & 16) s *= weights[(v >> 5) % 3][v & 3]; else s -= lut[(v >> 3) & 15]; o[t] = s;
}
extern "C" __global__ void device_globals(int* o) { int t = threadIdx.x; int c = atomicAdd(&counter, t & 3); o[t] = start_values[(t * 5) & 7] * 10 + (c >= 100); __syncthreads(); if (t == 0) o[64] = counter; }
// 3-D block whose last warp is partial, 2-D grid.
extern "C" __global__ void three_d(int* o, int w, int h, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = threadIdx.z;
    if (x < w && y < h && z < d) { int v = (z * h + y) * w + x; if ((x ^ y) & 1) v = v * 3 + threadIdx.z; else for (int k = 0; k < z; ++k) v += k * y; o[(z * h + y) * w + x] = v; }
}
extern "C" __global__ void transpose(float* o, const float* x, int w, int h) {
    __shared__ float s[16][17]; int a = blockIdx.x * 16 + threadIdx.x, b = blockIdx.y * 16 + threadIdx.y;
    if (a < w && b < h) s[threadIdx.y][threadIdx.x] = x[b * w + a]; __syncthreads();
    a = blockIdx.y * 16 + threadIdx.x; b = blockIdx.x * 16 + threadIdx.y; if (a < h && b < w) o[b * h + a] = s[threadIdx.x][threadIdx.y];
}
struct P { float4 scale; int2 dim; short s[4]; double bias; unsigned char flags[8]; };
extern "C" __global__ void by_value(float4* o, const float4* x, const P p, const short* q) {
    int t = blockIdx.x * blockDim.x + threadIdx.x; float4 v = x[t]; v.x *= p.scale.x; v.y += p.scale.w; if (p.flags[t & 7] & 1) v.z = (float)p.bias; else v.w = p.s[t & 3] + q[t]; if (t >= p.dim.x) v.x = -1; o[t] = v;
}
extern "C" __global__ void sizes(unsigned long long* o, const unsigned char* b, const signed char* c, const unsigned short* h, const longlong2* w) {
    int t = threadIdx.x; longlong2 a = w[t]; unsigned char* ob = (unsigned char*)o; ob[4096 + t] = b[t] + 1; ((short*)(ob + 5120))[t] = (short)(c[t] * 3);
    o[t] = b[t] + (long long)c[t] * 256 + ((unsigned long long)h[t] << 32); o[128 + t] = a.x ^ a.y; if (c[t] < 0) o[256 + t] = (unsigned char)c[t]; 
}
extern "C" __global__ void generic(int* o, const int* x) {
    __shared__ int s[64]; int l[2], t = threadIdx.x; s[t] = x[t] * 2; l[0] = t; l[1] = -t; __syncthreads();
    const int* p = x[t] % 3 == 0 ? s + (t ^ 1) : x[t] % 3 == 1 ? l + (t & 1) : x + 63 - t; o[t] = *p + (__isShared(p) ? 1000 : 0) + (__isGlobal(p) ? 2000 : 0) + (__isLocal(p) ? 3000 : 0);
}
extern "C" __global__ void async_copy(int* o, const int* x) {
    __shared__ int s[128]; int t = threadIdx.x; unsigned a = (unsigned)__cvta_generic_to_shared(s + t);
    if (t % 3) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(a), "l"(x + t)); else s[t] = -1;
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory"); __syncthreads(); o[t] = s[(t * 7) & 127];
}
extern "C" __global__ void registers(unsigned* o) {
    int i = (blockIdx.z * gridDim.y * gridDim.x + blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y * blockDim.z + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x, k = 0;
    int n = gridDim.x * gridDim.y * gridDim.z * blockDim.x * blockDim.y * blockDim.z; unsigned r;
#define R(name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(r)); o[k++ * n + i] = r;
    R("tid.x") R("tid.y") R("tid.z") R("ctaid.x") R("ctaid.y") R("ctaid.z") R("ntid.x") R("ntid.y") R("ntid.z") R("nctaid.x") R("nctaid.y") R("nctaid.z") R("laneid") R("lanemask_eq") R("lanemask_lt") R("lanemask_le") R("lanemask_gt") R("lanemask_ge") R("dynamic_smem_size") R("total_smem_size") R("cluster_ctaid.x") R("cluster_nctarank")
}
// What differs from machine to machine: not part of the checked outputs.
extern "C" __global__ void machine(unsigned long long* o, int* x) {
    __shared__ int s[4]; extern __shared__ int dyn[]; int l[4]; unsigned r; int k = 0; l[threadIdx.x & 3] = x[0]; unsigned long long* q = o + blockIdx.x * 64; if (threadIdx.x) return;
#undef R
#define R(name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(r)); q[k++] = r;
    R("warpid") R("nwarpid") R("smid") R("nsmid") R("envreg0") R("envreg1") R("envreg2") R("clock") R("dynamic_smem_size") R("total_smem_size") R("reserved_smem_offset_begin") R("reserved_smem_offset_end") R("reserved_smem_offset_cap")
    q[k++] = (unsigned long long)(void*)s; q[k++] = (unsigned long long)(void*)dyn; q[k++] = (unsigned long long)(void*)l; q[k++] = __cvta_generic_to_shared(s); q[k++] = __cvta_generic_to_local(l); q[k++] = l[x[1] & 3]; q[k++] = (unsigned long long)(void*)x;
}
