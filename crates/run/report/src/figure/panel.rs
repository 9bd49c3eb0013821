//! One chart, drawn: axes, phases, lines, dots, bars.

use super::heat;
use super::scale::{AxisScale, ScaleKind, drawable};
use super::shape::{Anchor, BAND, Colour, Drawing, GRID, INK, SOFT, Shape};
use super::text_width::text_width;
use crate::chart::{Band, Chart, ChartKind, ChartLine};

/// Sizes of type, in points.
pub(super) const SMALL: f64 = 6.0;
pub(super) const NORMAL: f64 = 7.0;
const LINE_WIDTH: f64 = 0.9;

/// Layout that all panels of a figure share.
pub(super) struct FigureLayout<'a> {
    /// Middle of every step, in seconds.
    pub time: &'a [f64],
    pub bands: &'a [Band],
    /// Left and right end of all plots.
    pub left: f64,
    pub right: f64,
}

/// Unit of the time axis: name and length in seconds.
pub(super) fn time_unit(time: &[f64], bands: &[Band]) -> (&'static str, f64) {
    let end = time.iter().copied().chain(bands.iter().map(|band| band.end)).fold(0.0, f64::max);
    if end > 180.0 { ("min", 60.0) } else { ("s", 1.0) }
}

/// The two axes of a panel and where it lies.
pub(super) struct PlotArea {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub x: AxisScale,
    pub y: AxisScale,
    /// Divisor of values on the x axis.
    pub x_unit: f64,
}

impl PlotArea {
    pub(super) fn x(&self, value: f64) -> Option<f64> {
        Some(self.left + self.x.position(value / self.x_unit)? * (self.right - self.left))
    }

    pub(super) fn y(&self, value: f64) -> Option<f64> {
        Some(self.bottom - self.y.position(value)? * (self.bottom - self.top))
    }

    fn point(&self, x: Option<f64>, y: Option<f64>) -> Option<(f64, f64)> {
        Some((self.x(x?)?, self.y(y?)?))
    }
}

/// The axes that a chart needs.
pub(super) fn plot(sheet: &FigureLayout<'_>, chart: &Chart, top: f64, bottom: f64) -> PlotArea {
    let overtime = matches!(chart.kind, ChartKind::Time | ChartKind::Heat);
    let x_unit = if overtime { time_unit(sheet.time, sheet.bands).1 } else { 1.0 };
    let xs = chart.lines.iter().filter_map(|line| line.x.as_ref()).flatten().flatten().copied();
    let x = match chart.kind {
        ChartKind::Time | ChartKind::Heat => {
            let ends = sheet.time.iter().copied().chain(sheet.bands.iter().map(|band| band.end));
            AxisScale::new(ScaleKind::Linear, ends.map(|seconds| seconds / x_unit), 6, true)
        }
        ChartKind::Scatter | ChartKind::Lines => AxisScale::new(ScaleKind::Linear, xs, 5, false),
        ChartKind::Distribution => AxisScale::new(ScaleKind::Tail, xs, 5, false),
        ChartKind::Cdf => AxisScale::new(ScaleKind::Log, xs, 5, false),
        ChartKind::Bars => {
            AxisScale::new(ScaleKind::Linear, std::iter::once(bar_names(chart).len() as f64), 1, true)
        }
    };
    let y_kind = if chart.log && chart.kind != ChartKind::Cdf { ScaleKind::Log } else { ScaleKind::Linear };
    let heights: Vec<f64> = match &chart.heat {
        Some(heat) => heat::edges(heat),
        None => {
            let ranges = |line: &ChartLine| {
                [line.low.clone(), line.high.clone()]
                    .into_iter()
                    .flatten()
                    .flatten()
                    .flatten()
                    .collect::<Vec<_>>()
            };
            let values = chart.lines.iter().flat_map(|line| line.values.iter().flatten().copied());
            values.chain(chart.lines.iter().flat_map(ranges)).collect()
        }
    };
    let y = AxisScale::new(y_kind, heights.into_iter(), 4, false);
    PlotArea { left: sheet.left, right: sheet.right, top, bottom, x, y, x_unit }
}

fn bar_names(chart: &Chart) -> &[String] {
    chart.lines.iter().map(|line| line.x_names.as_slice()).max_by_key(|names| names.len()).unwrap_or_default()
}

/// Colours that are told apart by everybody (after Okabe and Ito), and in grey by their strokes.
fn colour(role: &str, index: usize) -> Colour {
    const ROW: [Colour; 8] = [
        Colour(0x00, 0x72, 0xb2),
        Colour(0xd5, 0x5e, 0x00),
        Colour(0x00, 0x9e, 0x73),
        Colour(0xcc, 0x79, 0xa7),
        Colour(0x00, 0x00, 0x00),
        Colour(0x56, 0xb4, 0xe9),
        Colour(0xe6, 0x9f, 0x00),
        Colour(0x59, 0x59, 0x59),
    ];
    let place = match role {
        "all" | "p90" => 0,
        "miss" | "error" | "max" => 1,
        "hit" => 2,
        "origin" | "p999" => 3,
        "ideal" | "p99" => 4,
        "accent" | "p50" => 5,
        "proxy" => 6,
        "offered" | "soft" => 7,
        series => series.strip_prefix('s').and_then(|n| n.parse().ok()).unwrap_or(index),
    };
    ROW[place % ROW.len()]
}

/// The stroke of the n-th line: what is only compared with is finely dashed, of the others the first is whole.
fn dash(chart: &Chart, index: usize) -> Vec<f64> {
    let dashes: [&[f64]; 6] =
        [&[], &[4.0, 1.4], &[1.2, 1.2], &[6.0, 1.4, 1.2, 1.4], &[2.4, 1.2], &[8.0, 2.0, 2.0, 2.0]];
    if chart.lines.get(index).is_some_and(|line| line.dashed) {
        return vec![2.0, 1.8];
    }
    let whole = chart.lines.iter().take(index).filter(|line| !line.dashed).count();
    dashes[whole % dashes.len()].to_vec()
}

/// Position of a panel in its figure: the first names the phases, the last bears the x axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct PanelPosition {
    pub first: bool,
    pub last: bool,
}

/// Draws a chart between `plot.top` and `plot.bottom`.
pub(super) fn draw(
    drawing: &mut Drawing,
    sheet: &FigureLayout<'_>,
    chart: &Chart,
    plot: &PlotArea,
    place: PanelPosition,
) {
    if matches!(chart.kind, ChartKind::Time | ChartKind::Heat) {
        bands(drawing, sheet, plot, place.first);
    }
    if let Some(heat) = &chart.heat {
        heat::draw(drawing, sheet, heat, plot);
    }
    y_axis(drawing, chart, plot);
    if chart.kind == ChartKind::Bars {
        bars(drawing, chart, plot);
    } else if place.last {
        x_axis(drawing, sheet, chart, plot);
    }
    if !matches!(chart.kind, ChartKind::Bars | ChartKind::Heat) {
        for (index, line) in chart.lines.iter().enumerate() {
            draw_line(drawing, sheet, chart, plot, index, line);
        }
    }
    drawing.line((plot.left, plot.bottom), (plot.right, plot.bottom), 0.6, INK);
}

/// Phases: every other one is grey, one that could have been shaped by Assay is hatched, and each has its name where
/// there is room.
fn bands(drawing: &mut Drawing, sheet: &FigureLayout<'_>, plot: &PlotArea, named: bool) {
    for (index, band) in sheet.bands.iter().enumerate() {
        let (Some(from), Some(to)) = (plot.x(band.start), plot.x(band.end)) else { continue };
        if to <= from {
            continue;
        }
        let (width, height) = (to - from, plot.bottom - plot.top);
        if index % 2 == 0 {
            drawing.shapes.push(Shape::Rect { x: from, y: plot.top, width, height, colour: BAND });
        }
        if band.disturbed {
            hatch(drawing, plot, from, to);
        }
        if !named {
            continue;
        }
        if text_width(&band.name, SMALL) <= width - 1.0 {
            drawing.text((f64::midpoint(from, to), plot.top - 2.0), SMALL, Anchor::Middle, SOFT, &band.name);
        } else if width >= SMALL + 0.5 && text_width(&band.name, SMALL) <= height {
            let at = (f64::midpoint(from, to) + SMALL * 0.35, plot.top + 2.0);
            drawing.vertical_text(at, SMALL, Anchor::End, SOFT, &band.name);
        }
    }
}

fn hatch(drawing: &mut Drawing, plot: &PlotArea, left: f64, right: f64) {
    let (top, bottom) = (plot.top, plot.bottom);
    const APART: f64 = 4.0;
    let mut stretches = Vec::new();
    let mut foot = left - (bottom - top);
    while foot < right {
        // From the foot on the lower edge, up to the right at 45 degrees, cut at the sides.
        let (from, to) = (foot.max(left), (foot + bottom - top).min(right));
        if to > from {
            stretches.push(vec![(from, bottom - (from - foot)), (to, bottom - (to - foot))]);
        }
        foot += APART;
    }
    let colour = Colour(0xd5, 0x5e, 0x00).with_opacity(0.5);
    drawing.shapes.push(Shape::Lines { stretches, width: 0.4, colour, dash: Vec::new() });
}

fn y_axis(drawing: &mut Drawing, chart: &Chart, plot: &PlotArea) {
    let mut widest = 0.0f64;
    for (value, text) in &plot.y.ticks {
        let Some(y) = plot.y(*value) else { continue };
        if chart.kind != ChartKind::Heat {
            drawing.line((plot.left, y), (plot.right, y), 0.4, GRID);
        }
        drawing.line((plot.left - 2.0, y), (plot.left, y), 0.6, INK);
        drawing.text((plot.left - 3.5, y + SMALL * 0.36), SMALL, Anchor::End, INK, text);
        widest = widest.max(text_width(text, SMALL));
    }
    drawing.line((plot.left, plot.top), (plot.left, plot.bottom), 0.6, INK);
    let unit = if chart.kind == ChartKind::Cdf { "% of requests" } else { &chart.unit };
    let whole = match (chart.title.as_ref(), unit) {
        (title, "") => title.to_owned(),
        ("", unit) => unit.to_owned(),
        (title, unit) => format!("{title}, {unit}"),
    };
    let fits = text_width(&whole, NORMAL) <= plot.bottom - plot.top + 14.0;
    let text = if fits || unit.is_empty() { &whole } else { unit };
    let middle = f64::midpoint(plot.top, plot.bottom);
    drawing.vertical_text((NORMAL + 1.0, middle), NORMAL, Anchor::Middle, INK, text);
}

fn x_axis(drawing: &mut Drawing, sheet: &FigureLayout<'_>, chart: &Chart, plot: &PlotArea) {
    let mut free_from = f64::NEG_INFINITY;
    for (value, text) in &plot.x.ticks {
        let Some(x) = plot.x(*value * plot.x_unit) else { continue };
        drawing.line((x, plot.bottom), (x, plot.bottom + 2.0), 0.6, INK);
        let half = text_width(text, SMALL) / 2.0;
        if x - half >= free_from {
            drawing.text((x, plot.bottom + 3.0 + SMALL), SMALL, Anchor::Middle, INK, text);
            free_from = x + half + 3.0;
        }
    }
    let text = match chart.kind {
        ChartKind::Time | ChartKind::Heat => format!("time, {}", time_unit(sheet.time, sheet.bands).0),
        ChartKind::Distribution => "share of requests, %".to_owned(),
        _ => chart.x_label.clone().unwrap_or(chart.unit.clone()).into_owned(),
    };
    let at = (f64::midpoint(plot.left, plot.right), plot.bottom + 5.0 + SMALL + NORMAL);
    drawing.text(at, NORMAL, Anchor::Middle, INK, &text);
}

/// The x values of a line: its own, or time.
fn xs<'a>(sheet: &'a FigureLayout<'_>, line: &'a ChartLine) -> Box<dyn Iterator<Item = Option<f64>> + 'a> {
    match &line.x {
        Some(own) => Box::new(own.iter().copied()),
        None => Box::new(sheet.time.iter().map(|seconds| Some(*seconds))),
    }
}

fn draw_line(
    drawing: &mut Drawing,
    sheet: &FigureLayout<'_>,
    chart: &Chart,
    plot: &PlotArea,
    index: usize,
    line: &ChartLine,
) {
    let colour = colour(line.role, index);
    if let (Some(low), Some(high)) = (&line.low, &line.high) {
        let along = |edge: &[Option<f64>]| -> Vec<(f64, f64)> {
            xs(sheet, line).zip(edge).filter_map(|(x, y)| plot.point(x, *y)).collect()
        };
        let mut outline = along(high);
        outline.extend(along(low).into_iter().rev());
        drawing.shapes.push(Shape::Area { outline, colour: colour.with_opacity(0.2) });
    }
    let points: Vec<Option<(f64, f64)>> =
        xs(sheet, line).zip(&line.values).map(|(x, y)| plot.point(x, *y)).collect();
    if chart.kind == ChartKind::Scatter || line.points {
        let radius = if points.len() > 300 { 0.7 } else { 1.1 };
        let dots = points.into_iter().flatten();
        drawing.shapes.extend(dots.map(|(x, y)| Shape::Dot { x, y, radius, colour }));
        return;
    }
    // A point between two gaps would be no line at all.
    for (n, point) in points.iter().enumerate() {
        let alone = |other: Option<&Option<(f64, f64)>>| other.is_none_or(Option::is_none);
        if let Some((x, y)) = point
            && (n == 0 || alone(points.get(n - 1)))
            && alone(points.get(n + 1))
        {
            drawing.shapes.push(Shape::Dot { x: *x, y: *y, radius: 1.0, colour });
        }
    }
    let stretches: Vec<Vec<(f64, f64)>> = points
        .split(Option::is_none)
        .filter(|stretch| stretch.len() > 1)
        .map(|stretch| stretch.iter().copied().flatten().collect())
        .collect();
    if !stretches.is_empty() {
        drawing.shapes.push(Shape::Lines { stretches, width: LINE_WIDTH, colour, dash: dash(chart, index) });
    }
}

/// Groups of bars; a bar of a logarithmic axis begins at its low end.
fn bars(drawing: &mut Drawing, chart: &Chart, plot: &PlotArea) {
    let names = bar_names(chart);
    let room = (plot.right - plot.left) / names.len().max(1) as f64;
    let wide = (room * 0.8 / chart.lines.len().max(1) as f64).min(28.0);
    let base = plot.y(0.0).unwrap_or(plot.bottom);
    let upright = names.iter().any(|name| text_width(name, SMALL) > room - 2.0);
    for (group, name) in names.iter().enumerate() {
        let middle = plot.left + room * (group as f64 + 0.5);
        for (index, line) in chart.lines.iter().enumerate() {
            let Some(top) = line.values.get(group).copied().flatten().and_then(|value| plot.y(value)) else {
                continue;
            };
            let x = middle + wide * (index as f64 - chart.lines.len() as f64 / 2.0);
            let (y, height) = (top.min(base), (base - top).abs());
            let colour = colour(line.role, index);
            drawing.shapes.push(Shape::Rect { x, y, width: wide * 0.92, height, colour });
        }
        if upright {
            let at = (middle + SMALL * 0.35, plot.bottom + 3.0);
            drawing.vertical_text(at, SMALL, Anchor::End, INK, name);
        } else {
            drawing.text((middle, plot.bottom + 3.0 + SMALL), SMALL, Anchor::Middle, INK, name);
        }
    }
}

/// Height of the x axis below the plot.
pub(super) fn x_axis_height(sheet: &FigureLayout<'_>, chart: &Chart) -> f64 {
    if chart.kind != ChartKind::Bars {
        return 8.0 + SMALL + NORMAL;
    }
    let room = (sheet.right - sheet.left) / bar_names(chart).len().max(1) as f64;
    let widest = bar_names(chart).iter().map(|name| text_width(name, SMALL)).fold(0.0, f64::max);
    if widest > room - 2.0 { widest + 6.0 } else { 6.0 + SMALL }
}

/// The names of the lines with a piece of each, in rows from `top` on; says how high that is.
pub(super) fn legend(drawing: &mut Drawing, sheet: &FigureLayout<'_>, chart: &Chart, top: f64) -> f64 {
    const PIECE: f64 = 11.0;
    if chart.kind == ChartKind::Heat {
        return heat::legend(drawing, sheet, chart, top);
    }
    if chart.lines.len() < 2 {
        return 0.0;
    }
    let (mut x, mut y) = (sheet.left, top + NORMAL);
    for (index, line) in chart.lines.iter().enumerate() {
        let width = PIECE + 3.0 + text_width(&line.name, NORMAL) + 9.0;
        if x > sheet.left && x + width - 9.0 > sheet.right {
            (x, y) = (sheet.left, y + NORMAL + 2.5);
        }
        let (colour, middle) = (colour(line.role, index), y - NORMAL * 0.35);
        if chart.kind == ChartKind::Bars {
            drawing.shapes.push(Shape::Rect { x: x + 3.0, y: middle - 2.5, width: 6.0, height: 5.0, colour });
        } else if chart.kind == ChartKind::Scatter || line.points {
            drawing.shapes.push(Shape::Dot { x: x + PIECE / 2.0, y: middle, radius: 1.4, colour });
        } else {
            let stretches = vec![vec![(x, middle), (x + PIECE, middle)]];
            drawing.shapes.push(Shape::Lines {
                stretches,
                width: LINE_WIDTH,
                colour,
                dash: dash(chart, index),
            });
        }
        drawing.text((x + PIECE + 3.0, y), NORMAL, Anchor::Start, INK, &line.name);
        x += width;
    }
    y - top + 4.0
}

/// Width of the labels of the y axis.
pub(super) fn tick_width(plot: &PlotArea) -> f64 {
    plot.y.ticks.iter().map(|(_, text)| text_width(text, SMALL)).fold(0.0, f64::max)
}

/// All points of a chart, for the table beside the figure: line, x, y.
pub(super) fn points(time: &[f64], chart: &Chart) -> Vec<(String, String, f64)> {
    let mut points = Vec::new();
    for line in &chart.lines {
        for (index, value) in line.values.iter().enumerate() {
            let Some(value) = value.and_then(drawable) else { continue };
            let own = |xs: &Vec<Option<f64>>| xs.get(index).copied().flatten();
            let x = match (&line.x, line.x_names.get(index)) {
                (Some(xs), _) => own(xs).map(|x| x.to_string()),
                (None, Some(name)) => Some(name.clone()),
                (None, None) => time.get(index).map(ToString::to_string),
            };
            points.extend(x.map(|x| (line.name.clone(), x, value)));
        }
    }
    points
}
