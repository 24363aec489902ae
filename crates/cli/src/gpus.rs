//! The table of GPUs: `data/gpus.toml`, and what users add to it in the same form.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use lanescope_analysis::roofline::{Gpu, Lanes};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::launch::Position;
use crate::names::nearest;

const TABLE: &str = include_str!("../data/gpus.toml");
/// Name of the table that is built in, in messages.
const BUILT_IN: &str = "the built-in table";
/// Larger files are no tables of GPUs.
const LIMIT: u64 = 1 << 20;

/// GPUs and the limits of architectures.
#[derive(Clone, Debug, Default)]
pub struct Gpus {
    gpus: Vec<Entry>,
    archs: BTreeMap<String, Arch>,
}

#[derive(Clone, Debug)]
struct Entry {
    gpu: Gpu,
    also: Vec<String>,
}

/// What all GPUs of an architecture have in common.
#[derive(Clone, Debug)]
struct Arch {
    default: Option<String>,
    limits: Gpu,
}

/// What is wrong with a table, or with a name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file is too large to be one.
    #[error("{path} has {size} bytes; that is no table of GPUs")]
    NoTable {
        /// The file.
        path: String,
        /// Its size.
        size: u64,
    },
    /// A fault in a table.
    #[error("{0}")]
    Table(Box<Fault>),
    /// A name that no GPU has.
    #[error("there is no GPU `{name}`{}\n  known: {known}\n  --gpus FILE.toml adds others", suggest.as_ref().map(|s| format!("; did you mean `{s}`?")).unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
        /// The nearest one.
        suggest: Option<String>,
        /// All names.
        known: String,
    },
}

/// A fault in a table and its place.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// Where.
    pub at: Position,
    /// What, and what was expected.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.at.line > 0 {
            write!(f, ":{}:{}", self.at.line, self.at.column)?;
        }
        write!(f, ": {}", self.text)
    }
}

impl Gpus {
    /// The table that is built in.
    pub fn built_in() -> Result<Gpus, GpuError> {
        let mut gpus = Gpus::default();
        gpus.add(BUILT_IN, TABLE)?;
        Ok(gpus)
    }

    /// The same with the tables of a file added.
    pub fn with_file(path: &Path) -> Result<Gpus, GpuError> {
        let shown = path.display().to_string();
        let fail = |error| GpuError::Read { path: shown.clone(), error };
        let size = std::fs::metadata(path).map_err(fail)?.len();
        if size > LIMIT {
            return Err(GpuError::NoTable { path: shown, size });
        }
        let text = std::fs::read_to_string(path).map_err(fail)?;
        let mut gpus = Gpus::built_in()?;
        gpus.add(&shown, &text)?;
        Ok(gpus)
    }

    /// Adds the entries of a table; those with a known name replace the old ones.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), GpuError> {
        let reader = Reader { file, text };
        let root = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or_else(Position::default, |s| Position::of(text, s.start));
            reader.fault(at, e.message().trim().to_owned())
        })?;
        let root = root.get_ref();
        reader.known(root, &["arch", "gpu"], "a table of GPUs")?;
        for (table, at) in reader.list(root, "arch")? {
            let arch = reader.arch(table, at)?;
            self.archs.insert(arch.limits.arch.clone(), arch);
        }
        for (table, at) in reader.list(root, "gpu")? {
            let entry = reader.gpu(table, at, &self.archs)?;
            self.gpus.retain(|e| e.gpu.name != entry.gpu.name);
            self.gpus.push(entry);
        }
        Ok(())
    }

    /// All GPUs, in the order of the tables.
    pub fn all(&self) -> impl Iterator<Item = &Gpu> {
        self.gpus.iter().map(|e| &e.gpu)
    }

    /// The GPU of that name; case, spaces and dashes do not matter.
    pub fn find(&self, name: &str) -> Result<&Gpu, GpuError> {
        let plain =
            |s: &str| s.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
        let wanted = plain(name);
        let named = |e: &&Entry| plain(&e.gpu.name) == wanted;
        let alias = |e: &&Entry| e.also.iter().any(|a| plain(a) == wanted);
        if let Some(e) = self.gpus.iter().find(named).or_else(|| self.gpus.iter().find(alias)) {
            return Ok(&e.gpu);
        }
        let suggest = nearest(name, self.all().map(|g| g.name.as_str())).map(str::to_owned);
        let known = self.all().map(|g| g.name.as_str()).collect::<Vec<_>>().join(", ");
        Err(GpuError::Unknown { name: name.to_owned(), suggest, known })
    }

    /// The GPU to assume for code of an architecture, if none is named: its architecture's own, that of the nearest older
    /// one of the same generation, or for PTX and what is not known an H200.
    pub fn for_arch(&self, arch: &str) -> Option<&Gpu> {
        let number = |a: &str| a.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse::<u32>().ok();
        let fallback = || self.archs.get("sm_90").and_then(|a| a.default.as_deref());
        let name = match number(arch) {
            None => fallback(),
            Some(n) => self
                .archs
                .iter()
                .filter_map(|(name, a)| Some((number(name)?, a.default.as_deref()?)))
                .filter(|(m, _)| *m <= n && m / 10 == n / 10)
                .max_by_key(|(m, _)| *m)
                .map(|x| x.1)
                .or_else(fallback),
        };
        self.find(name?).ok()
    }
}

type Node<'i> = Spanned<DeValue<'i>>;

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

/// Numbers of an architecture, with the largest that make sense.
const LIMITS: [(&str, f64); 9] = [
    ("schedulers", 64.0),
    ("warps_per_sm", 4096.0),
    ("blocks_per_sm", 4096.0),
    ("registers_per_sm", 16_777_216.0),
    ("shared_per_sm", 67_108_864.0),
    ("shared_per_block", 67_108_864.0),
    ("shared_reserved", 1_048_576.0),
    ("shared_unit", 65_536.0),
    ("l1_bytes", 67_108_864.0),
];
const LANES: [&str; 6] = ["fma", "imad", "alu", "fp64", "xu", "lsu"];

impl Reader<'_> {
    fn fault(&self, at: Position, text: String) -> GpuError {
        GpuError::Table(Box::new(Fault { file: self.file.to_owned(), at, text }))
    }

    fn at(&self, node: &Node<'_>) -> Position {
        Position::of(self.text, node.span().start)
    }

    fn known(&self, table: &DeTable<'_>, keys: &[&str], place: &str) -> Result<(), GpuError> {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                let suggest =
                    nearest(name, keys.iter().copied()).map_or(String::new(), |s| format!("; did you mean `{s}`?"));
                let at = Position::of(self.text, key.span().start);
                let known = keys.join(", ");
                return Err(self.fault(at, format!("unknown key `{name}` in {place}{suggest}\n  known keys: {known}")));
            }
        }
        Ok(())
    }

    fn list<'t, 'i>(&self, root: &'t DeTable<'i>, key: &str) -> Result<Vec<(&'t DeTable<'i>, Position)>, GpuError> {
        let Some(node) = root.get(key) else { return Ok(Vec::new()) };
        let wrong = |at| self.fault(at, format!("`{key}` must be a list of tables: write [[{key}]] before each"));
        let list = node.get_ref().as_array().ok_or_else(|| wrong(self.at(node)))?;
        list.iter().map(|n| Ok((n.get_ref().as_table().ok_or_else(|| wrong(self.at(n)))?, self.at(n)))).collect()
    }

    fn text(&self, table: &DeTable<'_>, key: &str) -> Result<Option<(String, Position)>, GpuError> {
        let Some(node) = table.get(key) else { return Ok(None) };
        match node.get_ref().as_str() {
            Some(s) if !s.trim().is_empty() && s.len() <= 400 => Ok(Some((s.to_owned(), self.at(node)))),
            _ => Err(self.fault(self.at(node), format!("`{key}` must be a text of 1 to 400 characters"))),
        }
    }

    fn needed(
        &self,
        table: &DeTable<'_>,
        key: &str,
        at: Position,
        place: &str,
    ) -> Result<(String, Position), GpuError> {
        self.text(table, key)?.ok_or_else(|| self.fault(at, format!("`{key}` is missing in {place}")))
    }

    /// A number from above zero (from zero if `zero`) to `most`.
    fn number(&self, table: &DeTable<'_>, key: &str, most: f64, zero: bool) -> Result<Option<f64>, GpuError> {
        let Some(node) = table.get(key) else { return Ok(None) };
        let value = match node.get_ref() {
            DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).ok().map(|i| i as f64),
            DeValue::Float(f) => f.as_str().parse::<f64>().ok(),
            _ => None,
        };
        match value {
            Some(x) if x.is_finite() && x <= most && (x > 0.0 || zero && x == 0.0) => Ok(Some(x)),
            _ => {
                let from = if zero { "from 0" } else { "above 0" };
                Err(self.fault(self.at(node), format!("`{key}` must be a number {from}, {most} at most")))
            }
        }
    }

    /// Numbers of an architecture that a table gives, over those of `base`.
    fn limits(&self, table: &DeTable<'_>, base: &mut BTreeMap<String, f64>) -> Result<(), GpuError> {
        for (key, most) in LIMITS {
            if let Some(x) = self.number(table, key, most, key == "shared_reserved")? {
                base.insert(key.to_owned(), x);
            }
        }
        let Some(node) = table.get("lanes") else { return Ok(()) };
        let lanes = node.get_ref().as_table();
        let lanes = lanes.ok_or_else(|| self.fault(self.at(node), "`lanes` must be a table of numbers".into()))?;
        self.known(lanes, &LANES, "`lanes`")?;
        for key in LANES {
            if let Some(x) = self.number(lanes, key, 4096.0, false)? {
                base.insert(key.to_owned(), x);
            }
        }
        Ok(())
    }

    fn made(&self, n: &BTreeMap<String, f64>, at: Position, place: &str) -> Result<Gpu, GpuError> {
        let get =
            |key: &str| n.get(key).copied().ok_or_else(|| self.fault(at, format!("`{key}` is missing in {place}")));
        let whole = |key: &str| get(key).map(|x| x as u32);
        let warps = whole("warps_per_sm")?;
        Ok(Gpu {
            name: String::new(),
            arch: String::new(),
            sms: 1,
            schedulers: whole("schedulers")?,
            clock_mhz: 1.0,
            dram_gbs: 1.0,
            l2_bytes: 0,
            l2_gbs: None,
            l1_bytes: whole("l1_bytes")?,
            warps_per_sm: warps,
            blocks_per_sm: whole("blocks_per_sm")?,
            threads_per_sm: warps * 32,
            registers_per_sm: whole("registers_per_sm")?,
            shared_per_sm: whole("shared_per_sm")?,
            shared_per_block: whole("shared_per_block")?,
            shared_reserved: whole("shared_reserved")?,
            shared_unit: whole("shared_unit")?,
            lanes: Lanes {
                fma: get("fma")?,
                imad: get("imad")?,
                alu: get("alu")?,
                fp64: get("fp64")?,
                xu: get("xu")?,
                lsu: get("lsu")?,
            },
            source: String::new(),
        })
    }

    fn arch(&self, table: &DeTable<'_>, at: Position) -> Result<Arch, GpuError> {
        let mut keys = vec!["name", "default", "lanes", "source"];
        keys.extend(LIMITS.iter().map(|l| l.0));
        self.known(table, &keys, "an [[arch]]")?;
        let (name, _) = self.needed(table, "name", at, "an [[arch]]")?;
        let place = format!("the [[arch]] `{name}`");
        let source = self.needed(table, "source", at, &place)?.0;
        let default = self.text(table, "default")?.map(|d| d.0);
        let mut numbers = BTreeMap::new();
        self.limits(table, &mut numbers)?;
        let limits = Gpu { arch: name, source, ..self.made(&numbers, at, &place)? };
        Ok(Arch { default, limits })
    }

    fn gpu(&self, table: &DeTable<'_>, at: Position, archs: &BTreeMap<String, Arch>) -> Result<Entry, GpuError> {
        let mut keys = vec!["name", "also", "arch", "sms", "clock_mhz", "dram_gbs", "l2_bytes", "l2_gbs", "lanes"];
        keys.push("source");
        keys.extend(LIMITS.iter().map(|l| l.0));
        self.known(table, &keys, "a [[gpu]]")?;
        let (name, _) = self.needed(table, "name", at, "a [[gpu]]")?;
        let place = format!("the [[gpu]] `{name}`");
        let source = self.needed(table, "source", at, &place)?.0;
        let (arch, arch_at) = self.needed(table, "arch", at, &place)?;
        let known: Vec<&str> = archs.keys().map(String::as_str).collect();
        let base = archs.get(&arch).ok_or_else(|| {
            let text =
                format!("architecture `{arch}` is not known; known are {}; an [[arch]] adds one", known.join(", "));
            self.fault(arch_at, text)
        })?;
        let need = |key: &str, most: f64| {
            let value = self.number(table, key, most, false)?;
            value.ok_or_else(|| self.fault(at, format!("`{key}` is missing in {place}")))
        };
        let mut numbers = numbers(&base.limits);
        self.limits(table, &mut numbers)?;
        let gpu = Gpu {
            name,
            arch,
            sms: need("sms", 65_536.0)? as u32,
            clock_mhz: need("clock_mhz", 100_000.0)?,
            dram_gbs: need("dram_gbs", 10_000_000.0)?,
            l2_bytes: need("l2_bytes", 1e13)? as u64,
            l2_gbs: self.number(table, "l2_gbs", 10_000_000.0, false)?,
            source,
            ..self.made(&numbers, at, &place)?
        };
        Ok(Entry { gpu, also: self.also(table)? })
    }

    fn also(&self, table: &DeTable<'_>) -> Result<Vec<String>, GpuError> {
        let Some(node) = table.get("also") else { return Ok(Vec::new()) };
        let texts = node.get_ref().as_array().map(|l| l.iter().map(|n| n.get_ref().as_str().map(str::to_owned)));
        texts
            .and_then(|t| t.collect::<Option<Vec<_>>>())
            .ok_or_else(|| self.fault(self.at(node), "`also` must be a list of names".into()))
    }
}

/// The numbers of an architecture by their keys.
fn numbers(g: &Gpu) -> BTreeMap<String, f64> {
    let l = &g.lanes;
    let whole = [
        g.schedulers,
        g.warps_per_sm,
        g.blocks_per_sm,
        g.registers_per_sm,
        g.shared_per_sm,
        g.shared_per_block,
        g.shared_reserved,
        g.shared_unit,
        g.l1_bytes,
    ];
    let lanes = [l.fma, l.imad, l.alu, l.fp64, l.xu, l.lsu];
    let whole = LIMITS.iter().map(|k| k.0.to_owned()).zip(whole.map(f64::from));
    whole.chain(LANES.iter().map(|k| (*k).to_owned()).zip(lanes)).collect()
}
