//! Proxies that do not respond in time, and clients that send a byte now and then: nothing is lost but what
//! each spoils itself.

use std::time::Duration;

use assay_record::spe::{ResponseError, Verdict};
use assay_spe::multiplier::MultiplierLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::faults::{check, request_twice};
use crate::multiplier_bed::{Bed, Part, Server, ok, run, send};

#[test]
fn a_proxy_that_does_not_respond_in_time_is_given_up_wherever_it_stands_still() {
    run(async {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let hanging = [
            (vec![Part::Hang], ResponseError::TimedOut),
            (vec![send("HTTP/1.1 200 OK\r\n"), Part::Hang], ResponseError::TimedOut),
            (vec![send(head), send("he"), Part::Hang], ResponseError::TimedOut),
        ];
        // On a busy machine others may be late too: they are not looked at.
        let rows = request_twice(&hanging, 300).await;
        for target in 1..=3 {
            check(&rows, target, (Verdict::NoResponse, Some(ResponseError::TimedOut)));
        }
    });
}

#[test]
fn many_clients_at_once_are_served_and_every_response_is_compared() {
    const CLIENTS: usize = 200;
    run(async {
        let collector = Server::start(|seen, _| ok("", seen.line())).await;
        let sound = Server::start(|seen, _| ok("", seen.line())).await;
        let hanging = Server::of(vec![Part::Hang]).await;
        let proxies = [sound.address, hanging.address, sound.address];
        let bed = Bed::with(&collector, &proxies, |spec| {
            (spec.max_waiting, spec.response_timeout_ms) = (1000, 2000)
        });
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(bed.client().await);
        }
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.response("GET").await.body, Some(format!("GET /{number} HTTP/1.1")));
        }
        bed.responses(CLIENTS as u64).await;
        let counters = bed.counters();
        assert_eq!(counters.open_clients, CLIENTS as u64);
        for target in [1, 3] {
            assert_eq!(counters.targets[target].matching, CLIENTS as u64);
        }
        assert_eq!(counters.targets[2].no_response, CLIENTS as u64);
        assert_eq!(bed.finish().await.len(), 4 * CLIENTS);
    });
}

#[test]
fn a_head_that_drips_is_refused_in_time_however_often_a_byte_comes() {
    run(async {
        let collector = Server::of(ok("", "hello")).await;
        let limits =
            MultiplierLimits { client_read: Duration::from_millis(300), ..MultiplierLimits::default() };
        let bed = Bed::with_limits(&collector, &[], limits, |_| {});
        let mut client = bed.client().await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Long: ").await;
        let (mut from, mut to) = client.stream.split();
        let dripping = async {
            while to.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let mut got = vec![0; 12];
        tokio::select! {
            read = from.read_exact(&mut got) => drop(read.expect("a response")),
            () = dripping => panic!("the connection ended without a response"),
        }
        assert_eq!((&got[..], collector.count()), (&b"HTTP/1.1 408"[..], 0));
        bed.finish().await;
    });
}
