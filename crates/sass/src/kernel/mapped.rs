//! Constant memory at generic addresses: `cvta.const`, `cvta.param`, `isspacep`.
//!
//! Code takes the generic address of a `__constant__` variable, or of a parameter, from words of bank 0 that the driver
//! fills. The offsets are those in what ptxas 12.9 and 13.5 make for each architecture. Here the addresses are fixed, and only
//! banks that the code can reach through them are mapped.

use lanescope_ir::op::SrcKind;
use lanescope_ir::op::effects::Visit;
use lanescope_ir::op::memory::{MemoryOp, Space};
use lanescope_ir::{Kernel, MappedBank, Op, Src};

/// Generic address of bank 3, the module's constants.
pub(super) const CONSTANTS: u64 = 0x8_0000_0000;
/// Generic address of bank 0.
pub(super) const BANK0: u64 = 0x9_0000_0000;

/// Where bank 0 tells the parameters' generic addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Params {
    /// The address of bank 0 at `base`, the offset of its last byte at `last`.
    Bank { base: u32, last: u32 },
    /// The addresses of their first and of their last byte.
    Range { first: u32, last: u32 },
}

/// Offset in bank 0 of bank 3's address, for an architecture that has a decoder.
pub(super) fn constants_at(sm: u32) -> u32 {
    match sm {
        ..=89 => 0x50,
        90..=99 => 0xd0,
        _ => 0x120,
    }
}

/// The same for parameters. Compiled code takes the end as part of them, hence the last byte's address.
pub(super) fn params_at(sm: u32) -> Params {
    match sm {
        ..=79 => Params::Bank { base: 0x40, last: 0x114 },
        80..=89 => Params::Bank { base: 0x40, last: 0x12c },
        90..=99 => Params::Range { first: 0x198, last: 0x1a0 },
        _ => Params::Range { first: 0x348, last: 0x350 },
    }
}

/// Which banks the code can reach: those whose address it reads, and those in `taken`, which relocations name.
pub(super) fn mapped(kernel: &mut Kernel, sm: u32, taken: &[MappedBank]) -> Vec<MappedBank> {
    let mut out = taken.to_vec();
    let mut reads = Reads { offsets: [constants_at(sm), first(params_at(sm))], found: [false; 2] };
    for instruction in &mut kernel.instructions {
        if let Op::Memory(MemoryOp::Load { space: Space::Const(0), addr, .. }) = &instruction.op
            && addr.base == Src::ZERO
        {
            reads.offset(addr.offset);
        }
        instruction.visit(&mut reads);
    }
    let present = kernel.constants.iter().any(|c| c.bank == 3);
    if reads.found[0] && present && !out.iter().any(|m| m.bank == 3) {
        out.push(MappedBank { bank: 3, address: CONSTANTS });
    }
    if reads.found[1] {
        out.push(MappedBank { bank: 0, address: BANK0 });
    }
    out
}

fn first(params: Params) -> u32 {
    match params {
        Params::Bank { base, .. } => base,
        Params::Range { first, .. } => first,
    }
}

struct Reads {
    offsets: [u32; 2],
    found: [bool; 2],
}

impl Reads {
    fn offset(&mut self, at: i64) {
        for (offset, found) in self.offsets.iter().zip(&mut self.found) {
            *found |= at & !7 == i64::from(*offset);
        }
    }
}

impl Visit for Reads {
    fn src(&mut self, s: &mut Src) {
        if let SrcKind::Const { bank: 0, offset } = s.kind {
            self.offset(offset.into());
        }
    }
}
