//! Instructions without a lane operation: named, with what they would write where that is known.

use lanescope_ir::Op;
use lanescope_ir::op::Unsupported;

use crate::isa::inst::{Instruction, Operand, RegOperand};
use crate::lower::operands::{Refused, pred, slot_at};

/// Kinds that lanescope leaves out on purpose, by mnemonic.
fn kind(mnemonic: &str) -> Option<&'static str> {
    Some(match mnemonic {
        "HMMA" | "IMMA" | "BMMA" | "DMMA" | "QMMA" | "OMMA" | "HGMMA" | "IGMMA" | "QGMMA" | "BGMMA" | "LDSM"
        | "STSM" | "MOVM" | "LDTM" | "STTM" | "SPMETADATA" | "GENMETADATA" => "tensor core",
        m if m.starts_with("UTC") => "tensor core",
        "LDGSTS" | "LDGDEPBAR" | "ARRIVES" | "UBLKCP" | "UBLKRED" | "UBLKPF" | "UTMALDG" | "UTMASTG" | "UTMAREDG"
        | "UTMAPF" | "UTMACCTL" | "UTMACMDFLUSH" | "SYNCS" => "asynchronous copy",
        "TEX" | "TLD" | "TLD4" | "TXD" | "TXQ" | "TMML" | "TXA" | "FOOTPRINT" => "texture",
        "SULD" | "SUST" | "SUATOM" | "SURED" | "SUQUERY" => "surface",
        "AL2P" | "ALD" | "AST" | "IPA" | "ISBERD" | "ISBEWR" | "OUT" | "PIXLD" | "RTT" | "TTUCCTL" | "TTUGO"
        | "TTULD" | "TTUOPEN" | "TTUST" | "TTUCLOSE" | "TTUMACROFUSE" => "graphics",
        _ => return None,
    })
}

/// Number of 32-bit registers of a tensor-core result. `None`: not known, so it cannot be skipped.
fn result_words(inst: &Instruction) -> Option<u8> {
    let has = |m: &str| inst.has(m);
    Some(match inst.mnemonic {
        // A 16x8 tile is 128 values over 32 lanes: 4 words of f32 or s32, 2 of packed f16; 8x8 tiles half of it.
        "HMMA" if has("F32") && has("1684") | has("1688") | has("16816") | has("16832") => 4,
        "HMMA" if has("F16") && has("1688") | has("16816") | has("16832") => 2,
        "QMMA" if has("F32") => 4,
        "IMMA" if has("16816") | has("16832") | has("16864") => 4,
        "IMMA" if has("8816") | has("8832") => 2,
        "DMMA" => 4,
        "LDSM" if has("4") => 4,
        "LDSM" if has("2") => 2,
        "LDSM" => 1,
        "MOVM" => 1,
        _ => return None,
    })
}

/// The unsupported instruction with its destinations.
pub(super) fn describe(inst: &Instruction, refused: &Refused) -> Op {
    let mut name = inst.mnemonic.to_owned();
    for m in &inst.mods {
        name.push('.');
        name.push_str(m);
    }
    let kind = kind(inst.mnemonic);
    if kind.is_none() && refused.why != "not implemented" {
        name = format!("{name} ({})", refused.why);
    }
    let mut dst = Vec::new();
    let mut pdst = Vec::new();
    let words = result_words(inst);
    if let (Some(words), Some(Operand::Reg(RegOperand { file, index, .. }))) = (words, inst.operands.first()) {
        dst.extend((0..words).filter_map(|k| slot_at(*file, *index, k)));
        if let Some(Operand::Pred(p)) = inst.operands.get(1) {
            pdst.extend(pred(p.file, p.index));
        }
    }
    Op::Unsupported(Unsupported {
        name,
        why: kind.unwrap_or("not implemented"),
        dst,
        pdst,
        has_effects: words.is_none(),
    })
}
