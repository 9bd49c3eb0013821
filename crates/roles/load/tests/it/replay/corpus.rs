//! The corpus of requests that could be read in two ways, and requests at random, sent to the simulated origins of a replay: they
//! respond to as many as there are, refuse the rest with the right status, and never take a part of one request for another.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use assay_load::replay::{OriginListener, OriginServer, RequestSource, SimulatedOrigins};

use crate::replay::harness::{combined, log};
use assay_testbed::corpus::derived;
use assay_testbed::corpus::format::{Case, requests};
use assay_testbed::corpus::seen;
use assay_testbed::corpus::strict::{self, Message, Read};

/// What is in no log is served too; 405 is right for other methods than GET and HEAD, and for a body. What is no refusal of the message
/// itself leaves its end beyond doubt.
fn is_response(response: &Message, method: &str, target: &str) -> Result<(), String> {
    match response.start[1].as_str() {
        "200" | "405" => Ok(()),
        status => Err(format!("{method} {target:.60} was answered with {status}")),
    }
}

/// What is wrong with what the sender of a case sees.
fn wrong(origin: SocketAddr, case: &Case) -> Vec<String> {
    let seen = seen::front(origin, case, seen::AFTER, is_response);
    seen.err().map(|what| format!("{}: {what}", case.name())).into_iter().collect()
}

/// Origins of a log of one line.
fn origins() -> OriginServer {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("access.log");
    std::fs::write(&file, combined(1, 1, "GET /x HTTP/1.1")).unwrap();
    let catalogue = RequestSource::Log(log(vec![file])).survey().unwrap();
    let simulated = Arc::new(SimulatedOrigins::new(catalogue, Duration::from_secs(60), Duration::ZERO));
    OriginServer::start(
        vec![OriginListener { listen: "127.0.0.1:0".parse().unwrap(), host: None }],
        simulated,
    )
    .unwrap()
}

#[test]
fn no_request_of_the_corpus_is_taken_for_another_by_a_simulated_origin() {
    assert!(matches!(strict::request(seen::AFTER), Read::Whole(_)), "it leaves no doubt itself");
    let origins = origins();
    let cases = requests();
    let wrong: Vec<String> = cases.iter().flat_map(|case| wrong(origins.addresses()[0], case)).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn no_request_at_random_is_taken_for_another_by_a_simulated_origin() {
    let origins = origins();
    derived::requests(|case| wrong(origins.addresses()[0], case));
}
