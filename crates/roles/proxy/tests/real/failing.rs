//! Origins that say nothing, and clients that send a byte now and then.

use std::time::Duration;

use assay_proxy::ProxyLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{Bed, Origin, Part, ok, run};

/// In front of an origin that is waited for no longer than this.
fn impatient(origin: &Origin) -> Bed {
    let limits = ProxyLimits { origin_response: Duration::from_millis(300), ..ProxyLimits::default() };
    Bed::with_limits(&[("a", origin.address)], limits)
}

#[test]
fn a_stale_response_stands_in_for_one_that_does_not_come_as_long_as_it_allows() {
    run(async {
        let fields = "ETag: \"a\"\r\nCache-Control: max-age=10, stale-if-error=20\r\n";
        let origin =
            Origin::start(move |_, n| if n == 0 { ok(fields, "hello") } else { vec![Part::Hang] }).await;
        let bed = impatient(&origin);
        bed.get("/x", "").await;
        bed.pass_seconds(30);
        let stale = bed.get("/x", "").await;
        assert_eq!((stale.status, stale.body(), stale.field("Age")), (200, "hello", Some("30")));
        assert_eq!(stale.cache_status(), "assay; fwd=stale; ttl=-20; detail=stale-if-error");
        bed.pass_seconds(1);
        let failed = bed.get("/x", "").await;
        assert!(failed.status >= 500, "too stale: {failed:?}");
    });
}

#[test]
fn an_origin_that_says_nothing_is_a_gateway_error_and_the_client_stays() {
    run(async {
        let origin = Origin::start(|_, n| if n == 0 { vec![Part::Hang] } else { ok("", "speaks") }).await;
        let bed = impatient(&origin);
        let mut client = bed.client().await;
        let silent = client.get("/silent", "").await;
        assert_eq!((silent.status, silent.cache_status()), (504, "assay; fwd=miss"));
        assert_eq!(client.get("/", "").await.body(), "speaks");
        assert_eq!(bed.counters().origin_errors, 1);
    });
}

#[test]
fn an_origin_that_says_nothing_where_no_other_request_may_get_the_response_is_a_gateway_error() {
    run(async {
        let own = "Cache-Control: private\r\n";
        let origin = Origin::start(move |_, n| if n == 1 { vec![Part::Hang] } else { ok(own, "own") }).await;
        let bed = impatient(&origin);
        let mut client = bed.client().await;
        assert_eq!(client.get("/x", "").await.body(), "own");
        let silent = client.get("/x", "").await;
        assert_eq!((silent.status, silent.cache_status()), (504, "assay; fwd=miss"));
        assert_eq!(client.get("/x", "").await.body(), "own");
        assert_eq!(bed.counters().origin_errors, 1);
    });
}

#[test]
fn a_head_that_drips_is_refused_in_time_however_often_a_byte_comes() {
    run(async {
        let origin = Origin::of(ok("", "hello")).await;
        let limits = ProxyLimits { client_read: Duration::from_millis(300), ..ProxyLimits::default() };
        let bed = Bed::with_limits(&[("a", origin.address)], limits);
        let mut client = bed.client().await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Long: ").await;
        let (mut from, mut to) = client.stream.split();
        let dripping = async {
            while to.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let mut got = vec![0; 12];
        tokio::select! {
            read = from.read_exact(&mut got) => drop(read.expect("a response")),
            () = dripping => panic!("the connection ended without a response"),
        }
        assert_eq!(got, b"HTTP/1.1 408");
        assert_eq!(origin.count(), 0);
    });
}
