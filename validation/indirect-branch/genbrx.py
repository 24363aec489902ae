# Writes brx.ptx: one kernel per target count; every target notes the clock, then does work of its own.
def kern(n, name, mapping=None):
    idx = mapping or list(range(n)); lab = sorted(set(idx))
    s = f""".visible .entry {name}(.param .u64 out, .param .u64 clk, .param .u64 sel)
{{
 .reg .b32 t<4>, v<4>, c<4>, n; .reg .b64 a<8>;
 ld.param.u64 a0,[out]; ld.param.u64 a1,[clk]; ld.param.u64 a2,[sel];
 mov.u32 t0,%tid.x; mov.u32 t1,%ctaid.x; mad.lo.u32 t0,t1,32,t0; mul.wide.u32 a3,t0,4;
 add.s64 a0,a0,a3; add.s64 a1,a1,a3; add.s64 a2,a2,a3; ld.global.u32 v0,[a2];
 mov.u32 v1,t0;
T: .branchtargets {', '.join('L%d'%i for i in idx)};
 brx.idx v0, T;
"""
    for i in lab:
        s += f"L{i}: mov.u32 c0,%clock; mad.lo.u32 v1,v1,{2*i+3},{i+11}; xor.b32 v1,v1,{0x1000*(i+1)}; bra J;\n"
    s += """J: mov.u32 c1,%clock;
 mov.u32 n,%nctaid.x; mul.wide.u32 a4,n,128; add.s64 a5,a1,a4;
 st.global.u32 [a0],v1; st.global.u32 [a1],c0; st.global.u32 [a5],c1; ret;
}
"""
    return s
open('brx.ptx','w').write(".version 8.0\n.target sm_90\n.address_size 64\n// Indirect branches with 3 to 32 targets, written by genbrx.py.\n" +
 "".join(kern(n, f"brx{n}") for n in (3,4,5,6,8,16,32)) + kern(8,"brx_shared",[0,1,2,0,3,1,2,4]))
