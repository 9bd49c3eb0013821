//! The numbers of a run that are compared: which direction is good, and which difference is worth mentioning.

use assay_measurement::error_kind::ErrorKind;
use assay_measurement::times::SpanOf;

use super::measured::{MetricValue, ScopeMeasurements};
use crate::estimate::XactClass;
use crate::format;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a metric is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Group")]
pub enum MetricGroup {
    /// How fast?
    Speed,
    /// What was saved?
    Savings,
    /// Was anything wrong?
    Correctness,
    /// What did it cost?
    Cost,
}

/// Which direction is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// Neither: it explains others, and has no verdict.
    Neither,
}

/// Unit in which a metric is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
    PerSecond,
    Milliseconds,
    Microseconds,
    /// A share of one, shown in percent; differences in points.
    Share,
    Processors,
    Bytes,
    BytesPerSecond,
}

impl MetricUnit {
    pub fn name(self) -> &'static str {
        match self {
            MetricUnit::PerSecond => "1/s",
            MetricUnit::Milliseconds => "ms",
            MetricUnit::Microseconds => "µs",
            MetricUnit::Share => "%",
            MetricUnit::Processors => "processors",
            MetricUnit::Bytes => "MB",
            MetricUnit::BytesPerSecond => "MB/s",
        }
    }

    /// The number that stands before [`MetricUnit::name`].
    pub fn scaled(self, value: f64) -> f64 {
        match self {
            MetricUnit::Share => value * 100.0,
            MetricUnit::Bytes | MetricUnit::BytesPerSecond => value / f64::from(1 << 20),
            _ => value,
        }
    }

    pub fn show(self, value: f64) -> String {
        format::number(self.scaled(value))
    }
}

/// The smallest difference that is worth mentioning: the larger of the two.
#[derive(Debug, Clone, Copy)]
pub struct RelevanceThreshold {
    pub absolute: f64,
    /// Of the base's level.
    pub relative: f64,
}

impl RelevanceThreshold {
    pub fn at(self, level: f64) -> f64 {
        self.absolute.max(self.relative * level.abs())
    }
}

pub struct ComparedMetric {
    /// Name, with its unit.
    pub key: &'static str,
    pub title: &'static str,
    pub unit: MetricUnit,
    pub group: MetricGroup,
    pub better: Direction,
    pub worth: RelevanceThreshold,
    /// Resolution of a value, as a share of its level.
    pub resolution: f64,
    /// Heading in the table of scenarios, when it stands there.
    pub heading: Option<&'static str>,
    pub read: fn(&ScopeMeasurements) -> Option<MetricValue>,
}

const fn worth(absolute: f64, relative: f64) -> RelevanceThreshold {
    RelevanceThreshold { absolute, relative }
}

const RATE: RelevanceThreshold = worth(0.5, 0.01);
const TIME_MS: RelevanceThreshold = worth(0.02, 0.02);
const POINTS: RelevanceThreshold = worth(0.005, 0.0);
const ERRORS: RelevanceThreshold = worth(1e-5, 0.0);
const COST: RelevanceThreshold = worth(0.0, 0.03);
const DISK: RelevanceThreshold = worth(10_240.0, 0.05);
/// Histograms are 0.1 % wide; counts are finer than that wherever a difference is worth mentioning.
const FINE: f64 = 0.001;
/// A saturation point is found to the second of a ramp.
const COARSE: f64 = 0.02;

const fn metric(
    key: &'static str,
    title: &'static str,
    unit: MetricUnit,
    group: MetricGroup,
    better: Direction,
    worth: RelevanceThreshold,
    read: fn(&ScopeMeasurements) -> Option<MetricValue>,
) -> ComparedMetric {
    ComparedMetric { key, title, unit, group, better, worth, resolution: FINE, heading: None, read }
}

const fn headline(heading: &'static str, metric: ComparedMetric) -> ComparedMetric {
    ComparedMetric { heading: Some(heading), ..metric }
}

fn exact(value: Option<f64>) -> Option<MetricValue> {
    value.filter(|value| value.is_finite()).map(MetricValue::exact)
}

fn share(part: u64, whole: u64) -> Option<MetricValue> {
    exact((whole > 0).then(|| part as f64 / whole as f64))
}

fn over(part: Option<f64>, whole: Option<f64>) -> Option<MetricValue> {
    exact(part.zip(whole.filter(|whole| *whole > 0.0)).map(|(part, whole)| part / whole))
}

/// A percentile of the response times of a class: a lower bound where requests without an end leave it open.
fn quantile_ms(m: &ScopeMeasurements, class: XactClass, quantile: f64) -> Option<MetricValue> {
    MetricValue::from_estimate(m.tally.times(SpanOf::Response, class).quantile(quantile), 1e-3)
}

/// The mean of the response times of a class.
fn mean_ms(m: &ScopeMeasurements, class: XactClass) -> Option<MetricValue> {
    MetricValue::from_estimate(m.tally.times(SpanOf::Response, class).mean(), 1e-3)
}

/// A number of the document that is no time, with its interval there.
fn figure(m: &ScopeMeasurements, name: &str, value: Option<f64>) -> Option<MetricValue> {
    let number = exact(value)?;
    match m.figures.own.get(name) {
        Some(own) => Some(MetricValue { own: (own.low?, own.high), ..number }),
        None => Some(number),
    }
}

/// Errors of which `wanted` says so, of all requests that were sent.
fn errors(m: &ScopeMeasurements, wanted: fn(ErrorKind) -> bool) -> Option<MetricValue> {
    let found = m.tally.robots.errors.iter().filter(|(kind, _)| wanted(**kind)).map(|(_, count)| count).sum();
    share(found, m.tally.robots.sent)
}

/// Plain GETs whose response came from there, of all; by the logs of caches that work together.
fn from(m: &ScopeMeasurements, sources: &[&str]) -> Option<MetricValue> {
    let all = m.sources.as_ref()?;
    let found = all.sources.iter().filter(|found| sources.contains(&found.source.as_str()));
    share(found.map(|found| found.requests).sum(), all.requests)
}

const SPEED: &[ComparedMetric] = {
    use Direction::{Less, More, Neither};
    use MetricGroup::Speed;
    use MetricUnit::{Milliseconds, PerSecond, Share};
    &[
        metric("offered_per_s", "Offered rate", PerSecond, Speed, Neither, RATE, |m| {
            exact(m.figures.rate.offered)
        }),
        headline(
            "Throughput",
            metric("throughput_per_s", "Throughput", PerSecond, Speed, More, RATE, |m| {
                figure(m, "rate.measured", m.figures.rate.measured)
            }),
        ),
        metric("unsent_share", "Due but never sent", Share, Speed, Less, POINTS, |m| {
            share(m.tally.robots.unsent, m.tally.robots.due)
        }),
        headline(
            "Response time",
            metric(
                "response_mean_ms",
                "Response time of complete responses, mean",
                Milliseconds,
                Speed,
                Less,
                TIME_MS,
                |m| mean_ms(m, XactClass::Completed),
            ),
        ),
        metric("response_p50_ms", "Response time, median", Milliseconds, Speed, Less, TIME_MS, |m| {
            quantile_ms(m, XactClass::All, 0.5)
        }),
        metric("response_p95_ms", "Response time, 95 %", Milliseconds, Speed, Less, TIME_MS, |m| {
            quantile_ms(m, XactClass::All, 0.95)
        }),
        metric("response_p99_ms", "Response time, 99 %", Milliseconds, Speed, Less, TIME_MS, |m| {
            quantile_ms(m, XactClass::All, 0.99)
        }),
        metric("hit_mean_ms", "Hits, mean", Milliseconds, Speed, Less, TIME_MS, |m| {
            mean_ms(m, XactClass::Hit)
        }),
        metric("hit_p50_ms", "Hits, median", Milliseconds, Speed, Less, TIME_MS, |m| {
            quantile_ms(m, XactClass::Hit, 0.5)
        }),
        metric("hit_p95_ms", "Hits, 95 %", Milliseconds, Speed, Less, TIME_MS, |m| {
            quantile_ms(m, XactClass::Hit, 0.95)
        }),
        metric("hit_p99_ms", "Hits, 99 %", Milliseconds, Speed, Less, TIME_MS, |m| {
            quantile_ms(m, XactClass::Hit, 0.99)
        }),
        metric("miss_mean_ms", "Misses, mean", Milliseconds, Speed, Less, TIME_MS, |m| {
            mean_ms(m, XactClass::Miss)
        }),
        metric("miss_p50_ms", "Misses, median", Milliseconds, Speed, Less, TIME_MS, |m| {
            quantile_ms(m, XactClass::Miss, 0.5)
        }),
        metric("miss_p95_ms", "Misses, 95 %", Milliseconds, Speed, Less, TIME_MS, |m| {
            quantile_ms(m, XactClass::Miss, 0.95)
        }),
        metric("miss_p99_ms", "Misses, 99 %", Milliseconds, Speed, Less, TIME_MS, |m| {
            quantile_ms(m, XactClass::Miss, 0.99)
        }),
        headline(
            "Resp. time/rate, client",
            metric(
                "response_by_second_ms",
                "Response time/rate, client",
                Milliseconds,
                Speed,
                Less,
                TIME_MS,
                |m| exact(m.response_by_second_ms),
            ),
        ),
        headline(
            "Resp. time/rate, server",
            metric(
                "origin_by_second_ms",
                "Response time/rate, server",
                Milliseconds,
                Speed,
                Less,
                TIME_MS,
                |m| exact(m.origin_by_second_ms),
            ),
        ),
        ComparedMetric {
            resolution: COARSE,
            ..headline(
                "Saturation point",
                metric(
                    "saturation_per_s",
                    "Saturation point",
                    PerSecond,
                    Speed,
                    More,
                    worth(1.0, 0.03),
                    |m| m.saturation,
                ),
            )
        },
    ]
};

const SAVINGS: &[ComparedMetric] = {
    use Direction::{More, Neither};
    use MetricGroup::Savings;
    use MetricUnit::Share;
    &[
        metric("dhr_offered", "DHR offered", Share, Savings, Neither, POINTS, |m| {
            exact(m.figures.dhr.offered)
        }),
        metric("dhr_ideal", "DHR ideal", Share, Savings, Neither, POINTS, |m| exact(m.figures.dhr.ideal)),
        headline(
            "DHR",
            metric("dhr", "DHR measured", Share, Savings, More, POINTS, |m| {
                figure(m, "dhr.measured", m.figures.dhr.measured)
            }),
        ),
        metric("dhr_of_ideal", "DHR, share of ideal", Share, Savings, More, POINTS, |m| {
            over(m.figures.dhr.measured, m.figures.dhr.ideal)
        }),
        metric("bhr_offered", "BHR offered", Share, Savings, Neither, POINTS, |m| {
            exact(m.figures.bhr.offered)
        }),
        metric("bhr_ideal", "BHR ideal", Share, Savings, Neither, POINTS, |m| exact(m.figures.bhr.ideal)),
        headline(
            "BHR",
            metric("bhr", "BHR measured", Share, Savings, More, POINTS, |m| {
                figure(m, "bhr.measured", m.figures.bhr.measured)
            }),
        ),
        metric("bhr_of_ideal", "BHR, share of ideal", Share, Savings, More, POINTS, |m| {
            over(m.figures.bhr.measured, m.figures.bhr.ideal)
        }),
        metric("local_hits", "Hits of each cache's own store", Share, Savings, Neither, POINTS, |m| {
            from(m, &["local", "joined"])
        }),
        metric("sibling_hits", "Hits of siblings", Share, Savings, Neither, POINTS, |m| {
            from(m, &["sibling"])
        }),
        metric("parent_hits", "Hits of parents", Share, Savings, Neither, POINTS, |m| from(m, &["parent"])),
        metric("offload_requests", "Requests kept from the origins", Share, Savings, More, POINTS, |m| {
            figure(m, "offload.requests", m.figures.offload.requests)
        }),
        metric("offload_bytes", "Bytes kept from the origins", Share, Savings, More, POINTS, |m| {
            figure(m, "offload.bytes", m.figures.offload.bytes)
        }),
    ]
};

const CORRECTNESS: &[ComparedMetric] = {
    use Direction::Less;
    use MetricGroup::Correctness;
    use MetricUnit::Share;
    &[
        metric("errors_share", "Errors of any kind", Share, Correctness, Less, ERRORS, |m| {
            errors(m, |_| true)
        }),
        metric("content_errors_share", "Not as requested", Share, Correctness, Less, ERRORS, |m| {
            errors(m, ErrorKind::is_not_as_requested)
        }),
        metric(
            "caching_errors_share",
            "Served what may not be served",
            Share,
            Correctness,
            Less,
            ERRORS,
            |m| errors(m, ErrorKind::is_not_to_be_served),
        ),
    ]
};

const COSTS: &[ComparedMetric] = {
    use Direction::Less;
    use MetricGroup::Cost;
    use MetricUnit::{Bytes, BytesPerSecond, Microseconds, Processors};
    &[
        headline(
            "CPU per request",
            metric("cpu_us_per_request", "Processor time per request", Microseconds, Cost, Less, COST, |m| {
                exact(m.figures.cpu_us_per_request.get("proxy").copied().flatten())
            }),
        ),
        metric("cpu_processors", "Processors used", Processors, Cost, Less, COST, |m| {
            exact(m.figures.resources.get("proxy").and_then(|used| used.cpu_cores))
        }),
        headline(
            "Memory",
            metric("rss_peak_bytes", "Resident memory, peak", Bytes, Cost, Less, COST, |m| {
                let peak = m.figures.resources.get("proxy").map(|used| used.rss_peak_bytes as f64);
                exact(peak.filter(|peak| *peak > 0.0))
            }),
        ),
        headline(
            "Disk",
            metric("disk_bytes_per_s", "Disk, read and written", BytesPerSecond, Cost, Less, DISK, |m| {
                exact(m.disk.both())
            }),
        ),
        metric("disk_read_bytes_per_s", "Disk, read", BytesPerSecond, Cost, Less, DISK, |m| {
            exact(m.disk.read)
        }),
        metric("disk_written_bytes_per_s", "Disk, written", BytesPerSecond, Cost, Less, DISK, |m| {
            exact(m.disk.written)
        }),
    ]
};

/// All metrics, in the order of tables.
pub fn all() -> impl Iterator<Item = &'static ComparedMetric> {
    SPEED.iter().chain(SAVINGS).chain(CORRECTNESS).chain(COSTS)
}

/// The metric with this name.
pub fn named(key: &str) -> Option<&'static ComparedMetric> {
    all().find(|metric| metric.key == key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_headlines_have_a_direction() {
        let keys: BTreeSet<_> = all().map(|metric| metric.key).collect();
        assert_eq!(keys.len(), all().count());
        assert!(all().filter(|m| m.heading.is_some()).all(|m| m.better != Direction::Neither));
        assert!(named("dhr").is_some() && named("nothing").is_none());
    }

    #[test]
    fn units_are_shown_as_people_read_them() {
        assert_eq!(MetricUnit::Share.show(0.5432), "54.3");
        assert_eq!(MetricUnit::Share.show(0.000_012), "0.001");
        assert_eq!(MetricUnit::Bytes.show(3.0 * 1_048_576.0), "3.00");
        assert!((worth(0.5, 0.01).at(1000.0) - 10.0).abs() < 1e-12);
    }
}
