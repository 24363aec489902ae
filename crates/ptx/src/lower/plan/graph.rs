//! The graph of calls.

use std::collections::BTreeSet;

/// Which nodes lie on a cycle: strongly connected components by Tarjan's algorithm, without recursion.
pub(super) fn on_cycles(edges: &[BTreeSet<usize>]) -> Vec<bool> {
    const NEW: usize = usize::MAX;
    let n = edges.len();
    let (mut number, mut low, mut open) = (vec![NEW; n], vec![0; n], vec![false; n]);
    let mut again: Vec<bool> = edges.iter().enumerate().map(|(at, to)| to.contains(&at)).collect();
    let mut component = Vec::new();
    let mut next = 0;
    for root in 0..n {
        if number[root] != NEW {
            continue;
        }
        let mut path = vec![(root, edges[root].iter())];
        (number[root], low[root], open[root]) = (next, next, true);
        next += 1;
        component.push(root);
        while let Some((at, rest)) = path.last_mut() {
            let at = *at;
            if let Some(&to) = rest.next() {
                if number[to] == NEW {
                    (number[to], low[to], open[to]) = (next, next, true);
                    next += 1;
                    component.push(to);
                    path.push((to, edges[to].iter()));
                } else if open[to] {
                    low[at] = low[at].min(number[to]);
                }
                continue;
            }
            path.pop();
            if let Some(&(caller, _)) = path.last() {
                low[caller] = low[caller].min(low[at]);
            }
            if low[at] == number[at] {
                let start = component.iter().rposition(|&member| member == at).unwrap_or(0);
                let several = component.len() - start > 1;
                for member in component.drain(start..) {
                    open[member] = false;
                    again[member] |= several;
                }
            }
        }
    }
    again
}

/// The most that frames of these sizes take at once, each function on a cycle counted once.
pub(super) fn deepest(edges: &[BTreeSet<usize>], again: &[bool], sizes: &[u64]) -> u64 {
    // Functions on cycles are added apart; without them the calls have no cycles.
    let cycles: u64 = sizes.iter().zip(again).filter(|(_, again)| **again).map(|(size, _)| size).sum();
    let mut depth: Vec<Option<u64>> = vec![None; sizes.len()];
    let mut stack = vec![(0usize, false)];
    while let Some((at, done)) = stack.pop() {
        if done {
            let below = edges[at].iter().filter_map(|&f| depth[f]).max().unwrap_or(0);
            depth[at] = Some(below + if again[at] { 0 } else { sizes[at] });
        } else if depth[at].is_none() {
            // A function on a cycle counts as a leaf while its own callees are being added up.
            depth[at] = again[at].then_some(0);
            stack.push((at, true));
            stack.extend(edges[at].iter().filter(|&&f| depth[f].is_none()).map(|&f| (f, false)));
        }
    }
    depth.first().copied().flatten().unwrap_or(0) + cycles
}
