//! `survey --patch`: another class for convergence regions, consistently.
//!
//! A region's `BSSY`, `BSYNC`s and `BREAK`s carry one class. A `BSYNC` or `BREAK` that regions share can only change
//! with all of them, so a choice that would leave them at odds is refused.

use std::collections::BTreeSet;

use lanescope_analysis::reconvergence::{Region, TooLarge, regions};
use lanescope_ir::flow::{FlowCode, RegionClass};
use lanescope_sass::container::{self, ContainerKind, Module};
use lanescope_sass::flow::{FlowError, FlowReader, FunctionFlow};
use lanescope_sass::patch::{PatchError, Patched, set_class};

use crate::names::{base_name, demangle, nearest};

/// Why a cubin cannot be patched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The file cannot be read.
    #[error("{0}")]
    Container(#[from] container::Error),
    /// It is not a cubin.
    #[error(
        "this is a {kind} that holds cubins, not a cubin\n  take the cubin out first, for instance with cuobjdump -xelf"
    )]
    NotACubin {
        /// What it is.
        kind: &'static str,
    },
    /// No such kernel.
    #[error("there is no kernel `{name}` in this cubin{hint}")]
    NoKernel {
        /// The name.
        name: String,
        /// Which name is like it.
        hint: String,
    },
    /// Its control flow cannot be read.
    #[error("{0}")]
    Flow(#[from] FlowError),
    /// It does not decode.
    #[error("{0}")]
    Undecoded(String),
    /// It cannot be followed.
    #[error("{0}")]
    TooLarge(#[from] TooLarge),
    /// The kernel has no region, or none there.
    #[error("there is no BSSY {place}; {there}")]
    NoRegion {
        /// Where it was sought.
        place: String,
        /// Where there are some.
        there: String,
    },
    /// A region without an end cannot be told to be consistent.
    #[error("no path from the BSSY at {pc:#x} reaches a BSYNC of its barrier, so its end is not known")]
    Endless {
        /// The region.
        pc: u32,
    },
    /// Regions share an instruction.
    #[error(
        "the instruction at {shared:#x} belongs to the region at {other:#x} too, which has another class; change both by leaving out --region"
    )]
    Shared {
        /// The instruction.
        shared: u32,
        /// The region that was not chosen.
        other: u32,
    },
    /// The bits cannot be set.
    #[error("{0}")]
    Patch(#[from] PatchError),
    /// After patching, the regions are not the same.
    #[error("the patched code has other regions than the original; nothing was written")]
    Changed,
}

/// What was done.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The kernel, mangled.
    pub kernel: String,
    /// The new cubin.
    pub patched: Patched,
    /// Regions that were chosen.
    pub regions: usize,
}

/// Gives regions of a kernel another class: the one whose `BSSY` stands at `region`, or all.
pub fn patch(cubin: &[u8], kernel: &str, region: Option<u32>, class: RegionClass) -> Result<Outcome, LabError> {
    match container::open(cubin)?.kind {
        ContainerKind::Cubin => {}
        ContainerKind::Fatbin => return Err(LabError::NotACubin { kind: "fatbin" }),
        ContainerKind::Host => return Err(LabError::NotACubin { kind: "library or executable" }),
        ContainerKind::Archive => return Err(LabError::NotACubin { kind: "static library" }),
    }
    let module = Module::parse(cubin)?;
    let name = find(&module, kernel)?;
    let code = flow(&module, &name)?;
    let all = regions(&code)?;
    let chosen: Vec<&Region> = all.iter().filter(|r| region.is_none_or(|pc| pc_of(&code, r.open) == pc)).collect();
    if chosen.is_empty() {
        let list: Vec<String> = all.iter().take(20).map(|r| format!("{:#x}", pc_of(&code, r.open))).collect();
        return Err(LabError::NoRegion {
            place: region.map_or("in this kernel".into(), |pc| format!("at {pc:#x}")),
            there: if list.is_empty() {
                "it has no regions".into()
            } else {
                format!("there are some at {}", list.join(", "))
            },
        });
    }
    let mut members = BTreeSet::new();
    for r in &chosen {
        if r.waits.is_empty() {
            return Err(LabError::Endless { pc: pc_of(&code, r.open) });
        }
        members.insert(r.open);
        members.extend(r.waits.iter().chain(&r.breaks));
    }
    for other in all.iter().filter(|r| !members.contains(&r.open) && r.class != class) {
        if let Some(shared) = other.waits.iter().chain(&other.breaks).find(|i| members.contains(i)) {
            return Err(LabError::Shared { shared: pc_of(&code, *shared), other: pc_of(&code, other.open) });
        }
    }
    let pcs: Vec<u32> = members.iter().map(|&i| pc_of(&code, i)).collect();
    let patched = set_class(cubin, &name, &pcs, class)?;
    // The new code, read afresh, has the same regions with the class that was asked for.
    let after = regions(&flow(&Module::parse(&patched.bytes)?, &name)?)?;
    let expected =
        all.iter().map(|r| Region { class: if members.contains(&r.open) { class } else { r.class }, ..r.clone() });
    if !after.into_iter().eq(expected) {
        return Err(LabError::Changed);
    }
    Ok(Outcome { kernel: name, regions: chosen.len(), patched })
}

fn pc_of(code: &FlowCode, at: u32) -> u32 {
    code.insts.get(at as usize).map_or(0, |i| i.pc)
}

fn flow(module: &Module<'_>, name: &str) -> Result<FlowCode, LabError> {
    let function = module.function(name);
    let function = function.ok_or_else(|| LabError::NoKernel { name: name.to_owned(), hint: String::new() })?;
    let FunctionFlow { code, undecoded, .. } = FlowReader::new(module.arch.sm.into())?.read(function)?;
    match undecoded {
        Some((_, first)) => Err(LabError::Undecoded(first)),
        None => Ok(code),
    }
}

/// The mangled name of the function that is meant: mangled, demangled or base name.
fn find(module: &Module<'_>, wanted: &str) -> Result<String, LabError> {
    let is = |name: &str| {
        let demangled = demangle(name);
        name == wanted || demangled == wanted || base_name(&demangled) == wanted
    };
    if let Some(function) =
        module.functions.iter().find(|f| f.name == wanted).or_else(|| module.functions.iter().find(|f| is(&f.name)))
    {
        return Ok(function.name.to_string());
    }
    let near = nearest(wanted, module.functions.iter().map(|f| &*f.name));
    let hint = near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
    Err(LabError::NoKernel { name: wanted.to_owned(), hint })
}
