// Sparse matrix (CSR) times vector, one thread a row: rows of unequal length make the lanes of a warp wait for
// the longest row among them.
extern "C" __global__ void spmv(float *y, const int *row_start, const int *column, const float *value,
                                const float *x, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = row_start[row]; k < row_start[row + 1]; k++)
        sum += value[k] * x[column[k]];
    y[row] = sum;
}
