//! Hostile and damaged containers: each is refused with the exact fact, and never crashes.

use lanescope_sass::container::{Error, LineKind, Module, Relocation, RelocationKind, open};

const CUBIN: &[u8] = include_bytes!("container/nest.cuda12.sm_90.cubin");
const FACTS: &[u8] = include_bytes!("container/facts.cuda13.sm_90.cubin");
const LZ4: &[u8] = include_bytes!("container/lz4.fatbin");
const ZSTD: &[u8] = include_bytes!("container/zstd.fatbin");

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Offset of the header of section `name`.
fn section_header(bytes: &[u8], name: &str) -> usize {
    let table = u64::from_le_bytes(bytes[0x28..0x30].try_into().unwrap()) as usize;
    table + 64 * Module::parse(bytes).unwrap().section(name).unwrap().0
}

fn message(bytes: &[u8]) -> String {
    open(bytes).unwrap_err().to_string()
}

#[test]
fn other_files_are_named() {
    assert_eq!(open(b"").unwrap_err(), Error::Empty);
    assert_eq!(Module::parse(b"").unwrap_err(), Error::Empty);
    for (bytes, expected) in [
        (&b"MZ\x90\0"[..], "PE file"),
        (b"NVR\0\x02\0", "Nsight Compute report"),
        (b".version 8.0\n.target sm_90\n", "PTX text"),
        (b"__global__ void k() {}\n", "CUDA source"),
        (b"hello\n", "text"),
        (b"PK\x03\x04\x14", "zip archive"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x93NUMPY\x01\0", "NumPy"),
        (b"\x28\xb5\x2f\xfd\0", "zstd"),
        (b"\x01\x02\x03", "magic number is unknown"),
    ] {
        assert!(message(bytes).contains(expected), "{}", message(bytes));
        assert!(Module::parse(bytes).unwrap_err().to_string().contains(expected));
    }
}

#[test]
fn other_elf_files_are_named() {
    let mut elf32 = CUBIN.to_vec();
    elf32[4] = 1;
    assert!(message(&elf32).contains("32-bit"));
    let mut big_endian = CUBIN.to_vec();
    big_endian[5] = 2;
    assert!(message(&big_endian).contains("big endian"));
    let mut host = CUBIN.to_vec();
    put(&mut host, 18, &62u16.to_le_bytes());
    assert_eq!(Module::parse(&host).unwrap_err(), Error::NotCuda { machine: 62 });
    assert!(matches!(open(&host).unwrap_err(), Error::NoGpuCode { .. }));
    let mut abi = CUBIN.to_vec();
    abi[7] = 0x99;
    assert_eq!(Module::parse(&abi).unwrap_err(), Error::UnknownAbi { osabi: 0x99 });
    assert_eq!(open(&abi).unwrap_err(), Error::UnknownAbi { osabi: 0x99 });
}

#[test]
fn every_truncation_is_an_error() {
    for len in 0..CUBIN.len() {
        let cut = &CUBIN[..len];
        if let Ok(module) = Module::parse(cut) {
            panic!("{len} of {} bytes gave {} kernels", CUBIN.len(), module.kernels().count());
        }
    }
    for fatbin in [LZ4, ZSTD] {
        for len in 0..fatbin.len() {
            match open(&fatbin[..len]) {
                Ok(container) => assert!(!container.warnings.is_empty(), "{len}"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn a_section_past_the_end_is_named_with_its_offset() {
    let mut bytes = CUBIN.to_vec();
    let at = section_header(CUBIN, ".text.nest");
    put(&mut bytes, at + 24, &0x7fff_ffff_0000u64.to_le_bytes());
    let error = Module::parse(&bytes).unwrap_err();
    assert!(matches!(&error, Error::OutOfBounds { what, offset: 0x7fff_ffff_0000, .. } if what.contains(".text.nest")));
    // Offset plus size wraps round.
    put(&mut bytes, at + 24, &u64::MAX.to_le_bytes());
    assert!(matches!(Module::parse(&bytes).unwrap_err(), Error::OutOfBounds { offset: u64::MAX, .. }));
    // A section that nothing depends on is a warning only.
    let mut bytes = CUBIN.to_vec();
    put(&mut bytes, section_header(CUBIN, ".debug_frame") + 32, &u64::MAX.to_le_bytes());
    let module = Module::parse(&bytes).unwrap();
    assert_eq!((module.kernels().count(), module.warnings.len()), (1, 1));
}

#[test]
fn tables_of_a_billion_entries_are_refused_at_once() {
    // e_shnum 0 defers to section 0's size.
    let mut bytes = CUBIN.to_vec();
    let table = u64::from_le_bytes(CUBIN[0x28..0x30].try_into().unwrap()) as usize;
    put(&mut bytes, 0x3c, &[0, 0]);
    put(&mut bytes, table + 32, &1_000_000_000u64.to_le_bytes());
    let error = Module::parse(&bytes).unwrap_err();
    assert!(error.to_string().contains("section table of 1000000000 entries"), "{error}");
    put(&mut bytes, table + 32, &u64::MAX.to_le_bytes());
    assert!(matches!(Module::parse(&bytes).unwrap_err(), Error::OutOfBounds { .. }));

    let mut bytes = CUBIN.to_vec();
    put(&mut bytes, section_header(CUBIN, ".symtab") + 32, &24_000_000_000u64.to_le_bytes());
    let error = Module::parse(&bytes).unwrap_err();
    assert!(matches!(&error, Error::OutOfBounds { what, size: 24_000_000_000, .. } if what.contains(".symtab")));

    let mut bytes = CUBIN.to_vec();
    put(&mut bytes, 0x3a, &1u16.to_le_bytes());
    assert!(matches!(Module::parse(&bytes).unwrap_err(), Error::EntrySize { found: 1, expected: 64, .. }));
}

#[test]
fn overlapping_sections_and_names_do_not_multiply_work() {
    // All sections are the whole file.
    let mut bytes = FACTS.to_vec();
    let table = u64::from_le_bytes(FACTS[0x28..0x30].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes([FACTS[0x3c], FACTS[0x3d]]));
    let len = FACTS.len() as u64;
    for section in 4..count {
        put(&mut bytes, table + 64 * section + 24, &0u64.to_le_bytes());
        put(&mut bytes, table + 64 * section + 32, &len.to_le_bytes());
    }
    assert!(matches!(Module::parse(&bytes).unwrap_err(), Error::Overlap { .. }));

    // 20,000 symbols share one name of a megabyte.
    let mut bytes = CUBIN.to_vec();
    let strings = bytes.len() as u64;
    bytes.extend(std::iter::repeat_n(b'a', 1 << 20));
    let symbols = bytes.len() as u64;
    bytes.extend(std::iter::repeat_n(0, 24 * 20_000));
    for (name, offset, size) in [(".strtab", strings, 1 << 20), (".symtab", symbols, 24 * 20_000u64)] {
        let at = section_header(CUBIN, name);
        put(&mut bytes, at + 24, &offset.to_le_bytes());
        put(&mut bytes, at + 32, &size.to_le_bytes());
    }
    assert!(matches!(Module::parse(&bytes).unwrap_err(), Error::NamesTooLong { what: "symbol", .. }));
}

#[test]
fn wrong_links_are_named() {
    let mut bytes = CUBIN.to_vec();
    put(&mut bytes, section_header(CUBIN, ".symtab") + 40, &9999u32.to_le_bytes());
    assert!(matches!(Module::parse(&bytes).unwrap_err(), Error::SectionIndex { index: 9999, .. }));
    let mut bytes = CUBIN.to_vec();
    put(&mut bytes, 0x3e, &9999u16.to_le_bytes());
    assert!(matches!(Module::parse(&bytes).unwrap_err(), Error::SectionIndex { index: 9999, .. }));
    // A relocation to a symbol that is not there.
    let module = Module::parse(CUBIN).unwrap();
    let (lines, _) = module.section(".debug_line").unwrap();
    let table = module.section(".rela.debug_line").unwrap().1.offset as usize;
    let mut bytes = CUBIN.to_vec();
    put(&mut bytes, table + 12, &7777u32.to_le_bytes());
    let module = Module::parse(&bytes).unwrap();
    assert!(matches!(module.relocations(lines).unwrap_err(), Error::SymbolIndex { index: 7777, .. }));
    assert!(module.lines(LineKind::Source).is_err());
}

#[test]
fn broken_attributes_are_warnings_with_their_offset() {
    let info = Module::parse(CUBIN).unwrap().section(".nv.info.nest").unwrap().1.offset as usize;
    let mut bytes = CUBIN.to_vec();
    put(&mut bytes, info + 2, &0xffffu16.to_le_bytes());
    let module = Module::parse(&bytes).unwrap();
    assert!(
        matches!(&module.warnings[..], [Error::Attribute { offset: 0, section, .. }] if section == ".nv.info.nest")
    );
    bytes[info] = 9;
    assert!(Module::parse(&bytes).unwrap().warnings[0].to_string().contains("unknown format 9"));
}

#[test]
fn broken_lines_name_their_unit() {
    let section = Module::parse(CUBIN).unwrap().section(".debug_line").unwrap().1.offset as usize;
    let lines = |bytes: &[u8]| Module::parse(bytes).unwrap().lines(LineKind::Source);
    let mut bytes = CUBIN.to_vec();
    put(&mut bytes, section, &0x00ff_ffffu32.to_le_bytes());
    assert!(lines(&bytes).unwrap_err().to_string().contains("longer than its section"));
    put(&mut bytes, section, &u32::MAX.to_le_bytes());
    assert!(lines(&bytes).unwrap_err().to_string().contains("64-bit"));
    let mut bytes = CUBIN.to_vec();
    put(&mut bytes, section + 4, &5u16.to_le_bytes());
    assert!(lines(&bytes).unwrap().warnings[0].to_string().contains("version 5"));
    // A call site that comes later could close a circle. 0x4e is the first 0x90 opcode of the program.
    let mut bytes = CUBIN.to_vec();
    let call = (section..).find(|&at| bytes[at..].starts_with(&[0, 3, 0x90])).unwrap();
    bytes[call + 3] = 127;
    assert!(lines(&bytes).unwrap().warnings[0].to_string().contains("before it exists"));
}

#[test]
fn relocations_are_refused_by_name() {
    let module = Module::parse(FACTS).unwrap();
    let text = module.function("bounds").unwrap().section;
    let apply = |kind, offset, value| {
        let relocation = Relocation { offset, kind: RelocationKind(kind), symbol: 0, addend: 0 };
        module.apply(text, &relocation, &mut [0; 64], value).unwrap_err()
    };
    assert_eq!(
        apply(43, 0, 0).to_string(),
        "relocation R_CUDA_ABS32_LO_20 (type 43) at 0x0 of .text.bounds is not implemented"
    );
    assert!(matches!(apply(4000, 0, 0), Error::RelocationKind { name: "unknown", .. }));
    assert!(matches!(apply(56, 56, 0), Error::OutOfBounds { offset: 56, size: 16, len: 64, .. }));
    assert!(matches!(apply(56, u64::MAX, 0), Error::OutOfBounds { .. }));
    assert!(matches!(apply(59, 0, 0x1_0000), Error::RelocationRange { bits: 16, .. }));
    assert!(matches!(apply(75, 0, 2), Error::RelocationRange { .. }));
}

#[test]
fn a_broken_entry_leaves_the_others() {
    // The first entry claims more compressed bytes than it has.
    let mut bytes = LZ4.to_vec();
    put(&mut bytes, 16 + 16, &0xffff_ffffu32.to_le_bytes());
    let container = open(&bytes).unwrap();
    assert_eq!((container.entries.len(), container.warnings.len()), (1, 1));
    assert!(container.warnings[0].to_string().contains("0x10"), "{}", container.warnings[0]);
    // It claims to be a gigabyte.
    for (file, method) in [(LZ4, "LZ4"), (ZSTD, "zstd")] {
        for claim in [1u64 << 30, u64::MAX] {
            let mut bytes = file.to_vec();
            put(&mut bytes, 16 + 56, &claim.to_le_bytes());
            let container = open(&bytes).unwrap();
            let error = container.entries[0].bytes().unwrap_err();
            assert!(matches!(&error, Error::Decompress { method: m, offset: 80, .. } if *m == method), "{error}");
            assert!(container.entries[1].bytes().is_ok());
        }
        // One byte more or less than there is, and rubbish.
        for claim in [9783u64, 9785] {
            let mut bytes = file.to_vec();
            put(&mut bytes, 16 + 56, &claim.to_le_bytes());
            assert!(open(&bytes).unwrap().entries[0].bytes().is_err());
        }
        let mut bytes = file.to_vec();
        bytes[80..700].fill(0xff);
        assert!(open(&bytes).unwrap().entries[0].bytes().is_err());
    }
    // A window of terabytes in a frame of a few bytes.
    let mut bytes = ZSTD.to_vec();
    put(&mut bytes, 84, &[0, 0xff]);
    assert!(open(&bytes).unwrap().entries[0].bytes().unwrap_err().to_string().contains("window"));
}

#[test]
fn fatbin_headers_that_make_no_progress_end() {
    let mut bytes = LZ4.to_vec();
    put(&mut bytes, 4, &2u16.to_le_bytes());
    assert!(open(&bytes).unwrap_err().to_string().contains("version 2"));
    let mut bytes = LZ4.to_vec();
    put(&mut bytes, 6, &0u16.to_le_bytes());
    assert!(open(&bytes).is_err());
    let mut bytes = LZ4.to_vec();
    put(&mut bytes, 20, &0u32.to_le_bytes());
    assert!(open(&bytes).unwrap_err().to_string().contains("header claims 0 bytes"));
    let mut bytes = LZ4.to_vec();
    put(&mut bytes, 8, &u64::MAX.to_le_bytes());
    let container = open(&bytes).unwrap();
    assert_eq!((container.entries.len(), container.warnings.len()), (2, 1));
    // Magic numbers one after another.
    let magics = LZ4[..4].repeat(100_000);
    assert!(open(&magics).is_err());
    // Static libraries with members of absurd size.
    for size in ["99999999999", "", "-1", "x"] {
        let archive = format!("!<arch>\n{:<48}{size:<10}`\n", "m/");
        assert!(matches!(open(archive.as_bytes()).unwrap_err(), Error::OutOfBounds { .. }));
    }
}
