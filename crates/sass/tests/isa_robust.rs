//! Any 128 bits decode or are refused with their bits and address; nothing panics, nothing is guessed.

use lanescope_sass::isa::inst::{Bank, Operand};
use lanescope_sass::isa::{Arch, DecodeError, Decoder};

fn decoders() -> Vec<Decoder> {
    Arch::supported().map(|arch| Decoder::new(arch).expect("tables")).collect()
}

/// What must hold for any outcome.
fn check(decoder: &Decoder, pc: u32, raw: u128) {
    match decoder.decode(pc, raw) {
        Ok(inst) => {
            assert_eq!((inst.pc, inst.raw), (pc, raw));
            assert!(!inst.mnemonic.is_empty() && !inst.mnemonic.contains('.'));
            assert!(inst.guard.index <= 7);
            for modifier in &inst.mods {
                assert!(!modifier.is_empty() && !modifier.contains('.'), "{modifier:?}");
            }
            for operand in &inst.operands {
                check_operand(operand);
            }
            let text = inst.to_string();
            assert!(!text.contains('\n') && text.contains(inst.mnemonic));
        }
        Err(error) => {
            assert_eq!((error.pc(), error.raw()), (pc, raw));
            let text = error.to_string();
            assert!(!text.contains('\n') && text.contains(&format!("{raw:#034x}")), "{text}");
        }
    }
}

fn check_operand(operand: &Operand) {
    assert!(!operand.to_string().is_empty());
    match operand {
        Operand::Reg(register) => assert!(!register.suffix.starts_with('.')),
        Operand::Pred(predicate) => assert!(predicate.index <= 7),
        Operand::Const(constant) => {
            assert!(matches!(constant.bank, Bank::Uniform(_)) || constant.offset.abs() < 1 << 20);
        }
        _ => {}
    }
}

#[test]
fn random_words() {
    let decoders = decoders();
    arbtest::arbtest(|input| {
        let (pc, raw) = (input.arbitrary()?, input.arbitrary()?);
        for decoder in &decoders {
            check(decoder, pc, raw);
        }
        Ok(())
    });
}

/// Random bits rarely hit an opcode, so every opcode is tried with several bodies.
#[test]
fn every_opcode_with_various_bodies() {
    let decoders = decoders();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u128::from(state)
    };
    for opcode in 0..1u128 << 12 {
        let bodies = [0, u128::MAX, random() << 64 | random(), random() << 64 | random()];
        for body in bodies {
            let raw = body & !0xfff | opcode;
            for decoder in &decoders {
                check(decoder, 0xffff_fff0, raw);
            }
        }
    }
}

#[test]
fn unknown_words_are_refused_by_name() {
    let arch = Arch::from_sm(90).expect("supported");
    let decoder = Decoder::new(arch).expect("tables");
    let error = decoder.decode(0x40, 0).expect_err("all zero is no instruction");
    assert_eq!(error, DecodeError::UnknownOpcode { pc: 0x40, raw: 0, arch });
    assert_eq!(
        error.to_string(),
        "unknown instruction 0x00000000000000000000000000000000 at 0x0040: no sm_90 instruction has opcode 0x000"
    );
}

/// The same opcode number means different instructions on different architectures.
#[test]
fn tables_are_keyed_by_architecture() {
    let mnemonic = |sm: u32, raw: u128| {
        let decoder = Decoder::new(Arch::from_sm(sm).expect("supported")).expect("tables");
        decoder.decode(0, raw).map(|inst| inst.to_string())
    };
    // Opcode 0x235: `IADD` of sm_120, `HFMA2.MMA` of sm_80.
    assert_eq!(mnemonic(120, 0x000f_e200_078e_0000_0000_00ff_0806_8235).as_deref(), Ok("@!P0 IADD R6, R8, RZ"));
    assert_eq!(mnemonic(80, 0x000f_e200_0010_00ff_0000_002e_0b12_7235).as_deref(), Ok("HFMA2.MMA R18, R11, R46, -RZ"));
}

#[test]
fn uniform_zero_is_255_everywhere() {
    let ureg = |sm: u32, raw: u128| {
        let decoder = Decoder::new(Arch::from_sm(sm).expect("supported")).expect("tables");
        let inst = decoder.decode(0, raw).expect("known");
        inst.operands.iter().find_map(|operand| match operand {
            Operand::Mem(memory) => memory.desc,
            _ => None,
        })
    };
    // `LDG.E R0, desc[URZ][R2.64]`: descriptor register 63 to sm_90, 255 from sm_100.
    let with_desc = |register: u128| 0x000f_e200_0c1e_1900_0000_0000_0200_0981 | 7 << 12 | register << 32;
    assert_eq!(ureg(90, with_desc(63)), Some(255));
    assert_eq!(ureg(100, with_desc(255)), Some(255));
    assert_eq!(ureg(90, with_desc(4)), Some(4));
    assert_eq!(ureg(120, with_desc(63)), Some(63));
}
