// Mixture-of-experts dispatch, the naive way: every expert's launch visits all tokens, and the lanes whose token
// belongs to another expert wait for those that work.
extern "C" __global__ void moe(const int *expert, const float *x, float *y, int tokens, int me) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= tokens)
        return;
    if (expert[i] == me) {
        float v = x[i];
        for (int k = 0; k < 100; k++)
            v = v * 1.0001f + 0.5f / (v + k);
        y[i] = v;
    } else {
        y[i] = 0.0f;
    }
}
