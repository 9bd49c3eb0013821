//! Made-up evaluations that are the same every time, bit by bit.

use std::collections::BTreeMap;
use std::path::Path;

use assay_protocol::evaluation::ListenerRow;
use assay_record::spe::{
    CollectorSettings, Ended, EvaluationTarget, How, ListenerWriter, ResponseError, ResponseRow,
    ResponseWriter, SpeDir, SpeInfo, Totals, Verdict,
};

use assay_testbed::pages::HOSTILE;

/// Requests of most evaluations.
pub const REQUESTS: u64 = 600;
const LABELS: [&str; 4] = ["direct", "swift", "plain", HOSTILE];

/// A number that looks random, below `below`.
fn hashed(request: u64, target: u16, below: u64) -> u64 {
    let mut x = (request + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (u64::from(target) + 7).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 32)) % below
}

/// `swift` has half of everything in its cache, `plain` nothing; the third is often wrong.
pub fn response(request: u64, target: u16) -> ResponseRow {
    let origin_us = 200_000 + hashed(request, 0, 300_000) as i64;
    let hit = target == 1 && request % 2 == 1;
    let first_byte_us =
        if hit { 2_000 + hashed(request, target, 500) as i64 } else { origin_us + i64::from(target) * 300 };
    let broken = target == 3;
    let (verdict, header, error) = match (target, request % 10) {
        (0, _) => (Verdict::NotCompared, None, None),
        (3, 0) => (Verdict::StatusCodeMismatch, None, None),
        (3, 1) => (Verdict::HeaderMismatch, Some("content-type".to_owned()), None),
        (3, 2) => (Verdict::BodyMismatch, None, None),
        (3, 3) => (Verdict::NoResponse, None, Some(ResponseError::TimedOut)),
        (3, 4) => (Verdict::Dropped, None, None),
        _ => (Verdict::Ok, None, None),
    };
    let responded = error.is_none() && verdict != Verdict::Dropped;
    ResponseRow {
        request,
        target,
        place: if target == 0 { 0 } else { ((request + u64::from(target)) % 3) as u8 },
        at_us: request as i64 * 100_000 + 7,
        client: "192.0.2.1".into(),
        method: "GET".into(),
        version: "HTTP/1.1".into(),
        url: format!("http://www.example.org/{request}?q={HOSTILE}"),
        status: responded.then_some(if broken && verdict == Verdict::StatusCodeMismatch { 503 } else { 200 }),
        connect_us: (responded && request.is_multiple_of(4)).then_some(400),
        first_byte_us: responded.then_some(first_byte_us),
        transfer_us: responded.then_some(10_000),
        head_bytes: 300,
        body_bytes: if responded { 10_000 } else { 0 },
        checksum: responded.then(|| format!("{request:032x}")),
        verdict,
        header,
        error,
    }
}

/// What is said of the evaluation as a whole.
pub fn info() -> SpeInfo {
    let target = |label: &&str| EvaluationTarget {
        label: (*label).to_owned(),
        address: (*label != "direct").then(|| "127.0.0.1:3128".to_owned()),
        tls: *label == "swift",
        software: (*label == "swift").then(|| "Swift 1.0".to_owned()),
        settings: BTreeMap::from([("memory".to_owned(), HOSTILE.to_owned())]),
    };
    SpeInfo {
        schema: assay_record::spe::SCHEMA,
        version: "0.1.0".into(),
        started_unix_ms: 1_767_323_045_000,
        ended: Some(Ended { at_ms: 60_000, how: How::Finished }),
        seed: 7,
        forward: true,
        intercept: false,
        when: "after".into(),
        turns: "permuted".into(),
        targets: LABELS.iter().map(target).collect(),
        collector: CollectorSettings {
            minimum_freshness_ms: 180_000,
            replay: true,
            ..CollectorSettings::default()
        },
        totals: Totals { clients: 3, requests: REQUESTS, origin_requests: REQUESTS, ..Totals::default() },
    }
}

/// An evaluation of `requests` requests in `path`.
pub fn write(path: &Path, info: &SpeInfo, requests: u64) -> SpeDir {
    let dir = SpeDir::create(path).unwrap();
    dir.write_info(info).unwrap();
    let mut responses = ResponseWriter::create(&dir.responses_path()).unwrap();
    // Responses of one request do not stand together.
    for target in [2, 0, 3, 1] {
        (0..requests).for_each(|request| responses.push(&response(request, target)).unwrap());
    }
    responses.push(&ResponseRow { method: "CONNECT".into(), ..response(requests, 0) }).unwrap();
    responses.finish().unwrap();
    let mut listeners = ListenerWriter::create(&dir.listeners_path()).unwrap();
    for at_s in 0..(requests / 10).max(1) as u32 {
        for listener in 0..4u16 {
            let requests = if listener == 1 { 5 } else { 10 };
            let row = ListenerRow {
                at_s,
                listener,
                requests,
                bytes_out: requests * 10_000,
                late_max_us: 80,
                ..ListenerRow::default()
            };
            listeners.push(&row).unwrap();
        }
    }
    listeners.finish().unwrap();
    dir
}
