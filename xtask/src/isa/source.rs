//! Reads the CSV tables.

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
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

pub(super) fn read(dir: &Path) -> Result<Tables> {
    let mut maps: BTreeMap<String, Map> = BTreeMap::new();
    for record in csv::Reader::from_path(dir.join("enums.csv"))?.deserialize() {
        let record: BTreeMap<String, String> = record?;
        let token: Value = serde_json::from_str(column(&record, "token")?)?;
        let value = column(&record, "value")?.parse()?;
        maps.entry(column(&record, "enum")?.to_owned()).or_default().insert(value, token_text(&token)?);
    }
    let mut rows = Vec::new();
    for record in csv::Reader::from_path(dir.join("isa.csv"))?.deserialize() {
        let record: BTreeMap<String, String> = record?;
        let row =
            row(&record).with_context(|| format!("row {:?} {:?}", record.get("opcode"), record.get("mnemonic")))?;
        rows.push(row);
    }
    Ok(Tables { maps, rows })
}

fn column<'a>(record: &'a BTreeMap<String, String>, name: &str) -> Result<&'a str> {
    record.get(name).map(String::as_str).ok_or_else(|| anyhow!("no column {name}"))
}

fn row(record: &BTreeMap<String, String>) -> Result<Row> {
    let spec: Value = serde_json::from_str(column(record, "spec")?)?;
    let opcode = column(record, "opcode")?;
    Ok(Row {
        archs: column(record, "archs")?.split(' ').map(str::parse).collect::<Result<_, _>>()?,
        opcode: u16::from_str_radix(opcode.trim_start_matches("0x"), 16)?,
        bit91: column(record, "bit91")? == "1",
        mnemonic: column(record, "mnemonic")?.to_owned(),
        uniform_guard: column(record, "guard")? == "UP",
        when: when(&spec["when"])?,
        modifiers: list(&spec["mods"])?.iter().map(model).collect::<Result<_>>()?,
        operands: list(&spec["ops"])?.iter().map(operand).collect::<Result<_>>()?,
    })
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().ok_or_else(|| anyhow!("not a list: {value}"))
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| anyhow!("not a string: {value}"))
}

fn small(value: &Value) -> Result<u8> {
    let number = value.as_u64().ok_or_else(|| anyhow!("not a number: {value}"))?;
    Ok(u8::try_from(number)?)
}

/// Booleans become "" and "1" so that every lookup yields a token.
fn token_text(value: &Value) -> Result<String> {
    Ok(match value {
        Value::Bool(true) => "1".to_owned(),
        Value::Bool(false) => String::new(),
        other => text(other)?.to_owned(),
    })
}

fn when(value: &Value) -> Result<When> {
    Ok(match text(&value[0])? {
        "always" => When::Always,
        "tab" => When::OneOf {
            bits: list(&value[1])?.iter().map(small).collect::<Result<_>>()?,
            values: list(&value[2])?.iter().filter_map(Value::as_u64).collect(),
        },
        "tree" => When::Any(list(&value[1])?.iter().map(conjunction).collect::<Result<_>>()?),
        other => bail!("unknown condition {other}"),
    })
}

fn conjunction(value: &Value) -> Result<Conjunction> {
    list(value)?.iter().map(|pair| atom(text(&pair[0])?, pair[1].as_u64() == Some(1))).collect()
}

/// `bN`, `eqLO:W:V` or `pow2_LO:W`.
fn atom(name: &str, want: bool) -> Result<Test> {
    if let Some(rest) = name.strip_prefix("eq") {
        let parts: Vec<u64> = rest.split(':').map(str::parse).collect::<Result<_, _>>()?;
        ensure!(parts.len() == 3, "malformed test {name}");
        let field = Field { lo: parts[0].try_into()?, width: parts[1].try_into()? };
        return Ok(Test::Equals { field, value: parts[2], want });
    }
    if let Some(rest) = name.strip_prefix("pow2_") {
        let (lo, width) = rest.split_once(':').context("malformed test")?;
        let field = Field { lo: lo.parse()?, width: width.parse()? };
        return Ok(Test::PowerOfTwo { field, want });
    }
    let bit = name.strip_prefix('b').with_context(|| format!("unknown test {name}"))?;
    let field = Field { lo: bit.parse()?, width: 1 };
    Ok(Test::Equals { field, value: u64::from(want), want: true })
}

fn model(value: &Value) -> Result<Model> {
    Ok(match text(&value[0])? {
        "const" => match &value[1] {
            Value::Number(n) => Model::Int(n.as_i64().context("integer out of range")?),
            other => Model::Token(token_text(other)?),
        },
        "num" => Model::Number {
            fields: list(&value[1])?
                .iter()
                .map(|f| Ok(Field { lo: small(&f[0])?, width: small(&f[1])? }))
                .collect::<Result<_>>()?,
            signed: value[2].as_u64() == Some(1),
            shift: small(&value[3])?,
            adjust: match value.get(4).map(text).transpose()? {
                None => Adjust::None,
                Some("rel") => Adjust::PcRelative,
                Some("plus1") => Adjust::NextRegister,
                Some("inv7") => Adjust::SevenMinus,
                Some(other) => bail!("unknown adjustment {other}"),
            },
        },
        "tab" => Model::Lookup {
            bits: list(&value[1])?.iter().map(small).collect::<Result<_>>()?,
            map: text(&value[2])?.to_owned(),
        },
        "tree" => Model::Decide(
            list(&value[1])?
                .iter()
                .map(|leaf| Ok((conjunction(&leaf[0])?, token_text(&leaf[1])?)))
                .collect::<Result<_>>()?,
        ),
        "opt" => Model::Optional { when: Box::new(model(&value[1])?), value: Box::new(model(&value[2])?) },
        "if" => Model::If {
            test: atom(text(&value[1])?, true)?,
            then: Box::new(model(&value[2])?),
            otherwise: Box::new(model(&value[3])?),
        },
        "flt" => Model::Float {
            format: match text(&value[1])? {
                "f32" => 0,
                "f64hi" => 1,
                "f16" => 2,
                "bf16" => 3,
                other => bail!("unknown float format {other}"),
            },
            lo: small(&value[2])?,
        },
        "fail" => Model::Unknown,
        other => bail!("unknown model {other}"),
    })
}

fn operand(value: &Value) -> Result<Operand> {
    let attributes = value[1].as_object().context("operand without attributes")?;
    Ok(Operand {
        kind: text(&value[0])?.to_owned(),
        attributes: attributes.iter().map(|(name, m)| Ok((name.clone(), model(m)?))).collect::<Result<_>>()?,
    })
}
