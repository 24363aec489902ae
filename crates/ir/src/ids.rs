//! Typed indices. Each is dense within its kernel, so side tables are plain vectors.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);
        impl $name {
            /// The index for a dense table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A 32-bit register of every lane. 64-bit values are two slots, low first, not necessarily adjacent.
    /// Registers of the uniform datapath are slots too: all lanes of the warp hold the same value.
    Slot(u16)
);
id!(
    /// A predicate: one bit for each lane. A uniform predicate holds 0 or all ones.
    Pred(u16)
);
id!(
    /// A convergence barrier register (`B0`..`B15` in SASS): a participation mask kept by the warp.
    BarrierReg(u8)
);
id!(
    /// Position of an instruction in [`Kernel::instructions`](crate::Kernel::instructions).
    InstId(u32)
);
