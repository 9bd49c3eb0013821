//! Responses keep the pace of their recording, and faults are part of it.

use std::rc::Rc;
use std::time::Duration;

use assay_role::evaluation::{CollectorSpec, DiskSpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::collector_harness::*;

/// A head after 30 ms, then three parts 40 ms apart.
fn slowly(_: &Seen, _: usize) -> Vec<Part> {
    let mut parts =
        vec![pause_ms(30), send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nCache-Control: max-age=99\r\n\r\n")];
    for text in ["abc", "def", "ghi"] {
        parts.extend([pause_ms(40), send(text)]);
    }
    parts
}

/// No part of a response came earlier than the origin's own delays allow; there is no upper bound on a busy machine.
fn assert_pace(response: &Response) {
    assert_eq!(response.body(), "abcdefghi");
    assert!(response.first_byte >= Duration::from_millis(30), "{response:?}");
    for (part, bytes) in [3, 6, 9].into_iter().enumerate() {
        let (_, at) = response.arrivals.iter().find(|(came, _)| *came >= bytes).unwrap();
        assert!(*at >= Duration::from_millis(30 + 40 * (part as u64 + 1)), "{response:?}");
    }
}

#[test]
fn a_replay_takes_the_time_that_the_fetch_took_part_by_part() {
    run(async {
        let origin = Origin::start(slowly).await;
        let bed = Bed::start(&origin, 3);
        for listener in 0..4 {
            assert_pace(&bed.get(listener, "/x", "").await);
        }
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn who_joins_late_gets_each_part_as_late_after_its_own_request() {
    run(async {
        let origin = Origin::start(slowly).await;
        let bed = Rc::new(Bed::start(&origin, 2));
        let joining = |listener: usize, after_ms: u64| {
            let bed = Rc::clone(&bed);
            spawn_local(async move {
                tokio::time::sleep(Duration::from_millis(after_ms)).await;
                bed.get(listener, "/x", "").await
            })
        };
        let all = [joining(0, 0), joining(1, 20), joining(2, 90)];
        for one in all {
            assert_pace(&one.await.unwrap());
        }
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn without_replay_what_is_there_goes_out_at_once() {
    run(async {
        let gate = Rc::new(Semaphore::new(1));
        let held = Rc::clone(&gate);
        // The way to the origin takes four seconds, which no replay that is switched off does.
        let origin = Origin::start(move |_, _| {
            let mut parts = vec![pause_ms(4_000), Part::Wait(Rc::clone(&held))];
            parts.extend(ok(CACHEABLE, "body"));
            parts
        })
        .await;
        let bed = Bed::of(&CollectorSpec { replay: false, ..spec(origin.address, 1) });
        bed.get(0, "/x", "").await;
        let response = bed.get(1, "/x", "").await;
        assert_eq!(response.body(), "body");
        assert!(response.first_byte < Duration::from_millis(3_900), "{response:?}");
    });
}

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
fn an_origin_that_resets_or_refuses_is_a_502_that_takes_its_time() {
    run(async {
        let origin = Origin::start(|_, _| vec![pause_ms(60), Part::Reset]).await;
        let bed = Bed::start(&origin, 2);
        for listener in 0..3 {
            let response = bed.get(listener, "/x", "").await;
            assert_eq!(response.status, 502);
            assert!(response.first_byte >= Duration::from_millis(60));
            assert_eq!(response.field("cache-control"), Some("no-store"));
        }
        assert_eq!(origin.count(), 1);
        // No test listens on this host: no other can be given the port.
        let nobody = TcpListener::bind("127.83.0.1:0").await.unwrap().local_addr().unwrap();
        let bed = Bed::of(&spec(nobody, 1));
        assert_eq!(bed.get(0, "/x", "").await.status, 502);
        assert_eq!(bed.collector.counters().origin_errors, 1);
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
fn what_memory_has_no_room_for_comes_back_from_disk_at_the_same_pace() {
    run(async {
        let origin = Origin::start(|seen, _| {
            let body = format!("{} {}", seen.line(), "x".repeat(20_000));
            vec![pause_ms(20), ok(CACHEABLE, &body).remove(0)]
        })
        .await;
        let directory = tempfile::tempdir().unwrap();
        let disk = DiskSpec { directory: directory.path().join("recordings"), bytes: 300_000 };
        let memory_bytes = 100_000;
        let bed = Bed::of(&CollectorSpec { memory_bytes, disk: Some(disk), ..spec(origin.address, 1) });
        for _ in 0..2 {
            for n in 0..10 {
                let response = bed.get(1, &format!("/{n}"), "").await;
                assert!(response.body().starts_with(&format!("GET /{n} ")) && response.body().len() > 20_000);
                assert!(response.first_byte >= std::time::Duration::from_millis(20));
            }
        }
        let totals = bed.collector.counters();
        assert_eq!((origin.count(), totals.evictions), (10, 0));
        assert!(totals.peak_recordings_bytes <= memory_bytes && totals.disk_bytes > 100_000, "{totals:?}");
        for n in 10..40 {
            bed.get(1, &format!("/{n}"), "").await;
        }
        let totals = bed.collector.counters();
        assert!(totals.evictions > 10 && totals.disk_bytes <= 300_000, "{totals:?}");
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
