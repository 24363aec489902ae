//! Text of `printf`: what C says of a format and its arguments, from bytes that a kernel left in memory.
//!
//! What is no conversion stays in the text as it is, as do conversions whose argument would be the 33rd or later: a kernel's
//! `printf` passes 32.

/// Where the arguments come from.
pub(crate) trait Arguments {
    /// What can go wrong.
    type Error;
    /// The next argument of 4 bytes.
    fn word(&mut self) -> Result<u32, Self::Error>;
    /// The next argument of 8 bytes.
    fn long(&mut self) -> Result<u64, Self::Error>;
    /// The bytes of a string up to its end, `most` at most. `None`: there is no string.
    fn string(&mut self, address: u64, most: usize) -> Result<Option<Vec<u8>>, Self::Error>;
}

/// Arguments that a kernel's `printf` passes at most.
const MAX_ARGUMENTS: u32 = 32;
/// Digits after which a double has only zeros.
const DIGITS: usize = 1100;

/// One conversion.
#[derive(Clone, Copy, Default)]
struct Spec {
    minus: bool,
    plus: bool,
    space: bool,
    hash: bool,
    zero: bool,
    width: Field,
    precision: Option<Field>,
    size: Size,
    conversion: u8,
}

#[derive(Clone, Copy)]
enum Field {
    Number(usize),
    Argument,
}

impl Default for Field {
    fn default() -> Field {
        Field::Number(0)
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Size {
    Char,
    Short,
    #[default]
    Int,
    Long,
}

impl Spec {
    /// Reads one behind its `%`. Gives its length, too; `None` if it is no conversion.
    fn parse(text: &[u8]) -> Option<(Spec, usize)> {
        let mut s = Spec::default();
        let mut at = 0;
        loop {
            match text.get(at)? {
                b'-' => s.minus = true,
                b'+' => s.plus = true,
                b' ' => s.space = true,
                b'#' => s.hash = true,
                b'0' => s.zero = true,
                _ => break,
            }
            at += 1;
        }
        s.width = field(text, &mut at);
        if text.get(at) == Some(&b'.') {
            at += 1;
            s.precision = Some(field(text, &mut at));
        }
        let rest = text.get(at..)?;
        let (size, length) = match rest {
            [b'h', b'h', ..] => (Size::Char, 2),
            [b'h', ..] => (Size::Short, 1),
            [b'l', b'l', ..] => (Size::Long, 2),
            [b'l' | b'z' | b'j' | b't', ..] => (Size::Long, 1),
            _ => (Size::Int, 0),
        };
        s.size = size;
        at += length;
        s.conversion = *text.get(at)?;
        b"cdiouxXpeEfFgGaAs%".contains(&s.conversion).then_some((s, at + 1))
    }

    fn arguments(&self) -> u32 {
        let star = |f: Option<Field>| u32::from(matches!(f, Some(Field::Argument)));
        star(Some(self.width)) + star(self.precision) + u32::from(self.conversion != b'%')
    }

    /// The sign of a number as text.
    fn sign(&self, negative: bool) -> &'static str {
        match () {
            () if negative => "-",
            () if self.plus => "+",
            () if self.space => " ",
            () => "",
        }
    }
}

fn field(text: &[u8], at: &mut usize) -> Field {
    if text.get(*at) == Some(&b'*') {
        *at += 1;
        return Field::Argument;
    }
    let mut number = 0usize;
    while let Some(digit) = text.get(*at).filter(|b| b.is_ascii_digit()) {
        number = number.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
        *at += 1;
    }
    Field::Number(number)
}

/// The text, at most about `limit` bytes of it, and the number of arguments that were used.
pub(crate) fn print<A: Arguments>(format: &[u8], args: &mut A, limit: usize) -> Result<(Vec<u8>, u32), A::Error> {
    let mut out = Vec::new();
    let mut used = 0;
    let mut rest = format;
    while let Some(at) = rest.iter().position(|&b| b == b'%') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((mut spec, length)) = Spec::parse(rest) else {
            out.push(b'%');
            continue;
        };
        let (own, after) = rest.split_at(length);
        rest = after;
        if spec.conversion == b'%' {
            out.push(b'%');
            continue;
        }
        if used + spec.arguments() > MAX_ARGUMENTS {
            out.push(b'%');
            out.extend_from_slice(own);
            continue;
        }
        used += spec.arguments();
        convert(&mut spec, args, limit.saturating_sub(out.len()), &mut out)?;
        if out.len() > limit {
            break;
        }
    }
    out.extend_from_slice(rest);
    out.truncate(limit);
    Ok((out, used))
}

fn convert<A: Arguments>(s: &mut Spec, args: &mut A, limit: usize, out: &mut Vec<u8>) -> Result<(), A::Error> {
    let mut width = match s.width {
        Field::Number(n) => n,
        Field::Argument => {
            let n = args.word()? as i32;
            s.minus |= n < 0;
            n.unsigned_abs() as usize
        }
    };
    // What is wider than the limit is cut there.
    width = width.min(limit.saturating_add(1));
    let precision = match s.precision {
        None => None,
        Some(Field::Number(n)) => Some(n),
        // A negative one counts as none.
        Some(Field::Argument) => usize::try_from(args.word()? as i32).ok(),
    }
    .map(|n| n.min(limit.saturating_add(1)));
    // Prefix that zeros go behind, and the rest.
    let (prefix, body, zeros) = match s.conversion {
        b'c' => (String::new(), vec![args.word()? as u8], false),
        b's' => {
            let address = args.long()?;
            let most = precision.unwrap_or(limit.saturating_add(1));
            let text = args.string(address, most)?;
            (String::new(), text.unwrap_or_else(|| b"(null)".to_vec()), false)
        }
        b'p' => match args.long()? {
            0 => (String::new(), b"(nil)".to_vec(), false),
            address => ("0x".to_owned(), format!("{address:x}").into_bytes(), s.zero),
        },
        b'd' | b'i' => {
            let value = match s.size {
                Size::Long => args.long()? as i64,
                Size::Int => i64::from(args.word()? as i32),
                Size::Short => i64::from(args.word()? as i16),
                Size::Char => i64::from(args.word()? as i8),
            };
            let digits = digits(value.unsigned_abs().to_string(), precision);
            (s.sign(value < 0).to_owned(), digits, s.zero && precision.is_none())
        }
        b'o' | b'u' | b'x' | b'X' => {
            let value = match s.size {
                Size::Long => args.long()?,
                Size::Int => u64::from(args.word()?),
                Size::Short => u64::from(args.word()? as u16),
                Size::Char => u64::from(args.word()? as u8),
            };
            let text = match s.conversion {
                b'o' => format!("{value:o}"),
                b'u' => format!("{value}"),
                b'x' => format!("{value:x}"),
                _ => format!("{value:X}"),
            };
            let mut digits = digits(text, precision);
            let prefix = match s.conversion {
                b'x' if s.hash && value != 0 => "0x",
                b'X' if s.hash && value != 0 => "0X",
                b'o' if s.hash && digits.first() != Some(&b'0') => {
                    digits.insert(0, b'0');
                    ""
                }
                _ => "",
            };
            (prefix.to_owned(), digits, s.zero && precision.is_none())
        }
        _ => {
            let value = f64::from_bits(args.long()?);
            let (mut prefix, mut body) = (s.sign(value.is_sign_negative()).to_owned(), String::new());
            if value.is_finite() {
                let x = value.abs();
                match s.conversion.to_ascii_lowercase() {
                    b'f' => body = fixed(x, precision.unwrap_or(6), s.hash),
                    b'e' => body = exponent(x, precision.unwrap_or(6), s.hash),
                    b'g' => body = general(x, precision.unwrap_or(6), s.hash),
                    _ => {
                        prefix.push_str("0x");
                        body = hexadecimal(x, precision, s.hash);
                    }
                }
            } else {
                body.push_str(if value.is_nan() { "nan" } else { "inf" });
            }
            if s.conversion.is_ascii_uppercase() {
                (prefix, body) = (prefix.to_ascii_uppercase(), body.to_ascii_uppercase());
            }
            (prefix, body.into_bytes(), s.zero && value.is_finite())
        }
    };
    let fill = width.saturating_sub(prefix.len() + body.len());
    let fill = |byte: u8, out: &mut Vec<u8>| out.resize(out.len() + fill, byte);
    if !s.minus && !zeros {
        fill(b' ', out);
    }
    out.extend_from_slice(prefix.as_bytes());
    if !s.minus && zeros {
        fill(b'0', out);
    }
    out.extend_from_slice(&body);
    if s.minus {
        fill(b' ', out);
    }
    Ok(())
}

/// Digits of an integer, at least as many as the precision says; none for 0 with precision 0.
fn digits(text: String, precision: Option<usize>) -> Vec<u8> {
    if precision == Some(0) && text == "0" {
        return Vec::new();
    }
    let mut out = vec![b'0'; precision.unwrap_or(0).saturating_sub(text.len())];
    out.extend_from_slice(text.as_bytes());
    out
}

/// `%f`
fn fixed(x: f64, precision: usize, hash: bool) -> String {
    let exact = precision.min(DIGITS);
    let mut text = format!("{x:.exact$}");
    text.extend(std::iter::repeat_n('0', precision - exact));
    if precision == 0 && hash {
        text.push('.');
    }
    text
}

/// Digits with a point behind the first, and the exponent.
fn scientific(x: f64, precision: usize) -> (String, i32) {
    let exact = precision.min(DIGITS);
    let text = format!("{x:.exact$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut mantissa = mantissa.to_owned();
    mantissa.extend(std::iter::repeat_n('0', precision - exact));
    (mantissa, exponent.parse().unwrap_or(0))
}

/// `%e`
fn exponent(x: f64, precision: usize, hash: bool) -> String {
    let (mut mantissa, exponent) = scientific(x, precision);
    if precision == 0 && hash {
        mantissa.push('.');
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// `%g`
fn general(x: f64, precision: usize, hash: bool) -> String {
    let precision = precision.max(1);
    let power = scientific(x, precision - 1).1;
    let bare = |text: String| {
        if hash || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if power >= -4 && i64::from(power) < precision as i64 {
        let places = (precision as i64 - 1 - i64::from(power)).max(0) as usize;
        return bare(fixed(x, places, hash));
    }
    let text = exponent(x, precision - 1, hash);
    match text.split_once('e') {
        Some((mantissa, exponent)) => format!("{}e{exponent}", bare(mantissa.to_owned())),
        None => text,
    }
}

/// `%a` behind its `0x`.
fn hexadecimal(x: f64, precision: Option<usize>, hash: bool) -> String {
    let bits = x.to_bits();
    let biased = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let power = match (biased, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => biased - 1023,
    };
    let mut whole = u64::from(biased != 0) << 52 | fraction;
    let mut zeros = 0;
    let places = match precision {
        None => (52 - fraction.trailing_zeros().min(52)).div_ceil(4) as usize,
        Some(p) if p >= 13 => {
            zeros = p - 13;
            13
        }
        Some(p) => {
            // To the nearest, at a tie to the even digit.
            let drop = 52 - 4 * p as u32;
            let (kept, lost, half) = (whole >> drop, whole & ((1 << drop) - 1), 1u64 << (drop - 1));
            let up = lost > half || lost == half && kept & 1 == 1;
            whole = (kept + u64::from(up)) << drop;
            p
        }
    };
    let mut text = (whole >> 52).to_string();
    if places + zeros > 0 || hash {
        text.push('.');
    }
    if places > 0 {
        let all = format!("{:013x}", whole & ((1 << 52) - 1));
        text.push_str(&all[..places]);
    }
    text.extend(std::iter::repeat_n('0', zeros));
    let sign = if power < 0 { '-' } else { '+' };
    format!("{text}p{sign}{}", power.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments in a list: numbers as their bits, strings by their number.
    struct List<'a> {
        values: std::iter::Copied<std::slice::Iter<'a, u64>>,
        strings: &'a [&'a [u8]],
    }

    impl Arguments for List<'_> {
        type Error = ();
        fn word(&mut self) -> Result<u32, ()> {
            self.values.next().map(|v| v as u32).ok_or(())
        }
        fn long(&mut self) -> Result<u64, ()> {
            self.values.next().ok_or(())
        }
        fn string(&mut self, address: u64, most: usize) -> Result<Option<Vec<u8>>, ()> {
            Ok(self.strings.get(address as usize).map(|s| s[..most.min(s.len())].to_vec()))
        }
    }

    fn text(format: &str, values: &[u64]) -> String {
        let strings: &[&[u8]] = &[b"alpha", b"", b"a longer one"];
        let mut list = List { values: values.iter().copied(), strings };
        let (out, _) = print(format.as_bytes(), &mut list, 1 << 20).unwrap();
        String::from_utf8(out).unwrap()
    }

    include!("format/glibc.rs");

    #[test]
    fn as_the_c_library_prints() {
        for &(format, values, want) in GLIBC {
            assert_eq!(text(format, values), want, "{format} {values:x?}");
        }
    }

    #[test]
    fn what_is_no_conversion_stays() {
        assert_eq!(text("100%, %y %", &[]), "100%, %y %");
        assert_eq!(text("%5", &[]), "%5");
        assert_eq!(text("%.", &[]), "%.");
        assert_eq!(text("%%%d%%", &[7]), "%7%");
        assert_eq!(text("%n %d", &[1]), "%n 1");
        let many = "%d".repeat(34);
        assert_eq!(text(&many, &[1; 34]), format!("{}%d%d", "1".repeat(32)));
    }

    #[test]
    fn strings_and_counts() {
        assert_eq!(text("[%s][%8s][%-8s][%.3s][%s]", &[0, 0, 0, 2, 9]), "[alpha][   alpha][alpha   ][a l][(null)]");
        assert_eq!(text("%p|%20p|%-6p|", &[0x7f00_1234, 0xabc, 0]), "0x7f001234|               0xabc|(nil) |");
        let mut list = List { values: [3, 9].iter().copied(), strings: &[] };
        assert_eq!(print(b"%*d!", &mut list, 100), Ok((b"  9!".to_vec(), 2)));
    }

    #[test]
    fn no_width_or_precision_takes_more_than_the_limit() {
        for format in ["%2147483647d", "%.2147483647d", "%.99999999999999999999f", "%-*d|", "%.*e", "%.*a", "%#.*g"] {
            let values = [i32::MAX as u64, 1.5f64.to_bits(), 3];
            let mut list = List { values: values.iter().copied(), strings: &[] };
            let (out, _) = print(format.as_bytes(), &mut list, 5000).unwrap();
            assert_eq!(out.len(), 5000, "{format}");
        }
        let mut list = List { values: [i32::MIN as u32 as u64, 5].iter().copied(), strings: &[] };
        assert_eq!(print(b"%*d", &mut list, 100).unwrap().0.len(), 100);
    }
}
