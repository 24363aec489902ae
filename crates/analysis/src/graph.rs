//! A directed graph over dense node numbers, as two flat arrays.

/// Successor lists of nodes `0..len`, stored one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    /// A graph of `nodes` nodes. Edges that name a node past the end are dropped; order and duplicates are kept.
    pub fn new(nodes: usize, edges: &[(u32, u32)]) -> Graph {
        let valid = |&&(a, b): &&(u32, u32)| (a as usize) < nodes && (b as usize) < nodes;
        let mut offsets = vec![0u32; nodes + 1];
        for &(a, _) in edges.iter().filter(valid) {
            offsets[a as usize + 1] += 1;
        }
        for i in 0..nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut targets = vec![0; offsets[nodes] as usize];
        for &(a, b) in edges.iter().filter(valid) {
            targets[next[a as usize] as usize] = b;
            next[a as usize] += 1;
        }
        Graph { offsets, targets }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Successors of `node`; none for a node past the end.
    pub fn successors(&self, node: u32) -> &[u32] {
        let at = node as usize;
        match (self.offsets.get(at), self.offsets.get(at + 1)) {
            (Some(&a), Some(&b)) => &self.targets[a as usize..b as usize],
            _ => &[],
        }
    }

    /// All edges, by source.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.len() as u32).flat_map(move |a| self.successors(a).iter().map(move |&b| (a, b)))
    }

    /// The same graph with every edge turned round.
    pub fn reversed(&self) -> Graph {
        let edges: Vec<_> = self.edges().map(|(a, b)| (b, a)).collect();
        Graph::new(self.len(), &edges)
    }

    /// Nodes reachable from `root` in depth-first preorder, with the preorder position of each one's parent.
    /// Iterative: depth is bounded by memory, not by the stack.
    pub fn preorder(&self, root: u32) -> (Vec<u32>, Vec<u32>) {
        let mut seen = vec![false; self.len()];
        let (mut order, mut parents) = (Vec::new(), Vec::new());
        let mut stack: Vec<(u32, u32)> = Vec::new();
        if (root as usize) < self.len() {
            stack.push((root, 0));
        }
        while let Some((node, parent)) = stack.pop() {
            if std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            let at = order.len() as u32;
            order.push(node);
            parents.push(parent);
            for &next in self.successors(node).iter().rev() {
                if !seen[next as usize] {
                    stack.push((next, at));
                }
            }
        }
        (order, parents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_drops_bad_edges() {
        let g = Graph::new(3, &[(0, 2), (0, 1), (1, 0), (7, 0), (0, 9), (0, 2)]);
        assert_eq!(g.successors(0), [2, 1, 2]);
        assert_eq!(g.successors(1), [0]);
        assert!(g.successors(2).is_empty() && g.successors(3).is_empty());
        assert_eq!(g.reversed().successors(2), [0, 0]);
    }

    #[test]
    fn preorder_is_depth_first() {
        let g = Graph::new(5, &[(0, 1), (0, 3), (1, 2), (2, 3), (3, 0)]);
        let (order, parents) = g.preorder(0);
        assert_eq!(order, [0, 1, 2, 3]);
        assert_eq!(parents, [0, 0, 1, 2]);
        assert!(g.preorder(9).0.is_empty());
    }
}
