//! The metrics of a run. All of them, with their names and what they mean, from what is known so far.
//!
//! Labels are few and bounded: outcomes, kinds of errors, roles, reasons, status codes of HTTP. There is none for the phase:
//! `assay_phase_info` names the one that is on.

use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::validations;
use assay_metrics::{Kind, Labels, Unit};

use crate::news::Stage;
use crate::state::{ClassTimes, Network, PhaseSoFar, State, Used};
use crate::times::{Family, Sample, Times, Value};

/// Families that are put together.
#[derive(Default)]
struct Families(Vec<Family>);

impl Families {
    fn add(
        &mut self,
        kind: Kind,
        (stem, unit): (&'static str, Unit),
        help: &'static str,
        samples: Vec<Sample>,
    ) {
        self.0.push(Family { kind, stem, unit, help, samples });
    }

    fn counter(&mut self, name: (&'static str, Unit), help: &'static str, value: f64) {
        self.add(Kind::Counter, name, help, vec![plain(value)]);
    }

    fn count(&mut self, stem: &'static str, help: &'static str, value: u64) {
        self.counter((stem, Unit::None), help, value as f64);
    }

    fn bytes(&mut self, stem: &'static str, help: &'static str, value: u64) {
        self.counter((stem, Unit::Bytes), help, value as f64);
    }

    /// A gauge; none when there is nothing to say.
    fn gauge(&mut self, name: (&'static str, Unit), help: &'static str, value: Option<f64>) {
        self.add(Kind::Gauge, name, help, value.map(plain).into_iter().collect());
    }

    fn times(&mut self, stem: &'static str, help: &'static str, samples: Vec<Sample>) {
        self.add(Kind::Histogram, (stem, Unit::Seconds), help, samples);
    }
}

fn plain(value: f64) -> Sample {
    Sample { labels: Vec::new(), value: Value::Number(value) }
}

fn labelled(label: &'static str, value: impl Into<String>, number: f64) -> Sample {
    Sample { labels: vec![(label, value.into())], value: Value::Number(number) }
}

fn timed(labels: Labels, times: &Times) -> Sample {
    Sample { labels, value: Value::Times(Box::new(times.clone())) }
}

/// All metrics, at a time (Unix, in milliseconds). `own_cpu_s` is the processor time that watching took.
pub(crate) fn families(state: &State, now_unix_ms: u64, own_cpu_s: f64) -> Vec<Family> {
    let mut all = Families::default();
    run(&mut all, state, now_unix_ms);
    requests(&mut all, &state.robots);
    outcomes(&mut all, &state.robots);
    ratios(&mut all, state);
    times(&mut all, state);
    connections(&mut all, state);
    origins(&mut all, &state.origins);
    resources(&mut all, state);
    network(&mut all, state);
    proxy(&mut all, state);
    own(&mut all, state, own_cpu_s);
    all.0
}

fn run(all: &mut Families, state: &State, now_unix_ms: u64) {
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
    all.add(Kind::Gauge, ("run_info", Unit::None), "What is run, by which Assay; always 1.", vec![one]);
    let stage = |stage: Stage| labelled("stage", stage.name(), f64::from(u8::from(stage == state.stage)));
    let stages = Stage::ALL.map(stage).to_vec();
    all.add(
        Kind::Gauge,
        ("run_stage", Unit::None),
        "1 for the stage that the run is at, 0 for the others.",
        stages,
    );
    let started_s = state.started_unix_ms.map(|ms| ms as f64 / 1e3);
    all.gauge(("run_start_time", Unit::Seconds), "Start of the schedule, in Unix time.", started_s);
    let planned_s = state.phases.last().and_then(|phase| phase.info.planned_end_ms).map(|ms| ms as f64 / 1e3);
    all.gauge(("run_planned", Unit::Seconds), "Planned length of the schedule.", planned_s);

    let elapsed_ms = state.elapsed_ms(now_unix_ms);
    let current = state.current();
    let name = |(index, phase): (usize, &PhaseSoFar)| {
        let labels = vec![("phase", phase.info.name.clone()), ("index", index.to_string())];
        Sample { labels, value: Value::Number(1.0) }
    };
    let named = current.map(name).into_iter().collect();
    all.add(Kind::Gauge, ("phase_info", Unit::None), "The phase that is on; always 1.", named);
    let of_phase = |of: fn(&PhaseSoFar, u64) -> f64| {
        current.zip(elapsed_ms).map(|((_, phase), elapsed_ms)| of(phase, elapsed_ms))
    };
    let done = of_phase(PhaseSoFar::done);
    all.gauge(("phase_done", Unit::Ratio), "How much of the phase is over.", done);
    let load = of_phase(PhaseSoFar::load);
    all.gauge(("load_factor", Unit::None), "Load, as a multiple of the workload's own.", load);
    let invalid = state.doubts.keys().any(|(_, invalidates)| *invalidates);
    let valid = f64::from(u8::from(!invalid));
    all.gauge(
        ("run_valid", Unit::None),
        "0 when Assay or the lab could have shaped the result.",
        Some(valid),
    );
    let doubts = state.doubts.iter().map(|((reason, invalidates), count)| Sample {
        labels: vec![("reason", reason.name().into()), ("invalidates", invalidates.to_string())],
        value: Value::Number(*count as f64),
    });
    all.add(
        Kind::Gauge,
        ("doubts", Unit::None),
        "Reasons to doubt the run that were found.",
        doubts.collect(),
    );
}

fn requests(all: &mut Families, counts: &RobotCounts) {
    all.count("requests_due", "Requests that came due.", counts.due);
    all.count("requests_sent", "Requests sent, at least in part.", counts.sent);
    all.count("requests_completed", "Requests answered without error.", counts.completed);
    all.count("requests_unsent", "Requests due and not sent by the end of their phase.", counts.unsent);
    all.count(
        "requests_unsent_late",
        "Unsent requests that Assay itself came to too late.",
        counts.unsent_late,
    );
    all.count(
        "requests_not_reached",
        "Embedded objects whose page failed or whose link was not seen in time.",
        counts.not_reached,
    );
    all.count("requests_retried", "Requests sent again on another connection.", counts.retries);
    all.count("pages_completed", "Pages answered with all of their objects.", counts.pages);
    let errors = ErrorKind::ALL
        .map(|kind| labelled("kind", kind.name(), counts.errors.get(&kind).copied().unwrap_or(0) as f64));
    all.add(
        Kind::Counter,
        ("errors", Unit::None),
        "Requests that ended in an error, by kind.",
        errors.to_vec(),
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
    all.add(Kind::Counter, ("responses", Unit::None), "Completed requests by status code.", codes);
}

fn outcomes(all: &mut Families, counts: &RobotCounts) {
    let by_outcome = |values: [u64; 4]| {
        let names = ["hit", "collapsed", "revalidated", "miss"];
        names.into_iter().zip(values).map(|(name, value)| labelled("outcome", name, value as f64)).collect()
    };
    all.add(
        Kind::Counter,
        ("basic_requests", Unit::None),
        "Completed basic requests (plain GETs) by outcome, as replies show it.",
        by_outcome([counts.hits, counts.collapsed, counts.revalidated, counts.misses]),
    );
    all.add(
        Kind::Counter,
        ("basic_body", Unit::Bytes),
        "Body bytes of completed basic requests by outcome.",
        by_outcome([counts.hit_bytes, counts.collapsed_bytes, counts.revalidated_bytes, counts.miss_bytes]),
    );
    all.count("basic_requests_due", "Basic requests that came due.", counts.due_basic);
    all.bytes("basic_body_due", "Body bytes of basic requests that came due.", counts.due_basic_bytes);
    all.count("offered_hits", "Of those due, revisits of cachable objects.", counts.offered_hits);
    all.bytes("offered_hits_body", "Body bytes of offered hits.", counts.offered_hit_bytes);
    all.count("ideal_requests", "Basic requests that the ideal cache was asked for.", counts.ideal_basic);
    all.bytes("ideal_requests_body", "Body bytes of those.", counts.ideal_basic_bytes);
    all.count("ideal_hits", "Of those, what an infinite cache would have hit.", counts.ideal_hits);
    all.bytes("ideal_hits_body", "Body bytes of ideal hits.", counts.ideal_hit_bytes);
}

/// Hits that the origin says it validated are none: as in the summary.
fn measured(robots: &RobotCounts, origins: &OriginCounts) -> [u64; 2] {
    [
        robots.hits + robots.collapsed - validations::hidden(robots, origins),
        robots.hit_bytes + robots.collapsed_bytes - validations::hidden_bytes(robots, origins),
    ]
}

fn ratios(all: &mut Families, state: &State) {
    let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let scopes = [
        ("run", Some((&state.robots, &state.origins))),
        ("phase", state.current().map(|(_, phase)| (&phase.robots, &phase.origins))),
    ];
    let (mut documents, mut bytes) = (Vec::new(), Vec::new());
    for (scope, counts) in scopes {
        let Some((robots, origins)) = counts else { continue };
        let [hits, hit_bytes] = measured(robots, origins);
        let dhr = [
            ("offered", ratio(robots.offered_hits, robots.due_basic)),
            ("ideal", ratio(robots.ideal_hits, robots.ideal_basic)),
            ("measured", ratio(hits, robots.basic)),
        ];
        let bhr = [
            ("offered", ratio(robots.offered_hit_bytes, robots.due_basic_bytes)),
            ("ideal", ratio(robots.ideal_hit_bytes, robots.ideal_basic_bytes)),
            ("measured", ratio(hit_bytes, robots.basic_bytes)),
        ];
        for (found, ratios) in [(&mut documents, dhr), (&mut bytes, bhr)] {
            found.extend(ratios.into_iter().filter_map(|(kind, ratio)| {
                let labels = vec![("kind", kind.to_owned()), ("scope", scope.to_owned())];
                Some(Sample { labels, value: Value::Number(ratio?) })
            }));
        }
    }
    let help = "Document hit ratio of basic requests: offered by the stream, of an ideal cache, measured.";
    all.add(Kind::Gauge, ("document_hit", Unit::Ratio), help, documents);
    let help = "Byte hit ratio of basic requests: offered by the stream, of an ideal cache, measured.";
    all.add(Kind::Gauge, ("byte_hit", Unit::Ratio), help, bytes);
}

fn times(all: &mut Families, state: &State) {
    let classes = |of: fn(&ClassTimes) -> &Times| {
        [("hit", &state.hit), ("miss", &state.miss), ("other", &state.other), ("timed_out", &state.timed_out)]
            .map(|(class, times)| timed(vec![("class", class.into())], of(times)))
            .to_vec()
    };
    let mut response = classes(|times| &times.response);
    response.push(timed(vec![("class", "unsent".into())], &state.unsent_wait));
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
    let late = vec![timed(Vec::new(), &state.lateness)];
    all.times("lateness", "What Assay itself added before it sent a request.", late);
    let service = vec![timed(Vec::new(), &state.origin_service)];
    all.times(
        "origin_service_time",
        "From a whole request to its answer at an origin, think time included.",
        service,
    );
    let lags = state.timer_lag.iter().map(|(role, lag)| timed(vec![("role", role.clone())], lag)).collect();
    all.times("timer_lag", "How late timers of worker threads were served.", lags);
}

fn connections(all: &mut Families, state: &State) {
    let (robots, origins) = (&state.robots, &state.origins);
    let by_side = |robots: u64, origins: u64| {
        vec![labelled("side", "robots", robots as f64), labelled("side", "origins", origins as f64)]
    };
    all.add(
        Kind::Counter,
        ("connections_opened", Unit::None),
        "Connections opened by robots, and accepted by origins.",
        by_side(robots.connections_opened, origins.connections_opened),
    );
    all.add(
        Kind::Counter,
        ("connections_closed", Unit::None),
        "Connections closed, by whichever end.",
        by_side(robots.connections_closed, origins.connections_closed),
    );
    all.add(
        Kind::Gauge,
        ("connections", Unit::None),
        "Open connections.",
        by_side(state.levels.connections, state.origin_connections),
    );
    all.add(
        Kind::Counter,
        ("received", Unit::Bytes),
        "Bytes read from sockets, heads included.",
        by_side(robots.wire_bytes_in, origins.wire_bytes_in),
    );
    all.add(
        Kind::Counter,
        ("sent", Unit::Bytes),
        "Bytes written to sockets, heads included.",
        by_side(robots.wire_bytes_out, origins.wire_bytes_out),
    );
    all.bytes("received_body", "Body bytes that robots received.", robots.body_bytes_in);
    let waiting = Some(state.levels.waiting as f64);
    all.gauge(("requests_waiting", Unit::None), "Requests that wait for a connection.", waiting);
    let in_flight = Some(state.levels.in_flight as f64);
    all.gauge(("requests_in_flight", Unit::None), "Requests sent and not yet answered.", in_flight);
}

fn origins(all: &mut Families, counts: &OriginCounts) {
    all.count("origin_requests", "Requests that origins received.", counts.requests);
    all.count("origin_not_modified", "Requests that origins answered with 304.", counts.not_modified);
    all.count("origin_validations", "Validations that the target made on its own.", counts.validations);
    all.count(
        "origin_validated_basic",
        "Of those, answered with 304 for basic requests: what looks like a hit and is a validation.",
        counts.validated_basic,
    );
    all.bytes("origin_sent_body", "Body bytes that origins sent.", counts.body_bytes_out);
    all.count(
        "origin_refused",
        "Requests to origins that were not HTTP or for nothing that exists.",
        counts.refused,
    );
}

fn resources(all: &mut Families, state: &State) {
    let by_role = |of: fn(&Used) -> Option<f64>| {
        let one = |(role, used)| Some(labelled("role", String::clone(role), of(used)?));
        state.used.iter().filter_map(one).collect()
    };
    all.add(
        Kind::Counter,
        ("cpu", Unit::Seconds),
        "Processor time used, by role; `host` is the whole machine.",
        by_role(|used| Some(used.cpu_us as f64 / 1e6)),
    );
    all.add(
        Kind::Counter,
        ("cpu_wait", Unit::Seconds),
        "Time that threads were ready to run and had no processor.",
        by_role(|used| Some(used.run_delay_us as f64 / 1e6)),
    );
    all.add(
        Kind::Counter,
        ("cpu_stolen", Unit::Seconds),
        "Processor time that the hypervisor took away.",
        by_role(|used| (used.last.role == "host").then_some(used.steal_us as f64 / 1e6)),
    );
    all.add(
        Kind::Gauge,
        ("resident_memory", Unit::Bytes),
        "Resident memory.",
        by_role(|used| Some(used.last.rss_bytes as f64)),
    );
    all.add(
        Kind::Gauge,
        ("open_fds", Unit::None),
        "Open file descriptors.",
        by_role(|used| (used.last.role != "host").then_some(used.last.descriptors as f64)),
    );
    all.add(
        Kind::Gauge,
        ("threads", Unit::None),
        "Threads.",
        by_role(|used| (used.last.role != "host").then_some(used.last.threads as f64)),
    );
}

fn network(all: &mut Families, state: &State) {
    let by_role = |of: fn(&Network) -> u64| {
        state
            .network
            .iter()
            .map(|(role, network)| labelled("role", role.clone(), of(network) as f64))
            .collect()
    };
    all.add(
        Kind::Counter,
        ("tcp_retransmitted_segments", Unit::None),
        "TCP segments sent again in the network namespace of these roles.",
        by_role(|network| network.retransmitted),
    );
    all.add(
        Kind::Counter,
        ("tcp_listen_overflows", Unit::None),
        "Connections that found a full accept queue.",
        by_role(|network| network.listen_overflows),
    );
    all.add(
        Kind::Gauge,
        ("tcp_time_wait", Unit::None),
        "Connections in TIME_WAIT.",
        by_role(|network| network.time_wait),
    );
}

/// The target's own word; not ours.
fn proxy(all: &mut Families, state: &State) {
    let Some(counters) = &state.proxy else { return };
    all.count("proxy_requests", "Requests that the target says it answered.", counters.requests);
    let outcomes = [
        ("hit", counters.hits),
        ("collapsed", counters.collapsed),
        ("revalidated", counters.revalidated),
        ("miss", counters.misses),
        ("passed", counters.passed),
    ];
    let outcomes = outcomes.map(|(outcome, count)| labelled("outcome", outcome, count as f64)).to_vec();
    let help = "The target's own word on how it answered; what it does not count is 0.";
    all.add(Kind::Counter, ("proxy_outcomes", Unit::None), help, outcomes);
    all.count("proxy_evictions", "Objects that the target says it dropped to make room.", counters.evictions);
    all.count("proxy_origin_requests", "Requests that the target says it sent.", counters.origin_requests);
    all.count("proxy_origin_errors", "Fetches that the target says failed.", counters.origin_errors);
    let objects = Some(counters.objects as f64);
    all.gauge(("proxy_objects", Unit::None), "Objects that the target says it stores.", objects);
    let stored = Some(counters.stored_bytes as f64);
    all.gauge(("proxy_stored", Unit::Bytes), "Bytes that the target says it stores.", stored);
}

fn own(all: &mut Families, state: &State, own_cpu_s: f64) {
    let stalls = |of: fn(&(u64, u64)) -> f64| {
        let of_role = |role: &str| state.stalls.get(role).map_or(0.0, of);
        ["robots", "origins"].map(|role| labelled("role", role, of_role(role))).to_vec()
    };
    let help = "Times that a worker thread stood still.";
    all.add(Kind::Counter, ("stalls", Unit::None), help, stalls(|(count, _)| *count as f64));
    let help = "How long worker threads stood still, together.";
    all.add(Kind::Counter, ("stalled", Unit::Seconds), help, stalls(|(_, us)| *us as f64 / 1e6));
    all.counter(
        ("watching_cpu", Unit::Seconds),
        "Processor time that it took Assay to make these metrics and the live report.",
        own_cpu_s,
    );
}

#[cfg(test)]
mod tests;
