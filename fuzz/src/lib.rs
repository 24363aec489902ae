//! What is fuzzed: functions that take any bytes and must return.
//!
//! A target reads everything that can be read from its input. A panic, a hang or unbounded memory is a finding;
//! an error is not.

use lanescope_sass::container::{LineKind, Lines, Module, open};
use lanescope_sass::flow::FlowReader;
use lanescope_sass::isa::{Arch, Decoder};
use lanescope_sass::isa64;

/// Cubins, fatbins, host files and static libraries.
pub fn container(data: &[u8]) {
    let Ok(container) = open(data) else { return };
    // A hostile file may repeat the same expensive entry; real ones need one look at each.
    for entry in container.entries.iter().take(16) {
        let Ok(bytes) = entry.bytes() else { continue };
        let Ok(module) = Module::parse(&bytes) else { continue };
        read(&module);
    }
    for error in container.warnings.iter().take(4) {
        assert!(!error.to_string().is_empty());
    }
}

fn read(module: &Module<'_>) {
    for section in 0..module.sections.len() {
        let Ok(relocations) = module.relocations(section) else { continue };
        let mut data = module.sections[section].data.to_vec();
        for relocation in &relocations {
            let value = module.symbols[relocation.symbol].value.wrapping_add_signed(relocation.addend);
            let _ = module.apply(section, relocation, &mut data, value);
        }
    }
    for kind in [LineKind::Source, LineKind::Ptx] {
        if let Ok(lines) = module.lines(kind) {
            walk(module, &lines);
        }
    }
    for function in &module.functions {
        assert!(module.function_of_section(function.section).is_some());
        for attribute in &function.attributes {
            let _ = (attribute.name(), attribute.number(), attribute.words().count());
        }
    }
}

fn walk(module: &Module<'_>, lines: &Lines) {
    let mut left = 100_000;
    for function in &module.functions {
        for pc in (0..function.text.len() as u64).step_by(16) {
            let _ = function.subroutine_at(pc);
            for frame in lines.frames(function.section, pc) {
                left -= 1;
                if left == 0 {
                    return;
                }
                let _ = (frame.line, frame.function);
            }
        }
    }
}

/// Instruction words: the first byte picks the architecture, each further 16 are one instruction.
pub fn decoder(data: &[u8]) {
    thread_local! {
        static DECODERS: Vec<Decoder> = Arch::supported().filter_map(|arch| Decoder::new(arch).ok()).collect();
    }
    let Some((&pick, words)) = data.split_first() else { return };
    DECODERS.with(|decoders| {
        let decoder = &decoders[usize::from(pick) % decoders.len()];
        for (index, word) in words.as_chunks::<16>().0.iter().enumerate() {
            let raw = u128::from_le_bytes(*word);
            match decoder.decode((index * 16) as u32, raw) {
                Ok(instruction) => {
                    assert_eq!(instruction.raw, raw);
                    assert!(!instruction.to_string().is_empty());
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    });
}

/// The control flow of a cubin's functions, as the code of its own architecture and as 64-bit instructions, and what the
/// uniformity analysis says of the kernels.
pub fn survey(data: &[u8]) {
    use lanescope::analysis::reconvergence;
    use lanescope::analysis::regions::Structure;
    use lanescope::analysis::uniformity::{Facts, Uniformity};
    let Ok(module) = Module::parse(data) else { return };
    for function in module.functions.iter().take(16) {
        for sm in [u32::from(module.arch.sm), 60] {
            let Ok(reader) = FlowReader::new(sm) else { continue };
            let Ok(flow) = reader.read(function) else { continue };
            assert!(flow.code.insts.len() == flow.instructions as usize);
            if let Ok(found) = reconvergence::survey(&flow.code) {
                assert!(found.branches.len() <= flow.code.insts.len());
            }
            let _ = reconvergence::regions(&flow.code);
        }
        if let Ok(kernel) = lanescope_sass::kernel::load_code(&module, &function.name, &Default::default()) {
            let found = Uniformity::new(&kernel, &Structure::new(&kernel), &Facts::default());
            assert!(found.branches.iter().all(|b| (b.inst as usize) < kernel.instructions.len()));
        }
    }
    for (pc, raw) in isa64::Code::new(data) {
        match isa64::decode(pc, raw) {
            Ok(decoded) => assert!(!decoded.to_string().is_empty()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Launch files.
pub fn launch(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = lanescope::launch::parse("fuzz.toml", &text) {
        assert!(!error.to_string().is_empty());
    }
}

/// PTX text, and its diagnostics as a terminal shows them.
pub fn ptx(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parsed = lanescope_ptx::parse(&text);
    for function in &parsed.module.functions {
        let Some(body) = &function.body else { continue };
        for instruction in &body.instructions {
            let _ =
                (parsed.module.opcode(instruction.opcode), body.call_of(instruction), body.location_of(instruction));
            assert!(body.operands_of(instruction).len() == instruction.operands.len as usize);
        }
    }
    let lines = lanescope_ptx::LineIndex::new(&text);
    let renderer = annotate_snippets::Renderer::plain();
    for diagnostic in parsed.diagnostics.iter().take(16) {
        assert!(!lanescope_ptx::render::one(diagnostic, &text, &lines, "input.ptx", &renderer).is_empty());
    }
}
