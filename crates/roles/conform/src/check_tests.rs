//! Steps held against observations that were made up.

use super::*;
use crate::case::{Case, Level};
use crate::observe::Received;

fn case(steps: &str) -> Case {
    let text = format!(
        "topic = \"t\"\n[[case]]\nname = \"c\"\nlevel = \"MUST\"\nsection = \"s\"\nrule = \"r.\"\nsteps = [{steps}]\n"
    );
    crate::read::read("t.toml", &text).unwrap().cases.remove(0)
}

fn values() -> Values {
    Values { token: "assay-0000000001".into(), host: "h".into(), scheme: "http", now_unix_s: 0 }
}

fn response(text: &str) -> Message {
    let (mut message, length) = Message::head(text.as_bytes()).unwrap();
    let framing = message.response_framing("GET");
    message.take_body(&text.as_bytes()[length..], framing, true).unwrap();
    message
}

/// A response that came at 10 ms, and requests that the origin responded to at the times given.
fn seen(text: &str, arrivals: &[(f64, &str)]) -> Observation {
    let arrival = |(at, request): &(f64, &str)| Arrival {
        request: Message::head(request.as_bytes()).unwrap().0,
        bytes: request.as_bytes().to_vec(),
        at_ms: *at,
        responded_ms: Some(*at),
        status: 200,
    };
    let response = (!text.is_empty()).then(|| response(text));
    let received =
        Received { response, bytes: text.as_bytes().to_vec(), head_ms: 10.0, ..Received::default() };
    Observation {
        received: vec![received],
        arrivals: arrivals.iter().map(arrival).collect(),
        origin_body: b"abc".to_vec(),
        ..Observation::default()
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nAge: 7\r\nX-Step: 1\r\n\r\nabc";
const GET: &str = "GET /assay-0000000001 HTTP/1.1\r\nHost: h\r\n\r\n";

fn found(expect: &str, observation: Observation) -> Finding {
    let case = case(&format!("{{ expect = {{ {expect} }} }}"));
    assert_eq!(case.level, Level::Must);
    check(&case.steps[0], 0, &[observation], &values())
}

fn is_met(expect: &str, observation: Observation) -> bool {
    match found(expect, observation) {
        Finding::Met => true,
        Finding::Unmet(_) | Finding::Fetched(_) | Finding::Absent(_) => false,
        Finding::Refused(why) | Finding::Inconclusive(why) => panic!("nothing was found: {why}"),
    }
}

#[test]
fn a_response_comes_from_the_store_if_the_origin_sent_nothing_before_it() {
    assert!(is_met("served = \"store\"", seen(OK, &[])));
    assert!(is_met("served = \"store\"", seen(OK, &[(20.0, GET)])), "a background fetch comes later");
    assert!(!is_met("served = \"store\"", seen(OK, &[(5.0, GET)])));
    assert!(is_met("served = \"origin\"", seen(OK, &[(5.0, GET)])));
    assert!(!is_met("served = \"origin\"", seen(OK, &[])));
}

#[test]
fn a_validation_is_a_request_with_a_condition() {
    let conditional = "GET / HTTP/1.1\r\nIf-None-Match: \"v1\"\r\n\r\n";
    assert!(is_met("served = \"validated\"", seen(OK, &[(5.0, conditional)])));
    assert!(!is_met("served = \"validated\"", seen(OK, &[(5.0, GET)])));
    assert!(!is_met("served = \"fetched\"", seen(OK, &[(5.0, conditional)])));
}

#[test]
fn an_error_of_the_target_itself_says_nothing_about_its_store() {
    let error = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
    assert!(matches!(found("served = \"store\"", seen(error, &[])), Finding::Inconclusive(_)));
    assert!(matches!(found("served = \"origin\"", seen(error, &[])), Finding::Inconclusive(_)));
    assert!(matches!(found("status = 200", seen("", &[])), Finding::Inconclusive(_)));
}

#[test]
fn an_error_in_place_of_the_origins_response_decides_nothing() {
    let error = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let observed = || seen(error, &[(5.0, GET)]);
    for expect in
        ["served = \"origin\"", "served = \"store\"", "from = 1", "fields = [\"Age\"]", "body = \"abc\""]
    {
        assert!(matches!(found(expect, observed()), Finding::Inconclusive(_)), "{expect}");
    }
    assert!(is_met("status = 503", observed()), "a case may be about it");
    assert!(!is_met("status = 200", observed()));
    assert!(is_met("not-status = 200", observed()));
    let marked = error.replace("Content-Length", "X-Step: 1\r\nContent-Length");
    assert!(is_met("served = \"origin\"", seen(&marked, &[(5.0, GET)])), "the origin made it");
    let mut failed = observed();
    failed.arrivals[0].status = 500;
    assert!(is_met("served = \"origin\"", failed), "the origin failed");
    let mut partial = observed();
    partial.arrivals[0].status = 206;
    assert!(is_met("served = \"origin\"", partial), "the part may be wrong");
    let first = |origin: &str| {
        let case = case(&format!("{{ {origin} }}, {{ expect = {{ status = 200 }} }}"));
        check(&case.steps[0], 0, &[observed()], &values())
    };
    assert!(matches!(first(""), Finding::Inconclusive(_)), "what follows would rest on it");
    assert_eq!(first("origin = { cut = 1 }"), Finding::Met, "it is right to fail");
}

#[test]
fn a_mark_that_a_304_has_replaced_decides_nothing() {
    let head = |mark: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Step: {mark}\r\n\r\n");
    let observed = |mark, status| {
        let mut first = seen(OK, &[(5.0, GET)]);
        let mut validated = seen(OK, &[(5.0, "GET / HTTP/1.1\r\nIf-None-Match: \"v1\"\r\n\r\n")]);
        validated.arrivals[0].status = status;
        first.origin_body = b"abc".to_vec();
        validated.origin_body = b"def".to_vec();
        let mut last = seen("", &[]);
        let (message, _) = Message::head(head(mark).as_bytes()).unwrap();
        last.received[0].response = Some(Message { is_complete: true, ..message });
        [first, validated, last]
    };
    let case = case("{}, {}, { method = \"HEAD\", expect = { from = 1 } }");
    let found = |mark, status| check(&case.steps[2], 2, &observed(mark, status), &values());
    assert_eq!(found(1, 304), Finding::Met);
    assert!(matches!(found(2, 304), Finding::Inconclusive(_)));
    assert!(matches!(found(2, 200), Finding::Unmet(_)));
}

#[test]
fn fields_are_compared_as_lists_and_as_numbers() {
    for (expect, is_so) in [
        ("fields = [\"Age\"]", true),
        ("fields = [\"age: 7\"]", true),
        ("fields = [\"Age: 8\"]", false),
        ("fields = [\"Age >= 7\", \"Age <= 7\"]", true),
        ("fields = [\"Age >= 8\"]", false),
        ("not-fields = [\"Age\"]", false),
        ("not-fields = [\"Warning\"]", true),
        ("fields = [\"Content-Length ~ 3\"]", true),
    ] {
        assert_eq!(is_met(expect, seen(OK, &[])), is_so, "{expect}");
    }
}

#[test]
fn the_case_of_names_and_spaces_before_parameters_do_not_hide_what_must_not_be_there() {
    let request = "POST /assay-0000000001 HTTP/1.1\r\ncontent-length: 15\r\n\r\n";
    assert!(!is_met("never = \"Content-Length: 15\"", seen(OK, &[(5.0, request)])));
    assert!(!is_met("body-lacks = \"x-step: 1\"", seen(OK, &[])));
    for line in ["a; hit", "a;hit", "a;x=y;  hit"].map(|value| format!("Cache-Status: {value}")) {
        let hit = OK.replace("Age: 7", &line);
        assert!(is_met("fields = [\"Cache-Status ~ ; hit\"]", seen(&hit, &[])), "{line}");
    }
    assert!(!is_met(
        "fields = [\"Cache-Status ~ ; hit\"]",
        seen(&OK.replace("Age: 7", "Cache-Status: white"), &[])
    ));
}

#[test]
fn what_the_origin_got_is_looked_at_even_without_a_response() {
    assert!(is_met("forwarded = [\"Host: h\"]", seen("", &[(5.0, GET)])));
    assert!(!is_met("not-forwarded = [\"Host\"]", seen(OK, &[(5.0, GET)])));
    assert!(is_met("target = \"{url}\", method = \"GET\"", seen(OK, &[(5.0, GET)])));
    assert!(!is_met("never = \"{token}\"", seen(OK, &[(5.0, GET)])));
    assert!(!is_met("most-requests = 0", seen(OK, &[(5.0, GET)])));
    assert!(matches!(found("forwarded = [\"Host\"]", seen(OK, &[])), Finding::Inconclusive(_)));
}

#[test]
fn a_request_is_refused_if_nothing_reaches_the_origin() {
    let refusal = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    assert!(is_met("refused = true", seen(refusal, &[])));
    assert!(!is_met("refused = true", seen(refusal, &[(5.0, GET)])));
    assert!(!is_met("refused = true", seen(OK, &[])));
    assert!(matches!(found("refused = true", seen("", &[])), Finding::Inconclusive(_)), "it hangs");
}

#[test]
fn a_body_that_breaks_off_does_not_pass_for_a_whole_one() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
    assert!(is_met("incomplete = true", seen(cut, &[])));
    assert!(!is_met("incomplete = true", seen(OK, &[])));
    assert!(!is_met("status = 200", seen(cut, &[])));
}

#[test]
fn a_body_is_recognised_by_the_step_that_it_was_made_in() {
    let case = case("{}, { expect = { from = 1 } }, { expect = { not-from = 1 } }");
    let emptied = OK.replace("Content-Length: 3", "Content-Length: 0").replace("abc", "");
    let found = check(&case.steps[1], 1, &[seen(OK, &[]), seen(&emptied, &[])], &values());
    assert!(matches!(found, Finding::Unmet(_)), "a 200 without the body is not that of step 1: {found:?}");
    let other = Observation { origin_body: b"xyz".to_vec(), ..seen(OK, &[]) };
    let all = [seen(OK, &[]), other.clone(), other];
    assert_eq!(check(&case.steps[1], 1, &all, &values()), Finding::Met);
    assert_eq!(
        check(&case.steps[2], 2, &all, &values()),
        Finding::Unmet("the response is the one of step 1".into())
    );
}
