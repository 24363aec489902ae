//! Arguments and elements in words.

use lanescope_ir::{AccessProfile, ThreadProfile};

use super::{Argument, Buffer, Number};

/// The argument whose buffer holds an address, with the offset in it.
pub(super) fn locate<'a>(arguments: &'a [Argument<'a>], address: u64) -> Option<(usize, &'a Buffer<'a>, u64)> {
    arguments.iter().enumerate().find_map(|(i, a)| {
        let b = a.buffer.as_ref()?;
        let offset = address.checked_sub(b.address)?;
        (offset < b.data.len() as u64).then_some((i, b, offset))
    })
}

/// `argument 1 (material)`.
pub(super) fn argument(arguments: &[Argument<'_>], index: usize) -> String {
    match arguments.get(index).and_then(|a| a.name.as_deref()) {
        Some(name) => format!("argument {index} ({name})"),
        None => format!("argument {index}"),
    }
}

/// Accesses of an instruction.
pub(super) fn accesses(threads: &ThreadProfile, inst: u32) -> Option<&AccessProfile> {
    let at = threads.accesses.binary_search_by_key(&inst, |a| a.inst).ok()?;
    threads.accesses.get(at)
}

/// The argument that an instruction accesses, if all threads access the same one.
pub(super) fn accessed(arguments: &[Argument<'_>], threads: &ThreadProfile, inst: u32) -> Option<usize> {
    let access = accesses(threads, inst)?;
    let mut all = access.threads.iter().filter(|t| t.count > 0).map(|t| locate(arguments, t.first).map(|l| l.0));
    let first = all.next()??;
    all.all(|a| a == Some(first)).then_some(first)
}

/// The element an instruction loads: as a function of the thread's position, `argument 1 (material)[i]`, or of what another
/// load gave, `argument 4[argument 2[i] + 1]`. `index` names the loads that an address comes from.
pub(super) fn element(
    arguments: &[Argument<'_>],
    threads: &ThreadProfile,
    inst: u32,
    index: &dyn Fn(u32) -> Vec<u32>,
) -> Option<String> {
    let name = argument(arguments, accessed(arguments, threads, inst)?);
    if let Some(words) = by_place(arguments, threads, inst) {
        return Some(words);
    }
    let from = index(inst);
    let [load] = from.as_slice() else { return Some(format!("{name}[...]")) };
    let inner = by_place(arguments, threads, *load);
    let offset = offset(arguments, threads, inst, *load);
    Some(match (inner, offset) {
        (Some(inner), Some(0)) => format!("{name}[{inner}]"),
        (Some(inner), Some(k)) if k > 0 => format!("{name}[{inner} + {k}]"),
        (Some(inner), Some(k)) => format!("{name}[{inner} - {}]", k.unsigned_abs()),
        _ => format!("{name}[...]"),
    })
}

/// The number of elements by which an access lies behind the element that another load's value names, if it always does.
fn offset(arguments: &[Argument<'_>], threads: &ThreadProfile, inst: u32, load: u32) -> Option<i128> {
    let buffer = arguments.get(accessed(arguments, threads, inst)?)?.buffer?;
    let values = threads.values.iter().find(|v| v.inst == load)?;
    let access = accesses(threads, inst)?;
    let size = i128::from(buffer.element.max(1));
    let mut found = None;
    for (t, v) in access.threads.iter().zip(&values.threads).filter(|(t, v)| t.count > 0 && v.count > 0) {
        let bytes = i128::from(t.first) - i128::from(buffer.address);
        if v.changed || bytes % size != 0 {
            return None;
        }
        let k = bytes / size - i128::from(ordered(v.first, 32, Number::Signed));
        if *found.get_or_insert(k) != k {
            return None;
        }
    }
    found
}

/// The element as a function of the thread's position.
fn by_place(arguments: &[Argument<'_>], threads: &ThreadProfile, inst: u32) -> Option<String> {
    let index = accessed(arguments, threads, inst)?;
    let name = argument(arguments, index);
    let access = accesses(threads, inst)?;
    let size = i128::from(arguments.get(index)?.buffer?.element.max(1));
    let base = i128::from(arguments.get(index)?.buffer?.address);
    let of = |p: usize| access.threads.get(p).filter(|t| t.count > 0).map(|t| i128::from(t.first) - base);
    let mut some = (0..access.threads.len()).filter_map(|p| Some((p as i128, of(p)?)));
    let (p0, o0) = some.next()?;
    let Some((p1, o1)) = some.next() else { return Some(format!("{name}[{}]", o0 / size)) };
    let (rise, run) = (o1 - o0, p1 - p0);
    let fits = |x: (i128, i128)| (x.1 - o0) * run == (x.0 - p0) * rise;
    if rise % (run * size) != 0 || !some.all(fits) {
        return None;
    }
    let step = rise / (run * size);
    let start = o0 - p0 * rise / run;
    if start % size != 0 {
        return None;
    }
    let times = match step {
        0 => return Some(format!("{name}[{}]", start / size)),
        1 => "i".to_owned(),
        n => format!("{n} * i"),
    };
    Some(match start / size {
        0 => format!("{name}[{times}]"),
        k if k > 0 => format!("{name}[{times} + {k}]"),
        k => format!("{name}[{times} - {}]", -k),
    })
}

/// Bits of a register as a number that orders as its value does.
pub(super) fn ordered(bits: u64, width: u32, kind: Number) -> i64 {
    let shift = 64 - width.clamp(1, 64);
    match kind {
        Number::Unsigned if width < 64 => ((bits << shift) >> shift) as i64,
        // Above 2^63 the order of unsigned numbers needs the top bit turned round.
        Number::Unsigned => bits as i64,
        Number::Signed => ((bits << shift) as i64) >> shift,
        Number::Float => {
            let x = ((bits << shift) as i64) >> shift;
            if x < 0 { !(x & i64::MAX >> shift) } else { x }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_order_as_their_values() {
        let of = |x: f32| ordered(u64::from(x.to_bits()), 32, Number::Float);
        let list = [-5.0, -1.0, -0.5, -0.0, 0.0, 0.25, 3.0].map(of);
        assert!(list.windows(2).all(|w| w[0] < w[1]), "{list:?}");
        assert_eq!(ordered(0xffff_ffff, 32, Number::Signed), -1);
        assert_eq!(ordered(0xffff_ffff, 32, Number::Unsigned), 0xffff_ffff);
    }
}
