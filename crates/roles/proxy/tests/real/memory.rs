//! Origins and clients that are too slow for what would be stored, or for others that wait.

use std::rc::Rc;
use std::time::Duration;

use assay_proxy::ProxyLimits;
use assay_testbed::pause_ms;
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;

use crate::harness::{Bed, Origin, Part, run, send, until};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn what_comes_byte_by_byte_is_not_stored_and_ends_with_its_last_client() {
    run(async {
        let origin = Origin::start(|_, _| {
            let head = send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 100000\r\n\r\n"));
            let drops = (0..200).flat_map(|_| [send("x"), pause_ms(20)]);
            [head].into_iter().chain(drops).chain([Part::Hang]).collect()
        })
        .await;
        let limits = ProxyLimits { origin_response: Duration::from_millis(300), ..ProxyLimits::default() };
        let bed = Bed::with_limits(&[("a", origin.address)], limits);
        let mut client = bed.client().await;
        client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.head("GET").await;
        drop(client);
        until(|| origin.open() == 0).await;
        assert_eq!((bed.counters().origin_errors, bed.counters().stored_bytes), (0, 0));
    });
}

#[test]
fn a_client_that_takes_nothing_of_what_turns_out_too_large_keeps_no_other_waiting() {
    run(async {
        let size = 20_000_000;
        let go = Rc::new(Semaphore::new(0));
        let wait = Rc::clone(&go);
        let origin = Origin::start(move |_, _| {
            let head = format!("HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n");
            let chunk = format!("{size:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(size));
            vec![Part::Wait(Rc::clone(&wait)), send(head), send(chunk)]
        })
        .await;
        let bed = Bed::with_limits(&[("a", origin.address)], ProxyLimits::default());
        let (mut idle, mut client) = (bed.client().await, bed.client().await);
        idle.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| origin.count() == 1).await;
        client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until(|| bed.counters().requests == 2).await;
        go.add_permits(1);
        assert_eq!(client.response("GET").await.body().len(), size);
        assert_eq!((origin.count(), bed.counters().stored_bytes), (1, 0));
        // It is shown that it lacks something.
        let mut room = vec![0; 1 << 20];
        let mut received = 0;
        while let Ok(count @ 1..) = idle.stream.read(&mut room).await {
            received += count;
        }
        assert!(received < size, "{received}");
    });
}
