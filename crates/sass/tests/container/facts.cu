// Kernels whose launch facts, constant banks, global data and relocations the container tests check.
__device__ int counter = 7;
__device__ int table[4] = {1, 2, 3, 4};
__device__ float zeroed[100];
__constant__ float coeff[16] = {1.5f, 2.5f};
__device__ int *into_table = &table[2];
typedef float (*Fn)(float);
__device__ __noinline__ float twice(float x) { return x * 2.0f + 1.0f; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ Fn pointers[2] = {twice, square};

extern "C" __global__ void globals(int *o) {
    o[threadIdx.x] = counter + table[threadIdx.x & 3] + *into_table;
    zeroed[threadIdx.x] = coeff[threadIdx.x & 15];
}
extern "C" __global__ void pointer(float *o, int k) { o[threadIdx.x] = pointers[k](o[threadIdx.x]); }
extern "C" __global__ void __launch_bounds__(128, 4) bounds(double *o, const int n, short h, char c) {
    __shared__ double s[128];
    extern __shared__ double d[];
    s[threadIdx.x] = o[threadIdx.x];
    d[threadIdx.x] = 1;
    __syncthreads();
    o[threadIdx.x] = s[(threadIdx.x + n) & 127] / d[h] + c;
}
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void recursion(int *o) { o[threadIdx.x] = fib(o[threadIdx.x]); }
extern "C" __global__ void stack(int *o, int k) {
    int a[64];
    for (int i = 0; i < 64; i++) a[i] = o[i] * i;
    for (int i = 0; i < k; i++) a[a[i] & 63] += i;
    o[threadIdx.x] = a[k & 63];
}
extern "C" __global__ void select(int *o, int k) {
    switch (k) {
    case 0: o[0] = 1; break;
    case 1: o[1] = o[2] * 7; break;
    case 2: o[3] = o[4] / 3; break;
    case 3: o[5] = 9; o[9] = 1; break;
    case 4: o[6] = o[7] + o[8]; break;
    case 5: o[11] = o[12] % 77; break;
    case 6: o[1] = 3; o[2] = 4; break;
    default: o[100] = 1;
    }
}
struct Big { int a[2000]; };
extern "C" __global__ void big(Big b, int k, int *o) { o[0] = b.a[k]; }
