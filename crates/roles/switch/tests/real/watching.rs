//! What can be seen of a switch from outside: counters, and what servers say of themselves.

use std::io::Write;

use crate::harness::{Client, Server, file, switch};

#[test]
fn counters_are_served_whoever_else_holds_connections_without_a_request() {
    let server = Server::named("a");
    let switch = switch(&file("metrics = \"127.0.0.1:0\"", &[&server], ""));
    let metrics = switch.metrics().expect("are shown");
    let mut halves: Vec<Client> = (0..200).map(|_| Client::to(metrics)).collect();
    halves.iter_mut().step_by(2).for_each(|client| client.send("GET /metrics HTTP/1.1\r\n"));
    let mut client = Client::to(metrics);
    client.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (status, _, body) = client.response();
    assert_eq!(status, 200);
    let text = String::from_utf8(body).expect("text");
    // 201 wanted a place, and there are 64.
    assert!(text.contains("\nassay_switch_metrics_dismissed_total 137\n"), "{text}");
    // Far more than have a place were ended for it, without a response.
    let first = &mut halves[0];
    assert!(first.is_closed());
}

#[test]
fn servers_that_say_how_they_are_get_what_they_can_take() {
    let busy = |name: &'static str, load: &'static str| {
        Server::responding(name, move |_, stream| {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nendpoint-load-metrics: TEXT cpu_utilization={load}\r\n\r\n{name}",
                name.len()
            );
            stream.write_all(head.as_bytes()).is_ok()
        })
    };
    let (busy, free) = (busy("busy", "1.0"), busy("free", "0.0"));
    let switch = switch(&file("policy = \"cap-state\"", &[&busy, &free], ""));
    let mut client = Client::new(&switch);
    let got: Vec<String> = (0..200).map(|_| client.body("/")).collect();
    let to_free = got.iter().filter(|name| *name == "free").count();
    assert!(to_free > 140, "{to_free} of 200");
    let (_, head, _) = client.get("/");
    assert!(!head.contains("load-metrics"), "{head}");
}
