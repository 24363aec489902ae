//! Which modifiers a conversion has, as ptxas takes them.

use super::{How, float, integer};
use crate::tree::Type;
use lanescope_ir::op::convert::Integer;
use lanescope_ir::op::float::Rounding;

/// What is wrong with the modifiers, if something is.
pub(super) fn broken(to: Type, from: Type, how: &How) -> Option<&'static str> {
    use Type::*;
    if usize::from(how.round.is_some()) + usize::from(how.integral.is_some()) + usize::from(how.away) > 1 {
        return Some("a conversion rounds in one way only");
    }
    let rounds = how.round.is_some() || how.integral.is_some() || how.away;
    let to_even_or_zero = matches!(how.round, Some(Rounding::Nearest | Rounding::Zero));
    if how.away && to != Tf32 {
        return Some("only a conversion to `.tf32` has `.rna`");
    }
    if (how.relu || how.finite) && !(to_even_or_zero || how.away) {
        return Some("`.relu` and `.satfinite` need `.rn` or `.rz`");
    }
    match (to, from) {
        (F16x2 | Bf16x2, F32) if !to_even_or_zero => return Some("this conversion needs `.rn` or `.rz`"),
        (E4m3x2 | E5m2x2, F32 | F16x2) if how.round != Some(Rounding::Nearest) || !how.finite => {
            return Some("this conversion needs `.rn` and `.satfinite`");
        }
        (F16x2, E4m3x2 | E5m2x2) if how.round != Some(Rounding::Nearest) || how.finite => {
            return Some("this conversion needs `.rn`, and has no `.satfinite`");
        }
        (Tf32, F32) if !(to_even_or_zero || how.away) => {
            return Some("a conversion to `.tf32` needs `.rna`, `.rn` or `.rz`");
        }
        (Tf32, F32) if how.away && how.relu => return Some("`.rna` goes with no `.relu`"),
        (F16x2 | Bf16x2 | E4m3x2 | E5m2x2 | Tf32, _) | (_, E4m3x2 | E5m2x2) => {
            return (how.sat || how.ftz).then_some("this conversion has no `.sat` and no `.ftz`");
        }
        _ => {}
    }
    let (to_int, from_int) = (integer(to), integer(from));
    if how.ftz && !(to == F32 || from == F32) {
        return Some("`.ftz` is for `.f32`");
    }
    match (to_int, from_int) {
        (Some(_), Some(_)) if rounds => Some("a conversion of integers does not round"),
        (Some(to), Some(from)) if how.sat && holds(to, from) => {
            Some("`.sat` has no meaning where every number of one type is one of the other")
        }
        (Some(_), Some(_)) => None,
        (Some(_), None) if how.integral.is_none() => {
            Some("a conversion to an integer needs `.rni`, `.rzi`, `.rmi` or `.rpi`")
        }
        (Some(it), None) if from == Bf16 && (how.sat || it.bits == 8) => {
            Some("a conversion of `.bf16` to an integer has no `.sat` and at least 16 bits")
        }
        (Some(_), None) => None,
        (None, Some(_)) if how.round.is_none() => Some("a conversion from an integer to a float needs a rounding"),
        (None, Some(_)) if how.relu || how.finite => Some("`.relu` and `.satfinite` are for floats"),
        (None, Some(it)) if to == Bf16 && (how.sat || it.bits == 8) => {
            Some("a conversion of an integer to `.bf16` has no `.sat` and at least 16 bits")
        }
        (None, Some(_)) => None,
        (None, None) => floats(to, from, how, rounds),
    }
}

fn floats(to: Type, from: Type, how: &How, rounds: bool) -> Option<&'static str> {
    use Type::*;
    if float(to).is_none() || float(from).is_none() {
        return None;
    }
    if to == from {
        return match to {
            Bf16 if how.sat => Some("a conversion of `.bf16` to itself has no `.sat`"),
            _ if how.round.is_some() => Some("a number of the same format does not become another by rounding"),
            _ => None,
        };
    }
    if how.integral.is_some() {
        return Some("only a conversion of a format to itself rounds to integral numbers");
    }
    let widens = matches!((to, from), (F32 | F64, F16) | (F64, F32));
    if widens && rounds {
        return Some("a conversion to a larger float does not round");
    }
    let narrows = matches!((to, from), (F16 | Bf16, F32 | F64) | (F32, F64));
    if narrows && how.round.is_none() {
        return Some("a conversion to a smaller float needs a rounding");
    }
    if how.sat && (to == Bf16 || from == Bf16) {
        return Some("a conversion of `.bf16` has no `.sat`");
    }
    if (how.relu || how.finite) && !matches!((to, from), (F16 | Bf16, F32)) {
        return Some("`.relu` and `.satfinite` are for conversions of `.f32` to a smaller float");
    }
    None
}

/// Whether every number of type `from` is one of type `to`.
fn holds(to: Integer, from: Integer) -> bool {
    match (to.signed, from.signed) {
        (true, false) => to.bits > from.bits,
        (false, true) => false,
        _ => to.bits >= from.bits,
    }
}
