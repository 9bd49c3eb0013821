//! Figures for a paper: every chart of a run, or of what compares several, as SVG, and the numbers in it as CSV.
//!
//! As wide as one column, text as text, phases as bands, lines that are told apart without colour. Beside the charts of
//! the report there are those that the first published comparison of Varnish and Traffic Server printed, in its form
//! ([`study`]).

mod heat;
mod panel;
mod scale;
mod shape;
mod study;
mod svg;
mod text_width;

use std::io::Write;
use std::path::{Path, PathBuf};

use assay_base::quote::csv::quoted;
use assay_record::dir::RunDir;

use crate::chart::{self, Band, Chart};
use crate::error::ReportError;
use crate::export::write_file;
use crate::summary::Summary;
use panel::FigureLayout;
use shape::Drawing;

/// Width of a column of a paper: 88.9 mm.
const WIDTH: f64 = 252.0;
/// Height of a plot that is alone, and of one of several.
const HEIGHT: f64 = 118.0;
const HEIGHT_OF_SEVERAL: f64 = 74.0;

/// One figure: a chart, or several one above the other.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Name of its files, without an extension; characters that a path must not have are replaced.
    pub name: String,
    /// Title in the list of figures.
    pub title: String,
    pub about: String,
    pub panels: Vec<Chart>,
}

impl Figure {
    /// A chart that is a figure of its own, under its own name.
    pub fn alone(chart: Chart) -> Self {
        Self {
            name: chart.id.to_string(),
            title: chart.title.to_string(),
            about: chart.about.to_string(),
            panels: vec![chart],
        }
    }
}

/// Figures with one time axis.
#[derive(Debug, Clone)]
pub struct FigureSet<'a> {
    pub figures: Vec<Figure>,
    /// Middles of the steps of the time axis, in seconds.
    pub time: &'a [f64],
    pub bands: &'a [Band],
}

/// Draws all charts of a run into a directory: `NAME.svg` and `NAME.csv` of each, and a list of them. Gives
/// back the names.
pub fn write(dir: &RunDir, out: &Path) -> Result<Vec<String>, ReportError> {
    let there = dir.read_partial()?;
    let summary = Summary::from_parts(dir, &there);
    let charts = chart::charts(&summary, &there.series);
    let mut figures = study::figures(&summary, &charts);
    figures.extend(charts.charts.into_iter().map(Figure::alone));
    write_sets(&[FigureSet { figures, time: &charts.time, bands: &charts.phases }], out)
}

/// Draws figures into a directory: `NAME.svg` and `NAME.csv` of each, and `figures.csv`, a list of all. Gives back the names.
pub fn write_sets(sets: &[FigureSet<'_>], out: &Path) -> Result<Vec<String>, ReportError> {
    let cannot = |path: &Path| {
        let path = path.to_owned();
        move |cause| ReportError::Export { path, cause }
    };
    std::fs::create_dir_all(out).map_err(cannot(out))?;
    let mut list = "figure,title,about\n".to_owned();
    let mut names = Vec::new();
    for (set, figure) in sets.iter().flat_map(|set| set.figures.iter().map(move |figure| (set, figure))) {
        let path =
            |extension: &str| -> PathBuf { out.join(format!("{}.{extension}", file_name(&figure.name))) };
        let drawing = draw(figure, set.time, set.bands);
        let (vectors, numbers) = (path("svg"), path("csv"));
        std::fs::write(&vectors, svg::svg(&drawing)).map_err(cannot(&vectors))?;
        write_file(&numbers, |file| write_numbers(figure, set.time, file)).map_err(cannot(&numbers))?;
        let row = [&figure.name, &figure.title, &figure.about].map(|text| quoted(text));
        list.push_str(&format!("{}\n", row.join(",")));
        names.push(figure.name.clone());
    }
    let path = out.join("figures.csv");
    std::fs::write(&path, list).map_err(cannot(&path))?;
    Ok(names)
}

/// A name that is no path.
fn file_name(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    name.chars().map(keep).collect::<String>().trim_start_matches('.').to_owned()
}

fn draw(figure: &Figure, time: &[f64], bands: &[Band]) -> Drawing {
    let mut drawing = Drawing {
        title: figure.title.clone(),
        about: figure.about.clone(),
        width: WIDTH,
        height: 0.0,
        shapes: Vec::new(),
    };
    let height = if figure.panels.len() > 1 { HEIGHT_OF_SEVERAL } else { HEIGHT };
    let mut sheet = FigureLayout { time, bands, left: 0.0, right: WIDTH - 8.0 };
    // All plots begin where the widest marks of any of them end.
    let widest =
        figure.panels.iter().map(|chart| panel::tick_width(&panel::plot(&sheet, chart, 0.0, height)));
    sheet.left = widest.fold(0.0, f64::max) + panel::NORMAL + 9.0;
    let mut top = 3.0;
    for (index, chart) in figure.panels.iter().enumerate() {
        let position = panel::PanelPosition { first: index == 0, last: index + 1 == figure.panels.len() };
        top += panel::legend(&mut drawing, &sheet, chart, top);
        let has_bands =
            matches!(chart.kind, chart::ChartKind::Time | chart::ChartKind::Heat) && !bands.is_empty();
        top += if has_bands && position.first { panel::SMALL + 3.0 } else { 3.0 };
        let plot = panel::plot(&sheet, chart, top, top + height);
        panel::draw(&mut drawing, &sheet, chart, &plot, position);
        top += height + if position.last { panel::x_axis_height(&sheet, chart) } else { 7.0 };
    }
    drawing.height = top.ceil();
    drawing
}

/// Numbers of a figure, a row per point; cells of a heat map have the ends of their row.
fn write_numbers(figure: &Figure, time: &[f64], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "chart,line,x,x_unit,y,y_unit,y_to,count")?;
    for chart in &figure.panels {
        let x_unit = match chart.kind {
            chart::ChartKind::Time | chart::ChartKind::Heat => "s".to_owned(),
            chart::ChartKind::Distribution => "share of requests".to_owned(),
            _ => chart.x_label.clone().unwrap_or_default().into_owned(),
        };
        let [id, x_unit, unit] = [chart.id.as_ref(), x_unit.as_str(), chart.unit.as_ref()].map(quoted);
        for (line, x, y) in panel::points(time, chart) {
            writeln!(out, "{id},{},{},{x_unit},{y},{unit},,", quoted(&line), quoted(&x))?;
        }
        for [at, low, high, count] in chart.heat.iter().flat_map(|heat| heat::cells(time, heat)) {
            writeln!(out, "{id},,{at},{x_unit},{low},{unit},{high},{count}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chart::{ChartKind, ChartLine, Heat, time_chart};

    fn value() -> impl Strategy<Value = Option<f64>> {
        prop_oneof![
            2 => Just(None),
            6 => (0.0..1e4).prop_map(Some),
            1 => any::<f64>().prop_map(Some),
            1 => Just(Some(0.0)),
        ]
    }

    fn kind() -> impl Strategy<Value = ChartKind> {
        let all = [
            ChartKind::Time,
            ChartKind::Scatter,
            ChartKind::Lines,
            ChartKind::Distribution,
            ChartKind::Cdf,
            ChartKind::Heat,
            ChartKind::Bars,
        ];
        prop::sample::select(all.to_vec())
    }

    fn one(kind: ChartKind, log: bool, name: &str, lines: Vec<Vec<Option<f64>>>) -> Chart {
        let heat = Heat {
            y_edges: (0..9).map(|n| 10f64.powi(n - 3)).collect(),
            cells: lines.iter().map(|line| line.iter().map(|v| v.unwrap_or(0.0) as u64).collect()).collect(),
        };
        let lines = lines.into_iter().map(|values| ChartLine {
            x: (kind != ChartKind::Time && kind != ChartKind::Bars).then(|| values.clone()),
            x_names: if kind == ChartKind::Bars {
                values.iter().map(|v| format!("{v:?}")).collect()
            } else {
                Vec::new()
            },
            low: log.then(|| values.clone()),
            high: log.then(|| values.clone()),
            ..ChartLine::new(name, "all", values)
        });
        let mut chart = time_chart("s", "id", name.to_owned(), "ms", "about", lines.collect());
        (chart.kind, chart.log) = (kind, log);
        chart.heat = (kind == ChartKind::Heat).then_some(heat);
        chart
    }

    fn drawn(chart: Chart, time: &[f64], bands: &[Band]) -> Drawing {
        let figure = Figure { name: "f".into(), title: "t".into(), about: "a".into(), panels: vec![chart] };
        draw(&figure, time, bands)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_the_values_a_figure_is_a_figure(
            kind in kind(),
            log in any::<bool>(),
            name in "\\PC{0,12}",
            lines in prop::collection::vec(prop::collection::vec(value(), 0..12), 0..9),
            disturbed in any::<bool>(),
            end in 0.0..1e6f64,
        ) {
            let time: Vec<f64> = (0..12).map(|n| f64::from(n) + 0.5).collect();
            let band = Band { name: name.clone(), start: 0.0, end, disturbed };
            let drawing = drawn(one(kind, log, &name, lines), &time, &[band]);
            let text = svg::svg(&drawing);
            prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            prop_assert!(text.ends_with("</svg>\n"));
            prop_assert!(drawing.height < 2000.0 && drawing.shapes.len() < 5000);
        }
    }

    #[test]
    fn nothing_and_a_single_point_are_drawn_too() {
        for values in [vec![], vec![None], vec![Some(3.0)]] {
            let time: Vec<f64> = values.iter().map(|_| 0.5).collect();
            let single = values == [Some(3.0)];
            let drawing = drawn(one(ChartKind::Time, false, "x", vec![values]), &time, &[]);
            let dots =
                drawing.shapes.iter().filter(|shape| matches!(shape, shape::Shape::Dot { .. })).count();
            assert_eq!(dots, usize::from(single));
        }
    }

    #[test]
    fn a_name_is_never_a_path() {
        assert_eq!(file_name("../a/b c"), "-a-b-c");
        assert_eq!(file_name("response-p99"), "response-p99");
    }
}
