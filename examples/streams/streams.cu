// Converts a ledger into one currency: four kinds of entries, four arms, all in every warp. But each entry brings
// ten words from memory, and memory is what the kernel waits for.
extern "C" __global__ void convert(const int *currency, const float *amount, const float *fee, const float *rate,
                                   const float *spread, const float *tax, const float *days, const float *bonus,
                                   float *net, float *gross, int entries) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= entries)
        return;
    float a = amount[i], f = fee[i], r = rate[i], s = spread[i], t = tax[i], d = days[i], b = bonus[i];
    float total, rest;
    switch (currency[i]) {
    case 0: // at home: rounded down to cents
        total = floorf((a - f) * 100.0f) * 0.01f;
        rest = total * (1.0f - t) + b;
        break;
    case 1: // at the day's rate, with interest
        total = (a - f) * r * (1.0f + d * 0.0001f * (1.0f + d * 0.00005f));
        rest = total / (1.0f + t) + b * r;
        break;
    case 2: // through another currency
        total = (a * (r - s) - f) * (r + s) / (r * r - s * s + 1.0f);
        rest = fmaf(total, -t, total) + b * s;
        break;
    default: // barter: by the root of the goods' prices
        total = sqrtf(a * a * r + f * f * s);
        rest = total * expf(-t * d * 0.001f) + b;
        break;
    }
    net[i] = rest;
    gross[i] = total;
}
