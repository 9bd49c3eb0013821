//! Logs sent again through the real binary.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;

use crate::helpers::{assert_nothing_left, process_of};
use crate::support::{Assay, Said, send, wait_for};

/// A server that responds to everything, on one connection after the other.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut out = stream.try_clone().unwrap();
                // The end of a head is the response's beginning.
                for _ in BufReader::new(stream).lines().map_while(Result::ok).filter(String::is_empty) {
                    if out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_log_is_replayed_and_the_result_is_one_document() {
    let (assay, to) = (Assay::new(), server().to_string());
    let line = |n: u32| {
        format!("192.0.2.{} - - [10/Oct/2025:13:55:{n:02} +0000] \"GET /{n} HTTP/1.1\" 200 5\n", n % 3)
    };
    let log = assay.file("access.log", &(0..9).map(line).collect::<String>());
    let said = assay.run(&["replay", log, "--to", &to, "--speed", "1000", "--json", "--xacts", "x.parquet"]);
    let document: serde_json::Value = serde_json::from_str(&said.ends_well().stdout).unwrap();
    assert_eq!((&document["requests"], &document["responses"]), (&9.into(), &9.into()));
    assert_eq!(document["read"]["format"], "common");
    assert!(assay.path("x.parquet").is_file());
    let urls = assay.file("urls.txt", "/a\n/b\n/c\n");
    let said = assay.run(&["replay", "--urls", urls, "--to", &to, "--per-connection", "2", "--rate", "1000"]);
    let text = said.ends_well().stdout;
    assert!(text.contains("4 sent, 4 responses") && text.contains("2 made"), "{text}");
    assert!(text.contains("its lateness is") && text.contains("due to last byte"), "{text}");
}

/// Twelve requests of a Squid log: three URLs that can be kept, requested four, three and two times, and one that cannot, three
/// times. The log had two hits.
fn squid_log() -> String {
    let requested = [
        ("a.example/page", 200, 30_000, "TCP_MISS"),
        ("b.example/style", 200, 700, "TCP_MISS"),
        ("a.example/page", 200, 30_000, "TCP_MEM_HIT"),
        ("a.example/away", 302, 0, "TCP_MISS"),
        ("a.example/none", 404, 90, "TCP_MISS"),
        ("b.example/style", 200, 700, "TCP_MISS"),
        ("a.example/page", 304, 300, "TCP_IMS_HIT"),
        ("a.example/away", 302, 0, "TCP_MISS"),
        ("a.example/none", 404, 90, "TCP_MISS"),
        ("a.example/page", 200, 30_000, "TCP_MISS"),
        ("b.example/style", 200, 700, "TCP_MISS"),
        ("a.example/away", 302, 0, "TCP_MISS"),
    ];
    let line = |(n, (url, status, bytes, word)): (usize, (&str, u16, u64, &str))| {
        let at = 1_700_000_000 + n;
        format!("{at}.000 0 192.0.2.1 {word}/{status} {bytes} GET http://{url} - HIER_DIRECT/x text/plain\n")
    };
    requested.into_iter().enumerate().map(line).collect()
}

fn number(document: &serde_json::Value, name: &str) -> u64 {
    document["cache"][name].as_u64().unwrap()
}

#[test]
fn a_log_goes_through_a_proxy_before_simulated_origins_and_its_hits_are_told() {
    let assay = Assay::new();
    let log = assay.file("access.log", &squid_log());
    // `assay run` understands the same.
    let said =
        assay.run(&["run", log, "--speed", "20", "--dir", "out", "--json", "-o", "result.json"]).ends_well();
    assert!(said.stderr.contains("a forward proxy"), "{said:?}");
    let text = std::fs::read_to_string(assay.path("result.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["statuses"], serde_json::json!({"200": 7, "302": 3, "404": 2}));
    let had = number(&document, "hits") + number(&document, "joined");
    assert_eq!((had, number(&document, "misses"), number(&document, "wrong")), (6, 6, 0), "{text}");
    assert_eq!(document["cache"]["ideal_dhr"], 0.5);
    assert_eq!(document["cache"]["origin"]["requests"], 6);
    assert_eq!(document["body_bytes"], 4 * 30_000 + 3 * 700 + 2 * 90);
    assert_eq!(
        (&document["read"]["logged"]["known"], &document["read"]["logged"]["hits"]),
        (&12.into(), &2.into())
    );
    for kept in ["out/replay.json", "out/xacts.parquet", "out/roles/proxy.json"] {
        assert!(assay.path(kept).is_file(), "{kept}");
    }
    let words =
        assay.run(&["replay", log, "--proxy", "builtin", "--reverse", "--speed", "20", "--dir", "again"]);
    let words = words.ends_well().stdout;
    assert!(words.contains("wrong responses  0"), "{words}");
    assert!(words.contains("ideal               50.00 %") && words.contains("16.67 %"), "{words}");
    assay.run(&["replay", log, "--proxy", "builtin", "--dir", "out"]).exits(2).complains("is not empty");
}

#[test]
fn a_replay_whose_proxy_is_killed_has_failed_and_says_so() {
    let assay = Assay::new();
    let log = assay.file("access.log", &squid_log());
    let typed = ["replay", log, "--proxy", "builtin", "--speed", "4", "--dir", "out"];
    let mut child =
        assay.command(&typed).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    wait_for(&mut lines, " proxy");
    let proxy = process_of(&assay.path("out"), "proxy.json");
    // SAFETY: a plain system call; the process is one that our child has started and holds.
    assert_eq!(unsafe { libc::kill(proxy, libc::SIGKILL) }, 0);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let said = Said::from(child.wait_with_output().expect("ends"));
    assert_eq!(said.code, Some(1), "{said:?} {rest:#?}");
    let words = rest.join("\n");
    assert!(words.contains("did not last until the end") && words.contains("SIGKILL"), "{words}");
    let document = std::fs::read_to_string(assay.path("out/replay.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert!(document["proxy_ended"].as_str().is_some_and(|how| how.contains("SIGKILL")), "{document}");
    assert_nothing_left(assay.directory.path());
}

/// A proxy that goes on and on and never responds.
const MUTE: &str = r#"
name = "mute"
title = "Mute"
modes = ["forward", "reverse"]

[version]
command = ["sh", "-c", "echo mute 1.0"]
after = "mute "

[start]
command = ["sh", "-c", "exec sleep 600"]

[hierarchy]
one-parent = true
"#;

#[test]
fn an_interrupt_while_the_proxy_is_still_starting_is_said_to_be_one_and_leaves_nothing() {
    let assay = Assay::new();
    let log = assay.file("access.log", &squid_log());
    assay.file("mute.toml", MUTE);
    let replay = ["replay", log, "--proxy", "./mute.toml", "--dir", "out"];
    let evaluation = ["spe", "--listen", "127.0.0.1:0", "--proxy", "./mute.toml", "--dir", "out2"];
    for (typed, words) in [(&replay[..], "directory: "), (&evaluation[..], "starting mute")] {
        let mut command = assay.command(typed);
        let command = command.env("TMPDIR", assay.directory.path());
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        wait_for(&mut lines, words);
        send(&child, libc::SIGINT);
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        let said = Said::from(child.wait_with_output().expect("ends"));
        assert_eq!(said.code, Some(105), "{said:?} {rest:#?}");
        assert!(rest.iter().any(|line| line.contains("nothing was measured")), "{rest:#?}");
        assert_nothing_left(assay.directory.path());
    }
}

#[test]
fn a_replay_that_is_interrupted_twice_does_not_wait_for_the_responses() {
    // It accepts, and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let assay = Assay::new();
    let log = assay.file("access.log", &squid_log());
    let mut command = assay.command(&["replay", log, "--to", &to, "--forward"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let _stream = listener.accept().unwrap();
    // Two that come close together are one; more than two are no more than two.
    while child.try_wait().unwrap().is_none() {
        send(&child, libc::SIGINT);
        std::thread::yield_now();
    }
    let said = Said::from(child.wait_with_output().expect("ended"));
    assert_eq!((said.code, said.stderr.contains("quit at once")), (Some(105), true), "{said:?}");
}

/// An address that refuses connections: a port that was free a moment ago, on a loopback address that nothing else uses.
fn refusing() -> String {
    let id = std::process::id();
    let listener = TcpListener::bind(format!("127.251.{}.{}:0", id >> 8 & 255, (id & 255).max(1))).unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn a_replay_of_which_no_request_got_a_response_failed_and_says_so() {
    let (assay, to) = (Assay::new(), refusing());
    let urls = assay.file("urls.txt", "/a\n/b\n/c\n");
    let replay = ["replay", "--urls", urls, "--to", &to, "--rate", "1000"];
    let said = assay.run(&replay).exits(1).complains("none of 3 requests got a whole response");
    assert!(said.stderr.contains(&to), "{}", said.stderr);
    assert!(said.stdout.contains("3 sent, 0 responses"), "{}", said.stdout);
    let said = assay.run(&[&replay[..], &["--json"]].concat()).exits(1);
    let document: serde_json::Value =
        serde_json::from_str(&said.stdout).expect("the document is written all the same");
    assert_eq!((&document["requests"], &document["responses"]), (&3.into(), &0.into()));
}

#[test]
fn requests_without_a_response_are_told_also_beside_a_document() {
    // It responds on its first connection, and closes all others.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (place, mut stream) in listener.incoming().flatten().enumerate() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            if lines.any(|line| line.is_empty()) && place == 0 {
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        }
    });
    let assay = Assay::new();
    let urls = assay.file("urls.txt", "/a\n/b\n/c\n/d\n");
    let replay = ["replay", "--urls", urls, "--to", &to, "--rate", "1000"];
    let said = assay.run(&[&replay[..], &["--json"]].concat()).exits(99);
    said.complains("warning: 3 of 4 requests (75.0 %) got no whole response");
}
