//! Slow clients are served as others are, and make room where they keep others out.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use assay_switch::Switch;
use socket2::{Domain, Socket, Type};

use crate::harness::{Client, PATIENCE, Server, eventually, file, on_command, request_http2, switch};

#[test]
fn a_head_that_takes_seconds_is_served_and_so_is_the_request_after_it() {
    let server = Server::named("s");
    let switch = switch(&file("", &[&server], ""));
    let mut client = Client::new(&switch);
    for piece in ["GE", "T /1 H", "TTP/1.1", "\r\nHo", "st: a\r", "\n", "A: b\r\n"] {
        client.send(piece);
        client.stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
        // Nothing comes before all is sent: the read is the pause.
        assert!(client.stream.read(&mut [0]).is_err());
    }
    client.stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    client.send("\r\n");
    assert_eq!(client.response().0, 200);
    client.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().0, 200);
    assert_eq!(switch.snapshot().expect("runs").slow, 0);
}

#[test]
fn a_connection_whose_request_is_served_makes_no_room() {
    let (server, go) = on_command("s");
    let switch = switch(&file("", &[&server], "[limits]\nconnections = 2\n"));
    let mut served: Vec<Client> = (0..2).map(|_| Client::new(&switch)).collect();
    served.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    eventually("both have a server", || server.count() == 2);
    let mut third = Client::new(&switch);
    third.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    go.send(()).expect("it waits");
    go.send(()).expect("it waits");
    served.iter_mut().for_each(|client| assert_eq!(client.response().0, 200));
    go.send(()).expect("it waits");
    assert_eq!(third.response().0, 200, "one of the others waits for a request now");
}

#[test]
fn a_connection_of_http_2_whose_request_is_served_makes_no_room() {
    let (server, go) = on_command("s");
    let switch = switch(&file("http2 = \"all\"", &[&server], "[limits]\nconnections = 2\n"));
    let mut served: Vec<Client> = (0..2).map(|_| Client::new(&switch)).collect();
    served.iter_mut().for_each(|client| client.stream.write_all(&request_http2(&[])).expect("is taken"));
    eventually("both have a server", || server.count() == 2);
    let mut third = Client::new(&switch);
    third.stream.set_read_timeout(Some(Duration::from_millis(1500))).expect("a socket");
    third.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(
        third.stream.read(&mut [0]).is_err(),
        "nobody makes room, though both have waited for more than a second"
    );
    assert_eq!(switch.snapshot().expect("runs").dismissed, 0);
    (0..3).for_each(|_| go.send(()).expect("it waits"));
    third.stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    assert_eq!(third.response().0, 200, "one of the others waits for a request now");
}

#[test]
fn a_connection_of_http_2_ends_with_an_upload_that_does_not_come_alone_on_it() {
    let server = Server::named("s");
    let switch = switch(&file("http2 = \"all\"", &[&server], "[timeouts]\nclient-request = \"1s\"\n"));
    let mut request = request_http2(&[]);
    // POST, and DATA is to follow; behind the head of the frame.
    let head_at = request.len() - 15;
    (request[head_at + 4], request[head_at + 9]) = (4, 0x83);
    let mut all = Vec::new();
    // Nothing comes where the request was too late for the switch.
    while all.is_empty() {
        let mut client = Client::new(&switch);
        let _ = client.stream.write_all(&request);
        let read = client.stream.read_to_end(&mut all);
        // Without a request, it has an hour.
        assert!(
            !read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "the connection does not end"
        );
    }
    // GOAWAY without an error, behind what was the last stream.
    assert!(all.ends_with(b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0"), "{}", all.escape_ascii());
}

#[test]
fn readers_that_take_a_part_and_no_more_leave_a_quarter_of_a_server_to_others() {
    let body = vec![b'b'; 1 << 20];
    let server = Server::responding("s", move |got, stream| {
        let body = if got.head.contains("/big") { &body[..] } else { &b"small"[..] };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_ok()
    });
    for splice in ["never", "auto"] {
        let own = format!("splice = \"{splice}\"\n");
        let switch = switch(&file(&own, &[&server], "[limits]\nserver-connections = 8\n"));
        let readers: Vec<_> = (0..8).map(|_| reader(&switch)).collect();
        let now = || switch.snapshot().expect("runs");
        eventually("they have made room", || now().in_flight == 6 && now().dismissed == 2);
        for _ in 0..2 {
            assert_eq!(Client::new(&switch).get("/").0, 200);
        }
        drop(readers);
    }
}

/// A client that has taken a part of a large body, with a small window. What it is sent next is taken by its system in part.
fn reader(switch: &Switch) -> std::net::TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(16 << 10).expect("a socket");
    socket.connect(&switch.addresses()[0].into()).expect("is listened at");
    socket.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").expect("is taken");
    let mut stream = std::net::TcpStream::from(socket);
    stream.read_exact(&mut vec![0; 150_000]).expect("a part");
    stream
}
