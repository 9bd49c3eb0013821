//! Logs that six proxies wrote in the lab, against a counter that was written for nothing else: it splits at blanks and
//! quotes, and knows each log's columns by number.

use std::collections::BTreeMap;

use crate::support::{analyse, group, lines_of};

/// Where things stand in a line that was split at blanks, quoted texts being one.
struct Columns {
    time: usize,
    /// Column and how many microseconds a unit of it is.
    duration: (usize, f64),
    code: usize,
    bytes: usize,
    method: usize,
    url: usize,
    content_type: Option<usize>,
}

#[derive(Debug, Default, PartialEq)]
struct Counted {
    requests: u64,
    bytes: u64,
    hits: u64,
    hit_bytes: u64,
    duration_us: f64,
    longest_us: f64,
    by_status: BTreeMap<String, (u64, u64)>,
    by_method: BTreeMap<String, (u64, u64)>,
    by_host: BTreeMap<String, (u64, u64)>,
    by_type: BTreeMap<String, (u64, u64)>,
    by_code: BTreeMap<String, (u64, u64)>,
    urls: BTreeMap<String, u64>,
    first: f64,
    last: f64,
}

fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

fn count(text: &str, columns: &Columns, hit: &dyn Fn(&str) -> bool) -> Counted {
    let mut counted = Counted { first: f64::MAX, ..Counted::default() };
    for line in text.lines() {
        let words = split(line);
        let (code, status) = words[columns.code].rsplit_once('/').unwrap();
        let bytes: u64 = words[columns.bytes].parse().unwrap();
        let time: f64 = words[columns.time].parse().unwrap();
        let us = words[columns.duration.0].parse::<f64>().unwrap() * columns.duration.1;
        let url = &words[columns.url];
        let host = url.split('/').nth(2).unwrap().to_owned();
        counted.requests += 1;
        counted.bytes += bytes;
        if hit(code) {
            counted.hits += 1;
            counted.hit_bytes += bytes;
        }
        counted.duration_us += us;
        counted.longest_us = counted.longest_us.max(us);
        counted.first = counted.first.min(time);
        counted.last = counted.last.max(time);
        let add = |into: &mut BTreeMap<String, (u64, u64)>, name: String| {
            let sums = into.entry(name).or_default();
            *sums = (sums.0 + 1, sums.1 + bytes);
        };
        add(&mut counted.by_status, status.to_owned());
        add(&mut counted.by_method, words[columns.method].clone());
        add(&mut counted.by_host, host);
        add(&mut counted.by_code, code.to_owned());
        if let Some(column) = columns.content_type {
            let name = if words[column] == "-" { "(none)" } else { &words[column] };
            add(&mut counted.by_type, name.to_owned());
        }
        *counted.urls.entry(url.clone()).or_default() += 1;
    }
    counted
}

fn check(name: &str, format: &str, columns: &Columns, hit: &dyn Fn(&str) -> bool) {
    let path = lines_of(&format!("{name}.log"));
    let expected = count(&std::fs::read_to_string(&path).unwrap(), columns, hit);
    let document = analyse(&[path], None);
    assert_eq!(document.inputs[0].format, format, "{name}");
    assert_eq!((document.lines.malformed, document.all.requests), (0, expected.requests), "{name}");
    assert_eq!(document.all.bytes, expected.bytes, "{name}");
    assert_eq!(document.all.local_hits, expected.hits, "{name}");
    assert_eq!(document.all.bhr, Some(expected.hit_bytes as f64 / expected.bytes as f64), "{name}");
    let response = document.all.response.unwrap();
    assert!((response.mean_ms * 1e3 * expected.requests as f64 - expected.duration_us).abs() < 1.0, "{name}");
    assert_eq!(response.max_ms * 1e3, expected.longest_us.round(), "{name}");
    assert!((document.first_unix_ms.unwrap() / 1e3 - expected.first).abs() < 1e-3, "{name}");
    assert!((document.last_unix_ms.unwrap() / 1e3 - expected.last).abs() < 1e-3, "{name}");
    let flat = |map: &BTreeMap<String, (u64, u64)>| -> Vec<_> {
        map.iter().map(|(name, (requests, bytes))| (name.clone(), *requests, *bytes)).collect()
    };
    assert_eq!(group(&document, "status"), flat(&expected.by_status), "{name}");
    assert_eq!(group(&document, "method"), flat(&expected.by_method), "{name}");
    assert_eq!(group(&document, "host"), flat(&expected.by_host), "{name}");
    assert_eq!(group(&document, "content-type"), flat(&expected.by_type), "{name}");
    if name != "haproxy" {
        assert_eq!(group(&document, "outcome"), flat(&expected.by_code), "{name}");
    }
    assert_eq!(document.distinct.urls.count as usize, expected.urls.len(), "{name}");
    assert_eq!(document.top.by_requests[0].requests, *expected.urls.values().max().unwrap(), "{name}");
    assert_eq!(document.top.floor_requests, 0);
}

#[test]
fn every_figure_of_squids_log_is_that_of_a_plain_counter() {
    let columns =
        Columns { time: 0, duration: (1, 1e3), code: 3, bytes: 4, method: 5, url: 6, content_type: Some(9) };
    check("squid", "squid", &columns, &|code| matches!(code, "TCP_MEM_HIT" | "TCP_HIT" | "TCP_IMS_HIT"));
}

#[test]
fn every_figure_of_traffic_servers_log_is_that_of_a_plain_counter() {
    let columns =
        Columns { time: 0, duration: (1, 1e3), code: 3, bytes: 4, method: 5, url: 6, content_type: None };
    let hits = ["TCP_MEM_HIT", "TCP_HIT", "TCP_IMS_HIT", "TCP_CF_HIT"];
    check("trafficserver", "assay-trafficserver", &columns, &|code| hits.contains(&code));
}

#[test]
fn every_figure_of_haproxys_log_is_that_of_a_plain_counter() {
    let columns =
        Columns { time: 0, duration: (1, 1e3), code: 3, bytes: 4, method: 5, url: 6, content_type: None };
    check("haproxy", "assay-haproxy", &columns, &|code| code == "<CACHE>");
}

#[test]
fn every_figure_of_httpds_log_is_that_of_a_plain_counter() {
    let columns =
        Columns { time: 0, duration: (1, 1.0), code: 3, bytes: 4, method: 5, url: 6, content_type: None };
    check("httpd", "assay-httpd", &columns, &|code| code == "cache hit");
}

#[test]
fn every_figure_of_varnishncsas_log_is_that_of_a_plain_counter() {
    let columns =
        Columns { time: 0, duration: (5, 1.0), code: 1, bytes: 2, method: 3, url: 4, content_type: None };
    check("varnish", "assay-varnish", &columns, &|code| code == "hit");
}

#[test]
fn every_figure_of_nginxs_log_is_that_of_a_plain_counter() {
    let columns =
        Columns { time: 0, duration: (5, 1e6), code: 1, bytes: 2, method: 3, url: 4, content_type: None };
    check("nginx", "assay-nginx", &columns, &|code| code == "HIT");
}
