//! The nearest spelling.

/// The candidate that differs from `text` in the fewest letters, if they are few.
pub(crate) fn nearest<'c>(text: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // Comparing takes time in proportion to both lengths.
    if text.len() > 64 {
        return None;
    }
    let most = (text.len() / 3).clamp(1, 3);
    candidates
        .filter(|candidate| candidate.len().abs_diff(text.len()) <= most && *candidate != text)
        .map(|candidate| (strsim::osa_distance(text, candidate), candidate))
        .filter(|&(distance, _)| distance <= most)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}
