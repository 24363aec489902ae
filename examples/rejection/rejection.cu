// Gamma-distributed numbers by Marsaglia and Tsang's rejection. `nested` draws them as one writes it down: a loop
// over samples around a loop over attempts; each sample takes as long as the unluckiest lane needs. `flat` is the same
// work as one loop over attempts: a lane that was lucky goes on to its next sample at once.
__device__ unsigned next(unsigned &state) {
    state = state * 1664525u + 1013904223u;
    unsigned word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
    return (word >> 22) ^ word;
}

__device__ float uniform(unsigned &state) {
    return (next(state) >> 8) * 5.9604645e-8f + 2.9802322e-8f;
}

// One attempt; says whether it was accepted.
__device__ bool attempt(unsigned &state, float d, float c, float &sample) {
    float normal = sqrtf(-2.0f * __logf(uniform(state))) * __cosf(6.2831853f * uniform(state));
    float v = 1.0f + c * normal;
    v = v * v * v;
    float u = uniform(state);
    sample = d * v;
    return v > 0.0f && __logf(u) < 0.5f * normal * normal + d * (1.0f - v + __logf(v));
}

extern "C" __global__ void nested(const unsigned *seed, const float *shape, float *sum, int samples, int threads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= threads)
        return;
    unsigned state = seed[i];
    float d = shape[i] - 0.33333333f, c = 0.33333333f * rsqrtf(d), total = 0.0f;
    for (int k = 0; k < samples; k++) {
        float sample;
        while (!attempt(state, d, c, sample)) {
        }
        total += sample;
    }
    sum[i] = total;
}

extern "C" __global__ void flat(const unsigned *seed, const float *shape, float *sum, int samples, int threads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= threads)
        return;
    unsigned state = seed[i];
    float d = shape[i] - 0.33333333f, c = 0.33333333f * rsqrtf(d), total = 0.0f;
    int k = 0;
    while (k < samples) {
        float sample;
        if (attempt(state, d, c, sample)) {
            total += sample;
            k++;
        }
    }
    sum[i] = total;
}
