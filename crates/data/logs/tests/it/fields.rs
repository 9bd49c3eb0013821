//! Logs that name their fields themselves (W3C extended), and others in the middle.

use std::ops::ControlFlow;

use assay_logs::document::LogsDocument;
use assay_logs::for_each_access;
use assay_logs::read::{LineCounts, for_each_request};

use crate::support::{analyse_text, group};

const HEAD: &str = "#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n";
const FIRST: &str = "#Fields: date time cs-method cs-uri-stem c-ip sc-status sc-bytes\r\n";
const SECOND: &str = "#Fields: date time c-ip cs-method cs-uri-stem sc-bytes sc-status cs(User-Agent)\r\n";

/// `count` lines of the first fields, each a 200 with 1000 bytes.
fn first(count: u32) -> String {
    (0..count).map(|n| format!("2025-10-10 13:00:{:02} GET /a 192.0.2.1 200 1000\r\n", n % 60)).collect()
}

/// `count` lines of the second, each a 404 with 250 bytes. Read by the first fields some of them would fit.
fn second(count: u32) -> String {
    let line = |n| format!("2025-10-10 13:01:{:02} 192.0.2.2 GET /b 250 404 curl/8\r\n", n % 60);
    (0..count).map(line).collect()
}

fn analysed(parts: &[&str]) -> LogsDocument {
    analyse_text(parts.concat().as_bytes(), None)
}

fn counted(document: &LogsDocument) -> (u64, u64, Option<u64>) {
    (document.all.requests, document.lines.malformed, document.all.bytes)
}

#[test]
fn lines_after_other_fields_are_read_by_these_wherever_they_are_named() {
    // The second time is far behind the beginning by which the log is recognised.
    for (many, few) in [(10, 5), (5000, 3000)] {
        let document = analysed(&[HEAD, FIRST, &first(many), HEAD, SECOND, &second(few), FIRST, &first(1)]);
        let (of_first, of_second) = (u64::from(many) + 1, u64::from(few));
        let bytes = of_first * 1000 + of_second * 250;
        assert_eq!(counted(&document), (of_first + of_second, 0, Some(bytes)));
        let row = |name: &str, requests, bytes| (name.to_owned(), requests, bytes);
        let by_status = [row("200", of_first, of_first * 1000), row("404", of_second, of_second * 250)];
        assert_eq!(group(&document, "status"), by_status);
        assert_eq!(document.distinct.clients.as_ref().map(|count| count.count), Some(2.0));
        assert_eq!(group(&document, "agent"), [row("curl (tool)", of_second, of_second * 250)]);
        // Only some of the lines have user agents: that is said.
        assert!(document.inputs[0].not_logged.iter().any(|lack| lack.what == "user agent"));
        let note = "Only some of the lines have user agents";
        assert!(document.notes.iter().any(|text| text.contains(note)), "{:?}", document.notes);
    }
}

#[test]
fn fields_named_before_any_line_are_those_that_were_named_last() {
    let document = analysed(&[HEAD, FIRST, HEAD, SECOND, &second(3)]);
    assert_eq!(counted(&document), (3, 0, Some(750)));
    assert_eq!(document.inputs[0].recognised, Some(1.0));
    let others = "Only some of the lines";
    assert!(!document.notes.iter().any(|text| text.contains(others)), "{:?}", document.notes);
}

#[test]
fn a_line_of_fields_that_cannot_be_used_is_malformed_and_so_are_the_lines_after_it() {
    let unusable = "#Fields: date time sc-status cs-method\r\n";
    let document = analysed(&[HEAD, FIRST, &first(4), unusable, &first(2), FIRST, &first(1)]);
    assert_eq!(counted(&document), (5, 3, Some(5000)));
    let shown = &document.malformed;
    assert_eq!(shown.iter().map(|line| line.line).collect::<Vec<_>>(), [8, 9, 10]);
    assert!(shown[0].reason.contains("cs-uri-stem"), "{}", shown[0].reason);
    assert!(shown[1].reason.contains("#Fields:"), "{}", shown[1].reason);
}

#[test]
fn lines_that_are_handed_on_one_by_one_are_read_by_the_fields_before_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("u_ex.log");
    let text = [HEAD, FIRST, &first(2), SECOND, &second(2), "#Fields: none\r\n", &first(1)].concat();
    std::fs::write(&path, &text).unwrap();
    let (mut seen, mut keys, mut own) = (Vec::new(), Vec::new(), None);
    let read = for_each_access(std::slice::from_ref(&path), None, |access, format| {
        seen.push((access.status, access.bytes));
        keys.push(format.key());
        own.get_or_insert_with(|| format.clone());
        ControlFlow::Continue(())
    });
    let read = read.unwrap();
    assert_eq!(seen, [(200, 1000), (200, 1000), (404, 250), (404, 250)]);
    assert_eq!((read.lines, read.malformed, read.format.as_str()), (6, 2, "w3c"));
    // Who reads them can tell that the format is another one.
    assert!(keys[0] == keys[1] && keys[1] != keys[2] && keys[2] == keys[3]);
    let mut one_by_one = Vec::new();
    let read =
        for_each_request(&path, &own.unwrap(), |access| one_by_one.push((access.status, access.bytes)));
    assert_eq!(read.unwrap(), LineCounts { lines: 6, malformed: 2 });
    assert_eq!(one_by_one, seen);
}

#[test]
fn a_format_that_was_given_is_that_of_all_lines() {
    let text = [FIRST, &first(2), SECOND, &first(1)].concat();
    let document = analyse_text(text.as_bytes(), Some(FIRST.trim_end()));
    assert_eq!(counted(&document), (3, 0, Some(3000)));
}

#[test]
fn what_a_log_says_in_fields_of_its_own_and_before_its_lines_is_read() {
    let text = "#Date: 2025-10-10 13:00:00\r\n#Fields: time cs-method cs-uri-stem sc-status x-cache\r\n\
                13:55:36 GET /a 200 HIT\r\n13:55:37 GET /b 200 MISS\r\n";
    let document = analysed(&[text]);
    assert_eq!((document.all.requests, document.all.dhr), (2, Some(0.5)));
    assert_eq!(document.time.first().map(|step| step.from_unix_ms), Some(1_760_104_536_000.0));
    let document = analysed(&[text.split_once("\r\n").unwrap().1]);
    assert!(document.time.is_empty(), "nothing says the day");
}
