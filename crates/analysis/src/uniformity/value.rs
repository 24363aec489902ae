//! Abstract values: a sum of unknown numbers that the lanes of a warp share, plus a known number for each thread.
//!
//! `base + table[thread]`: the base is a linear sum of leaves ([`Leaf`]): launch constants, block indices, loaded values,
//! loop counters. The table has an entry for each thread of the block if its shape is known, else for each lane. So
//! `blockIdx.x * 256 + threadIdx.x` is exact up to its block's share, `(i >> 5) & 1` is recognised as the same in a warp,
//! and `i - threadIdx.x` loses its table again. Predicates are the numbers 0 and 1.

use std::collections::HashMap;

use super::{Level, Scope};

/// Threads for which a value is asked or computed: a word of lanes for each warp.
pub(super) type Set = Box<[u32]>;

/// Most tables kept; past it values that differ by lane are not known.
const TABLES: usize = 4096;
/// Most terms of a base.
const TERMS: usize = 6;

/// The part of a value that is known for each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Tab {
    Const(u32),
    Full(u32),
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    /// Never written on this path.
    Undef,
    /// Base and table.
    Words(u32, Tab),
    /// A predicate that holds for the lanes on one side of a boundary.
    Mono(Scope),
    /// Anything.
    Divergent,
}

impl Value {
    pub(super) const fn number(n: u32) -> Value {
        Value::Words(0, Tab::Const(n))
    }
    pub(super) fn constant(self) -> Option<u32> {
        match self {
            Value::Words(0, Tab::Const(n)) => Some(n),
            _ => None,
        }
    }
}

/// What a leaf stands for. The same leaf is the same number for all lanes of a warp; see [`Leaf::fixed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LeafKey {
    /// A word of a constant bank.
    Word(u8, u32),
    /// Block index.
    CtaId(u8),
    /// Block size, grid size.
    NTid(u8),
    NCtaId(u8),
    /// Block index times block size.
    BlockStart(u8),
    /// The warp's index in a one-dimensional block of unknown size.
    Warp,
    /// The initial stack pointer.
    Stack,
    /// Another special register.
    Special(lanescope_ir::op::warp::SpecialReg),
    /// Result `1` of instruction `0`.
    Result(u32, u8),
    /// The same of a load from memory that nothing writes.
    Fixed(u32, u8),
    /// What a guard leaves of old and new value.
    Guarded(u32, u8),
    /// Where values of a register meet: block and register.
    Phi(u32, u32),
}

/// An unknown number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) key: LeafKey,
    pub(super) level: Level,
    /// A function of the launch alone: the same for all lanes of a warp whenever and wherever they compute it. Otherwise
    /// it is the same only for lanes that computed it together.
    pub(super) fixed: bool,
    /// The block that computes it; for leaves that are not fixed.
    pub(super) block: u32,
    /// Largest value.
    pub(super) max: u32,
    /// It is a multiple of 2^align.
    pub(super) align: u8,
    /// What it is depends on when its instruction is issued: memory, votes, a uniform register that others may have written.
    pub(super) issue: bool,
}

/// All values of one analysis.
#[derive(Clone, Debug)]
pub(super) struct Domain {
    /// Threads in a table: 32, or the block's warps times 32.
    pub(super) threads: usize,
    /// Threads that exist.
    pub(super) existing: Set,
    /// The block's shape is known: tables have an entry for each of its threads.
    pub(super) block_known: bool,
    /// The grid has one block.
    pub(super) grid_of_one: bool,
    pub(super) leaves: Vec<Leaf>,
    leaf_ids: HashMap<LeafKey, u32>,
    lins: Vec<Box<[(u32, u32)]>>,
    lin_ids: HashMap<Box<[(u32, u32)]>, u32>,
    tables: Vec<Box<[u32]>>,
    table_ids: HashMap<Box<[u32]>, u32>,
    /// How far all threads have come the same way to the block at hand.
    pub(super) ways: Level,
    /// A leaf promises less than when some block saw it.
    pub(super) weakened: bool,
}

impl Domain {
    pub(super) fn new(threads: usize, existing: Set) -> Domain {
        Domain {
            threads,
            existing,
            block_known: false,
            grid_of_one: false,
            leaves: Vec::new(),
            leaf_ids: HashMap::new(),
            lins: vec![Box::new([])],
            lin_ids: HashMap::from([(Box::default(), 0)]),
            tables: Vec::new(),
            table_ids: HashMap::new(),
            ways: Level::Grid,
            weakened: false,
        }
    }

    /// Terms of a base.
    pub(super) fn terms(&self, lin: u32) -> &[(u32, u32)] {
        self.lins.get(lin as usize).map_or(&[], |l| l)
    }

    pub(super) fn at(&self, tab: Tab, thread: usize) -> u32 {
        match tab {
            Tab::Const(c) => c,
            Tab::Full(t) => self.tables.get(t as usize).and_then(|t| t.get(thread)).copied().unwrap_or(0),
        }
    }

    /// A value with this base whose table is computed.
    pub(super) fn table(&mut self, lin: u32, f: impl Fn(&Domain, usize) -> u32) -> Value {
        let table: Box<[u32]> = (0..self.threads).map(|i| f(self, i)).collect();
        let first = table.first().copied().unwrap_or(0);
        if table.iter().all(|&x| x == first) {
            return Value::Words(lin, Tab::Const(first));
        }
        if let Some(&id) = self.table_ids.get(&table) {
            return Value::Words(lin, Tab::Full(id));
        }
        if self.tables.len() >= TABLES {
            return Value::Divergent;
        }
        let id = self.tables.len() as u32;
        self.tables.push(table.clone());
        self.table_ids.insert(table, id);
        Value::Words(lin, Tab::Full(id))
    }

    fn intern(&mut self, terms: Vec<(u32, u32)>) -> Option<u32> {
        if terms.len() > TERMS {
            return None;
        }
        let terms = terms.into_boxed_slice();
        if let Some(&id) = self.lin_ids.get(&terms) {
            return Some(id);
        }
        let id = self.lins.len() as u32;
        self.lins.push(terms.clone());
        self.lin_ids.insert(terms, id);
        Some(id)
    }

    /// `a + k * b` of two bases; `None` if it has too many terms.
    fn combine(&mut self, a: u32, b: u32, k: u32) -> Option<u32> {
        if b == 0 || k == 0 {
            return Some(a);
        }
        let mut sum: Vec<(u32, u32)> = self.terms(a).to_vec();
        for &(leaf, c) in self.terms(b) {
            let c = c.wrapping_mul(k);
            match sum.binary_search_by_key(&leaf, |t| t.0) {
                Ok(i) => sum[i].1 = sum[i].1.wrapping_add(c),
                Err(i) => sum.insert(i, (leaf, c)),
            }
        }
        sum.retain(|t| t.1 != 0);
        self.intern(sum)
    }

    /// The leaf of this key. What it promises can only become less.
    pub(super) fn leaf(&mut self, new: Leaf) -> Value {
        let id = match self.leaf_ids.get(&new.key) {
            Some(&id) => {
                let old = &mut self.leaves[id as usize];
                let before = (old.level, old.fixed, old.max, old.align, old.issue);
                old.level = old.level.max(new.level);
                old.fixed &= new.fixed;
                old.issue |= new.issue;
                old.max = old.max.max(new.max);
                old.align = old.align.min(new.align);
                self.weakened |= before != (old.level, old.fixed, old.max, old.align, old.issue);
                id
            }
            None => {
                let id = self.leaves.len() as u32;
                self.leaves.push(new);
                self.leaf_ids.insert(new.key, id);
                id
            }
        };
        let lin = self.intern(vec![(id, 1)]).unwrap_or(0);
        Value::Words(lin, Tab::Const(0))
    }

    /// A leaf of the launch.
    pub(super) fn launch(&mut self, key: LeafKey, level: Level, max: u32) -> Value {
        self.leaf(Leaf { key, level, fixed: true, block: 0, max, align: 0, issue: false })
    }

    /// `a + k * b`, wrapping.
    pub(super) fn add_scaled(&mut self, a: Value, b: Value, k: u32) -> Option<Value> {
        let (Value::Words(la, ta), Value::Words(lb, tb)) = (a, b) else { return None };
        let lin = self.combine(la, lb, k)?;
        Some(match (ta, tb) {
            (Tab::Const(x), Tab::Const(y)) => Value::Words(lin, Tab::Const(x.wrapping_add(y.wrapping_mul(k)))),
            _ => self.table(lin, |d, i| d.at(ta, i).wrapping_add(d.at(tb, i).wrapping_mul(k))),
        })
    }

    pub(super) fn scale(&mut self, a: Value, k: u32) -> Option<Value> {
        self.add_scaled(Value::number(0), a, k)
    }

    /// Multiple of two to the power of this, and largest value, of a base.
    pub(super) fn bounds(&self, lin: u32) -> (u32, u64) {
        let mut align = 32;
        let mut max = 0u64;
        for &(leaf, c) in self.terms(lin) {
            let leaf = &self.leaves[leaf as usize];
            align = align.min(c.trailing_zeros() + u32::from(leaf.align));
            max = max.saturating_add(u64::from(c).saturating_mul(u64::from(leaf.max)));
        }
        (align, max)
    }

    /// Largest value without wrapping, and whether the sum stays below 2^32 at all, for the threads of `set`.
    pub(super) fn largest(&self, v: Value, set: &[u32]) -> Option<u64> {
        let Value::Words(lin, tab) = v else { return None };
        let (_, max) = self.bounds(lin);
        let most = match tab {
            Tab::Const(c) => c,
            Tab::Full(_) => members(set).map(|i| self.at(tab, i)).max().unwrap_or(0),
        };
        max.checked_add(u64::from(most)).filter(|&m| m <= u64::from(u32::MAX))
    }

    pub(super) fn base_level(&self, lin: u32) -> Level {
        let level = |leaf: &Leaf| if leaf.fixed { leaf.level } else { leaf.level.max(self.ways) };
        self.terms(lin).iter().map(|t| level(&self.leaves[t.0 as usize])).max().unwrap_or(Level::Grid)
    }

    /// Whether a value is a function of the launch and the thread alone.
    pub(super) fn fixed(&self, v: Value) -> bool {
        match v {
            Value::Words(lin, _) => self.terms(lin).iter().all(|t| self.leaves[t.0 as usize].fixed),
            _ => false,
        }
    }

    /// How far a value is the same for the threads of `set`; `None` if it is not the same within a warp.
    pub(super) fn level(&self, v: Value, set: &[u32]) -> Option<Level> {
        if let Value::Words(lin, tab) = v {
            let base = self.base_level(lin);
            let Tab::Full(_) = tab else { return Some(base) };
            let mut all = true;
            let mut first = None;
            let mut same = true;
            for (w, &lanes) in set.iter().enumerate() {
                let mut of_warp = None;
                for i in lanes_of(w, lanes) {
                    let x = self.at(tab, i);
                    same &= *of_warp.get_or_insert(x) == x;
                    all &= *first.get_or_insert(x) == x;
                }
            }
            if all {
                return Some(base);
            }
            if same {
                return Some(base.max(Level::Warp));
            }
        }
        single(set).then_some(Level::Warp)
    }

    /// The lanes of `set` for which a predicate is 1, if that is known exactly.
    pub(super) fn holds(&self, v: Value, set: &[u32]) -> Option<Set> {
        let Value::Words(0, tab) = v else { return None };
        Some(
            set.iter()
                .enumerate()
                .map(|(w, &lanes)| {
                    lanes_of(w, lanes).filter(|&i| self.at(tab, i) & 1 != 0).fold(0, |m, i| m | 1 << (i % 32))
                })
                .collect(),
        )
    }

    /// The same value if `keep` allows all its leaves.
    pub(super) fn all_leaves(&self, v: Value, keep: impl Fn(&Leaf) -> bool) -> bool {
        match v {
            Value::Words(lin, _) => self.terms(lin).iter().all(|t| keep(&self.leaves[t.0 as usize])),
            _ => true,
        }
    }
}

fn lanes_of(warp: usize, lanes: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |l| lanes >> l & 1 != 0).map(move |l| warp * 32 + l)
}

/// The threads of a set.
pub(super) fn members(set: &[u32]) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(w, &lanes)| lanes_of(w, lanes))
}

/// Whether no warp has two lanes in it.
pub(super) fn single(set: &[u32]) -> bool {
    set.iter().all(|w| w.count_ones() <= 1)
}

/// Lanes of `a` that are in `b`, or are not.
pub(super) fn meet(a: &[u32], b: &[u32], inside: bool) -> Set {
    a.iter().zip(b).map(|(a, b)| if inside { a & b } else { a & !b }).collect()
}
