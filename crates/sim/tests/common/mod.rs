//! Kernels built by hand.
#![allow(dead_code, unreachable_pub, missing_docs)]

use lanescope_ir::kernel::Function;
use lanescope_ir::op::control::{ControlOp, Decision};
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Addr, AtomOp, AtomType, MemoryOp, Space, Width};
use lanescope_ir::op::warp::{SpecialReg, WarpOp};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{BarrierReg, InstId, Instruction, Kernel, Op, Pred, PredSrc, Slot, Src};
use lanescope_sim::{GlobalMemory, Launch, Options, Outcome, SimError};

/// Where parameters lie in bank 0.
pub const PARAMS: u32 = 0x210;

pub fn r(i: u16) -> Src {
    Src::slot(Slot(i))
}
pub fn p(i: u16) -> PredSrc {
    PredSrc::of(Pred(i))
}
pub fn param(word: u32) -> Src {
    Src::constant(0, PARAMS + 4 * word)
}
pub fn imm(x: u32) -> Src {
    Src::imm(x)
}

/// Instructions of a kernel in order.
#[derive(Default)]
pub struct Code {
    pub insts: Vec<Instruction>,
}

impl Code {
    pub fn here(&self) -> u32 {
        self.insts.len() as u32
    }
    pub fn push(&mut self, guard: PredSrc, op: Op) -> u32 {
        let pc = self.here() * 16;
        self.insts.push(Instruction { pc, guard, uniform: false, op });
        self.here() - 1
    }
    pub fn lane(&mut self, f: IntFn, d: u16, src: &[Src]) -> u32 {
        let mut op = LaneOp::new(LaneFn::Int(f));
        op.dst[0] = Some(Slot(d));
        op.src[..src.len()].copy_from_slice(src);
        self.push(PredSrc::TRUE, Op::Lane(op))
    }
    pub fn lane_if(&mut self, guard: PredSrc, f: IntFn, d: u16, src: &[Src]) -> u32 {
        let at = self.lane(f, d, src);
        self.insts[at as usize].guard = guard;
        at
    }
    pub fn wide(&mut self, f: IntFn, d: u16, src: &[Src]) -> u32 {
        let at = self.lane(f, d, src);
        if let Op::Lane(op) = &mut self.insts[at as usize].op {
            op.dst[1] = Some(Slot(d + 1));
        }
        at
    }
    pub fn set(&mut self, cmp: Cmp, d: u16, a: Src, b: Src) -> u32 {
        let mut op = LaneOp::new(LaneFn::Int(IntFn::Set { cmp, signed: false }));
        op.pdst[0] = Some(Pred(d));
        op.src[..2].copy_from_slice(&[a, b]);
        self.push(PredSrc::TRUE, Op::Lane(op))
    }
    pub fn special(&mut self, d: u16, reg: SpecialReg) -> u32 {
        let op = WarpOp::Special { dst: [Some(Slot(d)), None], reg: [reg, SpecialReg::Zero] };
        self.push(PredSrc::TRUE, Op::Warp(op))
    }
    /// `d` = index of the thread in the grid, in x. `t` is overwritten.
    pub fn gid(&mut self, d: u16, t: u16) {
        self.special(d, SpecialReg::CtaId(0));
        self.special(t, SpecialReg::NTid(0));
        self.lane(IntFn::Mad, d, &[r(d), r(t), imm(0)]);
        self.special(t, SpecialReg::Tid(0));
        self.lane(IntFn::Add, d, &[r(d), r(t)]);
    }
    /// `(d, d + 1)` = address of element `index` of the buffer in parameter words `word`, `word + 1`.
    pub fn element(&mut self, d: u16, index: u16, size: u32, word: u32) {
        let f = IntFn::MadWide { signed: false, neg_c: false };
        self.wide(f, d, &[r(index), imm(size), param(word), param(word + 1)]);
    }
    pub fn load(&mut self, space: Space, width: Width, d: u16, addr: Addr) -> u32 {
        let dst = std::array::from_fn(|i| (i < width.slots()).then_some(Slot(d + i as u16)));
        self.push(PredSrc::TRUE, Op::Memory(MemoryOp::Load { space, width, dst, addr, valid: PredSrc::TRUE }))
    }
    pub fn store(&mut self, space: Space, width: Width, s: u16, addr: Addr) -> u32 {
        let src = std::array::from_fn(|i| if i < width.slots() { r(s + i as u16) } else { Src::ZERO });
        self.push(PredSrc::TRUE, Op::Memory(MemoryOp::Store { space, width, src, addr }))
    }
    pub fn atomic(&mut self, space: Space, op: AtomOp, d: Option<u16>, s: u16, addr: Addr) -> u32 {
        let mut src = [Src::ZERO; 4];
        src[0] = r(s);
        let dst = [d.map(Slot), None, None, None];
        let op = MemoryOp::Atomic { space, op, ty: AtomType::U32, dst, pdst: None, addr, src, compare: [Src::ZERO; 4] };
        self.push(PredSrc::TRUE, Op::Memory(op))
    }
    pub fn control(&mut self, guard: PredSrc, op: ControlOp) -> u32 {
        self.push(guard, Op::Control(op))
    }
    pub fn branch(&mut self, guard: PredSrc, target: u32) -> u32 {
        self.control(
            guard,
            ControlOp::Branch { target: InstId(target), cond: PredSrc::TRUE, decision: Decision::Lanes },
        )
    }
    /// Sets the target of a branch or BSSY to the next instruction.
    pub fn land(&mut self, at: u32) {
        let here = InstId(self.here());
        match &mut self.insts[at as usize].op {
            Op::Control(ControlOp::Branch { target, .. } | ControlOp::SyncSet { target, .. }) => *target = here,
            other => panic!("{other:?}"),
        }
    }
    pub fn bssy(&mut self, bar: u8) -> u32 {
        let op = ControlOp::SyncSet { bar: BarrierReg(bar), target: InstId(0), cond: PredSrc::TRUE };
        self.control(PredSrc::TRUE, op)
    }
    pub fn bsync(&mut self, bar: u8) -> u32 {
        self.control(PredSrc::TRUE, ControlOp::Sync { bar: BarrierReg(bar), cond: PredSrc::TRUE })
    }
    pub fn exit(&mut self, guard: PredSrc) -> u32 {
        self.control(guard, ControlOp::Exit { cond: PredSrc::TRUE })
    }
    pub fn kernel(self) -> Kernel {
        let n = self.insts.len() as u32;
        Kernel {
            name: "test".to_owned(),
            text: self.insts.iter().map(|i| format!("{:?}", i.op).chars().take(60).collect()).collect(),
            functions: vec![Function {
                name: "test".to_owned(),
                base: 0x1000,
                first: InstId(0),
                len: n,
                local: vec![],
            }],
            instructions: self.insts,
            slots: 32,
            preds: 8,
            ..Kernel::default()
        }
    }
}

/// 64-bit address in a register pair.
pub fn at(d: u16) -> Addr {
    Addr { base: r(d), base_hi: Some(r(d + 1)), uniform: None, signed: false, scale: 0, offset: 0 }
}
/// 32-bit address in a register.
pub fn at32(d: u16) -> Addr {
    Addr { base: r(d), base_hi: None, uniform: None, signed: false, scale: 0, offset: 0 }
}

pub fn launch(grid: u32, block: u32, params: &[u64], threads: usize) -> Launch {
    let mut bank0 = vec![0; PARAMS as usize];
    params.iter().for_each(|p| bank0.extend(p.to_le_bytes()));
    Launch {
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        dynamic_shared: 0,
        bank0,
        options: Options { threads, ..Options::default() },
    }
}

pub fn run(kernel: &Kernel, launch: &Launch, memory: &mut GlobalMemory) -> Result<Outcome, SimError> {
    lanescope_sim::simulate(kernel, launch, memory, None)
}

pub fn words(memory: &GlobalMemory, address: u64, n: u64) -> Vec<u32> {
    let bytes = memory.read(address, n * 4).expect("buffer");
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// The loop of kernel k: `x = gid * 2654435761 + 12345`, then `n` (parameter word 2) linear congruential steps of one of two
/// kinds, chosen by bit 13; `out[gid] = x`. As ptxas compiles it, the choice is two selects.
pub fn kernel_k(trips: Option<u32>) -> Kernel {
    let mut c = Code::default();
    c.gid(0, 1);
    c.lane(IntFn::Mad, 2, &[r(0), imm(2654435761), imm(12345)]);
    c.lane(IntFn::Mov, 3, &[imm(0)]);
    match trips {
        None => c.lane(IntFn::Mov, 6, &[param(2)]),
        Some(shift) => {
            c.lane(IntFn::ShrU, 6, &[r(2), imm(shift)]);
            c.lane(IntFn::Add, 6, &[r(6), imm(1)])
        }
    };
    let sync = c.bssy(0);
    let top = c.here();
    c.lane(IntFn::And, 4, &[r(2), imm(1 << 13)]);
    c.set(Cmp::Ne, 0, r(4), imm(0));
    c.lane(IntFn::Add, 3, &[r(3), imm(1)]);
    c.lane_if(p(0), IntFn::Mad, 5, &[r(2), imm(1664525), imm(1013904223)]);
    c.lane_if(p(0).not(), IntFn::Mad, 5, &[r(2), imm(22695477), imm(1)]);
    c.set(Cmp::Lt, 1, r(3), r(6));
    c.lane(IntFn::Mov, 2, &[r(5)]);
    c.branch(p(1), top);
    c.bsync(0);
    c.land(sync);
    c.element(8, 0, 4, 0);
    c.store(Space::Global, Width::B32, 2, at(8));
    c.exit(PredSrc::TRUE);
    c.kernel()
}

/// What kernel k computes.
pub fn k(gid: u32, trips: impl Fn(u32) -> u32) -> u32 {
    let mut x = gid.wrapping_mul(2654435761).wrapping_add(12345);
    for _ in 0..trips(x) {
        x = if x >> 13 & 1 != 0 {
            x.wrapping_mul(1664525).wrapping_add(1013904223)
        } else {
            x.wrapping_mul(22695477).wrapping_add(1)
        };
    }
    x
}
