//! Logs sent again, and evaluations reported, through the real binary.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};

use assay_record::spe::{AnswerRow, AnswerWriter, Ended, How, SpeDir, SpeInfo, Target, Verdict};

use crate::support::Assay;

/// A server that answers everything, on one connection after the other.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut out = stream.try_clone().unwrap();
                // The end of a head is the answer's beginning.
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
    let document: serde_json::Value = serde_json::from_str(&said.exits(0).stdout).unwrap();
    assert_eq!((&document["requests"], &document["answered"]), (&9.into(), &9.into()));
    assert_eq!(document["read"]["format"], "common");
    assert!(assay.path("x.parquet").is_file());
    let urls = assay.file("urls.txt", "/a\n/b\n/c\n");
    let said = assay.run(&["replay", "--urls", urls, "--to", &to, "--per-connection", "2", "--rate", "1000"]);
    let text = said.exits(0).stdout;
    assert!(text.contains("4 sent, 4 answered") && text.contains("2 made"), "{text}");
}

#[test]
fn a_replay_that_cannot_be_says_what_to_do() {
    let assay = Assay::new();
    let log = assay.file("access.log", "nothing that is a log\n");
    let said = assay.run(&["replay", log, "--to", "127.0.0.1:9"]).exits(2);
    assert!(said.stderr.contains("was not recognised"), "{said:?}");
    assay.run(&["replay", log]).exits(2);
    assay.run(&["replay", log, "--to", "8.8.8.8:80"]).exits(2).complains("--i-own-this-target");
    assay.run(&["replay", log, "--to", "127.0.0.1:9", "--speed", "0"]).exits(2);
}

#[test]
fn an_evaluation_is_reported_and_leaves_its_documents() {
    let assay = Assay::new();
    let dir = SpeDir::create(&assay.path("e")).unwrap();
    let target = |label: &str| Target { label: label.into(), ..Target::default() };
    dir.write_info(&SpeInfo {
        targets: vec![target("direct"), target("one")],
        ended: Some(Ended { at_ms: 1000, how: How::Finished }),
        ..SpeInfo::default()
    })
    .unwrap();
    let mut answers = AnswerWriter::create(&dir.answers_path()).unwrap();
    for request in 0..4u64 {
        for target in 0..2u16 {
            let row = AnswerRow {
                request,
                target,
                place: 0,
                at_us: 0,
                client: "192.0.2.1".into(),
                method: "GET".into(),
                version: "HTTP/1.1".into(),
                url: "http://a/".into(),
                status: Some(200),
                connect_us: None,
                first_byte_us: Some(100),
                transfer_us: Some(10),
                head_bytes: 100,
                body_bytes: 5,
                checksum: None,
                verdict: if target == 0 { Verdict::NotCompared } else { Verdict::Ok },
                header: None,
                error: None,
            };
            answers.push(&row).unwrap();
        }
    }
    answers.finish().unwrap();
    let said = assay.run(&["spe", "report", "e", "--json"]).exits(0);
    let document: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(document["targets"][1]["matching"]["value"], 1.0);
    assert!(dir.report_path().is_file() && dir.summary_path().is_file());
    let said = assay.run(&["spe", "report", "nowhere"]).exits(2);
    assert!(said.stderr.contains("assay spe"), "{said:?}");
}
