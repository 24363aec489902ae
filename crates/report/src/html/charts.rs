//! Charts as SVG inside the page.
//!
//! The drawing carries marker colours; the style sheet gives each its colour in the light and in the dark theme. Texts
//! in a drawing are our own: names that come from files stand in the caption, where the template escapes them. Every
//! chart has its figures as a table, too.

use lanescope_analysis::words::count;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Text.
const INK: RGBColor = RGBColor(1, 1, 1);
/// Grid.
const GRID: RGBColor = RGBColor(2, 2, 2);
/// Bars, the roof of bandwidth.
const COOL: RGBColor = RGBColor(3, 3, 3);
/// What to look at.
const HOT: RGBColor = RGBColor(4, 4, 4);
/// Axes.
const EDGE: RGBColor = RGBColor(5, 5, 5);

/// Values up to which each has its own bar.
const SINGLE: u64 = 48;
/// Bars otherwise.
const BARS: u64 = 32;

const SIZE: (u32, u32) = (560, 230);

/// A chart and its figures.
pub(super) struct Chart {
    /// What it shows.
    pub title: String,
    /// The same in a sentence, for who cannot see it.
    pub summary: String,
    /// The drawing.
    pub svg: String,
    /// Headings of the table.
    pub columns: Vec<&'static str>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// A bar: least and greatest value in it, how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub low: i64,
    pub high: i64,
    pub n: u64,
}

impl Bar {
    fn range(self) -> String {
        if self.low == self.high { self.low.to_string() } else { format!("{} to {}", self.low, self.high) }
    }
}

/// Bars of equal width for values and their frequencies, ascending. Without gaps: values that do not occur count 0.
pub(super) fn bars(values: &[(u64, u64)]) -> Vec<Bar> {
    let values = || values.iter().filter(|v| v.1 > 0);
    let (Some(low), Some(high)) = (values().map(|v| v.0).min(), values().map(|v| v.0).max()) else { return Vec::new() };
    let width = if high - low < SINGLE { 1 } else { ((high - low) / BARS).saturating_add(1) };
    let n = (high - low) / width + 1;
    let signed = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    let mut list: Vec<Bar> = (0..n)
        .map(|i| low.saturating_add(i.saturating_mul(width)))
        .map(|first| Bar { low: signed(first), high: signed(first.saturating_add(width - 1)), n: 0 })
        .collect();
    for &(v, times) in values() {
        if let Some(bar) = list.get_mut(((v - low) / width) as usize) {
            bar.n = bar.n.saturating_add(times);
        }
    }
    list
}

/// A histogram. `what` are the values, `whom` those that are counted; nothing if there is less than two bars.
pub(super) fn histogram(title: String, what: &'static str, whom: &'static str, bars: &[Bar]) -> Option<Chart> {
    if bars.len() < 2 {
        return None;
    }
    let most = bars.iter().max_by_key(|b| b.n)?;
    let sum = bars.iter().fold(0u64, |n, b| n.saturating_add(b.n));
    let summary = format!(
        "Histogram of {what}: {} {whom}, from {} to {}; most often {} ({}).",
        count(sum),
        bars.first()?.low,
        bars.last()?.high,
        most.range(),
        count(most.n)
    );
    let svg = draw(SIZE, |root| {
        // Bars of equal width; a label names the values of a bar.
        let mut chart = ChartBuilder::on(root)
            .margin(6)
            .margin_right(14)
            .x_label_area_size(38)
            .y_label_area_size(62)
            .build_cartesian_2d((0..bars.len() - 1).into_segmented(), 0f64..most.n.max(1) as f64 * 1.05)?;
        let name = |x: &SegmentValue<usize>| match x {
            SegmentValue::CenterOf(at) => bars.get(*at).map_or_else(String::new, |b| b.low.to_string()),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .axis_style(EDGE)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", 14, &INK))
            .x_labels(bars.len().min(12))
            .y_labels(5)
            .x_label_formatter(&name)
            .y_label_formatter(&|y| whole(*y))
            .x_desc(what)
            .y_desc(whom)
            .draw()?;
        chart.draw_series(bars.iter().enumerate().map(|(i, b)| {
            let (left, right) = (SegmentValue::Exact(i), SegmentValue::Exact(i + 1));
            let mut bar = Rectangle::new([(left, 0.0), (right, b.n as f64)], COOL.filled());
            bar.set_margin(0, 0, 1, 1);
            bar
        }))?;
        Ok(())
    })?;
    let rows = bars.iter().filter(|b| b.n > 0).map(|b| vec![b.range(), count(b.n)]).collect();
    Some(Chart { title, summary, svg, columns: vec![what, whom], rows })
}

/// A whole number, or nothing between them.
fn whole(y: f64) -> String {
    if y.fract().abs() > 1e-9 { String::new() } else { count(y as u64) }
}

/// Points and lines on two logarithmic axes.
pub(super) struct Roof {
    /// Warp instructions a second, at most.
    pub issue: f64,
    /// Bytes a second from device memory, at most.
    pub memory: f64,
    /// Warp instructions for each byte, lowest and highest estimate.
    pub intensity: (f64, f64),
    /// Warp instructions a second that come out, lowest and highest estimate.
    pub rate: (f64, f64),
}

/// The roofline: how many warp instructions a second the machine allows a launch that issues so many for each byte, and
/// where this launch is.
pub(super) fn roofline(title: String, summary: String, roof: &Roof) -> Option<Chart> {
    let usable = |x: f64| x.is_finite() && x > 0.0;
    let all = [roof.issue, roof.memory, roof.intensity.0, roof.intensity.1, roof.rate.0, roof.rate.1];
    if !all.into_iter().all(usable) {
        return None;
    }
    let ridge = roof.issue / roof.memory;
    let decade = |x: f64, up: bool| 10f64.powf(if up { x.log10().ceil() } else { x.log10().floor() });
    let (left, right) =
        (decade(roof.intensity.0.min(ridge) / 2.0, false), decade(roof.intensity.1.max(ridge) * 2.0, true));
    let (low, high) =
        (decade(roof.rate.0.min(left * roof.memory).max(roof.issue / 1e6), false), decade(roof.issue * 1.5, true));
    let svg = draw((640, 320), |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(8)
            .margin_right(16)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d((left..right).log_scale(), (low..high).log_scale())?;
        chart
            .configure_mesh()
            .axis_style(EDGE)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", 14, &INK))
            .x_label_formatter(&|x| power(*x))
            .y_label_formatter(&|y| power(*y / 1e9))
            .x_desc("warp instructions for each byte of device memory")
            .y_desc("1e9 warp instr. a second")
            .draw()?;
        let start = (low / roof.memory).max(left);
        let line = vec![(start, start * roof.memory), (ridge, roof.issue), (right, roof.issue)];
        chart.draw_series(std::iter::once(PathElement::new(line, COOL.stroke_width(2))))?;
        // A launch that is not known exactly is a box; one that is would be invisible without its cross.
        let (x, y) = (roof.intensity, roof.rate);
        chart.draw_series(std::iter::once(Rectangle::new([(x.0, y.0), (x.1, y.1)], HOT.mix(0.35).filled())))?;
        chart.draw_series(std::iter::once(Rectangle::new([(x.0, y.0), (x.1, y.1)], HOT.stroke_width(2))))?;
        let middle = ((x.0 * x.1).sqrt(), (y.0 * y.1).sqrt());
        let across = [vec![(middle.0, y.0), (middle.0, y.1)], vec![(x.0, middle.1), (x.1, middle.1)]];
        chart.draw_series(across.map(|line| PathElement::new(line, HOT.stroke_width(2))))?;
        chart.draw_series(std::iter::once(Circle::new(middle, 4, HOT.filled())))?;
        let text = ("sans-serif", 14, &INK).into_text_style(root);
        let label = |at: (f64, f64), by: (i32, i32), words: &'static str| {
            EmptyElement::at(at) + Text::new(words, by, text.clone())
        };
        let along = (start * ridge).sqrt();
        chart.draw_series([
            label((ridge, roof.issue), (0, -18), "issue slots"),
            label((along, along * roof.memory), (10, 4), "memory bandwidth"),
            label((x.0, y.1), (0, -20), "this launch"),
        ])?;
        Ok(())
    })?;
    Some(Chart { title, summary, svg, columns: Vec::new(), rows: Vec::new() })
}

fn power(x: f64) -> String {
    if (0.001..100_000.0).contains(&x) {
        let digits = (-x.log10().floor()).clamp(0.0, 3.0) as usize;
        format!("{x:.digits$}")
    } else {
        format!("{x:.0e}")
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The SVG that `paint` draws, to stand inside HTML.
fn draw(size: (u32, u32), paint: impl FnOnce(&Area<'_>) -> Drawn) -> Option<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        paint(&root).ok()?;
        root.present().ok()?;
    }
    // Inside HTML a drawing needs no name space.
    Some(svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_hold_every_value_once() {
        assert_eq!(
            bars(&[(3, 1), (5, 2)]),
            [3, 4, 5].map(|v| Bar { low: v, high: v, n: [0, 0, 0, 1, 0, 2][v as usize] })
        );
        assert!(bars(&[(3, 0)]).is_empty());
        arbtest::arbtest(|u| {
            let values: Vec<(u64, u16)> = u.arbitrary()?;
            let values: Vec<(u64, u64)> = values.into_iter().map(|(v, n)| (v, n.into())).collect();
            let list = bars(&values);
            assert!(list.len() <= SINGLE as usize);
            assert_eq!(list.iter().map(|b| b.n).sum::<u64>(), values.iter().map(|v| v.1).sum::<u64>());
            Ok(())
        })
        .budget_ms(300);
    }

    #[test]
    fn charts_are_drawn() {
        let chart = histogram("t".into(), "turns", "threads", &bars(&[(1, 10), (4, 1)])).unwrap();
        assert!(chart.svg.starts_with("<svg") && chart.svg.contains("<rect") && !chart.svg.contains("http"));
        assert_eq!(chart.rows, [["1", "10"], ["4", "1"]]);
        assert!(histogram("t".into(), "turns", "threads", &bars(&[(4, 1)])).is_none());
        let roof = Roof { issue: 1e12, memory: 4.8e12, intensity: (0.01, 0.02), rate: (1e10, 5e10) };
        let chart = roofline("t".into(), "s".into(), &roof).unwrap();
        assert!(chart.svg.contains("#040404") && chart.svg.contains("#030303"));
        assert!(roofline("t".into(), "s".into(), &Roof { memory: 0.0, ..roof }).is_none());
    }
}
