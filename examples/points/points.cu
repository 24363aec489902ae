// Escape times of points that come in any order, as from a sampler that hunts for the set's border.
extern "C" __global__ void escape(const float *re, const float *im, int *trips, int limit, int points) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points)
        return;
    float cr = re[i], ci = im[i], zr = 0.0f, zi = 0.0f;
    int k = 0;
    while (k < limit && zr * zr + zi * zi < 4.0f) {
        float t = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = t;
        k++;
    }
    trips[i] = k;
}
