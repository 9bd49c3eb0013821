//! What is too much or no HTTP gets the right status, and what must wait waits in its order.

use std::io::Write;

use assay_switch::reason::RefusalReason;

use crate::harness::{Client, Server, eventually, file, on_command, switch};

#[test]
fn requests_that_are_refused_say_why_and_get_nowhere() {
    let server = Server::named("s");
    let limits =
        "[limits]\nbody-size = \"100B\"\nhead-fields = 20\ntarget-size = \"200B\"\nhead-size = \"2KB\"\n";
    let switch = switch(&file("metrics = \"127.0.0.1:0\"", &[&server], limits));
    let long = "x".repeat(300);
    for (text, status) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), 400),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(), 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                .to_owned(),
            400,
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n".to_owned(), 413),
        (format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414),
        (format!("GET /{long}"), 414),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(20)), 431),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "x".repeat(2048)), 431),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 501),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(), 505),
    ] {
        let mut client = Client::new(&switch);
        client.send(&text);
        let (got, head, why) = client.response();
        assert_eq!(got, status, "{text}");
        assert!(!why.is_empty() && head.contains("Connection: close"), "{head}");
        assert!(client.is_closed());
    }
    assert_eq!(server.count(), 0);
    let counted = switch.snapshot().expect("runs");
    assert_eq!(counted.refused(), 12);
    let of = |reason| counted.refused_as(reason);
    assert_eq!(
        (of(RefusalReason::Malformed), of(RefusalReason::AmbiguousFraming), of(RefusalReason::NotServed)),
        (3, 2, 2)
    );
    assert_eq!(
        (of(RefusalReason::HeadTooLong), of(RefusalReason::TooManyFields), of(RefusalReason::BodyTooLong)),
        (3, 1, 1)
    );
    let (_, _, body) = Client::to(switch.metrics().expect("are shown")).get("/metrics");
    let text = String::from_utf8(body).expect("text");
    for line in ["ambiguous_framing\"} 2", "head_too_long\"} 3", "too_slow\"} 0"] {
        assert!(text.contains(&format!("\nassay_switch_refused_total{{reason=\"{line}\n")), "{text}");
    }
}

#[test]
fn requests_that_are_refused_over_http_2_are_counted_and_get_nowhere() {
    let server = Server::named("s");
    let switch = switch(&file("http2 = \"all\"", &[&server], "[limits]\nhead-size = \"2KB\"\n"));
    let mut head = vec![0x82, 0x86, 0x84, 1, 1, b'a', 0, 1, b'x', 0x7f, 0xff, 0x10];
    head.extend([b'y'; 127 + 127 + (16 << 7)]);
    let headers = |block: &[u8]| [&[0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1][..], block].concat();
    let frames = [
        // No path; a field whose name has an upper-case letter; CONNECT; a scheme that is not of HTTP.
        headers(b"\x82\x86\x01\x01a"),
        headers(b"\x82\x86\x84\x01\x01a\0\x01A\x01b"),
        headers(b"\x02\x07CONNECT\x01\x04a:80"),
        headers(b"\x82\x06\x03ftp\x84\x01\x01a"),
        // A field of 2,302 bytes.
        [&[0, (head.len() >> 8) as u8, head.len() as u8, 1, 5, 0, 0, 0, 1], &head[..]].concat(),
        // DATA of no stream, which ends the connection.
        vec![0, 0, 1, 0, 0, 0, 0, 0, 0, b'x'],
    ];
    for (number, frame) in frames.iter().enumerate() {
        let mut client = Client::new(&switch);
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        client.stream.write_all(&[&preface[..], frame].concat()).expect("is taken");
        eventually("one more is counted", || switch.snapshot().expect("runs").refused() == number as u64 + 1);
    }
    let counted = switch.snapshot().expect("runs");
    let reasons = [RefusalReason::Malformed, RefusalReason::NotServed, RefusalReason::HeadTooLong];
    assert_eq!(reasons.map(|reason| counted.refused_as(reason)), [3, 2, 1]);
    assert_eq!(server.count(), 0);
}

#[test]
fn bodies_in_chunks_are_held_against_their_limit_and_their_grammar() {
    let server = Server::named("s");
    let switch = switch(&file("", &[&server], "[limits]\nbody-size = \"100B\"\n"));
    for (chunks, status) in [("65\r\n", 413), ("zz\r\n", 400)] {
        let mut client = Client::new(&switch);
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(chunks);
        let _ = client.stream.write_all("y".repeat(101).as_bytes());
        assert_eq!(client.response().0, status, "{chunks}");
        assert!(client.is_closed());
    }
    let counted = switch.snapshot().expect("runs");
    assert_eq!(
        [RefusalReason::BodyTooLong, RefusalReason::Malformed].map(|reason| counted.refused_as(reason)),
        [1, 1]
    );
    assert_eq!(server.count(), 0);
}

#[test]
fn requests_wait_for_a_server_with_room_in_their_order() {
    let (server, go) = on_command("s");
    let switch = switch(&file("", &[&server], "[limits]\nserver-connections = 1\nqueue = 2\n"));
    let waiting = || switch.snapshot().expect("runs").waiting;
    let mut clients: Vec<Client> = Vec::new();
    for number in 0..3 {
        let mut client = Client::new(&switch);
        client.send(&format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
        clients.push(client);
        eventually("it has a server or waits", || {
            let now = switch.snapshot().expect("runs");
            now.in_flight + now.waiting == number + 1
        });
    }
    assert_eq!(waiting(), 2);
    let mut refused = Client::new(&switch);
    let (status, _, why) = refused.get("/4");
    assert!(status == 503 && String::from_utf8_lossy(&why).contains("wait"), "{why:?}");
    let no_server = switch.snapshot().expect("runs").no_server;
    assert_eq!(no_server, [0, 1, 0]);
    for (number, client) in clients.iter_mut().enumerate() {
        go.send(()).expect("it waits");
        assert_eq!(client.response().0, 200);
        assert!(server.got.lock().expect("no panic")[number].head.starts_with(&format!("GET /{number} ")));
    }
    assert_eq!(waiting(), 0);
}

#[test]
fn a_client_that_leaves_while_its_request_waits_gives_up_its_place() {
    let (server, go) = on_command("s");
    let switch = switch(&file("", &[&server], "[limits]\nserver-connections = 1\nqueue = 1\n"));
    let now = || switch.snapshot().expect("runs");
    let mut first = Client::new(&switch);
    first.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is there", || server.count() == 1);
    // One without more, one that has sent another request behind it, one in the middle of a body.
    let behind = "GET /gone HTTP/1.1\r\nHost: a\r\n\r\n";
    for text in [behind, &behind.repeat(2), "POST /gone HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"]
    {
        let before = now().left;
        let mut leaving = Client::new(&switch);
        leaving.send(text);
        eventually("it waits", || now().waiting == 1);
        drop(leaving);
        eventually("its place is free", || now().waiting == 0 && now().left == before + 1);
    }
    // One that stays may say more meanwhile, and loses nothing of it.
    let mut staying = Client::new(&switch);
    staying.send("POST /stays HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
    eventually("it waits", || now().waiting == 1);
    staying.send("defghi");
    for client in [&mut first, &mut staying] {
        go.send(()).expect("it waits");
        assert_eq!(client.response().0, 200);
    }
    assert_eq!(server.last().body, b"abcdefghi");
    assert_eq!((server.count(), now().left, now().total().responses[1]), (2, 3, 2), "nobody else got there");
}
