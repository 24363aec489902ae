//! The one table of instructions: names and the modifiers that each can have.
//!
//! It is coarse on purpose. It says whether a spelling is known, so that a typing error is found and a new instruction
//! is named; which modifiers go together, and what they mean, is for the reader that executes them. Types
//! ([`Type`]) are taken everywhere. A word with `$` stands for a group.

use std::sync::LazyLock;

use hashbrown::{HashMap, HashSet};

use crate::suggest;
use crate::tree::Type;

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    index: usize,
}

/// The table, laid out for look-ups at its first use: a text has hundreds of distinct spellings.
struct Index {
    names: HashMap<&'static str, usize>,
    modifiers: HashSet<(usize, &'static str)>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| Index {
    names: TABLE.iter().enumerate().map(|(index, (name, _))| (*name, index)).collect(),
    modifiers: (0..TABLE.len()).flat_map(|index| words(index).map(move |word| (index, word))).collect(),
});

/// An instruction by its name.
pub fn find(name: &str) -> Option<Entry> {
    let &index = INDEX.names.get(name)?;
    Some(Entry { name: TABLE[index].0, index })
}

fn words(index: usize) -> impl Iterator<Item = &'static str> {
    TABLE[index].1.split(' ').flat_map(|word| group(word).split(' '))
}

/// The known name with the nearest spelling.
pub fn nearest_name(name: &str) -> Option<&'static str> {
    suggest::nearest(name, TABLE.iter().map(|(known, _)| *known))
}

impl Entry {
    /// Whether it can have a modifier (without its dot).
    pub fn takes(self, modifier: &str) -> bool {
        Type::from_name(modifier).is_some()
            || INDEX.modifiers.contains(&(self.index, modifier))
            || (is_shape(modifier) && INDEX.modifiers.contains(&(self.index, "#shape")))
    }

    /// The modifier that it can have with the nearest spelling.
    pub fn nearest(self, modifier: &str) -> Option<&'static str> {
        suggest::nearest(modifier, words(self.index).chain(TYPES.split(' ')))
    }
}

/// `m16n8k16`, `x4`, `32x32b`
fn is_shape(modifier: &str) -> bool {
    let mut digits = false;
    for byte in modifier.bytes() {
        match byte {
            b'0'..=b'9' => digits = true,
            b'm' | b'n' | b'k' | b'x' | b'b' => {}
            _ => return false,
        }
    }
    digits
}

fn group(word: &'static str) -> &'static str {
    match word {
        "$round" => "rn rz rm rp",
        "$space" => "const global local param param::entry param::func shared shared::cta shared::cluster tex",
        "$scope" => "cta cluster gpu sys",
        "$order" => "weak relaxed acquire release acq_rel sc volatile mmio",
        "$cache" => {
            "ca cg cs lu cv wb wt nc L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate \
             L2::evict_normal L2::evict_first L2::evict_last L2::cache_hint L2::64B L2::128B L2::256B"
        }
        "$atomic" => "and or xor cas exch add inc dec min max noftz",
        "$vector" => "v2 v4 v8",
        "$compare" => "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor",
        "$tensor" => {
            "1d 2d 3d 4d 5d tile tile::gather4 tile::scatter4 im2col im2col::w im2col::w::128 im2col_no_offs bulk_group \
             multicast::cluster mbarrier::complete_tx::bytes cta_group::1 cta_group::2"
        }
        "$texture" => "1d 2d 3d a1d a2d cube acube 2dms a2dms base level grad",
        "$query" => {
            "width height depth channel_data_type channel_order array_size num_mipmap_levels num_samples memory_layout \
             normalized_coords force_unnormalized_coords filter_mode addr_mode_0 addr_mode_1 addr_mode_2 level"
        }
        "$matrix" => {
            "sync aligned row col satfinite sp sp::ordered_metadata block_scale scale_vec::1X scale_vec::2X scale_vec::4X \
             kind::tf32 kind::f16 kind::i8 kind::f8f6f4 kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4 block16 block32 #shape"
        }
        "$video" => "sat add min max po shr7 shr15 clamp wrap eq ne lt le gt ge",
        word => word,
    }
}

const TYPES: &str = "pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64 tf32";

const TABLE: &[(&str, &str)] = &[
    ("abs", "ftz"),
    ("activemask", ""),
    ("add", "$round ftz sat cc"),
    ("addc", "cc"),
    ("alloca", ""),
    ("and", ""),
    ("applypriority", "global L2::evict_normal"),
    ("atom", "$order $scope $space $atomic $vector L2::cache_hint"),
    ("bar", "cta warp sync arrive red popc and or aligned"),
    ("barrier", "cta cluster sync arrive wait red popc and or aligned acquire release relaxed"),
    ("bfe", ""),
    ("bfi", ""),
    ("bfind", "shiftamt"),
    ("bmsk", "clamp wrap"),
    ("bra", "uni"),
    ("brev", ""),
    ("brkpt", ""),
    ("brx", "idx uni"),
    ("call", "uni"),
    (
        "clusterlaunchcontrol",
        "try_cancel query_cancel async shared::cta mbarrier::complete_tx::bytes multicast::cluster::all is_canceled \
         get_first_ctaid get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z v4",
    ),
    ("clmad", "lo hi"),
    ("clz", ""),
    ("cnot", ""),
    ("copysign", ""),
    ("cos", "approx ftz"),
    (
        "cp",
        "async bulk commit_group wait_group wait_all prefetch reduce tensor mbarrier arrive noinc read ignore_oob cp_mask L2 \
         $order $scope $space $cache $atomic $tensor",
    ),
    (
        "createpolicy",
        "fractional range cvt L2 global L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged",
    ),
    ("cvt", "rni rzi rmi rpi rna rs $round ftz sat satfinite relu pack scaled::n2::ue8m0"),
    ("cvta", "to $space"),
    ("discard", "global L2"),
    ("div", "$round approx full ftz"),
    ("dp2a", "lo hi"),
    ("dp4a", ""),
    ("elect", "sync"),
    ("ex2", "approx ftz"),
    ("exit", ""),
    (
        "fence",
        "$order $scope $space proxy alias async async::generic tensormap::generic mbarrier_init \
         sync_restrict::shared::cta sync_restrict::shared::cluster",
    ),
    ("fma", "$round ftz sat relu oob"),
    ("fns", ""),
    ("getctarank", "$space"),
    ("griddepcontrol", "launch_dependents wait"),
    ("isspacep", "$space"),
    ("istypep", ""),
    ("ld", "$order $scope $space $cache $vector unified"),
    ("ldmatrix", "sync aligned trans shared shared::cta b6x16_p32 b4x16_p64 #shape"),
    ("ldu", "global $vector"),
    ("lg2", "approx ftz"),
    ("lop3", "and or"),
    ("mad", "lo hi wide sat cc $round ftz"),
    ("mad24", "lo hi sat"),
    ("madc", "lo hi cc"),
    ("mapa", "shared::cluster"),
    ("match", "any all sync"),
    ("max", "ftz NaN xorsign abs relu"),
    (
        "mbarrier",
        "init inval expect_tx complete_tx arrive arrive_drop test_wait try_wait pending_count noComplete parity expect_tx \
         $order $scope $space",
    ),
    ("membar", "cta gl sys proxy alias"),
    ("min", "ftz NaN xorsign abs relu"),
    ("mma", "xor and popc $matrix"),
    ("mov", "$vector"),
    ("movmatrix", "sync aligned trans #shape"),
    ("mul", "lo hi wide $round ftz sat"),
    ("mul24", "lo hi"),
    ("multimem", "ld_reduce st red cp async bulk acc::f32 acc::f16 $order $scope $space $atomic $vector $tensor"),
    ("nanosleep", ""),
    ("neg", "ftz"),
    ("not", ""),
    ("or", ""),
    ("pmevent", "mask"),
    ("popc", ""),
    ("prefetch", "L1 L2 tensormap L2::evict_last L2::evict_normal $space"),
    ("prefetchu", "L1"),
    ("prmt", "f4e b4e rc8 ecl ecr rc16"),
    ("rcp", "$round approx ftz"),
    ("red", "async mbarrier::complete_tx::bytes $order $scope $space $atomic $vector L2::cache_hint"),
    ("redux", "sync add min max and or xor abs NaN"),
    ("rem", ""),
    ("ret", "uni"),
    ("rsqrt", "approx ftz"),
    ("sad", ""),
    ("selp", ""),
    ("set", "ftz $compare"),
    ("setmaxnreg", "inc dec sync aligned"),
    ("setp", "ftz $compare"),
    ("shf", "l r clamp wrap"),
    ("shfl", "sync up down bfly idx"),
    ("shl", ""),
    ("shr", ""),
    ("sin", "approx ftz"),
    ("slct", "ftz"),
    ("sqrt", "$round approx ftz"),
    ("st", "async bulk mbarrier::complete_tx::bytes $order $scope $space $cache $vector"),
    ("stackrestore", ""),
    ("stacksave", ""),
    ("stmatrix", "sync aligned trans shared shared::cta #shape"),
    ("sub", "$round ftz sat cc"),
    ("subc", "cc"),
    ("suld", "b p trap clamp zero $texture $cache $vector"),
    ("suq", "$query"),
    ("sured", "b p trap clamp zero add min max and or $texture"),
    ("sust", "b p trap clamp zero $texture $cache $vector"),
    ("szext", "clamp wrap"),
    ("tanh", "approx ftz"),
    (
        "tcgen05",
        "alloc dealloc relinquish_alloc_permit ld st cp shift mma commit ws sp red wait::ld wait::st \
         fence::before_thread_sync fence::after_thread_sync cta_group::1 cta_group::2 pack::16b unpack::16b down \
         mbarrier::arrive::one multicast::cluster warpx2::02_13 warpx2::01_23 warpx4 ashift min max abs NaN \
         collector::a::fill collector::a::use collector::a::lastuse collector::a::discard collector::b0::fill \
         collector::b0::use collector::b0::lastuse collector::b0::discard collector::b1::fill collector::b1::use \
         collector::b1::lastuse collector::b1::discard collector::b2::fill collector::b2::use collector::b2::lastuse \
         collector::b2::discard collector::b3::fill collector::b3::use collector::b3::lastuse collector::b3::discard \
         b6x16_p32 b4x16_p64 $space $matrix",
    ),
    (
        "tensormap",
        "replace tile global_address rank box_dim global_dim global_stride element_stride elemtype interleave_layout \
         swizzle_mode swizzle_atomicity fill_mode cp_fenceproxy tensormap::generic sync aligned $order $scope $space",
    ),
    ("testp", "finite infinite number notanumber normal subnormal"),
    ("tex", "$texture $vector"),
    ("tld4", "r g b a $texture $vector"),
    ("trap", ""),
    ("txq", "$query"),
    ("vabsdiff", "$video"),
    ("vabsdiff2", "$video"),
    ("vabsdiff4", "$video"),
    ("vadd", "$video"),
    ("vadd2", "$video"),
    ("vadd4", "$video"),
    ("vavrg2", "$video"),
    ("vavrg4", "$video"),
    ("vmad", "$video"),
    ("vmax", "$video"),
    ("vmax2", "$video"),
    ("vmax4", "$video"),
    ("vmin", "$video"),
    ("vmin2", "$video"),
    ("vmin4", "$video"),
    ("vote", "sync all any uni ballot"),
    ("vset", "$video"),
    ("vset2", "$video"),
    ("vset4", "$video"),
    ("vshl", "$video"),
    ("vshr", "$video"),
    ("vsub", "$video"),
    ("vsub2", "$video"),
    ("vsub4", "$video"),
    ("wgmma", "fence commit_group wait_group mma_async and popc $matrix"),
    ("wmma", "load store mma a b c d xor and popc $round $space $matrix"),
    ("xor", ""),
];
