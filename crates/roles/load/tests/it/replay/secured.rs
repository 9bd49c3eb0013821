//! Requests over TLS: to an address that speaks it, and through tunnels of a forward proxy.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use assay_load::replay::plan::list::Arrivals;
use assay_load::replay::{ListSource, ReplayOptions, ReplayTls, RequestSource};

use crate::replay::harness::{options, replay};
use crate::replay::tls_server::{Lines, Secured, over_tls};

#[test]
fn a_certificate_for_another_name_fails_every_request_and_the_result_says_why() {
    let secured = Secured::start(|_, _, _, _| ());
    let results = over_tls(&secured, "b.example", "");
    assert_eq!((results.responses, results.errors["tls"]), (0, 9), "{results:?}");
    let failure = results.tls_failure().expect("is there");
    assert!(failure.contains("not valid for b.example; it is for a.example"), "{failure}");
    assert!(secured.lines().is_empty(), "nothing is sent to a server that is not verified");
}

#[test]
fn a_body_that_ends_without_close_notify_is_not_whole() {
    let secured = Secured::start(|_, _, _, _| ());
    let results = over_tls(&secured, "a.example", "-cut");
    assert_eq!((results.responses, results.errors["tls"]), (0, 9), "{results:?}");
    assert!(results.tls_failure().unwrap().contains("without close_notify"));
}

/// A forward proxy that opens tunnels to one server, whatever their host is, except to port 25.
fn proxy(to: SocketAddr) -> (SocketAddr, Lines) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let lines = Lines::default();
    let lines_there = Arc::clone(&lines);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let lines = Arc::clone(&lines_there);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(client.try_clone().unwrap());
                let mut head =
                    reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty());
                let Some(line) = head.next() else { return };
                head.for_each(drop);
                lines.lock().unwrap().push(line.clone());
                if !line.starts_with("CONNECT ") || line.contains(":25 ") {
                    let _ = client.write_all(
                        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                    );
                    return;
                }
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
                let server = TcpStream::connect(to).unwrap();
                let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client);
                std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
                let _ = std::io::copy(&mut reader, &mut &server);
                let _ = server.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    (address, lines)
}

#[test]
fn https_urls_go_through_tunnels_of_a_forward_proxy_and_http_ones_do_not() {
    let secured = Secured::start(|_, _, _, _| ());
    let (to, seen) = proxy(secured.address);
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("urls.txt");
    let urls = "https://a.example/1\nhttps://a.example/2\nhttps://a.example:8443/3\nhttp://a.example/4\n\
                https://a.example:25/5\nhttps://b.example/6\n";
    std::fs::write(&file, urls).unwrap();
    let tls = Some(ReplayTls { client: secured.client(), to_address: false });
    let options = ReplayOptions { forward: true, tls, ..options(to) };
    let arrivals = Arrivals { connections: 1, requests_each: 6, per_second: 1000.0, seed: 1 };
    let list =
        ListSource { files: vec![file], host: None, arrivals, once: false, for_ns: None, skips_https: false };
    let results = replay(options, RequestSource::List(list)).unwrap();
    let expected = [
        "CONNECT a.example:443 HTTP/1.1",
        "CONNECT a.example:8443 HTTP/1.1",
        "GET http://a.example/4 HTTP/1.1",
        "CONNECT a.example:25 HTTP/1.1",
        "CONNECT b.example:443 HTTP/1.1",
    ];
    assert_eq!(*seen.lock().unwrap(), expected, "one tunnel for two requests with the same host");
    let requested =
        ["GET /1 HTTP/1.1 a.example", "GET /2 HTTP/1.1 a.example", "GET /3 HTTP/1.1 a.example:8443"];
    assert_eq!(secured.lines(), requested);
    assert_eq!((results.requests, results.responses, results.statuses["403"]), (6, 4, 1), "{results:?}");
    assert_eq!((results.errors["refused"], results.errors["tls"]), (1, 1));
    let failure = results.tls_failure().expect("is there");
    assert!(failure.contains("responded with 403 to CONNECT for a.example:25"), "{failure}");
    let tls = results.tls.unwrap();
    assert_eq!((tls.full, tls.resumed), (1, 1), "the second tunnel resumes the session with that host");
}
