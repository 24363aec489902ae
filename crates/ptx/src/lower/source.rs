//! Source locations from `.loc`, with the calls that were inlined.

use std::collections::HashMap;

use lanescope_ir::source::{InlineSite, Location, SourceMap};

use crate::tree::{Body, LocationId, Module, SourcePoint};

/// How many calls one place may have been inlined through.
const MAX_DEPTH: usize = 32;

/// Collects the locations of a program.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) map: SourceMap,
    files: HashMap<u32, u32>,
    known: HashMap<Location, u32>,
    names: HashMap<(String, u32), Option<String>>,
}

impl Builder {
    fn file(&mut self, module: &Module<'_>, index: u32) -> u32 {
        if let Some(&at) = self.files.get(&index) {
            return at;
        }
        let at = self.map.files.len() as u32;
        self.map.files.push(module.file(index).unwrap_or("?").to_owned());
        self.files.insert(index, at);
        at
    }

    /// The name of an inlined function.
    fn name(&mut self, module: &Module<'_>, label: &str, offset: u32) -> Option<String> {
        let find = || module.debug_string(label, offset).map(|name| String::from_utf8_lossy(name).into_owned());
        self.names.entry((label.to_owned(), offset)).or_insert_with(find).clone()
    }

    /// The locations of a body, each as an index of the map.
    pub(super) fn body(&mut self, module: &Module<'_>, body: &Body<'_>) -> Vec<Option<u32>> {
        // The place of a call is the point of an earlier `.loc`, which may be inlined itself.
        let mut last: HashMap<SourcePoint, LocationId> = HashMap::new();
        let mut out = Vec::with_capacity(body.locations.len());
        let mut callers: Vec<Option<LocationId>> = Vec::with_capacity(body.locations.len());
        for (at, location) in body.locations.iter().enumerate() {
            callers.push(location.inlined_at().and_then(|point| last.get(&point).copied()));
            last.insert(location.point, LocationId::new(at));
            let point = location.point;
            if point.line == 0 {
                out.push(None);
                continue;
            }
            let mut inlined_at = Vec::new();
            let mut here = Some(at);
            while let Some(location) = here.and_then(|at| body.locations.get(at)) {
                let Some(site) = location.inlined_at().filter(|_| inlined_at.len() < MAX_DEPTH) else { break };
                let name = location.function().and_then(|(label, offset)| self.name(module, label, offset));
                inlined_at.push(InlineSite { function: name, file: self.file(module, site.file), line: site.line });
                // Earlier ones only: no endless chain.
                here = here.and_then(|at| callers[at]).map(LocationId::index);
            }
            let file = self.file(module, point.file);
            let place = Location { file, line: point.line, column: point.column, inlined_at };
            let next = self.map.locations.len() as u32;
            let index = *self.known.entry(place).or_insert_with_key(|place| {
                self.map.locations.push(place.clone());
                next
            });
            out.push(Some(index));
        }
        out
    }
}
