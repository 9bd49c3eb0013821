//! The corpus of requests that could be read in two ways, sent to an origin: it responds to as many as there are, refuses the
//! rest with the right status, and never takes a part of one request for another.

use assay_workload::model::Distribution;

use crate::harness::simple;
use crate::origins::Origins;
use assay_testbed::corpus::derived;
use assay_testbed::corpus::format::requests;
use assay_testbed::corpus::seen;
use assay_testbed::corpus::strict::{self, Message, Read};

/// Nothing of the corpus is an object: 404 is right, and 405 for methods that origins do not know. What is no refusal of the
/// message itself leaves its end beyond doubt.
fn is_response(response: &Message, method: &str, target: &str) -> Result<(), String> {
    match response.start[1].as_str() {
        "404" | "405" => Ok(()),
        status => Err(format!("{method} {target:.60} was answered with {status}")),
    }
}

#[test]
fn no_request_of_the_corpus_is_taken_for_another_by_an_origin() {
    assert!(matches!(strict::request(seen::AFTER), Read::Whole(_)), "it leaves no doubt itself");
    let mut workload = simple();
    workload.servers[0].connection_use_limit = Some(Distribution::Constant(1000.0));
    let origins = Origins::start(&workload);
    let cases = requests();
    let mut wrong = Vec::new();
    for case in &cases {
        let seen = seen::front(origins.listening[0], case, seen::AFTER, is_response);
        wrong.extend(seen.err().map(|what| format!("{}: {what}", case.name())));
    }
    origins.stop();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn no_request_at_random_is_taken_for_another_by_an_origin() {
    let mut workload = simple();
    workload.servers[0].connection_use_limit = Some(Distribution::Constant(1000.0));
    let origins = Origins::start(&workload);
    derived::requests(|case| {
        let seen = seen::front(origins.listening[0], case, seen::AFTER, is_response);
        seen.err().into_iter().collect()
    });
    origins.stop();
}
