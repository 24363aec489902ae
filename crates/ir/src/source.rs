//! Where instructions come from.

/// One place in a source file, with the calls it was inlined through.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Index into [`SourceMap::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if not known.
    pub column: u32,
    /// Call sites it was inlined at, innermost first: file, line, and the inlined function's name if known.
    pub inlined_at: Vec<InlineSite>,
}

/// A call site of an inlined function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InlineSite {
    /// Function that was inlined there (mangled), if the format names it.
    pub function: Option<String>,
    /// Index into [`SourceMap::files`].
    pub file: u32,
    /// Line of the call.
    pub line: u32,
}

/// Source locations of a kernel's instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMap {
    /// File names as the line table gives them.
    pub files: Vec<String>,
    /// Distinct locations.
    pub locations: Vec<Location>,
    /// For each instruction, an index into `locations`. Empty if there is no line table.
    pub of_inst: Vec<Option<u32>>,
}

impl SourceMap {
    /// Location of instruction `index`.
    pub fn get(&self, index: usize) -> Option<&Location> {
        let at = (*self.of_inst.get(index)?)?;
        self.locations.get(at as usize)
    }
    /// File name of a location.
    pub fn file(&self, location: &Location) -> &str {
        self.files.get(location.file as usize).map_or("?", String::as_str)
    }
}
