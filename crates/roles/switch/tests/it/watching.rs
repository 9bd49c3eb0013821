//! What can be seen of a switch from outside: counters, the log, and what servers say of themselves.

use std::io::{Read, Write};

use crate::harness::{Client, Server, config, eventually, field, file, switch};

#[test]
fn counters_are_shown_to_prometheus() {
    let server = Server::named("a");
    let switch = switch(&file("metrics = \"127.0.0.1:0\"", &[&server], "[[class]]\nname = \"all\"\n"));
    let mut client = Client::new(&switch);
    assert_eq!([client.get("/").0, client.get("/").0], [200, 200]);
    let metrics = switch.metrics().expect("are shown");
    let (status, _, body) = Client::to(metrics).get("/metrics");
    let text = String::from_utf8(body).expect("text");
    assert_eq!(status, 200);
    for line in [
        "assay_switch_requests_total{class=\"all\",server=\"a\",code=\"2xx\"} 2",
        "assay_switch_duration_seconds_count{class=\"all\",server=\"a\"} 2",
        "assay_switch_server_up{server=\"a\"} 1",
        "assay_switch_clients 1",
    ] {
        assert!(text.lines().any(|own| own == line), "{line} is not in:\n{text}");
    }
    assert_eq!(Client::to(metrics).get("/").0, 404);
}

#[test]
fn counters_are_for_clients_that_name_this_machine_and_a_head_gets_no_body() {
    let server = Server::named("a");
    let switch = switch(&file("metrics = \"127.0.0.1:0\"", &[&server], ""));
    let metrics = switch.metrics().expect("are shown");
    let get = |host: &str, method: &str| {
        let mut client = Client::to(metrics);
        client.send(&format!("{method} /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let (status, head, _) = client.response_to(method);
        let mut rest = Vec::new();
        client.reader.read_to_end(&mut rest).expect("an end");
        (status, field(&head, "content-length").map(str::to_owned), rest)
    };
    assert_eq!(get("evil.example:9100", "GET").0, 421);
    assert_eq!(get(&metrics.to_string(), "GET").0, 200);
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(get("localhost", method).0, 405, "{method}");
    }
    let (status, length, rest) = get("localhost", "HEAD");
    assert!(status == 200 && length.is_some_and(|length| length != "0") && rest.is_empty(), "{rest:?}");
}

#[test]
fn the_log_has_a_line_for_each_request_and_follows_a_reload() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log");
    let server = Server::named("a");
    let trusted = "trusted-proxies = \"127.0.0.0/8\"";
    let text = file(&format!("access-log = \"{}\"\n{trusted}", log.display()), &[&server], "");
    let mut switch = switch(&text);
    let mut client = Client::new(&switch);
    client.send("GET /x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\nUser-Agent: \"t\"\r\n\r\n");
    assert_eq!(client.response().0, 200);
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("it is written", || read().lines().count() == 1);
    let line = read();
    assert!(line.starts_with("192.0.2.7 - - ["), "{line}");
    assert!(line.contains("\"GET /x HTTP/1.1\" 200 1 \"-\" \"\\\"t\\\"\" other a "), "{line}");
    std::fs::rename(&log, folder.path().join("old.log")).expect("a folder of its own");
    switch.reload(config(&text)).expect("is taken on");
    client.get("/y");
    eventually("it is written anew", || read().contains("GET /y"));
}

#[test]
fn lines_that_a_full_disk_has_no_room_for_are_counted_and_requests_go_on() {
    let server = Server::named("a");
    let file = file("access-log = \"/dev/full\"\nmetrics = \"127.0.0.1:0\"", &[&server], "");
    let switch = switch(&file);
    let mut client = Client::new(&switch);
    assert_eq!([client.get("/").0, client.get("/").0], [200, 200]);
    eventually("they are counted", || switch.snapshot().expect("runs").log_lost == 2);
    let (_, _, body) = Client::to(switch.metrics().expect("are shown")).get("/metrics");
    assert!(String::from_utf8(body).expect("text").contains("assay_switch_log_lost_total 2\n"));
}

#[test]
fn a_policy_that_needs_their_state_has_servers_probed() {
    let server = Server::responding("s", |_, stream| {
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nendpoint-load-metrics: TEXT named_metrics.in_flight=1\r\n\r\nx",
            )
            .is_ok()
    });
    let switch = switch(&file("policy = \"prequal\"\nstate-path = \"/how\"", &[&server], ""));
    let mut client = Client::new(&switch);
    for _ in 0..5 {
        client.get("/");
    }
    eventually("it is asked", || {
        server.got.lock().expect("no panic").iter().any(|got| got.head.starts_with("GET /how "))
    });
}
