//! Framing and its faults, in both directions; HTTP/1.0; errors.

use crate::harness::{Bed, Origin, Part, ok, run, send};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn a_truncated_body_is_seen_by_the_client_and_not_stored() {
    run(async {
        let origin = Origin::start(|_, n| match n {
            0 => vec![send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 10\r\n\r\nhalf")), Part::Close],
            1 => vec![
                send(format!("HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")),
                Part::Close,
            ],
            _ => ok(FRESH, "whole"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        for _ in 0..2 {
            let broken = bed.get("/x", "").await;
            assert_eq!((broken.status, broken.body), (200, None));
        }
        assert_eq!(bed.counters().objects, 0);
        assert_eq!(bed.get("/x", "").await.body(), "whole");
    });
}

#[test]
fn a_truncated_body_cannot_look_whole_to_an_http_1_0_client() {
    run(async {
        let origin = Origin::start(|_, _| {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            vec![send(format!("{head}4\r\nhalf\r\n")), Part::Close]
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        client.send("GET /x HTTP/1.0\r\nHost: a\r\n\r\n").await;
        let mut all = Vec::new();
        let end = tokio::io::AsyncReadExt::read_to_end(&mut client.stream, &mut all).await;
        assert!(end.is_err(), "the connection must be reset, not closed");
    });
}

#[test]
fn chunked_responses_are_stored_and_hit_with_their_length() {
    run(async {
        let origin = Origin::start(|_, _| {
            let head = format!("HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n");
            vec![send(head), send("3\r\nabc\r\n"), send("2\r\nde\r\n0\r\nX: trailer\r\n\r\n")]
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        let miss = client.get("/x", "").await;
        assert_eq!((miss.body(), miss.field("Transfer-Encoding")), ("abcde", Some("chunked")));
        let hit = client.get("/x", "").await;
        assert_eq!((hit.body(), hit.field("Content-Length")), ("abcde", Some("5")));
        assert_eq!(hit.field("Transfer-Encoding"), None);
        client.get("/y", "").await;
        assert_eq!(origin.seen()[1].connection, 0);
    });
}

#[test]
fn responses_that_end_with_their_connection_are_passed_on_and_stored() {
    run(async {
        let origin = Origin::start(|_, _| {
            vec![send(format!("HTTP/1.0 200 OK\r\n{FRESH}\r\nuntil close")), Part::Close]
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        let miss = client.get("/x", "").await;
        assert_eq!((miss.body(), miss.field("Via")), ("until close", Some("1.0 assay")));
        assert_eq!(client.get("/x", "").await.cache_status(), "assay; hit; ttl=60");
    });
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    run(async {
        let origin = Origin::start(|seen, _| ok(FRESH, seen.line())).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let post = "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
        client.send([get("/1"), get("/2"), post.into(), get("/1"), get("/3")].concat()).await;
        for (method, line) in [
            ("GET", "GET /1 HTTP/1.1"),
            ("GET", "GET /2 HTTP/1.1"),
            ("POST", "POST /p HTTP/1.1"),
            ("GET", "GET /1 HTTP/1.1"),
            ("GET", "GET /3 HTTP/1.1"),
        ] {
            assert_eq!(client.response(method).await.body(), line);
        }
        assert_eq!(bed.counters().hits, 1);
    });
}

#[test]
fn http_1_0_clients_get_what_they_understand() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.line().contains("chunked") {
            true => vec![send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")],
            false => ok(FRESH, "hello"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        client.send("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        let kept = client.response("GET").await;
        assert_eq!((kept.body(), kept.field("Connection")), ("hello", Some("keep-alive")));
        assert!(origin.seen()[0].has("Host: a") && origin.seen()[0].has("Via: 1.0 assay"));
        client.send("GET /x HTTP/1.0\r\n\r\n").await;
        let last = client.response("GET").await;
        assert_eq!((last.body(), last.field("Connection")), ("hello", Some("close")));
        assert!(client.is_closed().await);
        let mut client = bed.client().await;
        client.send("GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        let closing = client.response("GET").await;
        assert_eq!((closing.body(), closing.field("Connection")), ("abc", Some("close")));
        assert_eq!(closing.field("Transfer-Encoding"), None);
    });
}

#[test]
fn what_is_not_http_is_refused_and_the_connection_closed() {
    run(async {
        let origin = Origin::start(|_, _| ok("", "never")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(70_000));
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: 1\r\n".repeat(200));
        let both = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc";
        for (text, status) in [
            ("nonsense\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
            (both, 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            ("GET / HTTP/2.5\r\nHost: a\r\n\r\n", 505),
            ("CONNECT b:443 HTTP/1.1\r\nHost: b\r\n\r\n", 501),
            (&long, 431),
            (&many, 431),
        ] {
            let mut client = bed.client().await;
            client.send(text).await;
            let response = client.response("GET").await;
            assert_eq!(
                (response.status, response.field("Connection")),
                (status, Some("close")),
                "{text:.40}"
            );
            assert!(client.is_closed().await, "{text:.40}");
        }
        assert_eq!(origin.count(), 0);
        assert_eq!(bed.proxy.counters().refused, 12);
    });
}

#[test]
fn an_origin_that_is_away_or_senseless_is_a_gateway_error() {
    run(async {
        // There is no listener, and no other program gets the port as long as this has it.
        let nobody = tokio::net::TcpSocket::new_v4().unwrap();
        nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let origin = Origin::start(|seen, _| match seen.line() {
            "GET /both HTTP/1.1" => vec![send(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3\r\nabc\r\n0\r\n\r\n",
            )],
            _ => vec![send("what?\r\n\r\n")],
        })
        .await;
        let bed = Bed::start(&[("a", origin.address), ("nobody", nobody.local_addr().unwrap())]);
        let mut client = bed.client().await;
        for (path, host) in [("/", "nobody"), ("/both", "a"), ("/senseless", "a")] {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            let response = client.response("GET").await;
            assert_eq!((response.status, response.cache_status()), (502, "assay; fwd=miss"), "{path}");
            client.send(format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            if path != "/both" {
                assert_eq!(client.response("POST").await.status, 502, "{path}");
            } else {
                client.response("POST").await;
            }
        }
        assert!(bed.counters().origin_errors >= 5);
    });
}

#[test]
fn via_names_http_2_where_a_request_was_received_in_it() {
    run(async {
        let origin = Origin::start(|_, _| ok("", "the body")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        // GET http://a/x on stream 1, of which nothing is indexed.
        let block = [&[0x82, 0x86, 0x04, 2][..], b"/x", &[0x01, 1], b"a"].concat();
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let headers = [0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1];
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let request = [&preface[..], &settings, &headers, &block].concat();
        tokio::io::AsyncWriteExt::write_all(&mut client.stream, &request).await.expect("is read");
        let mut got = Vec::new();
        while !String::from_utf8_lossy(&got).contains("the body") {
            let read = tokio::io::AsyncReadExt::read_buf(&mut client.stream, &mut got).await;
            assert!(read.expect("is open") > 0, "{got:?}");
        }
        assert!(origin.seen()[0].has("Via: 2.0 assay"), "{:?}", origin.seen()[0]);
    });
}
