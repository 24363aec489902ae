// Runs small programs on many data: every thread steps through the program of its item. Where neighbours have
// different programs, the warp goes through every operation that any lane stands at.
#define STEPS 24

extern "C" __global__ void interpret(const int *program, const unsigned char *code, const float *input, float *output,
                                     int items) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= items)
        return;
    const unsigned char *at = code + program[i] * STEPS;
    float a = input[i], b = 1.0f;
#pragma unroll 1
    for (int k = 0; k < STEPS; k++) {
        switch (at[k]) {
        case 0:
            a = a * 1.01f + b;
            break;
        case 1:
            b = sqrtf(fabsf(a)) + 0.5f;
            break;
        case 2:
            a = __sinf(a) * b - a * 0.125f;
            break;
        case 3: {
            float t = a;
            a = b;
            b = t;
            break;
        }
        case 4:
            for (int n = 0; n < 4; n++)
                b = 0.5f * (b + fabsf(a) / (fabsf(b) + 0.01f));
            break;
        case 5:
            a = __expf(-a * a) + b * 0.5f;
            break;
        case 6:
            a = fminf(fmaxf(a, -8.0f), 8.0f);
            b = b * 0.75f + a * a * 0.03125f;
            break;
        default:
            a = __logf(1.0f + fabsf(a)) + b / (2.0f + fabsf(b));
            break;
        }
    }
    output[i] = a;
}
