// Converts a ledger into one currency: four kinds of entries, four arms, all in every warp. But entries come from
// memory, and memory is what the kernels wait for.
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

// The same for entries with four quarters: twice the memory, the same arms.
__device__ float sum(float4 q) {
    return (q.x + q.y) + (q.z + q.w);
}

extern "C" __global__ void quarters(const int *currency, const float4 *amount, const float4 *fee, const float4 *rate,
                                    const float4 *tax, float4 *net, int entries) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= entries)
        return;
    float4 q = amount[i];
    float a = sum(q), f = sum(fee[i]), r = sum(rate[i]) * 0.25f, t = sum(tax[i]) * 0.25f, share;
    switch (currency[i]) {
    case 0: // at home: rounded down to cents
        share = floorf((a - f) * (1.0f - t) * 100.0f) * 0.01f;
        break;
    case 1: // at the day's rate, with interest
        share = (a - f) * r * (1.0f - t) * (1.0f + 0.0125f * r * (1.0f + 0.00625f * r));
        break;
    case 2: // through another currency
        share = __fdividef((a * r - f) * (r + t), r * r - t * t + 3.0f) + f * t;
        break;
    default: // barter: by the root of the goods' prices
        share = __fsqrt_rn(a * a * r + f * f) * __expf(-0.01f * t) - f;
        break;
    }
    share = __fdividef(share, a);
    net[i] = make_float4(q.x * share, q.y * share, q.z * share, q.w * share);
}
