//! Servers that are killed, late or unwell: what can be saved is saved.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::harness::{Client, Server, eventually, file, ok, switch};

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
fn a_response_that_is_late_has_its_status() {
    let silent = Server::responding("silent", |_, _| {
        std::thread::sleep(Duration::from_millis(1));
        true
    });
    let switch = switch(&file("[timeouts]\nresponse = \"100ms\"\n", &[&silent], ""));
    assert_eq!(Client::new(&switch).get("/").0, 504);
    assert_eq!(silent.count(), 1, "it is asked once");
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
