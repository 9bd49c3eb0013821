//! What the comparison's charts show: subjects over each other, a panel per workload and condition.
//!
//! A line is the mean over a subject's runs; the band around it reaches from the lowest run to the highest.

use assay_measurement::histogram::Histogram;

use super::panel::{Axis, Panel, Row};
use super::scope;
use super::views::{self, Look};
use assay_report::chart::{self, Chart, Kind, Line, short};

/// Small charts, one for each phase, that a panel has at most.
const MOST_PHASES: usize = 12;

/// Response times of each subject in one stretch of the schedule.
pub struct Stretch<'a> {
    pub name: &'a str,
    pub times: Vec<Histogram>,
}

/// What a chart shows of a step.
type Read = fn(&Row) -> Option<f64>;

/// Title, what is seen, unit, logarithmic, value.
const OVER_TIME: [(&str, &str, &str, &str, bool, Read); 6] = [
    ("rate", "Throughput", "Responses without error, per second; dashed: offered.", "1/s", false, |row| {
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

/// The charts of a workload under a condition: for each subject its label and the rows of each of its runs, and response
/// times by stretch of the schedule, the whole first.
pub fn panel(
    title: String,
    number: usize,
    axis: &Axis,
    subjects: &[(&str, Vec<&[Row]>)],
    stretches: &[Stretch<'_>],
) -> Panel {
    let steps = axis.time.len();
    let over_time = OVER_TIME.iter().map(|(id, title, about, unit, log, read)| {
        let mut lines: Vec<Line> = Vec::new();
        if *id == "rate" {
            lines.extend(offered(subjects, steps));
        }
        lines.extend(subject_lines(subjects, steps, *read));
        let chart = chart::time_chart("", format!("{id}-{number}"), *title, *unit, *about, lines);
        Chart { axis: number, log: *log, ..chart }
    });
    let mut charts: Vec<Chart> = over_time.filter(|chart| chart.lines.iter().any(Line::is_known)).collect();
    charts.push(against_rate(number, subjects, steps));
    let labels: Vec<&str> = subjects.iter().map(|subject| subject.0).collect();
    let mut curves = stretches.iter().take(MOST_PHASES + 1).enumerate().map(|(index, stretch)| {
        let id = if index == 0 { format!("percentiles-{number}") } else { format!("phase{index}-{number}") };
        percentiles(id, number, &labels, stretch, index == 0)
    });
    charts.extend(curves.next());
    let phases: Vec<Chart> = curves.collect();
    Panel { title, axis: axis.clone(), charts, phases }
}

fn against_rate(number: usize, subjects: &[(&str, Vec<&[Row]>)], steps: usize) -> Chart {
    let lines = subject_lines(subjects, steps, |row| row.response_ms)
        .into_iter()
        .zip(subject_lines(subjects, steps, |row| row.throughput))
        .map(|(line, rate)| Line { x: Some(rate.values), low: None, high: None, ..line });
    let about = "A point per step, at the robots: a wall on the right is saturation.";
    let id = format!("against-{number}");
    let chart = chart::time_chart("", id, "Response time against rate", "ms", about, lines.collect());
    Chart { kind: Kind::Scatter, axis: number, x_label: Some("responses/s".into()), ..chart }
}

/// How long which share of requests took, of all runs of a subject together.
fn percentiles(id: String, number: usize, labels: &[&str], stretch: &Stretch<'_>, whole: bool) -> Chart {
    let named: Vec<_> = labels
        .iter()
        .zip(&stretch.times)
        .enumerate()
        .map(|(index, (label, times))| (*label, views::look(index).colour, times))
        .collect();
    let title = if whole {
        format!("Percentile curves, {}", scope::words(stretch.name))
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
        line.dash = views::look(index).dash;
    }
    Chart { axis: number, ..chart }
}

/// What was offered is the same for all: it is taken from the first run there is.
fn offered(subjects: &[(&str, Vec<&[Row]>)], steps: usize) -> Option<Line> {
    let first = subjects.iter().flat_map(|subject| subject.1.first()).next()?;
    let values = (0..steps).map(|step| first.get(step)?.offered.map(short)).collect();
    Some(chart::dashed(Line::new("offered", "offered", values)))
}

fn subject_lines(subjects: &[(&str, Vec<&[Row]>)], steps: usize, read: Read) -> Vec<Line> {
    let line = |(index, (label, runs)): (usize, &(&str, Vec<&[Row]>))| {
        let of_step =
            |step: usize| -> Vec<f64> { runs.iter().filter_map(|rows| read(rows.get(step)?)).collect() };
        let values: Vec<Vec<f64>> = (0..steps).map(of_step).collect();
        let each = |of: fn(&[f64]) -> Option<f64>| values.iter().map(|all| of(all).map(short)).collect();
        let several = runs.len() > 1;
        let Look { colour, dash } = views::look(index);
        let mean = each(|all| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64));
        Line {
            dash,
            low: several.then(|| each(|all| all.iter().copied().reduce(f64::min))),
            high: several.then(|| each(|all| all.iter().copied().reduce(f64::max))),
            ..Line::new(*label, colour, mean)
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
        let stretch = |name| Stretch { name, times: vec![Histogram::new(), Histogram::new()] };
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
