//! Many requests for one object at the same time.

use std::rc::Rc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::harness::{Bed, Client, Origin, Part, Response, ok, run, send, until};

const CLIENTS: u64 = 10;

/// Sends so many requests at once, lets the origin go on when all have come in, and gathers the responses.
async fn at_once(
    bed: &Bed,
    gate: &Semaphore,
    permits: usize,
    fields: impl Fn(u64) -> String,
) -> Vec<Response> {
    let before = bed.counters().requests;
    let mut responses = JoinSet::new();
    for n in 0..CLIENTS {
        let mut client: Client = bed.client().await;
        let fields = fields(n);
        responses.spawn_local(async move { (n, client.get("/x", &fields).await) });
    }
    until(|| bed.counters().requests == before + CLIENTS).await;
    gate.add_permits(permits);
    let mut responses = responses.join_all().await;
    responses.sort_by_key(|response| response.0);
    responses.into_iter().map(|response| response.1).collect()
}

#[test]
fn concurrent_misses_become_one_fetch() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| {
            let body = ok("Cache-Control: max-age=60\r\n", &"x".repeat(100_000));
            [vec![Part::Wait(Rc::clone(&held))], body].concat()
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let responses = at_once(&bed, &gate, 1, |_| String::new()).await;
        assert!(responses.iter().all(|response| response.body() == "x".repeat(100_000)));
        let joined = responses.iter().filter(|r| r.cache_status() == "assay; fwd=miss; collapsed").count();
        assert_eq!((joined, origin.count()), (9, 1));
        let counters = bed.counters();
        assert_eq!((counters.misses, counters.collapsed, counters.hits), (1, 9, 0));
        assert_eq!(bed.get("/x", "").await.cache_status(), "assay; hit; ttl=60");
    });
}

#[test]
fn a_joined_body_streams_and_survives_the_client_that_caused_it() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| {
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nabc";
            vec![send(head), Part::Wait(Rc::clone(&held)), send("def")]
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut first = bed.client().await;
        first.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        first.head("GET").await;
        let mut second = bed.client().await;
        second.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        // Both have a head while the body is not complete.
        let (status, head, _) = second.head("GET").await;
        assert_eq!(status, 200);
        assert!(head.contains("collapsed"));
        drop(first);
        gate.add_permits(1);
        let mut body = std::mem::take(&mut second.buf);
        while body.len() < 6 {
            assert_ne!(tokio::io::AsyncReadExt::read_buf(&mut second.stream, &mut body).await.unwrap(), 0);
        }
        assert_eq!(body, b"abcdef");
        assert_eq!(bed.get("/x", "").await.cache_status(), "assay; hit; ttl=60");
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn a_stored_fetch_is_completed_though_nobody_waits_for_it() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| {
            [vec![Part::Wait(Rc::clone(&held))], ok("Cache-Control: max-age=60\r\n", "hello")].concat()
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| origin.count() == 1).await;
        drop(client);
        gate.add_permits(1);
        until(|| bed.counters().objects == 1).await;
        assert_eq!(bed.get("/x", "").await.body(), "hello");
    });
}

#[test]
fn what_cannot_be_shared_is_fetched_by_each() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, n| {
            [vec![Part::Wait(Rc::clone(&held))], ok("Cache-Control: private\r\n", &n.to_string())].concat()
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let responses = at_once(&bed, &gate, 100, |_| String::new()).await;
        let mut bodies: Vec<_> = responses.iter().map(|response| response.body().to_owned()).collect();
        bodies.sort();
        bodies.dedup();
        assert_eq!((bodies.len(), origin.count()), (10, 10));
        assert_eq!(bed.counters().collapsed, 0);
    });
}

#[test]
fn what_one_client_may_not_share_keeps_no_others_from_sharing() {
    run(async {
        for field in ["Cache-Control: no-store\r\n", "Authorization: Basic YTpi\r\n"] {
            let gate = Rc::new(Semaphore::new(1));
            let held = Rc::clone(&gate);
            let origin = Origin::start(move |_, _| {
                [vec![Part::Wait(Rc::clone(&held))], ok("Cache-Control: max-age=60\r\n", "x")].concat()
            })
            .await;
            let bed = Bed::start(&[("a", origin.address)]);
            assert_eq!(bed.get("/x", field).await.cache_status(), "assay; fwd=miss", "{field}");
            at_once(&bed, &gate, CLIENTS as usize, |_| String::new()).await;
            assert_eq!(origin.count(), 2, "{field}");
        }
    });
}

#[test]
fn a_second_failure_is_told_to_all_who_wait() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, _| vec![Part::Wait(Rc::clone(&held)), Part::Close]).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let responses = at_once(&bed, &gate, 100, |_| String::new()).await;
        assert!(responses.iter().all(|response| response.status == 502));
        assert_eq!(origin.count(), 2);
    });
}

#[test]
fn those_who_waited_for_a_fetch_that_failed_get_what_a_second_one_gets() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, n| match n {
            0 => vec![Part::Wait(Rc::clone(&held)), Part::Close],
            _ => ok("Cache-Control: max-age=10\r\n", "x"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let responses = at_once(&bed, &gate, 100, |_| String::new()).await;
        let failed = responses.iter().filter(|response| response.status == 502).count();
        let served = responses.iter().filter(|response| response.status == 200).count();
        assert_eq!((failed, served), (1, CLIENTS as usize - 1), "whoever led the first one has its failure");
        assert_eq!(origin.count(), 2);
    });
}

#[test]
fn concurrent_validations_become_one() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, n| match n {
            0 => ok("ETag: \"a\"\r\nCache-Control: max-age=10\r\n", "x"),
            _ => {
                let confirmation = send("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=10\r\n\r\n");
                vec![Part::Wait(Rc::clone(&held)), confirmation]
            }
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        bed.get("/x", "").await;
        bed.pass_seconds(11);
        let responses = at_once(&bed, &gate, 100, |_| String::new()).await;
        assert!(responses.iter().all(|response| response.body() == "x"));
        assert_eq!(origin.count(), 2);
        assert_eq!((bed.counters().revalidated, bed.counters().collapsed), (1, 9));
    });
}

#[test]
fn requests_for_other_variants_do_not_get_the_fetched_one() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |seen, _| {
            let even = if seen.has("Accept-Language: even") { "even" } else { "odd" };
            let response = ok("Vary: Accept-Language\r\nCache-Control: max-age=60\r\n", even);
            [vec![Part::Wait(Rc::clone(&held))], response].concat()
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let language = |n: u64| if n.is_multiple_of(2) { "even" } else { "odd" };
        let responses = at_once(&bed, &gate, 100, |n| format!("Accept-Language: {}\r\n", language(n))).await;
        for (n, response) in responses.iter().enumerate() {
            assert_eq!(response.body(), language(n as u64));
        }
        assert!(bed.counters().collapsed >= 4);
    });
}

#[test]
fn a_reload_does_not_join_and_wins_over_what_is_under_way() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, n| {
            let response = ok("Cache-Control: max-age=60\r\n", &n.to_string());
            if n == 0 { [vec![Part::Wait(Rc::clone(&held))], response].concat() } else { response }
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut slow = bed.client().await;
        slow.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| origin.count() == 1).await;
        assert_eq!(bed.get("/x", "Cache-Control: no-cache\r\n").await.body(), "1");
        gate.add_permits(1);
        assert_eq!(slow.response("GET").await.body(), "0");
        assert_eq!(bed.get("/x", "").await.body(), "1");
    });
}
