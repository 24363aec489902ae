// Lines that suffer are in helpers, called or inlined; lanes part in the kernels.
__device__ __noinline__ int spin(int x, int n) {
    for (int k = 0; k < n; ++k) x = x * 1664525 + (x >> 7);
    return x;
}
__device__ __noinline__ int twice(int x) {
    return spin(x, 12) ^ spin(x + 1, 9);
}
__device__ __forceinline__ int mix(int x) {
    #pragma unroll 1
    for (int k = 0; k < 20; ++k)
        x = x * 22695477 + (x >> 3) / 7;
    return x;
}
extern "C" __global__ void through_calls(int* out, const int* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    if (v % 3 == 0)
        v = twice(v);
    out[i] = v;
}
extern "C" __global__ void inlined(int* out, const int* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    if (v % 3 == 0)
        v = mix(v);
    out[i] = v;
}
extern "C" __global__ void both_sides(int* out, const int* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    if (v % 3 == 0)
        v = spin(v, 16);
    else if (v % 3 == 1)
        v = mix(v);
    out[i] = v;
}
