//! A body's runs of instructions that are executed one after another, and what follows them.

use crate::tree::{Body, Instruction, LabelId, Module, OperandKind, RegisterId, TableKind, Target};

use super::access::Access;

/// Blocks of a body.
pub(super) struct Blocks {
    /// First instruction of each block, and the number of instructions.
    starts: Vec<u32>,
    successors: Vec<Vec<u32>>,
    /// Blocks visited so far by [`Blocks::is_read_after`], over all questions.
    visited: usize,
}

/// Blocks that one body's questions may visit: what is beyond is taken for read.
const MAX_VISITS: usize = 4_000_000;

fn labels(body: &Body<'_>, instruction: &Instruction) -> Vec<LabelId> {
    let mut out = Vec::new();
    for operand in body.operands_of(instruction) {
        match operand.kind {
            OperandKind::Symbol { target: Target::Label(label), .. } => out.push(label),
            OperandKind::Symbol { target: Target::Table(table), .. } => {
                if let Some(TableKind::Branch(targets)) = body.tables.get(table.index()).map(|t| &t.kind) {
                    out.extend(targets.iter().flatten().copied());
                }
            }
            _ => {}
        }
    }
    out
}

impl Blocks {
    pub(super) fn new(module: &Module<'_>, body: &Body<'_>) -> Blocks {
        let count = body.instructions.len() as u32;
        let name = |i: u32| body.instructions.get(i as usize).map_or("", |it| module.opcode(it.opcode).name);
        let mut starts: Vec<u32> = body.labels.iter().map(|l| l.position).filter(|&p| p < count).collect();
        starts.push(0);
        starts.push(count);
        starts.extend((0..count).filter(|&i| ends_block(name(i))).map(|i| i + 1));
        starts.sort_unstable();
        starts.dedup();
        let mut blocks = Blocks { starts, successors: Vec::new(), visited: 0 };
        for at in 0..blocks.len() {
            let end = blocks.starts[at + 1];
            let last = end.wrapping_sub(1);
            let instruction = &body.instructions[last as usize];
            let mut next = Vec::new();
            if matches!(name(last), "bra" | "brx") {
                let targets = labels(body, instruction);
                let positions = targets.iter().filter_map(|l| body.labels.get(l.index())).map(|l| l.position);
                next.extend(positions.filter(|&p| p < count).map(|p| blocks.of(p)));
            }
            let goes_on = instruction.guard.is_some() || !matches!(name(last), "bra" | "brx" | "ret" | "exit" | "trap");
            if goes_on && end < count {
                next.push(blocks.of(end));
            }
            next.sort_unstable();
            next.dedup();
            blocks.successors.push(next);
        }
        blocks.drop_unreachable();
        blocks
    }

    /// What cannot be reached leads nowhere, either.
    fn drop_unreachable(&mut self) {
        let mut reached = vec![false; self.len()];
        let mut queue = vec![0u32];
        while let Some(at) = queue.pop() {
            if let Some(seen) = reached.get_mut(at as usize)
                && !*seen
            {
                *seen = true;
                queue.extend(&self.successors[at as usize]);
            }
        }
        for (next, reached) in self.successors.iter_mut().zip(reached) {
            if !reached {
                next.clear();
            }
        }
    }

    fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn of(&self, instruction: u32) -> u32 {
        self.starts.partition_point(|&s| s <= instruction).saturating_sub(1) as u32
    }

    /// Blocks strung together where one is entered from another only, and that one leads nowhere else: each list is
    /// the instructions that one block of the machine code's compiler has, in order.
    pub(super) fn chains(&self, module: &Module<'_>, body: &Body<'_>) -> Vec<Vec<u32>> {
        let mut entered = vec![0u32; self.len()];
        for next in self.successors.iter().flatten() {
            entered[*next as usize] += 1;
        }
        // The kernel's start is one more way in.
        if let Some(first) = entered.first_mut() {
            *first += 1;
        }
        let follower = |at: usize| -> Option<usize> {
            let last = body.instructions.get(self.starts[at + 1].checked_sub(1)? as usize)?;
            let name = module.opcode(last.opcode).name;
            let next = *self.successors[at].as_slice().first()? as usize;
            let joins = self.successors[at].len() == 1 && entered[next] == 1 && (name == "bra" || !ends_block(name));
            joins.then_some(next)
        };
        let mut follows = vec![false; self.len()];
        for at in 0..self.len() {
            if let Some(next) = follower(at) {
                follows[next] = true;
            }
        }
        let mut chains = Vec::new();
        for first in (0..self.len()).filter(|&at| !follows[at]) {
            let mut chain: Vec<u32> = (self.starts[first]..self.starts[first + 1]).collect();
            let mut at = first;
            // A block follows one other at most, so no block is met twice.
            while let Some(next) = follower(at) {
                chain.extend(self.starts[next]..self.starts[next + 1]);
                at = next;
            }
            chains.push(chain);
        }
        chains
    }

    /// Whether the value that `register` has after instruction `last` may be read. `accesses` are its places in order.
    pub(super) fn is_read_after(
        &mut self,
        module: &Module<'_>,
        body: &Body<'_>,
        last: u32,
        register: RegisterId,
        accesses: &[u32],
    ) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        let mut queue = self.successors[self.of(last) as usize].clone();
        while let Some(block) = queue.pop() {
            if !seen.insert(block) {
                continue;
            }
            self.visited += 1;
            if self.visited > MAX_VISITS {
                return true;
            }
            let (start, end) = (self.starts[block as usize], self.starts[block as usize + 1]);
            let first = accesses.partition_point(|&a| a < start);
            let mut over = false;
            for &at in accesses[first..].iter().take_while(|&&a| a < end) {
                match Access::of(module, body, &body.instructions[at as usize], register) {
                    Access::Reads => return true,
                    Access::Replaces => {
                        over = true;
                        break;
                    }
                    Access::None => {}
                }
            }
            if !over {
                queue.extend(&self.successors[block as usize]);
            }
        }
        false
    }
}

/// Whether nothing is contracted across an instruction, with a guard or without.
fn ends_block(name: &str) -> bool {
    matches!(name, "bra" | "brx" | "ret" | "exit" | "trap" | "call")
}
