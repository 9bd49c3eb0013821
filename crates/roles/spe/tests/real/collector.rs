//! What a replay costs, and for how long clients wait for what a proxy began.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::collector_harness::*;

#[test]
fn a_conditional_request_gets_304_from_a_recording() {
    run(async {
        let fields = "Cache-Control: max-age=1000\r\nETag: \"v\"\r\n";
        let origin = Origin::start(move |_, _| {
            vec![
                pause_ms(20),
                send(format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n{fields}\r\n")),
                pause_ms(200),
                send("body"),
            ]
        })
        .await;
        let bed = Bed::start(&origin, 1);
        assert_eq!(bed.get(0, "/x", "").await.body(), "body");
        let not_modified = bed.get(1, "/x", "If-None-Match: \"v\"\r\n").await;
        assert_eq!((not_modified.status, not_modified.body()), (304, ""));
        assert!(not_modified.first_byte >= Duration::from_millis(19), "it costs the way to the origin");
        let modified = bed.get(1, "/x", "If-None-Match: \"w\"\r\n").await;
        assert_eq!((modified.status, modified.body()), (200, "body"));
        assert!(modified.arrivals[0].1 >= Duration::from_millis(219), "and all of it costs all of it");
        assert_eq!((origin.count(), bed.listeners()[1].validations), (1, 1));
    });
}

#[test]
fn what_is_stale_is_confirmed_and_then_costs_what_it_cost() {
    run(async {
        let origin = Origin::start(|seen, before| match before {
            0 => vec![pause_ms(150), ok("Cache-Control: max-age=0\r\nETag: \"v\"\r\n", "body").remove(0)],
            _ => {
                assert!(seen.has("If-None-Match: \"v\""), "{}", seen.head);
                vec![send("HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\nX-New: 1\r\n\r\n")]
            }
        })
        .await;
        let bed = Bed::start(&origin, 1);
        assert_eq!(bed.get(0, "/x", "").await.body(), "body");
        let confirmed = bed.get(0, "/x", "").await;
        assert_eq!((confirmed.body(), confirmed.field("x-new")), ("body", Some("1")));
        let replayed = bed.get(1, "/x", "").await;
        assert_eq!(replayed.body(), "body");
        assert!(replayed.first_byte >= Duration::from_millis(149), "the cost is that of the full retrieval");
        assert_eq!(origin.count(), 2);
        assert_eq!(bed.collector.counters().confirmations, 1);
    });
}

#[test]
fn a_proxy_that_prefetches_does_not_hold_up_clients() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let held = Rc::clone(&gate);
        let origin = Origin::start(move |_, before| match before {
            0 => vec![Part::Wait(Rc::clone(&held)), Part::Close],
            _ => ok("", "answer"),
        })
        .await;
        let bed = Rc::new(Bed::start(&origin, 1));
        let prefetching = Rc::clone(&bed);
        let prefetch = spawn_local(async move { prefetching.get(1, "/x", "").await });
        until(|| origin.count() == 1).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(bed.get(0, "/x", "").await.body(), "answer");
        gate.add_permits(1);
        assert_eq!(prefetch.await.unwrap().status, 502, "its own fetch got nothing");
    });
}
