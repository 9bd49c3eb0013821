//! Logs that six proxies wrote in the lab, against a counter that was written for nothing else: it splits at blanks and
//! quotes, and knows each log's columns by number.

use std::collections::{BTreeMap, BTreeSet};

use assay_logs::document::{LogsDocument, ResponseTimes};

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
    client: Option<usize>,
}

#[derive(Debug, Default, Clone, PartialEq)]
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
    by_size: BTreeMap<String, (u64, u64)>,
    /// Requests, bytes and misses of each URL.
    urls: BTreeMap<String, [u64; 3]>,
    clients: BTreeSet<String>,
    times_us: Vec<f64>,
    hit_times_us: Vec<f64>,
    /// URL, bytes, and what a cache could do with it, in the order of the log.
    stream: Vec<(String, u64, Use)>,
    seconds: BTreeMap<u64, u64>,
    first: f64,
    last: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Use {
    Keep,
    ServerResponse,
    Nothing,
}

impl Use {
    fn of(method: &str, status: &str) -> Self {
        match (method, status) {
            ("GET", "200" | "203" | "300" | "301" | "308" | "404" | "410") => Use::Keep,
            ("GET", "206" | "304") => Use::ServerResponse,
            _ => Use::Nothing,
        }
    }
}

/// All these logs count heads, which differ between responses.
const HEADS: u64 = 512;

/// Hits and their bytes of a cache of that size, or without bounds, on a stream.
fn cache(stream: &[(String, u64, Use)], bound: Option<u64>) -> (u64, u64) {
    let mut kept: Vec<(&str, u64)> = Vec::new();
    let mut known: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut hits, mut hit_bytes) = (0, 0);
    for (url, bytes, can) in stream {
        if *can == Use::Nothing {
            continue;
        }
        let before = known.get(url.as_str()).copied();
        let same = before.is_some_and(|size| *can == Use::ServerResponse || size.abs_diff(*bytes) <= HEADS);
        if let Some(at) = kept.iter().position(|(name, _)| name == url).filter(|_| same) {
            let used = kept.remove(at);
            kept.push(used);
            (hits, hit_bytes) = (hits + 1, hit_bytes + bytes);
            continue;
        }
        let size = if same { before.unwrap() } else { *bytes };
        if *can == Use::Keep || before.is_some() {
            known.insert(url, size);
        }
        if *can == Use::Keep {
            kept.retain(|(name, _)| name != url);
            if bound.is_none_or(|bound| size <= bound) {
                kept.push((url, size));
            }
            while bound.is_some_and(|bound| kept.iter().map(|(_, size)| size).sum::<u64>() > bound) {
                kept.remove(0);
            }
        }
    }
    (hits, hit_bytes)
}

/// `1 KB to 2 KB`: from a power of two to the next.
fn size_group(bytes: u64) -> String {
    let mut low = 1;
    while low * 2 <= bytes {
        low *= 2;
    }
    let name = |bytes: u64| match bytes {
        ..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", bytes / 1024),
        _ => format!("{} MB", bytes / 1_048_576),
    };
    if bytes == 0 { "0 B".into() } else { format!("{} to {}", name(low), name(low * 2)) }
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
        counted.times_us.push(us);
        if hit(code) {
            counted.hit_times_us.push(us);
        }
        *counted.seconds.entry(time as u64).or_default() += 1;
        counted.stream.push((url.clone(), bytes, Use::of(&words[columns.method], status)));
        if let Some(column) = columns.client {
            counted.clients.insert(words[column].clone());
        }
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
        add(&mut counted.by_size, size_group(bytes));
        let url = counted.urls.entry(url.clone()).or_default();
        *url = [url[0] + 1, url[1] + bytes, url[2] + u64::from(!hit(code))];
    }
    counted
}

fn check(name: &str, format: &str, columns: &Columns, hit: &dyn Fn(&str) -> bool) {
    let path = lines_of(&format!("{name}.log"));
    let expected = count(&std::fs::read_to_string(&path).unwrap(), columns, hit);
    let document = analyse(&[path], None);
    assert_eq!(document.inputs[0].format, format, "{name}");
    assert_eq!((document.lines.malformed, document.all.requests), (0, expected.requests), "{name}");
    assert_eq!(document.all.bytes, Some(expected.bytes), "{name}");
    assert_eq!(document.all.local_hits, Some(expected.hits), "{name}");
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
    assert_eq!(group(&document, "size"), flat(&expected.by_size), "{name}");
    assert_eq!(document.distinct.urls.unwrap().count as usize, expected.urls.len(), "{name}");
    assert_eq!(document.distinct.hosts.unwrap().count as usize, expected.by_host.len(), "{name}");
    assert_eq!(
        document.distinct.clients.map_or(0, |count| count.count as usize),
        expected.clients.len(),
        "{name}"
    );
    check_tops(name, &document, &expected);
    check_times(name, &document, expected.clone());
    for would in &document.caches.caches {
        let (hits, hit_bytes) = cache(&expected.stream, would.size_bytes);
        let (requests, bytes) = (expected.requests as f64, expected.bytes as f64);
        assert!((would.dhr.unwrap() - hits as f64 / requests).abs() < 1e-9, "{name}: {would:?} {hits}");
        assert!(
            (would.bhr.unwrap() - hit_bytes as f64 / bytes).abs() < 1e-9,
            "{name}: {would:?} {hit_bytes}"
        );
    }
}

fn check_tops(name: &str, document: &LogsDocument, expected: &Counted) {
    let most = |which: usize| expected.urls.values().map(|sums| sums[which]).max().unwrap();
    let top = &document.top;
    assert_eq!(
        (top.by_requests[0].requests, top.by_bytes[0].bytes, top.by_misses[0].misses),
        (most(0), most(1), Some(most(2))),
        "{name}"
    );
    for url in top.by_requests.iter().chain(&top.by_bytes).chain(&top.by_misses) {
        assert_eq!([url.requests, url.bytes, url.misses.unwrap()], expected.urls[&url.url], "{name}");
        assert_eq!((url.requests_error, url.bytes_error, url.misses_error), (0, 0, 0));
    }
    assert_eq!((top.floor_requests, top.floor_bytes, top.floor_misses), (0, 0, 0));
}

fn check_times(name: &str, document: &LogsDocument, mut expected: Counted) {
    let near = |response: &ResponseTimes, times: &mut Vec<f64>, within: f64| {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((share * times.len() as f64).ceil() as usize).max(1) - 1];
        for (share, found) in [
            (0.5, response.p50_ms),
            (0.9, response.p90_ms),
            (0.95, response.p95_ms),
            (0.99, response.p99_ms),
            (0.999, response.p999_ms),
        ] {
            let (exact, found) = (at(share), found * 1e3);
            assert!((found - exact).abs() <= exact * within + 1.0, "{name}: {share}: {found} for {exact}");
        }
    };
    near(document.all.response.as_ref().unwrap(), &mut expected.times_us, 0.016);
    let hits: Vec<_> = document.by_class.iter().filter(|class| class.class.is_local_hit()).collect();
    assert_eq!(hits.iter().map(|class| class.figures.requests).sum::<u64>(), expected.hits, "{name}");
    if let [one] = hits.as_slice() {
        near(one.figures.response.as_ref().unwrap(), &mut expected.hit_times_us, 0.001);
    }
    let step_s = document.every_ms.unwrap() / 1e3;
    let mut steps: BTreeMap<u64, u64> = BTreeMap::new();
    for (second, requests) in expected.seconds {
        *steps.entry((second as f64 / step_s) as u64).or_default() += requests;
    }
    let found =
        document.time.iter().map(|step| ((step.from_unix_ms / 1e3 / step_s) as u64, step.figures.requests));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), steps, "{name}");
}

#[test]
fn every_figure_of_squids_log_is_that_of_a_plain_counter() {
    let columns = Columns {
        time: 0,
        duration: (1, 1e3),
        code: 3,
        bytes: 4,
        method: 5,
        url: 6,
        content_type: Some(9),
        client: Some(2),
    };
    check("squid", "squid", &columns, &|code| matches!(code, "TCP_MEM_HIT" | "TCP_HIT" | "TCP_IMS_HIT"));
}

#[test]
fn every_figure_of_traffic_servers_log_is_that_of_a_plain_counter() {
    let columns = Columns {
        time: 0,
        duration: (1, 1e3),
        code: 3,
        bytes: 4,
        method: 5,
        url: 6,
        content_type: None,
        client: Some(2),
    };
    let hits = ["TCP_MEM_HIT", "TCP_HIT", "TCP_IMS_HIT", "TCP_CF_HIT"];
    check("trafficserver", "assay-trafficserver", &columns, &|code| hits.contains(&code));
}

#[test]
fn every_figure_of_haproxys_log_is_that_of_a_plain_counter() {
    let columns = Columns {
        time: 0,
        duration: (1, 1e3),
        code: 3,
        bytes: 4,
        method: 5,
        url: 6,
        content_type: None,
        client: Some(2),
    };
    check("haproxy", "assay-haproxy", &columns, &|code| code == "<CACHE>");
}

#[test]
fn every_figure_of_httpds_log_is_that_of_a_plain_counter() {
    let columns = Columns {
        time: 0,
        duration: (1, 1.0),
        code: 3,
        bytes: 4,
        method: 5,
        url: 6,
        content_type: None,
        client: Some(2),
    };
    check("httpd", "assay-httpd", &columns, &|code| code == "cache hit");
}

#[test]
fn every_figure_of_varnishncsas_log_is_that_of_a_plain_counter() {
    let columns = Columns {
        time: 0,
        duration: (5, 1.0),
        code: 1,
        bytes: 2,
        method: 3,
        url: 4,
        content_type: None,
        client: None,
    };
    check("varnish", "assay-varnish", &columns, &|code| code == "hit");
}

#[test]
fn every_figure_of_nginxs_log_is_that_of_a_plain_counter() {
    let columns = Columns {
        time: 0,
        duration: (5, 1e6),
        code: 1,
        bytes: 2,
        method: 3,
        url: 4,
        content_type: None,
        client: None,
    };
    check("nginx", "assay-nginx", &columns, &|code| code == "HIT");
}
