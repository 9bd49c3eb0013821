use std::collections::BTreeMap;

use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval, Times as Recorded};
use assay_measurement::measured::Measured;
use assay_protocol::message::PhaseEvent;
use assay_record::event::{RunEvent, Stage};
use assay_record::run::{PhaseInfo, TargetInfo};

use super::*;
use crate::serve::state::RunIdentity;

fn histogram(values_us: &[u64]) -> SparseHistogram {
    let mut histogram = Histogram::new();
    values_us.iter().for_each(|us| histogram.record(*us));
    histogram.to_sparse()
}

/// A run of two phases, in its second.
pub(crate) fn state() -> LiveState {
    let about =
        RunIdentity { workload: "demo".into(), target: "builtin".into(), seed: 7, version: "1".into() };
    let mut state = LiveState::new(about);
    let phase = |name: &str, start_ms, end_ms, load| PhaseInfo {
        name: name.into(),
        planned_start_ms: Some(start_ms),
        planned_end_ms: Some(end_ms),
        load,
        ..PhaseInfo::default()
    };
    let phases = vec![phase("warm", 0, 10_000, (1.0, 1.0)), phase("top", 10_000, 20_000, (1.0, 3.0))];
    state.apply(&RunEvent::Stage(Stage::Planned { run_dir: "/tmp/runs/demo-1".into() }));
    state.apply(&RunEvent::Started { phases, target: TargetInfo::default(), started_unix_ms: 1_000_000 });
    state.apply(&RunEvent::Phase(PhaseEvent::Began { phase: 0, at_ms: 0 }));
    for phase in [0, 1] {
        let mut interval = RobotInterval { phase, ..RobotInterval::default() };
        interval.counts = RobotCounts {
            due: 20,
            sent: 12,
            completed: 11,
            basic: 10,
            basic_bytes: 1000,
            hits: 6,
            hit_bytes: 600,
            collapsed: 1,
            collapsed_bytes: 100,
            misses: 3,
            miss_bytes: 300,
            due_basic: 20,
            offered_hits: 15,
            by_status: BTreeMap::from([(200, 10), (999, 1)]),
            errors: BTreeMap::from([(ErrorKind::Stale, 1)]),
            ..RobotCounts::default()
        };
        interval.times.hit = Recorded { response: histogram(&[200, 300]), ..Recorded::default() };
        interval.times.other = Recorded { response: histogram(&[400]), ..Recorded::default() };
        interval.times.timed_out = Recorded { service: histogram(&[30_000_000]), ..Recorded::default() };
        interval.times.unsent_wait = histogram(&[1, 2, 3]);
        state.apply(&RunEvent::Measured(Measured::Robots(Box::new(interval))));
        let mut origins = OriginInterval { phase, ..OriginInterval::default() };
        origins.counts.validated_basic = 2;
        state.apply(&RunEvent::Measured(Measured::Origins(Box::new(origins))));
        state.apply(&RunEvent::Measured(Measured::Host(Box::new(HostInterval {
            role: "proxy".into(),
            cpu_us: 250_000,
            rss_bytes: 4096,
            ..HostInterval::default()
        }))));
    }
    state.apply(&RunEvent::Phase(PhaseEvent::Ended { phase: 0, at_ms: 10_000, launched: Vec::new() }));
    state.apply(&RunEvent::Phase(PhaseEvent::Began { phase: 1, at_ms: 10_000 }));
    state
}

fn all() -> Vec<Family> {
    families(&state(), 1_015_000, WatcherStats { cpu_s: 0.5, dismissed_clients: 3, slow_clients: 2 })
}

fn value(families: &[Family], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let family = families.iter().find(|family| family.name() == name)?;
    let same = |sample: &&Sample| {
        labels.iter().all(|(name, value)| sample.labels.iter().any(|(n, v)| n == name && v == value))
    };
    match family.samples.iter().find(same)?.value {
        Value::Number(value) => Some(value),
        Value::Count(count) => Some(count as f64),
        Value::Times(ref times) => Some(times.count as f64),
    }
}

#[test]
fn counters_grow_with_every_interval() {
    let all = all();
    for (name, labels, expected) in [
        ("assay_requests_sent_total", &[][..], 24.0),
        ("assay_errors_total", &[("kind", "stale")], 2.0),
        ("assay_errors_total", &[("kind", "timed_out")], 0.0),
        ("assay_responses_total", &[("code", "200")], 20.0),
        ("assay_responses_total", &[("code", "other")], 2.0),
        ("assay_basic_requests_total", &[("outcome", "hit")], 12.0),
        ("assay_basic_body_bytes_total", &[("outcome", "miss")], 600.0),
        ("assay_cpu_seconds_total", &[("role", "proxy")], 0.5),
        ("assay_resident_memory_bytes", &[("role", "proxy")], 4096.0),
        ("assay_response_time_seconds", &[("class", "hit")], 4.0),
        ("assay_response_time_seconds", &[("class", "other")], 2.0),
        ("assay_response_time_seconds", &[("class", "unsent")], 6.0),
        ("assay_service_time_seconds", &[("class", "timed_out")], 2.0),
        ("assay_watching_cpu_seconds_total", &[], 0.5),
    ] {
        assert_eq!(value(&all, name, labels), Some(expected), "{name} {labels:?}");
    }
}

#[test]
fn hits_that_the_origin_validated_are_none() {
    let all = all();
    // 7 of 10 looked like hits, and the origin validated 2 of them.
    for scope in ["run", "phase"] {
        let of = |kind| value(&all, "assay_document_hit_ratio", &[("kind", kind), ("scope", scope)]);
        assert_eq!((of("measured"), of("offered"), of("ideal")), (Some(0.5), Some(0.75), None));
    }
}

#[test]
fn the_phase_that_is_on_is_named_and_its_load_follows_the_ramp() {
    let all = all();
    assert_eq!(value(&all, "assay_phase_info", &[("phase", "top"), ("index", "1")]), Some(1.0));
    assert_eq!(value(&all, "assay_phase_done_ratio", &[]), Some(0.5));
    assert_eq!(value(&all, "assay_load_factor", &[]), Some(2.0));
    assert_eq!(value(&all, "assay_run_stage", &[("stage", "running")]), Some(1.0));
}

#[test]
fn a_serious_doubt_shows_at_once() {
    let mut state = state();
    assert_eq!(value(&families(&state, 0, WatcherStats::default()), "assay_run_valid", &[]), Some(1.0));
    state.apply(&RunEvent::Doubt(Box::new(Doubt::serious(Reason::Ports, "no port"))));
    let all = families(&state, 0, WatcherStats::default());
    assert_eq!(value(&all, "assay_run_valid", &[]), Some(0.0));
    assert_eq!(value(&all, "assay_doubts", &[("reason", "ports"), ("invalidates", "true")]), Some(1.0));
}

#[test]
fn names_follow_the_conventions_and_none_comes_twice() {
    let mut names: Vec<String> = all().iter().map(Family::name).collect();
    for name in &names {
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    let before = families(&LiveState::new(RunIdentity::default()), 0, WatcherStats::default());
    assert!(value(&before, "assay_run_stage", &[("stage", "preparing")]) == Some(1.0));
}

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().to_owned()
}

/// A state in which every metric has a series.
fn full() -> LiveState {
    let mut full = state();
    full.apply(&RunEvent::Measured(Measured::Proxy(Default::default())));
    full.apply(&RunEvent::Measured(Measured::Network(Default::default())));
    full.apply(&RunEvent::Measured(Measured::Thread(Default::default())));
    full.apply(&RunEvent::Measured(Measured::Host(Box::new(HostInterval {
        role: "host".into(),
        ..HostInterval::default()
    }))));
    full.apply(&RunEvent::Doubt(Box::new(Doubt::serious(Reason::Ports, ""))));
    full
}

/// The page of the reference that lists all metrics.
fn reference() -> String {
    let mut page = "# Metrics\n\n\
        What `--serve` shows Prometheus at `/metrics`, and what `--otlp` sends. How to use them is in \
        [Watch a run](../how-to/watch-a-run.md).\n\n\
        Counters only grow, from 0 at the start of a run. Histograms have six \
        buckets a decade from 10 µs to 60 s; for OpenTelemetry they are exponential (scale 4, 4.4 % wide), so that a quantile is off by \
        2.2 % at most. Counts and sums are exact. OpenTelemetry's name is the same without unit and \
        `_total`, after `assay.`: `assay_response_time_seconds` is `assay.response_time`, in `s`.\n\n\
        | metric | type | labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for family in families(&full(), 0, WatcherStats::default()) {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels: Vec<_> = family
            .samples
            .first()
            .map_or(Vec::new(), |sample| sample.labels.iter().map(|(name, _)| format!("`{name}`")).collect());
        let (name, labels) = (family.name(), labels.join(", "));
        page += &format!("| `{name}` | {kind} | {labels} | {} |\n", family.help);
    }
    page
}

#[test]
fn the_reference_lists_every_metric() {
    let path = root().join("docs/reference/metrics.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, reference()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == reference(), "UPDATE_GOLDEN=1 writes docs/reference/metrics.md anew");
}

/// Compares with a file that is kept: what others read by name stays.
#[test]
fn every_metric_keeps_its_name_type_and_labels() {
    let mut lines: Vec<String> = Vec::new();
    for family in families(&full(), 0, WatcherStats::default()) {
        for sample in &family.samples {
            // What these say depends on the run.
            let free = ["run", "workload", "target", "target_version", "seed", "version", "phase", "index"];
            let label = |(name, value): &(&'static str, String)| match free.contains(name) {
                true => (*name).to_owned(),
                false => format!("{name}={value}"),
            };
            let labels: Vec<String> = sample.labels.iter().map(label).collect();
            let line = format!("{:?} {} {}", family.kind, family.name(), labels.join(" "));
            lines.push(line.trim_end().to_owned());
        }
    }
    lines.sort();
    let text = lines.join("\n") + "\n";
    let path = root().join("crates/run/report/tests/golden/metrics.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "crates/run/report/tests/golden/metrics.txt differs; a name that is published stays"
    );
}

#[test]
fn every_query_of_the_dashboard_names_metrics_and_labels_that_exist() {
    let dashboard = std::fs::read_to_string(root().join("contrib/grafana/assay.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let all = families(&full(), 0, WatcherStats::default());
    let known = |name: &str| {
        all.iter().any(|family| {
            let parts = ["_count", "_sum", "_bucket"].iter().filter_map(|part| name.strip_suffix(part));
            family.name() == name
                || family.kind == Kind::Histogram && parts.into_iter().any(|p| p == family.name())
        })
    };
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    assert!(queries.len() > 20, "{queries:?}");
    for query in queries {
        let names: Vec<&str> = query
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter(|word| word.starts_with("assay_"))
            .collect();
        assert!(!names.is_empty(), "{query}");
        for name in names {
            assert!(known(name), "no metric {name}: {query}");
        }
    }
}

/// Every query in a dashboard.
fn collect(value: &serde_json::Value, queries: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value.as_str()) {
                    ("expr" | "query" | "definition", Some(text)) if text.contains("assay") => {
                        queries.push(text.to_owned());
                    }
                    _ => collect(value, queries),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, queries)),
        _ => {}
    }
}
