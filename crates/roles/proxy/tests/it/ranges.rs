//! Parts of objects: from the store, while they arrive, and past the store.

use std::rc::Rc;

use tokio::sync::Semaphore;

use crate::harness::{Bed, Origin, Part, START_S, ok, run, send, until};
use crate::settings::date;

const FRESH: &str = "Content-Type: a/b\r\nCache-Control: max-age=60\r\n";

/// An origin with one object of sixteen bytes, and a proxy in front of it.
async fn hex() -> (Origin, Bed) {
    let origin = Origin::start(|_, _| ok(&format!("{FRESH}ETag: \"a\"\r\n"), "0123456789abcdef")).await;
    let bed = Bed::start(&[("a", origin.address)]);
    (origin, bed)
}

fn range(value: &str) -> String {
    format!("Range: bytes={value}\r\n")
}

#[test]
fn a_range_that_misses_fetches_all_and_gets_its_part() {
    run(async {
        let (origin, bed) = hex().await;
        let part = bed.get("/x", &range("4-7")).await;
        assert_eq!((part.status, part.body()), (206, "4567"));
        assert_eq!(part.field("Content-Range"), Some("bytes 4-7/16"));
        assert_eq!(part.field("Content-Length"), Some("4"));
        assert_eq!(part.cache_status(), "assay; fwd=miss; stored");
        assert!(!origin.seen()[0].head.to_ascii_lowercase().contains("range"));
        let whole = bed.get("/x", "").await;
        assert_eq!((whole.body(), whole.cache_status()), ("0123456789abcdef", "assay; hit; ttl=60"));
        assert_eq!((origin.count(), bed.counters().misses, bed.counters().passed), (1, 1, 0));
    });
}

#[test]
fn single_open_and_suffix_ranges_come_from_the_store() {
    run(async {
        let (origin, bed) = hex().await;
        let mut client = bed.client().await;
        client.get("/x", "").await;
        for (value, body, says) in [
            ("0-0", "0", "bytes 0-0/16"),
            ("14-", "ef", "bytes 14-15/16"),
            ("14-99", "ef", "bytes 14-15/16"),
            ("-3", "def", "bytes 13-15/16"),
            ("-99", "0123456789abcdef", "bytes 0-15/16"),
            ("20-30, 1-2", "12", "bytes 1-2/16"),
        ] {
            let part = client.get("/x", &range(value)).await;
            assert_eq!((part.status, part.body()), (206, body), "{value}");
            assert_eq!(part.field("Content-Range"), Some(says), "{value}");
            assert_eq!(part.cache_status(), "assay; hit; ttl=60");
            assert_eq!((part.field("ETag"), part.field("Content-Type")), (Some("\"a\""), Some("a/b")));
        }
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn several_ranges_come_as_parts_of_one_body_stored_or_not() {
    run(async {
        let (_origin, bed) = hex().await;
        for cache_status in ["assay; fwd=miss; stored", "assay; hit; ttl=60"] {
            let parts = bed.get("/x", &range("10-11,0-1,-1")).await;
            assert_eq!((parts.status, parts.cache_status()), (206, cache_status));
            assert_eq!(parts.head.matches("Content-Type:").count(), 1);
            let kind = parts.field("Content-Type").unwrap();
            let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
            let part = |says, bytes| {
                format!(
                    "\r\n--{boundary}\r\nContent-Type: a/b\r\nContent-Range: bytes {says}/16\r\n\r\n{bytes}"
                )
            };
            let body = [part("10-11", "ab"), part("0-1", "01"), part("15-15", "f")].concat();
            assert_eq!(parts.body(), format!("{body}\r\n--{boundary}--\r\n"));
        }
    });
}

#[test]
fn what_is_beyond_the_end_is_416_stored_or_not() {
    run(async {
        let (origin, bed) = hex().await;
        let mut client = bed.client().await;
        for _ in 0..2 {
            let none = client.get("/x", &range("16-")).await;
            assert_eq!(
                (none.status, none.body(), none.field("Content-Range")),
                (416, "", Some("bytes */16"))
            );
        }
        assert_eq!(client.get("/x", &range("-0")).await.status, 416);
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn a_range_is_ignored_where_it_is_none_or_not_for_this_method() {
    run(async {
        let (_origin, bed) = hex().await;
        let mut client = bed.client().await;
        client.get("/x", "").await;
        for value in ["2-1", "x", "0-,0-,0-"] {
            let whole = client.get("/x", &range(value)).await;
            assert_eq!((whole.status, whole.body().len()), (200, 16), "{value}");
        }
        let head = client.request("HEAD", "/x", &range("0-1")).await;
        assert_eq!((head.status, head.field("Content-Length")), (200, Some("16")));
    });
}

#[test]
fn parts_are_sent_under_if_range_only_of_the_same_version() {
    run(async {
        let modified = date(START_S - 100);
        let fields =
            format!("{FRESH}ETag: \"a\"\r\nLast-Modified: {modified}\r\nDate: {}\r\n", date(START_S));
        let origin = Origin::start(move |_, _| ok(&fields, "0123")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let other = date(START_S - 99);
        for (condition, status) in [
            ("\"a\"", 206),
            ("\"b\"", 200),
            ("W/\"a\"", 200),
            (date(START_S - 100).as_str(), 206),
            (other.as_str(), 200),
            ("nonsense", 200),
        ] {
            let response = bed.get("/x", &format!("{}If-Range: {condition}\r\n", range("1-2"))).await;
            assert_eq!(response.status, status, "{condition}");
            assert_eq!(response.body(), if status == 206 { "12" } else { "0123" });
        }
        // A condition that is met goes first.
        let same = bed.get("/x", &format!("{}If-None-Match: \"a\"\r\n", range("1-2"))).await;
        assert_eq!(same.status, 304);
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn a_stale_object_is_confirmed_before_parts_of_it_are_sent() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.has("If-None-Match: \"a\"") {
            true => {
                vec![send("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=10\r\n\r\n")]
            }
            false => ok("ETag: \"a\"\r\nCache-Control: max-age=10\r\n", "0123"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(10);
        let part = bed.get("/x", &range("-1")).await;
        assert_eq!((part.status, part.body()), (206, "3"));
        assert_eq!(part.cache_status(), "assay; fwd=stale; fwd-status=304");
        assert_eq!(bed.get("/x", &range("0-1")).await.cache_status(), "assay; hit; ttl=10");
        assert_eq!((origin.count(), bed.counters().revalidated), (2, 1));
    });
}

#[test]
fn what_may_not_be_stored_is_requested_in_parts_at_once_from_the_second_time_on() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.has("Range: bytes=1-2") {
            true => vec![send(
                "HTTP/1.1 206 Partial Content\r\nCache-Control: no-store\r\nContent-Range: bytes 1-2/4\r\n\
                 Content-Length: 2\r\n\r\n12",
            )],
            false => ok("Cache-Control: no-store\r\n", "0123"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        for requests in [2, 3] {
            let part = bed.get("/x", &range("1-2")).await;
            assert_eq!((part.status, part.body(), part.cache_status()), (206, "12", "assay; fwd=miss"));
            assert_eq!(origin.count(), requests);
        }
        assert_eq!(bed.counters().objects, 0);
    });
}

#[test]
fn what_is_too_large_is_passed_in_parts() {
    run(async {
        let large = "x".repeat(300_000);
        let origin = Origin::start(move |seen, _| match seen.has("Range: bytes=0-0") {
            true => vec![send(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/300000\r\nContent-Length: 1\r\n\r\nx",
            )],
            false => ok(FRESH, &large),
        })
        .await;
        let bed = Bed::with_memory(&[("a", origin.address)], 1_000_000);
        let part = bed.get("/x", &range("0-0")).await;
        assert_eq!((part.status, part.body()), (206, "x"));
        assert_eq!((bed.counters().objects, origin.count()), (0, 2));
        // An error of the origin is the response, whichever parts were requested.
        assert_eq!(bed.get("/y", &range("999999999-")).await.status, 416);
    });
}

#[test]
fn an_error_of_the_origin_is_not_cut_into_parts() {
    run(async {
        let origin = Origin::start(|_, _| {
            vec![send("HTTP/1.1 404 No\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nnone")]
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        for _ in 0..2 {
            let response = bed.get("/x", &range("1-2")).await;
            assert_eq!((response.status, response.body()), (404, "none"));
        }
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn coded_objects_and_those_of_unknown_length_come_whole() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.line().contains("/coded") {
            true => ok(&format!("{FRESH}Content-Encoding: gzip\r\n"), "coded"),
            false => vec![
                send(format!("HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n")),
                send("3\r\nabc\r\n0\r\n\r\n"),
            ],
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        for _ in 0..2 {
            let coded = bed.get("/coded", &range("1-2")).await;
            assert_eq!((coded.status, coded.body()), (200, "coded"));
        }
        let whole = bed.get("/chunked", &range("1-2")).await;
        assert_eq!((whole.status, whole.body()), (200, "abc"));
        let part = bed.get("/chunked", &range("1-2")).await;
        assert_eq!((part.status, part.body()), (206, "bc"), "stored, its length is known");
    });
}

#[test]
fn parts_are_taken_from_a_fetch_that_is_under_way_and_sent_as_they_arrive() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| {
            let head = format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 8\r\n\r\n0123");
            vec![send(head), Part::Wait(Rc::clone(&held)), send("4567")]
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut whole = bed.client().await;
        whole.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| origin.count() == 1).await;
        // What has arrived goes out before the rest has.
        let early = bed.get("/x", &range("1-2")).await;
        assert_eq!((early.status, early.body()), (206, "12"));
        assert_eq!(early.cache_status(), "assay; fwd=miss; collapsed");
        let (mut tail, mut both) = (bed.client().await, bed.client().await);
        tail.send("GET /x HTTP/1.1\r\nHost: a\r\nRange: bytes=-6\r\n\r\n").await;
        both.send("GET /x HTTP/1.1\r\nHost: a\r\nRange: bytes=7-,0-0\r\n\r\n").await;
        assert_eq!(tail.head("GET").await.0, 206);
        until(|| bed.counters().collapsed == 3).await;
        gate.add_permits(1);
        assert!(both.response("GET").await.body().contains("bytes 7-7/8\r\n\r\n7"));
        until(|| bed.counters().objects == 1).await;
        assert_eq!(whole.response("GET").await.body(), "01234567");
        assert_eq!((origin.count(), bed.counters().misses), (1, 1));
    });
}

#[test]
fn several_parts_of_a_body_that_breaks_off_for_another_are_fetched_again() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, n| {
            let head = format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 8\r\n\r\n0123");
            match n {
                0 => vec![send(head), Part::Wait(Rc::clone(&held)), Part::Close],
                _ => vec![send(head), send("4567")],
            }
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let (mut whole, mut both) = (bed.client().await, bed.client().await);
        whole.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| origin.count() == 1).await;
        both.send("GET /x HTTP/1.1\r\nHost: a\r\nRange: bytes=7-,0-0\r\n\r\n").await;
        until(|| bed.counters().collapsed == 1).await;
        gate.add_permits(1);
        let response = both.response("GET").await;
        assert!(response.status == 206 && response.body().contains("bytes 7-7/8\r\n\r\n7"), "{response:?}");
        assert_eq!((origin.count(), bed.counters().collapsed), (2, 1));
    });
}

#[test]
fn a_part_of_a_body_that_breaks_off_breaks_off() {
    run(async {
        let origin = Origin::start(|_, _| {
            let head = format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 8\r\n\r\n0123");
            vec![send(head), Part::Close]
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let whole = bed.get("/x", &range("1-2")).await;
        assert_eq!((whole.status, whole.body()), (206, "12"), "it had arrived");
        let broken = bed.get("/x", &range("3-4")).await;
        assert_eq!((broken.status, broken.body), (206, None));
        assert_eq!(bed.get("/x", &range("0-0,5-5")).await.status, 502);
        assert_eq!(bed.counters().objects, 0);
    });
}

#[test]
fn a_reload_of_a_part_replaces_the_whole() {
    run(async {
        let origin = Origin::start(|_, n| ok(FRESH, &n.to_string().repeat(4))).await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        let part = bed.get("/x", &format!("{}Cache-Control: no-cache\r\n", range("0-1"))).await;
        assert_eq!((part.status, part.body()), (206, "11"));
        assert_eq!(bed.get("/x", "").await.body(), "1111");
        assert_eq!(bed.counters().objects, 1);
    });
}
