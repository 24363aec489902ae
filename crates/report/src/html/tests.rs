//! The page as a browser's parser sees it.

use std::collections::{HashMap, HashSet};

use lanescope_analysis::advise::{
    Advice, Confidence, Fix, FixCost, Key, KeyBin, KeyKind, KeyedCause, Method, ModelCheck, Verdict,
};
use lanescope_analysis::roofline::{Bound, Demand, Gpu, Lanes, Limit, Occupancy, Range, Roofline, Scenario};
use lanescope_analysis::{Cause, analyse};
use lanescope_ir::finding::Evidence;
use lanescope_ir::{Finding, LaneCounts, Profile, Severity};
use scraper::{ElementRef, Html, Selector};

use super::{Page, page};
use crate::printed::Printed;
use crate::testing::{kernel, profile, trace};
use crate::{Input, Level};

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&<!--";

fn advice(text: &str) -> Advice {
    let histogram = vec![KeyBin { low: 0, high: 0, threads: 8 }, KeyBin { low: 1, high: 3, threads: 24 }];
    let key = Key { kind: KeyKind::Way { branch: 1 }, words: text.to_owned(), distinct: 2, histogram };
    let fix = |predicted, confirmed| Fix {
        method: Method::SortByKey,
        title: text.to_owned(),
        what_to_do: text.to_owned(),
        key: Some(key.clone()),
        before: 8,
        predicted,
        confirmed,
        cost: FixCost { warp_instructions: 9, bytes: 64, words: text.to_owned() },
        speedup: Some(Range { low: 1.0, high: 1.5 }),
        confidence: Confidence::Modelled,
        at: Some(1),
        caveats: vec![text.to_owned()],
    };
    Advice {
        verdict: Verdict::Fix(0),
        summary: text.to_owned(),
        before: 8,
        bound: 6,
        model: ModelCheck { modelled: 8, measured: 8, complete: true },
        causes: vec![KeyedCause { cause: Cause::Branch(1), lanes: 32, warp_instructions: 1.0, key: Some(key.clone()) }],
        fixes: vec![fix(6, Some(6)), fix(12, None)],
        caveats: vec![text.to_owned()],
        estimate: false,
    }
}

fn machine(text: &str) -> Roofline {
    let range = Range { low: 1e-6, high: 2e-6 };
    Roofline {
        gpu: Gpu {
            name: text.to_owned(),
            arch: "sm_90".into(),
            sms: 132,
            schedulers: 4,
            clock_mhz: 1980.0,
            dram_gbs: 4800.0,
            l2_bytes: 0,
            l2_gbs: None,
            warps_per_sm: 64,
            blocks_per_sm: 32,
            threads_per_sm: 2048,
            registers_per_sm: 65536,
            shared_per_sm: 0,
            shared_per_block: 0,
            shared_reserved: 0,
            l1_bytes: 0,
            shared_unit: 0,
            lanes: Lanes { fma: 128.0, imad: 64.0, alu: 64.0, fp64: 64.0, xu: 16.0, lsu: 32.0 },
            source: text.to_owned(),
        },
        demand: Demand { warp_instructions: 8, sectors: 4, sectors_ideal: 4, ..Demand::default() },
        occupancy: Occupancy {
            fits: 32,
            blocks_per_sm: 1,
            warps_per_sm: 1,
            of: 64,
            limit: Limit::Grid,
            waves: 0.01,
            registers_known: true,
        },
        issue_s: range,
        memory_s: range,
        latency_s: range,
        time_s: range,
        bound: Bound::LaunchTooSmall,
        verdict: text.to_owned(),
        scenarios: [Scenario::default(); 4],
    }
}

/// The page of the kernel above, with `text` wherever a file or a person can put text.
fn made(text: &str) -> String {
    let kernel = kernel(text);
    let profile = profile();
    let mut analysis = analyse(&kernel, &profile);
    analysis.findings.push(Finding {
        rule: "rule",
        severity: Severity::Error,
        inst: Some(2),
        message: text.to_owned(),
        evidence: vec![("text", Evidence::Text(text.to_owned()))],
    });
    let sources = HashMap::from([(0, vec![text.to_owned(); 5])]);
    let warnings = [text.to_owned()];
    let input = Input {
        kernel: &kernel,
        profile: &profile,
        analysis: &analysis,
        demangled: text,
        source: "sim",
        level: Level::Sass,
        compiler: Some(text),
        sources: &sources,
        warnings: &warnings,
    };
    let printed = [Printed { block: [0; 3], thread: [0; 3], text }];
    let traces = [trace()];
    let (advice, roofline) = (advice(text), machine(text));
    page(&Page {
        before: &traces,
        after: &traces,
        advice: Some(&advice),
        roofline: Some(&roofline),
        printed: &printed,
        printed_lost: 3,
        ..Page::new(&input)
    })
    .unwrap()
}

fn all<'a>(document: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    document.select(&Selector::parse(selector).unwrap()).collect()
}

fn text(e: ElementRef<'_>) -> String {
    e.text().collect()
}

#[test]
fn hostile_text_stays_text() {
    let html = made(HOSTILE);
    let document = Html::parse_document(&html);
    let scripts = all(&document, "script");
    let kinds: Vec<_> = scripts.iter().map(|s| s.attr("type")).collect();
    assert_eq!(kinds, [Some("application/json"), Some("application/json"), None]);
    assert!(all(&document, "img, iframe, object, embed, [onerror], [onload], [onclick], [src]").is_empty());
    assert_eq!(all(&document, "figure.chart svg").len(), 2, "a key's histogram and the roofline");
    assert_eq!(all(&document, ".fixes tbody tr").len(), 2);
    // It is all there, as text.
    assert_eq!(text(all(&document, "h1")[0]), HOSTILE);
    let code: serde_json::Value = serde_json::from_str(&text(scripts[0])).unwrap();
    assert_eq!(code["text"][2], format!("INSTR2 {HOSTILE}"));
    assert_eq!(code["files"][0]["text"][0][1], [HOSTILE; 5].join("\n"));
    // The policy names the script that is there, and permits nothing from elsewhere.
    let policy = all(&document, "meta[http-equiv]")[0].attr("content").unwrap();
    assert!(policy.contains(&super::pack::csp_hash(&text(scripts[2]))));
    assert!(policy.starts_with("default-src 'none'"));
}

#[test]
fn everything_is_in_the_page() {
    let html = made("k");
    let document = Html::parse_document(&html);
    for e in all(&document, "[href]") {
        let href = e.attr("href").unwrap();
        assert!(href.starts_with("data:") || !all(&document, href).is_empty(), "{href} leads nowhere");
    }
    for word in ["http:", "https:", "url(", "@import", "fetch(", "XMLHttpRequest", "eval("] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn the_page_has_what_a_screen_reader_needs() {
    let document = Html::parse_document(&made("k"));
    assert_eq!(all(&document, "html")[0].attr("lang"), Some("en"));
    for landmark in ["header", "nav[aria-label]", "main", "footer", "aside[aria-labelledby]"] {
        assert_eq!(all(&document, landmark).len(), 1, "{landmark}");
    }
    let levels: Vec<u32> =
        all(&document, "h1, h2, h3").iter().map(|h| h.value().name()[1..].parse().unwrap()).collect();
    assert_eq!(levels[0], 1);
    assert!(levels.windows(2).all(|w| w[1] > 1 && w[1] <= w[0] + 1), "{levels:?}");
    for table in all(&document, "table") {
        assert_eq!(table.select(&Selector::parse("caption").unwrap()).count(), 1);
        assert!(table.select(&Selector::parse("th").unwrap()).all(|th| th.attr("scope").is_some()));
        let cells = |row: ElementRef<'_>| row.child_elements().count();
        let widths: HashSet<usize> = table.select(&Selector::parse("tr").unwrap()).map(cells).collect();
        assert_eq!(widths.len(), 1, "rows of unequal length");
    }
    let ids: Vec<&str> = all(&document, "[id]").iter().map(|e| e.attr("id").unwrap()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "an id is there twice");
    for e in all(&document, "[aria-labelledby], [aria-describedby]") {
        for id in ["aria-labelledby", "aria-describedby"].into_iter().filter_map(|a| e.attr(a)) {
            assert!(ids.contains(&id), "{id}");
        }
    }
    for control in all(&document, "select, input") {
        let labelled = control.ancestors().filter_map(ElementRef::wrap).any(|a| a.value().name() == "label");
        assert!(labelled, "{}", control.html());
    }
}

#[test]
fn the_same_launch_gives_the_same_page() {
    assert_eq!(made("k"), made("k"));
}

#[test]
fn steps_have_paths() {
    let document = Html::parse_document(&made("k"));
    let groups: serde_json::Value = serde_json::from_str(&text(all(&document, "#data-tracks")[0])).unwrap();
    let group = groups[0].as_array().unwrap();
    assert_eq!(group.iter().map(|t| t["when"].as_str().unwrap()).collect::<Vec<_>>(), ["before", "after"]);
    let paths = group[0]["paths"].as_array().unwrap();
    let steps: Vec<u64> = paths.iter().map(|p| p["steps"].as_u64().unwrap()).collect();
    // All together before and after; three steps on the way past the branch, two on the other.
    assert_eq!(steps, [3, 3, 2]);
    assert_eq!(paths[1]["parent"], 0);
    let targets: Vec<_> = paths.iter().map(|p| (p["branch"].as_u64(), p["target"].as_u64())).collect();
    assert_eq!(targets, [(None, None), (Some(1), Some(2)), (Some(1), Some(4))]);
}

#[test]
fn nothing_lost_and_nothing_run() {
    let kernel = kernel("k");
    let full = LaneCounts {
        inst_executed: 1,
        thread_inst_executed: 32,
        thread_inst_executed_pred_on: 32,
        ..LaneCounts::default()
    };
    for (count, answer) in [(full, "No lane is lost"), (LaneCounts::default(), "Nothing was executed")] {
        let profile = Profile { counts: vec![count; 7], branches: vec![], ..profile() };
        let analysis = analyse(&kernel, &profile);
        let sources = HashMap::new();
        let input = Input {
            kernel: &kernel,
            profile: &profile,
            analysis: &analysis,
            demangled: "k",
            source: "ncu",
            level: Level::Ptx,
            compiler: None,
            sources: &sources,
            warnings: &[],
        };
        let document = Html::parse_document(&page(&Page::new(&input)).unwrap());
        assert!(text(all(&document, ".headline")[0]).starts_with(answer));
        assert!(text(all(&document, "#answer")[0]).contains("an estimate"));
        assert!(all(&document, "#timeline").is_empty());
    }
}
