//! What `lanescope advise` says of a launch.

use std::path::Path;
use std::process::Command;

use libtest_mimic::Failed;
use serde_json::Value;

/// The best order of the data that was run again.
pub(crate) struct Advised {
    pub(crate) before: u64,
    pub(crate) predicted: u64,
    pub(crate) confirmed: u64,
}

pub(crate) fn of(launch: &Path) -> Result<Advised, Failed> {
    let json = json(launch, &[])?;
    let best = json["fixes"]
        .as_array()
        .ok_or("no `fixes`")?
        .iter()
        .filter(|fix| matches!(fix["method"].as_str(), Some("sort-by-key" | "sort-by-trips")))
        .filter_map(|fix| Some((fix["confirmed"].as_u64()?, fix["predicted"].as_u64()?)))
        .min();
    let (confirmed, predicted) = best.ok_or_else(|| format!("no sort was confirmed: {}", json["summary"]))?;
    Ok(Advised { before: json["warp_instructions"].as_u64().ok_or("no `warp_instructions`")?, predicted, confirmed })
}

/// What it prints as JSON.
pub(crate) fn json(launch: &Path, more: &[&str]) -> Result<Value, Failed> {
    let out = Command::new(env!("CARGO_BIN_EXE_lanescope"))
        .args(["advise", "--format", "json"])
        .args(more)
        .arg(launch)
        .output()?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}
