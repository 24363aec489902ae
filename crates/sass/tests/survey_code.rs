//! Control flow as the survey reads it, class patching, and damaged code. Nothing may panic.

use lanescope_ir::flow::RegionClass;
use lanescope_sass::container::Module;
use lanescope_sass::flow::{FlowReader, of_function};
use lanescope_sass::isa64;
use lanescope_sass::patch::{PatchError, set_class};

fn cubin(name: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");
    std::fs::read(format!("{path}{name}")).expect("an example's cubin")
}

/// Byte offsets of the instructions of a kernel whose opcode starts like this, with their texts.
fn find(bytes: &[u8], kernel: &str, opcodes: &[&str]) -> Vec<(u32, String)> {
    let module = Module::parse(bytes).expect("cubin");
    let decoder = lanescope_sass::isa::Arch::from_sm(module.arch.sm.into())
        .map(|arch| lanescope_sass::isa::Decoder::new(arch).expect("tables"))
        .expect("known");
    let text = module.function(kernel).expect("kernel").text;
    (0u32..)
        .step_by(16)
        .zip(text.as_chunks::<16>().0)
        .filter_map(|(pc, word)| Some((pc, decoder.decode(pc, u128::from_le_bytes(*word)).ok()?)))
        .filter(|(_, inst)| opcodes.contains(&inst.mnemonic))
        .map(|(pc, inst)| (pc, inst.to_string()))
        .collect()
}

#[test]
fn classes_change_and_nothing_else() {
    let bytes = cubin("moe/moe.sm_100.cubin");
    let kernel = Module::parse(&bytes).expect("cubin").kernels().next().expect("one").name.to_string();
    let members = find(&bytes, &kernel, &["BSSY", "BSYNC"]);
    assert!(!members.is_empty() && members.iter().all(|m| m.1.contains(".RECONVERGENT")), "{members:?}");
    let pcs: Vec<u32> = members.iter().map(|m| m.0).collect();
    let done = set_class(&bytes, &kernel, &pcs, RegionClass::Plain).expect("patches");
    assert_eq!(done.changes.len(), pcs.len());
    // One bit of one byte in each.
    let differ: Vec<_> = bytes.iter().zip(&done.bytes).filter(|(a, b)| a != b).collect();
    assert_eq!(differ.len(), pcs.len());
    assert!(differ.iter().all(|(a, b)| *a ^ *b == 2));
    assert!(find(&done.bytes, &kernel, &["BSSY", "BSYNC"]).iter().all(|m| !m.1.contains('.')));
    assert!(!done.second_encodings.is_empty(), "sm_100 cubins carry a second encoding");
    // There and back again.
    let back = set_class(&done.bytes, &kernel, &pcs, RegionClass::Reconvergent).expect("patches");
    assert!(back.bytes == bytes);
}

#[test]
fn what_has_no_class_is_refused() {
    let new = cubin("moe/moe.sm_100.cubin");
    let kernel = Module::parse(&new).expect("cubin").kernels().next().expect("one").name.to_string();
    let plain = RegionClass::Plain;
    assert!(matches!(set_class(&new, &kernel, &[0], plain), Err(PatchError::NotARegion { pc: 0, .. })));
    assert!(matches!(set_class(&new, &kernel, &[8], plain), Err(PatchError::NoInstruction(8))));
    assert!(matches!(set_class(&new, "nothing", &[0], plain), Err(PatchError::NoFunction(_))));
    let old = cubin("moe/moe.sm_90.cubin");
    assert!(matches!(set_class(&old, &kernel, &[0], plain), Err(PatchError::NoClass(_))));
}

#[test]
fn inventories_name_what_steers() {
    let bytes = cubin("moe/moe.sm_100.cubin");
    let module = Module::parse(&bytes).expect("cubin");
    for f in &module.functions {
        let flow = of_function(&module, &f.name).expect("there").expect("readable");
        assert!(flow.undecoded.is_none() && flow.opcodes.contains_key("EXIT"));
        let count = |name: &str| flow.opcodes.get(name).copied().unwrap_or(0);
        assert_eq!(count("BSSY.RECONVERGENT"), count("BSYNC.RECONVERGENT"));
        assert!(!flow.opcodes.keys().any(|k| k.starts_with("IADD")));
        assert_eq!(flow.code.insts.len(), flow.instructions as usize);
    }
}

#[test]
fn damaged_code_is_read_or_refused() {
    let wide = cubin("moe/moe.sm_90.cubin");
    let module = Module::parse(&wide).expect("cubin");
    let function = module.kernels().next().expect("one");
    let readers = [FlowReader::new(90).expect("known"), FlowReader::new(60).expect("known")];
    assert!(FlowReader::new(40).is_err() && isa64::is_narrow(50));
    arbtest::arbtest(|u| {
        let mut text = function.text.to_vec();
        for _ in 0..u.int_in_range(0..=12)? {
            let at = u.choose_index(text.len())?;
            text[at] = u.arbitrary()?;
        }
        text.truncate(u.int_in_range(0..=text.len())?);
        let mut damaged = function.clone();
        damaged.text = &text;
        for branch in &mut damaged.indirect_branches {
            branch.targets.push(u.arbitrary()?);
        }
        for reader in &readers {
            if let Ok(flow) = reader.read(&damaged) {
                assert_eq!(flow.code.insts.len(), flow.instructions as usize);
                if let Ok(found) = lanescope_analysis::reconvergence::survey(&flow.code) {
                    assert!(found.branches.len() <= flow.code.insts.len());
                }
                let _ = lanescope_analysis::reconvergence::regions(&flow.code);
            }
        }
        Ok(())
    });
}
