//! Bodies go through whole, whatever their framing, their size, and who is first to speak.

use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::harness::{Client, Server, anywhere, eventually, field, file, ok, switch};
use crate::serving::connections;

/// A body that no shift of whole chunks leaves the same.
fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 % 251) as u8).collect()
}

fn chunked(body: &[u8], each: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(each) {
        out.extend_from_slice(format!("{:x};x=y\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\nTrailer: 1\r\n\r\n");
    out
}

#[test]
fn large_bodies_go_both_ways_with_length_and_in_chunks() {
    let large = body(3_000_000);
    let echo = Server::responding("echo", |got, stream| {
        if got.head.contains("/chunks") {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            return stream.write_all(&[&head[..], &chunked(&got.body, 70_000)].concat()).is_ok();
        }
        ok(stream, &got.body)
    });
    let switch = switch(&file("", &[&echo], ""));
    let mut client = Client::new(&switch);
    for path in ["/length", "/chunks"] {
        client.send(&format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", large.len()));
        client.stream.write_all(&large).expect("is taken");
        let (status, _, got) = client.response();
        assert!(status == 200 && got == large, "{path}");
        client.send(&format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
        client.stream.write_all(&chunked(&large, 9_999)).expect("is taken");
        let (status, head, got) = client.response();
        assert!(status == 200 && got == large, "{path}");
        assert_eq!(field(&head, "transfer-encoding").is_some(), path == "/chunks");
        assert!(field(&echo.last().head, "content-length").is_none());
    }
    assert_eq!(switch.snapshot().expect("runs").total().responses, [0, 4, 0, 0, 0]);
}

#[test]
fn responses_until_the_end_and_to_old_clients_are_whole() {
    let old = Server::responding("old", |got, stream| {
        if got.head.contains("/chunks") {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            return stream.write_all(&[&head[..], &chunked(&body(100_000), 999)].concat()).is_ok();
        }
        let _ = stream.write_all(&[&b"HTTP/1.0 200 OK\r\n\r\n"[..], &body(100_000)].concat());
        false
    });
    let switch = switch(&file("", &[&old], ""));
    let mut new = Client::new(&switch);
    let (_, head, got) = new.get("/");
    assert!(got == body(100_000) && field(&head, "transfer-encoding") == Some("chunked"));
    for path in ["/", "/chunks"] {
        let mut client = Client::new(&switch);
        client.send(&format!("GET {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
        let (_, head, got) = client.response();
        assert!(got == body(100_000) && field(&head, "connection") == Some("close"), "{head}");
        assert!(client.is_closed());
    }
    let mut client = Client::new(&switch);
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert!(client.response().2 == body(100_000) && client.is_closed());
}

#[test]
fn responses_without_body_leave_the_connection_in_step() {
    let server = Server::responding("s", |got, stream| {
        let response: &[u8] = match got.head.split(' ').nth(1) {
            Some("/204") => b"HTTP/1.1 204 No Content\r\n\r\n",
            Some("/304") => b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: \"x\"\r\n\r\n",
            _ if got.head.starts_with("HEAD") => b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwhole\r\n",
        };
        stream.write_all(response).is_ok()
    });
    let switch = switch(&file("", &[&server], ""));
    let mut client = Client::new(&switch);
    for (method, path, status, length) in [
        ("GET", "/204", 204, None),
        ("HEAD", "/", 200, Some("7")),
        ("GET", "/304", 304, Some("9")),
        ("GET", "/", 200, Some("7")),
    ] {
        client.send(&format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let (got, head, _) = client.response_to(method);
        assert_eq!((got, field(&head, "content-length")), (status, length), "{method} {path}");
    }
    assert_eq!(connections(&server), 1);
}

#[test]
fn requests_in_a_row_get_responses_in_their_order() {
    let server = Server::responding("s", |got, stream| {
        let path = got.head.split(' ').nth(1).expect("a path").to_owned();
        ok(stream, &[path.as_bytes(), &got.body].concat())
    });
    let switch = switch(&file("", &[&server], ""));
    let mut client = Client::new(&switch);
    let mut all = String::new();
    for number in 0..20 {
        all.push_str(&format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
        all.push_str(&format!("POST /p{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy"));
    }
    client.send(&all);
    for number in 0..20 {
        assert_eq!(client.response().2, format!("/{number}").as_bytes());
        assert_eq!(client.response().2, format!("/p{number}xy").as_bytes());
    }
}

#[test]
fn a_client_that_waits_for_a_word_gets_the_servers() {
    let server = Server::raw(anywhere(), "s", |mut stream, _| {
        let mut reader = std::io::BufReader::new(stream.try_clone().expect("a socket"));
        let head = crate::harness::read_head(&mut reader).expect("a request");
        assert_eq!(field(&head, "expect"), Some("100-continue"));
        if head.starts_with("PUT /no ") {
            let _ = stream.write_all(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
            return;
        }
        let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        let body = crate::harness::read_body(&mut reader, &head).expect("a body");
        ok(&mut stream, &body);
    });
    let switch = switch(&file("", &[&server], ""));
    let mut client = Client::new(&switch);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.response().0, 100);
    client.send("hello");
    let (status, _, body) = client.response();
    assert_eq!((status, body.as_slice()), (200, &b"hello"[..]));
    client.send("PUT /no HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    let (status, head, _) = client.response();
    assert_eq!((status, field(&head, "connection")), (413, Some("close")));
    assert!(client.is_closed());
}

#[test]
fn a_response_that_comes_before_the_body_is_passed_on_at_once() {
    let (over, told) = channel::<()>();
    let told = Mutex::new(told);
    let server = Server::raw(anywhere(), "s", move |mut stream, _| {
        let mut reader = std::io::BufReader::new(stream.try_clone().expect("a socket"));
        crate::harness::read_head(&mut reader).expect("a request");
        let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        // Nothing more is taken, and nothing ends, until the client has its response.
        let _ = told.lock().expect("no panic").recv();
    });
    let switch = switch(&file("", &[&server], ""));
    let mut client = Client::new(&switch);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    client.send(&"x".repeat(100_000));
    let (status, head, body) = client.response();
    assert_eq!((status, body.as_slice(), field(&head, "connection")), (403, &b"no"[..], Some("close")));
    drop(over);
}

#[test]
fn words_on_the_way_get_to_clients_that_know_them() {
    let server = Server::responding("s", |_, stream| {
        let early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        stream.write_all(early).is_ok() && ok(stream, b"x")
    });
    let switch = switch(&file("", &[&server], ""));
    let mut client = Client::new(&switch);
    let (status, head, _) = client.get("/");
    assert_eq!((status, field(&head, "link")), (103, Some("</a>")));
    assert_eq!(client.response().0, 200);
    let mut old = Client::new(&switch);
    old.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(old.response().0, 200);
}

#[test]
fn a_server_that_sends_interim_responses_without_end_during_an_upload_is_given_up() {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    const EARLY: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let taken = std::sync::Arc::new(AtomicU64::new(0));
    let count = std::sync::Arc::clone(&taken);
    let server = Server::raw(anywhere(), "s", move |mut stream, _| {
        let mut reader = std::io::BufReader::new(stream.try_clone().expect("a socket"));
        crate::harness::read_head(&mut reader).expect("a request");
        let many = EARLY.repeat(1000);
        while let Ok(written @ 1..) = stream.write(&many) {
            count.fetch_add(written as u64, SeqCst);
        }
    });
    let switch = switch(&file("", &[&server], ""));
    let mut client = Client::new(&switch);
    // The rest of the body never comes, so what ends this is the limit.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhalf");
    for number in 0..32 {
        assert_eq!(client.response().0, 103, "interim response {number}");
    }
    let (status, head, _) = client.response();
    assert_eq!((status, field(&head, "connection")), (502, Some("close")));
    // More than the buffers of two sockets was not taken from the server.
    assert!(taken.load(SeqCst) < 32 << 20, "{} bytes", taken.load(SeqCst));
}

#[test]
fn interim_responses_during_and_after_an_upload_are_counted_together() {
    let server = Server::raw(anywhere(), "s", |mut stream, _| {
        let mut reader = std::io::BufReader::new(stream.try_clone().expect("a socket"));
        let head = crate::harness::read_head(&mut reader).expect("a request");
        let early = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(20);
        let _ = stream.write_all(&early);
        crate::harness::read_body(&mut reader, &head).expect("a body");
        let _ = stream.write_all(&early);
        ok(&mut stream, b"x");
    });
    let switch = switch(&file("", &[&server], ""));
    let mut client = Client::new(&switch);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    for number in 0..20 {
        assert_eq!(client.response().0, 103, "interim response {number}");
    }
    client.send("lf");
    let last = (20..=32).map(|_| client.response().0).last();
    assert_eq!(last, Some(502));
}

#[test]
fn a_body_that_breaks_off_is_broken_off_towards_the_client() {
    let server = Server::responding("s", |got, stream| {
        let head: &[u8] = if got.head.contains("/chunks") {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        } else {
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"
        };
        let _ = stream.write_all(head);
        false
    });
    let switch = switch(&file("", &[&server], ""));
    for path in ["/length", "/chunks"] {
        let mut client = Client::new(&switch);
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut all = String::new();
        client.reader.read_to_string(&mut all).expect("an end");
        assert!(all.contains("hello") && !all.ends_with("0\r\n\r\n"), "{all}");
    }
}

#[test]
fn a_large_body_is_moved_by_the_kernel_where_it_goes_on_as_it_is_and_is_whole_in_any_case() {
    const BYTES: usize = 2_000_000;
    for splice in ["auto", "always", "never"] {
        let server = Server::responding("s", |got, stream| {
            if got.head.contains("/chunks") {
                let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                return stream.write_all(&[&head[..], &chunked(&body(BYTES), 70_000)].concat()).is_ok();
            }
            if got.head.contains("/end") {
                let _ = stream.write_all(&[&b"HTTP/1.0 200 OK\r\n\r\n"[..], &body(BYTES)].concat());
                return false;
            }
            ok(stream, &body(BYTES))
        });
        let switch = switch(&file(&format!("splice = \"{splice}\""), &[&server], ""));
        let moved = || switch.snapshot().expect("runs").total().spliced;
        let mut client = Client::new(&switch);
        for (path, may_move) in [("/length", true), ("/chunks", false), ("/length", true)] {
            let before = moved();
            assert!(client.get(path).2 == body(BYTES), "{splice} {path}");
            eventually("it is counted", || switch.snapshot().expect("runs").in_flight == 0);
            assert_eq!(moved() > before, may_move && splice != "never", "{splice} {path}");
        }
        let mut old = Client::new(&switch);
        old.send("GET /end HTTP/1.0\r\nHost: a\r\n\r\n");
        assert!(old.response().2 == body(BYTES), "{splice}: until the end");
    }
}

#[test]
fn a_body_that_breaks_off_while_it_is_moved_does_not_look_complete() {
    let server = Server::responding("s", |_, stream| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n";
        let _ = stream.write_all(&[&head[..], &body(700_000)].concat());
        false
    });
    for splice in ["always", "never"] {
        let switch = switch(&file(&format!("splice = \"{splice}\""), &[&server], ""));
        let mut client = Client::new(&switch);
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut all = Vec::new();
        // The end, or an error: in any case it is less than the head has said.
        let _ = client.reader.read_to_end(&mut all);
        assert!(all.len() < 2_000_000 && all.len() > 600_000, "{splice}: {} bytes", all.len());
        assert_eq!(switch.snapshot().expect("runs").total().spliced > 0, splice == "always");
    }
}
