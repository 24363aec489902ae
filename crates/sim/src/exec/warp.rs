//! Operations across the lanes of one warp, and special registers.

use lanescope_ir::op::warp::{ReduceOp, ShuffleMode, SpecialReg, VoteMode, WarpOp};

use super::meeting::Meeting;
use super::program::WarpInst;
use super::{BlockCx, Where};
use crate::launch::{SHARED_WINDOW_HI, SM_COUNT};
use crate::memory::words::lanes;
use crate::rows::{LANES, Row, RowFile};

/// What an operation across lanes works on: one row of lanes. Operations that would need all of a warp of 64 lanes are
/// refused before the launch.
pub(crate) struct Across<'a> {
    pub(crate) block: &'a BlockCx<'a>,
    pub(crate) file: &'a mut RowFile,
    pub(crate) at: Where,
    pub(crate) active: u32,
    pub(crate) exec: u32,
    pub(crate) uniform: bool,
    /// Issues of the block so far.
    pub(crate) clock: u64,
    /// Result of the last reducing block barrier.
    pub(crate) result: u32,
    /// The exchange, if lanes at other instructions take part in it, too.
    pub(crate) meeting: Option<Meeting>,
}

/// What cannot be done, if anything.
pub(crate) fn unsupported(op: &WarpOp) -> Option<String> {
    match op {
        WarpOp::Special { reg, .. } => {
            reg.iter().find(|r| value(**r, &Asked::default()).is_none()).map(|r| format!("special register {r:?}"))
        }
        _ => None,
    }
}

/// Threads that a multiprocessor can hold.
const THREADS: u32 = 2048;

/// What special registers tell about one lane.
#[derive(Clone, Copy, Default)]
struct Asked {
    tid: [u32; 3],
    ctaid: [u32; 3],
    ntid: [u32; 3],
    nctaid: [u32; 3],
    lane: u32,
    warp: u32,
    warp_size: u32,
    block: u64,
    clock: u64,
    shared: u32,
}

fn axis(v: &[u32; 3], i: u8) -> Option<u32> {
    v.get(usize::from(i)).copied()
}

fn value(reg: SpecialReg, a: &Asked) -> Option<u32> {
    let bit = 1u32 << (a.lane % 32);
    Some(match reg {
        SpecialReg::Tid(i) => axis(&a.tid, i)?,
        SpecialReg::CtaId(i) => axis(&a.ctaid, i)?,
        SpecialReg::NTid(i) => axis(&a.ntid, i)?,
        SpecialReg::NCtaId(i) => axis(&a.nctaid, i)?,
        SpecialReg::LaneId => a.lane,
        SpecialReg::WarpId => a.warp,
        SpecialReg::NWarpId => THREADS / a.warp_size.max(1),
        SpecialReg::VirtId => (a.warp & 0x7f) << 8,
        SpecialReg::VirtCfg => (THREADS / 32) << 8,
        SpecialReg::SmId => (a.block % u64::from(SM_COUNT)) as u32,
        SpecialReg::NSmId => SM_COUNT,
        SpecialReg::GridId => 1,
        SpecialReg::LaneMaskEq => bit,
        SpecialReg::LaneMaskLt => bit - 1,
        SpecialReg::LaneMaskLe => bit | (bit - 1),
        SpecialReg::LaneMaskGt => !(bit | (bit - 1)),
        SpecialReg::LaneMaskGe => !(bit - 1),
        SpecialReg::ClockLo | SpecialReg::GlobalTimerLo => a.clock as u32,
        SpecialReg::ClockHi | SpecialReg::GlobalTimerHi => (a.clock >> 32) as u32,
        SpecialReg::TidPacked => a.tid[0] | a.tid[1] << 16 | a.tid[2] << 26,
        SpecialReg::Zero | SpecialReg::ClusterCtaId => 0,
        SpecialReg::ClusterSize => 1,
        SpecialReg::SharedWindowHi => SHARED_WINDOW_HI,
        // Shared memory is given out in pieces of 128 bytes.
        SpecialReg::SharedSize => a.shared.next_multiple_of(128),
        _ => return None,
    })
}

impl Across<'_> {
    fn src(&self, w: &WarpInst, i: usize) -> Row {
        if let Some(m) = &self.meeting {
            return m.src.get(i).copied().unwrap_or(Row::ZERO);
        }
        let constants = self.block.cx.program.layout.constants();
        w.src.get(i).map_or(Row::ZERO, |s| self.file.read(constants, s, self.at.index))
    }

    fn pred(&self, w: &WarpInst, i: usize) -> u32 {
        if let Some(m) = &self.meeting {
            return m.psrc.get(i).copied().unwrap_or(u32::MAX);
        }
        w.psrc.get(i).map_or(u32::MAX, |p| self.file.pred(p, self.at.index))
    }

    fn write(&mut self, w: &WarpInst, i: usize, mask: u32, value: &Row) {
        if let Some(&d) = w.dst.get(i) {
            self.file.write(d, self.at.index, mask, value);
        }
    }

    fn write_pred(&mut self, w: &WarpInst, i: usize, mask: u32, value: u32) {
        if let Some(&d) = w.pdst.get(i) {
            self.file.write_pred(d, self.at.index, mask, value);
        }
    }

    fn special(&self, reg: SpecialReg) -> Row {
        let b = self.block;
        Row(std::array::from_fn(|l| {
            let lane = self.at.base + l as u32;
            let (tid, ctaid) = b.played(self.at.warp, lane);
            let asked = Asked {
                tid,
                ctaid,
                ntid: b.cx.block,
                nctaid: b.cx.grid,
                lane,
                warp: self.at.warp,
                warp_size: b.cx.warp_size,
                block: b.linear,
                clock: self.clock,
                shared: b.cx.shared_size,
            };
            value(reg, &asked).unwrap_or(0)
        }))
    }

    /// Executes it.
    pub(crate) fn run(&mut self, w: &WarpInst) {
        if self.exec == 0 {
            return;
        }
        let to = if self.uniform { u32::MAX } else { self.exec };
        let exec = self.meeting.as_ref().map_or(self.exec, |m| m.lanes);
        let first = exec.trailing_zeros() as usize;
        let any = |b: bool| if b { u32::MAX } else { 0 };
        match &w.op {
            WarpOp::Special { dst, reg } => {
                for i in 0..2 {
                    if dst[i].is_none() {
                        continue;
                    }
                    let mut row = self.special(reg[i]);
                    if self.uniform {
                        row = Row::splat(row.0[first]);
                    }
                    self.write(w, i, to, &row);
                }
            }
            WarpOp::Shuffle { mode, .. } => {
                let (value, lane, clamp) = (self.src(w, 0), self.src(w, 1), self.src(w, 2));
                let mut row = value;
                let mut inside = 0;
                for l in lanes(exec) {
                    let (j, ok) = shuffle_lane(*mode, l as u32, lane.0[l], clamp.0[l]);
                    inside |= u32::from(ok) << l;
                    // Out of range gives the lane's own value; a lane that does not execute gives zero, as measured.
                    row.0[l] = if !ok {
                        value.0[l]
                    } else if exec >> j & 1 != 0 {
                        value.0[j as usize]
                    } else {
                        0
                    };
                }
                self.write(w, 0, to, &row);
                self.write_pred(w, 0, to, inside);
            }
            WarpOp::Vote { mode, .. } => {
                let ballot = self.pred(w, 0) & exec;
                let result = match mode {
                    VoteMode::All => ballot == exec,
                    VoteMode::Any => ballot != 0,
                    VoteMode::Eq => ballot == exec || ballot == 0,
                };
                self.write(w, 0, to, &Row::splat(ballot));
                self.write_pred(w, 0, to, any(result));
            }
            WarpOp::Match { all, .. } => {
                let (lo, hi) = (self.src(w, 0), self.src(w, 1));
                let mut row = Row::ZERO;
                let like = |l: usize| {
                    lanes(exec).filter(|&k| lo.0[k] == lo.0[l] && hi.0[k] == hi.0[l]).fold(0u32, |m, k| m | 1 << k)
                };
                if *all {
                    let same = like(first) == exec;
                    self.write(w, 0, to, &Row::splat(if same { exec } else { 0 }));
                    self.write_pred(w, 0, to, any(same));
                } else {
                    lanes(exec).for_each(|l| row.0[l] = like(l));
                    self.write(w, 0, to, &row);
                    self.write_pred(w, 0, to, u32::MAX);
                }
            }
            WarpOp::Reduce { op, .. } => {
                let value = self.src(w, 0);
                let (result, pred) = reduce(*op, &value, exec);
                self.write(w, 0, to, &Row::splat(result));
                self.write_pred(w, 0, to, any(pred));
            }
            WarpOp::Broadcast { .. } => {
                let rows = [self.src(w, 0), self.src(w, 1)];
                let mut differs = 0;
                for (i, row) in rows.iter().enumerate() {
                    differs |= lanes(exec).filter(|&l| row.0[l] != row.0[first]).fold(0, |m, l| m | 1 << l);
                    self.write(w, i, u32::MAX, &Row::splat(row.0[first]));
                }
                self.write_pred(w, 0, exec, differs);
            }
            WarpOp::Elect { .. } => {
                let voters = exec & self.pred(w, 0);
                let elected = voters.trailing_zeros() % 32;
                self.write(w, 0, to, &Row::splat(elected));
                self.write_pred(w, 0, to & exec, voters & voters.wrapping_neg());
            }
            // Measured for HMMA: unless every lane executes it nothing happens.
            WarpOp::Mma(_) | WarpOp::Transpose { .. } if exec != u32::MAX => {}
            WarpOp::Mma(op) => {
                let words: Vec<Row> = (0..w.src.len()).map(|i| self.src(w, i)).collect();
                for (i, row) in super::tensor::multiply(op, &words).iter().enumerate() {
                    self.write(w, i, to, row);
                }
            }
            WarpOp::Transpose { .. } => {
                let tile = super::tensor::transpose(&self.src(w, 0));
                self.write(w, 0, to, &tile);
            }
            WarpOp::ActiveMask { .. } => self.write(w, 0, to, &Row::splat(self.active)),
            WarpOp::PackPreds { byte, .. } => {
                let (merge, mask) = (self.src(w, 0), self.src(w, 1));
                let preds: [u32; 8] = std::array::from_fn(|i| self.pred(w, i));
                let shift = u32::from(byte % 4) * 8;
                let row = Row(std::array::from_fn(|l| {
                    let bits = preds.iter().enumerate().fold(0, |b, (i, p)| b | (p >> l & 1) << i);
                    let mask = mask.0[l] & 0xff;
                    merge.0[l] & !(mask << shift) | (bits & mask) << shift
                }));
                self.write(w, 0, to, &row);
            }
            WarpOp::UnpackPreds { byte, preds, .. } => {
                let (value, mask) = (self.src(w, 0), self.src(w, 1));
                let shift = u32::from(byte % 4) * 8;
                for i in 0..preds.len() {
                    let (mut bits, mut written) = (0u32, 0u32);
                    for l in 0..LANES {
                        bits |= (value.0[l] >> (shift + i as u32) & 1) << l;
                        written |= (mask.0[l] >> i & 1) << l;
                    }
                    self.write_pred(w, i, to & written, bits);
                }
            }
            WarpOp::BarrierResult { .. } => {
                self.write(w, 0, to, &Row::splat(self.result));
                self.write_pred(w, 0, to, any(self.result != 0));
            }
            WarpOp::CodeAddress { addr, .. } => {
                self.write(w, 0, to, &Row::splat(*addr as u32));
                self.write(w, 1, to, &Row::splat((*addr >> 32) as u32));
            }
            // Ends a straight run, handled there.
            WarpOp::BlockBarrier { .. } => {}
        }
    }
}

/// The lane SHFL reads for lane `l`, and whether it is in range.
pub(crate) fn shuffle_lane(mode: ShuffleMode, l: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let max = l & segment | clamp & !segment;
    let min = l & segment;
    let (j, ok) = match mode {
        ShuffleMode::Up => (l.wrapping_sub(b), l as i32 - b as i32 >= max as i32),
        ShuffleMode::Down => (l + b, l + b <= max),
        ShuffleMode::Bfly => (l ^ b, l ^ b <= max),
        ShuffleMode::Idx => {
            let j = min | b & !segment;
            (j, j <= max)
        }
    };
    if ok { (j & 31, true) } else { (l, false) }
}

fn reduce(op: ReduceOp, value: &Row, exec: u32) -> (u32, bool) {
    let all = || lanes(exec).map(|l| value.0[l]);
    let or0 = |x: Option<u32>| x.unwrap_or(0);
    match op {
        ReduceOp::Add => (all().fold(0, u32::wrapping_add), false),
        ReduceOp::And => (all().fold(u32::MAX, |a, b| a & b), false),
        ReduceOp::Or => (all().fold(0, |a, b| a | b), false),
        ReduceOp::Xor => (all().fold(0, |a, b| a ^ b), false),
        ReduceOp::Min { signed: false } => (or0(all().min()), false),
        ReduceOp::Max { signed: false } => (or0(all().max()), false),
        ReduceOp::Min { signed: true } => (all().map(|x| x as i32).min().unwrap_or(0) as u32, false),
        ReduceOp::Max { signed: true } => (all().map(|x| x as i32).max().unwrap_or(0) as u32, false),
        ReduceOp::FMin { abs, nan } => float_extreme(all(), abs, nan, false),
        ReduceOp::FMax { abs, nan } => float_extreme(all(), abs, nan, true),
    }
}

/// Minimum or maximum of floats; the predicate tells whether a NaN was among them.
fn float_extreme(values: impl Iterator<Item = u32>, abs: bool, nan: bool, max: bool) -> (u32, bool) {
    let mut best: Option<u32> = None;
    let mut seen = false;
    // Orders -0 below +0.
    let key = |x: u32| if x >> 31 != 0 { !x } else { x | 1 << 31 };
    for x in values {
        let x = if abs { x & 0x7fff_ffff } else { x };
        if f32::from_bits(x).is_nan() {
            seen = true;
            continue;
        }
        best = Some(match best {
            Some(b) if (key(b) > key(x)) == max || b == x => b,
            _ => x,
        });
    }
    let result = if seen && nan { 0x7fff_ffff } else { best.unwrap_or(0x7fff_ffff) };
    (result, seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_lanes_follow_the_ptx_rule() {
        // shfl.down 1 over the whole warp: clamp 31, no segments.
        assert_eq!(shuffle_lane(ShuffleMode::Down, 30, 1, 0x1f), (31, true));
        assert_eq!(shuffle_lane(ShuffleMode::Down, 31, 1, 0x1f), (31, false));
        // shfl.up has clamp 0.
        assert_eq!(shuffle_lane(ShuffleMode::Up, 0, 1, 0), (0, false));
        assert_eq!(shuffle_lane(ShuffleMode::Up, 5, 1, 0), (4, true));
        // Segments of 8: mask 0x18.
        assert_eq!(shuffle_lane(ShuffleMode::Idx, 13, 2, 0x181f), (10, true));
        assert_eq!(shuffle_lane(ShuffleMode::Bfly, 13, 4, 0x181f), (9, true));
        assert_eq!(shuffle_lane(ShuffleMode::Down, 15, 1, 0x181f), (15, false));
        assert_eq!(shuffle_lane(ShuffleMode::Up, 8, 1, 0x1800), (8, false));
    }

    #[test]
    fn float_reductions() {
        let f = |x: f32| x.to_bits();
        let v = [f(-0.0), f(0.0), f32::NAN.to_bits(), f(-3.0)];
        let all = || v.iter().copied();
        assert_eq!(float_extreme(all(), false, false, true), (f(0.0), true));
        assert_eq!(float_extreme(all(), false, false, false), (f(-3.0), true));
        assert_eq!(float_extreme(all(), true, false, true), (f(3.0), true));
        assert_eq!(float_extreme(all(), false, true, true), (0x7fff_ffff, true));
    }
}
