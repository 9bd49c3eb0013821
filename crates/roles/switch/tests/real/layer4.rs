//! Layer 4: connections that are ended after a time, and checks at an interval.

use std::io::{Read, Write};
use std::sync::Mutex;

use crate::harness::{Client, Got, Server, eventually, file, switch};
use crate::layer4_peers::{echo, greeted, greeter, is_turned_away};

#[test]
fn a_silent_connection_is_closed_and_one_that_is_not_stays() {
    let server = echo("echo");
    let switch = switch(&file("mode = \"tcp\"", &[&server], "[timeouts]\ntunnel = \"200ms\"\n"));
    let client = Client::new(&switch);
    assert!(is_turned_away(client), "nothing came from either side");
    eventually("it is counted", || switch.snapshot().expect("runs").total().broken == 1);
}

#[test]
fn checks_by_a_connection_take_servers_out_and_bring_them_back() {
    let mut doomed = greeter("d");
    let other = greeter("a");
    let check = "[health]\nconnect = true\ninterval = \"20ms\"\nrise = 1\nfall = 1\n";
    let switch = switch(&file("mode = \"tcp\"\npolicy = \"rr\"\nretries = 0", &[&doomed, &other], check));
    let is_up = |name: &str| {
        switch.snapshot().expect("runs").servers.iter().any(|server| server.name == name && server.up)
    };
    let address = doomed.address;
    doomed.kill();
    eventually("it is out", || !is_up("d"));
    assert!((0..3).all(|_| greeted(&switch).1 == "a"), "no connection is lost to it");
    let back = Server::raw(address, "d", |mut stream, _: &Mutex<Vec<Got>>| {
        let _ = stream.write_all(b"d");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    eventually("it is back", || is_up("d"));
    let names: Vec<String> = (0..2).map(|_| greeted(&switch).1).collect();
    assert!(names.contains(&back.name), "{names:?}");
}
