//! Dominators by semi-NCA (Georgiadis, Tarjan, Werneck).
//!
//! Semidominators come from a link-eval forest with path compression, immediate dominators from the nearest
//! common ancestor walk. All walks are iterative, so a chain of a million blocks needs no stack. The tests
//! compare with the iterative algorithm of Cooper, Harvey and Kennedy on random graphs.
//!
//! Post-dominators are dominators of the reversed graph.

#[cfg(test)]
mod simple;

use crate::graph::Graph;

/// Marks a node without an immediate dominator: the root, or a node that cannot be reached.
const NONE: u32 = u32::MAX;

/// The dominator tree of the nodes reachable from a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dominators {
    root: u32,
    idom: Vec<u32>,
    /// Position in a preorder walk of the tree and one past the last position of its subtree; (0, 0) if unreachable.
    span: Vec<(u32, u32)>,
}

impl Dominators {
    /// Dominators of `graph` seen from `root`.
    pub fn new(graph: &Graph, root: u32) -> Dominators {
        let (order, parents) = graph.preorder(root);
        let n = order.len();
        let mut number = vec![NONE; graph.len()];
        for (i, &node) in order.iter().enumerate() {
            number[node as usize] = i as u32;
        }
        let predecessors = graph.reversed();
        // Everything below is in preorder numbers.
        let mut idom = parents.clone();
        let mut forest = Forest { ancestor: parents, label: (0..n as u32).collect(), semi: (0..n as u32).collect() };
        let mut path = Vec::new();
        for i in (1..n).rev() {
            let mut semi = idom[i];
            for &p in predecessors.successors(order[i]) {
                let p = number[p as usize];
                if p != NONE {
                    let u = forest.eval(p, i as u32 + 1, &mut path);
                    semi = semi.min(forest.semi[u as usize]);
                }
            }
            forest.semi[i] = semi;
        }
        for i in 1..n {
            let mut candidate = idom[i];
            while candidate > forest.semi[i] {
                candidate = idom[candidate as usize];
            }
            idom[i] = candidate;
        }
        let mut result = vec![NONE; graph.len()];
        for i in 1..n {
            result[order[i] as usize] = order[idom[i] as usize];
        }
        let span = spans(root, &order, &idom, graph.len());
        Dominators { root, idom: result, span }
    }

    /// Immediate dominator; `None` for the root and for nodes that cannot be reached.
    pub fn idom(&self, node: u32) -> Option<u32> {
        self.idom.get(node as usize).copied().filter(|&d| d != NONE)
    }

    /// Whether the root reaches `node`.
    pub fn reachable(&self, node: u32) -> bool {
        self.span.get(node as usize).is_some_and(|s| s.1 > 0)
    }

    /// Whether every path from the root to `b` passes `a`. A node dominates itself. False for unreachable nodes.
    pub fn dominates(&self, a: u32, b: u32) -> bool {
        match (self.span.get(a as usize), self.span.get(b as usize)) {
            (Some(&(start, end)), Some(&(at, last))) => last > 0 && start <= at && at < end,
            _ => false,
        }
    }

    /// `node`'s strict dominators, nearest first.
    pub fn ancestors(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.idom(node), |&n| self.idom(n))
    }

    /// The root.
    pub fn root(&self) -> u32 {
        self.root
    }
}

/// The link-eval forest: node `i` is linked to its parent once `i` has been processed.
struct Forest {
    ancestor: Vec<u32>,
    label: Vec<u32>,
    semi: Vec<u32>,
}

impl Forest {
    /// The node of least semidominator on the linked path above `v`, compressing the path.
    /// Nodes numbered `linked` and above are linked.
    fn eval(&mut self, v: u32, linked: u32, path: &mut Vec<u32>) -> u32 {
        if self.ancestor[v as usize] < linked {
            return self.label[v as usize];
        }
        path.clear();
        let mut top = v;
        while self.ancestor[top as usize] >= linked {
            path.push(top);
            top = self.ancestor[top as usize];
        }
        let mut best = self.label[top as usize];
        let end = self.ancestor[top as usize];
        while let Some(node) = path.pop() {
            let at = node as usize;
            self.ancestor[at] = end;
            if self.semi[best as usize] < self.semi[self.label[at] as usize] {
                self.label[at] = best;
            } else {
                best = self.label[at];
            }
        }
        best
    }
}

/// Preorder intervals of the dominator tree. A dominator comes before its nodes in `order`, so sizes add up
/// from the back and positions are dealt out from the front.
fn spans(root: u32, order: &[u32], idom: &[u32], len: usize) -> Vec<(u32, u32)> {
    let n = order.len();
    let mut size = vec![1u32; n];
    for i in (1..n).rev() {
        size[idom[i] as usize] += size[i];
    }
    let mut start = vec![0u32; n];
    let mut next = vec![1u32; n];
    for i in 1..n {
        let parent = idom[i] as usize;
        start[i] = next[parent];
        next[parent] += size[i];
        next[i] = start[i] + 1;
    }
    let mut span = vec![(0, 0); len];
    for (i, &node) in order.iter().enumerate() {
        span[node as usize] = (start[i], start[i] + size[i]);
    }
    debug_assert!(n == 0 || span[root as usize] == (0, n as u32));
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(nodes: usize, edges: &[(u32, u32)]) {
        let graph = Graph::new(nodes, edges);
        let fast = Dominators::new(&graph, 0);
        let slow = simple::idoms(&graph, 0);
        for node in 0..nodes as u32 {
            assert_eq!(fast.idom(node), slow[node as usize], "node {node} of {edges:?}");
        }
        for a in 0..nodes as u32 {
            for b in 0..nodes as u32 {
                let walk = fast.reachable(b) && (a == b || fast.ancestors(b).any(|d| d == a));
                assert_eq!(fast.dominates(a, b), walk, "{a} dom {b} of {edges:?}");
            }
        }
    }

    #[test]
    fn agrees_with_the_simple_algorithm_on_random_graphs() {
        arbtest::arbtest(|u| {
            let nodes = u.int_in_range(1..=24usize)?;
            let count = u.int_in_range(0..=nodes * 3)?;
            let mut edges = Vec::new();
            for _ in 0..count {
                edges.push((u.int_in_range(0..=nodes as u32 - 1)?, u.int_in_range(0..=nodes as u32 - 1)?));
            }
            check(nodes, &edges);
            Ok(())
        })
        .budget_ms(1_500);
    }

    #[test]
    fn known_graphs() {
        // The irreducible example of Lengauer and Tarjan's paper (R=0, A=1 .. L=12).
        let edges = [
            (0, 1),
            (0, 2),
            (0, 3),
            (1, 4),
            (2, 1),
            (2, 4),
            (2, 5),
            (3, 6),
            (3, 7),
            (4, 12),
            (5, 8),
            (6, 9),
            (7, 9),
            (7, 10),
            (8, 5),
            (8, 11),
            (9, 11),
            (10, 9),
            (11, 9),
            (11, 0),
            (12, 8),
        ];
        check(13, &edges);
        let d = Dominators::new(&Graph::new(13, &edges), 0);
        assert_eq!((1..13).filter(|&n| d.idom(n) == Some(0)).count(), 8);
        assert_eq!((d.idom(6), d.idom(7), d.idom(10), d.idom(12)), (Some(3), Some(3), Some(7), Some(4)));
        check(1, &[(0, 0)]);
    }

    #[test]
    fn deep_graphs_need_no_stack_and_no_square_time() {
        let n = 300_000u32;
        let chain: Vec<_> = (0..n - 1).map(|i| (i, i + 1)).collect();
        let d = Dominators::new(&Graph::new(n as usize, &chain), 0);
        assert_eq!(d.idom(n - 1), Some(n - 2));
        // A ladder of ifs without else, and a nest of loops.
        let mut edges = chain.clone();
        edges.extend((0..n / 2 - 1).map(|i| (2 * i, 2 * i + 2)));
        edges.extend((n / 2..n - 1).map(|i| (i, n - i)));
        let d = Dominators::new(&Graph::new(n as usize, &edges), 0);
        assert_eq!(d.idom(4), Some(2));
        assert_eq!(d.idom(n - 1), Some(n - 2));
    }
}
