//! Links between namespaces that these tests make themselves. Without root they say so and test nothing.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use assay_link::interface::{self, Tun};
use assay_link::route::{self, Network};
use assay_link::{Forwarder, LinkSettings, LossPlan, Namespace, probe};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 1, 255, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 2, 255, 1);

struct Bed {
    here: Namespace,
    there: Namespace,
    link: Forwarder,
}

/// Two namespaces joined by a link; none where this user may not have them.
fn bed(link: &str, seed: u64, congestion_control: &str) -> Option<Bed> {
    if let Some(why) = assay_link::namespace::refused() {
        eprintln!("nothing is tested: {why}");
        return None;
    }
    let settings: LinkSettings = link.parse().unwrap();
    let [here, there] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    let network = |address: Ipv4Addr| {
        let [a, b, ..] = address.octets();
        Network { address: Ipv4Addr::new(a, b, 0, 0), bits: 16 }
    };
    let end = |namespace: &Namespace, own: Ipv4Addr, other: Ipv4Addr| {
        let furnish = || {
            interface::set("net/ipv6/conf/default/disable_ipv6", "1")?;
            interface::loopback_up()?;
            let tun = Tun::create("link")?;
            tun.up(own)?;
            route::own(network(own), congestion_control)?;
            route::through(network(other), "link", congestion_control)?;
            Ok::<_, assay_link::NetError>(tun.descriptor)
        };
        namespace.run(furnish).unwrap().unwrap()
    };
    let ends = [end(&here, HERE, THERE), end(&there, THERE, HERE)];
    let link = Forwarder::start(ends, &settings, seed).unwrap();
    Some(Bed { here, there, link })
}

fn socket(namespace: &Namespace, address: Ipv4Addr) -> UdpSocket {
    let made = namespace.run(|| UdpSocket::bind((address, 0)));
    made.unwrap().unwrap()
}

#[test]
fn exactly_the_planned_packets_are_missing_at_the_other_end() {
    let seed = 7;
    let settings = "loss=20%";
    let Some(mut bed) = bed(settings, seed, "reno") else { return };
    // Any address of the network is the namespace's own, without having been added.
    let receiver = socket(&bed.there, Ipv4Addr::new(10, 2, 77, 9));
    let sender = socket(&bed.here, Ipv4Addr::new(10, 1, 3, 4));
    receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let to: SocketAddr = receiver.local_addr().unwrap();
    let plan = LossPlan::new(&settings.parse().unwrap(), seed, 0);
    let mut buffer = [0; 8];
    for n in 0..500_u64 {
        sender.send_to(&n.to_be_bytes(), to).unwrap();
        if plan.loses(n) {
            continue;
        }
        // One after the other: what comes is this one, or the plan was not kept.
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 8, "packet {n}");
        assert_eq!(u64::from_be_bytes(buffer), n);
    }
    receiver.set_nonblocking(true).unwrap();
    assert_eq!(receiver.recv(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let [there, back] = bed.link.counts().unwrap();
    assert_eq!((there.packets, there.wire, there.lost), (500, 500, plan.lost_among(500)));
    assert_eq!((there.delivered, there.failed, back.packets), (500 - there.lost, 0, 0));
    bed.link.end().unwrap();
}

#[test]
fn no_round_trip_is_shorter_than_its_delays() {
    let Some(bed) = bed("delay=20ms", 1, "reno") else { return };
    let trips =
        probe::round_trips(&bed.here, THERE, 50, Duration::from_millis(1), Duration::from_secs(10)).unwrap();
    assert_eq!(trips.times.count(), 50);
    assert!(trips.times.to_sparse().buckets[0].0 >= 39_900);
}

#[test]
fn a_rate_is_never_passed_and_what_comes_on_top_is_dropped_at_the_queue() {
    let settings: LinkSettings = "rate=4Mbit/s,queue=20kB".parse().unwrap();
    let Some(mut bed) = bed(&settings.to_string(), 1, "reno") else { return };
    let rate = probe::rate(&bed.here, (&bed.there, THERE), 4_000_000, Duration::from_millis(500)).unwrap();
    let rate = rate.unwrap();
    assert!(rate < 4_100_000.0, "{rate}");
    let [there, _] = bed.link.counts().unwrap();
    assert!(there.queue_full > 0);
    assert_eq!(there.packets, there.delivered + there.queue_full);
}

#[test]
fn connections_are_carried_by_the_congestion_control_that_was_named() {
    for name in ["reno", "cubic", "bbr"] {
        if !interface::get("net/ipv4/tcp_available_congestion_control").unwrap().contains(name) {
            continue;
        }
        let Some(bed) = bed("delay=1ms", 1, name) else { return };
        let seen =
            probe::congestion_control(&bed.here, (&bed.there, THERE), Duration::from_secs(10)).unwrap();
        assert_eq!(seen, [name, name]);
    }
}

/// What the documentation says of this; not a test of this machine's peace: `cargo test -p assay-link -- --ignored`.
#[test]
#[ignore = "measures, and needs a quiet machine"]
fn measure() {
    let Some(mut line) = bed("delay=40ms,loss=0.05%", 1, "cubic") else { return };
    let trips = probe::round_trips(&line.here, THERE, 2000, Duration::from_millis(5), Duration::from_secs(2))
        .unwrap();
    let quantile = |q: f64| trips.times.quantile_us(q).unwrap();
    println!(
        "round trips: {} of {} came back; realtime {}",
        trips.times.count(),
        trips.sent,
        line.link.realtime
    );
    println!(
        "p50 {} p90 {} p99 {} p99.9 {} us",
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        quantile(0.999)
    );
    let plan = |direction| LossPlan::new(&"loss=0.05%".parse().unwrap(), 1, direction);
    for (direction, counts) in (0..).zip(line.link.counts().unwrap()) {
        println!(
            "{direction}: lost {} of {}, planned {}",
            counts.lost,
            counts.wire,
            plan(direction).lost_among(counts.wire)
        );
    }
    for name in ["cubic", "bbr"] {
        let Some(lossy) = bed("delay=40ms,loss=0.05%", 1, name) else { return };
        println!("TCP {name} delay=40ms,loss=0.05%: {:.1} Mbit/s of application data", bulk(&lossy) / 1e6);
    }
    let Some(narrow) = bed("rate=10Mbit/s,queue=100kB", 1, "cubic") else { return };
    let rate = probe::rate(&narrow.here, (&narrow.there, THERE), 10_000_000, Duration::from_secs(3)).unwrap();
    println!("UDP through 10 Mbit/s: {:.3} Mbit/s", rate.unwrap() / 1e6);
    for name in ["cubic", "bbr"] {
        for link in ["rate=10Mbit/s,queue=100kB", "rate=10Mbit/s,queue=100kB,delay=40ms"] {
            let Some(bed) = bed(link, 1, name) else { return };
            println!("TCP {name} {link}: {:.3} Mbit/s of application data", bulk(&bed) / 1e6);
        }
    }
}

/// Application bits a second of one TCP connection over ten seconds.
fn bulk(bed: &Bed) -> f64 {
    use std::io::{Read, Write};
    let listener = bed.there.run(|| std::net::TcpListener::bind((THERE, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut buffer, mut bytes, mut begin) = (vec![0; 65_536], 0_usize, None);
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            // The first second is slow start.
            let begin = begin.get_or_insert_with(std::time::Instant::now);
            if begin.elapsed() > Duration::from_secs(1) {
                bytes += length;
            }
        }
        bytes as f64 * 8.0 / (begin.unwrap().elapsed().as_secs_f64() - 1.0)
    });
    let mut stream = bed.here.run(|| std::net::TcpStream::connect(address)).unwrap().unwrap();
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_secs(11) {
        stream.write_all(&[0; 16_384]).unwrap();
    }
    drop(stream);
    reader.join().unwrap()
}
