//! Origins that fail, and what is stored meanwhile (RFC 5861).

use std::rc::Rc;

use assay_proxy::ProxyLimits;
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::harness::{Bed, Client, Origin, Part, Seen, ok, run, send, until};

const TEN_S: &str = "ETag: \"a\"\r\nCache-Control: max-age=10, stale-if-error=20\r\n";
const FAILURE: &str = "HTTP/1.1 503 Not Now\r\nContent-Length: 2\r\n\r\nno";

/// An origin that responds once, with these fields, and fails from then on.
async fn failing(fields: &'static str, failure: Vec<Part>) -> Origin {
    Origin::start(move |_, n| if n == 0 { ok(fields, "hello") } else { failure.clone() }).await
}

#[test]
fn a_stale_response_stands_in_for_every_kind_of_failure_as_long_as_it_allows() {
    run(async {
        let reset = vec![Part::Close];
        let nonsense = vec![send("nonsense\r\n\r\n"), Part::Close];
        let failures = [(vec![send(FAILURE)], "; fwd-status=503"), (reset, ""), (nonsense, "")];
        for (failure, status) in failures {
            let origin = failing(TEN_S, failure).await;
            let bed = Bed::start(&[("a", origin.address)]);
            bed.get("/x", "").await;
            bed.pass_seconds(30);
            let stale = bed.get("/x", "").await;
            assert_eq!((stale.status, stale.body(), stale.field("Age")), (200, "hello", Some("30")));
            let says = format!("assay; fwd=stale{status}; ttl=-20; detail=stale-if-error");
            assert_eq!(stale.cache_status(), says);
            bed.pass_seconds(1);
            let failed = bed.get("/x", "").await;
            assert!(failed.status >= 500, "too stale: {failed:?}");
        }
    });
}

#[test]
fn an_origin_that_refuses_connections_has_failed_too() {
    run(async {
        let origin = failing(TEN_S, vec![Part::Close]).await;
        // There is no listener behind the second name, and no other program gets the port as long as this has
        // it.
        let gone = TcpSocket::new_v4().unwrap();
        gone.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let bed = Bed::start(&[("a", origin.address), ("b", gone.local_addr().unwrap())]);
        assert_eq!(bed.client().await.request("GET", "http://b/x", "").await.status, 502);
        bed.get("/x", "").await;
        bed.pass_seconds(15);
        assert_eq!(bed.get("/x", "").await.body(), "hello");
        assert!(bed.counters().origin_errors >= 2);
    });
}

#[test]
fn other_errors_are_responses_and_no_failures() {
    run(async {
        for status in ["404 Not Found", "501 Not Implemented"] {
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            let origin = failing(TEN_S, vec![send(response)]).await;
            let bed = Bed::start(&[("a", origin.address)]);
            bed.get("/x", "").await;
            bed.pass_seconds(15);
            assert!(status.starts_with(&bed.get("/x", "").await.status.to_string()));
        }
    });
}

#[test]
fn without_leave_nothing_stale_is_served_and_the_configuration_can_give_it() {
    run(async {
        const SILENT: &str = "Cache-Control: max-age=10\r\nETag: \"a\"\r\n";
        for (granted_s, status) in [(0, 503), (4, 503), (5, 200)] {
            let origin = failing(SILENT, vec![send(FAILURE)]).await;
            let bed = Bed::with_stale_if_error(&[("a", origin.address)], granted_s);
            bed.get("/x", "").await;
            bed.pass_seconds(15);
            assert_eq!(bed.get("/x", "").await.status, status, "granted {granted_s} s");
            let requesting = bed.get("/x", "Cache-Control: stale-if-error=5\r\n").await;
            assert_eq!(requesting.status, 200, "the client may request it");
        }
    });
}

#[test]
fn what_must_be_confirmed_is_not_served_stale_whoever_allows_it() {
    run(async {
        for fields in [
            "Cache-Control: max-age=10, stale-if-error=99, must-revalidate\r\n",
            "Cache-Control: max-age=10, stale-if-error=99, proxy-revalidate\r\n",
            "Cache-Control: s-maxage=10, stale-if-error=99\r\n",
            "Cache-Control: max-age=10, stale-if-error=99, no-cache\r\nETag: \"a\"\r\n",
        ] {
            let origin = failing(fields, vec![send(FAILURE)]).await;
            let bed = Bed::with_stale_if_error(&[("a", origin.address)], 99);
            bed.get("/x", "").await;
            bed.pass_seconds(15);
            assert_eq!(bed.get("/x", "").await.status, 503, "{fields}");
        }
        let origin = failing(TEN_S, vec![send(FAILURE)]).await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(15);
        for fields in ["Cache-Control: no-cache\r\n", "Cache-Control: max-age=12\r\n"] {
            assert_eq!(bed.get("/x", fields).await.status, 503, "{fields}");
        }
    });
}

#[test]
fn heads_conditions_and_parts_are_served_with_it_too() {
    run(async {
        let origin = failing(TEN_S, vec![send(FAILURE)]).await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(12);
        let mut client = bed.client().await;
        let part = client.get("/x", "Range: bytes=1-2\r\n").await;
        assert_eq!((part.status, part.body()), (206, "el"));
        let same = client.get("/x", "If-None-Match: \"a\"\r\n").await;
        assert_eq!(same.status, 304);
    });
    run(async {
        let failures = [vec![send("HTTP/1.1 503 Not Now\r\nContent-Length: 2\r\n\r\n")], vec![Part::Close]];
        for failure in failures {
            let origin = failing(TEN_S, failure).await;
            let bed = Bed::start(&[("a", origin.address)]);
            bed.get("/x", "").await;
            bed.pass_seconds(12);
            let mut client = bed.client().await;
            let head = client.request("HEAD", "/x", "").await;
            assert_eq!((head.status, head.field("Content-Length")), (200, Some("5")));
            assert!(head.cache_status().ends_with("; ttl=-2; detail=stale-if-error"), "{head:?}");
            let same = client.request("HEAD", "/x", "If-None-Match: \"a\"\r\n").await;
            assert_eq!(same.status, 304);
            bed.pass_seconds(19);
            let failed = client.request("HEAD", "/x", "").await;
            assert!(failed.status >= 500, "too stale: {failed:?}");
        }
    });
}

#[test]
fn everyone_who_waited_for_the_failed_fetch_gets_the_stale_response_or_fetches_alone() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, n| match n {
            0 => ok(TEN_S, "hello"),
            _ => vec![Part::Wait(Rc::clone(&held)), send(FAILURE)],
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(15);
        let mut clients = Vec::new();
        for fields in ["", "", "Cache-Control: max-age=12\r\n"] {
            let mut client = bed.client().await;
            client.send(format!("GET /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
            clients.push(client);
            until(|| bed.counters().requests == 1 + clients.len() as u64).await;
        }
        gate.add_permits(2);
        let mut says = Vec::new();
        for client in &mut clients {
            let response = client.response("GET").await;
            says.push((response.status, response.cache_status().to_owned()));
        }
        let stale = "assay; fwd=stale; fwd-status=503; ttl=-5; detail=stale-if-error";
        assert_eq!(says[0], (200, stale.to_owned()));
        assert_eq!(says[1], (200, stale.replace("; ttl", "; collapsed; ttl")));
        assert_eq!(says[2].0, 503, "that client does not take it");
        assert_eq!(origin.count(), 3);
    });
}

#[test]
fn an_origin_that_has_recovered_is_believed() {
    run(async {
        let origin = Origin::start(|_, n| match n {
            0 => ok(TEN_S, "old"),
            1 => vec![send(FAILURE)],
            _ => ok(TEN_S, "new"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(15);
        assert_eq!(bed.get("/x", "").await.body(), "old");
        assert_eq!(bed.get("/x", "").await.body(), "new");
        assert_eq!(bed.get("/x", "").await.cache_status(), "assay; hit; ttl=10");
    });
}

/// An origin each of whose responses waits for a permit.
async fn slow(permits: &Rc<Semaphore>) -> Origin {
    let permits = Rc::clone(permits);
    let respond = move |_: &Seen, _| {
        let mut parts = vec![Part::Wait(Rc::clone(&permits))];
        parts.extend(ok("Cache-Control: no-store\r\n", "slow"));
        parts
    };
    Origin::start(respond).await
}

#[test]
fn a_slow_origin_leaves_a_quarter_of_the_connections_of_clients_to_others() {
    run(async {
        let permits = Rc::new(Semaphore::new(0));
        let slow = slow(&permits).await;
        let quick = Origin::start(|_, _| ok("Cache-Control: no-store\r\n", "quick")).await;
        let limits = ProxyLimits { clients: 4, ..ProxyLimits::default() };
        let bed = Bed::with_limits(&[("slow", slow.address), ("quick", quick.address)], limits);
        let clients: Vec<_> = (0..3)
            .map(|n| {
                let proxy = bed.proxy.address();
                spawn_local(async move {
                    let url = format!("http://slow/{n}");
                    Client::connect(proxy).await.request("GET", &url, "").await
                })
            })
            .collect();
        until(|| slow.seen().len() == 3).await;
        let mut other = bed.client().await;
        for _ in 0..2 {
            let refused = other.request("GET", "http://slow/x", "").await;
            assert_eq!(refused.status, 503, "{refused:?}");
            let why = refused.field("Proxy-Status").unwrap_or_default();
            assert!(why.contains("error=connection_limit_reached"), "{why}");
            assert_eq!(other.request("GET", "http://quick/x", "").await.body(), "quick");
        }
        permits.add_permits(4);
        for client in clients {
            assert_eq!(client.await.unwrap().body(), "slow");
        }
        assert_eq!(other.request("GET", "http://slow/x", "").await.body(), "slow");
        assert_eq!(slow.seen().len(), 4);
    });
}

#[test]
fn an_only_origin_gets_all_connections_that_clients_may_have() {
    run(async {
        let permits = Rc::new(Semaphore::new(0));
        let origin = slow(&permits).await;
        let limits = ProxyLimits { clients: 2, ..ProxyLimits::default() };
        let bed = Bed::with_limits(&[("a", origin.address), ("b", origin.address)], limits);
        let clients: Vec<_> = (0..2)
            .map(|n| {
                let proxy = bed.proxy.address();
                spawn_local(async move { Client::connect(proxy).await.get(&format!("/{n}"), "").await })
            })
            .collect();
        until(|| origin.seen().len() == 2).await;
        permits.add_permits(2);
        for client in clients {
            assert_eq!(client.await.unwrap().body(), "slow");
        }
    });
}
