//! A machine with nothing but control flow: it runs tiny programs on a convergence model and counts issues as the engine does.

use lanescope_ir::LaneMask;
use lanescope_sim::convergence::{Barrier, Convergence, Group, SyncMode, SyncPart, YieldKind};

/// What a lane may ask: lane number and how often each instruction was issued for it, in the order of the program.
pub(crate) type Test<'a> = Box<dyn Fn(u32, &[u32]) -> bool + 'a>;
/// A mask for each lane.
pub(crate) type Masks<'a> = Box<dyn Fn(u32) -> u64 + 'a>;

pub(crate) enum Op<'a> {
    Alu,
    Memory,
    /// A memory instruction with an effect, applied lane by lane.
    Do(Box<dyn Fn(u32) + 'a>),
    Branch(u32, Test<'a>),
    Indirect(Box<dyn Fn(u32) -> u32 + 'a>),
    Exit(Test<'a>),
    Bssy(u8),
    Bsync(u8),
    Break(u8, Test<'a>),
    Bar,
    Warpsync(Masks<'a>),
    Exclusive(Masks<'a>),
    Collective(Masks<'a>, u32),
    EndCollective,
    Yield,
    Sleep,
}

pub(crate) fn always<'a>() -> Test<'a> {
    Box::new(|_, _| true)
}

/// What happened: every issue in order.
pub(crate) struct Run {
    pub(crate) issues: Vec<Group>,
    pub(crate) state: Barrier,
}

impl Run {
    /// Sizes of the groups that issued `pc`, in order.
    pub(crate) fn sizes(&self, pc: u32) -> Vec<u32> {
        self.issues.iter().filter(|g| g.pc == pc).map(|g| g.mask.count()).collect()
    }
    /// The groups that issued `pc`, in order.
    pub(crate) fn masks(&self, pc: u32) -> Vec<u64> {
        self.issues.iter().filter(|g| g.pc == pc).map(|g| g.mask.0).collect()
    }
}

fn lanes_where(mask: LaneMask, mut test: impl FnMut(u32) -> bool) -> LaneMask {
    mask.lanes().filter(|&l| test(l)).fold(LaneMask::EMPTY, |m, l| m | LaneMask::lane(l))
}

fn parts(group: LaneMask, masks: &Masks<'_>) -> Vec<SyncPart> {
    let mut parts: Vec<SyncPart> = Vec::new();
    for l in group.lanes() {
        let wanted = LaneMask(masks(l));
        match parts.iter_mut().find(|p| p.wanted == wanted) {
            Some(p) => p.lanes = p.lanes | LaneMask::lane(l),
            None => parts.push(SyncPart { lanes: LaneMask::lane(l), wanted }),
        }
    }
    parts
}

/// Lanes that run, are parked, or wait; panics if one is in two places or not live.
pub(crate) fn account(state: &Barrier) {
    let mut seen = LaneMask::EMPTY;
    let mut add = |m: LaneMask| {
        assert!((seen & m).is_empty(), "lanes {} are in two places", seen & m);
        assert!(!m.is_empty(), "an empty group");
        seen = seen | m;
    };
    state.current().into_iter().for_each(|g| add(g.mask));
    state.parked().iter().for_each(|g| add(g.mask));
    state.waiting().iter().for_each(|w| add(w.lanes));
    assert_eq!(seen, state.live(), "live lanes lost or found");
    assert!((state.live() & state.exited()).is_empty());
}

/// Runs until nobody is live, nothing can go on, or `limit` issues.
pub(crate) fn run(program: &[Op<'_>], lanes: LaneMask, limit: usize) -> Run {
    let mut s = Barrier::new(&(), lanes, 0);
    let mut issues = Vec::new();
    let mut counts = vec![vec![0u32; program.len()]; 64];
    while issues.len() < limit {
        account(&s);
        let Some(g) = s.current() else {
            let waiting = s.block_waiting();
            if waiting.is_empty() {
                break;
            }
            s.release_block(waiting);
            continue;
        };
        issues.push(g);
        g.mask.lanes().for_each(|l| counts[l as usize][g.pc as usize] += 1);
        let next = g.pc + 1;
        let holds = |t: &Test<'_>| lanes_where(g.mask, |l| t(l, &counts[l as usize]));
        match &program[g.pc as usize] {
            Op::Alu => s.set_pc(next),
            Op::Memory => {
                s.memory_issued();
                s.set_pc(next);
            }
            Op::Do(effect) => {
                g.mask.lanes().for_each(effect);
                s.memory_issued();
                s.set_pc(next);
            }
            Op::Branch(target, t) => {
                s.branch(holds(t), *target, next);
            }
            Op::Indirect(target) => {
                let mut groups: Vec<Group> = Vec::new();
                for l in g.mask.lanes() {
                    match groups.iter_mut().find(|x| x.pc == target(l)) {
                        Some(x) => x.mask = x.mask | LaneMask::lane(l),
                        None => groups.push(Group { pc: target(l), mask: LaneMask::lane(l) }),
                    }
                }
                s.indirect(&groups, next);
            }
            Op::Exit(t) => {
                s.exit(holds(t), next);
            }
            Op::Bssy(b) => {
                s.sync_set(*b, g.mask);
                s.set_pc(next);
            }
            Op::Bsync(b) => s.sync(*b, g.mask, next),
            Op::Break(b, t) => {
                s.break_from(*b, holds(t));
                s.set_pc(next);
            }
            Op::Bar => s.wait_block(g.mask, next),
            Op::Warpsync(m) => s.warp_sync(&parts(g.mask, m), SyncMode::Join, next),
            Op::Exclusive(m) => s.warp_sync(&parts(g.mask, m), SyncMode::Exclusive, next),
            Op::Collective(m, resume) => {
                s.warp_sync(&parts(g.mask, m), SyncMode::Collective { resume: *resume }, next);
            }
            Op::EndCollective => s.end_collective(next),
            Op::Yield => s.yield_now(YieldKind::Yield, next),
            Op::Sleep => s.yield_now(YieldKind::Sleep, next),
        }
    }
    account(&s);
    Run { issues, state: s }
}
