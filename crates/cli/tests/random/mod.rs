//! Random PTX kernels whose results PTX defines fully.
//!
//! A kernel works on eight 32-bit, four float and three 64-bit registers and four predicates, which it loads from its
//! input and stores at its end. Statements nest: branches, loops of few trips with ways out in their middle, indirect
//! branches, calls. Exchanges between lanes and barriers stand only where all lanes of the block are together.

mod straight;

use std::fmt::Write as _;

/// Threads of the one block.
pub(crate) const THREADS: usize = 64;
/// Bytes that a thread stores.
pub(crate) const STRIDE: usize = 80;
/// Words that are summed up by atomics.
pub(crate) const SUMS: usize = 8;
/// Words of the input, of which the upper half are floats.
const WORDS: usize = 2048;

const INTS: usize = 8;
const FLOATS: usize = 4;
const WIDES: usize = 3;
const PREDS: usize = 4;

/// What comes before the kernels: a function that they call.
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
        _ => "the predicates".into(),
    }
}

/// Random numbers: splitmix64.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// An integer as programs have them: small, at an edge, or any.
    fn word(&mut self) -> u32 {
        match self.below(6) {
            0 | 1 => self.below(16) as u32,
            2 => (self.below(16) as u32).wrapping_neg(),
            3 => 1 << self.below(32),
            4 => [i32::MAX as u32, i32::MIN as u32, 0xffff, 0xff80, 0x7fff_0001][self.below(5)],
            _ => self.next() as u32,
        }
    }

    fn float(&mut self) -> u32 {
        match self.below(12) {
            0 => 0,
            1 => (-0.0f32).to_bits(),
            2 => f32::INFINITY.to_bits(),
            3 => 0x0000_0001 | self.next() as u32 & 0x807f_ffff,
            4 => self.next() as u32 & 0xff7f_ffff,
            _ => ((self.below(4001) as f32 - 2000.0) / 64.0).to_bits(),
        }
    }
}

/// The input of program `n`.
pub(crate) fn input(n: u64) -> Vec<u8> {
    let mut random = Random(n ^ 0x1234_5678_9abc_def0);
    (0..WORDS).flat_map(|i| if i < WORDS / 2 { random.word() } else { random.float() }.to_le_bytes()).collect()
}

/// A kernel in the making.
struct Program<'a> {
    random: Random,
    text: &'a mut String,
    number: u64,
    labels: usize,
    temporaries: usize,
    /// Loops around this place.
    loops: usize,
    /// Statements that may still be made.
    budget: usize,
}

macro_rules! emit {
    ($program:expr, $($text:tt)*) => { writeln!($program.text, "\t{}", format_args!($($text)*)).unwrap() };
}
use emit;

/// Appends program `n`, a kernel named `k<n>`.
pub(crate) fn program(n: u64, text: &mut String) {
    let mut random = Random(n.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let budget = 8 + random.below(32);
    let mut body = String::new();
    let mut program = Program { random, text: &mut body, number: n, labels: 0, temporaries: 0, loops: 0, budget };
    program.begin();
    while program.budget > 0 {
        program.statement(0, true);
    }
    program.end();
    let temporaries = program.temporaries + 1;
    writeln!(text, "\n.visible .entry k{n}(.param .u64 out, .param .u64 in, .param .u64 sums)\n{{").unwrap();
    writeln!(text, "\t.reg .pred %p<{PREDS}>, %tp<4>;").unwrap();
    writeln!(text, "\t.reg .b32 %r<{INTS}>, %t<{temporaries}>, %c<8>, %me;").unwrap();
    writeln!(text, "\t.reg .f32 %f<{FLOATS}>;\n\t.reg .b64 %q<{WIDES}>, %a<8>;\n\t.reg .b16 %h<4>;").unwrap();
    writeln!(text, "\t.shared .align 16 .b32 tile{n}[{THREADS}];\n\t.shared .b32 count{n}[8];").unwrap();
    writeln!(text, "\t.local .align 16 .b32 stack{n}[8];\n{body}}}").unwrap();
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
            emit!(self, "setp.lt.s32 %p{i}, %r{i}, %r{};", i + 4);
        }
        for i in 0..8 {
            emit!(self, "st.local.b32 [stack{n}+{}], %r{i};", 4 * i);
        }
        emit!(self, "st.shared.b32 [%a5], %me;"); // Overwritten below; keeps the variable's address in use.
        emit!(self, "shl.b32 %c7, %me, 2;\n\tmov.u32 %c6, count{n};\n\tand.b32 %c7, %c7, 28;");
        emit!(self, "add.u32 %c6, %c6, %c7;\n\tst.shared.b32 [%c6], 0;\n\tmov.u32 %c6, tile{n};");
        emit!(self, "shl.b32 %c7, %me, 2;\n\tadd.u32 %c7, %c6, %c7;\n\tbar.sync 0;");
        emit!(self, "st.shared.b32 [%c7], %me;\n\tbar.sync 0;");
    }

    fn end(&mut self) {
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
        emit!(self, "bar.sync 0;\n\tsetp.ge.u32 %tp0, %me, 8;\n\t@%tp0 ret;");
        let sum = self.temporary();
        emit!(self, "mov.u32 %c6, count{};\n\tshl.b32 %c7, %me, 2;\n\tadd.u32 %c6, %c6, %c7;", self.number);
        emit!(self, "ld.shared.b32 {sum}, [%c6];\n\tmad.wide.u32 %a7, %me, 4, %a2;");
        emit!(self, "red.global.add.u32 [%a7], {sum};\n\tret;");
    }

    /// One statement. `together`: all lanes of the block come here at once.
    fn statement(&mut self, depth: usize, together: bool) {
        self.budget = self.budget.saturating_sub(1);
        match self.random.below(20) {
            0..=2 if depth < 4 => self.branch(depth),
            3 if self.loops < 3 => self.repeat(depth, together),
            4 if depth < 4 => self.switch(depth),
            5 => self.call(),
            6..=9 if together => self.exchange(),
            10 if together => self.tile(),
            _ => self.straight(),
        }
    }

    fn block(&mut self, depth: usize, together: bool) {
        for _ in 0..=self.random.below(4) {
            self.statement(depth + 1, together);
        }
    }

    /// A condition in a temporary predicate.
    fn condition(&mut self) -> String {
        if self.random.below(3) == 0 {
            return self.pred();
        }
        let (a, b, compare) = (self.int(), self.source(), self.random.pick(&["lt", "le", "gt", "ge", "eq", "ne"]));
        let (t, mask) = (self.temporary(), [1, 3, 7, 31][self.random.below(4)]);
        match self.random.below(4) {
            0 => emit!(self, "setp.{compare}.s32 %tp0, {a}, {b};"),
            1 => emit!(self, "and.b32 {t}, %me, {mask};\n\tsetp.{compare}.u32 %tp0, {t}, {};", mask / 2),
            2 => emit!(self, "and.b32 {t}, {a}, {mask};\n\tsetp.{compare}.u32 %tp0, {t}, {};", mask / 2),
            _ => {
                let (f, g) = (self.single(), self.single());
                let compare = self.random.pick(&["lt", "ge", "equ", "ltu", "neu", "num", "nan"]);
                emit!(self, "setp.{compare}.f32 %tp0, {f}, {g};");
            }
        }
        "%tp0".into()
    }

    fn branch(&mut self, depth: usize) {
        let (condition, not) = (self.condition(), self.random.pick(&["", "!"]));
        let (other, end) = (self.label(), self.label());
        emit!(self, "@{not}{condition} bra {other};");
        self.block(depth, false);
        if self.random.below(2) == 0 {
            emit!(self, "bra {end};");
            writeln!(self.text, "{other}:").unwrap();
            self.block(depth, false);
            writeln!(self.text, "{end}:").unwrap();
        } else {
            writeln!(self.text, "{other}:").unwrap();
        }
    }

    /// A loop; its counter counts down to zero.
    fn repeat(&mut self, depth: usize, together: bool) {
        let counter = format!("%c{}", self.loops);
        let fixed = self.random.below(2) == 0;
        let (again, next, end) = (self.label(), self.label(), self.label());
        if fixed {
            emit!(self, "mov.b32 {counter}, {};", 1 + self.random.below(4));
        } else {
            let source = self.int();
            emit!(self, "and.b32 {counter}, {source}, 7;\n\tadd.u32 {counter}, {counter}, 1;");
        }
        let together = together && fixed;
        writeln!(self.text, "{again}:").unwrap();
        self.loops += 1;
        self.block(depth, together);
        if !together {
            for to in [&end, &next] {
                if self.random.below(3) == 0 {
                    let condition = self.condition();
                    emit!(self, "@{condition} bra {to};");
                    self.block(depth, false);
                }
            }
        }
        self.loops -= 1;
        writeln!(self.text, "{next}:").unwrap();
        emit!(self, "sub.u32 {counter}, {counter}, 1;\n\tsetp.ne.u32 %tp1, {counter}, 0;\n\t@%tp1 bra {again};");
        writeln!(self.text, "{end}:").unwrap();
    }

    fn switch(&mut self, depth: usize) {
        let (index, source) = (self.temporary(), self.int());
        let (table, end) = (self.label(), self.label());
        let arms: Vec<String> = (0..4).map(|_| self.label()).collect();
        emit!(self, "and.b32 {index}, {source}, 3;");
        writeln!(self.text, "{table}: .branchtargets {};", arms.join(", ")).unwrap();
        emit!(self, "brx.idx {index}, {table};");
        for arm in &arms {
            writeln!(self.text, "{arm}:").unwrap();
            self.statement(depth + 1, false);
            if self.random.below(4) > 0 {
                emit!(self, "bra {end};");
            }
        }
        writeln!(self.text, "{end}:").unwrap();
    }

    fn call(&mut self) {
        let (d, a, b) = (self.int(), self.int(), self.int());
        emit!(self, "{{\n\t.param .b32 x;\n\t.param .b32 y;\n\t.param .b32 z;");
        emit!(self, "st.param.b32 [x], {a};\n\tst.param.b32 [y], {b};");
        emit!(self, "call.uni (z), collatz, (x, y);\n\tld.param.b32 {d}, [z];\n\t}}");
    }

    /// Something between the lanes of a warp, all of which are here.
    fn exchange(&mut self) {
        let (d, a, p, q) = (self.int(), self.int(), self.pred(), self.pred());
        match self.random.below(6) {
            0 => {
                let (by, lane) = (self.random.below(32), self.source());
                let by = if self.random.below(3) == 0 { lane } else { by.to_string() };
                let (mode, clamp) = [("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)][self.random.below(4)];
                let segment = [0, 0, 0x1000, 0x1800, 0x1e00][self.random.below(5)];
                let into = if self.random.below(2) == 0 { d } else { format!("{d}|{p}") };
                emit!(self, "shfl.sync.{mode}.b32 {into}, {a}, {by}, {}, 0xffffffff;", clamp | segment);
            }
            1 => emit!(self, "vote.sync.ballot.b32 {d}, {p}, 0xffffffff;"),
            2 => {
                let (mode, not) = (self.random.pick(&["all", "any", "uni"]), self.random.pick(&["", "!"]));
                emit!(self, "vote.sync.{mode}.pred {q}, {not}{p}, 0xffffffff;");
            }
            3 => {
                let t = self.temporary();
                emit!(self, "and.b32 {t}, {a}, 3;\n\tmatch.any.sync.b32 {d}, {t}, 0xffffffff;");
            }
            4 => {
                let op = self.random.pick(&["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"]);
                emit!(self, "redux.sync.{op} {d}, {a}, 0xffffffff;");
            }
            _ => {
                let b = self.int();
                emit!(self, "match.all.sync.b32 {d}|{p}, {b}, 0xffffffff;");
            }
        }
    }

    /// A value through shared memory, over the whole block.
    fn tile(&mut self) {
        let (d, a, t) = (self.int(), self.int(), self.temporary());
        let index = self.int();
        emit!(self, "and.b32 {t}, {index}, {};\n\tshl.b32 {t}, {t}, 2;\n\tadd.u32 {t}, {t}, %c6;", THREADS - 1);
        emit!(self, "bar.sync 0;\n\tst.shared.b32 [%c7], {a};\n\tbar.sync 0;\n\tld.shared.b32 {d}, [{t}];");
        emit!(self, "bar.sync 0;");
    }
}
