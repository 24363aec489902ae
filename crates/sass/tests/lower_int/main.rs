//! Integer, logic and packed 16-bit instructions against an H200.
//!
//! `operations.zst` holds 287 PTX operations: operands and the results the H200 gave (48 rows each), and the code
//! that ptxas 12.9 made of the one-operation kernels for sm_75, 80, 90, 100 and 120 (scheduling bits cleared).
//! Each row runs through decoder, lowering and lane functions on a one-lane machine. Little endian; a record is
//! `u8` length of the name, `u8` number of values a row, name, `u8` width of each value (the last is the result),
//! `u16` rows, `u8` programs, the rows, and for each program `u16` SM, `u16` instructions, the instructions.

mod machine;

use std::io::Read;

use lanescope_sass::isa::{Arch, Decoder};
use machine::Machine;

static DATA: &[u8] = include_bytes!("operations.zst");

struct Reader(std::vec::IntoIter<u8>);

impl Reader {
    fn u8(&mut self) -> Option<u8> {
        self.0.next()
    }
    fn u16(&mut self) -> u16 {
        self.u8().unwrap() as u16 | (self.u8().unwrap() as u16) << 8
    }
    fn take(&mut self, n: usize) -> Vec<u8> {
        let bytes: Vec<u8> = self.0.by_ref().take(n).collect();
        assert_eq!(bytes.len(), n);
        bytes
    }
}

#[test]
fn operations_of_an_h200() {
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(DATA).unwrap().read_to_end(&mut bytes).unwrap();
    let mut data = Reader(bytes.into_iter());
    let (mut operations, mut programs, mut compared) = (0, 0, 0);
    let mut wrong = Vec::new();
    while let Some(name) = data.u8() {
        let values = data.u8().unwrap();
        let name = String::from_utf8(data.take(name.into())).unwrap();
        let widths = data.take(values.into());
        let (rows, count) = (data.u16(), data.u8().unwrap());
        let rows: Vec<Vec<Vec<u8>>> =
            (0..rows).map(|_| widths.iter().map(|&w| data.take(w.into())).collect()).collect();
        for _ in 0..count {
            let sm = u32::from(data.u16());
            let length = 16 * usize::from(data.u16());
            let text = data.take(length);
            let decoder = Decoder::new(Arch::from_sm(sm).unwrap()).unwrap();
            let mut machine = Machine::new(sm, &text, &decoder).unwrap_or_else(|e| panic!("{name} sm_{sm}: {e}"));
            for row in &rows {
                let (want, operands) = row.split_last().unwrap();
                machine.buffers.iter_mut().for_each(|b| *b = vec![0; 8]);
                for (buffer, operand) in machine.buffers.iter_mut().zip(operands) {
                    buffer[..operand.len()].copy_from_slice(operand);
                }
                machine.run().unwrap_or_else(|e| panic!("{name} sm_{sm}: {e}"));
                let got = &machine.buffers[4][..want.len()];
                if got != want.as_slice() {
                    wrong.push(format!("{name} sm_{sm} of {operands:02x?}: {got:02x?} instead of {want:02x?}"));
                }
                compared += 1;
            }
            programs += 1;
        }
        operations += 1;
    }
    assert!(wrong.is_empty(), "{} of {compared} wrong, first: {}", wrong.len(), wrong[0]);
    assert_eq!((operations, programs, compared), (287, 1397, 67056));
}
