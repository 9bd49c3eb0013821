//! Clients are served from the Collector, proxies get the same requests, and their responses are measured and compared.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_record::spe::{ResponseError, Verdict};
use assay_spe::multiplier::permutation;
use assay_spe::spec::{Turns, When};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::multiplier_bed::{Bed, Part, Server, ok, run, send, until};

impl Bed {
    /// In front of a Collector, as a reverse proxy that sends requests to proxies after each response.
    pub fn start(collector: &Server, proxies: &[SocketAddr]) -> Self {
        Self::with(collector, proxies, |_| {})
    }
}

#[test]
fn a_client_gets_the_collectors_response_and_every_proxy_the_same_request() {
    run(async {
        let collector = Server::of(ok("ETag: \"a\"\r\nX-Made: 1\r\n", "hello")).await;
        let proxies =
            [Server::of(ok("etag: \"a\"\r\nX-Made: 1\r\nAge: 5\r\n", "hello")).await, collector.clone()];
        let bed = Bed::start(&collector, &[proxies[0].address, proxies[1].address]);
        let response = bed.get("/x?y").await;
        assert_eq!(
            response.head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"a\"\r\nX-Made: 1\r\n\r\n",
            "byte for byte"
        );
        assert_eq!(response.body.as_deref(), Some("hello"));
        bed.responses(1).await;
        let requested = &proxies[0].seen()[0];
        assert_eq!(requested.line(), "GET /x?y HTTP/1.1");
        assert!(requested.head.contains("\r\nHost: a\r\nVia: 1.1 assay-"), "{}", requested.head);
        let rows = bed.finish().await;
        assert_eq!(rows.iter().map(|row| row.target).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(rows[0].verdict, Verdict::NotCompared);
        for row in &rows[1..] {
            assert_eq!((row.verdict, row.status, row.body_bytes), (Verdict::Ok, Some(200), 5), "{row:?}");
            assert_eq!(row.checksum.as_deref(), Some("5d41402abc4b2a76b9719d911017c592"));
            assert!(row.connect_us.is_some() && row.first_byte_us.is_some() && row.response_us().is_some());
            assert_eq!((row.url.as_str(), row.client.as_str()), ("http://a/x?y", "127.0.0.1"));
            // Connecting comes before sending.
            let transfer_us = rows[0].transfer_us.unwrap_or(0);
            assert!(row.at_us >= rows[0].at_us + rows[0].first_byte_us.unwrap() + transfer_us);
        }
    });
}

#[test]
fn differences_are_named() {
    run(async {
        let collector = Server::of(ok("X-A: 1\r\n", "hello")).await;
        let responses = [
            vec![send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")],
            ok("X-A: 2\r\n", "hello"),
            ok("X-A: 1\r\n", "jello"),
            vec![send(
                "HTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            )],
        ];
        let mut proxies = Vec::new();
        for response in responses {
            proxies.push(Server::of(response).await.address);
        }
        let bed = Bed::start(&collector, &proxies);
        bed.get("/").await;
        bed.responses(1).await;
        let rows = bed.finish().await;
        let verdicts: Vec<_> = rows[1..].iter().map(|row| (row.verdict, row.header.as_deref())).collect();
        assert_eq!(
            verdicts,
            [
                (Verdict::StatusCodeMismatch, None),
                (Verdict::HeaderMismatch, Some("X-A")),
                (Verdict::BodyMismatch, None),
                (Verdict::Ok, None),
            ]
        );
    });
}

#[test]
fn what_the_collector_names_in_connection_reaches_no_client_and_is_not_compared() {
    run(async {
        let fields = "X-A: 1\r\nVary: Accept\r\nConnection: vary\r\n";
        let collector = Server::of(ok(fields, "hello")).await;
        let mut proxies = Vec::new();
        for fields in ["X-A: 1\r\n", fields, "Vary: Accept\r\n"] {
            proxies.push(Server::of(ok(fields, "hello")).await.address);
        }
        let bed = Bed::start(&collector, &proxies);
        let response = bed.get("/").await;
        assert_eq!(["x-a", "vary", "connection"].map(|name| response.field(name)), [Some("1"), None, None]);
        bed.responses(1).await;
        let rows = bed.finish().await;
        let headers: Vec<_> = rows[1..].iter().map(|row| row.header.as_deref()).collect();
        assert_eq!(headers, [None, None, Some("X-A")]);
    });
}

#[test]
fn proxies_get_requests_when_the_response_is_complete_or_at_once() {
    run(async {
        for when in [When::After, When::AtOnce] {
            let gate = Rc::new(Semaphore::new(0));
            let parts = vec![
                send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"),
                Part::Wait(Rc::clone(&gate)),
                send("cd"),
            ];
            let collector = Server::of(parts).await;
            let proxy = Server::of(ok("", "abcd")).await;
            let bed = Bed::with(&collector, &[proxy.address], |spec| spec.when = when);
            let mut client = bed.client().await;
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            // What has come is passed on before the rest is there.
            while !client.buf.ends_with(b"ab") {
                client.stream.read_buf(&mut client.buf).await.unwrap();
            }
            if when == When::AtOnce {
                until(|| proxy.count() == 1).await;
                assert_eq!(bed.counters().targets[1].matching, 0, "nothing can be compared yet");
            } else {
                assert_eq!(proxy.count(), 0);
            }
            gate.add_permits(1);
            assert_eq!(client.response("GET").await.body.as_deref(), Some("abcd"));
            bed.responses(1).await;
            // That both have responded is counted before their responses are compared.
            until(|| bed.counters().targets[1].matching == 1).await;
        }
    });
}

#[test]
fn pipelined_requests_get_responses_in_order_and_proxies_get_one_at_a_time() {
    run(async {
        let collector = Server::start(|seen, _| ok("", seen.line())).await;
        let proxy = Server::start(|seen, _| ok("", seen.line())).await;
        let bed = Bed::start(&collector, &[proxy.address]);
        let mut client = bed.client().await;
        let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        client.send([request("/1"), request("/2"), request("/3")].concat()).await;
        for path in ["/1", "/2", "/3"] {
            assert_eq!(client.response("GET").await.body, Some(format!("GET {path} HTTP/1.1")));
        }
        bed.responses(3).await;
        let lines: Vec<_> =
            proxy.seen().iter().map(|seen| (seen.line().to_owned(), seen.connection)).collect();
        let expected = ["/1", "/2", "/3"].map(|path| (format!("GET {path} HTTP/1.1"), 0));
        assert_eq!(lines, expected, "on one connection that is kept");
        drop(client);
        until(|| proxy.open() == 0).await;
        let rows = bed.finish().await;
        let connects: Vec<_> =
            rows.iter().filter(|row| row.target == 1).map(|row| row.connect_us.is_some()).collect();
        assert_eq!(connects, [true, false, false]);
    });
}

#[test]
fn a_proxy_that_closes_gets_a_new_connection_for_each_request() {
    run(async {
        let collector = Server::of(ok("", "x")).await;
        let closing = || vec![send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nx"), Part::Close];
        // The other closes without a response.
        let silent = || [ok("", "x"), vec![Part::Close]].concat();
        let proxies = [Server::of(closing()).await, Server::of(silent()).await];
        let bed = Bed::start(&collector, &[proxies[0].address, proxies[1].address]);
        let mut client = bed.client().await;
        for requested in 1..=3 {
            assert_eq!(client.request("GET", "/", "").await.status, 200);
            bed.responses(requested).await;
        }
        let rows = bed.finish().await;
        let connections: Vec<_> = proxies[0].seen().iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [0, 1, 2]);
        assert!(rows.iter().filter(|row| row.target > 0).all(|row| row.verdict == Verdict::Ok), "{rows:?}");
    });
}

#[test]
fn http_1_0_goes_on_as_it_is() {
    run(async {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let collector =
            Server::start(move |_, before| if before == 0 { ok("", "abc") } else { vec![send(chunked)] })
                .await;
        let proxy = Server::of(ok("", "abc")).await;
        let bed = Bed::start(&collector, &[proxy.address]);
        let mut client = bed.client().await;
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        let kept = client.response("GET").await;
        assert!(kept.head.contains("\r\nConnection: keep-alive\r\n"), "{}", kept.head);
        // What has no length ends with the connection of one who knows no chunks.
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        let closed = client.response("GET").await;
        assert_eq!(closed.body.as_deref(), Some("abc"));
        assert!(closed.head.contains("\r\nConnection: close\r\n") && !closed.head.contains("chunked"));
        assert!(client.is_closed().await);
        bed.responses(2).await;
        assert_eq!(proxy.seen()[0].line(), "GET / HTTP/1.0");
        let rows = bed.finish().await;
        assert!(rows.iter().all(|row| row.version == "HTTP/1.0"));
    });
}

#[test]
fn bodies_of_requests_go_to_everybody_and_those_that_are_too_large_to_the_collector_alone() {
    run(async {
        let collector = Server::of(ok("", "done")).await;
        let proxy = Server::of(ok("", "done")).await;
        let bed = Bed::start(&collector, &[proxy.address]);
        let mut client = bed.client().await;
        let small = "Content-Length: 3\r\nExpect: 100-continue\r\n\r\nabc";
        client.send(format!("POST /1 HTTP/1.1\r\nHost: a\r\n{small}")).await;
        assert_eq!(client.response("POST").await.status, 100);
        assert_eq!(client.response("POST").await.status, 200);
        client.send("POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        client.send("2\r\nab\r\n1\r\nc\r\n0\r\n\r\n").await;
        assert_eq!(client.response("POST").await.status, 200);
        bed.responses(2).await;
        assert_eq!(proxy.seen()[0].body, b"abc");
        assert!(proxy.seen()[1].has("Transfer-Encoding: chunked") && proxy.seen()[1].body == b"abc");
        let large = vec![b'x'; (1 << 20) + 1];
        client.send(format!("POST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", large.len())).await;
        client.send(&large).await;
        assert_eq!(client.response("POST").await.status, 200);
        assert_eq!(collector.seen()[2].body, large);
        let rows = bed.finish().await;
        assert_eq!(proxy.count(), 2);
        let last = rows.last().unwrap();
        assert_eq!((last.request, last.target, last.verdict), (2, 1, Verdict::NotCompared));
    });
}

#[test]
fn the_order_is_another_for_each_request_and_follows_from_the_seed() {
    run(async {
        let collector = Server::of(ok("", "x")).await;
        let proxy = Server::of(ok("", "x")).await;
        let bed =
            Bed::with(&collector, &[proxy.address; 5], |spec| (spec.turns, spec.seed) = (Turns::Permuted, 9));
        let mut client = bed.client().await;
        for _ in 0..8 {
            client.request("GET", "/", "").await;
        }
        bed.responses(8).await;
        let rows = bed.finish().await;
        for number in 0..8 {
            let mut requested: Vec<_> = rows.iter().filter(|r| r.request == number && r.target > 0).collect();
            requested.sort_by_key(|row| row.place);
            let order: Vec<u8> = requested.iter().map(|row| row.target as u8 - 1).collect();
            assert_eq!(order, permutation(9, number, 5));
        }
    });
}

#[test]
fn a_tunnel_goes_through_the_collector_and_is_compared_with_nothing() {
    run(async {
        let (unused, proxy) = (Server::of(ok("", "x")).await, Server::of(ok("", "x")).await);
        let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = collector.local_addr().unwrap();
        spawn_local(async move {
            let (mut stream, _) = collector.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            assert!(head.starts_with(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n"));
            stream.write_all(b"HTTP/1.1 200 Yes\r\n\r\n").await.unwrap();
            stream.read_exact(&mut [0; 4]).await.unwrap();
            stream.write_all(b"pong!").await.unwrap();
        });
        let bed = Bed::with(&unused, &[proxy.address], |spec| {
            (spec.forward, spec.collector) = (true, address);
        });
        let mut client = bed.client().await;
        client.send("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\nping").await;
        while !client.buf.ends_with(b"pong!") {
            assert!(matches!(client.stream.read_buf(&mut client.buf).await, Ok(1..)));
        }
        assert!(client.buf.starts_with(b"HTTP/1.1 200 "));
        drop(client);
        until(|| bed.counters().open_clients == 0).await;
        assert_eq!((bed.counters().connects, proxy.count()), (1, 0));
        let rows = bed.finish().await;
        assert_eq!((rows.len(), rows[0].verdict, rows[0].body_bytes), (1, Verdict::NotCompared, 5));
        assert_eq!(rows[0].url, "a:443");
    });
}

#[test]
fn a_tunnel_that_the_collector_refuses_is_opened_by_nobody_and_the_client_is_told() {
    run(async {
        let host = Server::of(ok("", "x")).await;
        for (said, told) in [(403, 403), (501, 501), (508, 508), (304, 502)] {
            let head = format!("HTTP/1.1 {said} No\r\nContent-Length: 0\r\n\r\n");
            let collector = Server::of(vec![send(&head)]).await;
            let bed = Bed::with(&collector, &[], |spec| spec.forward = true);
            let mut client = bed.client().await;
            let name = host.address;
            client.send(format!("CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n\r\n")).await;
            assert_eq!(client.response("GET").await.status, told);
            assert!(client.is_closed().await);
            assert_eq!((collector.count(), host.count()), (1, 0));
        }
    });
}

#[test]
fn what_is_not_served_is_refused_with_a_reason_and_counted() {
    run(async {
        let collector = Server::of(ok("", "x")).await;
        let bed = Bed::with(&collector, &[], |spec| spec.forward = true);
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 501),
            ("GET http://a/ HTTP/3.0\r\n\r\n", 505),
            ("\u{1}\u{2}\r\n\r\n", 400),
        ] {
            let mut client = bed.client().await;
            client.send(request).await;
            let response = client.response("GET").await;
            assert_eq!(response.status, status, "{request}: {response:?}");
            assert!(client.is_closed().await);
        }
        let counters = bed.counters();
        assert_eq!((counters.refused, counters.requests, collector.count()), (4, 0, 0));
    });
}

#[test]
fn a_request_that_comes_back_is_not_sent_round_again() {
    run(async {
        let collector = Server::of(ok("", "x")).await;
        let first = Bed::start(&collector, &[]);
        let mut client = first.client().await;
        client.request("GET", "/", "").await;
        let via = collector.seen()[0].head.lines().find(|line| line.starts_with("Via: ")).unwrap().to_owned();
        let response = client.request("GET", "/", &format!("{via}\r\n")).await;
        assert_eq!(response.status, 508);
        // One may stand behind another.
        let second = Bed::start(&collector, &[]);
        assert_eq!(second.client().await.request("GET", "/", &format!("{via}\r\n")).await.status, 200);
    });
}

#[test]
fn a_client_is_told_that_the_collector_is_gone_and_no_proxy_gets_the_request() {
    run(async {
        let collector = Server::of(vec![Part::Close]).await;
        let proxy = Server::of(ok("", "x")).await;
        let bed = Bed::start(&collector, &[proxy.address]);
        assert_eq!(bed.get("/").await.status, 502);
        let rows = bed.finish().await;
        assert_eq!(
            (rows.len(), rows[0].verdict, rows[0].error),
            (1, Verdict::NoResponse, Some(ResponseError::Reset))
        );
        assert_eq!(proxy.count(), 0);
    });
}

#[test]
fn a_body_that_breaks_off_breaks_off_for_the_client_too() {
    run(async {
        let parts = vec![send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), Part::Close];
        let collector = Server::of(parts).await;
        let bed = Bed::start(&collector, &[]);
        let mut client = bed.client().await;
        assert_eq!(client.request("GET", "/", "").await.body, None);
        assert_eq!(client.buf, b"abc");
        let rows = bed.finish().await;
        assert_eq!(rows[0].error, Some(ResponseError::Truncated));
    });
}

#[test]
fn the_text_log_has_a_line_for_each_response() {
    run(async {
        let collector = Server::of(ok("", "x")).await;
        let proxy = Server::of(ok("", "y")).await;
        let bed = Bed::with(&collector, &[proxy.address], |spec| spec.text_log = true);
        bed.get("/z").await;
        bed.responses(1).await;
        let log = bed.directory.path().join("responses.log");
        let kept = tempfile::tempdir().unwrap();
        let other = kept.path().join("log");
        std::fs::hard_link(&log, &other).unwrap();
        bed.finish().await;
        let text = std::fs::read_to_string(&other).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            text.contains(":RESULT: Collector: ")
                && text.contains("{DUMMY,} 127.0.0.1 non-validation HTTP/1.1 GET")
        );
        assert!(text.contains(":RESULT: p0: ") && text.contains(" 1 {200,200,BODY_MISMATCH,} "));
    });
}
