//! Hand-built kernels for tests: one method an instruction, targets as instruction numbers.

use lanescope_ir::op::control::{ControlOp, Decision, Indirect};
use lanescope_ir::{
    BarrierReg, BranchCounts, BranchKind, Function, InstId, Instruction, Kernel, LaneCounts, Op, Pred, PredSrc, Src,
    TargetTable,
};

/// Collects instructions.
#[derive(Default)]
pub(crate) struct Builder {
    list: Vec<(PredSrc, Op, String)>,
    tables: Vec<TargetTable>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self::default()
    }
    pub(crate) fn push(&mut self, guard: PredSrc, op: Op, text: &str) -> &mut Self {
        self.list.push((guard, op, text.to_owned()));
        self
    }
    pub(crate) fn nop(&mut self) -> &mut Self {
        self.push(PredSrc::TRUE, Op::Nop, "NOP")
    }
    pub(crate) fn bra(&mut self, target: u32) -> &mut Self {
        self.push(PredSrc::TRUE, branch(target), &format!("BRA {:#x}", target * 16))
    }
    pub(crate) fn never_bra(&mut self, target: u32) -> &mut Self {
        self.push(PredSrc::FALSE, branch(target), "@!PT BRA 0x0")
    }
    pub(crate) fn bra_if(&mut self, p: u16, target: u32) -> &mut Self {
        self.push(PredSrc::of(Pred(p)), branch(target), &format!("@P{p} BRA {:#x}", target * 16))
    }
    pub(crate) fn exit(&mut self) -> &mut Self {
        self.push(PredSrc::TRUE, Op::Control(ControlOp::Exit { cond: PredSrc::TRUE }), "EXIT")
    }
    pub(crate) fn exit_if(&mut self, p: u16) -> &mut Self {
        let op = Op::Control(ControlOp::Exit { cond: PredSrc::TRUE });
        self.push(PredSrc::of(Pred(p)), op, &format!("@P{p} EXIT"))
    }
    pub(crate) fn bssy(&mut self, bar: u8, target: u32) -> &mut Self {
        let op = ControlOp::SyncSet { bar: BarrierReg(bar), target: InstId(target), cond: PredSrc::TRUE };
        self.push(PredSrc::TRUE, Op::Control(op), &format!("BSSY B{bar}, {:#x}", target * 16))
    }
    pub(crate) fn bsync(&mut self, bar: u8) -> &mut Self {
        let op = ControlOp::Sync { bar: BarrierReg(bar), cond: PredSrc::TRUE };
        self.push(PredSrc::TRUE, Op::Control(op), &format!("BSYNC B{bar}"))
    }
    pub(crate) fn call(&mut self, target: u32) -> &mut Self {
        let op = ControlOp::Call { target: InstId(target), cond: PredSrc::TRUE };
        self.push(PredSrc::TRUE, Op::Control(op), &format!("CALL.REL.NOINC {:#x}", target * 16))
    }
    pub(crate) fn ret(&mut self) -> &mut Self {
        let op = ControlOp::Return { target: nowhere(), cond: PredSrc::TRUE };
        self.push(PredSrc::TRUE, Op::Control(op), "RET.REL.NODEC R2 0x0")
    }
    pub(crate) fn brx(&mut self, targets: &[u32]) -> &mut Self {
        let branch = InstId(self.list.len() as u32);
        self.tables.push(TargetTable { branch, targets: targets.iter().map(|&t| InstId(t)).collect() });
        let op = ControlOp::BranchIndirect { target: nowhere(), cond: PredSrc::TRUE };
        self.push(PredSrc::TRUE, Op::Control(op), "BRX R4 -0x10")
    }
    pub(crate) fn kernel(&self) -> Kernel {
        let n = self.list.len() as u32;
        Kernel {
            name: "k".into(),
            arch: "sm_90".into(),
            instructions: (0u32..)
                .zip(&self.list)
                .map(|(i, (guard, op, _))| Instruction { pc: i * 16, guard: *guard, uniform: false, op: op.clone() })
                .collect(),
            text: self.list.iter().map(|l| l.2.clone()).collect(),
            functions: vec![Function { name: "k".into(), base: 0, first: InstId(0), len: n, local: vec![] }],
            targets: self.tables.clone(),
            preds: 8,
            ..Kernel::default()
        }
    }
}

fn branch(target: u32) -> Op {
    Op::Control(ControlOp::Branch { target: InstId(target), cond: PredSrc::TRUE, decision: Decision::Lanes })
}

fn nowhere() -> Indirect {
    Indirect { reg: [Src::ZERO; 2], base: 0 }
}

/// Counters without missing lanes.
pub(crate) fn counts(issues: u64, lanes: u64) -> LaneCounts {
    LaneCounts {
        inst_executed: issues,
        thread_inst_executed: lanes,
        thread_inst_executed_pred_on: lanes,
        ..LaneCounts::default()
    }
}

/// Counters of a conditional branch.
pub(crate) fn branch_counts(inst: u32, executed: u64, divergent: u64, taken: u64, not_taken: u64) -> BranchCounts {
    BranchCounts {
        inst,
        kind: BranchKind::Branch,
        executed,
        divergent,
        lanes_taken: taken,
        lanes_not_taken: not_taken,
        lanes_histogram: Vec::new(),
    }
}
