//! Many clients at once, with six proxies behind: the origin gets one request for each need, and nothing is lost but what a
//! faulty proxy loses itself.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use assay_record::spe::{ResponseError, ResponseRow, Verdict};

use crate::evaluation::{Going, Requested, exchange, origin};

const CLIENTS: usize = 60;
/// Pages that all clients request.
const SHARED: usize = 10;
/// What each client requests.
const EACH: usize = 5;

/// All send at the same moment; every response is the origin's own. Each tenth goes away in the middle of its last response, if
/// clients are to leave.
fn crowd(listen: SocketAddr, origin: SocketAddr, some_leave: bool) {
    let start = Arc::new(Barrier::new(CLIENTS));
    let clients = (0..CLIENTS).map(|number| {
        let start = Arc::clone(&start);
        thread::spawn(move || {
            let own = format!("/own/{number}");
            let [first, second] = [number, number + 3].map(|n| format!("/shared/{}", n % SHARED));
            start.wait();
            for path in [&first, &own, &second, "/now"] {
                let body = exchange(listen, origin, "GET", path, "");
                let body = body.split_once("\r\n\r\n").expect("a head").1.to_owned();
                let right = if path == "/now" { "made anew each time".to_owned() } else { path.repeat(3000) };
                assert!(body == right, "{path}");
            }
            if some_leave && number % 10 == 0 {
                let mut stream = TcpStream::connect(listen).expect("somebody listens");
                stream.write_all(b"GET /left HTTP/1.1\r\nHost: origin\r\n\r\n").expect("it is read");
                stream.read_exact(&mut [0; 100]).expect("it is answered");
            } else {
                exchange(listen, origin, "POST", "/post", &format!("client={number}"));
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.join().expect("a client gets what it requested");
    }
}

/// Once for what may be kept, and once for each request for what may not.
fn once_for_each_need(requested: &Requested, posts: usize) {
    let requested = requested.lock().expect("nobody panics");
    for (line, times) in requested.iter() {
        let needs = match line.as_str() {
            "GET /now" => CLIENTS,
            "POST /post" => posts,
            _ => 1,
        };
        assert_eq!(*times as usize, needs, "{line}");
    }
    assert!(requested.len() >= SHARED + CLIENTS + 2, "{requested:#?}");
}

fn verdicts(rows: &[ResponseRow], target: u16, verdict: Verdict) -> usize {
    rows.iter().filter(|row| row.target == target && row.verdict == verdict).count()
}

#[test]
fn with_six_proxies_the_origin_gets_one_request_for_each_need_of_a_crowd() {
    for when in ["--after", "--at-once"] {
        let (origin, requested) = origin();
        let name = origin.to_string();
        let mut options = vec!["--origin", &name, when];
        options.extend(["--proxy", "builtin"].repeat(6));
        let going = Going::start(&options);
        crowd(going.listen, origin, false);
        let (info, rows, code) = going.end();
        assert_eq!((code, info.totals.requests), (Some(0), (CLIENTS * EACH) as u64));
        for target in 1..=6 {
            assert_eq!(verdicts(&rows, target, Verdict::Ok), CLIENTS * EACH, "proxy {target}, {when}");
        }
        once_for_each_need(&requested, CLIENTS);
    }
}

/// A proxy in threads of its own that does something else than it should with every connection.
fn faulty(does: fn(TcpStream) -> Option<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it has an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || does(stream));
        }
    });
    address.to_string()
}

/// Reads what is there of a request.
fn read(stream: &mut TcpStream) -> Option<usize> {
    stream.read(&mut [0; 4096]).ok().filter(|read| *read > 0)
}

fn hangs(mut stream: TcpStream) -> Option<()> {
    while read(&mut stream).is_some() {}
    None
}

fn closes(mut stream: TcpStream) -> Option<()> {
    read(&mut stream).map(|_| ())
}

fn talks_garbage(mut stream: TcpStream) -> Option<()> {
    loop {
        read(&mut stream)?;
        stream.write_all(b"\x00\x01 this is no response\r\n\r\n").ok()?;
    }
}

fn never_ends(mut stream: TcpStream) -> Option<()> {
    read(&mut stream)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
    loop {
        stream.write_all(&[b'x'; 16384]).ok()?;
        // Endless, but not all that there is of the machine.
        thread::sleep(Duration::from_millis(1));
    }
}

fn is_late(mut stream: TcpStream) -> Option<()> {
    loop {
        read(&mut stream)?;
        thread::sleep(Duration::from_millis(300));
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate").ok()?;
    }
}

#[test]
fn a_crowd_does_not_notice_that_proxies_and_origin_fail_and_that_others_leave() {
    let (origin, requested) = origin();
    let name = origin.to_string();
    let faults = [hangs, closes, talks_garbage, never_ends, is_late].map(faulty);
    let mut options = vec!["--origin", &name, "--response-timeout", "15s", "--proxy", "builtin"];
    options.extend(faults.iter().flat_map(|address| ["--proxy", address]));
    let going = Going::start(&options);
    // What the origin breaks off is broken off for the client, and is nobody's whole response.
    let cut = exchange(going.listen, origin, "GET", "/cut", "");
    assert!(cut.len() < "/cut".repeat(3000).len(), "{} bytes", cut.len());
    crowd(going.listen, origin, true);
    let (_, rows, code) = going.end();
    // Four of them gave no whole response at all.
    assert_eq!(code, Some(1));
    let leaving = CLIENTS / 10;
    let of_the_sound: Vec<_> =
        rows.iter().filter(|row| row.target == 1 && row.verdict != Verdict::Ok).collect();
    assert!(of_the_sound.is_empty(), "{of_the_sound:#?}");
    assert_eq!(verdicts(&rows, 1, Verdict::Ok), CLIENTS * EACH);
    for (target, error) in
        [(3, ResponseError::Reset), (4, ResponseError::Garbage), (5, ResponseError::TooLong)]
    {
        let other = rows.iter().find(|row| row.target == target && row.error != Some(error));
        assert!(other.is_none(), "{other:?}");
    }
    assert!(rows.iter().all(|row| row.target != 2 || row.verdict == Verdict::NoResponse));
    assert!(rows.iter().all(|row| row.target != 6 || row.verdict != Verdict::Ok));
    once_for_each_need(&requested, CLIENTS - leaving);
}
