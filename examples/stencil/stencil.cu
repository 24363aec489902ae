// A step of heat flow on a plate, in tiles of 32 x 8 with a halo in shared memory. Two ifs look bad: the lanes at a
// tile's rim load the halo, and cells at the plate's rim have no neighbour to load.
#define W 32
#define H 8

extern "C" __global__ void heat(const float *before, float *after, int width, int height, float rate) {
    __shared__ float tile[H + 2][W + 2];
    int x = blockIdx.x * W + threadIdx.x, y = blockIdx.y * H + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    bool inside = x < width && y < height;
    float here = inside ? before[y * width + x] : 0.0f;
    tile[ty][tx] = here;
    if (inside) {
        if (threadIdx.x == 0)
            tile[ty][0] = x > 0 ? before[y * width + x - 1] : here;
        if (threadIdx.x == W - 1 || x == width - 1)
            tile[ty][tx + 1] = x < width - 1 ? before[y * width + x + 1] : here;
        if (threadIdx.y == 0)
            tile[0][tx] = y > 0 ? before[(y - 1) * width + x] : here;
        if (threadIdx.y == H - 1 || y == height - 1)
            tile[ty + 1][tx] = y < height - 1 ? before[(y + 1) * width + x] : here;
    }
    __syncthreads();
    if (!inside)
        return;
    float around = tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx];
    after[y * width + x] = here + rate * (around - 4.0f * here);
}
