//! Logs of containers and of syslog: the same lines, behind the heads that these put before them.

use std::ops::ControlFlow;

use assay_logs::document::LogsDocument;
use assay_logs::error::LogsError;
use assay_logs::{ReadSet, for_each_access};

use crate::support::analyse_text;
use crate::writers::{Request, WRITERS, Writer, requests};

const CRI: &str = "2026-07-01T10:00:00.678901234Z stdout F ";

fn docker(line: &str, stream: &str) -> String {
    let escaped = line.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "\\u0026");
    format!(
        "{{\"log\":\"{escaped}\\n\",\"stream\":\"{stream}\",\"time\":\"2026-07-01T10:00:00.678901234Z\"}}\n"
    )
}

/// Paths and clients of what is read, and how.
fn read(text: &str) -> Result<(Vec<String>, ReadSet), LogsError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, text).unwrap();
    let mut found = Vec::new();
    let set = for_each_access(&[path], None, |access, _| {
        let parts = [access.client, access.url, access.query, access.agent].map(String::from_utf8_lossy);
        found.push(format!("{} {:?} {}", parts.join(" "), access.time_us, access.status));
        ControlFlow::Continue(())
    })?;
    Ok((found, set))
}

fn lines(writer: &Writer, requests: &[Request]) -> Vec<String> {
    writer.head.lines().map(str::to_owned).chain(requests.iter().map(writer.line)).collect()
}

fn ended(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn behind_every_head_each_format_is_what_it_is_without() {
    let requests = requests(50);
    for writer in &WRITERS {
        let lines = lines(writer, &requests);
        let (plain, own) = read(&ended(&lines)).unwrap();
        for head in [
            CRI,
            "docker",
            "nginx-1  | ",
            "2026-07-01T10:00:00.678901234Z ",
            "Jul  1 10:00:00 host nginx[12]: ",
            "<190>Jul  1 10:00:00 host nginx: ",
            "2026-07-01T10:00:00.678901+00:00 host nginx[12]: ",
            "<190>1 2026-07-01T10:00:00.678Z host nginx 12 - - ",
        ] {
            let with = |line: &String| {
                if head == "docker" { docker(line, "stdout") } else { format!("{head}{line}\n") }
            };
            let what = format!("{head}{}", writer.format);
            let (found, set) = read(&lines.iter().map(with).collect::<String>()).expect(&what);
            assert_eq!(
                (set.malformed, set.format),
                (0, own.format.clone()),
                "{what}: {:?}",
                set.first_malformed
            );
            assert!(found == plain, "{what}: {:?} and not {:?}", found.first(), plain.first());
            let notes = set.remarks.notes().concat();
            assert!(notes.contains(&format!("was skipped {} times", lines.len())), "{what}: {notes}");
        }
    }
}

/// Combined, of a client.
fn combined(client: u8, agent: &str) -> String {
    format!(
        "192.0.2.{client} - - [01/Jul/2026:10:00:00 +0000] \"GET /{client} HTTP/1.1\" 200 10 \"-\" \"{agent}\""
    )
}

fn figures(document: &LogsDocument) -> (u64, u64, Option<u64>, Option<f64>) {
    let clients = document.distinct.clients.as_ref().map(|clients| clients.count);
    (document.all.requests, document.lines.malformed, document.all.bytes, clients)
}

#[test]
fn parts_of_a_line_are_joined_and_lines_of_errors_are_malformed() {
    let long = "agent ".repeat(4000);
    let (whole, error) = (combined(1, &long), "2026/07/01 10:00:00 [error] 12#12: *1 open() failed");
    let (begin, end) = whole.split_at(16_384);
    let error = CRI.replace("stdout", "stderr") + error;
    let part = CRI.replace(" F ", " P ");
    let apart = (0..40).map(|n| format!("{CRI}{}\n{part}{begin}\n{error}\n{CRI}{end}\n", combined(n, "x")));
    let document = analyse_text(apart.collect::<String>().as_bytes(), None);
    assert_eq!(
        figures(&document),
        (40, 120, Some(400), Some(40.0)),
        "another stream stands between the parts"
    );
    let joined: String = (0..40)
        .map(|n| format!("{CRI}{}\n{part}{begin}\n{CRI}{end}\n{error}\n", combined(n, "curl/8.9.1")))
        .collect();
    let document = analyse_text(joined.as_bytes(), None);
    assert_eq!(figures(&document), (80, 40, Some(800), Some(40.0)));
    assert_eq!(document.malformed[0].line, 4, "lines keep their numbers");

    let parts = |line: &str| {
        let (begin, end) = line.split_at(60);
        docker(begin, "stdout").replace("\\n\",", "\",") + &docker(end, "stdout")
    };
    let text: String = (0..40)
        .map(|n| {
            docker(&combined(n, "a \"b\" & c"), "stderr")
                + &parts(&combined(n, "x"))
                + &docker(&error, "stderr")
        })
        .collect();
    let text = text.replace("a \\\"b\\\"", "a \\\\\\\"b\\\\\\\"");
    let document = analyse_text(text.as_bytes(), None);
    assert_eq!(figures(&document), (80, 40, Some(800), Some(40.0)));
}

#[test]
fn a_head_that_only_half_of_the_lines_have_is_no_client() {
    let lines: Vec<String> = (0..40)
        .map(|n| if n % 2 == 0 { CRI.to_owned() + &combined(n, "x") } else { combined(n, "x") })
        .collect();
    let error = read(&ended(&lines)).map(|(_, set)| set.format);
    assert!(matches!(error, Err(LogsError::Unrecognised { .. })), "{error:?}");
}

#[test]
fn what_is_not_known_behind_a_head_is_shown_without_it() {
    let text = format!("{CRI}{} 0.057\n", combined(1, "x")).repeat(20);
    let error = read(&text).unwrap_err().to_string();
    assert!(
        error.contains("first line is `192.0.2.1 - - [") && error.contains("character 76 on (` 0.057`)"),
        "{error}"
    );
}

#[test]
fn a_format_that_was_given_holds_behind_heads_unless_it_has_them_itself() {
    let text: String = (0..40).map(|n| format!("{CRI}{}\n", combined(n, "x"))).collect();
    let document = analyse_text(text.as_bytes(), Some("combined"));
    assert_eq!(figures(&document), (40, 0, Some(400), Some(40.0)));
    let own = "{time-iso} {other} {other} {client} - - [{other} {other}] \"{request}\" {status} {bytes} \"{referrer}\" \"{user-agent}\"";
    let document = analyse_text(text.as_bytes(), Some(own));
    assert_eq!(figures(&document), (40, 0, Some(400), Some(40.0)));
    assert!(!document.notes.iter().any(|note| note.contains("head")), "{:?}", document.notes);
    assert_eq!(document.first_unix_ms, Some(1_782_900_000_678.901));
}
