//! How exact a link is, and how much it carries. Prints what docs/explanation/links.md says; it wants a quiet machine and
//! root, and takes about a minute.

use std::time::Duration;

use assay_host::link::{LossPlan, probe};

#[path = "../tests/real/link/linked.rs"]
mod linked;

use assay_host::link::probe::Endpoint;
use linked::{LinkedNamespaces, THERE, link_namespaces};

fn main() {
    let Some(mut line) = link_namespaces("delay=40ms,loss=0.05%", 1, "cubic") else { return };
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
        let Some(lossy) = link_namespaces("delay=40ms,loss=0.05%", 1, name) else { return };
        println!("TCP {name} delay=40ms,loss=0.05%: {:.1} Mbit/s of application data", bulk(&lossy) / 1e6);
    }
    let Some(narrow) = link_namespaces("rate=10Mbit/s,queue=100kB", 1, "cubic") else { return };
    let rate = probe::rate(
        &narrow.here,
        Endpoint { namespace: &narrow.there, address: THERE },
        10_000_000,
        Duration::from_secs(3),
    )
    .unwrap();
    println!("UDP through 10 Mbit/s: {:.3} Mbit/s", rate.unwrap() / 1e6);
    for name in ["cubic", "bbr"] {
        for link in ["rate=10Mbit/s,queue=100kB", "rate=10Mbit/s,queue=100kB,delay=40ms"] {
            let Some(linked) = link_namespaces(link, 1, name) else { return };
            println!("TCP {name} {link}: {:.3} Mbit/s of application data", bulk(&linked) / 1e6);
        }
    }
}

/// Application bits a second of one TCP connection over ten seconds.
fn bulk(linked: &LinkedNamespaces) -> f64 {
    use std::io::{Read, Write};
    let listener = linked.there.run(|| std::net::TcpListener::bind((THERE, 0))).unwrap().unwrap();
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
    let mut stream = linked.here.run(|| std::net::TcpStream::connect(address)).unwrap().unwrap();
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_secs(11) {
        stream.write_all(&[0; 16_384]).unwrap();
    }
    drop(stream);
    reader.join().unwrap()
}
