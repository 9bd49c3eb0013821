//! The corpus of requests that could be read in two ways, through real proxies: what each refuses, rewrites, or passes on as it came, and
//! where its server saw another number of requests. None of it is a failure here: it is reported.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use assay_lab::description::TemplateOrigin as NamedOrigin;
use assay_lab::mode::Mode;
use assay_lab::real_proxy::RealProxy;

use crate::proxies::{choice_before, installed};
use assay_testbed::corpus::ending::Ending;
use assay_testbed::corpus::format::{Case, requests};
use assay_testbed::corpus::recorder::{Record, Recorder};
use assay_testbed::corpus::strict::{Read, response};

const BEGIN: &str = "<!-- Real proxies: written by the tests of the lab crate. -->\n";
const END: &str = "<!-- The end of the real proxies. -->\n";
pub const PROXIES: [&str; 6] = ["varnish", "nginx", "squid", "haproxy", "httpd", "trafficserver"];
/// A connection on which nothing comes for so long has nothing more to say.
const QUIET: Duration = Duration::from_millis(400);
/// Sent behind a case that must leave the connection usable; it ends the connection.
const LAST: &[u8] = b"GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
/// Sent on a connection of its own when a case is over: what it left is at the server by then.
pub const NEXT: &[u8] = b"GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// What must be refused was, and what must go on did.
    AsSaid,
    /// What must go on did not.
    Refused,
    /// What must be refused went on, and leaves no doubt: as other bytes than it came.
    Rewritten,
    /// The server got what a strict reader does not take.
    PassedOn,
    /// The server got other requests than those that are meant.
    Others,
}

/// A case with what became of it.
pub struct Tried {
    rule: String,
    pub must_refuse: bool,
    pub fate: Fate,
    /// Whole requests at the server, and responses of the server at the client.
    requests: usize,
    responses: usize,
    /// The next client got the response to a request that is not its own.
    pub is_mixed_up: bool,
}

impl Tried {
    /// The server saw more whole requests than its client got responses to. That is harmless where the proxy then gives up the
    /// connection to the server; where it does not, another client gets what is left ([`Tried::is_mixed_up`]).
    pub fn is_unanswered(&self) -> bool {
        self.requests > self.responses
    }
}

/// All that comes back, and whether the connection has ended then.
pub fn exchanged(front: SocketAddr, bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(front).unwrap();
    stream.set_read_timeout(Some(QUIET)).unwrap();
    // Whoever has had enough may have closed by now.
    let _ = stream.write_all(bytes);
    let (mut all, mut room) = (Vec::new(), [0; 16 * 1024]);
    let is_ended = loop {
        match stream.read(&mut room) {
            Ok(count @ 1..) => all.extend(&room[..count]),
            Ok(0) => break true,
            Err(error) => break error.kind() == ErrorKind::ConnectionReset,
        }
    };
    let _ = stream.shutdown(Shutdown::Both);
    (all, is_ended)
}

/// How many final responses of the server are among what came back.
fn responses(mut bytes: &[u8], case: &Case) -> usize {
    let mut methods = case.passes.iter().map(|pass| pass.method.as_str());
    let (mut count, mut method) = (0, methods.next().unwrap_or("GET"));
    while let Read::Whole(message) = response(bytes, method, true) {
        bytes = &bytes[message.length..];
        if !message.start[1].starts_with('1') {
            method = methods.next().unwrap_or("GET");
            count += usize::from(message.values("x-seen").next().is_some());
        }
        if bytes.is_empty() {
            break;
        }
    }
    count
}

/// What the server got, for those who look into it (`--nocapture`).
pub fn described(record: &Record) -> String {
    match record {
        Record::Message(message) => message.start.join(" "),
        Record::Partial(bytes) => format!("partly: {:.120}", bytes.escape_ascii().to_string()),
        Record::Bad(what, bytes) => format!("{what}: {:.200}", bytes.escape_ascii().to_string()),
    }
}

fn tried(front: SocketAddr, recorder: &Recorder, case: &Case) -> Tried {
    let is_open = case.end == Ending::Open;
    let bytes = [&case.bytes[..], if is_open { LAST } else { &[] }].concat();
    let (came, _) = exchanged(front, &bytes);
    let (next, _) = exchanged(front, NEXT);
    let records = recorder.take();
    let each = records.iter().filter_map(|record| match record {
        Record::Message(message) if message.start[1] != "/next" => Some(message),
        _ => None,
    });
    let whole: Vec<_> = each.collect();
    let must_refuse = !is_open && case.end != Ending::Closes;
    let meant = case.passes.len() + usize::from(is_open);
    let is_meant = whole.iter().zip(&case.passes).all(|(message, pass)| {
        (&message.start[0], &message.start[1], &message.body) == (&pass.method, &pass.target, &pass.body)
    });
    let fate = match whole.len() {
        _ if records.iter().any(|record| matches!(record, Record::Bad(..))) => Fate::PassedOn,
        count if count == meant && is_meant => Fate::AsSaid,
        count if count < meant => Fate::Refused,
        _ if must_refuse => Fate::Rewritten,
        _ => Fate::Others,
    };
    let (requests, responses) = (whole.len(), responses(&came, case));
    let is_mixed_up = is_of_another(&next);
    if fate != Fate::AsSaid || requests > responses || is_mixed_up {
        let seen: Vec<String> = records.iter().map(described).collect();
        println!(
            "{fate:?} {responses} {is_mixed_up} {}: {:.120} => {}",
            case.name(),
            case.bytes.escape_ascii().to_string(),
            seen.join(" | ")
        );
    }
    Tried {
        rule: format!("{}: {}", case.group, case.rule),
        must_refuse,
        fate,
        requests,
        responses,
        is_mixed_up,
    }
}

/// The response of the server that came to the next client is not the one to its request.
pub fn is_of_another(came: &[u8]) -> bool {
    let Read::Whole(message) = response(came, "GET", true) else { return false };
    let mut seen = message.values("x-seen").map(String::from_utf8_lossy);
    seen.any(|seen| !seen.contains("/next"))
}

/// The cases through a proxy; none where it is not installed.
pub async fn through(name: &str, cases: Vec<Case>) -> Option<(String, Vec<Tried>)> {
    let description = installed(name)?;
    let version = assay_lab::real_proxy::version(&description).await.unwrap();
    let recorder = Recorder::start();
    let keep = tempfile::tempdir().unwrap();
    let origins = vec![NamedOrigin::new(0, "a", recorder.address)];
    let choice = choice_before(description, Mode::Reverse, origins, keep.path());
    let front = choice.listen;
    let mut proxy = RealProxy::start(choice).await.unwrap();
    proxy.wait_ready().await.unwrap();
    let all = tokio::task::spawn_blocking(move || {
        recorder.take();
        let all: Vec<Tried> = cases.iter().map(|case| tried(front, &recorder, case)).collect();
        (all, recorder)
    });
    let (all, recorder) = all.await.unwrap();
    proxy.stop(None).await;
    drop(recorder.finish());
    Some((version, all))
}

pub fn count(all: &[Tried], fits: impl Fn(&Tried) -> bool) -> usize {
    all.iter().filter(|tried| fits(tried)).count()
}

/// A line of the table.
fn line(name: &str, version: &str, all: &[Tried]) -> String {
    let of = |must_refuse, fate| count(all, |tried| tried.must_refuse == must_refuse && tried.fate == fate);
    format!(
        "| {name} {version} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        of(true, Fate::AsSaid) + of(true, Fate::Refused),
        of(true, Fate::Rewritten),
        count(all, |tried| tried.fate == Fate::PassedOn),
        of(false, Fate::AsSaid),
        of(false, Fate::Refused),
        of(false, Fate::Others),
        count(all, Tried::is_unanswered),
        count(all, |tried| tried.is_mixed_up),
    )
}

/// The rules of the cases that fit, with how many of each.
fn rules(all: &[Tried], fits: impl Fn(&Tried) -> bool) -> String {
    listed(all.iter().filter(|tried| fits(tried)).map(|tried| tried.rule.as_str()))
}

/// Rules, with how many cases there are of each.
pub fn listed<'a>(rules: impl Iterator<Item = &'a str>) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    rules.for_each(|rule| *counts.entry(rule).or_default() += 1);
    let each = counts.iter().map(|(rule, count)| format!("{rule} ({count})"));
    each.collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn the_harness_sees_that_what_is_passed_on_as_it_came_is_and_counts_requests() {
    // Straight to the server: a proxy that changes nothing.
    let recorder = Recorder::start();
    let cases = requests();
    let of_framing = cases.iter().filter(|case| case.group == "Content-Length" || case.group == "Versions");
    let (front, mut passed_on, mut as_said) = (recorder.address, 0, 0);
    for case in of_framing.take(40) {
        let tried = tried(front, &recorder, case);
        passed_on += usize::from(tried.fate == Fate::PassedOn);
        as_said += usize::from(tried.fate == Fate::AsSaid && !tried.must_refuse);
        assert!(!tried.is_unanswered() && !tried.is_mixed_up, "{}", case.name());
    }
    assert!(passed_on > 10 && as_said > 0, "{passed_on} {as_said}");
    drop(recorder.finish());
}

#[tokio::test]
async fn some_of_the_corpus_goes_through_real_proxies_and_none_hides_a_request() {
    for name in ["nginx", "haproxy"] {
        let mut cases = requests();
        cases.retain(|case| case.group == "Content-Length" || case.group == "Methods");
        let Some((_, all)) = through(name, cases).await else { continue };
        let of =
            |must_refuse| count(&all, |tried| tried.must_refuse == must_refuse && tried.fate == Fate::AsSaid);
        assert!(of(true) > 20 && of(false) > 5, "{name}: {} {}", of(true), of(false));
        assert_eq!(rules(&all, |tried| tried.is_unanswered() || tried.is_mixed_up), "", "{name}");
    }
}

#[tokio::test]
#[ignore = "takes minutes, and needs all six proxies; writes the page with UPDATE_GOLDEN=1"]
async fn the_page_says_what_real_proxies_do_with_the_corpus() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/refused-requests.md");
    let mut text = String::from(
        "\n| proxy | refused | rewritten | passed on as it came | gone on as said | refused, though it must go on | other requests | without a response | another's response |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut findings = String::new();
    // Side by side: most of the time is spent in waiting for connections to be quiet.
    let [varnish, nginx, squid, haproxy, httpd, trafficserver] =
        PROXIES.map(|name| through(name, requests()));
    let (varnish, nginx, squid, haproxy, httpd, trafficserver) =
        tokio::join!(varnish, nginx, squid, haproxy, httpd, trafficserver);
    let all = PROXIES.into_iter().zip([varnish, nginx, squid, haproxy, httpd, trafficserver]);
    for (name, tried) in all {
        let Some((version, all)) = tried else { continue };
        text += &line(name, &version, &all);
        let passed_on = rules(&all, |tried| tried.fate == Fate::PassedOn);
        let others = rules(&all, |tried| tried.fate == Fate::Others);
        let mixed_up = rules(&all, |tried| tried.is_mixed_up);
        for (what, rules) in [
            ("Passed on as it came", passed_on),
            ("Other requests", others),
            ("Another's response", mixed_up),
        ] {
            let rules = if rules.is_empty() { "none".to_owned() } else { rules };
            writeln!(findings, "- {name}, {}: {rules}.", what.to_lowercase()).unwrap();
        }
    }
    between(&path, (BEGIN, END), &[&text, "\n", &findings, "\n"].concat());
}

/// Holds a part of a page, between two marks, against what it must be; with `UPDATE_GOLDEN`, makes it that.
pub fn between(path: &Path, (begin, end): (&str, &str), right: &str) {
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(begin).expect("the page says where the table begins");
    let (found, after) = rest.split_once(end).expect("the page says where the table ends");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, [before, begin, right, end, after].concat()).unwrap();
    } else {
        assert!(found == right, "run it with UPDATE_GOLDEN=1; now it is:\n{right}");
    }
}
