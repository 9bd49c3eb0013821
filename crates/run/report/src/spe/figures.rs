//! The formulas: from what was gathered to the numbers of the document.

use std::collections::BTreeMap;

use assay_record::spe::{How, SpeDir, SpeInfo};

use super::document::{
    EVALUATION_SCHEMA, Evaluation, IntervalEstimate, ResponseTimes, TargetDifference, TargetFigures,
};
use super::tables::{EvaluationData, ListenerSums, ResponseSample};
use super::{sections, send_order};
use crate::chart::Charts;
use crate::figures::{percentiles, ratio, round};

/// With more targets, each is compared with direct alone.
const MOST_FOR_PAIRS: usize = 12;
/// Microseconds in a millisecond, the other way round.
const MS: f64 = 0.001;

/// Everything but words, examples and charts.
pub(super) fn evaluation(dir: &SpeDir, info: &SpeInfo, data: &EvaluationData) -> Evaluation {
    let labels: Vec<String> = (0..data.sums.len()).map(|index| label(info, index)).collect();
    let direct = &data.sums[0];
    let finished = info.ended.as_ref().is_some_and(|ended| ended.how == How::Finished);
    let missing = &data.missing;
    Evaluation {
        schema: EVALUATION_SCHEMA.to_owned(),
        evaluation: dir.path().to_string_lossy().into_owned(),
        version: info.version.clone(),
        started_unix_ms: info.started_unix_ms,
        duration_s: info.ended.as_ref().map(|ended| ended.at_ms as f64 / 1000.0),
        ended: info.ended.clone(),
        partial: !finished || !missing.is_empty() || info.totals.responses_lost > 0,
        forward: info.forward,
        when: info.when.clone(),
        turns: info.turns.clone(),
        seed: info.seed,
        collector: info.collector.clone(),
        verdict: Vec::new(),
        warnings: warnings(info, data),
        requests: direct.requested,
        tunnels: data.tunnels.max(info.totals.connects),
        targets: (0..labels.len()).map(|index| target(info, data, index)).collect(),
        differences: differences(&labels, data),
        places: send_order::places(info, data),
        differing: Vec::new(),
        totals: info.totals.clone(),
        charts: Charts { phases: Vec::new(), step_s: 1.0, time: Vec::new(), charts: Vec::new() },
    }
}

/// Label of a target.
pub(super) fn label(info: &SpeInfo, index: usize) -> String {
    match info.targets.get(index) {
        Some(target) => target.label.clone(),
        None if index == 0 => assay_record::spe::DIRECT.to_owned(),
        None => format!("target {index}"),
    }
}

fn warnings(info: &SpeInfo, data: &EvaluationData) -> Vec<String> {
    let mut warnings = data.missing.clone();
    if info.schema > assay_record::spe::SCHEMA {
        warnings.push(format!(
            "It was written by a newer version of Assay ({}): what is new there is not shown.",
            info.version
        ));
    }
    match info.ended.as_ref().map(|ended| &ended.how) {
        Some(How::Finished) => {}
        Some(How::Interrupted) => {
            warnings.push("It was interrupted; this is what was seen until then.".into())
        }
        Some(How::Failed(why)) => warnings.push(format!("It could not go on: {why}")),
        None => warnings.push("Its end was never written: it goes on, or was cut off.".into()),
    }
    if info.totals.responses_lost > 0 {
        warnings.push(format!(
            "{} responses could not be written down in time and are missing from every figure.",
            info.totals.responses_lost
        ));
    }
    if info.totals.origin_errors > 0 {
        warnings.push(format!(
            "{} fetches from origins failed: clients got an error of the Collector's then (`502`, `504`, or a response that \
             broke off), and proxies were held against that.",
            info.totals.origin_errors
        ));
    }
    if !data.cancelled.is_empty() {
        warnings.push(format!(
            "{} of the requests were cancelled by their client, which has no time for them: what proxies sent for these is in no time \
             and no volume.",
            data.cancelled.len()
        ));
    }
    if info.totals.not_kept > 0 {
        warnings.push(format!(
            "The Collector could not keep {} of the responses that clients got until every proxy had requested them. A proxy that \
             requested one later was given something else: where that differs it is not compared (`NOT_KEPT`), and counts \
             neither for nor against the proxy{}. More --collector-memory or --collector-disk, or a longer \
             --minimum-freshness for proxies that lag behind, keeps more.",
            info.totals.not_kept,
            match info.totals.repeated {
                0 => String::new(),
                more => format!("; origins got {more} more requests for that"),
            }
        ));
    }
    if info.totals.given_up > 0 {
        warnings.push(format!(
            "The Collector itself broke off {} responses, which were too large to keep and read too slowly: a client's own \
             answer would have had to wait for them. What proxies lack of these (`truncated`) is not their fault; more \
             --collector-memory or --collector-disk keeps such responses.",
            info.totals.given_up
        ));
    }
    if info.turns == "fixed" {
        warnings.push(
            "Proxies got requests in a fixed order: the effect of the place cannot be told from what a proxy does."
                .into(),
        );
    }
    if !info.collector.replay {
        warnings.push(
            "Recordings were not replayed at their pace: a proxy that fetches has its response at once, and times say nothing of \
             what its cache is worth."
                .into(),
        );
    }
    warnings
}

fn target(info: &SpeInfo, data: &EvaluationData, index: usize) -> TargetFigures {
    let (sums, direct) = (&data.sums[index], &data.sums[0]);
    let known = info.targets.get(index).cloned().unwrap_or_default();
    let listeners = data.listeners.as_ref();
    let (listener, direct_listener) = (listeners.map(|all| &all[index]), listeners.map(|all| &all[0]));
    // What was not compared is left out on both sides, and what the proxy was never sent on direct's.
    let (out, unsent, never) = (sums.not_kept, sums.unsent, sums.cancelled_unsent);
    let left_out_bytes = out.direct_bytes + sums.cancelled.direct_bytes + unsent.direct_bytes;
    let (never_requests, never_bytes) =
        (unsent.count + never.count, unsent.direct_bytes + never.direct_bytes);
    let relative = |of: fn(&ListenerSums) -> u64, own: u64, directs: u64| {
        ratio(of(listener?).saturating_sub(own), of(direct_listener?).saturating_sub(directs))
    };
    let bytes_received_ratio =
        relative(|listener| listener.bytes_out, out.body_bytes, out.direct_bytes + never_bytes);
    let requests_received_ratio =
        relative(|listener| listener.requests, out.count, out.count + never_requests);
    let direct_delivered = direct.delivered.saturating_sub(out.direct_delivered + unsent.direct_delivered);
    let count = |name: &str| sums.verdicts.get(name).copied().unwrap_or(0);
    let mismatches = count("STATUS_CODE_MISMATCH") + count("HEADER_MISMATCH") + count("BODY_MISMATCH");
    // Direct is what the others are held against: it is like itself.
    let matching = if index == 0 { sums.delivered } else { count("OK") };
    let compared = matching + mismatches;
    let owned =
        |counts: &BTreeMap<&'static str, u64>| counts.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    let share = |part, whole| sections::share(part, whole).map(|estimate| sections::scaled(estimate, 1.0, 6));
    TargetFigures {
        label: label(info, index),
        address: known.address,
        tls: known.tls,
        software: known.software,
        settings: known.settings,
        requests: sums.requested,
        dropped: sums.dropped,
        not_kept: out.count,
        cancelled: if index == 0 { data.cancelled.len() as u64 } else { sums.cancelled.count },
        delivered: sums.delivered,
        delivered_ratio: match sums.delivered <= direct_delivered {
            true => share(sums.delivered, direct_delivered),
            // It sent a response that the Collector's client did not wait for.
            false => ratio(sums.delivered, direct_delivered).map(|value| IntervalEstimate {
                value,
                low: None,
                high: None,
            }),
        },
        bytes_sent: sums.body_bytes,
        bytes_sent_ratio: ratio(sums.body_bytes, direct.body_bytes.saturating_sub(left_out_bytes)),
        bytes_received: listener.map(|listener| listener.bytes_out),
        bytes_received_ratio,
        bandwidth_saved: bytes_received_ratio.map(|ratio| round(1.0 - ratio, 6)),
        requests_received: listener.map(|listener| listener.requests),
        requests_received_ratio,
        requests_saved: requests_received_ratio.map(|ratio| round(1.0 - ratio, 6)),
        compared,
        matching: share(matching, compared),
        not_matching: share(mismatches, compared),
        verdicts: owned(&sums.verdicts),
        errors: owned(&sums.errors),
        response_ms: times(&responses(data, index)),
        connect_ms: percentiles(&sums.connect),
        first_byte_ms: percentiles(&sums.first_byte),
        transfer_ms: percentiles(&sums.transfer),
        replay_late_max_us: listener.map(|listener| listener.late_max_us),
    }
}

/// Response times of a target in the order of requests, in microseconds.
fn responses(data: &EvaluationData, index: usize) -> Vec<f64> {
    let of_target = data.samples.iter().filter(|sample| usize::from(sample.target) == index);
    of_target.filter_map(ResponseSample::response_us).collect()
}

fn times(values_us: &[f64]) -> ResponseTimes {
    let ms = |estimate: Option<IntervalEstimate>| estimate.map(|estimate| sections::scaled(estimate, MS, 4));
    ResponseTimes {
        count: values_us.len() as u64,
        mean: ms(sections::mean(values_us)),
        p50: ms(sections::quantile(values_us, 0.5)),
        p90: ms(sections::quantile(values_us, 0.9)),
        p95: ms(sections::quantile(values_us, 0.95)),
        p99: ms(sections::quantile(values_us, 0.99)),
        max: values_us.iter().copied().reduce(f64::max).map(|us| us * MS),
    }
}

/// Every two targets; of many, each with direct.
fn differences(labels: &[String], data: &EvaluationData) -> Vec<TargetDifference> {
    let mut found = Vec::new();
    for base in 0..labels.len() {
        for target in base + 1..labels.len() {
            if base == 0 || labels.len() <= MOST_FOR_PAIRS {
                found.push(difference(labels, data, base, target));
            }
        }
    }
    found
}

fn difference(labels: &[String], data: &EvaluationData, base: usize, target: usize) -> TargetDifference {
    let mut values = Vec::new();
    for responses in data.by_request() {
        let of = |index: usize| {
            responses.iter().find(|response| usize::from(response.target) == index)?.response_us()
        };
        if let (Some(base), Some(target)) = (of(base), of(target)) {
            values.push(target - base);
        }
    }
    let ms = |estimate: Option<IntervalEstimate>| estimate.map(|estimate| sections::scaled(estimate, MS, 4));
    let faster = values.iter().filter(|difference| **difference < 0.0).count() as u64;
    let (mean_ms, median_ms) = (ms(sections::mean(&values)), ms(sections::quantile(&values, 0.5)));
    let pairs = values.len() as u64;
    values.iter_mut().for_each(|value| *value = value.abs());
    TargetDifference {
        target: labels[target].clone(),
        base: labels[base].clone(),
        pairs,
        mean_ms,
        median_ms,
        mean_absolute_ms: ms(sections::mean(&values)),
        faster: sections::share(faster, pairs).map(|estimate| sections::scaled(estimate, 1.0, 6)),
    }
}
