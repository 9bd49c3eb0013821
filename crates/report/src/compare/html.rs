//! The comparison as one HTML page that needs no network.

use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use super::charts::{Axis, PanelChart};
use super::document::{
    Answer, Comparison, Contrast, Group, LeftOut, MetricRow, MetricTable, Scenario, ScenarioCell, Subject,
    Verdict,
};
use super::{metric, views};
use crate::error::ReportError;
use crate::html::{MACROS, SCRIPT, STYLE, UPLOT, UPLOT_STYLE, embedded_json};
use crate::{format, repeat};

const TEMPLATE: &str = include_str!("../../assets/compare.html");
const OWN_STYLE: &str = include_str!("../../assets/compare.css");
/// Colours that the page has for subjects.
const COLOURS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
/// Ratios at the ends of the scale on which they are drawn: a half and twice, as powers of two.
const SCALE_OCTAVES: f64 = 1.0;

/// What the template reads.
#[derive(Serialize)]
struct Page<'a> {
    name: &'a str,
    title: &'a str,
    eyebrow: String,
    finished: bool,
    subjects: Vec<SubjectView<'a>>,
    several: bool,
    differences: Vec<Vec<String>>,
    answers: &'a [Answer],
    headings: Vec<String>,
    scenarios: Vec<ScenarioView<'a>>,
    pair_heads: Vec<String>,
    /// Each subject against each, where there are more than two.
    pairs: Vec<PairsView>,
    warnings: &'a [String],
    panels: Vec<PanelView<'a>>,
    tables: Vec<TableView<'a>>,
    more_tables: Vec<TableView<'a>>,
    left_out: &'a [LeftOut],
    error_percent: String,
    fewest: u32,
    by_request: bool,
    command: String,
    assay_version: &'a str,
    /// These three are our own text and go in as they are.
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
struct PanelView<'a> {
    title: &'a str,
    charts: &'a [PanelChart],
}

#[derive(Serialize)]
struct TableView<'a> {
    id: String,
    name: String,
    about: String,
    columns: usize,
    groups: Vec<GroupView<'a>>,
    errors: Vec<ErrorView<'a>>,
}

#[derive(Serialize)]
struct GroupView<'a> {
    name: &'static str,
    rows: Vec<RowView<'a>>,
}

#[derive(Serialize)]
struct RowView<'a> {
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
    effect: String,
    p: String,
    verdict: String,
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct ErrorView<'a> {
    kind: &'a str,
    counts: Vec<String>,
    text: String,
}

/// What the page's script draws.
#[derive(Serialize)]
struct Charts<'a> {
    axes: Vec<&'a Axis>,
    charts: Vec<&'a PanelChart>,
}

/// The page.
pub(crate) fn render(comparison: &Comparison) -> Result<String, ReportError> {
    let template = [MACROS, TEMPLATE].concat();
    let mut environment = Environment::new();
    // The name's ending turns escaping on.
    environment.add_template("compare.html", &template)?;
    let headings = views::scenario_headings(comparison);
    let of_tables = |judged: bool| -> Vec<TableView<'_>> {
        let numbered = comparison.tables.iter().enumerate();
        numbered.filter(|(_, t)| t.judged == judged).map(|(n, t)| table(comparison, n, t)).collect()
    };
    let charts = Charts {
        axes: comparison.panels.iter().map(|panel| &panel.axis).collect(),
        charts: comparison.panels.iter().flat_map(|panel| &panel.charts).collect(),
    };
    let page = Page {
        name: &comparison.name,
        title: &comparison.title,
        eyebrow: eyebrow(comparison),
        finished: comparison.finished,
        subjects: subjects(comparison),
        several: comparison.subjects.len() > 2,
        differences: views::differences(comparison).rows,
        answers: &comparison.verdict,
        scenarios: scenarios(comparison, &headings),
        headings,
        pair_heads: views::pair_heads(comparison),
        pairs: pairs(comparison),
        warnings: &comparison.warnings,
        panels: comparison
            .panels
            .iter()
            .map(|panel| PanelView { title: &panel.title, charts: &panel.charts })
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
    Ok(environment.get_template("compare.html")?.render(Serde(page))?)
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
    let place = comparison.subjects.iter().position(|subject| subject.label == label);
    COLOURS[place.unwrap_or(0) % COLOURS.len()]
}

fn subjects(comparison: &Comparison) -> Vec<SubjectView<'_>> {
    comparison
        .subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| SubjectView {
            label: &subject.label,
            colour: COLOURS[index % COLOURS.len()],
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
    if comparison.subjects.len() < 3 {
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
    cell.contrasts.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn table<'a>(comparison: &'a Comparison, number: usize, table: &'a MetricTable) -> TableView<'a> {
    let several = comparison.subjects.len() > 2;
    // The metric, then values (or subject and value), then what is said of a difference.
    let columns = if comparison.subjects.len() == 1 { 2 } else { 9 };
    let groups = [Group::Speed, Group::Savings, Group::Correctness, Group::Cost].map(|group| GroupView {
        name: views::group_name(group),
        rows: table
            .rows
            .iter()
            .filter(|row| row.group == group)
            .flat_map(|row| rows(comparison, row))
            .collect(),
    });
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
        ErrorView { kind, counts, text }
    });
    TableView {
        id: format!("metrics-{number}"),
        name: views::table_name(comparison, table),
        about: format!(
            "{covers}{} {} of this table hold together{}.",
            table.tests,
            if table.tests == 1 { "verdict" } else { "verdicts" },
            if table.judged { "; those marked ◆ hold with the scenarios above" } else { "" }
        ),
        columns,
        groups: groups.into_iter().filter(|group| !group.rows.is_empty()).collect(),
        errors: errors.collect(),
    }
}

/// A row for two subjects; for more of them, a row each.
fn rows<'a>(comparison: &'a Comparison, row: &'a MetricRow) -> Vec<RowView<'a>> {
    let unit = views::unit(&row.metric);
    let shown: Vec<String> = row.values.iter().map(|values| views::value(unit, values)).collect();
    let name = views::row_name(row);
    if comparison.subjects.len() <= 2 {
        let contrast = row.contrasts.first();
        return vec![RowView {
            name,
            star: row.headline,
            class: class(contrast),
            subject: "",
            colour: "",
            base: false,
            values: shown,
            contrast: contrast.map(|contrast| contrast_view(unit, contrast)),
        }];
    }
    let of = |(index, (subject, value)): (usize, (&'a Subject, String))| {
        let contrast = row.contrasts.iter().find(|contrast| contrast.subject == subject.label);
        RowView {
            name: if index == 0 { name.clone() } else { String::new() },
            star: row.headline && index == 0,
            class: class(contrast),
            subject: &subject.label,
            colour: COLOURS[index % COLOURS.len()],
            base: index == 0,
            values: vec![value],
            contrast: contrast.map(|contrast| contrast_view(unit, contrast)),
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

fn contrast_view(unit: metric::Unit, contrast: &Contrast) -> ContrastView<'_> {
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
        forest: forest(contrast),
        effect: views::effect(contrast),
        p: views::probability(contrast),
        verdict: views::verdict(contrast),
        why: contrast.why.as_deref(),
    }
}

/// Where ratio and interval lie on the scale, in percent.
fn forest(contrast: &Contrast) -> Option<[f64; 3]> {
    let place = |ratio: f64| {
        let share = (ratio.log2() / SCALE_OCTAVES).clamp(-1.0, 1.0);
        ((50.0 + 50.0 * share) * 10.0).round() / 10.0
    };
    let middle = place(contrast.ratio?);
    let (low, high) =
        contrast.ratio_interval.map_or((middle, middle), |(low, high)| (place(low), place(high)));
    Some([low, ((high - low) * 10.0).round() / 10.0, middle])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_drawn_on_a_logarithmic_scale_around_one() {
        let drawn = |ratio, low, high| {
            let contrast =
                Contrast { ratio: Some(ratio), ratio_interval: Some((low, high)), ..Contrast::default() };
            forest(&contrast)
        };
        assert_eq!(drawn(1.0, 0.5, 2.0), Some([0.0, 100.0, 50.0]));
        assert_eq!(drawn(16.0, 8.0, 32.0), Some([100.0, 0.0, 100.0]));
        assert_eq!(forest(&Contrast::default()), None);
    }
}
