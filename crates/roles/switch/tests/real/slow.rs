//! Slow clients have what others do not need: they are told so in time, end for the sake of those that are not slow, and are counted.

use std::io::{Read, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Client, PATIENCE, Server, eventually, file, request_http2, switch};

/// How often a byte comes of those that are slow.
const DRIP: Duration = Duration::from_millis(20);

/// Sends a byte now and then until the connection ends; what came back.
fn drips(mut client: Client, first: &str) -> Vec<u8> {
    client.send(first);
    client.stream.set_read_timeout(Some(DRIP)).expect("a socket");
    let (mut got, begun) = (Vec::new(), Instant::now());
    let mut room = [0; 4096];
    loop {
        assert!(begun.elapsed() < PATIENCE, "nobody has ended it");
        let _ = client.stream.write_all(b"x");
        match client.stream.read(&mut room) {
            Ok(0) => return got,
            Ok(count) => got.extend_from_slice(&room[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return got,
        }
    }
}

#[test]
fn who_sends_a_byte_now_and_then_has_no_more_time_than_who_sends_none() {
    let server = Server::named("s");
    let timeouts = "[timeouts]\nclient-request = \"300ms\"\n";
    let switch = switch(&file("", &[&server], timeouts));
    for first in
        ["GET / HTTP/1.1\r\nHost: a\r\nA: ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"]
    {
        let got = drips(Client::new(&switch), first);
        assert!(got.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&got));
    }
    assert_eq!(switch.snapshot().expect("runs").slow, 2);
}

#[test]
fn who_does_not_close_after_a_refusal_is_counted_once() {
    let server = Server::named("s");
    let switch = switch(&file("", &[&server], "[timeouts]\nclient-request = \"300ms\"\n"));
    let mut client = Client::new(&switch);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    assert_eq!(client.response().0, 408);
    eventually("its connection has ended", || switch.snapshot().expect("runs").clients == 0);
    assert_eq!(switch.snapshot().expect("runs").slow, 1);
}

#[test]
fn a_body_may_come_as_slowly_as_the_file_says() {
    let server = Server::named("s");
    // A byte in 20 ms are 50 a second.
    let file =
        file("", &[&server], "[timeouts]\nclient-request = \"300ms\"\n[limits]\nclient-rate = \"20B\"\n");
    let switch = switch(&file);
    let mut client = Client::new(&switch);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n");
    client.stream.set_read_timeout(Some(DRIP)).expect("a socket");
    for _ in 0..40 {
        // Nothing comes before all is sent: the read is the pause.
        assert!(client.stream.read(&mut [0]).is_err());
        client.send("x");
    }
    client.stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    assert_eq!(client.response().0, 200);
    assert_eq!(server.last().body.len(), 40);
}

#[test]
fn where_no_more_connections_may_be_those_that_wait_longest_for_a_request_make_room() {
    let server = Server::named("s");
    let switch = switch(&file("", &[&server], "[limits]\nconnections = 20\n"));
    let now = || switch.snapshot().expect("runs");
    let mut slow: Vec<Client> = (0..20).map(|_| Client::new(&switch)).collect();
    slow.iter_mut().skip(1).for_each(|client| client.send("GET / HTTP/1.1\r\nHo"));
    eventually("all are there", || now().clients == 20);
    let mut others: Vec<Client> = (0..5).map(|_| Client::new(&switch)).collect();
    for other in &mut others {
        assert_eq!(other.get("/").0, 200);
    }
    assert!((5..=10).contains(&now().dismissed), "{}", now().dismissed);
    assert!(slow[0].is_closed(), "the first of them has sent nothing, and is told nothing");
    assert_eq!(slow[1].response().0, 408);
}

#[test]
fn clients_that_open_no_window_make_room_whatever_frames_they_send() {
    let server = Server::named("s");
    let switch = switch(&file("http2 = \"all\"", &[&server], "[limits]\nconnections = 20\n"));
    // Streams have no window.
    let begin = request_http2(&[0, 4, 0, 0, 0, 0]);
    let no_settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut closed: Vec<Client> = (0..20).map(|_| Client::new(&switch)).collect();
    closed.iter_mut().for_each(|client| client.stream.write_all(&begin).expect("is taken"));
    eventually("all have been served", || server.count() == 20);
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(5 * DRIP) == Err(RecvTimeoutError::Timeout) {
                // One that made room takes no more.
                closed.iter_mut().for_each(|client| drop(client.stream.write_all(&no_settings)));
            }
        });
        assert_eq!(Client::new(&switch).get("/").0, 200);
        drop(end);
    });
    let dismissed = switch.snapshot().expect("runs").dismissed;
    assert!((1..=8).contains(&dismissed), "{dismissed}");
}

#[test]
fn slow_uploads_leave_a_quarter_of_a_server_to_others() {
    let server = Server::named("s");
    let switch = switch(&file("", &[&server], "[limits]\nserver-connections = 8\n"));
    let mut slow: Vec<Client> = (0..8).map(|_| Client::new(&switch)).collect();
    for client in &mut slow {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
    }
    let now = || switch.snapshot().expect("runs");
    eventually("they have made room", || now().in_flight == 6 && now().dismissed == 2);
    for _ in 0..2 {
        assert_eq!(Client::new(&switch).get("/").0, 200);
    }
    let mut told = 0;
    for client in &mut slow {
        client.stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a socket");
        let mut status = [0; 12];
        told += u32::from(client.stream.read_exact(&mut status).is_ok() && &status == b"HTTP/1.1 408");
    }
    // A request of the others takes a place, too: if the switch looks just then, another one makes room.
    assert!((2..=4).contains(&told), "{told}");
}

#[test]
fn hundreds_of_slow_clients_of_each_kind_harm_nobody() {
    let server = Server::named("s");
    let limits =
        "[limits]\nconnections = 300\nserver-connections = 100\n[timeouts]\nclient-request = \"2s\"\n";
    let switch = switch(&file("", &[&server], limits));
    let begun = ["GET / HTTP/1.1\r\nHo", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", ""];
    let slow: Vec<Client> = (0..450)
        .map(|number| {
            let mut client = Client::new(&switch);
            // One that was refused already is no less slow.
            let _ = client.stream.write_all(begun[number % 3].as_bytes());
            client
        })
        .collect();
    for number in 0..200 {
        assert_eq!(Client::new(&switch).get("/").0, 200, "{number}");
    }
    let now = switch.snapshot().expect("runs");
    assert!(now.dismissed + now.slow > 0 && now.clients <= 300, "{now:?}");
    drop(slow);
}
