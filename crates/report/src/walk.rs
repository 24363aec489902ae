//! A divergent branch in the textbook's seven steps, told from the trace of one warp.
//!
//! Evaluate the condition, form the masks, park one side, run the other, switch, run the side that was parked, rejoin: every
//! course on GPUs has these steps. Here they come with the masks, places and step numbers of an actual warp.

use std::fmt::Write;

use lanescope_analysis::words::{at_line, count, place, share, text, times};
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::effects::Access;
use lanescope_ir::{Kernel, LaneMask, Op};

use crate::layout::{DIM, HEAD, WARN, styled, wrap};
use crate::trace::{Event, Step, Trace};

const WIDTH: usize = 110;
/// Lines named for one turn of a side, and turns told one by one.
const PLACES: usize = 5;
const TURNS: usize = 8;

/// Consecutive steps of one side.
struct Turn {
    first: usize,
    last: usize,
    /// Lanes that ran in any of them.
    lanes: LaneMask,
}

/// A branch at which lanes went apart.
struct Split {
    /// Index of the step.
    at: usize,
    /// The sides, the one that runs on first: where they went, and their lanes.
    sides: Vec<(u32, LaneMask)>,
    /// Index of the first step that lanes of several sides take together again, with all that are left.
    rejoins: Option<usize>,
}

/// The walk-through as text with ANSI styles.
pub fn text_of(kernel: &Kernel, trace: &Trace) -> String {
    let mut out = String::new();
    let splits: Vec<Split> = (0..trace.steps.len()).filter_map(|at| split(trace, at)).collect();
    let chosen = splits.iter().find(|s| s.rejoins.is_some()).or(splits.first());
    match chosen {
        Some(s) => seven(kernel, trace, s, &mut out),
        None => match (0..trace.steps.len()).find(|&at| left(trace, at).is_some()) {
            Some(at) => exit(kernel, trace, at, &mut out),
            None => together(kernel, trace, &mut out),
        },
    }
    let others = splits.len().saturating_sub(usize::from(chosen.is_some()));
    if others > 0 {
        let (s, it) = if others == 1 { ("", "it") } else { ("s", "them") };
        let words =
            format!("This warp splits {} more time{s}; --trace without --steps shows {it}.", count(others as u64));
        let _ = writeln!(out, "\n{}", styled(DIM, &words));
    }
    if trace.cut {
        let _ = writeln!(out, "{}", styled(DIM, "Later steps of the warp were left out (--trace-steps)."));
    }
    out
}

fn split(trace: &Trace, at: usize) -> Option<Split> {
    let sides = trace.sides(at);
    if sides.len() < 2 {
        return None;
    }
    let all = trace.steps.get(at)?.active;
    let together = |s: &Step| {
        let alive = s.others.iter().fold(s.active, |m, (_, lanes)| m | *lanes);
        s.active.contains(all & alive) && sides.iter().filter(|(_, lanes)| !(*lanes & s.active).is_empty()).count() > 1
    };
    let rejoins = trace.steps.iter().skip(at + 1).position(together).map(|i| at + 1 + i);
    Some(Split { at, sides, rejoins })
}

/// Lanes that left at a step while others of the group stayed.
fn left(trace: &Trace, at: usize) -> Option<LaneMask> {
    let step = trace.steps.get(at)?;
    match step.event {
        Event::Exit { lanes } if lanes != step.active => Some(lanes),
        _ => None,
    }
}

fn seven(kernel: &Kernel, trace: &Trace, split: &Split, out: &mut String) {
    let Some(step) = trace.steps.get(split.at) else { return };
    let end = split.rejoins.unwrap_or(trace.steps.len());
    title(kernel, trace, step, out);
    evaluate(kernel, trace, split.at, out);

    head(out, 2, "Form the masks");
    let taken = step.executing;
    let two_ways = split.sides.len() == 2 && split.sides.iter().any(|(_, lanes)| *lanes == taken);
    for (to, lanes) in &split.sides {
        let name = match (two_ways, *lanes == taken) {
            (false, _) => "",
            (true, true) => "taken: ",
            (true, false) => "not taken: ",
        };
        mask(trace, *lanes, &format!("{name}{} to {}", go(*lanes), place(kernel, *to)), out);
    }

    head(out, 3, "Park one side");
    for (at, lanes) in split.sides.iter().skip(1) {
        line(&format!("{} at {}.", wait(*lanes), place(kernel, *at)), out);
    }
    if let Some((before, target)) = announced(kernel, trace, split.at) {
        let words = format!(
            "Where they rejoin was set before, at step {}: `{}`, that is {}.",
            before.step,
            text(kernel, before.inst),
            place(kernel, target)
        );
        line(&words, out);
    }

    let turns = turns(trace, split, end);
    head(out, 4, "Run one side with its mask");
    if let Some(t) = turns.first() {
        turn(kernel, trace, t, out);
    }
    head(out, 5, "Switch");
    match turns.first().and_then(|t| trace.steps.get(t.last)) {
        Some(last) if turns.len() > 1 => switch(kernel, last, out),
        _ => line("The other side has not run within these steps.", out),
    }
    head(out, 6, "Run the other side with its mask");
    for (i, t) in turns.iter().enumerate().skip(1).take(TURNS) {
        turn(kernel, trace, t, out);
        if i + 1 < turns.len().min(TURNS + 1)
            && let Some(last) = trace.steps.get(t.last)
        {
            switch(kernel, last, out);
        }
    }
    if turns.len() > TURNS + 1 {
        line(&format!("and so on: {} turns in all.", turns.len()), out);
    }

    head(out, 7, "Rejoin");
    match split.rejoins.and_then(|i| trace.steps.get(i)) {
        Some(s) => {
            let full = if s.active.contains(trace.lanes) { "all lanes go on together" } else { "they go on together" };
            mask(trace, s.active, &format!("step {}: {full}, at {}", s.step, place(kernel, s.inst)), out);
        }
        None if trace.cut => line("Not within the steps that were recorded.", out),
        None => line("They do not rejoin: each side runs to its own EXIT.", out),
    }
    cost(trace, split.at + 1, end, out);
}

/// A predicated EXIT: there is no second side.
fn exit(kernel: &Kernel, trace: &Trace, at: usize, out: &mut String) {
    let (Some(step), Some(gone)) = (trace.steps.get(at), left(trace, at)) else { return };
    title(kernel, trace, step, out);
    evaluate(kernel, trace, at, out);
    head(out, 2, "Form the masks");
    mask(trace, gone, &format!("{}: the guard holds", leave(gone)), out);
    mask(trace, step.active - gone, &format!("{} on", go(step.active - gone)), out);
    head(out, 3, "Park one side");
    line("Nobody is parked: those lanes are gone for good.", out);
    head(out, 4, "Run one side with its mask");
    let rest = trace.steps.len().saturating_sub(at + 1);
    line(&format!("The others run on, for {} more.", instructions(rest)), out);
    head(out, 5, "Switch");
    line("There is nothing to switch to.", out);
    head(out, 6, "Run the other side with its mask");
    line("There is no other side.", out);
    head(out, 7, "Rejoin");
    line(
        "Nobody comes back: the places of those lanes stay empty to the end. Profilers count no divergent branch.",
        out,
    );
    cost(trace, at + 1, trace.steps.len(), out);
}

/// No split at all; perhaps because the compiler predicated.
fn together(kernel: &Kernel, trace: &Trace, out: &mut String) {
    let _ = writeln!(out, "{}", styled(HEAD, &trace.title));
    let guarded: Vec<&Step> = trace.steps.iter().filter(|s| s.executing != s.active && !steers(kernel, s)).collect();
    let words = if guarded.is_empty() {
        "This warp never splits: its lanes go the same way at every branch. There are no seven steps to show."
    } else {
        "This warp never splits. The compiler predicated the choice: instructions of one side are issued for all lanes, and \
         a guard masks those that want the other. There is no branch, no parking and no rejoining."
    };
    let _ = writeln!(out, "{}", wrap(words, WIDTH, 0));
    for s in guarded.iter().take(TURNS) {
        let words = format!(
            "step {}, {}: `{}`, {} of {} lanes do it",
            s.step,
            place(kernel, s.inst),
            text(kernel, s.inst),
            s.executing.count(),
            s.active.count()
        );
        mask(trace, s.executing, &words, out);
    }
    if guarded.len() > TURNS {
        line(&format!("and {} more such steps.", guarded.len() - TURNS), out);
    }
}

fn title(kernel: &Kernel, trace: &Trace, step: &Step, out: &mut String) {
    let _ = writeln!(
        out,
        "{}",
        styled(HEAD, &format!("{}: the seven steps of `{}`", trace.title, text(kernel, step.inst)))
    );
    let _ = writeln!(
        out,
        "{}",
        styled(DIM, &format!("at {}; # a lane that is meant, . another", place(kernel, step.inst)))
    );
}

fn head(out: &mut String, n: u32, words: &str) {
    let _ = writeln!(out, "\n{}", styled(HEAD, &format!("{n}  {words}")));
}

fn line(words: &str, out: &mut String) {
    let _ = writeln!(out, "   {}", wrap(words, WIDTH - 3, 3));
}

fn mask(trace: &Trace, lanes: LaneMask, words: &str, out: &mut String) {
    let width = trace.warp_size.clamp(1, LaneMask::MAX);
    let picture: String = (0..width).map(|l| if lanes.has(l) { '#' } else { '.' }).collect();
    let digits = width.div_ceil(4) as usize;
    let _ = writeln!(out, "   {}  {:#0d$x}  {words}", styled(WARN, &picture), lanes.0, d = digits + 2);
}

/// The instruction that gave the branch its predicate, and what came out.
fn evaluate(kernel: &Kernel, trace: &Trace, at: usize, out: &mut String) {
    let Some(step) = trace.steps.get(at) else { return };
    head(out, 1, "Evaluate the condition in all lanes");
    let mut asked = Vec::new();
    if let Some(inst) = kernel.instructions.get(step.inst as usize) {
        inst.for_each_pred(|p, access| {
            if access == Access::Read {
                asked.push(p);
            }
        });
    }
    let writes = |s: &&Step| {
        let mut found = false;
        if let Some(inst) = kernel.instructions.get(s.inst as usize) {
            inst.for_each_pred(|p, access| found |= access == Access::Write && asked.contains(&p));
        }
        found
    };
    if let Some(s) = trace.steps[..at].iter().rev().find(writes) {
        let words = format!(
            "step {}, {}: `{}` works it out for {} at once.",
            s.step,
            place(kernel, s.inst),
            text(kernel, s.inst),
            n_lanes(s.executing)
        );
        line(&words, out);
    }
    let words = format!(
        "step {}: `{}` asks for the result: {} of {} say yes",
        step.step,
        text(kernel, step.inst),
        step.executing.count(),
        n_lanes(step.active)
    );
    mask(trace, step.executing, &words, out);
}

/// The last BSSY before a step that no BSYNC has answered yet: its step, and where lanes rejoin.
fn announced<'a>(kernel: &Kernel, trace: &'a Trace, at: usize) -> Option<(&'a Step, u32)> {
    let all = trace.steps.get(at)?.active;
    let mut answered = Vec::new();
    for s in trace.steps[..at].iter().rev().filter(|s| !(s.active & all).is_empty()) {
        match kernel.instructions.get(s.inst as usize).map(|i| &i.op) {
            Some(Op::Control(ControlOp::Sync { bar, .. })) => answered.push(*bar),
            Some(Op::Control(ControlOp::SyncSet { bar, target, .. })) => match answered.iter().position(|b| b == bar) {
                Some(i) => drop(answered.swap_remove(i)),
                None => return Some((s, target.0)),
            },
            _ => {}
        }
    }
    None
}

/// Steps from the split to `end`, in turns of the sides.
fn turns(trace: &Trace, split: &Split, end: usize) -> Vec<Turn> {
    let side = |s: &Step| split.sides.iter().position(|(_, lanes)| lanes.contains(s.active));
    let mut out: Vec<(Option<usize>, Turn)> = Vec::new();
    let all = split.sides.iter().fold(LaneMask::EMPTY, |m, s| m | s.1);
    for (i, s) in trace.steps.iter().enumerate().take(end).skip(split.at + 1) {
        if (s.active & all).is_empty() {
            continue;
        }
        let who = side(s);
        match out.last_mut() {
            Some((before, t)) if *before == who => {
                t.last = i;
                t.lanes = t.lanes | s.active;
            }
            _ => out.push((who, Turn { first: i, last: i, lanes: s.active })),
        }
    }
    out.into_iter().map(|t| t.1).collect()
}

fn turn(kernel: &Kernel, trace: &Trace, t: &Turn, out: &mut String) {
    let Some(steps) = trace.steps.get(t.first..=t.last) else { return };
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
    let mut lines: Vec<String> = Vec::new();
    for p in steps.iter().filter_map(|s| at_line(kernel, s.inst)) {
        if !lines.contains(&p) {
            lines.push(p);
        }
    }
    let more = lines.len().saturating_sub(PLACES);
    lines.truncate(PLACES);
    let more = match more {
        0 => String::new(),
        1 => " and 1 more line".to_owned(),
        n => format!(" and {n} more lines"),
    };
    let lines = if lines.is_empty() { String::new() } else { format!(": {}{more}", lines.join(", ")) };
    let which = if first.step == last.step {
        format!("step {}", first.step)
    } else {
        format!("steps {} to {}", first.step, last.step)
    };
    mask(trace, t.lanes, &format!("{which}, {}{lines}", instructions(steps.len())), out);
    let inner = (t.first..t.last).filter(|&i| trace.sides(i).len() > 1).count();
    if inner > 0 {
        line(&format!("In it these lanes split {} themselves.", times(inner as u64)), out);
    }
}

/// What ends a turn.
fn switch(kernel: &Kernel, last: &Step, out: &mut String) {
    let what = match last.event {
        Event::Wait => wait(last.active),
        Event::Exit { lanes } => leave(lanes),
        _ => format!("{} aside", step_aside(last.active)),
    };
    line(&format!("step {}: `{}`: {what}; the other side's mask goes in.", last.step, text(kernel, last.inst)), out);
}

fn cost(trace: &Trace, first: usize, end: usize, out: &mut String) {
    let steps = trace.steps.get(first..end).unwrap_or_default();
    if steps.is_empty() {
        return;
    }
    let slots = u64::from(trace.warp_size) * steps.len() as u64;
    let used: u64 = steps.iter().map(|s| u64::from(s.active.count())).sum();
    let idle = slots.saturating_sub(used);
    let words = format!(
        "What it cost: {} {}, with {} of {} lane slots empty ({}).",
        instructions(steps.len()),
        if end < trace.steps.len() { "between the two" } else { "from there on" },
        count(idle),
        count(slots),
        share(idle, slots.into())
    );
    let _ = writeln!(out, "\n{}", wrap(&words, WIDTH, 0));
}

fn steers(kernel: &Kernel, s: &Step) -> bool {
    kernel.instructions.get(s.inst as usize).is_some_and(|i| matches!(i.op, Op::Control(_)))
}

fn n_lanes(lanes: LaneMask) -> String {
    if lanes.count() == 1 { "1 lane".into() } else { format!("{} lanes", lanes.count()) }
}

fn instructions(n: usize) -> String {
    if n == 1 { "1 instruction".into() } else { format!("{} instructions", count(n as u64)) }
}

fn verb(lanes: LaneMask, one: &str, many: &str) -> String {
    format!("{} {}", n_lanes(lanes), if lanes.count() == 1 { one } else { many })
}

fn go(lanes: LaneMask) -> String {
    verb(lanes, "goes", "go")
}

fn wait(lanes: LaneMask) -> String {
    verb(lanes, "waits", "wait")
}

fn leave(lanes: LaneMask) -> String {
    verb(lanes, "leaves", "leave")
}

fn step_aside(lanes: LaneMask) -> String {
    verb(lanes, "steps", "step")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn plain(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('\x1b') {
            out.push_str(before);
            rest = after.split_once('m').map_or("", |(_, r)| r);
        }
        out + rest
    }

    #[test]
    fn seven_steps_with_their_masks() {
        let kernel = testing::kernel("k");
        let out = plain(&text_of(&kernel, &testing::trace()));
        let heads: Vec<&str> = out.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert_eq!(
            heads,
            [
                "1  Evaluate the condition in all lanes",
                "2  Form the masks",
                "3  Park one side",
                "4  Run one side with its mask",
                "5  Switch",
                "6  Run the other side with its mask",
                "7  Rejoin"
            ]
        );
        let told = [
            "########........................  0x000000ff  step 1: `INSTR1 k` asks for the result: 8 of 32 lanes say yes",
            "........########################  0xffffff00  not taken: 24 lanes go to k.cu:2 (pc 0x0020)",
            "########........................  0x000000ff  taken: 8 lanes go to pc 0x0040",
            "8 lanes wait at pc 0x0040.",
            "step 0: `INSTR0 k`, that is k.cu:1 (pc 0x0060)",
            "........########################  0xffffff00  steps 2 to 4, 3 instructions: k.cu:2, k.cu:1",
            "step 4: `INSTR5 k`: 24 lanes wait; the other side's mask goes in.",
            "########........................  0x000000ff  steps 5 to 6, 2 instructions: k.cu:1",
            "################################  0xffffffff  step 7: all lanes go on together, at k.cu:1 (pc 0x0060)",
            "What it cost: 5 instructions between the two, with 72 of 160 lane slots empty (45.0 %).",
        ];
        for line in told {
            assert!(out.contains(line), "{line}\n{out}");
        }
    }

    #[test]
    fn a_trace_that_ends_early_and_one_without_a_split() {
        let kernel = testing::kernel("k");
        let mut trace = testing::trace();
        trace.steps.truncate(4);
        trace.cut = true;
        let out = plain(&text_of(&kernel, &trace));
        assert!(out.contains("The other side has not run") && out.contains("Not within the steps"), "{out}");
        trace.steps.truncate(1);
        assert!(plain(&text_of(&kernel, &trace)).contains("never splits"));
        trace.steps.clear();
        assert!(plain(&text_of(&kernel, &trace)).contains("never splits"));
    }

    #[test]
    fn lanes_that_leave_do_not_come_back() {
        let kernel = testing::kernel("k");
        let mut trace = testing::trace();
        let low = LaneMask::first(8);
        trace.steps.truncate(3);
        trace.steps[1].event = Event::Exit { lanes: low };
        trace.steps[2].others.clear();
        let out = plain(&text_of(&kernel, &trace));
        assert!(out.contains("8 lanes leave: the guard holds") && out.contains("Nobody comes back"), "{out}");
        assert!(out.contains("for 1 instruction more."), "{out}");
    }
}
