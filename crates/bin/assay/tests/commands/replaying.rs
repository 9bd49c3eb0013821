//! Logs that cannot be sent again, and evaluations reported, through the real binary.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Instant;

use assay_record::spe::{
    Ended, EvaluationTarget, How, ResponseRow, ResponseWriter, SpeDir, SpeInfo, Verdict,
};

use crate::support::{Assay, Said, send};

/// Waits until a process has a thread of that name.
fn wait_for_thread(child: &Child, name: &str) {
    let tasks = format!("/proc/{}/task", child.id());
    let begin = Instant::now();
    loop {
        let entries = std::fs::read_dir(&tasks).expect("it runs").flatten();
        let mut names = entries.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        if names.any(|comm| comm.trim() == name) {
            return;
        }
        assert!(begin.elapsed().as_secs() < 60, "no thread {name}");
        std::thread::yield_now();
    }
}

#[test]
fn a_log_without_a_usable_line_that_does_not_end_is_given_up_at_the_first_signal() {
    for (signal, is_endless) in [(libc::SIGINT, true), (libc::SIGTERM, true), (libc::SIGTERM, false)] {
        let assay = Assay::new();
        let pipe = assay.path("log");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "cannot make a pipe");
        let arguments = ["replay", "log", "--format", "%h %t \"%r\" %>s %b", "--to", "127.0.0.1:9", "--json"];
        let mut command = assay.command(&arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        wait_for_thread(&child, "plan");
        let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).expect("it is read");
        // More than a pipe and the reader have room for, so it reads. It takes lines until it ends; writing fails then.
        let lines = format!("{}\n", "y".repeat(1023)).repeat(2048).into_bytes();
        let written = if is_endless { writer.write_all(&lines) } else { writer.write_all(b"y\n") };
        written.expect("it reads");
        // A log that only waits must not end before the replay does: its writer is kept.
        let writing = std::thread::spawn(move || {
            while is_endless && writer.write_all(&lines).is_ok() {}
            writer
        });
        send(&child, signal);
        let code = child.wait().expect("is our child").code();
        drop(writing.join().expect("ends with the reader"));
        let said = Said::from(child.wait_with_output().expect("it has ended"));
        assert_eq!(code, Some(105), "{said:?}");
        let document: serde_json::Value = serde_json::from_str(&said.stdout).expect("a document");
        assert_eq!((&document["requests"], &document["interrupted"]), (&0.into(), &true.into()));
    }
}

#[test]
fn a_replay_that_cannot_be_says_what_to_do() {
    let assay = Assay::new();
    let log = assay.file("access.log", "nothing that is a log\n");
    let said = assay.run(&["replay", log, "--to", "127.0.0.1:9"]).exits(2);
    assert!(said.stderr.contains("was not recognised"), "{said:?}");
    assay.run(&["replay", log]).exits(2);
    assay.run(&["replay", log, "--to", "8.8.8.8:80"]).exits(2).complains("--i-own-this-target");
    let to = ["replay", log, "--to", "127.0.0.1:9"];
    let line = "192.0.2.1 - - [10/Oct/2025:13:55:01 +0000] \"GET /a HTTP/1.1\" 200 5\n";
    assay.file("readable.log", &line.repeat(9));
    assay.run(&["replay", "-", "--proxy", "builtin"]).exits(2).complains("read once");
    assay.run(&["replay", "readable.log", "--proxy", "127.0.0.1:9"]).exits(2).complains("--origins");
    for flag in ["--speed", "--limit", "--most-open"] {
        assay.run(&[&to[..], &[flag, "0"]].concat()).exits(2).complains(flag);
    }
    assay.run(&[&to[..], &["--urls", "--connections", "0"]].concat()).exits(2).complains("--connections");
    for flag in ["--memory=1MB", "--disk=1MB", "--set=a=b", "--proxy-dir=d", "--dir=d"] {
        assay.run(&[&to[..], &[flag]].concat()).exits(2).complains("--to");
    }
}

#[test]
fn an_evaluation_is_reported_and_leaves_its_documents() {
    let assay = Assay::new();
    let dir = SpeDir::create(&assay.path("e")).unwrap();
    let target = |label: &str| EvaluationTarget { label: label.into(), ..EvaluationTarget::default() };
    dir.write_info(&SpeInfo {
        targets: vec![target("direct"), target("one")],
        ended: Some(Ended { at_ms: 1000, how: How::Finished }),
        ..SpeInfo::default()
    })
    .unwrap();
    let mut responses = ResponseWriter::create(&dir.responses_path()).unwrap();
    for request in 0..4u64 {
        for target in 0..2u16 {
            let row = ResponseRow {
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
            responses.push(&row).unwrap();
        }
    }
    responses.finish().unwrap();
    let said = assay.run(&["spe", "report", "e", "--json"]).exits(0);
    let document: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(document["targets"][1]["matching"]["value"], 1.0);
    assert!(dir.report_path().is_file() && dir.summary_path().is_file());
    let said = assay.run(&["spe", "report", "nowhere"]).exits(2);
    assert!(said.stderr.contains("assay spe"), "{said:?}");
}
