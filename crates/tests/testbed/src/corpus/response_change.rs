//! Responses made at random, by the same changes as requests.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::corpus::change::{apply, change};

/// Responses to begin with.
const RESPONSES: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-One: 1\r\n\r\nabcHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
    "HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 3, 3\r\n\r\nabc",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\nETag: \"a\"\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabc",
    "HTTP/1.1 200\r\nConnection: close\r\n\r\nabc",
    "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-One: 1\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nX-One: 1\r\n\r\n",
    "HTTP/1.1 500 Broken\r\nConnection: X-One\r\nX-One: 1\r\nContent-Length: 10\r\n\r\n0123456789",
    "HTTP/1.0 200 OK\r\n\r\nabc",
];

pub fn responses() -> impl Strategy<Value = Vec<u8>> {
    let seeds: Vec<Vec<u8>> = RESPONSES.iter().map(|text| text.as_bytes().to_vec()).collect();
    (any::<Index>(), vec(change(), 0..6)).prop_map(move |(which, changes)| {
        let mut bytes = which.get(&seeds).clone();
        changes.iter().for_each(|(place, change)| apply(&mut bytes, &seeds, place, change));
        bytes
    })
}
