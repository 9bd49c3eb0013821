//! The bound on memory: eviction, objects that are too large, clients that do not read.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use assay_proxy::ProxyLimits;
use tokio::io::AsyncReadExt;

use crate::harness::{Bed, Origin, Part, ok, run, send, spec, until};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn old_objects_make_room_and_the_bound_holds() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, &"x".repeat(10_000))).await;
        let bed = Bed::with_memory(&[("a", origin.address)], 100_000);
        let mut client = bed.client().await;
        for n in 0..30 {
            assert_eq!(client.get(&format!("/{n}"), "").await.body().len(), 10_000);
            // The first stays in use.
            client.get("/0", "").await;
            assert!(bed.counters().stored_bytes <= 100_000);
        }
        let counters = bed.counters();
        assert!((8..=9).contains(&counters.objects), "{counters:?}");
        assert_eq!(counters.evictions + counters.objects, 30);
        assert_eq!(origin.count(), 30);
        assert_eq!(client.get("/29", "").await.cache_status(), "assay; hit; ttl=60");
        assert_eq!(client.get("/1", "").await.cache_status(), "assay; fwd=miss; stored");
    });
}

#[test]
fn what_is_too_large_is_delivered_whole_and_not_stored() {
    run(async {
        let size = 3_000_000;
        let origin = Origin::start(move |seen, _| match seen.line().contains("chunked") {
            true => {
                let head = format!("HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n");
                let chunk = format!("{size:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(size));
                vec![send(head), send(chunk)]
            }
            false => ok(FRESH, &"x".repeat(size)),
        })
        .await;
        let bed = Bed::with_memory(&[("a", origin.address)], 1_000_000);
        for path in ["/length", "/chunked"] {
            let response = bed.get(path, "").await;
            assert!(response.body().len() == size && response.body().bytes().all(|b| b == b'x'), "{path}");
        }
        assert_eq!(bed.counters().objects, 0);
        assert_eq!(bed.counters().stored_bytes, 0);
    });
}

#[test]
fn a_client_that_does_not_read_holds_the_origin_back() {
    run(async {
        let size = 100_000_000;
        let sent = Rc::new(Cell::new(0usize));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bed = Bed::start(&[("a", listener.local_addr().unwrap())]);
        let mut client = bed.client().await;
        client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let (mut stream, _) = listener.accept().await.unwrap();
        // Closing with the request unread would reset the connection.
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut request).await.unwrap();
        }
        let counter = Rc::clone(&sent);
        tokio::task::spawn_local(async move {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
            tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
            let block = vec![b'x'; 65_536];
            while counter.get() < size {
                let part = &block[..block.len().min(size - counter.get())];
                let Ok(written) = tokio::io::AsyncWriteExt::write(&mut stream, part).await else { return };
                counter.set(counter.get() + written);
            }
        });
        client.head("GET").await;
        // Nothing is read here: everything between comes to rest long before the end.
        let mut last = usize::MAX;
        while last != sent.get() {
            last = sent.get();
            for _ in 0..2000 {
                tokio::task::yield_now().await;
            }
        }
        assert!(last < size / 2, "{last} bytes were taken from the origin though nobody read them");
        let mut received = client.buf.len();
        let mut room = vec![0; 1 << 20];
        while received < size {
            let count = client.stream.read(&mut room).await.unwrap();
            assert_ne!(count, 0, "closed after {received} bytes");
            received += count;
        }
        assert_eq!(received, size);
    });
}

#[test]
fn an_unstored_fetch_ends_when_its_client_goes_away() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bed = Bed::start(&[("a", listener.local_addr().unwrap())]);
        let mut client = bed.client().await;
        client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let (mut stream, _) = listener.accept().await.unwrap();
        let ended = Rc::new(Cell::new(false));
        let flag = Rc::clone(&ended);
        tokio::task::spawn_local(async move {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, head).await.unwrap();
            let block = vec![b'x'; 65_536];
            while tokio::io::AsyncWriteExt::write_all(&mut stream, &block).await.is_ok() {}
            flag.set(true);
        });
        client.head("GET").await;
        drop(client);
        until(|| ended.get()).await;
    });
}

#[test]
fn a_length_that_is_only_announced_takes_no_room_from_others() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.line().contains("announced") {
            true => {
                let head = format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 250000\r\n\r\nsome");
                vec![send(head), Part::Hang]
            }
            false => ok(FRESH, &"x".repeat(100_000)),
        })
        .await;
        let limits = ProxyLimits { origin_response: Duration::from_secs(60), ..ProxyLimits::default() };
        let bed = Bed::of(&spec(&[("a", origin.address)], 1_000_000, 0), limits);
        assert_eq!(bed.get("/before", "").await.status, 200);
        for n in 0..4 {
            // It goes away once the head is there.
            let mut client = bed.client().await;
            client.send(format!("GET /announced{n} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            client.head("GET").await;
        }
        assert_eq!(bed.get("/before", "").await.cache_status(), "assay; hit; ttl=60");
        assert_eq!(bed.get("/after", "").await.cache_status(), "assay; fwd=miss; stored");
        assert_eq!(bed.get("/after", "").await.cache_status(), "assay; hit; ttl=60");
    });
}
