//! The metrics of a run. All of them, with their names and what they mean, from what is known so far.
//!
//! Labels are few and bounded: outcomes, kinds of errors, roles, reasons, status codes of HTTP. There is none for the phase:
//! `assay_phase_info` names the one that is on.

use std::borrow::Cow;

use assay_base::metrics::{Kind, Labels, Unit};
use assay_measurement::counts::RobotCounts;
use assay_measurement::declared::{Described, FieldUnit, Metric};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::interval::open_connections;
use assay_measurement::ratios::HitRatio;
use strum::VariantArray;

use crate::serve::state::{ClassTimes, LivePhase, LiveState, NetworkCounters, RoleUsage, RunStage};
use crate::serve::times::{Family, Sample, TimeBuckets, Value};

/// Name of a metric without its unit, and the unit.
struct MetricName(&'static str, Unit);

/// Families in the order of the document.
#[derive(Default)]
struct MetricFamilies(Vec<Family>);

impl MetricFamilies {
    fn add(&mut self, kind: Kind, name: MetricName, help: &'static str, samples: Vec<Sample>) {
        let MetricName(stem, unit) = name;
        self.0.push(Family { kind, stem, unit, help: help.into(), samples });
    }

    fn counter(&mut self, name: MetricName, help: &'static str, value: f64) {
        self.add(Kind::Counter, name, help, vec![plain(value)]);
    }

    /// Every field that is declared to be a metric.
    fn declared<T: Described>(&mut self, item: &T) {
        for field in T::FIELDS {
            if let (Some(metric), Some(number)) = (field.metric, (field.get)(item).uint()) {
                self.put(metric, field.meaning, field.unit(), number as f64);
            }
        }
    }

    /// A series of a metric that is declared; the first of a metric makes its family.
    fn put(&mut self, metric: Metric, meaning: &'static str, unit: FieldUnit, number: f64) {
        let labels = metric.label.map(|(name, value)| (name, value.to_owned())).into_iter().collect();
        let sample = Sample { labels, value: Value::Number(number) };
        if let Some(family) = self.0.iter_mut().find(|family| family.stem == metric.stem) {
            return family.samples.push(sample);
        }
        let kind = if metric.gauge { Kind::Gauge } else { Kind::Counter };
        let unit = if unit == FieldUnit::Bytes { Unit::Bytes } else { Unit::None };
        let help = metric.help.map_or_else(|| sentence(meaning).into(), Cow::Borrowed);
        self.0.push(Family { kind, stem: metric.stem, unit, help, samples: vec![sample] });
    }

    /// A gauge; none when there is nothing to say.
    fn gauge(&mut self, name: MetricName, help: &'static str, value: Option<f64>) {
        self.add(Kind::Gauge, name, help, value.map(plain).into_iter().collect());
    }

    fn times(&mut self, stem: &'static str, help: &'static str, samples: Vec<Sample>) {
        self.add(Kind::Histogram, MetricName(stem, Unit::Seconds), help, samples);
    }
}

/// A field's meaning as a sentence.
fn sentence(meaning: &str) -> String {
    let mut rest = meaning.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).chain(['.']).collect()
}

fn plain(value: f64) -> Sample {
    Sample { labels: Vec::new(), value: Value::Number(value) }
}

fn labelled(label: &'static str, value: impl Into<String>, number: f64) -> Sample {
    Sample { labels: vec![(label, value.into())], value: Value::Number(number) }
}

fn timed(labels: Labels, times: &TimeBuckets) -> Sample {
    Sample { labels, value: Value::Times(Box::new(times.clone())) }
}

/// Cost and clients of the watcher itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WatcherStats {
    /// Processor time that it took, in seconds.
    pub cpu_s: f64,
    /// Connections of those who watch that were ended to make room for others.
    pub dismissed_clients: u64,
    /// Clients that took too long with a request or a response.
    pub slow_clients: u64,
}

/// All metrics, at a time (Unix, in milliseconds).
pub(crate) fn families(state: &LiveState, now_unix_ms: u64, watching: WatcherStats) -> Vec<Family> {
    let mut all = MetricFamilies::default();
    run(&mut all, state, now_unix_ms);
    all.declared(&state.robots);
    requests(&mut all, &state.robots);
    ratios(&mut all, state);
    times(&mut all, state);
    all.declared(&state.levels);
    all.put(open_connections("origins"), "", FieldUnit::Count, state.origin_connections as f64);
    all.declared(&state.origins);
    resources(&mut all, state);
    network(&mut all, state);
    // The target's own counters; not ours.
    state.proxy().iter().for_each(|counters| all.declared(counters));
    own(&mut all, state, watching);
    all.0
}

fn run(all: &mut MetricFamilies, state: &LiveState, now_unix_ms: u64) {
    let (about, target) = (&state.about, &state.target);
    let run = state.run_dir.as_ref().and_then(|dir| dir.file_name());
    let labels = vec![
        ("run", run.map_or_else(String::new, |name| name.to_string_lossy().into_owned())),
        ("workload", about.workload.clone()),
        ("target", target.name.clone()),
        ("target_version", target.version.clone()),
        ("seed", about.seed.to_string()),
        ("version", about.version.clone()),
    ];
    let one = Sample { labels, value: Value::Number(1.0) };
    all.add(
        Kind::Gauge,
        MetricName("run_info", Unit::None),
        "What is run, by which Assay; always 1.",
        vec![one],
    );
    let stage = |stage: RunStage| labelled("stage", stage.name(), f64::from(u8::from(stage == state.stage)));
    let stages = RunStage::VARIANTS.iter().copied().map(stage).collect();
    all.add(
        Kind::Gauge,
        MetricName("run_stage", Unit::None),
        "1 for the stage that the run is at, 0 for the others.",
        stages,
    );
    let started_s = state.started_unix_ms.map(|ms| ms as f64 / 1e3);
    all.gauge(MetricName("run_start_time", Unit::Seconds), "Start of the schedule, in Unix time.", started_s);
    let planned_s = state.phases.last().and_then(|phase| phase.info.planned_end_ms).map(|ms| ms as f64 / 1e3);
    all.gauge(MetricName("run_planned", Unit::Seconds), "Planned length of the schedule.", planned_s);

    let elapsed_ms = state.elapsed_ms(now_unix_ms);
    let current = state.current();
    let name = |(index, phase): (usize, &LivePhase)| {
        let labels = vec![("phase", phase.info.name.clone()), ("index", index.to_string())];
        Sample { labels, value: Value::Number(1.0) }
    };
    let named = current.map(name).into_iter().collect();
    all.add(Kind::Gauge, MetricName("phase_info", Unit::None), "The phase that is on; always 1.", named);
    let of_phase = |of: fn(&LivePhase, u64) -> f64| {
        current.zip(elapsed_ms).map(|((_, phase), elapsed_ms)| of(phase, elapsed_ms))
    };
    let done = of_phase(LivePhase::done);
    all.gauge(MetricName("phase_done", Unit::Ratio), "How much of the phase is over.", done);
    let load = of_phase(LivePhase::load);
    all.gauge(MetricName("load_factor", Unit::None), "Load, as a multiple of the workload's own.", load);
    let disturbed = state.doubts.keys().any(|(_, serious)| *serious);
    let undisturbed = f64::from(u8::from(!disturbed));
    all.gauge(
        MetricName("run_valid", Unit::None),
        "1 as long as no serious disturbance was found, 0 from then on: numbers may be known only roughly, or not at all.",
        Some(undisturbed),
    );
    let doubts = state.doubts.iter().map(|((reason, serious), count)| Sample {
        labels: vec![("reason", reason.name().into()), ("invalidates", serious.to_string())],
        value: Value::Number(*count as f64),
    });
    all.add(
        Kind::Gauge,
        MetricName("doubts", Unit::None),
        "Reasons to doubt the run that were found; `invalidates` is true for serious ones.",
        doubts.collect(),
    );
}

fn requests(all: &mut MetricFamilies, counts: &RobotCounts) {
    let errors = ErrorKind::VARIANTS
        .iter()
        .map(|kind| labelled("kind", kind.name(), counts.errors.get(kind).copied().unwrap_or(0) as f64));
    all.add(
        Kind::Counter,
        MetricName("errors", Unit::None),
        "Requests that ended in an error, by kind.",
        errors.collect(),
    );
    let mut others = 0;
    let mut codes: Vec<Sample> = Vec::new();
    for (status, count) in &counts.by_status {
        match status {
            100..600 => codes.push(labelled("code", status.to_string(), *count as f64)),
            _ => others += count,
        }
    }
    if others > 0 {
        codes.push(labelled("code", "other", others as f64));
    }
    all.add(Kind::Counter, MetricName("responses", Unit::None), "Completed requests by status code.", codes);
}

fn ratios(all: &mut MetricFamilies, state: &LiveState) {
    let scopes = [
        ("run", Some((&state.robots, &state.origins))),
        ("phase", state.current().map(|(_, phase)| (&phase.robots, &phase.origins))),
    ];
    let (mut documents, mut bytes) = (Vec::new(), Vec::new());
    for (scope, counts) in scopes {
        let Some((robots, origins)) = counts else { continue };
        let of_documents = HitRatio::of_documents(robots, origins);
        let of_bytes = HitRatio::of_bytes(robots, origins);
        for (found, ratio) in [(&mut documents, of_documents), (&mut bytes, of_bytes)] {
            let HitRatio { offered, ideal, measured } = ratio;
            let kinds = [("offered", offered), ("ideal", ideal), ("measured", measured)];
            found.extend(kinds.into_iter().filter_map(|(kind, ratio)| {
                let labels = vec![("kind", kind.to_owned()), ("scope", scope.to_owned())];
                Some(Sample { labels, value: Value::Number(ratio?) })
            }));
        }
    }
    let help = "Document hit ratio of basic requests: offered by the stream, of an ideal cache, measured.";
    all.add(Kind::Gauge, MetricName("document_hit", Unit::Ratio), help, documents);
    let help = "Byte hit ratio of basic requests: offered by the stream, of an ideal cache, measured.";
    all.add(Kind::Gauge, MetricName("byte_hit", Unit::Ratio), help, bytes);
}

fn times(all: &mut MetricFamilies, state: &LiveState) {
    let classes = |of: fn(&ClassTimes) -> &TimeBuckets| {
        let class = |(class, times): (&str, _)| timed(vec![("class", class.into())], of(times));
        state.times.classes().map(class).collect::<Vec<_>>()
    };
    let mut response = classes(|times| &times.response);
    response.push(timed(vec![("class", "unsent".into())], &state.times.unsent_wait));
    all.times(
        "response_time",
        "From when a request was due to its last byte, by outcome; for those that timed out or were never sent, how long they \
         had waited: a quantile over all classes is a lower bound where it falls among these.",
        response,
    );
    all.times(
        "service_time",
        "From when a request was sent to its last byte, by outcome; for those that timed out, how long they had waited.",
        classes(|times| &times.service),
    );
    all.times(
        "time_to_first_byte",
        "From when a request was sent to its first byte, by outcome; for those that timed out before it, how long they had \
         waited.",
        classes(|times| &times.ttfb),
    );
    let late = vec![timed(Vec::new(), &state.times.lateness)];
    all.times("lateness", "What Assay itself added before it sent a request.", late);
    let service = vec![timed(Vec::new(), &state.origin_service)];
    all.times(
        "origin_service_time",
        "From a whole request to its response at an origin, think time included.",
        service,
    );
    let lags = state.timer_lag.iter().map(|(role, lag)| timed(vec![("role", role.clone())], lag)).collect();
    all.times("timer_lag", "How late timers of worker threads were served.", lags);
}

fn resources(all: &mut MetricFamilies, state: &LiveState) {
    let by_role = |of: fn(&RoleUsage) -> Option<f64>| {
        let one = |(role, used)| Some(labelled("role", String::clone(role), of(used)?));
        state.used.iter().filter_map(one).collect()
    };
    all.add(
        Kind::Counter,
        MetricName("cpu", Unit::Seconds),
        "Processor time used, by role; `host` is the whole machine.",
        by_role(|used| Some(used.cpu_us as f64 / 1e6)),
    );
    all.add(
        Kind::Counter,
        MetricName("cpu_wait", Unit::Seconds),
        "Time that threads were ready to run and had no processor.",
        by_role(|used| Some(used.run_delay_us as f64 / 1e6)),
    );
    all.add(
        Kind::Counter,
        MetricName("cpu_stolen", Unit::Seconds),
        "Processor time that the hypervisor took away.",
        by_role(|used| (used.last.role == "host").then_some(used.steal_us as f64 / 1e6)),
    );
    all.add(
        Kind::Gauge,
        MetricName("resident_memory", Unit::Bytes),
        "Resident memory.",
        by_role(|used| Some(used.last.rss_bytes as f64)),
    );
    all.add(
        Kind::Gauge,
        MetricName("open_fds", Unit::None),
        "Open file descriptors.",
        by_role(|used| (used.last.role != "host").then_some(used.last.descriptors as f64)),
    );
    all.add(
        Kind::Gauge,
        MetricName("threads", Unit::None),
        "Threads.",
        by_role(|used| (used.last.role != "host").then_some(used.last.threads as f64)),
    );
}

fn network(all: &mut MetricFamilies, state: &LiveState) {
    let by_role = |of: fn(&NetworkCounters) -> u64| {
        state
            .network
            .iter()
            .map(|(role, network)| labelled("role", role.clone(), of(network) as f64))
            .collect()
    };
    all.add(
        Kind::Counter,
        MetricName("tcp_retransmitted_segments", Unit::None),
        "TCP segments sent again in the network namespace of these roles.",
        by_role(|network| network.retransmitted),
    );
    all.add(
        Kind::Counter,
        MetricName("tcp_listen_overflows", Unit::None),
        "Connections that found a full accept queue.",
        by_role(|network| network.listen_overflows),
    );
    all.add(
        Kind::Gauge,
        MetricName("tcp_time_wait", Unit::None),
        "Connections in TIME_WAIT.",
        by_role(|network| network.time_wait),
    );
}

fn own(all: &mut MetricFamilies, state: &LiveState, watching: WatcherStats) {
    let stalls = |of: fn(&(u64, u64)) -> f64| {
        let of_role = |role: &str| state.stalls.get(role).map_or(0.0, of);
        ["robots", "origins"].map(|role| labelled("role", role, of_role(role))).to_vec()
    };
    let help = "Times that a worker thread stood still.";
    all.add(Kind::Counter, MetricName("stalls", Unit::None), help, stalls(|(count, _)| *count as f64));
    let help = "How long worker threads stood still, together.";
    all.add(Kind::Counter, MetricName("stalled", Unit::Seconds), help, stalls(|(_, us)| *us as f64 / 1e6));
    all.counter(
        MetricName("watching_cpu", Unit::Seconds),
        "Processor time that it took Assay to make these metrics and the live report.",
        watching.cpu_s,
    );
    all.counter(
        MetricName("watching_dismissed_clients", Unit::None),
        "Connections to these metrics and the live report that were ended to make room for others: there may be 64 at a time.",
        watching.dismissed_clients as f64,
    );
    all.counter(
        MetricName("watching_slow_clients", Unit::None),
        "Connections to these metrics and the live report that took too long with a request or a response.",
        watching.slow_clients as f64,
    );
}

#[cfg(test)]
mod tests;
