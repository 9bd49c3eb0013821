//! Deliberately wrong caches: the built-in proxy with one rule broken each, and the case that must find it.
//!
//! A rule is broken from outside, by a relay on each side of the proxy that edits messages: a proxy that never sees `Vary`
//! ignores it.

use std::rc::Rc;

use assay_conform::origin::Origin;
use assay_conform::run::run;
use assay_conform::suite::Suite;
use assay_conform::verdict::Verdict;
use tokio::task::JoinSet;

use crate::relay::{Edit, built_in, relay};
use crate::targets::{cache_at, on_one_thread};

/// Changes a message; bodies in these cases are ASCII.
pub type TextEdit = fn(String) -> String;

/// A message as text.
pub fn on_text(edit: TextEdit) -> impl Edit {
    move |message| edit(String::from_utf8(message).expect("cases send ASCII")).into_bytes()
}

/// Where a rule is broken.
enum Broken {
    /// In requests before they reach the proxy.
    ToProxy(TextEdit),
    /// In requests that it sends to the origin.
    ToOrigin(TextEdit),
    /// In responses before they reach the proxy.
    FromOrigin(TextEdit),
    /// In responses that it sends to clients.
    ToClient(TextEdit),
}

use Broken::{FromOrigin, ToClient, ToOrigin, ToProxy};

/// The field lines of a message without those of this name.
pub fn without(text: &str, name: &str) -> String {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let is_other =
        |line: &&str| !line.to_ascii_lowercase().starts_with(&format!("{}:", name.to_ascii_lowercase()));
    let kept: Vec<&str> = head.split("\r\n").filter(is_other).collect();
    format!("{}\r\n\r\n{body}", kept.join("\r\n"))
}

fn with(text: &str, line: &str) -> String {
    text.replacen("\r\n", &format!("\r\n{line}\r\n"), 1)
}

fn is_status(text: &str, status: u16) -> bool {
    text.starts_with(&format!("HTTP/1.1 {status} "))
}

/// What the wrong cache does, how it is made wrong, and the case that names the rule.
const MUTANTS: &[(&str, Broken, &str)] = &[
    ("ignores Vary", FromOrigin(|text| text.replace("\r\nVary:", "\r\nX-Vary:")), "vary-differs/unknown"),
    (
        "ignores a star in Vary",
        FromOrigin(|text| text.replace("\r\nVary: *", "\r\nX-Vary: *")),
        "vary-star/alone",
    ),
    ("serves what is private", FromOrigin(|text| text.replace("private", "public")), "private/with-max-age"),
    (
        "stores what is no-store",
        FromOrigin(|text| text.replace("no-store", "x-none")),
        "no-store-response/with-max-age",
    ),
    (
        "serves what is no-cache",
        FromOrigin(|text| text.replace("no-cache", "x-none")),
        "no-cache-response/with-max-age",
    ),
    (
        "ignores Age on arrival",
        FromOrigin(|text| without(&text, "Age")),
        "age-of-origin-counts/older-than-lifetime",
    ),
    (
        "counts Age twice",
        FromOrigin(|text| text.replace("\r\nAge: 100\r\n", "\r\nAge: 200\r\n")),
        "age-adds-to-arrival",
    ),
    ("ignores Date", FromOrigin(|text| without(&text, "Date")), "date-counts-towards-age/max-age"),
    ("forgets to count", ToClient(|text| text.replace("\r\nAge:", "\r\nAge: 0\r\nX-Age:")), "age-grows"),
    ("sends no Age", ToClient(|text| without(&text, "Age")), "age-sent"),
    (
        "serves what is stale",
        FromOrigin(|text| text.replace("max-age=1\r", "max-age=99\r")),
        "stale-max-age/one",
    ),
    (
        "ignores s-maxage",
        FromOrigin(|text| text.replace("s-maxage", "x-maxage")),
        "stale-max-age/s-maxage-above-max-age",
    ),
    (
        "takes text for a number",
        FromOrigin(|text| text.replace("s-maxage=\"3600\"", "s-maxage=3600")),
        "cdn-cache-control-wrong-type/string",
    ),
    (
        "heeds Expires before max-age",
        FromOrigin(|text| text.replace("max-age=1\r", "public\r")),
        "max-age-over-expires",
    ),
    (
        "takes a bad Expires for a date",
        FromOrigin(|text| text.replace("Expires: 0", "Cache-Control: max-age=60")),
        "invalid-expires/zero",
    ),
    (
        "serves what is stale on errors",
        FromOrigin(|text| text.replace("must-revalidate", "stale-if-error=60")),
        "must-revalidate-with-broken-origin/must-revalidate",
    ),
    (
        "shares what needs credentials",
        ToProxy(|text| text.replace("\r\nAuthorization:", "\r\nX-Own:")),
        "authorization/max-age",
    ),
    (
        "forgets to invalidate",
        ToProxy(|text| if text.starts_with("POST ") { text.replacen(" HTTP", "? HTTP", 1) } else { text }),
        "invalidates/post",
    ),
    (
        "invalidates for POST alone",
        ToProxy(|text| if text.starts_with("PUT ") { text.replacen(" HTTP", "? HTTP", 1) } else { text }),
        "invalidates/put",
    ),
    (
        "stores errors",
        FromOrigin(
            |text| if is_status(&text, 503) { with(&text, "Cache-Control: max-age=60") } else { text },
        ),
        "unknown-status-without-freshness/503",
    ),
    (
        "completes what broke off",
        FromOrigin(|text| text.replace("Content-Length: 40", "Content-Length: 20")),
        "incomplete-is-shown",
    ),
    (
        "takes any tag for its own",
        ToProxy(|text| text.replace("If-None-Match: \"v2\"", "If-None-Match: *")),
        "if-none-match-differs/other",
    ),
    (
        "takes any date for newer",
        ToProxy(|text| text.replace("Since: Sun, 06 Nov 1994 08:49:36", "Since: Sun, 06 Nov 1994 08:49:37")),
        "if-modified-since-earlier",
    ),
    ("ignores If-Range", ToProxy(|text| without(&text, "If-Range")), "if-range-differs/other-tag"),
    (
        "sends 304 without a tag",
        ToClient(|text| if is_status(&text, 304) { without(&text, "ETag") } else { text }),
        "304-from-store-has/etag",
    ),
    (
        "sends 206 without Vary",
        ToClient(|text| if is_status(&text, 206) { without(&text, "Vary") } else { text }),
        "206-has/vary",
    ),
    (
        "does not update by 304",
        FromOrigin(|text| if is_status(&text, 304) { without(&text, "X-Unheard-Of") } else { text }),
        "304-updates/unknown",
    ),
    (
        "lets a foreign 304 confirm",
        FromOrigin(|text| if is_status(&text, 304) { text.replace("\"v2\"", "\"v1\"") } else { text }),
        "304-with-another-tag",
    ),
    (
        "leaves the query out of its key",
        ToProxy(|text| text.replace("?a=1", "").replace("?a=2", "")),
        "key-has/query",
    ),
    (
        "leaves the host out of its key",
        ToProxy(|text| text.replace("Host: b.example", "Host: a.example")),
        "key-has-host/name",
    ),
    ("keys without regard to case", ToProxy(|text| text.replace("/A HTTP", "/a HTTP")), "key-has/path-case"),
    ("decodes slashes", ToProxy(|text| text.replace("%2F", "/")), "key-has/encoded-slash"),
    (
        "passes on what Connection names",
        ToProxy(|text| without(&text, "Connection")),
        "connection-not-forwarded/own",
    ),
    ("adds itself to no Via", ToOrigin(|text| without(&text, "Via")), "via-to-origin"),
    (
        "does not count Max-Forwards",
        ToOrigin(|text| text.replace("Max-Forwards: 4", "Max-Forwards: 5")),
        "max-forwards-decremented",
    ),
    ("drops unknown fields", ToOrigin(|text| without(&text, "X-Unheard-Of")), "unknown-field-to-origin"),
    (
        "drops unknown fields of responses",
        ToClient(|text| without(&text, "X-Unheard-Of")),
        "unknown-field-to-client",
    ),
    ("joins Set-Cookie", ToClient(|text| text.replace("\r\nSet-Cookie: b", ", b")), "set-cookie-not-joined"),
    ("changes bodies", ToClient(|text| text.replace("two  spaces", "two..spaces")), "no-transform"),
    (
        "reads a length with a sign",
        ToProxy(|text| text.replace("Content-Length: +5", "Content-Length: 5")),
        "bad-content-length/plus",
    ),
    (
        "sends other bytes than a part is said to have",
        ToClient(|text| text.replace("Content-Range: bytes 7-7/", "Content-Range: bytes 6-6/")),
        "range-right/middle-byte",
    ),
    (
        "sends a part for the whole",
        ToClient(|text| match is_status(&text, 206) {
            true => without(&text.replacen("206 Partial Content", "200 OK", 1), "Content-Range"),
            false => text,
        }),
        "206-with-wrong-part",
    ),
    (
        "sends the version of the origin's status line",
        ToClient(|text| text.replacen("HTTP/1.1 200", "HTTP/1.0 200", 1)),
        "version-is-own",
    ),
    (
        "keeps for each user what may not be stored for anybody",
        ToProxy(|text| match text.contains("\r\nAuthorization:") {
            true => text.replacen(" HTTP", "?own HTTP", 1).replace("\r\nAuthorization:", "\r\nX-Own:"),
            false => text,
        }),
        "authorization-same-user/max-age",
    ),
    (
        "takes an empty query for none",
        ToProxy(|text| text.replace("/a? HTTP", "/a HTTP")),
        "key-has/empty-query",
    ),
    (
        "sends a length with a 204",
        ToClient(|text| if is_status(&text, 204) { with(&text, "Content-Length: 0") } else { text }),
        "204-has-no-length/origin-sends-length",
    ),
    (
        "evaluates conditions on what it may not store",
        FromOrigin(|text| text.replace("no-store", "max-age=60")),
        "condition-without-stored-response/star",
    ),
    (
        "sends 304 for a stored error",
        FromOrigin(|text| text.replacen("HTTP/1.1 404", "HTTP/1.1 200", 1)),
        "no-304-for-stored-error/404",
    ),
    (
        "keeps directives of clients from the origin",
        ToOrigin(|text| without(&text, "Cache-Control")),
        "directives-forwarded",
    ),
    (
        "drops a field of what it has stored",
        ToClient(|text| without(&text, "Content-Language")),
        "keeps-fields/content-language",
    ),
    (
        "sends a body with a 304",
        ToClient(|text| if is_status(&text, 304) { text + "a body that is not in a 304" } else { text }),
        "304-has-no-body",
    ),
    (
        "says another length to a HEAD",
        ToClient(|text| match text.ends_with("\r\n\r\n") {
            true => text.replace("Content-Length: 10\r", "Content-Length: 9\r"),
            false => text,
        }),
        "head-length-is-right",
    ),
    (
        "gives what is private to all who wait for it",
        FromOrigin(|text| text.replace("private", "max-age=60")),
        "collapsed-private",
    ),
    (
        "sends each of many requests for what has expired to the origin",
        FromOrigin(|text| text.replace("max-age=60\r", "private\r")),
        "collapses-after-expiry",
    ),
    (
        "takes the first of two hosts",
        ToProxy(|text| text.replace("\r\nHost: other.example", "")),
        "host-twice/different",
    ),
];

#[test]
fn every_wrong_cache_is_found_by_the_case_that_names_the_rule() {
    assert!(MUTANTS.len() >= 30);
    let missed = on_one_thread(async {
        let suite = Rc::new(Suite::bundled().unwrap());
        let mut tasks = JoinSet::new();
        for (what, broken, case) in MUTANTS {
            let suite = Rc::clone(&suite);
            tasks.spawn_local(async move { (*what, *case, verdict(&suite, Some(broken), case).await) });
        }
        let mut missed = Vec::new();
        while let Some(done) = tasks.join_next().await {
            let (what, case, verdict) = done.unwrap();
            // A behaviour that no RFC requires is told as `no`.
            if !matches!(verdict, Verdict::Fail | Verdict::Sometimes | Verdict::No) {
                missed.push(format!("a cache that {what}: `{case}` says {verdict:?}"));
            }
        }
        missed
    });
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn the_cache_that_nothing_is_wrong_with_passes_what_finds_the_others() {
    let wrong = on_one_thread(async {
        let suite = Rc::new(Suite::bundled().unwrap());
        let mut tasks = JoinSet::new();
        for (_, _, case) in MUTANTS {
            let suite = Rc::clone(&suite);
            tasks.spawn_local(async move { (*case, verdict(&suite, None, case).await) });
        }
        let passes = |verdict| matches!(verdict, Verdict::Pass | Verdict::Yes);
        let all = tasks.join_all().await;
        let mut wrong = Vec::new();
        // All at once, on a machine with other tests: what does not hold there is tried again alone.
        for (case, first) in all.into_iter().filter(|(_, verdict)| !passes(*verdict)) {
            let alone = verdict(&suite, None, case).await;
            if !passes(alone) {
                wrong.push((case, first, alone));
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// What a case says of the built-in proxy with a rule broken.
async fn verdict(suite: &Suite, broken: Option<&'static Broken>, case: &str) -> Verdict {
    let same: TextEdit = |text| text;
    let (mut to_proxy, mut to_origin, mut from_origin, mut to_client) = (same, same, same, same);
    match broken {
        Some(ToProxy(edit)) => to_proxy = *edit,
        Some(ToOrigin(edit)) => to_origin = *edit,
        Some(FromOrigin(edit)) => from_origin = *edit,
        Some(ToClient(edit)) => to_client = *edit,
        None => {}
    }
    let origin = Rc::new(Origin::start("127.0.0.1:0".parse().unwrap()).unwrap());
    let behind = relay(origin.address, on_text(to_origin), on_text(from_origin)).await;
    let target = cache_at(relay(built_in(behind), on_text(to_proxy), on_text(to_client)).await);
    let outcomes = run(&suite.chosen(&[case.to_owned()]).unwrap(), &target, &origin, |_, _| ()).await;
    outcomes.iter().find(|outcome| outcome.case.name == case).unwrap().judgement.verdict
}
