//! One HTML file that needs nothing else: no network, no other file.
//!
//! What can be read without a script is plain HTML from the template: the answer, totals, causes, findings, charts,
//! tables. The two lists of source and machine code, and the lane timeline, are drawn by the page's own script from packed
//! data, so that a kernel of 100,000 instructions opens at once. The page's content security policy permits that one
//! script and nothing else.

mod advice;
mod charts;
mod code;
mod pack;
#[cfg(test)]
mod tests;
mod timeline;
mod view;

use askama::Template;
use lanescope_analysis::advise::Advice;
use lanescope_analysis::roofline::Roofline;
use serde::Serialize;

use crate::Input;
use crate::printed::Printed;
use crate::trace::Trace;

const CSS: &str = include_str!("../../templates/page.css");
const JS: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("../../templates/base.js"),
    include_str!("../../templates/list.js"),
    include_str!("../../templates/code.js"),
    include_str!("../../templates/timeline.js"),
    "})();\n"
);

/// What a page is made from.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    /// The launch.
    pub input: &'a Input<'a>,
    /// Traces of chosen warps of the launch.
    pub before: &'a [Trace],
    /// Why these warps, in a sentence; may be empty.
    pub warps: &'a str,
    /// Traces of the same warps with the fix; each is shown below the one of the same place in `before`.
    pub after: &'a [Trace],
    /// What to do about it.
    pub advice: Option<&'a Advice>,
    /// What the machine can give.
    pub roofline: Option<&'a Roofline>,
    /// What the kernel's `printf` printed.
    pub printed: &'a [Printed<'a>],
    /// Calls whose text did not fit.
    pub printed_lost: u64,
    /// How functions are called by their authors.
    pub name: &'a dyn Fn(&str) -> String,
}

impl<'a> Page<'a> {
    /// A page about a launch, with nothing else yet.
    pub fn new(input: &'a Input<'a>) -> Page<'a> {
        Page {
            input,
            before: &[],
            warps: "",
            after: &[],
            advice: None,
            roofline: None,
            printed: &[],
            printed_lost: 0,
            name: &str::to_owned,
        }
    }
}

#[derive(Template)]
#[template(path = "page.html")]
struct Document<'a> {
    css: &'static str,
    js: &'static str,
    js_hash: String,
    code: String,
    tracks: String,
    has_tracks: bool,
    v: view::View<'a>,
}

/// The page.
///
/// # Errors
/// What the template says; it has nothing to fail at.
pub fn page(page: &Page<'_>) -> Result<String, askama::Error> {
    let input = page.input;
    Document {
        css: CSS,
        js: JS,
        js_hash: pack::csp_hash(JS),
        code: pack::script_safe(&code::code(input, page.name)),
        tracks: pack::script_safe(&tracks(page)),
        has_tracks: !page.before.is_empty() || !page.after.is_empty(),
        v: view::view(page),
    }
    .render()
}

/// Tracks in groups of those that are shown one above the other.
fn tracks(page: &Page<'_>) -> impl Serialize + use<> {
    let (kernel, structure) = (page.input.kernel, &page.input.analysis.structure);
    let (first, second) = if page.after.is_empty() { ("", "") } else { ("before", "after") };
    let count = page.before.len().max(page.after.len());
    let groups = (0..count).map(|i| {
        let before = page.before.get(i).map(|t| timeline::track(kernel, structure, t, first));
        let after = page.after.get(i).map(|t| timeline::track(kernel, structure, t, second));
        before.into_iter().chain(after).collect::<Vec<_>>()
    });
    groups.collect::<Vec<_>>()
}
