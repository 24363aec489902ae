// Lookups in a hash table with linear probing. A table that is nearly full has long chains, and the warp follows the
// longest of its 32.
extern "C" __global__ void lookup(const unsigned *key, const unsigned *table, int *probes, int bits, int keys) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= keys)
        return;
    unsigned wanted = key[i];
    unsigned slot = (wanted * 2654435769u) >> (32 - bits);
    int n = 1;
    // Key 0 is an empty slot. The last chain ends in slots behind the table.
    for (unsigned found = table[slot]; found != wanted && found != 0; n++)
        found = table[++slot];
    probes[i] = n;
}
