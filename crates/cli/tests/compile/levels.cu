// Branches that the compiler treats in different ways.

extern "C" __global__ void fates(int* out, const int* in, const int* trips, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = in[i];
  if (v & 1) out[i] = v;
  if (v > n) {
    for (int k = 0; k < trips[i]; ++k) v = v * 3 + in[k];
    out[i + n] = v;
  }
  if (n > 64) {
#pragma unroll 1
    for (int k = 0; k < n; ++k) v ^= in[k] * trips[k];
    out[i + 2 * n] = v;
  }
}
