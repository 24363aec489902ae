// One step of a simulation with four kinds of particles, each with its own physics. Particles lie in memory in the
// order in which they were born, so that neighbours are of different kinds.
extern "C" __global__ void step(const int *kind, float *x, float *y, float *vx, float *vy, float dt, int particles) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= particles)
        return;
    float px = x[i], py = y[i], ux = vx[i], uy = vy[i];
    int k = kind[i];
    if (k == 0) {
        // Dust: falls, slowed down by the air.
        float drag = 1.0f / (1.0f + 0.3f * sqrtf(ux * ux + uy * uy) * dt);
        ux *= drag;
        uy = (uy - 9.81f * dt) * drag;
        px += ux * dt;
        py += uy * dt;
    } else if (k == 1) {
        // Charged: turns in a field that depends on where it is, in short steps.
        float h = dt / 16;
#pragma unroll 1
        for (int s = 0; s < 16; s++) {
            float field = 2.0f + __sinf(px) * __cosf(py);
            float t = 0.5f * h * field, f = 2.0f / (1.0f + t * t);
            float wx = ux + uy * t, wy = uy - ux * t;
            ux += wy * t * f;
            uy -= wx * t * f;
            px += ux * h;
            py += uy * h;
        }
    } else if (k == 2) {
        // Bouncing ball: may hit the four walls several times in one step.
        float left = dt;
#pragma unroll 1
        for (int hit = 0; hit < 8; hit++) {
            float tx = ux > 0.0f ? (1.0f - px) / ux : (ux < 0.0f ? -px / ux : 1e9f);
            float ty = uy > 0.0f ? (1.0f - py) / uy : (uy < 0.0f ? -py / uy : 1e9f);
            float t = fminf(fminf(tx, ty), left);
            px += ux * t;
            py += uy * t;
            left -= t;
            if (left > 0.0f) {
                if (tx < ty)
                    ux = -0.9f * ux;
                else
                    uy = -0.9f * uy;
            }
        }
    } else {
        // Bound by a stiff spring to the middle: implicit step, solved by iteration.
        float nx = px, ny = py;
#pragma unroll 1
        for (int s = 0; s < 12; s++) {
            float dx = nx - 0.5f, dy = ny - 0.5f;
            float pull = 40.0f * (1.0f - 0.2f * rsqrtf(dx * dx + dy * dy + 1e-6f));
            nx = px + dt * (ux - dt * pull * dx);
            ny = py + dt * (uy - dt * pull * dy);
        }
        ux = (nx - px) / dt;
        uy = (ny - py) / dt;
        px = nx;
        py = ny;
    }
    x[i] = px;
    y[i] = py;
    vx[i] = ux;
    vy[i] = uy;
}
