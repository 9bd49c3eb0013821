//! Metrics of one run, in the scopes that it is judged by.

use std::collections::BTreeMap;

use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::SparseHistogram;
use assay_measurement::interval::HostInterval;
use assay_measurement::measured::Series;
use assay_measurement::times::SpanOf;
use assay_record::caches::CacheLogs;
use assay_record::run::RunInfo;

use super::measured::{DiskRates, MetricValue, ScopeMeasurements};
use super::metric;
use super::saturation::{self, LoadSecond};
use super::scope::Scope;
use crate::cache_logs;
use crate::estimate::XactClass;
use crate::figures::figures;
use crate::tally::{self, Span, Tally};

/// The numbers of one stretch of one run.
#[derive(Debug, Clone, Default)]
pub struct MetricValues {
    pub values: BTreeMap<&'static str, MetricValue>,
    /// Errors by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Response times of all, as long as they had waited where they have no end.
    pub times: SparseHistogram,
}

/// The numbers of every stretch.
pub fn metric_values(
    info: &RunInfo,
    series: &Series,
    caches: Option<&CacheLogs>,
    scopes: &[Scope],
) -> Vec<MetricValues> {
    let spans = tally::spans(info, series);
    let parts = Tally::of_phases(info, series, &spans, &[]);
    scopes
        .iter()
        .map(|scope| {
            let mut measured = measured(info, series, &spans, &parts, scope);
            measured.sources = caches.and_then(|logs| cache_logs::together(logs, &scope.phases));
            let values = metric::all().filter_map(|metric| Some((metric.key, (metric.read)(&measured)?)));
            MetricValues {
                values: values.collect(),
                errors: measured.figures.errors.by_kind.clone(),
                times: measured.all.shortest().to_sparse(),
            }
        })
        .collect()
}

fn measured(
    info: &RunInfo,
    series: &Series,
    spans: &[Option<Span>],
    parts: &[Tally],
    scope: &Scope,
) -> ScopeMeasurements {
    let tally = Tally::of_some(scope.phases.iter().filter_map(|index| parts.get(*index)));
    let in_scope = |phase: u16| scope.phases.contains(&usize::from(phase));
    let stretches: Vec<Span> = scope.phases.iter().filter_map(|index| *spans.get(*index)?).collect();
    ScopeMeasurements {
        figures: figures(&tally),
        all: tally.times(SpanOf::Response, XactClass::All).times().clone(),
        response_by_second_ms: mean_of_seconds(
            series.robots.iter().filter(|interval| in_scope(interval.phase)).flat_map(|interval| {
                interval.times.completed().map(|times| (interval.start_ms, &times.response))
            }),
            &stretches,
        ),
        origin_by_second_ms: mean_of_seconds(
            series
                .origins
                .iter()
                .filter(|interval| in_scope(interval.phase))
                .map(|interval| (interval.start_ms, &interval.service)),
            &stretches,
        ),
        saturation: saturation_point(info, series, scope, &stretches),
        disk: disk(&series.host, &stretches),
        sources: None,
        tally,
    }
}

/// The mean over seconds of the mean of each second. What ends after its phase did counts for no second: it would be
/// the mean of a few stragglers.
fn mean_of_seconds<'a>(
    times: impl Iterator<Item = (u64, &'a SparseHistogram)>,
    stretches: &[Span],
) -> Option<f64> {
    let mut seconds: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (start_ms, histogram) in times {
        if !within(start_ms, stretches) {
            continue;
        }
        let second = seconds.entry(start_ms / 1000).or_default();
        second.0 += histogram.sum_us;
        second.1 += histogram.count();
    }
    let means: Vec<f64> = seconds
        .values()
        .filter(|second| second.1 > 0)
        .map(|(sum, n)| *sum as f64 / *n as f64 / 1000.0)
        .collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}

fn within(start_ms: u64, stretches: &[Span]) -> bool {
    stretches.iter().any(|span| start_ms >= span.start_ms && start_ms < span.end_ms)
}

/// Offered rate from which on the target no longer kept up while the load rose; none: the load does not rise here, or
/// robots wait for responses before they send again, so that nothing is offered.
fn saturation_point(
    info: &RunInfo,
    series: &Series,
    scope: &Scope,
    stretches: &[Span],
) -> Option<MetricValue> {
    let rises = |index: usize| {
        info.phases.get(index).is_some_and(|phase| saturation::rises(phase.load.0, phase.load.1))
    };
    if !info.boundaries.is_empty() {
        return None;
    }
    let mut seconds: BTreeMap<u64, LoadSecond> = BTreeMap::new();
    for interval in &series.robots {
        let index = usize::from(interval.phase);
        if !scope.phases.contains(&index) || !rises(index) || !within(interval.start_ms, stretches) {
            continue;
        }
        let second = seconds.entry(interval.start_ms / 1000).or_default();
        second.length_ms = second.length_ms.max(interval.length_ms);
        second.offered += interval.counts.due;
        second.completed += interval.counts.completed;
        for times in interval.times.completed().map(|times| &times.response) {
            second.response_sum_us += times.sum_us;
            second.responses += times.count();
        }
    }
    saturation::find(&seconds.into_values().collect::<Vec<_>>())
}

/// Columns of the host's series that hold bytes of the disk, by name: they are taken where they are.
const READ: &str = "disk_read_bytes";
const WRITTEN: &str = "disk_written_bytes";

fn disk(host: &[HostInterval], stretches: &[Span]) -> DiskRates {
    let mut disk = DiskRates::default();
    let mut watched_ms = 0;
    let (mut read, mut written) = (None, None);
    for interval in host.iter().filter(|interval| interval.role == "proxy") {
        if !within(interval.start_ms, stretches) {
            continue;
        }
        let Ok(serde_json::Value::Object(columns)) = serde_json::to_value(interval) else { continue };
        let column = |name: &str| columns.get(name)?.as_f64();
        watched_ms += interval.length_ms;
        for (sum, found) in [(&mut read, column(READ)), (&mut written, column(WRITTEN))] {
            if let Some(bytes) = found {
                *sum = Some(sum.unwrap_or(0.0) + bytes);
            }
        }
    }
    if watched_ms > 0 {
        let per_second = |bytes: f64| bytes * 1000.0 / watched_ms as f64;
        disk = DiskRates { read: read.map(per_second), written: written.map(per_second) };
    }
    disk
}

#[cfg(test)]
mod tests {
    use assay_measurement::histogram::Histogram;

    use super::*;

    #[test]
    fn every_second_counts_alike_and_stragglers_do_not() {
        let times = |count: u64, us: u64| {
            let mut histogram = Histogram::new();
            (0..count).for_each(|_| histogram.record(us));
            histogram.to_sparse()
        };
        let (busy, quiet, late) = (times(1000, 3000), times(10, 1000), times(1, 9_000_000));
        let seconds = [(0, &busy), (1000, &quiet), (5000, &late)];
        let stretch = [Span { start_ms: 0, end_ms: 5000 }];
        assert_eq!(mean_of_seconds(seconds.into_iter(), &stretch), Some(2.0));
        assert_eq!(mean_of_seconds([].into_iter(), &stretch), None);
    }

    #[test]
    fn disk_columns_are_taken_where_they_are() {
        let proxy = HostInterval { role: "proxy".into(), length_ms: 1000, ..HostInterval::default() };
        let stretch = [Span { start_ms: 0, end_ms: 5000 }];
        assert_eq!(disk(&[proxy], &stretch), DiskRates::default(), "nobody watched");
        assert_eq!(disk(&[], &stretch), DiskRates::default());
        assert_eq!(DiskRates { read: Some(1.0), written: None }.both(), Some(1.0));
    }
}
