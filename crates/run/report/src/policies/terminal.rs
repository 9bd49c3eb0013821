//! The policy report as text: a table for each mix and cluster.

use std::fmt::Write;

use assay_record::cluster::{Balance, ClusterPoint, ClusterResult, Origin};

use super::{
    MeanEstimate, MeasuredGain, MixOnCluster, ResultDifference, gain, measured_gain, megabits_per_s, mixes,
    nodes, points_of,
};
use crate::format::{NOTHING, duration_s};

pub fn terminal_text(result: &ClusterResult) -> String {
    let mut text = String::new();
    if !result.title.is_empty() {
        line(&mut text, &result.title);
    }
    if let Some(extends) = &result.extends {
        line(&mut text, &format!("extends {extends}"));
    }
    let how = match result.origin {
        Origin::Simulated => "simulated",
        Origin::Measured => "measured",
    };
    let length = duration_s(result.measure_s);
    line(
        &mut text,
        &format!(
            "{} × {length} {how}, seed {}; ± is the 95 % interval between repetitions",
            result.repetitions, result.seed
        ),
    );
    for mix in mixes(result) {
        head(&mut text, result, mix);
        for point in points_of(result, mix) {
            row(&mut text, result, point);
        }
    }
    off(&mut text, result);
    let nodes = nodes::measured(result);
    if !nodes.is_empty() {
        line(&mut text, "");
        nodes.iter().for_each(|sentence| line(&mut text, sentence));
    }
    text
}

fn line(text: &mut String, what: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}

fn is_measured(result: &ClusterResult) -> bool {
    result.points.iter().any(|point| point.reference_per_s.is_some())
}

fn head(text: &mut String, result: &ClusterResult, mix: MixOnCluster<'_>) {
    line(text, &format!("\n{mix}"));
    let first = result.points.first().map_or("", |point| &point.policy);
    let gain = format!("over {first}");
    let mut titles = format!(
        "{:>10}  {:<12} {:>17} {:>10} {:>8} {:>8} {:>8} {:>7}",
        "load", "policy", "responses/s", gain, "p50 ms", "p95 ms", "p99 ms", "uneven"
    );
    if is_measured(result) {
        let _ = write!(titles, " {:>9} {:>7} {:>9} {:>9}", "measured", "off", "its gain", "gain off");
    }
    line(text, &titles);
}

/// `8 clients`, `120/s`.
pub(super) fn load(point: &ClusterPoint) -> String {
    match (point.clients, point.rate_per_s) {
        (Some(clients), _) => format!("{clients} clients"),
        (None, Some(per_s)) => format!("{per_s}/s"),
        (None, None) => NOTHING.to_owned(),
    }
}

/// `123.4 ± 5.6`.
pub(super) fn responses(point: &ClusterPoint) -> String {
    match MeanEstimate::from_values(&point.responses_per_s_by_repetition) {
        Some(MeanEstimate { mean, half_width: Some(half), .. }) => format!("{mean:.1} ± {half:.1}"),
        Some(MeanEstimate { mean, half_width: None, .. }) => format!("{mean:.1}"),
        None => NOTHING.to_owned(),
    }
}

pub(super) fn ms(micros: Option<u64>) -> String {
    micros.map_or(NOTHING.into(), |us| format!("{:.1}", us as f64 / 1e3))
}

/// Imbalance between nodes; none: they were not observed for a whole second, which is not the same as perfect
/// balance.
pub(super) fn balance(point: &ClusterPoint) -> Option<Balance> {
    (!point.nodes.is_empty() || point.balance != Balance::default()).then_some(point.balance)
}

fn row(text: &mut String, result: &ClusterResult, point: &ClusterPoint) {
    let gain =
        gain(result, point).map_or(String::new(), |gain| format!("{:+.1} %", (gain.mean - 1.0) * 100.0));
    let times = &point.response_us;
    let _ = write!(
        text,
        "{:>10}  {:<12} {:>17} {gain:>10} {:>8} {:>8} {:>8} {:>7}",
        load(point),
        point.policy,
        responses(point),
        ms(times.p50),
        ms(times.p95),
        ms(times.p99),
        balance(point).map_or(NOTHING.into(), |balance| format!("{:.2}", balance.processor))
    );
    if let Some(reference) = point.reference_per_s {
        let _ = write!(text, " {reference:>9.2} {:>+6.1}%", (point.mean_per_s() / reference - 1.0) * 100.0);
    }
    if let Some(gain) = measured_gain(result, point) {
        let _ = write!(text, " {:>+7.1} % {:>+6.1} pt", gain.measured * 100.0, gain.off() * 100.0);
    }
    if point.failed > 0 {
        let _ = write!(text, "  {} failed", point.failed);
    }
    text.push('\n');
}

/// The distance from what was measured.
fn off(text: &mut String, result: &ClusterResult) {
    let offs = result.points.iter().filter_map(|point| {
        let reference = point.reference_per_s?;
        Some((point.mean_per_s() / reference - 1.0).abs())
    });
    let all: Vec<f64> = offs.collect();
    if !all.is_empty() {
        let (most, sum) = all.iter().fold((0.0_f64, 0.0), |(most, sum), off| (most.max(*off), sum + off));
        let average = sum / all.len() as f64 * 100.0;
        line(
            text,
            &format!(
                "\n{} points were measured: off by {average:.1} % on average, {:.1} % at most",
                all.len(),
                most * 100.0
            ),
        );
    }
    gains_off(text, result);
}

/// The distance of gains over the first policy from those that were measured, in points, and where it is largest.
fn gains_off(text: &mut String, result: &ClusterResult) {
    let of = |point| Some((point, measured_gain(result, point)?));
    let all: Vec<(&ClusterPoint, MeasuredGain)> = result.points.iter().filter_map(of).collect();
    let size = |gain: &MeasuredGain| gain.off().abs();
    let Some((worst, gain)) = all.iter().max_by(|one, other| size(&one.1).total_cmp(&size(&other.1))) else {
        return;
    };
    let average = all.iter().map(|(_, gain)| size(gain)).sum::<f64>() / all.len() as f64;
    let first = result.points.first().map_or("", |point| &point.policy);
    line(
        text,
        &format!(
            "{} gains over {first} were measured: off by {:.1} points on average, {:.1} at most ({} with {}: {:+.1} % here, {:+.1} % \
             measured)",
            all.len(),
            average * 100.0,
            size(gain) * 100.0,
            worst.policy,
            load(worst),
            gain.here * 100.0,
            gain.measured * 100.0
        ),
    );
}

/// Response times of each service, under each load: for a workload that is a list of files.
pub fn services_text(result: &ClusterResult) -> String {
    let mut text = format!(
        "\n{:>10}  {:<12} {:>8} {:<34} {:>9} {:>11} {:>9} {:>8} {:>8} {:>8} {:>10}\n",
        "load",
        "policy",
        "Mbit/s",
        "file",
        "responses",
        "shortest ms",
        "mean ms",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "longest ms"
    );
    for point in &result.points {
        let all = ("all", &point.response_us);
        let each = point.services.iter().map(|service| (service.name.as_str(), &service.response_us));
        for (number, (name, times)) in std::iter::once(all).chain(each).enumerate() {
            let (load, policy, rate) = match number {
                0 => (load(point), point.policy.as_str(), format!("{:.2}", megabits_per_s(result, point))),
                _ => (String::new(), "", String::new()),
            };
            let mean = times.mean.map_or(NOTHING.to_owned(), |us| format!("{:.1}", us / 1e3));
            let shortest = ms(times.min);
            let [half, most, nearly, longest] = [times.p50, times.p90, times.p99, times.max].map(ms);
            let _ = writeln!(
                text,
                "{load:>10}  {policy:<12} {rate:>8} {name:<34} {:>9} {shortest:>11} {mean:>9} {half:>8} {most:>8} {nearly:>8} {longest:>10}",
                times.count
            );
        }
    }
    text
}

/// One result against another, as text.
pub fn difference_text(difference: &ResultDifference) -> String {
    let mut text = format!("\nagainst {}\n", difference.name);
    let (Some(average), Some(most)) = (difference.average, difference.most) else {
        line(
            &mut text,
            "they have no point in common: mix, cluster, policy and load must be called the same",
        );
        return text;
    };
    line(&mut text, &format!("{:>10}  {:<12} {:>10} {:>10} {:>8}", "load", "policy", "here", "there", "off"));
    for point in &difference.points {
        let load = match (point.clients, point.rate_per_s) {
            (Some(clients), _) => format!("{clients} clients"),
            (None, rate) => format!("{}/s", rate.unwrap_or(0.0)),
        };
        let _ = writeln!(
            text,
            "{load:>10}  {:<12} {:>10.1} {:>10.1} {:>+7.1}%",
            point.policy,
            point.responses_per_s,
            point.other_per_s,
            point.off * 100.0
        );
    }
    let count = difference.points.len();
    line(
        &mut text,
        &format!("{count} points: off by {:.1} % on average, {:.1} % at most", average * 100.0, most * 100.0),
    );
    text
}
