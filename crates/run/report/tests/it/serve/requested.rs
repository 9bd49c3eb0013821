//! What the server serves, to which clients, and what it refuses.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use assay_http::coding::GzipReader;
use assay_record::event::RunEvent;
use assay_report::serve::{RunIdentity, ServeError, WatchSettings, Watcher};

use crate::serve::client::{PATIENCE, Response, assert_dismissed, connect, exchange, get, read};
use crate::serve::watched::{serve, serve_on};

fn has(response: &Response, words: &str) -> bool {
    String::from_utf8_lossy(&response.body).contains(words)
}

/// Repeats the request until the response is as it should be: news travels on another thread.
fn get_until(address: SocketAddr, path: &str, good: impl Fn(&Response) -> bool) -> Response {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let response = get(address, path, "");
        if good(&response) {
            return response;
        }
        assert!(Instant::now() < deadline, "never came: {}", response.head);
        std::thread::yield_now();
    }
}

#[test]
fn what_is_there_is_served_and_everything_else_refused() {
    let watched = serve();
    let address = watched.address();
    let host = format!("Host: {address}\r\n");
    for (request, status) in [
        (format!("GET /healthz HTTP/1.1\r\n{host}\r\n"), 200),
        ("GET /healthz HTTP/1.0\r\n\r\n".into(), 200),
        (format!("GET http://{address}/healthz?x=y HTTP/1.1\r\n{host}\r\n"), 200),
        (format!("HEAD /metrics HTTP/1.1\r\n{host}\r\n"), 200),
        (format!("GET /favicon.ico HTTP/1.1\r\n{host}\r\n"), 204),
        (format!("GET /../etc/passwd HTTP/1.1\r\n{host}\r\n"), 404),
        (format!("GET /summary.json HTTP/1.1\r\n{host}\r\n"), 503),
        (format!("POST /metrics HTTP/1.1\r\n{host}Content-Length: 1\r\n\r\nx"), 405),
        (format!("GET / HTTP/1.1\r\n{host}Content-Length: 1\r\n\r\nx"), 413),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".into(), 421),
        ("GET / HTTP/1.1\r\n\r\n".into(), 400),
        ("\u{1}\u{2} nonsense\r\n\r\n".into(), 400),
        ("GET / HTTP/3.0\r\n\r\n".into(), 505),
        (format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(17_000)), 431),
    ] {
        let response = exchange(address, &request);
        assert_eq!(response.status, status, "{:.60}: {}", request, response.head);
        assert!(response.head.contains("X-Content-Type-Options: nosniff"));
        if status == 405 {
            assert_eq!(response.field("Allow"), Some("GET, HEAD"));
        }
    }
    watched.watcher.finish();
}

#[test]
fn clients_that_connect_and_send_nothing_block_nobody() {
    let watched = serve();
    let _silent: Vec<_> = (0..200).map(|_| connect(watched.address())).collect();
    assert_eq!(get(watched.address(), "/healthz", "").status, 200);
    assert_dismissed(&get(watched.address(), "/metrics", "").text());
    watched.watcher.finish();
}

#[test]
fn a_connection_serves_many_requests_and_closes_when_told_to() {
    let watched = serve();
    let mut stream = connect(watched.address());
    for path in ["/healthz", "/metrics"] {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
        assert_eq!(read(&mut stream, false).status, 200);
    }
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let response = read(&mut stream, false);
    assert_eq!((response.status, response.field("Connection")), (200, Some("close")));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn more_clients_than_there_is_room_for_wait_their_turn() {
    let watched = serve();
    let mut sitting: Vec<_> = (0..64).map(|_| connect(watched.address())).collect();
    for stream in &mut sitting {
        // A connection has its place only once it got a response.
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert_eq!(read(stream, false).status, 200);
    }
    let mut waiting = connect(watched.address());
    write!(waiting, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    sitting.pop();
    assert_eq!(read(&mut waiting, false).status, 200);
}

#[test]
fn metrics_come_in_the_format_that_the_client_reads() {
    let watched = serve();
    watched.begin();
    watched.second(10);
    let address = watched.address();
    let text = get_until(address, "/metrics", |response| has(response, "assay_requests_sent_total 10.0"));
    assert_eq!(text.field("Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(has(&text, "assay_response_time_seconds_count{class=\"hit\"} 5\n"), "{}", text.text());
    let open = get(address, "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert_eq!(
        open.field("Content-Type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    assert!(open.text().ends_with("# EOF\n"));
    let packed = get(address, "/metrics", "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.field("Content-Encoding"), Some("gzip"));
    let mut decoded = Vec::new();
    GzipReader::new(10_000_000).push(&packed.body, |bytes| decoded.extend_from_slice(bytes)).unwrap();
    assert!(decoded.windows(27).any(|bytes| bytes == b"assay_response_time_seconds"));
}

#[test]
fn the_live_page_is_the_report_of_what_there_is_and_its_last_edition_stays() {
    // No test listens on this host: no other can be given the port once nobody listens any more.
    let watched = serve_on("127.83.0.2");
    let address = watched.address();
    let early = get(address, "/", "");
    assert!(early.status == 200 && has(&early, "getting ready"));
    watched.begin();
    let live = get_until(address, "/", |response| has(response, "<html lang=\"en\" data-live=\""));
    assert_eq!(live.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert!(live.field("Content-Security-Policy").unwrap().contains("connect-src 'self'"));
    // Whoever has no processor for 20 s says so with a 503.
    let summary = get_until(address, "/summary.json", |response| response.status != 503);
    assert!(summary.status == 200 && has(&summary, "\"unfinished\": true"), "{}", summary.text());
    watched.tell(RunEvent::Finished);
    get_until(address, "/metrics", |response| has(response, "assay_run_stage{stage=\"finished\"} 1.0"));
    // And shows what it has until then.
    let last = get_until(address, "/", |response| response.field("ETag") != live.field("ETag"));
    let tag = last.field("ETag").unwrap().to_owned();
    let again = get(address, "/", &format!("If-None-Match: W/{tag}\r\n"));
    assert_eq!((again.status, again.body.len()), (304, 0));
    watched.watcher.finish();
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn a_place_that_is_taken_is_known_before_anything_starts() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let serve: Option<SocketAddr> = Some(taken.local_addr().unwrap());
    let (_tell, heard) = tokio::sync::mpsc::unbounded_channel();
    let settings = WatchSettings { serve, collector: None };
    let error = Watcher::start(settings, RunIdentity::default(), heard, |_| ()).unwrap_err();
    assert!(matches!(error, ServeError::Listen { .. }));
    assert!(error.to_string().contains("choose another port"), "{error}");
}
