extern "C" __global__ void divergent_kernel(int *data, int n) {
    int idx = threadIdx.x;
    if (idx < 16) { data[idx] = data[idx] * 2; } else { data[idx] = data[idx] + 100; }
}
extern "C" __global__ void data_dependent(int *types, float *data) {
    int idx = threadIdx.x;
    int type = types[idx];
    if (type == 0) data[idx] = sqrtf(data[idx]);
    else if (type == 1) data[idx] = expf(data[idx]);
    else if (type == 2) data[idx] = logf(data[idx]);
    else data[idx] = data[idx]*data[idx];
}
extern "C" __global__ void loop_divergent(int *counts, float *data) {
    int idx = threadIdx.x;
    for (int i = 0; i < counts[idx]; i++) data[idx] += i * 0.5f;
}
extern "C" __global__ void moe(const int* expert, const float* x, float* y, int n, int me){
    int i = blockIdx.x*blockDim.x+threadIdx.x;
    if (i<n) { if (expert[i]==me) { float v=x[i]; for(int k=0;k<100;k++) v = v*1.0001f+0.5f/(v+k); y[i]=v; } else y[i]=0; }
}
