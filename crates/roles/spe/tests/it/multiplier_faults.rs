//! Whatever a proxy does, or a client: nothing is lost but what it spoils itself.

use std::rc::Rc;

use assay_record::spe::{ResponseError, Verdict};
use assay_spe::multiplier::MultiplierLimits;
use assay_spe::spec::When;
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;

use crate::faults::{check, request_twice};
use crate::multiplier_bed::{Bed, Part, Server, ok, run, send, until};

#[test]
fn every_kind_of_broken_proxy_costs_its_own_samples_only() {
    run(async {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let endless = "HTTP/1.1 200 OK\r\n\r\n";
        let broken = [
            (vec![Part::Close], ResponseError::Reset),
            (vec![send("\u{0}\u{1}garbage\r\n\r\n"), Part::Hang], ResponseError::Garbage),
            (vec![send(head), send("he"), Part::Close], ResponseError::Truncated),
            (
                vec![send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloEXTRA"), Part::Hang],
                ResponseError::ExtraBytes,
            ),
            (vec![send(endless), Part::Endless(vec![b'x'; 65536])], ResponseError::TooLong),
            (
                vec![send("HTTP/1.1 200 OK\r\n"), Part::Endless(b"X-More: 1\r\n".to_vec())],
                ResponseError::TooLong,
            ),
            (vec![Part::Endless(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec())], ResponseError::TooLong),
            (
                vec![send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), Part::Hang],
                ResponseError::Garbage,
            ),
        ];
        // However busy the machine is, none of these is late.
        let rows = request_twice(&broken, 60_000).await;
        let errors = broken.iter().map(|(_, error)| *error).chain([ResponseError::Refused]);
        for (target, error) in (1..).zip(errors) {
            check(&rows, target, (Verdict::NoResponse, Some(error)));
        }
        check(&rows, broken.len() as u16 + 2, (Verdict::Ok, None));
    });
}

#[test]
fn a_response_that_goes_on_and_on_is_cut_off_while_the_collector_still_sends_it() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let slow = vec![Part::Wait(Rc::clone(&gate)), send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")];
        let collector = Server::of(slow).await;
        let trickle = vec![send("HTTP/1.1 200 OK\r\n\r\n"), Part::Endless(vec![b'x'; 1 << 16])];
        let proxy = Server::of(trickle).await;
        let bed = Bed::with(&collector, &[proxy.address], |spec| spec.when = When::AtOnce);
        let mut client = bed.client().await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| proxy.count() == 1).await;
        gate.add_permits(1);
        assert_eq!(client.response("GET").await.body.as_deref(), Some("x"));
        bed.responses(1).await;
        let rows = bed.finish().await;
        assert_eq!(rows[1].error, Some(ResponseError::TooLong));
    });
}

#[test]
fn requests_for_a_proxy_that_hangs_are_dropped_past_the_bound_and_counted() {
    run(async {
        let collector = Server::of(ok("", "x")).await;
        let gate = Rc::new(Semaphore::new(0));
        let hanging = Server::of([vec![Part::Wait(Rc::clone(&gate))], ok("", "x")].concat()).await;
        let sound = Server::of(ok("", "x")).await;
        let bed = Bed::with(&collector, &[hanging.address, sound.address], |spec| spec.max_waiting = 3);
        for requested in 1..=8 {
            assert_eq!(bed.get("/").await.status, 200);
            until(|| bed.counters().targets[2].responses == requested).await;
        }
        let counters = bed.counters();
        assert_eq!((counters.targets[1].dropped, counters.targets[1].waiting), (5, 3));
        gate.add_permits(3);
        bed.responses(8).await;
        let rows = bed.finish().await;
        let of = |verdict| rows.iter().filter(|row| row.target == 1 && row.verdict == verdict).count();
        assert_eq!((of(Verdict::Dropped), of(Verdict::Ok)), (5, 3));
    });
}

#[test]
fn a_client_that_leaves_takes_nothing_from_the_proxies() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let large = "y".repeat(200_000);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", large.len() * 50);
        let mut parts = vec![send(&head), send(&large), Part::Wait(Rc::clone(&gate))];
        parts.extend((0..49).map(|_| send(&large)));
        let collector = Server::of(parts).await;
        let whole = large.repeat(50);
        let proxy = Server::of(ok("", &whole)).await;
        let bed = Bed::start(&collector, &[proxy.address]);
        let mut client = bed.client().await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.stream.read_buf(&mut client.buf).await.unwrap();
        drop(client);
        gate.add_permits(1);
        bed.responses(1).await;
        assert_eq!(bed.counters().client_gone, 1);
        let rows = bed.finish().await;
        assert_eq!(rows[0].error, Some(ResponseError::ClientGone));
        assert_eq!((rows[1].verdict, rows[1].body_bytes), (Verdict::Ok, whole.len() as u64));
    });
}

#[test]
fn half_a_request_is_nobodys() {
    run(async {
        let collector = Server::of(ok("", "x")).await;
        let proxy = Server::of(ok("", "x")).await;
        let bed = Bed::start(&collector, &[proxy.address]);
        let mut client = bed.client().await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc").await;
        drop(client);
        until(|| bed.counters().clients == 1 && bed.counters().open_clients == 0).await;
        let rows = bed.finish().await;
        assert_eq!((rows.len(), rows[0].error), (1, Some(ResponseError::ClientGone)));
        assert_eq!((collector.count(), proxy.count()), (0, 0));
    });
}

#[test]
fn at_the_end_clients_get_the_responses_that_they_wait_for_and_no_new_ones() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let collector = Server::of([vec![Part::Wait(Rc::clone(&gate))], ok("", "x")].concat()).await;
        let proxy = Server::of(ok("", "x")).await;
        let bed = Bed::start(&collector, &[proxy.address]);
        let (mut waiting, mut idle) = (bed.client().await, bed.client().await);
        waiting.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| collector.count() == 1 && bed.counters().open_clients == 2).await;
        let release = async {
            assert!(idle.is_closed().await);
            gate.add_permits(1);
            let response = waiting.response("GET").await;
            assert!(response.head.contains("\r\nConnection: close\r\n"), "{}", response.head);
            assert!(waiting.is_closed().await);
        };
        let (rows, ()) = tokio::join!(bed.finish(), release);
        assert_eq!(
            rows.iter().map(|row| row.verdict).collect::<Vec<_>>(),
            [Verdict::NotCompared, Verdict::Ok]
        );
    });
}

#[test]
fn a_broken_body_does_not_look_whole_to_a_client_that_takes_the_end_for_its_end() {
    run(async {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
        for end in [send("zz\r\n"), Part::Close] {
            let collector = Server::of(vec![send(head), end, Part::Close]).await;
            let bed = Bed::start(&collector, &[]);
            let mut client = bed.client().await;
            client.send("GET / HTTP/1.0\r\n\r\n").await;
            let mut got = Vec::new();
            let read = client.stream.read_to_end(&mut got).await;
            let error = read.expect_err("the end of the connection is not that of the body").kind();
            assert_eq!(error, std::io::ErrorKind::ConnectionReset);
            bed.finish().await;
        }
    });
}

#[test]
fn a_request_that_may_not_be_passed_on_is_not_and_an_empty_reason_keeps_its_space() {
    run(async {
        let collector = Server::of(vec![send("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n")]).await;
        let bed = Bed::start(&collector, &[]);
        let mut client = bed.client().await;
        let last = client.request("OPTIONS", "*", "Max-Forwards: 0\r\n").await;
        assert_eq!((last.status, last.field("Allow").is_some(), collector.count()), (200, true, 0));
        assert_eq!(client.request("TRACE", "/", "Max-Forwards: 0\r\n").await.status, 501);
        let passed = client.request("OPTIONS", "*", "Max-Forwards: 1\r\n").await;
        assert!(passed.head.starts_with("HTTP/1.1 200 \r\n"), "{}", passed.head);
        assert!(collector.seen()[0].has("Max-Forwards: 0"));
        bed.finish().await;
    });
}

#[test]
fn clients_that_keep_connections_without_a_use_make_room_for_others() {
    run(async {
        let (collector, proxy) = (Server::of(ok("", "x")).await, Server::of(ok("", "x")).await);
        // Room for four: a quarter of the descriptors beside those for other things.
        let limits = MultiplierLimits { descriptors: 216, ..MultiplierLimits::default() };
        let bed = Bed::with_limits(&collector, &[proxy.address], limits, |_| {});
        let mut idle = Vec::new();
        for _ in 0..4 {
            let mut client = bed.client().await;
            assert_eq!(client.get("/", "").await.status, 200);
            idle.push(client);
        }
        for _ in 0..8 {
            assert_eq!(bed.get("/").await.status, 200);
        }
        let counters = bed.counters();
        assert!(counters.open_clients <= 4 && counters.dismissed_clients >= 1, "{counters:?}");
        assert_eq!((counters.slow_clients, counters.refused, counters.no_room), (0, 0, 0));
        assert!(idle[0].is_closed().await, "it has waited longest");
    });
}

#[test]
fn what_there_is_no_room_for_is_told_apart_from_what_is_refused() {
    run(async {
        let established = "HTTP/1.1 200 Established\r\n\r\n";
        let (collector, proxy) =
            (Server::of(vec![send(established), Part::Hang]).await, Server::of(ok("", "x")).await);
        // Room for four clients, three of whom may have a tunnel that is not opened.
        let limits = MultiplierLimits { descriptors: 216, ..MultiplierLimits::default() };
        let bed = Bed::with_limits(&collector, &[proxy.address], limits, |spec| spec.forward = true);
        let mut clients = Vec::new();
        for status in [200, 200, 200, 503] {
            let mut client = bed.client().await;
            client.send("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n").await;
            assert_eq!(client.response("CONNECT").await.status, status);
            clients.push(client);
        }
        let counters = bed.counters();
        assert_eq!((counters.no_room, counters.refused, counters.connects), (1, 0, 4));
    });
}

#[test]
fn uploads_that_stand_still_keep_no_room_from_those_of_others() {
    run(async {
        let (collector, proxy) = (Server::of(ok("", "x")).await, Server::of(ok("", "x")).await);
        let bed = Bed::start(&collector, &[proxy.address]);
        let mut standing = Vec::new();
        for _ in 0..100 {
            let mut client = bed.client().await;
            client.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx").await;
            standing.push(client);
        }
        until(|| bed.counters().requests == 100).await;
        let mut client = bed.client().await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
        assert_eq!(client.response("POST").await.status, 200);
        until(|| bed.counters().targets[1].matching == 1).await;
    });
}

#[test]
fn one_connection_with_many_requests_leaves_places_at_a_proxy_to_others() {
    run(async {
        let collector = Server::of(ok("", "x")).await;
        let hanging = Server::of(vec![Part::Hang]).await;
        let bed = Bed::with(&collector, &[hanging.address], |spec| spec.max_waiting = 4);
        let mut many = bed.client().await;
        for _ in 0..6 {
            assert_eq!(many.get("/", "").await.status, 200);
        }
        until(|| bed.counters().targets[1].dropped == 4).await;
        assert_eq!(bed.counters().targets[1].waiting, 2);
        assert_eq!(bed.get("/").await.status, 200);
        until(|| bed.counters().targets[1].waiting == 3).await;
        assert_eq!(bed.counters().targets[1].dropped, 4);
    });
}
