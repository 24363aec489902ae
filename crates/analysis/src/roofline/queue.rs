//! Blocks on SMs: which of them run together, and when the last one ends.
//!
//! Blocks start in their linear order, each on the SM that has a place first. Those that are resident on an SM share its
//! schedulers and its first-level cache; a block that has them to itself takes as long as its longest warp. So when the
//! blocks together ask for more than the SM has, all of them slow down by the same factor until one ends: a fluid model,
//! which has no cycles and no warps but keeps the tail of a launch.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What one block asks of its SM.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Task {
    /// Cycles of one scheduler.
    pub(super) issue: f64,
    /// Cycles of the first-level cache.
    pub(super) cache: f64,
    /// Cycles that its longest warp takes alone.
    pub(super) alone: f64,
}

/// The machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    pub(super) sms: u32,
    /// Blocks resident on an SM.
    pub(super) slots: u32,
    /// Schedulers of an SM.
    pub(super) schedulers: f64,
}

/// A moment at which something ends; the earliest first.
#[derive(Clone, Copy, PartialEq)]
struct Event {
    at: f64,
    sm: u32,
}

impl Eq for Event {}

impl Ord for Event {
    fn cmp(&self, o: &Event) -> Ordering {
        o.at.total_cmp(&self.at).then(o.sm.cmp(&self.sm))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, o: &Event) -> Option<Ordering> {
        Some(self.cmp(o))
    }
}

#[derive(Default)]
struct Sm {
    /// Moments in its own time, which runs slower the more is asked of it, at which blocks end: as events of task `sm`.
    ends: BinaryHeap<Event>,
    /// Its own time, and the real time it was worked out for.
    own: f64,
    real: f64,
    issue_rate: f64,
    cache_rate: f64,
}

impl Sm {
    fn slowdown(&self, schedulers: f64) -> f64 {
        (self.issue_rate / schedulers).max(self.cache_rate).max(1.0)
    }

    fn advance(&mut self, to: f64, schedulers: f64) {
        self.own += (to - self.real) / self.slowdown(schedulers);
        self.real = to;
    }

    fn next(&self, schedulers: f64) -> Option<f64> {
        let first = self.ends.peek()?;
        Some(self.real + (first.at - self.own).max(0.0) * self.slowdown(schedulers))
    }
}

/// Cycles until the last block ends.
pub(super) fn makespan(machine: &Machine, tasks: &[Task]) -> f64 {
    let p = machine.schedulers.max(1.0);
    let n = machine.sms.max(1) as usize;
    let mut sms: Vec<Sm> = (0..n.min(tasks.len().max(1))).map(|_| Sm::default()).collect();
    let mut left = tasks.iter().enumerate();
    let start = |sm: &mut Sm, (at, task): (usize, &Task)| {
        let alone = task.alone.max(1.0);
        sm.ends.push(Event { at: sm.own + alone, sm: at as u32 });
        sm.issue_rate += task.issue / alone;
        sm.cache_rate += task.cache / alone;
    };
    'fill: for _ in 0..machine.slots.max(1) {
        for sm in &mut sms {
            let Some(task) = left.next() else { break 'fill };
            start(sm, task);
        }
    }
    let mut events = BinaryHeap::new();
    for (i, sm) in sms.iter().enumerate() {
        events.extend(sm.next(p).map(|at| Event { at, sm: i as u32 }));
    }
    let mut last = 0.0f64;
    while let Some(event) = events.pop() {
        let sm = &mut sms[event.sm as usize];
        sm.advance(event.at, p);
        last = last.max(event.at);
        if let Some(ended) = sm.ends.pop() {
            let task = &tasks[ended.sm as usize];
            let alone = task.alone.max(1.0);
            sm.own = sm.own.max(ended.at);
            if sm.ends.is_empty() {
                // No rest of rounding stays behind.
                (sm.issue_rate, sm.cache_rate) = (0.0, 0.0);
            } else {
                sm.issue_rate = (sm.issue_rate - task.issue / alone).max(0.0);
                sm.cache_rate = (sm.cache_rate - task.cache / alone).max(0.0);
            }
        }
        if let Some(task) = left.next() {
            start(sm, task);
        }
        events.extend(sm.next(p).map(|at| Event { at, sm: event.sm }));
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Machine = Machine { sms: 132, slots: 8, schedulers: 4.0 };

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-6 * b.max(1.0), "{a} and {b}");
    }

    #[test]
    fn one_block_takes_as_long_as_its_longest_warp() {
        near(makespan(&H200, &[Task { issue: 100.0, cache: 0.0, alone: 1000.0 }]), 1000.0);
        // Eight on an SM hide each other's waits.
        let few = vec![Task { issue: 100.0, cache: 0.0, alone: 1000.0 }; 132 * 8];
        near(makespan(&H200, &few), 1000.0);
        near(makespan(&H200, &[]), 0.0);
    }

    #[test]
    fn full_machines_are_bound_by_what_they_share() {
        // 8 blocks of 8 warps that could issue each cycle ask 64 of 4.
        let tasks = vec![Task { issue: 8000.0, cache: 0.0, alone: 1000.0 }; 132 * 8 * 10];
        near(makespan(&H200, &tasks), 8000.0 * 80.0 / 4.0);
        let cache = vec![Task { issue: 0.0, cache: 500.0, alone: 1000.0 }; 132 * 8 * 3];
        near(makespan(&H200, &cache), 500.0 * 24.0);
    }

    #[test]
    fn the_order_of_blocks_makes_the_tail() {
        // One long block among many short ones: last it is a tail, first it is hidden.
        let short = Task { issue: 0.0, cache: 0.0, alone: 10.0 };
        let long = Task { alone: 1000.0, ..short };
        let mut tasks = vec![short; 132 * 8 * 100];
        tasks.push(long);
        near(makespan(&H200, &tasks), 1000.0 + 1000.0);
        tasks.rotate_right(1);
        near(makespan(&H200, &tasks), 1010.0);
    }

    #[test]
    fn neighbours_slow_down_only_while_they_are_there() {
        let m = Machine { sms: 1, slots: 2, schedulers: 1.0 };
        // Both ask for all of the scheduler: half pace until the short one is gone at 200, then 900 alone.
        let t = |x: f64| Task { issue: x, cache: 0.0, alone: x };
        near(makespan(&m, &[t(100.0), t(1000.0)]), 1100.0);
    }

    #[test]
    fn never_below_any_bound_nor_above_one_after_the_other() {
        arbtest::arbtest(|u| {
            let m = Machine { sms: u.int_in_range(1..=5)?, slots: u.int_in_range(1..=4)?, schedulers: 4.0 };
            let tasks = (0..u.int_in_range(0..=40)?)
                .map(|_| {
                    let mut x = || Ok(f64::from(u.int_in_range(1..=1000u32)?));
                    Ok(Task { issue: x()?, cache: x()?, alone: x()? })
                })
                .collect::<Result<Vec<_>, arbtest::arbitrary::Error>>()?;
            let span = makespan(&m, &tasks);
            let n = f64::from(m.sms);
            let sum = |f: fn(&Task) -> f64| tasks.iter().map(f).sum::<f64>();
            let longest = tasks.iter().map(|t| t.alone).fold(0.0, f64::max);
            let bounds = [sum(|t| t.issue) / 4.0 / n, sum(|t| t.cache) / n, longest];
            let each: f64 = tasks.iter().map(|t| t.alone.max(t.issue / 4.0).max(t.cache)).sum();
            let slack = 1e-6 * (1.0 + each);
            assert!(bounds.iter().all(|b| span >= b - slack), "{span} {bounds:?}");
            assert!(span <= each + slack, "{span} {each}");
            Ok(())
        });
    }
}
