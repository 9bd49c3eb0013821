//! Charts of how well Assay itself did, on the time axis of the run.

use std::collections::BTreeSet;

use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::measured::Series;

use super::steps::{OwnStep, ProcessorTime};
use crate::chart::{Chart, ChartLine, dashed, line, logarithmic, short, time_chart};
use crate::steps::{MergedTimes, Step};

/// Heading of what Assay itself did.
pub(crate) const OWN: &str = "How well did Assay itself do?";
/// Lines that can be told apart in one chart.
const MOST_LINES: usize = 8;
/// Colours of lines that mean nothing in particular.
const COLOURS: [&str; MOST_LINES] = ["all", "origin", "hit", "miss", "proxy", "offered", "accent", "soft"];
/// Colours of the threads of robots, and of origins.
const ROBOTS: [&str; 4] = ["all", "hit", "accent", "offered"];
const ORIGINS: [&str; 4] = ["origin", "miss", "proxy", "soft"];

/// All charts of Assay itself; what was not watched has none.
pub(crate) fn charts(steps: &[Step<'_>], own: &[OwnStep<'_>], series: &Series) -> Vec<Chart> {
    let mut charts = vec![robots(steps, own, series)];
    charts.extend(origins(steps, own, series));
    charts.extend(threads(own));
    charts.extend(processors(own));
    charts.extend(network(own));
    charts.extend(accept_queue(own));
    charts
}

fn own_line(
    name: impl Into<String>,
    role: &'static str,
    own: &[OwnStep<'_>],
    value: impl Fn(&OwnStep<'_>) -> Option<f64>,
) -> ChartLine {
    let values = own.iter().map(|step| value(step).map(short)).collect();
    ChartLine::new(name, role, values)
}

/// Timer lags of a role, that of a bare timer before the run, and stalls of its threads.
fn timers(role: &str, own: &[OwnStep<'_>], series: &Series) -> Vec<ChartLine> {
    let ruler = Histogram::new();
    let mut lines = Vec::new();
    let lag = own_line("timers: 99 %", "origin", own, |step| {
        MergedTimes::new(step.timer_lag.get(role)?.iter().copied()).quantile_us(0.99, &ruler)
    });
    lines.extend(lag.is_known().then_some(lag));
    let before =
        series.baselines.iter().filter(|baseline| baseline.role == role).map(|baseline| &baseline.lag);
    if let Some(p99) = MergedTimes::new(before).quantile_us(0.99, &ruler) {
        lines.push(dashed(own_line("bare timer before: 99 %", "offered", own, |_| Some(p99))));
    }
    let stalls =
        own_line("stalls", "error", own, |step| step.stall_us.get(role).map(|length_us| *length_us as f64));
    lines.extend(stalls.is_known().then_some(ChartLine { points: true, ..stalls }));
    lines
}

type PickLateness = for<'a, 's> fn(&'s Step<'a>) -> &'s [&'a SparseHistogram];

fn late(what: &str, steps: &[Step<'_>], of: PickLateness) -> [ChartLine; 2] {
    let ruler = Histogram::new();
    [("median", "all", 0.5), ("99 %", "miss", 0.99)].map(|(name, role, quantile)| {
        line(format!("{what}: {name}"), role, steps, |step| {
            MergedTimes::new(of(step).iter().copied()).quantile_us(quantile, &ruler)
        })
    })
}

fn robots(steps: &[Step<'_>], own: &[OwnStep<'_>], series: &Series) -> Chart {
    let mut lines: Vec<ChartLine> = late("requests", steps, |step| step.lateness.as_slice()).into();
    lines.extend(timers("robots", own, series));
    logarithmic(time_chart(
        OWN,
        "lateness",
        "Lateness of requests",
        "µs",
        "How much later than its time a request was sent, though the robot's own rules would have let it go; beside \
         it, how late robots' timers were served. A stall is a thread that stood still for that long.",
        lines,
    ))
}

fn origins(steps: &[Step<'_>], own: &[OwnStep<'_>], series: &Series) -> Option<Chart> {
    let thinks = late("think times", steps, |step| step.origin_lateness.as_slice());
    let mut lines: Vec<ChartLine> = thinks.into_iter().filter(ChartLine::is_known).collect();
    lines.extend(timers("origins", own, series));
    let about = "How much later than asked think times ended; beside it, how late origins' timers were served. A \
                 stall is a thread that stood still for that long.";
    let chart = |lines| time_chart(OWN, "think-lateness", "Lateness of think times", "µs", about, lines);
    (!lines.is_empty()).then(|| logarithmic(chart(lines)))
}

/// A line for each that is watched; of too many, the highest and the mean.
fn watched<K: Ord + Copy>(
    own: &[OwnStep<'_>],
    all: &BTreeSet<K>,
    name: impl Fn(K) -> String,
    colour: impl Fn(usize, K) -> &'static str,
    of: impl Fn(&OwnStep<'_>, K) -> Option<ProcessorTime>,
    percent: impl Fn(ProcessorTime) -> Option<f64>,
) -> Vec<ChartLine> {
    let value = |step: &OwnStep<'_>, key: K| of(step, key).and_then(&percent);
    if all.len() <= MOST_LINES {
        let numbered = all.iter().enumerate();
        return numbered
            .map(|(place, key)| own_line(name(*key), colour(place, *key), own, |step| value(step, *key)))
            .collect();
    }
    let values =
        |step: &OwnStep<'_>| -> Vec<f64> { all.iter().filter_map(|key| value(step, *key)).collect() };
    vec![
        own_line(format!("highest of {}", all.len()), "miss", own, |step| {
            values(step).into_iter().reduce(f64::max)
        }),
        own_line("mean", "all", own, |step| {
            let values = values(step);
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        }),
    ]
}

fn threads(own: &[OwnStep<'_>]) -> Vec<Chart> {
    let all: BTreeSet<_> = own.iter().flat_map(|step| step.threads.keys().copied()).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let lines = |percent: fn(ProcessorTime) -> Option<f64>| {
        let name = |(role, thread): (&str, u32)| format!("{role} {thread}");
        let colour = |_, (role, thread): (&str, u32)| {
            (if role == "robots" { ROBOTS } else { ORIGINS })[thread as usize % ROBOTS.len()]
        };
        watched(own, &all, name, colour, |step, key| step.threads.get(&key).copied(), percent)
    };
    vec![
        time_chart(
            OWN,
            "thread-cpu",
            "Processor used, per thread",
            "%",
            "Share of a processor. A thread near 100 % is the limit of what robots or origins can do.",
            lines(ProcessorTime::used_percent),
        ),
        time_chart(
            OWN,
            "run-delay",
            "Waiting for a processor, per thread",
            "%",
            "Share of time that a thread was ready to run and had no processor: others had it.",
            lines(ProcessorTime::lost_percent),
        ),
    ]
}

fn processors(own: &[OwnStep<'_>]) -> Option<Chart> {
    let all: BTreeSet<_> = own.iter().flat_map(|step| step.processors.keys().copied()).collect();
    let mut lines = watched(
        own,
        &all,
        |cpu| format!("processor {cpu}"),
        |place, _| COLOURS[place % MOST_LINES],
        |step, cpu| step.processors.get(&cpu).copied(),
        ProcessorTime::used_percent,
    );
    lines.push(own_line("stolen, worst", "error", own, |step| {
        step.processors.values().filter_map(|processor| processor.lost_percent()).reduce(f64::max)
    }));
    let about = "What this machine's processors did, for whomever; and what the hypervisor took from the worst of \
                 them.";
    (!all.is_empty()).then(|| time_chart(OWN, "processors", "Processors of this machine", "%", about, lines))
}

fn network(own: &[OwnStep<'_>]) -> Vec<Chart> {
    if own.iter().all(|step| step.network.is_none()) {
        return Vec::new();
    }
    let rate = |name, role, pick: fn(&super::steps::NetworkStep) -> u64| {
        own_line(name, role, own, move |step| {
            let network = step.network.as_ref()?;
            network.per_second(pick(network))
        })
    };
    let level = |name, role, pick: fn(&super::steps::NetworkStep) -> u64| {
        own_line(name, role, own, move |step| step.network.as_ref().map(|network| pick(network) as f64))
    };
    vec![
        time_chart(
            OWN,
            "network",
            "Lost on this machine",
            "per second",
            "TCP segments sent again, connections that listeners dropped, and what was thrown away for lack of room.",
            vec![
                rate("sent again", "miss", |network| network.retransmitted),
                rate("dropped by listeners", "error", |network| network.listen_drops),
                rate("backlog full", "origin", |network| network.backlog_drops),
                rate("no memory", "all", |network| network.receive_drops),
            ],
        ),
        time_chart(
            OWN,
            "sockets",
            "Sockets of this machine",
            "sockets",
            "TCP sockets in use, and closed connections whose ports are not free yet, at the end of each second.",
            vec![
                level("in use", "all", super::steps::NetworkStep::sockets),
                level("TIME_WAIT", "offered", super::steps::NetworkStep::time_wait),
            ],
        ),
    ]
}

fn accept_queue(own: &[OwnStep<'_>]) -> Option<Chart> {
    let queue = own_line("longest", "origin", own, |step| step.accept_queue.map(f64::from));
    let about =
        "Most connections that waited to be accepted on one of the origins' listeners. Its limit is below.";
    let any = queue.is_known();
    any.then(|| time_chart(OWN, "accept-queue", "Accept queue of origins", "connections", about, vec![queue]))
}
