//! `assay switch` that runs, as people use it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Assay, send};

/// A server that sends one response on every connection, on a thread of its own for as long as the test runs.
fn server(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = listener.local_addr().expect("is bound").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = (&stream).write_all(response.as_bytes());
        }
    });
    address
}

fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("is listened at");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("is taken");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("text");
    response
}

#[test]
fn a_switch_runs_takes_on_another_file_and_stops_when_told_to() {
    let assay = Assay::new();
    let (one, two) = (server("one"), server("two"));
    let text = |address: &str| {
        format!("listen = \"127.0.0.1:0\"\n[[server]]\nname = \"s\"\naddress = \"{address}\"\n")
    };
    assay.file("front.toml", &text(&one));
    let mut command = assay.command(&["switch", "front.toml", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("is piped")).lines();
    let mut event = |name: &str| loop {
        let line = lines.next().expect("goes on").expect("text");
        let event: Value = serde_json::from_str(&line).expect("JSON");
        if event["event"] == name {
            return event;
        }
    };
    let ready = event("ready");
    let address = ready["listen"][0].as_str().expect("an address");
    assert!(get(address).ends_with("one"));
    assay.file("front.toml", &text(&two));
    send(&child, libc::SIGHUP);
    event("reloaded");
    assert!(get(address).ends_with("two"));
    assay.file("front.toml", "listen = 1");
    send(&child, libc::SIGHUP);
    assert!(event("kept")["why"].as_str().is_some_and(|why| why.contains("front.toml:1")));
    assert!(get(address).ends_with("two"));
    // Threads are started once: a file with another number of them is refused in words.
    assay.file("front.toml", &format!("workers = 2\n{}", text(&one)));
    send(&child, libc::SIGHUP);
    let why = event("kept")["why"].to_string();
    assert!(why.contains("from 1 to 2") && why.contains("needs a restart"), "{why}");
    assert!(get(address).ends_with("two"));
    assay.file("front.toml", &text("192.0.2.1:80"));
    send(&child, libc::SIGHUP);
    assert!(event("kept")["why"].as_str().is_some_and(|why| why.contains("public address")));
    assert_eq!(event("second")["servers"][0]["name"], "s");
    send(&child, libc::SIGTERM);
    event("stopping");
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}
