//! Line tables: from an instruction to its source line, through every inlined call.
//!
//! `.debug_line` maps SASS to the source language, `.nv_debug_line_sass` maps it to PTX. Every
//! kernel's sequence starts at address 0 in the file; a relocation on that address says which text
//! section is meant. NVIDIA adds extended opcode 0x90 with two ULEB128 operands: the row that holds
//! the call site (counted from 1 in the order the sequence emits rows, 0 for none) and the called
//! function's name as an offset into `.debug_str`. Both stay in force until the next such opcode.

use std::collections::HashMap;

use gimli::{DebugLine, DebugLineOffset, DwLne, EndianSlice, LineInstruction, LineProgramHeader, LittleEndian, Reader};

use super::error::{Error, Result};
use super::module::Module;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// NVIDIA's extended opcode for an inlined call.
const INLINED_CALL: DwLne = DwLne(0x90);
/// `R_CUDA_64`
const R_CUDA_64: u32 = 2;

/// Which of a module's two line tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineKind {
    /// `.debug_line`: the source language (CUDA C++, Python, ...).
    Source,
    /// `.nv_debug_line_sass`: lines of the PTX text, which is kept in `.nv_debug_ptx_txt`.
    Ptx,
}

impl LineKind {
    fn section(self) -> &'static str {
        match self {
            LineKind::Source => ".debug_line",
            LineKind::Ptx => ".nv_debug_line_sass",
        }
    }
}

/// All line information of a module.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    rows: Vec<Row>,
    files: Vec<File>,
    directories: Vec<String>,
    /// By text section: offset and row, sorted by offset; no row where a sequence ends.
    sections: HashMap<usize, Vec<(u64, Option<u32>)>>,
    strings: Vec<u8>,
    /// What could not be read while the rest can be used.
    pub warnings: Vec<Error>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    /// Index into [`Lines::directories`]: joining the two here could multiply a long directory by many files.
    directory: usize,
    name: String,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    file: u32,
    line: u32,
    column: u32,
    /// Row of the call site, always an earlier one.
    caller: Option<u32>,
    function: Option<u32>,
}

/// One level of an instruction's position: the innermost first, the kernel's own line last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'l> {
    /// Directory of the file; empty if it is not recorded.
    pub directory: &'l str,
    /// Name of the file, perhaps with a path.
    pub file: &'l str,
    /// Line from 1; 0 for code that belongs to no line.
    pub line: u32,
    /// Column from 1; 0 if it is not recorded.
    pub column: u32,
    /// Mangled name of the inlined function this line is in; `None` for the outermost level.
    pub function: Option<&'l str>,
}

impl Frame<'_> {
    /// Directory and file joined.
    pub fn path(&self) -> String {
        if self.directory.is_empty() || self.file.starts_with('/') {
            return self.file.to_owned();
        }
        format!("{}/{}", self.directory.trim_end_matches('/'), self.file)
    }
}

impl Lines {
    /// Whether there is no line information at all.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Position of the instruction at `pc` of text section `section`: the innermost level and then
    /// each call site it was inlined at. Empty if the compiler recorded nothing.
    pub fn frames(&self, section: usize, pc: u64) -> Frames<'_> {
        let row = self.sections.get(&section).and_then(|table| {
            let next = table.partition_point(|&(start, _)| start <= pc);
            table[..next].last().and_then(|&(_, row)| row)
        });
        Frames { lines: self, row }
    }

    /// Where line information of section `section` starts anew, in order of address; `false` where it ends.
    pub fn starts(&self, section: usize) -> impl Iterator<Item = (u64, bool)> + '_ {
        self.sections.get(&section).into_iter().flatten().map(|&(pc, row)| (pc, row.is_some()))
    }

    fn frame(&self, row: Row) -> Frame<'_> {
        let (directory, file) = self.files.get(row.file as usize).map_or(("", ""), |file| {
            (self.directories.get(file.directory).map_or("", String::as_str), file.name.as_str())
        });
        let function = row.function.and_then(|offset| {
            let tail = self.strings.get(offset as usize..)?;
            let end = tail.iter().position(|&b| b == 0)?;
            std::str::from_utf8(&tail[..end]).ok()
        });
        Frame { directory, file, line: row.line, column: row.column, function }
    }
}

/// Levels of one position, innermost first; see [`Lines::frames`].
#[derive(Clone, Debug)]
pub struct Frames<'l> {
    lines: &'l Lines,
    row: Option<u32>,
}

impl<'l> Iterator for Frames<'l> {
    type Item = Frame<'l>;

    fn next(&mut self) -> Option<Frame<'l>> {
        let row = *self.lines.rows.get(self.row? as usize)?;
        self.row = row.caller;
        Some(self.lines.frame(row))
    }
}

impl Module<'_> {
    /// Reads one of the two line tables; empty if the module has none.
    ///
    /// A unit that cannot be read is a warning, and the rest is still there.
    pub fn lines(&self, kind: LineKind) -> Result<Lines> {
        let name = kind.section();
        let mut lines = Lines::default();
        let Some((index, section)) = self.section(name) else { return Ok(lines) };
        if let Some((_, strings)) = self.section(".debug_str") {
            lines.strings = strings.data.to_vec();
        }
        let mut data = section.data.to_vec();
        let targets = self.join(index, name, &mut data, &mut lines)?;
        let mut builder = Builder { name, targets, lines };
        let mut at = 0;
        while at < data.len() {
            let (unit, next) = unit_extent(&data, at, name)?;
            if let Err(e) = builder.unit(unit, at) {
                builder.lines.warnings.push(e);
            }
            at = next;
        }
        let mut lines = builder.lines;
        for table in lines.sections.values_mut() {
            table.sort_by_key(|&(pc, _)| pc);
        }
        Ok(lines)
    }

    /// Writes into every relocated address which text section it means, as [`Targets`] says.
    fn join(&self, index: usize, name: &'static str, data: &mut [u8], lines: &mut Lines) -> Result<Targets> {
        let mut targets = Vec::new();
        for relocation in self.relocations(index)? {
            if relocation.kind.0 != R_CUDA_64 {
                continue;
            }
            let symbol = &self.symbols[relocation.symbol];
            let Some(section) = symbol.section else { continue };
            targets.push((section, symbol.value.wrapping_add_signed(relocation.addend)));
            let value = targets.len() as u64;
            if let Err(e) = self.apply(index, &relocation, data, value) {
                lines.warnings.push(e);
            }
        }
        if !targets.is_empty() || data.is_empty() {
            return Ok(Targets::Relocated(targets));
        }
        match &self.functions[..] {
            [only] => Ok(Targets::Only(only.section)),
            _ => {
                let what = "no relocation says which kernel a sequence belongs to".to_owned();
                Err(Error::Lines { section: name, offset: 0, what })
            }
        }
    }
}

/// The unit at `at` and the offset after it.
fn unit_extent<'d>(data: &'d [u8], at: usize, section: &'static str) -> Result<(&'d [u8], usize)> {
    let fail = |what: &str| Error::Lines { section, offset: at, what: what.to_owned() };
    let length = data.get(at..at + 4).ok_or_else(|| fail("a unit's length is cut short"))?;
    let length = u32::from_le_bytes(length.try_into().unwrap_or_default());
    if length >= 0xffff_fff0 {
        return Err(fail("64-bit DWARF is not read"));
    }
    let end = at + 4 + length as usize;
    let unit = data.get(at..end).ok_or_else(|| fail("a unit is longer than its section"))?;
    Ok((unit, end))
}

struct Builder {
    name: &'static str,
    targets: Targets,
    lines: Lines,
}

/// What addresses in a line table mean.
enum Targets {
    /// A linked cubin without relocations: offsets into its only text section.
    Only(usize),
    /// Positions in this list, counted from 1: a section and an offset into it.
    Relocated(Vec<(usize, u64)>),
}

/// Where a unit's files and a sequence's rows start among the module's.
#[derive(Clone, Copy)]
struct Place {
    first_row: usize,
    first_file: usize,
    files: usize,
}

/// The registers of the line-number machine that matter here.
#[derive(Clone, Copy)]
struct State {
    section: Option<usize>,
    pc: u64,
    file: u64,
    line: u64,
    column: u64,
    caller: u64,
    function: u64,
}

impl State {
    const START: State = State { section: None, pc: 0, file: 1, line: 1, column: 0, caller: 0, function: 0 };
}

impl Builder {
    fn fail(&self, offset: usize, what: String) -> Error {
        Error::Lines { section: self.name, offset, what }
    }

    fn unit(&mut self, unit: &[u8], at: usize) -> Result<()> {
        let version = unit.get(4..6).map_or(0, |v| u16::from_le_bytes([v[0], v[1]]));
        // Later versions' tables can hold entries of no bytes, and no compiler for NVIDIA GPUs writes them.
        if !(2..=4).contains(&version) {
            return Err(self.fail(at, format!("DWARF line table version {version} is not read (2 to 4 are)")));
        }
        let program = DebugLine::new(unit, LittleEndian)
            .program(DebugLineOffset(0), 8, None, None)
            .map_err(|e| self.fail(at, e.to_string()))?;
        let header = program.header();
        let first_file = self.lines.files.len();
        self.add_files(header);
        let files = self.lines.files.len() - first_file;
        let mut place = Place { first_row: self.lines.rows.len(), first_file, files };
        let mut instructions = header.instructions();
        let mut state = State::START;
        loop {
            let instruction = match instructions.next_instruction(header) {
                Ok(Some(instruction)) => instruction,
                Ok(None) => return Ok(()),
                Err(e) => return Err(self.fail(at, e.to_string())),
            };
            self.step(header, instruction, &mut state, &mut place).map_err(|what| self.fail(at, what))?;
        }
    }

    fn add_files(&mut self, header: &LineProgramHeader<Slice<'_>>) {
        let text = |value: &gimli::AttributeValue<Slice<'_>>| match value {
            gimli::AttributeValue::String(s) => s.to_string_lossy().into_owned(),
            _ => String::new(),
        };
        let first_directory = self.lines.directories.len();
        self.lines.directories.push(String::new());
        self.lines.directories.extend(header.include_directories().iter().map(text));
        let count = header.include_directories().len() as u64;
        // Index 0 is no file before DWARF 5.
        self.lines.files.push(File { directory: first_directory, name: String::new() });
        self.lines.files.extend(header.file_names().iter().map(|file| {
            let directory = file.directory_index();
            let directory = if directory <= count { directory as usize } else { 0 };
            File { directory: first_directory + directory, name: text(&file.path_name()) }
        }));
    }

    fn step(
        &mut self,
        header: &LineProgramHeader<Slice<'_>>,
        instruction: LineInstruction<Slice<'_>>,
        state: &mut State,
        place: &mut Place,
    ) -> std::result::Result<(), String> {
        let unit = u64::from(header.minimum_instruction_length());
        let special = |opcode: u8| {
            let adjusted = opcode.wrapping_sub(header.opcode_base());
            let range = header.line_range();
            (u64::from(adjusted / range) * unit, i64::from(header.line_base()) + i64::from(adjusted % range))
        };
        match instruction {
            LineInstruction::Special(opcode) => {
                let (pc, line) = special(opcode);
                state.pc = state.pc.wrapping_add(pc);
                state.line = state.line.wrapping_add_signed(line);
                self.emit(state, place)?;
            }
            LineInstruction::Copy => self.emit(state, place)?,
            LineInstruction::AdvancePc(by) => state.pc = state.pc.wrapping_add(by.wrapping_mul(unit)),
            LineInstruction::FixedAddPc(by) => state.pc = state.pc.wrapping_add(by.into()),
            LineInstruction::ConstAddPc => state.pc = state.pc.wrapping_add(special(255).0),
            LineInstruction::AdvanceLine(by) => state.line = state.line.wrapping_add_signed(by),
            LineInstruction::SetFile(file) => state.file = file,
            LineInstruction::SetColumn(column) => state.column = column,
            LineInstruction::SetAddress(address) => {
                (state.section, state.pc) = match &self.targets {
                    Targets::Only(section) => (Some(*section), address),
                    Targets::Relocated(list) => usize::try_from(address)
                        .ok()
                        .and_then(|target| list.get(target.checked_sub(1)?))
                        .map_or((None, 0), |&(section, offset)| (Some(section), offset)),
                };
            }
            LineInstruction::EndSequence => {
                if let Some(section) = state.section {
                    self.lines.sections.entry(section).or_default().push((state.pc, None));
                }
                *state = State::START;
                place.first_row = self.lines.rows.len();
            }
            LineInstruction::UnknownExtended(INLINED_CALL, mut operands) => {
                let mut operand = || operands.read_uleb128().map_err(|e| e.to_string());
                (state.caller, state.function) = (operand()?, operand()?);
            }
            // Statement, block and prologue marks, and what other producers add.
            _ => {}
        }
        Ok(())
    }

    fn emit(&mut self, state: &State, place: &Place) -> std::result::Result<(), String> {
        let index = u32::try_from(self.lines.rows.len()).map_err(|_| "too many rows".to_owned())?;
        let caller = match state.caller {
            0 => None,
            number => {
                let row = usize::try_from(number - 1).ok().and_then(|n| place.first_row.checked_add(n));
                let row = row.filter(|&row| row < index as usize);
                Some(row.ok_or_else(|| format!("row {number} is named as a call site before it exists"))? as u32)
            }
        };
        let file = usize::try_from(state.file).ok().filter(|&f| f < place.files).map(|f| f + place.first_file);
        let file = file.and_then(|f| u32::try_from(f).ok()).unwrap_or(u32::MAX);
        self.lines.rows.push(Row {
            file,
            line: u32::try_from(state.line).unwrap_or(0),
            column: u32::try_from(state.column).unwrap_or(0),
            caller,
            function: caller.and_then(|_| u32::try_from(state.function).ok()),
        });
        if let Some(section) = state.section {
            self.lines.sections.entry(section).or_default().push((state.pc, Some(index)));
        }
        Ok(())
    }
}
