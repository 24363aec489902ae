//! Natural loops and how they nest.
//!
//! A loop is a header and every block that reaches one of its back edges without passing the header; a back
//! edge leads to a block that dominates its source. Loops with the same header are one. The nest is built
//! inside out with union-find, in nearly linear time however deep it is. A cycle that is entered in two
//! places (a `goto` into a loop) is no natural loop; the blocks its retreating edges lead to are listed apart.

use crate::cfg::Cfg;
use crate::dom::Dominators;
use crate::graph::Graph;

/// One natural loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Its header block.
    pub header: u32,
    /// Sources of its back edges.
    pub latches: Vec<u32>,
    /// The loop around it, as an index into [`Loops::list`].
    pub parent: Option<u32>,
    /// 1 for an outermost loop.
    pub depth: u32,
    /// Blocks in it, those of inner loops included.
    pub size: u32,
    /// Position in a walk of the loop forest and one past its inner loops' positions.
    span: (u32, u32),
}

/// All natural loops of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loops {
    /// The loops; an inner loop comes before the one around it.
    pub list: Vec<Loop>,
    /// For each block, the innermost loop around it.
    pub innermost: Vec<Option<u32>>,
    /// Blocks that a retreating edge leads to without dominating its source.
    pub irreducible: Vec<u32>,
}

impl Loops {
    /// Finds the loops of `cfg`, whose dominators are `dom`.
    pub fn new(cfg: &Cfg, dom: &Dominators) -> Loops {
        let graph = &cfg.graph;
        let back = graph.reversed();
        let (order, _) = graph.preorder(cfg.entry());
        let mut nest = Nest::new(graph.len());
        let mut loops = Loops { irreducible: irreducible(graph, dom, cfg.entry()), ..Loops::default() };
        let mut header_of = vec![None; graph.len()];
        for &header in order.iter().rev() {
            let mut latches: Vec<u32> =
                back.successors(header).iter().copied().filter(|&p| dom.dominates(header, p)).collect();
            latches.sort_unstable();
            latches.dedup();
            if latches.is_empty() {
                continue;
            }
            let this = loops.list.len() as u32;
            let mut stack: Vec<u32> = latches.iter().map(|&l| nest.find(l)).collect();
            let mut size = 1;
            nest.innermost[header as usize] = Some(this);
            while let Some(block) = stack.pop() {
                let block = nest.find(block);
                if block == header {
                    continue;
                }
                match header_of[block as usize] {
                    Some(inner) => {
                        let inner: &mut Loop = &mut loops.list[inner as usize];
                        inner.parent = Some(this);
                        size += inner.size;
                    }
                    None => {
                        nest.innermost[block as usize] = Some(this);
                        size += 1;
                    }
                }
                nest.parent[block as usize] = header;
                stack.extend(back.successors(block).iter().filter(|&&p| dom.reachable(p)));
            }
            header_of[header as usize] = Some(this);
            loops.list.push(Loop { header, latches, parent: None, depth: 0, size, span: (0, 0) });
        }
        loops.innermost = nest.innermost;
        loops.innermost.truncate(cfg.blocks.len());
        loops.number();
        loops
    }

    /// Depths and forest positions; parents come after their inner loops in the list.
    fn number(&mut self) {
        let n = self.list.len();
        let mut sizes = vec![1u32; n];
        for i in 0..n {
            if let Some(p) = self.list[i].parent {
                sizes[p as usize] += sizes[i];
            }
        }
        let mut next = vec![0u32; n];
        let mut top = 0;
        for i in (0..n).rev() {
            let (start, depth) = match self.list[i].parent {
                Some(p) => {
                    let start = next[p as usize];
                    next[p as usize] += sizes[i];
                    (start, self.list[p as usize].depth + 1)
                }
                None => {
                    top += sizes[i];
                    (top - sizes[i], 1)
                }
            };
            next[i] = start + 1;
            self.list[i].depth = depth;
            self.list[i].span = (start, start + sizes[i]);
        }
    }

    /// Whether block `b` lies in loop `l`.
    pub fn contains(&self, l: u32, b: u32) -> bool {
        let inner = self.innermost.get(b as usize).copied().flatten();
        match (self.list.get(l as usize), inner.and_then(|i| self.list.get(i as usize))) {
            (Some(outer), Some(inner)) => outer.span.0 <= inner.span.0 && inner.span.0 < outer.span.1,
            _ => false,
        }
    }

    /// The loops around block `b`, innermost first.
    pub fn around(&self, b: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.innermost.get(b as usize).copied().flatten();
        std::iter::successors(first, |&l| self.list.get(l as usize)?.parent)
    }
}

/// Union-find over blocks: each points to the header of the loop it was swallowed by.
struct Nest {
    parent: Vec<u32>,
    innermost: Vec<Option<u32>>,
}

impl Nest {
    fn new(len: usize) -> Self {
        Nest { parent: (0..len as u32).collect(), innermost: vec![None; len] }
    }
    fn find(&mut self, mut b: u32) -> u32 {
        while self.parent[b as usize] != b {
            let up = self.parent[self.parent[b as usize] as usize];
            self.parent[b as usize] = up;
            b = up;
        }
        b
    }
}

/// Targets of retreating edges that do not dominate their source.
fn irreducible(graph: &Graph, dom: &Dominators, entry: u32) -> Vec<u32> {
    let mut state = vec![0u8; graph.len()];
    let mut found = Vec::new();
    let mut stack = vec![(entry, 0usize)];
    state[entry as usize] = 1;
    while let Some((node, next)) = stack.pop() {
        match graph.successors(node).get(next) {
            Some(&s) => {
                stack.push((node, next + 1));
                match state[s as usize] {
                    0 => {
                        state[s as usize] = 1;
                        stack.push((s, 0));
                    }
                    1 if !dom.dominates(s, node) => found.push(s),
                    _ => {}
                }
            }
            None => state[node as usize] = 2,
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Builder;

    fn loops(k: &Builder) -> (Cfg, Loops) {
        let cfg = Cfg::new(&k.kernel());
        let dom = Dominators::new(&cfg.graph, cfg.entry());
        let loops = Loops::new(&cfg, &dom);
        (cfg, loops)
    }

    #[test]
    fn nested_loops() {
        let mut k = Builder::new();
        // 0 | 1: outer | 2: inner self loop | 3: outer latch | 4
        k.nop().nop().bra_if(0, 2).bra_if(1, 1).exit();
        let (cfg, l) = loops(&k);
        assert_eq!(l.list.len(), 2);
        let (inner, outer) = (&l.list[0], &l.list[1]);
        assert_eq!((inner.header, inner.depth, inner.parent, inner.size), (2, 2, Some(1), 1));
        assert_eq!((outer.header, outer.depth, outer.parent, outer.size), (1, 1, None, 3));
        assert_eq!(l.innermost, [None, Some(1), Some(0), Some(1), None]);
        assert!(l.contains(1, 2) && !l.contains(0, 3) && !l.contains(1, 0));
        assert_eq!(l.around(2).collect::<Vec<_>>(), [0, 1]);
        assert!(l.irreducible.is_empty());
        assert_eq!(cfg.blocks.len(), 5);
    }

    #[test]
    fn a_cycle_with_two_entries_is_no_loop() {
        let mut k = Builder::new();
        k.bra_if(0, 2).nop().bra_if(1, 1).exit();
        let (_, l) = loops(&k);
        assert!(l.list.is_empty());
        assert_eq!(l.irreducible.len(), 1);
    }

    /// The definition, by brute force.
    fn naive(cfg: &Cfg, dom: &Dominators, header: u32) -> Vec<u32> {
        let back = cfg.graph.reversed();
        let mut body = vec![header];
        let mut stack: Vec<u32> =
            back.successors(header).iter().copied().filter(|&p| dom.dominates(header, p)).collect();
        while let Some(b) = stack.pop() {
            if !body.contains(&b) {
                body.push(b);
                stack.extend(back.successors(b).iter().filter(|&&p| dom.reachable(p)));
            }
        }
        body.sort_unstable();
        body
    }

    #[test]
    fn random_kernels_match_the_definition() {
        arbtest::arbtest(|u| {
            let n = u.int_in_range(2..=20u32)?;
            let mut k = Builder::new();
            for _ in 0..n {
                match u.int_in_range(0..=3u8)? {
                    0 => k.nop(),
                    1 => k.bra(u.int_in_range(0..=n)?),
                    2 => k.exit_if(0),
                    _ => k.bra_if(0, u.int_in_range(0..=n)?),
                };
            }
            k.exit();
            let (cfg, l) = loops(&k);
            let dom = Dominators::new(&cfg.graph, cfg.entry());
            for (i, lp) in l.list.iter().enumerate() {
                let body: Vec<u32> = (0..cfg.blocks.len() as u32).filter(|&b| l.contains(i as u32, b)).collect();
                assert_eq!(body, naive(&cfg, &dom, lp.header));
                assert_eq!(body.len() as u32, lp.size);
            }
            for h in 0..cfg.blocks.len() as u32 {
                let is_header = naive(&cfg, &dom, h).len() > 1 || cfg.graph.successors(h).contains(&h);
                assert_eq!(is_header, l.list.iter().any(|lp| lp.header == h));
            }
            Ok(())
        })
        .budget_ms(1_500);
    }
}
