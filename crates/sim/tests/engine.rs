//! Whole launches of kernels built by hand.

mod common;

use common::*;
use lanescope_ir::PredSrc;
use lanescope_sim::GlobalMemory;

#[test]
fn kernel_k_computes_and_counts() {
    let kernel = kernel_k(None);
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &[0; 4 * 512]).unwrap();
    let o = run(&kernel, &launch(2, 256, &[out, 50], 1), &mut m).unwrap();
    let want: Vec<u32> = (0..512).map(|g| k(g, |_| 50)).collect();
    assert_eq!(words(&m, out, 512), want);
    let c = &o.profile.counts;
    let top = 9;
    assert_eq!((c[top].inst_executed, c[top].thread_inst_executed), (16 * 50, 512 * 50));
    let (a, b) = (&c[top + 3], &c[top + 4]);
    assert_eq!(a.thread_inst_executed_pred_on + b.thread_inst_executed_pred_on, 512 * 50);
    assert_eq!(o.profile.loops.len(), 1);
    assert_eq!(o.profile.loops[0].trips, [(50, 512)]);
    let store = c.iter().rev().nth(1).unwrap();
    assert_eq!((store.sectors, store.sectors_ideal), (64, 64));
    assert_eq!(PredSrc::TRUE, kernel.instructions[0].guard);
}

#[test]
fn kernel_kd_diverges_at_its_loop() {
    let kernel = kernel_k(Some(28));
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &[0; 4 * 128]).unwrap();
    let o = run(&kernel, &launch(1, 128, &[out], 1), &mut m).unwrap();
    let want: Vec<u32> = (0..128).map(|g| k(g, |x| (x >> 28) + 1)).collect();
    assert_eq!(words(&m, out, 128), want);
    let trips = |g: u32| u64::from((g.wrapping_mul(2654435761).wrapping_add(12345) >> 28) + 1);
    let c = &o.profile.counts[10];
    assert_eq!(c.thread_inst_executed, (0..128).map(trips).sum::<u64>());
    let issues: u64 = (0..4).map(|w| (0..32).map(|l| trips(w * 32 + l)).max().unwrap()).sum();
    assert_eq!(c.inst_executed, issues);
    assert_eq!(o.profile.loops[0].trips.iter().map(|t| t.1).sum::<u64>(), 128);
    assert!(o.profile.totals().divergent_branches > 0);
}
