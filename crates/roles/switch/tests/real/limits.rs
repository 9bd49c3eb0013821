//! What is too slow is told so, and what must wait waits no longer than it may.

use std::io::Read;

use assay_switch::reason::RefusalReason;

use crate::harness::{Client, Server, eventually, file, on_command, switch};

#[test]
fn clients_that_are_slow_are_told_or_sent_away() {
    let server = Server::named("s");
    let timeouts = "[timeouts]\nclient-idle = \"100ms\"\nclient-request = \"100ms\"\n";
    let switch = switch(&file("", &[&server], timeouts));
    let mut idle = Client::new(&switch);
    let mut half = Client::new(&switch);
    half.send("GET / HTTP/1.1\r\nHo");
    let mut bodiless = Client::new(&switch);
    bodiless.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    assert_eq!(half.response().0, 408);
    assert_eq!(bodiless.response().0, 408);
    assert!(idle.is_closed() && half.is_closed() && bodiless.is_closed());
    assert_eq!(switch.snapshot().expect("runs").refused_as(RefusalReason::TooSlow), 2);
}

#[test]
fn a_request_waits_no_longer_than_it_may() {
    let (server, go) = on_command("s");
    let limits = "[limits]\nserver-connections = 1\n[timeouts]\nqueue = \"100ms\"\n";
    let switch = switch(&file("", &[&server], limits));
    let mut first = Client::new(&switch);
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is there", || server.count() == 1);
    let mut second = Client::new(&switch);
    let (status, _, why) = second.get("/");
    assert!(status == 503 && String::from_utf8_lossy(&why).contains("in time"), "{why:?}");
    let no_server = switch.snapshot().expect("runs").no_server;
    assert_eq!(no_server, [0, 0, 1]);
    go.send(()).expect("it waits");
    assert_eq!(first.response().0, 200);
    go.send(()).expect("it waits");
    assert_eq!(second.get("/").0, 200);
}

#[test]
fn connections_above_the_limit_wait_to_be_accepted() {
    let (server, go) = on_command("s");
    let switch = switch(&file("", &[&server], "[limits]\nconnections = 2\n"));
    let mut all: Vec<Client> = (0..3).map(|_| Client::new(&switch)).collect();
    all.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    eventually("two have a server", || server.count() == 2);
    all[2].stream.set_read_timeout(Some(std::time::Duration::from_millis(150))).expect("a socket");
    assert!(all[2].stream.read(&mut [0]).is_err(), "nobody has accepted it");
    assert_eq!(server.count(), 2);
    all[2].stream.set_read_timeout(Some(crate::harness::PATIENCE)).expect("a socket");
    go.send(()).expect("it waits");
    go.send(()).expect("it waits");
    drop(all.drain(..2));
    go.send(()).expect("it waits");
    assert_eq!(all[0].response().0, 200);
}
