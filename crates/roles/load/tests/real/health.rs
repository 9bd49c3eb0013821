//! What workers say of themselves: once a second, and when they stood still.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_cache::behaviour::CacheBehaviour;
use assay_load::spec::{OriginsSpec, RobotsSpec, Target, Timing, UniverseSpec};
use assay_load::{origin, robot};
use assay_measurement::health::{Stall, ThreadInterval};
use assay_measurement::measured::Measured;
use assay_protocol::clock::RunClock;
use assay_protocol::message::{Command, Event};
use assay_workload::model::{Pace, Workload};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{lasts, phase, simple};
use crate::server;

const MS: u64 = 1_000_000;

/// Set in the environment of a child of these tests: what it plays, and the file of its spec.
const PART: &str = "ASSAY_TEST_PART";

/// Four robots that send fifty requests a second each, in two phases.
fn paced(millis: [u64; 2]) -> Workload {
    let mut workload = simple();
    workload.robots[0].pace = Pace::Rate { per_second: 50.0 };
    workload.schedule.phases = vec![phase("first", lasts(millis[0])), phase("second", lasts(millis[1]))];
    workload
}

fn threads_of(events: &[Event]) -> Vec<&ThreadInterval> {
    let mut threads = Vec::new();
    for event in events {
        if let Event::Measured(Measured::Thread(interval)) = event {
            threads.push(&**interval);
        }
    }
    threads
}

#[test]
fn each_worker_reports_at_every_cut_and_leaves_no_gap() {
    let robots = server::run(&paced([1_400, 400]), |_| ());
    let threads = threads_of(&robots.events);
    for thread in 0..2 {
        let own: Vec<_> = threads.iter().filter(|interval| interval.thread == thread).collect();
        assert!(own.len() >= 3, "a second, the end of a phase, the end: {own:#?}");
        assert!(own.iter().all(|interval| interval.role == "robots" && interval.cpu.is_none()));
        assert!(
            own.windows(2).all(|pair| pair[0].start_ms + pair[0].length_ms == pair[1].start_ms),
            "{own:#?}"
        );
        assert!(own.windows(2).all(|pair| pair[0].phase <= pair[1].phase));
        assert_eq!((own[0].phase, own[own.len() - 1].phase), (0, 1));
        assert!(own.iter().map(|interval| interval.cpu_us).sum::<u64>() > 0);
        // A hundred requests a second, and ticks.
        let served: u64 = own.iter().flat_map(|interval| &interval.timer_lag.buckets).map(|b| b.1).sum();
        assert!(served > 20, "{served}");
    }
}

/// No test of its own: what a child of the tests below does.
#[test]
fn plays_a_part_when_it_is_told_to() {
    let Ok(part) = std::env::var(PART) else { return };
    let (role, spec) = part.split_once(' ').expect("a role and a file");
    let spec = std::fs::read(spec).expect("is there");
    match role {
        "robots" => robot::run(serde_json::from_slice(&spec).expect("is a spec")).expect("runs to its end"),
        _ => origin::run(serde_json::from_slice(&spec).expect("is a spec")).expect("runs to its end"),
    }
}

/// A role in a process of its own.
struct Role {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Role {
    fn start(role: &str, spec: &Path) -> Self {
        let mut child = Program::new(std::env::current_exe().expect("has a path"))
            .args(["--exact", "health::plays_a_part_when_it_is_told_to", "--nocapture"])
            .env(PART, format!("{role} {}", spec.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, input, output: BufReader::new(output) }
    }

    /// The next event; the test harness of the child writes to its output too.
    fn event(&mut self) -> Event {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("can be read") > 0, "ended early");
            if let Some(event) = line.find('{').and_then(|at| serde_json::from_str(&line[at..]).ok()) {
                return event;
            }
        }
    }

    fn tell(&mut self, command: &Command) {
        writeln!(self.input, "{}", serde_json::to_string(command).expect("is data")).expect("is read");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
    }

    /// Starts it now, stops its process for 300 ms in the middle, and ends it. When it was stopped, and its stalls.
    fn stopped_for_a_while(mut self, clock: RunClock) -> (u64, Vec<Stall>) {
        while !matches!(self.event(), Event::Ready { .. }) {}
        self.tell(&Command::Start { at_monotonic_ns: clock.start_ns, at_unix_s: clock.start_unix_s });
        while !matches!(self.event(), Event::Measured(Measured::Thread(_))) {}
        self.signal(Signal::STOP);
        let stopped_ms = clock.since_start_us(monotonic_ns()) / 1_000;
        std::thread::sleep(Duration::from_millis(300));
        self.signal(Signal::CONT);
        let (mut stalls, mut told) = (Vec::new(), false);
        loop {
            match self.event() {
                Event::Measured(Measured::Stall(stall)) => stalls.push(*stall),
                // Stalls are told of when they are over, before the next interval.
                Event::Measured(Measured::Thread(_)) if !told => {
                    self.tell(&Command::Stop);
                    told = true;
                }
                Event::Done => break,
                _ => {}
            }
        }
        drop(self.input);
        assert!(self.child.wait().expect("is ours").success());
        (stopped_ms, stalls)
    }
}

/// What is true of a role whose process was stopped for 300 ms: a stall that began before the process went on, and in
/// which the thread neither worked nor waited for a processor. On a busy machine there are others.
fn check_stopped((stopped_ms, stalls): (u64, Vec<Stall>), role: &str) {
    let unexplained_us = |stall: &&Stall| stall.length_us - stall.cpu_us - stall.run_delay_us;
    let stall = stalls.iter().max_by_key(unexplained_us).expect("it was seen");
    assert_eq!((stall.role.as_str(), stall.thread), (role, 0));
    assert!(unexplained_us(&stall) >= 200_000, "{stopped_ms} {stalls:?}");
    assert!(stall.at_ms + stall.length_us / 1_000 >= stopped_ms, "{stopped_ms} {stalls:?}");
}

fn start_soon() -> RunClock {
    RunClock { start_ns: monotonic_ns() + 300 * MS, start_unix_s: 1_700_000_000 }
}

#[test]
fn robots_that_were_stopped_say_when_and_for_how_long() {
    let dir = tempfile::tempdir().expect("there is room");
    let workload = paced([60_000, 60_000]);
    let universe = write_universe(dir.path(), &workload);
    let clock = start_soon();
    let spec = RobotsSpec {
        robots: None,
        universe,
        threads: 1,
        cpus: Vec::new(),
        timing: Timing::default(),
        target: Target::Reverse { proxy: server::start(&workload, clock) },
        tls: None,
        listeners: Vec::new(),
        sources: Vec::new(),
        behaviour: CacheBehaviour::default(),
        timeout_ms: 5_000,
        xact_log: None,
        joins_waits: false,
    };
    let path = dir.path().join("robots.json");
    std::fs::write(&path, serde_json::to_vec(&spec).expect("is data")).expect("there is room");
    check_stopped(Role::start("robots", &path).stopped_for_a_while(clock), "robots");
}

#[test]
fn origins_that_were_stopped_say_so_without_any_request() {
    let dir = tempfile::tempdir().expect("there is room");
    let spec = OriginsSpec {
        first: 0,
        universe: write_universe(dir.path(), &simple()),
        threads: 1,
        cpus: Vec::new(),
        timing: Timing::default(),
        listen: vec![([127, 0, 0, 1], 0).into()],
        tls: None,
    };
    let path = dir.path().join("origins.json");
    std::fs::write(&path, serde_json::to_vec(&spec).expect("is data")).expect("there is room");
    check_stopped(Role::start("origins", &path).stopped_for_a_while(start_soon()), "origins");
}

fn write_universe(dir: &Path, workload: &Workload) -> UniverseSpec {
    let path = dir.join("workload.json");
    std::fs::write(&path, serde_json::to_vec(workload).expect("is data")).expect("there is room");
    UniverseSpec { workload: path, seed: 7, world: 1, private_as_public: false }
}
