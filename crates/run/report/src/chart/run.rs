//! The charts of a run over time, and against its rate.

use std::collections::BTreeSet;

use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::measured::Series;
use assay_measurement::ratios::HitRatio;

use super::times::{self, RESPONSE};
use super::{
    Band, Chart, ChartKind, ChartLine, Charts, classes, counters, dashed, line, on_schedule, short,
    time_chart,
};
use crate::adapted;
use crate::document::Summary;
use crate::host;
use crate::own;
use crate::own::steps::own_steps;
use crate::steps::{MergedTimes, Step, steps};
use crate::text;

/// Steps that a chart shows at most.
const MOST_STEPS: u64 = 1800;

/// Makes all charts of a run.
pub fn charts(summary: &Summary, series: &Series) -> Charts {
    let last_ms = series
        .robots
        .iter()
        .map(|interval| interval.start_ms + interval.length_ms)
        .chain(summary.phases.iter().filter_map(|phase| phase.end_ms))
        .max()
        .unwrap_or(0);
    let step_ms = last_ms.div_ceil(1000).div_ceil(MOST_STEPS).max(1) * 1000;
    let end_ms = summary.phases.iter().filter_map(|phase| phase.end_ms).max().unwrap_or(u64::MAX);
    let steps = steps(series, step_ms, last_ms.div_ceil(step_ms), end_ms);
    let time: Vec<f64> =
        (0..steps.len()).map(|index| (index as f64 + 0.5) * step_ms as f64 / 1000.0).collect();
    let seconds = |ms: u64| ms as f64 / 1000.0;
    let phases = summary
        .phases
        .iter()
        .filter_map(|phase| {
            Some(Band {
                name: phase.name.clone(),
                start: seconds(phase.start_ms?),
                end: seconds(phase.end_ms?),
                disturbed: phase.disturbed,
            })
        })
        .collect();
    let mut charts = all(&steps, text::is_direct(summary));
    // After the response times over time.
    let index = charts.iter().rposition(|chart| chart.section == RESPONSE).map_or(0, |last| last + 1);
    let names: Vec<&str> = summary.phases.iter().map(|phase| phase.name.as_str()).collect();
    charts.splice(index..index, times::whole_run(series, &names));
    // Where load adapts to response times, beside their mean.
    let index = charts.iter().position(|chart| chart.section == RESPONSE).map_or(0, |first| first + 1);
    let adapted = adapted::chart(RESPONSE, &summary.phases, &series.adapted, &time);
    charts.splice(index..index, adapted);
    charts.extend(counters::charts(&steps, series, step_ms));
    charts.extend(host::charts(series, step_ms, steps.len()));
    charts.extend(own::charts::charts(&steps, &own_steps(series, step_ms, steps.len()), series));
    Charts { phases, step_s: step_ms as f64 / 1000.0, time, charts }
}

fn all(steps: &[Step<'_>], direct: bool) -> Vec<Chart> {
    let mut charts = load(steps);
    charts.extend(times::response(steps));
    if !direct {
        charts.extend(hit_ratios(steps));
    }
    charts.extend(against_rate(steps));
    charts.extend(classes::charts(steps));
    charts.extend(connections(steps));
    charts.extend(errors(steps));
    charts.extend(resources(steps));
    charts.extend(starved(steps));
    charts
}

fn load(steps: &[Step<'_>]) -> Vec<Chart> {
    vec![
        time_chart(
            "Load",
            "rate",
            "Request rate",
            "requests/s",
            "Requests due, responses without error, and what reached the origins.",
            vec![
                dashed(line("offered", "offered", steps, |s| s.per_second(s.robots.due))),
                line("responses", "all", steps, |s| s.per_second(s.robots.completed)),
                line("at the origins", "origin", steps, |s| s.per_second(s.origins.requests)),
            ],
        ),
        time_chart(
            "Load",
            "bandwidth",
            "Bandwidth",
            "Mbit/s",
            "Bytes on the wire, heads included, in millions of bits.",
            vec![
                line("to the robots", "all", steps, |s| {
                    s.per_second(s.robots.wire_bytes_in).map(|bytes| bytes * 8.0 / 1e6)
                }),
                line("from the origins", "origin", steps, |s| {
                    s.per_second(s.origins.wire_bytes_out).map(|bytes| bytes * 8.0 / 1e6)
                }),
            ],
        ),
    ]
}

fn hit_ratios(steps: &[Step<'_>]) -> Vec<Chart> {
    let lines = |of: fn(&RobotCounts, &OriginCounts) -> HitRatio| {
        let percent = |s: &Step<'_>, pick: fn(HitRatio) -> Option<f64>| {
            pick(of(&s.robots, &s.origins).map(|ratio| ratio * 100.0))
        };
        let lines = [
            dashed(line("offered", "offered", steps, |s| percent(s, |ratio| ratio.offered))),
            line("ideal", "ideal", steps, |s| percent(s, |ratio| ratio.ideal)),
            line("measured", "hit", steps, |s| percent(s, |ratio| ratio.measured)),
        ];
        lines.into_iter().map(|line| on_schedule(line, steps)).collect()
    };
    let about =
        "Of plain GETs: what the stream offers, what an infinite cache would reach, what was reached.";
    vec![
        time_chart("Hit ratio", "dhr", "Document hit ratio", "%", about, lines(HitRatio::of_documents)),
        time_chart("Hit ratio", "bhr", "Byte hit ratio", "%", about, lines(HitRatio::of_bytes)),
    ]
}

fn against_rate(steps: &[Step<'_>]) -> Vec<Chart> {
    let client = line("all", "all", steps, |s| {
        MergedTimes::new(s.all.iter().copied()).mean_us().map(|us| us / 1000.0)
    });
    let client_rate = steps.iter().map(|s| s.per_second(s.robots.completed).map(short)).collect();
    let origin = line("origins", "origin", steps, |s| {
        MergedTimes::new(s.origin_service.iter().copied()).mean_us().map(|us| us / 1000.0)
    });
    let origin_rate = steps.iter().map(|s| s.per_second(s.origins.responses).map(short)).collect();
    let scatter = |id, title, about, x_label: &'static str, line: ChartLine, x| {
        let lines = vec![ChartLine { x: Some(x), ..on_schedule(line, steps) }];
        let chart = time_chart("Response time against rate", id, title, "ms", about, lines);
        Chart { kind: ChartKind::Scatter, x_label: Some(x_label.into()), ..chart }
    };
    vec![
        scatter(
            "response-rate",
            "At the robots",
            "A point per step: mean response time against responses per second. A wall on the right is saturation.",
            "responses/s",
            client,
            client_rate,
        ),
        scatter(
            "origin-rate",
            "At the origins",
            "A point per step: mean time to respond, think time included, against responses per second.",
            "responses/s",
            origin,
            origin_rate,
        ),
    ]
}

fn connections(steps: &[Step<'_>]) -> Vec<Chart> {
    let level = |value: u64| Some(value as f64);
    vec![
        time_chart(
            "Connections and queues",
            "connections",
            "Concurrent connections",
            "connections",
            "Open at the end of each second, on both sides.",
            vec![
                line("robots", "all", steps, |s| level(s.levels.connections)),
                line("origins", "origin", steps, |s| level(s.origin_connections)),
            ],
        ),
        time_chart(
            "Connections and queues",
            "opened",
            "Connections opened",
            "per second",
            "New connections, on both sides. Where connections live long there are few of them.",
            vec![
                line("by robots", "all", steps, |s| s.per_second(s.robots.connections_opened)),
                line("at the origins", "origin", steps, |s| s.per_second(s.origins.connections_opened)),
            ],
        ),
        time_chart(
            "Connections and queues",
            "waiting",
            "Under way and waiting",
            "requests",
            "Sent and without a response, and due but waiting for a connection, at the end of each second.",
            vec![
                line("under way", "all", steps, |s| level(s.levels.in_flight)),
                line("waiting", "error", steps, |s| level(s.levels.waiting)),
            ],
        ),
    ]
}

fn errors(steps: &[Step<'_>]) -> Option<Chart> {
    let kinds: BTreeSet<_> = steps.iter().flat_map(|step| step.robots.errors.keys().copied()).collect();
    let roles = ["error", "miss", "ideal", "all", "hit", "origin", "offered"];
    let lines: Vec<ChartLine> = kinds
        .into_iter()
        .zip(roles.iter().cycle())
        .map(|(kind, role)| {
            line(kind.name(), role, steps, |s| s.per_second(s.robots.errors.get(&kind).copied().unwrap_or(0)))
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    let about = "Requests that ended in an error, by class.";
    Some(time_chart("Errors", "errors", "Errors", "errors/s", about, lines))
}

fn resources(steps: &[Step<'_>]) -> Vec<Chart> {
    let known = [("proxy", "proxy"), ("robots", "all"), ("origins", "origin"), ("host", "offered")];
    let present = known.iter().filter(|(name, _)| steps.iter().any(|step| step.roles.contains_key(name)));
    let present: Vec<_> = present.copied().collect();
    if present.is_empty() {
        return Vec::new();
    }
    let cpu = present
        .iter()
        .map(|&(name, role)| {
            let cores = line(label(name), role, steps, |s| {
                let used = s.roles.get(name)?;
                (used.watched_us > 0).then(|| used.cpu_us as f64 / used.watched_us as f64)
            });
            if name == "host" { dashed(cores) } else { cores }
        })
        .collect();
    let memory = present
        .iter()
        .filter(|(name, _)| *name != "host")
        .map(|&(name, role)| {
            line(label(name), role, steps, |s| {
                s.roles.get(name).map(|used| used.rss_bytes as f64 / f64::from(1 << 20))
            })
        })
        .collect();
    vec![
        time_chart(
            host::RESOURCES,
            "cpu",
            "Processors used",
            "processors",
            "Processor time per time, user and system. 1 is one processor all the time.",
            cpu,
        ),
        time_chart(
            host::RESOURCES,
            "memory",
            "Memory",
            "MB",
            "Resident memory of each role's processes; 1 MB is 1024 × 1024 bytes.",
            memory,
        ),
    ]
}

/// Threads that were ready to run and had no processor.
fn starved(steps: &[Step<'_>]) -> Option<Chart> {
    let known = [("robots", "all"), ("origins", "origin"), ("proxy", "proxy")];
    let present = known.iter().filter(|(name, _)| steps.iter().any(|step| step.roles.contains_key(name)));
    let lines: Vec<ChartLine> = present
        .map(|&(name, role)| {
            line(name, role, steps, |s| {
                let used = s.roles.get(name)?;
                (used.watched_us > 0).then(|| used.run_delay_us as f64 / used.watched_us as f64)
            })
        })
        .collect();
    let about = "Threads that were ready to run and had no processor, on average.";
    let chart =
        |lines| time_chart(host::RESOURCES, "starved", "Waiting for a processor", "threads", about, lines);
    (!lines.is_empty()).then(|| chart(lines))
}

fn label(role: &str) -> &str {
    if role == "host" { "whole machine" } else { role }
}
