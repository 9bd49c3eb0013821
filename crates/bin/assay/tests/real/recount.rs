//! What a summary says of bytes and times, counted again from the log of every xact, by the definitions in the documentation.

use std::collections::HashMap;

use assay_measurement::outcome::Outcome;
use assay_measurement::own_error::BEGUN_LATE_US;
use assay_measurement::xact::XactRow;
use assay_record::xact_log::XactLog;
use serde_json::Value;

use crate::support::Assay;

/// A run through the built-in proxy, with room for everything, that sent all that was due. `others`: the share of requests that
/// are conditional, and of those that are HEAD.
fn logged(others: &str) -> (Value, Vec<XactRow>) {
    // On a busy machine, requests that are due just before the end may stay unsent.
    for _ in 0..5 {
        let (total, rows) = run(others);
        if total["unsent"] == 0 {
            return (total, rows);
        }
    }
    panic!("no run of five sent all that was due");
}

fn run(others: &str) -> (Value, Vec<XactRow>) {
    let assay = Assay::new();
    let workload = assay.file("recount.pg", &include_str!("recount.pg").replace("OTHERS", others));
    let arguments =
        ["run", workload, "--memory", "256MB", "--run-dir", "r", "--xact-log", "--no-report", "--json"];
    let said = assay.run(&arguments);
    assert!(said.went_well(), "{said:?}");
    let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    let total = document["total"].clone();
    assert_eq!(total["errors"]["total"], 0, "{total:#}");
    (total, XactLog::read(&assay.path("r/xacts.parquet")).expect("a log that can be read"))
}

/// The bytes of the rows of which `is_hit` says so, over those of all.
fn share_of_bytes(rows: &[&XactRow], is_hit: impl Fn(&XactRow) -> bool) -> f64 {
    let bytes = |wanted: &dyn Fn(&XactRow) -> bool| -> u64 {
        rows.iter().filter(|row| wanted(row)).map(|row| row.body_bytes).sum()
    };
    bytes(&is_hit) as f64 / bytes(&|_| true) as f64
}

#[test]
fn all_three_byte_hit_ratios_are_of_bytes_as_they_are_sent() {
    let (total, rows) = logged("0%");
    let mut rows: Vec<&XactRow> = rows.iter().collect();
    rows.sort_by_key(|row| row.sent_us);
    // Nothing expires: what is cachable and was sent for before is an ideal hit.
    let mut first: HashMap<u64, Option<i64>> = HashMap::new();
    for row in &rows {
        first.entry(row.object).or_insert(row.sent_us);
    }
    let ideal = share_of_bytes(&rows, |row| row.cachable && first[&row.object] < row.sent_us);
    let measured =
        share_of_bytes(&rows, |row| matches!(row.outcome, Some(Outcome::Hit | Outcome::Collapsed)));
    let offered = share_of_bytes(&rows, |row| row.cachable && row.revisit);
    let said = |which: &str| total["bhr"][which].as_f64().expect("bytes came");
    // Requests of one microsecond may go either way.
    assert!((said("ideal") - ideal).abs() < 0.003, "ideal {} is {ideal}", said("ideal"));
    assert!((said("measured") - measured).abs() < 1e-6, "measured {} is {measured}", said("measured"));
    // Offered is known before anything is sent: from what gzip leaves of bodies of such sizes.
    assert!((said("offered") - offered).abs() < 0.003, "offered {} is {offered}", said("offered"));
    // The proxy has room for everything: it can miss a few that came at the same time, and have no more than ideal has.
    assert!(said("measured") <= said("ideal") + 0.003, "{} {}", said("measured"), said("ideal"));
    assert!(said("measured") >= said("ideal") - 0.03, "{} {}", said("measured"), said("ideal"));
    // As they are, the bytes of text are 2.5 times as many: by those, offered would lie elsewhere.
    let text =
        rows.iter().filter(|row| row.content == rows[0].content).map(|row| row.body_bytes).sum::<u64>();
    let all = rows.iter().map(|row| row.body_bytes).sum::<u64>();
    let share = text as f64 / all as f64;
    assert!(
        !(0.4..0.6).contains(&share),
        "both types have objects of one mean size, and one is coded: {share}"
    );
}

#[test]
fn times_of_hits_and_misses_are_those_of_all_xacts_with_that_outcome() {
    let (total, rows) = logged("30%");
    let times = |wanted: &dyn Fn(&XactRow) -> bool| -> Vec<i64> {
        rows.iter()
            .filter(|row| wanted(row))
            .map(|row| {
                // A time begins a moment after its request was due, if it was sent a moment after it could have been.
                let could_be_sent_us = row.due_us.max(row.ready_us.expect("it was sent"));
                let late_us = row.sent_us.expect("it was sent") - could_be_sent_us;
                let begun_us = row.due_us + late_us.clamp(0, i64::from(BEGUN_LATE_US));
                row.last_byte_us.expect("it ended") - begun_us
            })
            .collect()
    };
    let is_basic = |row: &XactRow| row.method == "GET" && row.request_type == "basic";
    let others = times(&|row| row.outcome == Some(Outcome::Hit) && !is_basic(row));
    assert!(others.len() > 100, "HEADs and conditional requests are hits too: {}", others.len());
    for (class, outcome) in [("hit", Outcome::Hit), ("miss", Outcome::Miss)] {
        let times = times(&|row| row.outcome == Some(outcome));
        let said = &total["response_time_ms"][class];
        assert_eq!(said["count"].as_u64(), Some(times.len() as u64), "{class}");
        let mean_ms = times.iter().sum::<i64>() as f64 / times.len() as f64 / 1000.0;
        // Instants are rounded to microseconds, each by itself.
        assert!(
            (said["mean"].as_f64().expect("a mean") - mean_ms).abs() < 0.001,
            "{class}: {said} {mean_ms}"
        );
    }
    let rest = times(&|row| !matches!(row.outcome, Some(Outcome::Hit | Outcome::Miss)));
    assert_eq!(total["response_time_ms"]["other"]["count"].as_u64(), Some(rest.len() as u64));
    assert_eq!(total["response_time_ms"]["all"]["count"], total["completed"]);
}
