//! Links do to packets what they are to do, between namespaces that these tests make themselves. Needs root, without which they are skipped, and a
//! machine that is not too busy.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use assay_host::link::{LinkSettings, LossPlan, Namespace, interface, probe};

mod linked;

use assay_host::link::probe::Endpoint;
use linked::{THERE, link_namespaces};

fn socket(namespace: &Namespace, address: Ipv4Addr) -> UdpSocket {
    let made = namespace.run(|| UdpSocket::bind((address, 0)));
    made.unwrap().unwrap()
}

#[test]
fn exactly_the_planned_packets_are_missing_at_the_other_end() {
    let seed = 7;
    let settings = "loss=20%";
    let Some(mut linked) = link_namespaces(settings, seed, "reno") else { return };
    // Any address of the network is the namespace's own, without having been added.
    let receiver = socket(&linked.there, Ipv4Addr::new(10, 2, 77, 9));
    let sender = socket(&linked.here, Ipv4Addr::new(10, 1, 3, 4));
    receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let to: SocketAddr = receiver.local_addr().unwrap();
    let plan = LossPlan::new(&settings.parse().unwrap(), seed, 0);
    let mut buffer = [0; 8];
    for n in 0..500_u64 {
        sender.send_to(&n.to_be_bytes(), to).unwrap();
        if plan.is_lost(n) {
            continue;
        }
        // One after the other: what comes is this one, or the plan was not kept.
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 8, "packet {n}");
        assert_eq!(u64::from_be_bytes(buffer), n);
    }
    receiver.set_nonblocking(true).unwrap();
    assert_eq!(receiver.recv(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let [there, back] = linked.link.counts().unwrap();
    assert_eq!((there.packets, there.wire, there.lost), (500, 500, plan.lost_among(500)));
    assert_eq!((there.delivered, there.failed, back.packets), (500 - there.lost, 0, 0));
    linked.link.end().unwrap();
}

#[test]
fn no_round_trip_is_shorter_than_its_delays() {
    let Some(linked) = link_namespaces("delay=20ms", 1, "reno") else { return };
    let trips =
        probe::round_trips(&linked.here, THERE, 50, Duration::from_millis(1), Duration::from_secs(10))
            .unwrap();
    assert_eq!(trips.times.count(), 50);
    assert!(trips.times.to_sparse().buckets[0].0 >= 39_900);
}

#[test]
fn a_rate_is_never_passed_and_what_comes_on_top_is_dropped_at_the_queue() {
    let settings: LinkSettings = "rate=4Mbit/s,queue=20kB".parse().unwrap();
    let Some(mut linked) = link_namespaces(&settings.to_string(), 1, "reno") else { return };
    let rate = probe::rate(
        &linked.here,
        Endpoint { namespace: &linked.there, address: THERE },
        4_000_000,
        Duration::from_millis(500),
    )
    .unwrap();
    let rate = rate.unwrap();
    assert!(rate < 4_100_000.0, "{rate}");
    let [there, _] = linked.link.counts().unwrap();
    assert!(there.queue_full > 0);
    assert_eq!(there.packets, there.delivered + there.queue_full);
}

#[test]
fn connections_are_carried_by_the_congestion_control_that_was_named() {
    for name in ["reno", "cubic", "bbr"] {
        if !interface::sysctl("net/ipv4/tcp_available_congestion_control").unwrap().contains(name) {
            continue;
        }
        let Some(linked) = link_namespaces("delay=1ms", 1, name) else { return };
        let seen = probe::congestion_control(
            &linked.here,
            Endpoint { namespace: &linked.there, address: THERE },
            Duration::from_secs(10),
        )
        .unwrap();
        assert_eq!(seen, [name, name]);
    }
}
