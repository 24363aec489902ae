// Loops whose lanes leave at different times, each with one kind of instruction in the body.
#define LOOPK(NAME, PRE, BODY) extern "C" __global__ void NAME(int* out, const int* trips, int* g) { \
    __shared__ int s[1024]; int t = threadIdx.x, gid = blockIdx.x * 32 + t, n = trips[gid], v = t, i = 0; \
    unsigned sa = (unsigned)__cvta_generic_to_shared(s + t * 4); (void)sa; s[t] = t; PRE; \
    _Pragma("unroll 1") do { v = v * 3 + 1; BODY; } while (++i < n); out[gid] = v + s[(t + 1) & 31]; }
__constant__ int table[64] = { 1, 2, 3, 5, 7, 11, 13 };
LOOPK(m_alu, , )
LOOPK(m_lds, , v += ((volatile int*)s)[t])
LOOPK(m_atoms, , atomicAdd(s + (v & 31), 1))
LOOPK(m_redg, , atomicAdd(g + (v & 31), 1))
LOOPK(m_red_shared, , asm volatile("red.shared.add.u32 [%0], 1;" :: "r"(sa) : "memory"))
LOOPK(m_cpasync, , asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(sa), "l"(g + t) : "memory"))
LOOPK(m_cpwait, , asm volatile("cp.async.wait_all;" ::: "memory"))
LOOPK(m_cpcommit, , asm volatile("cp.async.commit_group;" ::: "memory"))
LOOPK(m_ldc, , v += table[v & 63])
LOOPK(m_prefetch, , asm volatile("prefetch.global.L2 [%0];" :: "l"(g + t) : "memory"))
LOOPK(m_ldmatrix, , { int r; asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(sa) : "memory"); v += r; })
LOOPK(m_membar_cta, , __threadfence_block())
LOOPK(m_membar_gl, , __threadfence())
LOOPK(m_ld_generic, int* p = n > 100 ? g : s, v += ((volatile int*)p)[t])
LOOPK(m_st_generic, int* p = n > 100 ? g : s, ((volatile int*)p)[t] = v)
LOOPK(m_at_generic, int* p = n > 100 ? g : s, atomicAdd(p + t, v))
LOOPK(m_local, volatile int a[8]; for (int k = 0; k < 8; ++k) a[k] = k, a[v & 7] = v)
LOOPK(m_nanosleep, , __nanosleep(123))
LOOPK(m_bar, , __syncthreads())
LOOPK(m_bar_arrive, , asm volatile("bar.arrive 1, 1024;" ::: "memory"))
LOOPK(m_syncwarp, , __syncwarp())
LOOPK(m_redux, , { int r; asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(v)); v += r; })
LOOPK(m_s2r, , { int r; asm volatile("mov.u32 %0, %%smid;" : "=r"(r)); v += r >> 20; })
LOOPK(m_globaltimer, , { unsigned long long r; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(r)); v += (int)(r >> 63); })
LOOPK(m_f64, double d = v, { d = d * 1.5 + 1.0; v += (int)d & 1; })
LOOPK(m_mbarrier, if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1000;" :: "r"(sa) : "memory"); __syncthreads(); sa -= t * 16, asm volatile("{ .reg .b64 st; mbarrier.arrive.shared.b64 st, [%0]; }" :: "r"(sa) : "memory"))
LOOPK(m_divide, , v = v / (t + 3) + n)
