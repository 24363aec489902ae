//! Random PTX kernels whose results PTX defines fully.
//!
//! A kernel works on eight 32-bit, four float and three 64-bit registers and six predicates, which it loads from its
//! input and stores at its end. Statements nest: branches, loops of few trips with ways out in their middle and out of
//! loops around them, ladders, indirect branches, calls. Exchanges between lanes stand only where the lanes that they
//! name are together, barriers where those of the block are. Some lanes may leave before the others have ended.
//!
//! Two things are not made because ptxas 12.9 gets them wrong, so that its machine code cannot agree:
//! - In a loop that stands where a branch has tested a predicate, the loop sets that predicate anew. If the loop also has
//!   a `continue`, ptxas takes the predicate for known in later trips: of `@!%p0 bra END; LOOP: neg %r0, %r7;
//!   @%p0 shr %r0, %r0, %r4; setp.lt %p0, %r0, -2; ...` the loop that remains is empty.
//! - `mad.hi %r0, %r1, %r2, %r0` in a loop: unrolled by four it is issued twice.

mod exchange;
mod flow;
mod memory;
mod numbers;
mod straight;

use std::fmt::Write as _;

use numbers::Random;
pub(crate) use numbers::input;

/// Threads of the one block.
pub(crate) const THREADS: usize = 64;
/// Bytes that a thread stores. Behind its registers there are words for its own stores and atomics.
pub(crate) const STRIDE: usize = 96;
/// Where the words begin that a thread uses as it goes: one of 32 bits, one of 64; behind them its word of shared memory.
const OWN: usize = 76;
const OWN_SHARED: usize = 88;
/// Words that are summed up by atomics.
pub(crate) const SUMS: usize = 8;
/// Words of the input, of which the upper half are floats.
const WORDS: usize = 2048;

const INTS: usize = 8;
const FLOATS: usize = 4;
const WIDES: usize = 3;
const PREDS: usize = 6;

/// What comes before the kernels: functions that they call.
pub(crate) const HEADER: &str = "\
.version 8.0
.target sm_80
.address_size 64

.func (.param .b32 result) collatz(.param .b32 a, .param .b32 b)
{
	.reg .pred %p<3>;
	.reg .b32 %r<6>;
	ld.param.b32 %r1, [a];
	ld.param.b32 %r2, [b];
	and.b32 %r2, %r2, 7;
	mov.b32 %r3, 0;
LOOP:
	setp.ge.u32 %p1, %r3, %r2;
	@%p1 bra DONE;
	and.b32 %r4, %r1, 1;
	setp.eq.u32 %p2, %r4, 0;
	@%p2 bra EVEN;
	mad.lo.u32 %r1, %r1, 3, 1;
	bra.uni NEXT;
EVEN:
	shr.u32 %r1, %r1, 1;
NEXT:
	add.u32 %r3, %r3, 1;
	bra.uni LOOP;
DONE:
	st.param.b32 [result], %r1;
	ret;
}

.func (.param .b64 result) mix(.param .b64 a, .param .f32 f, .param .b32 n)
{
	.reg .pred %p<3>;
	.reg .b32 %r<4>;
	.reg .f32 %f<2>;
	.reg .b64 %q<6>;
	.local .align 8 .b64 seen[4];
	ld.param.b64 %q1, [a];
	ld.param.f32 %f1, [f];
	ld.param.b32 %r1, [n];
	setp.lt.f32 %p1, %f1, 0f00000000;
	@%p1 bra EARLY;
	st.local.b64 [seen], %q1;
	not.b64 %q2, %q1;
	st.local.v2.b64 [seen+16], {%q2, %q1};
	mul.wide.s32 %q3, %r1, -7;
	st.local.b64 [seen+8], %q3;
	and.b32 %r2, %r1, 3;
	mul.wide.u32 %q4, %r2, 8;
	mov.u64 %q5, seen;
	add.u64 %q5, %q5, %q4;
	ld.local.b64 %q4, [%q5];
	setp.gt.s32 %p2, %r1, 100;
	@%p2 add.s64 %q4, %q4, %q1;
	st.param.b64 [result], %q4;
	ret;
EARLY:
	cvt.s64.s32 %q2, %r1;
	sub.s64 %q1, %q1, %q2;
	st.param.b64 [result], %q1;
	ret;
}
";

/// Whether a stored word is a float.
pub(crate) fn is_float(slot: usize) -> bool {
    (INTS..INTS + FLOATS).contains(&slot)
}

/// The register that a stored word was.
pub(crate) fn slot(slot: usize) -> String {
    match slot {
        s if s < INTS => format!("%r{s}"),
        s if s < INTS + FLOATS => format!("%f{}", s - INTS),
        s if s < INTS + FLOATS + 2 * WIDES => format!("%q{}, half {}", (s - 12) / 2, (s - 12) % 2),
        18 => "the predicates".into(),
        s => format!("own word {}", s - OWN / 4),
    }
}

/// Which lanes are together at a place of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nothing is known.
    Apart,
    /// These of each warp that comes here.
    Lanes(u32),
    /// All of the block.
    Block,
}

impl Place {
    /// The lanes of a warp that exchanges here name.
    fn mask(self) -> Option<u32> {
        match self {
            Place::Apart => None,
            Place::Lanes(mask) => Some(mask),
            Place::Block => Some(u32::MAX),
        }
    }
}

/// A loop around a place.
#[derive(Clone)]
struct Loop {
    next: String,
    end: String,
    /// Lanes may leave it one by one.
    open: bool,
}

/// A kernel in the making.
struct Program<'a> {
    random: Random,
    text: &'a mut String,
    number: u64,
    labels: usize,
    temporaries: usize,
    loops: Vec<Loop>,
    /// Statements that may still be made.
    budget: usize,
    /// Statements made, and those of which the text is left out.
    made: usize,
    without: &'a [usize],
    /// Predicates that branches around this place have tested, and those that are not to be set here.
    tested: Vec<usize>,
    frozen: Vec<usize>,
    /// Lanes may exit.
    last: bool,
}

macro_rules! emit {
    ($program:expr, $($text:tt)*) => { writeln!($program.text, "\t{}", format_args!($($text)*)).unwrap() };
}
use emit;

/// Appends program `n`, a kernel named `k<n>`, without some of its statements; returns how many it has.
///
/// A statement is all that nests in it, so what is left is a program whose results PTX defines as well.
pub(crate) fn program(n: u64, without: &[usize], text: &mut String) -> usize {
    let mut random = Random::new(n.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let budget = 8 + random.below(32);
    let mut body = String::new();
    let mut program = Program {
        random,
        text: &mut body,
        number: n,
        labels: 0,
        temporaries: 0,
        loops: Vec::new(),
        budget,
        made: 0,
        without,
        tested: Vec::new(),
        frozen: Vec::new(),
        last: false,
    };
    program.begin();
    while program.budget > 0 {
        program.statement(0, Place::Block);
    }
    if program.random.below(3) == 0 {
        (program.budget, program.last) = (4, true);
        while program.budget > 0 {
            program.statement(0, Place::Apart);
        }
    }
    program.end();
    let (temporaries, made) = (program.temporaries + 1, program.made);
    writeln!(text, "\n.visible .entry k{n}(.param .u64 out, .param .u64 in, .param .u64 sums)\n{{").unwrap();
    writeln!(text, "\t.reg .pred %p<{PREDS}>, %tp<4>;").unwrap();
    writeln!(text, "\t.reg .b32 %r<{INTS}>, %t<{temporaries}>, %c<8>, %me;").unwrap();
    writeln!(text, "\t.reg .f32 %f<{FLOATS}>;\n\t.reg .b64 %q<{WIDES}>, %a<8>;").unwrap();
    writeln!(text, "\t.reg .b16 %h<8>;\n\t.reg .f64 %e<4>;").unwrap();
    writeln!(text, "\t.shared .align 16 .b32 tile{n}[{THREADS}];\n\t.shared .b32 count{n}[8];").unwrap();
    writeln!(text, "\t.shared .align 16 .b32 own{n}[{THREADS}];").unwrap();
    writeln!(text, "\t.local .align 16 .b32 stack{n}[8];\n{body}}}").unwrap();
    made
}

impl Program<'_> {
    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}_{}", self.number, self.labels)
    }

    /// A fresh 32-bit register.
    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("%t{}", self.temporaries - 1)
    }

    fn int(&mut self) -> String {
        format!("%r{}", self.random.below(INTS))
    }

    fn wide(&mut self) -> String {
        format!("%q{}", self.random.below(WIDES))
    }

    fn single(&mut self) -> String {
        format!("%f{}", self.random.below(FLOATS))
    }

    fn pred(&mut self) -> String {
        format!("%p{}", self.random.below(PREDS))
    }

    /// A predicate to set: any that is not frozen here.
    fn settable(&mut self) -> String {
        let first = self.random.below(PREDS);
        let free = (0..PREDS).map(|i| (first + i) % PREDS).find(|p| !self.frozen.contains(p));
        free.map_or("%tp2".into(), |p| format!("%p{p}"))
    }

    /// A 32-bit register or a constant.
    fn source(&mut self) -> String {
        if self.random.below(4) == 0 { (self.random.word() as i32).to_string() } else { self.int() }
    }

    fn begin(&mut self) {
        let n = self.number;
        emit!(self, "ld.param.u64 %a0, [out];\n\tld.param.u64 %a1, [in];\n\tld.param.u64 %a2, [sums];");
        emit!(self, "mov.u32 %me, %tid.x;\n\tmad.wide.u32 %a3, %me, {STRIDE}, %a0;");
        emit!(self, "mad.wide.u32 %a4, %me, 4, %a1;\n\tmov.u64 %a5, tile{n};\n\tmov.u64 %a6, stack{n};");
        for i in 0..INTS {
            emit!(self, "ld.global.b32 %r{i}, [%a4+{}];", 4 * THREADS * i);
        }
        for i in 0..FLOATS {
            emit!(self, "ld.global.f32 %f{i}, [%a4+{}];", 2 * WORDS + 4 * THREADS * i);
        }
        for i in 0..WIDES {
            emit!(self, "mad.wide.s32 %q{i}, %r{}, %r{}, {i};", 2 * i, 2 * i + 1);
        }
        for i in 0..PREDS {
            emit!(self, "setp.lt.s32 %p{i}, %r{i}, %r{};", (i + 4) % INTS);
        }
        emit!(self, "cvt.u16.u32 %h6, %r0;\n\tcvt.u16.u32 %h7, %r1;");
        for i in 0..8 {
            emit!(self, "st.local.b32 [stack{n}+{}], %r{i};", 4 * i);
        }
        emit!(self, "st.shared.b32 [%a5], %me;"); // Overwritten below; keeps the variable's address in use.
        emit!(self, "shl.b32 %c7, %me, 2;\n\tmov.u32 %c4, own{n};\n\tadd.u32 %c4, %c4, %c7;");
        emit!(self, "st.shared.b32 [%c4], %c7;\n\tmov.u32 %c6, count{n};\n\tand.b32 %c7, %c7, 28;");
        emit!(self, "add.u32 %c6, %c6, %c7;\n\tst.shared.b32 [%c6], 0;\n\tmov.u32 %c6, tile{n};");
        emit!(self, "shl.b32 %c7, %me, 2;\n\tadd.u32 %c7, %c6, %c7;\n\tbar.sync 0;");
        emit!(self, "st.shared.b32 [%c7], %me;\n\tbar.sync 0;");
    }

    /// Stores what the thread has.
    fn stores(&mut self) {
        for i in 0..INTS {
            emit!(self, "st.global.b32 [%a3+{}], %r{i};", 4 * i);
        }
        for i in 0..FLOATS {
            emit!(self, "st.global.f32 [%a3+{}], %f{i};", 4 * (INTS + i));
        }
        for i in 0..WIDES {
            emit!(self, "st.global.b64 [%a3+{}], %q{i};", 4 * (INTS + FLOATS) + 8 * i);
        }
        let (all, one) = (self.temporary(), self.temporary());
        emit!(self, "mov.b32 {all}, 0;");
        for i in 0..PREDS {
            emit!(self, "selp.b32 {one}, {}, 0, %p{i};\n\tor.b32 {all}, {all}, {one};", 1 << i);
        }
        emit!(self, "st.global.b32 [%a3+{}], {all};", 4 * (INTS + FLOATS + 2 * WIDES));
        emit!(self, "ld.shared.b32 {one}, [%c4];\n\tst.global.b32 [%a3+{OWN_SHARED}], {one};");
    }

    fn end(&mut self) {
        self.stores();
        emit!(self, "bar.sync 0;\n\tsetp.ge.u32 %tp0, %me, 8;\n\t@%tp0 ret;");
        let sum = self.temporary();
        emit!(self, "mov.u32 %c6, count{};\n\tshl.b32 %c7, %me, 2;\n\tadd.u32 %c6, %c6, %c7;", self.number);
        emit!(self, "ld.shared.b32 {sum}, [%c6];\n\tmad.wide.u32 %a7, %me, 4, %a2;");
        emit!(self, "red.global.add.u32 [%a7], {sum};\n\tret;");
    }

    fn statement(&mut self, depth: usize, place: Place) {
        self.budget = self.budget.saturating_sub(1);
        let (number, start) = (self.made, self.text.len());
        self.made += 1;
        match self.random.below(24) {
            0 | 1 if depth < 4 => self.branch(depth),
            2 if depth < 4 => self.together(depth, place),
            3 if self.loops.len() < 3 => self.repeat(depth, place),
            4 if depth < 4 => self.switch(depth, place),
            5 => self.call(),
            6..=9 if place.mask().is_some() => self.exchange(place.mask().unwrap_or(0)),
            10 if place == Place::Block => self.block_wide(),
            11 if place == Place::Apart => self.jump(),
            12 if self.last => self.leave(),
            13 if depth < 4 => self.ladder(depth),
            14 | 15 => self.memory(),
            16 => self.atomic(),
            _ => self.straight(),
        }
        if self.without.contains(&number) {
            self.text.truncate(start);
        }
    }

    fn block(&mut self, depth: usize, place: Place) {
        for _ in 0..=self.random.below(4) {
            self.statement(depth + 1, place);
        }
    }

    /// `@%p ` or `@!%p ` or nothing.
    fn guard(&mut self) -> String {
        match self.random.below(5) {
            0 => format!("@{} ", self.pred()),
            1 => format!("@!{} ", self.pred()),
            _ => String::new(),
        }
    }
}
