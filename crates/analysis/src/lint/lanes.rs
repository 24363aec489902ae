//! Which lanes a shuffle reads.

use lanescope_ir::LaneMask;
use lanescope_ir::op::warp::ShuffleMode;

/// The lane that lane `l` reads with operands `b` and `c` of the instruction, if it is in range.
pub(super) fn source(mode: ShuffleMode, l: u32, b: u32, c: u32) -> Option<u32> {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let max = l & segment | clamp & !segment;
    let (lane, ok) = match mode {
        ShuffleMode::Up => (l.wrapping_sub(b), i64::from(l) - i64::from(b) >= i64::from(max)),
        ShuffleMode::Down => (l + b, l + b <= max),
        ShuffleMode::Bfly => (l ^ b, l ^ b <= max),
        ShuffleMode::Idx => {
            let lane = l & segment | b & !segment;
            (lane, lane <= max)
        }
    };
    ok.then_some(lane & 31)
}

/// The lanes of `there` that read a lane outside of it, and the lanes they read. `operands` gives `b` and `c` of a lane.
pub(super) fn absent(
    mode: ShuffleMode,
    there: LaneMask,
    operands: impl Fn(u32) -> Option<(u32, u32)>,
) -> (LaneMask, LaneMask) {
    let (mut readers, mut sources) = (LaneMask::EMPTY, LaneMask::EMPTY);
    for l in there.lanes().take_while(|&l| l < 32) {
        let Some((b, c)) = operands(l) else { continue };
        if let Some(s) = source(mode, l, b, c).filter(|&s| !there.has(s)) {
            readers = readers | LaneMask::lane(l);
            sources = sources | LaneMask::lane(s);
        }
    }
    (readers, sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_warp_reads_the_other_half() {
        let half = LaneMask::first(16);
        let fixed = |b, c| move |_| Some((b, c));
        let (readers, sources) = absent(ShuffleMode::Down, half, fixed(8, 0x1f));
        assert_eq!((readers.to_string(), sources.to_string()), ("8-15".into(), "16-23".into()));
        // In segments of 16 it stays inside.
        assert!(absent(ShuffleMode::Down, half, fixed(8, 0x101f)).0.is_empty());
        assert!(absent(ShuffleMode::Bfly, half, fixed(8, 0x1f)).0.is_empty());
        assert_eq!(absent(ShuffleMode::Bfly, LaneMask::first(20), fixed(16, 0x1f)).0.to_string(), "4-15");
        assert!(absent(ShuffleMode::Idx, half, fixed(0, 0x1f)).0.is_empty());
        assert!(absent(ShuffleMode::Up, half, fixed(1, 0)).0.is_empty());
    }
}
