//! Products and sums that become one fused operation, as ptxas makes them of `mul` and `add` or `sub` without a
//! rounding modifier. Such a pair may round once or twice as the compiler likes; a run of the PTX shows the machine's
//! numbers only if it chooses as ptxas does.
//!
//! The rule is measured (ptxas 12.9): a product may be contracted if each of its uses is an `add` or `sub`, directly or
//! behind `mov` or `neg`, in its own block; `call` and a guarded `exit` end a block, too. Sums are taken in the order of
//! the text, first those of products with one use, then with two, and so on. Of two products the sum's first operand is
//! taken. What is the addend of a fused operation is contracted no further. Both have `.ftz` or none has, and the product
//! has no `.sat`, guard, or constant on both sides. A product plus itself, also computed twice, stays.
//!
//! What ptxas contracts only after it has unrolled a loop, inlined a call or removed a value that nothing uses is not
//! seen. The product's own instruction stays, since every instruction is issued here.

mod access;
mod blocks;
mod emit;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::mods::Mods;
use crate::tree::{Body, Instruction, Module, Operand, OperandKind, RegisterId, Type};
use blocks::Blocks;

pub(super) use emit::{fused, keep};

/// The sum that takes in a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fused {
    /// The product's instruction.
    pub(super) product: u32,
    /// Which operand of the sum it is: 1 or 2.
    pub(super) operand: usize,
    /// A `neg` stands between.
    pub(super) negated: bool,
}

/// What a body's sums become.
#[derive(Clone, Debug, Default)]
pub(super) struct Contraction {
    /// By the sum's instruction.
    pub(super) sums: HashMap<u32, Fused>,
    /// Products whose operands are overwritten before they are used.
    pub(super) kept: HashSet<u32>,
}

/// A product in its block.
struct Product<'b> {
    instruction: u32,
    ty: Type,
    ftz: bool,
    operands: [(&'b Operand, u32); 2],
    uses: u32,
    /// Something else needs it.
    needed: bool,
    /// An operand's register has another value at one of the uses.
    overwritten: bool,
}

/// A sum with at least one product.
struct Sum {
    instruction: u32,
    /// Product and negation of each operand.
    products: [Option<(usize, bool)>; 2],
}

/// Decides for a body.
pub(super) fn plan(module: &Module<'_>, body: &Body<'_>) -> Contraction {
    let mut out = Contraction::default();
    if !body.instructions.iter().any(|it| is_product(module, it)) {
        return out;
    }
    let mut accesses: HashMap<RegisterId, Vec<u32>> = HashMap::new();
    for (instruction, at) in body.instructions.iter().zip(0u32..) {
        access::visit(module, body, instruction, &mut |register, _| {
            let list = accesses.entry(register).or_default();
            if list.last() != Some(&at) {
                list.push(at);
            }
        });
    }
    let mut blocks = Blocks::new(module, body);
    for chain in blocks.chains(module, body) {
        let Some(&last) = chain.last() else { continue };
        let mut scan = Scan::new(module, body);
        for &at in &chain {
            scan.instruction(at);
        }
        for (register, (product, _)) in std::mem::take(&mut scan.held) {
            let product = &mut scan.products[product];
            let places = accesses.get(&register).map_or(&[][..], Vec::as_slice);
            product.needed = product.needed || blocks.is_read_after(module, body, last, register, places);
        }
        scan.choose(&mut out);
    }
    out
}

fn is_product(module: &Module<'_>, instruction: &Instruction) -> bool {
    let opcode = module.opcode(instruction.opcode);
    opcode.name == "mul" && instruction.guard.is_none() && opcode.modifiers.iter().any(|m| m.contains('f'))
}

/// A block as it is read from top to bottom.
struct Scan<'b, 'a> {
    module: &'b Module<'a>,
    body: &'b Body<'a>,
    products: Vec<Product<'b>>,
    sums: Vec<Sum>,
    /// Registers that hold a product, and whether its negative.
    held: BTreeMap<RegisterId, (usize, bool)>,
    /// How often a register has been written.
    versions: HashMap<RegisterId, u32>,
}

impl<'b, 'a> Scan<'b, 'a> {
    fn new(module: &'b Module<'a>, body: &'b Body<'a>) -> Scan<'b, 'a> {
        Scan { module, body, products: Vec::new(), sums: Vec::new(), held: BTreeMap::new(), versions: HashMap::new() }
    }

    fn version(&self, operand: &Operand) -> u32 {
        match operand.kind {
            OperandKind::Register(register) | OperandKind::Element { register, .. } => {
                self.versions.get(&register).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    fn held(&self, operand: &Operand) -> Option<(usize, bool)> {
        match operand.kind {
            OperandKind::Register(register) => self.held.get(&register).copied(),
            _ => None,
        }
    }

    fn instruction(&mut self, at: u32) {
        let body = self.body;
        let instruction = &body.instructions[at as usize];
        let operands = body.operands_of(instruction);
        let known = self.sum(at, instruction, operands);
        let copied = if known { None } else { self.copied(instruction, operands) };
        let product = self.product(at, instruction, operands);
        let (mut read, mut written) = (Vec::new(), Vec::new());
        access::visit(self.module, body, instruction, &mut |register, writes| {
            if writes { &mut written } else { &mut read }.push(register);
        });
        if !known && copied.is_none() {
            for register in &read {
                self.need(*register);
            }
        }
        for register in written {
            // The old value stays in lanes that the guard switches off.
            if instruction.guard.is_some() {
                self.need(register);
            }
            self.held.remove(&register);
            *self.versions.entry(register).or_default() += 1;
        }
        let Some(OperandKind::Register(to)) = operands.first().map(|o| o.kind) else { return };
        if let Some(product) = product {
            self.held.insert(to, (self.products.len(), false));
            self.products.push(product);
        } else if let Some(value) = copied {
            self.held.insert(to, value);
        }
    }

    fn need(&mut self, register: RegisterId) {
        if let Some(&(product, _)) = self.held.get(&register) {
            self.products[product].needed = true;
        }
    }

    /// What an instruction multiplies, if that may be contracted.
    fn product(&self, at: u32, instruction: &Instruction, operands: &'b [Operand]) -> Option<Product<'b>> {
        if !is_product(self.module, instruction) {
            return None;
        }
        let mut mods = Mods::new(self.module.opcode(instruction.opcode), instruction.span);
        let ftz = mods.take("ftz");
        mods.finish(&[]).ok()?;
        let ty = mods
            .ty()
            .ok()
            .filter(|ty| matches!(ty, Type::F32 | Type::F64 | Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2))?;
        let [Operand { kind: OperandKind::Register(_), .. }, a, b] = operands else { return None };
        let is_variable = |o: &Operand| matches!(o.kind, OperandKind::Register(_) | OperandKind::Element { .. });
        if !is_variable(a) && !is_variable(b) {
            return None;
        }
        let operands = [(a, self.version(a)), (b, self.version(b))];
        Some(Product { instruction: at, ty, ftz, operands, uses: 0, needed: false, overwritten: false })
    }

    /// Notes an addition of products.
    fn sum(&mut self, at: u32, instruction: &Instruction, operands: &[Operand]) -> bool {
        let opcode = self.module.opcode(instruction.opcode);
        let [_, a, b] = operands else { return false };
        if !matches!(opcode.name, "add" | "sub") {
            return false;
        }
        let mut products = [self.held(a), self.held(b)];
        let mut mods = Mods::new(opcode, instruction.span);
        let ftz = mods.take("ftz");
        mods.take("sat");
        if products == [None; 2] || mods.finish(&[]).is_err() {
            return false;
        }
        let ty = mods.ty().ok();
        if let [Some((first, negated)), Some((second, other))] = products {
            let [x, y] = [&self.products[first], &self.products[second]];
            let doubled = (opcode.name == "sub") == (negated != other) && x.is_same(y);
            if first == second || doubled {
                self.products[first].needed = true;
                self.products[second].needed = true;
                return true;
            }
        }
        for operand in &mut products {
            let Some((product, _)) = *operand else { continue };
            let overwritten = self.products[product].operands.iter().any(|(o, version)| self.version(o) != *version);
            let it = &mut self.products[product];
            if Some(it.ty) == ty && it.ftz == ftz {
                it.uses += 1;
                it.overwritten |= overwritten;
            } else {
                it.needed = true;
                *operand = None;
            }
        }
        self.sums.push(Sum { instruction: at, products });
        true
    }

    /// The product that a `mov` or `neg` passes on.
    fn copied(&self, instruction: &Instruction, operands: &[Operand]) -> Option<(usize, bool)> {
        let [Operand { kind: OperandKind::Register(to), .. }, from] = operands else { return None };
        let (product, negated) = self.held(from)?;
        let opcode = self.module.opcode(instruction.opcode);
        let it = &self.products[product];
        if instruction.guard.is_some() || self.body.register(*to).ty.bits() != it.ty.bits() {
            return None;
        }
        let mut mods = Mods::new(opcode, instruction.span);
        match opcode.name {
            "mov" => Some((product, negated)),
            "neg" => {
                let ftz = mods.take("ftz");
                let same = mods.finish(&[]).is_ok() && mods.ty().ok() == Some(it.ty) && (it.ftz || !ftz);
                same.then_some((product, !negated))
            }
            _ => None,
        }
    }

    /// Chooses among the products of the block.
    fn choose(mut self, out: &mut Contraction) {
        // Sums by the fewest uses of a product in them; a sum may stand twice.
        let mut order: Vec<(u32, usize)> = Vec::new();
        for (at, sum) in self.sums.iter().enumerate() {
            let counts = sum.products.iter().flatten().map(|&(product, _)| self.products[product].uses);
            order.extend(counts.map(|uses| (uses, at)));
        }
        order.sort_unstable();
        order.dedup();
        for (uses, at) in order {
            let sum = &self.sums[at];
            if out.sums.contains_key(&sum.instruction) {
                continue;
            }
            for (operand, other) in [(0, 1), (1, 0)] {
                let Some((product, negated)) = sum.products[operand] else { continue };
                let it = &self.products[product];
                if it.needed || it.uses != uses {
                    continue;
                }
                let fused = Fused { product: it.instruction, operand: operand + 1, negated };
                out.sums.insert(sum.instruction, fused);
                if it.overwritten {
                    out.kept.insert(it.instruction);
                }
                if let Some((addend, _)) = sum.products[other] {
                    self.products[addend].needed = true;
                }
                break;
            }
        }
    }
}

impl Product<'_> {
    /// Whether it multiplies the same values.
    fn is_same(&self, other: &Product<'_>) -> bool {
        let value = |(operand, version): (&Operand, u32)| (operand.kind, version);
        let [a, b] = self.operands.map(value);
        let [c, d] = other.operands.map(value);
        self.ty == other.ty && self.ftz == other.ftz && ((a, b) == (c, d) || (a, b) == (d, c))
    }
}
