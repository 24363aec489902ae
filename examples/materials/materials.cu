// Shading in a path tracer: each thread has a hit and runs the code of the material it hit. Where hits arrive in
// the order of the pixels, the lanes of a warp hit different materials, and the warp runs every arm that any of
// them needs.
struct Sample {
    float value, weight;
};

__device__ float fraction(float x) {
    return x - floorf(x);
}

__device__ float fresnel(float cosine, float index) {
    float r = (1.0f - index) / (1.0f + index);
    float r0 = r * r, m = 1.0f - cosine, m2 = m * m;
    return r0 + (1.0f - r0) * m2 * m2 * m;
}

// GGX: the microfacets are looked up along the half vector, a few bounces deep.
__device__ Sample metal(float cosine, float u, float v, float rough) {
    Sample s = {0.0f, 1.0f};
#pragma unroll 1
    for (int bounce = 0; bounce < 4; bounce++) {
        float a = rough * rough;
        float h = sqrtf((1.0f - u) / (1.0f + (a * a - 1.0f) * u));
        float d = h * h * (a * a - 1.0f) + 1.0f;
        float g = 2.0f * cosine / (cosine + sqrtf(a * a + (1.0f - a * a) * cosine * cosine));
        s.value += s.weight * a * a / (3.14159265f * d * d) * g;
        s.weight *= fresnel(h, 0.2f);
        u = fraction(u + 0.61803399f);
        cosine = fabsf(h * cosine - sqrtf(1.0f - h * h) * v * 0.5f) + 1e-3f;
    }
    return s;
}

// Light walks about under the surface until its energy is spent.
__device__ Sample skin(float cosine, float u, float v) {
    Sample s = {0.0f, 1.0f};
#pragma unroll 1
    for (int step = 0; step < 16; step++) {
        float path = -__logf(1.0f - 0.999f * u);
        s.weight *= __expf(-0.4f * path) * 0.95f;
        s.value += s.weight * cosine * 0.1f;
        u = fraction(u * 7.13f + v);
        v = fraction(v * 3.71f + u);
    }
    return s;
}

__device__ Sample glass(float cosine, float u) {
    Sample s = {0.0f, 1.0f};
#pragma unroll 1
    for (int face = 0; face < 6; face++) {
        float f = fresnel(cosine, 1.5f);
        float sine2 = (1.0f - cosine * cosine) / 2.25f;
        s.value += s.weight * f;
        s.weight *= 1.0f - f;
        cosine = sqrtf(1.0f - sine2) * (u > f ? 1.0f : 0.9f);
    }
    return s;
}

__device__ Sample cloth(float cosine, float u, float v) {
    Sample s = {0.0f, 1.0f};
#pragma unroll 1
    for (int fibre = 0; fibre < 8; fibre++) {
        float tilt = __sinf(u * 6.2831853f + fibre) * 0.5f + v;
        s.value += __expf(-tilt * tilt * 4.0f) * sqrtf(1.0f - cosine * cosine + 1e-4f) * 0.125f;
    }
    return s;
}

__device__ Sample plastic(float cosine, float u, float v) {
    Sample coat = metal(cosine, u, v, 0.4f);
    float f = fresnel(cosine, 1.4f);
    Sample s = {f * coat.value + (1.0f - f) * cosine * 0.31830989f, coat.weight};
    return s;
}

extern "C" __global__ void shade(const int *material, const float *cosine, const float *u, const float *v,
                                 float *radiance, int hits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= hits)
        return;
    float c = cosine[i], a = u[i], b = v[i];
    Sample s = {0.0f, 0.0f};
    switch (material[i]) {
    case 0: // chalk
        s.value = c * 0.31830989f;
        s.weight = 0.8f;
        break;
    case 1:
        s = metal(c, a, b, 0.1f);
        break;
    case 2:
        s = glass(c, a);
        break;
    case 3:
        s = skin(c, a, b);
        break;
    case 4:
        s = cloth(c, a, b);
        break;
    case 5:
        s = plastic(c, a, b);
        break;
    case 6: // lamp
        s.value = 10.0f * c;
        break;
    default: // sky
        s.value = 0.2f + 0.8f * a;
        break;
    }
    radiance[i] = s.value * (1.0f + s.weight);
}
