//! Element types of buffers and scalars.

use std::fmt;

/// An element type, named as in launch files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names say it.
pub enum Dtype {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Dtype {
    /// All types.
    pub const ALL: [Dtype; 13] = [
        Dtype::Bool,
        Dtype::U8,
        Dtype::I8,
        Dtype::U16,
        Dtype::I16,
        Dtype::U32,
        Dtype::I32,
        Dtype::U64,
        Dtype::I64,
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F32,
        Dtype::F64,
    ];

    /// Its name: `f32`.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::Bool => "bool",
            Dtype::U8 => "u8",
            Dtype::I8 => "i8",
            Dtype::U16 => "u16",
            Dtype::I16 => "i16",
            Dtype::U32 => "u32",
            Dtype::I32 => "i32",
            Dtype::U64 => "u64",
            Dtype::I64 => "i64",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Dtype> {
        Dtype::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Size of an element in bytes.
    pub const fn size(self) -> usize {
        match self {
            Dtype::Bool | Dtype::U8 | Dtype::I8 => 1,
            Dtype::U16 | Dtype::I16 | Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::U32 | Dtype::I32 | Dtype::F32 => 4,
            Dtype::U64 | Dtype::I64 | Dtype::F64 => 8,
        }
    }

    /// NumPy's type string, little-endian. NumPy has no bfloat16; its files hold it as two raw bytes.
    pub const fn numpy(self) -> &'static str {
        match self {
            Dtype::Bool => "|b1",
            Dtype::U8 => "|u1",
            Dtype::I8 => "|i1",
            Dtype::U16 => "<u2",
            Dtype::I16 => "<i2",
            Dtype::U32 => "<u4",
            Dtype::I32 => "<i4",
            Dtype::U64 => "<u8",
            Dtype::I64 => "<i8",
            Dtype::F16 => "<f2",
            Dtype::Bf16 => "<V2",
            Dtype::F32 => "<f4",
            Dtype::F64 => "<f8",
        }
    }

    /// Whether it is a floating type.
    pub const fn is_float(self) -> bool {
        matches!(self, Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64)
    }

    /// Smallest and largest value of an integer type.
    pub const fn int_range(self) -> Option<(i128, i128)> {
        Some(match self {
            Dtype::Bool => (0, 1),
            Dtype::U8 => (0, u8::MAX as i128),
            Dtype::I8 => (i8::MIN as i128, i8::MAX as i128),
            Dtype::U16 => (0, u16::MAX as i128),
            Dtype::I16 => (i16::MIN as i128, i16::MAX as i128),
            Dtype::U32 => (0, u32::MAX as i128),
            Dtype::I32 => (i32::MIN as i128, i32::MAX as i128),
            Dtype::U64 => (0, u64::MAX as i128),
            Dtype::I64 => (i64::MIN as i128, i64::MAX as i128),
            _ => return None,
        })
    }

    /// Little-endian bytes of an integer that is in range.
    pub fn int_bytes(self, value: i128) -> Vec<u8> {
        value.to_le_bytes()[..self.size()].to_vec()
    }

    /// Little-endian bytes of `value`, rounded to nearest even once.
    pub fn float_bytes(self, value: f64) -> Vec<u8> {
        match self {
            Dtype::F16 => half::f16::from_f64(value).to_le_bytes().to_vec(),
            Dtype::Bf16 => half::bf16::from_f64(value).to_le_bytes().to_vec(),
            Dtype::F32 => (value as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
