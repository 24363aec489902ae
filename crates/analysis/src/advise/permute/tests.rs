use lanescope_ir::{AccessProfile, LaunchShape, Profile, ThreadAccess, ThreadProfile};

use super::*;
use crate::advise::{Argument, Buffer, Input, Number};
use crate::slice::{Slice, Source, SourceKind};
use crate::testing::{Builder, counts};
use crate::uniformity::{Facts, Uniformity};

/// Accesses of one instruction to one buffer: for each thread first byte offset, count and stride.
struct Use {
    inst: u32,
    buffer: usize,
    bytes: u32,
    writes: bool,
    /// Loads its address comes from; none: the thread's index.
    from: Vec<u32>,
    threads: Vec<Option<(u64, u32, i64)>>,
}

fn base(buffer: usize) -> u64 {
    0x10_0000 * (buffer as u64 + 1)
}

/// The layouts of some buffers, for a launch of one-dimensional blocks of 4 threads.
fn of(buffers: &[Vec<u8>], uses: &[Use]) -> Vec<Layout> {
    with(buffers, |arguments| {
        let n = uses[0].threads.len();
        let mut k = Builder::new();
        k.exit();
        let kernel = k.kernel();
        let shape = LaunchShape { grid: [n as u32 / 4, 1, 1], block: [4, 1, 1], warp_size: 2 };
        let profile = Profile { shape, counts: vec![counts(1, 1)], ..Profile::default() };
        let analysis = crate::analyse(&kernel, &profile);
        let access = |u: &Use| AccessProfile {
            inst: u.inst,
            bytes: u.bytes,
            reads: !u.writes,
            writes: u.writes,
            threads: u
                .threads
                .iter()
                .map(|t| t.map_or(ThreadAccess::default(), |t| thread(base(u.buffer), t)))
                .collect(),
        };
        let mut accesses: Vec<AccessProfile> = uses.iter().map(access).collect();
        accesses.sort_by_key(|a| a.inst);
        let threads = ThreadProfile {
            threads: n,
            of: n as u64,
            block_threads: 4,
            blocks: vec![0],
            executions: vec![vec![1; n]],
            accesses,
            values: Vec::new(),
        };
        let uniformity = Uniformity::new(&kernel, &analysis.structure, &Facts::default());
        let input = Input {
            kernel: &kernel,
            profile: &profile,
            analysis: &analysis,
            threads: &threads,
            uniformity: &uniformity,
            arguments,
            error: None,
            estimate: false,
        };
        layouts(&input, &|inst| {
            let u = uses.iter().find(|u| u.inst == inst).unwrap();
            let mut sources: Vec<Source> =
                u.from.iter().map(|&l| Source { kind: SourceKind::Load { param: None }, inst: l }).collect();
            if sources.is_empty() {
                sources.push(Source { kind: SourceKind::Thread, inst: 99 });
            }
            Slice { inst, sources, whole: true, ..Slice::default() }
        })
    })
}

fn thread(base: u64, (first, count, stride): (u64, u32, i64)) -> ThreadAccess {
    let first = base + first;
    let last = first.wrapping_add_signed(stride * i64::from(count.max(1) - 1));
    ThreadAccess { count, regular: true, first, low: first.min(last), high: first.max(last), stride }
}

fn with<T>(buffers: &[Vec<u8>], f: impl FnOnce(&[Argument<'_>]) -> T) -> T {
    let mut list: Vec<Argument<'_>> = Vec::new();
    for (i, data) in buffers.iter().enumerate() {
        let buffer = Some(Buffer { address: base(i), data, element: 4, kind: Number::Unsigned });
        list.push(Argument { name: None, buffer });
    }
    f(&list)
}

fn words(list: &[i32]) -> Vec<u8> {
    list.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn read(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks(4).map(|c| i32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn by_thread(inst: u32, buffer: usize, threads: Vec<Option<(u64, u32, i64)>>) -> Use {
    Use { inst, buffer, bytes: 4, writes: false, from: Vec::new(), threads }
}

/// The permuted buffers; and moved back they must be what they were.
fn moved(buffers: &[Vec<u8>], layouts: &[Layout], order: &[u32]) -> Vec<Vec<u8>> {
    with(buffers, |arguments| {
        let new = permute(arguments, layouts, order).unwrap();
        let all: Vec<Vec<u8>> = new.into_iter().zip(buffers).map(|(n, old)| n.unwrap_or_else(|| old.clone())).collect();
        for (i, (n, old)) in all.iter().zip(buffers).enumerate() {
            assert_eq!(&restore(arguments, layouts, order, i, n).unwrap(), old, "argument {i}");
        }
        all
    })
}

#[test]
fn an_element_for_each_thread() {
    // Thread 7 is past the end and touches nothing.
    let buffers = [words(&[10, 11, 12, 13, 14, 15, 16])];
    let l = of(&buffers, &[by_thread(0, 0, (0..8).map(|t| (t < 7).then_some((4 * t, 1, 0))).collect())]);
    assert!(matches!(&l[0], Layout::Items { pieces, .. } if pieces == &[(0, 4)]), "{l:?}");
    assert_eq!(read(&moved(&buffers, &l, &[6, 1, 2, 3, 4, 5, 0, 7])[0]), [16, 11, 12, 13, 14, 15, 10]);
    let outside = with(&buffers, |a| permute(a, &l, &[7, 1, 2, 3, 4, 5, 6, 0]));
    assert!(matches!(outside, Err(Refusal::Outside { .. })), "{outside:?}");
}

#[test]
fn elements_that_only_some_threads_read_move_for_all() {
    let buffers = [words(&[0, 1, 2, 3, 4, 5, 6, 7])];
    let l = of(&buffers, &[by_thread(0, 0, (0..8).map(|t| (t % 3 == 0).then_some((4 * t, 1, 0))).collect())]);
    assert_eq!(read(&moved(&buffers, &l, &[1, 0, 2, 3, 4, 5, 7, 6])[0]), [1, 0, 2, 3, 4, 5, 7, 6]);
}

#[test]
fn rows_move_whole_however_much_of_them_is_read() {
    let buffers = [words(&(0..32).collect::<Vec<_>>())];
    let l = of(&buffers, &[by_thread(0, 0, (0..8).map(|t| Some((16 * t, 1 + t as u32 % 3, 4))).collect())]);
    assert!(matches!(&l[0], Layout::Items { pieces, .. } if pieces == &[(0, 16)]), "{l:?}");
    let new = read(&moved(&buffers, &l, &[7, 1, 2, 3, 4, 5, 6, 0])[0]);
    assert_eq!((&new[..4], &new[28..]), (&[28, 29, 30, 31][..], &[0, 1, 2, 3][..]));
}

#[test]
fn columns_move_element_by_element() {
    // x[i + 8 k] for k = 0..3
    let buffers = [words(&(0..24).collect::<Vec<_>>())];
    let l = of(&buffers, &[by_thread(0, 0, (0..8).map(|t| Some((4 * t, 3, 32))).collect())]);
    assert!(matches!(&l[0], Layout::Items { pieces, .. } if pieces == &[(0, 4), (32, 4), (64, 4)]), "{l:?}");
    let new = read(&moved(&buffers, &l, &[1, 0, 2, 3, 4, 5, 6, 7])[0]);
    assert_eq!([new[0], new[1], new[8], new[9], new[16], new[17]], [1, 0, 9, 8, 17, 16]);
}

#[test]
fn an_order_of_its_own_for_each_thread_is_kept() {
    // y[7 - i] and x[3 i mod 8], by the index alone.
    let buffers = [words(&[0, 1, 2, 3, 4, 5, 6, 7]), words(&[0, 1, 2, 3, 4, 5, 6, 7])];
    let uses = [
        by_thread(0, 0, (0..8).map(|t| Some((4 * (7 - t), 1, 0))).collect()),
        by_thread(1, 1, (0..8).map(|t| Some((4 * (3 * t % 8), 1, 0))).collect()),
    ];
    let l = of(&buffers, &uses);
    let new = moved(&buffers, &l, &[1, 0, 2, 3, 4, 5, 6, 7]);
    assert_eq!(read(&new[0]), [0, 1, 2, 3, 4, 5, 7, 6]);
    assert_eq!(read(&new[1]), [3, 1, 2, 0, 4, 5, 6, 7]);
}

#[test]
fn offsets_are_summed_up_anew_and_their_segments_move() {
    let starts = [2, 3, 3, 7, 8, 10, 11, 12, 14];
    let buffers = [words(&starts), words(&(0..16).collect::<Vec<_>>()), words(&[5; 4])];
    let lengths: Vec<u32> = starts.windows(2).map(|w| (w[1] - w[0]) as u32).collect();
    let segment = |t: usize| (lengths[t] > 0).then_some((4 * starts[t] as u64, lengths[t], 4));
    let uses = [
        by_thread(0, 0, (0..8).map(|t| Some((4 * t, 1, 0))).collect()),
        by_thread(1, 0, (0..8).map(|t| Some((4 * t + 4, 1, 0))).collect()),
        Use { from: vec![0, 1], ..by_thread(2, 1, (0..8).map(segment).collect()) },
        // Reached through what the segments hold.
        Use { from: vec![2], ..by_thread(3, 2, (0..8).map(|t| Some((4 * (t % 4), 1, 0))).collect()) },
    ];
    let l = of(&buffers, &uses);
    assert!(matches!(l[0], Layout::Offsets { size: 4, .. }), "{l:?}");
    assert_eq!(l[1], Layout::Segments { offsets: 0, size: 4, start: 0 });
    assert_eq!(l[2], Layout::Stays);
    let new = moved(&buffers, &l, &[2, 1, 0, 3, 7, 5, 6, 4]);
    // Lengths 4, 0, 1, 1, 2, 1, 1, 2.
    assert_eq!(read(&new[0]), [2, 6, 6, 7, 8, 10, 11, 12, 14]);
    assert_eq!(read(&new[1]), [0, 1, 3, 4, 5, 6, 2, 7, 12, 13, 10, 11, 8, 9, 14, 15]);
}

#[test]
fn neighbours_that_share_elements_are_refused() {
    let buffers = [words(&[0; 10]), words(&[0; 8])];
    // before[i], before[i + 1], before[i + 2]
    let stencil = |inst, d: u64| by_thread(inst, 0, (0..8).map(|t| Some((4 * (t + d), 1, 0))).collect());
    let l = of(&buffers, &[stencil(0, 0), stencil(1, 1), stencil(2, 2)]);
    assert!(matches!(&l[0], Layout::Unclear(why) if why.contains("neighbouring")), "{l:?}");
    // Two entries that delimit nothing.
    let l = of(&buffers, &[stencil(0, 0), stencil(1, 1)]);
    assert!(matches!(&l[0], Layout::Unclear(why) if why.contains("neighbouring")), "{l:?}");
    let refused = with(&buffers, |a| permute(a, &l, &[1, 0, 2, 3, 4, 5, 6, 7]));
    assert!(matches!(refused, Err(Refusal::Unclear { .. })), "{refused:?}");
    // By the thread's index and through data.
    let through = Use { from: vec![0], ..by_thread(1, 1, (0..8).map(|t| Some((4 * (7 - t), 1, 0))).collect()) };
    let l = of(&buffers, &[by_thread(0, 1, (0..8).map(|t| Some((4 * t, 1, 0))).collect()), through]);
    assert!(matches!(&l[1], Layout::Unclear(why) if why.contains("as well")), "{l:?}");
}

#[test]
fn any_order_can_be_undone() {
    arbtest::arbtest(|u| {
        let n = 4 * u.int_in_range(1..=6usize)?;
        let mut order: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            order.swap(i, u.int_in_range(0..=i)?);
        }
        let mut starts = vec![u.int_in_range(0..=2)?];
        for _ in 0..n {
            starts.push(starts[starts.len() - 1] + u.int_in_range(0..=3)?);
        }
        let total = starts[n] as usize + 2;
        let buffers = [
            words(&starts),
            words(&(0..total as i32).collect::<Vec<_>>()),
            words(&(0..3 * n as i32).collect::<Vec<_>>()),
        ];
        let segment = |t: usize| {
            let length = (starts[t + 1] - starts[t]) as u32;
            (length > 0).then_some((4 * starts[t] as u64, length, 4))
        };
        let uses = [
            by_thread(0, 0, (0..n as u64).map(|t| Some((4 * t, 1, 0))).collect()),
            by_thread(1, 0, (0..n as u64).map(|t| Some((4 * t + 4, 1, 0))).collect()),
            Use { from: vec![0, 1], ..by_thread(2, 1, (0..n).map(segment).collect()) },
            by_thread(3, 2, (0..n as u64).map(|t| Some((12 * t, 3, 4))).collect()),
        ];
        let l = of(&buffers, &uses);
        // Rows without an element delimit nothing.
        if matches!(l[1], Layout::Segments { .. }) {
            moved(&buffers, &l, &order);
        }
        Ok(())
    })
    .budget_ms(1_000);
}
