//! Robots and real origins in one process, speaking to each other directly.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread::JoinHandle;

use assay_cache::behaviour::CacheBehaviour;
use assay_http::date::parse_date;
use assay_load::origin;
use assay_load::spec::{OriginsSpec, Target, Timing, UniverseSpec};
use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::error_kind::ErrorExample;
use assay_measurement::measured::Measured;
use assay_net::tls::settings::ServerTls;
use assay_protocol::clock::RunClock;
use assay_protocol::message::{Command, Event};
use assay_protocol::stdio::Commands;
use assay_workload::model::Workload;
use tempfile::TempDir;

use crate::harness::{Reported, SEED, START_UNIX_S, Setting, check_sums, perform, start, start_soon};

/// What both sides counted.
pub struct Both {
    pub robots: RobotCounts,
    pub origins: OriginCounts,
    pub examples: Vec<ErrorExample>,
}

impl Both {
    pub fn of((robots, origins): (Reported, Vec<Event>)) -> Self {
        let mut both =
            Self { robots: robots.total(), origins: OriginCounts::default(), examples: Vec::new() };
        for event in robots.events.iter().chain(&origins) {
            match event {
                Event::Measured(Measured::Origins(interval)) => both.origins.merge(&interval.counts),
                Event::Measured(Measured::Example(example)) => both.examples.push((**example).clone()),
                _ => {}
            }
        }
        both
    }

    /// Every request got its response, and nothing was wrong.
    pub fn check(&self) {
        check_sums(&self.robots);
        assert_eq!(self.robots.error_total(), 0, "{:#?}", self.examples);
        assert_eq!(self.origins.wrong_uploads, 0, "{:#?}", self.examples);
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("starts").block_on(work)
}

/// Origins on a thread of their own.
pub struct Origins {
    pub listening: Vec<SocketAddr>,
    commands: UnixStream,
    thread: JoinHandle<Vec<Event>>,
    _dir: TempDir,
}

impl Origins {
    /// Starts those of a workload, on ports of 127.0.0.1 that are free.
    pub fn start(workload: &Workload) -> Self {
        Self::start_in(tempfile::tempdir().expect("there is room"), workload, None)
    }

    /// The same, with a directory that is kept as long as they run.
    pub fn start_in(dir: TempDir, workload: &Workload, tls: Option<ServerTls>) -> Self {
        let path = dir.path().join("workload.json");
        std::fs::write(&path, serde_json::to_vec(workload).expect("is data")).expect("there is room");
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let spec = OriginsSpec {
            universe: UniverseSpec { workload: path, seed: SEED, world: 1, private_as_public: false },
            threads: 1,
            cpus: Vec::new(),
            timing: Timing::default(),
            first: 0,
            listen: vec![free; workload.origins.len()],
            tls,
        };
        let (to_origins, commands) = UnixStream::pair().expect("there are descriptors");
        let (ready_in, ready) = mpsc::channel();
        let thread = std::thread::spawn(move || obey(&spec, commands, &ready_in));
        let listening = ready.recv().expect("the origins are ready");
        Self { listening, commands: to_origins, thread, _dir: dir }
    }

    pub fn tell(&mut self, command: &Command) {
        writeln!(self.commands, "{}", serde_json::to_string(command).expect("is data")).expect("is read");
    }

    /// Tells those that speak HTTP/1.1 of a start, and waits until they have heard it: they date their responses from it then.
    pub fn start_at(&mut self, clock: RunClock) {
        self.tell(&start(clock));
        while self.date() > START_UNIX_S + 1000 {
            std::thread::yield_now();
        }
    }

    /// The date of a response, in seconds since the epoch.
    fn date(&self) -> u64 {
        let mut stream = TcpStream::connect(self.listening[0]).expect("they listen");
        let request = b"GET /assay/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(request).expect("is read");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("ends in order");
        let date = response.lines().find_map(|line| line.strip_prefix("Date: ")).expect("is dated");
        parse_date(date.as_bytes()).expect("is a date")
    }

    /// Ends them: what they have reported.
    pub fn stop(mut self) -> Vec<Event> {
        self.tell(&Command::Stop);
        self.thread.join().expect("nobody panicked")
    }
}

fn obey(spec: &OriginsSpec, commands: UnixStream, ready: &mpsc::Sender<Vec<SocketAddr>>) -> Vec<Event> {
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
        origin::run_with(spec, &mut commands, &mut emit).await.expect("run to their end");
    });
    events
}

/// Runs robots against origins, from start to end: what each have reported. `change` says what the robots do differently from the usual.
pub fn play(workload: &Workload, change: impl FnOnce(&mut Setting)) -> (Reported, Vec<Event>) {
    let mut origins = Origins::start(workload);
    let clock = start_soon();
    origins.start_at(clock);
    let mut setting = Setting {
        // One has all robots: of several, one might reach the goal before another has had its turn.
        threads: 1,
        behaviour: CacheBehaviour { caches: false, ..CacheBehaviour::default() },
        ..Setting::to(Target::Direct { origins: origins.listening.clone() })
    };
    change(&mut setting);
    let reported = perform(workload, clock, setting);
    (reported, origins.stop())
}

/// Runs robots against origins, from start to end: what both sides counted.
pub fn run(workload: &Workload) -> Both {
    Both::of(play(workload, |_| ()))
}
