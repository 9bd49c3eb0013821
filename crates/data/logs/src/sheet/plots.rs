//! What of an analysis is drawn: outcomes and response times over time, and the distribution of times by outcome.

use std::collections::{BTreeMap, BTreeSet};

use assay_record::sheet::{Plot, PlotKind, PlotLine, TimeAxis};

use crate::document::{Figures, LogsDocument, ResponseTimes, TimeStep};

/// Steps that a time axis has at most; a longer series is left to its table.
const MAX_STEPS: usize = 20_000;
/// Points of a cumulative curve for each factor of ten.
const POINTS_PER_DECADE: i32 = 24;
const COLOURS: [&str; 8] = ["hit", "s0", "s3", "miss", "s5", "error", "s7", "s6"];

/// The time axis, from the first request on; none: there is too little, or too much, to draw.
pub(super) fn time(document: &LogsDocument) -> Option<TimeAxis> {
    let every_ms = document.every_ms.filter(|_| document.time.len() > 2)?;
    let (first, last) = (document.time.first()?.from_unix_ms, document.time.last()?.from_unix_ms);
    let steps = ((last - first) / every_ms).round() as usize + 1;
    let step_s = every_ms / 1e3;
    let spans = document.phases.iter().map(|phase| {
        // A phase without an end reaches to that of the log.
        let at = |unix_ms: f64| ((unix_ms - first) / 1e3).clamp(0.0, steps as f64 * step_s);
        (phase.name.clone(), at(phase.from_unix_ms), at(phase.to_unix_ms))
    });
    (steps <= MAX_STEPS).then(|| TimeAxis {
        step_s,
        middle_s: (0..steps).map(|step| (step as f64 + 0.5) * step_s).collect(),
        spans: spans.collect(),
    })
}

/// Name, role, and how many requests of some figures are of that part.
type OutcomeLine<'a> = (&'static str, &'static str, &'a dyn Fn(&Figures) -> Option<u64>);
/// Name, role, and which of the times it is.
type PercentileLine = (&'static str, &'static str, fn(&ResponseTimes) -> f64);

/// Requests by outcome, hit ratio and response times, over time.
pub(super) fn over_time(document: &LogsDocument, axis: &TimeAxis) -> Vec<Plot> {
    let has_outcomes = document.all.dhr.is_some();
    let others = |f: &Figures| {
        let nonempty = [f.local_hits, f.sibling_hits, f.parent_hits, f.errors];
        has_outcomes.then(|| f.requests - nonempty.into_iter().flatten().sum::<u64>())
    };
    let parts: [OutcomeLine<'_>; 6] = [
        ("all", "all", &|f| Some(f.requests)),
        ("local hits", "hit", &|f| f.local_hits),
        ("sibling hits", "s0", &|f| f.sibling_hits),
        ("parent hits", "s3", &|f| f.parent_hits),
        ("everything else", "miss", &others),
        ("errors", "error", &|f| f.errors),
    ];
    let shown = parts.iter().filter(|(_, _, of)| of(&document.all).is_some_and(|requests| requests > 0));
    let rates = shown.map(|(name, role, of)| {
        rate(document, axis, name, role, &|step| of(&step.figures).unwrap_or_default())
    });
    let mut plots = vec![Plot {
        id: "requests",
        title: "Requests".into(),
        about: "By what became of them, in each step.".into(),
        unit: "requests/s".into(),
        lines: rates.collect(),
        ..Plot::default()
    }];
    if document.failed.is_some() {
        plots.push(counts(document, axis, "statuses", "Requests by status", |step| &step.by_status));
    }
    if document.all.dhr.is_some() {
        let ratio = |name, role, of: fn(&Figures) -> Option<f64>| {
            line(document, axis, name, role, &|step| {
                step.and_then(|step| of(&step.figures)).map(|ratio| ratio * 100.0)
            })
        };
        plots.push(Plot {
            id: "hit-ratios",
            title: "Hit ratios".into(),
            about: "Hits over the requests of a step whose outcome is known, and bytes of hits over the bytes of these.".into(),
            unit: "%".into(),
            lines: vec![ratio("of documents", "hit", |f| f.dhr), ratio("of bytes", "offered", |f| f.bhr)],
            ..Plot::default()
        });
    }
    if document.all.response.is_some() {
        let percentiles: [PercentileLine; 4] = [
            ("mean", "all", |r| r.mean_ms),
            ("median", "p50", |r| r.p50_ms),
            ("95 %", "p90", |r| r.p95_ms),
            ("99 %", "p99", |r| r.p99_ms),
        ];
        let times = percentiles.iter().map(|(name, role, of)| {
            line(document, axis, name, role, &|step| {
                step.and_then(|step| step.figures.response.as_ref()).map(of)
            })
        });
        plots.push(Plot {
            id: "response-times",
            title: "Response time".into(),
            about: "Mean and percentiles of each step.".into(),
            unit: "ms".into(),
            log: true,
            lines: times.collect(),
            ..Plot::default()
        });
    }
    plots
}

/// Requests a second by a name that steps give them, a line each.
pub(super) fn counts(
    document: &LogsDocument,
    axis: &TimeAxis,
    id: &'static str,
    title: &str,
    of: fn(&TimeStep) -> &BTreeMap<String, u64>,
) -> Plot {
    let names: BTreeSet<&String> = document.time.iter().flat_map(|step| of(step).keys()).collect();
    let lines = names.iter().zip(COLOURS.iter().cycle()).map(|(name, role)| {
        rate(document, axis, name, role, &|step| of(step).get(*name).copied().unwrap_or_default())
    });
    Plot {
        id,
        title: title.into(),
        about: "Requests in each step.".into(),
        unit: "requests/s".into(),
        lines: lines.collect(),
        ..Plot::default()
    }
}

/// Requests a second. Steps that the log covers less than half of have no rate: the ends of a log are no outage.
fn rate(
    document: &LogsDocument,
    axis: &TimeAxis,
    name: &str,
    role: &'static str,
    of: &dyn Fn(&TimeStep) -> u64,
) -> PlotLine {
    let value = |step: Option<&TimeStep>| match step {
        None => Some(0.0),
        Some(step) if step.covered_ms / 1e3 * 2.0 < axis.step_s => None,
        Some(step) => Some(of(step) as f64 / (step.covered_ms / 1e3)),
    };
    line(document, axis, name, role, &value)
}

/// A value for every step of the axis, also those without requests.
fn line(
    document: &LogsDocument,
    axis: &TimeAxis,
    name: &str,
    role: &'static str,
    of: &dyn Fn(Option<&TimeStep>) -> Option<f64>,
) -> PlotLine {
    let mut values = vec![of(None); axis.middle_s.len()];
    let first = document.time.first().map_or(0.0, |first| first.from_unix_ms);
    for step in &document.time {
        let at = ((step.from_unix_ms - first) / 1e3 / axis.step_s).round() as usize;
        if let Some(value) = values.get_mut(at) {
            *value = of(Some(step));
        }
    }
    PlotLine { name: name.into(), role, values, ..PlotLine::default() }
}

/// The share of requests of each class that took no longer than a time.
pub(super) fn response(document: &LogsDocument) -> Option<Plot> {
    let classes: Vec<_> = document.by_class.iter().filter(|class| !class.distribution.is_empty()).collect();
    let times = || classes.iter().flat_map(|class| class.distribution.iter().map(|(ms, _)| ms.max(0.01)));
    let (first, last) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
    let place = |ms: f64| f64::from(POINTS_PER_DECADE) * ms.log10();
    let marks: Vec<f64> = (place(first).floor() as i32 - 1..=place(last).ceil() as i32 + 1)
        .map(|mark| 10f64.powf(f64::from(mark) / f64::from(POINTS_PER_DECADE)))
        .collect();
    let lines = classes.iter().zip(COLOURS.iter().cycle()).map(|(class, role)| {
        let total: u64 = class.distribution.iter().map(|(_, count)| count).sum();
        let (mut below, mut next) = (0, 0);
        let values = marks.iter().map(|mark| {
            // The edge of a bucket is a hair below what a mark of the same time is.
            while let Some((_, count)) =
                class.distribution.get(next).filter(|(ms, _)| *ms <= mark * (1.0 + 1e-9))
            {
                below += count;
                next += 1;
            }
            Some(below as f64 * 100.0 / total as f64)
        });
        PlotLine {
            name: class.name.clone(),
            role,
            values: values.collect(),
            x: marks.clone(),
            ..PlotLine::default()
        }
    });
    Some(Plot {
        id: "response-by-outcome",
        title: "Response time by outcome".into(),
        about: "The share of requests that took no longer.".into(),
        unit: "%".into(),
        kind: PlotKind::Cumulative,
        x_label: "ms".into(),
        lines: lines.collect(),
        ..Plot::default()
    })
}
