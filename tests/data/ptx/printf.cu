extern "C" __global__ void talk(const int* x, int* out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int used = printf("thread %d of block %u: %5.2f [%-6s] %c%%\n", threadIdx.x, blockIdx.x, x[t] * 0.5, t & 1 ? "odd" : "even", 'a' + t);
    if (x[t] < n) used += printf("%lld %p %x|%*d|\n", (long long)x[t] << 33, (void*)0, x[t], 6, t);
    out[t] = used;
}
