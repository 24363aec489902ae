//! What the readable tables say, as plain values, and how their files are laid out.
//!
//! The header of `instructions.txt` explains the notation; [`super::grammar`] reads its expressions.

use super::grammar::Cursor;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::Path;

/// A bit field: lowest bit and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) lo: u8,
    pub(super) width: u8,
}

/// One test on the encoding.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// The field has (or has not) this value.
    Equals { field: Field, value: u64, want: bool },
    /// The field is (or is not) a power of two with its top bit clear.
    PowerOfTwo { field: Field, want: bool },
}

/// All tests hold.
pub(super) type Conjunction = Vec<Test>;

/// What is added to a number after it has been put together from its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adjust {
    None,
    /// Relative to the address of the next instruction.
    PcRelative,
    /// The register after this one; all ones stay.
    NextRegister,
    /// The register two after this one; all ones stay.
    SecondNextRegister,
    /// Stored as 7 - x.
    SevenMinus,
}

/// How a value follows from the encoding.
#[derive(Clone, Debug)]
pub(super) enum Model {
    Token(String),
    Int(i64),
    Number {
        fields: Vec<Field>,
        signed: bool,
        shift: u8,
        adjust: Adjust,
    },
    Lookup {
        bits: Vec<u8>,
        map: String,
    },
    Decide(Vec<(Conjunction, String)>),
    Optional {
        when: Box<Model>,
        value: Box<Model>,
    },
    If {
        test: Test,
        then: Box<Model>,
        otherwise: Box<Model>,
    },
    Float {
        format: u8,
        lo: u8,
    },
    /// No rule is known.
    Unknown,
}

/// When a row applies.
#[derive(Clone, Debug)]
pub(super) enum When {
    Always,
    OneOf { bits: Vec<u8>, values: Vec<u64> },
    Any(Vec<Conjunction>),
}

pub(super) struct Operand {
    pub(super) kind: String,
    pub(super) attributes: Vec<(String, Model)>,
}

pub(super) struct Row {
    pub(super) archs: Vec<u16>,
    pub(super) opcode: u16,
    pub(super) bit91: bool,
    pub(super) mnemonic: String,
    pub(super) uniform_guard: bool,
    pub(super) when: When,
    pub(super) modifiers: Vec<Model>,
    pub(super) operands: Vec<Operand>,
}

/// Value to token; a value without an entry is unknown.
pub(super) type Map = BTreeMap<u64, String>;

pub(super) struct Tables {
    pub(super) maps: BTreeMap<String, Map>,
    pub(super) rows: Vec<Row>,
}

/// Named decision lists.
pub(super) type Rules = BTreeMap<String, Model>;

/// Lines without comments and blank ones, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

pub(super) fn read(dir: &Path) -> Result<Tables> {
    let load = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let mut maps = BTreeMap::new();
    for (number, line) in lines(&load("maps.txt")?) {
        let (name, map) = map(line).with_context(|| format!("maps.txt:{number}"))?;
        ensure!(maps.insert(name.to_owned(), map).is_none(), "maps.txt:{number}: second {name}");
    }
    let mut rules = Rules::new();
    for (number, line) in lines(&load("rules.txt")?) {
        let at = || format!("rules.txt:{number}");
        let (name, rule) = line.split_once(" = ").with_context(at)?;
        let rule = Cursor::new(rule, &rules).whole(Cursor::value).with_context(at)?;
        ensure!(rules.insert(name.to_owned(), rule).is_none(), "rules.txt:{number}: second {name}");
    }
    let mut rows: Vec<Row> = Vec::new();
    for (number, line) in lines(&load("instructions.txt")?) {
        let at = || format!("instructions.txt:{number}");
        if let Some(part) = line.strip_prefix("  ") {
            let row = rows.last_mut().with_context(at)?;
            add_part(row, part, &rules).with_context(at)?;
        } else {
            rows.push(header(line).with_context(at)?);
        }
    }
    Ok(Tables { maps, rows })
}

/// `NAME = VALUE:TOKEN ...`
fn map(line: &str) -> Result<(&str, Map)> {
    let (name, rest) = line.split_once(" = ").context("no ' = '")?;
    let none = Rules::new();
    let mut cursor = Cursor::new(rest, &none);
    let mut map = Map::new();
    loop {
        let value = cursor.number()?;
        cursor.expect(":")?;
        ensure!(map.insert(value, cursor.token()?).is_none(), "{value} twice");
        if !cursor.eat(" ") {
            cursor.end()?;
            return Ok((name, map));
        }
    }
}

/// `MNEMONIC OPCODE[/1] : ARCHITECTURES`
fn header(line: &str) -> Result<Row> {
    let (left, archs) = line.split_once(" : ").context("no ' : '")?;
    let (mnemonic, opcode) = left.split_once(' ').context("no opcode")?;
    let (opcode, bit91) = match opcode.strip_suffix("/1") {
        Some(opcode) => (opcode, true),
        None => (opcode, false),
    };
    let digits = opcode.strip_prefix("0x").context("opcode is not hexadecimal")?;
    Ok(Row {
        archs: archs.split(' ').map(str::parse).collect::<Result<_, _>>()?,
        opcode: u16::from_str_radix(digits, 16)?,
        bit91,
        mnemonic: mnemonic.to_owned(),
        uniform_guard: false,
        when: When::Always,
        modifiers: Vec::new(),
        operands: Vec::new(),
    })
}

/// An indented line of a block.
fn add_part(row: &mut Row, part: &str, rules: &Rules) -> Result<()> {
    let (name, rest) = part.split_once(' ').context("no value")?;
    let mut cursor = Cursor::new(rest.trim_start(), rules);
    match name {
        "when" => row.when = cursor.when()?,
        "guard" => {
            cursor.expect("UP")?;
            row.uniform_guard = true;
        }
        "mods" => row.modifiers = cursor.separated(" ", Cursor::value)?,
        "ops" => row.operands = cursor.separated(" ", Cursor::operand)?,
        other => bail!("unknown part {other}"),
    }
    cursor.end()
}
