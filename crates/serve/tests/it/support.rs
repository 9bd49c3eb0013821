//! What the tests share: a run that is told of, and a client that speaks plain HTTP.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_measurement::counts::RobotCounts;
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::{RobotInterval, Times};
use assay_measurement::measured::Measured;
use assay_record::dir::RunDir;
use assay_record::event::{RunEvent, Stage};
use assay_record::run::{PhaseInfo, RunInfo, TargetInfo};
use assay_role::message::PhaseEvent;
use assay_serve::{About, Settings, Watcher};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Longer than anything takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run that is watched.
pub struct Watched {
    pub watcher: Watcher,
    tell: UnboundedSender<Arc<RunEvent>>,
    /// What the user was told.
    pub said: Arc<Mutex<Vec<String>>>,
    place: tempfile::TempDir,
}

pub fn watch(settings: Settings) -> Watched {
    let (tell, heard) = unbounded_channel();
    let said = Arc::new(Mutex::new(Vec::new()));
    let about = About { workload: "demo".into(), target: "builtin".into(), seed: 7, version: "1.2.3".into() };
    let say = {
        let said = said.clone();
        move |words| said.lock().unwrap().push(words)
    };
    let watcher = Watcher::start(settings, about, heard, say).unwrap();
    Watched { watcher, tell, said, place: tempfile::tempdir().unwrap() }
}

/// One that is served on loopback.
pub fn serve() -> Watched {
    watch(Settings { serve: Some("127.0.0.1:0".parse().unwrap()), collector: None })
}

impl Watched {
    pub fn address(&self) -> SocketAddr {
        self.watcher.address().unwrap()
    }

    pub fn run_dir(&self) -> PathBuf {
        self.place.path().join("run")
    }

    pub fn tell(&self, event: RunEvent) {
        self.tell.send(Arc::new(event)).unwrap();
    }

    /// Makes the run directory, and tells of it and of the start.
    pub fn begin(&self) {
        let dir = RunDir::create(&self.run_dir()).unwrap();
        let phases = vec![PhaseInfo { name: "top".into(), load: (1.0, 1.0), ..PhaseInfo::default() }];
        dir.write_info(&RunInfo { phases: phases.clone(), ..RunInfo::default() }).unwrap();
        std::fs::write(dir.journal_path(), "").unwrap();
        self.tell(RunEvent::Stage(Stage::Planned { run_dir: self.run_dir() }));
        self.tell(RunEvent::Started { phases, target: TargetInfo::default(), started_unix_ms: 1 });
        self.tell(RunEvent::Phase(PhaseEvent::Began { phase: 0, at_ms: 0 }));
    }

    /// Tells of a second with this many requests, half of them hits.
    pub fn second(&self, requests: u64) {
        let (mut hit, mut miss) = (Histogram::new(), Histogram::new());
        (0..requests / 2).for_each(|n| hit.record(200 + n));
        (0..requests - requests / 2).for_each(|n| miss.record(100_000 + n));
        let counts = RobotCounts {
            due: requests,
            sent: requests,
            completed: requests,
            by_status: BTreeMap::from([(200, requests)]),
            ..RobotCounts::default()
        };
        let times = |histogram: Histogram| Times { response: histogram.to_sparse(), ..Times::default() };
        let interval = RobotInterval {
            length_ms: 1000,
            counts,
            hit: times(hit),
            miss: times(miss),
            ..RobotInterval::default()
        };
        self.tell(RunEvent::Measured(Measured::Robots(interval.into())));
    }
}

/// A response, taken apart.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn field(&self, name: &str) -> Option<&str> {
        let of = |line: &'_ str| -> Option<(usize, usize)> {
            line.split_once(": ").map(|(n, v)| (n.len(), v.len()))
        };
        self.head.lines().find_map(|line| {
            let (name_length, _) = of(line)?;
            line[..name_length].eq_ignore_ascii_case(name).then(|| &line[name_length + 2..])
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads one response; its body is as long as it says, or none.
pub fn read(stream: &mut TcpStream, head_only: bool) -> Response {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "ended within {:?}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut response = Response { status, head, body: Vec::new() };
    let length = response.field("content-length").map_or(0, |length| length.parse().unwrap());
    if !head_only {
        response.body = vec![0; length];
        stream.read_exact(&mut response.body).unwrap();
    }
    response
}

/// Sends a request as it is written here and reads its response.
pub fn exchange(address: SocketAddr, request: &str) -> Response {
    let mut stream = connect(address);
    // A server that refuses early may not read all of it.
    let _ = stream.write_all(request.as_bytes());
    read(&mut stream, request.starts_with("HEAD"))
}

pub fn get(address: SocketAddr, path: &str, fields: &str) -> Response {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n"))
}

/// Repeats the request until the response is as it should be: news travels on another thread.
pub fn get_until(address: SocketAddr, path: &str, good: impl Fn(&Response) -> bool) -> Response {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let response = get(address, path, "");
        if good(&response) {
            return response;
        }
        assert!(std::time::Instant::now() < deadline, "never came: {}", response.head);
        std::thread::yield_now();
    }
}
