//! A role that does nothing but speak as roles do, for the lab's tests: `fake_role role KIND SPEC.json`.
//!
//! The workload's name says how it behaves: `plain` runs for one interval, `endless` until it is stopped,
//! `robots-die` and `origins-die` end in the middle, `robots-refuse` does not start, `fault` reports one, `stall` says
//! that a thread stood still.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_load::spec::{OriginsSpec, RobotsSpec};
use assay_measurement::doubt::Reason;
use assay_measurement::health::{Baseline, Stall, ThreadInterval};
use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_measurement::measured::Measured;
use assay_protocol::message::{Command, Event, PhaseEvent, ProxyCounters};
use assay_proxy::spec::ProxySpec;
use assay_workload::model::Workload;

static STOPPED: AtomicBool = AtomicBool::new(false);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&arguments[3]).expect("a spec");
    match arguments[2].as_str() {
        "origins" => origins(&serde_json::from_str(&text).expect("a spec of origins")),
        "proxy" => proxy(&serde_json::from_str(&text).expect("a spec of the proxy")),
        _ => robots(&serde_json::from_str(&text).expect("a spec of robots")),
    }
}

fn name_of(workload: &Path) -> String {
    let text = std::fs::read_to_string(workload).expect("a workload");
    serde_json::from_str::<Workload>(&text).expect("a workload").name
}

fn say(event: &Event) {
    println!("{}", serde_json::to_string(event).expect("events are JSON"));
}

/// Calls `act` for every command, and ends the process when the input ends.
fn obey(mut act: impl FnMut(Command)) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        act(serde_json::from_str(&line).expect("a command"));
    }
    std::process::exit(0);
}

/// Responds to everything with 200.
fn serve(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let listen = |address: &SocketAddr| {
        let listener = TcpListener::bind(address).expect("an address to listen on");
        let bound = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = reader.read_to_string(&mut line);
            }
        });
        bound
    };
    addresses.iter().map(listen).collect()
}

fn origins(spec: &OriginsSpec) {
    say(&Event::Ready { listening: serve(&spec.listen) });
    let dies = name_of(&spec.universe.workload) == "origins-die";
    obey(|command| match command {
        Command::Start { .. } if dies => {
            eprintln!("origins have had enough");
            std::process::exit(3);
        }
        Command::Start { .. } | Command::Load { .. } | Command::Clock { .. } | Command::Waits(_) => {}
        Command::Stop => {
            say(&Event::Measured(Measured::Origins(Box::new(OriginInterval {
                length_ms: 1000,
                ..OriginInterval::default()
            }))));
            say(&Event::Done);
        }
    });
}

fn proxy(spec: &ProxySpec) {
    say(&Event::Ready { listening: serve(&[spec.listen]) });
    obey(|command| {
        if command == Command::Stop {
            say(&Event::Proxy(Box::new(ProxyCounters { requests: 7, hits: 3, ..ProxyCounters::default() })));
            say(&Event::Done);
        }
    });
}

fn robots(spec: &RobotsSpec) {
    let name = name_of(&spec.universe.workload);
    if name == "robots-refuse" {
        eprintln!("robots do not like this workload");
        std::process::exit(1);
    }
    say(&Event::Measured(Measured::Baseline(Box::new(Baseline {
        role: "robots".into(),
        length_ms: 250,
        ..Baseline::default()
    }))));
    say(&Event::Ready { listening: Vec::new() });
    let mut worker = None;
    obey(|command| match command {
        Command::Start { .. } => {
            let name = name.clone();
            worker = Some(std::thread::spawn(move || walk(&name)));
        }
        Command::Load { .. } | Command::Clock { .. } | Command::Waits(_) => {}
        Command::Stop => {
            STOPPED.store(true, Ordering::Relaxed);
            worker.take().map(std::thread::JoinHandle::join);
        }
    });
}

fn walk(name: &str) {
    say(&Event::Phase(PhaseEvent::Began { phase: 0, at_ms: 0 }));
    let mut interval = RobotInterval { length_ms: 1000, ..RobotInterval::default() };
    interval.counts.due = 10;
    interval.counts.completed = 10;
    say(&Event::Measured(Measured::Robots(Box::new(interval.clone()))));
    let thread =
        ThreadInterval { role: "robots".into(), length_ms: 1000, cpu_us: 1000, ..ThreadInterval::default() };
    say(&Event::Measured(Measured::Thread(Box::new(thread))));
    match name {
        "robots-die" => {
            eprintln!("robots have had enough");
            std::process::exit(3);
        }
        "fault" => say(&Event::Fault { reason: Reason::RoleFailed, message: "a timer broke".into() }),
        "stall" => {
            let stall = Stall { role: "robots".into(), at_ms: 500, length_us: 300_000, ..Stall::default() };
            say(&Event::Measured(Measured::Stall(stall.into())));
        }
        "endless" | "origins-die" => {
            while !STOPPED.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
                interval.start_ms += interval.length_ms;
                say(&Event::Measured(Measured::Robots(Box::new(interval.clone()))));
            }
        }
        _ => {}
    }
    say(&Event::Phase(PhaseEvent::Ended { phase: 0, at_ms: 1000, launched: vec![10] }));
    say(&Event::Done);
}
