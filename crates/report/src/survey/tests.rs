use std::sync::Arc;

use super::tables::Show;
use super::{Branches, File, Kernel, Kind, Regions, Survey, Verdict, csv, html, markdown, text};

fn kernel(name: &str, deferred: u64, error: Option<&str>) -> Kernel {
    let mut branches = Branches::default();
    branches.diverging.deferred = deferred;
    branches.all.deferred = deferred + 1;
    branches.group.exact = 2;
    Kernel {
        name: name.to_owned(),
        demangled: format!("{name}<1>(int, char)"),
        kind: Kind::Kernel,
        instructions: 10,
        opcodes: [(Arc::from("BSSY"), 3)].into(),
        regions: Regions { opened: 3, ..Regions::default() },
        verdict: Verdict::Taint,
        branches,
        list: None,
        error: error.map(str::to_owned),
    }
}

fn sample() -> Survey {
    let file = |path: &str, arch: Option<&str>, kernels, error: Option<&str>| File {
        path: path.to_owned(),
        arch: arch.map(str::to_owned),
        kernels,
        error: error.map(str::to_owned),
    };
    Survey {
        files: vec![
            file("a/lib.so", Some("sm_100"), vec![kernel("moe", 1, None)], None),
            file("a/lib.so", Some("sm_90"), vec![kernel("moe", 4, None), kernel("b", 0, Some("no code"))], None),
            file("bad.cubin", None, vec![], Some("it is \"cut\", <short>")),
        ],
    }
}

#[test]
fn json_has_the_stable_keys() {
    let json = serde_json::to_value(sample()).expect("serializable");
    assert_eq!(json["schema"], "lanescope.survey/1");
    let totals = &json["totals"]["sm_90"];
    assert_eq!((&totals["kernels"], &totals["opcodes"]["BSSY"]), (&2.into(), &6.into()));
    let keys: Vec<_> = totals["branches"].as_object().expect("object").keys().cloned().collect();
    assert_eq!(keys, ["deferred", "escaped", "exact", "exit", "uncovered"]);
    assert_eq!((&totals["branches"]["deferred"], &totals["all_branches"]["deferred"]), (&4.into(), &6.into()));
    let file = &json["files"][2];
    assert!(file["arch"].is_null() && file["error"].is_string() && file["kernels"].as_array().is_some());
    assert!(json["files"][0]["error"].is_null());
    // Architectures ascend by number.
    let order = serde_json::to_string(&sample()).expect("serializable");
    assert!(order.find("\"sm_90\":").expect("there") < order.find("\"sm_100\":").expect("there"));
}

#[test]
fn csv_lines_have_as_many_fields_as_the_header() {
    let text = csv(&sample());
    let fields = |line: &str| {
        let mut quoted = false;
        line.chars()
            .filter(|&c| {
                quoted ^= c == '"';
                c == ',' && !quoted
            })
            .count()
    };
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|l| fields(l) == fields(lines[0])), "{text}");
    assert!(lines[4].contains("\"it is \"\"cut\"\", <short>\""), "{text}");
}

#[test]
fn markdown_and_html_are_escaped_and_complete() {
    let show = Show { kernels: true, by_file: false };
    let md = markdown(&sample(), show);
    assert!(md.contains("| opcode | sm_90 | sm_100 |") && md.contains("| BSSY | 6 | 3 |"), "{md}");
    assert!(
        md.contains("| moe\\<1\\>(int, char) |") || md.contains("moe\\<1\\>(int, char) | 0/4/0/0/0 | 0/1/0/0/0 |"),
        "{md}"
    );
    let page = html(&sample(), show);
    assert!(page.contains("moe&lt;1&gt;(int, char)") && page.contains("&lt;short&gt;"));
    assert!(page.ends_with("</html>\n") && !page.contains("http"));
    let plain = text(&sample(), Show::default());
    assert!(plain.contains("bad.cubin: it is \"cut\"") && !plain.contains("moe<1>"));
}

#[test]
fn nothing_surveyed_is_no_table() {
    let empty = Survey::default();
    assert_eq!(text(&empty, Show::default()), "");
    assert_eq!(serde_json::to_value(&empty).expect("serializable")["totals"], serde_json::json!({}));
}
