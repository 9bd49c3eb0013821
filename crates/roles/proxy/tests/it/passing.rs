//! What goes through the proxy without the store: POST, request bodies; and what that drops.

use std::rc::Rc;

use tokio::sync::Semaphore;

use crate::harness::{Bed, Origin, Part, ok, run, send, until};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn a_post_goes_through_and_drops_what_is_stored() {
    run(async {
        let origin = Origin::start(|_, n| ok(FRESH, &n.to_string())).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        client.get("/x", "").await;
        client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
        let posted = client.response("POST").await;
        assert_eq!((posted.body(), posted.cache_status()), ("1", "assay; fwd=method"));
        assert_eq!(origin.seen()[1].body, b"hello");
        let again = client.get("/x", "").await;
        assert_eq!((again.body(), again.cache_status()), ("2", "assay; fwd=miss; stored"));
        assert_eq!(bed.counters().passed, 1);
    });
}

#[test]
fn unknown_methods_drop_too_and_failures_do_not() {
    run(async {
        let origin = Origin::start(|seen, n| match seen.line().starts_with("POST") {
            true => vec![send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")],
            false => ok(FRESH, &n.to_string()),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.client().await.request("POST", "/x", "").await;
        assert_eq!(bed.get("/x", "").await.body(), "0");
        assert_eq!(bed.client().await.request("FROB", "/x", "").await.status, 200);
        assert_eq!(bed.get("/x", "").await.body(), "3");
    });
}

#[test]
fn what_is_being_fetched_during_a_post_is_not_stored() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, n| {
            let response = ok(FRESH, &n.to_string());
            if n == 0 { [vec![Part::Wait(Rc::clone(&held))], response].concat() } else { response }
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut slow = bed.client().await;
        slow.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| origin.count() == 1).await;
        bed.client().await.request("POST", "/x", "").await;
        gate.add_permits(1);
        assert_eq!(slow.response("GET").await.body(), "0");
        assert_eq!(bed.counters().objects, 0);
    });
}

#[test]
fn request_bodies_in_chunks_go_through_in_chunks() {
    run(async {
        let origin = Origin::start(|_, _| ok("", "done")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        client.send("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
        client.send("2;x=y\r\nde\r\n0\r\nTrailer: dropped\r\n\r\n").await;
        assert_eq!(client.response("POST").await.body(), "done");
        assert!(origin.seen()[0].has("Transfer-Encoding: chunked"));
        assert_eq!(origin.seen()[0].body, b"abcde");
        assert_eq!(client.get("/x", "").await.body(), "done");
    });
}

#[test]
fn a_client_that_waits_for_100_gets_it_from_the_origin() {
    run(async {
        let origin = Origin::start(|_, _| ok("", "done")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n").await;
        assert_eq!(client.head("POST").await.0, 100);
        client.send("body").await;
        let response = client.response("POST").await;
        assert_eq!((response.status, response.body()), (200, "done"));
        assert_eq!(origin.seen()[0].body, b"body");
    });
}

#[test]
fn a_response_that_does_not_wait_for_the_body_is_passed_on() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bed = Bed::start(&[("a", listener.local_addr().unwrap())]);
        let mut client = bed.client().await;
        client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin").await;
        let (mut stream, _) = listener.accept().await.unwrap();
        let refusal = b"HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\nno";
        tokio::io::AsyncWriteExt::write_all(&mut stream, refusal).await.unwrap();
        let response = client.response("POST").await;
        assert_eq!(
            (response.status, response.body(), response.field("Connection")),
            (413, "no", Some("close"))
        );
        assert!(client.is_closed().await);
    });
}

#[test]
fn a_closed_idle_connection_is_replaced_without_a_word() {
    run(async {
        let origin = Origin::start(|seen, n| {
            let response = ok("Cache-Control: no-store\r\n", &n.to_string());
            // The first connection dies on its second request.
            match (seen.connection, n) {
                (0, 1..) => vec![Part::Close],
                _ => response,
            }
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        assert_eq!(bed.get("/x", "").await.body(), "0");
        let retried = bed.get("/x", "").await;
        assert_eq!((retried.status, retried.body()), (200, "2"));
        // What cannot be repeated does not risk it.
        let posted = bed.client().await.request("POST", "/x", "").await;
        assert_eq!(posted.status, 200);
        assert_eq!(origin.seen()[3].connection, 2);
    });
}

#[test]
fn options_and_traces_go_on_so_many_times_and_no_more() {
    run(async {
        let origin = Origin::start(|_, _| ok("", "")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        client.request("OPTIONS", "*", "Max-Forwards: 2\r\n").await;
        assert!(origin.seen()[0].has("Max-Forwards: 1") && origin.seen()[0].line() == "OPTIONS * HTTP/1.1");
        let last = client.request("OPTIONS", "*", "Max-Forwards: 0\r\n").await;
        assert!(last.status == 200 && last.field("Allow").is_some());
        assert_eq!(client.request("TRACE", "/", "Max-Forwards: 0\r\n").await.status, 501);
        client.request("GET", "/", "Max-Forwards: 0\r\n").await;
        assert!(origin.seen()[1].has("Max-Forwards: 0"));
        assert_eq!(origin.count(), 2);
    });
}

/// Every way through the proxy: a fetch that others may join, one of what is known to be unshared, HEAD, and a body.
const WAYS: [&str; 5] = ["GET /stored", "GET /private", "GET /private", "HEAD /head", "POST /post"];

#[test]
fn interim_responses_reach_clients_that_know_them_on_every_way() {
    run(async {
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Own\r\nX-Own: 1\r\n\r\n";
        let origin = Origin::start(move |seen, _| {
            let fields = if seen.line().contains("/private") { "Cache-Control: private\r\n" } else { FRESH };
            let last = match seen.line().starts_with("HEAD") {
                true => vec![send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")],
                false => ok(fields, "last"),
            };
            [vec![send("HTTP/1.1 102 Processing\r\n\r\n"), send(early)], last].concat()
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        for way in WAYS {
            let (method, path) = way.split_once(' ').unwrap();
            let body = if method == "POST" { "Content-Length: 4\r\n\r\nbody" } else { "\r\n" };
            client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{body}")).await;
            assert_eq!(client.head(method).await.0, 102, "{way}");
            let (status, head, _) = client.head(method).await;
            assert_eq!(status, 103, "{way}");
            assert!(head.contains("Link: </a>\r\n") && !head.contains("X-Own"), "{head}");
            assert_eq!(client.response(method).await.status, 200, "{way}");
        }
        let mut old = bed.client().await;
        old.send("GET /private HTTP/1.0\r\n\r\n").await;
        assert_eq!(old.response("GET").await.body(), "last");
    });
}

#[test]
fn an_interim_response_does_not_wait_for_the_final_one_and_reaches_all_who_wait() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let early = send("HTTP/1.1 103 Early Hints\r\n\r\n");
        let origin = Origin::start(move |_, _| {
            [vec![early.clone(), Part::Wait(Rc::clone(&held))], ok(FRESH, "last")].concat()
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let (mut first, mut second) = (bed.client().await, bed.client().await);
        for client in [&mut first, &mut second] {
            client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.head("GET").await.0, 103);
        }
        gate.add_permits(1);
        for client in [&mut first, &mut second] {
            assert_eq!(client.response("GET").await.body(), "last");
        }
        assert_eq!((origin.count(), bed.counters().collapsed), (1, 1));
    });
}
