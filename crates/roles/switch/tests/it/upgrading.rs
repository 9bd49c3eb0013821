//! Another protocol on a connection: bytes go both ways once client and server have agreed, and never without that.

use std::io::{Read, Write};
use std::net::Shutdown;

use crate::harness::{Client, Server, eventually, field, file, read_head, switch};
use crate::upgrade_server::{WISH, echo};

#[test]
fn what_both_have_agreed_on_goes_both_ways_until_both_have_ended() {
    let server = echo();
    let switch = switch(&file("", &[&server], ""));
    let mut client = Client::new(&switch);
    client.send(WISH);
    let head = read_head(&mut client.reader).expect("a response");
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert_eq!((field(&head, "upgrade"), field(&head, "connection")), (Some("websocket"), Some("Upgrade")));
    assert_eq!((field(&head, "sec-websocket-accept"), field(&head, "content-length")), (Some("v"), None));
    let sent = server.last().head;
    assert_eq!((field(&sent, "upgrade"), field(&sent, "connection")), (Some("websocket"), Some("Upgrade")));
    assert_eq!(field(&sent, "sec-websocket-key"), Some("k"));
    let mut greeting = [0; 5];
    client.reader.read_exact(&mut greeting).expect("a greeting");
    assert_eq!(&greeting, b"hello");
    assert_eq!(switch.snapshot().expect("runs").in_flight, 1, "the server has it until its end");
    // More than any buffer on the way holds.
    let much: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
    let writer = {
        let (mut stream, much) = (client.stream.try_clone().expect("a socket"), much.clone());
        std::thread::spawn(move || {
            stream.write_all(&much).expect("is taken");
            stream.shutdown(Shutdown::Write).expect("a socket");
        })
    };
    let mut back = Vec::new();
    client.reader.read_to_end(&mut back).expect("an end");
    writer.join().expect("no panic");
    assert!(back.strip_suffix(b"bye") == Some(&much[..]), "{} bytes came back", back.len());
    eventually("it has ended", || switch.snapshot().expect("runs").in_flight == 0);
    eventually("it is counted", || switch.snapshot().expect("runs").total().responses == [1, 0, 0, 0, 0]);
    assert_eq!(switch.snapshot().expect("runs").total().bytes, 3_000_008);
}

#[test]
fn only_protocols_that_are_allowed_are_passed_on() {
    let server = echo();
    let usual = switch(&file("", &[&server], ""));
    let mut client = Client::new(&usual);
    client.send(&WISH.replace("websocket", "h2c"));
    assert_eq!(client.response().2, b"plain");
    assert_eq!(client.body("/"), "plain", "the connection goes on");
    let none = switch(&file("upgrades = \"none\"", &[&server], ""));
    let mut client = Client::new(&none);
    client.send(WISH);
    assert_eq!(client.response().2, b"plain");
    assert!(server.got.lock().expect("no panic").iter().all(|got| field(&got.head, "connection").is_none()));
    let mut tunnel = Client::new(&usual);
    tunnel.send("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (status, _, why) = tunnel.response();
    assert!(status == 501 && String::from_utf8_lossy(&why).contains("tunnels are not served"), "{why:?}");
    assert!(tunnel.is_closed(), "what came behind it is not read");
    assert_eq!(server.count(), 3);
}

#[test]
fn a_server_that_does_not_agree_responds_as_usual_and_one_that_agrees_to_something_else_has_failed() {
    let other = Server::responding("other", |_, stream| {
        let consent = "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
        stream.write_all(consent.as_bytes()).is_ok()
    });
    let plain = Server::named("plain");
    let class = "[[class]]\nname = \"other\"\npath = \"/chat\"\nservers = [\"other\"]\n\
                 [[class]]\nname = \"rest\"\nservers = [\"plain\"]\n";
    let switch = switch(&file("", &[&other, &plain], class));
    let mut client = Client::new(&switch);
    client.send(&WISH.replace("/chat", "/"));
    assert_eq!(client.response().2, b"plain");
    client.send(WISH);
    assert_eq!(client.response().0, 502);
}
