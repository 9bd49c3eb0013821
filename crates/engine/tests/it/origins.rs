//! Robots and real origins in one process, speaking to each other directly.

use std::io::{BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;

use assay_engine::{origin, robot};
use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::doubt::Reason;
use assay_measurement::error_kind::ErrorExample;
use assay_measurement::measured::Measured;
use assay_plane::clock::{RunClock, monotonic_ns};
use assay_plane::stdio::Commands;
use assay_role::load::{CacheBehaviour, OriginsSpec, RobotsSpec, Target, Timing, UniverseSpec};
use assay_role::message::{Command, Event};
use assay_role::tls::{Offer, ServerTls};
use assay_tls::authority::{Authority, KeyKind, Validity};
use assay_workload::model::Workload;
use tempfile::TempDir;

use crate::robots::{check_sums, simple};

/// What both sides counted.
pub struct Both {
    pub robots: RobotCounts,
    pub origins: OriginCounts,
    pub examples: Vec<ErrorExample>,
    /// A thread of the origins did not learn of the start in time: the machine was too busy for the test.
    is_late: bool,
}

impl Both {
    fn of(events: &[Event]) -> Self {
        let (mut robots, mut origins, mut examples) =
            (RobotCounts::default(), OriginCounts::default(), Vec::new());
        let mut is_late = false;
        for event in events {
            match event {
                Event::Measured(Measured::Robots(interval)) => robots.merge(&interval.counts),
                Event::Measured(Measured::Origins(interval)) => origins.merge(&interval.counts),
                Event::Measured(Measured::Example(example)) => examples.push((**example).clone()),
                Event::Fault { reason: Reason::Stalled, message } => {
                    is_late |= message.contains("learned of the start");
                }
                _ => {}
            }
        }
        Self { robots, origins, examples, is_late }
    }

    /// Every request got its response, and nothing was wrong.
    pub fn check(&self) {
        check_sums(&self.robots);
        assert_eq!(self.robots.error_total(), 0, "{:#?}", self.examples);
        assert_eq!(self.origins.wrong_uploads, 0, "{:#?}", self.examples);
    }
}

fn universe(workload: PathBuf) -> UniverseSpec {
    UniverseSpec { workload, seed: 7, world: 1, private_as_public: false }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("starts").block_on(work)
}

/// How often a run is begun on a machine that is too busy.
const ATTEMPTS: u32 = 5;

/// Origins on a thread of their own.
pub struct Origins {
    /// Where they listen.
    pub listening: Vec<SocketAddr>,
    /// Their workload, compiled.
    path: PathBuf,
    commands: UnixStream,
    thread: JoinHandle<Vec<Event>>,
    _dir: TempDir,
}

impl Origins {
    /// Starts those of a workload, on ports of 127.0.0.1 that are free.
    pub fn start(workload: &Workload) -> Self {
        Self::start_in(tempfile::tempdir().expect("there is room"), workload, None)
    }

    /// The same over TLS.
    pub fn start_secured(workload: &Workload) -> Self {
        let dir = tempfile::tempdir().expect("there is room");
        let validity = Validity::around(1_700_000_000);
        let authority = Authority::new(KeyKind::P256, validity).expect("is made");
        let identity = authority.issue(&["10.0.0.1".to_owned()], validity).expect("is issued");
        let keep = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("there is room");
            path
        };
        let (certificate, key) = (keep("c.pem", &identity.certificate), keep("k.pem", &identity.key));
        Self::start_in(dir, workload, Some(ServerTls { offer: Offer::default(), certificate, key }))
    }

    fn start_in(dir: TempDir, workload: &Workload, tls: Option<ServerTls>) -> Self {
        let path = dir.path().join("workload.json");
        std::fs::write(&path, serde_json::to_vec(workload).expect("is data")).expect("there is room");
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let spec = OriginsSpec {
            universe: universe(path.clone()),
            threads: 1,
            cpus: Vec::new(),
            timing: Timing::default(),
            first: 0,
            listen: vec![free; workload.origins.len()],
            tls,
        };
        let (to_origins, commands) = UnixStream::pair().expect("there are descriptors");
        let (ready_in, ready) = mpsc::channel();
        let thread = std::thread::spawn(move || perform(&spec, commands, &ready_in));
        let listening = ready.recv().expect("the origins are ready");
        Self { listening, path, commands: to_origins, thread, _dir: dir }
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("is read");
    }

    /// Ends them: what they have reported.
    pub fn stop(mut self) -> Vec<Event> {
        self.tell(r#"{"command":"stop"}"#);
        self.thread.join().expect("nobody panicked")
    }
}

fn perform(spec: &OriginsSpec, commands: UnixStream, ready: &mpsc::Sender<Vec<SocketAddr>>) -> Vec<Event> {
    let mut events = Vec::new();
    block_on(async {
        let mut commands = Commands::from_reader(BufReader::new(commands)).expect("starts");
        let mut emit = |event: &Event| {
            if let Event::Ready { listening } = event {
                let _ = ready.send(listening.clone());
            }
            events.push(event.clone());
            Ok(())
        };
        origin::perform(spec, &mut commands, &mut emit).await.expect("run to their end");
    });
    events
}

/// Runs robots against origins, from start to end.
pub fn run(workload: &Workload) -> Both {
    run_with_log(workload, None)
}

/// The same, with a log of every xact.
pub fn run_with_log(workload: &Workload, xact_log: Option<PathBuf>) -> Both {
    let mut attempts = (0..ATTEMPTS).map(|_| run_once(workload, xact_log.clone()));
    attempts
        .find(|both| !both.is_late)
        .expect("this machine lets origins learn of a start in 100 ms, now and then")
}

fn run_once(workload: &Workload, xact_log: Option<PathBuf>) -> Both {
    let mut origins = Origins::start(workload);
    let clock = RunClock { start_ns: monotonic_ns() + 100_000_000, start_unix_s: 1_700_000_000 };
    let start = Command::Start { at_monotonic_ns: clock.start_ns, at_unix_s: clock.start_unix_s };
    let start = serde_json::to_string(&start).expect("is data");
    origins.tell(&start);
    let mut events = robots(origins.path.clone(), origins.listening.clone(), xact_log, &start);
    events.extend(origins.stop());
    Both::of(&events)
}

#[test]
fn robots_that_are_told_something_before_the_start_wait_for_it() {
    let workload = simple();
    let mut origins = Origins::start(&workload);
    let start = Command::Start { at_monotonic_ns: monotonic_ns() + 100_000_000, at_unix_s: 1_700_000_000 };
    let start = serde_json::to_string(&start).expect("is data");
    origins.tell(&start);
    let clock = serde_json::to_string(&Command::Clock { error_us: u64::MAX }).expect("is data");
    let load = serde_json::to_string(&Command::Load { factor: 1.0 }).expect("is data");
    let told = format!("{clock}\n{load}\n{start}");
    let mut events = robots(origins.path.clone(), origins.listening.clone(), None, &told);
    events.extend(origins.stop());
    let both = Both::of(&events);
    // Whatever the clocks show: nothing of an origin's clock is held against a response.
    both.check();
    assert!(both.robots.completed > 0, "{:#?}", both.robots);
}

#[test]
fn origins_that_learn_of_a_start_too_late_say_so() {
    let mut origins = Origins::start(&simple());
    let past = Command::Start { at_monotonic_ns: monotonic_ns() - 70_000_000, at_unix_s: 1_700_000_000 };
    origins.tell(&serde_json::to_string(&past).expect("is data"));
    assert!(Both::of(&origins.stop()).is_late);
}

fn robots(path: PathBuf, origins: Vec<SocketAddr>, xact_log: Option<PathBuf>, start: &str) -> Vec<Event> {
    let spec = RobotsSpec {
        robots: None,
        universe: universe(path),
        // One has all robots: of several, one might reach the goal before another has had its turn.
        threads: 1,
        cpus: Vec::new(),
        timing: Timing::default(),
        target: Target::Direct { origins },
        tls: None,
        listeners: Vec::new(),
        sources: Vec::new(),
        behaviour: CacheBehaviour { caches: false, ..CacheBehaviour::default() },
        timeout_ms: 10_000,
        xact_log,
        joins_waits: false,
    };
    let (mut parent, child) = UnixStream::pair().expect("there are descriptors");
    writeln!(parent, "{start}").expect("is read");
    let mut events = Vec::new();
    block_on(async {
        let mut commands = Commands::from_reader(BufReader::new(child)).expect("starts");
        let mut emit = |event: &Event| {
            events.push(event.clone());
            Ok(())
        };
        robot::perform(&spec, &mut commands, &mut emit).await.expect("runs to its end");
    });
    events
}
