//! Clients that go away while their origin is waited for: what nobody else gets is given up, with its connection.

use std::rc::Rc;

use assay_proxy::ProxyLimits;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use crate::harness::{Bed, Origin, Part, ok, run, send, until};

/// Every way on which nobody else gets the response: one that is known to be for one client, HEAD, and a body that is sent in full.
const WAYS: [&str; 3] = ["GET /known", "HEAD /head", "POST /post"];

/// Begins a connection of HTTP/2, with SETTINGS without a setting and a GET of `/known` from the host a; and resets that stream.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
                       \0\0\x0d\x01\x05\0\0\0\x01\x82\x86\x04\x06/known\x01\x01a";
const RESET: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";

/// An origin that says of the first thing that it is for one client, and of all else this and nothing more.
async fn origin(stalls: &'static str) -> Origin {
    let private = "Cache-Control: private\r\nConnection: close\r\n";
    Origin::start(move |seen, number| match number {
        0 => [ok(private, "own"), vec![Part::Close]].concat(),
        _ if seen.line().starts_with("HEAD") => vec![Part::Hang],
        _ => vec![send(stalls), Part::Hang],
    })
    .await
}

/// A proxy that waits for its origin as long as it may, and knows that `/known` is for one client.
async fn bed(origin: &Origin) -> Bed {
    let bed = Bed::with_limits(&[("a", origin.address)], ProxyLimits::default());
    assert_eq!(bed.get("/known", "").await.body(), "own");
    until(|| origin.open() == 0).await;
    bed
}

fn request(way: &str) -> String {
    let body = if way.starts_with("POST") { "Content-Length: 4\r\n\r\nbody" } else { "\r\n" };
    format!("{way} HTTP/1.1\r\nHost: a\r\n{body}")
}

#[test]
fn who_resets_the_connection_before_the_response_has_its_request_given_up() {
    run(async {
        for way in WAYS {
            let origin = origin("").await;
            let bed = bed(&origin).await;
            let mut gone = bed.client().await;
            gone.send(request(way)).await;
            until(|| origin.count() == 2 && origin.open() == 1).await;
            gone.stream.set_zero_linger().unwrap();
            drop(gone);
            until(|| origin.open() == 0).await;
        }
    });
}

#[test]
fn who_resets_the_connection_within_the_response_has_its_request_given_up() {
    run(async {
        let begin = "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Length: 9\r\n\r\nbegin";
        // As far as is known, others could get the last one: that it is not so is known from its head.
        for way in ["GET /known", "POST /post", "GET /other"] {
            let origin = origin(begin).await;
            let bed = bed(&origin).await;
            let mut gone = bed.client().await;
            gone.send(request(way)).await;
            assert_eq!(gone.head("GET").await.0, 200, "{way}");
            gone.stream.set_zero_linger().unwrap();
            drop(gone);
            until(|| origin.open() == 0).await;
        }
    });
}

#[test]
fn a_stream_that_is_reset_before_the_response_has_its_request_given_up() {
    run(async {
        let origin = origin("").await;
        let bed = bed(&origin).await;
        let mut gone = bed.client().await;
        gone.send(HTTP2).await;
        until(|| origin.count() == 2 && origin.open() == 1).await;
        gone.send(RESET).await;
        until(|| origin.open() == 0).await;
    });
}

#[test]
fn who_only_sends_nothing_more_gets_its_response() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| {
            [vec![Part::Wait(Rc::clone(&held))], ok("Cache-Control: private\r\n", "own")].concat()
        })
        .await;
        let bed = Bed::with_limits(&[("a", origin.address)], ProxyLimits::default());
        for way in ["GET /x", "GET /x", "POST /post"] {
            let seen = origin.count();
            let mut half = bed.client().await;
            half.send(request(way)).await;
            half.stream.shutdown().await.unwrap();
            until(|| origin.count() > seen).await;
            // Once a client that came later has been served, the end of this one has been seen.
            assert_eq!(bed.client().await.request("OPTIONS", "/", "Max-Forwards: 0\r\n").await.status, 200);
            gate.add_permits(1);
            assert_eq!(half.response("GET").await.body(), "own", "{way}");
        }
    });
}

#[test]
fn a_fetch_that_fills_the_store_goes_on_without_who_has_caused_it() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| {
            [vec![Part::Wait(Rc::clone(&held))], ok("Cache-Control: max-age=60\r\n", "all")].concat()
        })
        .await;
        let bed = Bed::with_limits(&[("a", origin.address)], ProxyLimits::default());
        let mut gone = bed.client().await;
        gone.send(request("GET /x")).await;
        until(|| origin.count() == 1).await;
        gone.stream.set_zero_linger().unwrap();
        drop(gone);
        assert_eq!(bed.client().await.request("OPTIONS", "/", "Max-Forwards: 0\r\n").await.status, 200);
        gate.add_permits(1);
        until(|| bed.counters().objects == 1).await;
        assert_eq!((bed.get("/x", "").await.body(), origin.count()), ("all", 1));
    });
}
