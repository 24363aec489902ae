//! Random damage to real files: whatever comes out, nothing panics, hangs or allocates without bound.

use arbtest::arbtest;
use lanescope_sass::container::{LineKind, Module, open};

const SEEDS: &[&[u8]] = &[
    include_bytes!("container/nest.cuda12.sm_90.cubin"),
    include_bytes!("container/nest.cuda13.sm_100.cubin"),
    include_bytes!("container/facts.cuda12.sm_80.cubin"),
    include_bytes!("container/facts.rdc.cuda13.sm_90.cubin"),
    include_bytes!("container/lz4.fatbin"),
    include_bytes!("container/zstd.fatbin"),
    include_bytes!("container/concat.fatbin"),
    include_bytes!("container/host.o"),
];

/// Reads everything there is to read.
fn read_all(bytes: &[u8]) {
    let Ok(container) = open(bytes) else { return };
    for entry in &container.entries {
        if let Ok(bytes) = entry.bytes() {
            read_module(&bytes);
        }
    }
}

fn read_module(bytes: &[u8]) {
    let Ok(module) = Module::parse(bytes) else { return };
    for section in 0..module.sections.len() {
        let Ok(relocations) = module.relocations(section) else { continue };
        let mut data = module.sections[section].data.to_vec();
        for relocation in relocations {
            let _ = module.apply(section, &relocation, &mut data, module.symbols[relocation.symbol].value);
        }
    }
    for kind in [LineKind::Source, LineKind::Ptx] {
        let Ok(lines) = module.lines(kind) else { continue };
        for function in &module.functions {
            for pc in (0..function.text.len() as u64).step_by(16) {
                assert!(lines.frames(function.section, pc).count() < 1_000_000);
                let _ = function.subroutine_at(pc);
            }
        }
    }
}

#[test]
fn damaged_files_never_panic() {
    arbtest(|u| {
        let mut bytes = u.choose(SEEDS)?.to_vec();
        for _ in 0..u.int_in_range(1..=8)? {
            let at = u.int_in_range(0..=bytes.len() - 1)?;
            match u.int_in_range(0..=3)? {
                0 => bytes[at] = u.arbitrary()?,
                1 => bytes[at] ^= 1 << u.int_in_range(0..=7)?,
                2 => {
                    let value = *u.choose(&[0u64, 1, 0x7fff_ffff, 0xffff_ffff, u64::MAX, 1 << 40])?;
                    for (byte, new) in bytes[at..].iter_mut().zip(value.to_le_bytes()) {
                        *byte = new;
                    }
                }
                _ => {
                    let len = u.int_in_range(1..=bytes.len())?;
                    bytes.truncate(len);
                }
            }
        }
        read_all(&bytes);
        Ok(())
    })
    .budget_ms(2_000);
}
