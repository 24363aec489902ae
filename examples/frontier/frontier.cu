// A level of breadth-first search: each thread takes a vertex of the frontier and marks its neighbours. Most vertices
// have a few, some have hundreds, and the warp waits for these.
extern "C" __global__ void expand(const int *frontier, const int *row_start, const int *neighbour,
                                  unsigned char *next, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    int v = frontier[i];
    for (int k = row_start[v]; k < row_start[v + 1]; k++)
        next[neighbour[k]] = 1;
}
