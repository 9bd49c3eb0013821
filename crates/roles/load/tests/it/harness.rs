//! Robots in the process of a test, and workloads for them.

use std::io::{BufReader, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_cache::behaviour::CacheBehaviour;
use assay_load::robot;
use assay_load::spec::{RobotsSpec, Target, Timing, UniverseSpec};
use assay_measurement::counts::RobotCounts;
use assay_measurement::interval::RobotInterval;
use assay_measurement::measured::Measured;
use assay_measurement::waits::WaitReport;
use assay_protocol::clock::RunClock;
use assay_protocol::message::{Command, Event};
use assay_protocol::stdio::Commands;
use assay_workload::model::{Server as Kind, *};

pub const SEED: u64 = 7;
pub const START_UNIX_S: u64 = 1_700_000_000;

fn ramp(factor: f64) -> Ramp {
    Ramp { begin: factor, end: factor }
}

pub fn phase(name: &str, goal: Goal) -> Phase {
    Phase {
        name: name.to_owned(),
        goal,
        load: ramp(1.0),
        recurrence: ramp(1.0),
        population: ramp(1.0),
        special: ramp(1.0),
        log_stats: true,
        primary: false,
        wait_for_freeze: false,
        ..Phase::default()
    }
}

pub fn lasts(millis: u64) -> Goal {
    Goal { duration: Some(Duration::from_millis(millis)), ..Goal::default() }
}

/// Ends when so many requests have ended, however long that takes; for best-effort robots.
pub fn xacts(number: u64) -> Goal {
    Goal { transactions: Some(number), ..Goal::default() }
}

pub fn content(kind: &str, size_bytes: f64) -> Content {
    Content {
        kind: kind.to_owned(),
        mime_type: Some("text/plain".to_owned()),
        extensions: Weighted::none(),
        prefixes: Weighted::none(),
        size_bytes: Distribution::Constant(size_bytes),
        life_cycle: None,
        cachable: 1.0,
        checksum: 0.0,
        embedded: None,
        behaviour: ClientBehaviour::default(),
        ..Content::default()
    }
}

/// One origin with one type of 3000 bytes; four best-effort robots; one phase of forty xacts.
pub fn simple() -> Workload {
    let server = Kind {
        kind: "S".to_owned(),
        contents: Weighted::one(0),
        direct_access: Weighted::one(0),
        think_s: None,
        connection_use_limit: None,
        idle_timeout: None,
        http_versions: Weighted::one(HttpVersion::Http11),
        ..Kind::default()
    };
    let robots = RobotGroup {
        kind: "R".to_owned(),
        addresses: vec![RobotAddress { host: "10.0.0.1".to_owned(), count: 4 }],
        origins: Weighted::one(0),
        proxies: Vec::new(),
        pace: Pace::BestEffort,
        recurrence: 0.5,
        embedded_recurrence: 1.0,
        popularity: Some(Popularity {
            law: PopularityLaw::Uniform,
            hot_set_fraction: 1.0,
            hot_set_probability: 0.0,
            ..Popularity::default()
        }),
        private_share: 0.0,
        request_types: Weighted::one(RequestType::Basic),
        methods: Weighted::one(Method::Get),
        post_contents: Weighted::none(),
        connection_use_limit: Some(Distribution::Constant(10.0)),
        idle_timeout: None,
        open_connection_limit: None,
        waiting_limit: None,
        pipeline_depth: None,
        http_versions: Weighted::one(HttpVersion::Http11),
        ..RobotGroup::default()
    };
    Workload {
        name: "simple".to_owned(),
        contents: vec![content("plain", 3000.0)],
        servers: vec![server],
        origins: vec![Origin { authority: "origin.test:80".to_owned(), server: 0 }],
        robots: vec![robots],
        schedule: Schedule { phases: vec![phase("only", xacts(40))], working_set: WorkingSet::Grows },
        ..Workload::default()
    }
}

/// Pages of three embedded objects; one connection for each robot, with this depth.
pub fn pages(depth: Option<f64>) -> Workload {
    let mut workload = simple();
    workload.contents.push(content("image", 500.0));
    workload.contents[0].embedded =
        Some(Embedded { count: Distribution::Constant(3.0), contents: Weighted::one(1) });
    let robots = &mut workload.robots[0];
    robots.open_connection_limit = Some(1);
    robots.connection_use_limit = Some(Distribution::Constant(100_000.0));
    robots.pipeline_depth = depth.map(Distribution::Constant);
    workload
}

/// What robots have reported.
pub struct Reported {
    pub events: Vec<Event>,
}

impl Reported {
    pub fn intervals(&self) -> impl Iterator<Item = &RobotInterval> {
        self.events.iter().filter_map(|event| match event {
            Event::Measured(Measured::Robots(interval)) => Some(&**interval),
            _ => None,
        })
    }

    pub fn total(&self) -> RobotCounts {
        let mut total = RobotCounts::default();
        self.intervals().for_each(|interval| total.merge(&interval.counts));
        total
    }
}

pub struct Setting {
    pub threads: u32,
    /// Longer than any test takes that does not wait for it.
    pub timeout_ms: u64,
    pub timing: Timing,
    pub target: Target,
    pub behaviour: CacheBehaviour,
    pub sources: Vec<IpAddr>,
    pub xact_log: Option<PathBuf>,
    pub waits: Option<WaitReport>,
    /// What they are told before the start.
    pub before: Vec<Command>,
    /// Returns when they are to be told to stop.
    pub until_stop: Option<Box<dyn FnOnce() + Send>>,
}

impl Setting {
    pub fn to(target: Target) -> Self {
        Self {
            threads: 2,
            timeout_ms: 60_000,
            timing: Timing::default(),
            target,
            behaviour: CacheBehaviour {
                validation_updates: true,
                reloads_reach_origin: true,
                ..CacheBehaviour::default()
            },
            sources: Vec::new(),
            xact_log: None,
            waits: None,
            before: Vec::new(),
            until_stop: None,
        }
    }
}

pub fn start_soon() -> RunClock {
    RunClock { start_ns: monotonic_ns() + 100_000_000, start_unix_s: START_UNIX_S }
}

/// The command that tells of a start.
pub fn start(clock: RunClock) -> Command {
    Command::Start { at_monotonic_ns: clock.start_ns, at_unix_s: clock.start_unix_s }
}

/// Runs a workload's robots, from Ready to Done.
pub fn perform(workload: &Workload, clock: RunClock, setting: Setting) -> Reported {
    let dir = tempfile::tempdir().expect("there is room");
    let path = dir.path().join("workload.json");
    std::fs::write(&path, serde_json::to_vec(workload).expect("is data")).expect("there is room");
    let spec = RobotsSpec {
        robots: None,
        universe: UniverseSpec { workload: path, seed: SEED, world: 1, private_as_public: false },
        threads: setting.threads,
        cpus: Vec::new(),
        timing: setting.timing,
        target: setting.target,
        tls: None,
        listeners: Vec::new(),
        sources: setting.sources,
        behaviour: setting.behaviour,
        timeout_ms: setting.timeout_ms,
        xact_log: setting.xact_log,
        joins_waits: setting.waits.is_some(),
    };
    let (mut parent, child) = UnixStream::pair().expect("there are descriptors");
    let waits = setting.waits.map(Command::Waits);
    for command in setting.before.into_iter().chain([start(clock)]).chain(waits) {
        writeln!(parent, "{}", serde_json::to_string(&command).expect("is data")).expect("is read");
    }
    let stopper = setting.until_stop.map(|until_stop| {
        let mut parent = parent.try_clone().expect("there are descriptors");
        std::thread::spawn(move || {
            until_stop();
            writeln!(parent, r#"{{"command":"stop"}}"#).expect("is read");
        })
    });
    let mut events = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("starts");
    runtime.block_on(async {
        let mut commands = Commands::from_reader(BufReader::new(child)).expect("starts");
        let mut emit = |event: &Event| {
            events.push(event.clone());
            Ok(())
        };
        robot::run_with(&spec, &mut commands, &mut emit).await.expect("runs to its end");
    });
    stopper.map(std::thread::JoinHandle::join);
    assert_eq!(events.last(), Some(&Event::Done));
    Reported { events }
}

/// What is always true once a run is over.
pub fn check_sums(counts: &RobotCounts) {
    assert_eq!(counts.due, counts.sent + counts.unsent + counts.not_reached, "{counts:#?}");
    assert_eq!(counts.sent, counts.completed + counts.error_total(), "{counts:#?}");
    assert_eq!(
        counts.basic,
        counts.hits + counts.collapsed + counts.revalidated + counts.misses,
        "{counts:#?}"
    );
}
