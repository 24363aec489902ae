//! The token stack of the machine before Volta, followed through the code.
//!
//! Compilers keep the stack the same on all paths to a place, so one visit of each instruction suffices: what the
//! first path brings is the stack there. `SYNC` takes the nearest `SSY` token and what lies above it, `BRK` the
//! nearest `PBK`, `CONT` the nearest `PCNT`; lanes go on at the token's label with the stack below it.

use std::collections::HashMap;

use lanescope_ir::flow::{Flow, FlowCode, Token};

use super::blocks::Blocks;

/// Deepest stack that is followed. Hardware has less room before it spills.
const DEEPEST: u32 = 64;
/// The empty stack.
const EMPTY: u32 = 0;

/// A stack: its top, and the number of the stack below. Equal stacks share a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Cell {
    token: Token,
    label: Option<u32>,
    below: u32,
}

/// The stack at each instruction.
#[derive(Default)]
pub(super) struct Tokens {
    /// Cell of stack `n` at `n - 1`.
    cells: Vec<Cell>,
    depths: Vec<u32>,
    /// Stack before each instruction; `None` if no path leads there. Empty if the code has no tokens.
    before: Vec<Option<u32>>,
    /// Number of instructions that push.
    pub(super) pushes: usize,
    /// Instructions that take a token which is not there.
    pub(super) unmatched: u32,
}

impl Tokens {
    pub(super) fn new(code: &FlowCode) -> Tokens {
        let pushes = code.insts.iter().filter(|i| matches!(i.flow, Flow::Push(..))).count();
        let mut tokens = Tokens { pushes, ..Tokens::default() };
        if !code.insts.iter().any(|i| matches!(i.flow, Flow::Push(..) | Flow::Pop(_))) {
            return tokens;
        }
        tokens.before = vec![None; code.insts.len()];
        let mut numbers = HashMap::new();
        // Functions first, then code that nothing leads to: with an empty stack, as in a function.
        let mut roots: Vec<u32> = code.entries.clone();
        roots.extend(0..code.insts.len() as u32);
        let mut stack = Vec::new();
        for root in roots {
            stack.push((root, EMPTY));
            while let Some((at, state)) = stack.pop() {
                match tokens.before.get_mut(at as usize) {
                    Some(place @ None) => *place = Some(state),
                    _ => continue,
                }
                tokens.step(code, at, state, &mut numbers, &mut stack);
            }
        }
        tokens
    }

    fn step(
        &mut self,
        code: &FlowCode,
        at: u32,
        state: u32,
        numbers: &mut HashMap<Cell, u32>,
        out: &mut Vec<(u32, u32)>,
    ) {
        let inst = code.insts[at as usize];
        let falls = inst.conditional || inst.never;
        match inst.flow {
            Flow::Push(token, label) => out.push((at + 1, self.pushed(state, token, label, numbers))),
            Flow::Pop(token) => {
                if falls {
                    out.push((at + 1, state));
                }
                match self.taken(state, token) {
                    Some(cell) => out.extend(cell.label.map(|l| (l, cell.below))),
                    None => self.unmatched += 1,
                }
            }
            Flow::Branch(to) | Flow::GroupBranch(to) | Flow::Test(to) => {
                if falls || matches!(inst.flow, Flow::Test(_)) {
                    out.push((at + 1, state));
                }
                out.extend(to.map(|t| (t, state)));
            }
            Flow::Indirect(first, count) => {
                out.extend(code.targets_of(first, count).iter().map(|&t| (t, state)));
                if falls {
                    out.push((at + 1, state));
                }
            }
            Flow::Leave if !falls => {}
            _ => out.push((at + 1, state)),
        }
    }

    fn pushed(&mut self, below: u32, token: Token, label: Option<u32>, numbers: &mut HashMap<Cell, u32>) -> u32 {
        let depth = self.depth(below) + 1;
        if depth > DEEPEST {
            return below;
        }
        let cell = Cell { token, label, below };
        *numbers.entry(cell).or_insert_with(|| {
            self.cells.push(cell);
            self.depths.push(depth);
            self.cells.len() as u32
        })
    }

    fn depth(&self, state: u32) -> u32 {
        state.checked_sub(1).and_then(|n| self.depths.get(n as usize).copied()).unwrap_or(0)
    }

    fn cell(&self, state: u32) -> Option<Cell> {
        self.cells.get(state.checked_sub(1)? as usize).copied()
    }

    /// The token that an instruction takes from a stack.
    fn taken(&self, state: u32, token: Token) -> Option<Cell> {
        std::iter::successors(self.cell(state), |c| self.cell(c.below)).find(|c| c.token == token)
    }

    /// Where the lanes that take a token of that kind at `at` go on.
    pub(super) fn target(&self, at: u32, token: Token) -> Option<u32> {
        let state = (*self.before.get(at as usize)?)?;
        self.taken(state, token)?.label
    }

    /// Appends block and instruction of the labels on the stack at `at`; true if there are any.
    pub(super) fn ends(&self, at: u32, blocks: &Blocks, out: &mut Vec<(u32, u32)>) -> bool {
        let Some(state) = self.before.get(at as usize).copied().flatten() else { return false };
        let stack = std::iter::successors(self.cell(state), |c| self.cell(c.below));
        out.extend(stack.filter_map(|c| c.label).map(|l| (blocks.of(l), l)));
        state != EMPTY
    }
}
