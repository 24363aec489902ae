// Integrates 1 / ((x - centre)^2 + width^2) from 0 to 1 with steps that adapt: short ones at the peak. Threads with
// sharp peaks take many more steps than those with broad ones.
__device__ float peak(float x, float centre, float width) {
    float d = x - centre;
    return 1.0f / (d * d + width * width);
}

extern "C" __global__ void integrate(const float *centre, const float *width, float *area, int *steps,
                                     float tolerance, int threads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= threads)
        return;
    float c = centre[i], w = width[i], x = 0.0f, h = 0.125f, sum = 0.0f;
    int n = 0;
    float f0 = peak(0.0f, c, w);
    while (x < 1.0f && n < 4096) {
        n++;
        h = fminf(h, 1.0f - x);
        float f1 = peak(x + 0.5f * h, c, w), f2 = peak(x + h, c, w);
        float trapezoid = 0.5f * h * (f0 + f2), simpson = h * (f0 + 4.0f * f1 + f2) * 0.16666667f;
        float error = fabsf(trapezoid - simpson);
        if (error > tolerance * simpson && h > 1e-5f) {
            h *= 0.5f;
        } else {
            sum += simpson;
            x += h;
            f0 = f2;
            h *= 1.5f;
        }
    }
    area[i] = sum;
    steps[i] = n;
}
