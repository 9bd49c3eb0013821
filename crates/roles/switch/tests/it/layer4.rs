//! Layer 4: a connection gets its server before anything of it is read, and its bytes go both ways as they are.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use assay_switch::reason::NoServerReason;
use proptest::prelude::*;
use rustix::net::sockopt::set_socket_linger;

use crate::harness::{Client, Server, anywhere, config, eventually, file, switch};
use crate::layer4_peers::{echo, greeted, greeter, is_turned_away};

fn pattern(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// Sends all of it, ends its side, and gives what comes back.
fn sent_and_back(client: &mut Client, much: &[u8]) -> Vec<u8> {
    std::thread::scope(|scope| {
        let mut stream = client.stream.try_clone().expect("a socket");
        scope.spawn(move || {
            stream.write_all(much).expect("is taken");
            stream.shutdown(Shutdown::Write).expect("a socket");
        });
        let mut back = Vec::new();
        client.reader.read_to_end(&mut back).expect("an end");
        back
    })
}

#[test]
fn bytes_go_both_ways_until_both_sides_have_ended_whoever_moves_them() {
    for splice in ["auto", "always", "never"] {
        let server = echo("echo");
        let switch = switch(&file(&format!("mode = \"tcp\"\nsplice = \"{splice}\""), &[&server], ""));
        let much = pattern(3_000_000);
        let back = sent_and_back(&mut Client::new(&switch), &much);
        // The server says goodbye after the end of the client's side: that end has come to it, and its own side stayed.
        assert!(back.strip_suffix(b"bye") == Some(&much[..]), "{splice}: {} bytes came back", back.len());
        eventually("it is counted", || switch.snapshot().expect("runs").total().connections == 1);
        let now = switch.snapshot().expect("runs");
        let total = now.total();
        assert_eq!((total.received, total.bytes, total.broken), (3_000_000, 3_000_003, 0), "{splice}");
        assert_eq!((now.in_flight, now.clients, total.requests()), (0, 0, 0));
        match splice {
            "never" => assert_eq!(total.spliced, 0),
            "always" => assert_eq!(total.spliced, 6_000_003),
            _ => assert!((1..=6_000_003).contains(&total.spliced), "{}", total.spliced),
        }
    }
}

#[test]
fn a_short_message_is_copied_and_the_server_may_speak_first() {
    let server = greeter("a");
    let switch = switch(&file("mode = \"tcp\"", &[&server], ""));
    let (client, name) = greeted(&switch);
    assert_eq!(name, "a");
    assert_eq!(switch.snapshot().expect("runs").in_flight, 1, "the server has it until its end");
    drop(client);
    eventually("it has ended", || switch.snapshot().expect("runs").total().connections == 1);
    let total = switch.snapshot().expect("runs").total();
    assert_eq!((total.bytes, total.received, total.spliced), (1, 0, 0));
    assert_eq!((total.first_byte.count(), total.times.count()), (1, 1));
}

#[test]
fn policies_spread_connections_and_not_requests() {
    let servers = [greeter("a"), greeter("b"), greeter("c")];
    let [a, b, c] = &servers;
    let turns = switch(&file("mode = \"tcp\"\npolicy = \"rr\"", &[a, b, c], ""));
    let got: Vec<(Client, String)> = (0..6).map(|_| greeted(&turns)).collect();
    let names: Vec<&str> = got.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "a", "b", "c"]);
    let fewest = switch(&file("mode = \"tcp\"\npolicy = \"lc\"", &[a, b], ""));
    let (first, one) = greeted(&fewest);
    let (_second, other) = greeted(&fewest);
    assert_ne!(one, other);
    drop(first);
    eventually("its server knows", || fewest.snapshot().expect("runs").in_flight == 1);
    assert_eq!(greeted(&fewest).1, one, "it has none now");
}

#[test]
fn a_server_that_cannot_be_reached_is_passed_over_and_counted() {
    let mut gone = greeter("g");
    gone.kill();
    let other = greeter("a");
    let switch = switch(&file(
        "mode = \"tcp\"\npolicy = \"rr\"",
        &[&gone, &other],
        "[passive]\nfailures = 2\nout = \"1h\"\n",
    ));
    let counted = || {
        let total = switch.snapshot().expect("runs").total();
        (total.failed, total.retried)
    };
    // It is out some time after its second failure; on a busy machine, others come until then.
    eventually("it is out", || {
        assert_eq!(greeted(&switch).1, "a");
        switch.snapshot().expect("runs").servers.iter().any(|server| !server.up)
    });
    let (failed, retried) = counted();
    assert!(failed >= 2 && retried == failed, "{failed} and {retried}");
    assert!((0..4).all(|_| greeted(&switch).1 == "a"));
    assert_eq!(counted(), (failed, retried));
}

#[test]
fn a_connection_without_a_server_is_closed_and_counted() {
    let mut gone = greeter("g");
    gone.kill();
    let none = switch(&file("mode = \"tcp\"", &[&gone], ""));
    assert!(is_turned_away(Client::new(&none)));
    eventually("it is counted", || none.snapshot().expect("runs").total().broken == 1);
    let busy = greeter("b");
    let limits = "[limits]\nserver-connections = 1\nqueue = 0\n";
    let full = switch(&file("mode = \"tcp\"", &[&busy], limits));
    let (_kept, _) = greeted(&full);
    assert!(is_turned_away(Client::new(&full)), "the server has all that it may have, and nobody may wait");
    eventually("the reason is counted", || {
        full.snapshot().expect("runs").no_server_as(NoServerReason::QueueFull) == 1
    });
}

#[test]
fn a_client_that_waits_for_a_server_may_have_sent_all_it_has() {
    let server = echo("echo");
    let limits = "[limits]\nserver-connections = 1\n[timeouts]\nqueue = \"1h\"\n";
    let switch = switch(&file("mode = \"tcp\"", &[&server], limits));
    let mut first = Client::new(&switch);
    first.send("x");
    first.reader.read_exact(&mut [0]).expect("comes back");
    let mut second = Client::new(&switch);
    second.send("question");
    second.stream.shutdown(Shutdown::Write).expect("a socket");
    eventually("it waits", || switch.snapshot().expect("runs").waiting == 1);
    let third = Client::new(&switch);
    third.stream.shutdown(Shutdown::Both).expect("a socket");
    eventually("who has sent nothing and ends has left", || switch.snapshot().expect("runs").left == 1);
    drop(first);
    let mut back = String::new();
    second.reader.read_to_string(&mut back).expect("an end");
    assert_eq!(back, "questionbye");
}

#[test]
fn what_breaks_off_does_not_look_complete() {
    for splice in ["always", "never"] {
        let listener = TcpListener::bind(anywhere()).expect("an address");
        let address = listener.local_addr().expect("is bound");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.write_all(b"half").expect("is taken");
            stream.read_exact(&mut [0]).expect("a byte");
            // It goes with a reset, not with an end.
            set_socket_linger(&stream, Some(Duration::ZERO)).expect("a socket");
        });
        let text = format!(
            "listen = \"127.0.0.1:0\"\nmode = \"tcp\"\nsplice = \"{splice}\"\n[[server]]\naddress = \"{address}\"\n"
        );
        let switch = switch(&text);
        let mut client = Client::new(&switch);
        client.reader.read_exact(&mut [0; 4]).expect("half of it");
        client.send("x");
        let end = client.reader.read(&mut [0]).expect_err("no end");
        assert_eq!(end.kind(), ErrorKind::ConnectionReset, "{splice}");
        eventually("it is counted", || switch.snapshot().expect("runs").total().broken == 1);
        server.join().expect("no panic");
    }
}

#[test]
fn a_reload_leaves_connections_where_they_are_and_may_change_the_mode() {
    let (a, b) = (echo("a"), greeter("b"));
    let web = Server::named("web");
    let text = |top: &str, server: &Server| file(top, &[server], "");
    let mut switch = switch(&text("mode = \"tcp\"", &a));
    let mut old = Client::new(&switch);
    old.send("before");
    old.reader.read_exact(&mut [0; 6]).expect("comes back");
    switch.reload(config(&text("mode = \"tcp\"", &b))).expect("is taken on");
    assert_eq!(greeted(&switch).1, "b");
    switch.reload(config(&text("", &web))).expect("is taken on");
    assert_eq!(Client::new(&switch).body("/"), "web", "requests are looked at now");
    old.send("after");
    old.stream.shutdown(Shutdown::Write).expect("a socket");
    let mut back = String::new();
    old.reader.read_to_string(&mut back).expect("an end");
    assert_eq!(back, "afterbye");
}

#[test]
fn a_switch_that_stops_lets_connections_end() {
    let server = echo("echo");
    let mut switch = switch(&file("mode = \"tcp\"", &[&server], ""));
    let mut client = Client::new(&switch);
    client.send("x");
    client.reader.read_exact(&mut [0]).expect("comes back");
    switch.stop();
    eventually("nothing is accepted", || TcpStream::connect(switch.addresses()[0]).is_err());
    assert_eq!(sent_and_back(&mut client, b"more"), b"morebye");
    switch.wait().expect("ends");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn whatever_is_sent_in_whatever_pieces_comes_back_the_same(
        pieces in prop::collection::vec(prop_oneof![1usize..2000, 60_000usize..200_000], 1..6),
        splice in prop_oneof![Just("auto"), Just("always"), Just("never")],
    ) {
        let server = echo("echo");
        let switch = switch(&file(&format!("mode = \"tcp\"\nsplice = \"{splice}\""), &[&server], ""));
        let mut client = Client::new(&switch);
        for (number, piece) in pieces.iter().enumerate() {
            let sent: Vec<u8> = (0..*piece).map(|at| (at * 7 + number) as u8).collect();
            let mut back = vec![0; sent.len()];
            std::thread::scope(|scope| {
                let mut stream = client.stream.try_clone().expect("a socket");
                let sent = &sent;
                scope.spawn(move || stream.write_all(sent).expect("is taken"));
                client.reader.read_exact(&mut back).expect("comes back");
            });
            prop_assert!(back == sent, "piece {number} of {piece} bytes");
        }
        prop_assert_eq!(sent_and_back(&mut client, b""), b"bye");
    }
}
