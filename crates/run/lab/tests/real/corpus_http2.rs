//! The requests of the corpus over HTTP/2, through the real proxies that speak it: what each refuses, and what their server gets over HTTP/1.1.
//! None of it is a failure here: it is reported.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_conform::http2::connection::{Connection, Http2Content};
use assay_conform::http2::frame::{Field, block};
use assay_conform::observe::Received;
use assay_conform::transport::{Endpoint, Tls};
use assay_lab::ProxyTls;
use assay_lab::description::{Http2Support, TemplateOrigin as NamedOrigin};
use assay_lab::mode::Mode;
use assay_lab::real_proxy::RealProxy;
use assay_net::tls::authority::{Authority, KeyKind, Validity};
use tokio::time::Instant;

use crate::corpus::{between, described, listed};
use crate::proxies::{choice_before, installed};
use crate::translated::Translated;
use assay_testbed::corpus::format::{Case, requests};
use assay_testbed::corpus::recorder::{Record, Recorder};

const BEGIN: &str = "<!-- HTTP/2 through real proxies: written by the tests of the lab crate. -->\n";
const END: &str = "<!-- The end of HTTP/2 through real proxies. -->\n";
/// Those of the six that speak HTTP/2 with clients.
const PROXIES: [&str; 5] = ["varnish", "nginx", "haproxy", "httpd", "trafficserver"];
/// How long a request may take that gets no response and no refusal.
const PATIENCE: Duration = Duration::from_secs(2);
/// What a frame may hold that nothing was agreed for.
const FRAME_BYTES: usize = 16_384;

impl Translated {
    /// A plain request for a path.
    fn get(path: &str) -> Self {
        let authority = Some(b"a".to_vec());
        Self { method: b"GET".into(), path: path.into(), authority, regular: Vec::new(), body: Vec::new() }
    }

    /// All fields, those of HTTP/2 first.
    fn fields(&self, scheme: &str) -> Vec<Field> {
        let named = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
        let mut fields = vec![
            named(":method", &self.method),
            named(":scheme", scheme.as_bytes()),
            named(":path", &self.path),
        ];
        fields.extend(self.authority.as_ref().map(|authority| named(":authority", authority)));
        fields.extend(self.regular.iter().cloned());
        fields
    }

    /// The body, if there is one; else the head ends the stream.
    fn data(&self) -> Option<Vec<u8>> {
        (!self.body.is_empty()).then(|| self.body.clone())
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The server got nothing whole.
    Refused,
    /// The server got this request.
    GoneOn,
    /// The server got another one.
    Other,
    /// The server got several.
    Several,
    /// The server got what a strict reader does not take.
    NotTaken,
}

/// A request with what became of it.
struct Tried {
    rule: String,
    is_malformed: bool,
    fate: Fate,
    /// The next client got the response to a request that is not its own.
    is_mixed_up: bool,
}

/// What comes back to a request on a connection of its own.
async fn exchanged(place: &Endpoint, fields: Vec<Field>, body: Option<Vec<u8>>, method: &str) -> Received {
    let mut received = Received::default();
    let deadline = Instant::now() + PATIENCE;
    if let Ok(mut connection) = Connection::open(place).await {
        let outgoing = Http2Content::Request { fields, body };
        // A refusal is an error here.
        let _ =
            connection.exchange(&outgoing, method, Duration::ZERO, deadline, &mut received, &|| 0.0).await;
    }
    received
}

fn fate(records: &[Record], sent: &Translated) -> Fate {
    if records.iter().any(|record| matches!(record, Record::Bad(..))) {
        return Fate::NotTaken;
    }
    let whole = records.iter().filter_map(|record| match record {
        Record::Message(message) if message.start[1] != "/next" => Some(message),
        _ => None,
    });
    match &whole.collect::<Vec<_>>()[..] {
        [] => Fate::Refused,
        [one] => {
            let is_same = one.start[0].as_bytes() == sent.method && one.start[1].as_bytes() == sent.path;
            if is_same && one.body == sent.body { Fate::GoneOn } else { Fate::Other }
        }
        _ => Fate::Several,
    }
}

async fn tried(place: &Endpoint, recorder: &Recorder, case: &Case, sent: &Translated) -> Tried {
    let scheme = if place.tls.is_some() { "https" } else { "http" };
    let method = String::from_utf8_lossy(&sent.method).into_owned();
    let came = exchanged(place, sent.fields(scheme), sent.data(), &method).await;
    let next = Translated::get("/next");
    let after = exchanged(place, next.fields(scheme), None, "GET").await;
    let seen = after.response.as_ref().and_then(|response| response.value("x-seen"));
    let is_mixed_up = seen.is_some_and(|seen| !seen.contains("/next"));
    let records = recorder.take();
    let (fate, is_malformed) = (fate(&records, sent), sent.is_malformed());
    let is_usual = fate == if is_malformed { Fate::Refused } else { Fate::GoneOn };
    if !is_usual || is_mixed_up {
        let seen: Vec<String> = records.iter().map(described).collect();
        let (bytes, status) =
            (case.bytes.escape_ascii().to_string(), came.response.map_or(0, |it| it.status()));
        println!("{fate:?} {status} {is_mixed_up} {}: {bytes:.200} => {}", case.name(), seen.join(" | "));
    }
    Tried { rule: format!("{}: {}", case.group, case.rule), is_malformed, fate, is_mixed_up }
}

/// The cases that can be said over HTTP/2 at all, in one frame each.
fn sendable(cases: &[Case]) -> Vec<(&Case, Translated)> {
    let all = cases.iter().filter_map(|case| Some((case, Translated::of(&case.bytes)?)));
    let fits = |sent: &Translated| {
        block(&sent.fields("https")).len() <= FRAME_BYTES && sent.body.len() <= FRAME_BYTES
    };
    all.filter(|(_, sent)| fits(sent)).collect()
}

/// A certificate for the proxy in front of `a`.
fn certified(listen: SocketAddr) -> ProxyTls {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let validity = Validity::around(now_s);
    let authority = Authority::new(KeyKind::default(), validity).unwrap();
    let identity = authority.issue(&["a".into(), listen.ip().to_string()], validity).unwrap();
    ProxyTls { identity: Some(identity), to_origins: false, ca: authority.certificate }
}

/// The cases through a proxy; none where it is not installed.
async fn through(name: &str, cases: &[Case]) -> Option<(String, Vec<Tried>)> {
    let description = installed(name)?;
    let version = assay_lab::real_proxy::version(&description).await.unwrap();
    let needs_tls = description.http2.expect("it speaks HTTP/2") == Http2Support::WithTls;
    let recorder = Recorder::start();
    let keep = tempfile::tempdir().unwrap();
    let origins = vec![NamedOrigin::new(0, "a", recorder.address)];
    let mut choice = choice_before(description, Mode::Reverse, origins, keep.path());
    choice.http2 = true;
    choice.tls = needs_tls.then(|| certified(choice.listen));
    let place = Endpoint { address: choice.listen, tls: needs_tls.then(|| Tls::to("a").unwrap()) };
    let mut proxy = RealProxy::start(choice).await.unwrap();
    proxy.wait_ready().await.unwrap();
    recorder.take();
    let mut all = Vec::new();
    for (case, sent) in sendable(cases) {
        all.push(tried(&place, &recorder, case, &sent).await);
    }
    proxy.stop(None).await;
    drop(recorder.finish());
    Some((version, all))
}

fn count(all: &[Tried], fits: impl Fn(&Tried) -> bool) -> usize {
    all.iter().filter(|tried| fits(tried)).count()
}

/// A line of the table.
fn line(name: &str, version: &str, all: &[Tried]) -> String {
    let of = |is_malformed, fate| {
        count(all, |tried| tried.is_malformed == is_malformed && tried.fate == fate).to_string()
    };
    let all_of = |fate| count(all, |tried| tried.fate == fate).to_string();
    let cells = [
        of(true, Fate::Refused),
        of(true, Fate::GoneOn),
        of(false, Fate::GoneOn),
        of(false, Fate::Refused),
        all_of(Fate::Other),
        all_of(Fate::Several),
        all_of(Fate::NotTaken),
        count(all, |tried| tried.is_mixed_up).to_string(),
    ];
    format!("| {name} {version} | {} |\n", cells.join(" | "))
}

/// The rules of the cases that fit, with how many of each.
fn rules(all: &[Tried], fits: impl Fn(&Tried) -> bool) -> String {
    let rules = listed(all.iter().filter(|tried| fits(tried)).map(|tried| tried.rule.as_str()));
    if rules.is_empty() { "none".to_owned() } else { rules }
}

#[tokio::test]
async fn some_of_the_corpus_goes_through_real_proxies_over_http2_and_none_hides_a_request() {
    for name in ["nginx", "haproxy"] {
        let mut cases = requests();
        cases.retain(|case| case.group == "Content-Length" || case.group == "Methods");
        let Some((_, all)) = through(name, &cases).await else { continue };
        let of = |is_malformed, fate| {
            count(&all, |tried| tried.is_malformed == is_malformed && tried.fate == fate)
        };
        let (refused, gone_on) = (of(true, Fate::Refused), of(false, Fate::GoneOn));
        assert!(refused > 20 && gone_on > 5, "{name}: {refused} {gone_on}");
        assert_eq!(rules(&all, |tried| tried.fate == Fate::Several || tried.is_mixed_up), "none", "{name}");
    }
}

#[tokio::test]
#[ignore = "takes minutes, and needs all five proxies; writes the page with UPDATE_GOLDEN=1"]
async fn the_page_says_what_real_proxies_do_with_the_corpus_over_http2() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/refused-requests.md");
    let mut text = String::from(
        "\n| proxy | malformed: refused | malformed: gone on | valid: gone on | valid: refused | another request | several requests | not taken by a strict server | another's response |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut findings = String::new();
    let cases = requests();
    let [varnish, nginx, haproxy, httpd, trafficserver] = PROXIES.map(|name| through(name, &cases));
    let (varnish, nginx, haproxy, httpd, trafficserver) =
        tokio::join!(varnish, nginx, haproxy, httpd, trafficserver);
    for (name, tried) in PROXIES.into_iter().zip([varnish, nginx, haproxy, httpd, trafficserver]) {
        let Some((version, all)) = tried else { continue };
        text += &line(name, &version, &all);
        for (what, rules) in [
            ("malformed: gone on", rules(&all, |tried| tried.is_malformed && tried.fate == Fate::GoneOn)),
            ("another request", rules(&all, |tried| tried.fate == Fate::Other)),
            ("several requests", rules(&all, |tried| tried.fate == Fate::Several)),
            ("not taken by a strict server", rules(&all, |tried| tried.fate == Fate::NotTaken)),
            ("another's response", rules(&all, |tried| tried.is_mixed_up)),
        ] {
            writeln!(findings, "- {name}, {what}: {rules}.").unwrap();
        }
    }
    between(&path, (BEGIN, END), &[&text, "\n", &findings, "\n"].concat());
}
