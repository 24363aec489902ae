// Sparse matrix (CSR) times vector with rows of very unequal length, three ways: a thread, eight lanes or a warp for
// each row. `ordered` is a thread for each row again, but takes the rows in the order of a list.
extern "C" __global__ void ordered(float *y, const int *order, const int *row_start, const int *column,
                                   const float *value, const float *x, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows)
        return;
    int row = order[i];
    float sum = 0.0f;
    for (int k = row_start[row]; k < row_start[row + 1]; k++)
        sum += value[k] * x[column[k]];
    y[row] = sum;
}

extern "C" __global__ void eight_lanes(float *y, const int *row_start, const int *column, const float *value,
                                       const float *x, int rows) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, row = thread / 8, lane = thread % 8;
    float sum = 0.0f;
    if (row < rows)
        for (int k = row_start[row] + lane; k < row_start[row + 1]; k += 8)
            sum += value[k] * x[column[k]];
    for (int d = 4; d > 0; d /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, d, 8);
    if (row < rows && lane == 0)
        y[row] = sum;
}

extern "C" __global__ void warp(float *y, const int *row_start, const int *column, const float *value, const float *x,
                                int rows) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, row = thread / 32, lane = thread % 32;
    float sum = 0.0f;
    if (row < rows)
        for (int k = row_start[row] + lane; k < row_start[row + 1]; k += 32)
            sum += value[k] * x[column[k]];
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (row < rows && lane == 0)
        y[row] = sum;
}
