//! Origins over real sockets, within one process.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use assay_http::date::{parse_date, write_date};
use assay_http::framing::BodyFraming;
use assay_http::head::ResponseHead;
use assay_measurement::interval::OriginInterval;
use assay_measurement::measured::Measured;
use assay_workload::model::{Distribution, HttpVersion, Weighted, Workload};

use super::testing::{path, path_of, shared_of, workload};
use super::*;
use crate::spec::Timing;
use assay_base::clock::monotonic_ns;
use assay_workload::XactId;
use assay_workload::mark::ResponseMark;

const START_UNIX_S: u64 = 1_700_000_000;

/// Origins that run; the thread ends when they are told to stop.
pub(super) struct Running {
    pub(super) shared: SharedOrigins,
    pub(super) at: Vec<SocketAddr>,
    commands: std::io::PipeWriter,
    thread: std::thread::JoinHandle<Result<Vec<Event>, OriginError>>,
}

pub(super) fn start(workload: Workload, threads: u32) -> Running {
    let shared = shared_of(workload.clone());
    let universe = shared_of(workload).universe;
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    let spec = OriginsSpec {
        universe: UniverseSpec {
            workload: std::path::PathBuf::new(),
            seed: universe.seed(),
            world: 1,
            private_as_public: false,
        },
        threads,
        cpus: Vec::new(),
        timing: Timing::default(),
        first: 0,
        listen: vec![free, free],
        tls: None,
    };
    let mut origins = Origins::start(&spec, universe, None).expect("free ports");
    let at = origins.listening.clone();
    let (read, mut commands) = std::io::pipe().expect("a pipe");
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("starts");
        let mut events = Vec::new();
        runtime.block_on(async {
            let mut commands = Commands::from_reader(std::io::BufReader::new(read)).expect("starts");
            let mut out = |event: &Event| {
                events.push(event.clone());
                Ok(())
            };
            origins.serve_commands(&mut commands, &mut out).await
        })?;
        origins.join()?;
        Ok(events)
    });
    let start = Command::Start { at_monotonic_ns: monotonic_ns(), at_unix_s: START_UNIX_S };
    writeln!(commands, "{}", serde_json::to_string(&start).expect("is JSON")).expect("is read");
    let running = Running { shared, at, commands, thread };
    running.wait_for_start();
    running
}

impl Running {
    /// Until the origins date their responses from the start of the run, it has not reached them.
    fn wait_for_start(&self) {
        loop {
            let response = self.get("/assay/health", "Connection: close");
            let date = parse_date(response.field("date").expect("is dated").as_bytes()).expect("is a date");
            if date < START_UNIX_S + 1000 {
                return;
            }
            std::thread::yield_now();
        }
    }

    pub(super) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.at[0]).expect("listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("can be set");
        Client { stream, read: Vec::new() }
    }

    pub(super) fn get(&self, path: &str, fields: &str) -> WrittenResponse {
        self.connect().request("GET", path, fields)
    }

    /// Stops them; gives the counts of each phase.
    pub(super) fn stop(self) -> Vec<assay_measurement::counts::OriginCounts> {
        self.stop_and_tell().0
    }

    /// Stops them; gives the counts of each phase, and all that they said.
    pub(super) fn stop_and_tell(mut self) -> (Vec<assay_measurement::counts::OriginCounts>, Vec<Event>) {
        writeln!(self.commands, "{{\"command\":\"stop\"}}").expect("is read");
        let events = self.thread.join().expect("does not panic").expect("ends well");
        // A stall of a busy machine may be told first.
        assert!(
            events.iter().any(|event| matches!(event, Event::Ready { listening } if *listening == self.at))
        );
        assert_eq!(events.last(), Some(&Event::Done));
        let mut phases = vec![Default::default(), Default::default()];
        for event in &events {
            if let Event::Measured(Measured::Origins(interval)) = event {
                let OriginInterval { phase, counts, service, .. } = &**interval;
                let sum: &mut assay_measurement::counts::OriginCounts = &mut phases[usize::from(*phase)];
                sum.merge(counts);
                assert_eq!(service.count(), counts.responses);
            }
        }
        (phases, events)
    }
}

pub(super) struct Client {
    pub(super) stream: TcpStream,
    /// Bytes of the next response.
    pub(super) read: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct WrittenResponse {
    pub(super) status: u16,
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    pub(super) persists: bool,
}

impl Client {
    pub(super) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("is read");
    }

    pub(super) fn request(&mut self, method: &str, path: &str, fields: &str) -> WrittenResponse {
        self.send(&format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n\r\n"));
        self.response(method)
    }

    pub(super) fn more(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let bytes = self.stream.read(&mut buffer).expect("answers");
        self.read.extend_from_slice(&buffer[..bytes]);
        bytes > 0
    }

    pub(super) fn response(&mut self, method: &str) -> WrittenResponse {
        loop {
            if let Some((head, length)) = ResponseHead::parse(&self.read).expect("is HTTP") {
                let body = match head.body(method) {
                    BodyFraming::Length(bytes) => bytes as usize,
                    BodyFraming::None => 0,
                    other => panic!("{other:?}"),
                };
                let (status, persists) = (head.status, head.persists(method));
                while self.read.len() < length + body {
                    assert!(self.more(), "ends in the middle");
                }
                let rest = self.read.split_off(length + body);
                let mut head = std::mem::replace(&mut self.read, rest);
                let body = head.split_off(length);
                return WrittenResponse { status, head, body, persists };
            }
            assert!(self.more(), "ends in the middle");
        }
    }

    pub(super) fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.more()
    }
}

impl WrittenResponse {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let (head, _) = ResponseHead::parse(&self.head).expect("is HTTP").expect("is complete");
        head.header(name).map(|value| std::str::from_utf8(value).expect("is ASCII"))
    }

    pub(super) fn mark(&self) -> ResponseMark {
        ResponseMark::parse(self.field("x-assay").expect("is marked").as_bytes()).expect("is a mark")
    }

    pub(super) fn date(&self, name: &str) -> u64 {
        parse_date(self.field(name).expect("is there").as_bytes()).expect("is a date")
    }

    /// Compares the body with that of a public object of `a.test`.
    pub(super) fn is_object(&self, shared: &SharedOrigins, content: u16, serial: u64) -> bool {
        use assay_workload::object::{ObjectId, Space};
        let object = shared.universe.object(ObjectId { origin: 0, content, space: Space::Public, serial });
        let mark = self.mark();
        let body = shared.universe.body(&object, mark.version);
        mark.key == object.key
            && self.body.len() as u64 == object.size_bytes
            && body.matches(shared.universe.pool(), 0, &self.body).is_ok()
    }
}

#[test]
fn objects_are_served_byte_for_byte_until_the_connection_is_used_up() {
    let origins = start(workload(), 1);
    let mut client = origins.connect();
    for serial in 0..3 {
        let response = client.request("GET", &path(&origins.shared, serial), "X-Assay: 1-2-0-1-b");
        assert!(response.is_object(&origins.shared, 0, serial), "{serial}");
        assert_eq!(response.mark().xact, XactId { robot: 1, number: 2, place: 0 });
        assert_eq!((response.persists, response.field("cache-control")), (serial < 2, Some("public")));
        assert_eq!(response.date("expires"), response.date("date") + 60);
        assert!(response.date("last-modified") <= response.date("date"));
    }
    assert!(client.is_closed());
    let phases = origins.stop();
    assert_eq!((phases[1].requests, phases[1].responses, phases[1].refused), (3, 3, 0));
    assert_eq!(phases[0].requests, 0);
    assert_eq!(phases.iter().map(|p| p.broken).sum::<u64>(), 0);
}

#[test]
fn head_and_post_and_uncachable_objects_get_responses() {
    let origins = start(workload(), 1);
    let mut client = origins.connect();
    let head = client.request("HEAD", &path(&origins.shared, 1), "");
    assert!(head.body.is_empty() && head.field("content-length").is_some_and(|l| l != "0"));
    assert_eq!(head.mark().xact, XactId::NOBODY);
    let post =
        client.request("POST", &path_of(&origins.shared, 1, 1), "Content-Length: 5\r\n\r\nhello".trim_end());
    assert!(post.is_object(&origins.shared, 1, 1));
    assert_eq!(post.field("cache-control"), Some("private, no-cache, no-store"));
    assert!(post.field("last-modified").is_none() && post.field("expires").is_none());
}

#[test]
fn a_body_is_read_to_its_end_and_a_waiting_client_gets_100() {
    let origins = start(workload(), 1);
    let mut client = origins.connect();
    let path = path(&origins.shared, 1);
    client.send(&format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    ));
    while !client.read.ends_with(b"\r\n\r\n") {
        assert!(client.more());
    }
    assert_eq!(std::mem::take(&mut client.read), b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc");
    assert!(client.response("POST").is_object(&origins.shared, 0, 1));
    client.send(&format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab"));
    client.send("c\r\n0\r\n\r\n");
    assert!(client.response("POST").is_object(&origins.shared, 0, 1));
}

#[test]
fn pipelined_requests_get_responses_in_order_and_the_last_response_arrives() {
    let mut slow = workload();
    slow.servers[0].think_s = Some(Distribution::Uniform { low: 0.0, high: 0.01 });
    for workload in [workload(), slow] {
        let origins = start(workload, 1);
        let mut client = origins.connect();
        let text: String = (0..6)
            .map(|serial| {
                format!(
                    "GET {} HTTP/1.1\r\nHost: a\r\nX-Assay: 0-{serial}-0-0-b\r\n\r\n",
                    path(&origins.shared, serial)
                )
            })
            .collect();
        client.send(&text);
        for serial in 0..3 {
            let response = client.response("GET");
            assert_eq!(response.mark().xact.number, serial);
            assert!(response.is_object(&origins.shared, 0, serial));
        }
        assert!(client.is_closed(), "its three uses are up");
    }
}

#[test]
fn a_request_that_arrives_in_pieces_is_put_together() {
    let origins = start(workload(), 1);
    let mut client = origins.connect();
    let text = format!("\r\nGET {} HTTP/1.1\r\nHost: a\r\n\r\n\r\n", path(&origins.shared, 1));
    let (first, second) = text.split_at(30);
    client.send(first);
    // The response came on another connection: by then the first piece has been read, too.
    assert_eq!(origins.get("/assay/health", "A: b").status, 200);
    client.send(second);
    assert!(client.response("GET").is_object(&origins.shared, 0, 1));
    drop(client);
    assert_eq!(origins.stop()[0].broken, 0);
}

#[test]
fn conditions_are_judged_by_the_life_of_the_object_and_validations_counted() {
    let origins = start(workload(), 1);
    let path = path(&origins.shared, 1);
    let modified_s = origins.get(&path, "").date("last-modified");
    let since = |offset: i64| {
        let mut text = [0; 29];
        write_date(modified_s.saturating_add_signed(offset), &mut text);
        format!("If-Modified-Since: {}", String::from_utf8_lossy(&text))
    };
    let with = |kind: char, offset: i64| {
        origins.get(&path, &format!("X-Assay: 1-2-0-0-{kind}\r\n{}", since(offset)))
    };
    for (kind, offset, status) in [('b', 0, 304), ('b', -1, 200), ('c', 1, 304), ('r', 1, 304)] {
        let response = with(kind, offset);
        assert_eq!(
            (response.status, response.mark().not_modified()),
            (status, status == 304),
            "{kind} {offset}"
        );
    }
    let counts = &origins.stop()[0];
    assert_eq!((counts.not_modified, counts.validations, counts.validated_basic), (3, 3, 1));
    assert!(counts.validated_basic_bytes > 0);
    assert_eq!(counts.requests, 5);
}

#[test]
fn what_is_no_object_is_refused_and_what_is_no_http_ends_the_connection() {
    let origins = start(workload(), 1);
    assert_eq!(origins.get("/nothing", "").status, 404);
    assert_eq!(origins.connect().request("DELETE", "/", "").status, 405);
    let health = origins.get("/assay/health", "").body;
    assert!(health.starts_with(b"ok\norigin "), "{health:?}");
    let mut client = origins.connect();
    client.send("\x01\x02 nonsense\r\n\r\n more");
    let response = client.response("GET");
    assert_eq!((response.status, response.persists), (400, false));
    assert!(client.is_closed());
    let mut client = origins.connect();
    client.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(client.response("GET").status, 400, "no Host");
    let mut broken = origins.connect();
    broken.send("GET / HT");
    broken.stream.shutdown(Shutdown::Write).expect("is open");
    assert!(broken.is_closed());
    let counts = &origins.stop()[0];
    assert_eq!((counts.requests, counts.responses, counts.refused, counts.broken), (2, 0, 4, 1));
}

#[test]
fn http_1_0_persists_only_when_the_client_requests_it() {
    let mut old = workload();
    old.servers[0].http_versions = Weighted::one(HttpVersion::Http10);
    let origins = start(old, 1);
    let path = path(&origins.shared, 1);
    let plain = origins.get(&path, "");
    assert!(plain.head.starts_with(b"HTTP/1.0 200 ") && !plain.persists);
    let requested = origins.get(&path, "Connection: keep-alive");
    assert!(requested.persists && requested.field("connection") == Some("keep-alive"));
}

#[test]
fn a_response_that_the_client_is_slow_to_read_arrives_whole() {
    let mut large = workload();
    large.contents[0].size_bytes = Distribution::Constant(20e6);
    let origins = start(large, 1);
    let mut clients: Vec<Client> = (0..4).map(|_| origins.connect()).collect();
    for (client, serial) in clients.iter_mut().zip(0..) {
        client.send(&format!("GET {} HTTP/1.1\r\nHost: a.test\r\n\r\n", path(&origins.shared, serial)));
    }
    for (client, serial) in clients.iter_mut().zip(0..) {
        assert!(client.response("GET").is_object(&origins.shared, 0, serial));
    }
    drop(clients);
    assert_eq!(origins.stop()[0].body_bytes_out, 80_000_000);
}

#[test]
fn the_origins_end_when_nobody_is_left_to_tell_them() {
    let origins = start(workload(), 2);
    let Running { commands, thread, .. } = origins;
    drop(commands);
    let events = thread.join().expect("does not panic").expect("ends well");
    assert!(!events.contains(&Event::Done));
}

/// A request must come within 20 ms.
mod real_tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_closed_after_its_timeout() {
        let mut hasty = workload();
        hasty.servers[0].idle_timeout = Some(Duration::from_millis(20));
        let origins = start(hasty, 1);
        let mut client = origins.connect();
        let before_ns = monotonic_ns();
        assert!(client.request("GET", &path(&origins.shared, 1), "").persists);
        assert!(client.is_closed());
        assert!(monotonic_ns() - before_ns >= 20_000_000);
    }
}
