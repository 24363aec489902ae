//! NumPy `.npy` files as bytes: read into little-endian C order, written from it.
//!
//! The header is parsed by `npyz`. Before it sees one, its size, nesting and the product of its dimensions are
//! checked here, so that a hostile header can neither overflow a product nor nest a parser to death.

use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};

/// NumPy itself refuses longer headers unless told otherwise.
const LONGEST_HEADER: usize = 10_000;
/// More nested brackets than any real header has.
const DEEPEST: usize = 16;

/// An array's bytes and type.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// NumPy's type description as a Python expression, little-endian: `'<f4'`.
    pub descr: String,
    /// Size of one element in bytes.
    pub item: usize,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// Elements in C order, little-endian.
    pub data: Vec<u8>,
}

/// Why a `.npy` file cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NpyError {
    /// Not a `.npy` file or a damaged header.
    #[error("not a readable .npy file: {0}")]
    Header(String),
    /// The header is far longer or more deeply nested than NumPy writes.
    #[error("the .npy header is {0}; NumPy writes no such header")]
    Hostile(&'static str),
    /// Elements are Python objects, strings or the like.
    #[error("elements of type {0} are not plain numbers; convert with .astype(...) before saving")]
    Kind(String),
    /// A record with fields that are not little-endian.
    #[error("record type {0} is not little-endian; save it with '<' types")]
    RecordOrder(String),
    /// Fortran order.
    #[error("the array {0} is in Fortran order; save it with np.ascontiguousarray(...)")]
    Fortran(String),
    /// The data are shorter or longer than the header says.
    #[error("the header promises {expected} bytes of data ({shape} of {item} bytes), the file has {found}")]
    Size {
        /// By the header.
        expected: u64,
        /// In the file.
        found: u64,
        /// Dimensions.
        shape: String,
        /// Bytes of an element.
        item: usize,
    },
}

/// Reads a `.npy` file's bytes.
pub fn read(file: &[u8]) -> Result<Array, NpyError> {
    let start = check_header(file)?;
    let header = NpyHeader::from_reader(&mut &file[..start]).map_err(|e| NpyError::Header(e.to_string()))?;
    let dtype = header.dtype();
    let shape = header.shape().to_vec();
    let item = match dtype.num_bytes() {
        Some(n) if n > 0 && !dtype.uses_pickled_array() => n,
        _ => return Err(NpyError::Kind(dtype.descr())),
    };
    let (descr, word) = plain_type(&dtype)?;
    let count: u64 = shape.iter().product();
    let expected = count.checked_mul(item as u64).ok_or(NpyError::Hostile("overflowing"))?;
    let data = &file[start..];
    if expected != data.len() as u64 {
        let found = data.len() as u64;
        return Err(NpyError::Size { expected, found, shape: dims(&shape), item });
    }
    // A vector has the same layout in either order.
    if header.order() == Order::Fortran && shape.iter().filter(|&&d| d != 1).count() > 1 {
        return Err(NpyError::Fortran(dims(&shape)));
    }
    let mut data = data.to_vec();
    if let Some(word) = word {
        data.chunks_exact_mut(word).for_each(<[u8]>::reverse);
    }
    Ok(Array { descr, item, shape, data })
}

/// Writes a `.npy` file: version 1.0, the data aligned to 64 bytes as NumPy does it.
pub fn write(array: &Array) -> Vec<u8> {
    let shape = match array.shape.as_slice() {
        [one] => format!("({one},)"),
        _ => dims(&array.shape),
    };
    let mut text = format!("{{'descr': {}, 'fortran_order': False, 'shape': {shape}, }}", array.descr);
    let version: u8 = if text.len() + 80 > usize::from(u16::MAX) { 2 } else { 1 };
    let preamble = if version == 1 { 10 } else { 12 };
    while !(preamble + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut out = b"\x93NUMPY".to_vec();
    out.extend([version, 0]);
    out.extend_from_slice(&(text.len() as u32).to_le_bytes()[..preamble - 8]);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(&array.data);
    out
}

fn dims(shape: &[u64]) -> String {
    let list: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("({})", list.join(", "))
}

/// The type as little-endian text, and the word size to reverse if it is big-endian.
fn plain_type(dtype: &DType) -> Result<(String, Option<usize>), NpyError> {
    let text = dtype.descr();
    let DType::Plain(t) = dtype else {
        return if text.contains("'>") { Err(NpyError::RecordOrder(text)) } else { Ok((text, None)) };
    };
    let size = t.num_bytes().unwrap_or(0);
    let word = match t.type_char() {
        TypeChar::Bool | TypeChar::Int | TypeChar::Uint | TypeChar::Float => size,
        TypeChar::Complex => size / 2,
        TypeChar::RawData => 1,
        _ => return Err(NpyError::Kind(text)),
    };
    match t.endianness() {
        Endianness::Big if word > 1 => Ok((text.replacen('>', "<", 1), Some(word))),
        _ => Ok((text, None)),
    }
}

/// Length of the header, preamble included, if it is fit to be parsed.
fn check_header(file: &[u8]) -> Result<usize, NpyError> {
    let short = || NpyError::Header("it ends inside the header".into());
    if !file.starts_with(b"\x93NUMPY") {
        return Err(NpyError::Header("it does not start with \\x93NUMPY".into()));
    }
    let (len, start) = match file.get(6).ok_or_else(short)? {
        1 => (usize::from(u16::from_le_bytes([*file.get(8).ok_or_else(short)?, *file.get(9).ok_or_else(short)?])), 10),
        _ => {
            let word = file.get(8..12).and_then(|b| b.try_into().ok()).ok_or_else(short)?;
            (u32::from_le_bytes(word) as usize, 12)
        }
    };
    if len > LONGEST_HEADER {
        return Err(NpyError::Hostile("longer than 10,000 bytes"));
    }
    let text = file.get(start..start + len).ok_or_else(short)?;
    let (mut depth, mut product, mut number) = (0usize, 1u128, None::<u128>);
    for &c in text.iter().chain(b" ") {
        match c {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(NpyError::Hostile("nested"));
        }
        if c.is_ascii_digit() {
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(u128::from(c - b'0')));
        } else if let Some(n) = number.take() {
            // Digits of type strings count too; they are small. Zero must not hide the others.
            product = product.saturating_mul(n.max(1));
            if product > u128::from(u64::MAX) {
                return Err(NpyError::Hostile("of an array larger than any memory"));
            }
        }
    }
    Ok(start + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut f = b"\x93NUMPY\x01\x00".to_vec();
        f.extend((header.len() as u16).to_le_bytes());
        f.extend(header.as_bytes());
        f.extend(data);
        f
    }

    #[test]
    fn reads_what_numpy_writes() {
        let f = file("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }  \n", &[1, 0, 0, 0, 2, 0, 0, 0]);
        let a = read(&f).unwrap();
        assert_eq!((a.descr.as_str(), a.item, a.shape.clone()), ("'<i4'", 4, vec![2]));
        assert_eq!(read(&write(&a)).unwrap(), a);
    }

    #[test]
    fn swaps_big_endian_words() {
        let f = file("{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }", &[1, 2, 3, 4]);
        let a = read(&f).unwrap();
        assert_eq!((a.descr.as_str(), a.data), ("'<u2'", vec![2, 1, 4, 3]));
    }

    #[test]
    fn raw_and_scalar_arrays() {
        let f = file("{'descr': '|V2', 'fortran_order': False, 'shape': (), }", &[1, 2]);
        let a = read(&f).unwrap();
        assert_eq!((a.item, a.shape.len(), a.data.len()), (2, 0, 2));
        assert!(read(&write(&a)).is_ok());
    }

    #[test]
    fn fortran_order_matters_for_matrices_only() {
        let vector = file("{'descr': '|u1', 'fortran_order': True, 'shape': (3, 1), }", &[1, 2, 3]);
        assert!(read(&vector).is_ok());
        let matrix = file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", &[1, 2, 3, 4]);
        assert_eq!(read(&matrix), Err(NpyError::Fortran("(2, 2)".into())));
    }

    #[test]
    fn refuses_what_is_no_array_of_numbers() {
        let object = file("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", &[0; 8]);
        assert!(matches!(read(&object), Err(NpyError::Kind(_))));
        let text = file("{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }", &[0; 16]);
        assert!(matches!(read(&text), Err(NpyError::Kind(_))));
        let short = file("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", &[0; 8]);
        assert!(matches!(read(&short), Err(NpyError::Size { expected: 16, found: 8, .. })));
        assert!(read(b"PK\x03\x04").is_err());
        assert!(read(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{").is_err());
    }

    #[test]
    fn hostile_headers() {
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0), }";
        assert!(matches!(read(&file(huge, &[])), Err(NpyError::Hostile(_))));
        let deep = format!("{{'descr': {}", "(".repeat(9000));
        assert_eq!(read(&file(&deep, &[])), Err(NpyError::Hostile("nested")));
    }

    #[test]
    fn damaged_files_are_refused_without_a_panic() {
        let good =
            file("{'descr': [('a', '<f4', (2,)), ('b', '>i2')], 'fortran_order': False, 'shape': (2, 1), }", &[0; 20]);
        let mut state = 1u32;
        let mut next = |n: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % n
        };
        for _ in 0..2_000 {
            let mut bytes = good.clone();
            for _ in 0..=next(4) {
                let at = next(bytes.len());
                let alphabet = b"0123456789'(),[]{}<>|fiuV: \\\xff\x00";
                bytes[at] = alphabet[next(alphabet.len())];
            }
            bytes.truncate(bytes.len() - if next(4) == 0 { next(bytes.len()) } else { 0 });
            if let Ok(array) = read(&bytes) {
                let _ = read(&write(&array));
            }
        }
    }
}
