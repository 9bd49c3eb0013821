//! Analyses of small logs, counted by hand.

use std::io::Cursor;

use super::*;
use crate::document::LogsDocument;
use crate::format::detect;

fn analyse(text: &str, options: AnalysisOptions) -> LogsDocument {
    let mut analyser = Analyser::new(options);
    let mut input = Input::new("test".into(), Box::new(Cursor::new(text.as_bytes().to_vec()))).unwrap();
    let recognised = detect(input.head()).expect("a known format");
    analyser.read(&mut input, &recognised, false);
    analyser.finish()
}

const SQUID: &str = "\
100.000 10 c1 TCP_MISS/200 1000 GET http://a/1 - HIER_DIRECT/o text/html
101.000 20 c2 TCP_MEM_HIT/200 1010 GET http://a/1 - HIER_NONE/- text/html
100.500 30 c1 TCP_HIT/200 5000 GET http://b/2 - HIER_NONE/- image/png
garbage
102.000 0 peer UDP_HIT/000 60 ICP_QUERY http://a/1 - HIER_NONE/- -
102.000 40 c1 TCP_MISS/200 2000 GET http://b/3 - SIBLING_HIT/s1 image/png
103.000 0 c3 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -
104.000 5 c1 TCP_DENIED/403 300 GET http://c/ - HIER_NONE/- text/html

105.000 50 c1 TCP_REFRESH_UNMODIFIED/200 1000 GET http://a/1 - HIER_DIRECT/o text/html
";

#[test]
fn the_figures_of_a_small_log_are_those_counted_by_hand() {
    let document =
        analyse(SQUID, AnalysisOptions { top: 2, cache_bytes: vec![3000], ..AnalysisOptions::default() });
    let lines = document.lines;
    assert_eq!(
        (lines.read, lines.requests, lines.malformed, lines.empty, lines.peer_queries, lines.without_request),
        (10, 6, 1, 1, 1, 1)
    );
    assert_eq!((lines.backwards, document.malformed[0].line), (1, 4));
    let all = &document.all;
    assert_eq!(
        (all.requests, all.bytes, all.local_hits, all.sibling_hits, all.revalidated),
        (6, Some(10_310), Some(2), Some(1), Some(1))
    );
    assert_eq!(all.dhr, Some(0.5));
    assert_eq!(all.bhr, Some(8010.0 / 10_310.0));
    let response = all.response.unwrap();
    assert_eq!((response.count, response.max_ms), (6, 50.0));
    assert!((response.mean_ms - 155.0 / 6.0).abs() < 1e-9);
    let classes: Vec<_> = document.by_class.iter().map(|c| (c.name.as_str(), c.figures.requests)).collect();
    assert_eq!(
        classes,
        [
            ("memory hit", 1),
            ("disk hit", 1),
            ("sibling hit", 1),
            ("revalidated", 1),
            ("miss", 1),
            ("denied", 1)
        ]
    );
    let groups = |by: &str| -> Vec<(String, u64)> {
        let grouping = document.groups.iter().find(|grouping| grouping.by == by).unwrap();
        grouping.groups.iter().map(|group| (group.name.clone(), group.figures.requests)).collect()
    };
    assert_eq!(groups("content-type"), [("text/html".into(), 4), ("image/png".into(), 2)]);
    assert_eq!(groups("host"), [("a".into(), 3), ("b".into(), 2), ("c".into(), 1)]);
    assert_eq!(groups("status"), [("200".into(), 5), ("403".into(), 1)]);
    assert_eq!(groups("peer"), [("(none)".into(), 3), ("o".into(), 2), ("s1".into(), 1)]);
    assert_eq!(document.top.by_requests[0].url, "http://a/1");
    assert_eq!(document.top.by_bytes[0].url, "http://b/2");
    assert_eq!(document.distinct.urls.unwrap().count, 4.0);
    assert_eq!(document.distinct.clients.unwrap().count, 2.0);
}

#[test]
fn a_host_with_and_without_the_port_of_its_scheme_is_one_host_and_the_output_says_so() {
    let hosts = |document: &LogsDocument| -> Vec<(String, u64)> {
        let grouping = document.groups.iter().find(|grouping| grouping.by == "host").unwrap();
        grouping.groups.iter().map(|group| (group.name.clone(), group.figures.requests)).collect()
    };
    let line = |method: &str, url: &str| {
        format!("100.000 10 c TCP_MISS/200 1000 {method} {url} - HIER_DIRECT/o text/html\n")
    };
    let urls =
        ["http://h/1", "http://h:80/2", "https://h:443/3", "https://h/4", "http://h:443/5", "https://h:80/6"];
    let text: String =
        urls.iter().map(|url| line("GET", url)).collect::<String>() + &line("CONNECT", "h:443");
    let document = analyse(&text, AnalysisOptions::default());
    // By hand: the first four are `h`; a tunnel has no scheme, so its port stays beside that of http on 443.
    assert_eq!(hosts(&document), [("h".into(), 4), ("h:443".into(), 2), ("h:80".into(), 1)]);
    assert_eq!(document.distinct.hosts.unwrap().count, 3.0);
    let said =
        |document: &LogsDocument| document.notes.iter().any(|note| note.contains("http 80, https 443"));
    assert!(said(&document) && document.notes.iter().any(|note| note.starts_with("2 requests")));
    // A log in which nobody names such a port has nothing to say of it.
    assert!(!said(&analyse(SQUID, AnalysisOptions::default())));
}

#[test]
fn other_caches_are_tried_on_the_same_requests() {
    let document = analyse(SQUID, AnalysisOptions { cache_bytes: vec![3000], ..AnalysisOptions::default() });
    let dhr: Vec<_> = document.caches.caches.iter().map(|cache| cache.dhr.unwrap() * 6.0).collect();
    // The second and the third request for a/1; in 3000 bytes b/2 has no room and b/3 leaves a/1 where it is.
    assert!((dhr[0] - 2.0).abs() < 1e-9 && (dhr[1] - 2.0).abs() < 1e-9, "{dhr:?}");
    assert_eq!(document.caches.sampling_rate, 1.0);
}

#[test]
fn only_the_time_that_was_requested_is_counted() {
    let options = AnalysisOptions {
        from_us: Some(100_500_000),
        to_us: Some(104_000_000),
        every_us: Some(1_000_000),
        phases: vec![PhaseSpan { number: 0, name: "top".into(), from_us: 101_000_000, to_us: 102_000_000 }],
        ..AnalysisOptions::default()
    };
    let document = analyse(SQUID, options);
    assert_eq!((document.lines.requests, document.lines.outside), (3, 3));
    assert_eq!(document.phases[0].figures.requests, 1);
    let steps: Vec<_> = document.time.iter().map(|step| (step.from_unix_ms, step.figures.requests)).collect();
    assert_eq!(steps, [(100_000.0, 1), (101_000.0, 1), (102_000.0, 1)]);
}

#[test]
fn a_log_without_outcomes_has_no_hit_ratio_and_says_so() {
    let text = "c - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 10\n".repeat(4);
    let document = analyse(&text, AnalysisOptions::default());
    assert_eq!((document.all.requests, document.all.dhr, document.all.response), (4, None, None));
    assert_eq!(document.caches.caches[0].dhr, Some(0.75));
    assert!(document.notes.iter().any(|note| note.contains("no hit ratios")));
}
