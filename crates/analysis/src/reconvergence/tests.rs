use lanescope_ir::flow::{Flow, FlowCode, FlowInst, RegionClass, Spread, Token};

use super::{Class, Decides, Reconvergence, survey};

/// Builds code one instruction a call. Predicate `p` is resource 510 + p.
struct Code(FlowCode);

impl Code {
    fn new() -> Code {
        let mut code = FlowCode::new(true);
        code.entries = vec![0];
        Code(code)
    }
    fn inst(&mut self, flow: Flow, guard: Option<u16>) -> &mut Code {
        let mut inst = FlowInst::new(self.0.insts.len() as u32 * 16, flow);
        inst.conditional = guard.is_some();
        let reads: Vec<u16> = guard.iter().map(|g| 510 + g).collect();
        self.0.push(inst, &reads, &[]);
        self
    }
    fn op(&mut self, spread: Spread, reads: &[u16], writes: &[u16]) -> &mut Code {
        let mut inst = FlowInst::new(self.0.insts.len() as u32 * 16, Flow::Next);
        inst.spread = spread;
        self.0.push(inst, reads, writes);
        self
    }
    fn nop(&mut self) -> &mut Code {
        self.inst(Flow::Next, None)
    }
    fn tid(&mut self, p: u16) -> &mut Code {
        self.op(Spread::Varies, &[], &[510 + p])
    }
    fn open(&mut self, b: u8) -> &mut Code {
        self.inst(Flow::Open(b, RegionClass::Plain), None)
    }
    fn wait(&mut self, b: u8) -> &mut Code {
        self.inst(Flow::Wait(b), None)
    }
    fn bra(&mut self, to: u32) -> &mut Code {
        self.inst(Flow::Branch(Some(to)), None)
    }
    fn bra_if(&mut self, p: u16, to: u32) -> &mut Code {
        self.inst(Flow::Branch(Some(to)), Some(p))
    }
    fn exit(&mut self) -> &mut Code {
        self.inst(Flow::Leave, None)
    }
    fn survey(&self) -> Reconvergence {
        survey(&self.0).expect("small")
    }
    fn classes(&self) -> Vec<Class> {
        self.survey().branches.iter().map(|b| b.class).collect()
    }
}

#[test]
fn if_else_is_exact() {
    let mut k = Code::new();
    // 0 bssy, 1 @P0 bra 4, 2 nop, 3 bra 5, 4 nop, 5 bsync, 6 exit
    k.open(0).bra_if(0, 4).nop().bra(5).nop().wait(0).exit();
    let s = k.survey();
    assert_eq!(
        (s.branches[0].class, s.branches[0].meets_at, s.branches[0].rejoins_at),
        (Class::Exact, Some(5), Some(5))
    );
    assert_eq!((s.regions, s.endless), (1, 0));
}

#[test]
fn a_branch_between_defers() {
    let mut k = Code::new();
    // One region round two ifs: the first rejoins at 2, and is only synchronised after the second.
    // 0 bssy, 1 @P0 bra 3, 2 nop, 3 nop, 4 @P1 bra 6, 5 nop, 6 bsync, 7 exit
    k.open(0).bra_if(0, 3).nop().nop().bra_if(1, 6).nop().wait(0).exit();
    assert_eq!(k.classes(), [Class::Deferred, Class::Exact]);
}

#[test]
fn exit_escaped_and_uncovered() {
    let mut k = Code::new();
    // 0 @P0 bra 3, 1 nop, 2 exit, 3 @P1 bra 5, 4 nop, 5 exit
    k.bra_if(0, 3).nop().exit().bra_if(1, 5).nop().exit();
    assert_eq!(k.classes(), [Class::Exit, Class::Uncovered]);

    let mut k = Code::new();
    // 0 bssy, 1 @P0 bra 5, 2 @P1 bra 4, 3 nop, 4 bsync, 5 exit: leavers pass by the BSYNC
    k.open(0).bra_if(0, 5).bra_if(1, 4).nop().wait(0).exit();
    assert_eq!(k.classes(), [Class::Escaped, Class::Exact]);
}

#[test]
fn break_ends_a_region_only_if_all_leave() {
    let mut k = Code::new();
    // 0 bssy, 1 break, 2 @P0 bra 4, 3 nop, 4 bsync, 5 exit
    k.open(0).inst(Flow::Break(0), None).bra_if(0, 4).nop().wait(0).exit();
    assert_eq!(k.classes(), [Class::Uncovered]);
    let mut k = Code::new();
    k.open(0).inst(Flow::Break(0), Some(1)).bra_if(0, 4).nop().wait(0).exit();
    assert_eq!(k.classes(), [Class::Exact]);
}

#[test]
fn values_and_who_decides() {
    let mut k = Code::new();
    // 0 P0 = tid, 1 P1 = const, 2 bssy, 3 @P0 bra 7, 4 P1 = const (in some lanes), 5 @P1 bra 7 (all of these agree),
    // 6 nop, 7 bsync, 8 bssy, 9 @P1 bra 11, 10 nop, 11 bsync, 12 @P2 bra.u 14, 13 nop, 14 bra.div 16, 15 nop, 16 exit
    k.tid(0).op(Spread::Follows, &[], &[511]).open(0).bra_if(0, 7).op(Spread::Follows, &[], &[511]).bra_if(1, 7).nop();
    k.wait(0).open(0).bra_if(1, 11).nop().wait(0);
    k.inst(Flow::GroupBranch(Some(14)), Some(2)).nop().inst(Flow::Test(Some(16)), None).nop().exit();
    let got: Vec<_> = k.survey().branches.iter().map(|b| (b.decides, b.diverges)).collect();
    let lanes = (Decides::Lanes, Some(true));
    let agree = (Decides::Lanes, Some(false));
    assert_eq!(got, [lanes, agree, lanes, (Decides::Group, None), (Decides::Test, None)]);

    let mut k = Code::new();
    // A vote makes it uniform again.
    k.tid(0).op(Spread::Same, &[510], &[511]).bra_if(1, 4).nop().exit();
    assert_eq!(k.survey().branches[0].diverges, Some(false));
}

#[test]
fn tokens_name_their_labels() {
    let mut k = Code::new();
    // 0 ssy 4, 1 @P0 bra 3, 2 sync, 3 sync, 4 pbk 8, 5 @P1 brk, 6 nop, 7 bra 5, 8 exit
    k.inst(Flow::Push(Token::Sync, Some(4)), None).bra_if(0, 3);
    k.inst(Flow::Pop(Token::Sync), None).inst(Flow::Pop(Token::Sync), None);
    k.inst(Flow::Push(Token::Break, Some(8)), None).inst(Flow::Pop(Token::Break), Some(1)).nop().bra(5).exit();
    let s = k.survey();
    let got: Vec<_> = s.branches.iter().map(|b| (b.at, b.class, b.rejoins_at)).collect();
    assert_eq!(got, [(1, Class::Exact, Some(4)), (5, Class::Exact, Some(8))]);
    assert_eq!((s.regions, s.unmatched), (2, 0));
    let mut k = Code::new();
    k.inst(Flow::Pop(Token::Sync), None);
    assert_eq!(k.survey().unmatched, 1);
}

#[test]
fn any_code_is_surveyed() {
    arbtest::arbtest(|u| {
        let n: u32 = u.int_in_range(0..=40)?;
        let mut k = Code::new();
        k.0.targets = (0..4).map(|_| u.int_in_range(0..=n)).collect::<Result<_, _>>()?;
        for _ in 0..n {
            let to = Some(u.int_in_range(0..=n)?).filter(|&t| t < n);
            let b = u.int_in_range(0..=2)?;
            let token = *u.choose(&[Token::Sync, Token::Break, Token::Continue])?;
            let flow = match u.int_in_range(0..=11)? {
                0 => Flow::Branch(to),
                1 => Flow::GroupBranch(to),
                2 => Flow::Test(to),
                3 => Flow::Indirect(u.int_in_range(0..=5)?, u.int_in_range(0..=5)?),
                4 => Flow::Leave,
                5 => Flow::Open(b, RegionClass::Plain),
                6 => Flow::Wait(b),
                7 => Flow::Break(b),
                8 => Flow::Overwrite(b),
                9 => Flow::Push(token, to),
                10 => Flow::Pop(token),
                _ => Flow::Next,
            };
            let guard = if u.arbitrary()? { Some(u.int_in_range(0..=6)?) } else { None };
            k.inst(flow, guard);
        }
        let s = k.survey();
        for b in &s.branches {
            assert_eq!(b.class == Class::Exit, b.meets_at.is_none());
            assert_eq!(matches!(b.class, Class::Exact | Class::Deferred), b.rejoins_at.is_some());
        }
        Ok(())
    });
}
