//! Faults are part of a recording, and memory is bounded.

use std::rc::Rc;

use assay_spe::spec::CollectorSpec;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::collector_harness::*;

#[test]
fn an_origin_that_breaks_off_does_so_for_everybody() {
    run(async {
        let origin = Origin::start(|_, _| {
            vec![
                send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nCache-Control: max-age=99\r\n\r\nabc"),
                pause_ms(50),
                Part::Close,
            ]
        })
        .await;
        let bed = Bed::start(&origin, 2);
        for listener in 0..3 {
            let response = bed.get(listener, "/x", "").await;
            assert_eq!((response.status, response.body.as_deref()), (200, None));
            assert_eq!(response.arrivals.last().unwrap().0, 3);
        }
        assert_eq!(origin.count(), 1);
        assert!(bed.get(1, "/x", "").await.body.is_none());
        assert_eq!(origin.count(), 2, "the next request gets another try");
    });
}

#[test]
fn a_client_that_leaves_half_way_takes_nothing_from_the_others() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| {
            vec![
                send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"),
                Part::Wait(Rc::clone(&held)),
                send("def"),
            ]
        })
        .await;
        let bed = Bed::start(&origin, 2);
        let mut leaving = bed.client(0).await;
        leaving.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        leaving.stream.read_buf(&mut leaving.buf).await.unwrap();
        drop(leaving);
        let mut staying = bed.client(1).await;
        staying.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| bed.listeners()[1].requests == 1).await;
        gate.add_permits(1);
        assert_eq!(staying.response("GET").await.body(), "abcdef");
        assert_eq!(bed.get(2, "/x", "").await.body(), "abcdef");
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn memory_is_bounded_and_what_goes_is_fetched_again() {
    run(async {
        let body = "x".repeat(20_000);
        let origin = Origin::start(move |_, _| ok(CACHEABLE, &body)).await;
        let memory_bytes = 100_000;
        let bed = Bed::of(&CollectorSpec { memory_bytes, ..spec(origin.address, 1) });
        for n in 0..20 {
            assert_eq!(bed.get(0, &format!("/{n}"), "").await.body().len(), 20_000);
        }
        let totals = bed.collector.counters();
        assert!(totals.evictions >= 15 && totals.recordings <= 5, "{totals:?}");
        assert!(totals.peak_recordings_bytes <= memory_bytes && totals.memory_bytes > 0, "{totals:?}");
        bed.get(0, "/19", "").await;
        assert_eq!(origin.count(), 20);
        bed.get(0, "/0", "").await;
        assert_eq!(origin.count(), 21);
    });
}

#[test]
fn what_is_larger_than_its_share_of_memory_goes_through_to_those_who_wait() {
    run(async {
        let body = "x".repeat(3_000_000);
        let origin = Origin::start(move |_, _| ok(CACHEABLE, &body)).await;
        let bed = Rc::new(Bed::of(&CollectorSpec { memory_bytes: 1_000_000, ..spec(origin.address, 1) }));
        let all: Vec<_> = (0..2)
            .map(|listener| {
                let bed = Rc::clone(&bed);
                spawn_local(async move { bed.get(listener, "/x", "").await.body().len() })
            })
            .collect();
        for one in all {
            assert_eq!(one.await.unwrap(), 3_000_000);
        }
        assert_eq!(origin.count(), 2, "nobody waits for anybody");
        let totals = bed.collector.counters();
        assert!(totals.peak_recordings_bytes <= 1_000_000, "{totals:?}");
    });
}

#[test]
fn a_client_never_waits_for_a_proxy_that_does_not_read_what_is_too_large_to_keep() {
    run(async {
        const BYTES: usize = 40_000_000;
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| {
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{CACHEABLE}\r\nx");
            vec![send(head), Part::Wait(Rc::clone(&held)), send("x".repeat(BYTES)), Part::Close]
        })
        .await;
        let bed = Rc::new(Bed::of(&CollectorSpec { memory_bytes: 1_000_000, ..spec(origin.address, 1) }));
        let client = Rc::clone(&bed);
        let client = spawn_local(async move { client.get(0, "/x", "").await.body().len() });
        until(|| bed.listeners()[0].fetches == 1).await;
        let mut proxy = bed.client(1).await;
        proxy.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| bed.listeners()[1].joined == 1).await;
        gate.add_permits(1);
        assert_eq!(client.await.unwrap(), BYTES + 1);
        assert_eq!((origin.count(), bed.collector.counters().given_up), (1, 1));
        assert_eq!(proxy.response("GET").await.body, None, "it was broken off");
    });
}

#[test]
fn a_body_that_there_is_no_room_for_is_refused() {
    run(async {
        let origin = Origin::start(|_, _| ok("", "")).await;
        let bed = Bed::of(&CollectorSpec { memory_bytes: 100_000, ..spec(origin.address, 1) });
        let mut client = bed.client(0).await;
        client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n").await;
        client.send("x".repeat(60_000)).await;
        assert_eq!(client.response("POST").await.status, 413);
        assert_eq!((origin.count(), bed.collector.counters().refused), (0, 1));
    });
}

#[test]
fn tunnels_go_through_unseen() {
    run(async {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        spawn_local(async move {
            let (mut stream, _) = server.accept().await.unwrap();
            let mut said = [0; 4];
            stream.read_exact(&mut said).await.unwrap();
            stream.write_all(&said).await.unwrap();
        });
        let origin = Origin::start(|_, _| ok("", "")).await;
        let bed = Bed::of(&CollectorSpec { default_origin: None, ..spec(origin.address, 1) });
        let mut client = bed.client(1).await;
        client.send(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n")).await;
        assert_eq!(client.response("CONNECT").await.status, 200);
        client.send("ping").await;
        let mut echo = [0; 4];
        client.stream.read_exact(&mut echo).await.unwrap();
        assert_eq!((&echo, bed.collector.counters().connects), (b"ping", 1));
    });
}

#[test]
fn what_is_no_request_is_refused() {
    run(async {
        let origin = Origin::start(|_, _| ok("", "")).await;
        let bed = Bed::start(&origin, 1);
        for (text, status) in [
            ("nonsense\r\n\r\n", 400),
            ("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 501),
            ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ] {
            let mut client = bed.client(1).await;
            client.send(text).await;
            assert_eq!(client.response("GET").await.status, status, "{text}");
        }
        assert_eq!(origin.count(), 0);
    });
}
