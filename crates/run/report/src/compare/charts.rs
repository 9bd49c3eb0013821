//! Charts of a comparison: subjects over each other, a group of charts for each workload and condition.
//!
//! A line is the mean over a subject's runs; the band around it reaches from the lowest run to the highest.

use assay_measurement::histogram::Histogram;

use super::chart_group::{ChartGroup, ComparisonAxis, StepRow};
use super::scope;
use super::views::{self, SubjectStyle};
use crate::chart::{self, Chart, ChartKind, ChartLine, short};

/// Small charts, one for each phase, that a panel has at most.
const MOST_PHASES: usize = 12;

/// Response times of each subject in one stretch of the schedule.
pub struct ScopeTimes<'a> {
    pub name: &'a str,
    pub times: Vec<Histogram>,
}

/// Reads the value of a step.
type ReadStep = fn(&StepRow) -> Option<f64>;

/// Chart of one value over time.
struct StepChart {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    unit: &'static str,
    log: bool,
    read: ReadStep,
}

const fn over_time(id: &'static str, title: &'static str, unit: &'static str, read: ReadStep) -> StepChart {
    StepChart { id, title, about: "", unit, log: false, read }
}

impl StepChart {
    const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    const fn log(self) -> Self {
        Self { log: true, ..self }
    }
}

const OVER_TIME: [StepChart; 14] = [
    over_time("rate", "Throughput", "1/s", |row| row.throughput)
        .about("Responses without error, per second; dashed: offered."),
    over_time("bandwidth", "Bandwidth", "Mbit/s", |row| row.bandwidth_mbit_s)
        .about("To the robots, heads included, in millions of bits."),
    over_time("response", "Response time", "ms", |row| row.response_ms)
        .about("Mean of what ended in each step.")
        .log(),
    over_time("hit", "Response time of hits", "ms", |row| row.hit_ms).about("Mean of each step.").log(),
    over_time("miss", "Response time of misses", "ms", |row| row.miss_ms).about("Mean of each step.").log(),
    over_time("p99", "Response time, 99 %", "ms", |row| row.p99_ms)
        .about("One request in a hundred took longer.")
        .log(),
    over_time("dhr", "Document hit ratio", "%", |row| row.dhr_percent).about("Measured, of plain GETs."),
    over_time("bhr", "Byte hit ratio", "%", |row| row.bhr_percent)
        .about("Measured, of the bodies of plain GETs."),
    over_time("connections", "Connections of robots", "connections", |row| row.connections)
        .about("Open at once, at most."),
    over_time("origin-connections", "Connections to origins", "connections", |row| row.origin_connections)
        .about("Open at once, at most."),
    over_time("origin-bandwidth", "Bandwidth from the origins", "Mbit/s", |row| row.origin_mbit_s)
        .about("Heads included, in millions of bits."),
    over_time("cpu", "Processors used", "processors", |row| row.cpu)
        .about("By the proxy’s processes, user and system."),
    over_time("memory", "Memory", "MB", |row| row.memory_mb).about("Resident, of the proxy’s processes."),
    over_time("disk", "Disk", "MB/s", |row| row.disk_mb_s)
        .about("Read from and written to the disk that the proxy’s files are on, by anybody."),
];

/// The charts of a workload under a condition: for each subject its label and the rows of each of its runs, and response
/// times by stretch of the schedule, the whole first.
pub fn panel(
    title: String,
    number: usize,
    axis: &ComparisonAxis,
    subjects: &[(&str, Vec<&[StepRow]>)],
    stretches: &[ScopeTimes<'_>],
) -> ChartGroup {
    let steps = axis.time.len();
    let over_time = OVER_TIME.iter().map(|what| {
        let mut lines: Vec<ChartLine> = Vec::new();
        if what.id == "rate" {
            lines.extend(offered(subjects, steps));
        }
        lines.extend(subject_lines(subjects, steps, what.read));
        let id = format!("{}-{number}", what.id);
        let chart = chart::time_chart("", id, what.title, what.unit, what.about, lines);
        Chart { axis: number, log: what.log, ..chart }
    });
    let mut charts: Vec<Chart> =
        over_time.filter(|chart| chart.lines.iter().any(ChartLine::is_known)).collect();
    charts.push(at_robots(number, subjects, steps));
    charts.extend(
        Some(at_origins(number, subjects, steps)).filter(|chart| chart.lines.iter().any(ChartLine::is_known)),
    );
    let labels: Vec<&str> = subjects.iter().map(|subject| subject.0).collect();
    let mut curves = stretches.iter().take(MOST_PHASES + 1).enumerate().map(|(index, stretch)| {
        let id = if index == 0 { format!("percentiles-{number}") } else { format!("phase{index}-{number}") };
        percentiles(id, number, &labels, stretch, index == 0)
    });
    charts.extend(curves.next());
    let phases: Vec<Chart> = curves.collect();
    ChartGroup { title, axis: axis.clone(), charts, phases }
}

fn at_robots(number: usize, subjects: &[(&str, Vec<&[StepRow]>)], steps: usize) -> Chart {
    let reads: [ReadStep; 2] = [|row| row.response_ms, |row| row.throughput];
    let about = "A point per step, at the robots: a wall on the right is saturation.";
    against_rate(
        (format!("against-{number}"), "Response time against rate", about),
        number,
        subjects,
        steps,
        reads,
    )
}

fn at_origins(number: usize, subjects: &[(&str, Vec<&[StepRow]>)], steps: usize) -> Chart {
    let reads: [ReadStep; 2] = [|row| row.origin_ms, |row| row.origin_throughput];
    let about = "A point per step, at the origins, think time included.";
    let id = format!("against-origin-{number}");
    against_rate((id, "Response time of origins against their rate", about), number, subjects, steps, reads)
}

fn against_rate(
    (id, title, about): (String, &'static str, &'static str),
    number: usize,
    subjects: &[(&str, Vec<&[StepRow]>)],
    steps: usize,
    [time, rate]: [ReadStep; 2],
) -> Chart {
    let lines = subject_lines(subjects, steps, time)
        .into_iter()
        .zip(subject_lines(subjects, steps, rate))
        .map(|(line, rate)| ChartLine { x: Some(rate.values), low: None, high: None, ..line });
    let chart = chart::time_chart("", id, title, "ms", about, lines.collect());
    Chart { kind: ChartKind::Scatter, axis: number, x_label: Some("responses/s".into()), ..chart }
}

/// Percentile curves, each over all runs of a subject.
fn percentiles(id: String, number: usize, labels: &[&str], stretch: &ScopeTimes<'_>, whole: bool) -> Chart {
    let named: Vec<_> = labels
        .iter()
        .zip(&stretch.times)
        .enumerate()
        .map(|(index, (label, times))| (*label, views::subject_style(index).colour, times))
        .collect();
    let title = if whole {
        format!("Percentile curves, {}", scope::scope_title(stretch.name))
    } else {
        stretch.name.to_owned()
    };
    let about = match whole {
        true => {
            "How long the given share of requests took at most, over all runs. Each mark to the right is ten times rarer."
        }
        false => "Response time of the given share of requests, over all runs.",
    };
    let mut chart = chart::distribution(id, title, about, &named);
    for (index, line) in chart.lines.iter_mut().enumerate() {
        line.dash = views::subject_style(index).dash;
    }
    Chart { axis: number, ..chart }
}

/// Offered rate, from the first run there is: all were offered the same.
fn offered(subjects: &[(&str, Vec<&[StepRow]>)], steps: usize) -> Option<ChartLine> {
    let first = subjects.iter().flat_map(|subject| subject.1.first()).next()?;
    let values = (0..steps).map(|step| first.get(step)?.offered.map(short)).collect();
    Some(chart::dashed(ChartLine::new("offered", "offered", values)))
}

fn subject_lines(subjects: &[(&str, Vec<&[StepRow]>)], steps: usize, read: ReadStep) -> Vec<ChartLine> {
    let line = |(index, (label, runs)): (usize, &(&str, Vec<&[StepRow]>))| {
        let of_step =
            |step: usize| -> Vec<f64> { runs.iter().filter_map(|rows| read(rows.get(step)?)).collect() };
        let values: Vec<Vec<f64>> = (0..steps).map(of_step).collect();
        let each = |of: fn(&[f64]) -> Option<f64>| values.iter().map(|all| of(all).map(short)).collect();
        let several = runs.len() > 1;
        let SubjectStyle { colour, dash } = views::subject_style(index);
        let mean = each(|all| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64));
        ChartLine {
            dash,
            low: several.then(|| each(|all| all.iter().copied().reduce(f64::min))),
            high: several.then(|| each(|all| all.iter().copied().reduce(f64::max))),
            ..ChartLine::new(*label, colour, mean)
        }
    };
    subjects.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(throughput: f64) -> StepRow {
        StepRow { throughput: Some(throughput), offered: Some(10.0), ..StepRow::default() }
    }

    #[test]
    fn a_line_is_the_mean_of_runs_and_its_band_reaches_from_the_lowest_to_the_highest() {
        let axis = ComparisonAxis {
            step_ms: 1000,
            end_ms: 2000,
            step_s: 1.0,
            time: vec![0.5, 1.5],
            phases: Vec::new(),
        };
        let (one, other) = ([row(10.0), row(20.0)], [row(20.0)]);
        let stretch = |name| ScopeTimes { name, times: vec![Histogram::new(), Histogram::new()] };
        let subjects = [("a", vec![&one[..], &other[..]]), ("b", vec![])];
        let panel = panel("w".into(), 3, &axis, &subjects, &[stretch("whole run"), stretch("top1")]);
        let rate = &panel.charts[0];
        assert_eq!((rate.id.as_ref(), rate.lines.len()), ("rate-3", 3));
        assert_eq!(rate.lines[0].values, [Some(10.0), None.or(Some(10.0))]);
        assert_eq!(rate.lines[1].values, [Some(15.0), Some(20.0)], "the second run is shorter");
        assert_eq!(rate.lines[1].high, Some(vec![Some(20.0), Some(20.0)]));
        assert_eq!(rate.lines[2].values, [None, None]);
        assert_eq!(panel.charts.len(), 3, "what nobody measured is left out");
        assert_eq!((panel.phases.len(), panel.phases[0].id.as_ref()), (1, "phase1-3"));
    }
}
