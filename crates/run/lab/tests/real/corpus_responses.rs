//! The corpus of responses that could be read in two ways, through real proxies: what their clients get of each. None of it is a failure
//! here: it is reported.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use assay_lab::description::TemplateOrigin as NamedOrigin;
use assay_lab::mode::Mode;
use assay_lab::real_proxy::RealProxy;

use crate::corpus::{NEXT, PROXIES, between, exchanged, is_of_another, listed};
use crate::proxies::{choice_before, installed};
use assay_testbed::corpus::recorder::{Recorder, response_to};
use assay_testbed::corpus::responses::{Responded, Seen, responses};
use assay_testbed::corpus::strict::{Read, response};

const BEGIN: &str = "<!-- Responses through real proxies: written by the tests of the lab crate. -->\n";
const END: &str = "<!-- The end of the responses through real proxies. -->\n";

/// What a client got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// What the rule says: the response, or an error, or something that is seen not to be whole.
    AsSaid,
    /// A whole response, where there must be none.
    Taken,
    /// Bytes that a strict reader does not take for a response.
    PassedOn,
    /// An error, or nothing, where the response must go on.
    Refused,
    /// Another status or body than the server's.
    Other,
}

/// A case with what became of it.
struct Tried {
    rule: String,
    must_refuse: bool,
    fate: Fate,
    /// The next client got what is not the response to its request.
    is_mixed_up: bool,
}

/// What the server responds to the case that is being tried.
#[derive(Clone, Default)]
struct Current(Arc<Mutex<(Vec<u8>, bool)>>);

impl Current {
    /// A server that responds to requests for `/x` and below as the case says, and to all others correctly.
    fn recorder(&self) -> Recorder {
        let current = self.clone();
        Recorder::responding(move |message, _| match message.start[1].starts_with("/x") {
            true => current.0.lock().unwrap().clone(),
            false => (response_to(message), false),
        })
    }

    fn set(&self, case: &Responded) {
        *self.0.lock().unwrap() = (case.bytes.clone(), case.ends);
    }
}

/// The final response among what came, as a strict client reads it.
fn last((bytes, is_ended): &(Vec<u8>, bool), method: &str) -> Read {
    let mut bytes = bytes.as_slice();
    loop {
        match response(bytes, method, *is_ended) {
            Read::Whole(message) if message.start[1].starts_with('1') => bytes = &bytes[message.length..],
            read => return read,
        }
    }
}

fn fate(case: &Responded, came: &(Vec<u8>, bool), method: &str) -> Fate {
    let is_error = |status: &str| status.starts_with('5');
    match (&case.seen, last(came, method)) {
        (_, Read::Bad(_)) => Fate::PassedOn,
        (Seen::Broken | Seen::Whole(502, _), Read::Partial) => Fate::AsSaid,
        (Seen::Broken | Seen::Whole(502, _), Read::Whole(message)) if is_error(&message.start[1]) => {
            Fate::AsSaid
        }
        (Seen::Broken | Seen::Whole(502, _), Read::Whole(_)) => Fate::Taken,
        (Seen::Whole(..), Read::Partial) => Fate::Refused,
        (Seen::Whole(status, body), Read::Whole(message)) => {
            let is_same = message.start[1] == status.to_string();
            let is_whole = body.as_ref().is_none_or(|body| *body == message.body);
            match is_same && is_whole {
                true => Fate::AsSaid,
                false if !is_same && is_error(&message.start[1]) => Fate::Refused,
                false => Fate::Other,
            }
        }
    }
}

fn tried(front: SocketAddr, current: &Current, (number, case): (usize, &Responded), method: &str) -> Tried {
    current.set(case);
    // Each has a URL of its own: a response that may be stored must not be the next one's.
    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
    let request = format!("{method} /x/{number}/{method} HTTP/1.1\r\nHost: a\r\n{length}\r\n");
    let came = exchanged(front, request.as_bytes());
    let fate = fate(case, &came, method);
    let is_mixed_up = is_of_another(&exchanged(front, NEXT).0);
    if fate != Fate::AsSaid || is_mixed_up {
        let [sent, came] = [&case.bytes, &came.0].map(|bytes| bytes.escape_ascii().to_string());
        println!("{fate:?} {is_mixed_up} {method} {}: {sent:.200} => {came:.300}", case.name);
    }
    let must_refuse = matches!(case.seen, Seen::Broken | Seen::Whole(502, _));
    // A variant stands in brackets behind its rule.
    let rule = case.name.split(" [").next().unwrap_or(&case.name).to_owned();
    Tried { rule, must_refuse, fate, is_mixed_up }
}

fn all(front: SocketAddr, current: &Current, cases: &[Responded]) -> Vec<Tried> {
    let each = cases.iter().enumerate();
    each.flat_map(|(number, case)| {
        case.methods().into_iter().map(move |method| tried(front, current, (number, case), method))
    })
    .collect()
}

/// The cases through a proxy; none where it is not installed.
async fn through(name: &str, cases: Vec<Responded>) -> Option<(String, Vec<Tried>)> {
    let description = installed(name)?;
    let version = assay_lab::real_proxy::version(&description).await.unwrap();
    let current = Current::default();
    let recorder = current.recorder();
    let keep = tempfile::tempdir().unwrap();
    let origins = vec![NamedOrigin::new(0, "a", recorder.address)];
    let choice = choice_before(description, Mode::Reverse, origins, keep.path());
    let front = choice.listen;
    let mut proxy = RealProxy::start(choice).await.unwrap();
    proxy.wait_ready().await.unwrap();
    let tried = tokio::task::spawn_blocking(move || all(front, &current, &cases)).await.unwrap();
    proxy.stop(None).await;
    drop(recorder.finish());
    Some((version, tried))
}

fn count(all: &[Tried], fits: impl Fn(&Tried) -> bool) -> usize {
    all.iter().filter(|tried| fits(tried)).count()
}

/// A line of the table.
fn line(name: &str, version: &str, all: &[Tried]) -> String {
    let of = |must_refuse, fate| count(all, |tried| tried.must_refuse == must_refuse && tried.fate == fate);
    format!(
        "| {name} {version} | {} | {} | {} | {} | {} | {} | {} |\n",
        of(true, Fate::AsSaid),
        of(true, Fate::Taken),
        count(all, |tried| tried.fate == Fate::PassedOn),
        of(false, Fate::AsSaid),
        of(false, Fate::Refused),
        of(false, Fate::Other),
        count(all, |tried| tried.is_mixed_up),
    )
}

#[test]
fn the_harness_sees_what_is_passed_on_as_it_came_and_what_is_taken() {
    // Straight to the server: a proxy that changes nothing.
    let current = Current::default();
    let recorder = current.recorder();
    let cases: Vec<Responded> = responses().into_iter().step_by(5).collect();
    let tried = all(recorder.address, &current, &cases);
    let of =
        |must_refuse, fate| count(&tried, |tried| tried.must_refuse == must_refuse && tried.fate == fate);
    assert!(of(true, Fate::PassedOn) > 3, "{}", of(true, Fate::PassedOn));
    assert!(of(false, Fate::AsSaid) > 3, "{}", of(false, Fate::AsSaid));
    assert_eq!(count(&tried, |tried| tried.is_mixed_up), 0);
    drop(recorder.finish());
}

#[tokio::test]
async fn some_responses_of_the_corpus_go_through_a_real_proxy_and_no_client_gets_anothers() {
    let mut cases = responses();
    cases.retain(|case| case.name.contains("length"));
    let Some((_, tried)) = through("haproxy", cases).await else { return };
    assert!(count(&tried, |tried| tried.must_refuse && tried.fate == Fate::AsSaid) > 10);
    assert_eq!(count(&tried, |tried| tried.is_mixed_up), 0);
}

#[tokio::test]
#[ignore = "takes minutes, and needs all six proxies; writes the page with UPDATE_GOLDEN=1"]
async fn the_page_says_what_real_proxies_do_with_responses_of_the_corpus() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/refused-requests.md");
    let mut text = String::from(
        "\n| proxy | refused or cut | taken | passed on as it came | gone on as said | refused, though it must go on | other responses | another's response |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut findings = String::new();
    // Side by side: most of the time is spent in waiting for connections to be quiet.
    let [varnish, nginx, squid, haproxy, httpd, trafficserver] =
        PROXIES.map(|name| through(name, responses()));
    let (varnish, nginx, squid, haproxy, httpd, trafficserver) =
        tokio::join!(varnish, nginx, squid, haproxy, httpd, trafficserver);
    let every = PROXIES.into_iter().zip([varnish, nginx, squid, haproxy, httpd, trafficserver]);
    for (name, found) in every {
        let Some((version, tried)) = found else { continue };
        text += &line(name, &version, &tried);
        let rules = |fits: &dyn Fn(&Tried) -> bool| {
            listed(tried.iter().filter(|tried| fits(tried)).map(|tried| tried.rule.as_str()))
        };
        for (what, rules) in [
            ("taken", rules(&|tried| tried.must_refuse && tried.fate == Fate::Taken)),
            ("passed on as it came", rules(&|tried| tried.fate == Fate::PassedOn)),
            ("other responses", rules(&|tried| tried.fate == Fate::Other)),
            ("another's response", rules(&|tried| tried.is_mixed_up)),
        ] {
            let rules = if rules.is_empty() { "none".to_owned() } else { rules };
            writeln!(findings, "- {name}, {what}: {rules}.").unwrap();
        }
    }
    between(&path, (BEGIN, END), &[&text, "\n", &findings, "\n"].concat());
}
