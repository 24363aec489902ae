//! Branches of a PTX kernel, with the lines that compute their conditions and the loops they close.

use std::collections::{BTreeSet, HashMap};

use lanescope_ir::Kernel;
use lanescope_ptx::LineIndex;
use lanescope_ptx::tree::{Body, Module, Operand, OperandKind, RegisterId, Target};

/// A conditional branch, or a conditional `ret` or `exit`.
#[derive(Clone, Debug)]
pub(super) struct PtxBranch {
    /// Its line in the PTX text.
    pub(super) line: u32,
    /// The instruction, blanks reduced.
    pub(super) text: String,
    /// File and line of the source.
    pub(super) source: Option<(String, u32)>,
    /// Lines of the instructions that compute its condition.
    pub(super) condition: BTreeSet<u32>,
    /// If it closes a loop: lines of the loop's loads, stores and other operations that stay one instruction in
    /// SASS, so that copies can be counted.
    pub(super) body: Option<BTreeSet<u32>>,
}

impl PtxBranch {
    /// Whether two branches of different PTX read alike: register numbers differ.
    pub(super) fn alike(&self, other: &PtxBranch) -> bool {
        let opcode = |b: &PtxBranch| b.text.split(' ').find(|w| !w.starts_with('@')).map(str::to_owned);
        opcode(self) == opcode(other) && self.body.is_some() == other.body.is_some()
    }
}

/// Lines of PTX instructions, other than branches, that have a guard or read a predicate.
pub(super) type Readers = BTreeSet<u32>;

/// The kernel's body and those of the functions it calls.
fn bodies<'m, 'a>(module: &'m Module<'a>, kernel: &str) -> Vec<&'m Body<'a>> {
    let Some((first, _)) = module.function(kernel) else { return Vec::new() };
    let mut seen = vec![first];
    let mut bodies = Vec::new();
    let mut next = 0;
    while let Some(id) = seen.get(next) {
        next += 1;
        let Some(body) = module.functions.get(id.index()).and_then(|f| f.body.as_ref()) else { continue };
        for instruction in &body.instructions {
            for operand in body.operands_of(instruction) {
                if let OperandKind::Symbol { target: Target::Function(f), .. } = operand.kind
                    && !seen.contains(&f)
                {
                    seen.push(f);
                }
            }
        }
        bodies.push(body);
    }
    bodies
}

/// All conditional branches that a kernel can reach, in textual order.
pub(super) fn branches(module: &Module<'_>, kernel: &str) -> Vec<PtxBranch> {
    let lines = LineIndex::new(module.source);
    let line = |offset: u32| lines.position(offset).0;
    let mut out = Vec::new();
    for body in bodies(module, kernel) {
        let writers = writers(module, body);
        for (at, instruction) in body.instructions.iter().enumerate() {
            let name = module.opcode(instruction.opcode).name;
            let Some(guard) = instruction.guard.filter(|_| matches!(name, "bra" | "brx" | "ret" | "exit")) else {
                continue;
            };
            let condition = condition(body, &writers, guard.register);
            let source = body
                .location_of(instruction)
                .filter(|l| l.point.line > 0)
                .map(|l| (module.file(l.point.file).unwrap_or("?").to_owned(), l.point.line));
            let target = body.operands_of(instruction).iter().find_map(|o| match o.kind {
                OperandKind::Symbol { target: Target::Label(l), .. } => Some(body.label(l).position as usize),
                _ => None,
            });
            // A backward branch: the loop is what lies between, as compilers lay it out.
            let span = target.filter(|&t| t <= at).map(|t| t..=at);
            let anchors = span.map(|span| {
                let inside = body.instructions.get(span).unwrap_or(&[]).iter();
                inside.filter(|i| is_anchor(module, i)).map(|i| line(i.span.start)).collect()
            });
            out.push(PtxBranch {
                line: line(instruction.span.start),
                text: squeeze(instruction.span.text(module.source)),
                source,
                condition: condition.into_iter().map(|i| line(body.instructions[i].span.start)).collect(),
                body: anchors,
            });
        }
    }
    out.sort_by_key(|b| b.line);
    out
}

/// Lines of instructions that read predicates themselves: what a predicate does there is no work of a branch.
pub(super) fn readers(module: &Module<'_>, kernel: &str) -> Readers {
    let lines = LineIndex::new(module.source);
    let mut found = Readers::new();
    for body in bodies(module, kernel) {
        for instruction in &body.instructions {
            let name = module.opcode(instruction.opcode).name;
            let reads = instruction.guard.is_some() && !matches!(name, "bra" | "brx" | "ret" | "exit");
            if reads || matches!(name, "selp" | "slct" | "vote" | "barrier" | "bar" | "mov") {
                found.insert(lines.position(instruction.span.start).0);
            }
        }
    }
    found
}

/// Instructions that ptxas keeps as one: a copy of them is a copy of the code around.
fn is_anchor(module: &Module<'_>, instruction: &lanescope_ptx::tree::Instruction) -> bool {
    let opcode = module.opcode(instruction.opcode);
    match opcode.name {
        "ld" => !opcode.modifiers.contains(&"param"),
        "st" | "shfl" | "vote" | "bar" | "barrier" => true,
        "fma" | "add" | "mul" => opcode.modifiers.last() == Some(&"f32"),
        _ => false,
    }
}

/// For each register, the instructions that write it.
fn writers(module: &Module<'_>, body: &Body<'_>) -> HashMap<RegisterId, Vec<usize>> {
    let mut writers: HashMap<RegisterId, Vec<usize>> = HashMap::new();
    for (at, instruction) in body.instructions.iter().enumerate() {
        if matches!(module.opcode(instruction.opcode).name, "st" | "red" | "bra" | "bar") {
            continue;
        }
        let Some(first) = body.operands_of(instruction).first() else { continue };
        for operand in members(body, first) {
            if let OperandKind::Register(r) = operand.kind {
                writers.entry(r).or_default().push(at);
            }
        }
    }
    writers
}

/// The operand itself, or the members of a pair.
fn members<'b>(body: &'b Body<'_>, operand: &'b Operand) -> &'b [Operand] {
    match operand.kind {
        OperandKind::Pair(list) => body.list(list),
        _ => std::slice::from_ref(operand),
    }
}

/// Instructions that compute a predicate: those that write it, and those that write the predicates they read.
fn condition(body: &Body<'_>, writers: &HashMap<RegisterId, Vec<usize>>, register: RegisterId) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![register];
    let mut seen = vec![register];
    while let Some(register) = open.pop() {
        for &at in writers.get(&register).into_iter().flatten() {
            found.insert(at);
            let Some(instruction) = body.instructions.get(at) else { continue };
            for operand in body.operands_of(instruction) {
                let (OperandKind::Register(r) | OperandKind::Not(r)) = operand.kind else { continue };
                let predicate = body.register(r).ty == lanescope_ptx::tree::Type::Pred;
                if predicate && !seen.contains(&r) {
                    seen.push(r);
                    open.push(r);
                }
            }
        }
    }
    found
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// For lines of the PTX text, the first instruction of the kernel lowered from it.
pub(super) fn instructions(module: &Module<'_>, kernel: &Kernel) -> HashMap<u32, u32> {
    let lines = LineIndex::new(module.source);
    let mut map = HashMap::new();
    for function in &kernel.functions {
        let Some((_, tree)) = module.function(&function.name) else { continue };
        let Some(body) = &tree.body else { continue };
        let mut at = function.first.index();
        let end = at + function.len as usize;
        for instruction in &body.instructions {
            // Steps that were put before an instruction, or belong to the one before, have another text.
            let text = squeeze(instruction.span.text(module.source));
            let reads = |i: usize| kernel.text.get(i).is_some_and(|t| squeeze(t) == text);
            let first = |i: usize| !kernel.continued.get(i).copied().unwrap_or(false);
            let Some(found) = (at..end).find(|&i| first(i) && reads(i)) else { continue };
            map.insert(lines.position(instruction.span.start).0, found as u32);
            at = found + 1;
        }
    }
    map
}
