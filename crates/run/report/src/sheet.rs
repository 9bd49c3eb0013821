//! A page from a [`Sheet`]: what an access log says, where the limit of a target is.

use assay_record::sheet::{Plot, PlotKind, Section, Sheet, Table, Tile};
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use crate::chart::alt_text::alt_text;
use crate::chart::{Band, Chart, ChartKind, ChartLine, Charts, short, time_chart};
use crate::error::ReportError;
use crate::html::{ChartHead, MACROS, SCRIPT, STYLE, UPLOT, UPLOT_STYLE, embedded_json};
use assay_base::quote::visible::visible;

const TEMPLATE: &str = include_str!("../assets/sheet.html");
const OWN_STYLE: &str = include_str!("../assets/sheet.css");

/// Data of the template.
#[derive(Serialize)]
struct SheetPage<'a> {
    title: &'a str,
    eyebrow: &'a str,
    lead: &'a [String],
    tiles: &'a [Tile],
    sections: Vec<SectionView<'a>>,
    /// Some charts have a time axis.
    timed: bool,
    footer: &'a str,
    version: &'static str,
    /// Our own text, as the two that follow: not escaped.
    style: Value,
    script: Value,
    data: Value,
}

#[derive(Serialize)]
struct SectionView<'a> {
    id: &'a str,
    title: &'a str,
    charts: Vec<ChartHead<'a>>,
    tables: &'a [Table],
    words: &'a [String],
}

/// The page as one HTML file that needs no network.
pub fn page(sheet: &Sheet) -> Result<String, ReportError> {
    let template = [MACROS, TEMPLATE].concat();
    let mut environment = Environment::new();
    // The name's ending turns escaping on.
    environment.add_template("sheet.html", &template)?;
    let charts = charts(sheet);
    let page = SheetPage {
        title: &sheet.title,
        eyebrow: &sheet.eyebrow,
        lead: &sheet.lead,
        tiles: &sheet.tiles,
        sections: sheet.sections.iter().map(|section| view(section, &charts)).collect(),
        timed: charts.charts.iter().any(|chart| chart.kind == ChartKind::Time),
        footer: &sheet.footer,
        version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}\n{OWN_STYLE}")),
        script: Value::from_safe_string(format!("{UPLOT}\n{SCRIPT}")),
        data: Value::from_safe_string(embedded_json(&charts)?),
    };
    Ok(visible(environment.get_template("sheet.html")?.render(Serde(page))?))
}

fn view<'a>(section: &'a Section, charts: &'a Charts) -> SectionView<'a> {
    let drawn =
        section.plots.iter().filter_map(|plot| charts.charts.iter().find(|chart| chart.id == plot.id));
    let heads = drawn.map(|chart| ChartHead {
        id: &chart.id,
        title: &chart.title,
        about: &chart.about,
        unit: &chart.unit,
        // Points are in a table of the sheet.
        alt_text: (!matches!(chart.kind, ChartKind::Scatter | ChartKind::Lines))
            .then(|| alt_text(chart, &charts.time, &charts.phases))
            .flatten(),
    });
    SectionView {
        id: section.id,
        title: &section.title,
        charts: heads.collect(),
        tables: &section.tables,
        words: &section.words,
    }
}

/// Data of the page's script.
fn charts(sheet: &Sheet) -> Charts {
    let axis = sheet.time.clone().unwrap_or_default();
    let span = |(name, start, end): (String, f64, f64)| Band { name, start, end, disturbed: false };
    let plots =
        sheet.sections.iter().flat_map(|section| section.plots.iter().map(move |plot| (section, plot)));
    Charts {
        phases: axis.spans.into_iter().map(span).collect(),
        step_s: axis.step_s,
        time: axis.middle_s,
        charts: plots.map(|(section, plot)| chart(section, plot)).collect(),
    }
}

fn chart(section: &Section, plot: &Plot) -> Chart {
    let numbers = |values: &[Option<f64>]| values.iter().map(|value| value.map(short)).collect::<Vec<_>>();
    let lines = plot.lines.iter().map(|line| ChartLine {
        x: (plot.kind != PlotKind::Time).then(|| line.x.iter().map(|x| Some(short(*x))).collect()),
        low: (!line.low.is_empty()).then(|| numbers(&line.low)),
        high: (!line.high.is_empty()).then(|| numbers(&line.high)),
        ..ChartLine::new(&line.name, line.role, numbers(&line.values))
    });
    let chart = time_chart(
        section.title.clone(),
        plot.id,
        plot.title.clone(),
        plot.unit.clone(),
        plot.about.clone(),
        lines.collect(),
    );
    let kind = match plot.kind {
        PlotKind::Time => ChartKind::Time,
        PlotKind::Points => ChartKind::Scatter,
        PlotKind::Lines => ChartKind::Lines,
        PlotKind::Cumulative => ChartKind::Cdf,
    };
    let x_label = (plot.kind != PlotKind::Time).then(|| plot.x_label.clone().into());
    Chart { kind, log: plot.log, x_label, ..chart }
}

#[cfg(test)]
mod tests {
    use assay_record::sheet::{PlotLine, Row, TimeAxis};

    use super::*;

    #[test]
    fn everything_of_a_sheet_is_on_its_page_and_nothing_can_break_out_of_it() {
        let line = |x: Vec<f64>| PlotLine {
            name: "<b>".into(),
            role: "all",
            x,
            values: vec![Some(1.0), None],
            ..PlotLine::default()
        };
        let plot =
            |id, kind, x| Plot { id, title: "Rate".into(), kind, lines: vec![line(x)], ..Plot::default() };
        let row = Row { name: "<script>".into(), share: Some(50.0), cells: vec!["7 & 8".into()] };
        let table =
            Table { title: "Kinds".into(), heads: vec!["n".into()], rows: vec![row], ..Table::default() };
        let sheet = Sheet {
            title: "A </title>".into(),
            tiles: vec![Tile { title: "Peak".into(), value: "12".into(), detail: String::new() }],
            sections: vec![Section {
                id: "rates",
                title: "Rates".into(),
                plots: vec![
                    plot("over-time", PlotKind::Time, vec![]),
                    plot("points", PlotKind::Points, vec![1.0, 2.0]),
                ],
                tables: vec![table],
                words: vec!["a < b".into()],
            }],
            time: Some(TimeAxis { step_s: 1.0, middle_s: vec![0.5, 1.5], spans: Vec::new() }),
            ..Sheet::default()
        };
        let page = page(&sheet).unwrap();
        for part in
            ["A &lt;&#x2f;title&gt;", "&lt;script&gt;", "7 &amp; 8", "a &lt; b", "id=\"chart-points\""]
        {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(page.contains("\\u003cb\\u003e"), "names in the script's numbers are escaped");
        assert!(page.contains("id=\"theme\"") && page.contains("id=\"data\""));
    }
}
