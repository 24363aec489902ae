//! What machine code made of each PTX branch, told from the code alone.

use std::collections::HashMap;

use lanescope_ir::Kernel;

use super::LevelsError;
use super::ptx_side;
use super::sass_side::{Ends, Reader};
use crate::module;

/// What became of one PTX branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Became {
    /// Branches that are left of it: pc and text.
    pub branches: Vec<(u32, String)>,
    /// Predicated exits.
    pub exits: Vec<(u32, String)>,
    /// Instructions that its condition guards.
    pub guarded: usize,
    /// Selects that its condition decides.
    pub selects: usize,
    /// Its condition went into another branch's.
    pub merged: bool,
    /// Code of its condition is left, in some form.
    pub left: bool,
}

impl Became {
    /// Whether warps can still split at it.
    pub fn is_branch(&self) -> bool {
        !self.branches.is_empty() || !self.exits.is_empty() || self.merged
    }

    /// In words.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        let named = |list: &[(u32, String)]| -> String {
            let shown: Vec<String> = list.iter().take(2).map(|(pc, text)| format!("`{text}` at {pc:#06x}")).collect();
            let more = if list.len() > 2 { format!(" and {} more", list.len() - 2) } else { String::new() };
            format!("{}{more}", shown.join(", "))
        };
        if !self.branches.is_empty() {
            parts.push(format!("a branch, {}", named(&self.branches)));
        }
        if !self.exits.is_empty() {
            parts.push(format!("a predicated exit, {}", named(&self.exits)));
        }
        let count = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        if self.guarded > 0 {
            parts.push(format!("{} under a guard", count(self.guarded, "instruction")));
        }
        if self.selects > 0 {
            parts.push(count(self.selects, "select"));
        }
        match (parts.is_empty(), self.merged, self.left) {
            (false, ..) => parts.join(", "),
            (true, true, _) => "merged into another branch".into(),
            (true, false, true) => "arithmetic without a branch".into(),
            (true, false, false) => "nothing".into(),
        }
    }
}

/// What became of each conditional branch of `ptx`, by its instruction in `lowered`, the kernel lowered from that text.
pub(crate) fn became(
    sass: &Kernel,
    cubin: &[u8],
    lowered: &Kernel,
    ptx: &[u8],
) -> Result<HashMap<u32, Became>, LevelsError> {
    let text = module::ptx_text(&sass.name, ptx)?;
    let parsed = lanescope_ptx::parse(text);
    let branches = ptx_side::branches(&parsed.module, &sass.name);
    let readers = ptx_side::readers(&parsed.module, &sass.name);
    let map = ptx_side::instructions(&parsed.module, lowered);
    let reader = Reader::of_code(sass, cubin, ptx)?;
    let named = |list: &[u32]| -> Vec<(u32, String)> {
        list.iter()
            .map(|&i| {
                let pc = sass.instructions.get(i as usize).map_or(0, |i| i.pc);
                (pc, sass.text.get(i as usize).cloned().unwrap_or_default())
            })
            .collect()
    };
    let mut out = HashMap::new();
    for branch in &branches {
        let Some(&inst) = map.get(&branch.line) else { continue };
        let Ends { branches: left, exits, guarded, selects, merged } = reader.ends(branch, &branches, &readers);
        out.insert(
            inst,
            Became {
                branches: named(&left),
                exits: named(&exits),
                guarded: guarded.len(),
                selects: selects.len(),
                merged,
                left: reader.is_left(branch),
            },
        );
    }
    Ok(out)
}
