//! The uniformity analysis' word on a kernel's branches.

use lanescope_analysis::regions::Structure;
use lanescope_analysis::uniformity::{Facts, Uniformity, Verdict};
use lanescope_ir::InstId;
use lanescope_sass::container::{Function, Lines, Module};
use lanescope_sass::kernel::load_code;

/// What the analysis of one kernel found.
pub(super) struct Proofs {
    /// For each branch of the kernel's own section in code order its byte offset, and whether it may split a warp.
    branches: Vec<(u32, bool)>,
}

impl Proofs {
    /// Loads and analyses a kernel, for any launch. The error says why that cannot be done.
    pub(super) fn new(module: &Module<'_>, function: &Function<'_>) -> Result<Proofs, String> {
        let kernel = load_code(module, &function.name, &Lines::default()).map_err(|e| e.to_string())?;
        let found = Uniformity::new(&kernel, &Structure::new(&kernel), &Facts::default());
        if found.is_lost() {
            return Err("the uniformity analysis cannot follow the control flow".to_owned());
        }
        // The kernel itself is the first function; what it calls has sections of its own.
        let Some(own) = kernel.functions.first() else { return Err("the kernel has no code".to_owned()) };
        let last = own.first.0.saturating_add(own.len);
        let own = own.first.0..last;
        let branches = found.branches.iter().filter(|b| own.contains(&b.inst)).map(|b| {
            let splits = match &b.verdict {
                Verdict::Never | Verdict::Unreachable => false,
                Verdict::Lanes(warps) => !warps.is_empty(),
                _ => true,
            };
            (kernel.inst(InstId(b.inst)).pc, splits)
        });
        Ok(Proofs { branches: branches.collect() })
    }

    /// Whether the branch at a byte offset may split a warp; `None` if the analysis does not know it as a branch.
    pub(super) fn splits(&self, pc: u32) -> Option<bool> {
        let at = self.branches.binary_search_by_key(&pc, |b| b.0).ok()?;
        self.branches.get(at).map(|b| b.1)
    }
}
