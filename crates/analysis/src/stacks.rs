//! Lost lane slots by what took them and where they are missing, as stacks for a flame graph.
//!
//! A stack reads from the root: the kernel, the cause (the branch, exit or loop at which the lanes were lost), then
//! the source lines of the instructions that ran without them, calls and inlining unfolded. So the width of a cause is
//! all that it costs, wherever that is felt, and its children say where.

use std::collections::BTreeMap;

use lanescope_ir::Kernel;

use crate::attribution::{Attribution, Cause};
use crate::words;

/// Frames of one stack at most: inlining can be deep, a picture cannot.
const FRAMES: usize = 64;

/// A stack and what it weighs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Frames, the root first.
    pub frames: Vec<String>,
    /// Lane slots lost.
    pub lanes: u64,
}

/// Stacks of all lost lane slots, in the order of their frames. Their sum is [`Attribution::lost`].
///
/// `name` says how functions are called by their authors.
pub fn lost(kernel: &Kernel, losses: &Attribution, name: impl Fn(&str) -> String) -> Vec<Stack> {
    let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    let root = name(&kernel.name);
    for (at, loss) in losses.instructions.iter().enumerate().filter(|(_, l)| l.lost > 0) {
        let place = place(kernel, at as u32, &name);
        for part in &loss.parts {
            let mut frames = vec![root.clone(), cause(kernel, part.cause)];
            frames.extend(place.iter().cloned());
            let sum = sums.entry(frames).or_default();
            *sum = sum.saturating_add(part.lanes);
        }
    }
    sums.into_iter().map(|(frames, lanes)| Stack { frames, lanes }).collect()
}

/// A cause with its place.
fn cause(kernel: &Kernel, cause: Cause) -> String {
    match cause.inst() {
        Some(inst) => format!("{} at {}", cause.name(), words::place(kernel, inst)),
        None => cause.name().to_owned(),
    }
}

/// The function, the call sites of inlined code from the outside in, and the line.
fn place(kernel: &Kernel, inst: u32, name: &impl Fn(&str) -> String) -> Vec<String> {
    let mut frames = Vec::new();
    let function = kernel.functions.iter().find(|f| (f.first.0..f.first.0.saturating_add(f.len)).contains(&inst));
    if let Some(f) = function.filter(|f| f.name != kernel.name) {
        frames.push(name(&f.name));
    }
    match kernel.source.get(inst as usize) {
        Some(location) => {
            for site in location.inlined_at.iter().rev().take(FRAMES) {
                let line = words::file_line(kernel, site.file, site.line);
                match &site.function {
                    Some(callee) => frames.push(format!("{line} calls {}", name(callee))),
                    None => frames.push(line),
                }
            }
            frames.push(words::file_line(kernel, location.file, location.line));
        }
        None => frames.push(words::place(kernel, inst)),
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{InstLoss, Part};

    #[test]
    fn every_lost_slot_is_in_one_stack() {
        let kernel = Kernel { name: "k".into(), ..Kernel::default() };
        let part = |cause, lanes| Part { cause, lanes, estimate: false };
        let losses = Attribution {
            instructions: vec![
                InstLoss {
                    lost: 7,
                    parts: vec![part(Cause::PartialWarp, 3), part(Cause::Unknown, 4)],
                    predicated_off: 0,
                    discarded: 0,
                },
                InstLoss::default(),
                InstLoss { lost: 5, parts: vec![part(Cause::PartialWarp, 5)], predicated_off: 0, discarded: 0 },
            ],
            lost: 12,
            ..Attribution::default()
        };
        let stacks = lost(&kernel, &losses, str::to_owned);
        assert_eq!(stacks.iter().map(|s| s.lanes).sum::<u64>(), losses.lost);
        assert!(stacks.iter().all(|s| s.frames.first().is_some_and(|f| f == "k") && s.frames.len() == 3));
        // Without instructions there is one place: equal stacks are one.
        assert!(stacks.iter().any(|s| s.frames[1] == "partial warp" && s.lanes == 8));
    }
}
