//! Connections of HTTP/2: the events do not depend on how the bytes arrive, in either role.
#![no_main]

use assay_http2::{Config, Connection, Event, RequestHead, PREFACE};
use libfuzzer_sys::fuzz_target;

/// An empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Bytes of data and other events, or the error.
fn events(connection: &mut Connection, input: &[u8], step: usize) -> (usize, Vec<String>) {
    let (mut data_bytes, mut lines) = (0, Vec::new());
    for piece in input.chunks(step) {
        let mut rest = piece;
        loop {
            let (used, event) = match connection.next(rest) {
                Ok(found) => found,
                Err(error) => {
                    lines.push(error.to_string());
                    return (data_bytes, lines);
                }
            };
            rest = &rest[used..];
            match event {
                Event::NeedMore => break,
                Event::Data { data, .. } => data_bytes += data.len(),
                Event::Head { stream, head, ends } => lines.push(format!("{stream:?} {:?} {ends}", head.lines())),
                other => lines.push(format!("{other:?}")),
            }
        }
    }
    (data_bytes, lines)
}

fn server() -> Connection {
    let mut server = Connection::server(Config::default());
    events(&mut server, &[PREFACE, SETTINGS].concat(), usize::MAX);
    server
}

fn client() -> Connection {
    let mut client = Connection::client(Config::default());
    let head = RequestHead { method: b"POST", scheme: b"http", authority: b"a", path: b"/" };
    for ends in [false, true, true] {
        client.request(&head, std::iter::empty(), ends).expect("is allowed");
    }
    events(&mut client, SETTINGS, usize::MAX);
    client
}

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_server, step, bytes) = input;
    let make = if is_server { server } else { client };
    let whole = events(&mut make(), bytes, usize::MAX);
    assert_eq!(events(&mut make(), bytes, usize::from(step).max(1)), whole);
});
