//! Which opcodes count, and under which name.

/// Opcodes that steer control flow or convergence, of both instruction sets.
const STEERING: [&str; 50] = [
    "B2R",
    "BAR",
    "BMOV",
    "BPT",
    "BRA",
    "BREAK",
    "BRK",
    "BRX",
    "BRXU",
    "BSSY",
    "BSYNC",
    "CAL",
    "CALL",
    "CONT",
    "CREDUX",
    "ELECT",
    "ENDCOLLECTIVE",
    "EXIT",
    "IDE",
    "JCAL",
    "JMP",
    "JMX",
    "JMXU",
    "KIL",
    "KILL",
    "LEPC",
    "LONGJMP",
    "MATCH",
    "NANOSLEEP",
    "PBK",
    "PCNT",
    "PEXIT",
    "PLONGJMP",
    "PRET",
    "R2B",
    "RAM",
    "REDUX",
    "RET",
    "RPCMOV",
    "RTT",
    "SAM",
    "SHFL",
    "SSY",
    "SYNC",
    "UCGABAR_ARV",
    "UCGABAR_WAIT",
    "VOTE",
    "VOTEU",
    "WARPSYNC",
    "YIELD",
];

/// Whether an opcode steers control flow or convergence.
pub fn steers(mnemonic: &str) -> bool {
    STEERING.contains(&mnemonic)
}

/// Opcode with its modifiers, if it is one that counts.
pub(super) fn name(mnemonic: &str, mods: &[&str]) -> Option<String> {
    if !steers(mnemonic) {
        return None;
    }
    let mut name = mnemonic.to_owned();
    // The width of what MATCH compares does not steer anything.
    for token in mods.iter().filter(|m| !(mnemonic == "MATCH" && **m == "U64")) {
        name.push('.');
        name.push_str(token);
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(name("BSSY", &["RECONVERGENT"]).as_deref(), Some("BSSY.RECONVERGENT"));
        assert_eq!(name("MATCH", &["ANY", "U64"]).as_deref(), Some("MATCH.ANY"));
        assert_eq!(name("IADD3", &[]), None);
        let mut sorted = STEERING.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), STEERING.len());
    }
}
