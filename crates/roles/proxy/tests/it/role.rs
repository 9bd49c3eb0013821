//! The proxy as a process of its own, and what is refused before anything starts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

use assay_proxy::spec::ProxySpec;
use assay_proxy::{Clock, Proxy, ProxyError, ProxyLimits};

use assay_protocol::message::{Command as Word, Event};

use crate::harness::run;

fn spec(listen: SocketAddr, threads: u32) -> ProxySpec {
    ProxySpec {
        tls: None,
        origin_tls: None,
        origin_http2: false,
        name: "assay".into(),
        listen,
        threads,
        cpus: Vec::new(),
        memory_bytes: 1_000_000,
        stale_if_error_s: 0,
        access_log: None,
        origins: Vec::new(),
        cooperation: None,
        prefetch: None,
        storing: assay_proxy::spec::Storing::default(),
    }
}

#[test]
fn an_address_in_use_is_named() {
    run(async {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = Proxy::bind(&spec(address, 1), Clock::System, ProxyLimits::default()).err().unwrap();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    });
}

#[test]
fn more_than_one_thread_is_refused() {
    run(async {
        let refused =
            Proxy::bind(&spec("127.0.0.1:0".parse().unwrap(), 2), Clock::System, ProxyLimits::default());
        assert!(matches!(refused.err(), Some(ProxyError::Threads(2))));
    });
}

/// Not a test of its own: the tests below start this binary again, told to run nothing but this.
#[test]
fn child() {
    if let Ok(text) = std::env::var("ASSAY_PROXY_TEST_SPEC") {
        assay_proxy::run(serde_json::from_str(&text).unwrap()).unwrap();
    }
}

fn start() -> (Child, BufReader<ChildStdout>) {
    let text = serde_json::to_string(&spec("127.0.0.1:0".parse().unwrap(), 1)).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "role::child", "--nocapture", "--quiet"])
        .env("ASSAY_PROXY_TEST_SPEC", text)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let events = BufReader::new(child.stdout.take().unwrap());
    (child, events)
}

/// The next event; what the test harness prints is passed over.
fn next_event(events: &mut BufReader<ChildStdout>) -> Event {
    loop {
        let mut line = String::new();
        assert_ne!(events.read_line(&mut line).unwrap(), 0, "the process ended");
        if line.starts_with('{') {
            return serde_json::from_str(&line).unwrap();
        }
    }
}

fn listening(events: &mut BufReader<ChildStdout>) -> SocketAddr {
    match next_event(events) {
        Event::Ready { listening } => listening[0],
        other => panic!("not ready first, but {other:?}"),
    }
}

#[test]
fn a_process_says_ready_serves_counts_and_is_done_when_told_to_stop() {
    let (mut child, mut events) = start();
    let address = listening(&mut events);
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    let stop = serde_json::to_string(&Word::Stop).unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("{stop}\n").as_bytes()).unwrap();
    let mut last = None;
    loop {
        match next_event(&mut events) {
            Event::Proxy(counters) => last = Some(counters),
            Event::Done => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(last.map(|counters| counters.requests), Some(1));
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_process_ends_with_its_input() {
    let (mut child, mut events) = start();
    listening(&mut events);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
