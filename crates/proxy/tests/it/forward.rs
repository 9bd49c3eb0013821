//! Where requests go: by Host, by absolute URL.

use crate::harness::{Bed, Origin, ok, run};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn reverse_requests_go_by_host_and_unknown_ones_to_the_first() {
    run(async {
        let one = Origin::start(|_, _| ok(FRESH, "one")).await;
        let two = Origin::start(|_, _| ok(FRESH, "two")).await;
        let bed = Bed::start(&[("one:8080", one.address), ("two", two.address)]);
        let mut client = bed.client().await;
        for (host, body) in [("one:8080", "one"), ("TWO:80", "two"), ("else", "one"), ("two", "two")] {
            client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            assert_eq!(client.reply("GET").await.body(), body, "{host}");
        }
        // An unknown host is a name of its own: the origin may tell them apart.
        assert_eq!((one.count(), two.count()), (2, 1));
        assert!(one.seen()[1].has("Host: else"));
    });
}

#[test]
fn forward_requests_go_where_they_say_and_share_the_store() {
    run(async {
        let named = Origin::start(|_, _| ok(FRESH, "named")).await;
        let other = Origin::start(|_, _| ok(FRESH, "other")).await;
        let bed = Bed::start(&[("named", named.address)]);
        let mut client = bed.client().await;
        client.send("GET http://named/x?y HTTP/1.1\r\nHost: ignored\r\n\r\n").await;
        assert_eq!(client.reply("GET").await.body(), "named");
        assert_eq!(named.seen()[0].line(), "GET /x?y HTTP/1.1");
        assert!(named.seen()[0].has("Host: named"));
        client.send("GET /x?y HTTP/1.1\r\nHost: named\r\n\r\n").await;
        assert_eq!(client.reply("GET").await.cache_status(), "assay; hit; ttl=60");
        client.send(format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", other.address)).await;
        assert_eq!(client.reply("GET").await.body(), "other");
    });
}

#[test]
fn a_request_that_leads_back_to_the_proxy_is_refused() {
    run(async {
        let bed = Bed::start(&[]);
        let mut client = bed.client().await;
        client.send(format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", bed.proxy.address())).await;
        assert_eq!(client.reply("GET").await.status, 508);
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(client.reply("GET").await.status, 502);
    });
}
