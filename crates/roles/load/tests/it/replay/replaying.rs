//! Logs and lists, sent to a server that remembers its requests.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_load::replay::filter::{Filter, Statuses};
use assay_load::replay::plan::list::Arrivals;
use assay_load::replay::{
    LogSource, OriginListener, OriginServer, ReplayOptions, ReplayResults, RequestSource, SimulatedOrigins,
    drive,
};
use assay_testbed::elsewhere;
use assay_testbed::violations;

use crate::replay::harness::{combined, list, log, options, replay};
use crate::replay::recorder::{CheckedRequest, Server};

#[test]
fn a_log_is_sent_again_in_its_order_with_each_client_on_connections_of_its_own() {
    let server = Server::start();
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("access.log");
    let mut text = String::new();
    // A minute apart even at this speed is long enough for the response before to be there.
    for n in 0..20u32 {
        let (client, method) = (1 + (n % 2) as u8, if n % 5 == 4 { "HEAD" } else { "GET" });
        let version = if n < 3 { "2.0" } else { "1.1" };
        text += &combined(client, n * 120, &format!("{method} /{n} HTTP/{version}"));
    }
    text += &combined(1, 2400, "POST /form HTTP/1.1");
    text += "no line of a log\n";
    std::fs::write(&file, text).unwrap();
    let slower = LogSource { speed: 2_000.0, ..log(vec![file]) };
    let results = replay(options(server.address), RequestSource::Log(slower)).unwrap();
    let requested = server.requested();
    let number = |one: &CheckedRequest| one.line.split(['/', ' ']).nth(2).unwrap().parse::<u32>().unwrap();
    let mut lines: Vec<(u32, &str)> = requested.iter().map(|one| (number(one), one.line.as_str())).collect();
    lines.sort_unstable();
    let numbers: Vec<u32> = lines.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>(), "each once");
    assert_eq!((lines[0].1, lines[4].1), ("GET /0 HTTP/1.1", "HEAD /4 HTTP/1.1"));
    assert!(requested.iter().all(|one| one.host == "www.example.org"));
    for one in &requested {
        let others = requested.iter().filter(|other| other.connection == one.connection);
        let numbers: Vec<u32> = others.map(number).collect();
        assert!(numbers.iter().all(|other| other % 2 == number(one) % 2), "clients share no connection");
        // What several connections brought can be noted in any order on a busy machine.
        assert!(numbers.is_sorted(), "a connection carries requests in the order of the log: {numbers:?}");
    }
    assert_eq!(
        (results.requests, results.responses, results.read.other_methods, results.read.malformed),
        (20, 20, 1, 1)
    );
    assert_eq!((results.statuses["200"], results.read.logged.newer_versions), (20, 3));
    assert_eq!(results.body_bytes, 16 * 5, "HEAD has no body");
    assert!(results.connections <= 20 && results.errors.is_empty());
    assert_eq!((results.response_ms.count, results.lateness_ms.count), (20, 20));
    assert!((results.read.covered_s - 2280.0).abs() < 1e-9, "{}", results.read.covered_s);
}

#[test]
fn a_list_is_requested_over_connections_with_several_requests_each() {
    let server = Server::start();
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("urls.txt");
    std::fs::write(&file, "# a list\nhttp://a.example/1\n/2\n\nhttps://a.example/3\nhttp://a.example/4\n")
        .unwrap();
    let arrivals = Arrivals { connections: 5, requests_each: 2, per_second: 500.0, seed: 3 };
    let xacts = tmp.path().join("xacts.parquet");
    let options = ReplayOptions { xacts: Some(xacts.clone()), ..options(server.address) };
    let results = replay(options, RequestSource::List(list(file, arrivals))).unwrap();
    let requested = server.requested();
    assert_eq!((results.requests, results.connections, results.read.unverified), (10, 5, 1));
    let mut by_connection = std::collections::BTreeMap::<u64, Vec<&str>>::new();
    requested.iter().for_each(|one| by_connection.entry(one.connection).or_default().push(one.path()));
    let mut pairs: Vec<Vec<&str>> = by_connection.into_values().collect();
    pairs.sort();
    assert_eq!(pairs, [["/1", "/2"], ["/1", "/2"], ["/2", "/4"], ["/4", "/1"], ["/4", "/1"]].map(Vec::from));
    assert!(xacts.is_file() && results.rows_lost == 0);
}

#[test]
fn what_goes_wrong_is_counted() {
    let server = Server::start();
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("urls.txt");
    std::fs::write(&file, "/reset\n/garbage\n/extra\n/truncated\n/fine\n/close\n/fine\n").unwrap();
    let arrivals = Arrivals { connections: 7, requests_each: 1, per_second: 1000.0, seed: 1 };
    let results = replay(options(server.address), RequestSource::List(list(file, arrivals))).unwrap();
    let errors: Vec<(&str, u64)> =
        results.errors.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(errors, [("extra_bytes", 1), ("garbage", 1), ("reset", 1), ("truncated", 1)]);
    assert_eq!((results.requests, results.responses), (7, 3));
}

#[test]
fn a_connection_that_was_closed_meanwhile_is_no_error() {
    let server = Server::start();
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("access.log");
    let text: String = (0..6).map(|n| combined(1, n * 300, "GET /then-close HTTP/1.1")).collect();
    std::fs::write(&file, text).unwrap();
    let results =
        replay(options(server.address), RequestSource::Log(LogSource { speed: 3_000.0, ..log(vec![file]) }))
            .unwrap();
    assert_eq!((results.requests, results.responses, results.errors.len()), (6, 6, 0));
    assert_eq!(results.connections, 6);
}

#[test]
fn a_limit_and_a_time_end_it_early_and_a_long_log_is_read_as_far_as_needed() {
    let server = Server::start();
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("access.log");
    let text: String = (0..3000).map(|n| combined(1, n, &format!("GET /{n} HTTP/1.1"))).collect();
    std::fs::write(&file, text).unwrap();
    let filter = Filter { statuses: vec![Statuses::parse("3xx").unwrap()], ..Filter::default() };
    let filtered = LogSource { filter, ..log(vec![file.clone()]) };
    let nothing = replay(options(server.address), RequestSource::Log(filtered)).unwrap_err().to_string();
    assert!(nothing.contains("left out by --method, --status"), "{nothing}");
    let limited = LogSource { limit: Some(7), ..log(vec![file.clone()]) };
    assert_eq!(replay(options(server.address), RequestSource::Log(limited)).unwrap().requests, 7);
    let shortened = LogSource { for_ns: Some(100_000), speed: 100_000.0, ..log(vec![file]) };
    assert_eq!(
        replay(options(server.address), RequestSource::Log(shortened)).unwrap().requests,
        11,
        "0 to 10 seconds of the log"
    );
}

#[test]
fn a_log_with_nothing_to_send_says_why() {
    let server = Server::start();
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("access.log");
    std::fs::write(&file, combined(1, 0, "POST / HTTP/1.1")).unwrap();
    let error = replay(options(server.address), RequestSource::Log(log(vec![file]))).unwrap_err().to_string();
    assert!(error.contains("1 with other methods than GET and HEAD"), "{error}");
    let missing = replay(options(server.address), RequestSource::Log(log(vec![tmp.path().join("no.log")])))
        .unwrap_err();
    assert!(missing.to_string().contains("no.log"), "{missing}");
}

#[test]
fn being_stopped_ends_it_and_says_so() {
    let server = Server::start();
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("access.log");
    std::fs::write(&file, combined(1, 0, "GET /a HTTP/1.1") + &combined(1, 3599, "GET /b HTTP/1.1")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap();
    let source = RequestSource::Log(LogSource { speed: 1.0, ..log(vec![file]) });
    let requested = server.first_request();
    let results = runtime.block_on(drive(options(server.address), source, |_| {}, requested)).unwrap();
    assert!(results.interrupted);
    assert_eq!(results.requests, 1);
}

#[test]
fn results_are_true_to_their_schema() {
    let results = ReplayResults {
        schema: assay_load::replay::results::RESULTS_SCHEMA.into(),
        ..ReplayResults::default()
    };
    let value: serde_json::Value = serde_json::from_str(&results.to_json().unwrap()).unwrap();
    assert_eq!(violations(&ReplayResults::json_schema(), &value), [""; 0]);
    assert!(results.to_terminal().contains("requests"));
}

#[test]
fn simulated_origins_serve_every_url_as_the_log_has_it() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("access.log");
    let text = combined(1, 1, "GET /a HTTP/1.1")
        + &combined(2, 2, "GET /b?x=1 HTTP/1.1").replace("200 5", "404 70000")
        + &combined(1, 3, "HEAD /a HTTP/1.1")
        + &combined(1, 4, "GET /gone HTTP/1.1").replace("200 5", "503 12")
        + &combined(1, 5, "GET /a HTTP/1.1").replace("200 5", "304 0");
    std::fs::write(&file, text).unwrap();
    let source = RequestSource::Log(log(vec![file]));
    let catalogue = source.survey().unwrap();
    assert_eq!((catalogue.urls(), catalogue.hosts().unwrap()), (3, vec!["www.example.org".to_owned()]));
    let simulated = Arc::new(SimulatedOrigins::new(catalogue, Duration::from_secs(60), Duration::ZERO));
    let listener = OriginListener { listen: "127.0.0.1:0".parse().unwrap(), host: None };
    let origins = OriginServer::start(vec![listener], Arc::clone(&simulated)).unwrap();
    let server = Server::start();
    let options = ReplayOptions {
        to: origins.addresses()[0],
        simulated: Some(Arc::clone(&simulated)),
        ..options(server.address)
    };
    let results = replay(options, source).unwrap();
    assert_eq!(
        results.statuses.iter().map(|(status, n)| (status.as_str(), *n)).collect::<Vec<_>>(),
        [("200", 3), ("404", 1), ("503", 1)]
    );
    assert_eq!(results.body_bytes, 2 * 5 + 70_000 + 12);
    let cache = results.cache.unwrap();
    assert_eq!((cache.misses, cache.hits, cache.joined, cache.own, cache.wrong), (5, 0, 0, 0, 0));
    assert_eq!((cache.dhr, cache.ideal_dhr), (Some(0.0), Some(0.4)));
    // A body is counted when it has been written: on a busy machine its client may have read it before.
    let timeout = Instant::now() + Duration::from_secs(60);
    while simulated.counts().body_bytes < 70_022 && Instant::now() < timeout {
        std::thread::yield_now();
    }
    let counts = simulated.counts();
    assert_eq!((counts.requests, counts.unknown, counts.confirmed, counts.body_bytes), (5, 0, 0, 70_022));
    assert_eq!(results.read.logged.known, 0, "a log of a server tells no hits");
}

#[test]
fn a_response_that_no_simulated_origin_made_is_the_proxys_own() {
    let (server, tmp) = (Server::start(), tempfile::tempdir().unwrap());
    let file = tmp.path().join("access.log");
    std::fs::write(&file, combined(1, 1, "GET /fine HTTP/1.1")).unwrap();
    let source = RequestSource::Log(log(vec![file]));
    let simulated =
        Arc::new(SimulatedOrigins::new(source.survey().unwrap(), Duration::from_secs(60), Duration::ZERO));
    let results =
        replay(ReplayOptions { simulated: Some(simulated), ..options(server.address) }, source).unwrap();
    let cache = results.cache.unwrap();
    assert_eq!((cache.own, cache.misses, cache.wrong), (1, 0, 0));
}

#[test]
fn simulated_origins_serve_every_host_themselves_and_send_no_requests() {
    let (server, tmp) = (Server::start(), tempfile::tempdir().unwrap());
    let file = tmp.path().join("access.log");
    std::fs::write(&file, combined(1, 1, "GET /a HTTP/1.1")).unwrap();
    let catalogue = RequestSource::Log(log(vec![file])).survey().unwrap();
    let simulated = Arc::new(SimulatedOrigins::new(catalogue, Duration::from_secs(60), Duration::ZERO));
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    other.set_nonblocking(true).unwrap();
    for host in [None, Some("www.example.org".to_owned())] {
        let listener = OriginListener { listen: "127.0.0.1:0".parse().unwrap(), host };
        let origins = OriginServer::start(vec![listener], Arc::clone(&simulated)).unwrap();
        let listener = origins.addresses()[0];
        for request in elsewhere(server.address, other.local_addr().unwrap()) {
            let mut stream = TcpStream::connect(listener).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut response = Vec::new();
            // A connection that is reset has said nothing more.
            let _ = stream.read_to_end(&mut response);
            let is_tunnel = request.starts_with("CONNECT ") && response.starts_with(b"HTTP/1.1 200 ");
            assert!(!is_tunnel, "{request}{}", String::from_utf8_lossy(&response));
        }
    }
    assert!(simulated.counts().requests > 100);
    assert!(server.requested().is_empty());
    assert_eq!(other.accept().map_err(|error| error.kind()).err(), Some(ErrorKind::WouldBlock));
}
