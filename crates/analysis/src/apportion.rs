//! Sharing out a count so that the shares add up to it exactly.

/// Splits `total` in proportion to `weights`, rounding by largest remainder (ties to the earlier share).
/// With no positive weight everything goes to the last share. The shares add up to `total`.
pub fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|&w| u128::from(w)).sum();
    let mut shares = vec![0; weights.len()];
    if sum == 0 {
        if let Some(last) = shares.last_mut() {
            *last = total;
        }
        return shares;
    }
    // `sum` may exceed 64 bits only with more than one weight near 2^64; scale so that the product fits 128.
    let shift = (128 - sum.leading_zeros()).saturating_sub(64);
    let scaled: Vec<u128> = weights.iter().map(|&w| u128::from(w) >> shift).collect();
    let sum: u128 = scaled.iter().sum::<u128>().max(1);
    let mut rest = Vec::with_capacity(weights.len());
    let mut left = total;
    for (i, w) in scaled.iter().enumerate() {
        let exact = u128::from(total) * w;
        shares[i] = (exact / sum) as u64;
        left -= shares[i];
        rest.push((exact % sum, i));
    }
    rest.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    for &(_, i) in rest.iter().cycle().take(left as usize) {
        shares[i] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_by_largest_remainder() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(7, &[5, 0, 2]), [5, 0, 2]);
        assert_eq!(apportion(3, &[0, 0]), [0, 3]);
        assert!(apportion(3, &[]).is_empty());
        assert_eq!(
            apportion(u64::MAX, &[u64::MAX, u64::MAX, 2]).iter().map(|&x| u128::from(x)).sum::<u128>(),
            u64::MAX.into()
        );
    }

    #[test]
    fn shares_add_up() {
        arbtest::arbtest(|u| {
            let total: u64 = u.arbitrary()?;
            let weights: Vec<u64> = u.arbitrary()?;
            let shares = apportion(total, &weights);
            if !weights.is_empty() {
                assert_eq!(shares.iter().map(|&x| u128::from(x)).sum::<u128>(), u128::from(total));
            }
            for (s, w) in shares.iter().zip(&weights) {
                assert!(*w > 0 || *s == 0 || weights.iter().all(|&w| w == 0));
            }
            Ok(())
        })
        .budget_ms(300);
    }
}
