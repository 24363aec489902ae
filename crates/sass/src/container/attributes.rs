//! `.nv.info` and `.nv.info.KERNEL`: lists of attributes.
//!
//! Each attribute is a format byte, a number and either nothing (1), a byte (2), 16 bits (3) or a
//! 16-bit length and that many bytes (4). Names are those cuobjdump prints, without `EIATTR_`.

use super::error::{Error, Result};

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its number.
    pub id: u8,
    /// Its value.
    pub value: Value<'a>,
}

/// Value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// None: the attribute's presence is the fact.
    None,
    /// One byte.
    Byte(u8),
    /// Two bytes.
    Half(u16),
    /// Any number of bytes.
    Sized(&'a [u8]),
}

impl<'a> Attribute<'a> {
    /// Its name without `EIATTR_`; `None` for a number nobody has named.
    pub fn name(&self) -> Option<&'static str> {
        NAMES.iter().find(|(id, _)| *id == self.id).map(|(_, name)| *name)
    }

    /// The value as a number where it is one byte, 16 bits or 4 bytes.
    pub fn number(&self) -> Option<u32> {
        match self.value {
            Value::None => None,
            Value::Byte(v) => Some(v.into()),
            Value::Half(v) => Some(v.into()),
            Value::Sized(b) => Some(u32::from_le_bytes(b.try_into().ok()?)),
        }
    }

    /// The value as 32-bit words; a partial last word is dropped.
    pub fn words(&self) -> impl Iterator<Item = u32> + 'a {
        let bytes = match self.value {
            Value::Sized(b) => b,
            _ => &[],
        };
        bytes.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w))
    }
}

/// Splits a section into attributes.
///
/// Returns what was readable together with what stopped it, if anything did.
pub(super) fn parse<'a>(section: &str, data: &'a [u8]) -> (Vec<Attribute<'a>>, Option<Error>) {
    let mut list = Vec::new();
    let mut at = 0;
    while at < data.len() {
        match one(section, data, at) {
            Ok((attribute, next)) => {
                list.push(attribute);
                at = next;
            }
            Err(e) => return (list, Some(e)),
        }
    }
    (list, None)
}

fn one<'a>(section: &str, data: &'a [u8], at: usize) -> Result<(Attribute<'a>, usize)> {
    let fail = |what: String| Error::Attribute { section: section.to_owned(), offset: at, what };
    let Some(&[format, id, low, high]) = data.get(at..at + 4) else {
        return Err(fail("an attribute is cut short".into()));
    };
    let half = u16::from_le_bytes([low, high]);
    let (value, next) = match format {
        1 => (Value::None, at + 4),
        2 => (Value::Byte(low), at + 4),
        3 => (Value::Half(half), at + 4),
        4 => {
            let end = at + 4 + usize::from(half);
            let bytes = data
                .get(at + 4..end)
                .ok_or_else(|| fail(format!("attribute {id:#x} claims {half} bytes, more than are left")))?;
            (Value::Sized(bytes), end)
        }
        _ => return Err(fail(format!("attribute {id:#x} has unknown format {format}"))),
    };
    Ok((Attribute { id, value }, next))
}

macro_rules! ids {
    ($($name:ident = $id:literal),* $(,)?) => {
        /// Numbers of the attributes.
        pub mod id {
            $(#[doc = concat!("`EIATTR_", stringify!($name), "`")] pub const $name: u8 = $id;)*
        }
        const NAMES: &[(u8, &str)] = &[$(($id, stringify!($name))),*];
    };
}

ids! {
    PAD = 0x01,
    IMAGE_SLOT = 0x02,
    JUMPTABLE_RELOCS = 0x03,
    CTAIDZ_USED = 0x04,
    MAX_THREADS = 0x05,
    IMAGE_OFFSET = 0x06,
    IMAGE_SIZE = 0x07,
    TEXTURE_NORMALIZED = 0x08,
    SAMPLER_INIT = 0x09,
    PARAM_CBANK = 0x0a,
    SMEM_PARAM_OFFSETS = 0x0b,
    CBANK_PARAM_OFFSETS = 0x0c,
    SYNC_STACK = 0x0d,
    TEXID_SAMPID_MAP = 0x0e,
    EXTERNS = 0x0f,
    REQNTID = 0x10,
    FRAME_SIZE = 0x11,
    MIN_STACK_SIZE = 0x12,
    SAMPLER_FORCE_UNNORMALIZED = 0x13,
    BINDLESS_IMAGE_OFFSETS = 0x14,
    BINDLESS_TEXTURE_BANK = 0x15,
    BINDLESS_SURFACE_BANK = 0x16,
    KPARAM_INFO = 0x17,
    SMEM_PARAM_SIZE = 0x18,
    CBANK_PARAM_SIZE = 0x19,
    QUERY_NUMATTRIB = 0x1a,
    MAXREG_COUNT = 0x1b,
    EXIT_INSTR_OFFSETS = 0x1c,
    S2RCTAID_INSTR_OFFSETS = 0x1d,
    CRS_STACK_SIZE = 0x1e,
    NEED_CNP_WRAPPER = 0x1f,
    NEED_CNP_PATCH = 0x20,
    EXPLICIT_CACHING = 0x21,
    ISTYPEP_USED = 0x22,
    MAX_STACK_SIZE = 0x23,
    SUQ_USED = 0x24,
    LD_CACHEMOD_INSTR_OFFSETS = 0x25,
    LOAD_CACHE_REQUEST = 0x26,
    ATOM_SYS_INSTR_OFFSETS = 0x27,
    COOP_GROUP_INSTR_OFFSETS = 0x28,
    COOP_GROUP_MASK_REGIDS = 0x29,
    WMMA_USED = 0x2b,
    HAS_PRE_V10_OBJECT = 0x2c,
    ATOMF16_EMUL_INSTR_OFFSETS = 0x2d,
    ATOM16_EMUL_INSTR_REG_MAP = 0x2e,
    REGCOUNT = 0x2f,
    INT_WARP_WIDE_INSTR_OFFSETS = 0x31,
    SHARED_SCRATCH = 0x32,
    STATISTICS = 0x33,
    INDIRECT_BRANCH_TARGETS = 0x34,
    SW_WAR = 0x36,
    CUDA_API_VERSION = 0x37,
    NUM_MBARRIERS = 0x38,
    MBARRIER_INSTR_OFFSETS = 0x39,
    COROUTINE_RESUME_ID_OFFSETS = 0x3a,
    SAM_REGION_STACK_SIZE = 0x3b,
    PER_REG_TARGET_PERF_STATS = 0x3c,
    CTA_PER_CLUSTER = 0x3d,
    EXPLICIT_CLUSTER = 0x3e,
    MAX_CLUSTER_RANK = 0x3f,
    INSTR_REG_MAP = 0x40,
    RESERVED_SMEM_USED = 0x41,
    RESERVED_SMEM_0_SIZE = 0x42,
    UCODE_SECTION_DATA = 0x43,
    UNUSED_LOAD_BYTE_OFFSET = 0x44,
    KPARAM_INFO_V2 = 0x45,
    SYSCALL_OFFSETS = 0x46,
    GRAPHICS_GLOBAL_CBANK = 0x48,
    SHADER_TYPE = 0x49,
    VRC_CTA_INIT_COUNT = 0x4a,
    TOOLS_PATCH_FUNC = 0x4b,
    NUM_BARRIERS = 0x4c,
    TEXMODE_INDEPENDENT = 0x4d,
    PERF_STATISTICS = 0x4e,
    AT_ENTRY_FRAGMENTS = 0x4f,
    SPARSE_MMA_MASK = 0x50,
    TCGEN05_1CTA_USED = 0x51,
    TCGEN05_2CTA_USED = 0x52,
    GEN_ERRBAR_AT_EXIT = 0x53,
    REG_RECONFIG = 0x54,
    ANNOTATIONS = 0x55,
    STACK_CANARY_TRAP_OFFSETS = 0x57,
    STUB_FUNCTION_KIND = 0x58,
    LOCAL_CTA_ASYNC_STORE_OFFSETS = 0x59,
    BLOCKS_ARE_CLUSTERS = 0x5b,
    SANITIZE = 0x5c,
    SYSCALLS_FALLBACK = 0x5d,
    CUDA_REQ = 0x5e,
    RTCORE_ENTRY = 0x61,
    CLUSTER_LAUNCH_CONTROL_USED = 0x62,
    MIN_PER_CTA_MEMORY_SIZE = 0x64,
    IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS = 0x65,
    LANGUAGE = 0x66,
    GRID_ATTRIBUTES = 0x68,
    STACK_OFFSET = 0x69,
    RT_LIVESTATE_SASS_MAP = 0x6a,
    NVSAL_SW_WAR = 0x6b,
    INSTR_OFFSETS = 0x6c,
    PREEXIT_USED = 0x6d,
}
