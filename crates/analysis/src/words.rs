//! Numbers and places in the words of a finding.

use lanescope_ir::Kernel;

/// A count with thousands separators: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A share as a percentage with one decimal, or as many as it takes to show two digits of it and of what is
/// missing to 100 %: `50.0 %`, `0.052 %`, `99.997 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "-".into();
    }
    let value = share * 100.0;
    let small = value.abs().min((100.0 - value).abs());
    let digits = if small == 0.0 { 1.0 } else { (1.0 - (small.log10() + 1e-6).floor()).clamp(1.0, 12.0) };
    format!("{value:.*} %", digits as usize)
}

/// An amount that may have a fraction: `3.1`, `25,618`.
pub fn amount(x: f64) -> String {
    if x < 100.0 { format!("{x:.1}") } else { count(x.round() as u64) }
}

/// `part` of `whole` as a percentage.
pub fn share(part: u64, whole: u128) -> String {
    percent(if whole == 0 { 0.0 } else { part as f64 / whole as f64 })
}

/// `once`, `twice`, `1,234 times`.
pub fn times(n: u64) -> String {
    match n {
        1 => "once".into(),
        2 => "twice".into(),
        _ => format!("{} times", count(n)),
    }
}

/// A mean with two decimals, or more if it would look like a whole number of lanes that it is not.
pub fn lanes(value: f64) -> String {
    for digits in 2..=9usize {
        let text = format!("{value:.digits$}");
        let shown: f64 = text.parse().unwrap_or(value);
        if shown.fract() != 0.0 || value.fract() == 0.0 {
            return text;
        }
    }
    format!("{value}")
}

/// `kernel.cu:9`, or nothing without a line table.
pub fn at_line(kernel: &Kernel, inst: u32) -> Option<String> {
    let location = kernel.source.get(inst as usize)?;
    Some(file_line(kernel, location.file, location.line))
}

/// `kernel.cu:9` of a file by its index.
pub fn file_line(kernel: &Kernel, file: u32, line: u32) -> String {
    let file = kernel.source.files.get(file as usize).map_or("?", String::as_str);
    format!("{}:{line}", file.rsplit(['/', '\\']).next().unwrap_or(file))
}

/// The outermost call site that an instruction was inlined at.
pub fn inlined_at(kernel: &Kernel, inst: u32) -> Option<String> {
    let site = kernel.source.get(inst as usize)?.inlined_at.last()?;
    Some(file_line(kernel, site.file, site.line))
}

/// Where an instruction is, for a sentence: `kernel.cu:9 (pc 0x02c0)`, or `pc 0x02c0`.
pub fn place(kernel: &Kernel, inst: u32) -> String {
    let pc = kernel.instructions.get(inst as usize).map_or(0, |i| i.pc);
    match at_line(kernel, inst) {
        Some(line) => format!("{line} (pc {pc:#06x})"),
        None => format!("pc {pc:#06x}"),
    }
}

/// An instruction's text, shortened.
pub fn text(kernel: &Kernel, inst: u32) -> &str {
    kernel.text.get(inst as usize).map_or("?", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!([count(0), count(999), count(1000), count(12_345_678)], ["0", "999", "1,000", "12,345,678"]);
        assert_eq!(percent(0.5), "50.0 %");
        assert_eq!(percent(1.0), "100.0 %");
        assert_eq!(percent(0.999_99), "99.9990 %");
        assert_eq!(percent(0.000_000_4), "0.000040 %");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(percent(0.084), "8.4 %");
        assert_eq!(amount(25_618.2), "25,618");
        assert_eq!(lanes(32.0), "32.00");
        assert_eq!(lanes(31.999_9), "31.9999");
        assert_eq!(lanes(2.181), "2.18");
    }
}
