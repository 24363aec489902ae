// Mixture of experts, top-k routing: each thread has one (token, expert) pair and runs its expert on the token. In
// the order in which tokens arrive, a warp holds pairs of many experts.
#define WIDTH 8
#define HIDDEN 32

__device__ float run_expert(const float *weight, const float *out, const float x[WIDTH]) {
    float y = 0.0f;
#pragma unroll 4
    for (int h = 0; h < HIDDEN; h++) {
        float dot = 0.0f;
        for (int k = 0; k < WIDTH; k++)
            dot += weight[h * WIDTH + k] * x[k];
        y += out[h] * dot / (1.0f + __expf(-dot));
    }
    return y;
}

// Asks for every expert in turn. An expert that no lane of the warp wants costs only the question.
extern "C" __global__ void route(const int *expert, const float *token, const float *weight, const float *out,
                                 float *y, int pairs, int experts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs)
        return;
    int mine = expert[i];
    float x[WIDTH];
    for (int k = 0; k < WIDTH; k++)
        x[k] = token[k * pairs + i];
#pragma unroll 1
    for (int e = 0; e < experts; e++)
        if (mine == e)
            y[i] = run_expert(weight + e * HIDDEN * WIDTH, out + e * HIDDEN, x);
}

// Asks only for experts that a lane of the warp wants, found by ballot.
extern "C" __global__ void route_ballot(const int *expert, const float *token, const float *weight, const float *out,
                                        float *y, int pairs, int experts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int mine = i < pairs ? expert[i] : -1;
    float x[WIDTH];
    for (int k = 0; k < WIDTH; k++)
        x[k] = i < pairs ? token[k * pairs + i] : 0.0f;
    unsigned waiting = __ballot_sync(0xffffffffu, mine >= 0 && mine < experts);
    while (waiting) {
        int e = __shfl_sync(0xffffffffu, mine, __ffs(waiting) - 1);
        if (mine == e)
            y[i] = run_expert(weight + e * HIDDEN * WIDTH, out + e * HIDDEN, x);
        waiting &= ~__ballot_sync(0xffffffffu, mine == e);
    }
}
