//! Fatbins: several cubins and PTX texts for different architectures in one blob.
//!
//! A header (magic, version, its size, size of what follows) is followed by entries, each a header
//! with kind, architecture, sizes and flags, and a payload that may be compressed with LZ4 or zstd.
//! An entry of kind 256 holds several cubins compressed as one.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use super::arch::{Arch, Variant};
use super::error::{Error, MAX_WARNINGS, Result};

/// First bytes of a fatbin.
pub(super) const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];
/// No entry is decompressed to more than this.
const MAX_DECOMPRESSED: u64 = 1 << 30;
/// No entry is decompressed to more than this many times its size; real cubins stay below 20.
const MAX_RATIO: u64 = 1024;
/// zstd frames may refer back this far without asking; more is granted only if the entry is larger itself.
const MAX_WINDOW: u64 = 8 << 20;

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_ACCELERATED: u64 = 0x10_0000;
const FLAG_FAMILY: u64 = 0x20_0000;

const KIND_CONCATENATED: u16 = 256;
const ENTRY_SIZE: usize = 64;

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A cubin, for [`Module::parse`](super::Module::parse).
    Cubin,
    /// PTX text.
    Ptx,
    /// Anything else, by its number (8 is the compiler's intermediate code for link-time optimisation).
    Other(u16),
}

/// How an entry is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// As it is.
    None,
    /// One LZ4 block.
    Lz4,
    /// A zstd frame.
    Zstd,
}

/// One piece of GPU code. Its bytes are decompressed when asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// What it was built for; for PTX the lowest architecture it may run on.
    pub arch: Arch,
    /// What it holds.
    pub kind: EntryKind,
    /// How it is stored.
    pub compression: Compression,
    /// Offset of its payload in the file.
    pub offset: usize,
    /// Its size once decompressed.
    pub size: u64,
    stored: &'a [u8],
    /// Size of the whole payload once decompressed.
    payload: u64,
    /// Its part of that, if it shares the payload with others.
    part: Option<Range<usize>>,
}

impl<'a> Entry<'a> {
    /// An entry stored plainly.
    pub(super) fn plain(arch: Arch, kind: EntryKind, offset: usize, stored: &'a [u8]) -> Self {
        let size = stored.len() as u64;
        Entry { arch, kind, compression: Compression::None, offset, size, stored, payload: size, part: None }
    }

    /// Its bytes, decompressed if need be.
    pub fn bytes(&self) -> Result<Cow<'a, [u8]>> {
        let whole = match self.compression {
            Compression::None => Cow::Borrowed(self.stored),
            Compression::Lz4 => Cow::Owned(self.lz4()?),
            Compression::Zstd => Cow::Owned(self.zstd()?),
        };
        let Some(part) = self.part.clone() else { return Ok(whole) };
        let missing = || Error::Fatbin { offset: self.offset, what: "a part lies outside its payload".into() };
        match whole {
            Cow::Borrowed(whole) => whole.get(part).map(Cow::Borrowed).ok_or_else(missing),
            Cow::Owned(mut whole) => {
                if part.end > whole.len() || part.start > part.end {
                    return Err(missing());
                }
                whole.truncate(part.end);
                whole.drain(..part.start);
                Ok(Cow::Owned(whole))
            }
        }
    }

    /// Size of the whole payload once decompressed.
    fn payload_size(&self, method: &'static str) -> Result<usize> {
        let fail = |what| Error::Decompress { method, offset: self.offset, what };
        let size = self.payload;
        let limit = (self.stored.len() as u64).saturating_mul(MAX_RATIO).min(MAX_DECOMPRESSED);
        if size > limit {
            return Err(fail(format!("it claims {size} bytes from {}, more than any real one", self.stored.len())));
        }
        usize::try_from(size).map_err(|_| fail("it is larger than memory".to_owned()))
    }

    fn lz4(&self) -> Result<Vec<u8>> {
        let fail = |what| Error::Decompress { method: "LZ4", offset: self.offset, what };
        let mut out = vec![0; self.payload_size("LZ4")?];
        let n = lz4_flex::block::decompress_into(self.stored, &mut out).map_err(|e| fail(e.to_string()))?;
        if n != out.len() {
            return Err(fail(format!("{n} bytes came out, {} were promised", out.len())));
        }
        Ok(out)
    }

    fn zstd(&self) -> Result<Vec<u8>> {
        let fail = |what| Error::Decompress { method: "zstd", offset: self.offset, what };
        let size = self.payload_size("zstd")?;
        let window = zstd_window(self.stored).ok_or_else(|| fail("the frame header is malformed".to_owned()))?;
        if window > MAX_WINDOW.max(size as u64) {
            return Err(fail(format!("the frame wants a window of {window} bytes")));
        }
        let decoder = ruzstd::decoding::StreamingDecoder::new(self.stored).map_err(|e| fail(e.to_string()))?;
        let mut out = Vec::new();
        decoder.take(size as u64 + 1).read_to_end(&mut out).map_err(|e| fail(e.to_string()))?;
        if out.len() != size {
            return Err(fail(format!("{} bytes came out, {size} were promised", out.len())));
        }
        Ok(out)
    }
}

/// Window size that a zstd frame's header asks for (RFC 8878, section 3.1.1.1).
fn zstd_window(frame: &[u8]) -> Option<u64> {
    let rest = frame.strip_prefix(&[0x28, 0xb5, 0x2f, 0xfd])?;
    let (&descriptor, rest) = rest.split_first()?;
    if descriptor & 0x20 == 0 {
        let window = rest.first()?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let rest = rest.get(dictionary..)?;
    let word = |n: usize| {
        let mut bytes = [0; 8];
        bytes[..n].copy_from_slice(rest.get(..n)?);
        Some(u64::from_le_bytes(bytes))
    };
    match descriptor >> 6 {
        0 => word(1),
        1 => word(2).map(|n| n + 256),
        2 => word(4),
        _ => word(8),
    }
}

/// Reads fatbins one after another from `region`, which starts at `base` in the file, with padding
/// between them. What is broken becomes a warning.
pub(super) fn read_all<'a>(region: &'a [u8], base: usize, entries: &mut Vec<Entry<'a>>, warnings: &mut Vec<Error>) {
    let mut at = 0;
    while at < region.len() {
        if region[at..].starts_with(&MAGIC) {
            at = read_one(region, at, base, entries, warnings);
            continue;
        }
        let next = find(region, at + 1);
        let end = next.unwrap_or(region.len());
        if region[at..end].iter().any(|&b| b != 0) {
            warn(warnings, Error::Fatbin { offset: base + at, what: format!("{} bytes are no fatbin", end - at) });
        }
        at = end;
    }
}

fn warn(warnings: &mut Vec<Error>, error: Error) {
    if warnings.len() < MAX_WARNINGS {
        warnings.push(error);
    }
}

/// The next fatbin magic at or after `from`.
pub(super) fn find(bytes: &[u8], from: usize) -> Option<usize> {
    let tail = bytes.get(from..)?;
    tail.windows(MAGIC.len()).position(|w| w == MAGIC).map(|at| from + at)
}

/// Reads the fatbin at `at` and returns where it ends.
fn read_one<'a>(
    region: &'a [u8],
    at: usize,
    base: usize,
    entries: &mut Vec<Entry<'a>>,
    warnings: &mut Vec<Error>,
) -> usize {
    let mut complain = |at: usize, what: String| warn(warnings, Error::Fatbin { offset: base + at, what });
    let Some(header) = region.get(at..at + 16) else {
        complain(at, "the header is cut short".into());
        return region.len();
    };
    let (version, header_size, size) = (u16_at(header, 4), u16_at(header, 6), u64_at(header, 8));
    if version != 1 || header_size < 16 {
        complain(at, format!("header version {version} of {header_size} bytes is not known"));
        return at + MAGIC.len();
    }
    let start = at + usize::from(header_size);
    let claimed = usize::try_from(size).ok().and_then(|size| start.checked_add(size));
    let end = match claimed {
        Some(end) if end <= region.len() => end,
        _ => {
            complain(at, format!("it claims {size} bytes, more than there are"));
            region.len()
        }
    };
    let mut next = start;
    while next < end {
        let (header, after) = match extent(&region[..end], next, base) {
            Ok(extent) => extent,
            Err(error) => {
                warn(warnings, error);
                break;
            }
        };
        if let Err(error) = read_entry(&region[next..after], header, base + next, entries) {
            warn(warnings, error);
        }
        next = after;
    }
    end.max(at + MAGIC.len())
}

/// Size of the header of the entry at `at`, and where the entry ends.
fn extent(region: &[u8], at: usize, base: usize) -> Result<(usize, usize)> {
    let fail = |what: String| Error::Fatbin { offset: base + at, what };
    let header = region.get(at..at + ENTRY_SIZE).ok_or_else(|| fail("an entry's header is cut short".into()))?;
    let (header_size, size) = (u32_at(header, 4) as usize, u64_at(header, 8));
    if header_size < ENTRY_SIZE {
        return Err(fail(format!("an entry's header claims {header_size} bytes, fewer than {ENTRY_SIZE}")));
    }
    usize::try_from(size)
        .ok()
        .and_then(|size| at.checked_add(header_size)?.checked_add(size))
        .filter(|&after| after <= region.len())
        .map(|after| (header_size, after))
        .ok_or_else(|| fail(format!("an entry claims {size} bytes, more than are left")))
}

/// Reads an entry, of which exactly the bytes and the header's size are given.
fn read_entry<'a>(entry: &'a [u8], header_size: usize, offset: usize, entries: &mut Vec<Entry<'a>>) -> Result<()> {
    let fail = |what: String| Error::Fatbin { offset, what };
    let (header, payload) = entry.split_at(header_size);
    let compressed = u32_at(header, 16) as usize;
    let flags = u64_at(header, 40);
    let compression = match (flags & FLAG_LZ4 != 0, flags & FLAG_ZSTD != 0) {
        (false, false) => Compression::None,
        (true, false) => Compression::Lz4,
        (false, true) => Compression::Zstd,
        (true, true) => return Err(fail("an entry claims to be LZ4 and zstd at once".into())),
    };
    let (stored, size) = match compression {
        Compression::None => (payload, payload.len() as u64),
        _ => {
            let stored = payload.get(..compressed).ok_or_else(|| {
                fail(format!("an entry claims {compressed} compressed bytes in a payload of {}", payload.len()))
            })?;
            (stored, u64_at(header, 56))
        }
    };
    let whole = Entry {
        arch: arch(header),
        kind: kind(u16_at(header, 0)),
        compression,
        offset: offset + header_size,
        size,
        stored,
        payload: size,
        part: None,
    };
    if u16_at(header, 0) == KIND_CONCATENATED {
        concatenated(header, &whole, entries)
            .ok_or_else(|| fail("the directory of an entry with several cubins is malformed".into()))?;
    } else {
        entries.push(whole);
    }
    Ok(())
}

/// The directory of an entry of kind 256, after its header: a count, its size, and entry headers
/// whose second word is not their size but their payload's offset.
fn concatenated<'a>(header: &'a [u8], whole: &Entry<'a>, entries: &mut Vec<Entry<'a>>) -> Option<()> {
    let directory = header.get(ENTRY_SIZE..)?;
    let count = u32_at(directory.get(..8)?, 0) as usize;
    let list = directory.get(8..)?.get(..count.checked_mul(ENTRY_SIZE)?)?;
    for inner in list.as_chunks::<ENTRY_SIZE>().0 {
        let start = u32_at(inner, 4) as usize;
        let size = u64_at(inner, 8);
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        if end as u64 > whole.payload {
            return None;
        }
        entries.push(Entry {
            arch: arch(inner),
            kind: kind(u16_at(inner, 0)),
            size,
            part: Some(start..end),
            ..whole.clone()
        });
    }
    Some(())
}

fn kind(number: u16) -> EntryKind {
    match number {
        1 => EntryKind::Ptx,
        2 => EntryKind::Cubin,
        n => EntryKind::Other(n),
    }
}

fn arch(header: &[u8]) -> Arch {
    let flags = u64_at(header, 40);
    let variant = if flags & FLAG_ACCELERATED != 0 {
        Variant::Accelerated
    } else if flags & FLAG_FAMILY != 0 {
        Variant::Family
    } else {
        Variant::Base
    };
    Arch { sm: u32_at(header, 28) as u16, variant }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u64_at(bytes, at) as u16
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u64_at(bytes, at) as u32
}

/// Up to eight little-endian bytes from `at` on; missing ones are zero.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let tail = bytes.get(at..).unwrap_or(&[]);
    let n = tail.len().min(8);
    word[..n].copy_from_slice(&tail[..n]);
    u64::from_le_bytes(word)
}
