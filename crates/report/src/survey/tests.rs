use std::sync::Arc;

use super::tables::Show;
use super::{Branches, Classes, File, Kernel, Kind, Regions, Survey, Verdict, csv, html, markdown, text};

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
        unjudged: None,
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
fn the_second_verdict_is_added_where_it_was_asked() {
    let mut survey = sample();
    let kernels = survey.files.iter_mut().flat_map(|f| &mut f.kernels);
    for (kernel, unproved) in kernels.zip([Some(0), Some(3), None]) {
        kernel.branches.unproved = unproved.map(|deferred| Classes { deferred, ..Classes::default() });
    }
    survey.files[1].kernels[0].unjudged = Some("relocatable".to_owned());
    let json = serde_json::to_value(&survey).expect("serializable");
    let totals = &json["totals"]["sm_90"];
    assert_eq!((&totals["unproved_branches"]["deferred"], &totals["unjudged"]), (&3.into(), &1.into()));
    assert_eq!(json["totals"]["sm_100"]["unproved_branches"]["deferred"], 0);
    assert!(json["files"][1]["kernels"][1].get("unproved_branches").is_none());
    let page = text(&survey, Show::default());
    assert!(page.contains("not judged by uniformity") && page.contains("Branches not proved"), "{page}");
    let sheet = csv(&survey);
    let lines: Vec<&str> = sheet.split_terminator("\r\n").collect();
    assert!(lines[0].contains("unproved_deferred") && lines[1].ends_with(",0,0,0,0,0,3"), "{sheet}");
    assert!(lines[2].ends_with(",0,3,0,0,0,3") && lines[3].ends_with(",0,0,0,0,0,3"), "{sheet}");
    // Not asked: no trace of it.
    let plain = serde_json::to_string(&sample()).expect("serializable");
    assert!(!plain.contains("unproved") && !plain.contains("unjudged") && !csv(&sample()).contains("unproved"));
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
    // Boxes that scroll can be reached with the keyboard.
    assert_eq!(page.matches("class=\"wide\"").count(), page.matches("tabindex=\"0\" role=\"region\"").count());
    assert!(page.contains("2 architectures, 2 files."));
    let plain = text(&sample(), Show::default());
    assert!(plain.contains("bad.cubin: it is \"cut\"") && !plain.contains("moe<1>"));
}

#[test]
fn nothing_surveyed_is_no_table() {
    let empty = Survey::default();
    assert_eq!(text(&empty, Show::default()), "");
    assert_eq!(serde_json::to_value(&empty).expect("serializable")["totals"], serde_json::json!({}));
}
