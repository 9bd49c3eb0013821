//! Cases made of random responses, for intermediaries between sockets: what this crate understands of a response is what a client must
//! see of it, and a reader that shares no code with it ([`crate::corpus::strict`]) reads that.

use std::cell::Cell;

use proptest::prelude::*;

use crate::corpus::change::config;
use crate::corpus::ending::Ending;
use crate::corpus::response_change;
use crate::corpus::response_reader::take_response;
use crate::corpus::responses::{Responded, Seen};

/// Responses in a test, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 100;

/// Most interim responses to a request.
const MOST_INTERIM: usize = 32;

/// Tries responses at random; `tried` says what was wrong with one to a request of this method. A cache need not take the confirmation of
/// what it has not.
pub fn responses(is_cache: bool, tried: impl Fn(&Responded, &str) -> Vec<String>) {
    let [whole, broken] = [const { Cell::new(0u32) }; 2];
    let methods = prop::sample::select(&["GET", "GET", "HEAD", "POST"][..]);
    proptest!(config(CASES), |(bytes in response_change::responses(), method in methods, stays in any::<bool>())| {
        let case = responded(bytes, method, stays);
        if is_cache && matches!(case.seen, Seen::Whole(304, _)) {
            return Ok(());
        }
        let count = if matches!(case.seen, Seen::Whole(status, _) if status != 502) { &whole } else { &broken };
        count.set(count.get() + 1);
        let wrong = tried(&case, method);
        prop_assert!(wrong.is_empty(), "{}\n{} {method} ends: {}", wrong.join("\n"), case.bytes.escape_ascii(), case.ends);
    });
    let [whole, broken] = [whole.get(), broken.get()];
    println!("{whole} responses were to go on, {broken} were to be refused or broken");
    assert!(whole.min(broken) > (whole + broken) / 10, "the generator makes nothing of either kind");
}

/// Expected view of a client on a response. `stays`: the server keeps its connection, where the end of the response does not need it.
fn responded(bytes: Vec<u8>, method: &str, stays: bool) -> Responded {
    let (mut at, mut interim, mut stays) = (0, 0, stays);
    let seen = loop {
        match take_response(&bytes[at..], method) {
            Ok((101, ..))
            | Err(Ending::Refused { in_body: false, .. } | Ending::Waits { in_body: false }) => {
                break Seen::Whole(502, None);
            }
            Ok((100..=199, _, length)) => {
                (at, interim) = (at + length, interim + 1);
                if interim > MOST_INTERIM {
                    break Seen::Whole(502, None);
                }
            }
            Ok((status, body, _)) => {
                let more = take_response(&[&bytes[at..], b"x"].concat(), method);
                stays &= more.is_ok_and(|more| more.1 == body);
                break Seen::Whole(status, Some(body));
            }
            Err(_) => break Seen::Broken,
        }
    };
    let ends = !(stays && matches!(seen, Seen::Whole(_, Some(_))));
    Responded { name: "at random".into(), method: Some(method.into()), bytes, ends, seen, lacks: Vec::new() }
}
