//! Messages made at random: of the corpus, or put together from parts, several behind each other, and then changed.
//!
//! A change is one of bytes, or of what a message is made of: lines and their ends, words, fields that say where it ends, chunks. All
//! follow from the seed of the generator, so that each can be made again.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed};

use crate::corpus::format::requests;

/// Bytes that mean something somewhere.
const TELLING: &[u8] = b"\r\n\r\n\r\n \t:;,=\"\0#%/?@*0159af-+x\x0b\x7f\x80\xffGHCTch";

/// Lines that say, or seem to say, how a message is to be read.
const LINES: &[&str] = &[
    "Content-Length: 3",
    "Content-Length: 0",
    "Content-Length: 5, 5",
    "Content-Length: 3, 5",
    "Content-Length: +3",
    "Content-Length: 03",
    "Content-Length: 0x3",
    "Content-Length: 18446744073709551616",
    "Content-Length:",
    "Content-Length : 3",
    "content_length: 3",
    " Content-Length: 3",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: Chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: ,chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding",
    "Transfer_Encoding: chunked",
    "\tchunked",
    "Connection: close",
    "Connection: keep-alive",
    "Connection: Content-Length, Host",
    "Connection: Transfer-Encoding",
    "Connection: X-One",
    "Host: a",
    "Host: b",
    "Host: a:80",
    "Host: a@b",
    "Host:",
    "X-One: 1",
    "X-Two: a b\tc",
    "X-Three: \u{e9}",
    " folded",
    "",
];

/// Line ends, right and wrong.
const ENDS: &[&str] =
    &["\n", "\r", "\r\r\n", "\n\r", "\r\n ", "\r\n\t", "\r\n\r\n", "", "\0\r\n", "\x0b\r\n"];

/// Words of start lines.
const WORDS: &[&str] = &[
    "GET",
    "HEAD",
    "POST",
    "get",
    "OPTIONS",
    "DELETE",
    "*",
    "/x",
    "/x?y=1",
    "//b/x",
    "/x/../y",
    "/%2e%2e/x",
    "/x#y",
    "/a:b@c",
    "http://a/x",
    "http://b/x",
    "http://a",
    "http://a?y",
    "http://a@b/x",
    "http://a:b/x",
    "https://a/x",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/1.2",
    "HTTP/1.10",
    "HTTP/0.9",
    "http/1.1",
];

/// Frames of the chunked coding, right and wrong.
const CHUNKS: &[&str] = &[
    "3\r\nabc\r\n",
    "0\r\n\r\n",
    "03\r\nabc\r\n",
    "3;x=y\r\nabc\r\n",
    "3;x=\"\r\n\"\r\nabc\r\n",
    "3 \r\nabc\r\n",
    "3\nabc\n",
    "3\r\nabcd\r\n",
    "4\r\nabc\r\n",
    "0x3\r\nabc\r\n",
    "ffffffffffffffff3\r\n",
    "0\r\nX-One: 1\r\n\r\n",
    "0\r\nContent-Length: 5\r\n\r\n",
    "0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n",
    "29\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n\r\n",
    "\r\n",
];

/// Framing fields of a request, and its body.
const BODIES: &[&str] = &[
    "\r\n",
    "\r\n",
    "\r\n",
    "Content-Length: 3\r\n\r\nabc",
    "content-length: 0\r\n\r\n",
    "Content-Length: 3, 3\r\n\r\nabc",
    "Content-Length: 39\r\n\r\nGET /hidden HTTP/1.1\r\nHost: hidden\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x\r\nbc\r\n0\r\nX-Two: 1\r\n\r\n",
    "transfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n",
    "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
];

/// A change: what, and how much.
#[derive(Debug, Clone)]
pub enum Change {
    Replace(u8),
    Insert(u8),
    Remove(u8),
    /// Repeats what stands there.
    Repeat(u8),
    /// Puts the beginning of another message there.
    Splice(Index, u8),
    /// Puts a line behind the line there.
    Line(&'static str),
    /// Ends the line there with this.
    End(&'static str),
    /// Puts this in place of the word there.
    Word(&'static str),
    /// Leaves out the line there, or says it a second time.
    Drop,
    Twice,
    /// Puts a frame of the chunked coding behind the line there.
    Chunk(&'static str),
    /// Makes the line there so much longer.
    Long(usize),
}

pub fn change() -> impl Strategy<Value = (Index, Change)> {
    let telling = || select(TELLING);
    let what = prop_oneof![
        2 => telling().prop_map(Change::Replace),
        2 => telling().prop_map(Change::Insert),
        2 => (1u8..20).prop_map(Change::Remove),
        1 => (1u8..60).prop_map(Change::Repeat),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(which, count)| Change::Splice(which, count)),
        4 => select(LINES).prop_map(Change::Line),
        2 => select(ENDS).prop_map(Change::End),
        2 => select(WORDS).prop_map(Change::Word),
        1 => Just(Change::Drop),
        1 => Just(Change::Twice),
        2 => select(CHUNKS).prop_map(Change::Chunk),
    ];
    // They take time: few of them.
    let long = select(&[100, 8_000, 30_000][..]).prop_map(Change::Long);
    (any::<Index>(), prop_oneof![60 => what, 1 => long])
}

/// Start and end of the line around a position, line end included.
fn line(bytes: &[u8], at: usize) -> (usize, usize) {
    let begin = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end + 1);
    (begin, end)
}

/// Start and end of the word around a position.
fn word(bytes: &[u8], at: usize) -> (usize, usize) {
    let is_end = |byte: &u8| b" \r\n".contains(byte);
    let begin = bytes[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
    (begin, bytes[at..].iter().position(is_end).map_or(bytes.len(), |end| at + end))
}

/// Range that a change replaces, and its replacement.
fn replaced(bytes: &[u8], seeds: &[Vec<u8>], place: &Index, change: &Change) -> (Range<usize>, Vec<u8>) {
    let at = place.index(bytes.len() + 1);
    let after = |count: u8| (at + usize::from(count)).min(bytes.len());
    let (begin, end) = line(bytes, at);
    match change {
        Change::Replace(byte) => (at..after(1), vec![*byte]),
        Change::Insert(byte) => (at..at, vec![*byte]),
        Change::Remove(count) => (at..after(*count), Vec::new()),
        Change::Repeat(count) => (at..at, bytes[at..after(*count)].to_vec()),
        Change::Splice(which, count) => {
            let other = which.get(seeds);
            (at..at, other[..usize::from(*count).min(other.len())].to_vec())
        }
        Change::Line(text) => (end..end, format!("{text}\r\n").into_bytes()),
        Change::Chunk(text) => (end..end, text.as_bytes().to_vec()),
        Change::End(text) => {
            let length = bytes[begin..end].iter().rev().take_while(|byte| b"\r\n".contains(byte)).count();
            (end - length..end, text.as_bytes().to_vec())
        }
        Change::Word(text) => {
            let (begin, end) = word(bytes, at);
            (begin..end, text.as_bytes().to_vec())
        }
        Change::Drop => (begin..end, Vec::new()),
        Change::Twice => (end..end, bytes[begin..end].to_vec()),
        Change::Long(count) => {
            let end = end.saturating_sub(2).max(begin);
            (end..end, vec![b'a'; *count])
        }
    }
}

pub fn apply(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], place: &Index, change: &Change) {
    let (range, text) = replaced(bytes, seeds, place, change);
    bytes.splice(range, text);
}

/// A request put together from parts, all of them right.
fn composed() -> impl Strategy<Value = Vec<u8>> {
    let method = select(&["GET", "GET", "POST", "HEAD", "OPTIONS", "PUT", "X-METHOD"][..]);
    let target = select(&["/x", "/x?y=1", "/", "//x", "http://a/x", "http://a"][..]);
    let version = select(&["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0"][..]);
    let fields =
        vec(select(&["X-One: 1", "Connection: close", "Accept: */*", "Connection: keep-alive"][..]), 0..3);
    (method, target, version, fields, select(BODIES)).prop_map(|(method, target, version, fields, body)| {
        let lines: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        format!("{method} {target} {version}\r\nHost: a\r\n{lines}{body}").into_bytes()
    })
}

/// Requests of the corpus that are short.
fn seeds() -> Vec<Vec<u8>> {
    let all = requests().into_iter().map(|case| case.bytes);
    all.filter(|bytes| bytes.len() < 1000).collect()
}

pub fn streams() -> impl Strategy<Value = Vec<u8>> {
    let seeds = seeds();
    let of_the_corpus =
        (any::<Index>(), Just(seeds.clone())).prop_map(|(which, seeds)| which.get(&seeds).clone());
    let first = prop_oneof![of_the_corpus, composed()];
    let all = (first, vec(composed(), 0..3), vec(change(), 0..6));
    all.prop_map(move |(mut bytes, others, changes)| {
        bytes.extend(others.concat());
        changes.iter().for_each(|(place, change)| apply(&mut bytes, &seeds, place, change));
        bytes
    })
}

/// So many cases, unless `PROPTEST_CASES` says otherwise; the same each time, unless `PROPTEST_RNG_SEED` says another seed.
pub fn config(cases: u32) -> Config {
    let usual = Config::default();
    let rng_seed = if usual.rng_seed == RngSeed::Random { RngSeed::Fixed(1) } else { usual.rng_seed };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { usual.cases } else { cases };
    Config { cases, rng_seed, failure_persistence: None, max_shrink_time: 60_000, ..usual }
}
