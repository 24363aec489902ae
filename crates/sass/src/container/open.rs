//! Any file that may hold GPU code: which kind it is, and the cubins and PTX texts inside.

use super::arch::Layout;
use super::elf::{EM_CUDA, Elf};
use super::error::{Error, Result, hint};
use super::fatbin::{self, Entry, EntryKind};

/// Sections of host objects that hold fatbins: those for the loader, and those for the device linker.
const FATBIN_SECTIONS: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];
const ARCHIVE_MAGIC: &[u8] = b"!<arch>\n";
const ARCHIVE_HEADER: usize = 60;

/// What kind of file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContainerKind {
    /// A single cubin.
    Cubin,
    /// A fatbin on its own.
    Fatbin,
    /// A host library, executable or object file.
    Host,
    /// A static library.
    Archive,
}

/// A file with its pieces of GPU code.
#[derive(Clone, Debug)]
pub struct Container<'a> {
    /// Kind of the file.
    pub kind: ContainerKind,
    /// Cubins, PTX texts and others in file order; at least one.
    pub entries: Vec<Entry<'a>>,
    /// What could not be read while the rest can be used.
    pub warnings: Vec<Error>,
}

impl<'a> Container<'a> {
    /// The entries that are cubins.
    pub fn cubins(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(|e| e.kind == EntryKind::Cubin)
    }
}

/// Finds the GPU code in a file: a cubin, a fatbin, or a host ELF file or static library that holds
/// fatbins. Nothing is decompressed yet.
pub fn open(bytes: &[u8]) -> Result<Container<'_>> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let mut entries = Vec::new();
    let mut warnings = Vec::new();
    let kind = if bytes.starts_with(&fatbin::MAGIC) {
        fatbin::read_all(bytes, 0, &mut entries, &mut warnings);
        ContainerKind::Fatbin
    } else if bytes.starts_with(b"\x7fELF") {
        elf(bytes, 0, &mut entries, &mut warnings)?
    } else if bytes.starts_with(ARCHIVE_MAGIC) {
        archive(bytes, &mut entries, &mut warnings);
        ContainerKind::Archive
    } else {
        return Err(Error::NotAContainer { hint: hint(bytes) });
    };
    if entries.is_empty() {
        // What stopped the reading says more than that nothing was found.
        return Err(warnings.into_iter().next().unwrap_or(Error::NoGpuCode {
            hint: "there is no .nv_fatbin or __nv_relfatbin section with an entry; a library may load its kernels from another file",
        }));
    }
    Ok(Container { kind, entries, warnings })
}

fn elf<'a>(
    bytes: &'a [u8],
    base: usize,
    entries: &mut Vec<Entry<'a>>,
    warnings: &mut Vec<Error>,
) -> Result<ContainerKind> {
    let elf = Elf::parse(bytes)?;
    if elf.header.machine == EM_CUDA {
        let layout = Layout::from_osabi(elf.header.osabi)?;
        let arch = layout.arch(elf.header.flags).refined(&elf.sections);
        entries.push(Entry::plain(arch, EntryKind::Cubin, base, bytes));
        return Ok(ContainerKind::Cubin);
    }
    let holds_fatbins = |name: &str| FATBIN_SECTIONS.contains(&name);
    for (index, error) in elf.damaged {
        if holds_fatbins(&elf.sections[index].name) {
            warnings.push(error);
        }
    }
    for section in &elf.sections {
        if holds_fatbins(&section.name) {
            fatbin::read_all(section.data, base + section.offset as usize, entries, warnings);
        }
    }
    Ok(ContainerKind::Host)
}

/// Members of a static library; those that hold no GPU code are passed over.
fn archive<'a>(bytes: &'a [u8], entries: &mut Vec<Entry<'a>>, warnings: &mut Vec<Error>) {
    let mut at = ARCHIVE_MAGIC.len();
    while at < bytes.len() {
        let size = bytes.get(at..at + ARCHIVE_HEADER).and_then(|header| {
            let digits = std::str::from_utf8(&header[48..58]).ok()?;
            digits.trim_end().parse::<usize>().ok()
        });
        let start = at + ARCHIVE_HEADER;
        let end = size.and_then(|size| start.checked_add(size)).filter(|&end| end <= bytes.len());
        let (Some(size), Some(end)) = (size, end) else {
            warnings.push(Error::OutOfBounds {
                what: "a member of the static library".into(),
                offset: at as u64,
                size: size.map_or(ARCHIVE_HEADER, |s| s.saturating_add(ARCHIVE_HEADER)) as u64,
                len: bytes.len() as u64,
            });
            return;
        };
        let member = &bytes[start..end];
        if member.starts_with(b"\x7fELF") {
            if let Err(error) = elf(member, start, entries, warnings) {
                warnings.push(error);
            }
        } else if member.starts_with(&fatbin::MAGIC) {
            fatbin::read_all(member, start, entries, warnings);
        }
        // Members start at even offsets.
        at = end + size % 2;
    }
}
