//! Cubins, fatbins and host files against what NVIDIA's own tools print for them.
//!
//! The cubins are `container/nest.cu` and `container/facts.cu` built by NVRTC 12.9 and 13.5; the
//! expected figures are cuobjdump's and nvdisasm's, the linked cubin is nvlink's.

use lanescope_sass::container::{
    Arch, Compression, ContainerKind, EntryKind, Layout, LineKind, Lines, Module, ParamBank, Relocation,
    RelocationKind, StackSize, Variant, open,
};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("container/", $name)).as_slice()
    };
}

#[test]
fn both_layouts_name_their_architecture() {
    for (bytes, sm, layout) in [
        (data!("facts.cuda12.sm_80.cubin"), 80, Layout::Old),
        (data!("nest.cuda12.sm_90.cubin"), 90, Layout::Old),
        (data!("facts.cuda13.sm_90.cubin"), 90, Layout::New),
        (data!("nest.cuda13.sm_100.cubin"), 100, Layout::New),
    ] {
        let module = Module::parse(bytes).unwrap();
        assert_eq!((module.arch, module.layout), (Arch::new(sm), layout));
        assert_eq!(module.warnings, []);
        assert!(!module.relocatable);
    }
    assert!(Module::parse(data!("facts.rdc.cuda13.sm_90.cubin")).unwrap().relocatable);
}

#[test]
fn variants_are_told_apart() {
    // Old layout: bit 11 of e_flags, as CUDA 12 sets it for sm_90a.
    let mut bytes = data!("nest.cuda12.sm_90.cubin").to_vec();
    bytes[49] |= 8;
    let arch = Module::parse(&bytes).unwrap().arch;
    assert_eq!((arch.variant, arch.to_string().as_str()), (Variant::Accelerated, "sm_90a"));
    // New layout: bit 3, as CUDA 12 sets it for sm_100a.
    let mut bytes = data!("nest.cuda13.sm_100.cubin").to_vec();
    bytes[48] |= 8;
    assert_eq!(Module::parse(&bytes).unwrap().arch.to_string(), "sm_100a");
    // CUDA 13 leaves the flag alone and sets attribute 9 of .nv.compat.
    let mut bytes = data!("nest.cuda13.sm_100.cubin").to_vec();
    let at = Module::parse(&bytes).unwrap().section(".nv.compat").unwrap().1.offset as usize;
    assert_eq!(bytes[at..at + 4], [2, 9, 0, 0]);
    bytes[at + 2] = 1;
    assert_eq!(Module::parse(&bytes).unwrap().arch.to_string(), "sm_100a");
}

/// `cuobjdump -res-usage`: registers, stack, shared bytes.
#[test]
fn kernels_have_the_resources_that_cuobjdump_prints() {
    const UNKNOWN: StackSize = StackSize::Unbounded;
    const fn bytes(n: u32) -> StackSize {
        StackSize::Bytes(n)
    }
    let old = [
        ("pointer", 24, bytes(0), 0),
        ("select", 10, bytes(0), 0),
        ("stack", 33, bytes(256), 0),
        ("globals", 18, bytes(0), 0),
        ("big", 8, bytes(0), 0),
        ("bounds", 25, bytes(0), 1024),
    ];
    let new = [
        ("pointer", 24, bytes(0), 1024),
        ("recursion", 24, UNKNOWN, 1024),
        ("select", 10, bytes(0), 1024),
        ("stack", 33, bytes(256), 1024),
        ("globals", 16, bytes(0), 1024),
        ("big", 8, bytes(0), 1024),
        ("bounds", 26, bytes(0), 2048),
    ];
    let files = [(data!("facts.cuda12.sm_80.cubin"), &old[..]), (data!("facts.cuda13.sm_90.cubin"), &new[..])];
    for (file, expected) in files {
        let module = Module::parse(file).unwrap();
        assert_eq!(module.kernels().count(), 7);
        for &(name, registers, stack, shared) in expected {
            let kernel = module.function(name).unwrap();
            assert!(kernel.is_kernel());
            assert_eq!(
                (kernel.registers, kernel.stack_size, kernel.shared_size),
                (Some(registers), Some(stack), shared),
                "{name}"
            );
        }
        assert_eq!(module.function("stack").unwrap().frame_size, Some(256));
        let bounds = module.function("bounds").unwrap();
        assert_eq!((bounds.max_threads, bounds.required_block, bounds.barriers), (Some([128, 1, 1]), None, 1));
    }
}

#[test]
fn parameters_lie_where_the_attributes_say() {
    let bounds = vec![(0, 0, 8), (1, 8, 4), (2, 12, 2), (3, 14, 1)];
    // Parameters of more than 4 KiB use another attribute, and CUDA 12 moves them on sm_80.
    let big = vec![(0, 0, 8000), (1, 8000, 4), (2, 8008, 8)];
    for (file, bounds_base, big_base) in
        [(data!("facts.cuda12.sm_80.cubin"), 0x160, 0x1a80), (data!("facts.cuda13.sm_90.cubin"), 0x210, 0x210)]
    {
        let module = Module::parse(file).unwrap();
        for (name, places, base, size) in [("bounds", &bounds, bounds_base, 15), ("big", &big, big_base, 8016)] {
            let kernel = module.function(name).unwrap();
            let found: Vec<_> = kernel.params.iter().map(|p| (p.ordinal, p.offset, p.size)).collect();
            assert_eq!(found, *places);
            assert_eq!(kernel.param_bank, Some(ParamBank { offset: base, size }));
            assert_eq!(kernel.constant(0).unwrap().data.len() as u32, base + size);
        }
    }
}

#[test]
fn indirect_branches_and_their_table() {
    let module = Module::parse(data!("facts.cuda13.sm_90.cubin")).unwrap();
    let select = module.function("select").unwrap();
    let branches: Vec<_> = select.indirect_branches.iter().map(|b| (b.pc, b.targets.clone())).collect();
    assert_eq!(branches, [(0x90, vec![0x100, 0x140, 0xa0, 0x360]), (0x200, vec![0x270, 0x210, 0x360])]);
    let table: Vec<u32> =
        select.constant(2).unwrap().data.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    assert_eq!(table, [0x270, 0x210, 0x360, 0x100, 0x140, 0xa0, 0x360]);
    assert_eq!(select.exits, [0xf0, 0x130, 0x180, 0x260, 0x2c0, 0x350, 0x390, 0x410]);
}

#[test]
fn subroutines_are_found_by_offset() {
    let module = Module::parse(data!("facts.cuda13.sm_90.cubin")).unwrap();
    let pointer = module.function("pointer").unwrap();
    let list: Vec<_> = pointer.subroutines.iter().map(|s| (&*s.name, s.offset)).collect();
    assert_eq!(list, [("$pointer$_Z5twicef", 0x100), ("$pointer$_Z6squaref", 0x130)]);
    assert_eq!(pointer.subroutine_at(0xf0), None);
    assert_eq!(pointer.subroutine_at(0x110).unwrap().offset, 0x100);
    assert_eq!(pointer.subroutine_at(0x140).unwrap().offset, 0x130);
    // The last one's size includes the padding of the section.
    assert_eq!(pointer.subroutine_at(0x1f0).unwrap().offset, 0x130);
    assert_eq!(pointer.subroutine_at(0x200), None);
}

#[test]
fn variables_and_constants() {
    let module = Module::parse(data!("facts.cuda13.sm_90.cubin")).unwrap();
    let places: Vec<_> = module
        .globals
        .iter()
        .map(|g| {
            let mut symbols: Vec<_> = g
                .symbols
                .iter()
                .map(|&s| (&*module.symbols[s].name, module.symbols[s].value, module.symbols[s].size))
                .collect();
            symbols.sort_by_key(|s| s.1);
            (g.init.is_some(), g.size, symbols)
        })
        .collect();
    let init = vec![("into_table", 0, 8), ("pointers", 8, 16), ("counter", 0x18, 4), ("table", 0x1c, 16)];
    assert_eq!(places, [(true, 0x2c, init), (false, 0x190, vec![("zeroed", 0, 0x190)])]);
    let banks: Vec<_> = module.constants.iter().map(|c| (c.bank, c.data.len())).collect();
    assert_eq!(banks, [(4, 0x28), (3, 0x40)]);
    // A relocatable module's zeros have a section type of their own and no bytes in the file either.
    let relocatable = Module::parse(data!("facts.rdc.cuda13.sm_90.cubin")).unwrap();
    let zeros = relocatable.globals.iter().find(|g| g.size == 0x190).unwrap();
    assert_eq!(zeros.init, None);
}

/// Every line that nvdisasm prints, where it prints it: whenever the innermost line changes.
#[test]
fn lines_are_those_that_nvdisasm_prints() {
    let files = [
        (data!("nest.cuda12.sm_90.cubin"), include_str!("container/nest.cuda12.sm_90.lines")),
        (data!("nest.cuda13.sm_100.cubin"), include_str!("container/nest.cuda13.sm_100.lines")),
    ];
    for (file, expected) in files {
        let module = Module::parse(file).unwrap();
        let lines = module.lines(LineKind::Source).unwrap();
        assert_eq!(lines.warnings, []);
        let kernel = module.function("nest").unwrap();
        let mut text = String::new();
        let mut shown = None;
        for pc in (0..kernel.text.len() as u64).step_by(16) {
            let frames: Vec<_> = lines.frames(kernel.section, pc).map(|f| format!("{}:{}", f.path(), f.line)).collect();
            if frames.first() != shown.as_ref() {
                shown = frames.first().cloned();
                text += &format!("{pc:04x} {}\n", frames.join(" < "));
            }
        }
        assert_eq!(text, expected);
    }
}

#[test]
fn inlined_functions_are_named() {
    let module = Module::parse(data!("nest.cuda12.sm_90.cubin")).unwrap();
    let lines = module.lines(LineKind::Source).unwrap();
    let kernel = module.function("nest").unwrap();
    let frames: Vec<_> = lines.frames(kernel.section, 0x60).map(|f| (f.line, f.function)).collect();
    assert_eq!(frames, [(8, Some("_Z6middleiPi")), (13, Some("_Z5outerIiET_S0_Pi")), (16, None)]);
    // The PTX table has lines too, and no files.
    let ptx = module.lines(LineKind::Ptx).unwrap();
    assert_eq!(ptx.warnings, []);
    let frame = ptx.frames(kernel.section, 0).next().unwrap();
    assert_eq!((frame.file, frame.line), ("", 19));
    let nothing: Lines = Module::parse(data!("facts.cuda13.sm_90.cubin")).unwrap().lines(LineKind::Source).unwrap();
    assert!(nothing.is_empty() && nothing.frames(1, 0).next().is_none());
}

/// What the device linker resolved, done here: the patched code must equal the linked cubin's.
#[test]
fn applied_relocations_equal_the_linkers() {
    let object = Module::parse(data!("facts.rdc.cuda13.sm_90.cubin")).unwrap();
    let linked = Module::parse(data!("facts.linked.cuda13.sm_90.cubin")).unwrap();
    let mut resolved = std::collections::BTreeSet::new();
    for function in &object.functions {
        let expected = linked.function(&function.name).unwrap().text;
        let mut text = function.text.to_vec();
        for relocation in object.relocations(function.section).unwrap() {
            let symbol = &object.symbols[relocation.symbol];
            let start = match &*symbol.name {
                // Shared memory: the 1024 static bytes first, then the dynamic ones.
                "d" => 0x400,
                name if name.contains("boundsE1s") => 0,
                _ => symbol.value,
            };
            let mut value = start.wrapping_add_signed(relocation.addend);
            match relocation.kind.name() {
                "R_CUDA_CONST_FIELD21_38" => {
                    assert!(relocation.kind.wants_bank());
                    value = 2 << 16 | value & 0xffff;
                }
                "R_CUDA_ABS16_32" | "R_CUDA_ABS32_32" => {}
                // Addresses are the driver's to choose; both files leave them open.
                _ => continue,
            }
            object.apply(function.section, &relocation, &mut text, value).unwrap();
            resolved.insert(relocation.kind.name());
        }
        assert_eq!(text, expected, "{}", function.name);
    }
    assert_eq!(resolved.len(), 3, "{resolved:?}");
}

/// Encodings with the operand that nvdisasm shows for them.
#[test]
fn code_addresses_are_split_as_nvdisasm_shows() {
    let module = Module::parse(data!("facts.cuda13.sm_90.cubin")).unwrap();
    let call = 0x023f_ea00_03c0_0000_0000_0000_0000_7943u128;
    for (kind, value, expected) in [
        ("R_CUDA_ABS55_16_34", 0x48d0, 0x023f_ea00_03c0_0000_0000_0048_0034_7943),
        ("R_CUDA_ABS55_16_34", 1 << 56, 0x023f_ea00_03c1_0000_0000_0000_0000_7943),
        ("R_CUDA_ABS55_16_34", 4, 0x023f_ea00_03c0_0000_0000_0000_0001_7943),
        // sm_80: CALL.ABS 0x48
        ("R_CUDA_ABS47_34", 0x48, 0x023f_ea00_03c0_0000_0000_0048_0000_7943),
        ("R_CUDA_ABS47_34", 1 << 48, 0x023f_ea00_03c1_0000_0000_0000_0000_7943),
    ] {
        let mut bytes = call.to_le_bytes();
        let number = (0..).find(|&n| RelocationKind(n).name() == kind).unwrap();
        let relocation = Relocation { offset: 0, kind: RelocationKind(number), symbol: 0, addend: 0 };
        module.apply(0, &relocation, &mut bytes, value).unwrap();
        assert_eq!(u128::from_le_bytes(bytes), expected, "{kind} {value:#x}");
    }
}

#[test]
fn fatbins_give_back_what_went_in() {
    let cubin = data!("nest.cuda12.sm_90.cubin");
    let files = [
        (data!("plain.fatbin"), Compression::None),
        (data!("lz4.fatbin"), Compression::Lz4),
        (data!("zstd.fatbin"), Compression::Zstd),
    ];
    for (file, compression) in files {
        let container = open(file).unwrap();
        assert_eq!((container.kind, container.warnings.len()), (ContainerKind::Fatbin, 0));
        let [first, second] = &container.entries[..] else { panic!("{} entries", container.entries.len()) };
        assert_eq!((first.arch, first.kind, first.compression), (Arch::new(90), EntryKind::Cubin, compression));
        assert_eq!(first.bytes().unwrap(), cubin);
        assert_eq!((second.arch, second.kind), (Arch::new(80), EntryKind::Ptx));
        assert!(second.bytes().unwrap().starts_with(data!("empty.ptx")));
    }
    // Several cubins compressed as one.
    let container = open(data!("concat.fatbin")).unwrap();
    let bytes: Vec<_> = container.cubins().map(|e| e.bytes().unwrap()).collect();
    assert_eq!(bytes, [cubin, data!("nest.cuda13.sm_100.cubin")]);
}

#[test]
fn host_files_and_static_libraries() {
    let host = data!("host.o");
    let container = open(host).unwrap();
    assert_eq!((container.kind, container.entries.len(), container.warnings.len()), (ContainerKind::Host, 6, 0));
    for entry in container.cubins() {
        assert_eq!(entry.bytes().unwrap(), data!("nest.cuda12.sm_90.cubin"));
        let head = &host[entry.offset..];
        assert!(entry.compression == Compression::Lz4 || head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    }
    let mut archive = b"!<arch>\n".to_vec();
    for member in [host, b"odd".as_slice(), host] {
        archive.extend(format!("{:<48}{:<10}`\n", "member/", member.len()).bytes());
        archive.extend(member);
        archive.extend(&b"\n"[..member.len() % 2]);
    }
    let library = open(&archive).unwrap();
    assert_eq!((library.kind, library.entries.len(), library.warnings.len()), (ContainerKind::Archive, 12, 0));
    let module = open(data!("nest.cuda12.sm_90.cubin")).unwrap();
    assert_eq!((module.kind, module.entries.len()), (ContainerKind::Cubin, 1));
}
