//! SARIF 2.1.0, the format that code-scanning services read.
//!
//! One run of one tool. Each rule carries its manual page as help text; each finding its place, its witness as a code
//! flow and as related locations, and a fingerprint that survives moved lines.

use std::collections::BTreeMap;

use lanescope_ir::Severity;
use serde_json::Value;
use serde_sarif::sarif::{
    Address, ArtifactContent, ArtifactLocation, CodeFlow, Location, LogicalLocation, Message, MultiformatMessageString,
    PhysicalLocation, PropertyBag, Region, ReportingConfiguration, ReportingDescriptor, Result, ResultLevel, Run,
    Sarif, ThreadFlow, ThreadFlowLocation, Tool, ToolComponent,
};

use super::{Figure, Finding, Kernel, Place, Report, RulePage};

/// Where the format is described.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Name of our fingerprint.
const FINGERPRINT: &str = "lanescope/v1";

/// The report as SARIF. `rules` are the manual pages of all rules; `base` is the folder that paths are made relative to
/// if they lie in it (`/` as separator), since services know files by their path in the repository.
pub fn sarif(report: &Report, rules: &[RulePage], version: &str, base: Option<&str>) -> Sarif {
    let used: Vec<&RulePage> = rules.iter().filter(|r| report.findings().any(|f| f.rule == r.name)).collect();
    let mut results = Vec::new();
    for kernel in &report.kernels {
        for finding in &kernel.findings {
            results.push(result(kernel, finding, &used, base));
        }
    }
    let driver = ToolComponent::builder()
        .name("lanescope")
        .semantic_version(version)
        .version(version)
        .rules(used.iter().map(|r| descriptor(r)).collect::<Vec<_>>())
        .build();
    let run = Run::builder().tool(Tool::builder().driver(driver).build()).results(results).build();
    Sarif::builder().schema(SCHEMA).version(Value::from("2.1.0")).runs(vec![run]).build()
}

fn multiformat(text: &str) -> MultiformatMessageString {
    MultiformatMessageString::builder().text(text).build()
}

fn descriptor(rule: &RulePage) -> ReportingDescriptor {
    let mut help = multiformat(rule.page);
    help.markdown = Some(rule.page.to_owned());
    ReportingDescriptor::builder()
        .id(rule.name)
        .short_description(multiformat(rule.summary))
        .full_description(multiformat(rule.summary))
        .help(help)
        .default_configuration(ReportingConfiguration::builder().level(Value::from("warning")).build())
        .build()
}

fn level(severity: Severity) -> ResultLevel {
    match severity {
        Severity::Info => ResultLevel::Note,
        Severity::Warning => ResultLevel::Warning,
        Severity::Error => ResultLevel::Error,
    }
}

fn message(text: &str) -> Message {
    Message::builder().text(text).build()
}

fn result(kernel: &Kernel, f: &Finding, rules: &[&RulePage], base: Option<&str>) -> Result {
    let steps: Vec<Location> = f
        .witness
        .iter()
        .enumerate()
        .map(|(i, s)| {
            let mut l = location(kernel, &s.place, base);
            l.id = Some(i as i64 + 1);
            let note = if s.note.is_empty() { s.place.text.clone() } else { s.note.clone() };
            l.message = Some(message(&note));
            l
        })
        .collect();
    let flow: Vec<ThreadFlowLocation> =
        steps.iter().map(|l| ThreadFlowLocation::builder().location(l.clone()).build()).collect();
    let mut properties: BTreeMap<String, Value> =
        f.evidence.iter().map(|(k, v)| ((*k).to_owned(), figure(v))).collect();
    properties.insert("kernel".into(), kernel.demangled.clone().into());
    properties.insert("levels".into(), f.levels.clone().into());
    let mut result = Result::builder()
        .rule_id(f.rule)
        .level(level(f.severity))
        .message(message(&f.message))
        .locations(vec![location(kernel, &f.place, base)])
        .partial_fingerprints(BTreeMap::from([(FINGERPRINT.to_owned(), f.fingerprint.clone())]))
        .properties(PropertyBag::builder().additional_properties(properties).build())
        .build();
    result.rule_index = rules.iter().position(|r| r.name == f.rule).map(|i| i as i64);
    if !flow.is_empty() {
        let thread = ThreadFlow::builder().locations(flow).build();
        result.code_flows = Some(vec![CodeFlow::builder().thread_flows(vec![thread]).build()]);
        result.related_locations = Some(steps);
    }
    result
}

fn figure(f: &Figure) -> Value {
    match f {
        Figure::Count(n) => (*n).into(),
        Figure::Ratio(x) => (*x).into(),
        Figure::Text(t) => t.clone().into(),
    }
}

/// The source line, or the instruction's address in the file that was checked.
fn location(kernel: &Kernel, place: &Place, base: Option<&str>) -> Location {
    let physical = match (&place.file, place.line) {
        (Some(file), Some(line)) => {
            let mut region = Region::builder().start_line(i64::from(line.max(1))).build();
            if let Some(source) = &place.source {
                region.snippet = Some(ArtifactContent::builder().text(source.as_str()).build());
            }
            PhysicalLocation::builder().artifact_location(artifact(file, base)).region(region).build()
        }
        _ => {
            let address = Address::builder().relative_address(i64::from(place.pc)).kind("instruction").build();
            PhysicalLocation::builder().artifact_location(artifact(&kernel.input, base)).address(address).build()
        }
    };
    let logical =
        LogicalLocation::builder().name(kernel.demangled.as_str()).fully_qualified_name(kernel.kernel.as_str());
    Location::builder().physical_location(physical).logical_locations(vec![logical.kind("function").build()]).build()
}

fn artifact(path: &str, base: Option<&str>) -> ArtifactLocation {
    let path = path.replace('\\', "/");
    let inside = base.and_then(|b| path.strip_prefix(b)).and_then(|p| p.strip_prefix('/'));
    match inside {
        Some(p) => ArtifactLocation::builder().uri(encode(p)).uri_base_id("%SRCROOT%").build(),
        None if path.starts_with('/') => ArtifactLocation::builder().uri(format!("file://{}", encode(&path))).build(),
        None => ArtifactLocation::builder().uri(encode(path.trim_start_matches("./"))).build(),
    }
}

/// Percent-encodes what a URI's path must not have.
fn encode(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for b in path.bytes() {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'+' | b',' | b'=' | b'@' => {
                out.push(char::from(b));
            }
            _ => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        let uri = |p: &str, base| artifact(p, base).uri.unwrap_or_default();
        assert_eq!(uri("/home/me/a b.cu", None), "file:///home/me/a%20b.cu");
        assert_eq!(uri("/home/me/src/k.cu", Some("/home/me")), "src/k.cu");
        assert_eq!(uri("/home/me2/k.cu", Some("/home/me")), "file:///home/me2/k.cu");
        assert_eq!(uri("./k#1.cu", None), "k%231.cu");
        assert_eq!(uri("src\\k.cu", None), "src/k.cu");
    }
}
