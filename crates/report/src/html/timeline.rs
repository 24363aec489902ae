//! Traces of warps, packed for the canvas, with the path that each step belongs to.
//!
//! A path is where lanes went at a branch: which branch, and to which instruction. Lanes that part get paths of their
//! own below the one they shared; lanes that go on together are on the nearest path that all of theirs lie below. Lanes
//! that stay in a loop while others leave it stay on their path.

use std::collections::HashMap;

use lanescope_analysis::{Structure, words};
use lanescope_ir::{Kernel, LaneMask};
use serde::Serialize;

use super::pack::{deltas, varints};
use crate::trace::Trace;

/// One warp for the canvas.
#[derive(Debug, Serialize)]
pub(super) struct Track {
    /// `block 0, warp 1`.
    label: String,
    /// `before` or `after` a fix; empty without one.
    when: &'static str,
    width: u32,
    lanes: String,
    steps: usize,
    /// Lane slots in these steps that no lane used, lanes that never existed not counted.
    lost: u64,
    cut: bool,
    /// Instruction of each step, as packed differences.
    inst: String,
    /// State of each step, as packed indices.
    state: String,
    states: Vec<State>,
    paths: Vec<PathInfo>,
}

/// What the lanes of a warp do in a step.
#[derive(Debug, PartialEq, Eq, Hash, Clone, Serialize)]
struct State {
    active: String,
    executing: String,
    /// Groups elsewhere: instruction and lanes.
    others: Vec<(u32, String)>,
    path: u32,
    event: String,
}

/// A path, for the legend.
#[derive(Debug, Serialize)]
struct PathInfo {
    /// The path it forks off.
    parent: Option<u32>,
    /// In words.
    label: String,
    /// The branch, and where these lanes went.
    branch: Option<u32>,
    target: Option<u32>,
    /// Steps on it.
    steps: u64,
}

/// Packs `trace`.
pub(super) fn track(kernel: &Kernel, structure: &Structure, trace: &Trace, when: &'static str) -> Track {
    let paths = paths(structure, trace);
    let mut states: Vec<State> = Vec::new();
    let mut known: HashMap<State, u64> = HashMap::new();
    let mut index = Vec::with_capacity(trace.steps.len());
    let mut steps = vec![0u64; paths.list.len()];
    for (step, &path) in trace.steps.iter().zip(&paths.of_step) {
        let state = State {
            active: hex(step.active),
            executing: hex(step.executing),
            others: step.others.iter().map(|(at, lanes)| (*at, hex(*lanes))).collect(),
            path,
            event: step.event.words(step.active),
        };
        steps[path as usize] += 1;
        let next = known.len() as u64;
        index.push(*known.entry(state).or_insert_with_key(|s| {
            states.push(s.clone());
            next
        }));
    }
    let info = paths.list.iter().zip(steps).map(|(p, steps)| PathInfo {
        parent: p.fork.map(|f| f.parent),
        label: p.fork.map_or_else(|| "all lanes together".to_owned(), |f| label(kernel, f.branch, f.target)),
        branch: p.fork.map(|f| f.branch),
        target: p.fork.map(|f| f.target),
        steps,
    });
    Track {
        label: format!("block {}, warp {}", trace.block, trace.warp),
        when,
        width: trace.warp_size,
        lanes: hex(trace.lanes),
        steps: trace.steps.len(),
        lost: trace.steps.iter().map(|s| u64::from((trace.lanes - s.active).count())).sum(),
        cut: trace.cut,
        inst: varints(deltas(trace.steps.iter().map(|s| s.inst))),
        state: varints(index),
        states,
        paths: info.collect(),
    }
}

fn hex(mask: LaneMask) -> String {
    format!("{:x}", mask.0)
}

fn label(kernel: &Kernel, branch: u32, target: u32) -> String {
    let place = |inst| {
        words::at_line(kernel, inst)
            .unwrap_or_else(|| format!("{:#06x}", kernel.instructions.get(inst as usize).map_or(0, |i| i.pc)))
    };
    let (from, to) = (place(branch), place(target));
    if from == to { format!("{from}, to {}", words::place(kernel, target)) } else { format!("{from} to {to}") }
}

/// Where a path forks off another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Fork {
    parent: u32,
    branch: u32,
    target: u32,
}

struct PathNode {
    fork: Option<Fork>,
    depth: u32,
}

struct Paths {
    list: Vec<PathNode>,
    of_step: Vec<u32>,
}

impl Paths {
    /// The nearest path that both lie below, or are.
    fn common(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            let deeper = if self.list[a as usize].depth >= self.list[b as usize].depth { &mut a } else { &mut b };
            *deeper = self.list[*deeper as usize].fork.map_or(0, |f| f.parent);
        }
        a
    }

    /// The path of lanes that went from `branch` to `target`. Coming by again without having rejoined is no new path.
    fn fork(&mut self, known: &mut HashMap<Fork, u32>, fork: Fork) -> u32 {
        let mut above = Some(fork.parent);
        while let Some(p) = above {
            let Some(f) = self.list[p as usize].fork else { break };
            if (f.branch, f.target) == (fork.branch, fork.target) {
                return p;
            }
            above = Some(f.parent);
        }
        *known.entry(fork).or_insert_with(|| {
            let depth = self.list[fork.parent as usize].depth + 1;
            self.list.push(PathNode { fork: Some(fork), depth });
            self.list.len() as u32 - 1
        })
    }
}

fn paths(structure: &Structure, trace: &Trace) -> Paths {
    let mut paths =
        Paths { list: vec![PathNode { fork: None, depth: 0 }], of_step: Vec::with_capacity(trace.steps.len()) };
    let mut known = HashMap::new();
    let mut of_lane = [0u32; LaneMask::MAX as usize];
    for (at, step) in trace.steps.iter().enumerate() {
        let path = step.active.lanes().map(|l| of_lane[l as usize]).reduce(|a, b| paths.common(a, b)).unwrap_or(0);
        step.active.lanes().for_each(|l| of_lane[l as usize] = path);
        paths.of_step.push(path);
        let parts = trace.sides(at);
        if parts.len() < 2 {
            continue;
        }
        let around = structure.cfg.block(step.inst).and_then(|b| structure.leaves_loop(b));
        for (target, lanes) in parts {
            let inside = around.zip(structure.cfg.block(target)).is_some_and(|(l, b)| structure.loops.contains(l, b));
            if !inside {
                let fork = paths.fork(&mut known, Fork { parent: path, branch: step.inst, target });
                lanes.lanes().for_each(|l| of_lane[l as usize] = fork);
            }
        }
    }
    paths
}
