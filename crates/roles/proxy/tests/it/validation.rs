//! Stale objects, conditional requests, and 304 responses in both directions.

use assay_proxy::ProxyLimits;
use assay_proxy::spec::{ProxySpec, Storing};

use crate::harness::{Bed, Origin, Part, START_S, ok, run, send, spec};
use crate::settings::date;

fn not_modified(fields: &str) -> Vec<Part> {
    vec![send(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"))]
}

/// An object of ten seconds, modified at the start, that the origin confirms.
async fn confirming() -> (Origin, Bed) {
    let modified = date(START_S - 100);
    let origin = Origin::start(move |seen, n| {
        let fields = format!("X-Assay: {n}\r\nLast-Modified: {modified}\r\nCache-Control: max-age=10\r\n");
        match seen.has(&format!("If-Modified-Since: {modified}")) {
            true => not_modified(&fields),
            false => ok(&fields, "hello"),
        }
    })
    .await;
    let bed = Bed::start(&[("a", origin.address)]);
    (origin, bed)
}

#[test]
fn a_stale_object_is_confirmed_and_its_fields_are_updated() {
    run(async {
        let (origin, bed) = confirming().await;
        assert_eq!(bed.get("/x", "").await.field("X-Assay"), Some("0"));
        bed.pass_seconds(10);
        let confirmed = bed.get("/x", "").await;
        assert_eq!((confirmed.status, confirmed.body()), (200, "hello"));
        assert_eq!(confirmed.cache_status(), "assay; fwd=stale; fwd-status=304");
        assert_eq!(confirmed.field("X-Assay"), Some("1"));
        assert_eq!(confirmed.head.matches("Via:").count(), 1);
        bed.pass_seconds(9);
        let hit = bed.get("/x", "").await;
        assert_eq!((hit.cache_status(), hit.field("X-Assay")), ("assay; hit; ttl=1", Some("1")));
        assert_eq!(origin.count(), 2);
        assert_eq!(bed.counters().revalidated, 1);
    });
}

#[test]
fn an_object_that_changed_meanwhile_replaces_the_stale_one() {
    run(async {
        let origin = Origin::start(|seen, n| match n {
            0 => ok("ETag: \"a\"\r\nCache-Control: max-age=10\r\n", "old"),
            _ => {
                assert!(seen.has("If-None-Match: \"a\""));
                ok("ETag: \"b\"\r\nCache-Control: max-age=10\r\n", "new")
            }
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(11);
        let fetched = bed.get("/x", "").await;
        assert_eq!((fetched.body(), fetched.cache_status()), ("new", "assay; fwd=stale; stored"));
        assert_eq!(bed.get("/x", "").await.body(), "new");
        assert_eq!((bed.counters().objects, origin.count()), (1, 2));
    });
}

#[test]
fn a_304_for_another_version_is_not_believed() {
    run(async {
        let origin = Origin::start(|_, n| match n {
            0 => ok("ETag: \"a\"\r\nCache-Control: max-age=10\r\n", "old"),
            1 => not_modified("ETag: \"b\"\r\n"),
            _ => ok("ETag: \"b\"\r\nCache-Control: max-age=10\r\n", "new"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(11);
        assert_eq!(bed.get("/x", "").await.body(), "new");
        assert!(!origin.seen()[2].has("If-None-Match: \"a\""));
    });
}

#[test]
fn conditional_requests_are_served_from_the_store() {
    run(async {
        let (origin, bed) = confirming().await;
        bed.get("/x", "").await;
        let mut client = bed.client().await;
        let same = client.get("/x", &format!("If-Modified-Since: {}\r\n", date(START_S - 100))).await;
        assert_eq!((same.status, same.body(), same.field("X-Assay")), (304, "", Some("0")));
        assert_eq!((same.field("Content-Length"), same.cache_status()), (None, "assay; hit; ttl=10"));
        let newer = client.get("/x", &format!("If-Modified-Since: {}\r\n", date(START_S - 101))).await;
        assert_eq!((newer.status, newer.body()), (200, "hello"));
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn conditions_are_left_to_the_origin_where_nothing_is_stored() {
    run(async {
        let origin = Origin::start(|seen, _| {
            let fields = "ETag: \"a\"\r\nCache-Control: no-store\r\n";
            if seen.has("If-None-Match: \"a\"") { not_modified(fields) } else { ok(fields, "hello") }
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        // It might have been stored, and so it was fetched whole.
        let first = bed.get("/x", "If-None-Match: *\r\n").await;
        assert_eq!((first.status, first.body()), (200, "hello"));
        // It is known now that it is not: the origin evaluates the condition.
        let second = bed.get("/x", "If-None-Match: \"a\"\r\n").await;
        assert_eq!((second.status, second.body()), (304, ""));
        let changed = bed.get("/x", "If-None-Match: \"b\"\r\n").await;
        assert_eq!((changed.status, changed.body()), (200, "hello"));
        assert!(!origin.seen()[0].head.contains("If-None-Match"));
        assert!(origin.seen()[2].has("If-None-Match: \"b\""));
    });
}

#[test]
fn a_conditional_miss_is_fetched_whole_and_stored() {
    run(async {
        let (origin, bed) = confirming().await;
        let condition = format!("If-Modified-Since: {}\r\n", date(START_S));
        let miss = bed.get("/x", &condition).await;
        assert_eq!((miss.status, miss.cache_status()), (304, "assay; fwd=miss; stored"));
        assert_eq!(bed.get("/x", "").await.body(), "hello");
        assert_eq!(origin.count(), 1);
        assert!(!origin.seen()[0].head.contains("If-Modified-Since"));
        bed.pass_seconds(20);
        let stale = bed.get("/x", &condition).await;
        assert_eq!((stale.status, stale.cache_status()), (304, "assay; fwd=stale; fwd-status=304"));
    });
}

#[test]
fn a_confirmation_that_nobody_requested_is_an_error() {
    run(async {
        let origin = Origin::start(|_, _| not_modified("")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        assert_eq!(bed.get("/x", "").await.status, 502);
    });
}

#[test]
fn an_object_without_lifetime_is_fresh_for_the_default_one_and_each_confirmation_renews_that() {
    run(async {
        let origin = Origin::start(|seen, n| match seen.has("If-None-Match: \"a\"") {
            true => not_modified(&format!("ETag: \"a\"\r\nDate: {}\r\n", date(START_S + 60 * n as i64))),
            false => ok("ETag: \"a\"\r\n", "x"),
        })
        .await;
        let lasting = |default_lifetime_s| {
            let storing = Storing { default_lifetime_s, ..Storing::default() };
            Bed::of(
                &ProxySpec { storing, ..spec(&[("a", origin.address)], 10_000_000, 0) },
                ProxyLimits::default(),
            )
        };
        let bed = lasting(60);
        bed.get("/x", "").await;
        for _ in 0..2 {
            assert_eq!(bed.get("/x", "").await.cache_status(), "assay; hit; ttl=60");
            bed.pass_seconds(60);
            assert_eq!(bed.get("/x", "").await.cache_status(), "assay; fwd=stale; fwd-status=304");
        }
        let bed = lasting(0);
        bed.get("/x", "").await;
        for _ in 0..2 {
            assert_eq!(bed.get("/x", "").await.cache_status(), "assay; fwd=stale; fwd-status=304");
        }
    });
}

#[test]
fn a_failed_validation_keeps_what_is_stored() {
    run(async {
        let origin = Origin::start(|_, n| match n {
            1 => vec![send("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")],
            2 => not_modified("ETag: \"a\"\r\n"),
            _ => ok("ETag: \"a\"\r\nCache-Control: max-age=10\r\n", "x"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(10);
        assert_eq!(bed.get("/x", "").await.status, 500);
        assert_eq!(bed.get("/x", "").await.body(), "x");
    });
}
