//! Fundamental types and state spaces.

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each is what its name in PTX says")]
        pub enum $name { $($variant,)* }

        impl $name {
            /// Each of them.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// From its name without the dot.
            #[allow(non_upper_case_globals, reason = "a constant for each variant, of its name")]
            pub fn from_name(name: &str) -> Option<Self> {
                $(const $variant: u64 = key($text.as_bytes());)*
                // One number tells the names apart, which is faster than comparing with each.
                let found = match key(name.as_bytes()) { $($variant => $name::$variant,)* _ => return None };
                (found.name() == name).then_some(found)
            }

            /// Its name without the dot.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

/// The first eight bytes of a text.
#[inline]
const fn key(text: &[u8]) -> u64 {
    let (mut key, mut at) = (0, 0);
    while at < text.len() && at < 8 {
        key = key << 8 | text[at] as u64;
        at += 1;
    }
    key
}

names! {
    /// The type of a register, a variable or, as a modifier, of an operation.
    Type {
        Pred "pred",
        B1 "b1", B4 "b4", B8 "b8", B16 "b16", B32 "b32", B64 "b64", B128 "b128",
        U4 "u4", U8 "u8", U16 "u16", U32 "u32", U64 "u64",
        S4 "s4", S8 "s8", S16 "s16", S32 "s32", S64 "s64",
        U8x4 "u8x4", S8x4 "s8x4", U16x2 "u16x2", S16x2 "s16x2", B8x16 "b8x16",
        F16 "f16", F16x2 "f16x2", Bf16 "bf16", Bf16x2 "bf16x2", Tf32 "tf32",
        F32 "f32", F32x2 "f32x2", F64 "f64",
        E4m3 "e4m3", E5m2 "e5m2", E3m2 "e3m2", E2m3 "e2m3", E2m1 "e2m1", Ue8m0 "ue8m0", Ue4m3 "ue4m3",
        E4m3x2 "e4m3x2", E5m2x2 "e5m2x2", E3m2x2 "e3m2x2", E2m3x2 "e2m3x2", E2m1x2 "e2m1x2",
        Ue8m0x2 "ue8m0x2",
        E4m3x4 "e4m3x4", E5m2x4 "e5m2x4", E3m2x4 "e3m2x4", E2m3x4 "e2m3x4", E2m1x4 "e2m1x4",
        Texref "texref", Samplerref "samplerref", Surfref "surfref",
    }
}

impl Type {
    /// The size in bits; 0 for predicates, 64 for the opaque reference types.
    pub fn bits(self) -> u32 {
        use Type::*;
        match self {
            Pred => 0,
            B1 => 1,
            B4 | U4 | S4 | E2m1 => 4,
            B8 | U8 | S8 | E4m3 | E5m2 | E3m2 | E2m3 | Ue8m0 | Ue4m3 | E2m1x2 => 8,
            B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 | E3m2x2 | E2m3x2 | Ue8m0x2 | E2m1x4 => 16,
            B32 | U32 | S32 | U8x4 | S8x4 | U16x2 | S16x2 | F16x2 | Bf16x2 | Tf32 | F32 | E4m3x4 | E5m2x4 | E3m2x4
            | E2m3x4 => 32,
            B64 | U64 | S64 | F64 | F32x2 | Texref | Samplerref | Surfref => 64,
            B128 | B8x16 => 128,
        }
    }

    /// The size of a variable of this type in bytes; 0 for predicates, which have no memory.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether variables can be declared with it; the other types are those of instructions alone.
    pub fn is_of_variables(self) -> bool {
        use Type::*;
        matches!(
            self,
            Pred | B8
                | B16
                | B32
                | B64
                | B128
                | U8
                | U16
                | U32
                | U64
                | S8
                | S16
                | S32
                | S64
                | F16
                | F16x2
                | F32
                | F64
                | Texref
                | Samplerref
                | Surfref
        )
    }

    /// Whether registers can be declared with it.
    pub fn is_of_registers(self) -> bool {
        self.is_of_variables() && !matches!(self, Type::Texref | Type::Samplerref | Type::Surfref)
    }

    /// Whether it is a single floating-point number.
    pub fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::Bf16 | Type::F32 | Type::F64 | Type::Tf32)
    }

    /// Whether it is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, Type::S4 | Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }
}

names! {
    /// Where a variable lies.
    Space {
        Reg "reg", SpecialReg "sreg", Const "const", Global "global", Local "local", Param "param", Shared "shared", Tex "tex",
    }
}
