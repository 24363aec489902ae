//! How often the warps of a grouping issue each block.

use std::cmp::Reverse;

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::{Kernel, Op, Profile};

use super::{Grouping, Price, history::Classes};
use crate::regions::Structure;

/// What the estimate of a block rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Outside loops, or the header of an outermost one: the busiest lane of each group.
    Plain,
    /// Header of a loop inside the loop with this header: between the busiest lane's sum, and the busiest lane of each
    /// turn if a thread's turns were all alike.
    Nested(u32),
    /// In a loop, in every turn of it: as its header.
    Every(u32),
    /// In a loop, in some turns: between the busiest lane's sum, and what lanes that choose independently would need.
    Arm(u32),
    /// In a loop, where groups rejoin one after another: as often as its predecessors.
    Join(Vec<u32>),
}

/// A block and how it is estimated.
#[derive(Clone, Debug)]
pub(super) struct Block {
    kind: Kind,
    /// Instructions that count.
    pub(super) length: f64,
    /// Issues counted, for the recorded threads.
    measured: f64,
    /// Where between the two estimates the launch as it ran lay.
    between: f64,
    /// What was counted, as a multiple of that.
    factor: f64,
    /// Whether estimates of other blocks rest on it.
    kept: bool,
}

/// What is known of each block before calibration.
pub(super) fn blocks(
    kernel: &Kernel,
    s: &Structure,
    profile: &Profile,
    executions: &[Vec<u32>],
    scale: f64,
) -> Vec<Block> {
    let back = s.cfg.graph.reversed();
    let header_of = |l: u32| s.loops.list.get(l as usize).map(|l| l.header);
    let continued = |at: u32| kernel.continued.get(at as usize) == Some(&true);
    let mut blocks: Vec<Block> = (0u32..)
        .zip(&s.cfg.blocks)
        .map(|(b, block)| {
            let counted = block.instructions().filter(|&i| !continued(i));
            let issues = |i: u32| profile.counts.get(i as usize).map_or(0, |c| c.inst_executed);
            let (length, sum) = counted.fold((0.0, 0.0), |(n, sum), i| (n + 1.0, sum + issues(i) as f64));
            let innermost = s.loops.innermost.get(b as usize).copied().flatten();
            let last = kernel.instructions.get(block.last() as usize).map(|i| &i.op);
            let kind = match innermost {
                None => Kind::Plain,
                Some(l) => {
                    let header = header_of(l).unwrap_or(b);
                    let parent = s.loops.list.get(l as usize).and_then(|l| l.parent).and_then(header_of);
                    let latches = s.loops.list.get(l as usize).map_or(&[][..], |l| &l.latches);
                    let same = executions.get(b as usize) == executions.get(header as usize);
                    if b == header {
                        parent.map_or(Kind::Plain, Kind::Nested)
                    } else if matches!(last, Some(Op::Control(ControlOp::Sync { .. }))) {
                        let from = back.successors(b).iter().copied().filter(|&p| p < s.cfg.blocks.len() as u32);
                        Kind::Join(from.collect())
                    } else if same || latches.iter().all(|&latch| s.dom.dominates(b, latch)) {
                        Kind::Every(header)
                    } else {
                        Kind::Arm(header)
                    }
                }
            };
            let measured = if length > 0.0 { sum / length * scale } else { 0.0 };
            Block { kind, length, measured, between: 0.0, factor: 1.0, kept: false }
        })
        .collect();
    let mut keep = Vec::new();
    for b in &blocks {
        match &b.kind {
            Kind::Plain => {}
            Kind::Nested(h) | Kind::Every(h) | Kind::Arm(h) => keep.push(*h),
            Kind::Join(from) => keep.extend(from),
        }
    }
    for k in keep {
        if let Some(b) = blocks.get_mut(k as usize) {
            b.kept = true;
        }
    }
    blocks
}

/// An order in which headers come before what is in their loops, outer loops before inner ones, and joins last, inner
/// ones first.
pub(super) fn order(s: &Structure, blocks: &[Block]) -> Vec<u32> {
    let depth = |b: u32| s.loops.around(b).count();
    let mut order: Vec<u32> = (0..blocks.len() as u32).collect();
    order.sort_by_key(|&b| {
        let join = matches!(blocks[b as usize].kind, Kind::Join(_));
        let header = matches!(blocks[b as usize].kind, Kind::Plain | Kind::Nested(_));
        let depth = depth(b);
        (join, if join { (Reverse(depth), 0) } else { (Reverse(0), depth) }, !header, b)
    });
    order
}

/// Estimates for one grouping.
pub(super) struct Estimates<'a> {
    executions: &'a [Vec<u32>],
    classes: &'a Classes,
    grouping: &'a Grouping,
    /// Adjusted issues by warp, of blocks that others rest on.
    kept: Vec<Vec<f64>>,
}

/// Two estimates of a block's issues for one warp.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pair {
    low: f64,
    high: f64,
    /// The busiest lane of each group, whatever the kind.
    plain: f64,
}

impl<'a> Estimates<'a> {
    pub(super) fn new(executions: &'a [Vec<u32>], classes: &'a Classes, grouping: &'a Grouping) -> Self {
        Estimates { executions, classes, grouping, kept: Vec::new() }
    }

    fn row(&self, block: u32) -> &'a [u32] {
        self.executions.get(block as usize).map_or(&[], Vec::as_slice)
    }

    fn kept(&self, block: u32, warp: usize) -> f64 {
        self.kept.get(block as usize).and_then(|k| k.get(warp)).copied().unwrap_or(0.0)
    }

    /// Both estimates of a block for each warp.
    fn pairs(&self, b: u32, kind: &Kind) -> Vec<Pair> {
        let row = self.row(b);
        let classes = self.classes.at(b);
        let mut groups: Vec<(u32, u32)> = Vec::new();
        let busiest = |warp: &[u32], groups: &mut Vec<(u32, u32)>| -> f64 {
            let Some(classes) = classes else {
                return warp.iter().map(|&t| of(row, t)).max().unwrap_or(0).into();
            };
            groups.clear();
            for &t in warp {
                let (n, class) = (of(row, t), of(classes, t));
                match groups.iter_mut().find(|g| g.0 == class) {
                    Some(g) => g.1 = g.1.max(n),
                    None => groups.push((class, n)),
                }
            }
            groups.iter().map(|g| f64::from(g.1)).sum()
        };
        let exactly = |x: f64, plain: f64| Pair { low: x, high: x, plain };
        let warps = self.grouping.warps();
        let each = self.grouping.warps().enumerate();
        match kind {
            Kind::Plain => warps
                .map(|w| {
                    let plain = busiest(w, &mut groups);
                    exactly(plain, plain)
                })
                .collect(),
            Kind::Every(h) => each.map(|(i, w)| exactly(self.kept(*h, i), busiest(w, &mut groups))).collect(),
            Kind::Join(from) => each
                .map(|(i, w)| exactly(from.iter().map(|&p| self.kept(p, i)).sum(), busiest(w, &mut groups)))
                .collect(),
            Kind::Nested(h) => {
                let outer = self.row(*h);
                let mut lanes = Vec::new();
                warps
                    .map(|w| {
                        let low = busiest(w, &mut groups);
                        Pair { low, high: alike(w, outer, row, &mut lanes).max(low), plain: low }
                    })
                    .collect()
            }
            Kind::Arm(h) => each
                .map(|(i, w)| {
                    let low = busiest(w, &mut groups);
                    let turns = self.kept(*h, i).max(low);
                    let missed = w.iter().map(|&t| 1.0 - f64::from(of(row, t)) / turns.max(1.0));
                    Pair { low, high: (turns * (1.0 - missed.product::<f64>())).max(low), plain: low }
                })
                .collect(),
        }
    }

    /// Measures on the launch as it ran where each block lies; gives its price.
    pub(super) fn calibrate(mut self, blocks: &mut [Block], order: &[u32], scale: f64) -> Price {
        self.kept = vec![Vec::new(); blocks.len()];
        for &b in order {
            let Some(kind) = blocks.get(b as usize).map(|b| b.kind.clone()) else { continue };
            let pairs = self.pairs(b, &kind);
            let (low, high) = pairs.iter().fold((0.0, 0.0), |(l, h), p| (l + p.low, h + p.high));
            let block = &mut blocks[b as usize];
            let room: f64 = high - low;
            block.between = if room > 0.01 * low { ((block.measured - low) / room).clamp(0.0, 1.0) } else { 0.0 };
            let here = low + block.between * room;
            block.factor = if here > 0.0 { block.measured / here } else { 1.0 };
            let keep = block.kept.then(|| adjusted(block, &pairs));
            self.kept[b as usize] = keep.unwrap_or_default();
        }
        self.price(blocks, order, scale)
    }

    /// The price of the grouping.
    pub(super) fn price(mut self, blocks: &[Block], order: &[u32], scale: f64) -> Price {
        self.kept = vec![Vec::new(); blocks.len()];
        let mut price = Price { issues: vec![0.0; blocks.len()], ..Price::default() };
        let (mut total, mut plain) = (0.0, 0.0);
        for &b in order {
            let Some(block) = blocks.get(b as usize) else { continue };
            let pairs = self.pairs(b, &block.kind);
            let issues = adjusted(block, &pairs);
            let sum: f64 = issues.iter().sum();
            total += sum * block.length;
            plain += pairs.iter().map(|p| p.plain).sum::<f64>() * block.length;
            price.issues[b as usize] = sum / scale;
            if block.kept {
                self.kept[b as usize] = issues;
            }
        }
        let whole = |x: f64| (x / scale).round().max(0.0) as u64;
        price.warp_instructions = whole(total);
        price.unadjusted = whole(plain);
        price
    }
}

fn of(row: &[u32], thread: u32) -> u32 {
    row.get(thread as usize).copied().unwrap_or(0)
}

fn adjusted(block: &Block, pairs: &[Pair]) -> Vec<f64> {
    pairs.iter().map(|p| (p.low + block.between * (p.high - p.low)) * block.factor).collect()
}

/// Turns of a nested loop if each thread made the same number in every turn of the outer loop: in the k-th turn of the
/// outer loop the busiest of the lanes that make so many decides.
fn alike(warp: &[u32], outer: &[u32], inner: &[u32], lanes: &mut Vec<(u32, f64)>) -> f64 {
    lanes.clear();
    lanes.extend(
        warp.iter()
            .map(|&t| (of(outer, t), of(inner, t)))
            .filter(|l| l.0 > 0)
            .map(|(o, i)| (o, f64::from(i) / f64::from(o))),
    );
    lanes.sort_by_key(|l| Reverse(l.0));
    let (mut sum, mut most) = (0.0, 0.0f64);
    for (i, &(turns, mean)) in lanes.iter().enumerate() {
        most = most.max(mean);
        let next = lanes.get(i + 1).map_or(0, |l| l.0);
        sum += f64::from(turns - next) * most;
    }
    sum
}
