//! The charts of the proxy's resources and of the machine, on the time axis of the run.

use std::collections::BTreeMap;

use assay_measurement::machine::BlockInterval;
use assay_measurement::measured::Series;

use crate::chart::{Chart, ChartLine, dashed, logarithmic, short, time_chart};

/// Heading of what everybody used.
pub(crate) const RESOURCES: &str = "Resources";
/// Interfaces that one chart can show.
const MOST_INTERFACES: usize = 7;
const COLOURS: [&str; MOST_INTERFACES] = ["all", "origin", "hit", "miss", "proxy", "offered", "accent"];
const MB: f64 = (1 << 20) as f64;

/// Measurement and its subject: a disk, an interface, a state.
type ResourceKey<'a> = (&'static str, &'a str);

/// Time of a measurement.
#[derive(Clone, Copy)]
struct Interval {
    start_ms: u64,
    length_ms: u64,
}

/// Values by the second in which they began; what began in the same one is added up.
#[derive(Default)]
struct ResourceSeries<'a>(BTreeMap<ResourceKey<'a>, BTreeMap<u64, (f64, u64)>>);

impl<'a> ResourceSeries<'a> {
    fn add(&mut self, what: &'static str, of: &'a str, interval: Interval, value: f64) {
        let second = self.0.entry((what, of)).or_default().entry(interval.start_ms).or_default();
        second.0 += value;
        second.1 = second.1.max(interval.length_ms);
    }

    fn has(&self, what: &'static str) -> bool {
        self.0.keys().any(|key| key.0 == what)
    }

    fn names(&self, what: &'static str) -> Vec<&'a str> {
        self.0.keys().filter(|key| key.0 == what).map(|key| key.1).collect()
    }
}

/// Steps of the time axis.
#[derive(Clone, Copy)]
struct StepAxis {
    step_ms: u64,
    count: usize,
}

impl StepAxis {
    fn line(
        self,
        resources: &ResourceSeries<'_>,
        key: ResourceKey<'_>,
        name: impl Into<String>,
        role: &'static str,
        value: impl Fn(&[(f64, u64)]) -> Option<f64>,
    ) -> ChartLine {
        let mut steps: Vec<Vec<(f64, u64)>> = vec![Vec::new(); self.count];
        for (start_ms, second) in resources.0.get(&key).into_iter().flatten() {
            let index = usize::try_from(start_ms / self.step_ms).unwrap_or(usize::MAX);
            if let Some(step) = steps.get_mut(index) {
                step.push(*second);
            }
        }
        let values = steps.iter().map(|step| value(step).map(short)).collect();
        ChartLine::new(name, role, values)
    }

    /// A count as so much a second, divided by `unit`.
    fn rate(
        self,
        resources: &ResourceSeries<'_>,
        key: ResourceKey<'_>,
        name: impl Into<String>,
        role: &'static str,
        unit: f64,
    ) -> ChartLine {
        self.line(resources, key, name, role, |seconds| {
            let (sum, length_ms) =
                seconds.iter().fold((0.0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
            (length_ms > 0).then(|| sum * 1000.0 / length_ms as f64 / unit)
        })
    }

    /// The highest of a level, divided by `unit`.
    fn level(
        self,
        resources: &ResourceSeries<'_>,
        key: ResourceKey<'_>,
        name: impl Into<String>,
        role: &'static str,
        unit: f64,
    ) -> ChartLine {
        self.line(resources, key, name, role, |seconds| {
            seconds.iter().map(|second| second.0 / unit).reduce(f64::max)
        })
    }
}

/// Charts of what the proxy used, and of the machine under it; what was not measured has none.
pub(crate) fn charts(series: &Series, step_ms: u64, count: usize) -> Vec<Chart> {
    let axis = StepAxis { step_ms, count };
    let mut resources = ResourceSeries::default();
    roles(series, &mut resources);
    machine(series, &mut resources);
    let mut charts = Vec::new();
    charts.extend(processor_time(axis, &resources));
    charts.extend(memory(axis, &resources));
    charts.extend(machine_memory(axis, &resources));
    charts.extend(disk(axis, &resources));
    charts.extend(network(axis, &resources));
    charts.extend(states(axis, &resources));
    charts.extend(switches(axis, &resources));
    charts.extend(traced(axis, series));
    charts
}

fn roles<'a>(series: &'a Series, resources: &mut ResourceSeries<'a>) {
    for interval in &series.host {
        let role = interval.role.as_str();
        let when = Interval { start_ms: interval.start_ms, length_ms: interval.length_ms };
        // Before these were told apart, there was neither.
        if interval.user_us + interval.system_us > 0 || interval.threads > 0 {
            resources.add("user", role, when, interval.user_us as f64);
            resources.add("system", role, when, interval.system_us as f64);
        }
        if interval.threads > 0 {
            resources.add("voluntary", role, when, interval.voluntary_switches as f64);
            resources.add("involuntary", role, when, interval.involuntary_switches as f64);
        }
        if role == "host" {
            continue;
        }
        resources.add("rss", role, when, interval.rss_bytes as f64);
        let levels =
            [("pss", interval.pss_bytes), ("group", interval.group_bytes), ("cache", interval.cache_bytes)];
        for (what, level) in levels {
            level.into_iter().for_each(|bytes| resources.add(what, role, when, bytes as f64));
        }
    }
}

fn machine<'a>(series: &'a Series, resources: &mut ResourceSeries<'a>) {
    for interval in &series.machine {
        let when = Interval { start_ms: interval.start_ms, length_ms: interval.length_ms };
        for (of, value) in [
            ("used", interval.used_bytes),
            ("cached", interval.cached_bytes),
            ("dirty", interval.dirty_bytes + interval.writeback_bytes),
            ("swapped", interval.swapped_bytes),
        ] {
            resources.add("memory", of, when, value as f64);
        }
        resources.add("switches", "", when, interval.context_switches as f64);
    }
    let has_store = series.disks.iter().any(|disk| disk.holds == "store");
    for disk in series.disks.iter().filter(|disk| !has_store || disk.holds == "store") {
        let device = disk.device.as_str();
        let when = Interval { start_ms: disk.start_ms, length_ms: disk.length_ms };
        resources.add("disk read", device, when, disk.read_bytes as f64);
        resources.add("disk written", device, when, disk.written_bytes as f64);
        resources.add("disk operations", device, when, (disk.reads + disk.writes) as f64);
        resources.add("disk queue", device, when, disk.queue_ms as f64);
    }
    for traffic in &series.interfaces {
        let when = Interval { start_ms: traffic.start_ms, length_ms: traffic.length_ms };
        // On loopback both are the same; elsewhere the names say whose they are.
        resources.add(
            "traffic",
            &traffic.interface,
            when,
            (traffic.received_bytes + traffic.sent_bytes) as f64,
        );
    }
    for network in &series.network {
        let when = Interval { start_ms: network.start_ms, length_ms: network.length_ms };
        let Some(established) = network.established else { continue };
        resources.add("state", "ESTABLISHED", when, established as f64);
        resources.add("state", "TIME_WAIT", when, network.time_wait as f64);
        for (state, level) in [
            ("SYN_SENT", network.syn_sent),
            ("SYN_RECV", network.syn_received),
            ("FIN_WAIT1", network.fin_wait1),
            ("FIN_WAIT2", network.fin_wait2),
            ("CLOSE_WAIT", network.close_wait),
            ("LAST_ACK", network.last_ack),
        ] {
            level.into_iter().for_each(|level| resources.add("state", state, when, level as f64));
        }
    }
}

fn processor_time(axis: StepAxis, resources: &ResourceSeries<'_>) -> Option<Chart> {
    let role = if resources.names("user").contains(&"proxy") { "proxy" } else { "host" };
    let about = match role {
        "proxy" => "Of the proxy's processor time: in the program itself, and in the kernel for it.",
        _ => "Of the machine's processor time: in programs, and in the kernel.",
    };
    let lines = vec![
        axis.rate(resources, ("user", role), "user", "hit", 1e6),
        axis.rate(resources, ("system", role), "system", "miss", 1e6),
    ];
    let title = "User and system time";
    resources.has("user").then(|| time_chart(RESOURCES, "cpu-split", title, "processors", about, lines))
}

fn memory(axis: StepAxis, resources: &ResourceSeries<'_>) -> Option<Chart> {
    let of = |what| (what, "proxy");
    let mut lines = vec![axis.level(resources, of("rss"), "resident", "proxy", MB)];
    let pss = axis.level(resources, of("pss"), "shared pages in parts (PSS)", "miss", MB);
    lines.push(ChartLine { points: true, ..pss });
    lines.push(axis.level(resources, of("cache"), "page cache of its control group", "origin", MB));
    lines.push(dashed(axis.level(resources, of("group"), "charged to its control group", "offered", MB)));
    lines.retain(ChartLine::is_known);
    let about =
        "Of the proxy's processes together; PSS is added up every ten seconds. 1 MB is 1024 × 1024 bytes.";
    let is_measured =
        resources.names("pss").contains(&"proxy") || resources.names("cache").contains(&"proxy");
    is_measured.then(|| time_chart(RESOURCES, "proxy-memory", "Memory of the proxy", "MB", about, lines))
}

fn machine_memory(axis: StepAxis, resources: &ResourceSeries<'_>) -> Option<Chart> {
    let level = |of, name, role| axis.level(resources, ("memory", of), name, role, MB);
    let lines = vec![
        level("used", "used", "all"),
        level("cached", "page cache", "origin"),
        level("dirty", "to be written", "miss"),
        level("swapped", "in swap", "error"),
    ];
    let about =
        "Used is what could not be had any more; most of the page cache could. 1 MB is 1024 × 1024 bytes.";
    let chart = |lines| time_chart(RESOURCES, "page-cache", "Memory of this machine", "MB", about, lines);
    resources.has("memory").then(|| chart(lines))
}

fn disk(axis: StepAxis, resources: &ResourceSeries<'_>) -> Vec<Chart> {
    let devices = resources.names("disk read");
    let named = |what: &str, device: &str| {
        if devices.len() == 1 { what.to_owned() } else { format!("{device} {what}") }
    };
    let lines = |parts: [(&'static str, &str, &[&'static str], f64); 2]| -> Vec<ChartLine> {
        let of = |(index, device): (usize, &&str)| {
            let device = *device;
            parts.map(|(key, what, colours, unit)| {
                axis.rate(resources, (key, device), named(what, device), colours[index % colours.len()], unit)
            })
        };
        devices.iter().take(4).enumerate().flat_map(of).collect()
    };
    if devices.is_empty() {
        return Vec::new();
    }
    vec![
        time_chart(
            RESOURCES,
            "disk",
            "Disk",
            "MB/s",
            "Bytes read from and written to the disk that the proxy's files are on, or to all disks where that is not \
             known; by whomever.",
            lines([
                ("disk read", "read", &["hit", "all"], MB),
                ("disk written", "written", &["miss", "origin"], MB),
            ]),
        ),
        time_chart(
            RESOURCES,
            "disk-operations",
            "Disk operations and queue",
            "per second; requests",
            "Reads and writes that the disk completed in a second, and how many requests were in it on average.",
            lines([
                ("disk operations", "operations", &["all", "hit"], 1.0),
                ("disk queue", "queue", &["proxy", "offered"], 1000.0),
            ]),
        ),
    ]
}

fn network(axis: StepAxis, resources: &ResourceSeries<'_>) -> Option<Chart> {
    let names = resources.names("traffic");
    let shown = names.iter().take(MOST_INTERFACES).zip(COLOURS);
    let lines: Vec<ChartLine> = shown
        .map(|(name, colour)| axis.rate(resources, ("traffic", name), *name, colour, 1e6 / 8.0))
        .collect();
    let about = "Bytes through each network interface, both ways added, in millions of bits; on `lo` everything \
                 goes both ways.";
    (!lines.is_empty())
        .then(|| time_chart(RESOURCES, "interfaces", "Network interfaces", "Mbit/s", about, lines))
}

fn states(axis: StepAxis, resources: &ResourceSeries<'_>) -> Option<Chart> {
    let known = [
        ("ESTABLISHED", "all"),
        ("TIME_WAIT", "offered"),
        ("CLOSE_WAIT", "error"),
        ("FIN_WAIT1", "hit"),
        ("FIN_WAIT2", "origin"),
        ("LAST_ACK", "miss"),
        ("SYN_SENT", "proxy"),
        ("SYN_RECV", "accent"),
    ];
    let mut lines: Vec<ChartLine> = known
        .into_iter()
        .map(|(state, role)| axis.level(resources, ("state", state), state, role, 1.0))
        .collect();
    // A logarithmic axis has no place for what never was.
    lines.retain(|line| line.values.iter().flatten().any(|value| *value > 0.0));
    let about = "TCP sockets by state, of all roles, at the end of each second; a connection on this machine has two.";
    let chart = |lines| time_chart(RESOURCES, "states", "Connections by state", "sockets", about, lines);
    (!lines.is_empty()).then(|| logarithmic(chart(lines)))
}

fn switches(axis: StepAxis, resources: &ResourceSeries<'_>) -> Option<Chart> {
    let mut lines = Vec::new();
    if resources.names("voluntary").contains(&"proxy") {
        lines.push(axis.rate(resources, ("voluntary", "proxy"), "proxy: had to wait", "hit", 1.0));
        lines.push(axis.rate(resources, ("involuntary", "proxy"), "proxy: was taken off", "error", 1.0));
    }
    if resources.has("switches") {
        lines.push(dashed(axis.rate(resources, ("switches", ""), "whole machine", "offered", 1.0)));
    }
    let about = "How often threads gave up a processor because they had to wait, or it was taken from them.";
    let chart = |lines| time_chart(RESOURCES, "switches", "Context switches", "per second", about, lines);
    (!lines.is_empty()).then(|| chart(lines))
}

/// Seek distances of the traced disk, and its traffic.
fn traced(axis: StepAxis, series: &Series) -> Vec<Chart> {
    if series.blocks.is_empty() {
        return Vec::new();
    }
    let mut resources = ResourceSeries::default();
    for block in &series.blocks {
        let kind = block.operation.as_str();
        let when = Interval { start_ms: block.start_ms, length_ms: block.length_ms };
        resources.add("bytes", kind, when, block.bytes as f64);
        let seeks = block.requests.saturating_sub(block.sequential) as f64;
        resources.add("seeks", "", when, seeks);
    }
    let quantiles = [("half are shorter", "all", 0.5), ("nine in ten are shorter", "miss", 0.9)];
    let mut steps: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); axis.count];
    for block in &series.blocks {
        let index = usize::try_from(block.start_ms / axis.step_ms).unwrap_or(usize::MAX);
        let Some(step) = steps.get_mut(index) else { continue };
        block.distances.iter().for_each(|(low, count)| *step.entry(*low).or_default() += count);
    }
    let distances = quantiles.map(|(name, role, quantile)| {
        ChartLine::new(name, role, steps.iter().map(|step| seek_mb(step, quantile).map(short)).collect())
    });
    vec![
        logarithmic(time_chart(
            RESOURCES,
            "seek-distance",
            "Seek distances",
            "MB",
            "How far from the end of the request before it a request to the traced disk began, no more than; to a factor \
             of two.",
            distances.into(),
        )),
        time_chart(
            RESOURCES,
            "seeks",
            "Seeks",
            "per second",
            "Requests to the traced disk that did not begin where the one before had ended.",
            vec![axis.rate(&resources, ("seeks", ""), "seeks", "all", 1.0)],
        ),
        time_chart(
            RESOURCES,
            "traced-bytes",
            "Requests to the traced disk",
            "MB/s",
            "Bytes of the requests that were handed to it.",
            vec![
                axis.rate(&resources, ("bytes", "read"), "read", "hit", MB),
                axis.rate(&resources, ("bytes", "write"), "write", "miss", MB),
            ],
        ),
    ]
}

/// A quantile of distances, in MB.
pub(crate) fn seek_mb(distances: &BTreeMap<u64, u64>, quantile: f64) -> Option<f64> {
    let count: u64 = distances.values().sum();
    let wanted = ((count as f64 * quantile).ceil() as u64).max(1);
    let mut upto = 0;
    let reached = distances.iter().find(|(_, count)| {
        upto += **count;
        upto >= wanted
    });
    reached.map(|(low, _)| BlockInterval::bucket_high(*low) as f64 * 512.0 / MB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measurement::health::NetworkInterval;
    use assay_measurement::machine::DiskInterval;

    fn values(charts: &[Chart], id: &str, name: &str) -> Vec<Option<f64>> {
        let chart = charts.iter().find(|chart| chart.id == id).unwrap();
        chart.lines.iter().find(|line| line.name == name).unwrap().values.clone()
    }

    #[test]
    fn levels_of_namespaces_are_added_up_and_the_highest_second_of_a_step_is_shown() {
        let network = |role: &str, start_ms, established| NetworkInterval {
            start_ms,
            length_ms: 1000,
            role: role.into(),
            established: Some(established),
            ..NetworkInterval::default()
        };
        let network = vec![network("robots", 0, 3), network("proxy", 0, 4), network("robots", 1000, 5)];
        let series = Series { network, ..Series::default() };
        assert_eq!(values(&charts(&series, 2000, 2), "states", "ESTABLISHED"), [Some(7.0), None]);
    }

    #[test]
    fn the_disk_of_the_store_is_shown_alone() {
        let disk = |device: &str, holds: &str, read_bytes| DiskInterval {
            length_ms: 500,
            device: device.into(),
            holds: holds.into(),
            read_bytes,
            queue_ms: 250,
            ..DiskInterval::default()
        };
        let series =
            Series { disks: vec![disk("vda", "", 9), disk("vdb", "store", 1 << 20)], ..Series::default() };
        let charts = charts(&series, 1000, 1);
        assert_eq!(values(&charts, "disk", "read"), [Some(2.0)]);
        assert_eq!(values(&charts, "disk-operations", "queue"), [Some(0.5)]);
        let chart = charts.iter().find(|chart| chart.id == "disk").unwrap();
        assert_eq!(chart.lines.len(), 2);
    }

    #[test]
    fn a_quantile_of_distances_is_the_end_of_its_bucket() {
        let distances = BTreeMap::from([(0, 5), (1024, 4), (1 << 20, 1)]);
        assert_eq!(seek_mb(&distances, 0.5), Some(0.0));
        assert_eq!(seek_mb(&distances, 0.9), Some(2047.0 * 512.0 / MB));
        assert_eq!(seek_mb(&BTreeMap::new(), 0.5), None);
    }
}
