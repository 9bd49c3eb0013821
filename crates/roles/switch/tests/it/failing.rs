//! Servers that are gone or wrong: what can be saved is saved, and nothing is sent twice that must not be.

use std::io::Write;

use socket2::Socket;

use crate::harness::{Client, Server, anywhere, eventually, file, hold, ok, switch};

/// A server at whose address nobody listens, as long as the socket is kept.
fn gone() -> (Socket, String) {
    let held = hold(anywhere());
    let address = held.local_addr().ok().and_then(|address| address.as_socket()).expect("is bound");
    (held, format!("[[server]]\nname = \"gone\"\naddress = \"{address}\"\n"))
}

#[test]
fn what_was_sent_is_not_sent_again_unless_it_may_be() {
    let deaf = Server::raw(anywhere(), "deaf", |stream, got| {
        let mut reader = std::io::BufReader::new(stream);
        let head = crate::harness::read_head(&mut reader).expect("a request");
        got.lock().expect("no panic").push(crate::harness::Got { head, body: Vec::new() });
    });
    let good = Server::named("good");
    let switch = switch(&file("policy = \"rr\"", &[&deaf, &good], ""));
    let mut client = Client::new(&switch);
    assert_eq!(client.body("/"), "good");
    // The turn of the good one, then of the deaf one.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    client.response();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    client.response();
    let posts = |server: &Server| {
        server.got.lock().expect("no panic").iter().filter(|got| got.head.starts_with("POST")).count()
    };
    assert_eq!((posts(&deaf), posts(&good)), (1, 1), "one was lost and stays lost");
    let total = switch.snapshot().expect("runs").total();
    assert_eq!((total.responses, total.retried), ([0, 2, 0, 0, 1], 1));
}

#[test]
fn what_could_not_be_sent_at_all_goes_elsewhere_whatever_it_is() {
    let good = Server::named("good");
    let (_held, gone) = gone();
    let text = file("policy = \"rr\"", &[&good], &gone);
    let both = switch(&text);
    let mut client = Client::new(&both);
    for _ in 0..4 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n");
        client.send(&"x".repeat(30_000));
        assert_eq!(client.response().0, 200);
        assert_eq!(good.last().body.len(), 30_000);
    }
    assert!(both.snapshot().expect("runs").total().retried >= 2);
    let alone = switch(&format!("listen = \"127.0.0.1:0\"\n{gone}"));
    let mut client = Client::new(&alone);
    let (status, _, why) = client.get("/");
    assert_eq!(status, 502);
    assert!(String::from_utf8_lossy(&why).contains("server gone could not be reached"), "{why:?}");
    assert_eq!(client.get("/").0, 502, "the connection lives on");
}

#[test]
fn senseless_responses_have_their_status() {
    let babbling = Server::responding("babbling", |_, stream| {
        let _ = stream.write_all(b"SSH-2.0-x\r\n\r\n");
        false
    });
    let smuggling = Server::responding("smuggling", |_, stream| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        stream.write_all(head).is_ok()
    });
    let switching = Server::responding("switching", |_, stream| {
        stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n").is_ok()
    });
    for server in [babbling, smuggling, switching] {
        let switch = switch(&file("", &[&server], ""));
        assert_eq!(Client::new(&switch).get("/").0, 502, "{}", server.name);
        assert_eq!(server.count(), 1, "{} is asked once", server.name);
    }
}

#[test]
fn a_connection_that_the_server_has_closed_is_no_failure() {
    let once = Server::responding("once", |_, stream| {
        ok(stream, b"x");
        false
    });
    let switch = switch(&file("", &[&once], "[passive]\nfailures = 1\n"));
    let mut client = Client::new(&switch);
    for _ in 0..20 {
        assert_eq!(client.get("/").0, 200);
    }
    let total = switch.snapshot().expect("runs").total();
    assert_eq!((total.responses, total.failed), ([0, 20, 0, 0, 0], 0));
}

#[test]
fn a_server_that_fails_is_out_for_a_while_and_a_backup_steps_in() {
    let (_held, gone) = gone();
    let spare = Server::named("spare");
    let text = format!(
        "listen = \"127.0.0.1:0\"\nretries = 0\n{gone}{}[passive]\nfailures = 2\nout = \"1h\"\n",
        spare.toml("backup = true")
    );
    let switch = switch(&text);
    let mut client = Client::new(&switch);
    assert_eq!([client.get("/").0, client.get("/").0], [502, 502]);
    eventually("the spare one is asked", || client.get("/").0 == 200);
}
