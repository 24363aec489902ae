//! What an analysis has to say, with its evidence.

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs something or may go wrong.
    Warning,
    /// Is wrong.
    Error,
}

impl Severity {
    /// `info`, `warning`, `error`.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One finding at one instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Rule name, kebab-case.
    pub rule: &'static str,
    /// How serious.
    pub severity: Severity,
    /// Index of the instruction it is about, if any.
    pub inst: Option<u32>,
    /// One or two sentences for a person.
    pub message: String,
    /// Named figures that support it.
    pub evidence: Vec<(&'static str, Evidence)>,
}

/// A figure in a finding's evidence.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// A count.
    Count(u64),
    /// A ratio or an estimate.
    Ratio(f64),
    /// Text.
    Text(String),
}
