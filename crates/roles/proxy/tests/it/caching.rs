//! What is stored, what is served from the store, and for how long.

use crate::harness::{Bed, Origin, START_S, ok, run, send};
use crate::settings::date;

const FRESH: &str = "Cache-Control: public, max-age=60\r\n";

#[test]
fn a_miss_is_fetched_stored_and_then_hit_with_its_age() {
    run(async {
        let date = date(START_S);
        let origin = Origin::start(move |_, n| {
            ok(&format!("{FRESH}Date: {date}\r\nX-Assay: mark-{n}\r\nKeep-Alive: 5\r\n"), "hello")
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        let miss = client.get("/x", "X-Assay: 1-2\r\nConnection: X-Hop\r\nX-Hop: 1\r\n").await;
        assert_eq!((miss.status, miss.body()), (200, "hello"));
        assert_eq!(miss.cache_status(), "assay; fwd=miss; stored");
        assert_eq!((miss.field("Age"), miss.field("Keep-Alive")), (None, None));
        assert_eq!(miss.field("Via"), Some("1.1 assay"));
        bed.pass_seconds(7);
        let hit = client.get("/x", "").await;
        assert_eq!((hit.status, hit.body()), (200, "hello"));
        assert_eq!(hit.cache_status(), "assay; hit; ttl=53");
        assert_eq!((hit.field("Age"), hit.field("X-Assay")), (Some("7"), Some("mark-0")));
        let seen = origin.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].line(), "GET /x HTTP/1.1");
        assert!(seen[0].has("Host: a") && seen[0].has("X-Assay: 1-2") && seen[0].has("Via: 1.1 assay"));
        assert!(!seen[0].has("X-Hop: 1"));
        let counters = bed.counters();
        assert_eq!((counters.requests, counters.hits, counters.misses), (2, 1, 1));
        assert_eq!((counters.objects, counters.origin_requests), (1, 1));
    });
}

#[test]
fn what_may_not_be_stored_is_fetched_each_time_over_one_connection() {
    run(async {
        let origin =
            Origin::start(|_, n| ok("Cache-Control: private, no-cache, no-store\r\n", &n.to_string())).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        for n in 0..3 {
            let response = client.get("/x", "").await;
            assert_eq!(
                (response.body(), response.cache_status()),
                (n.to_string().as_str(), "assay; fwd=miss")
            );
        }
        assert!(origin.seen().iter().all(|seen| seen.connection == 0));
        assert_eq!(bed.counters().objects, 0);
    });
}

#[test]
fn a_reload_refetches_and_replaces() {
    run(async {
        let origin = Origin::start(|_, n| ok(FRESH, &n.to_string())).await;
        let bed = Bed::start(&[("a", origin.address)]);
        assert_eq!(bed.get("/x", "").await.body(), "0");
        let reload = bed.get("/x", "Cache-Control: no-cache\r\nPragma: no-cache\r\n").await;
        assert_eq!((reload.body(), reload.cache_status()), ("1", "assay; fwd=request; stored"));
        assert!(origin.seen()[1].has("Cache-Control: no-cache"));
        let hit = bed.get("/x", "").await;
        assert_eq!((hit.body(), hit.cache_status()), ("1", "assay; hit; ttl=60"));
        assert_eq!(bed.get("/x", "Pragma: no-cache\r\n").await.body(), "2");
    });
}

#[test]
fn a_head_is_served_from_the_store_and_does_not_fill_it() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.line().starts_with("HEAD") {
            true => vec![send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 5\r\n\r\n"))],
            false => ok(FRESH, "hello"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        let miss = client.request("HEAD", "/x", "").await;
        assert_eq!((miss.field("Content-Length"), miss.cache_status()), (Some("5"), "assay; fwd=miss"));
        assert_eq!(client.get("/x", "").await.cache_status(), "assay; fwd=miss; stored");
        let hit = client.request("HEAD", "/x", "").await;
        assert_eq!((hit.field("Content-Length"), hit.cache_status()), (Some("5"), "assay; hit; ttl=60"));
        let lines: Vec<_> = origin.seen().iter().map(|seen| seen.line().to_owned()).collect();
        assert_eq!(lines, ["HEAD /x HTTP/1.1", "GET /x HTTP/1.1"]);
    });
}

#[test]
fn a_head_that_shows_another_object_drops_the_stored_one() {
    run(async {
        let origin = Origin::start(|seen, n| match seen.line().starts_with("HEAD") {
            true => vec![send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n")],
            false => ok("Cache-Control: max-age=5\r\n", &n.to_string()),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(10);
        let stale = bed.client().await.request("HEAD", "/x", "").await;
        assert_eq!(stale.cache_status(), "assay; fwd=stale");
        assert_eq!(bed.counters().objects, 0);
    });
}

#[test]
fn responses_that_vary_are_kept_apart() {
    run(async {
        let origin = Origin::start(|seen, _| {
            let language = if seen.has("Accept-Language: de") { "hallo" } else { "hello" };
            ok(&format!("{FRESH}Vary: Accept-Language\r\n"), language)
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let (de, en) = ("Accept-Language: de\r\n", "Accept-Language: en\r\n");
        assert_eq!(bed.get("/x", de).await.body(), "hallo");
        let other = bed.get("/x", en).await;
        assert_eq!((other.body(), other.cache_status()), ("hello", "assay; fwd=vary-miss; stored"));
        for (fields, body) in [(de, "hallo"), (en, "hello")] {
            let hit = bed.get("/x", fields).await;
            assert_eq!((hit.body(), hit.cache_status()), (body, "assay; hit; ttl=60"));
        }
        assert_eq!(origin.count(), 2);
    });
}

#[test]
fn what_another_cache_has_aged_is_older_here_too() {
    run(async {
        let origin = Origin::start(|_, _| ok(&format!("{FRESH}Age: 50\r\n"), "x")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        assert_eq!(bed.get("/x", "").await.field("Age"), Some("50"));
        bed.pass_seconds(9);
        assert_eq!(bed.get("/x", "").await.field("Age"), Some("59"));
        bed.pass_seconds(1);
        assert_eq!(bed.get("/x", "").await.cache_status(), "assay; fwd=stale; stored");
    });
}

#[test]
fn requests_may_demand_the_store_only_or_forbid_storing() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "x")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let absent = bed.get("/x", "Cache-Control: only-if-cached\r\n").await;
        assert_eq!((absent.status, origin.count()), (504, 0));
        assert_eq!(bed.get("/x", "Cache-Control: no-store\r\n").await.cache_status(), "assay; fwd=miss");
        assert_eq!(bed.counters().objects, 0);
        bed.get("/x", "").await;
        assert_eq!(
            bed.get("/x", "Cache-Control: only-if-cached\r\n").await.cache_status(),
            "assay; hit; ttl=60"
        );
    });
}

#[test]
fn errors_of_the_origin_are_passed_on_and_not_stored() {
    run(async {
        let origin = Origin::start(|_, n| match n {
            0 => vec![send("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno")],
            _ => ok(FRESH, "yes"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let busy = bed.get("/x", "").await;
        assert_eq!((busy.status, busy.body()), (503, "no"));
        assert!(busy.head.starts_with("HTTP/1.1 503 Busy\r\n"));
        assert_eq!(bed.get("/x", "").await.body(), "yes");
    });
}

#[test]
fn what_connection_hides_from_the_next_hop_is_heeded_and_nothing_is_stored_without_it() {
    run(async {
        let hidden = [
            "Connection: Cache-Control\r\nCache-Control: private, max-age=60\r\n",
            "Connection: cache-control\r\nCache-Control: no-store\r\nExpires: Thu, 01 Jan 2037 00:00:00 GMT\r\n",
            "Connection: close, Vary\r\nVary: Cookie\r\nCache-Control: max-age=60\r\n",
            "Connection: Age\r\nAge: 100\r\nCache-Control: max-age=60\r\n",
        ];
        for fields in hidden {
            let origin = Origin::start(move |_, n| ok(fields, &n.to_string())).await;
            let bed = Bed::start(&[("a", origin.address)]);
            for expected in ["0", "1"] {
                let response = bed.get("/x", "").await;
                assert_eq!(response.body(), expected, "{fields}");
                assert!(response.field("Vary").is_none() && response.field("Connection").is_none());
            }
            assert_eq!(bed.counters().objects, 0, "{fields}");
        }
    });
}

#[test]
fn a_confirmation_that_hides_a_field_renews_nothing() {
    run(async {
        let confirmation = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nConnection: Cache-Control\r\n\
                            Cache-Control: private\r\n\r\n";
        let origin = Origin::start(move |_, n| match n {
            0 => ok("ETag: \"a\"\r\nCache-Control: max-age=10\r\n", "hello"),
            _ => vec![send(confirmation)],
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(20);
        for requests in [2, 3] {
            assert_eq!(bed.get("/x", "").await.body(), "hello");
            assert_eq!(origin.count(), requests);
        }
    });
}
