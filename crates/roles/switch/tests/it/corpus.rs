//! The corpus of messages that could be read in two ways, through the switch, between sockets that read strictly.

use std::net::SocketAddr;

use assay_switch::Switch;

use crate::harness::switch;
use assay_testbed::corpus::answered;
use assay_testbed::corpus::derived;
use assay_testbed::corpus::format::{Case, requests};
use assay_testbed::corpus::judge;
use assay_testbed::corpus::recorder::Recorder;
use assay_testbed::corpus::responses::{Responded, responses};

fn before(server: SocketAddr) -> Switch {
    let text = format!("listen = [\"127.0.0.1:0\"]\n[[server]]\naddress = \"{server}\"\n");
    switch(&text)
}

/// What is wrong with a case, at the front or at the back.
fn requested(case: &Case) -> Vec<String> {
    let recorder = Recorder::start();
    let switch = before(recorder.address);
    let front = judge::front(switch.addresses()[0], case);
    drop(switch);
    let back = judge::back(&recorder.finish(), case);
    [front, back].into_iter().filter_map(Result::err).map(|what| format!("{}: {what}", case.name())).collect()
}

/// What is wrong with what a client sees of a response to a request of this method.
fn responded(case: &Responded, method: &str) -> Vec<String> {
    let recorder = judge::misbehaving(case);
    let switch = before(recorder.address);
    let seen = judge::responded(switch.addresses()[0], case, method);
    drop(switch);
    recorder.finish();
    seen.err().map(|what| format!("{} ({method}): {what}", case.name)).into_iter().collect()
}

#[test]
fn no_request_of_the_corpus_comes_out_in_a_way_that_could_be_read_in_two() {
    let cases = requests();
    let wrong: Vec<String> = cases.iter().flat_map(requested).collect();
    assert!(wrong.is_empty(), "{} things in {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn no_response_of_the_corpus_reaches_another_client() {
    let cases = responses();
    let each =
        cases.iter().flat_map(|case| case.methods().into_iter().flat_map(|method| responded(case, method)));
    let wrong: Vec<String> = each.collect();
    assert!(wrong.is_empty(), "{} things in {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn no_request_at_random_is_read_in_two_ways_before_and_behind_the_switch() {
    derived::requests(requested);
}

#[test]
fn no_response_at_random_is_read_in_two_ways_before_and_behind_the_switch() {
    answered::responses(false, responded);
}
