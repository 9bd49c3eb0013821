//! The figures of the first published comparison of Varnish and Traffic Server, as they look here.
//!
//! S. Bakhtiyari, *Performance Evaluation of the Apache Traffic Server and Varnish Reverse Proxies*, 2012. Time is in
//! minutes from left to right with the phases above; pairs that it printed in one frame stand one above the other. Its
//! scatter plots of response time against rate are among the report's own charts (`response-rate`, `origin-rate`).

use super::Figure;
use crate::chart::{Chart, ChartKind, ChartLine, Charts, logarithmic, time_chart};
use crate::document::{Figures, Summary};

/// Phases that one bar chart can show.
const MOST_PHASES: usize = 6;

/// The figures for which there is something to draw.
pub(super) fn figures(summary: &Summary, charts: &Charts) -> Vec<Figure> {
    let figure = |name: &str, title: &str, number: &str, panels: Vec<Option<Chart>>| {
        let panels: Vec<Chart> = panels.into_iter().flatten().collect();
        (!panels.is_empty()).then(|| Figure {
            name: format!("study-{name}"),
            title: title.to_owned(),
            about: format!("As {number} of Bakhtiyari 2012."),
            panels,
        })
    };
    let all = [
        figure("phases", "Phases", "figure 3.3", vec![plan(summary, &charts.time)]),
        figure("throughput", "Request rate and bandwidth", "figures 4.1 and 4.3", throughput(charts)),
        figure("response-time", "Response time", "figure 4.4", vec![response_time(charts)]),
        figure("hit-ratios", "Document and byte hit rates", "figure 4.5", hit_ratios(charts)),
        figure("summary", "Performance by phase", "figures 4.22 and 4.33", vec![bars(summary)]),
        figure("cpu-memory", "CPU and memory usage", "figure 4.35", cpu_and_memory(summary, charts)),
        figure("disk", "Disk I/O", "figure 4.36", disk(charts)),
        figure("connections", "Concurrent connections", "figures 5.1 to 5.4", connections(charts)),
    ];
    all.into_iter().flatten().collect()
}

fn find_chart<'a>(charts: &'a Charts, id: &str) -> Option<&'a Chart> {
    charts.charts.iter().find(|chart| chart.id == id)
}

/// Some lines of a chart under other names; none: it has none of them.
fn select_lines(charts: &Charts, id: &str, title: &str, unit: &str, lines: &[(&str, &str)]) -> Option<Chart> {
    let chart = find_chart(charts, id)?;
    let mut kept = Vec::new();
    for (name, new) in lines {
        let line = chart.lines.iter().find(|line| line.name == *name && line.is_known());
        kept.extend(line.map(|line| ChartLine { name: (*new).to_owned(), ..line.clone() }));
    }
    let (title, unit) = (title.to_owned().into(), unit.to_owned().into());
    (!kept.is_empty()).then(|| Chart { title, unit, lines: kept, log: false, ..chart.clone() })
}

fn throughput(charts: &Charts) -> Vec<Option<Chart>> {
    vec![
        select_lines(charts, "rate", "Rate", "xact/s", &[("responses", "measured"), ("offered", "offered")]),
        select_lines(charts, "bandwidth", "Bandwidth", "Mbit/s", &[("to the robots", "to the robots")]),
    ]
}

fn response_time(charts: &Charts) -> Option<Chart> {
    let lines = [("hits", "hits"), ("all", "all responses"), ("misses", "misses")];
    select_lines(charts, "response-mean", "Mean response time", "ms", &lines)
}

fn hit_ratios(charts: &Charts) -> Vec<Option<Chart>> {
    let lines = [("offered", "offered"), ("measured", "measured")];
    vec![
        select_lines(charts, "dhr", "Document hits", "%", &lines),
        select_lines(charts, "bhr", "Byte hits", "%", &lines),
    ]
}

/// Each in percent of what the machine has.
fn cpu_and_memory(summary: &Summary, charts: &Charts) -> Vec<Option<Chart>> {
    let percent = |chart: Option<Chart>, whole: f64| {
        let mut chart = chart.filter(|_| whole > 0.0)?;
        for value in chart.lines.iter_mut().flat_map(|line| line.values.iter_mut().flatten()) {
            *value = *value * 100.0 / whole;
        }
        Some(chart)
    };
    let megabytes = summary.host.memory_bytes as f64 / f64::from(1 << 20);
    let cpu = [("whole machine", "whole machine"), ("proxy", "proxy")];
    let (used, resident) = ([("used", "whole machine")], [("proxy", "proxy")]);
    let mut memory = percent(select_lines(charts, "page-cache", "Memory", "%", &used), megabytes);
    let of_proxy = percent(select_lines(charts, "memory", "Memory", "%", &resident), megabytes);
    match (&mut memory, of_proxy) {
        (Some(memory), Some(of_proxy)) => memory.lines.extend(of_proxy.lines),
        (memory, of_proxy) => *memory = of_proxy.or(memory.take()),
    }
    vec![percent(select_lines(charts, "cpu", "CPU", "%", &cpu), f64::from(summary.host.cpus)), memory]
}

/// Throughput, seeks and their distances where the disk was traced; else throughput and requests.
fn disk(charts: &Charts) -> Vec<Option<Chart>> {
    let traced = ["traced-bytes", "seeks", "seek-distance"].map(|id| find_chart(charts, id).cloned());
    if traced.iter().any(Option::is_some) {
        return traced.into();
    }
    ["disk", "disk-operations"].map(|id| find_chart(charts, id).cloned()).into()
}

/// Connections as clients see them (requests under way and those that wait for one), and open ones.
fn connections(charts: &Charts) -> Vec<Option<Chart>> {
    let pending = find_chart(charts, "waiting").map(|chart| {
        let steps = chart.lines.iter().map(|line| line.values.len()).max().unwrap_or(0);
        let sum = |step: usize| {
            let known = chart.lines.iter().filter_map(|line| line.values.get(step).copied().flatten());
            known.reduce(|sum, value| sum + value)
        };
        let line = ChartLine::new("pending", "all", (0..steps).map(sum).collect());
        Chart { title: "Pending".into(), lines: vec![line], ..chart.clone() }
    });
    let lines = [("robots", "TCP connections")];
    vec![pending, select_lines(charts, "connections", "Open", "connections", &lines)]
}

/// The load factor that was planned.
fn plan(summary: &Summary, time: &[f64]) -> Option<Chart> {
    let load = |at: &f64| {
        let at_ms = at * 1000.0;
        let on = summary.phases.iter().find_map(|phase| {
            let (start, end) = (phase.start_ms? as f64, phase.end_ms? as f64);
            (start <= at_ms && at_ms < end && end > start).then_some((phase, (at_ms - start) / (end - start)))
        });
        on.map(|(phase, share)| (phase.load.0 + (phase.load.1 - phase.load.0) * share) * 100.0)
    };
    let values: Vec<Option<f64>> = time.iter().map(load).collect();
    let line = ChartLine::new("planned", "all", values);
    line.is_known().then(|| time_chart("", "plan", "Load", "% of the peak rate", "", vec![line]))
}

/// Rate, bandwidth, response times and hit ratios of the phases that were busiest, on one logarithmic axis.
fn bars(summary: &Summary) -> Option<Chart> {
    type Metric = fn(&Figures) -> Option<f64>;
    let metrics: [(&str, Metric); 7] = [
        ("rate, xact/s", |f| f.rate.measured),
        ("Mbit/s", |f| f.bandwidth_mbit_s.client_in),
        ("responses, ms", |f| f.response_time_ms.completed.mean),
        ("hits, ms", |f| f.response_time_ms.hit.mean),
        ("misses, ms", |f| f.response_time_ms.miss.mean),
        ("DHR, %", |f| f.dhr.measured.map(|ratio| ratio * 100.0)),
        ("BHR, %", |f| f.bhr.measured.map(|ratio| ratio * 100.0)),
    ];
    let mut busiest: Vec<usize> = (0..summary.phases.len()).collect();
    busiest.sort_by_key(|index| std::cmp::Reverse(summary.phases[*index].figures.counts.completed));
    busiest.truncate(MOST_PHASES);
    busiest.sort_unstable();
    let roles = ["s0", "s1", "s2", "s3", "s4", "s5"];
    let lines = busiest.into_iter().zip(roles).map(|(index, role)| {
        let phase = &summary.phases[index];
        let values = metrics.iter().map(|(_, metric)| metric(&phase.figures)).collect();
        let x_names = metrics.iter().map(|(name, _)| (*name).to_owned()).collect();
        ChartLine { x_names, ..ChartLine::new(phase.name.clone(), role, values) }
    });
    let lines: Vec<ChartLine> = lines.filter(ChartLine::is_known).collect();
    let chart = logarithmic(time_chart("", "bars", "", "xact/s, Mbit/s, ms, %", "", lines));
    (!chart.lines.is_empty()).then_some(Chart { kind: ChartKind::Bars, ..chart })
}
