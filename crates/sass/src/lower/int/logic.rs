//! Bitwise and predicate logic.

use lanescope_ir::op::LaneOp;
use lanescope_ir::op::int::IntFn;
use lanescope_ir::{Src, SrcMod};

use super::{count, known, op, results};
use crate::isa::inst::{Operand, Sign};
use crate::lower::operands::{Cx, Lowered, refuse};

/// `[q,] d, a, b, c, table, p`
pub(super) fn lop3(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["LUT", "PAND"])?;
    let (q, _, first) = results(cx, 0, 1)?;
    count(cx, first + 6)?;
    let src = [cx.src(first + 1)?, cx.src(first + 2)?, cx.src(first + 3)?];
    let lut = table(cx, first + 4)?;
    let mut op = if q[0].is_some() {
        let mut op = op(IntFn::Lop3Pred { lut, and: cx.has("PAND") }, src);
        op.pdst = q;
        op.psrc[0] = cx.psrc(first + 5)?;
        op
    } else {
        // The predicate source only enters the predicate result.
        cx.psrc(first + 5)?;
        bitwise(lut, src)
    };
    op.dst[0] = cx.dst(first)?;
    Ok(op)
}

fn table(cx: &Cx, i: usize) -> Lowered<u8> {
    u8::try_from(cx.int(i)?).or_else(|_| refuse("truth table"))
}

/// The cheapest function with this table: sources that are zero or do not matter are left out.
fn bitwise(lut: u8, [a, b, c]: [Src; 3]) -> LaneOp {
    let bit = |i: u8| lut >> i & 1;
    let gather = |at: [u8; 4]| at.iter().enumerate().fold(0, |t, (i, &from)| t | bit(from) << i);
    let same = |step: u8| (0..8).filter(|i| i & step == 0).all(|i| bit(i) == bit(i + step));
    // Rows of the table with one source zero, in the order of the other two.
    if c == Src::ZERO || same(1) {
        two(gather([0, 2, 4, 6]), a, b)
    } else if b == Src::ZERO || same(2) {
        two(gather([0, 1, 4, 5]), a, c)
    } else if a == Src::ZERO || same(4) {
        two(gather([0, 1, 2, 3]), b, c)
    } else {
        None
    }
    .unwrap_or_else(|| op(IntFn::Lop3 { lut }, [a, b, c]))
}

/// A table of two sources, bit `2x + y`.
fn two(table: u8, x: Src, y: Src) -> Option<LaneOp> {
    if x.modifier != SrcMod::None || y.modifier != SrcMod::None {
        return None;
    }
    // Only one of the two may matter, or the rows with it zero.
    let (rows, x_zero, y_zero) = (table, x == Src::ZERO, y == Src::ZERO);
    let rows = if y_zero { (rows & 0b0101) | (rows & 0b0101) << 1 } else { rows };
    let rows = if x_zero { (rows & 0b0011) | (rows & 0b0011) << 2 } else { rows };
    let not = |s: Src| s.with(SrcMod::Not);
    Some(match rows {
        0b0000 => op(IntFn::Mov, [Src::ZERO]),
        0b0001 => op(IntFn::And, [not(x), not(y)]),
        0b0010 => op(IntFn::And, [not(x), y]),
        0b0011 => op(IntFn::Mov, [not(x)]),
        0b0100 => op(IntFn::And, [x, not(y)]),
        0b0101 => op(IntFn::Mov, [not(y)]),
        0b0110 => op(IntFn::Xor, [x, y]),
        0b0111 => op(IntFn::Or, [not(x), not(y)]),
        0b1000 => op(IntFn::And, [x, y]),
        0b1001 => op(IntFn::Xor, [not(x), y]),
        0b1010 => op(IntFn::Mov, [y]),
        0b1011 => op(IntFn::Or, [not(x), y]),
        0b1100 => op(IntFn::Mov, [x]),
        0b1101 => op(IntFn::Or, [x, not(y)]),
        0b1110 => op(IntFn::Or, [x, y]),
        _ => op(IntFn::Mov, [Src::imm(!0)]),
    })
}

/// `q, q, a, b, c, table, table` of predicates, or of the sign bits of three registers or constants.
pub(super) fn plop3(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["LUT"])?;
    count(cx, 7)?;
    let lut = [table(cx, 5)?, table(cx, 6)?];
    let mut op = if cx.is_pred(2) {
        let mut op = op(IntFn::Plop3 { lut }, []);
        op.psrc = [cx.psrc(2)?, cx.psrc(3)?, cx.psrc(4)?];
        op
    } else {
        op(IntFn::SignPlop3 { lut }, [sign_of(cx, 2)?, sign_of(cx, 3)?, sign_of(cx, 4)?])
    };
    op.pdst = [cx.pdst(0)?, cx.pdst(1)?];
    Ok(op)
}

/// A register or constant whose sign bit is a predicate: `R2.SIGN`.
fn sign_of(cx: &Cx, i: usize) -> Lowered<Src> {
    match cx.operand(i)? {
        Operand::Reg(r) if r.suffix == "SIGN" && !r.abs && r.sign == Sign::None => Ok(cx.raw(i)?.0),
        Operand::Const(c) if c.suffix == "SIGN" && !c.abs && c.sign == Sign::None => Ok(cx.raw(i)?.0),
        _ => refuse(format!("operand {i} is not a sign")),
    }
}
