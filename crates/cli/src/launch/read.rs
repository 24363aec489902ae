//! From TOML to a [`LaunchFile`].

use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::random::Bounds;
use super::{Arg, Fault, LaunchError, LaunchFile, MEMORY_LIMIT, Position, Value};
use crate::compile::Options;
use crate::dtype::Dtype;
use crate::names::nearest;

const TOP: &[&str] = &["module", "kernel", "arch", "grid", "block", "dynamic_shared", "compile", "arg"];
const BUFFERS: &[&str] = &["npy", "zeros", "ones", "full", "random"];

type Result<T> = std::result::Result<T, LaunchError>;
type Node<'i> = Spanned<DeValue<'i>>;

pub(super) struct Reader<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Reader<'_> {
    pub(super) fn launch(&self) -> Result<LaunchFile> {
        let root = DeTable::parse(self.text).map_err(|e| {
            let at = e.span().map_or_else(Position::default, |s| Position::of(self.text, s.start));
            LaunchError { file: self.file.into(), at, fault: Box::new(Fault::Syntax(e.message().trim().to_owned())) }
        })?;
        let root = root.get_ref();
        self.known(root, TOP, "the launch file")?;
        let (module, module_at) = self
            .string(root, "module")?
            .ok_or_else(|| self.missing("module", "the launch file", "module = \"kernel.cubin\""))?;
        let kernel = self.string(root, "kernel")?;
        let arch = self.string(root, "arch")?;
        let grid_limits = [i32::MAX as u32, 65_535, 65_535];
        let grid = self.dims(root, "grid", grid_limits, "grid = [64, 1, 1]")?;
        let block = self.dims(root, "block", [1024, 1024, 64], "block = [256, 1, 1]")?;
        let threads: u64 = block.0.iter().map(|&d| u64::from(d)).product();
        if threads > 1024 {
            let [x, y, z] = block.0;
            return Err(self.error(block.1, Fault::BlockTooLarge { x, y, z, threads }));
        }
        let dynamic_shared = match root.get("dynamic_shared") {
            Some(v) => self.integer(v, "dynamic_shared", 0, 1 << 20)? as u32,
            None => 0,
        };
        let (kernel, kernel_at) = kernel.map_or((None, module_at), |(k, at)| (Some(k), at));
        let (arch, arch_at) = arch.map_or((None, module_at), |(a, at)| (Some(a), at));
        Ok(LaunchFile {
            file: self.file.into(),
            module: module.into(),
            module_at,
            kernel,
            kernel_at,
            arch,
            arch_at,
            grid: grid.0,
            block: block.0,
            dynamic_shared,
            compile: self.compile(root)?,
            args: self.args(root)?,
        })
    }

    fn compile(&self, root: &DeTable<'_>) -> Result<Options> {
        let Some(node) = root.get("compile") else { return Ok(Options::default()) };
        let Some(table) = node.get_ref().as_table() else {
            return Err(self.wrong(node, "compile", "a table with options and include"));
        };
        self.known(table, &["options", "include"], "the table [compile]")?;
        let include = self.strings(table, "include", "include = [\"../include\"]")?;
        Ok(Options {
            options: self.strings(table, "options", "options = [\"-DN=4\"]")?,
            include: include.into_iter().map(PathBuf::from).collect(),
        })
    }

    /// A list of texts; none if the key is not there.
    fn strings(&self, table: &DeTable<'_>, key: &str, example: &str) -> Result<Vec<String>> {
        let Some(node) = table.get(key) else { return Ok(Vec::new()) };
        let list = node.get_ref().as_array().map(|l| l.iter().map(|n| n.get_ref().as_str().map(str::to_owned)));
        list.and_then(|mut l| l.by_ref().collect::<Option<Vec<_>>>())
            .ok_or_else(|| self.wrong(node, key, &format!("a list of texts such as {example}")))
    }

    fn args(&self, root: &DeTable<'_>) -> Result<Vec<Arg>> {
        let Some(node) = root.get("arg") else { return Ok(Vec::new()) };
        let Some(list) = node.get_ref().as_array() else {
            return Err(self.wrong(node, "arg", "a list of tables; write [[arg]] before each argument"));
        };
        let mut total = 0u128;
        let mut args = Vec::new();
        for (index, node) in list.iter().enumerate() {
            let place = format!("argument {index}");
            let Some(table) = node.get_ref().as_table() else {
                return Err(self.wrong(node, &place, "a table such as { i32 = 4 }"));
            };
            let arg = self.arg(index, &place, table, self.place(node))?;
            let bytes = match &arg.value {
                Value::Fill { dtype, len, .. } | Value::Random { dtype, len, .. } => {
                    *len as u128 * dtype.size() as u128
                }
                _ => 0,
            };
            total += bytes;
            if total > u128::from(MEMORY_LIMIT) {
                return Err(self.error(arg.at, Fault::TooLarge { index, bytes, limit: MEMORY_LIMIT }));
            }
            args.push(arg);
        }
        Ok(args)
    }

    fn arg(&self, index: usize, place: &str, table: &DeTable<'_>, at: Position) -> Result<Arg> {
        let scalars = Dtype::ALL.map(Dtype::name);
        let mut values: Vec<&'static str> = BUFFERS.to_vec();
        values.extend(scalars);
        values.push("bytes");
        let mut known = values.clone();
        known.extend(["name", "out", "dtype"]);
        self.known(table, &known, place)?;
        let given: Vec<&'static str> = values.iter().copied().filter(|k| table.get(*k).is_some()).collect();
        let [key] = given.as_slice() else {
            let fault = Fault::OneValue { index, found: given.join(", "), known: values.join(", ") };
            return Err(self.error(at, fault));
        };
        let node = &table[*key];
        let what = format!("`{key}` of argument {index}");
        let value = match *key {
            "npy" => {
                let Some(path) = node.get_ref().as_str() else {
                    return Err(self.wrong(node, &what, "the path of a .npy file"));
                };
                let dtype = table.get("dtype").map(|d| self.dtype(d)).transpose()?;
                Value::Npy { path: path.into(), dtype }
            }
            "zeros" | "ones" | "full" | "random" => self.generated(key, node, &what)?,
            "bytes" => Value::Bytes(self.bytes(index, node)?),
            name => {
                let dtype = Dtype::from_name(name).unwrap_or(Dtype::U8);
                Value::Scalar { dtype, bytes: self.element(dtype, node, &what)? }
            }
        };
        for key in ["out", "dtype"] {
            let fits = if key == "dtype" { matches!(value, Value::Npy { .. }) } else { value.is_buffer() };
            if let Some(node) = table.get(key)
                && !fits
            {
                return Err(self.error(self.place(node), Fault::ScalarWith { index, key }));
            }
        }
        let name = self.string(table, "name")?.map(|n| n.0);
        let out = self.string(table, "out")?.map(|o| PathBuf::from(o.0));
        Ok(Arg { name, value, out, at: self.place(node) })
    }

    /// `zeros`, `ones`, `full` and `random`: a table with `dtype`, `len` and what they need more.
    fn generated(&self, key: &str, node: &Node<'_>, what: &str) -> Result<Value> {
        let Some(table) = node.get_ref().as_table() else {
            return Err(self.wrong(node, what, "a table such as { dtype = \"f32\", len = 1024 }"));
        };
        let known: &[&'static str] = match key {
            "full" => &["dtype", "len", "value"],
            "random" => &["dtype", "len", "seed", "low", "high"],
            _ => &["dtype", "len"],
        };
        self.known(table, known, what)?;
        let need = |key: &'static str, example| {
            table
                .get(key)
                .ok_or_else(|| self.error(self.place(node), Fault::Missing { key, place: what.into(), example }))
        };
        let dtype = self.dtype(need("dtype", "dtype = \"f32\"")?)?;
        let len = self.integer(need("len", "len = 1024")?, &format!("len in {what}"), 0, MEMORY_LIMIT.into())? as usize;
        Ok(match key {
            "zeros" => Value::Fill { dtype, len, element: vec![0; dtype.size()] },
            "ones" => {
                let element = if dtype.is_float() { dtype.float_bytes(1.0) } else { dtype.int_bytes(1) };
                Value::Fill { dtype, len, element }
            }
            "full" => {
                let value = need("value", "value = 1")?;
                Value::Fill { dtype, len, element: self.element(dtype, value, &format!("value in {what}"))? }
            }
            _ => {
                let seed = match table.get("seed") {
                    Some(s) => self.integer(s, &format!("seed in {what}"), 0, u64::MAX.into())? as u64,
                    None => 0,
                };
                Value::Random { dtype, len, seed, bounds: self.bounds(dtype, table, node, what)? }
            }
        })
    }

    fn bounds(&self, dtype: Dtype, table: &DeTable<'_>, node: &Node<'_>, what: &str) -> Result<Bounds> {
        let (low, high) = (table.get("low"), table.get("high"));
        let Some((least, most)) = dtype.int_range() else {
            let low = low.map_or(Ok(0.0), |n| self.float(n, &format!("low in {what}")))?;
            let high = high.map_or(Ok(1.0), |n| self.float(n, &format!("high in {what}")))?;
            if !(low <= high && low.is_finite() && high.is_finite()) {
                let expected = "finite, with low not above high".into();
                let found = format!("{low} to {high}");
                return Err(
                    self.error(self.place(node), Fault::Type { what: format!("the range of {what}"), expected, found })
                );
            }
            return Ok(Bounds::Float(low, high));
        };
        if low.is_none() && high.is_none() {
            // A bool must be 0 or 1; everything else takes the stream as it is.
            return Ok(match dtype {
                Dtype::Bool => Bounds::Int(0, 2),
                Dtype::U32 | Dtype::I32 | Dtype::U64 | Dtype::I64 => Bounds::Whole,
                _ => Bounds::Int(least, most + 1),
            });
        }
        let low = low.map_or(Ok(0), |n| self.integer(n, &format!("low in {what}"), least, most))?;
        let high = match high {
            Some(n) => self.integer(n, &format!("high in {what}"), low + 1, most + 1)?,
            None => most.min(u32::MAX.into()) + 1,
        };
        Ok(Bounds::Int(low, high))
    }

    fn element(&self, dtype: Dtype, node: &Node<'_>, what: &str) -> Result<Vec<u8>> {
        if let (Dtype::Bool, Some(b)) = (dtype, node.get_ref().as_bool()) {
            return Ok(vec![u8::from(b)]);
        }
        match dtype.int_range() {
            Some((low, high)) => Ok(dtype.int_bytes(self.integer(node, what, low, high)?)),
            None => Ok(dtype.float_bytes(self.float(node, what)?)),
        }
    }

    fn bytes(&self, index: usize, node: &Node<'_>) -> Result<Vec<u8>> {
        let bad = || self.error(self.place(node), Fault::Hex { index });
        match node.get_ref() {
            DeValue::String(text) => {
                let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'_').collect();
                if !digits.len().is_multiple_of(2) {
                    return Err(bad());
                }
                let byte = |pair: &[u8]| {
                    let hex = std::str::from_utf8(pair).ok()?;
                    u8::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+'))
                };
                digits.chunks(2).map(byte).collect::<Option<_>>().ok_or_else(bad)
            }
            DeValue::Array(list) => list
                .iter()
                .map(|n| self.integer(n, &format!("a byte of argument {index}"), 0, 255).map(|b| b as u8))
                .collect(),
            _ => Err(bad()),
        }
    }

    fn dtype(&self, node: &Node<'_>) -> Result<Dtype> {
        let names = Dtype::ALL.map(Dtype::name);
        let known = names.join(", ");
        let Some(text) = node.get_ref().as_str() else {
            return Err(self.wrong(node, "dtype", &format!("one of {known}")));
        };
        Dtype::from_name(text).ok_or_else(|| {
            // NumPy's and C's names for the same things.
            let alias = match text {
                "float32" | "float" | "fp32" | "<f4" => Some("f32"),
                "float64" | "double" | "fp64" | "<f8" => Some("f64"),
                "float16" | "half" | "fp16" | "<f2" => Some("f16"),
                "bfloat16" => Some("bf16"),
                "int32" | "int" | "s32" | "<i4" => Some("i32"),
                "int64" | "long" | "s64" | "<i8" => Some("i64"),
                "uint32" | "<u4" => Some("u32"),
                "uint64" | "<u8" => Some("u64"),
                "int16" | "short" => Some("i16"),
                "uint16" => Some("u16"),
                "int8" | "char" => Some("i8"),
                "uint8" | "byte" => Some("u8"),
                _ => nearest(text, names),
            };
            self.error(self.place(node), Fault::Dtype { found: text.into(), suggest: alias, known })
        })
    }

    fn dims(
        &self,
        root: &DeTable<'_>,
        key: &'static str,
        limits: [u32; 3],
        example: &'static str,
    ) -> Result<([u32; 3], Position)> {
        let Some(node) = root.get(key) else { return Err(self.missing(key, "the launch file", example)) };
        let mut out = [1; 3];
        let one = std::slice::from_ref(node);
        let list: &[Node<'_>] = match node.get_ref() {
            DeValue::Array(list) if (1..=3).contains(&list.len()) => &list[..],
            DeValue::Integer(_) => one,
            _ => return Err(self.wrong(node, &format!("`{key}`"), "a list of one to three numbers")),
        };
        for (i, n) in list.iter().enumerate() {
            let what = format!("{key}.{}", ["x", "y", "z"][i]);
            out[i] = self.integer(n, &what, 1, limits[i].into())? as u32;
        }
        Ok((out, self.place(node)))
    }

    fn integer(&self, node: &Node<'_>, what: &str, low: i128, high: i128) -> Result<i128> {
        let DeValue::Integer(n) = node.get_ref() else {
            return Err(self.wrong(node, what, "a whole number"));
        };
        match i128::from_str_radix(n.as_str(), n.radix()) {
            Ok(x) if low <= x && x <= high => Ok(x),
            _ => Err(self.error(
                self.place(node),
                Fault::Range { what: what.into(), found: n.to_string(), low: low.to_string(), high: high.to_string() },
            )),
        }
    }

    fn float(&self, node: &Node<'_>, what: &str) -> Result<f64> {
        let value = match node.get_ref() {
            DeValue::Float(x) => x.as_str().parse().ok(),
            DeValue::Integer(n) => i128::from_str_radix(n.as_str(), n.radix()).ok().map(|x| x as f64),
            _ => None,
        };
        value.ok_or_else(|| self.wrong(node, what, "a number"))
    }

    fn string(&self, table: &DeTable<'_>, key: &str) -> Result<Option<(String, Position)>> {
        let Some(node) = table.get(key) else { return Ok(None) };
        match node.get_ref().as_str() {
            Some(s) => Ok(Some((s.to_owned(), self.place(node)))),
            None => Err(self.wrong(node, &format!("`{key}`"), "text in quotes")),
        }
    }

    fn known(&self, table: &DeTable<'_>, known: &[&'static str], place: &str) -> Result<()> {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let fault = Fault::UnknownKey {
                    key: name.to_owned(),
                    place: place.to_owned(),
                    suggest: nearest(name, known.iter().copied()),
                    known: known.join(", "),
                };
                return Err(self.error(Position::of(self.text, key.span().start), fault));
            }
        }
        Ok(())
    }

    fn place(&self, node: &Node<'_>) -> Position {
        Position::of(self.text, node.span().start)
    }

    fn error(&self, at: Position, fault: Fault) -> LaunchError {
        LaunchError { file: self.file.into(), at, fault: Box::new(fault) }
    }

    fn missing(&self, key: &'static str, place: &str, example: &'static str) -> LaunchError {
        self.error(Position::default(), Fault::Missing { key, place: place.into(), example })
    }

    fn wrong(&self, node: &Node<'_>, what: &str, expected: &str) -> LaunchError {
        let fault = Fault::Type {
            what: what.to_owned(),
            expected: expected.to_owned(),
            found: format!("a value of type {}", node.get_ref().type_str()),
        };
        self.error(self.place(node), fault)
    }
}
