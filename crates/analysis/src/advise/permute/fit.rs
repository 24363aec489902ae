//! Addresses as a linear function of a thread's place in the grid.

use lanescope_ir::LaunchShape;

/// Where threads stand: their coordinates in the block and of the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    shape: LaunchShape,
    threads: usize,
}

/// `constant + sum of coefficient * coordinate`, coordinates being thread x, y, z, block x, y, z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) constant: i128,
    pub(super) by: [i128; 6],
}

impl Places {
    pub(super) fn new(shape: LaunchShape, threads: usize) -> Places {
        Places { shape, threads }
    }

    fn dims(&self) -> [u64; 6] {
        let d = |v: [u32; 3]| v.map(|n| u64::from(n.max(1)));
        let (b, g) = (d(self.shape.block), d(self.shape.grid));
        [b[0], b[1], b[2], g[0], g[1], g[2]]
    }

    fn coordinates(&self, position: usize) -> [u64; 6] {
        let mut rest = position as u64;
        self.dims().map(|n| {
            let at = rest % n;
            rest /= n;
            at
        })
    }

    pub(super) fn at(&self, f: &Linear, position: usize) -> i128 {
        let c = self.coordinates(position);
        f.by.iter().zip(c).fold(f.constant, |sum, (k, c)| sum + k * i128::from(c))
    }

    /// The linear function that gives these values where there are any. `None` if there is none. A coordinate that never
    /// changes alone counts for nothing, unless the position as a whole explains the values.
    pub(super) fn fit(&self, values: &dyn Fn(usize) -> Option<i128>) -> Option<Linear> {
        self.by_coordinates(values).or_else(|| self.by_position(values))
    }

    fn holds(&self, f: &Linear, values: &dyn Fn(usize) -> Option<i128>) -> bool {
        (0..self.threads).all(|p| values(p).is_none_or(|v| v == self.at(f, p)))
    }

    fn by_position(&self, values: &dyn Fn(usize) -> Option<i128>) -> Option<Linear> {
        let mut some = (0..self.threads).filter_map(|p| Some((p as i128, values(p)?)));
        let ((p0, v0), (p1, v1)) = (some.next()?, some.next()?);
        let (rise, run) = (v1 - v0, p1 - p0);
        let step = (rise % run == 0).then_some(rise / run)?;
        let mut f = Linear { constant: v0 - step * p0, by: [0; 6] };
        let mut stride = 1i128;
        for (by, size) in f.by.iter_mut().zip(self.dims()) {
            *by = step * stride;
            stride = stride.checked_mul(size.into())?;
        }
        self.holds(&f, values).then_some(f)
    }

    fn by_coordinates(&self, values: &dyn Fn(usize) -> Option<i128>) -> Option<Linear> {
        let first = (0..self.threads).find(|&p| values(p).is_some())?;
        let start = values(first)?;
        let here = self.coordinates(first);
        let mut f = Linear { constant: 0, by: [0; 6] };
        let mut stride = 1u64;
        for (axis, size) in self.dims().into_iter().enumerate() {
            for step in 1..size - here[axis] {
                let other = first as u64 + step * stride;
                if other >= self.threads as u64 {
                    break;
                }
                if let Some(v) = values(other as usize) {
                    let rise = v - start;
                    if rise % i128::from(step) != 0 {
                        return None;
                    }
                    f.by[axis] = rise / i128::from(step);
                    break;
                }
            }
            stride = stride.saturating_mul(size);
        }
        f.constant = start - self.at(&f, first);
        self.holds(&f, values).then_some(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_dimensions() {
        let shape = LaunchShape { grid: [2, 3, 1], block: [4, 2, 1], warp_size: 32 };
        let p = Places::new(shape, 48);
        // Row-major image of 8 x 6 pixels of 4 bytes, with a hole.
        let of = |i: usize| {
            let c = p.coordinates(i);
            (i != 5).then(|| i128::from(((c[4] * 2 + c[1]) * 8 + c[3] * 4 + c[0]) * 4 + 16))
        };
        let f = p.fit(&of).unwrap();
        assert_eq!(f, Linear { constant: 16, by: [4, 32, 0, 16, 64, 0] });
        assert!(p.fit(&|i| Some((i * i) as i128)).is_none());
        // Too few threads to tell the coordinates apart: the position does.
        assert!(p.fit(&|i| (i % 7 == 0).then_some(3 * i as i128)).is_some());
    }
}
