//! Bit fields and the words that stand for their values.

/// Condition-code tests by number; 15 is always true and prints nothing.
const TESTS: [&str; 32] = [
    "CC.F",
    "CC.LT",
    "CC.EQ",
    "CC.LE",
    "CC.GT",
    "CC.NE",
    "CC.GE",
    "CC.NUM",
    "CC.NAN",
    "CC.LTU",
    "CC.EQU",
    "CC.LEU",
    "CC.GTU",
    "CC.NEU",
    "CC.GEU",
    "CC.T",
    "CC.OFF",
    "CC.LO",
    "CC.SFF",
    "CC.LS",
    "CC.HI",
    "CC.SFT",
    "CC.HS",
    "CC.OFT",
    "CC.CSM_TA",
    "CC.CSM_TR",
    "CC.CSM_MX",
    "CC.FCSM_TA",
    "CC.FCSM_TR",
    "CC.FCSM_MX",
    "CC.RLE",
    "CC.RGT",
];
/// The test that always holds.
pub(super) const ALWAYS: u64 = 15;

/// Sets of scoreboards 5 to 0 as `DEPBAR` prints them, by mask.
const SCOREBOARDS: [&str; 64] = [
    "",
    "{0}",
    "{1}",
    "{1,0}",
    "{2}",
    "{2,0}",
    "{2,1}",
    "{2,1,0}",
    "{3}",
    "{3,0}",
    "{3,1}",
    "{3,1,0}",
    "{3,2}",
    "{3,2,0}",
    "{3,2,1}",
    "{3,2,1,0}",
    "{4}",
    "{4,0}",
    "{4,1}",
    "{4,1,0}",
    "{4,2}",
    "{4,2,0}",
    "{4,2,1}",
    "{4,2,1,0}",
    "{4,3}",
    "{4,3,0}",
    "{4,3,1}",
    "{4,3,1,0}",
    "{4,3,2}",
    "{4,3,2,0}",
    "{4,3,2,1}",
    "{4,3,2,1,0}",
    "{5}",
    "{5,0}",
    "{5,1}",
    "{5,1,0}",
    "{5,2}",
    "{5,2,0}",
    "{5,2,1}",
    "{5,2,1,0}",
    "{5,3}",
    "{5,3,0}",
    "{5,3,1}",
    "{5,3,1,0}",
    "{5,3,2}",
    "{5,3,2,0}",
    "{5,3,2,1}",
    "{5,3,2,1,0}",
    "{5,4}",
    "{5,4,0}",
    "{5,4,1}",
    "{5,4,1,0}",
    "{5,4,2}",
    "{5,4,2,0}",
    "{5,4,2,1}",
    "{5,4,2,1,0}",
    "{5,4,3}",
    "{5,4,3,0}",
    "{5,4,3,1}",
    "{5,4,3,1,0}",
    "{5,4,3,2}",
    "{5,4,3,2,0}",
    "{5,4,3,2,1}",
    "{5,4,3,2,1,0}",
];

/// Bits `low..low + count` of `word`.
pub(super) fn bits(word: u64, low: u32, count: u32) -> u64 {
    debug_assert!(low + count <= 64 && count < 64);
    word >> low & ((1 << count) - 1)
}

/// The same, sign-extended.
pub(super) fn signed(word: u64, low: u32, count: u32) -> i64 {
    let shift = 64 - count;
    (bits(word, low, count) << shift).cast_signed() >> shift
}

/// Whether bit `at` is set.
pub(super) fn bit(word: u64, at: u32) -> bool {
    word >> at & 1 == 1
}

/// The name of a condition-code test, 0 to 31.
pub(super) fn test(number: u64) -> &'static str {
    TESTS[number as usize & 31]
}

/// The set of scoreboards in a mask of six bits.
pub(super) fn scoreboards(mask: u64) -> &'static str {
    SCOREBOARDS[mask as usize & 63]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_spelt_from_the_highest() {
        for (mask, text) in SCOREBOARDS.iter().enumerate() {
            let members: Vec<String> = (0..6).rev().filter(|b| mask >> b & 1 == 1).map(|b| b.to_string()).collect();
            let expected = if members.is_empty() { String::new() } else { format!("{{{}}}", members.join(",")) };
            assert_eq!(*text, expected);
        }
    }

    #[test]
    fn signs() {
        assert_eq!(signed(0xff_ffff << 20, 20, 24), -1);
        assert_eq!(signed(0x7f_ffff << 20, 20, 24), 0x7f_ffff);
        assert_eq!(bits(u64::MAX, 16, 3), 7);
    }
}
