// Three kernels that courses use to explain divergence. Only two of them diverge once they are compiled.

// Everybody's first example. The compiler predicates it: there is no branch to diverge at.
extern "C" __global__ void half_and_half(int *data) {
    int i = threadIdx.x;
    if (i < 16)
        data[i] = data[i] * 2;
    else
        data[i] = data[i] + 100;
}

// Four paths, chosen by data: the long ones stay branches.
extern "C" __global__ void by_type(const int *types, float *data) {
    int i = threadIdx.x;
    int type = types[i];
    if (type == 0)
        data[i] = sqrtf(data[i]);
    else if (type == 1)
        data[i] = expf(data[i]);
    else if (type == 2)
        data[i] = logf(data[i]);
    else
        data[i] = data[i] * data[i];
}

// Loops of unequal length: the warp goes on until its longest lane is done.
extern "C" __global__ void unequal_trips(const int *counts, float *data) {
    int i = threadIdx.x;
    for (int k = 0; k < counts[i]; k++)
        data[i] += k * 0.5f;
}
