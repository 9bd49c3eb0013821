//! The tables of a comparison as text, the same in a terminal, in Markdown and on the page.

use super::document::{
    Comparison, Contrast, Direction, MetricGroup, MetricRow, MetricTable, Values, Verdict, Weight,
};
use super::gate::{CheckOutcome, Gate, GateCheck};
use super::metric::{self, MetricUnit};
use super::scope;
use crate::format::{self, NOTHING};

/// Style that tells a subject from others in charts: colour and dash pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubjectStyle {
    /// Name of its colour in the page.
    pub colour: &'static str,
    /// Pixels drawn and left out in turn.
    pub dash: &'static [u8],
}

/// Colours that the page has for subjects.
const COLOURS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
/// Dash patterns: whole, long, dotted, long and dotted. Where colours begin anew, patterns are shifted.
const DASHES: [&[u8]; 4] = [&[], &[9, 3], &[2, 3], &[9, 3, 2, 3]];

/// The look of a subject by its place.
pub fn subject_style(place: usize) -> SubjectStyle {
    SubjectStyle {
        colour: COLOURS[place % COLOURS.len()],
        dash: DASHES[(place + place / COLOURS.len()) % DASHES.len()],
    }
}

/// A table of text: a head, and rows that begin with a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextTable {
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Unit of a metric.
pub fn unit(key: &str) -> MetricUnit {
    metric::named(key).map_or(MetricUnit::PerSecond, |metric| metric.unit)
}

/// `12.3 ± 0.4`: mean and standard deviation.
pub fn value(unit: MetricUnit, values: &Values) -> String {
    let spread =
        values.deviation.map_or_else(String::new, |deviation| format!(" ± {}", unit.show(deviation)));
    format!("{}{spread}", mean(unit, values))
}

fn mean(unit: MetricUnit, values: &Values) -> String {
    let bound = if values.at_least { "≥ " } else { "" };
    values.mean.map_or_else(|| NOTHING.to_owned(), |mean| format!("{bound}{}", unit.show(mean)))
}

fn signed(unit: MetricUnit, value: f64) -> String {
    let shown = unit.show(value.abs());
    // What is shown as nothing has no sign.
    if shown.chars().all(|c| !c.is_ascii_digit() || c == '0') {
        return shown;
    }
    format!("{}{shown}", if value < 0.0 { "−" } else { "+" })
}

/// `+1.20 [+0.80, +1.60]`.
pub fn difference(unit: MetricUnit, contrast: &Contrast) -> String {
    let Some(difference) = contrast.difference else { return NOTHING.to_owned() };
    let interval = contrast
        .interval
        .map_or_else(String::new, |(low, high)| format!(" [{}, {}]", signed(unit, low), signed(unit, high)));
    format!("{}{interval}", signed(unit, difference))
}

/// `1.12 [1.08, 1.16]`.
pub fn ratio(contrast: &Contrast) -> String {
    let Some(ratio) = contrast.ratio else { return NOTHING.to_owned() };
    let interval = contrast
        .ratio_interval
        .map_or_else(String::new, |(low, high)| format!(" [{}, {}]", times(low), times(high)));
    format!("{}{interval}", times(ratio))
}

fn times(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) { format!("{ratio:.3}") } else { format::number(ratio) }
}

pub fn effect(contrast: &Contrast) -> String {
    contrast.effect_size.map_or_else(
        || NOTHING.to_owned(),
        |g| if g < 0.0 { format!("−{}", format::number(-g)) } else { format::number(g) },
    )
}

pub fn probability(contrast: &Contrast) -> String {
    match contrast.p_adjusted {
        None => NOTHING.to_owned(),
        Some(p) if p < 0.001 => "< 0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}

/// Interval of the difference between two runs, as a sentence.
pub fn within(unit: MetricUnit, contrast: &Contrast) -> Option<String> {
    let (low, high) = contrast.within_runs.as_ref()?.interval;
    Some(format!(
        "{} to {} {} within these two runs alone, request by request over {}",
        signed(unit, low),
        signed(unit, high),
        unit.name(),
        format::count(contrast.common_xacts.unwrap_or(0))
    ))
}

/// The verdict as it is said.
pub fn verdict(contrast: &Contrast) -> String {
    match contrast.verdict {
        Verdict::NotJudged => NOTHING.to_owned(),
        verdict => verdict.label().to_owned(),
    }
}

/// `Throughput ↑, 1/s`: name, good direction, unit.
pub fn row_name(row: &MetricRow) -> String {
    let arrow = match row.better {
        Direction::More => " ↑",
        Direction::Less => " ↓",
        Direction::Neither => "",
    };
    format!("{}{arrow}, {}", row.title, unit(&row.metric).name())
}

pub fn group_name(group: MetricGroup) -> &'static str {
    match group {
        MetricGroup::Speed => "Speed",
        MetricGroup::Savings => "Savings",
        MetricGroup::Correctness => "Correctness",
        MetricGroup::Cost => "Cost",
    }
}

pub fn table_name(comparison: &Comparison, table: &MetricTable) -> String {
    let condition = match comparison.conditions.len() {
        0 | 1 => String::new(),
        _ => format!(", {}", table.condition),
    };
    format!("{}{condition}: {}", table.workload, scope::scope_title(&table.scope))
}

pub fn differences(comparison: &Comparison) -> TextTable {
    let heads = std::iter::once(String::new()).chain(comparison.subjects.iter().map(|s| s.label.clone()));
    let rows = comparison.differences.iter().map(|difference| {
        let values =
            difference.values.iter().map(|value| value.clone().unwrap_or_else(|| NOTHING.to_owned()));
        let mark = if difference.weight == Weight::Meaningless { "! " } else { "" };
        std::iter::once(format!("{mark}{}", difference.name)).chain(values).collect()
    });
    TextTable { heads: heads.collect(), rows: rows.collect() }
}

/// Checks against tolerances, violations first; `all` of them, or only those that did not hold.
pub fn gate(comparison: &Comparison, gate: &Gate, all: bool) -> TextTable {
    let heads = ["held against a tolerance", "", "worse by", "allowed"].map(str::to_owned).into();
    let mut checks: Vec<&GateCheck> = gate.checks.iter().collect();
    checks.sort_by_key(|check| match check.outcome {
        CheckOutcome::Regressed => 0,
        CheckOutcome::NotCompared => 1,
        CheckOutcome::NotShown => 2,
        CheckOutcome::Held => 3,
    });
    checks.retain(|check| all || check.outcome != CheckOutcome::Held);
    let several = comparison.subjects.len() > 2;
    let row = |check: &&GateCheck| {
        let unit = unit(&check.metric);
        let place = [&check.workload, &check.condition, &check.scope];
        let place: Vec<&str> =
            place.into_iter().map(String::as_str).filter(|word| *word != "plain").collect();
        let who = if several { format!("{}: ", check.subject) } else { String::new() };
        let interval = check.interval.map_or_else(String::new, |(low, high)| {
            format!(" [{}, {}]", signed(unit, low), signed(unit, high))
        });
        let worse = check
            .worse_by
            .map_or_else(|| NOTHING.to_owned(), |worse| format!("{}{interval}", signed(unit, worse)));
        let outcome = match (check.outcome, check.interval.is_some()) {
            (CheckOutcome::Regressed, true) => "REGRESSED",
            (CheckOutcome::Regressed, false) => "REGRESSED (no interval)",
            (CheckOutcome::NotCompared, _) => "not compared",
            (CheckOutcome::NotShown, _) => "cannot tell",
            (CheckOutcome::Held, true) => "held",
            (CheckOutcome::Held, false) => "held (no interval)",
        };
        let name = format!("{who}{}, {} ({})", check.title, unit.name(), place.join(", "));
        vec![name, outcome.to_owned(), worse, unit.show(check.allowed)]
    };
    TextTable { heads, rows: checks.iter().map(row).collect() }
}

/// Headline metrics and errors of every judged stretch, in one table.
pub fn headlines(comparison: &Comparison) -> TextTable {
    let mut all = TextTable::default();
    for table in comparison.tables.iter().filter(|table| table.judged) {
        let rows: Vec<&MetricRow> =
            table.rows.iter().filter(|row| row.headline || row.metric == "errors_share").collect();
        let grid = metrics(comparison, &rows, Detail::Brief);
        let name = table_name(comparison, table);
        all.heads = grid.heads;
        all.heads.insert(0, "scenario".to_owned());
        for (index, mut row) in grid.rows.into_iter().enumerate() {
            row.insert(0, if index == 0 { name.clone() } else { String::new() });
            all.rows.push(row);
        }
    }
    all
}

/// The better performer of each scenario: its rows, and the headings of columns that occur in any of them.
pub fn scenarios(comparison: &Comparison) -> TextTable {
    let headings = scenario_headings(comparison);
    let rows = comparison.scenarios.iter().map(|scenario| {
        let cell = |heading: &String| {
            let found = scenario.cells.iter().find(|cell| cell.heading == *heading);
            found.map_or_else(|| NOTHING.to_owned(), |cell| cell.text.clone())
        };
        std::iter::once(scenario.name.clone()).chain(headings.iter().map(cell)).collect()
    });
    let rows = rows.collect();
    TextTable { heads: std::iter::once("scenario".to_owned()).chain(headings).collect(), rows }
}

/// Headings of the table of scenarios, in the order of metrics.
pub fn scenario_headings(comparison: &Comparison) -> Vec<String> {
    let there = |heading: &str| {
        comparison.scenarios.iter().flat_map(|scenario| &scenario.cells).any(|cell| cell.heading == heading)
    };
    metric::all().filter_map(|metric| metric.heading).filter(|h| there(h)).map(str::to_owned).collect()
}

/// Headings of the table of each against each.
pub fn pair_heads(comparison: &Comparison) -> Vec<String> {
    let cells = comparison.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let pairs = cells.take(1).flat_map(|cell| &cell.contrasts);
    let heads = pairs.map(|contrast| format!("{} against {}", contrast.subject, contrast.base));
    std::iter::once("scenario and metric".to_owned()).chain(heads).collect()
}

/// Each against each, where there are more than two subjects: a row per metric of a scenario.
pub fn pairs(comparison: &Comparison) -> TextTable {
    if comparison.subjects.len() < 3 {
        return TextTable::default();
    }
    let mut grid = TextTable { heads: pair_heads(comparison), rows: Vec::new() };
    for scenario in &comparison.scenarios {
        for cell in &scenario.cells {
            let unit = unit(&cell.metric);
            let pair = |contrast: &Contrast| format!("{}, {}", verdict(contrast), difference(unit, contrast));
            let name = format!("{}: {}, {}", scenario.name, cell.heading, unit.name());
            grid.rows.push(std::iter::once(name).chain(cell.contrasts.iter().map(pair)).collect());
        }
    }
    grid
}

/// Amount of detail in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Terse,
    /// Difference, ratio and verdict.
    Brief,
    /// Ratio, effect size and probability too.
    Full,
}

/// A metric table: a row per metric and subject that is compared.
pub fn metrics(comparison: &Comparison, rows: &[&MetricRow], detail: Detail) -> TextTable {
    let subjects = &comparison.subjects;
    let mut heads = vec!["metric".to_owned()];
    let several = subjects.len() > 2;
    let base = subjects.first().map_or("", |subject| subject.label.as_str());
    if several {
        heads.extend(["subject".to_owned(), "value".to_owned()]);
    } else {
        heads.extend(subjects.iter().map(|subject| subject.label.clone()));
    }
    if subjects.len() > 1 {
        heads.extend(columns_for(detail, ["difference", "ratio", "g", "p", "verdict"].map(str::to_owned)));
    }
    let mut grid = TextTable { heads, rows: Vec::new() };
    for row in rows {
        let unit = unit(&row.metric);
        let judged = |contrast: &Contrast| {
            let ratio = match detail {
                Detail::Full => ratio(contrast),
                Detail::Terse | Detail::Brief => contrast.ratio.map_or_else(|| NOTHING.to_owned(), times),
            };
            let all = [
                difference(unit, contrast),
                ratio,
                effect(contrast),
                probability(contrast),
                verdict(contrast),
            ];
            columns_for(detail, all)
        };
        let name = row_name(row);
        let value = if detail == Detail::Full { value } else { mean };
        if !several {
            let values = row.values.iter().map(|values| value(unit, values));
            let cells = std::iter::once(name).chain(values).chain(row.contrasts.iter().flat_map(judged));
            grid.rows.push(cells.collect());
            continue;
        }
        for (index, (subject, values)) in subjects.iter().zip(&row.values).enumerate() {
            let shown = if index == 0 { name.clone() } else { String::new() };
            let mut cells = vec![shown, subject.label.clone(), value(unit, values)];
            match row
                .contrasts
                .iter()
                .find(|contrast| contrast.subject == subject.label && contrast.base == base)
            {
                Some(contrast) => cells.extend(judged(contrast)),
                None => cells.extend(columns_for(detail, std::array::from_fn(|_| String::new()))),
            }
            grid.rows.push(cells);
        }
    }
    grid
}

/// Of difference, ratio, effect size, probability and verdict: those that are shown.
fn columns_for(detail: Detail, all: [String; 5]) -> Vec<String> {
    let shown = |index: usize| match detail {
        Detail::Full => true,
        Detail::Brief => matches!(index, 0 | 1 | 4),
        Detail::Terse => matches!(index, 0 | 4),
    };
    all.into_iter().enumerate().filter(|(index, _)| shown(*index)).map(|(_, cell)| cell).collect()
}

/// Errors by kind: mean number per run.
pub fn errors(comparison: &Comparison, table: &MetricTable) -> TextTable {
    let heads = std::iter::once("errors per run".to_owned())
        .chain(comparison.subjects.iter().map(|subject| subject.label.clone()));
    let rows = table.errors.iter().map(|(kind, counts)| {
        let counts = counts.iter().map(|count| count.map_or_else(|| NOTHING.to_owned(), format::number));
        std::iter::once(kind.clone()).chain(counts).collect()
    });
    TextTable { heads: heads.collect(), rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_two_subjects_look_different() {
        let looks: std::collections::BTreeSet<_> =
            (0..32).map(|n| (subject_style(n).colour, subject_style(n).dash)).collect();
        assert_eq!(looks.len(), 32);
        assert_eq!(subject_style(0).dash, [0u8; 0], "what the others are compared with is a whole line");
    }

    #[test]
    fn values_and_differences_are_short_and_carry_their_interval() {
        let values = Values { runs: vec![1.0, 2.0], mean: Some(1.5), deviation: Some(0.71), at_least: true };
        assert_eq!(value(MetricUnit::Milliseconds, &values), "≥ 1.50 ± 0.710");
        let contrast = Contrast {
            difference: Some(-0.052),
            interval: Some((-0.1, 0.0)),
            ratio: Some(0.92),
            ratio_interval: Some((0.9, 0.94)),
            effect_size: Some(-1.234),
            p_adjusted: Some(0.0001),
            ..Contrast::default()
        };
        assert_eq!(difference(MetricUnit::Share, &contrast), "−5.20 [−10.0, 0.00]");
        assert_eq!(ratio(&contrast), "0.920 [0.900, 0.940]");
        assert_eq!((effect(&contrast).as_str(), probability(&contrast).as_str()), ("−1.23", "< 0.001"));
        let nothing = Contrast::default();
        assert_eq!((difference(MetricUnit::Share, &nothing), ratio(&nothing)), ("–".into(), "–".into()));
    }
}
