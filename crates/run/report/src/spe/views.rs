//! The tables of an evaluation as text, the same in a terminal and on the page.

use assay_record::spe::Verdict;

use super::document::{Evaluation, IntervalEstimate, MismatchGroup, TargetDifference, TargetFigures};
use crate::format::{self, NOTHING, bytes, count, opt_number};

/// A column: its head and what it shows of a target.
type TargetColumn = (&'static str, fn(&TargetFigures) -> String);

/// A table about every target.
pub(super) struct TargetTable {
    pub id: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    /// Heading of the names of the rows.
    pub first: &'static str,
    pub heads: Vec<&'static str>,
    /// A name and its cells.
    pub rows: Vec<(String, Vec<String>)>,
}

/// `12.3`, with its interval in brackets behind it.
pub(super) fn with_interval(estimate: Option<&IntervalEstimate>) -> String {
    match estimate {
        None => NOTHING.to_owned(),
        Some(estimate) => join(format::number(estimate.value), interval(estimate)),
    }
}

/// `[12.1 … 12.5]`, or nothing.
pub(super) fn interval(estimate: &IntervalEstimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("[{} … {}]", format::number(low), format::number(high)),
        _ => String::new(),
    }
}

/// `+1.20 ms [0.80 … 1.60]`
pub(super) fn signed_ms(estimate: Option<&IntervalEstimate>) -> String {
    match estimate {
        None => NOTHING.to_owned(),
        Some(estimate) => join(format!("{} ms", signed(estimate.value)), interval(estimate)),
    }
}

fn signed(value: f64) -> String {
    let text = format::number(value);
    if value > 0.0 && text != "0.00" && text != "0.000" { format!("+{text}") } else { text }
}

fn join(number: String, interval: String) -> String {
    if interval.is_empty() { number } else { format!("{number} {interval}") }
}

/// In percent with two digits, as the document's tables are.
fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| format!("{:.2} %", value * 100.0))
}

fn share(estimate: Option<&IntervalEstimate>) -> String {
    percent(estimate.map(|estimate| estimate.value))
}

fn of_targets(evaluation: &Evaluation, columns: &[TargetColumn]) -> Vec<(String, Vec<String>)> {
    let name = |place: usize, target: &TargetFigures| {
        if place == 0 { format!("({})", target.label) } else { target.label.clone() }
    };
    let targets = evaluation.targets.iter().enumerate();
    targets
        .map(|(place, target)| {
            (name(place, target), columns.iter().map(|column| (column.1)(target)).collect())
        })
        .collect()
}

/// All tables, in order.
pub(super) fn tables(evaluation: &Evaluation) -> Vec<TargetTable> {
    let mut tables = vec![overview(evaluation), times(evaluation), parts(evaluation)];
    if !evaluation.differences.is_empty() {
        tables.push(differences(evaluation));
    }
    if !evaluation.places.is_empty() {
        tables.push(places(evaluation));
    }
    tables.push(volumes(evaluation));
    tables
}

fn heads(columns: &[TargetColumn]) -> Vec<&'static str> {
    columns.iter().map(|column| column.0).collect()
}

/// Table 11.7, and with it 11.6.
fn overview(evaluation: &Evaluation) -> TargetTable {
    const COLUMNS: [TargetColumn; 9] = [
        ("bytes sent", |target| percent(target.bytes_sent_ratio)),
        ("bytes received", |target| percent(target.bytes_received_ratio)),
        ("responses delivered", |target| share(target.delivered_ratio.as_ref())),
        ("match", |target| share(target.matching.as_ref())),
        ("do not match", |target| share(target.not_matching.as_ref())),
        ("mean, ms", |target| opt_number(target.response_ms.mean.map(|mean| mean.value))),
        ("median, ms", |target| opt_number(target.response_ms.p50.map(|median| median.value))),
        ("bandwidth saved", |target| percent(target.bandwidth_saved)),
        ("requests saved", |target| percent(target.requests_saved)),
    ];
    TargetTable {
        id: "overview-table",
        title: "What each was worth",
        about: "Bytes sent to the clients' side and whole responses, relative to the Collector's own; bytes received from \
                the Collector, relative to the way without a proxy: the fewer, the more came from the cache. Matching: \
                responses that were as the Collector's, of those compared.",
        first: "proxy",
        heads: heads(&COLUMNS),
        rows: of_targets(evaluation, &COLUMNS),
    }
}

fn times(evaluation: &Evaluation) -> TargetTable {
    const COLUMNS: [TargetColumn; 6] = [
        ("mean", |target| with_interval(target.response_ms.mean.as_ref())),
        ("median", |target| with_interval(target.response_ms.p50.as_ref())),
        ("90 %", |target| with_interval(target.response_ms.p90.as_ref())),
        ("95 %", |target| with_interval(target.response_ms.p95.as_ref())),
        ("99 %", |target| with_interval(target.response_ms.p99.as_ref())),
        ("longest", |target| opt_number(target.response_ms.max)),
    ];
    TargetTable {
        id: "times-table",
        title: "Response times, ms",
        about: "Connection, first byte and transfer together, of whole responses. Brackets hold 95 % intervals, from \
                stretches of consecutive requests (sectioning).",
        first: "proxy",
        heads: heads(&COLUMNS),
        rows: of_targets(evaluation, &COLUMNS),
    }
}

fn parts(evaluation: &Evaluation) -> TargetTable {
    const COLUMNS: [TargetColumn; 7] = [
        ("connections", |target| count(target.connect_ms.count)),
        ("connect, mean", |target| opt_number(target.connect_ms.mean)),
        ("connect, 99 %", |target| opt_number(target.connect_ms.p99)),
        ("first byte, mean", |target| opt_number(target.first_byte_ms.mean)),
        ("first byte, 99 %", |target| opt_number(target.first_byte_ms.p99)),
        ("transfer, mean", |target| opt_number(target.transfer_ms.mean)),
        ("transfer, 99 %", |target| opt_number(target.transfer_ms.p99)),
    ];
    TargetTable {
        id: "parts-table",
        title: "What response times are made of, ms",
        about: "Connections that were there already cost nothing and are not in the first columns.",
        first: "proxy",
        heads: heads(&COLUMNS),
        rows: of_targets(evaluation, &COLUMNS),
    }
}

fn differences(evaluation: &Evaluation) -> TargetTable {
    let row = |difference: &TargetDifference| {
        let cells = vec![
            count(difference.pairs),
            signed_ms(difference.mean_ms.as_ref()),
            signed_ms(difference.median_ms.as_ref()),
            with_interval(difference.mean_absolute_ms.as_ref()),
            share(difference.faster.as_ref()),
        ];
        (format!("{} − {}", difference.target, difference.base), cells)
    };
    TargetTable {
        id: "differences-table",
        title: "Differences, request by request",
        about: "Of requests that both responded to in full. Negative: the first was faster. An interval that does not hold 0 tells \
                the two apart.",
        first: "pair",
        heads: vec!["requests", "mean", "median", "mean absolute, ms", "first was faster"],
        rows: evaluation.differences.iter().map(row).collect(),
    }
}

fn places(evaluation: &Evaluation) -> TargetTable {
    let rows = evaluation.places.iter().map(|place| {
        let cells =
            vec![count(place.count), format::number(place.mean_ms), signed_ms(place.effect_ms.as_ref())];
        ((u32::from(place.place) + 1).to_string(), cells)
    });
    TargetTable {
        id: "places-table",
        title: "Does the order matter?",
        about: "By place in the order in which proxies got the request. The effect is what responses took more than their own \
                proxy's mean and than the other responses to the same request: an interval that does not hold 0 says that the place alone made it.",
        first: "place",
        heads: vec!["responses", "mean, ms", "effect"],
        rows: rows.collect(),
    }
}

fn volumes(evaluation: &Evaluation) -> TargetTable {
    const COLUMNS: [TargetColumn; 9] = [
        ("requests", |target| count(target.requests)),
        ("whole responses", |target| count(target.delivered)),
        ("no response", |target| {
            count(target.verdicts.get(Verdict::NoResponse.name()).copied().unwrap_or(0))
        }),
        ("dropped", |target| count(target.dropped)),
        ("not kept", |target| count(target.not_kept)),
        ("bytes sent", |target| bytes(target.bytes_sent)),
        ("bytes received", |target| target.bytes_received.map_or_else(|| NOTHING.to_owned(), bytes)),
        ("requests to the Collector", |target| {
            target.requests_received.map_or_else(|| NOTHING.to_owned(), count)
        }),
        ("replayed late, at most", |target| match target.replay_late_max_us {
            Some(us) => format::time_ms(us as f64 / 1000.0),
            None => NOTHING.to_owned(),
        }),
    ];
    TargetTable {
        id: "volumes-table",
        title: "In numbers",
        about: "Bytes are of bodies. Dropped: never sent, because too much was waiting for that proxy. Not kept: not compared, \
                because the Collector had no room for what the client got.",
        first: "proxy",
        heads: heads(&COLUMNS),
        rows: of_targets(evaluation, &COLUMNS),
    }
}

/// `HEADER_MISMATCH content-type`
pub(super) fn name_of(group: &MismatchGroup) -> String {
    let verdict = group.verdict.name();
    if group.what.is_empty() { verdict.to_owned() } else { format!("{verdict} {}", group.what) }
}
