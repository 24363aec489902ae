//! The naive twin: Cooper, Harvey and Kennedy's iteration. Slow on ladders, but short enough to trust.

use crate::graph::Graph;

/// Immediate dominators of the nodes reachable from `root`.
pub(super) fn idoms(graph: &Graph, root: u32) -> Vec<Option<u32>> {
    let order = postorder(graph, root);
    let mut rank = vec![None; graph.len()];
    for (i, &node) in order.iter().enumerate() {
        rank[node as usize] = Some(i);
    }
    let predecessors = graph.reversed();
    let mut idom = vec![None; graph.len()];
    idom[root as usize] = Some(root);
    let mut changed = true;
    while changed {
        changed = false;
        for &node in order.iter().rev().filter(|&&n| n != root) {
            let mut new: Option<u32> = None;
            for &p in predecessors.successors(node) {
                if idom[p as usize].is_none() {
                    continue;
                }
                new = Some(match new {
                    None => p,
                    Some(mut a) => {
                        let mut b = p;
                        while a != b {
                            while rank[a as usize] < rank[b as usize] {
                                a = idom[a as usize].unwrap();
                            }
                            while rank[b as usize] < rank[a as usize] {
                                b = idom[b as usize].unwrap();
                            }
                        }
                        a
                    }
                });
            }
            if new != idom[node as usize] {
                idom[node as usize] = new;
                changed = true;
            }
        }
    }
    idom[root as usize] = None;
    idom
}

fn postorder(graph: &Graph, root: u32) -> Vec<u32> {
    let mut seen = vec![false; graph.len()];
    let mut order = Vec::new();
    let mut stack = vec![(root, 0)];
    seen[root as usize] = true;
    while let Some((node, next)) = stack.pop() {
        match graph.successors(node).get(next) {
            Some(&s) => {
                stack.push((node, next + 1));
                if !std::mem::replace(&mut seen[s as usize], true) {
                    stack.push((s, 0));
                }
            }
            None => order.push(node),
        }
    }
    order
}
