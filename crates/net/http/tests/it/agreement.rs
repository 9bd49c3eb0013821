//! This crate and a reader that forgives nothing never disagree about where a message ends.
//!
//! Requests and responses are made at random. Whatever both take for a message must be the same message; what only this crate takes must,
//! written down again, be that message to the other one.

use proptest::prelude::*;

use assay_testbed::corpus::agree::{judge, judge_response};
use assay_testbed::corpus::change::{config, streams};
use assay_testbed::corpus::format::requests;
use assay_testbed::corpus::response_change::responses;

#[test]
fn of_the_corpus_itself_nothing_is_read_in_two_ways() {
    for case in requests() {
        judge(&case.bytes).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
    }
}

#[test]
fn of_changed_requests_nothing_is_read_in_two_ways() {
    proptest!(config(4000), |(bytes in streams())| {
        judge(&bytes).map_err(TestCaseError::fail)?;
    });
}

#[test]
fn of_changed_responses_nothing_is_read_in_two_ways() {
    let methods = prop::sample::select(&["GET", "HEAD", "POST"][..]);
    proptest!(config(4000), |(bytes in responses(), method in methods)| {
        judge_response(&bytes, method).map_err(TestCaseError::fail)?;
    });
}
