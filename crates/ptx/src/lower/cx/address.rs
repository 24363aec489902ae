//! Where variables and operands in brackets lie, and accesses to the stack frame.

use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Addr, MemoryOp, Space as IrSpace, Width};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{PredSrc, Slot, Src};

use super::{Cx, Home, Place, STACK, words};
use crate::lower::fail::{Lowered, unsupported};
use crate::lower::launch;
use crate::lower::plan::{CODE_BASE, CODE_STRIDE};
use crate::span::Span;
use crate::tree::{AddressId, FunctionKind, Index, Operand, OperandKind, RegisterId, Space, Target, Type, Variable};

impl<'m, 'a> Cx<'m, 'a> {
    /// An address `offset` bytes into the frame (or beyond it: the caller's outgoing area).
    pub(in crate::lower) fn frame_addr(&self, offset: u32) -> Addr {
        let (base, offset) = match self.bottom {
            Some(slot) => (Src::slot(slot), i64::from(offset)),
            None if self.is_kernel() => (Src::ZERO, i64::from(self.kernel_bottom()) + i64::from(offset)),
            None => (Src::slot(STACK), i64::from(offset)),
        };
        Addr { base, base_hi: None, uniform: None, signed: false, scale: 0, offset }
    }

    /// An address in the outgoing area.
    pub(in crate::lower) fn outgoing_addr(&self, offset: u32) -> Addr {
        let mut addr = self.frame_addr(offset);
        if self.bottom.is_some() {
            addr.base = Src::slot(STACK);
        }
        addr
    }

    /// Refuses what concerns clusters if the kernel asks for clusters of several blocks: here each is one block.
    pub(in crate::lower) fn only_own_cluster(&self) -> Lowered<()> {
        let kernel = self.plan.functions.first().and_then(|id| self.module.functions.get(id.index()));
        match kernel.and_then(|k| k.tuning.reqnctapercluster) {
            Some(shape) if shape.iter().any(|&n| n > 1) => unsupported("clusters of several blocks"),
            _ => Ok(()),
        }
    }

    /// Where the kernel's frame begins.
    pub(in crate::lower) fn kernel_bottom(&self) -> u32 {
        self.plan.local_size.saturating_sub(self.plan.frames[0].size)
    }

    /// The variable that `target` names, and where it is.
    pub(in crate::lower) fn variable(&self, target: Target, span: Span) -> Lowered<(&'m Variable<'a>, Place)> {
        let at = |space, address: u64| Place {
            space,
            addr: Addr {
                base: Src::ZERO,
                base_hi: None,
                uniform: None,
                signed: false,
                scale: 0,
                offset: address as i64,
            },
        };
        let space = |v: &Variable<'_>| match v.space {
            Space::Shared => IrSpace::Shared,
            _ => IrSpace::Global,
        };
        let gone = || self.error(span, "this has no address");
        match target {
            Target::Global(id) => {
                let Some(v) = self.module.variables.get(id.index()) else { return gone() };
                match self.plan.module.get(&id) {
                    Some(&address) => Ok((v, at(space(v), address))),
                    None if matches!(v.space, Space::Tex) || v.ty.bytes() == 0 => unsupported("texture"),
                    None => gone(),
                }
            }
            Target::Local(id) => {
                let Some(v) = self.body.variables.get(id.index()) else { return gone() };
                if let Some(&address) = self.plan.bodies.get(&(self.id, id)) {
                    return Ok((v, at(space(v), address)));
                }
                match self.frame().variables.get(&id) {
                    Some(&offset) => Ok((v, Place { space: IrSpace::Local, addr: self.frame_addr(offset) })),
                    None => gone(),
                }
            }
            Target::Parameter(i) | Target::Return(i) => {
                let is_param = matches!(target, Target::Parameter(_));
                let list = if is_param { &self.function.params } else { &self.function.returns };
                let signature = &self.frame().signature;
                let places = if is_param { &signature.params } else { &signature.returns };
                let (Some(v), Some(&(offset, _))) = (list.get(i as usize), places.get(i as usize)) else {
                    return gone();
                };
                if self.function.kind == FunctionKind::Entry {
                    return Ok((v, at(IrSpace::Const(0), u64::from(launch::PARAM_BASE + offset))));
                }
                let offset = self.frame().size.saturating_add(offset);
                Ok((v, Place { space: IrSpace::Local, addr: self.frame_addr(offset) }))
            }
            _ => self.error(span, "a variable is needed here"),
        }
    }

    /// The address `id` in state space `space`; without one it is generic, or that of the variable named.
    pub(in crate::lower) fn address(&mut self, id: AddressId, space: Option<Space>) -> Lowered<Place> {
        let address = self.body.address(id);
        if address.rest.len != 0 {
            return self.error(address.base_span, "an address with more than one part");
        }
        let mut constant = address.offset;
        let index = match address.index {
            Some(index) => Some(self.index(index, &mut constant, address.base_span)?),
            None => None,
        };
        let wanted = match space {
            None => IrSpace::Generic,
            Some(Space::Shared) => IrSpace::Shared,
            Some(Space::Local) => IrSpace::Local,
            Some(Space::Param) if self.is_kernel() => IrSpace::Const(0),
            // Parameters of functions lie on the stack.
            Some(Space::Param) => IrSpace::Local,
            Some(_) => IrSpace::Global,
        };
        let operand = Operand { kind: address.base, span: address.base_span };
        let plain = |base, base_hi, offset| Addr { base, base_hi, uniform: None, signed: false, scale: 0, offset };
        match address.base {
            OperandKind::Symbol { target, offset } => {
                let (variable, mut place) = self.variable(target, address.base_span)?;
                let is_param = variable.space == Space::Param;
                let agrees = match wanted {
                    // Those of parameters are no generic addresses.
                    IrSpace::Generic => !is_param,
                    _ if space == Some(Space::Param) => is_param,
                    wanted => wanted == place.space && !is_param,
                };
                if !agrees {
                    let have = variable.space.name();
                    let message = format!("`{}` lies in .{have}, and `{}` does not", variable.name, self.mods.text);
                    return self.error(address.base_span, message);
                }
                place.addr.offset = place.addr.offset.wrapping_add(i64::from(offset)).wrapping_add(constant);
                if let Some(index) = index {
                    self.add_index(&mut place.addr, index);
                }
                Ok(place)
            }
            OperandKind::Integer(_) | OperandKind::Unsigned(_) if space != Some(Space::Local) => {
                self.error(address.base_span, "only `.local` has addresses that are numbers")
            }
            OperandKind::Integer(value) | OperandKind::Unsigned(value) => Ok(Place {
                space: wanted,
                addr: plain(Src::ZERO, None, (value.get() as i64).wrapping_add(address.offset)),
            }),
            OperandKind::Register(_) | OperandKind::Element { .. } => {
                let wide = self.register_type(&operand).is_some_and(|ty| ty.bits() == 64);
                if !wide
                    && self.module.address_size == Some(64)
                    && matches!(wanted, IrSpace::Global | IrSpace::Generic)
                    && !matches!(space, Some(Space::Const))
                {
                    let name = if space.is_none() { "generic" } else { ".global" };
                    return self.error(address.base_span, format!("{name} addresses have 64 bits"));
                }
                let value = self.src(&operand, if wide { Type::U64 } else { Type::U32 })?;
                let wide_space = matches!(wanted, IrSpace::Global | IrSpace::Generic);
                let addr = plain(value[0], (wide && wide_space).then_some(value[1]), address.offset);
                Ok(Place { space: wanted, addr })
            }
            _ => self.error(address.base_span, "this is not an address"),
        }
    }

    /// The bytes that `array[register+constant]` adds to its base, as ptxas has it: 32 bits, which do not carry.
    fn index(&mut self, index: Index, constant: &mut i64, span: Span) -> Lowered<Src> {
        let operand = Operand { kind: OperandKind::Register(index.register), span };
        let wide = self.register_type(&operand).is_some_and(|ty| ty.bits() == 64);
        let register = self.src(&operand, if wide { Type::U64 } else { Type::U32 })?[0];
        let bytes = self.temp();
        self.int(IntFn::Shl, Some(bytes), &[register, Src::imm(index.scale.trailing_zeros())]);
        let more = std::mem::take(constant) as u32;
        if more != 0 {
            self.int(IntFn::Add, Some(bytes), &[Src::slot(bytes), Src::imm(more)]);
        }
        Ok(Src::slot(bytes))
    }

    fn add_index(&mut self, addr: &mut Addr, bytes: Src) {
        if addr.base == Src::ZERO {
            (addr.base, addr.base_hi) = (bytes, Some(Src::ZERO));
        } else {
            // A place of the stack has 32 bits.
            let sum = self.temp();
            self.int(IntFn::Add, Some(sum), &[addr.base, bytes]);
            addr.base = Src::slot(sum);
        }
    }

    /// The address operand `i`.
    pub(in crate::lower) fn address_of(&mut self, i: usize, space: Option<Space>) -> Lowered<Place> {
        let operand = self.operand(i)?;
        match operand.kind {
            OperandKind::Address(id) => self.address(id, space),
            _ => self.error(operand.span, "an address in brackets is needed here"),
        }
    }

    /// Code address of a step of this function.
    pub(in crate::lower) fn code_address(&self, step: usize) -> u64 {
        CODE_BASE + CODE_STRIDE * self.place as u64 + 16 * step as u64
    }

    /// Puts a register of 64 bits or less in a word of memory, or takes it from there.
    pub(in crate::lower) fn spill(&mut self, register: RegisterId, addr: Addr, load: bool) -> u32 {
        let r = self.register(register);
        let n = words(r.ty) * usize::from(r.vector.max(1));
        match self.homes[register.index()] {
            Home::Pred(p) => {
                let temp = self.temp();
                if load {
                    self.load(Width::B32, &[Some(temp)], addr);
                    let mut op = LaneOp::new(LaneFn::Int(IntFn::Set { cmp: Cmp::Ne, signed: false }));
                    op.pdst[0] = Some(p);
                    op.src[0] = Src::slot(temp);
                    self.lane(op);
                } else {
                    let mut op = LaneOp::new(LaneFn::Int(IntFn::Sel));
                    op.dst[0] = Some(temp);
                    op.src[0] = Src::imm(1);
                    op.psrc[0] = PredSrc::of(p);
                    self.lane(op);
                    self.store(Width::B32, &[Src::slot(temp)], addr);
                }
                4
            }
            Home::Slots(first) => {
                for i in 0..n {
                    let addr = Addr { offset: addr.offset + 4 * i as i64, ..addr };
                    let slot = Slot(first + i as u16);
                    if load {
                        self.load(Width::B32, &[Some(slot)], addr);
                    } else {
                        self.store(Width::B32, &[Src::slot(slot)], addr);
                    }
                }
                4 * n as u32
            }
        }
    }

    /// A load from local memory.
    pub(in crate::lower) fn load(&mut self, width: Width, dst: &[Option<Slot>], addr: Addr) {
        let mut all = [None; 8];
        all[..dst.len().min(8)].copy_from_slice(&dst[..dst.len().min(8)]);
        self.memory(MemoryOp::Load { space: IrSpace::Local, width, dst: all, addr, valid: PredSrc::TRUE });
    }

    /// A store to local memory.
    pub(in crate::lower) fn store(&mut self, width: Width, src: &[Src], addr: Addr) {
        let mut all = [Src::ZERO; 8];
        all[..src.len().min(8)].copy_from_slice(&src[..src.len().min(8)]);
        self.memory(MemoryOp::Store { space: IrSpace::Local, width, src: all, addr });
    }
}
