__device__ __forceinline__ int inner(int x, int y) {
    int r = x * y;
    if (r > 100) r -= y;
    return r;
}
__device__ __forceinline__ int middle(int x, int *o) {
    int a = inner(x, 3);
    int b = inner(a, o[x]);
    return a + b;
}
template <class T> __device__ __forceinline__ T outer(T x, int *o) {
    T s = 0;
    for (int i = 0; i < x; i++) s += middle(i, o); return s;
}
extern "C" __global__ void nest(int *o, int n) {
    o[threadIdx.x] = outer(n, o) + inner(n, 7);
    o[n] = middle(n, o + 1);
}
