// Counts the tokens of many strings, one thread a string: words, numbers and single punctuation marks.
// Most strings are short; one in sixty-four is long, and its warp waits for it.
__device__ int kind(unsigned char c) {
    if (c == ' ' || c == '\n' || c == '\t')
        return 0;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return 1;
    if (c >= '0' && c <= '9')
        return 2;
    return 3;
}

extern "C" __global__ void count_tokens(int *tokens, const unsigned char *text, const int *start, int strings) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= strings)
        return;
    int count = 0, before = 0;
    for (int i = start[s]; i < start[s + 1]; i++) {
        int now = kind(text[i]);
        if (now == 3 || (now != 0 && now != before && !(now == 2 && before == 1)))
            count++;
        before = now == 2 && before == 1 ? 1 : now;
    }
    tokens[s] = count;
}
