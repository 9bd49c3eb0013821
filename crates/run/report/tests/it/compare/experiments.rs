//! Made-up experiments: small run directories, written by the run directory's own writers, the same every time.

use std::collections::BTreeMap;
use std::path::Path;

use assay_base::random::Rng;
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval};
use assay_measurement::measured::Measured;
use assay_measurement::xact::XactRow;
use assay_record::dir::RunDir;
use assay_record::experiment::{
    CellInfo, CellState, ConditionInfo, EXPERIMENT_SCHEMA, ExperimentInfo, SubjectInfo,
};
use assay_record::run::{PhaseInfo, RUN_SCHEMA, RunInfo, RunVerdict, TargetInfo, WorkloadInfo};
use assay_record::series::SeriesWriter;
use assay_record::xact_log::XactLog;
use assay_report::compare::{self as compare, Comparison};

use assay_testbed::pages::drawn;

/// How a subject does.
#[derive(Clone)]
pub struct Kind {
    pub label: &'static str,
    pub proxy: &'static str,
    pub version: &'static str,
    pub settings: &'static [(&'static str, &'static str)],
    /// Typical response time of a miss, in microseconds.
    pub miss_us: f64,
    /// Hit ratio that it reaches.
    pub dhr: f64,
    /// Requests per second that it can carry.
    pub most_per_s: f64,
    /// Processor time per request, in microseconds.
    pub cpu_us: f64,
    pub memory_mb: u64,
    /// One in so many responses is stale; 0: none.
    pub stale_one_in: u64,
}

pub const VARNISH: Kind = Kind {
    label: "varnish",
    proxy: "varnish",
    version: "7.1.1",
    settings: &[("memory", "1GB"), ("storage", "file")],
    miss_us: 2400.0,
    dhr: 0.47,
    most_per_s: 1e9,
    cpu_us: 52.0,
    memory_mb: 480,
    stale_one_in: 0,
};

pub const ATS: Kind = Kind {
    label: "ats",
    proxy: "trafficserver",
    version: "9.2.5",
    settings: &[("memory", "1GB"), ("disk", "1GB")],
    miss_us: 3300.0,
    dhr: 0.55,
    most_per_s: 260.0,
    cpu_us: 81.0,
    memory_mb: 310,
    stale_one_in: 900,
};

pub const SQUID: Kind = Kind {
    label: "squid",
    proxy: "squid",
    version: "5.7",
    settings: &[("memory", "1GB")],
    miss_us: 3350.0,
    dhr: 0.52,
    most_per_s: 210.0,
    cpu_us: 140.0,
    memory_mb: 350,
    stale_one_in: 0,
};

/// What kind of experiment to make up.
pub struct Plan<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub subjects: &'a [Kind],
    pub workloads: &'a [&'a str],
    pub conditions: &'a [&'a str],
    pub repetitions: u32,
    /// Runs keep a log of their xacts.
    pub logs: bool,
}

impl Default for Plan<'_> {
    fn default() -> Self {
        Self {
            name: "varnish-vs-ats",
            title: "Which of two reverse proxies is the better choice, scenario by scenario?",
            subjects: &[VARNISH, ATS],
            workloads: &["image", "mixed"],
            conditions: &["plain"],
            repetitions: 5,
            logs: false,
        }
    }
}

/// (name, seconds, load at its start and end, in the statistics): mixed ends with a ramp.
fn schedule(workload: &str) -> Vec<(&'static str, u64, f64, f64, bool)> {
    let mut phases = vec![("warm", 3, 0.1, 0.5, false), ("top1", 12, 0.5, 0.5, true)];
    if workload == "hour" {
        return vec![
            ("warm", 300, 0.02, 0.1, false),
            ("top1", 2400, 0.1, 0.1, true),
            ("top2", 900, 0.15, 0.15, true),
        ];
    }
    if workload == "mixed" {
        phases.push(("inc", 24, 0.2, 1.0, true));
    }
    phases.push(("cool", 2, 0.5, 0.0, false));
    phases
}

const PEAK: f64 = 400.0;

/// Twenty subjects, each somewhat slower than the one before.
pub fn twenty() -> Vec<Kind> {
    const LABELS: [&str; 20] = [
        "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
        "v16", "v17", "v18", "v19",
    ];
    let kind = |(n, label): (usize, &&'static str)| Kind {
        label,
        miss_us: 2000.0 + 70.0 * n as f64,
        dhr: 0.4 + 0.005 * n as f64,
        memory_mb: 300 + n as u64,
        ..VARNISH
    };
    LABELS.iter().enumerate().map(kind).collect()
}

/// The comparison of an experiment.
pub fn compared(plan: &Plan<'_>) -> Comparison {
    let tmp = tempfile::tempdir().unwrap();
    write(tmp.path(), plan);
    compare::experiment(tmp.path()).unwrap()
}

/// Writes the experiment into a directory, every cell done.
pub fn write(dir: &Path, plan: &Plan<'_>) -> ExperimentInfo {
    let mut info = ExperimentInfo {
        schema: EXPERIMENT_SCHEMA.into(),
        name: plan.name.into(),
        title: plan.title.into(),
        assay_version: "0.1.0".into(),
        command: ["assay", "lab", "varnish-vs-ats.toml", "--rehearse", "40s"].map(str::to_owned).into(),
        started_unix_ms: 1_769_864_709_000,
        seed: 1,
        rehearse_s: Some(40.0),
        repetitions: plan.repetitions,
        workloads: plan.workloads.iter().map(|name| (*name).to_owned()).collect(),
        subjects: plan.subjects.iter().map(subject).collect(),
        conditions: plan
            .conditions
            .iter()
            .map(|label| ConditionInfo { label: (*label).to_owned(), settings: BTreeMap::new() })
            .collect(),
        cells: Vec::new(),
        finished: true,
    };
    for workload in plan.workloads {
        for kind in plan.subjects {
            for condition in plan.conditions {
                for repetition in 1..=plan.repetitions {
                    let id = format!("{workload}-{}-{condition}-{repetition}", kind.label);
                    let run = format!("cells/{id}");
                    std::fs::create_dir_all(dir.join("cells")).unwrap();
                    cell(&dir.join(&run), workload, kind, repetition, plan.logs);
                    info.cells.push(CellInfo {
                        id,
                        workload: (*workload).to_owned(),
                        subject: kind.label.to_owned(),
                        condition: (*condition).to_owned(),
                        repetition,
                        seed: u64::from(repetition),
                        state: CellState::Done,
                        why: None,
                        run: Some(run),
                        fault: None,
                        tries: 1,
                    });
                }
            }
        }
    }
    save(dir, &info);
    info
}

/// Writes `experiment.json` anew.
pub fn save(dir: &Path, info: &ExperimentInfo) {
    std::fs::write(dir.join("experiment.json"), serde_json::to_vec_pretty(info).unwrap()).unwrap();
}

fn subject(kind: &Kind) -> SubjectInfo {
    SubjectInfo {
        label: kind.label.into(),
        proxy: kind.proxy.into(),
        version: kind.version.into(),
        settings: kind.settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
    }
}

fn cell(path: &Path, workload: &str, kind: &Kind, repetition: u32, logs: bool) {
    let dir = RunDir::create(path).unwrap();
    let mut writer = SeriesWriter::create(&dir).unwrap();
    // What the stream brings is the same for all subjects of a repetition; how a run goes is its own.
    let seed = u64::from(repetition) << 40 | workload.len() as u64;
    let mut stream = Rng::new(seed);
    let mut own = Rng::new(seed ^ kind.miss_us as u64 ^ kind.memory_mb << 20);
    let mood = 0.97 + 0.06 * own.unit();
    let mut start_ms = 0;
    let mut phases = Vec::new();
    for (index, (name, seconds, begin, end, log_stats)) in schedule(workload).into_iter().enumerate() {
        let expected = PEAK * (begin + end) / 2.0 * seconds as f64;
        for second in 0..seconds {
            let load = begin + (end - begin) * (second as f64 + 0.5) / seconds as f64;
            let due = (PEAK * load * (0.94 + 0.12 * stream.unit())) as u64;
            self::second(&mut writer, &mut own, kind, mood, index as u16, start_ms + second * 1000, due);
        }
        let end_ms = start_ms + seconds * 1000;
        phases.push(PhaseInfo {
            name: name.into(),
            planned_start_ms: Some(start_ms),
            planned_end_ms: Some(end_ms),
            start_ms: Some(start_ms),
            end_ms: Some(end_ms),
            goal: format!("{seconds} s"),
            load: (begin, end),
            recurrence: (1.0, 1.0),
            expected_requests: Some(expected),
            log_stats,
            ..PhaseInfo::default()
        });
        start_ms = end_ms;
    }
    writer.finish().unwrap();
    if logs {
        log(&dir, kind, mood, &mut own);
    }
    dir.write_info(&head(workload, kind, repetition, phases)).unwrap();
}

fn head(workload: &str, kind: &Kind, repetition: u32, phases: Vec<PhaseInfo>) -> RunInfo {
    RunInfo {
        schema: RUN_SCHEMA.into(),
        assay_version: "0.1.0".into(),
        workload: WorkloadInfo { name: workload.into(), ..WorkloadInfo::default() },
        seed: u64::from(repetition),
        stream_digest: format!("{workload}-{repetition}"),
        target: TargetInfo {
            name: kind.proxy.into(),
            version: kind.version.into(),
            mode: "reverse".into(),
            ..TargetInfo::default()
        },
        phases,
        own_errors: true,
        verdict: RunVerdict::default(),
        finished: true,
        ..RunInfo::default()
    }
}

fn second(
    writer: &mut SeriesWriter,
    own: &mut Rng,
    kind: &Kind,
    mood: f64,
    phase: u16,
    start_ms: u64,
    due: u64,
) {
    let mut robots = RobotInterval { start_ms, length_ms: 1000, phase, ..RobotInterval::default() };
    let overload = (due as f64 / kind.most_per_s).max(1.0);
    let c = &mut robots.counts;
    let size = 4500;
    (c.due, c.due_basic, c.due_basic_bytes) = (due, due, due * size);
    (c.offered_hits, c.offered_hit_bytes) = (due * 6 / 10, due * 6 / 10 * size);
    c.sent = (due as f64 / overload) as u64;
    c.unsent = due - c.sent;
    let stale =
        (c.sent + own.next_u64() % kind.stale_one_in.max(1)).checked_div(kind.stale_one_in).unwrap_or(0);
    if stale > 0 {
        c.errors = BTreeMap::from([(ErrorKind::Stale, stale)]);
    }
    c.completed = c.sent - stale;
    (c.basic, c.basic_bytes) = (c.completed, c.completed * size);
    (c.ideal_basic, c.ideal_basic_bytes) = (c.sent, c.sent * size);
    (c.ideal_hits, c.ideal_hit_bytes) = (c.sent * 58 / 100, c.sent * 58 / 100 * size);
    c.hits = (c.basic as f64 * (kind.dhr + 0.01 * (mood - 1.0) + 0.01 * (own.unit() - 0.5))) as u64;
    c.hit_bytes = c.hits * (size - 60);
    (c.misses, c.miss_bytes) = (c.basic - c.hits, c.basic_bytes - c.hit_bytes);
    c.body_bytes_in = c.basic_bytes;
    let slow = mood * (1.0 + (overload - 1.0) * 40.0);
    robots.times.hit.response = drawn(own, c.hits, 300.0 * slow);
    robots.times.miss.response = drawn(own, c.completed - c.hits, kind.miss_us * slow);
    let mut origins = OriginInterval { start_ms, length_ms: 1000, phase, ..OriginInterval::default() };
    (origins.counts.requests, origins.counts.responses) = (c.misses, c.misses);
    origins.counts.body_bytes_out = c.misses * size;
    origins.service = drawn(own, c.misses, 900.0);
    let sent = c.sent;
    writer.keep(&Measured::Robots(robots.into())).unwrap();
    writer.keep(&Measured::Origins(origins.into())).unwrap();
    writer
        .keep(&Measured::Host(
            HostInterval {
                start_ms,
                length_ms: 1000,
                role: "proxy".into(),
                cpu_us: (sent as f64 * kind.cpu_us * mood) as u64,
                rss_bytes: (kind.memory_mb << 20) + start_ms * 900 + own.next_u64() % 4_000_000,
                ..HostInterval::default()
            }
            .into(),
        ))
        .unwrap();
}

/// A log of some xacts in `top1`; every seventh that this subject did not complete is another one than others'.
fn log(dir: &RunDir, kind: &Kind, mood: f64, own: &mut Rng) {
    let mut log = XactLog::create(&dir.xacts_path()).unwrap();
    for number in 0..200u64 {
        let lost = (number + kind.memory_mb).is_multiple_of(7);
        let due_us = 3_000_000 + number as i64 * 40_000;
        let took = kind.miss_us * mood * (1.0 + 0.02 * own.unit()) + number as f64 * 10.0;
        log.push(&XactRow {
            robot: 1,
            number,
            place: 0,
            phase: 1,
            method: "GET",
            request_type: "basic",
            object: number,
            content: 0,
            cachable: true,
            revisit: false,
            due_us,
            ready_us: Some(due_us),
            sent_us: Some(due_us),
            connected_us: None,
            secured_us: None,
            first_byte_us: Some(due_us),
            last_byte_us: Some(due_us + took as i64),
            outcome: (!lost).then_some(assay_measurement::outcome::Outcome::Miss),
            error: lost.then_some(ErrorKind::TimedOut),
            status: Some(200),
            body_bytes: 4500,
            connection: Some(0),
            fault: None,
            fault_met: false,
        })
        .unwrap();
    }
    log.finish().unwrap();
}
