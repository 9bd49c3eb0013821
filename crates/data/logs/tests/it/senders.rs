//! User agents, referrers and URLs that failed, held against a plain count of the same lines.

use std::collections::BTreeMap;
use std::path::Path;

use assay_logs::document::LogsDocument;
use assay_logs::terminal::{TextStyle, render};

use crate::support::{analyse_text, group};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0";
const GOOGLE: &str = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; \
                      +http://www.google.com/bot.html) Chrome/130.0.0.0 Safari/537.36";

/// Lines of Combined, with the host before each: 3 minutes, in which a bot comes late and finds nothing.
fn log() -> String {
    let mut text = String::new();
    for second in 0..180u32 {
        let (minute, second) = (second / 60, second % 60);
        let mut line = |path: &str, status: u16, referrer: &str, agent: &str| {
            text.push_str(&format!(
                "www.example:443 192.0.2.{} - - [10/Oct/2025:13:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" \
                 {status} 100 \"{referrer}\" \"{agent}\"\n",
                second % 7,
            ));
        };
        line("/", 200, "-", FIREFOX);
        match second % 4 {
            0 => line("/a", 200, "https://www.example/", FIREFOX),
            1 => line("/a", 200, "https://search.example/?q=1", "curl/8.11.0"),
            2 => line("/broken", 503, "android-app://com.example", "-"),
            _ => line("/b", 200, "https://news.example/x", "inventory 1.0"),
        }
        if minute == 2 {
            line(&format!("/old/{}", second % 2), 404, "-", GOOGLE);
        }
    }
    text
}

fn requests(document: &LogsDocument, by: &str) -> BTreeMap<String, u64> {
    group(document, by).into_iter().map(|(name, requests, _)| (name, requests)).collect()
}

fn expected<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, requests)| (name.to_owned(), requests)).collect()
}

#[test]
fn agents_referrers_and_failures_are_those_of_a_plain_count() {
    let document = analyse_text(log().as_bytes(), None);
    assert_eq!(document.inputs[0].format, "vhost-combined");
    let kinds = [("browser", 225), ("bot", 60), ("tool", 45), ("unknown", 45), ("none", 45)];
    assert_eq!(requests(&document, "agent-kind"), expected(kinds));
    let families = [
        ("Firefox (browser)", 225),
        ("Google (bot)", 60),
        ("curl (tool)", 45),
        ("unknown", 45),
        ("(none)", 45),
    ];
    assert_eq!(requests(&document, "agent"), expected(families));
    let kinds = [("none", 240), ("same-host", 45), ("site", 90), ("no-url", 45)];
    assert_eq!(requests(&document, "referrer-kind"), expected(kinds));
    assert_eq!(requests(&document, "referrer"), expected([("search.example", 45), ("news.example", 45)]));
    let agents = document.agents.as_ref().unwrap();
    assert_eq!((agents.top[0].text.as_str(), agents.top[0].requests), (FIREFOX, 225));
    assert_eq!((agents.unknown.len(), agents.unknown[0].text.as_str()), (1, "inventory 1.0"));
    let failed = document.failed.as_ref().unwrap();
    let urls = failed.by_status.iter().flat_map(|status| {
        status.urls.iter().map(|url| (status.status, url.url.as_str(), url.requests, url.requests_error))
    });
    let expected = [
        (404, "www.example/old/0", 30, 0),
        (404, "www.example/old/1", 30, 0),
        (503, "www.example/broken", 45, 0),
    ];
    assert_eq!((urls.collect::<Vec<_>>(), failed.floor_requests), (expected.to_vec(), 0));
}

#[test]
fn what_is_counted_over_time_adds_up_and_lies_where_it_was() {
    let document = analyse_text(log().as_bytes(), None);
    let slots = document.slots.as_ref().unwrap();
    let begin_ms = document.first_unix_ms.unwrap();
    for grouping in document.groups.iter().filter(|grouping| grouping.by.starts_with("agent")) {
        for group in &grouping.groups {
            let counts = group.over_time.as_ref().unwrap();
            assert_eq!(
                (counts.len(), counts.iter().sum::<u64>()),
                (slots.covered_ms.len(), group.figures.requests)
            );
            // The bot came in the third minute.
            if group.name.contains("bot") {
                let first = counts.iter().position(|count| *count > 0).unwrap();
                let first_ms = slots.from_unix_ms + first as f64 * slots.every_ms;
                assert!((first_ms - begin_ms - 120_000.0).abs() < slots.every_ms, "{first_ms} {begin_ms}");
            }
        }
    }
    let bots: u64 = document.time.iter().filter_map(|step| step.by_agent_kind.get("bot")).sum();
    let not_found: u64 = document.time.iter().filter_map(|step| step.by_status.get("4xx")).sum();
    let same: u64 = document.time.iter().filter_map(|step| step.by_referrer_kind.get("same-host")).sum();
    assert_eq!((bots, not_found, same), (60, 60, 45));
}

#[test]
fn more_urls_that_fail_than_are_followed_come_with_the_most_that_can_be_missing() {
    let mut text = String::new();
    for number in 0..40_000u32 {
        let line = |path: &str| format!("c - - [10/Oct/2025:13:00:00 +0000] \"GET {path} HTTP/1.1\" 404 5\n");
        text.push_str(&line(&format!("/scan/{number}")));
        if number % 4 == 0 {
            text.push_str(&line("/favicon.ico"));
        }
    }
    let document = analyse_text(text.as_bytes(), None);
    let failed = document.failed.unwrap();
    let (status, top) = (&failed.by_status[0], &failed.by_status[0].urls[0]);
    assert_eq!((status.requests, top.url.as_str()), (50_000, "/favicon.ico"));
    assert!(top.requests <= 10_000 && top.requests + top.requests_error >= 10_000, "{top:?}");
    assert!(failed.floor_requests > 0 && failed.floor_requests < 10_000);
}

#[test]
fn every_notation_of_user_agent_and_referrer_is_read() {
    for (format, line) in [
        ("combined", "c - - [10/Oct/2025:13:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"http://r/\" \"curl/8\""),
        (
            "squid-combined",
            "c - - [10/Oct/2025:13:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"http://r/\" \"curl/8\" TCP_MISS:HIER_DIRECT",
        ),
        (
            "$msec $status $request_uri \"$http_referer\" \"$http_user_agent\"",
            "1.5 200 / \"http://r/\" \"curl/8\"",
        ),
        (
            "%<cqtq> %<pssc> %<cquc> \"%<{Referer}cqh>\" \"%<{User-Agent}cqh>\"",
            "1.5 200 / \"http://r/\" \"curl/8\"",
        ),
        (
            "%Ts %ST %HU %{+Q}[var(txn.referer)] %{+Q}[var(txn.user_agent)]",
            "1 200 / \"http://r/\" \"curl/8\"",
        ),
        ("{time-s} {status} {path} \"{referrer}\" \"{user-agent}\"", "1 200 / \"http://r/\" \"curl/8\""),
        (
            "#Fields: date time cs-uri sc-status cs(Referer) cs(User-Agent)",
            "2025-10-10 13:00:00 / 200 http://r/ curl/8",
        ),
    ] {
        let document = analyse_text(format!("{line}\n").as_bytes(), Some(format));
        assert_eq!(document.lines.malformed, 0, "{format}: {:?}", document.malformed);
        assert_eq!(requests(&document, "agent"), expected([("curl (tool)", 1)]), "{format}");
        assert_eq!(requests(&document, "referrer"), expected([("r", 1)]), "{format}");
    }
}

#[test]
fn the_terminal_shows_them_as_in_the_golden_file() {
    let mut document = analyse_text(log().as_bytes(), None);
    document.inputs[0].name = "access.log".into();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/vhost-combined-100.txt");
    let text = render(&document, TextStyle { colour: false, width: 100 });
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "UPDATE_GOLDEN=1 writes it again");
}
