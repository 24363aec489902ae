// What the kernels of the ground truth need of CUDA's headers, for clang alone.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
typedef __SIZE_TYPE__ size_t;
struct Index { unsigned x, y, z; };
#define INDEX(name, reg) \
    static __device__ __forceinline__ Index name() { \
        return {(unsigned)__nvvm_read_ptx_sreg_##reg##_x(), (unsigned)__nvvm_read_ptx_sreg_##reg##_y(), (unsigned)__nvvm_read_ptx_sreg_##reg##_z()}; \
    }
INDEX(get_tid, tid) INDEX(get_ctaid, ctaid) INDEX(get_ntid, ntid) INDEX(get_nctaid, nctaid)
#define threadIdx get_tid()
#define blockIdx get_ctaid()
#define blockDim get_ntid()
#define gridDim get_nctaid()
#define warpSize 32
#define D static __device__ __forceinline__
D int __shfl_xor_sync(unsigned m, int v, int o, int w = 32) { return __nvvm_shfl_sync_bfly_i32(m, v, o, 31); }
D int __shfl_down_sync(unsigned m, int v, int o, int w = 32) { return __nvvm_shfl_sync_down_i32(m, v, o, 31); }
D int __shfl_sync(unsigned m, int v, int l, int w = 32) { return __nvvm_shfl_sync_idx_i32(m, v, l, 31); }
D bool __any_sync(unsigned m, int p) { return __nvvm_vote_any_sync(m, p); }
D bool __all_sync(unsigned m, int p) { return __nvvm_vote_all_sync(m, p); }
D unsigned __ballot_sync(unsigned m, int p) { return __nvvm_vote_ballot_sync(m, p); }
D int __popc(unsigned x) { return __builtin_popcount(x); }
D void __syncwarp(unsigned m = ~0u) { __nvvm_bar_warp_sync(m); }
D void __threadfence() { __nvvm_membar_gl(); }
D int atomicCAS(int* p, int c, int v) { return __nvvm_atom_cas_gen_i(p, c, v); }
D int atomicExch(int* p, int v) { return __nvvm_atom_xchg_gen_i(p, v); }
D int atomicAdd(int* p, int v) { return __nvvm_atom_add_gen_i(p, v); }
D float __fmul_rn(float a, float b) { return a * b; }
D int min(int a, int b) { return a < b ? a : b; }
D int max(int a, int b) { return a > b ? a : b; }
