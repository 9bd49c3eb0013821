//! Nodes that somebody else started are watched as long as all of them say how busy they are.

use std::io::{Read, Write};
use std::net::TcpListener;

use assay_load::node::ModelClock;
use assay_load::node::node_monitor::NodeMonitor;
use assay_load::node::nodes::NodeKind;

use crate::node::support::{SMALL, cluster, get, start};

/// A second of the model in real seconds.
const SCALE: f64 = 0.2;
/// Requests of a program that takes 20 ms.
const REQUESTS: u32 = 50;

#[test]
fn what_a_node_used_is_seen_second_by_second_whoever_else_asks_for_its_state() {
    let clock = ModelClock::now_at(SCALE);
    let nodes = start(&cluster(SMALL), NodeKind::Virtual, clock);
    let [busy, idle] = [nodes.addresses()[0], nodes.addresses()[1]];
    // The clock of the watch is another than that of the nodes.
    let node_monitor = NodeMonitor::start(vec![busy, idle], ModelClock::now_at(SCALE))
        .expect("a thread")
        .expect("both speak");
    for _ in 0..REQUESTS {
        assert!(get(busy, "/cgi-bin/cpu_light.cgi").starts_with("HTTP/1.1 200 "));
        assert!(get(busy, "/assay/state").contains("\"used\""));
    }
    let seen = node_monitor.samples().len();
    let samples_between = loop {
        let samples_between = node_monitor.samples();
        if samples_between.len() > seen + 1 {
            break samples_between;
        }
        std::thread::yield_now();
    };
    let begun = [0.0]
        .into_iter()
        .chain(samples_between.iter().map(|look| look.at.secs_since(assay_cluster::dispatch::Moment::START)));
    let used: f64 = begun
        .zip(&samples_between)
        .map(|(before, look)| {
            let at = look.at.secs_since(assay_cluster::dispatch::Moment::START);
            look.nodes[0].processor * (at - before)
        })
        .sum();
    let expected = f64::from(REQUESTS) * 0.02;
    // The clocks of both differ by what a busy machine does to either.
    assert!((0.5..2.0).contains(&(used / expected)), "{used} s of {expected}");
    assert!(samples_between.iter().all(|look| look.nodes.len() == 2 && look.nodes[1].processor == 0.0));
}

#[test]
fn a_server_that_does_not_say_how_busy_it_is_is_named_among_those_that_do() {
    let nodes = start(&cluster(SMALL), NodeKind::Virtual, ModelClock::now_at(1.0));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = listener.local_addr().expect("is bound");
    let states =
        ["{}", "{\"processor\":0.1,\"disk\":0,\"network\":0,\"in_flight\":1,\"latency_us\":null}", "no JSON"];
    let serving = std::thread::spawn(move || {
        for state in states {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            let _ = stream.read(&mut [0; 1024]);
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", state.len());
            stream.write_all((head + state).as_bytes()).expect("it is read");
        }
    });
    for state in states {
        let node_monitor = NodeMonitor::start(vec![nodes.addresses()[0], silent], ModelClock::now_at(1.0))
            .expect("a thread");
        assert_eq!(node_monitor.err(), Some(silent), "{state}");
    }
    serving.join().expect("no panic");
    // Nobody listens there any more.
    assert_eq!(
        NodeMonitor::start(vec![silent], ModelClock::now_at(1.0)).expect("a thread").err(),
        Some(silent)
    );
}
