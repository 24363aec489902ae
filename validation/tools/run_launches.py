"""Runs launch files on a GPU through the CUDA driver and stores every buffer after the run in one .npz.

    python3 run_launches.py OUT.npz LIST      LIST names one launch file a line

Needs only libcuda and NumPy, so that a profiler can wrap it.
"""
import ctypes as C, sys, os, tomllib, numpy as np
cu=C.CDLL('libcuda.so.1')
DT={'i32':np.int32,'u32':np.uint32,'f32':np.float32,'f64':np.float64,'i64':np.int64,'u64':np.uint64,'u8':np.uint8,'i8':np.int8,'u16':np.uint16,'i16':np.int16,'f16':np.float16}
def ck(r,w):
    if r: raise RuntimeError(f'{w}: {r}')
dev=C.c_int(); ctx=C.c_void_p()
ck(cu.cuInit(0),'init'); ck(cu.cuDeviceGet(C.byref(dev),0),'dev'); ck(cu.cuDevicePrimaryCtxRetain(C.byref(ctx),dev),'ctx'); ck(cu.cuCtxSetCurrent(ctx),'cur')
mods={}
def run(path):
    d=tomllib.load(open(path,'rb')); base=os.path.dirname(path)
    m=os.path.join(base,d['module'])
    # a fresh module for each launch, so that __device__ variables start as in the file
    h=C.c_void_p(); ck(cu.cuModuleLoadData(C.byref(h),open(m,'rb').read()),'load '+m)
    f=C.c_void_p(); ck(cu.cuModuleGetFunction(C.byref(f),h,d['kernel'].encode()),'fn '+d['kernel'])
    bufs={}; vals=[]
    for k,a in enumerate(d.get('arg',[])):
        if 'npy' in a or 'zeros' in a:
            x=np.load(os.path.join(base,a['npy'])) if 'npy' in a else np.zeros(a['zeros']['len'],DT[a['zeros']['dtype']])
            x=np.ascontiguousarray(x); p=C.c_uint64(); ck(cu.cuMemAlloc_v2(C.byref(p),C.c_size_t(max(16,x.nbytes))),'alloc')
            ck(cu.cuMemcpyHtoD_v2(p,x.ctypes.data_as(C.c_void_p),C.c_size_t(x.nbytes)),'h2d'); bufs[k]=(p,x); vals.append(p)
        else:
            (t,v),=[(t,v) for t,v in a.items() if t in DT]; vals.append(np.array([v],DT[t]))
    ptrs=(C.c_void_p*max(1,len(vals)))(*[C.cast(C.byref(v),C.c_void_p) if isinstance(v,C.c_uint64) else v.ctypes.data_as(C.c_void_p) for v in vals])
    g,b,s=d['grid'],d['block'],d.get('dynamic_shared',0)
    if s>48*1024: ck(cu.cuFuncSetAttribute(f,8,s),'attr')
    ck(cu.cuLaunchKernel(f,*g,*b,s,None,ptrs,None),'launch'); ck(cu.cuCtxSynchronize(),'sync')
    out={}
    for k,(p,x) in bufs.items():
        y=np.empty_like(x); ck(cu.cuMemcpyDtoH_v2(y.ctypes.data_as(C.c_void_p),p,C.c_size_t(x.nbytes)),'d2h'); out[k]=y; cu.cuMemFree_v2(p)
    return out
if __name__=='__main__':
    dst,lst=sys.argv[1:3]; res={}; 
    for l in open(lst).read().split():
        try: o=run(l)
        except Exception as e: print('FAIL',l,e,flush=True); break
        for k,y in o.items(): res[f'{os.path.basename(l)[:-5]}/{k}']=y
    np.savez_compressed(dst,**res); print('done',len(res))
