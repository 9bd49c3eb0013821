//! Requests that are sent in time, or given up in time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_load::replay::plan::list::Arrivals;
use assay_load::replay::{LogSource, ReplayOptions, RequestSource};

use crate::replay::harness::{list, log, options, replay};
use crate::replay::server;

#[test]
fn a_forward_proxy_gets_whole_urls_of_a_squid_log_in_the_order_of_beginning() {
    let requested = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&requested);
    let server = server::start(move |line, _, _| seen.lock().unwrap().push(line.to_owned()), || ());
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("access.log");
    // The second line began first: it took 900 seconds.
    let text = "1700000800.000    100 192.0.2.1 TCP_MISS/200 300 GET http://a.example/late - HIER_DIRECT/a.example text/html\n\
                1700000900.000 900000 192.0.2.2 TCP_HIT/200 300 GET http://b.example/early?q=1 - HIER_NONE/- text/html\n\
                1700000901.000      5 192.0.2.2 TCP_TUNNEL/200 300 CONNECT c.example:443 - HIER_DIRECT/c.example -\n";
    std::fs::write(&file, text).unwrap();
    let options = ReplayOptions { forward: true, ..options(server) };
    let results =
        replay(options, RequestSource::Log(LogSource { speed: 4_000.0, host: None, ..log(vec![file]) }))
            .unwrap();
    let lines = requested.lock().unwrap().clone();
    assert_eq!(lines, ["GET http://b.example/early?q=1 HTTP/1.1", "GET http://a.example/late HTTP/1.1"]);
    assert_eq!((results.requests, results.read.other_methods, results.read.format.as_str()), (2, 1, "squid"));
}

#[test]
fn requests_beyond_what_may_be_under_way_are_counted_and_not_sent() {
    let server = server::start(|_, _, _| (), || ());
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("urls.txt");
    std::fs::write(&file, "/hang\n").unwrap();
    let arrivals = Arrivals { connections: 20, requests_each: 1, per_second: 1e6, seed: 1 };
    let options = ReplayOptions { max_in_flight: 3, timeout: Duration::from_secs(2), ..options(server) };
    let results = replay(options, RequestSource::List(list(file, arrivals))).unwrap();
    assert_eq!(results.requests + results.skipped, 20);
    assert!(results.requests >= 3 && results.skipped > 0, "{results:?}");
}

#[test]
fn what_goes_wrong_is_counted_and_nobody_waits_for_it() {
    let server = server::start(|_, _, _| (), || ());
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("urls.txt");
    std::fs::write(&file, "/reset\n/garbage\n/truncated\n/hang\n/fine\n/close\n/fine\n").unwrap();
    let arrivals = Arrivals { connections: 7, requests_each: 1, per_second: 1000.0, seed: 1 };
    let options = ReplayOptions { timeout: Duration::from_secs(2), ..options(server) };
    let results = replay(options, RequestSource::List(list(file, arrivals))).unwrap();
    let errors: Vec<(&str, u64)> =
        results.errors.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(errors, [("garbage", 1), ("reset", 1), ("timed_out", 1), ("truncated", 1)]);
    assert_eq!((results.requests, results.responses), (7, 3));
}
