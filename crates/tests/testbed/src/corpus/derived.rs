//! Cases made of random requests, for intermediaries between sockets: what this crate understands of a stream is what must be seen on
//! both sides of each, and a reader that shares no code with it ([`crate::corpus::strict`]) reads both.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::corpus::change::{config, streams};
use crate::corpus::ending::Ending;
use crate::corpus::format::{Case, Pass};
use crate::corpus::reader::{Taken, serve};

/// Streams of requests in a test, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 100;

const LONGEST: usize = 60_000;

/// Marks of requests for which intermediaries have rules of their own, none of which matters here.
const OTHER_RULES: &[&str] =
    &["connect ", "trace ", "max-forwards", "upgrade", "pri *", "only-if-cached", "http2"];

/// Fields that are not passed on, or not as they came.
const NOT_PASSED: &[&str] = &[
    "connection",
    "content-length",
    "content_length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "transfer_encoding",
    "via",
];

/// Tries requests at random; `tried` says what was wrong with a case.
pub fn requests(tried: impl Fn(&Case) -> Vec<String>) {
    let [streams_tried, passed, refused] = [const { Cell::new(0) }; 3];
    proptest!(config(CASES), |(bytes in streams())| {
        let Some(case) = case(bytes) else { return Ok(()) };
        streams_tried.set(streams_tried.get() + 1);
        passed.set(passed.get() + case.passes.len());
        refused.set(refused.get() + usize::from(matches!(case.end, Ending::Refused { .. } | Ending::Waits { .. })));
        let wrong = tried(&case);
        prop_assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), case.bytes.escape_ascii());
    });
    let [streams, passed, refused] = [&streams_tried, &passed, &refused].map(Cell::get);
    println!(
        "{streams} streams: {passed} requests were to go on, {refused} were to be refused or waited for"
    );
    assert!(passed > streams / 4 && refused > streams / 4, "the generator makes nothing of either kind");
}

/// So many requests at random, unless `PROPTEST_CASES` says otherwise, for those who judge by themselves what becomes of them.
pub fn some(cases: u32) -> Vec<Case> {
    let config = config(cases);
    let count = config.cases as usize;
    let mut runner = TestRunner::new(config);
    let made = std::iter::from_fn(|| streams().new_tree(&mut runner).ok()).map(|tree| tree.current());
    made.filter_map(case).take(count).collect()
}

/// Case with the expected result of a stream of requests; none: the stream is out of scope.
fn case(bytes: Vec<u8>) -> Option<Case> {
    let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    // Beyond the limit of a head, the reason for which it is refused depends on how much of it has come.
    if bytes.len() > LONGEST || OTHER_RULES.iter().any(|rule| text.contains(rule)) {
        return None;
    }
    let (taken, end) = serve(&bytes);
    let passes = taken.iter().map(pass).collect();
    Some(Case { rule: "at random".into(), bytes, passes, end, ..Case::default() })
}

fn pass(taken: &Taken) -> Pass {
    let named = |name: &str| {
        let connection = taken.fields.iter().filter(|field| field.0.eq_ignore_ascii_case(b"connection"));
        let mut tokens = connection.flat_map(|field| field.1.split(|byte| *byte == b','));
        tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    };
    let each = taken.fields.iter().map(|(name, value)| {
        (String::from_utf8_lossy(name).to_ascii_lowercase(), value.trim_ascii().to_vec())
    });
    // A value that ends with `*` stands for those that begin with the rest.
    let is_plain = |(name, value): &(String, Vec<u8>)| {
        !NOT_PASSED.contains(&name.as_str()) && !value.ends_with(b"*") && !named(name)
    };
    let host = taken.authority.iter().map(|authority| ("host".to_owned(), authority.clone().into_bytes()));
    Pass {
        method: taken.method.clone(),
        target: taken.target.clone(),
        body: taken.body.clone(),
        has: host.chain(each.filter(is_plain)).collect(),
        lacks: vec!["transfer_encoding".into(), "content_length".into()],
    }
}
