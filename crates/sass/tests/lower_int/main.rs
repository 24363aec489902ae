//! Integer, logic and packed 16-bit instructions against an H200.
//!
//! `operations.zst` holds 287 PTX operations: operands and the results the H200 gave (48 rows each), and the code
//! that ptxas 12.9 made of the one-operation kernels for sm_75, 80, 90, 100 and 120 (scheduling bits cleared).
//! Each row runs through decoder, lowering and lane functions on a one-lane machine. Little endian; a record is
//! `u8` length of the name, `u8` number of values a row, name, `u8` width of each value (the last is the result),
//! `u16` rows, `u8` programs, the rows, and for each program `u16` SM, `u16` instructions, the instructions.

//!
//! `forms.zst` holds 299 instruction forms, most of which no compiler emits (both carries of `IADD3`, every mode
//! of `SHF`, comparisons with two results ...), each written into a kernel and run on an H200 (sm_90): `u16` rows,
//! the rows (`R4..R11`), then for each form its encoding and for each row `R12`, `R13` (zero before), and `P0`, `P1`
//! in a byte. Before it `P2` and `P3` are the signs of `R10` and `R11` (true for zero or more), `P0` and `P1` that
//! of `R10`.

mod machine;

use std::io::Read;

use lanescope_sass::isa::{Arch, Decoder};
use machine::Machine;

static DATA: &[u8] = include_bytes!("operations.zst");

static FORMS: &[u8] = include_bytes!("forms.zst");

struct Reader(std::vec::IntoIter<u8>);

impl Reader {
    fn u8(&mut self) -> Option<u8> {
        self.0.next()
    }
    fn u16(&mut self) -> u16 {
        self.u8().unwrap() as u16 | (self.u8().unwrap() as u16) << 8
    }
    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }
    fn take(&mut self, n: usize) -> Vec<u8> {
        let bytes: Vec<u8> = self.0.by_ref().take(n).collect();
        assert_eq!(bytes.len(), n);
        bytes
    }
}

fn open(compressed: &[u8]) -> Reader {
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(compressed).unwrap().read_to_end(&mut bytes).unwrap();
    Reader(bytes.into_iter())
}

#[test]
fn operations_of_an_h200() {
    let mut data = open(DATA);
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

#[test]
fn forms_on_an_h200() {
    let mut data = open(FORMS);
    let rows = data.u16();
    let rows: Vec<[u32; 8]> = (0..rows).map(|_| std::array::from_fn(|_| data.u32())).collect();
    let decoder = Decoder::new(Arch::from_sm(90).unwrap()).unwrap();
    let mut wrong = Vec::new();
    let mut forms = 0;
    while let Some(first) = data.u8() {
        let mut raw = vec![first];
        raw.extend(data.take(15));
        let text = decoder.decode(0, u128::from_le_bytes(raw.clone().try_into().unwrap())).unwrap().to_string();
        let mut machine = Machine::new(90, &raw, &decoder).unwrap();
        for row in &rows {
            let want_words = [data.u32(), data.u32()];
            let bits = data.u8().unwrap();
            let sign = |x: u32| x as i32 >= 0;
            let (p2, p3) = (sign(row[6]), sign(row[7]));
            let got = machine.step(*row, [p2, p2, p2, p3]).unwrap_or_else(|e| panic!("{e}"));
            if got != (want_words, [bits & 1 == 1, bits & 2 == 2]) {
                wrong.push(format!("{text} of {row:08x?}: {got:08x?} instead of {want_words:08x?}, {bits:02b}"));
            }
        }
        forms += 1;
    }
    assert!(wrong.is_empty(), "{} wrong, first: {}", wrong.len(), wrong[0]);
    assert_eq!(forms, 299);
}
