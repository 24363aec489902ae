//! A whole section as text, laid out as nvdisasm lays it out.
//!
//! Branch targets print as addresses, as they do for a raw binary; labels need the symbols of the file the
//! section comes from. A word that does not decode prints as `.unknown` with its bits, so that a listing
//! never loses an address.

use super::decode::Decoder;
use std::fmt::{Display, Formatter, Result};

/// Blanks between the address and the mnemonic; a guard takes the last of them.
const INDENT: usize = 19;
/// Column where the encoding starts.
const ENCODING: usize = 79;

/// Prints the code of one section. Bytes after the last whole word print as a comment.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    decoder: &'a Decoder,
    code: &'a [u8],
    encoding: bool,
}

impl<'a> Listing<'a> {
    /// A listing of `code`, which starts its section.
    pub fn new(decoder: &'a Decoder, code: &'a [u8]) -> Self {
        Listing { decoder, code, encoding: false }
    }

    /// Also prints each encoding, as `nvdisasm -hex` does.
    pub fn with_encoding(self, encoding: bool) -> Self {
        Listing { encoding, ..self }
    }
}

impl Display for Listing<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (words, rest) = self.code.as_chunks::<16>();
        for (word, pc) in words.iter().zip((0u32..).step_by(16)) {
            let raw = u128::from_le_bytes(*word);
            let text = match self.decoder.decode(pc, raw) {
                Ok(inst) => inst.to_string(),
                Err(_) => format!(".unknown {raw:#034x}"),
            };
            line(f, pc, &text, self.encoding.then_some(raw))?;
        }
        if rest.is_empty() { Ok(()) } else { writeln!(f, "        // {} bytes after the last instruction", rest.len()) }
    }
}

fn line(f: &mut Formatter<'_>, pc: u32, text: &str, raw: Option<u128>) -> Result {
    let guard = match text.split_once(' ') {
        Some((guard, _)) if guard.starts_with('@') => guard.len() + 1,
        _ => 0,
    };
    let indent = INDENT.saturating_sub(guard);
    let line = format!("        /*{pc:04x}*/{:indent$}{text} ;", "");
    let Some(raw) = raw else {
        return writeln!(f, "{line}");
    };
    writeln!(f, "{line:ENCODING$}/* {:#018x} */", raw as u64)?;
    writeln!(f, "{:ENCODING$}/* {:#018x} */", "", (raw >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::Arch;
    use super::*;

    // The words and lines are nvdisasm's, of our SpMV example.
    #[test]
    fn layout_of_nvdisasm() {
        let mut code = Vec::new();
        for (low, high) in [(0x0000_000a_00ff_0176_u64, 0u64), (0x0000_0000_0000_094d, 0x001f_ea00_0380_0000)] {
            code.extend(low.to_le_bytes());
            code.extend(high.to_le_bytes());
        }
        code.extend([1, 2, 3]);
        let decoder = Decoder::new(Arch::from_sm(90).expect("supported")).expect("tables");
        let text = Listing::new(&decoder, &code).with_encoding(true).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("        /*0000*/                   .unknown 0x0000000000000000000000"), "{text}");
        let expected =
            "        /*0010*/               @P0 EXIT ;                                      /* 0x000000000000094d */";
        assert_eq!(lines[2], expected);
        assert_eq!(lines[3].trim_start(), "/* 0x001fea0003800000 */");
        assert_eq!(lines[3].find("/*"), lines[2].rfind("/*"));
        assert_eq!(lines[4], "        // 3 bytes after the last instruction");
    }
}
