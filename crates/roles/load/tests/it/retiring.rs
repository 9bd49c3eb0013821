//! An origin that has served as many requests on a connection of HTTP/2 as it does.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use assay_http2::{Config, Connection, Event, RequestHead};
use assay_workload::model::{Distribution, HttpVersion, Weighted};
use assay_workload::object::{ObjectId, Space};
use assay_workload::{Universe, UniverseOptions};

use crate::harness::simple;
use crate::origins::Origins;

/// What becomes of ten requests of a client that has so many under way at once, to an origin that serves two on a connection: complete
/// responses, and the last streams that its GOAWAYs name.
fn served(at_once: usize) -> (usize, Vec<u32>) {
    let mut workload = simple();
    workload.servers[0].http_versions = Weighted::one(HttpVersion::Http2);
    workload.servers[0].connection_use_limit = Some(Distribution::Constant(2.0));
    let origins = Origins::start(&workload);
    let universe = Universe::new(Arc::new(workload), 7, 1, UniverseOptions::default()).expect("a universe");
    let mut wire = Connection::client(Config::default());
    let mut paths = (0..10).map(|serial| {
        let id = ObjectId { origin: 0, content: 0, space: Space::Public, serial };
        universe.path(&universe.object(id))
    });
    let mut socket = TcpStream::connect(origins.listening[0]).expect("it listens");
    let (mut bytes, mut complete, mut last) = ([0; 4096], 0, Vec::new());
    loop {
        while wire.open_streams() < at_once
            && !wire.is_closing()
            && let Some(path) = paths.next()
        {
            let path = path.as_bytes();
            let head = RequestHead { method: b"GET", scheme: b"http", authority: b"10.0.0.1:80", path };
            wire.request(&head, std::iter::empty(), true).expect("may be opened");
        }
        // Behind the end of the connection nothing is read any more.
        let _ = socket.write_all(wire.output());
        wire.wrote(wire.output().len());
        let length = socket.read(&mut bytes).expect("ends in order");
        if length == 0 {
            break;
        }
        let mut rest = &bytes[..length];
        loop {
            let (used, event) = wire.next(rest).expect("is HTTP/2");
            rest = &rest[used..];
            match event {
                Event::NeedMore => break,
                Event::GoAway { last: stream, .. } => last.push(stream),
                Event::Data { ends: true, .. } => complete += 1,
                _ => {}
            }
        }
    }
    origins.stop();
    (complete, last)
}

#[test]
fn requests_that_are_on_their_way_to_an_origin_that_retires_the_connection_get_responses() {
    assert_eq!(served(10), (10, vec![(1 << 31) - 1, 19]));
}

#[test]
fn a_client_that_has_one_request_at_a_time_finds_the_connection_ended_when_it_has_the_next() {
    assert_eq!(served(1), (2, vec![3]));
}
