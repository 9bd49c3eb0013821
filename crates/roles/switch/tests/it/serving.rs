//! Requests get to servers and responses back, by every policy and class.

use std::io::{Read, Write};
use std::net::TcpStream;

use assay_testbed::elsewhere;

use crate::harness::{Client, PATIENCE, Server, field, file, switch};

/// How many connections a server has accepted.
pub fn connections(server: &Server) -> usize {
    server.open.lock().expect("no panic").len()
}

#[test]
fn every_policy_serves() {
    let servers = [Server::named("a"), Server::named("b"), Server::named("c")];
    for policy in [
        "\"rand\"",
        "\"rr\"",
        "\"wrr\"",
        "\"lc\"",
        "\"wlc\"",
        "\"p2c\"",
        "\"peak-ewma\"",
        "\"prequal\"",
        "\"bounded-hash\"",
        "\"lard\"",
        "\"lard-r\"",
        "{ name = \"ward\", core = [\"/1\"] }",
        "\"cap\"",
        "\"cap-state\"",
    ] {
        let all: Vec<&Server> = servers.iter().collect();
        let switch = switch(&file(&format!("policy = {policy}"), &all, ""));
        let mut client = Client::new(&switch);
        for number in 0..12 {
            let (status, _, body) = client.get(&format!("/{number}"));
            assert_eq!(status, 200, "{policy}");
            assert!(["a", "b", "c"].contains(&std::str::from_utf8(&body).expect("text")), "{policy}");
        }
    }
}

#[test]
fn turns_are_taken_and_connections_kept_on_both_sides() {
    let (a, b) = (Server::named("a"), Server::named("b"));
    let switch = switch(&file("policy = \"rr\"", &[&a, &b], ""));
    let mut client = Client::new(&switch);
    let got: String = (0..6).map(|_| client.body("/")).collect();
    assert_eq!(got, "ababab");
    assert_eq!((connections(&a), connections(&b)), (1, 1));
    let now = switch.snapshot().expect("runs");
    assert_eq!((now.total().responses, now.accepted, now.clients), ([0, 6, 0, 0, 0], 1, 1));
}

#[test]
fn classes_go_to_their_servers() {
    let (a, b, c) = (Server::named("a"), Server::named("b"), Server::named("c"));
    let rest = "[[class]]\nname = \"cgi\"\nsuffix = \".cgi\"\nservers = [\"a\"]\n\
                [[class]]\nname = \"api\"\nprefix = \"/api/\"\nservers = [\"b\"]\npolicy = \"rr\"\n\
                [[class]]\nname = \"rest\"\nservers = [\"c\"]\n";
    for policy in ["lc", "cap"] {
        let switch = switch(&file(&format!("policy = \"{policy}\""), &[&a, &b, &c], rest));
        let mut client = Client::new(&switch);
        let got: Vec<String> =
            ["/x.cgi?a", "/api/x", "/x", "/y.cgi"].iter().map(|path| client.body(path)).collect();
        assert_eq!(got, ["a", "b", "c", "a"], "{policy}");
    }
}

#[test]
fn servers_get_the_clients_address_and_not_what_was_for_the_switch() {
    let a = Server::named("a");
    let switch = switch(&file("name = \"front\"", &[&a], ""));
    let mut client = Client::new(&switch);
    client.send(
        "GET http://site.example/x?y HTTP/1.1\r\nHost: other\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\n\
         X-Forwarded-For: 6.6.6.6\r\nUpgrade: h2c\r\nX-Yours: 2\r\n\r\n",
    );
    let (status, head, _) = client.response();
    assert_eq!((status, field(&head, "via")), (200, Some("1.1 front")));
    let got = a.last().head;
    assert!(got.starts_with("GET /x?y HTTP/1.1\r\nHost: site.example\r\n"), "{got}");
    assert_eq!(field(&got, "x-forwarded-for"), Some("127.0.0.1"));
    let forwarded = "for=127.0.0.1;by=\"_front\";proto=http;host=\"site.example\"";
    assert_eq!(field(&got, "forwarded"), Some(forwarded));
    assert_eq!((field(&got, "via"), field(&got, "x-yours")), (Some("1.1 front"), Some("2")));
    assert_eq!(
        (field(&got, "x-mine"), field(&got, "upgrade"), field(&got, "connection")),
        (None, None, None)
    );
}

/// A server that takes `_` for `-`, as in the environment of a CGI program, would have a client's word for what the switch says.
#[test]
fn fields_that_the_switch_writes_do_not_reach_servers_under_another_spelling() {
    for trusted in ["", "trusted-proxies = \"127.0.0.0/8\""] {
        let a = Server::named("a");
        let switch = switch(&file(&format!("name = \"front\"\n{trusted}"), &[&a], ""));
        let mut client = Client::new(&switch);
        for connection in ["", "Connection: X-Mine\r\n"] {
            client.send(&format!(
                "OPTIONS /x HTTP/1.1\r\nHost: a\r\n{connection}X_Forwarded_For: 6.6.6.6\r\nx-forwarded_for: 6.6.6.6\r\n\
                 X_FORWARDED-PROTO: https\r\nX_Forwarded_Proto: https\r\nX-Forwarded_Host: six\r\nMax_Forwards: 6\r\nMax-Forwards: 3\r\n\
                 X_Real_IP: 1\r\nXX_Forwarded_For: 2\r\n\r\n",
            ));
            assert_eq!(client.response().0, 200);
            let got = a.last().head;
            let names = got.lines().skip(1).filter_map(|line| line.split_once(':')).map(|(name, _)| name);
            let left: Vec<&str> = names.filter(|name| name.contains('_')).collect();
            assert_eq!(left, ["X_Real_IP", "XX_Forwarded_For"], "{got}");
            assert_eq!(
                (field(&got, "x-forwarded-for"), field(&got, "max-forwards")),
                (Some("127.0.0.1"), Some("2"))
            );
        }
    }
}

#[test]
fn no_request_leads_to_a_server_that_is_not_in_the_configuration() {
    let (named, other) = (Server::named("named"), Server::named("other"));
    let switch = switch(&file("policy = \"rr\"", &[&named], ""));
    let mut served = 0;
    for request in elsewhere(named.address, other.address) {
        let mut stream = TcpStream::connect(switch.addresses()[0]).expect("a switch");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut bytes = Vec::new();
        // A connection that is reset has said nothing more.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let is_served = text.starts_with("HTTP/1.1 200 ") && !request.starts_with("CONNECT ");
        let is_refused = text.starts_with("HTTP/1.1 400 ") || text.starts_with("HTTP/1.1 501 ");
        assert!(is_served || is_refused, "{request}{text}");
        served += usize::from(is_served);
    }
    assert!(served > 100, "{served}");
    assert_eq!(named.got.lock().expect("no panic").len(), served);
    assert_eq!((other.got.lock().expect("no panic").len(), connections(&other)), (0, 0));
}
