//! The HTML report in a browser: nothing is fetched, nothing fails, what can be clicked can be reached with the keyboard.
//! Without Chromium and its driver on the path these tests say so and pass.

#![allow(clippy::print_stderr)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lanescope_analysis::analyse;
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::source::Location;
use lanescope_ir::{Function, InstId, Instruction, Kernel, LaneCounts, LaunchShape, Op, PredSrc, Profile, SourceMap};
use lanescope_report::html::{Page, page};
use lanescope_report::{Input, Level};

mod browser;
use browser::Browser;

const HOSTILE: &str = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";

const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const DOWN: &str = "\u{e015}";
const RIGHT: &str = "\u{e014}";
const END: &str = "\u{e010}";
const TAB: &str = "\u{e004}";

/// One browser at a time: this machine may be small.
static ONE: Mutex<()> = Mutex::new(());

fn browser() -> Option<(Browser, MutexGuard<'static, ()>)> {
    let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let browser = Browser::start();
    if browser.is_none() {
        eprintln!("skipped: no chromium and chromedriver on the path");
    }
    Some((browser?, turn))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The page of a launch, in a folder of its own.
fn report(launch: &str, flags: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    let run = Command::new(env!("CARGO_BIN_EXE_lanescope"))
        .arg("run")
        .arg(root().join(launch))
        .arg("--html")
        .arg(&file)
        .args(flags)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    (dir, file)
}

/// Nothing went wrong and nothing was fetched.
fn quiet(b: &Browser) {
    assert_eq!(b.console(), Vec::<String>::new());
    let away: Vec<_> =
        b.requests().into_iter().filter(|u| !u.starts_with("file:") && !u.starts_with("data:")).collect();
    assert_eq!(away, Vec::<String>::new());
}

#[test]
fn a_line_says_what_took_its_lanes() {
    let Some((b, _turn)) = browser() else { return };
    let (_dir, page) = report("examples/textbook/by_type.toml", &[]);
    b.open(&page);
    // The line that loses most is chosen to begin with.
    assert!(b.text("return document.querySelector('#why-body').textContent").contains("logf"));
    // Line 19: data[i] = expf(...) runs without those that branched away at lines 16 and 18.
    b.run("[...document.querySelectorAll('#source .row')].find(r => r.textContent.includes('expf')).id = 'chosen'");
    b.click("#chosen");
    let why = b.text("return document.querySelector('#why-body').textContent");
    assert!(why.contains("textbook.cu:19") && why.contains("divergent branch at textbook.cu:16"), "{why}");
    let picked = b.run("return [...document.querySelectorAll('#sass .picked')].length").as_u64().unwrap();
    assert!(picked > 3, "its instructions are marked");
    // A cause leads to the branch.
    b.click("#why-body li button");
    let why = b.text("return document.querySelector('#why-body').textContent");
    assert!(why.contains("What is decided here") && why.contains("1 of 1 groups split"), "{why}");
    let at = b.text("return document.querySelector('#sass .at').textContent");
    assert!(at.contains("BRA") && at.contains("1 of 1 split"), "{at}");
    // So does a place in the tables above.
    b.click("#causes tbody tr:last-child .spot");
    assert!(b.text("return document.querySelector('#sass .at').textContent").contains("EXIT"));
    assert_eq!(b.text("return document.activeElement.getAttribute('aria-label')"), "Instructions");
    // Only the instructions of the chosen line.
    let all = b.run("return document.querySelector('#sass .list').ariaRowCount").as_str().unwrap().to_owned();
    b.click("#only");
    let few = b.run("return document.querySelector('#sass .list').ariaRowCount").as_str().unwrap().to_owned();
    assert!(few.parse::<u32>().unwrap() < all.parse().unwrap(), "{few} of {all}");
    quiet(&b);
}

#[test]
fn the_keyboard_is_enough() {
    let Some((b, _turn)) = browser() else { return };
    let (_dir, page) = report("examples/textbook/unequal_trips.toml", &[]);
    b.open(&page);
    // The first stop leads past the navigation.
    b.keys(&[TAB]);
    assert_eq!(b.text("return document.activeElement.className"), "skip");
    let ring = b.text("return getComputedStyle(document.activeElement).outlineStyle");
    assert_ne!(ring, "none", "the focus can be seen");
    // Everything that takes the focus has a name.
    let nameless = b.run(
        "return [...document.querySelectorAll('a, button, select, input, summary, [tabindex]')].filter(e => !(
           e.textContent.trim() || e.ariaLabel || e.getAttribute('aria-labelledby') || e.closest('label'))).map(e => e.outerHTML)",
    );
    assert_eq!(nameless.as_array().map(Vec::len), Some(0), "{nameless}");
    b.run("document.querySelector('#source .list').focus()");
    let line = "return document.querySelector('#source .at').textContent";
    let before = b.text(line);
    b.keys(&[DOWN]);
    assert_ne!(b.text(line), before);
    let active =
        "return document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).textContent";
    assert_eq!(b.text(active), b.text(line));
    b.keys(&[ENTER]);
    assert_eq!(b.text("return document.activeElement.id"), "why-h");
    b.keys(&[ESCAPE, END]);
    assert_eq!(b.text("return document.activeElement.getAttribute('aria-label')"), "Source lines");
    assert!(b.text(line).contains('}'), "the last line");
    // The timeline: steps, splits, and the way to the code.
    b.run("document.getElementById('tracks').focus()");
    let step = "return Number(document.getElementById('tracks').ariaValueNow)";
    assert_eq!(b.run(step), 0);
    b.keys(&[RIGHT, RIGHT]);
    assert_eq!(b.run(step), 2);
    b.keys(&["n"]);
    let text = b.text("return document.getElementById('tracks').ariaValueText");
    assert!(text.contains("split:") && text.contains("BRA"), "{text}");
    assert!(b.text("return document.getElementById('step').textContent").contains("Then: split"));
    // The same in rows: first all lanes, then fewer and fewer.
    b.run("document.getElementById('stretches').open = true");
    b.frame();
    let rows = b.run("return [...document.querySelectorAll('#stretches tbody tr')].map(r => r.cells[1].textContent)");
    assert!(rows[0] == "32" && rows.as_array().unwrap().len() > 20, "{rows}");
    b.run("document.getElementById('tracks').focus()");
    b.keys(&["+", "+", END, ENTER]);
    assert!(b.text("return document.querySelector('#sass .at').textContent").contains("EXIT"));
    quiet(&b);
}

/// The least contrast of text with what is behind it, and where. Colours are resolved by painting them.
const CONTRAST: &str = r#"
const c = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const rgba = text => { c.clearRect(0, 0, 1, 1); c.fillStyle = text; c.fillRect(0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data]; };
const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] / 255 + b[i] * (1 - a[3] / 255)).concat(255);
const behind = e => { if (!e) return rgba('Canvas'); const own = rgba(getComputedStyle(e).backgroundColor);
  return own[3] === 255 ? own : over(own, behind(e.parentElement)); };
const light = p => [0, 1, 2].map(i => p[i] / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
let worst = [21, ''];
for (const e of document.querySelectorAll('body *')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.closest('noscript, script')) continue;
  const style = getComputedStyle(e), back = behind(e);
  const ink = over(rgba(e.closest('svg') ? style.fill : style.color), back), [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < worst[0]) worst = [ratio, e.outerHTML.slice(0, 120)];
}
return worst;
"#;

#[test]
fn both_themes_can_be_read() {
    let Some((b, _turn)) = browser() else { return };
    let (_dir, page) =
        report("examples/mandelbrot/mandelbrot.toml", &["--html-warps", "0,0;103,5", "--html-steps", "500"]);
    b.open(&page);
    let back = "return getComputedStyle(document.body).backgroundColor";
    let pixel = "const from = document.querySelector('#tracks canvas');
      const c = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      c.drawImage(from, from.width / 2, 60, 1, 1, 0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data].join()";
    let mut seen = Vec::new();
    for scheme in ["light", "dark"] {
        b.scheme(scheme);
        let worst = b.run(CONTRAST);
        assert!(worst[0].as_f64().unwrap() >= 4.5, "{scheme}: {worst}");
        seen.push((b.text(back), b.text(pixel)));
    }
    assert_ne!(seen[0].0, seen[1].0, "the page follows the system");
    assert_ne!(seen[0].1, seen[1].1, "so does the canvas");
    // The button overrides it: auto, light, dark, and auto again.
    for expected in [0, 1, 1] {
        b.click("#theme");
        assert_eq!(b.text(back), seen[expected].0);
    }
    // Two warps to choose from; the second has been cut off.
    let label = "return document.querySelector('#tracks canvas').ariaLabel";
    assert!(b.text(label).contains("block 0, warp 0"), "{}", b.text(label));
    b.run("const w = document.getElementById('warp'); w.value = 1; w.dispatchEvent(new Event('change'))");
    assert!(b.text(label).contains("block 103, warp 5: 500 issued instructions"), "{}", b.text(label));
    for hue in ["line", "count", "path"] {
        b.run(&format!(
            "const h = document.getElementById('hue'); h.value = '{hue}'; h.dispatchEvent(new Event('change'))"
        ));
        assert_ne!(b.run("return document.querySelectorAll('#legend li').length"), 0);
    }
    quiet(&b);
}

#[test]
fn a_narrow_window_needs_no_sideways_scrolling() {
    let Some((b, _turn)) = browser() else { return };
    let (_dir, page) = report("examples/textbook/by_type.toml", &[]);
    b.command(
        "Emulation.setDeviceMetricsOverride",
        &serde_json::json!({ "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true }),
    );
    b.open(&page);
    let wide = b.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert_eq!(wide, 0);
    quiet(&b);
}

/// A kernel of `n` instructions, ten to a line.
fn long_kernel(n: u32) -> (Kernel, Profile, Vec<String>) {
    let exit = Op::Control(ControlOp::Exit { cond: PredSrc::TRUE });
    let op = |i| if i + 1 == n { exit.clone() } else { Op::Nop };
    let location = |line| Location { file: 0, line, column: 0, inlined_at: vec![] };
    let lines = n.div_ceil(10);
    let kernel = Kernel {
        name: HOSTILE.into(),
        arch: "sm_90".into(),
        instructions: (0..n)
            .map(|i| Instruction { pc: i * 16, guard: PredSrc::TRUE, uniform: false, op: op(i) })
            .collect(),
        text: (0..n).map(|i| format!("IMAD.MOV.U32 R{}, RZ, RZ, {i:#x}", i % 250)).collect(),
        functions: vec![Function { name: HOSTILE.into(), base: 0, first: InstId(0), len: n, local: vec![] }],
        source: SourceMap {
            files: vec![format!("{HOSTILE}.cu")],
            locations: (1..=lines).map(location).collect(),
            of_inst: (0..n).map(|i| Some(i / 10)).collect(),
        },
        ..Kernel::default()
    };
    let count = |i: u32| LaneCounts {
        inst_executed: 64,
        thread_inst_executed: u64::from(64 * (32 - i / 100 % 32)),
        thread_inst_executed_pred_on: u64::from(64 * (32 - i / 100 % 32)),
        ..LaneCounts::default()
    };
    let shape = LaunchShape { grid: [1, 1, 1], block: [128, 1, 1], warp_size: 32 };
    let profile = Profile { shape, counts: (0..n).map(count).collect(), ..Profile::default() };
    (kernel, profile, (1..=lines).map(|l| format!("    r[{l}] += {HOSTILE};")).collect())
}

#[test]
fn a_hundred_thousand_instructions_open_at_once() {
    let Some((b, _turn)) = browser() else { return };
    let (kernel, profile, text) = long_kernel(100_000);
    let analysis = analyse(&kernel, &profile);
    let sources = HashMap::from([(0, text)]);
    let input = Input {
        kernel: &kernel,
        profile: &profile,
        analysis: &analysis,
        demangled: HOSTILE,
        source: "sim",
        level: Level::Sass,
        compiler: None,
        sources: &sources,
        warnings: &[],
    };
    let html = page(&Page::new(&input)).unwrap();
    assert!(html.len() < 10 << 20, "{} bytes", html.len());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    std::fs::write(&file, html).unwrap();
    let start = Instant::now();
    b.open(&file);
    let took = start.elapsed();
    // Far more than it takes, far less than it would take to put everything into the page.
    assert!(took < Duration::from_secs(20), "{took:?}");
    let nodes = b.run("return document.querySelectorAll('*').length").as_u64().unwrap();
    assert!(nodes < 3000, "{nodes} elements");
    assert_eq!(b.run("return document.querySelector('#sass .list').ariaRowCount"), "100001");
    b.run("document.querySelector('#sass .list').focus()");
    b.keys(&[END]);
    assert!(b.text("return document.querySelector('#sass .at').textContent").contains("0x1869f"), "the last one");
    // Names of this kind stay names.
    assert_ne!(b.text("return document.title"), "owned");
    assert_eq!(b.run("return document.querySelectorAll('img').length"), 0);
    assert!(b.text("return document.getElementById('source').textContent").contains("</script>"));
    quiet(&b);
}
