//! One HTML page that needs nothing else.

use std::fmt::Write;

use super::Survey;
use super::tables::{self, Show, Table};

const HEAD: &str = include_str!("head.html");
const FILTER: &str = include_str!("filter.html");

/// The survey as an HTML page: the tables of sums, and all kernels with a field to filter them by name.
pub fn html(survey: &Survey, show: Show) -> String {
    let mut out = String::from(HEAD);
    let archs = survey.totals();
    let kernels: u64 = archs.iter().map(|a| a.1.kernels).sum();
    let mut paths: Vec<&str> = survey.files.iter().map(|f| f.path.as_str()).collect();
    paths.dedup();
    let _ = writeln!(
        out,
        "<h1>Where lanes rejoin</h1>\n<p class=\"sub\">{}, {}, {}.</p>",
        counted(kernels, "kernel"),
        counted(archs.len() as u64, "architecture"),
        counted(paths.len() as u64, "file")
    );
    for item in tables::totals(survey, show) {
        table(&mut out, &item, "", "");
    }
    if let Some(item) = tables::kernels(survey) {
        table(&mut out, &item, " id=\"kernels\"", FILTER);
    }
    let errors: Vec<_> = survey.errors().collect();
    if !errors.is_empty() {
        out.push_str("<h2>Not read</h2>\n<ul>\n");
        for (place, why) in errors {
            let _ = writeln!(out, "<li><code>{}</code>: {}</li>", escape(&place), escape(why));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A table under its heading; `above` is HTML between the two. The box that scrolls can be reached with the keyboard.
fn table(out: &mut String, item: &Table, attributes: &str, above: &str) {
    let _ = writeln!(out, "<h2>{}</h2>", escape(item.title));
    if let Some(note) = item.note {
        let _ = writeln!(out, "<p class=\"sub\">{}</p>", escape(note));
    }
    out.push_str(above);
    let label = escape(item.title);
    let _ = writeln!(out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">");
    let _ = write!(out, "<table{attributes}>\n<thead><tr>");
    for cell in &item.header {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(cell));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &item.rows {
        let sum = row.first().is_some_and(|name| name == tables::SUM);
        out.push_str(if sum { "<tr class=\"sum\">" } else { "<tr>" });
        for (index, cell) in row.iter().enumerate() {
            match index {
                0 => {
                    let _ = write!(out, "<th scope=\"row\">{}</th>", escape(cell));
                }
                _ if cell == "0" || cell == "0/0/0/0/0" => {
                    let _ = write!(out, "<td class=\"zero\">{}</td>", escape(cell));
                }
                _ => {
                    let _ = write!(out, "<td>{}</td>", escape(cell));
                }
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
