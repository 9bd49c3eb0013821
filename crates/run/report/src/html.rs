//! The report as one HTML file that needs no network.
//!
//! # The page
//!
//! *Sheets.* Pages other than a run's report (an access log's analysis, the search for a limit) are `record::sheet::Sheet`, filled in by the
//! code that has the numbers and rendered by `report::sheet`.
//!
//! *Charts* (`report::chart`) are numbers and text; the page's script, that of a comparison and the figures draw the same type. Each
//! chart is also rendered as a sentence and a table (`chart::alt_text`), from the same data. The script is assembled from the files in
//! `assets/page/`; all pages share it. The visible range (`view.js`) belongs to a time axis, never to a chart. No page loads anything
//! from the network, except one that is *live*: `html::page` with `Live` marks it `<html data-live="URL">`, and it then fetches that
//! URL every few seconds, replaces its sections and numbers, keeps zoom, scroll, focus, theme and open sections, and stops at a page
//! with `data-ended`.

use std::path::PathBuf;

use assay_measurement::error_kind::ErrorExample;
use assay_measurement::measured::Series;
use assay_record::dir::RunDir;
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use crate::cache_logs;
use crate::chart::alt_text::{AltText, alt_text};
use crate::chart::{self, Charts};
use crate::error::ReportError;
use crate::format;
use crate::hierarchy;
use crate::own;
use crate::own::tables::CalibrationView;
use crate::own::text::DoubtView;
use crate::page;
use crate::summary::{Mood, Summary, Topic};
use crate::terminal;
use crate::text;
use assay_base::quote::visible::visible;

// Statics: of a constant, each crate that uses it has a copy in the program.

/// Parts of every page: template macros, style sheet, the script that draws charts, and uPlot.
pub static MACROS: &str = include_str!("../assets/macros.html");
/// The look of every page.
pub static STYLE: &str = include_str!("../assets/report.css");
/// The script that draws charts.
pub static SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("../assets/page/base.js"),
    include_str!("../assets/page/view.js"),
    include_str!("../assets/page/labels.js"),
    include_str!("../assets/page/frame.js"),
    include_str!("../assets/page/lines.js"),
    include_str!("../assets/page/heat.js"),
    include_str!("../assets/page/draw.js"),
    include_str!("../assets/page/keys.js"),
    include_str!("../assets/page/csv.js"),
    include_str!("../assets/page/live.js"),
    include_str!("../assets/page/start.js"),
    "})();\n"
);
/// The library that draws lines.
pub static UPLOT: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
/// The look that it needs.
pub static UPLOT_STYLE: &str = include_str!("../vendor/uplot/uPlot.min.css");
const TEMPLATE: &str = include_str!("../assets/report.html");

/// The page follows a run that goes on: it fetches itself again from where it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Live {
    /// URL of the page, relative to itself.
    pub url: String,
    /// The run has ended: this is its last state, and the page need not fetch it again.
    pub ended: bool,
}

/// The report of a run directory as it stands, complete or not.
pub fn page(dir: &RunDir, live: Option<&Live>) -> Result<String, ReportError> {
    let there = dir.read_partial()?;
    render(dir, &Summary::from_parts(dir, &there), &there.series, live)
}

/// Writes `report.html` and `summary.json` into the run directory; says where the report is.
pub fn write(dir: &RunDir) -> Result<PathBuf, ReportError> {
    let there = dir.read_partial()?;
    let (summary, series) = (Summary::from_parts(dir, &there), there.series);
    summary.write(dir)?;
    let path = dir.report_path();
    dir.write_whole(&path, render(dir, &summary, &series, None)?.as_bytes())?;
    Ok(path)
}

/// Data of the template.
#[derive(Serialize)]
struct RunPage<'a> {
    live: Option<&'a Live>,
    summary: &'a Summary,
    headline: String,
    target: String,
    findings: Vec<FindingView<'a>>,
    partial: String,
    started: String,
    rehearsed: Option<String>,
    tiles: Vec<page::Tile>,
    sections: Vec<ChartSection<'a>>,
    own: OwnView<'a>,
    errors: Vec<ErrorClassView<'a>>,
    phase_tables: Vec<page::TableView>,
    percentiles: page::TableView,
    hierarchy: Option<page::TableView>,
    cache_logs: Vec<page::TableView>,
    schedule: page::TableView,
    explained: Vec<page::ExplainedLine>,
    workload: Vec<page::Fact>,
    setup: Vec<page::Fact>,
    placement: Vec<page::Fact>,
    counters: Vec<page::Fact>,
    commands: Vec<page::Fact>,
    files: Vec<page::FileView>,
    /// Our own text, as the two that follow: not escaped.
    style: Value,
    script: Value,
    data: Value,
}

/// Assay itself: what speaks against the run, and how well it did.
#[derive(Serialize)]
struct OwnView<'a> {
    doubts: Vec<DoubtView>,
    /// A headline number was moved by more than a tenth or left unknown, or a requirement undecided.
    matters: bool,
    worth_knowing: Vec<DoubtView>,
    /// Some phases are hatched in the charts.
    hatched: bool,
    calibration: Option<CalibrationView>,
    name: &'static str,
    charts: Vec<ChartHead<'a>>,
    tables: Vec<page::TableView>,
    facts: Vec<page::Fact>,
}

/// A question and its result.
#[derive(Serialize)]
struct FindingView<'a> {
    question: &'static str,
    mood: Mood,
    text: &'a str,
}

/// A heading and the charts under it.
#[derive(Serialize)]
struct ChartSection<'a> {
    name: &'a str,
    id: String,
    charts: Vec<ChartHead<'a>>,
}

/// Frame of a chart.
#[derive(Serialize)]
pub struct ChartHead<'a> {
    /// Name of the chart in the page.
    pub id: &'a str,
    pub title: &'a str,
    /// Content of the chart, in a sentence.
    pub about: &'a str,
    /// Unit of the values.
    pub unit: &'a str,
    /// The chart in words and numbers.
    pub alt_text: Option<AltText>,
}

/// An error class that occurred.
#[derive(Serialize)]
struct ErrorClassView<'a> {
    kind: &'a str,
    count: String,
    plural: &'a str,
    /// Of all requests; none: none was sent.
    share: Option<String>,
    /// Consequence for users.
    meaning: &'static str,
    examples: Vec<&'a ErrorExample>,
}

fn render(
    dir: &RunDir,
    summary: &Summary,
    series: &Series,
    live: Option<&Live>,
) -> Result<String, ReportError> {
    let charts = chart::charts(summary, series);
    let (own_charts, sections) = sections(&charts);
    let template = [MACROS, TEMPLATE].concat();
    let mut environment = Environment::new();
    environment.add_filter("units", units);
    // The name's ending turns escaping on.
    environment.add_template("report.html", &template)?;
    let page = RunPage {
        live,
        summary,
        headline: format!("{} → {}", summary.workload, text::target(summary)),
        target: text::target(summary),
        findings: findings(summary),
        partial: text::sentence(text::partial(summary)),
        started: format::date(summary.started_unix_ms),
        rehearsed: text::rehearsed(summary.workload_info.scale),
        tiles: page::tiles(summary),
        sections,
        own: own_view(summary, series, own_charts),
        errors: errors(summary),
        phase_tables: page::phase_tables(summary),
        percentiles: page::percentile_table(summary),
        hierarchy: hierarchy::table(summary.hierarchy.as_ref()),
        cache_logs: summary.cache_logs.as_ref().map(cache_logs::tables).unwrap_or_default(),
        schedule: page::schedule(summary),
        explained: page::explained(summary),
        workload: page::workload(summary),
        setup: page::setup(summary),
        placement: page::placement(summary),
        counters: page::counters(summary),
        commands: page::repeat_commands(summary),
        files: page::files(dir),
        style: Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}")),
        script: Value::from_safe_string(format!("{UPLOT}\n{SCRIPT}")),
        data: Value::from_safe_string(embedded_json(&charts)?),
    };
    Ok(visible(environment.get_template("report.html")?.render(Serde(page))?))
}

/// Text in which no line ends between a number and its unit.
fn units(text: &str) -> String {
    let words = terminal::unbroken(text);
    words.iter().map(|word| word.replace(' ', "\u{a0}")).collect::<Vec<_>>().join(" ")
}

/// JSON that can stand inside a script element: nothing in it can end the element.
pub fn embedded_json(charts: &impl Serialize) -> Result<String, ReportError> {
    let json = serde_json::to_string(charts)?;
    Ok(json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

/// The charts of Assay itself; and headings in the order of their first chart, each with its charts.
fn sections(charts: &Charts) -> (Vec<ChartHead<'_>>, Vec<ChartSection<'_>>) {
    let (mut own, mut sections): (_, Vec<ChartSection<'_>>) = (Vec::new(), Vec::new());
    for chart in &charts.charts {
        let alt_text = alt_text(chart, &charts.time, &charts.phases);
        let head = ChartHead {
            id: &chart.id,
            title: &chart.title,
            about: &chart.about,
            unit: &chart.unit,
            alt_text,
        };
        match sections.iter_mut().find(|section| section.name == chart.section) {
            _ if chart.section == own::charts::OWN => own.push(head),
            Some(section) => section.charts.push(head),
            None => {
                let id = format!("charts-{}", sections.len() + 1);
                sections.push(ChartSection { name: &chart.section, id, charts: vec![head] });
            }
        }
    }
    (own, sections)
}

fn own_view<'a>(summary: &Summary, series: &Series, charts: Vec<ChartHead<'a>>) -> OwnView<'a> {
    let stalls = series.stalls.iter().map(|stall| own::sums::stall_health(stall, &summary.phases)).collect();
    OwnView {
        doubts: own::text::doubts(summary, true),
        matters: own::text::affects_headline(summary),
        worth_knowing: own::text::doubts(summary, false),
        hatched: summary.phases.iter().any(|phase| phase.disturbed),
        calibration: summary.calibration.as_ref().and_then(own::tables::calibration),
        name: own::charts::OWN,
        charts,
        tables: own::tables::threads(&summary.health)
            .into_iter()
            .chain(own::tables::stalls(stalls))
            .collect(),
        facts: own::tables::facts(summary),
    }
}

/// The verdict as questions and results.
fn findings(summary: &Summary) -> Vec<FindingView<'_>> {
    let question = |topic| match topic {
        Topic::Test => "What was tested?",
        Topic::Speed => "Did it keep up?",
        Topic::Savings => "What did it save?",
        Topic::Correctness => "Was anything wrong?",
        Topic::Requirements => "Did it do what it must?",
        Topic::Trust => "How well is it known?",
    };
    let findings = summary.verdict.iter();
    findings
        .map(|finding| FindingView {
            question: question(finding.about),
            mood: finding.mood,
            text: &finding.text,
        })
        .collect()
}

/// Every error class that occurred, with its first examples.
fn errors(summary: &Summary) -> Vec<ErrorClassView<'_>> {
    let kinds = summary.total.errors.by_kind.iter();
    kinds
        .map(|(kind, count)| ErrorClassView {
            kind: kind.name(),
            count: format::count(*count),
            plural: kind.plural(),
            share: (summary.total.counts.requests > 0)
                .then(|| format::share(*count, summary.total.counts.requests)),
            meaning: kind.meaning(),
            examples: summary.examples.iter().filter(|example| example.kind == *kind).collect(),
        })
        .collect()
}
