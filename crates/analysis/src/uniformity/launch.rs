//! What the launch puts into constant banks, and how its threads are numbered.

use std::collections::HashMap;

use lanescope_ir::Kernel;
use lanescope_ir::op::warp::SpecialReg;

use super::solve::sm;
use super::value::{Domain, LeafKey, Set, Value};
use super::{Facts, Level};

/// Most threads of a block.
const THREADS: u64 = 1024;
/// Largest grid in x.
const GRID_X: u32 = i32::MAX as u32;

/// The block's shape, if it is known and possible.
pub(super) fn block(kernel: &Kernel, facts: &Facts) -> Option<[u32; 3]> {
    let shape = facts.block.or(kernel.required_block)?;
    let threads = shape.iter().map(|&x| u64::from(x)).try_fold(1u64, u64::checked_mul)?;
    (1..=THREADS).contains(&threads).then_some(shape)
}

/// An empty domain for this launch.
pub(super) fn domain(kernel: &Kernel, facts: &Facts) -> Domain {
    let shape = block(kernel, facts);
    let count = shape.map_or(32, |s| s.iter().product());
    let warps = count.div_ceil(32).max(1);
    let existing: Set = (0..warps)
        .map(|w| match count - w * 32 {
            n @ 0..=31 => (1u32 << n) - 1,
            _ => u32::MAX,
        })
        .collect();
    let mut d = Domain::new(warps as usize * 32, existing);
    d.block_known = shape.is_some();
    d.grid_of_one = facts.grid == Some([1; 3]);
    d
}

/// Words of constant banks.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    known: HashMap<(u8, u32), u32>,
    /// Banks whose content is known to the end.
    banks: HashMap<u8, Vec<u8>>,
    /// Where the block's shape and the grid's lie in bank 0.
    shape: [u32; 2],
    pub(super) block: Option<[u32; 3]>,
    pub(super) grid: Option<[u32; 3]>,
    pub(super) linear: bool,
}

impl Words {
    pub(super) fn new(kernel: &Kernel, facts: &Facts) -> Words {
        let recent = sm(&kernel.arch).is_some_and(|s| s >= 100);
        let mut known: HashMap<(u8, u32), u32> = facts.words.iter().map(|w| ((w.0, w.1), w.2)).collect();
        if let Some(bytes) = facts.dynamic_shared {
            known.insert((0, if recent { 0x2ac } else { 0x2c }), bytes);
        }
        Words {
            known,
            banks: kernel.constants.iter().filter(|c| c.bank != 0).map(|c| (c.bank, c.data.clone())).collect(),
            shape: if recent { [0x360, 0x370] } else { [0x0, 0xc] },
            block: block(kernel, facts),
            grid: facts.grid,
            linear: facts.linear,
        }
    }

    /// A word of a bank.
    pub(super) fn word(&self, d: &mut Domain, bank: u8, offset: u32) -> Value {
        if let Some(&n) = self.known.get(&(bank, offset)) {
            return Value::number(n);
        }
        if let Some(data) = self.banks.get(&bank) {
            let byte = |i: usize| data.get(offset as usize + i).copied().unwrap_or(0);
            return Value::number(u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]));
        }
        if bank == 0 {
            for (i, base) in self.shape.into_iter().enumerate() {
                let axis = offset.wrapping_sub(base) / 4;
                if offset >= base && axis < 3 && (offset - base).is_multiple_of(4) {
                    let reg = if i == 0 { SpecialReg::NTid(axis as u8) } else { SpecialReg::NCtaId(axis as u8) };
                    return self.special(d, reg);
                }
            }
        }
        d.launch(LeafKey::Word(bank, offset), Level::Grid, u32::MAX)
    }

    /// Coordinates of a thread of the block.
    fn thread(block: [u32; 3], i: u32) -> [u32; 3] {
        let [x, y, _] = block.map(|n| n.max(1));
        [i % x, i / x % y, i / x / y]
    }

    /// A special register; `Divergent` if the lanes' values are not known.
    pub(super) fn special(&self, d: &mut Domain, reg: SpecialReg) -> Value {
        use SpecialReg as S;
        let lanes = |d: &mut Domain, f: fn(u32) -> u32| d.table(0, |_, i| f(i as u32 % 32));
        let leaf = |d: &mut Domain, level| d.launch(LeafKey::Special(reg), level, u32::MAX);
        match reg {
            S::Zero => Value::number(0),
            S::Tid(axis @ 0..=2) => match (self.block, self.linear) {
                (Some(b), _) => d.table(0, |_, i| Self::thread(b, i as u32)[usize::from(axis)]),
                (None, true) if axis == 0 => {
                    let warp = d.launch(LeafKey::Warp, Level::Warp, 31);
                    let lane = d.table(0, |_, i| i as u32 % 32);
                    d.add_scaled(lane, warp, 32).unwrap_or(Value::Divergent)
                }
                (None, true) => Value::number(0),
                (None, false) => Value::Divergent,
            },
            S::TidPacked => match self.block {
                Some(b) => d.table(0, |_, i| {
                    let [x, y, z] = Self::thread(b, i as u32);
                    x | y << 16 | z << 26
                }),
                None => Value::Divergent,
            },
            S::CtaId(axis @ 0..=2) => {
                let most =
                    self.grid.map_or([GRID_X, 0xffff, 0xffff], |g| g.map(|n| n.saturating_sub(1)))[usize::from(axis)];
                if most == 0 {
                    return Value::number(0);
                }
                d.launch(LeafKey::CtaId(axis), Level::Block, most)
            }
            S::NTid(axis @ 0..=2) => match self.block {
                Some(b) => Value::number(b[usize::from(axis)]),
                None if self.linear && axis != 0 => Value::number(1),
                None => d.launch(LeafKey::NTid(axis), Level::Grid, 1024),
            },
            S::NCtaId(axis @ 0..=2) => match self.grid {
                Some(g) => Value::number(g[usize::from(axis)]),
                None => d.launch(LeafKey::NCtaId(axis), Level::Grid, GRID_X),
            },
            S::LaneId => lanes(d, |l| l),
            S::LaneMaskEq => lanes(d, |l| 1 << l),
            S::LaneMaskLt => lanes(d, |l| (1 << l) - 1),
            S::LaneMaskLe => lanes(d, |l| (1 << l) | ((1 << l) - 1)),
            S::LaneMaskGt => lanes(d, |l| !((1 << l) | ((1 << l) - 1))),
            S::LaneMaskGe => lanes(d, |l| !((1 << l) - 1)),
            S::WarpId | S::VirtId => leaf(d, Level::Warp),
            S::SmId | S::ClusterCtaId => leaf(d, Level::Block),
            S::NWarpId | S::NSmId | S::GridId | S::SharedWindowHi | S::SharedSize | S::ClusterSize | S::VirtCfg => {
                leaf(d, Level::Grid)
            }
            _ => Value::Divergent,
        }
    }
}
