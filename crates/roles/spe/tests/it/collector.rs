//! One fetch for each need: what is joined, replayed, confirmed and fetched anew.

use std::rc::Rc;

use assay_protocol::network::Destinations;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::collector_harness::*;

/// The number of the request in each body.
fn counting(fields: &'static str) -> impl Fn(&Seen, usize) -> Vec<Part> {
    move |_, before| ok(fields, &format!("answer {before}"))
}

#[test]
fn six_proxies_and_a_client_at_once_are_one_request_to_the_origin() {
    run(async {
        for fields in [CACHEABLE, UNCACHEABLE] {
            let gate = Rc::new(Semaphore::new(0));
            let held = Rc::clone(&gate);
            let origin = Origin::start(move |_, before| {
                let mut parts = vec![Part::Wait(Rc::clone(&held))];
                parts.extend(ok(fields, &format!("answer {before}")));
                parts
            })
            .await;
            let bed = Rc::new(Bed::start(&origin, 6));
            let requesting = |listener| {
                let bed = Rc::clone(&bed);
                spawn_local(async move { bed.get(listener, "/x", "").await })
            };
            // The client's request comes first, as through the Multiplier: it would not wait long for what a proxy began.
            let mut all = vec![requesting(0)];
            until(|| bed.listeners()[0].requests == 1).await;
            all.extend((1..7).map(requesting));
            until(|| bed.listeners().iter().all(|listener| listener.requests == 1)).await;
            gate.add_permits(100);
            for one in all {
                assert_eq!(one.await.unwrap().body(), "answer 0");
            }
            assert_eq!(origin.count(), 1, "{fields}");
            let listeners = bed.listeners();
            assert_eq!(listeners.iter().map(|listener| listener.fetches).sum::<u64>(), 1);
            assert_eq!(listeners.iter().map(|listener| listener.joined + listener.replays).sum::<u64>(), 6);
        }
    });
}

#[test]
fn a_listener_that_repeats_an_uncachable_request_gets_a_new_recording_and_the_others_get_both() {
    run(async {
        let origin = Origin::start(counting(UNCACHEABLE)).await;
        let bed = Bed::start(&origin, 2);
        assert_eq!(bed.get(0, "/x", "").await.body(), "answer 0");
        assert_eq!(bed.get(0, "/x", "").await.body(), "answer 1");
        for listener in [1, 2] {
            assert_eq!(bed.get(listener, "/x", "").await.body(), "answer 0");
            assert_eq!(bed.get(listener, "/x", "").await.body(), "answer 1");
        }
        assert_eq!(origin.count(), 2);
        assert_eq!(bed.get(1, "/x", "").await.body(), "answer 2");
    });
}

#[test]
fn what_is_fresh_is_replayed_on_every_request_until_its_timings_are_too_old() {
    run(async {
        let origin = Origin::start(counting(CACHEABLE)).await;
        let bed = Bed::start(&origin, 1);
        for listener in [0, 0, 1, 1] {
            assert_eq!(bed.get(listener, "/x", "").await.body(), "answer 0");
        }
        let old = Bed::of(&assay_spe::spec::CollectorSpec { maximum_age_ms: 0, ..spec(origin.address, 1) });
        for n in 1..3 {
            assert_eq!(old.get(0, "/x", "").await.body(), format!("answer {n}"));
        }
    });
}

#[test]
fn interim_responses_are_passed_on_as_they_come_and_replayed_before_their_response() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| {
            let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x-own\r\nX-Own: 1\r\n\r\n";
            let mut parts =
                vec![send("HTTP/1.1 100 Continue\r\n\r\n"), send(early), Part::Wait(Rc::clone(&held))];
            parts.extend(ok(CACHEABLE, "answer"));
            parts
        })
        .await;
        let bed = Bed::start(&origin, 1);
        for listener in [0, 1] {
            let mut client = bed.client(listener).await;
            client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
            // The first one comes before its origin has responded.
            let early = client.response("GET").await;
            let fields = ["link", "x-own", "via"].map(|name| early.field(name));
            assert_eq!((early.status, fields), (103, [Some("</a>"), None, None]));
            gate.add_permits(1);
            assert_eq!(client.response("GET").await.body(), "answer");
        }
        let mut old = bed.client(1).await;
        old.send("GET /x HTTP/1.0\r\nHost: a\r\n\r\n").await;
        assert_eq!(old.response("GET").await.body(), "answer", "HTTP/1.0 has no interim responses");
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn every_fetch_has_a_connection_of_its_own() {
    run(async {
        let origin = Origin::start(counting(CACHEABLE)).await;
        let bed = Bed::start(&origin, 1);
        let mut client = bed.client(0).await;
        for path in ["/a", "/b", "/c"] {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            assert_eq!(client.response("GET").await.status, 200);
        }
        let connections: Vec<usize> = origin.seen().iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [0, 1, 2]);
        assert!(origin.seen().iter().all(|seen| seen.has("connection: close")));
    });
}

#[test]
fn spellings_of_one_resource_are_one_in_forward_and_reverse_form() {
    run(async {
        let origin = Origin::start(counting(CACHEABLE)).await;
        let bed = Bed::start(&origin, 1);
        for target in ["/~joe/x", "/%7Ejoe/x", "http://A:80/b/../%7ejoe/./x"] {
            assert_eq!(bed.get(1, target, "").await.body(), "answer 0", "{target}");
        }
        assert_eq!(origin.seen()[0].line(), "GET /~joe/x HTTP/1.1");
    });
}

#[test]
fn cookies_bodies_ranges_and_negotiated_variants_are_told_apart() {
    run(async {
        let origin = Origin::start(|_, before| {
            ok("Cache-Control: max-age=1000\r\nVary: Accept\r\n", &format!("answer {before}"))
        })
        .await;
        let bed = Bed::start(&origin, 1);
        let requested =
            ["", "Cookie: a=1\r\n", "Cookie: a=2\r\n", "Range: bytes=0-1\r\n", "Accept: text/a\r\n"];
        for _ in 0..2 {
            for (n, fields) in requested.iter().enumerate() {
                assert_eq!(bed.get(1, "/x", fields).await.body(), format!("answer {n}"), "{fields}");
            }
        }
        assert_eq!(origin.count(), requested.len());
    });
}

#[test]
fn a_post_goes_once_for_everybody_and_again_for_who_posts_again() {
    run(async {
        let origin = Origin::start(|seen, before| {
            ok("", &format!("{before} {}", String::from_utf8_lossy(&seen.body)))
        })
        .await;
        let bed = Bed::start(&origin, 2);
        let post = async |listener, body: &str| {
            let fields = format!("Content-Length: {}\r\nExpect: 100-continue\r\n", body.len());
            let mut client = bed.client(listener).await;
            client.send(format!("POST /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
            assert_eq!(client.response("POST").await.status, 100);
            client.send(body).await;
            client.response("POST").await.body().to_owned()
        };
        for listener in 0..3 {
            assert_eq!(post(listener, "one").await, "0 one");
        }
        assert_eq!(post(1, "two").await, "1 two");
        assert_eq!(post(0, "one").await, "2 one");
        assert_eq!(post(2, "one").await, "2 one");
        assert_eq!(origin.count(), 3);
    });
}

#[test]
fn what_is_changed_is_fetched_again_though_it_was_fresh() {
    run(async {
        let origin = Origin::start(counting(CACHEABLE)).await;
        let bed = Bed::start(&origin, 1);
        assert_eq!(bed.get(0, "/x", "").await.body(), "answer 0");
        bed.request(0, "POST", "/x", "Content-Length: 1\r\n", "b").await;
        assert_eq!(bed.get(0, "/x", "").await.body(), "answer 2");
        assert_eq!(bed.get(1, "/x", "").await.body(), "answer 2");
    });
}

#[test]
fn head_requests_are_recorded_of_their_own() {
    run(async {
        let origin = Origin::start(|_, _| vec![send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")]).await;
        let bed = Bed::start(&origin, 2);
        for listener in 0..3 {
            let response = bed.request(listener, "HEAD", "/x", "", "").await;
            assert_eq!((response.status, response.field("content-length")), (200, Some("9")));
        }
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn a_condition_goes_to_the_origin_once_and_its_304_serves_those_who_have_the_same() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.has("If-None-Match: \"v\"") {
            true => vec![send("HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\n\r\n")],
            false => ok("ETag: \"v\"\r\n", "body"),
        })
        .await;
        let bed = Bed::start(&origin, 2);
        assert_eq!(bed.get(0, "/x", "If-None-Match: \"v\"\r\n").await.status, 304);
        assert_eq!(bed.get(1, "/x", "If-None-Match: W/\"v\"\r\n").await.status, 304);
        assert_eq!(origin.count(), 1);
        assert_eq!(bed.get(2, "/x", "").await.body(), "body", "a 304 is of no use to it");
        assert_eq!(origin.count(), 2);
        assert_eq!(bed.get(2, "/x", "If-None-Match: \"v\"\r\n").await.status, 304);
        assert_eq!(origin.count(), 2);
    });
}

#[test]
fn old_clients_get_bodies_without_chunks() {
    run(async {
        let origin = Origin::start(|_, _| {
            vec![
                send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
                send("2\r\nde\r\n0\r\n\r\n"),
            ]
        })
        .await;
        let bed = Bed::start(&origin, 1);
        let mut client = bed.client(1).await;
        client.send("GET http://a/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        let response = client.response("GET").await;
        assert_eq!((response.body(), response.field("connection")), ("abcde", Some("close")));
        let response = bed.get(0, "/x", "").await;
        assert_eq!((response.body(), response.field("transfer-encoding")), ("abcde", Some("chunked")));
        assert!(response.field("via").is_some());
    });
}

/// The field by which the Multiplier numbers a request.
fn number(n: usize) -> String {
    format!("X-Assay-Request: {n}\r\n")
}

#[test]
fn a_numbered_request_gets_what_its_client_got_in_any_order_and_as_often_as_it_is_sent() {
    run(async {
        let origin = Origin::start(counting(UNCACHEABLE)).await;
        let bed = Bed::start(&origin, 2);
        for n in 0..20 {
            assert_eq!(bed.get(0, "/x", &number(n)).await.body(), format!("answer {n}"));
        }
        for n in (0..20).rev() {
            assert_eq!(bed.get(1, "/x", &number(n)).await.body(), format!("answer {n}"));
            // A proxy whose connection broke sends its request once more.
            assert_eq!(bed.get(1, "/x", &number(n)).await.body(), format!("answer {n}"));
        }
        for n in [7, 3, 19, 0] {
            assert_eq!(bed.get(2, "/x", &number(n)).await.body(), format!("answer {n}"));
        }
        assert_eq!(origin.count(), 20);
        assert!(origin.seen().iter().all(|seen| !seen.head.to_ascii_lowercase().contains("x-assay")));
    });
}

#[test]
fn a_post_whose_response_is_gone_is_not_sent_again_for_a_proxy() {
    run(async {
        // More than a quarter of the memory: it is not kept.
        let body = "x".repeat(300_000);
        let origin = Origin::start(move |_, _| ok("", &body)).await;
        let bed =
            Bed::of(&assay_spe::spec::CollectorSpec { memory_bytes: 1_000_000, ..spec(origin.address, 2) });
        let post = async |listener, n| {
            let fields = format!("{}Content-Length: 2\r\n", number(n));
            bed.request(listener, "POST", "/x", &fields, "hi").await
        };
        assert_eq!(post(0, 5).await.body().len(), 300_000);
        for listener in [1, 2, 1] {
            let response = post(listener, 5).await;
            let mark = response.field("x-assay-lost").expect("a mark");
            assert!(response.status == 503 && mark.starts_with("5-") && mark.len() == 66, "{mark}");
            assert!(response.body().contains("has not kept"));
        }
        assert_eq!(origin.count(), 1, "it may have changed something");
        let own = post(1, 6).await;
        assert_eq!((own.status, own.field("x-assay-lost")), (200, None), "no client has sent this one");
        assert_eq!((origin.count(), bed.collector.counters().not_kept), (2, 2));
    });
}

#[test]
fn what_clients_name_is_requested_only_in_networks_that_are_allowed() {
    run(async {
        let origin = Origin::start(counting(CACHEABLE)).await;
        let port = origin.address.port();
        let forward = |named: &[&str]| {
            let named = named.iter().map(|network| network.parse().unwrap()).collect();
            let mut told = spec(origin.address, 1);
            told.origins.clear();
            (told.default_origin, told.destinations) = (None, Some(Destinations::public_and(named)));
            Bed::of(&told)
        };
        let hosts = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::1]"];
        let status = async |bed: &Bed, listener: usize, request: String| {
            let mut client = bed.client(listener).await;
            client.send(request).await;
            // Only its head: that to CONNECT has no end.
            client.response("HEAD").await.status
        };
        let get = |host: &str| format!("GET http://{host}:{port}/x HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        let tunnel = |host: &str| format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        let closed = forward(&["10.0.0.0/8"]);
        for (host, listener) in hosts.iter().flat_map(|&host| [(host, 0), (host, 1)]) {
            assert_eq!(status(&closed, listener, get(host)).await, 403, "{host} at {listener}");
            assert_eq!(status(&closed, listener, tunnel(host)).await, 403, "{host} at {listener}, CONNECT");
        }
        assert_eq!(origin.count(), 0);
        let counters = closed.collector.counters();
        // Ten tunnels, and five objects: the second listener gets the response that the first got.
        assert_eq!((counters.not_allowed, counters.origin_errors), (15, 0));
        let open = forward(&["127.0.0.1"]);
        assert_eq!(status(&open, 0, get("127.0.0.1")).await, 200);
        assert_eq!(status(&open, 1, tunnel("127.0.0.1")).await, 200);
        assert_eq!(origin.count(), 1);
    });
}
