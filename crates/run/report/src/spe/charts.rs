//! Charts of an evaluation.

use std::collections::BTreeMap;

use super::document::Evaluation;
use super::tables::{EvaluationData, ReplayPaces};
use crate::chart::{self, Chart, ChartLine, Charts, short};
use crate::compare::views::subject_style;

/// Steps of the time axis at most.
const STEPS: u32 = 300;
const TIMES: &str = "Response time";
const TRAFFIC: &str = "Traffic";

/// The charts, all targets over each other.
pub(super) fn charts(evaluation: &Evaluation, data: &EvaluationData) -> Charts {
    let lasted_s = evaluation.duration_s.unwrap_or(0.0).max(data.last_us as f64 / 1e6).max(1.0);
    // A damaged table may claim anything.
    let step_s = (lasted_s.min(3.2e7) as u32).div_ceil(STEPS).max(1);
    let count = (lasted_s.min(3.2e7) as u32).div_ceil(step_s).max(1);
    let time: Vec<f64> = (0..count).map(|step| (f64::from(step) + 0.5) * f64::from(step_s)).collect();
    let labels: Vec<&str> = evaluation.targets.iter().map(|target| target.label.as_str()).collect();
    let named: Vec<_> = labels
        .iter()
        .zip(&data.sums)
        .enumerate()
        .map(|(index, (label, sums))| (*label, subject_style(index).colour, &sums.response))
        .collect();
    let mut charts = vec![
        chart::cdf(
            "cdf",
            "Cumulative distribution",
            "The share of responses that took no longer than that: as figures 11.13 and 11.14 of the method's source.",
            &named,
        ),
        chart::distribution(
            "percentiles",
            "Percentile curves",
            "How long the given share of responses took at most. Each mark to the right is ten times rarer.",
            &named,
        ),
    ];
    let sums = data.sums.iter().map(|sums| &sums.seconds);
    let means = lines(&labels, sums, step_s, count, |all: &[(u64, u64)]| {
        let (sum, count) = all.iter().fold((0, 0), |(sum, count), more| (sum + more.0, count + more.1));
        (count > 0).then(|| short(sum as f64 / count as f64 / 1000.0))
    });
    let about = "Mean response time of the requests that were put to the target then.";
    charts.push(chart::logarithmic(chart::time_chart(
        TIMES,
        "mean-over-time",
        "Over time",
        "ms",
        about,
        means,
    )));
    if let Some(listeners) = &data.listeners {
        let seconds = listeners.iter().map(|listener| &listener.seconds);
        let rates = lines(&labels, seconds, step_s, count, |all: &[u64]| {
            Some(short(all.iter().sum::<u64>() as f64 * 8.0 / 1e6 / f64::from(step_s)))
        });
        let about = "What each target received from the Collector: what it would have cost in bandwidth.";
        charts.push(chart::time_chart(
            TRAFFIC,
            "received",
            "Received from the Collector",
            "Mbit/s",
            about,
            rates,
        ));
    }
    charts.extend(data.paces.iter().flat_map(paces));
    charts.iter_mut().for_each(tell_apart);
    Charts { phases: Vec::new(), step_s: f64::from(step_s), time, charts }
}

/// Charts that compare the pace of replayed responses with that of fetched ones.
fn paces(paces: &ReplayPaces) -> Vec<Chart> {
    if paces.fetched.count() == 0 || paces.replayed.count() == 0 {
        return Vec::new();
    }
    let both = [
        ("fetched", subject_style(0).colour, &paces.fetched),
        ("from a recording", subject_style(1).colour, &paces.replayed),
    ];
    let differences = [("difference", subject_style(0).colour, &paces.differences)];
    vec![
        chart::cdf(
            "collector-cdf",
            "Misses and repeated misses at the Collector",
            "The share of responses that took no longer than that, as figure 11.10 of the method's source.",
            &both,
        ),
        chart::cdf(
            "collector-differences",
            "Differences between a miss and its repetition",
            "Both responses to one request of a client: the share of differences that are no larger, as figure 11.11 of the \
             method's source.",
            &differences,
        ),
    ]
}

/// Lines are told apart without their colours, too.
fn tell_apart(chart: &mut Chart) {
    for (index, line) in chart.lines.iter_mut().enumerate() {
        line.dash = subject_style(index).dash;
    }
}

/// A line for each target: what its seconds say, by step.
fn lines<'a, T: Copy + 'a>(
    labels: &[&str],
    seconds: impl Iterator<Item = &'a BTreeMap<u32, T>>,
    step_s: u32,
    count: u32,
    value: impl Fn(&[T]) -> Option<f64>,
) -> Vec<ChartLine> {
    let of_step = |of: &BTreeMap<u32, T>, step: u32| {
        let within: Vec<T> = of.range(step * step_s..(step + 1) * step_s).map(|(_, value)| *value).collect();
        value(&within)
    };
    let line = |(index, (label, of)): (usize, (&&str, &BTreeMap<u32, T>))| {
        ChartLine::new(
            *label,
            subject_style(index).colour,
            (0..count).map(|step| of_step(of, step)).collect(),
        )
    };
    labels.iter().zip(seconds).enumerate().map(line).collect()
}
