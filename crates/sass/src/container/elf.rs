//! ELF tables, bounds-checked once so that everything above can index them.
//!
//! Only what cubins and the libraries that embed them need: header, sections, symbols, `RELA`/`REL`
//! entries. Untrusted sizes never lead to an allocation larger than the file itself warrants.

use std::borrow::Cow;

use object::LittleEndian as LE;
use object::elf::{FileHeader64, Rel64, Rela64, SectionHeader64, Sym64};
use object::pod::{self, Pod};

use super::error::{Error, Result};

pub(super) const EM_CUDA: u16 = 190;
pub(super) const SHT_PROGBITS: u32 = 1;
pub(super) const SHT_RELA: u32 = 4;
pub(super) const SHT_REL: u32 = 9;
const SHT_NULL: u32 = 0;
const SHT_SYMTAB: u32 = 2;
const SHT_NOBITS: u32 = 8;
/// Relocatable cubins give zero-initialised global, local and shared memory types of their own.
const SHT_CUDA_WITHOUT_DATA: [u32; 4] = [0x7000_0007, 0x7000_0009, 0x7000_000a, 0x7000_0015];

const SHN_XINDEX: u16 = 0xffff;

/// The identification and header fields that the rest needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub osabi: u8,
    pub kind: u16,
    pub machine: u16,
    pub flags: u32,
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Its name, replaced where it is not UTF-8.
    pub name: Cow<'a, str>,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// Offset of its bytes in the file.
    pub offset: u64,
    /// Its size, also when it has no bytes in the file (`NOBITS`).
    pub size: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// `sh_addralign`.
    pub align: u64,
    /// `sh_entsize`.
    pub entry_size: u64,
    /// Its bytes; empty for `NOBITS`.
    pub data: &'a [u8],
}

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Its name (mangled), replaced where it is not UTF-8.
    pub name: Cow<'a, str>,
    /// Offset in its section.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
    /// Index into [`Module::sections`](super::Module::sections); `None` for undefined, absolute and common ones.
    pub section: Option<usize>,
    /// What it names.
    pub kind: SymbolKind,
    /// Whether it is visible to other modules.
    pub binding: Binding,
    /// `st_other`; bit 4 marks a kernel entry.
    pub other: u8,
}

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// Data.
    Object,
    /// Code.
    Function,
    /// A section.
    Section,
    /// Unspecified.
    None,
    /// Any other ELF type; 10 (texture), 11 (surface) and the like on CUDA.
    Other(u8),
}

/// Binding of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// This module only.
    Local,
    /// Visible to the linker.
    Global,
    /// Visible, and gives way to a global one.
    Weak,
    /// Any other value.
    Other(u8),
}

/// One entry of a relocation section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawRelocation {
    pub offset: u64,
    pub kind: u32,
    pub symbol: u32,
    pub addend: i64,
}

/// Section indices with what is wrong.
pub(super) type Damaged = Vec<(usize, Error)>;

/// Header and section table of an ELF file.
#[derive(Clone, Debug)]
pub(super) struct Elf<'a> {
    pub header: Header,
    pub sections: Vec<Section<'a>>,
    /// Sections whose bytes lie past the end of the file, with the complaint; their data is empty.
    pub damaged: Damaged,
}

/// `data[offset..offset + size]`, or the exact complaint.
pub(super) fn slice(data: &[u8], offset: u64, size: u64, what: impl FnOnce() -> String) -> Result<&[u8]> {
    let start = usize::try_from(offset).ok();
    let end = offset.checked_add(size).and_then(|e| usize::try_from(e).ok());
    start.zip(end).and_then(|(start, end)| data.get(start..end)).ok_or_else(|| Error::OutOfBounds {
        what: what(),
        offset,
        size,
        len: data.len() as u64,
    })
}

/// Views all of `data` as a table of `T`; a partial entry at the end is an error.
fn table<T: Pod>(data: &[u8], offset: u64, what: impl Fn() -> String) -> Result<&[T]> {
    let size = size_of::<T>();
    let (table, _) = pod::slice_from_bytes::<T>(data, data.len() / size).map_err(|()| Error::OutOfBounds {
        what: what(),
        offset,
        size: size as u64,
        len: data.len() as u64,
    })?;
    if !data.len().is_multiple_of(size) {
        return Err(Error::EntrySize {
            what: what(),
            offset,
            found: (data.len() % size) as u64,
            expected: size as u64,
        });
    }
    Ok(table)
}

/// Reads NUL-terminated names while counting their bytes: tables whose names all overlap one long
/// string would otherwise cost the square of the file's size.
struct Names<'a> {
    strings: &'a [u8],
    left: u64,
    limit: u64,
    what: &'static str,
}

impl<'a> Names<'a> {
    fn new(strings: &'a [u8], file_len: usize, what: &'static str) -> Self {
        let limit = (file_len as u64).saturating_mul(64).saturating_add(1 << 16);
        Self { strings, left: limit, limit, what }
    }

    fn get(&mut self, offset: u32) -> Result<Cow<'a, str>> {
        let tail = self.strings.get(offset as usize..).unwrap_or(&[]);
        let end = tail.iter().position(|&b| b == 0).unwrap_or(tail.len());
        self.left =
            self.left.checked_sub(end as u64).ok_or(Error::NamesTooLong { what: self.what, limit: self.limit })?;
        Ok(String::from_utf8_lossy(&tail[..end]))
    }
}

impl<'a> Elf<'a> {
    /// Reads header and section table of any 64-bit little endian ELF file.
    pub(super) fn parse(data: &'a [u8]) -> Result<Self> {
        let ident = slice(data, 0, 16, || "ELF identification".into())?;
        match (ident[4], ident[5]) {
            (2, 1) => {}
            (1, _) => return Err(Error::ElfLayout { what: "32-bit" }),
            (2, 2) => return Err(Error::ElfLayout { what: "big endian" }),
            _ => return Err(Error::ElfLayout { what: "invalid class or byte order" }),
        }
        let bytes = slice(data, 0, size_of::<FileHeader64<LE>>() as u64, || "ELF header".into())?;
        let raw = &table::<FileHeader64<LE>>(bytes, 0, || "ELF header".into())?[0];
        let header = Header {
            osabi: ident[7],
            kind: raw.e_type.get(LE).0,
            machine: raw.e_machine.get(LE).0,
            flags: raw.e_flags.get(LE).0,
        };
        // Not needed for anything, but in cubins it is the file's last part, so this finds truncation.
        let segments = u64::from(raw.e_phnum.get(LE)) * u64::from(raw.e_phentsize.get(LE));
        if segments != 0 {
            slice(data, raw.e_phoff.get(LE), segments, || "program header table".into())?;
        }
        let offset = raw.e_shoff.get(LE);
        if offset == 0 {
            return Ok(Self { header, sections: Vec::new(), damaged: Vec::new() });
        }
        let entry = size_of::<SectionHeader64<LE>>() as u64;
        let found = u64::from(raw.e_shentsize.get(LE));
        if found != entry {
            return Err(Error::EntrySize { what: "section table".into(), offset, found, expected: entry });
        }
        let first = || -> Result<&SectionHeader64<LE>> {
            let bytes = slice(data, offset, entry, || "section 0".into())?;
            Ok(&table(bytes, offset, || "section 0".into())?[0])
        };
        let count = match raw.e_shnum.get(LE) {
            0 => first()?.sh_size.get(LE),
            n => u64::from(n),
        };
        let strings_index = match raw.e_shstrndx.get(LE).0 {
            SHN_XINDEX => u64::from(first()?.sh_link.get(LE)),
            n => u64::from(n),
        };
        let bytes = slice(data, offset, count.saturating_mul(entry), || format!("section table of {count} entries"))?;
        let headers = table::<SectionHeader64<LE>>(bytes, offset, || "section table".into())?;
        let (sections, damaged) = sections(data, headers, strings_index)?;
        Ok(Self { header, sections, damaged })
    }

    /// Symbols of the (only) symbol table; empty without one.
    pub(super) fn symbols(&self, file_len: usize) -> Result<Vec<Symbol<'a>>> {
        let Some(section) = self.sections.iter().find(|s| s.kind == SHT_SYMTAB) else {
            return Ok(Vec::new());
        };
        let raw = table::<Sym64<LE>>(section.data, section.offset, || "symbol table".into())?;
        let strings = usize::try_from(section.link).ok().and_then(|link| self.sections.get(link)).ok_or_else(|| {
            Error::SectionIndex {
                what: "the symbol table's string table".into(),
                index: section.link.into(),
                count: self.sections.len(),
            }
        })?;
        let mut names = Names::new(strings.data, file_len, "symbol");
        raw.iter()
            .map(|sym| {
                let info = sym.st_info.0;
                let index = sym.st_shndx.get(LE).0;
                let section = usize::from(index);
                Ok(Symbol {
                    name: names.get(sym.st_name.get(LE))?,
                    value: sym.st_value.get(LE),
                    size: sym.st_size.get(LE),
                    section: (section != 0 && section < self.sections.len()).then_some(section),
                    kind: match info & 0xf {
                        0 => SymbolKind::None,
                        1 => SymbolKind::Object,
                        2 => SymbolKind::Function,
                        3 => SymbolKind::Section,
                        13 => SymbolKind::Object,
                        n => SymbolKind::Other(n),
                    },
                    binding: match info >> 4 {
                        0 => Binding::Local,
                        1 => Binding::Global,
                        2 => Binding::Weak,
                        n => Binding::Other(n),
                    },
                    other: sym.st_other.0,
                })
            })
            .collect()
    }
}

fn sections<'a>(
    data: &'a [u8],
    headers: &'a [SectionHeader64<LE>],
    strings_index: u64,
) -> Result<(Vec<Section<'a>>, Damaged)> {
    let strings = match usize::try_from(strings_index).ok().and_then(|i| headers.get(i)) {
        Some(h) if has_data(h.sh_type.get(LE).0) => {
            slice(data, h.sh_offset.get(LE), h.sh_size.get(LE), || "section name table".into())?
        }
        Some(_) => &[],
        None if strings_index == 0 => &[],
        None => {
            return Err(Error::SectionIndex {
                what: "the ELF header's name table".into(),
                index: strings_index,
                count: headers.len(),
            });
        }
    };
    let mut names = Names::new(strings, data.len(), "section");
    let mut claimed = 0u64;
    let mut damaged = Vec::new();
    let mut sections = Vec::with_capacity(headers.len());
    for (index, h) in headers.iter().enumerate() {
        let kind = h.sh_type.get(LE).0;
        let name = names.get(h.sh_name.get(LE))?;
        let (offset, size) = (h.sh_offset.get(LE), h.sh_size.get(LE));
        let bytes = if !has_data(kind) {
            &[]
        } else {
            slice(data, offset, size, || format!("section {index} ({name})")).unwrap_or_else(|error| {
                damaged.push((index, error));
                &[]
            })
        };
        claimed = claimed.saturating_add(bytes.len() as u64);
        sections.push(Section {
            name,
            kind,
            flags: h.sh_flags.get(LE).0,
            offset,
            size,
            link: h.sh_link.get(LE),
            info: h.sh_info.get(LE),
            align: h.sh_addralign.get(LE),
            entry_size: h.sh_entsize.get(LE),
            data: bytes,
        });
    }
    let len = data.len() as u64;
    if claimed > len.saturating_mul(2) {
        return Err(Error::Overlap { claimed, len });
    }
    Ok((sections, damaged))
}

/// Whether a section of type `kind` has bytes in the file. Section 0 has none: its size may hold the section count.
fn has_data(kind: u32) -> bool {
    kind != SHT_NULL && kind != SHT_NOBITS && !SHT_CUDA_WITHOUT_DATA.contains(&kind)
}

impl Section<'_> {
    /// Whether it has bytes in the file; without them it is memory that starts as zeros.
    pub fn has_data(&self) -> bool {
        has_data(self.kind)
    }

    /// Whether a module cannot be used without it.
    pub(super) fn is_essential(&self) -> bool {
        const PREFIXES: [&str; 5] = [".text.", ".nv.info", ".nv.constant", ".nv.global", ".rel"];
        PREFIXES.iter().any(|p| self.name.starts_with(p)) || matches!(self.kind, 2 | 3)
    }

    /// Entries of a relocation section.
    pub(super) fn raw_relocations(&self) -> Result<Vec<RawRelocation>> {
        let what = || self.name.to_string();
        if self.kind == SHT_RELA {
            let raw = table::<Rela64<LE>>(self.data, self.offset, what)?;
            return Ok(raw
                .iter()
                .map(|r| RawRelocation {
                    offset: r.r_offset.get(LE),
                    kind: r.r_type(LE, false).0,
                    symbol: r.r_sym(LE, false),
                    addend: r.r_addend.get(LE),
                })
                .collect());
        }
        let raw = table::<Rel64<LE>>(self.data, self.offset, what)?;
        Ok(raw
            .iter()
            .map(|r| RawRelocation { offset: r.r_offset.get(LE), kind: r.r_type(LE).0, symbol: r.r_sym(LE), addend: 0 })
            .collect())
    }
}
