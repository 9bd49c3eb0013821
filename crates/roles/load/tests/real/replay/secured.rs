//! Sessions of TLS that are resumed as soon as the connection before is over.

use std::sync::mpsc::channel;
use std::time::Duration;

use crate::replay::tls_server::{Secured, over_tls};

/// A connection that its client closed, on the clock of the machine.
struct Connection {
    target: String,
    resumed: bool,
    begun_ns: u64,
    ended_ns: u64,
}

#[test]
fn a_log_goes_over_tls_and_each_client_resumes_its_own_sessions() {
    let (ends, ended) = channel();
    let secured = Secured::start(move |target, resumed, begun_ns, ended_ns| {
        // The test is over when nobody hears of it.
        let _ = ends.send(Connection { target: target.to_owned(), resumed, begun_ns, ended_ns });
    });
    let results = over_tls(&secured, "a.example", "-close");
    assert_eq!((results.requests, results.responses), (9, 9), "{results:?}");
    let tls = results.tls.clone().expect("it was spoken");
    // A client whose last connection was not over when it made the next (this machine was busy) had no session to resume yet.
    let connections: Vec<Connection> =
        (0..9).map(|_| ended.recv_timeout(Duration::from_secs(60)).expect("the client closes")).collect();
    let client = |one: &Connection| one.target[1..2].parse::<u32>().unwrap() % 3;
    for own in &connections {
        let mut of_client = connections.iter().filter(|other| client(other) == client(own));
        assert!(
            own.resumed || !of_client.any(|other| other.ended_ns < own.begun_ns),
            "{} was not resumed",
            own.target
        );
    }
    let full = connections.iter().filter(|one| !one.resumed).count() as u64;
    assert_eq!((tls.full, tls.full + tls.resumed), (full, 9), "{tls:?}");
    assert!((3..9).contains(&full), "at least one full handshake for each client, and some resumed: {tls:?}");
    assert_eq!((tls.handshake_ms.count, tls.first_failure), (9, None));
    assert!(tls.by_parameters.keys().all(|name| name.starts_with("TLS 1.3 TLS_")), "{:?}", tls.by_parameters);
    let told = format!("{full} full handshakes, {} resumed (TLS 1.3", tls.resumed);
    assert!(results.to_terminal().contains(&told), "{told}: {}", results.to_terminal());
    assert!(secured.lines().iter().all(|line| line.ends_with("HTTP/1.1 a.example")));
}
