//! Assignments of threads to warps.

/// Threads by warp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    threads: Vec<u32>,
    /// Where each warp ends in `threads`.
    ends: Vec<u32>,
}

impl Grouping {
    /// The warps of blocks of `block_threads` if position p is played by thread `order[p]`.
    pub fn by_position(order: &[u32], block_threads: u32, width: u32) -> Grouping {
        let mut g = Grouping { threads: order.to_vec(), ends: Vec::new() };
        let mut at = 0;
        for block in order.chunks(block_threads.max(1) as usize) {
            for warp in block.chunks(width.max(1) as usize) {
                at += warp.len() as u32;
                g.ends.push(at);
            }
        }
        g
    }

    /// Adds a warp.
    pub fn push(&mut self, warp: &[u32]) {
        if !warp.is_empty() {
            self.threads.extend_from_slice(warp);
            self.ends.push(self.threads.len() as u32);
        }
    }

    /// Adds warps of `width` lanes for a list of threads; the last one may have fewer.
    pub fn fill(&mut self, threads: &[u32], width: u32) {
        threads.chunks(width.max(1) as usize).for_each(|w| self.push(w));
    }

    /// Number of warps.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no warp.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The warps.
    pub fn warps(&self) -> impl Iterator<Item = &[u32]> + '_ {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let warp = self.threads.get(start as usize..end as usize).unwrap_or(&[]);
            start = end;
            warp
        })
    }
}

/// Everybody where they are.
pub(super) fn identity(threads: usize) -> Vec<u32> {
    (0..threads as u32).collect()
}

/// The order in which threads with a key are sorted by it, stably, among the positions that have one; threads without a
/// key stay where they are.
pub fn stable_order<K: Ord + Copy>(keys: &[Option<K>]) -> Vec<u32> {
    let positions: Vec<u32> = (0u32..).zip(keys).filter(|(_, k)| k.is_some()).map(|(i, _)| i).collect();
    let mut sorted = positions.clone();
    sorted.sort_by_key(|&i| keys.get(i as usize).copied().flatten());
    let mut order = identity(keys.len());
    for (&p, &t) in positions.iter().zip(&sorted) {
        order[p as usize] = t;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_end_with_their_block() {
        let order: Vec<u32> = (0..10).rev().collect();
        let g = Grouping::by_position(&order, 5, 4);
        let warps: Vec<&[u32]> = g.warps().collect();
        assert_eq!(warps, [&[9, 8, 7, 6][..], &[5], &[4, 3, 2, 1], &[0]]);
    }

    #[test]
    fn sorting_is_stable_and_leaves_others_alone() {
        let keys = [Some(2), None, Some(1), Some(2), Some(1), None];
        assert_eq!(stable_order(&keys), [2, 1, 4, 0, 3, 5]);
    }

    #[test]
    fn filling() {
        let mut g = Grouping::default();
        g.fill(&[1, 2, 3], 2);
        g.fill(&[], 2);
        assert_eq!(g.len(), 2);
        assert_eq!(g.warps().last(), Some(&[3][..]));
    }
}
