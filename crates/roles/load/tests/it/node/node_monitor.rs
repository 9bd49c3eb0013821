//! Nodes that somebody else started are watched as long as all of them say how busy they are.

use std::io::{Read, Write};
use std::net::TcpListener;

use assay_load::node::ModelClock;
use assay_load::node::node_monitor::NodeMonitor;

#[test]
fn a_server_that_does_not_say_how_busy_it_is_is_named() {
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
            // Whoever watches may have given it up.
            let _ = stream.write_all((head + state).as_bytes());
        }
    });
    for state in states {
        let node_monitor = NodeMonitor::start(vec![silent], ModelClock::now_at(1.0)).expect("a thread");
        assert_eq!(node_monitor.err(), Some(silent), "{state}");
    }
    serving.join().expect("no panic");
}
