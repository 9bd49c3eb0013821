//! Servers that are gone, late or wrong: what can be saved is saved, and nothing is sent twice that must not be.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{Client, PATIENCE, Server, anywhere, file, nobody, ok, switch};

/// Waits until something is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "it never came about: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_is_killed_under_load_loses_no_safe_request() {
    let mut doomed = Server::named("doomed");
    let others = [Server::named("a"), Server::named("b")];
    let switch =
        switch(&file("policy = \"rr\"", &[&doomed, &others[0], &others[1]], "[passive]\nfailures = 3\n"));
    let (is_over, responded) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = Client::new(&switch);
                while !is_over.load(Ordering::SeqCst) {
                    assert_eq!(client.get("/").0, 200);
                    responded.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        eventually("all servers are used", || doomed.count() > 50);
        doomed.kill();
        let then = responded.load(Ordering::SeqCst);
        eventually("it goes on without", || responded.load(Ordering::SeqCst) > then + 300);
        is_over.store(true, Ordering::SeqCst);
    });
    let now = switch.snapshot().expect("runs");
    assert_eq!(now.total().requests(), now.total().responses[1]);
    eventually("it is out", || {
        switch.snapshot().expect("runs").servers.iter().any(|s| s.name == "doomed" && !s.up)
    });
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
    let gone = format!("[[server]]\nname = \"gone\"\naddress = \"{}\"\n", nobody());
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
fn late_and_senseless_responses_have_their_statuses() {
    let silent = Server::responding("silent", |_, _| {
        std::thread::sleep(Duration::from_millis(1));
        true
    });
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
    for (server, status) in [(silent, 504), (babbling, 502), (smuggling, 502), (switching, 502)] {
        let switch = switch(&file("[timeouts]\nresponse = \"100ms\"\n", &[&server], ""));
        assert_eq!(Client::new(&switch).get("/").0, status, "{}", server.name);
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
fn servers_that_say_they_are_unwell_are_out_until_they_say_otherwise() {
    let is_well = Arc::new(AtomicBool::new(true));
    let patient = {
        let is_well = Arc::clone(&is_well);
        Server::responding("patient", move |got, stream| {
            if got.head.starts_with("GET /health ") && !is_well.load(Ordering::SeqCst) {
                return stream.write_all(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n").is_ok();
            }
            ok(stream, b"patient")
        })
    };
    let other = Server::named("other");
    let health = "[health]\npath = \"/health\"\ninterval = \"10ms\"\nrise = 2\nfall = 2\n";
    let switch = switch(&file("policy = \"rr\"", &[&patient, &other], health));
    let is_up = || switch.snapshot().expect("runs").servers[0].up;
    let mut client = Client::new(&switch);
    assert!(is_up());
    is_well.store(false, Ordering::SeqCst);
    eventually("it is out", || !is_up());
    assert_eq!([client.body("/"), client.body("/"), client.body("/")], ["other", "other", "other"]);
    is_well.store(true, Ordering::SeqCst);
    eventually("it is back", is_up);
    assert_ne!(client.body("/"), client.body("/"));
}

#[test]
fn a_server_that_fails_is_out_for_a_while_and_a_backup_steps_in() {
    let gone = format!("[[server]]\nname = \"gone\"\naddress = \"{}\"\n", nobody());
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
