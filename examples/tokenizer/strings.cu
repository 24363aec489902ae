// Counts the tokens of many strings as tokenizer.cu does, but the strings lie anywhere in the text: each has an
// offset and a length, as columns of strings do in data frames. So they can be taken in any order.
__device__ int kind(unsigned char c) {
    if (c == ' ' || c == '\n' || c == '\t')
        return 0;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return 1;
    if (c >= '0' && c <= '9')
        return 2;
    return 3;
}

extern "C" __global__ void count(const int *offset, const int *length, const unsigned char *text, int *tokens,
                                 int strings) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= strings)
        return;
    const unsigned char *at = text + offset[s];
    int n = length[s], found = 0, before = 0;
    for (int i = 0; i < n; i++) {
        int now = kind(at[i]);
        if (now == 3 || (now != 0 && now != before && !(now == 2 && before == 1)))
            found++;
        before = now == 2 && before == 1 ? 1 : now;
    }
    tokens[s] = found;
}

// The warp shares a string: each lane looks at every 32nd character and its forerunner. A word may go on in digits, so
// whether a digit begins a token depends on what began the run it is in; that lane looks back until it knows.
extern "C" __global__ void count_by_warp(const int *offset, const int *length, const unsigned char *text, int *tokens,
                                         int strings) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, s = thread / 32, lane = thread % 32;
    if (s >= strings)
        return;
    const unsigned char *at = text + offset[s];
    int n = length[s], found = 0;
    for (int i = lane; i < n; i += 32) {
        int now = kind(at[i]), before = i > 0 ? kind(at[i - 1]) : 0;
        // A digit after a letter or digit begins nothing; a letter after a digit does if the run began with a digit.
        if (now == 3 || (now == 2 && (before == 0 || before == 3)) || (now == 1 && (before == 0 || before == 3))) {
            found++;
        } else if (now == 1 && before == 2) {
            int k = i - 1;
            while (k > 0 && kind(at[k - 1]) == 2)
                k--;
            if (k == 0 || kind(at[k - 1]) != 1)
                found++;
        }
    }
    for (int d = 16; d > 0; d /= 2)
        found += __shfl_down_sync(0xffffffffu, found, d);
    if (lane == 0)
        tokens[s] = found;
}
