//! Writes the binary table; `crates/sass/src/isa/tables.rs` reads it and documents the format.

use super::source::{Adjust, Conjunction, Field, Model, Operand, Row, Tables, Test, When};
use anyhow::{Context, Result, bail, ensure};
use std::collections::HashMap;

const MAGIC: &[u8; 8] = b"SASSTAB1";

/// Must be the order of `TABLE_ARCHS` in `arch.rs`.
const ARCHS: [u16; 11] = [75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121];

/// Must be the order of `Kind` in `tables.rs`.
const KINDS: [&str; 17] =
    ["R", "UR", "P", "UP", "B", "SB", "I", "F", "C", "CX", "M", "gdescM", "tmemM", "idescM", "aM", "D", "L"];

/// Must be the order of `Attribute` in `tables.rs`.
const ATTRIBUTES: [&str; 15] =
    ["num", "v", "f", "lit", "bank", "neg", "abs", "si", "so", "reuse", "r", "rs", "u", "i", "d"];
/// `sp`, the blank between the brackets of a constant.
const SPACE: &str = "sp";

#[derive(Default)]
struct Writer {
    strings: Pool<String>,
    maps: Pool<Vec<u8>>,
    map_ids: HashMap<String, u64>,
    nodes: Pool<Vec<u8>>,
}

struct Pool<T> {
    items: Vec<T>,
    ids: HashMap<T, u64>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool { items: Vec::new(), ids: HashMap::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Pool<T> {
    fn intern(&mut self, item: T) -> u64 {
        if let Some(&id) = self.ids.get(&item) {
            return id;
        }
        let id = self.items.len() as u64;
        self.items.push(item.clone());
        self.ids.insert(item, id);
        id
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(super) fn encode(tables: &Tables) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    writer.strings.intern(String::new());
    for (name, map) in &tables.maps {
        let last = map.keys().next_back().copied().unwrap_or(0);
        ensure!(last < 1 << 12, "map {name} is too wide");
        let mut bytes = Vec::new();
        put(&mut bytes, last + 1);
        for value in 0..=last {
            match map.get(&value) {
                Some(token) => {
                    let id = writer.token(token);
                    put(&mut bytes, id + 1);
                }
                None => put(&mut bytes, 0),
            }
        }
        let id = writer.maps.intern(bytes);
        writer.map_ids.insert(name.clone(), id);
    }
    let mut rows = Vec::new();
    put(&mut rows, tables.rows.len() as u64);
    // A decoder walks the rows of one opcode in order, so they must be adjacent.
    let mut order: Vec<&Row> = tables.rows.iter().collect();
    order.sort_by_key(|row| (row.opcode, row.bit91));
    for row in order {
        writer.row(&mut rows, row).with_context(|| format!("opcode {:#x} {}", row.opcode, row.mnemonic))?;
    }

    let mut out = MAGIC.to_vec();
    put(&mut out, writer.strings.items.len() as u64);
    for string in &writer.strings.items {
        put(&mut out, string.len() as u64);
        out.extend_from_slice(string.as_bytes());
    }
    for pool in [&writer.maps, &writer.nodes] {
        put(&mut out, pool.items.len() as u64);
        for item in &pool.items {
            out.extend_from_slice(item);
        }
    }
    out.extend_from_slice(&rows);
    Ok(out)
}

impl Writer {
    /// Tokens are stored without their leading dot.
    fn token(&mut self, token: &str) -> u64 {
        self.strings.intern(token.strip_prefix('.').unwrap_or(token).to_owned())
    }

    fn row(&mut self, out: &mut Vec<u8>, row: &Row) -> Result<()> {
        let mut archs = 0;
        for sm in &row.archs {
            let bit = ARCHS.iter().position(|a| a == sm);
            archs |= 1 << bit.with_context(|| format!("architecture {sm} has no bit"))?;
        }
        put(out, archs);
        put(out, u64::from(row.opcode) << 1 | u64::from(row.bit91));
        put(out, self.strings.intern(row.mnemonic.clone()));
        out.push(u8::from(row.uniform_guard));
        match &row.when {
            When::Always => out.push(0),
            When::OneOf { bits, values } => {
                out.push(1);
                put_bits(out, bits);
                put(out, values.len() as u64);
                for &value in values {
                    put(out, value);
                }
            }
            When::Any(conjunctions) => {
                out.push(2);
                put(out, conjunctions.len() as u64);
                for conjunction in conjunctions {
                    put_conjunction(out, conjunction)?;
                }
            }
        }
        // A modifier that never prints needs no work at run time.
        let modifiers: Vec<u64> = row
            .modifiers
            .iter()
            .filter(|m| !matches!(m, Model::Token(t) if t.is_empty()))
            .map(|m| self.model(m))
            .collect::<Result<_>>()?;
        put(out, modifiers.len() as u64);
        for id in modifiers {
            put(out, id);
        }
        put(out, row.operands.len() as u64);
        for operand in &row.operands {
            self.operand(out, operand)?;
        }
        Ok(())
    }

    fn operand(&mut self, out: &mut Vec<u8>, operand: &Operand) -> Result<()> {
        let kind = KINDS.iter().position(|k| *k == operand.kind);
        let kind = kind.with_context(|| format!("unknown operand kind {}", operand.kind))?;
        out.push(kind as u8);
        put(out, operand.attributes.len() as u64);
        for (name, model) in &operand.attributes {
            let index = if name == SPACE {
                ATTRIBUTES.len()
            } else {
                let index = ATTRIBUTES.iter().position(|a| a == name);
                index.with_context(|| format!("unknown attribute {name}"))?
            };
            let id = self.model(model).with_context(|| format!("attribute {name}"))?;
            out.push(index as u8);
            put(out, id);
        }
        Ok(())
    }

    fn model(&mut self, model: &Model) -> Result<u64> {
        let mut bytes = Vec::new();
        match model {
            Model::Token(token) => {
                bytes.push(0);
                let id = self.token(token);
                put(&mut bytes, id);
            }
            Model::Int(value) => {
                bytes.push(1);
                put_signed(&mut bytes, *value);
            }
            Model::Number { fields, signed, shift, adjust } => {
                bytes.push(2);
                ensure!((1..=2).contains(&fields.len()), "a number has one or two fields");
                put(&mut bytes, fields.len() as u64);
                for field in fields {
                    put_field(&mut bytes, *field)?;
                }
                bytes.push(u8::from(*signed));
                bytes.push(*shift);
                bytes.push(match adjust {
                    Adjust::None => 0,
                    Adjust::PcRelative => 1,
                    Adjust::NextRegister => 2,
                    Adjust::SevenMinus => 3,
                    Adjust::SecondNextRegister => 4,
                });
            }
            Model::Lookup { bits, map } => {
                bytes.push(3);
                put_bits(&mut bytes, bits);
                let id = self.map_ids.get(map);
                put(&mut bytes, *id.with_context(|| format!("no map {map}"))?);
            }
            Model::Decide(leaves) => {
                bytes.push(4);
                put(&mut bytes, leaves.len() as u64);
                for (conjunction, token) in leaves {
                    put_conjunction(&mut bytes, conjunction)?;
                    let id = self.token(token);
                    put(&mut bytes, id);
                }
            }
            Model::Optional { when, value } => {
                let (when, value) = (self.model(when)?, self.model(value)?);
                bytes.push(5);
                put(&mut bytes, when);
                put(&mut bytes, value);
            }
            Model::If { test, then, otherwise } => {
                let (then, otherwise) = (self.model(then)?, self.model(otherwise)?);
                bytes.push(6);
                put_conjunction(&mut bytes, std::slice::from_ref(test))?;
                put(&mut bytes, then);
                put(&mut bytes, otherwise);
            }
            Model::Float { format, lo } => bytes.extend([7, *format, *lo]),
            Model::Unknown => bytes.push(8),
        }
        Ok(self.nodes.intern(bytes))
    }
}

fn put_field(out: &mut Vec<u8>, field: Field) -> Result<()> {
    let end = u32::from(field.lo) + u32::from(field.width);
    ensure!((1..=64).contains(&field.width) && end <= 128, "bad field {field:?}");
    out.extend([field.lo, field.width]);
    Ok(())
}

/// Bits as runs of adjacent ones, lowest weight first.
fn put_bits(out: &mut Vec<u8>, bits: &[u8]) {
    let mut runs: Vec<Field> = Vec::new();
    for &bit in bits {
        match runs.last_mut() {
            Some(run) if run.lo + run.width == bit => run.width += 1,
            _ => runs.push(Field { lo: bit, width: 1 }),
        }
    }
    put(out, runs.len() as u64);
    for run in runs {
        out.extend([run.lo, run.width]);
    }
}

fn put_conjunction(out: &mut Vec<u8>, conjunction: &[Test]) -> Result<()> {
    let conjunction: &Conjunction = &conjunction.to_vec();
    put(out, conjunction.len() as u64);
    for test in conjunction {
        match test {
            Test::Equals { field, value, want } => {
                if field.width < 64 && value >> field.width != 0 {
                    bail!("{value} does not fit {field:?}");
                }
                out.push(u8::from(*want));
                put_field(out, *field)?;
                put(out, *value);
            }
            Test::PowerOfTwo { field, want } => {
                out.push(2 + u8::from(*want));
                put_field(out, *field)?;
            }
        }
    }
    Ok(())
}
