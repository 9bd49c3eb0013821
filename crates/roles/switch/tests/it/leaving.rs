//! Clients that go away while a server has their request: the request keeps no place there, and its connection is given up.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_switch::Switch;
use socket2::SockRef;

use crate::harness::{Client, Got, Server, anywhere, eventually, file, ok, on_command, read_head, switch};

/// Begins a connection of HTTP/2: the preface, and SETTINGS without a setting.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// `GET` over `http` for a path of seven letters, of any host: indexed fields, and two literals.
const GET: &[u8] = b"\x82\x86\x04\x07/silent\x01\x01a";
/// The type and the flags of HEADERS without a body, and of RST_STREAM.
const HEADERS: [u8; 2] = [1, 5];
const RST_STREAM: [u8; 2] = [3, 0];

/// How a client goes away.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// It resets its stream of HTTP/2.
    Stream,
    /// It closes its connection of HTTP/2.
    Closed,
    /// It resets its connection of HTTP/2.
    Http2,
    /// It resets its connection of HTTP/1.1.
    Http1,
    /// The same after another request on that connection.
    Reused,
}

const ALL: [How; 5] = [How::Stream, How::Closed, How::Http2, How::Http1, How::Reused];

fn frame([kind, flags]: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, 1], payload].concat()
}

/// Requests what never comes.
fn requests(switch: &Switch, how: How) -> Client {
    let mut client = Client::new(switch);
    match how {
        How::Http1 => client.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n"),
        How::Reused => {
            assert_eq!(client.get("/").0, 200);
            client.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        _ => client.stream.write_all(&[PREFACE, &frame(HEADERS, GET)].concat()).expect("is taken"),
    }
    client
}

/// Goes away; what is left of the connection.
fn leaves(mut client: Client, how: How) -> Option<Client> {
    if how == How::Stream {
        client.stream.write_all(&frame(RST_STREAM, &8u32.to_be_bytes())).expect("is taken");
        return Some(client);
    }
    if how != How::Closed {
        resets(&client.stream);
    }
    None
}

/// Has the end of a connection be a reset.
fn resets(stream: &TcpStream) {
    SockRef::from(stream).set_linger(Some(Duration::ZERO)).expect("a socket");
}

/// A server that writes this in response to `/silent`, and nothing more until the connection ends: how often it did.
fn silent_after(begin: &'static [u8]) -> (Server, Arc<AtomicUsize>) {
    let ended = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&ended);
    let server = Server::responding("s", move |got, stream| {
        if !got.head.contains("/silent") {
            return ok(stream, b"s");
        }
        stream.write_all(begin).expect("is taken");
        counted.fetch_add(usize::from(!matches!(stream.read(&mut [0]), Ok(1))), SeqCst);
        false
    });
    (server, ended)
}

#[test]
fn who_goes_away_before_the_response_leaves_its_place_to_who_waits() {
    for how in ALL {
        let (server, ended) = silent_after(b"");
        let switch = switch(&file("http2 = \"all\"", &[&server], "[limits]\nserver-connections = 1\n"));
        let now = || switch.snapshot().expect("runs");
        let gone = requests(&switch, how);
        eventually("it has the server", || {
            server.got.lock().expect("no panic").iter().any(|got| got.head.contains("/silent"))
        });
        let mut next = Client::new(&switch);
        next.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        eventually("another one waits", || now().waiting == 1);
        let _left = leaves(gone, how);
        assert_eq!(next.response().0, 200, "{how:?}");
        eventually("its connection has ended", || ended.load(SeqCst) == 1);
        eventually("nobody has a place", || now().in_flight == 0);
        let (now, total) = (now(), now().total());
        assert_eq!((now.left, total.failed), (1, 0), "{how:?}: a client has left, no server has failed");
    }
}

#[test]
fn who_goes_away_within_the_response_leaves_its_place() {
    let begin = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin";
    for (how, splice) in ALL.into_iter().flat_map(|how| [(how, "never"), (how, "always")]) {
        let (server, ended) = silent_after(begin);
        let top = format!("http2 = \"all\"\nsplice = \"{splice}\"");
        let switch = switch(&file(&top, &[&server], ""));
        let mut gone = requests(&switch, how);
        if matches!(how, How::Http1 | How::Reused) {
            assert!(read_head(&mut gone.reader).is_some_and(|head| head.starts_with("HTTP/1.1 200 ")));
        }
        eventually("it has the server", || {
            server.got.lock().expect("no panic").iter().any(|got| got.head.contains("/silent"))
        });
        let _left = leaves(gone, how);
        eventually("its connection has ended", || ended.load(SeqCst) == 1);
        eventually("nobody has a place", || switch.snapshot().expect("runs").in_flight == 0);
    }
}

#[test]
fn a_server_whose_clients_go_away_before_it_responds_is_not_taken_for_a_quick_one() {
    let (silent, _) = silent_after(b"");
    let slow = Server::responding("slow", |_, stream| {
        std::thread::sleep(Duration::from_millis(50));
        ok(stream, b"slow")
    });
    let switch = switch(&file("policy = \"peak-ewma\"", &[&silent, &slow], ""));
    let send = || {
        let before = (silent.count(), slow.count());
        let mut client = Client::new(&switch);
        client.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
        eventually("a server has it", || silent.count() + slow.count() > before.0 + before.1);
        (client, slow.count() > before.1)
    };
    // Both are tried, in either order: one responds, and of the other nothing is known when its client goes away.
    for _ in 0..2 {
        let (mut client, is_slow) = send();
        if is_slow {
            assert_eq!(client.response().0, 200);
        } else {
            resets(&client.stream);
            drop(client);
            eventually("nobody has a place", || switch.snapshot().expect("runs").in_flight == 0);
        }
    }
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let (mut client, is_slow) = send();
        match is_slow {
            true => assert_eq!(client.response().0, 200),
            false => waiting.push(client),
        }
    }
    assert_eq!(
        waiting.len(),
        1,
        "an idle server of which nothing is known gets one request, and no more before it has responded"
    );
}

#[test]
fn who_goes_away_while_its_body_is_not_taken_leaves_its_place() {
    let (over, told) = channel::<()>();
    let told = Mutex::new(told);
    let server = Server::raw(anywhere(), "s", move |stream, got| {
        let mut reader = BufReader::new(&stream);
        let head = read_head(&mut reader).expect("a request");
        got.lock().expect("no panic").push(Got { head, body: Vec::new() });
        // Nothing more is read until the test is over.
        let _ = told.lock().expect("no panic").recv();
    });
    let switch = switch(&file("", &[&server], ""));
    let mut gone = Client::new(&switch);
    gone.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    gone.stream.set_nonblocking(true).expect("a socket");
    let room = vec![b'x'; 1 << 16];
    let in_flight = || switch.snapshot().expect("runs").in_flight;
    eventually("it has the server", || server.count() == 1);
    // What it sends is taken as long as the server's system takes it: then the switch waits for the server.
    let mut full = 0;
    eventually("nothing more is taken", || {
        full = if gone.stream.write(&room).is_err() { full + 1 } else { 0 };
        full > 10_000
    });
    assert_eq!(in_flight(), 1);
    resets(&gone.stream);
    drop(gone);
    eventually("nobody has a place", || in_flight() == 0);
    assert_eq!(switch.snapshot().expect("runs").left, 1);
    drop(over);
}

#[test]
fn who_only_sends_nothing_more_gets_its_response_however_long_it_takes() {
    let (silent, _) = silent_after(b"");
    let (server, go) = on_command("late");
    let classes = "[[class]]\nname = \"silent\"\nprefix = \"/silent\"\nservers = [\"s\"]\n\
                   [[class]]\nname = \"rest\"\nservers = [\"late\"]\n";
    let switch = switch(&file("", &[&silent, &server], classes));
    let mut half = Client::new(&switch);
    half.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    half.stream.shutdown(Shutdown::Write).expect("a socket");
    eventually("it has the server", || server.count() == 1);
    // Who has come later and is known to have gone shows that the switch has looked for long enough.
    let gone = requests(&switch, How::Http1);
    eventually("another one has a server", || silent.count() == 1);
    leaves(gone, How::Http1);
    eventually("that one has gone", || switch.snapshot().expect("runs").in_flight == 1);
    go.send(()).expect("it waits");
    assert_eq!(half.response().2, b"late");
    assert_eq!(switch.snapshot().expect("runs").left, 1);
}
