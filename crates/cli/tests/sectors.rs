//! The textbook kernels of `tests/data/seeds` as Nsight Compute 2025.3 counted them on an H200: issues, lanes, and the
//! columns "L2 Theoretical Sectors Global" and "L2 Theoretical Sectors Global Ideal" of every instruction.

use std::path::{Path, PathBuf};

use lanescope::run::{Prepared, Ran, Settings};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/seeds")
}

fn run(kernel: &str, threads: usize) -> Ran {
    let settings = Settings { threads, ..Settings::default() };
    let prepared = Prepared::open(&folder().join(format!("{kernel}.toml")), &settings);
    prepared.and_then(|p| p.run(None)).unwrap_or_else(|e| panic!("{kernel}: {e}"))
}

#[test]
fn counters_and_sectors_are_those_of_nsight() {
    let mut memory_instructions = 0;
    for kernel in ["divergent_kernel", "data_dependent", "loop_divergent", "moe"] {
        for threads in [1, 2] {
            let ran = run(kernel, threads);
            let table = std::fs::read_to_string(folder().join(format!("{kernel}.expected.csv"))).unwrap();
            let mut rows = table.lines().skip(1);
            for (inst, c) in ran.kernel.instructions.iter().zip(&ran.profile().counts) {
                let row: Vec<&str> =
                    rows.next().unwrap_or_else(|| panic!("{kernel}: too few rows")).split(',').collect();
                let text = |n: u64| n.to_string();
                assert_eq!(row[0], format!("{:#x}", inst.pc), "{kernel}");
                let ours = [
                    c.inst_executed,
                    c.thread_inst_executed,
                    c.thread_inst_executed_pred_on,
                    c.sectors,
                    c.sectors_ideal,
                ];
                assert_eq!(row[1..], ours.map(text), "{kernel}, pc {:#x}, {threads} threads", inst.pc);
                memory_instructions += usize::from(c.sectors > 0);
            }
            // The padding behind the code is no instruction of ours.
            assert!(rows.all(|row| row.ends_with(",0,0,0,0,0")), "{kernel}: rows are left over");
        }
    }
    // A test that compared zeros only would prove nothing.
    assert_eq!(memory_instructions, 2 * (2 + 8 + 4 + 4));
}

#[test]
fn touched_memory_and_the_longest_warp() {
    // moe reads 256 KiB of `expert`, writes all of `y`, and reads the sectors of `x` with an element of expert 3.
    let ran = run("moe", 2);
    let expert = ran.buffers[0].as_ref().unwrap();
    let wanted: std::collections::BTreeSet<usize> =
        expert.data.chunks_exact(4).enumerate().filter(|(_, e)| **e == [3, 0, 0, 0]).map(|(i, _)| i / 8).collect();
    let reach = ran.profile().reach.as_ref().unwrap();
    assert_eq!(reach.touched_sectors, 8192 + 8192 + wanted.len() as u64);
    assert!(reach.longest_warp > 100 && reach.longest_block <= 8 * reach.longest_warp);
    assert_eq!(run("moe", 1).profile().reach.as_ref(), Some(reach));
    assert_eq!(reach.blocks.len(), 256);
    assert_eq!(reach.blocks.iter().map(|b| b.sectors).sum::<u64>(), 8192 + 8192 + 2 * 1841);
}
