//! Which convergence regions are open at a branch: from each `BSSY` forward until its barrier is waited for, left
//! unconditionally, or overwritten.

use std::collections::HashMap;

use lanescope_ir::flow::{Barrier, Flow, FlowCode, RegionClass};

use super::blocks::Blocks;
use super::{TooLarge, Work};

/// Regions by the block at whose end they are open.
pub(super) struct Armed {
    pub(super) opens: Vec<Open>,
    by_block: HashMap<u32, Vec<u32>>,
}

/// One `BSSY`.
pub(super) struct Open {
    pub(super) at: u32,
    pub(super) barrier: Barrier,
    pub(super) class: RegionClass,
    /// The `BSYNC`s that it reaches: (block, instruction).
    pub(super) waits: Vec<(u32, u32)>,
    /// The `BREAK`s on the way.
    pub(super) breaks: Vec<u32>,
}

impl Armed {
    pub(super) fn new(code: &FlowCode, blocks: &Blocks, work: &mut Work) -> Result<Armed, TooLarge> {
        let mut opens: Vec<Open> = Vec::new();
        for (at, inst) in code.insts.iter().enumerate() {
            if let Flow::Open(barrier, class) = inst.flow
                && !inst.never
            {
                opens.push(Open { at: at as u32, barrier, class, waits: Vec::new(), breaks: Vec::new() });
            }
        }
        let mut by_block: HashMap<u32, Vec<u32>> = HashMap::new();
        // The number of the last region that visited a block.
        let mut seen = vec![u32::MAX; blocks.len() as usize + 1];
        let mut stack = Vec::new();
        for (number, open) in opens.iter_mut().enumerate() {
            let number = number as u32;
            let start = blocks.of(open.at);
            let mut next = Some((start, open.at + 1));
            while let Some((block, from)) = next {
                let range = from..blocks.range(block).end;
                work.take(range.len() + 1)?;
                let mut stop = None;
                for at in range {
                    stop = stops(code, at, open.barrier);
                    match stop {
                        Some(Stop::Wait) => open.waits.push((block, at)),
                        Some(Stop::Break | Stop::Leak) => open.breaks.push(at),
                        _ => {}
                    }
                    if stop.is_some_and(|s| s != Stop::Leak) {
                        break;
                    }
                }
                match stop {
                    Some(Stop::Wait | Stop::Break | Stop::Other) => {}
                    Some(Stop::Leak) | None => {
                        by_block.entry(block).or_default().push(number);
                        stack.extend(blocks.graph.successors(block));
                    }
                }
                next = None;
                while let Some(block) = stack.pop() {
                    let visited = std::mem::replace(&mut seen[block as usize], number) == number;
                    if !visited && block != blocks.exit() {
                        next = Some((block, blocks.first(block)));
                        break;
                    }
                }
            }
        }
        Ok(Armed { opens, by_block })
    }

    /// Appends the ends of the regions that are open at the end of `block`; true if there are such regions.
    pub(super) fn ends(&self, block: u32, out: &mut Vec<(u32, u32)>) -> bool {
        let Some(open) = self.by_block.get(&block) else { return false };
        out.extend(open.iter().flat_map(|&o| &self.opens[o as usize].waits));
        !open.is_empty()
    }

    /// Regions whose end is never reached.
    pub(super) fn endless(&self) -> usize {
        self.opens.iter().filter(|o| o.waits.is_empty()).count()
    }
}

/// What an instruction does to the lanes of a barrier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// They wait.
    Wait,
    /// They leave.
    Break,
    /// Some of them may leave; the walk goes on with the others.
    Leak,
    /// The barrier has other lanes from here on.
    Other,
}

fn stops(code: &FlowCode, at: u32, barrier: Barrier) -> Option<Stop> {
    let inst = code.insts.get(at as usize).filter(|i| !i.never)?;
    match inst.flow {
        Flow::Wait(b) if b == barrier => Some(Stop::Wait),
        Flow::Break(b) if b == barrier => Some(if inst.conditional { Stop::Leak } else { Stop::Break }),
        Flow::Open(b, _) | Flow::Overwrite(b) if b == barrier => Some(Stop::Other),
        _ => None,
    }
}
