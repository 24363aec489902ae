// Waiting loops inside one warp and between two warps.
// Ask again at once until the lock is taken; release after the loop.
extern "C" __global__ void naive(int* lock, int* counter) {
    while (atomicCAS(lock, 0, 1) != 0) { }
    *(volatile int*)counter = *(volatile int*)counter + 1;
    __threadfence();
    atomicExch(lock, 0);
}
// Half the lanes contend, the others do arithmetic.
extern "C" __global__ void naive_some(int* lock, int* counter, int* out, const int* want) {
    int t = threadIdx.x, v = t;
    if (want[t] > 0) {
        while (atomicCAS(lock, 0, 1) != 0) { }
        *(volatile int*)counter = *(volatile int*)counter + want[t];
        __threadfence();
        atomicExch(lock, 0);
    } else {
        #pragma unroll 1
        for (int i = 0; i < -want[t]; ++i) v = v * 3 + 1;
    }
    out[t] = v;
}
// Several locks, chosen per lane.
extern "C" __global__ void naive_many(int* lock, int* counter, const int* which) {
    int k = which[threadIdx.x];
    while (atomicCAS(lock + k, 0, 1) != 0) { }
    *(volatile int*)(counter + k) = *(volatile int*)(counter + k) + 1;
    __threadfence();
    atomicExch(lock + k, 0);
}
extern "C" __global__ void try_lock_many(int* lock, int* counter, const int* which) {
    int k = which[threadIdx.x]; bool done = false;
    while (!done) {
        if (atomicCAS(lock + k, 0, 1) == 0) {
            *(volatile int*)(counter + k) = *(volatile int*)(counter + k) + 1;
            __threadfence();
            atomicExch(lock + k, 0);
            done = true;
        }
    }
}
// A sleep between the tries.
extern "C" __global__ void sleepy(int* lock, int* counter) {
    while (atomicCAS(lock, 0, 1) != 0) __nanosleep(100);
    *(volatile int*)counter = *(volatile int*)counter + 1;
    __threadfence();
    atomicExch(lock, 0);
}
// Ticket lock: lanes served in order of their tickets.
extern "C" __global__ void ticket(int* state, int* counter, int* order) {
    int my = atomicAdd(state, 1);
    while (((volatile int*)state)[1] != my) { }
    int c = *(volatile int*)counter; *(volatile int*)counter = c + 1; order[threadIdx.x] = c;
    __threadfence();
    ((volatile int*)state)[1] = my + 1;
}
// Each lane waits for the flag of the lane before it, in shared memory.
extern "C" __global__ void chain(int* out, int start) {
    __shared__ volatile int flag[33];
    int t = threadIdx.x;
    flag[t + 1] = 0; if (t == 0) flag[0] = start;
    __syncwarp();
    while (flag[t] == 0) { }
    int v = flag[t] * 2 + 1;
    flag[t + 1] = v | 1;
    out[t] = v;
}
// Backwards, so that the order of lanes does not help.
extern "C" __global__ void chain_down(int* out, int start) {
    __shared__ volatile int flag[33];
    int t = threadIdx.x;
    flag[t] = 0; if (t == 0) flag[32] = start;
    __syncwarp();
    while (flag[t + 1] == 0) { }
    int v = flag[t + 1] * 2 + 1;
    flag[t] = v | 1;
    out[t] = v;
}
// Lane 0 produces after the others began to wait; they wait with a sleep.
extern "C" __global__ void produce_sleep(int* out, const int* x, int* box) {
    int t = threadIdx.x; volatile int* b = box;
    if (t == 0) { b[1] = x[0] * 3; __threadfence(); b[0] = 1; }
    else { while (b[0] == 0) __nanosleep(50); }
    out[t] = b[1] + t;
}
// The waiting arm has more lanes, the producer is in the other; no sleep.
extern "C" __global__ void produce(int* out, const int* x, int* box) {
    int t = threadIdx.x; volatile int* b = box;
    if (x[t] > 50) { b[1] = x[t] * 3; __threadfence(); b[0] = 1; }
    else { while (b[0] == 0) { } }
    out[t] = b[1] != 0;
}
// A wait written in one loop with the work: lanes advance when their turn comes.
extern "C" __global__ void turns(int* out, int* turn, const int* rank) {
    int t = threadIdx.x, r = rank[t], k = 0;
    bool done = false;
    while (!done) {
        ++k;
        if (*(volatile int*)turn == r) { out[t] = k; __threadfence(); *(volatile int*)turn = r + 1; done = true; }
    }
}
