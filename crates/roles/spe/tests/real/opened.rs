//! A tunnel in which its client says nothing.

use std::time::Duration;

use assay_protocol::evaluation::OpenedCounters;
use assay_spe::multiplier::MultiplierLimits;
use tokio::io::AsyncReadExt;

use crate::multiplier_bed::{Server, ok, run};
use crate::tunnels::{authority, counted, opening, tunnel};

#[test]
fn a_client_that_says_nothing_in_its_tunnel_is_not_waited_for_for_ever_and_counted() {
    run(async {
        let (dir, authority) = (tempfile::tempdir().unwrap(), authority());
        let collector = Server::start(|_, _| ok("", "x")).await;
        let limits =
            MultiplierLimits { client_read: Duration::from_millis(200), ..MultiplierLimits::default() };
        let bed = opening(&authority, dir.path(), &collector, limits);
        let mut silent = tunnel(&bed, "www.test:443", b"").await;
        assert_eq!(silent.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        counted(&bed, OpenedCounters { failed: 1, ..OpenedCounters::default() }).await;
        bed.finish().await;
        assert!(collector.seen().is_empty());
    });
}
