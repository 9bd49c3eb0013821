//! Clients that are kept for as long as they may take with a request, which is 5 s.

use std::io::Write;

use crate::serve::client::{assert_dismissed, connect, get};
use crate::serve::watched::serve;

#[test]
fn clients_that_connect_and_request_nothing_block_nobody() {
    let watched = serve();
    let mut silent: Vec<_> = (0..200).map(|_| connect(watched.address())).collect();
    for stream in silent.iter_mut().step_by(2) {
        stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    }
    assert_eq!(get(watched.address(), "/healthz", "").status, 200);
    assert_dismissed(&get(watched.address(), "/metrics", "").text());
    watched.watcher.finish();
}
