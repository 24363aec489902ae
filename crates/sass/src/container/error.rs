//! What can be wrong with a container, one variant per exact fact.

use thiserror::Error;

/// Why bytes could not be read as a cubin, a fatbin or a file that holds them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was given.
    #[error("the file is empty")]
    Empty,
    /// The first bytes belong to no container.
    #[error("not a cubin, a fatbin or an ELF file: {hint}")]
    NotAContainer {
        /// What the bytes look like instead, and what to do.
        hint: &'static str,
    },
    /// An ELF file that is not 64-bit little endian.
    #[error("ELF file of an unsupported layout ({what}); only 64-bit little endian ELF files are read")]
    ElfLayout {
        /// Which part of the identification differs.
        what: &'static str,
    },
    /// An ELF file for another machine where a cubin was expected.
    #[error(
        "ELF file for machine {machine}, not for NVIDIA CUDA (190); if it is a library or executable that holds GPU code, open it as a container"
    )]
    NotCuda {
        /// `e_machine`.
        machine: u16,
    },
    /// A cubin whose ELF layout version is unknown.
    #[error("cubin with unknown OS/ABI {osabi:#04x} (known: 0x33 up to CUDA 12, 0x41 from CUDA 12.8 on)")]
    UnknownAbi {
        /// `EI_OSABI`.
        osabi: u8,
    },
    /// A part of the file lies past its end.
    #[error(
        "{what} at offset {offset:#x} needs {size:#x} bytes, but the file ends at {len:#x}; it is truncated or damaged"
    )]
    OutOfBounds {
        /// Which part.
        what: String,
        /// Where it starts.
        offset: u64,
        /// How long it claims to be.
        size: u64,
        /// Length of what holds it.
        len: u64,
    },
    /// A table whose entry size is not that of its type.
    #[error("{what} at offset {offset:#x} has entries of {found} bytes, expected {expected}")]
    EntrySize {
        /// Which table.
        what: String,
        /// Where it starts.
        offset: u64,
        /// The size it claims.
        found: u64,
        /// The size of the ELF type.
        expected: u64,
    },
    /// An index refers to no section.
    #[error("{what} refers to section {index}, but there are only {count}")]
    SectionIndex {
        /// What refers to it.
        what: String,
        /// The index.
        index: u64,
        /// Number of sections.
        count: usize,
    },
    /// An index refers to no symbol.
    #[error("{what} refers to symbol {index}, but there are only {count}")]
    SymbolIndex {
        /// What refers to it.
        what: String,
        /// The index.
        index: u64,
        /// Number of symbols.
        count: usize,
    },
    /// Sections claim more bytes together than the file has several times over.
    #[error("the sections claim {claimed:#x} bytes together in a file of {len:#x}: they overlap")]
    Overlap {
        /// Sum of the sizes.
        claimed: u64,
        /// Length of the file.
        len: u64,
    },
    /// Names overlap so heavily that reading them would take for ever.
    #[error("the {what} names are longer together than any real file's ({limit:#x} bytes)")]
    NamesTooLong {
        /// Names of what.
        what: &'static str,
        /// The limit that was passed.
        limit: u64,
    },
    /// An attribute of `.nv.info` is cut short or malformed.
    #[error("{section} at offset {offset:#x}: {what}")]
    Attribute {
        /// Name of the section.
        section: String,
        /// Offset inside the section.
        offset: usize,
        /// What is wrong.
        what: String,
    },
    /// A relocation type whose effect is unknown.
    #[error("relocation {name} (type {kind}) at {offset:#x} of {section} is not implemented")]
    RelocationKind {
        /// Section that would be patched.
        section: String,
        /// Offset of the patch.
        offset: u64,
        /// Numeric type.
        kind: u32,
        /// Name, if known.
        name: &'static str,
    },
    /// A value does not fit the field a relocation patches.
    #[error("relocation {name} at {offset:#x}: value {value:#x} does not fit {bits} bits")]
    RelocationRange {
        /// Name of the type.
        name: &'static str,
        /// Offset of the patch.
        offset: u64,
        /// The value.
        value: u64,
        /// Width of the field.
        bits: u32,
    },
    /// A line table could not be read.
    #[error("{section} at offset {offset:#x}: {what}")]
    Lines {
        /// `.debug_line` or `.nv_debug_line_sass`.
        section: &'static str,
        /// Offset inside the section.
        offset: usize,
        /// What is wrong.
        what: String,
    },
    /// A fatbin header or entry is malformed.
    #[error("fatbin at offset {offset:#x}: {what}")]
    Fatbin {
        /// Offset in the file.
        offset: usize,
        /// What is wrong.
        what: String,
    },
    /// A compressed entry could not be decompressed.
    #[error("{method} entry at offset {offset:#x}: {what}")]
    Decompress {
        /// `LZ4` or `zstd`.
        method: &'static str,
        /// Offset of the entry's payload in the file.
        offset: usize,
        /// What is wrong.
        what: String,
    },
    /// The file holds no GPU code.
    #[error("no GPU code inside: {hint}")]
    NoGpuCode {
        /// What was looked for.
        hint: &'static str,
    },
}

/// Warnings beyond this many are dropped: every few bytes of a hostile file could cause one.
pub(super) const MAX_WARNINGS: usize = 1000;

/// Result with the container error.
pub type Result<T> = std::result::Result<T, Error>;

/// Names what unrecognised bytes look like and what to do about it.
pub(super) fn hint(bytes: &[u8]) -> &'static str {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    if starts(b"MZ") {
        return "this is a Windows PE file; extract its cubins first (cuobjdump -xelf all)";
    }
    if starts(b"NVR\0") {
        return "this is an Nsight Compute report (.ncu-rep); open it with `lanescope open`";
    }
    if starts(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return "this is a zstd stream (perhaps an .ncu-repz); decompress it first";
    }
    if starts(&[0x1f, 0x8b]) {
        return "this is a gzip stream; decompress it first";
    }
    if starts(b"PK\x03\x04") {
        return "this is a zip archive (a wheel, perhaps); unpack it and give the library inside";
    }
    if starts(b"BC\xc0\xde") || starts(&[0xde, 0xc0, 0x17, 0x0b]) {
        return "this is LLVM bitcode; compile it to a cubin first";
    }
    if starts(&[0xcf, 0xfa, 0xed, 0xfe]) || starts(&[0xca, 0xfe, 0xba, 0xbe]) {
        return "this is a Mach-O file, which holds no CUDA code";
    }
    if starts(b"\x93NUMPY") {
        return "this is a NumPy array";
    }
    let head = &bytes[..bytes.len().min(4096)];
    if head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
        let contains = |needle: &[u8]| head.windows(needle.len()).any(|w| w == needle);
        if contains(b".version") && contains(b".target") {
            return "this is PTX text; assemble it with ptxas to a cubin first";
        }
        if contains(b"__global__") {
            return "this is CUDA source; compile it to a cubin first (nvcc -cubin)";
        }
        return "this is text";
    }
    "the magic number is unknown"
}
