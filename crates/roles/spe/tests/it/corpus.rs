//! The corpus of messages that could be read in two ways, and messages at random, through the Multiplier and to the Collector, between
//! sockets that read strictly.

use std::net::SocketAddr;

use assay_spe::spec::CollectorSpec;

use crate::absolute;
use crate::collector_harness::spec;
use crate::threads::{collector, collector_of, multiplier};
use assay_testbed::corpus::answered;
use assay_testbed::corpus::client::Client;
use assay_testbed::corpus::derived;
use assay_testbed::corpus::ending::Ending;
use assay_testbed::corpus::format::{Case, requests};
use assay_testbed::corpus::judge;
use assay_testbed::corpus::recorder::{Record, Recorder};
use assay_testbed::corpus::responses::{Responded, responses};
use assay_testbed::corpus::seen;

/// What is wrong with the front (each one) and with what came out at the back of it.
fn wrong(case: &Case, fronts: Vec<Result<(), String>>, backs: &[Vec<Record>]) -> Vec<String> {
    let backs = backs.iter().map(|records| judge::back(records, case));
    let all = fronts.into_iter().chain(backs).filter_map(Result::err);
    all.map(|what| format!("{}: {what}", case.name())).collect()
}

/// By way of the Collector. Its second listener is a proxy's, and gets what was recorded.
fn collected(case: &Case) -> Vec<String> {
    let origin = Recorder::start();
    let collector = collector(origin.address);
    let fronts = collector.addresses.iter().map(|front| judge::front(*front, case)).collect();
    collector.end();
    wrong(case, fronts, &[origin.finish()])
}

/// By way of the Multiplier, in front of an origin.
fn multiplied(case: &Case) -> Vec<String> {
    let (collector, proxy) = (Recorder::start(), Recorder::start());
    let multiplier = multiplier(&collector, &proxy, |_| {});
    let front = judge::front(multiplier.addresses[0], case);
    multiplier.end();
    wrong(case, vec![front], &[collector.finish(), proxy.finish()])
}

/// By way of the Multiplier as a forward proxy: the same, with whole URLs.
fn forwarded(case: &Case) -> Vec<String> {
    let case = Case { bytes: absolute::requests(&case.bytes), ..case.clone() };
    let (collector, proxy) = (absolute::recorder(), absolute::recorder());
    let multiplier = multiplier(&collector, &proxy, |spec| spec.forward = true);
    let front = seen::front(multiplier.addresses[0], &case, absolute::AFTER, judge::is_response_to);
    multiplier.end();
    let backs = [collector, proxy].map(|recorder| absolute::in_origin_form(recorder.finish()));
    wrong(&case, vec![front], &backs)
}

/// What is wrong with what clients see of a response.
fn seen_at(fronts: &[SocketAddr], case: &Responded, method: &str) -> Vec<String> {
    let each = fronts.iter().map(|front| judge::responded(*front, case, method));
    each.filter_map(Result::err).map(|what| format!("{} ({method}): {what}", case.name)).collect()
}

/// A response of an origin to the Collector.
fn collected_response(case: &Responded, method: &str) -> Vec<String> {
    let origin = judge::misbehaving(case);
    let collector = collector(origin.address);
    let wrong = seen_at(&collector.addresses, case, method);
    collector.end();
    origin.finish();
    wrong
}

/// A response of the Collector to the Multiplier.
fn multiplied_response(case: &Responded, method: &str) -> Vec<String> {
    let (collector, proxy) = (judge::misbehaving(case), Recorder::start());
    let multiplier = multiplier(&collector, &proxy, |_| {});
    let wrong = seen_at(&multiplier.addresses, case, method);
    multiplier.end();
    collector.finish();
    proxy.finish();
    wrong
}

/// A response of a proxy under test, which no client must see anything of.
fn ignored_response(case: &Responded) -> Vec<String> {
    let (collector, proxy) = (Recorder::start(), judge::misbehaving(case));
    // Some of them never end.
    let multiplier = multiplier(&collector, &proxy, |spec| spec.response_timeout_ms = 100);
    let mut client = Client::connect(multiplier.addresses[0]);
    let mut wrong = Vec::new();
    for path in ["/x", "/after"] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        let response = client.response("GET").ok().flatten();
        let is_right = response.as_ref().is_some_and(|response| response.body == b"ok");
        wrong.extend((!is_right).then(|| format!("{}: {path}: {response:?}", case.name)));
    }
    drop(client);
    multiplier.end();
    collector.finish();
    proxy.finish();
    wrong
}

fn none(cases: usize, wrong: &[String]) {
    assert!(wrong.is_empty(), "{} things in {cases} cases:\n{}", wrong.len(), wrong.join("\n"));
}

fn of_the_corpus(fits: impl Fn(&Case) -> bool, tried: impl Fn(&Case) -> Vec<String>) {
    let mut cases = requests();
    cases.retain(fits);
    none(cases.len(), &cases.iter().flat_map(tried).collect::<Vec<_>>());
}

/// The Multiplier speaks HTTP/2 to whoever begins with it.
fn is_http1(case: &Case) -> bool {
    !case.name().contains("the first bytes of HTTP/2")
}

/// A forward proxy serves tunnels.
fn is_no_tunnel(case: &Case) -> bool {
    is_http1(case) && !case.bytes.starts_with(b"CONNECT ")
}

#[test]
fn no_request_of_the_corpus_comes_out_of_the_collector_in_a_way_that_could_be_read_in_two() {
    of_the_corpus(|_| true, collected);
}

#[test]
fn no_request_of_the_corpus_comes_out_of_the_multiplier_in_a_way_that_could_be_read_in_two() {
    of_the_corpus(is_http1, multiplied);
}

#[test]
fn no_request_of_the_corpus_comes_out_of_a_forward_multiplier_in_a_way_that_could_be_read_in_two() {
    of_the_corpus(is_no_tunnel, forwarded);
}

/// What follows the head of one belongs to the tunnel: with a length, somebody could take it for a body.
#[test]
fn a_tunnel_with_a_body_or_to_no_host_is_refused_by_a_forward_multiplier_and_by_the_collector() {
    let origin = Recorder::start();
    let open = CollectorSpec { origins: Vec::new(), default_origin: None, ..spec(origin.address, 1) };
    let collector = collector_of(open);
    let proxy = Recorder::start();
    let multiplier = multiplier(&origin, &proxy, |spec| spec.forward = true);
    let to =
        |target: &str, rest: &str| format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n{rest}").into_bytes();
    let place = origin.address.to_string();
    let mut cases = ["/x", "http://a/x", "u@a:80", "a:b", ""].map(|target| to(target, "\r\n")).to_vec();
    for rest in [
        "Content-Length: 3\r\n\r\nabc",
        "Content-Length: 0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        cases.push(to(&place, rest));
    }
    let end = Ending::Refused { status: 400, in_body: false };
    let case =
        |bytes: &Vec<u8>| Case { rule: "a tunnel".into(), bytes: bytes.clone(), end, ..Case::default() };
    let fronts = [&collector.addresses[..], &multiplier.addresses].concat();
    let mut wrong = Vec::new();
    for (front, bytes) in fronts.iter().flat_map(|front| cases.iter().map(move |bytes| (front, bytes))) {
        let seen = judge::front(*front, &case(bytes));
        wrong.extend(seen.err().map(|what| format!("{}: {what}", bytes.escape_ascii())));
    }
    collector.end();
    multiplier.end();
    assert_eq!((origin.finish().len(), proxy.finish().len()), (0, 0));
    none(cases.len(), &wrong);
}

#[test]
fn no_response_of_the_corpus_reaches_another_client_of_the_collector_or_of_the_multiplier() {
    let cases = responses();
    let tried = |case: &Responded, method: &str| {
        [collected_response(case, method), multiplied_response(case, method)].concat()
    };
    let each =
        cases.iter().flat_map(|case| case.methods().into_iter().map(move |method| tried(case, method)));
    none(cases.len(), &each.flatten().collect::<Vec<_>>());
}

#[test]
fn no_response_of_a_proxy_under_test_reaches_a_client_of_the_multiplier() {
    let cases = responses();
    none(cases.len(), &cases.iter().flat_map(ignored_response).collect::<Vec<_>>());
}

#[test]
fn no_request_at_random_is_read_in_two_ways_before_and_behind_the_collector() {
    derived::requests(collected);
}

#[test]
fn no_request_at_random_is_read_in_two_ways_before_and_behind_the_multiplier() {
    derived::requests(multiplied);
}

#[test]
fn no_request_at_random_is_read_in_two_ways_before_and_behind_a_forward_multiplier() {
    derived::requests(forwarded);
}

#[test]
fn no_response_at_random_is_read_in_two_ways_before_and_behind_the_collector() {
    answered::responses(true, collected_response);
}

#[test]
fn no_response_at_random_is_read_in_two_ways_before_and_behind_the_multiplier() {
    answered::responses(false, multiplied_response);
}

#[test]
fn no_response_at_random_of_a_proxy_under_test_reaches_a_client_of_the_multiplier() {
    answered::responses(false, |case, _| ignored_response(case));
}
