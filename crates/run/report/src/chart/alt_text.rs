//! Text alternative of a chart: a sentence, and a table of its numbers by phase.

use serde::Serialize;

use super::{Band, Chart, ChartKind, ChartLine, Heat};
use crate::format::{self, count, opt_number};

/// Lines that the sentence speaks of.
const MOST_LINES: usize = 3;
/// Shares that a percentile curve is read at.
const SHARES: [(&str, f64); 5] =
    [("50 %", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("99.9 %", 0.999), ("99.99 %", 0.9999)];

/// A chart in words and numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AltText {
    /// Description in a sentence.
    pub sentence: String,
    /// Heading of the names of the rows.
    pub first: &'static str,
    /// Headings of the cells.
    pub heads: Vec<String>,
    /// A name and its cells.
    pub rows: Vec<(String, Vec<String>)>,
    /// Meaning of the cells.
    pub note: &'static str,
}

/// The chart in words; none: it is a list already, or has no numbers.
pub fn alt_text(chart: &Chart, time: &[f64], phases: &[Band]) -> Option<AltText> {
    match chart.kind {
        ChartKind::Time | ChartKind::Scatter => by_phase(chart, time, phases),
        ChartKind::Distribution => curve(chart, &SHARES.map(|(name, share)| (name.to_owned(), share))),
        ChartKind::Cdf => curve(chart, &decades(chart)),
        ChartKind::Lines => curve(chart, &x_marks(chart)),
        ChartKind::Heat => heat(chart, chart.heat.as_ref()?, time, phases),
        ChartKind::Bars => None,
    }
}

/// The middle of some values, and their ends.
struct ValueRange {
    low: f64,
    middle: f64,
    high: f64,
}

impl ValueRange {
    fn from_values(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        Some(Self { low, middle: values[values.len() / 2], high })
    }

    fn cell(range: Option<Self>) -> String {
        match range {
            None => format::NOTHING.to_owned(),
            Some(range) if range.low == range.high => format::number(range.middle),
            Some(Self { low, middle, high }) => {
                let [low, middle, high] = [low, middle, high].map(format::number);
                format!("{middle} ({low} to {high})")
            }
        }
    }
}

fn within<'a>(
    line: &'a ChartLine,
    time: &'a [f64],
    phase: Option<&'a Band>,
) -> impl Iterator<Item = f64> + 'a {
    let inside = move |at: f64| phase.is_none_or(|phase| at >= phase.start && at < phase.end);
    line.values.iter().zip(time).filter(move |(_, at)| inside(**at)).filter_map(|(value, _)| *value)
}

fn by_phase(chart: &Chart, time: &[f64], phases: &[Band]) -> Option<AltText> {
    let lines: Vec<&ChartLine> = chart.lines.iter().filter(|line| line.is_known()).collect();
    let row = |name: &str, phase: Option<&Band>| {
        let cells = lines
            .iter()
            .map(|line| ValueRange::cell(ValueRange::from_values(within(line, time, phase))))
            .collect();
        (name.to_owned(), cells)
    };
    let mut rows: Vec<_> = phases.iter().map(|phase| row(&phase.name, Some(phase))).collect();
    rows.push(row("whole run", None));
    let said: Vec<String> = lines
        .iter()
        .take(MOST_LINES)
        .filter_map(|line| line_sentence(line, &chart.unit, time, phases))
        .collect();
    let more = match lines.len().saturating_sub(MOST_LINES) {
        0 => String::new(),
        1 => " One more line is in the table.".to_owned(),
        more => format!(" {more} more lines are in the table."),
    };
    (!said.is_empty()).then(|| AltText {
        sentence: format!("{}.{more}", said.join("; ")),
        first: "phase",
        heads: lines.iter().map(|line| line.name.clone()).collect(),
        rows,
        note: "The middle one of the points drawn, and in brackets the lowest and the highest of them.",
    })
}

/// `answered: mostly 399 requests/s, from 120 to 580 (highest in top2)`.
fn line_sentence(line: &ChartLine, unit: &str, time: &[f64], phases: &[Band]) -> Option<String> {
    let ValueRange { low, middle, high } = ValueRange::from_values(within(line, time, None))?;
    let peak_at = line.values.iter().zip(time).find(|(value, _)| **value == Some(high)).map(|(_, at)| *at);
    let phase = peak_at.and_then(|at| phases.iter().find(|phase| at >= phase.start && at < phase.end));
    let [shown_low, shown_middle, shown_high] = [low, middle, high].map(format::number);
    Some(match phase {
        _ if low == high => format!("{}: {shown_middle} {unit} throughout", line.name),
        Some(phase) => format!(
            "{}: mostly about {shown_middle} {unit}, from {shown_low} to {shown_high} (highest in {})",
            line.name, phase.name
        ),
        None => {
            format!("{}: mostly about {shown_middle} {unit}, from {shown_low} to {shown_high}", line.name)
        }
    })
}

/// Factors of ten that a cumulative curve crosses.
fn decades(chart: &Chart) -> Vec<(String, f64)> {
    let x: Vec<f64> = chart
        .lines
        .first()
        .and_then(|line| line.x.as_ref())
        .into_iter()
        .flatten()
        .flatten()
        .copied()
        .collect();
    let (Some(first), Some(last)) = (x.first(), x.last()) else { return Vec::new() };
    let [low, high] = [first.log10().ceil() as i32, last.log10().ceil() as i32];
    let unit = chart.x_label.as_deref().unwrap_or_default();
    let name = |decade| format!("up to {} {unit}", format::number(10f64.powi(decade)));
    (low..=high).map(|decade| (name(decade), 10f64.powi(decade))).collect()
}

/// Every x of lines that have the same.
fn x_marks(chart: &Chart) -> Vec<(String, f64)> {
    let x = chart.lines.first().and_then(|line| line.x.as_ref());
    let unit = chart.x_label.as_deref().unwrap_or_default();
    let name = |x: f64| (format!("{} {unit}", format::number(x)), x);
    x.into_iter().flatten().flatten().copied().map(name).collect()
}

/// Curves at some places of their x.
fn curve(chart: &Chart, x_marks: &[(String, f64)]) -> Option<AltText> {
    let lines: Vec<&ChartLine> = chart.lines.iter().filter(|line| line.is_known()).collect();
    let at = |line: &ChartLine, place: f64| {
        let x = line.x.as_ref()?;
        // The last point is the end of a curve: all are below.
        let found = x.iter().position(|x| x.is_some_and(|x| x >= place * (1.0 - 1e-6)));
        line.values.get(found.unwrap_or(x.len().checked_sub(1)?)).copied().flatten()
    };
    let cells = |line: &ChartLine| x_marks.iter().map(|(_, place)| opt_number(at(line, *place))).collect();
    let said = lines.iter().take(MOST_LINES).map(|line| {
        let read = x_marks.iter().filter_map(|(name, place)| Some((name, at(line, *place)?)));
        let read: Vec<String> =
            read.map(|(name, value)| format!("{name}: {} {}", format::number(value), chart.unit)).collect();
        format!("{}: {}", line.name, read.join(", "))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| AltText {
        sentence: format!("{}.", said.join("; ")),
        first: if chart.kind == ChartKind::Lines { "line" } else { "requests" },
        heads: x_marks.iter().map(|(name, _)| name.clone()).collect(),
        rows: lines.iter().map(|line| (line.name.clone(), cells(line))).collect(),
        note: match chart.kind {
            ChartKind::Cdf => "Share of requests, in percent.",
            ChartKind::Lines => "The mean at each point.",
            _ => "Time that the given share of requests took at most, in ms.",
        },
    })
}

fn heat(chart: &Chart, heat: &Heat, time: &[f64], phases: &[Band]) -> Option<AltText> {
    let of = |phase: Option<&Band>| {
        let mut rows: Vec<u64> = vec![0; heat.y_edges.len().saturating_sub(1)];
        let inside = |at: f64| phase.is_none_or(|phase| at >= phase.start && at < phase.end);
        for (cells, _) in heat.cells.iter().zip(time).filter(|(_, at)| inside(**at)) {
            rows.iter_mut().zip(cells).for_each(|(sum, count)| *sum += count);
        }
        rows
    };
    let upto = |rows: &[u64], share: f64| {
        let all: u64 = rows.iter().sum();
        let wanted = ((all as f64 * share).ceil() as u64).max(1);
        let mut sum = 0;
        let row = rows.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        heat.y_edges.get(row? + 1).copied()
    };
    let row = |name: &str, phase: Option<&Band>| {
        let rows = of(phase);
        let ends = [0.5, 0.99, 1.0].map(|share| opt_number(upto(&rows, share)));
        (name.to_owned(), [vec![count(rows.iter().sum())], ends.to_vec()].concat())
    };
    let mut rows: Vec<_> = phases.iter().map(|phase| row(&phase.name, Some(phase))).collect();
    let whole = of(None);
    rows.push(row("whole run", None));
    let [half, most, all] = [0.5, 0.99, 1.0].map(|share| opt_number(upto(&whole, share)));
    let unit = &chart.unit;
    Some(AltText {
        sentence: format!(
            "{} requests: half took up to {half} {unit}, 99 % up to {most} {unit}, all up to {all} {unit}.",
            count(whole.iter().sum())
        ),
        first: "phase",
        heads: ["requests", "half up to, ms", "99 % up to, ms", "all up to, ms"].map(str::to_owned).into(),
        rows,
        note: "To the width of a row of the map.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::time_chart;

    fn phases() -> [Band; 2] {
        let band = |name: &str, start, end| Band { name: name.into(), start, end, disturbed: false };
        [band("warm", 0.0, 2.0), band("top", 2.0, 4.0)]
    }

    #[test]
    fn a_chart_over_time_is_said_with_its_ends_and_where_it_is_highest() {
        let line = ChartLine::new("responses", "all", vec![Some(10.0), Some(20.0), Some(30.0), None]);
        let none = ChartLine::new("waiting", "all", vec![None; 4]);
        let chart = time_chart("Load", "rate", "Rate", "1/s", "", vec![line, none]);
        let said = alt_text(&chart, &[0.5, 1.5, 2.5, 3.5], &phases()).unwrap();
        assert_eq!(said.sentence, "responses: mostly about 20.0 1/s, from 10.0 to 30.0 (highest in top).");
        assert_eq!(said.heads, ["responses"]);
        let cells: Vec<_> = said.rows.iter().map(|row| (row.0.as_str(), row.1[0].as_str())).collect();
        let expected =
            [("warm", "20.0 (10.0 to 20.0)"), ("top", "30.0"), ("whole run", "20.0 (10.0 to 30.0)")];
        assert_eq!(cells, expected);
    }

    #[test]
    fn a_heat_map_is_said_by_phase() {
        let heat =
            Heat { y_edges: vec![1.0, 2.0, 4.0], cells: vec![vec![3], vec![], vec![0, 1], vec![0, 1]] };
        let chart = Chart {
            kind: ChartKind::Heat,
            heat: Some(heat),
            ..time_chart("Response time", "heat", "Every hit", "ms", "", Vec::new())
        };
        let said = alt_text(&chart, &[0.5, 1.5, 2.5, 3.5], &phases()).unwrap();
        assert_eq!(said.rows[0].1, ["3", "2.00", "2.00", "2.00"]);
        assert_eq!(said.rows[1].1, ["2", "4.00", "4.00", "4.00"]);
        assert!(said.sentence.starts_with("5 requests: half took up to 2.00 ms"), "{}", said.sentence);
    }

    #[test]
    fn a_chart_without_numbers_says_nothing() {
        let chart =
            time_chart("Load", "rate", "Rate", "1/s", "", vec![ChartLine::new("a", "all", vec![None])]);
        assert_eq!(alt_text(&chart, &[0.5], &phases()), None);
    }
}
