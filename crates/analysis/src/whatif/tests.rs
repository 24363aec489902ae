use lanescope_ir::{LaunchShape, Profile, ThreadProfile};

use super::*;
use crate::testing::{Builder, branch_counts, counts};

/// A launch of one block; executions by basic block and thread.
fn threads(s: &Structure, executions: Vec<Vec<u32>>) -> ThreadProfile {
    let n = executions[0].len();
    ThreadProfile {
        threads: n,
        of: n as u64,
        block_threads: n as u32,
        blocks: s.cfg.blocks.iter().map(|b| b.first).collect(),
        executions,
        ..ThreadProfile::default()
    }
}

fn profile(counts: Vec<lanescope_ir::LaneCounts>, branches: Vec<lanescope_ir::BranchCounts>) -> Profile {
    let shape = LaunchShape { grid: [1; 3], block: [4, 1, 1], warp_size: 2 };
    Profile { shape, counts, branches, ..Profile::default() }
}

#[test]
fn a_loop_costs_its_busiest_lane_and_its_end_once_for_each_count() {
    let mut k = Builder::new();
    // 0 bssy, 1 nop (loop), 2 @P0 bra 1, 3 bsync, 4 exit
    k.bssy(0, 4).nop().bra_if(0, 1).bsync(0).exit();
    let kernel = k.kernel();
    let s = Structure::new(&kernel);
    // Two warps of two lanes: trips 1, 5 and 1, 5.
    let trips = vec![1, 5, 1, 5];
    let rows: Vec<Vec<u32>> =
        s.cfg.blocks.iter().map(|b| if b.first == 1 { trips.clone() } else { vec![1; 4] }).collect();
    let t = threads(&s, rows);
    let c = vec![counts(2, 4), counts(10, 12), counts(10, 12), counts(4, 4), counts(2, 4)];
    let p = profile(c, vec![branch_counts(2, 10, 2, 8, 4)]);
    let model = WhatIf::new(&kernel, &s, &p, &t, Known::default()).unwrap();
    // 2 bssy + 10 * 2 + 4 bsync + 2 exit
    assert_eq!((model.identity().warp_instructions, model.identity().unadjusted, model.measured()), (28, 28, 28));
    let sorted = model.grouping(&stable_order(&[Some(1), Some(5), Some(1), Some(5)]));
    // 1 and 5 turns, and nobody leaves early.
    assert_eq!(model.price(&sorted).warp_instructions, 2 + 6 * 2 + 2 + 2);
    assert_eq!(model.work(), [5.0, 13.0, 5.0, 13.0]);
}

#[test]
fn a_nested_loop_is_adjusted_by_what_was_counted() {
    let mut k = Builder::new();
    // 0 nop (outer), 1 bssy, 2 nop (inner), 3 @P0 bra 2, 4 bsync, 5 @P1 bra 0, 6 exit
    k.nop().bssy(0, 5).nop().bra_if(0, 2).bsync(0).bra_if(1, 0).exit();
    let kernel = k.kernel();
    let s = Structure::new(&kernel);
    let by = |first: u32| match first {
        0 | 5 | 4 => vec![2, 2, 2, 2],
        2 => vec![6, 6, 2, 2],
        _ => vec![1; 4],
    };
    let t = threads(&s, s.cfg.blocks.iter().map(|b| by(b.first)).collect());
    // The lanes of warp 0 make 1 + 5 and 5 + 1 turns: together 10, not 6.
    let c = vec![counts(4, 8), counts(4, 8), counts(12, 16), counts(12, 16), counts(6, 8), counts(4, 8), counts(2, 4)];
    let p = profile(c, vec![branch_counts(3, 12, 2, 8, 8)]);
    let model = WhatIf::new(&kernel, &s, &p, &t, Known::default()).unwrap();
    assert_eq!(model.measured(), 44);
    assert_eq!(model.identity().warp_instructions, 44);
    assert_eq!(model.identity().unadjusted, 4 + 4 + 8 + 8 + 4 + 4 + 2);
}

#[test]
fn records_of_another_kernel_are_refused() {
    let mut k = Builder::new();
    k.nop().exit();
    let kernel = k.kernel();
    let s = Structure::new(&kernel);
    let p = profile(vec![counts(1, 1); 2], Vec::new());
    let other = threads(&s, vec![vec![1], vec![1], vec![1]]);
    assert!(matches!(WhatIf::new(&kernel, &s, &p, &other, Known::default()), Err(WhatIfError::OtherKernel { .. })));
    let none = threads(&s, vec![vec![]]);
    assert_eq!(WhatIf::new(&kernel, &s, &p, &none, Known::default()).unwrap_err(), WhatIfError::NoThreads);
}
