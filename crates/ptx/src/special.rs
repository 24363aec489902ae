//! The predefined read-only registers.

macro_rules! specials {
    ($($variant:ident $text:literal,)*) => {
        /// A predefined register. Those with a number carry it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each is what its name in PTX says")]
        pub enum Special { $($variant,)* Pm(u8), Pm64(u8), Envreg(u8), ReservedSmemOffset(u8) }

        const NAMES: &[(&str, Special)] = &[$(($text, Special::$variant),)*];
    };
}

specials! {
    Tid "%tid", Ntid "%ntid", Laneid "%laneid", Warpid "%warpid", Nwarpid "%nwarpid", Ctaid "%ctaid",
    Nctaid "%nctaid", Smid "%smid", Nsmid "%nsmid", Gridid "%gridid", IsExplicitCluster "%is_explicit_cluster",
    Clusterid "%clusterid", Nclusterid "%nclusterid", ClusterCtaid "%cluster_ctaid",
    ClusterNctaid "%cluster_nctaid", ClusterCtarank "%cluster_ctarank", ClusterNctarank "%cluster_nctarank",
    LanemaskEq "%lanemask_eq", LanemaskLe "%lanemask_le", LanemaskLt "%lanemask_lt", LanemaskGe "%lanemask_ge",
    LanemaskGt "%lanemask_gt", Clock "%clock", ClockHi "%clock_hi", Clock64 "%clock64", Globaltimer "%globaltimer",
    GlobaltimerLo "%globaltimer_lo", GlobaltimerHi "%globaltimer_hi",
    ReservedSmemOffsetBegin "%reserved_smem_offset_begin", ReservedSmemOffsetEnd "%reserved_smem_offset_end",
    ReservedSmemOffsetCap "%reserved_smem_offset_cap", TotalSmemSize "%total_smem_size",
    AggrSmemSize "%aggr_smem_size", DynamicSmemSize "%dynamic_smem_size", CurrentGraphExec "%current_graph_exec",
}

impl Special {
    /// From its name, `%laneid`.
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some(&(_, special)) = NAMES.iter().find(|(text, _)| *text == name) {
            return Some(special);
        }
        let number = |prefix: &str, suffix: &str, below: u8| {
            let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|&value| plain && value < below)
        };
        None.or_else(|| number("%pm", "_64", 8).map(Special::Pm64))
            .or_else(|| number("%pm", "", 8).map(Special::Pm))
            .or_else(|| number("%envreg", "", 32).map(Special::Envreg))
            .or_else(|| number("%reserved_smem_offset_", "", 2).map(Special::ReservedSmemOffset))
    }

    /// Its name, `%laneid`; the number of those that have one is left out.
    pub fn name(self) -> &'static str {
        match self {
            Special::Pm(_) => "%pm",
            Special::Pm64(_) => "%pm_64",
            Special::Envreg(_) => "%envreg",
            Special::ReservedSmemOffset(_) => "%reserved_smem_offset_",
            _ => NAMES.iter().find(|(_, special)| *special == self).map_or("", |(name, _)| name),
        }
    }

    /// Those without a number.
    pub(crate) fn names() -> &'static [(&'static str, Special)] {
        NAMES
    }
}
