//! This crate and a reader that forgives nothing never disagree about where a message ends.
//!
//! Requests of the corpus, and a few responses, are changed at random. Whatever both take for a message must be the same message; what only
//! this crate takes must, written down again, be that message to the other one.

use proptest::prelude::*;

use crate::agree::{judge, judge_response};
use crate::format::requests;

/// Bytes that mean something somewhere.
const TELLING: &[u8] = b"\r\n\r\n\r\n \t:;,=\"\0#%/?@*0159af-+x\x0b\x7f\x80\xffGHCTch";

/// A change: where, what, and how much.
#[derive(Debug, Clone)]
enum Change {
    Replace(u8),
    Insert(u8),
    Remove(u8),
    /// Repeats what stands there.
    Repeat(u8),
    /// Puts the beginning of another request there.
    Splice(prop::sample::Index, u8),
}

fn change() -> impl Strategy<Value = (prop::sample::Index, Change)> {
    let telling = || prop::sample::select(TELLING);
    let what = prop_oneof![
        telling().prop_map(Change::Replace),
        telling().prop_map(Change::Insert),
        (1u8..20).prop_map(Change::Remove),
        (1u8..60).prop_map(Change::Repeat),
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(which, count)| Change::Splice(which, count)),
    ];
    (any::<prop::sample::Index>(), what)
}

fn changed(
    seeds: &[Vec<u8>],
    which: prop::sample::Index,
    changes: Vec<(prop::sample::Index, Change)>,
) -> Vec<u8> {
    let mut bytes = which.get(seeds).clone();
    for (place, change) in changes {
        let at = place.index(bytes.len() + 1);
        let end = |count: u8| (at + usize::from(count)).min(bytes.len());
        match change {
            Change::Replace(byte) if at < bytes.len() => bytes[at] = byte,
            Change::Replace(byte) | Change::Insert(byte) => bytes.insert(at, byte),
            Change::Remove(count) => drop(bytes.drain(at..end(count))),
            Change::Repeat(count) => {
                let again = bytes[at..end(count)].to_vec();
                bytes.splice(at..at, again);
            }
            Change::Splice(which, count) => {
                let other = which.get(seeds);
                let part = other[..usize::from(count).min(other.len())].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(4000), failure_persistence: None, ..usual }
}

#[test]
fn of_the_corpus_itself_nothing_is_read_in_two_ways() {
    for case in requests() {
        judge(&case.bytes).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
    }
}

#[test]
fn of_changed_requests_nothing_is_read_in_two_ways() {
    let all = requests();
    let seeds: Vec<Vec<u8>> =
        all.into_iter().map(|case| case.bytes).filter(|bytes| bytes.len() < 1000).collect();
    let changes = prop::collection::vec(change(), 0..6);
    let config = config();
    proptest!(config, |(which: prop::sample::Index, changes in changes)| {
        judge(&changed(&seeds, which, changes)).map_err(TestCaseError::fail)?;
    });
}

#[test]
fn of_changed_responses_nothing_is_read_in_two_ways() {
    let seeds = [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-One: 1\r\n\r\nabcHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
        "HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 3, 3\r\n\r\nabc",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\nETag: \"a\"\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabc",
        "HTTP/1.1 200\r\nConnection: close\r\n\r\nabc",
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    ]
    .map(|text| text.as_bytes().to_vec());
    let changes = prop::collection::vec(change(), 0..6);
    let config = config();
    let methods = prop::sample::select(&["GET", "HEAD", "POST"][..]);
    proptest!(config, |(which: prop::sample::Index, changes in changes, method in methods)| {
        judge_response(&changed(&seeds, which, changes), method).map_err(TestCaseError::fail)?;
    });
}
