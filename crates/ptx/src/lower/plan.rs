//! What a kernel reaches, where its data lies and how its stack frames look. Made before any code.
//!
//! **Calls.** Every register of a function has a fixed slot, whatever the call. Arguments and results go through local
//! memory, on a stack that grows down from the top of a thread's local memory. A frame is, from its bottom (where the
//! stack pointer points while its function runs):
//!
//! - the *outgoing area*: results, then arguments of the function being called, each at the next multiple of its
//!   alignment. The callee finds it at its own frame's end;
//! - the `.local` and `.param` variables of the body;
//! - the return address, if the function calls others;
//! - if the function can be entered again before it has returned, all its registers as they were on entry, which it
//!   puts back before it returns.
//!
//! A kernel's frame has fixed addresses.

mod data;
mod graph;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lanescope_ir::GlobalVar;

use crate::diagnostic::Diagnostic;
use crate::tree::{
    Body, Function, FunctionId, FunctionKind, LocalId, Module, OperandKind, Prototype, RelocationTarget, Space,
    TableKind, Target, Type, Variable, VariableId,
};

/// First code address; functions follow at multiples of [`CODE_STRIDE`].
pub(super) const CODE_BASE: u64 = 0x1000_0000;
/// Distance of the code addresses of two functions: room for 2^24 instructions.
pub(super) const CODE_STRIDE: u64 = 1 << 28;
/// Addresses that stand for functions that are not in the text. Above every function's.
pub(super) const EXTERNAL_BASE: u64 = 1 << 44;
/// Functions that one kernel may reach.
const MAX_FUNCTIONS: usize = 4096;
/// Local memory of a thread on any GPU.
const MAX_LOCAL: u64 = 512 << 10;

/// Offsets in the outgoing area.
#[derive(Clone, Debug, Default)]
pub(super) struct Signature {
    /// Offset and size of each result.
    pub(super) returns: Vec<(u32, u32)>,
    /// Offset and size of each argument.
    pub(super) params: Vec<(u32, u32)>,
    pub(super) size: u32,
}

impl Signature {
    fn new(returns: &[Variable<'_>], params: &[Variable<'_>]) -> Option<Signature> {
        let mut signature = Signature::default();
        for (list, out) in [(returns, 0), (params, 1)] {
            for variable in list {
                let size = u32::try_from(variable_size(variable)).ok().filter(|&s| s <= MAX_LOCAL as u32)?;
                let align = alignment(variable);
                let at = signature.size.checked_next_multiple_of(align)?;
                if out == 0 { &mut signature.returns } else { &mut signature.params }.push((at, size));
                signature.size = at.checked_add(size).filter(|&s| s <= MAX_LOCAL as u32)?;
            }
        }
        Some(signature)
    }
}

/// Predicates travel as words.
fn variable_size(variable: &Variable<'_>) -> u64 {
    if variable.ty == Type::Pred { 4 } else { variable.size().unwrap_or(u64::MAX) }
}

/// At most 128, and a power of two.
fn alignment(variable: &Variable<'_>) -> u32 {
    variable.alignment().clamp(1, 128).next_power_of_two().max(if variable.ty == Type::Pred { 4 } else { 1 })
}

/// A function's frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    pub(super) signature: Signature,
    /// Bytes of the outgoing area.
    pub(super) outgoing: u32,
    /// Offsets of the body's `.local` and `.param` variables.
    pub(super) variables: HashMap<LocalId, u32>,
    /// Where the return address is kept, if it is.
    pub(super) return_address: Option<u32>,
    /// Where registers are kept, if they are.
    pub(super) saves: Option<u32>,
    pub(super) size: u32,
    /// Where a kernel keeps a copy of its parameters that generic addresses can reach, if it needs one.
    pub(super) parameters: Option<u32>,
    /// Uses `alloca` or restores the stack pointer.
    pub(super) moves_stack: bool,
}

/// Everything decided before code is made.
pub(super) struct Plan {
    /// The kernel first.
    pub(super) functions: Vec<FunctionId>,
    pub(super) order: HashMap<FunctionId, usize>,
    aliases: HashMap<FunctionId, FunctionId>,
    pub(super) frames: Vec<Frame>,
    /// Addresses of module variables in their spaces.
    pub(super) module: HashMap<VariableId, u64>,
    /// Where the `.const` variables lie.
    pub(super) constants: std::ops::Range<u64>,
    /// Addresses of `.shared` and `.global` variables of bodies.
    pub(super) bodies: HashMap<(FunctionId, LocalId), u64>,
    pub(super) globals: Vec<GlobalVar>,
    /// Functions without a body that are referred to.
    pub(super) externals: BTreeMap<FunctionId, u64>,
    pub(super) shared_size: u32,
    pub(super) local_size: u32,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A function's callees and whether it calls through registers.
#[derive(Default)]
struct Calls {
    direct: BTreeSet<usize>,
    indirect: bool,
}

/// For each function that is an alias, the function it stands for.
fn aliases(module: &Module<'_>) -> HashMap<FunctionId, FunctionId> {
    let by_name: HashMap<&str, FunctionId> =
        module.aliases.iter().filter_map(|alias| Some((alias.name, alias.function?))).collect();
    if by_name.is_empty() {
        return HashMap::new();
    }
    let functions = module.functions.iter().zip(0u32..).filter(|(f, _)| f.body.is_none());
    functions.filter_map(|(f, at)| Some((FunctionId(at), *by_name.get(f.name)?))).collect()
}

struct Planner<'m, 'a> {
    module: &'m Module<'a>,
    plan: Plan,
    /// Functions whose address is taken: any call through a register may reach them.
    taken: BTreeSet<FunctionId>,
    variables: BTreeSet<VariableId>,
    /// Bytes of initial values so far.
    initial: u64,
}

/// Plans for a kernel. A function can stand in its place where only its errors are wanted.
pub(super) fn plan(module: &Module<'_>, kernel: FunctionId, reserve: u32) -> Plan {
    let plan = Plan {
        functions: Vec::new(),
        order: HashMap::new(),
        aliases: aliases(module),
        frames: Vec::new(),
        module: HashMap::new(),
        constants: 0..0,
        bodies: HashMap::new(),
        globals: Vec::new(),
        externals: BTreeMap::new(),
        shared_size: 0,
        local_size: 0,
        diagnostics: Vec::new(),
    };
    let mut planner = Planner { module, plan, taken: BTreeSet::new(), variables: BTreeSet::new(), initial: 0 };
    planner.reach(kernel);
    let mut calls = Vec::new();
    let mut at = 0;
    while let Some(&id) = planner.plan.functions.get(at) {
        calls.push(planner.scan(id));
        at += 1;
    }
    planner.data();
    planner.frames(&calls, reserve);
    planner.plan
}

impl<'m, 'a> Planner<'m, 'a> {
    fn function(&self, id: FunctionId) -> Option<&'m Function<'a>> {
        self.module.functions.get(id.index())
    }

    /// Notes a function as used; its place in the order if it has code.
    fn reach(&mut self, id: FunctionId) -> Option<usize> {
        let id = self.plan.resolve(id);
        if let Some(&at) = self.plan.order.get(&id) {
            return Some(at);
        }
        let function = self.function(id)?;
        if function.body.is_none() {
            let next = EXTERNAL_BASE + 16 * self.plan.externals.len() as u64;
            self.plan.externals.entry(id).or_insert(next);
            return None;
        }
        if self.plan.functions.len() >= MAX_FUNCTIONS {
            let error =
                Diagnostic::error(function.name_span, format!("more than {MAX_FUNCTIONS} functions are reachable"));
            self.plan.diagnostics.push(error);
            return None;
        }
        let at = self.plan.functions.len();
        self.plan.functions.push(id);
        self.plan.order.insert(id, at);
        Some(at)
    }

    fn take(&mut self, id: FunctionId) {
        let code = self.plan.resolve(id);
        self.taken.insert(code);
        self.reach(id);
    }

    /// What a body refers to.
    fn scan(&mut self, id: FunctionId) -> Calls {
        let mut calls = Calls::default();
        let Some(body) = self.function(id).and_then(|f| f.body.as_ref()) else { return calls };
        for instruction in &body.instructions {
            let is_call = self.module.opcode(instruction.opcode).name == "call";
            let target = if is_call { body.call_of(instruction).map(|call| call.target.kind) } else { None };
            match target {
                Some(OperandKind::Symbol { target: Target::Function(f), .. }) => {
                    calls.direct.extend(self.reach(f));
                    continue;
                }
                Some(_) => calls.indirect = true,
                None => {}
            }
        }
        // A call's own target is a symbol operand too; it does no harm to count only those of other instructions.
        for instruction in &body.instructions {
            let is_call = self.module.opcode(instruction.opcode).name == "call";
            for operand in body.operands_of(instruction) {
                self.operand(body, operand.kind, is_call, 0);
            }
        }
        for table in &body.tables {
            if let TableKind::Call(targets) = &table.kind {
                for target in targets.iter().flatten() {
                    self.take(*target);
                }
            }
        }
        calls
    }

    fn operand(&mut self, body: &Body<'a>, kind: OperandKind, is_call: bool, depth: u32) {
        match kind {
            OperandKind::Symbol { target: Target::Function(f), .. } if !is_call => self.take(f),
            OperandKind::Symbol { target: Target::Global(v), .. } => self.variable(v),
            OperandKind::Address(id) => self.operand(body, body.address(id).base, is_call, depth),
            OperandKind::Vector(list) | OperandKind::List(list) | OperandKind::Pair(list) if depth < 4 => {
                for member in body.list(list) {
                    self.operand(body, member.kind, is_call, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Notes a variable as used, with what its initial value points to.
    fn variable(&mut self, id: VariableId) {
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            if !self.variables.insert(id) {
                continue;
            }
            let Some(variable) = self.module.variables.get(id.index()) else { continue };
            for relocation in variable.initializer.iter().flat_map(|i| &i.relocations) {
                match relocation.target {
                    Some(RelocationTarget::Function(f)) => self.take(f),
                    Some(RelocationTarget::Variable(v)) => queue.push(v),
                    None => {}
                }
            }
        }
    }

    /// Lays out frames and adds them up.
    fn frames(&mut self, calls: &[Calls], reserve: u32) {
        // All calls through registers go to one more node, and from there to every function whose address is taken.
        let any = calls.len();
        let mut edges: Vec<BTreeSet<usize>> = calls.iter().map(|c| c.direct.clone()).collect();
        edges.push(self.taken.iter().filter_map(|f| self.plan.order.get(f).copied()).collect());
        for (edges, calls) in edges.iter_mut().zip(calls) {
            edges.extend(calls.indirect.then_some(any));
        }
        let again = graph::on_cycles(&edges);
        for at in 0..self.plan.functions.len() {
            let frame = self.frame(at, !edges[at].is_empty(), again[at]);
            self.plan.frames.push(frame);
        }
        let moves = self.plan.frames.iter().any(|f| f.moves_stack);
        let mut sizes: Vec<u64> = self.plan.frames.iter().map(|f| u64::from(f.size)).collect();
        sizes.push(0);
        let mut depth = graph::deepest(&edges, &again, &sizes);
        if again.contains(&true) || moves {
            depth += u64::from(reserve);
        }
        self.plan.local_size =
            u32::try_from(depth).unwrap_or(u32::MAX).checked_next_multiple_of(16).unwrap_or(u32::MAX);
    }

    fn frame(&mut self, at: usize, calls: bool, again: bool) -> Frame {
        let mut frame = Frame::default();
        let id = self.plan.functions[at];
        let Some(function) = self.function(id) else { return frame };
        let Some(body) = &function.body else { return frame };
        let kernel = at == 0 && function.kind == FunctionKind::Entry;
        let too_large =
            |name: &str| Diagnostic::error(function.name_span, format!("the stack frame of `{name}` is too large"));
        match Signature::new(&function.returns, &function.params) {
            Some(signature) => frame.signature = signature,
            None => self.plan.diagnostics.push(too_large(function.name)),
        }
        for instruction in &body.instructions {
            match self.module.opcode(instruction.opcode).name {
                "call" => {
                    if let Some(signature) = call_signature(self.module, body, instruction) {
                        frame.outgoing = frame.outgoing.max(signature.size);
                    }
                }
                "alloca" | "stackrestore" => frame.moves_stack = true,
                "cvta" if kernel && takes_parameter(self.module, instruction) => frame.parameters = Some(0),
                _ => {}
            }
        }
        frame.outgoing = frame.outgoing.next_multiple_of(16);
        let mut end = u64::from(frame.outgoing);
        for (local, variable) in body.variables.iter().enumerate() {
            if matches!(variable.space, Space::Local | Space::Param) {
                end = end.next_multiple_of(u64::from(alignment(variable)));
                frame.variables.insert(LocalId(local as u32), u32::try_from(end).unwrap_or(u32::MAX));
                end = end.saturating_add(variable_size(variable)).min(1 << 40);
            }
        }
        if frame.parameters.is_some() {
            end = end.next_multiple_of(128);
            frame.parameters = Some(u32::try_from(end).unwrap_or(u32::MAX));
            end += u64::from(frame.signature.size.next_multiple_of(4));
        }
        if !kernel && calls {
            end = end.next_multiple_of(8);
            frame.return_address = Some(u32::try_from(end).unwrap_or(u32::MAX));
            end += 8;
        }
        if !kernel && again {
            end = end.next_multiple_of(4);
            frame.saves = Some(u32::try_from(end).unwrap_or(u32::MAX));
            let words =
                |r: &crate::tree::Register<'_>| u64::from(r.ty.bits().div_ceil(32).max(1)) * u64::from(r.vector.max(1));
            // One more for the frame's own place where the stack moves.
            end += 4 * (body.registers.iter().map(words).sum::<u64>() + 1);
        }
        if end > MAX_LOCAL {
            self.plan.diagnostics.push(too_large(function.name));
            end = 0;
        }
        // Aligned as much as anything in it.
        frame.size = (end as u32).next_multiple_of(if frame.variables.is_empty() { 16 } else { 128 });
        if end == 0 {
            frame.size = 0;
        }
        frame
    }
}

impl Plan {
    /// Code address of a function, or what stands for it.
    pub(super) fn address_of(&self, id: FunctionId) -> Option<u64> {
        let id = self.resolve(id);
        match self.order.get(&id) {
            Some(&at) => Some(CODE_BASE + CODE_STRIDE * at as u64),
            None => self.externals.get(&id).copied(),
        }
    }

    /// Place of a function in the order, if it has code.
    pub(super) fn place_of(&self, id: FunctionId) -> Option<usize> {
        self.order.get(&self.resolve(id)).copied()
    }

    /// Follows aliases to the function that has code.
    fn resolve(&self, id: FunctionId) -> FunctionId {
        let mut id = id;
        for _ in 0..16 {
            match self.aliases.get(&id) {
                Some(&next) => id = next,
                None => break,
            }
        }
        id
    }
}

/// The layout of what a call passes.
pub(super) fn call_signature(
    module: &Module<'_>,
    body: &Body<'_>,
    instruction: &crate::tree::Instruction,
) -> Option<Signature> {
    let call = body.call_of(instruction)?;
    if let OperandKind::Symbol { target: Target::Function(f), .. } = call.target.kind {
        let function = module.functions.get(f.index())?;
        return Signature::new(&function.returns, &function.params);
    }
    match call.table.map(|t| &t.kind) {
        Some(TableKind::Prototype(Prototype { returns, params, .. })) => Signature::new(returns, params),
        Some(TableKind::Call(targets)) => {
            let function = module.functions.get(targets.iter().flatten().next()?.index())?;
            Signature::new(&function.returns, &function.params)
        }
        _ => None,
    }
}

fn takes_parameter(module: &Module<'_>, instruction: &crate::tree::Instruction) -> bool {
    module.opcode(instruction.opcode).modifiers.iter().any(|m| m.starts_with("param"))
}
