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
    /// Header of a loop inside the loop with this header: from the busiest lane's sum, over the busiest lane of each
    /// turn if a thread's turns are all alike, to the busiest lane of each turn if they are drawn anew each time.
    Nested(u32),
    /// In a loop, in every turn of it: as its header.
    Every(u32),
    /// In a loop, in some turns: from the busiest lane's sum to what lanes that choose independently would need.
    Arm(u32),
    /// In the loop with this header, where groups come one after another: once for each way in that any lane comes by.
    Join(u32, Vec<Way>),
}

/// A way into a block where groups meet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    /// The block it comes from.
    from: u32,
    /// How often each thread comes by it; `None` if its other ways out have other ways in.
    by_thread: Option<Vec<u32>>,
}

/// A block and how it is estimated.
#[derive(Clone, Debug)]
pub(super) struct Block {
    kind: Kind,
    /// Instructions that count.
    pub(super) length: f64,
    /// Issues counted, for the recorded threads.
    measured: f64,
    /// Where among the estimates the launch as it ran lay: 0 the lowest, 1 the middle one, 2 the highest.
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
            let from = |b: u32| back.successors(b).iter().copied().filter(|&p| p < s.cfg.blocks.len() as u32);
            let last = kernel.instructions.get(block.last() as usize).map(|i| &i.op);
            let waits = matches!(last, Some(Op::Control(ControlOp::Sync { .. })));
            // Machine code says where lanes wait for each other; elsewhere those that come by different ways go on apart.
            let rejoins = |b: u32| waits || kernel.arch.starts_with("sm_") && from(b).count() > 1;
            let kind = match innermost {
                None => Kind::Plain,
                Some(l) => {
                    let header = header_of(l).unwrap_or(b);
                    let parent = s.loops.list.get(l as usize).and_then(|l| l.parent).and_then(header_of);
                    let latches = s.loops.list.get(l as usize).map_or(&[][..], |l| &l.latches);
                    let same = executions.get(b as usize) == executions.get(header as usize);
                    if b == header {
                        parent.map_or(Kind::Plain, Kind::Nested)
                    } else if rejoins(b) {
                        Kind::Join(header, from(b).map(|from| way(s, &back, executions, from, b)).collect())
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
            Kind::Join(h, ways) => {
                keep.push(*h);
                keep.extend(ways.iter().filter(|w| w.by_thread.is_none()).map(|w| w.from));
            }
        }
    }
    for k in keep {
        if let Some(b) = blocks.get_mut(k as usize) {
            b.kept = true;
        }
    }
    blocks
}

/// How threads come from `from` to `to`: as often as they were at the first and did not go elsewhere.
fn way(s: &Structure, back: &crate::Graph, executions: &[Vec<u32>], from: u32, to: u32) -> Way {
    let others = || s.cfg.graph.successors(from).iter().copied().filter(|&o| o != to);
    let only = |o: u32| back.successors(o) == [from] && (o as usize) < s.cfg.blocks.len();
    let by_thread = others().all(only).then(|| {
        let mut row = executions.get(from as usize).cloned().unwrap_or_default();
        for other in others().filter_map(|o| executions.get(o as usize)) {
            row.iter_mut().zip(other).for_each(|(n, o)| *n = n.saturating_sub(*o));
        }
        row
    });
    Way { from, by_thread }
}

/// An order in which headers come before what is in their loops, outer loops before inner ones, and joins last, inner
/// ones first.
pub(super) fn order(s: &Structure, blocks: &[Block]) -> Vec<u32> {
    let depth = |b: u32| s.loops.around(b).count();
    let mut order: Vec<u32> = (0..blocks.len() as u32).collect();
    order.sort_by_key(|&b| {
        let join = matches!(blocks[b as usize].kind, Kind::Join(..));
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
    /// For each block, the steady classes by thread.
    steady: Vec<Option<&'a [u32]>>,
    grouping: &'a Grouping,
    /// Adjusted issues by warp, of blocks that others rest on.
    kept: Vec<Vec<f64>>,
}

/// Estimates of a block's issues for one warp, ascending.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Issues {
    low: f64,
    middle: f64,
    high: f64,
    /// The busiest lane of each group, whatever the kind.
    plain: f64,
}

impl<'a> Estimates<'a> {
    pub(super) fn new(
        executions: &'a [Vec<u32>],
        classes: &'a Classes,
        steady: Vec<Option<&'a [u32]>>,
        grouping: &'a Grouping,
    ) -> Self {
        Estimates { executions, classes, steady, grouping, kept: Vec::new() }
    }

    fn row(&self, block: u32) -> &'a [u32] {
        self.executions.get(block as usize).map_or(&[], Vec::as_slice)
    }

    fn kept(&self, block: u32, warp: usize) -> f64 {
        self.kept.get(block as usize).and_then(|k| k.get(warp)).copied().unwrap_or(0.0)
    }

    /// The estimates of a block for each warp.
    fn issues(&self, b: u32, kind: &Kind) -> Vec<Issues> {
        let row = self.row(b);
        let classes = self.classes.at(b);
        let mut groups: Vec<(u32, u32)> = Vec::new();
        let mut parts: Vec<Vec<u32>> = Vec::new();
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
        let exactly = |x: f64, plain: f64| Issues { low: x, middle: x, high: x, plain };
        let warps = self.grouping.warps();
        let each = self.grouping.warps().enumerate();
        match kind {
            Kind::Plain => warps
                .map(|w| {
                    let plain = busiest(w, &mut groups);
                    exactly(self.steady(b).map_or(plain, |steady| apart(w, steady, row, &mut parts)), plain)
                })
                .collect(),
            Kind::Every(h) => each.map(|(i, w)| exactly(self.kept(*h, i), busiest(w, &mut groups))).collect(),
            Kind::Join(h, ways) => {
                let turns_of = self.row(*h);
                let mut lanes = Vec::new();
                each.map(|(i, w)| {
                    let plain = busiest(w, &mut groups);
                    let (mut low, mut high) = (0.0, 0.0);
                    for way in ways {
                        let Some(row) = way.by_thread.as_deref() else {
                            low += self.kept(way.from, i);
                            high += self.kept(way.from, i);
                            continue;
                        };
                        let most: f64 = w.iter().map(|&t| of(row, t)).max().unwrap_or(0).into();
                        low += most;
                        high += match self.steady(b) {
                            Some(steady) => apart(w, steady, row, &mut parts),
                            None => any_lane(w, turns_of, row, self.kept(*h, i), &mut lanes),
                        }
                        .max(most);
                    }
                    Issues { low, middle: high, high, plain }
                })
                .collect()
            }
            Kind::Nested(h) => {
                let outer = self.row(*h);
                let mut lanes = Vec::new();
                warps
                    .map(|w| {
                        let low = busiest(w, &mut groups);
                        if let Some(steady) = self.steady(b) {
                            split(w, steady, &mut parts);
                            let sum: f64 = parts.iter().map(|p| nested(p, outer, row, &mut lanes).0).sum();
                            let high = sum.max(low);
                            return Issues { low, middle: high, high, plain: low };
                        }
                        let (alike, drawn) = nested(w, outer, row, &mut lanes);
                        let middle = alike.max(low);
                        Issues { low, middle, high: drawn.max(middle), plain: low }
                    })
                    .collect()
            }
            Kind::Arm(h) => {
                let turns_of = self.row(*h);
                let mut lanes = Vec::new();
                each.map(|(i, w)| {
                    let low = busiest(w, &mut groups);
                    let high = match self.steady(b) {
                        Some(steady) => apart(w, steady, row, &mut parts),
                        None => any_lane(w, turns_of, row, self.kept(*h, i), &mut lanes),
                    };
                    let high = high.max(low);
                    Issues { low, middle: high, high, plain: low }
                })
                .collect()
            }
        }
    }

    fn steady(&self, block: u32) -> Option<&'a [u32]> {
        self.steady.get(block as usize).copied().flatten()
    }

    /// Measures on the launch as it ran where each block lies; gives its price.
    pub(super) fn calibrate(mut self, blocks: &mut [Block], order: &[u32], scale: f64) -> Price {
        self.kept = vec![Vec::new(); blocks.len()];
        for &b in order {
            let Some(kind) = blocks.get(b as usize).map(|b| b.kind.clone()) else { continue };
            let all = self.issues(b, &kind);
            let mut sum = Issues::default();
            for i in &all {
                (sum.low, sum.middle, sum.high) = (sum.low + i.low, sum.middle + i.middle, sum.high + i.high);
            }
            let block = &mut blocks[b as usize];
            block.between = sum.place(block.measured);
            let here = sum.at(block.between);
            block.factor = if here > 0.0 { block.measured / here } else { 1.0 };
            let keep = block.kept.then(|| adjusted(block, &all));
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
            let all = self.issues(b, &block.kind);
            let issues = adjusted(block, &all);
            let sum: f64 = issues.iter().sum();
            total += sum * block.length;
            plain += all.iter().map(|p| p.plain).sum::<f64>() * block.length;
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

/// The threads of a warp by class.
fn split(warp: &[u32], classes: &[u32], parts: &mut Vec<Vec<u32>>) {
    let mut sorted: Vec<u32> = warp.to_vec();
    sorted.sort_by_key(|&t| of(classes, t));
    parts.clear();
    parts.extend(sorted.chunk_by(|a, b| of(classes, *a) == of(classes, *b)).map(<[u32]>::to_vec));
}

/// The busiest lane of each class, added up.
fn apart(warp: &[u32], classes: &[u32], row: &[u32], parts: &mut Vec<Vec<u32>>) -> f64 {
    split(warp, classes, parts);
    parts.iter().map(|p| f64::from(p.iter().map(|&t| of(row, t)).max().unwrap_or(0))).sum()
}

fn of(row: &[u32], thread: u32) -> u32 {
    row.get(thread as usize).copied().unwrap_or(0)
}

impl Issues {
    /// The estimate at a place between 0 and 2.
    fn at(&self, between: f64) -> f64 {
        if between <= 1.0 {
            self.low + between * (self.middle - self.low)
        } else {
            self.middle + (between - 1.0) * (self.high - self.middle)
        }
    }

    /// The place of a count. Estimates that hardly differ have no places between them.
    fn place(&self, count: f64) -> f64 {
        let room = |a: f64, b: f64| (b - a > 0.01 * a).then_some(b - a);
        if count > self.middle {
            return 1.0 + room(self.middle, self.high).map_or(0.0, |r| ((count - self.middle) / r).min(1.0));
        }
        room(self.low, self.middle).map_or(1.0, |r| ((count - self.low) / r).clamp(0.0, 1.0))
    }
}

fn adjusted(block: &Block, all: &[Issues]) -> Vec<f64> {
    all.iter().map(|i| i.at(block.between) * block.factor).collect()
}

/// Turns in which any lane takes an arm, if each lane draws in each of its turns whether it does. In the k-th turn those
/// lanes draw that make so many. `turns` is what the warp is taken to make.
fn any_lane(warp: &[u32], outer: &[u32], inner: &[u32], turns: f64, lanes: &mut Vec<(u32, f64)>) -> f64 {
    lanes.clear();
    let share = |o: u32, i: u32| (f64::from(i) / f64::from(o)).min(1.0);
    lanes.extend(warp.iter().map(|&t| (of(outer, t), of(inner, t))).filter(|l| l.0 > 0).map(|(o, i)| (o, share(o, i))));
    lanes.sort_by_key(|l| Reverse(l.0));
    let (mut sum, mut none) = (0.0, 1.0);
    for (i, &(n, p)) in lanes.iter().enumerate() {
        none *= 1.0 - p;
        let next = lanes.get(i + 1).map_or(0, |l| l.0);
        sum += f64::from(n - next) * (1.0 - none);
    }
    // A warp that rejoins in between makes more turns than any of its lanes.
    let most = lanes.first().map_or(0, |l| l.0);
    if f64::from(most) < turns { sum * turns / f64::from(most.max(1)) } else { sum }
}

/// Turns of a nested loop: in the k-th turn of the outer loop the busiest of the lanes that make so many decides. First if
/// each thread makes the same number in every turn of the outer loop, then if it draws a new one each time.
fn nested(warp: &[u32], outer: &[u32], inner: &[u32], lanes: &mut Vec<(u32, f64)>) -> (f64, f64) {
    lanes.clear();
    lanes.extend(
        warp.iter()
            .map(|&t| (of(outer, t), of(inner, t)))
            .filter(|l| l.0 > 0)
            .map(|(o, i)| (o, f64::from(i) / f64::from(o))),
    );
    lanes.sort_by_key(|l| Reverse(l.0));
    let (mut alike, mut drawn, mut most) = (0.0, 0.0, 0.0f64);
    for (i, &(turns, mean)) in lanes.iter().enumerate() {
        most = most.max(mean);
        let next = lanes.get(i + 1).map_or(0, |l| l.0);
        if turns > next {
            let times = f64::from(turns - next);
            alike += times * most;
            drawn += times * busiest_draw(&lanes[..=i]);
        }
    }
    (alike, drawn)
}

/// Expected maximum of numbers that lanes draw, each a geometric variable with the lane's mean: "again until it works".
fn busiest_draw(lanes: &[(u32, f64)]) -> f64 {
    /// Where the tail is too thin to matter.
    const THIN: f64 = 1e-4;
    let at_least = |j: f64, mean: f64| {
        if mean < 1.0 { if j > 1.0 { 0.0 } else { mean } } else { (1.0 - 1.0 / mean).powf(j - 1.0) }
    };
    let (mut sum, mut j) = (0.0, 1.0f64);
    loop {
        // Large numbers in strides that are small beside them.
        let stride = (j / 16.0).floor().max(1.0);
        let middle = j + (stride - 1.0) / 2.0;
        let none: f64 = lanes.iter().map(|l| 1.0 - at_least(middle, l.1)).product();
        sum += stride * (1.0 - none);
        j += stride;
        if 1.0 - none < THIN || j > 1e9 {
            return sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_of_some_draws() {
        // One lane draws its mean; of two with mean 2, the mean of the larger is 8/3.
        assert!((busiest_draw(&[(1, 5.0)]) - 5.0).abs() < 0.02);
        assert!((busiest_draw(&[(1, 2.0), (1, 2.0)]) - 8.0 / 3.0).abs() < 1e-3);
        assert_eq!(busiest_draw(&[(1, 1.0); 32]), 1.0);
        assert!((busiest_draw(&[(1, 0.25)]) - 0.25).abs() < 1e-9);
        let long = busiest_draw(&[(1, 1000.0)]);
        assert!((long - 1000.0).abs() < 10.0, "{long}");
    }

    #[test]
    fn places_among_estimates() {
        let i = Issues { low: 10.0, middle: 20.0, high: 40.0, plain: 10.0 };
        for x in [10.0, 15.0, 20.0, 30.0, 40.0] {
            assert_eq!(i.at(i.place(x)), x);
        }
        assert_eq!((i.place(5.0), i.place(99.0)), (0.0, 2.0));
    }
}
