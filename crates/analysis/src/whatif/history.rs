//! Lanes that came to a block by different ways and have not rejoined issue it apart.
//!
//! Which way a thread came is told by how often it executed the blocks that follow upon a branch that split, for all
//! branches in whose region the block lies: two lanes of a warp are taken for one group if these counts agree. Branches
//! behind which lanes have rejoined do not count, nor do those of a loop that the block is in itself: there counts say
//! nothing about one turn.

use std::collections::{BTreeSet, HashMap};

use lanescope_ir::{BranchKind, Profile};

use crate::regions::Structure;

/// Branches looked at, those that split most often first.
const BRANCHES: usize = 256;
/// Steps over blocks at most; past it blocks are taken to be issued together.
const STEPS: usize = 20_000_000;
/// Numbers kept at most: threads times different histories.
const NUMBERS: usize = 1 << 26;

/// For each block a class of each thread: lanes of different classes issue it apart.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// For each block, an index into `sets`.
    of_block: Vec<Option<u32>>,
    /// By thread.
    sets: Vec<Vec<u32>>,
}

impl Classes {
    pub(super) fn new(s: &Structure, profile: &Profile, executions: &[Vec<u32>], threads: usize) -> Classes {
        let before = before(s, profile);
        let mut classes = Classes { of_block: vec![None; s.cfg.blocks.len()], sets: Vec::new() };
        let mut known: HashMap<&BTreeSet<u32>, Option<u32>> = HashMap::new();
        for (b, set) in before.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
            let id = *known.entry(set).or_insert_with(|| {
                if (classes.sets.len() + 1).saturating_mul(threads) > NUMBERS {
                    return None;
                }
                let rows: Vec<&[u32]> =
                    set.iter().filter_map(|&r| executions.get(r as usize)).map(Vec::as_slice).collect();
                classes.sets.push(number(&rows, threads));
                Some(classes.sets.len() as u32 - 1)
            });
            classes.of_block[b] = id;
        }
        classes
    }

    /// Classes by thread at a block; `None`: all come together.
    pub(super) fn at(&self, block: u32) -> Option<&[u32]> {
        let set = self.of_block.get(block as usize).copied().flatten()?;
        self.sets.get(set as usize).map(Vec::as_slice)
    }
}

/// Numbers the different columns of `rows` in order of appearance.
fn number(rows: &[&[u32]], threads: usize) -> Vec<u32> {
    let mut ids: HashMap<Vec<u32>, u32> = HashMap::new();
    (0..threads)
        .map(|t| {
            let column: Vec<u32> = rows.iter().map(|r| r.get(t).copied().unwrap_or(0)).collect();
            let next = ids.len() as u32;
            *ids.entry(column).or_insert(next)
        })
        .collect()
}

/// For each block, the blocks in whose executions lanes differ that come to it apart.
fn before(s: &Structure, profile: &Profile) -> Vec<BTreeSet<u32>> {
    let n = s.cfg.blocks.len();
    let mut before = vec![BTreeSet::new(); n];
    let back = s.cfg.graph.reversed();
    let mut splits: Vec<_> =
        profile.branches.iter().filter(|b| b.divergent > 0 && b.kind != BranchKind::Exit).collect();
    splits.sort_by(|a, b| b.divergent.cmp(&a.divergent).then(a.inst.cmp(&b.inst)));
    let mut steps = 0;
    for split in splits.into_iter().take(BRANCHES) {
        let region = s.region(split.inst).blocks;
        let Some(block) = s.cfg.block(split.inst) else { continue };
        let ways = s.cfg.graph.successors(block);
        let around: Vec<u32> = s.loops.around(block).collect();
        let mut inside = vec![false; n];
        region.iter().for_each(|&r| inside[r as usize] = true);
        for &b in region.iter().filter(|&&b| !around.iter().any(|&l| s.loops.contains(l, b))) {
            let walk = |graph: &crate::Graph, steps: &mut usize| {
                let mut seen = vec![false; n];
                let mut stack = vec![b];
                while let Some(at) = stack.pop() {
                    for &next in graph.successors(at) {
                        *steps += 1;
                        if inside.get(next as usize) == Some(&true)
                            && !std::mem::replace(&mut seen[next as usize], true)
                        {
                            stack.push(next);
                        }
                    }
                }
                seen
            };
            if steps > STEPS {
                return before;
            }
            steps += n / 8;
            let (up, down) = (walk(&back, &mut steps), walk(&s.cfg.graph, &mut steps));
            let earlier = ways.iter().filter(|&&w| up.get(w as usize) == Some(&true) && !down[w as usize]);
            before[b as usize].extend(earlier);
        }
    }
    before
}
