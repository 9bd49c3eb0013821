//! What a log does not say is not known: no zeros that look like results, no falls where a log merely ends.

use std::io::Write;

use assay_logs::analysis::AnalysisOptions;
use assay_logs::document::LogsDocument;
use assay_logs::terminal::{TextStyle, render};
use assay_logs::{error::LogsError, sheet};

use crate::support::{analyse, analyse_text};

/// A request a tenth of a second for that many seconds, in Common.
fn common(seconds: std::ops::Range<u32>) -> String {
    let line = |second: u32| {
        format!(
            "c - - [10/Oct/2025:13:{:02}:{:02} +0000] \"GET /a HTTP/1.1\" 200 5\n",
            second / 60,
            second % 60
        )
    };
    seconds.map(|second| line(second).repeat(10)).collect()
}

fn shown(document: &LogsDocument) -> String {
    render(document, TextStyle { colour: false, width: 100 })
}

#[test]
fn a_log_without_outcomes_has_no_hits_and_no_misses_and_says_what_is_missing_and_how_to_log_it() {
    let document = analyse_text(common(0..30).as_bytes(), None);
    let all = &document.all;
    assert_eq!((all.local_hits, all.revalidated, all.dhr, all.bhr), (None, None, None, None));
    assert!(document.top.by_misses.is_empty() && document.top.by_requests[0].misses.is_none());
    let text = shown(&document);
    assert!(text.contains("hit ratios      not known"), "{text}");
    assert!(text.contains("nginx: $upstream_cache_status"), "{text}");
    assert!(!text.contains("misses  URL") && !text.contains("What became of requests"), "{text}");
    // Neither hosts nor user agents are in this format: none of them is a count of 0 or 1.
    assert!(document.distinct.hosts.is_none() && document.agents.is_none(), "{:?}", document.distinct);
    assert!(text.contains("1 URL, 1 client\n"), "{text}");
}

#[test]
fn outcomes_that_nothing_understands_are_not_misses() {
    // nginx writes - where its cache had no part.
    let line = "1700000000.250 -/200 10 GET http://a/x 0.001 0.001\n";
    let document = analyse_text(line.repeat(3).as_bytes(), Some("assay-nginx"));
    assert_eq!((document.all.dhr, document.all.local_hits, document.all.unknown), (None, None, 3));
    // Beside others they are left out of the ratio, which a note says.
    let text = line.repeat(2) + &line.replace("-/", "HIT/") + &line.replace("-/", "MISS/");
    let document = analyse_text(text.as_bytes(), Some("assay-nginx"));
    assert_eq!((document.all.dhr, document.all.bhr, document.all.unknown), (Some(0.5), Some(0.5), 2));
    assert!(document.notes.iter().any(|note| note.contains("2 requests (50.0 %)")), "{:?}", document.notes);
    // A cache of HAProxy that served nothing may not be there.
    let haproxy = "1795207253.123 0 127.0.0.1 s/200 128 GET http://a/x\n".repeat(2);
    let document = analyse_text(haproxy.as_bytes(), Some("assay-haproxy"));
    assert!(document.notes.iter().any(|note| note.contains("If it has no cache")), "{:?}", document.notes);
}

#[test]
fn fields_that_a_format_lacks_fail_no_request_and_make_no_cache_useless() {
    let document =
        analyse_text("1.5 MISS 10 http://a/x\n".repeat(4).as_bytes(), Some("%ts.%03tu %Ss %<st %ru"));
    // Without statuses nothing has failed, and no status is "none".
    assert_eq!((document.all.errors, document.all.dhr), (Some(0), Some(0.0)));
    assert!(document.failed.is_none() && document.plain.is_none());
    assert!(document.groups.iter().all(|grouping| grouping.by != "status"), "{:?}", document.groups);
    // What other caches would have hit depends on methods and statuses.
    assert!(document.caches.caches.is_empty() && !shown(&document).contains("ideal"));
    // Without sizes there are no bytes, and no cache of a size.
    let text = "1.5 MISS/200 GET http://a/x\n".repeat(4);
    let document = analyse_text(text.as_bytes(), Some("%ts.%03tu %Ss/%>Hs %rm %ru"));
    let sizes: Vec<_> = document.caches.caches.iter().map(|cache| (cache.size_bytes, cache.dhr)).collect();
    assert_eq!((document.all.bytes, sizes), (None, vec![(None, Some(0.75))]));
    let text = shown(&document);
    assert!(text.contains("bytes not known") && !text.contains(" 0 B"), "{text}");
}

#[test]
fn a_log_that_ends_or_begins_within_a_step_shows_no_outage_there() {
    // Ten requests a second from 4 s before a full minute to 1 s into a step.
    let (first, last) = (56, 60 * 7 + 1);
    let options = AnalysisOptions { every_us: Some(30_000_000), ..AnalysisOptions::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, common(first..last)).unwrap();
    let document = assay_logs::analyse(&[path], None, options).unwrap();
    let covered: Vec<f64> = document.time.iter().map(|step| step.covered_ms / 1e3).collect();
    assert_eq!((covered[0], covered[1], *covered.last().unwrap()), (4.0, 30.0, 1.0));
    assert!(shown(&document).contains("covers only 4 s of the first step and 1 s of the last step"));
    let sheet = sheet(&document);
    let plots = sheet.sections.iter().flat_map(|section| &section.plots);
    let rates: Vec<_> = plots.filter(|plot| plot.unit == "requests/s").flat_map(|plot| &plot.lines).collect();
    assert!(rates.len() > 1, "{rates:?}");
    for line in rates {
        let values: Vec<f64> = line.values.iter().flatten().copied().collect();
        assert_eq!(values.len(), covered.len() - 2, "{}: the ends have no rate", line.name);
        assert!(values.iter().all(|rate| (rate - 10.0).abs() < 1e-9), "{}: {values:?}", line.name);
    }
}

#[test]
fn a_part_of_a_longer_log_covers_the_time_that_was_selected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, common(0..120)).unwrap();
    let at = |second: i64| Some((1_760_101_200 + second) * 1_000_000);
    let options = AnalysisOptions {
        from_us: at(10),
        to_us: at(70),
        every_us: Some(20_000_000),
        ..AnalysisOptions::default()
    };
    let document = assay_logs::analyse(&[path], None, options).unwrap();
    let covered: Vec<f64> = document.time.iter().map(|step| step.covered_ms / 1e3).collect();
    assert_eq!((document.all.requests, covered), (600, vec![10.0, 20.0, 20.0, 10.0]));
}

#[test]
fn a_last_line_that_is_cut_off_is_neither_a_request_nor_malformed() {
    let text = common(0..2);
    // In the middle of a line that is no line any more.
    let document = analyse_text(&text.as_bytes()[..text.len() - 8], None);
    assert_eq!((document.lines.requests, document.lines.malformed, document.lines.cut), (19, 0, 1));
    assert!(document.notes.iter().any(|note| note.contains("cut off in its last line")));
    // Cut off behind something that looks complete: counted as it stands there, which is said.
    let document = analyse_text(&text.as_bytes()[..text.len() - 1], None);
    assert_eq!((document.lines.requests, document.lines.cut), (20, 0));
    assert!(document.notes.iter().any(|note| note.contains("has no end")), "{:?}", document.notes);
    // A compressed log that breaks off does so within a line, however complete that looks.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gzip.write_all(text.as_bytes()).unwrap();
    let whole = gzip.finish().unwrap();
    let document = analyse_text(&whole[..whole.len() - 10], None);
    assert_eq!((document.lines.malformed, document.lines.cut), (0, 1));
    assert!(document.inputs[0].broken.is_some());
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, common(0..2)).unwrap();
    let document = analyse(&[path.clone(), folder.path().join("access*"), path], None);
    assert_eq!((document.all.requests, document.inputs.len()), (20, 1));
}

#[test]
fn one_request_has_a_time_and_no_rate() {
    let document = analyse_text(common(0..1).lines().next().unwrap().as_bytes(), None);
    let text = shown(&document);
    assert!(text.contains("time            2025-10-10 13:00:00 UTC\n"), "{text}");
    assert!(text.contains("; 1 line, "), "{text}");
    assert!(!text.contains("requests/s") && !text.contains("Over time"), "{text}");
}

#[test]
fn an_empty_log_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, "\n\n").unwrap();
    let error = assay_logs::analyse(&[path], None, AnalysisOptions::default()).unwrap_err();
    assert!(matches!(error, LogsError::Empty { .. }), "{error}");
}

#[test]
fn a_time_below_the_clock_of_the_log_is_shown_as_that() {
    let line = "1700000000.250 0 c TCP_MEM_HIT/200 10 GET http://a/x - HIER_NONE/- text/html\n";
    let document = analyse_text(line.repeat(9).as_bytes(), Some("squid"));
    assert_eq!(document.response_resolution_ms, Some(1.0));
    let text = shown(&document);
    assert!(text.contains("median < 1 ms") && !text.contains("0 µs"), "{text}");
}

#[test]
fn logs_of_different_formats_are_told_apart_where_only_some_say_something() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("a.log", &common(0..2));
    write("b.log", "1760104000.250 7 c TCP_MEM_HIT/200 10 GET http://a/x - HIER_NONE/- text/html\n");
    let document = analyse(&[folder.path().join("*.log")], None);
    // One hit of one request whose outcome is known; the others have none.
    assert_eq!((document.all.dhr, document.all.unknown), (Some(1.0), 20));
    assert!(
        document.notes.iter().any(|note| note.contains("Only some of the logs have outcomes, durations"))
    );
}
