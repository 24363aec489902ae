//! The tables of every report: rows of counts, one column for each architecture or file.

use std::collections::BTreeMap;

use lanescope_analysis::reconvergence::Class;

use super::{Branches, Classes, Survey, Totals};

/// What is shown beside the totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Show {
    /// A column for each file and architecture, not only for each architecture.
    pub by_file: bool,
    /// A row for each kernel.
    pub kernels: bool,
}

/// A table with a title.
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) note: Option<&'static str>,
    /// The first column's name, then the others'.
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

const DIVERGING: &str = "Branches whose lanes may disagree, by where the lanes rejoin";
const DIVERGING_NOTE: &str = "exact: as soon as they could (the immediate post-dominator). deferred: later. exit: only where \
     the thread ends. escaped: the open regions do not cover all paths. uncovered: no region is open. Lanes may \
     disagree where thread indices, atomics, local memory or divergent control flow reach the condition; before sm_70 \
     operands are not decoded, and all branches count.";
const UNPROVED: &str = "Branches not proved to keep warps together, by where the lanes rejoin";
const UNPROVED_NOTE: &str = "The same by the uniformity analysis of lanescope check: it follows each value and where lanes come \
     from, and takes memory that another thread may write for different. A kernel or function that it cannot judge \
     counts as in the table before.";
const ALL: &str = "All conditional branches";
const GROUP: &str = "BRA.U: the group decides as one and never splits";
const TESTS: &str = "BRA.DIV and BRA.CONV: tests whether the group is together";

/// First cell of the row of sums.
pub(super) const SUM: &str = "sum";

/// Title, note and counts of a table of branches.
type Set = (&'static str, Option<&'static str>, fn(&Branches) -> Classes);

/// The tables of sums.
pub(super) fn totals(survey: &Survey, show: Show) -> Vec<Table> {
    let columns = if show.by_file { survey.by_file() } else { survey.totals() };
    if columns.is_empty() {
        return Vec::new();
    }
    let header = |first: &str| std::iter::once(first.to_owned()).chain(columns.iter().map(|c| c.0.clone())).collect();
    let row = |name: &str, get: &dyn Fn(&Totals) -> u64| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(columns.iter().map(|c| get(&c.1).to_string())).collect()
    };
    let mut code = vec![row("kernels", &|t| t.kernels)];
    for (name, get) in [
        ("device functions", (|t| t.functions) as fn(&Totals) -> u64),
        ("not readable", |t| t.broken),
        ("instructions", |t| t.instructions),
        ("regions", |t| t.regions.opened),
        ("regions without an end", |t| t.regions.endless),
        ("tokens not known", |t| t.regions.unmatched),
        ("not judged by uniformity", |t| t.unjudged.unwrap_or(0)),
    ] {
        if columns.iter().any(|c| get(&c.1) > 0) {
            code.push(row(name, &get));
        }
    }
    let mut names: Vec<&str> = columns.iter().flat_map(|c| c.1.opcodes.keys().map(|k| &**k)).collect();
    names.sort_unstable();
    names.dedup();
    let opcodes = names.iter().map(|name| row(name, &|t| t.opcodes.get(*name).copied().unwrap_or(0))).collect();
    let mut tables = vec![
        Table { title: "Code", note: None, header: header(""), rows: code },
        Table {
            title: "Opcodes that steer control flow or convergence",
            note: None,
            header: header("opcode"),
            rows: opcodes,
        },
    ];
    let classes: [Set; 5] = [
        (DIVERGING, Some(DIVERGING_NOTE), |b| b.diverging),
        (UNPROVED, Some(UNPROVED_NOTE), |b| b.unproved.unwrap_or_default()),
        (ALL, None, |b| b.all),
        (GROUP, None, |b| b.group),
        (TESTS, None, |b| b.tests),
    ];
    for (title, note, get) in classes {
        let asked = title == UNPROVED && columns.iter().any(|c| c.1.branches.unproved.is_some());
        if columns.iter().all(|c| get(&c.1.branches).sum() == 0) && title != DIVERGING && !asked {
            continue;
        }
        let mut rows: Vec<_> =
            Class::ALL.iter().map(|&class| row(class.name(), &|t| get(&t.branches).get(class))).collect();
        rows.push(row(SUM, &|t| get(&t.branches).sum()));
        tables.push(Table { title, note, header: header("lanes rejoin"), rows });
    }
    tables
}

/// A row for each kernel, a column for each architecture: the branches whose lanes may disagree.
pub(super) fn kernels(survey: &Survey) -> Option<Table> {
    let archs: Vec<String> = survey.totals().into_iter().map(|t| t.0).collect();
    let mut rows: BTreeMap<(usize, &str), Vec<Option<Classes>>> = BTreeMap::new();
    // Files in their order: the same path comes once for each architecture.
    let mut paths: Vec<&str> = Vec::new();
    for file in &survey.files {
        let Some(arch) = file.arch.as_ref().and_then(|a| archs.iter().position(|x| x == a)) else { continue };
        let path = match paths.iter().position(|p| *p == file.path) {
            Some(path) => path,
            None => {
                paths.push(&file.path);
                paths.len() - 1
            }
        };
        for kernel in file.kernels.iter().filter(|k| k.error.is_none()) {
            let cells = rows.entry((path, &kernel.demangled)).or_insert_with(|| vec![None; archs.len()]);
            let cell = cells[arch].get_or_insert_with(Classes::default);
            cell.add(&kernel.branches.diverging);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let many = paths.len() > 1;
    let shared = shared_folders(&paths);
    let mut header = vec!["kernel".to_owned()];
    header.extend(archs);
    let rows = rows
        .into_iter()
        .map(|((path, name), cells)| {
            let name = if many { format!("{}: {name}", &paths[path][shared..]) } else { name.to_owned() };
            std::iter::once(name).chain(cells.into_iter().map(|c| c.map_or_else(String::new, cell))).collect()
        })
        .collect();
    Some(Table {
        title: "Kernels",
        note: Some("Branches whose lanes may disagree: exact / deferred / exit / escaped / uncovered."),
        header,
        rows,
    })
}

/// Length of the folders that all paths begin with.
fn shared_folders(paths: &[&str]) -> usize {
    let Some((first, rest)) = paths.split_first() else { return 0 };
    let same = |other: &&str| first.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let length = rest.iter().map(same).min().unwrap_or(0);
    first.as_bytes()[..length].iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1)
}

fn cell(c: Classes) -> String {
    format!("{}/{}/{}/{}/{}", c.exact, c.deferred, c.exit, c.escaped, c.uncovered)
}
