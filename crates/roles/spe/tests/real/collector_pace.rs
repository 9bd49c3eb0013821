//! Responses keep the pace of their recording.

use std::rc::Rc;
use std::time::Duration;

use assay_spe::spec::{CollectorSpec, DiskSpec};
use tokio::net::TcpSocket;
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
        // There is no listener, and no other program gets the port as long as this has it.
        let nobody = TcpSocket::new_v4().unwrap();
        nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let bed = Bed::of(&spec(nobody.local_addr().unwrap(), 1));
        assert_eq!(bed.get(0, "/x", "").await.status, 502);
        assert_eq!(bed.collector.counters().origin_errors, 1);
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
