//! Float immediates as nvdisasm prints them: C's `%.20g`, and `%.20e` from 1e9 on.

use super::inst::FloatFormat;
use std::fmt::{Display, Formatter, Result};

/// Significant digits of `%.20g`.
const DIGITS: i32 = 20;
/// Magnitudes from here on print in exponent form.
const EXPONENT_FORM: f64 = 1e9;

/// The printed form of an immediate.
pub(super) struct Text {
    value: f64,
    quiet: bool,
    negative: bool,
}

impl Text {
    pub(super) fn new(bits: u32, format: FloatFormat) -> Self {
        let (value, quiet) = match format {
            FloatFormat::F32 => (f64::from(f32::from_bits(bits)), bits >> 22 & 1 == 1),
            FloatFormat::Bf16 => (f64::from(f32::from_bits(bits << 16)), bits >> 6 & 1 == 1),
            FloatFormat::F64High => (f64::from_bits(u64::from(bits) << 32), bits >> 19 & 1 == 1),
            FloatFormat::F16 => (half(bits as u16), bits >> 9 & 1 == 1),
        };
        let sign_bit = match format {
            FloatFormat::F32 | FloatFormat::F64High => 31,
            FloatFormat::F16 | FloatFormat::Bf16 => 15,
        };
        Text { value, quiet, negative: bits >> sign_bit & 1 == 1 }
    }
}

/// The exact value of a binary16 number.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-14),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1.0 + fraction) * 2f64.powi(i32::from(exponent) - 15),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

impl Display for Text {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let sign = if self.negative { "-" } else { "" };
        let magnitude = self.value.abs();
        if magnitude.is_nan() || magnitude.is_infinite() {
            // The blank is part of the token.
            let name = match (magnitude.is_nan(), self.quiet) {
                (false, _) => "INF ",
                (true, true) => "QNAN ",
                (true, false) => "SNAN ",
            };
            return write!(f, "{}{name}", if self.negative { "-" } else { "+" });
        }
        if magnitude == 0.0 {
            return f.write_str(if self.negative { "-0.0 " } else { "0" });
        }
        if magnitude >= EXPONENT_FORM {
            let text = format!("{magnitude:.20e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            return write!(f, "{sign}{mantissa}e+{exponent:02}");
        }
        general(f, sign, magnitude)
    }
}

/// `%.20g` of a positive number below 1e9.
fn general(f: &mut Formatter<'_>, sign: &str, magnitude: f64) -> Result {
    let scientific = format!("{magnitude:.19e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 {
        let mantissa = strip_zeros(mantissa);
        return write!(f, "{sign}{mantissa}e-{:02}", exponent.unsigned_abs());
    }
    let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
    let fixed = format!("{magnitude:.decimals$}");
    write!(f, "{sign}{}", strip_zeros(&fixed))
}

fn strip_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bits: u32, format: FloatFormat) -> String {
        Text::new(bits, format).to_string()
    }

    #[test]
    fn documented_examples() {
        assert_eq!(text(0x3f00_0000, FloatFormat::F32), "0.5");
        assert_eq!(text(0x4f80_0000, FloatFormat::F32), "4.29496729600000000000e+09");
        assert_eq!(text(0xcb00_0008, FloatFormat::F32), "-8388616");
        assert_eq!(text(0x8000_0000, FloatFormat::F32), "-0.0 ");
        assert_eq!(text(0xff80_0000, FloatFormat::F32), "-INF ");
        assert_eq!(text(0x7ff8_0000, FloatFormat::F64High), "+QNAN ");
        assert_eq!(text(0x7f81, FloatFormat::Bf16), "+SNAN ");
        assert_eq!(text(0x3c00, FloatFormat::F16), "1");
        assert_eq!(text(0x0001, FloatFormat::F16), "5.9604644775390625e-08");
        // The double nearest to 1e-20 in f32, as C prints it.
        assert_eq!(text(0x1e3c_e508, FloatFormat::F32), "9.999999682655225389e-21");
    }
}
