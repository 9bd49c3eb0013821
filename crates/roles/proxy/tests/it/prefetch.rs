//! What pages name is there before it is requested, within bounds.

use assay_http::coding::GzipWriter;
use assay_proxy::ProxyLimits;
use assay_proxy::spec::{OriginRoute, Prefetch, ProxySpec};

use crate::harness::{Bed, Origin, Part, Seen, ok, run, send, until};

const CACHEABLE: &str = "Cache-Control: max-age=100\r\n";
const PAGE: &str = "<link rel=stylesheet href=/a.css><img src='b.png'><script src=http://a/c.js></script>\
    <a href=/next.html>next</a><img src=http://elsewhere/d.png>";

fn html(fields: &str, body: &str) -> Vec<Part> {
    ok(&format!("Content-Type: text/html; charset=utf-8\r\n{fields}"), body)
}

/// A page under `/dir/page`, the same under `/next.html`; everything else is an image that may be cached.
fn site(seen: &Seen) -> Vec<Part> {
    match seen.line() {
        "GET /dir/page HTTP/1.1" | "GET /next.html HTTP/1.1" => html(CACHEABLE, PAGE),
        _ => ok(CACHEABLE, "image"),
    }
}

fn spec(origin: &Origin, prefetch: Prefetch) -> ProxySpec {
    ProxySpec {
        tls: None,
        origin_tls: None,
        origin_http2: false,
        name: "assay".into(),
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        cpus: Vec::new(),
        memory_bytes: 10_000_000,
        stale_if_error_s: 0,
        access_log: None,
        origins: vec![OriginRoute { authority: "a".into(), address: origin.address }],
        cooperation: None,
        prefetch: Some(prefetch),
        storing: assay_proxy::spec::Storing::default(),
    }
}

fn usual(word: &str) -> Prefetch {
    Prefetch::from_word(word).unwrap().unwrap()
}

fn bed(origin: &Origin, prefetch: Prefetch) -> Bed {
    Bed::of(&spec(origin, prefetch), ProxyLimits::default())
}

fn lines(origin: &Origin) -> Vec<String> {
    let mut lines: Vec<String> = origin.seen().iter().map(|seen| seen.line().to_owned()).collect();
    lines.sort();
    lines
}

#[test]
fn what_a_page_is_shown_with_is_a_hit_afterwards() {
    run(async {
        let origin = Origin::start(|seen, _| site(seen)).await;
        let bed = bed(&origin, usual("embedded"));
        bed.get("/dir/page", "User-Agent: x\r\nCookie: secret\r\n").await;
        until(|| bed.counters().objects == 4).await;
        let there = [
            "GET /a.css HTTP/1.1",
            "GET /c.js HTTP/1.1",
            "GET /dir/b.png HTTP/1.1",
            "GET /dir/page HTTP/1.1",
        ];
        assert_eq!(lines(&origin), there);
        for path in ["/a.css", "/dir/b.png", "/c.js", "/c.js"] {
            assert!(bed.get(path, "").await.cache_status().contains("hit"), "{path}");
        }
        let counters = bed.counters();
        assert_eq!(
            (
                counters.prefetch.prefetched,
                counters.prefetch.prefetched_used,
                counters.prefetch.prefetched_bytes
            ),
            (3, 3, 15)
        );
        assert_eq!(origin.count(), 4);
        let image = &origin.seen()[1];
        assert!(
            image.has("User-Agent: x") && !image.head.to_ascii_lowercase().contains("cookie"),
            "{}",
            image.head
        );
    });
}

#[test]
fn links_are_followed_on_demand_and_no_further() {
    run(async {
        let origin = Origin::start(|seen, _| site(seen)).await;
        let bed = bed(&origin, usual("links"));
        bed.get("/dir/page", "").await;
        until(|| bed.counters().objects == 5).await;
        assert!(lines(&origin).contains(&"GET /next.html HTTP/1.1".to_owned()));
        assert!(bed.get("/next.html", "").await.cache_status().contains("hit"));
        assert!(!lines(&origin).contains(&"GET /b.png HTTP/1.1".to_owned()), "a prefetched page is not read");
    });
}

#[test]
fn pages_that_are_somebodys_own_cause_nothing() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.line() {
            "GET /private HTTP/1.1" => html("Cache-Control: private\r\n", PAGE),
            "GET /error HTTP/1.1" => {
                vec![send(format!(
                    "HTTP/1.1 404 No\r\nContent-Type: text/html\r\n{CACHEABLE}Content-Length: {}\r\n\r\n{PAGE}",
                    PAGE.len()
                ))]
            }
            "GET /text HTTP/1.1" => ok(&format!("{CACHEABLE}Content-Type: text/plain\r\n"), PAGE),
            _ => html(CACHEABLE, PAGE),
        })
        .await;
        let bed = bed(&origin, usual("links"));
        for (path, fields) in
            [("/private", ""), ("/error", ""), ("/text", ""), ("/mine", "Authorization: x\r\n")]
        {
            bed.get(path, fields).await;
        }
        assert_eq!((bed.counters().prefetch.prefetched, origin.count()), (0, 4));
    });
}

#[test]
fn what_may_not_be_shared_is_not_kept_and_not_tried_again() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.line() {
            "GET /x.gif HTTP/1.1" => ok("Cache-Control: no-store\r\n", "mine"),
            _ => html(CACHEABLE, "<img src=/x.gif>"),
        })
        .await;
        let bed = bed(&origin, usual("embedded"));
        bed.get("/one", "").await;
        until(|| origin.count() == 2).await;
        assert_eq!(bed.get("/x.gif", "").await.body(), "mine");
        assert_eq!(origin.count(), 3);
        bed.get("/two", "").await;
        assert_eq!(bed.get("/x.gif", "").await.body(), "mine");
        assert_eq!((origin.count(), bed.counters().prefetch.prefetched), (5, 1));
    });
}

#[test]
fn pages_are_read_through_gzip_and_in_pieces() {
    run(async {
        let mut coded = Vec::new();
        GzipWriter::new().encode([PAGE.as_bytes()], &mut coded);
        let origin = Origin::start(move |seen, _| match seen.line() {
            "GET /dir/page HTTP/1.1" => {
                let fields = format!("{CACHEABLE}Content-Type: text/html\r\nContent-Encoding: gzip\r\n");
                let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", coded.len());
                let (one, other) = coded.split_at(coded.len() / 2);
                vec![send(head), send(one), send(other)]
            }
            _ => ok(CACHEABLE, "image"),
        })
        .await;
        let bed = bed(&origin, usual("embedded"));
        let mut client = bed.client().await;
        client.send("GET /dir/page HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").await;
        until(|| bed.counters().objects == 4).await;
        assert!(origin.seen().iter().all(|seen| seen.has("Accept-Encoding: gzip")));
    });
}

#[test]
fn a_page_causes_no_more_than_it_may() {
    run(async {
        let page: String = (0..50).map(|n| format!("<img src=/{n}>")).collect();
        let origin = Origin::start(move |seen, _| match seen.line() {
            "GET /page HTTP/1.1" => html(CACHEABLE, &page),
            _ => ok(CACHEABLE, &"x".repeat(1000)),
        })
        .await;
        let few = bed(&origin, Prefetch { per_page: 7, ..usual("embedded") });
        few.get("/page", "").await;
        until(|| few.counters().objects == 8).await;
        let small = bed(&origin, Prefetch { page_bytes: 3_500, at_once: 1, ..usual("embedded") });
        small.get("/page", "").await;
        until(|| small.counters().prefetch.prefetched == 4).await;
        until(|| small.counters().objects == 4).await;
        assert_eq!(small.counters().prefetch.prefetched_bytes, 3_000);
        let patient = bed(&origin, Prefetch { waiting: 10, at_once: 1, ..usual("embedded") });
        patient.get("/page", "").await;
        until(|| patient.counters().prefetch.prefetched == 10).await;
        assert_eq!(patient.counters().prefetch.prefetches_dropped, 40);
    });
}
