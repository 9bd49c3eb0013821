//! A client of HTTP/2 that ends its own side of a connection while responses are under way.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use assay_http2::{Config, Connection, Event, RequestHead};
use assay_workload::model::{Distribution, HttpVersion, Weighted};
use assay_workload::object::{ObjectId, Space};
use assay_workload::{Universe, UniverseOptions};

use crate::harness::simple;
use crate::origins::Origins;

/// Bytes of bodies, and complete responses, that a client gets that ends its side behind its requests; `unfinished`: the last of
/// them has no end.
fn got(paths: &[String], address: std::net::SocketAddr, unfinished: bool) -> (usize, usize) {
    let mut wire = Connection::client(Config::default());
    for path in paths {
        let head =
            RequestHead { method: b"GET", scheme: b"http", authority: b"10.0.0.1:80", path: path.as_bytes() };
        wire.request(&head, std::iter::empty(), true).expect("may be opened");
    }
    if unfinished {
        let head = RequestHead { method: b"POST", scheme: b"http", authority: b"10.0.0.1:80", path: b"/" };
        wire.request(&head, std::iter::empty(), false).expect("may be opened");
    }
    let mut socket = TcpStream::connect(address).expect("it listens");
    socket.write_all(wire.output()).expect("is read");
    socket.shutdown(Shutdown::Write).expect("is open");
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).expect("ends in order");
    let (mut rest, mut body, mut complete) = (&bytes[..], 0, 0);
    loop {
        let (used, event) = wire.next(rest).expect("is HTTP/2");
        rest = &rest[used..];
        match event {
            Event::NeedMore => return (body, complete),
            Event::Head { ends, .. } => complete += usize::from(ends),
            Event::Data { data, ends, .. } => {
                body += data.len();
                complete += usize::from(ends);
            }
            _ => {}
        }
    }
}

#[test]
fn what_an_origin_thinks_about_when_its_client_ends_its_side_is_sent_all_the_same() {
    let mut workload = simple();
    workload.servers[0].http_versions = Weighted::one(HttpVersion::Http2);
    workload.servers[0].think_s = Some(Distribution::Constant(0.1));
    let origins = Origins::start(&workload);
    let universe = Universe::new(Arc::new(workload), 7, 1, UniverseOptions::default()).expect("a universe");
    let path = |serial| {
        let id = ObjectId { origin: 0, content: 0, space: Space::Public, serial };
        universe.path(&universe.object(id))
    };
    let paths: Vec<String> = (0..3).map(path).collect();
    assert_eq!(got(&paths, origins.listening[0], false), (9000, 3));
    // The end of a request cannot come any more: that one has no response, and holds up nothing.
    assert_eq!(got(&paths, origins.listening[0], true), (9000, 3));
    origins.stop();
}
