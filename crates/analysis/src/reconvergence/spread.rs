//! Can the lanes of a warp disagree at a branch? A taint analysis, forward and flow-sensitive.
//!
//! Thread indices, lane numbers, clocks, local memory, atomics and `MATCH` differ between lanes; what is computed
//! from them does, and so does what is loaded from such an address. Votes, reductions and the uniform datapath give
//! all lanes the same. What is written between a branch whose lanes disagree and that branch's immediate
//! post-dominator differs from there on, whatever it is computed from: only some lanes have written it, or not in
//! the same turn of a loop. A value that is computed from itself there, as a loop counter is, differs at once: groups
//! that are apart merge where they meet, and then their lanes are in different turns. Arguments of functions inside
//! the section are not known, so they differ.
//!
//! It errs towards disagreement, but for values that a call changes: calls go on behind themselves.

use std::collections::HashSet;

use lanescope_ir::flow::{FlowCode, FlowInst, Spread};

use super::blocks::Blocks;
use super::{Decides, TooLarge, Work, decides};
use crate::dom::Dominators;

/// Words of a set of resources: registers of both files and predicates.
const WORDS: usize = 9;
type Set = [u64; WORDS];

/// For each block, whether lanes can disagree at the branch that ends it; `None` if values are not known.
pub(super) fn verdicts(
    code: &FlowCode,
    blocks: &Blocks,
    post: &Dominators,
    work: &mut Work,
) -> Result<Option<Vec<bool>>, TooLarge> {
    if !code.has_values {
        return Ok(None);
    }
    let n = blocks.len() as usize;
    let mut state = State { before: vec![[0; WORDS]; n], apart: vec![false; n], queued: vec![true; n] };
    for &entry in code.entries.iter().filter(|&&e| e != 0) {
        if let Some(set) = state.before.get_mut(blocks.of(entry) as usize) {
            *set = [u64::MAX; WORDS];
        }
    }
    let mut queue: Vec<u32> = (0..blocks.len()).rev().collect();
    let mut diverges = vec![false; n];
    while let Some(block) = queue.pop() {
        state.queued[block as usize] = false;
        work.take(blocks.range(block).len())?;
        let mut set = state.before[block as usize];
        let mut splits = false;
        for at in blocks.range(block) {
            let inst = &code.insts[at as usize];
            splits = disagree(code, inst, &set);
            transfer(code, inst, state.apart[block as usize], &mut set);
        }
        for &next in blocks.graph.successors(block) {
            state.add(next, &set, &mut queue);
        }
        let branch = decides(code, blocks.last(block)) == Some(Decides::Lanes);
        if branch && splits && !std::mem::replace(&mut diverges[block as usize], true) {
            let end = post.idom(block).unwrap_or(blocks.exit());
            let written = part(code, blocks, block, end, &mut state, &mut queue, work)?;
            state.add(end, &written, &mut queue);
        }
    }
    Ok(Some(diverges))
}

struct State {
    /// Resources that differ between lanes at the start of each block.
    before: Vec<Set>,
    /// Blocks between a branch whose lanes disagree and its post-dominator.
    apart: Vec<bool>,
    queued: Vec<bool>,
}

impl State {
    /// Adds to what differs at the start of a block; nothing follows the exit.
    fn add(&mut self, block: u32, set: &Set, queue: &mut Vec<u32>) {
        let Some(before) = self.before.get_mut(block as usize) else { return };
        if join(before, set) {
            self.queue(block, queue);
        }
    }

    fn queue(&mut self, block: u32, queue: &mut Vec<u32>) {
        if !std::mem::replace(&mut self.queued[block as usize], true) {
            queue.push(block);
        }
    }
}

/// Marks the blocks between a branch and its post-dominator, and collects what they write.
fn part(
    code: &FlowCode,
    blocks: &Blocks,
    branch: u32,
    end: u32,
    state: &mut State,
    queue: &mut Vec<u32>,
    work: &mut Work,
) -> Result<Set, TooLarge> {
    let mut set = [0; WORDS];
    let mut seen = HashSet::new();
    let mut stack: Vec<u32> = blocks.graph.successors(branch).to_vec();
    while let Some(block) = stack.pop() {
        if block == end || block == blocks.exit() || !seen.insert(block) {
            continue;
        }
        work.take(blocks.range(block).len() + 1)?;
        if !std::mem::replace(&mut state.apart[block as usize], true) {
            state.queue(block, queue);
        }
        for at in blocks.range(block) {
            let inst = &code.insts[at as usize];
            if inst.spread != Spread::Same {
                code.writes(inst).iter().for_each(|&w| put(&mut set, w, true));
            }
        }
        stack.extend(blocks.graph.successors(block));
    }
    Ok(set)
}

fn has(set: &Set, resource: u16) -> bool {
    set.get(usize::from(resource / 64)).is_some_and(|w| w >> (resource % 64) & 1 == 1)
}

fn put(set: &mut Set, resource: u16, value: bool) {
    if let Some(word) = set.get_mut(usize::from(resource / 64)) {
        *word = *word & !(1 << (resource % 64)) | u64::from(value) << (resource % 64);
    }
}

/// Whether an instruction reads something that differs.
fn disagree(code: &FlowCode, inst: &FlowInst, set: &Set) -> bool {
    code.reads(inst).iter().any(|&r| has(set, r))
}

fn transfer(code: &FlowCode, inst: &FlowInst, apart: bool, set: &mut Set) {
    let itself = || code.writes(inst).iter().any(|w| code.reads(inst).contains(w));
    let differs = match inst.spread {
        Spread::Varies => true,
        Spread::Same => false,
        Spread::Follows => disagree(code, inst, set) || apart && itself(),
    };
    for &resource in code.writes(inst) {
        // A guarded instruction leaves the old value in some lanes.
        if differs || !inst.conditional {
            put(set, resource, differs);
        }
    }
}

/// Adds `from` to `to`; true if that changed it.
fn join(to: &mut Set, from: &Set) -> bool {
    let mut changed = false;
    for (to, from) in to.iter_mut().zip(from) {
        changed |= *from & !*to != 0;
        *to |= from;
    }
    changed
}
