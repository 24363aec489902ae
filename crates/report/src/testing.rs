//! A small kernel for tests, with its counters and the trace of its one warp.

use lanescope_ir::op::control::{ControlOp, Decision};
use lanescope_ir::source::{InlineSite, Location};
use lanescope_ir::{
    BarrierReg, BranchCounts, BranchKind, Function, InstId, Instruction, Kernel, LaneCounts, LaneMask, LaunchShape, Op,
    Pred, PredSrc, Profile, SourceMap, TripHistogram,
};

use crate::trace::{Event, Step, Trace};

/// An if with two arms: `BSSY, BRA, arm, BRA, arm, BSYNC, EXIT`.
pub(crate) fn kernel(text: &str) -> Kernel {
    let control = |op| Op::Control(op);
    let bra = |target| ControlOp::Branch { target: InstId(target), cond: PredSrc::TRUE, decision: Decision::Lanes };
    let list = [
        (PredSrc::TRUE, control(ControlOp::SyncSet { bar: BarrierReg(0), target: InstId(6), cond: PredSrc::TRUE })),
        (PredSrc::of(Pred(0)), control(bra(4))),
        (PredSrc::TRUE, Op::Nop),
        (PredSrc::TRUE, control(bra(5))),
        (PredSrc::TRUE, Op::Nop),
        (PredSrc::TRUE, control(ControlOp::Sync { bar: BarrierReg(0), cond: PredSrc::TRUE })),
        (PredSrc::TRUE, control(ControlOp::Exit { cond: PredSrc::TRUE })),
    ];
    let n = list.len() as u32;
    let site = InlineSite { function: Some(text.to_owned()), file: 0, line: 3 };
    let location =
        |line, inlined_at: &[InlineSite]| Location { file: 0, line, column: 0, inlined_at: inlined_at.to_vec() };
    Kernel {
        name: text.to_owned(),
        arch: "sm_90".into(),
        instructions: (0u32..)
            .zip(list)
            .map(|(i, (guard, op))| Instruction { pc: i * 16, guard, uniform: false, op })
            .collect(),
        text: (0..n).map(|i| format!("INSTR{i} {text}")).collect(),
        functions: vec![Function { name: text.to_owned(), base: 0, first: InstId(0), len: n, local: vec![] }],
        preds: 8,
        source: SourceMap {
            files: vec![format!("/src/{text}.cu")],
            locations: vec![location(1, &[]), location(2, &[site])],
            of_inst: vec![Some(0), Some(0), Some(1), Some(1), None, Some(0), Some(0)],
        },
        ..Kernel::default()
    }
}

/// What it counts.
pub(crate) fn profile() -> Profile {
    let c = |issues, lanes| LaneCounts {
        inst_executed: issues,
        thread_inst_executed: lanes,
        thread_inst_executed_pred_on: lanes,
        ..LaneCounts::default()
    };
    let trips = TripHistogram { header: 2, trips: vec![(1, 5), (9, 3)] };
    Profile {
        loops: vec![trips],
        shape: LaunchShape { grid: [1, 1, 1], block: [32, 1, 1], warp_size: 32 },
        counts: vec![c(1, 32), c(1, 32), c(1, 24), c(1, 24), c(1, 8), c(2, 32), c(1, 32)],
        branches: vec![BranchCounts {
            inst: 1,
            kind: BranchKind::Branch,
            executed: 1,
            divergent: 1,
            lanes_taken: 8,
            lanes_not_taken: 24,
            lanes_histogram: Vec::new(),
        }],
        ..Profile::default()
    }
}

/// Instruction, lanes, groups elsewhere, event.
type Row = (u32, LaneMask, &'static [(u32, LaneMask)], Event);

/// Its one warp: the lanes past the branch run first.
pub(crate) fn trace() -> Trace {
    let low = LaneMask::first(8);
    let all = LaneMask::first(32);
    let high = all - low;
    let step = |(step, (inst, active, others, event)): (u64, Row)| Step {
        step,
        inst,
        active,
        executing: if inst == 1 { low } else { active },
        others: others.to_vec(),
        event,
    };
    let list: Vec<Row> = vec![
        (0, all, &[], Event::Step),
        (1, all, &[], Event::Split { taken: low }),
        (2, high, &[(4, LaneMask(0xff))], Event::Step),
        (3, high, &[(4, LaneMask(0xff))], Event::Jump),
        (5, high, &[(4, LaneMask(0xff))], Event::Wait),
        (4, low, &[(5, LaneMask(0xffff_ff00))], Event::Step),
        (5, low, &[(5, LaneMask(0xffff_ff00))], Event::Join { group: all }),
        (6, all, &[], Event::Exit { lanes: all }),
    ];
    let steps = (0u64..).zip(list).map(step).collect();
    Trace { title: "t".into(), block: 0, warp: 0, lanes: all, warp_size: 32, steps, cut: false }
}
