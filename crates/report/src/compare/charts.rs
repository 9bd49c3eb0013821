//! What the comparison's charts show: subjects over each other, a panel per workload and condition.
//!
//! A line is the mean over a subject's runs; the band around it reaches from the lowest run to the highest.

use assay_record::histogram::Histogram;
use assay_record::run::RunInfo;
use assay_record::series::Series;
use serde::Serialize;

use crate::chart::{Band, Kind, short};
use crate::steps::{Merged, Step, steps};
use crate::tally::Span;

/// Steps that a chart shows at most: there are many charts.
const MOST_STEPS: u64 = 240;
/// Colours that the page has for subjects; more of them share.
const COLOURS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// The time axis of a workload's charts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Axis {
    #[serde(skip)]
    step_ms: u64,
    #[serde(skip)]
    end_ms: u64,
    pub step_s: f64,
    pub time: Vec<f64>,
    pub phases: Vec<Band>,
}

/// What a run did in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Row {
    offered: Option<f64>,
    throughput: Option<f64>,
    response_ms: Option<f64>,
    p99_ms: Option<f64>,
    dhr_percent: Option<f64>,
    cpu: Option<f64>,
    memory_mb: Option<f64>,
}

impl Axis {
    /// The axis of a workload, from the first of its runs.
    pub(crate) fn of(info: &RunInfo, spans: &[Option<Span>]) -> Self {
        let end_ms = spans.iter().flatten().map(|span| span.end_ms).max().unwrap_or(0);
        let step_ms = end_ms.div_ceil(1000).div_ceil(MOST_STEPS).max(1) * 1000;
        let seconds = |ms: u64| ms as f64 / 1000.0;
        let count = end_ms.div_ceil(step_ms);
        let bands = info.phases.iter().zip(spans).filter_map(|(phase, span)| {
            let span = (*span)?;
            Some(Band {
                name: phase.name.clone(),
                start: seconds(span.start_ms),
                end: seconds(span.end_ms),
                invalid: false,
            })
        });
        Self {
            step_ms,
            end_ms,
            step_s: seconds(step_ms),
            time: (0..count).map(|index| (index as f64 + 0.5) * seconds(step_ms)).collect(),
            phases: bands.collect(),
        }
    }

    /// A run on this axis.
    pub(crate) fn rows(&self, series: &Series) -> Vec<Row> {
        let ruler = Histogram::new();
        steps(series, self.step_ms, self.time.len() as u64, self.end_ms)
            .iter()
            .map(|step| row(step, &ruler))
            .collect()
    }
}

fn row(step: &Step<'_>, ruler: &Histogram) -> Row {
    let counts = &step.robots;
    let all = Merged::of(step.hit.iter().chain(&step.miss).copied());
    let hidden = step.origins.validated_basic.saturating_sub(counts.revalidated);
    let hits = (counts.hits + counts.collapsed).saturating_sub(hidden);
    let proxy = step.roles.get("proxy");
    Row {
        offered: step.per_second(counts.due),
        throughput: step.per_second(counts.completed),
        response_ms: all.mean_us().map(|us| us / 1000.0),
        p99_ms: all.quantile_us(0.99, ruler).map(|us| us / 1000.0),
        dhr_percent: (counts.basic > 0).then(|| hits as f64 * 100.0 / counts.basic as f64),
        cpu: proxy.filter(|used| used.watched_us > 0).map(|used| used.cpu_us as f64 / used.watched_us as f64),
        memory_mb: proxy.map(|used| used.rss_bytes as f64 / f64::from(1 << 20)),
    }
}

/// The charts of one workload under one condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panel {
    pub title: String,
    pub axis: Axis,
    pub charts: Vec<PanelChart>,
}

/// One chart of a panel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PanelChart {
    pub id: String,
    /// Which time axis of the page it has.
    pub axis: usize,
    pub title: &'static str,
    pub about: &'static str,
    pub unit: &'static str,
    pub kind: Kind,
    pub log: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_label: Option<&'static str>,
    pub lines: Vec<PanelLine>,
}

/// One subject in a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PanelLine {
    pub name: String,
    pub role: &'static str,
    pub dashed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<Vec<Option<f64>>>,
    pub values: Vec<Option<f64>>,
    /// The lowest and the highest of its runs, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<Vec<Option<f64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<Vec<Option<f64>>>,
}

/// What a chart shows of a step.
type Read = fn(&Row) -> Option<f64>;

/// Title, what is seen, unit, logarithmic, value.
const OVER_TIME: [(&str, &str, &str, &str, bool, Read); 6] = [
    ("rate", "Throughput", "Answered without error, per second; dashed: offered.", "1/s", false, |row| {
        row.throughput
    }),
    ("response", "Response time", "Mean of what ended in each step.", "ms", true, |row| row.response_ms),
    ("p99", "Response time, 99 %", "One request in a hundred took longer.", "ms", true, |row| row.p99_ms),
    ("dhr", "Document hit ratio", "Measured, of plain GETs.", "%", false, |row| row.dhr_percent),
    ("cpu", "Processors used", "By the proxy’s processes, user and system.", "processors", false, |row| {
        row.cpu
    }),
    ("memory", "Memory", "Resident, of the proxy’s processes.", "MB", false, |row| row.memory_mb),
];

/// The charts of a workload under a condition: for each subject its label and the rows of each of its runs.
pub(crate) fn panel(title: String, number: usize, axis: &Axis, subjects: &[(&str, Vec<&[Row]>)]) -> Panel {
    let mut charts: Vec<PanelChart> = OVER_TIME
        .iter()
        .map(|(id, title, about, unit, log, read)| {
            let mut lines: Vec<PanelLine> = Vec::new();
            if *id == "rate" {
                lines.extend(offered(subjects, axis.time.len()));
            }
            lines.extend(subject_lines(subjects, axis.time.len(), *read));
            PanelChart {
                id: format!("{id}-{number}"),
                axis: number,
                title,
                about,
                unit,
                kind: Kind::Time,
                log: *log,
                x_label: None,
                lines,
            }
        })
        .filter(|chart| chart.lines.iter().any(|line| line.values.iter().any(Option::is_some)))
        .collect();
    charts.push(PanelChart {
        id: format!("against-{number}"),
        axis: number,
        title: "Response time against rate",
        about: "A point per step, at the robots: a wall on the right is saturation.",
        unit: "ms",
        kind: Kind::Scatter,
        log: false,
        x_label: Some("answers/s"),
        lines: subject_lines(subjects, axis.time.len(), |row| row.response_ms)
            .into_iter()
            .zip(subject_lines(subjects, axis.time.len(), |row| row.throughput))
            .map(|(line, rate)| PanelLine { x: Some(rate.values), low: None, high: None, ..line })
            .collect(),
    });
    Panel { title, axis: axis.clone(), charts }
}

/// What was offered is the same for all: it is taken from the first run there is.
fn offered(subjects: &[(&str, Vec<&[Row]>)], steps: usize) -> Option<PanelLine> {
    let first = subjects.iter().flat_map(|subject| subject.1.first()).next()?;
    Some(PanelLine {
        name: "offered".to_owned(),
        role: "offered",
        dashed: true,
        x: None,
        values: (0..steps).map(|step| first.get(step)?.offered.map(short)).collect(),
        low: None,
        high: None,
    })
}

fn subject_lines(subjects: &[(&str, Vec<&[Row]>)], steps: usize, read: Read) -> Vec<PanelLine> {
    let line = |(index, (label, runs)): (usize, &(&str, Vec<&[Row]>))| {
        let of_step =
            |step: usize| -> Vec<f64> { runs.iter().filter_map(|rows| read(rows.get(step)?)).collect() };
        let values: Vec<Vec<f64>> = (0..steps).map(of_step).collect();
        let each = |of: fn(&[f64]) -> Option<f64>| values.iter().map(|all| of(all).map(short)).collect();
        let several = runs.len() > 1;
        PanelLine {
            name: (*label).to_owned(),
            role: COLOURS[index % COLOURS.len()],
            dashed: false,
            x: None,
            values: each(|all| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)),
            low: several.then(|| each(|all| all.iter().copied().reduce(f64::min))),
            high: several.then(|| each(|all| all.iter().copied().reduce(f64::max))),
        }
    };
    subjects.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(throughput: f64) -> Row {
        Row { throughput: Some(throughput), offered: Some(10.0), ..Row::default() }
    }

    #[test]
    fn a_line_is_the_mean_of_runs_and_its_band_reaches_from_the_lowest_to_the_highest() {
        let axis =
            Axis { step_ms: 1000, end_ms: 2000, step_s: 1.0, time: vec![0.5, 1.5], phases: Vec::new() };
        let (one, other) = ([row(10.0), row(20.0)], [row(20.0)]);
        let panel = panel("w".into(), 3, &axis, &[("a", vec![&one, &other]), ("b", vec![])]);
        let rate = &panel.charts[0];
        assert_eq!((rate.id.as_str(), rate.lines.len()), ("rate-3", 3));
        assert_eq!(rate.lines[0].values, [Some(10.0), None.or(Some(10.0))]);
        assert_eq!(rate.lines[1].values, [Some(15.0), Some(20.0)], "the second run is shorter");
        assert_eq!(rate.lines[1].high, Some(vec![Some(20.0), Some(20.0)]));
        assert_eq!(rate.lines[2].values, [None, None]);
        assert_eq!(panel.charts.len(), 2, "what nobody measured is left out");
    }
}
