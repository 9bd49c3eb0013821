//! Made-up runs that are the same every time, bit by bit.

use std::collections::BTreeMap;

use assay_base::random::Rng;
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval, RobotLevels, Times};
use assay_measurement::machine::{BlockInterval, DiskInterval, InterfaceInterval, MachineInterval};
use assay_measurement::measured::{Measured, ProxySample};
use assay_measurement::times::{Burst, TimesRecorder};
use assay_record::dir::RunDir;
use assay_record::run::{
    HostInfo, PhaseInfo, PlacementInfo, PlannedWorkingSet, RUN_SCHEMA, RunInfo, RunVerdict, TargetInfo,
    WorkloadInfo,
};
use assay_record::series::SeriesWriter;

pub use crate::once::{Run, run};
use crate::own::{self, Delay};
pub use assay_testbed::pages::{HOSTILE, drawn};

/// What kind of run to make up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Story {
    /// A good run through every phase of the classic schedule.
    Good,
    /// The target is too slow at the peaks and gives wrong responses.
    Troubled,
    /// Interrupted in the middle of `top1`.
    Interrupted,
    /// Killed: no end was written.
    Killed,
    /// Assay ran out of source ports.
    Ports,
    /// Origins ended early, and what they had not reported is gone.
    Failed,
    /// Robots were stopped for 300 ms in `top1`, and had to share their processor in `top2`.
    Stalled,
    /// The machine is known to offer about four times as much, and there is something worth knowing.
    Calibrated,
    /// No proxy, one phase.
    Direct,
    /// Planned, and nothing happened.
    Nothing,
    /// Every name is an attack on the page or the terminal.
    Hostile,
}

/// (name, seconds, load at start, load at end).
const SCHEDULE: [(&str, u64, f64, f64); 9] = [
    ("warm", 4, 0.1, 0.5),
    ("fill", 12, 0.5, 0.5),
    ("link", 3, 0.5, 1.0),
    ("top1", 14, 1.0, 1.0),
    ("dec", 4, 1.0, 0.1),
    ("idle", 5, 0.1, 0.1),
    ("inc", 4, 0.1, 1.0),
    ("top2", 11, 1.0, 1.0),
    ("cool", 3, 1.0, 0.0),
];
const PEAK_RATE: f64 = 2400.0;

/// Makes the run of a story, with phases of `most_s` seconds at most; `run` copies one that was made before.
pub fn make(story: Story, most_s: u64) -> Run {
    let tmp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&tmp.path().join("run")).unwrap();
    let mut info = info(story);
    let mut writer = SeriesWriter::create(&dir).unwrap();
    let mut start_ms = 0;
    if story != Story::Nothing {
        for (index, (_, seconds, begin, end)) in schedule(story).into_iter().enumerate() {
            let whole = seconds.min(most_s) * 1000 + if index == 0 { 250 } else { 0 };
            let cut = matches!(story, Story::Interrupted | Story::Killed) && index == 3;
            let length_ms = if cut { whole.min(6_400) } else { whole };
            info.phases[index].start_ms = Some(start_ms);
            info.phases[index].end_ms = (story != Story::Killed || !cut).then_some(start_ms + length_ms);
            phase(&mut writer, story, index as u16, start_ms, length_ms, begin, end);
            start_ms += length_ms;
            if cut {
                break;
            }
        }
    }
    if story != Story::Nothing {
        own::health(&mut writer, story, start_ms);
    }
    examples(&mut writer, story);
    if story == Story::Killed {
        drop(writer);
        info.finished = false;
        info.verdict = RunVerdict::default();
    } else {
        writer.finish().unwrap();
    }
    dir.write_info(&info).unwrap();
    Run { _tmp: tmp, dir }
}

fn schedule(story: Story) -> Vec<(&'static str, u64, f64, f64)> {
    if story == Story::Direct { vec![("top", 10, 1.0, 1.0)] } else { SCHEDULE.to_vec() }
}

/// The intervals of a phase, cut at the run's whole seconds.
fn phase(
    writer: &mut SeriesWriter,
    story: Story,
    index: u16,
    start_ms: u64,
    length_ms: u64,
    begin: f64,
    end: f64,
) {
    let mut dice = Rng::new(u64::from(index) << 32);
    let mut at = start_ms;
    while at < start_ms + length_ms {
        let until = ((at / 1000 + 1) * 1000).min(start_ms + length_ms);
        let middle = ((at + until) / 2 - start_ms) as f64 / length_ms as f64;
        let load = begin + (end - begin) * middle;
        second(writer, &mut dice, story, index, at, until - at, load);
        at = until;
    }
}

fn second(
    writer: &mut SeriesWriter,
    dice: &mut Rng,
    story: Story,
    phase: u16,
    start_ms: u64,
    length_ms: u64,
    load: f64,
) {
    let due = (PEAK_RATE * load * length_ms as f64 / 1000.0 * (0.95 + 0.1 * dice.unit())) as u64;
    let overloaded = story == Story::Troubled && load > 0.9;
    let robots = robots(dice, story, phase, start_ms, length_ms, due, overloaded);
    let origins = origins(dice, story, &robots);
    writer.keep(&Measured::Robots(robots.clone().into())).unwrap();
    writer.keep(&Measured::Origins(origins.into())).unwrap();
    let sent = robots.counts.sent;
    let mut roles = vec![("robots", 22.0), ("origins", 14.0)];
    if story != Story::Direct {
        roles.push(("proxy", if overloaded { 400.0 } else { 31.0 }));
    }
    for (role, cpu_us) in roles {
        let cpu_us = ((sent as f64 * cpu_us) as u64).min(length_ms * 1000);
        let mut interval = host(role, start_ms, length_ms, cpu_us, u64::from(phase));
        if role == "proxy" {
            wait(&mut interval, own::starved(story, start_ms));
        }
        writer.keep(&Measured::Host(interval.into())).unwrap();
    }
    writer.keep(&Measured::Host(host("host", start_ms, length_ms, length_ms * 900, 0).into())).unwrap();
    below(writer, story, start_ms, length_ms, sent);
    let counters = BTreeMap::from([
        ("MAIN.cache_hit".to_owned(), (robots.counts.hits + start_ms) as f64),
        ("MAIN.n_object".to_owned(), start_ms as f64 * 0.8),
    ]);
    let sample = ProxySample { cache: String::new(), at_ms: start_ms + length_ms, counters };
    writer.keep(&Measured::Proxy(sample.into())).unwrap();
}

pub fn robots(
    dice: &mut Rng,
    story: Story,
    phase: u16,
    start_ms: u64,
    length_ms: u64,
    due: u64,
    overloaded: bool,
) -> RobotInterval {
    let mut interval = RobotInterval { start_ms, length_ms, phase, ..RobotInterval::default() };
    let c = &mut interval.counts;
    let size = 4500;
    c.due = due;
    c.due_basic = due;
    c.due_basic_bytes = due * size;
    let offered = 0.15 + 0.40 * (start_ms as f64 / 20_000.0).min(1.0);
    c.offered_hits = (due as f64 * offered) as u64;
    c.offered_hit_bytes = c.offered_hits * size;
    c.working_set = if start_ms < 10_000 { due - c.offered_hits } else { 0 };
    c.working_set_bytes = c.working_set * size;
    c.due_digest = dice.next_u64();
    c.unsent = if overloaded { due / 5 } else { 0 };
    c.sent = due - c.unsent;
    let wrong = if story == Story::Troubled && due > 200 { c.sent / 400 } else { 0 };
    if wrong > 0 {
        c.errors = BTreeMap::from([(ErrorKind::Stale, wrong), (ErrorKind::TimedOut, wrong / 3 + 1)]);
    }
    if story == Story::Ports && phase == 3 {
        c.errors.insert(ErrorKind::PortsExhausted, 5);
    }
    c.completed = c.sent - c.error_total().min(c.sent);
    c.joined = if matches!(story, Story::Good | Story::Stalled) { c.completed - c.completed / 50 } else { 0 };
    c.basic = c.completed;
    c.basic_bytes = c.basic * size;
    c.ideal_basic = c.basic;
    c.ideal_basic_bytes = c.basic_bytes;
    if story != Story::Direct {
        c.ideal_hits = (c.basic as f64 * (offered - 0.005)) as u64;
        c.ideal_hit_bytes = c.ideal_hits * size;
        let found = if story == Story::Troubled { offered - 0.08 } else { offered - 0.011 };
        c.hits = (c.basic as f64 * found) as u64;
        c.hit_bytes = c.hits * size;
        c.collapsed = c.basic / 200;
        c.collapsed_bytes = c.collapsed * size;
    }
    c.misses = c.basic - c.hits - c.collapsed;
    c.miss_bytes = c.misses * size;
    c.body_bytes_in = c.basic_bytes;
    c.wire_bytes_in = c.completed * (size + 310);
    c.wire_bytes_out = c.sent * 180;
    c.connections_opened = c.sent / 16;
    c.connections_closed = c.sent / 17;
    c.by_method = BTreeMap::from([("GET".to_owned(), c.completed)]);
    c.by_type = BTreeMap::from([("basic".to_owned(), c.completed)]);
    c.by_status = BTreeMap::from([(200, c.completed)]);
    let (hits, misses, joined) = (c.hits, c.misses, c.collapsed);
    let (unsent, sent) = (c.unsent, c.sent);
    let gave_up = c.errors.get(&ErrorKind::TimedOut).copied().unwrap_or(0);
    let slow = if overloaded { 40.0 } else { 1.0 + due as f64 / PEAK_RATE };
    let delay = own::delay(story, start_ms);
    times(dice, &mut interval.times.hit, hits, 260.0 * slow, delay);
    times(dice, &mut interval.times.miss, misses, 1900.0 * slow, delay);
    times(dice, &mut interval.times.other, joined, 1400.0 * slow, delay);
    times(dice, &mut interval.times.timed_out, gave_up, 20_000_000.0, None);
    interval.times.lateness = drawn(dice, sent, 24.0);
    interval.times.unsent_wait = drawn(dice, unsent, 900_000.0);
    interval.times.unsent_least = own::halved(&interval.times.unsent_wait);
    interval.levels = RobotLevels {
        waiting: if overloaded { 350 + due / 4 } else { 0 },
        in_flight: 2 + due / 500,
        connections: 120 + due / 8,
    };
    interval
}

fn times(dice: &mut Rng, into: &mut Times, count: u64, typical_us: f64, delay: Option<Delay>) {
    let delayed = delay.map_or(0, |delay| (count as f64 * delay.share) as u64);
    let [response, service, ttfb] =
        [1.1, 1.0, 0.7].map(|factor| drawn(dice, count - delayed, typical_us * factor));
    // What is drawn afterwards is the same whether there are delays or not.
    (0..3 * delayed).for_each(|_| _ = dice.unit());
    let mut dice = Rng::new(count);
    let mut recorder = TimesRecorder::default();
    for _ in 0..delayed {
        let delay_us = (delay.map_or(0, |delay| delay.longest_us) as f64 * dice.unit()) as u64;
        let true_us = (typical_us * (0.7 + 0.8 * dice.unit())) as u64;
        // Sent later by that much, and read later by a tenth of it. Who met the burst was slower, by no more than that.
        let unread_us = delay_us / 10;
        let seen_and_least = |late_us: u64| [true_us + late_us, true_us];
        let (response, service) = (seen_and_least(delay_us + unread_us), seen_and_least(unread_us));
        let aftermath = (delay_us >= 20).then_some(Burst::Met(delay_us / 20));
        recorder.record_disturbed(response, service, service, aftermath);
    }
    let Times { response: delayed_response, service: delayed_service, ttfb: delayed_ttfb, disturbed } =
        recorder.to_times();
    let both = |undisturbed: &SparseHistogram, delayed: &SparseHistogram| {
        let mut all = Histogram::new();
        all.merge_sparse(undisturbed);
        all.merge_sparse(delayed);
        all.to_sparse()
    };
    *into = Times {
        response: both(&response, &delayed_response),
        service: both(&service, &delayed_service),
        ttfb: both(&ttfb, &delayed_ttfb),
        disturbed,
    };
}

pub fn origins(dice: &mut Rng, story: Story, robots: &RobotInterval) -> OriginInterval {
    let mut interval = OriginInterval {
        start_ms: robots.start_ms,
        length_ms: robots.length_ms,
        phase: robots.phase,
        connections: 24 + robots.counts.due / 100,
        ..OriginInterval::default()
    };
    let c = &mut interval.counts;
    c.requests = if story == Story::Direct { robots.counts.sent } else { robots.counts.misses };
    c.responses = c.requests;
    if story == Story::Troubled {
        c.validated_basic = robots.counts.hits / 50;
        c.validated_basic_bytes = c.validated_basic * 4500;
        c.validations = c.validated_basic;
        c.not_modified = c.validated_basic;
    }
    c.body_bytes_out = c.requests * 4500;
    c.wire_bytes_in = c.requests * 230;
    c.wire_bytes_out = c.requests * 4850;
    c.connections_opened = c.requests / 100;
    c.connections_closed = c.requests / 110;
    interval.service = drawn(dice, c.requests, 700.0);
    interval
}

pub fn host(role: &str, start_ms: u64, length_ms: u64, cpu_us: u64, salt: u64) -> HostInterval {
    HostInterval {
        start_ms,
        length_ms,
        role: role.to_owned(),
        cpu_us,
        rss_bytes: 60_000_000 + start_ms * 2_000 + salt * 1000,
        run_delay_us: cpu_us / 50,
        descriptors: 200,
        steal_us: if role == "host" { 2000 } else { 0 },
        user_us: cpu_us / 5 * 2,
        system_us: cpu_us - cpu_us / 5 * 2,
        voluntary_switches: if role == "host" { 0 } else { 900 + salt },
        involuntary_switches: salt % 7,
        threads: if role == "host" { 0 } else { 4 },
        pss_bytes: (role != "host" && start_ms.is_multiple_of(10_000))
            .then_some(50_000_000 + start_ms * 1_500),
        cache_bytes: (role == "host").then_some(900_000_000 + start_ms * 5_000),
        disk_written_bytes: (role == "proxy").then_some(1_000_000),
        ..HostInterval::default()
    }
}

/// The target waited for its processor in one stretch of ten: not for long, unless others had it.
fn wait(interval: &mut HostInterval, starved: bool) {
    let stretches = interval.length_ms / 10;
    let waited = stretches.div_ceil(10);
    if starved {
        interval.run_delay_us = waited * 1_000;
    }
    let mut waits = Histogram::new();
    waits.record_many(0, stretches - waited.min(stretches));
    waits.record_many(interval.run_delay_us / waited.max(1), waited);
    interval.waits = waits.to_sparse();
}

/// The machine, its disk and its loopback; the disk of the good run is traced.
fn below(writer: &mut SeriesWriter, story: Story, start_ms: u64, length_ms: u64, sent: u64) {
    let machine = MachineInterval {
        start_ms,
        length_ms,
        context_switches: sent * 7,
        used_bytes: 2_000_000_000,
        cached_bytes: 900_000_000 + start_ms * 5_000,
        dirty_bytes: 30_000_000,
        metering_us: 2_100,
        ..MachineInterval::default()
    };
    writer.keep(&Measured::Machine(machine.into())).unwrap();
    let disk = DiskInterval {
        start_ms,
        length_ms,
        device: "vda".into(),
        holds: if story == Story::Direct { "".into() } else { "store".into() },
        reads: sent / 90,
        read_bytes: sent * 400,
        writes: sent / 50,
        written_bytes: sent * 9_000,
        busy_ms: length_ms / 5,
        queue_ms: length_ms * 2 / 5,
        ..DiskInterval::default()
    };
    writer.keep(&Measured::Disks(vec![disk])).unwrap();
    let loopback = InterfaceInterval {
        start_ms,
        length_ms,
        role: "robots+origins".into(),
        interface: "lo".into(),
        received_bytes: sent * 12_000,
        sent_bytes: sent * 12_000,
        ..InterfaceInterval::default()
    };
    writer.keep(&Measured::Interfaces(vec![loopback])).unwrap();
    if story == Story::Good {
        let block = |operation: &str, requests: u64, distances| BlockInterval {
            start_ms,
            length_ms,
            device: "vda".into(),
            operation: operation.into(),
            requests,
            bytes: requests * 40_000,
            sequential: requests / 3,
            distances,
            ..BlockInterval::default()
        };
        let read = block("read", 12, vec![(0, 4), (1024, 3), (65_536, 5)]);
        writer
            .keep(&Measured::Blocks(vec![read, block("write", 20, vec![(0, 7), (2048, 12), (1 << 20, 1)])]))
            .unwrap();
    }
}

fn examples(writer: &mut SeriesWriter, story: Story) {
    if story == Story::Troubled {
        let example = |kind, at_ms, request: &str, detail: &str| ErrorExample {
            kind,
            at_ms,
            phase: "fill".into(),
            xact: "17.204.0".into(),
            request: request.into(),
            detail: detail.into(),
        };
        let stale = "expired 2 s before it was served from the store (Age: 64, version 3, current is 4)";
        writer
            .keep(&Measured::Example(
                example(ErrorKind::Stale, 6_204, "GET /w5f3a9c01/t00/0_00000000000003e8.gif", stale).into(),
            ))
            .unwrap();
        let slow = "no complete response after 30 s; 0 of 4,521 bytes came";
        writer
            .keep(&Measured::Example(
                example(ErrorKind::TimedOut, 9_010, "GET /w5f3a9c01/t00/0_00000000000004b1.gif", slow).into(),
            ))
            .unwrap();
    }
    if story == Story::Hostile {
        writer
            .keep(&Measured::Example(
                ErrorExample {
                    kind: ErrorKind::Foreign,
                    at_ms: 1,
                    phase: HOSTILE.into(),
                    xact: HOSTILE.into(),
                    request: HOSTILE.into(),
                    detail: HOSTILE.into(),
                }
                .into(),
            ))
            .unwrap();
    }
}

pub fn info(story: Story) -> RunInfo {
    let name =
        |name: &str| if story == Story::Hostile { format!("{name}{HOSTILE}") } else { name.to_owned() };
    let direct = story == Story::Direct;
    let planned = PlannedWorkingSet { objects: 30_000, bytes: 130 << 20, frozen_ms: Some(10_000) };
    let words = "assay run image.pg --proxy varnish --rehearse 60s --seed 7";
    RunInfo {
        tries: 1,
        stream_version: 2,
        requirements: Vec::new(),
        own_errors: true,
        calibration: (story == Story::Calibrated).then(own::calibration),
        schema: RUN_SCHEMA.into(),
        assay_version: "0.1.0".into(),
        command: words.split(' ').map(&name).collect(),
        started_unix_ms: 1_769_864_709_000,
        started_monotonic_ns: 1,
        workload: WorkloadInfo {
            name: name("image"),
            sources: vec![(name("image.pg"), "9f2c51d0".into()), ("contents.pg".into(), "11aa52ee".into())],
            robots: 1000,
            origins: 4,
            scale: (!direct).then_some(1.0 / 540.0),
            overrides: None,
            private_as_public: false,
            working_set: Some(planned),
            explained: vec![
                name("1,000 robots, each 2.40 requests per second at load factor 1, over 4 origins."),
                "Images of 4.5 KB (exponential), 80 % cachable, life cycle 30 days.".into(),
                "  55 % of requests revisit an object; popularity is Zipf, newest first.".into(),
            ],
        },
        seed: 7,
        world: 0x5f3a_9c01,
        stream_digest: "8d1f00c2a94be771".into(),
        stream_digest_requests: 1000,
        target: TargetInfo {
            caches: Vec::new(),
            name: if direct { "direct".into() } else { name("varnish") },
            version: if direct { String::new() } else { name("7.1.1") },
            mode: if direct { "direct".into() } else { "reverse".into() },
            address: "127.0.0.40:8080".into(),
            memory_bytes: (!direct).then_some(1 << 30),
            disk_bytes: None,
            settings: BTreeMap::new(),
            notes: if direct {
                vec![]
            } else {
                vec![name("A HEAD miss fetches and stores the whole object.")]
            },
        },
        placement: placement(direct),
        host: HostInfo {
            kernel: "6.1.0-31-amd64".into(),
            cpus: 2,
            cpu_model: name("AMD EPYC 7B13"),
            memory_bytes: 8_323_000_000,
            descriptor_limit: 20_000,
            clock: String::new(),
            settings: BTreeMap::from([
                ("net.ipv4.ip_local_port_range".to_owned(), "32768 60999".to_owned()),
                ("net.ipv4.tcp_congestion_control".to_owned(), name("cubic")),
            ]),
        },
        phases: phases(story),
        verdict: verdict(story),
        finished: true,
        ..RunInfo::default()
    }
}

fn placement(direct: bool) -> Vec<PlacementInfo> {
    let role = |role: &str, pid, cpus: &[u32], listening: &[&str]| PlacementInfo {
        role: role.into(),
        pid,
        cpus: cpus.to_vec(),
        threads: 1,
        listening: listening.iter().map(|&address| address.to_owned()).collect(),
    };
    let mut all = vec![
        role("origins", 4101, &[0], &["127.0.0.41:8081", "127.0.0.41:8082"]),
        role("robots", 4103, &[0], &[]),
    ];
    if !direct {
        all.push(role("proxy", 4102, &[1], &["127.0.0.40:8080"]));
    }
    all
}

fn phases(story: Story) -> Vec<PhaseInfo> {
    let mut start = 0;
    schedule(story)
        .into_iter()
        .enumerate()
        .map(|(index, (name, seconds, begin, end))| {
            let planned_start_ms = Some(start);
            start += seconds * 1000;
            PhaseInfo {
                name: if story == Story::Hostile { format!("{name}{HOSTILE}") } else { name.to_owned() },
                planned_start_ms,
                planned_end_ms: Some(start),
                goal: format!("{seconds} s"),
                load: (begin, end),
                recurrence: (1.0, 1.0),
                log_stats: true,
                primary: false,
                disturbed: own::disturbed(story, index as u16),
                expected_requests: (story != Story::Direct)
                    .then_some(PEAK_RATE * seconds as f64 * (begin + end) / 2.0),
                ..PhaseInfo::default()
            }
        })
        .collect()
}

fn verdict(story: Story) -> RunVerdict {
    let warning = if story == Story::Hostile { HOSTILE } else { "robots and origins shared processor 0" };
    let doubts = own::doubts(story);
    RunVerdict {
        partial: matches!(story, Story::Interrupted | Story::Nothing),
        doubts,
        warnings: vec![warning.into()],
    }
}
