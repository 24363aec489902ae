// Escape times of the Mandelbrot set: neighbours on the set's border leave the loop at very different trips.
extern "C" __global__ void mandelbrot(int *trips, int width, int height, int limit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float cr = -2.25f + 3.0f * x / width;
    float ci = -1.25f + 2.5f * y / height;
    float zr = 0.0f, zi = 0.0f;
    int k = 0;
    while (k < limit && zr * zr + zi * zi < 4.0f) {
        float t = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = t;
        k++;
    }
    trips[y * width + x] = k;
}
