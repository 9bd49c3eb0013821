//! Requests over TLS: to an address that speaks it, and through tunnels of a forward proxy.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_plane::byte_stream::{ByteStream, LEAST_ROOM};
use assay_plane::clock::monotonic_ns;
use assay_replay::plan::list::Arrivals;
use assay_replay::{List, Log, Options, Results, Source, Tls};
use assay_role::tls::Offer;
use assay_tls::authority::{Authority, KeyKind, Validity};
use assay_tls::client::{Client, Trust};
use assay_tls::server::Server as TlsServer;

use crate::server::Server;
use crate::{combined, log, options, replay};

/// What came, in any order of connections.
type Lines = Arc<Mutex<Vec<String>>>;

/// A connection that its client closed, on the clock of the machine.
struct Connection {
    target: String,
    resumed: bool,
    begun_ns: u64,
    ended_ns: u64,
}

/// A server over TLS, whose certificate is for `a.example`.
struct Secured {
    address: SocketAddr,
    authority: String,
    lines: Lines,
    ended: Receiver<Connection>,
}

impl Secured {
    fn start() -> Self {
        let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let authority = Authority::new(KeyKind::P256, Validity::around(now_unix_s)).unwrap();
        let identity = authority.issue(&["a.example".into()], Validity::around(now_unix_s)).unwrap();
        let (certificate, key) = (identity.certificate.as_bytes(), identity.key.as_bytes());
        let server = TlsServer::new(certificate, key, &Offer::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let lines = Lines::default();
        let (ends, ended) = std::sync::mpsc::channel();
        let lines_there = Arc::clone(&lines);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (server, lines, ends) = (server.clone(), Arc::clone(&lines_there), ends.clone());
                std::thread::spawn(move || serve(socket, &server, &lines, &ends));
            }
        });
        Self { address, authority: authority.certificate, lines, ended }
    }

    fn client(&self) -> Client {
        Client::new(Trust::Authorities(self.authority.as_bytes()), &Offer::default()).unwrap()
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = self.lines.lock().unwrap().clone();
        lines.sort();
        lines
    }
}

/// Serves requests until the client closes the connection, as it is told to after `close` in a path; `cut` is a body that ends too soon.
fn serve(socket: TcpStream, server: &TlsServer, lines: &Lines, ends: &Sender<Connection>) {
    let mut stream = ByteStream::secured(socket, server.accept().unwrap());
    let (mut room, mut unread) = (vec![0; LEAST_ROOM], Vec::new());
    let (mut target, mut handshake) = (String::new(), None);
    loop {
        match stream.recv(&mut room) {
            Ok(read) if read.length > 0 => unread.extend_from_slice(&room[..read.length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Ok(_) | Err(_) => break,
        }
        handshake = handshake.or_else(|| stream.take_handshake());
        while let Some(end) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = unread.drain(..end + 4).collect();
            let text = String::from_utf8(head).unwrap();
            let line = text.lines().next().unwrap().to_owned();
            let host = text.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap();
            lines.lock().unwrap().push(format!("{line} {host}"));
            target = line.split(' ').nth(1).unwrap().to_owned();
            let response: &[u8] = match target.rsplit('-').next() {
                Some("cut") => b"HTTP/1.1 200 OK\r\n\r\nhello",
                Some("close") => b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
                _ => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            };
            stream.send(response).unwrap();
            if target.ends_with("cut") {
                stream.break_off();
                return;
            }
        }
    }
    let Some(handshake) = handshake else { return };
    let (resumed, begun_ns, ended_ns) = (handshake.agreed.resumed, handshake.begun_ns, monotonic_ns());
    let _ = ends.send(Connection { target, resumed, begun_ns, ended_ns });
}

/// Sends a log of three clients, each a minute after the one before, to an address over TLS.
fn over_tls(secured: &Secured, host: &str, path: &str) -> Results {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("access.log");
    let text: String = (0..9u32)
        .map(|n| combined(1 + (n % 3) as u8, n * 120, &format!("GET /{n}{path} HTTP/1.1")))
        .collect();
    std::fs::write(&file, text).unwrap();
    let tls = Some(Tls { client: secured.client(), to_address: true });
    let options = Options { to: secured.address, tls, ..options(&Server::start()) };
    let told = Log { host: Some(host.into()), speed: 2_000.0, skips_https: false, ..log(vec![file]) };
    replay(options, Source::Log(told)).unwrap()
}

#[test]
fn a_log_goes_over_tls_and_each_client_resumes_its_own_sessions() {
    let secured = Secured::start();
    let results = over_tls(&secured, "a.example", "-close");
    assert_eq!((results.requests, results.responses), (9, 9), "{results:?}");
    let tls = results.tls.clone().expect("it was spoken");
    // A client whose last connection was not over when it made the next (this machine was busy) had no session to resume yet.
    let connections: Vec<Connection> = (0..9)
        .map(|_| secured.ended.recv_timeout(Duration::from_secs(60)).expect("the client closes"))
        .collect();
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

#[test]
fn a_certificate_for_another_name_fails_every_request_and_the_result_says_why() {
    let secured = Secured::start();
    let results = over_tls(&secured, "b.example", "");
    assert_eq!((results.responses, results.errors["tls"]), (0, 9), "{results:?}");
    let failure = results.tls_failure().expect("is there");
    assert!(failure.contains("not valid for b.example; it is for a.example"), "{failure}");
    assert!(secured.lines().is_empty(), "nothing is sent to a server that is not verified");
}

#[test]
fn a_body_that_ends_without_close_notify_is_not_whole() {
    let secured = Secured::start();
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
    let secured = Secured::start();
    let (to, seen) = proxy(secured.address);
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("urls.txt");
    let urls = "https://a.example/1\nhttps://a.example/2\nhttps://a.example:8443/3\nhttp://a.example/4\n\
                https://a.example:25/5\nhttps://b.example/6\n";
    std::fs::write(&file, urls).unwrap();
    let tls = Some(Tls { client: secured.client(), to_address: false });
    let options = Options { to, forward: true, tls, ..options(&Server::start()) };
    let arrivals = Arrivals { connections: 1, requests_each: 6, per_second: 1000.0, seed: 1 };
    let list =
        List { files: vec![file], host: None, arrivals, once: false, for_ns: None, skips_https: false };
    let results = replay(options, Source::List(list)).unwrap();
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
