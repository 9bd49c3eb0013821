//! The comparison as one HTML page that needs no network.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use super::chart_group::ComparisonAxis;
use super::document::{
    Comparison, Conclusion, Contrast, Direction, ExcludedCell, MetricGroup, MetricRow, MetricTable, Scenario,
    ScenarioCell, Subject, Verdict, Weight,
};
use super::forest::{RatioScale, forest, judged, scale, tenth};
use super::gate::GateOutcome;
use super::{metric, views};
use crate::ReportError;
use crate::chart::Chart;
use crate::chart::alt_text::alt_text;
use crate::document::Mood;
use crate::html::{ChartHead, MACROS, SCRIPT, STYLE, UPLOT, UPLOT_STYLE, embedded_json};
use crate::{format, repeat};
use assay_base::quote::visible::visible;

const TEMPLATE: &str = include_str!("../../assets/compare.html");
const OWN_STYLE: &str = include_str!("../../assets/compare.css");
/// With more subjects, each against each is only in the JSON document.
const MOST_FOR_PAIRS: usize = 6;
/// Charts with more lines are told by the tables alone.
const MOST_DESCRIBED: usize = 10;
/// Contrasts that the note behind a cell lists.
const MOST_NOTED: usize = 10;
/// With more rows, every headline at a glance is folded.
const MOST_AT_A_GLANCE: usize = 60;

/// Data of the template.
#[derive(Serialize)]
struct ComparisonPage<'a> {
    name: &'a str,
    title: &'a str,
    eyebrow: String,
    finished: bool,
    subjects: Vec<SubjectView<'a>>,
    several: bool,
    differences: Vec<DifferenceView>,
    incomparable: &'a [String],
    gate: Option<GateView<'a>>,
    glance: Vec<GlanceView<'a>>,
    glance_open: bool,
    scale: RatioScale,
    conclusions: &'a [Conclusion],
    headings: Vec<String>,
    scenarios: Vec<ScenarioView<'a>>,
    pair_heads: Vec<String>,
    /// Each subject against each, where there are more than two.
    pairs: Vec<PairsView>,
    warnings: &'a [String],
    chart_groups: Vec<ChartGroupView<'a>>,
    tables: Vec<MetricTableView<'a>>,
    more_tables: Vec<MetricTableView<'a>>,
    left_out: &'a [ExcludedCell],
    error_percent: String,
    fewest: u32,
    by_request: bool,
    command: String,
    assay_version: &'a str,
    /// Our own text, as the two that follow: not escaped.
    style: Value,
    script: Value,
    data: Value,
}

#[derive(Serialize)]
struct SubjectView<'a> {
    label: &'a str,
    colour: &'static str,
    runs: u32,
}

/// In what subjects differ.
#[derive(Serialize)]
struct DifferenceView {
    name: String,
    meaningless: bool,
    matters: bool,
    values: Vec<String>,
}

/// Result of the tolerances.
#[derive(Serialize)]
struct GateView<'a> {
    mood: Mood,
    word: &'static str,
    why: &'a str,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A headline difference, drawn so that better is to the right.
#[derive(Serialize)]
struct GlanceView<'a> {
    scenario: String,
    metric: &'a str,
    subject: &'a str,
    colour: &'static str,
    class: &'static str,
    place: Option<[f64; 3]>,
    difference: String,
    ratio: String,
    verdict: String,
}

#[derive(Serialize)]
struct ScenarioView<'a> {
    name: &'a str,
    cells: Vec<CellView<'a>>,
}

#[derive(Default, Serialize)]
struct CellView<'a> {
    class: String,
    winners: Vec<WinnerView<'a>>,
    margin: &'a str,
    text: &'a str,
    detail: String,
}

#[derive(Serialize)]
struct WinnerView<'a> {
    label: &'a str,
    colour: &'static str,
}

/// A metric of a scenario, with every pair of subjects.
#[derive(Serialize)]
struct PairsView {
    name: String,
    cells: Vec<PairView>,
}

#[derive(Serialize)]
struct PairView {
    class: &'static str,
    verdict: String,
    difference: String,
}

#[derive(Serialize)]
struct ChartGroupView<'a> {
    title: &'a str,
    charts: Vec<ChartHead<'a>>,
    phases: Vec<ChartHead<'a>>,
}

#[derive(Serialize)]
struct MetricTableView<'a> {
    id: String,
    name: String,
    about: String,
    columns: usize,
    groups: Vec<MetricGroupView<'a>>,
    errors: Vec<ErrorCountView<'a>>,
}

#[derive(Serialize)]
struct MetricGroupView<'a> {
    name: &'static str,
    rows: Vec<MetricRowView<'a>>,
}

#[derive(Serialize)]
struct MetricRowView<'a> {
    name: String,
    star: bool,
    class: &'static str,
    subject: &'a str,
    colour: &'static str,
    base: bool,
    values: Vec<String>,
    contrast: Option<ContrastView<'a>>,
}

#[derive(Serialize)]
struct ContrastView<'a> {
    difference: String,
    difference_interval: String,
    ratio: String,
    ratio_interval: String,
    /// Left end, width and middle, in percent.
    forest: Option<[f64; 3]>,
    /// Interval of the difference between two runs.
    within: String,
    effect: String,
    p: String,
    verdict: String,
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct ErrorCountView<'a> {
    kind: &'a str,
    counts: Vec<String>,
    text: String,
}

/// Data of the page's script.
#[derive(Serialize)]
struct ComparisonCharts<'a> {
    axes: Vec<&'a ComparisonAxis>,
    charts: Vec<&'a Chart>,
}

pub fn render(comparison: &Comparison) -> Result<String, ReportError> {
    let template = [MACROS, TEMPLATE].concat();
    let mut environment = Environment::new();
    // The name's ending turns escaping on.
    environment.add_template("compare.html", &template)?;
    let headings = views::scenario_headings(comparison);
    let scale = scale(comparison);
    let of_tables = |judged: bool| -> Vec<MetricTableView<'_>> {
        let numbered = comparison.tables.iter().enumerate();
        numbered.filter(|(_, t)| t.judged == judged).map(|(n, t)| table(comparison, n, t, scale)).collect()
    };
    let chart_groups = || comparison.chart_groups.iter();
    let charts = ComparisonCharts {
        axes: chart_groups().map(|panel| &panel.axis).collect(),
        charts: chart_groups().flat_map(|panel| panel.charts.iter().chain(&panel.phases)).collect(),
    };
    let glance = glance(comparison, scale);
    let page = ComparisonPage {
        name: &comparison.name,
        title: &comparison.title,
        eyebrow: eyebrow(comparison),
        finished: comparison.finished,
        subjects: subjects(comparison),
        several: comparison.subjects.len() > 2,
        differences: differences(comparison),
        incomparable: &comparison.incomparable,
        gate: gate(comparison),
        glance_open: glance.len() <= MOST_AT_A_GLANCE,
        glance,
        scale,
        conclusions: &comparison.verdict,
        scenarios: scenarios(comparison, &headings),
        headings,
        pair_heads: views::pair_heads(comparison),
        pairs: pairs(comparison),
        warnings: &comparison.warnings,
        chart_groups: comparison
            .chart_groups
            .iter()
            .map(|panel| ChartGroupView {
                title: &panel.title,
                charts: chart_heads(&panel.charts, &panel.axis),
                // One phase alone is what the curves above show.
                phases: if panel.phases.len() > 1 {
                    chart_heads(&panel.phases, &panel.axis)
                } else {
                    Vec::new()
                },
            })
            .collect(),
        tables: of_tables(true),
        more_tables: of_tables(false),
        left_out: &comparison.left_out,
        error_percent: (comparison.error_probability * 100.0).to_string(),
        fewest: comparison.fewest_runs,
        by_request: contrasts(comparison).any(|contrast| contrast.common_xacts.is_some()),
        command: repeat::command_line(&comparison.command),
        assay_version: &comparison.assay_version,
        style: Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}\n{OWN_STYLE}")),
        script: Value::from_safe_string(format!("{UPLOT}\n{SCRIPT}")),
        data: Value::from_safe_string(embedded_json(&charts)?),
    };
    Ok(visible(environment.get_template("compare.html")?.render(Serde(page))?))
}

fn chart_heads<'a>(charts: &'a [Chart], axis: &ComparisonAxis) -> Vec<ChartHead<'a>> {
    let view = |chart: &'a Chart| ChartHead {
        id: &chart.id,
        title: &chart.title,
        about: &chart.about,
        unit: &chart.unit,
        alt_text: alt_text(chart, &axis.time, &axis.phases).filter(|_| chart.lines.len() <= MOST_DESCRIBED),
    };
    charts.iter().map(view).collect()
}

fn differences(comparison: &Comparison) -> Vec<DifferenceView> {
    let words = |value: &Option<String>| value.clone().unwrap_or_else(|| format::NOTHING.to_owned());
    let rows = comparison.differences.iter();
    rows.map(|row| DifferenceView {
        name: row.name.clone(),
        meaningless: row.weight == Weight::Meaningless,
        matters: row.weight == Weight::Matters,
        values: row.values.iter().map(words).collect(),
    })
    .collect()
}

fn gate(comparison: &Comparison) -> Option<GateView<'_>> {
    let gate = comparison.gate.as_ref()?;
    let (mood, word) = match gate.outcome {
        GateOutcome::Held => (Mood::Good, "Within the tolerance."),
        GateOutcome::Regressed => (Mood::Bad, "Regressed."),
        GateOutcome::Invalid => (Mood::Bad, "Not known."),
        GateOutcome::NotCompared => (Mood::Doubtful, "Not compared."),
    };
    let grid = views::gate(comparison, gate, true);
    Some(GateView { mood, word, why: &gate.why, heads: grid.heads, rows: grid.rows })
}

fn glance(comparison: &Comparison, scale: RatioScale) -> Vec<GlanceView<'_>> {
    let headlines =
        judged(comparison).filter(|(_, row, contrast)| row.headline && contrast.difference.is_some());
    headlines
        .map(|(table, row, contrast)| {
            let unit = views::unit(&row.metric);
            let place = forest(contrast, scale).map(|[left, width, middle]| match row.better {
                // Less is better: mirrored.
                Direction::Less => [tenth(100.0 - left - width), width, tenth(100.0 - middle)],
                _ => [left, width, middle],
            });
            GlanceView {
                scenario: views::table_name(comparison, table),
                metric: &row.title,
                subject: &contrast.subject,
                colour: colour(comparison, &contrast.subject),
                class: class(Some(contrast)),
                place,
                difference: format!("{} {}", views::difference(unit, contrast), unit.name()),
                ratio: views::ratio(contrast),
                verdict: views::verdict(contrast),
            }
        })
        .collect()
}

fn contrasts(comparison: &Comparison) -> impl Iterator<Item = &Contrast> {
    comparison.scenarios.iter().flat_map(|scenario| &scenario.cells).flat_map(|cell| &cell.contrasts)
}

fn eyebrow(comparison: &Comparison) -> String {
    let mut parts = Vec::new();
    if comparison.started_unix_ms > 0 {
        parts.push(format::date(comparison.started_unix_ms));
    }
    parts.push(match comparison.repetitions {
        1 => "1 repetition".to_owned(),
        n => format!("{n} repetitions"),
    });
    parts.extend(comparison.rehearse_s.map(|s| format!("rehearsed in {}", format::duration_s(s))));
    parts.push(format!("seed {}", comparison.seed));
    parts.join(" · ")
}

fn colour(comparison: &Comparison, label: &str) -> &'static str {
    let index = comparison.subjects.iter().position(|subject| subject.label == label);
    views::subject_style(index.unwrap_or(0)).colour
}

fn subjects(comparison: &Comparison) -> Vec<SubjectView<'_>> {
    comparison
        .subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| SubjectView {
            label: &subject.label,
            colour: views::subject_style(index).colour,
            runs: subject.runs,
        })
        .collect()
}

fn scenarios<'a>(comparison: &'a Comparison, headings: &[String]) -> Vec<ScenarioView<'a>> {
    let cell = |cell: &'a ScenarioCell| {
        let winners: Vec<WinnerView<'a>> = cell
            .winners
            .iter()
            .map(|label| WinnerView { label, colour: colour(comparison, label) })
            .collect();
        let few = cell.contrasts.iter().all(|contrast| contrast.verdict == Verdict::NotEnoughRuns);
        let class = match winners.first() {
            Some(winner) => format!("won {}", winner.colour),
            None if few => "few".to_owned(),
            None => "even".to_owned(),
        };
        CellView { class, winners, margin: &cell.margin, text: &cell.text, detail: detail(cell) }
    };
    let row = |scenario: &'a Scenario| ScenarioView {
        name: &scenario.name,
        cells: headings
            .iter()
            .map(|heading| {
                let found = scenario.cells.iter().find(|cell| cell.heading == *heading);
                found.map_or_else(|| CellView { text: format::NOTHING, ..CellView::default() }, cell)
            })
            .collect(),
    };
    comparison.scenarios.iter().map(row).collect()
}

fn pairs(comparison: &Comparison) -> Vec<PairsView> {
    if !(3..=MOST_FOR_PAIRS).contains(&comparison.subjects.len()) {
        return Vec::new();
    }
    let row = |scenario: &Scenario, cell: &ScenarioCell| {
        let unit = views::unit(&cell.metric);
        let pair = |contrast: &Contrast| PairView {
            class: class(Some(contrast)),
            verdict: views::verdict(contrast),
            difference: views::difference(unit, contrast),
        };
        PairsView {
            name: format!("{}: {}, {}", scenario.name, cell.heading, unit.name()),
            cells: cell.contrasts.iter().map(pair).collect(),
        }
    };
    let scenarios = comparison.scenarios.iter();
    scenarios.flat_map(|scenario| scenario.cells.iter().map(move |cell| row(scenario, cell))).collect()
}

/// The numbers behind a cell of the table of scenarios.
fn detail(cell: &ScenarioCell) -> String {
    let unit = views::unit(&cell.metric);
    let line = |contrast: &Contrast| {
        let why = contrast.why.as_ref().map_or_else(String::new, |why| format!("; {why}"));
        format!(
            "{} against {}: {} {} (ratio {}){why}",
            contrast.subject,
            contrast.base,
            views::difference(unit, contrast),
            unit.name(),
            views::ratio(contrast)
        )
    };
    cell.contrasts.iter().take(MOST_NOTED).map(line).collect::<Vec<_>>().join("\n")
}

fn table<'a>(
    comparison: &'a Comparison,
    number: usize,
    table: &'a MetricTable,
    scale: RatioScale,
) -> MetricTableView<'a> {
    let several = comparison.subjects.len() > 2;
    // The metric, then values (or subject and value), then what is said of a difference.
    let columns = if comparison.subjects.len() == 1 { 2 } else { 9 };
    let groups = [MetricGroup::Speed, MetricGroup::Savings, MetricGroup::Correctness, MetricGroup::Cost].map(
        |group| MetricGroupView {
            name: views::group_name(group),
            rows: table
                .rows
                .iter()
                .filter(|row| row.group == group)
                .flat_map(|row| rows(comparison, row, scale))
                .collect(),
        },
    );
    let mut groups: Vec<MetricGroupView<'_>> =
        groups.into_iter().filter(|group| !group.rows.is_empty()).collect();
    let common_reason = take_common_reason(&mut groups);
    let covers = match table.phases.len() {
        0 | 1 => String::new(),
        _ => format!("Phases {}. ", table.phases.join(", ")),
    };
    let errors = table.errors.iter().map(|(kind, counts)| {
        let counts: Vec<String> = counts
            .iter()
            .map(|count| count.map_or_else(|| format::NOTHING.to_owned(), format::number))
            .collect();
        let named = comparison.subjects.iter().zip(&counts).map(|(s, count)| format!("{} {count}", s.label));
        let text = if several { named.collect::<Vec<_>>().join(" · ") } else { String::new() };
        ErrorCountView { kind, counts, text }
    });
    MetricTableView {
        id: format!("metrics-{number}"),
        name: views::table_name(comparison, table),
        about: [covers, family_note(table), common_reason].concat().trim_end().to_owned(),
        columns,
        groups,
        errors: errors.collect(),
    }
}

/// Sentence that says which verdicts of a table hold together.
fn family_note(table: &MetricTable) -> String {
    let verdicts = if table.tests == 1 { "verdict" } else { "verdicts" };
    match (table.tests, table.judged) {
        (0, false) => String::new(),
        (0, true) => "Those marked ◆ hold with the scenarios above. ".into(),
        (tests, false) => format!("{tests} {verdicts} of this table hold together. "),
        (tests, true) => {
            format!(
                "{tests} {verdicts} of this table hold together; those marked ◆ hold with the scenarios above. "
            )
        }
    }
}

/// Rows with the same reason from which on it is said above the table, and no longer in them.
const MANY_ROWS: usize = 4;

/// The reason that most rows have, taken out of them.
fn take_common_reason(groups: &mut [MetricGroupView<'_>]) -> String {
    let mut reasons: BTreeMap<(String, String), usize> = BTreeMap::new();
    for contrast in groups.iter().flat_map(|group| &group.rows).filter_map(|row| row.contrast.as_ref()) {
        if let Some(why) = contrast.why {
            *reasons.entry((contrast.verdict.clone(), why.to_owned())).or_default() += 1;
        }
    }
    let most = reasons.into_iter().max_by_key(|(_, rows)| *rows).filter(|(_, rows)| *rows >= MANY_ROWS);
    let Some(((verdict, why), _)) = most else { return String::new() };
    for contrast in
        groups.iter_mut().flat_map(|group| &mut group.rows).filter_map(|row| row.contrast.as_mut())
    {
        if contrast.verdict == verdict && contrast.why == Some(why.as_str()) {
            contrast.why = None;
        }
    }
    format!("Where nothing else is said, “{verdict}” means: {why}.")
}

/// A row for two subjects; for more of them, a row each.
fn rows<'a>(comparison: &'a Comparison, row: &'a MetricRow, scale: RatioScale) -> Vec<MetricRowView<'a>> {
    let unit = views::unit(&row.metric);
    let shown: Vec<String> = row.values.iter().map(|values| views::value(unit, values)).collect();
    let name = views::row_name(row);
    if comparison.subjects.len() <= 2 {
        let contrast = row.contrasts.first();
        return vec![MetricRowView {
            name,
            star: row.headline,
            class: class(contrast),
            subject: "",
            colour: "",
            base: false,
            values: shown,
            contrast: contrast.map(|contrast| contrast_view(unit, contrast, scale)),
        }];
    }
    let of = |(index, (subject, value)): (usize, (&'a Subject, String))| {
        let contrast = row.contrasts.iter().find(|contrast| contrast.subject == subject.label);
        MetricRowView {
            name: if index == 0 { name.clone() } else { String::new() },
            star: row.headline && index == 0,
            class: class(contrast),
            subject: &subject.label,
            colour: views::subject_style(index).colour,
            base: index == 0,
            values: vec![value],
            contrast: contrast.map(|contrast| contrast_view(unit, contrast, scale)),
        }
    };
    comparison.subjects.iter().zip(shown).enumerate().map(of).collect()
}

fn class(contrast: Option<&Contrast>) -> &'static str {
    match contrast.map(|contrast| contrast.verdict) {
        Some(Verdict::Better) => "better",
        Some(Verdict::Worse) => "worse",
        _ => "",
    }
}

fn contrast_view(unit: metric::MetricUnit, contrast: &Contrast, scale: RatioScale) -> ContrastView<'_> {
    let halves = |text: String| match text.split_once(' ') {
        Some((value, interval)) => (value.to_owned(), interval.to_owned()),
        None => (text, String::new()),
    };
    let (difference, difference_interval) = halves(views::difference(unit, contrast));
    let (ratio, ratio_interval) = halves(views::ratio(contrast));
    ContrastView {
        difference,
        difference_interval,
        ratio,
        ratio_interval,
        forest: forest(contrast, scale),
        within: views::within(unit, contrast).unwrap_or_default(),
        effect: views::effect(contrast),
        p: views::probability(contrast),
        verdict: views::verdict(contrast),
        why: contrast.why.as_deref(),
    }
}
