//! Clients of origins over HTTP/2 that read nothing, or say nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use assay_http2::frame::{FrameHead, flag, kind};
use assay_http2::{Config, Connection, Event, RequestHead};
use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::settings::{Offer, ServerTls};
use assay_workload::model::{HttpVersion, Weighted, Workload};

use crate::harness::simple;
use crate::origins::Origins;

/// More than the system keeps for both sides of a connection.
const ENOUGH_BYTES: usize = 40 << 20;
/// `HEAD http://10.0.0.1:80/assay/health` in indices of the static table, and literals that enter no table.
const SECTION: &[u8] = b"\x02\x04HEAD\x86\x04\x0d/assay/health\x01\x0b10.0.0.1:80";

#[test]
fn an_origin_reads_no_more_requests_of_a_client_that_takes_no_responses() {
    let mut workload = simple();
    workload.servers[0].http_versions = Weighted::one(HttpVersion::Http2);
    let origins = Origins::start(&workload);
    let mut socket = TcpStream::connect(origins.listening[0]).expect("it listens");
    socket.set_write_timeout(Some(Duration::from_secs(2))).expect("is open");
    let mut wire = Connection::client(Config::default());
    socket.write_all(wire.output()).expect("is read");
    wire.wrote(wire.output().len());
    let mut sent = 0;
    let mut stream = 1;
    let stopped = loop {
        let mut requests = Vec::new();
        for _ in 0..1000 {
            let (flags, length) = (flag::END_HEADERS | flag::END_STREAM, SECTION.len() as u32);
            requests.extend_from_slice(&FrameHead { length, kind: kind::HEADERS, flags, stream }.bytes());
            requests.extend_from_slice(SECTION);
            stream += 2;
        }
        if let Err(error) = socket.write_all(&requests) {
            break error;
        }
        sent += requests.len();
        assert!(sent < ENOUGH_BYTES, "all of {sent} bytes are read");
    };
    assert_eq!(stopped.kind(), ErrorKind::WouldBlock, "{stopped}");
    drop(socket);
    origins.stop();
}

/// Origins over TLS.
fn secured(workload: &Workload) -> Origins {
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
    Origins::start_in(dir, workload, Some(ServerTls { offer: Offer::default(), certificate, key }))
}

#[test]
fn a_connection_without_a_handshake_ends_when_it_is_idle_for_too_long() {
    let mut workload = simple();
    workload.servers[0].http_versions = Weighted::one(HttpVersion::Http2);
    workload.servers[0].idle_timeout = Some(Duration::from_millis(100));
    let origins = secured(&workload);
    let mut socket = TcpStream::connect(origins.listening[0]).expect("it listens");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("is open");
    assert_eq!(socket.read(&mut [0]).expect("is ended by the origin"), 0);
    origins.stop();
}

#[test]
fn a_request_whose_body_does_not_come_ends_with_its_connection_when_that_is_idle_for_too_long() {
    let mut workload = simple();
    workload.servers[0].http_versions = Weighted::one(HttpVersion::Http2);
    workload.servers[0].idle_timeout = Some(Duration::from_millis(100));
    let origins = Origins::start(&workload);
    loop {
        let mut socket = TcpStream::connect(origins.listening[0]).expect("it listens");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("is open");
        let mut wire = Connection::client(Config::default());
        let head = RequestHead {
            method: b"POST",
            scheme: b"http",
            authority: b"10.0.0.1:80",
            path: b"/assay/health",
        };
        let opened = wire.request(&head, std::iter::empty(), false).expect("may be opened");
        let mut all = Vec::new();
        // Either may fail where the origin has ended it before.
        let _ = socket.write_all(wire.output());
        let read = socket.read_to_end(&mut all);
        assert!(!read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "it does not end");
        let (mut rest, mut resets, mut goaways) = (&all[..], Vec::new(), 0);
        loop {
            let (used, event) = wire.next(rest).expect("is HTTP/2");
            rest = &rest[used..];
            match event {
                Event::NeedMore => break,
                Event::Reset { stream, .. } => resets.push(stream),
                Event::GoAway { .. } => goaways += 1,
                _ => {}
            }
        }
        // Without a reset, the origin has ended it before the request came.
        if !resets.is_empty() {
            assert_eq!((resets, goaways), (vec![opened], 1));
            break;
        }
    }
    origins.stop();
}
