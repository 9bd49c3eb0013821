//! What one run measured, in the stretches of its schedule that it is judged by.

use std::collections::BTreeMap;

use assay_measurement::censored::Censored;
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::HostInterval;
use assay_record::caches::CacheLogs;
use assay_record::run::{PhaseInfo, RunInfo};
use assay_record::series::Series;

use super::metric;
use super::saturation::{self, Second};
use assay_report::cache_logs;
use assay_report::document::CacheSources;
use assay_report::document::Figures;
use assay_report::figures::figures;
use assay_report::tally::{self, Span, Tally};

/// A value of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    pub value: f64,
    /// It is a lower bound.
    pub at_least: bool,
}

/// A stretch of the schedule: one phase, or all that are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub name: String,
    /// Indices of its phases.
    pub phases: Vec<usize>,
    /// Subjects are judged by it: it has a row in the table of scenarios.
    pub judged: bool,
}

/// What the whole of the measured phases is called.
pub const WHOLE: &str = "whole run";
/// Where no phase is marked as primary, one that takes this much of the measured time is judged by itself.
const JUDGED_SHARE: f64 = 0.2;
/// A phase in which so much less is asked for again than in others fills the cache, and is not judged by itself.
const FILLING: f64 = 0.5;

/// The stretches of a schedule: each phase that belongs into the statistics, and all of them together. Judged are those
/// that the workload marks as primary; where it marks none, those that take most of the time.
pub fn scopes(phases: &[PhaseInfo]) -> Vec<Scope> {
    let of = |wanted: fn(&PhaseInfo) -> bool| -> Vec<usize> {
        (0..phases.len()).filter(|index| wanted(&phases[*index])).collect()
    };
    let (primary, mut measured) = (of(|phase| phase.primary), of(|phase| phase.log_stats || phase.primary));
    if measured.is_empty() {
        measured = of(|_| true);
    }
    let length = |index: usize| -> f64 {
        let phase = &phases[index];
        let planned = phase.planned_end_ms.zip(phase.planned_start_ms);
        let known = planned.or(phase.end_ms.zip(phase.start_ms));
        known.map_or(0.0, |(end, start)| end.saturating_sub(start) as f64)
    };
    let recurrence = |index: usize| (phases[index].recurrence.0 + phases[index].recurrence.1) / 2.0;
    let most = measured.iter().map(|index| recurrence(*index)).fold(0.0, f64::max);
    let total: f64 = measured.iter().map(|index| length(*index)).sum();
    let judged = |index: usize| match primary.is_empty() {
        false => primary.contains(&index),
        true => length(index) >= total * JUDGED_SHARE && recurrence(index) >= most * FILLING,
    };
    let alone = measured.len() == 1;
    let mut scopes: Vec<Scope> = measured
        .iter()
        .map(|index| Scope {
            name: phases[*index].name.clone(),
            phases: vec![*index],
            judged: alone || (total > 0.0 && judged(*index)),
        })
        .collect();
    if !alone && !measured.is_empty() {
        let judged = !scopes.iter().any(|scope| scope.judged);
        let phases = if primary.is_empty() { measured } else { primary };
        if phases.len() > 1 {
            scopes.push(Scope { name: WHOLE.to_owned(), phases, judged });
        }
    }
    scopes
}

/// What the disk did for the proxy, in bytes per second; none: nobody watched.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Disk {
    pub read: Option<f64>,
    pub written: Option<f64>,
}

impl Disk {
    pub fn both(self) -> Option<f64> {
        match (self.read, self.written) {
            (None, None) => None,
            (read, written) => Some(read.unwrap_or(0.0) + written.unwrap_or(0.0)),
        }
    }
}

/// Everything that metrics are read from.
pub struct Measured {
    pub tally: Tally,
    pub figures: Figures,
    /// Response times of all, as long as they had waited where they have no end.
    pub all: Censored,
    /// Response times of all that completed.
    pub completed: Histogram,
    /// Mean over seconds of the mean response time of that second: every rate that was met counts alike.
    pub response_by_second_ms: Option<f64>,
    /// The same of the origins' service time.
    pub origin_by_second_ms: Option<f64>,
    pub saturation: Option<Number>,
    pub disk: Disk,
    /// Where several caches work together: from where plain GETs were answered, for all of them.
    pub sources: Option<CacheSources>,
}

/// The numbers of one stretch of one run.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    pub values: BTreeMap<&'static str, Number>,
    /// Errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// Response times of all, as long as they had waited where they have no end.
    pub times: SparseHistogram,
}

/// The numbers of every stretch.
pub fn of_run(info: &RunInfo, series: &Series, caches: Option<&CacheLogs>, scopes: &[Scope]) -> Vec<Numbers> {
    let spans = tally::spans(info, series);
    let parts = Tally::of_phases(series, &spans);
    scopes
        .iter()
        .map(|scope| {
            let mut measured = measured(info, series, &spans, &parts, scope);
            measured.sources = caches.and_then(|logs| cache_logs::together(logs, &scope.phases));
            let values = metric::all().filter_map(|metric| Some((metric.key, (metric.read)(&measured)?)));
            Numbers {
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
) -> Measured {
    let tally = Tally::of_some(scope.phases.iter().filter_map(|index| parts.get(*index)));
    let in_scope = |phase: u16| scope.phases.contains(&usize::from(phase));
    let stretches: Vec<Span> = scope.phases.iter().filter_map(|index| *spans.get(*index)?).collect();
    Measured {
        figures: figures(&tally),
        all: tally.response(),
        completed: tally.completed(|times| &times.response),
        response_by_second_ms: mean_of_seconds(
            series
                .robots
                .iter()
                .filter(|interval| in_scope(interval.phase))
                .flat_map(|interval| interval.completed().map(|times| (interval.start_ms, &times.response))),
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
        second.1 += histogram.buckets.iter().map(|bucket| bucket.1).sum::<u64>();
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

/// Where the target stopped keeping up while the load rose; none: it does not rise here, or robots wait for answers
/// before they ask again, so that nothing is offered.
fn saturation_point(info: &RunInfo, series: &Series, scope: &Scope, stretches: &[Span]) -> Option<Number> {
    let rises = |index: usize| info.phases.get(index).is_some_and(|phase| saturation::rises(phase.load));
    if !info.boundaries.is_empty() {
        return None;
    }
    let mut seconds: BTreeMap<u64, Second> = BTreeMap::new();
    for interval in &series.robots {
        let index = usize::from(interval.phase);
        if !scope.phases.contains(&index) || !rises(index) || !within(interval.start_ms, stretches) {
            continue;
        }
        let second = seconds.entry(interval.start_ms / 1000).or_default();
        second.length_ms = second.length_ms.max(interval.length_ms);
        second.offered += interval.counts.due;
        second.completed += interval.counts.completed;
        for times in interval.completed().map(|times| &times.response) {
            second.response_sum_us += times.sum_us;
            second.responses += times.buckets.iter().map(|bucket| bucket.1).sum::<u64>();
        }
    }
    saturation::find(&seconds.into_values().collect::<Vec<_>>())
}

/// Columns of the host's series that hold bytes of the disk, by name: they are taken where they are.
const READ: &str = "disk_read_bytes";
const WRITTEN: &str = "disk_written_bytes";

fn disk(host: &[HostInterval], stretches: &[Span]) -> Disk {
    let mut disk = Disk::default();
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
        disk = Disk { read: read.map(per_second), written: written.map(per_second) };
    }
    disk
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(name: &str, seconds: u64, log_stats: bool, primary: bool, recurrence: f64) -> PhaseInfo {
        PhaseInfo {
            name: name.into(),
            planned_start_ms: Some(0),
            planned_end_ms: Some(seconds * 1000),
            log_stats,
            primary,
            recurrence: (recurrence, recurrence),
            load: (1.0, 1.0),
            ..PhaseInfo::default()
        }
    }

    fn judged(scopes: &[Scope]) -> Vec<&str> {
        scopes.iter().filter(|scope| scope.judged).map(|scope| scope.name.as_str()).collect()
    }

    #[test]
    fn subjects_are_judged_by_primary_phases_or_else_by_those_that_take_most_of_the_time() {
        let mut phases = vec![
            phase("warm", 300, false, false, 1.0),
            phase("fill", 4000, true, false, 0.05),
            phase("link", 300, true, false, 1.0),
            phase("top1", 3600, true, false, 1.0),
            phase("inc", 6000, true, false, 1.0),
            phase("top2", 600, true, false, 1.0),
        ];
        let found = scopes(&phases);
        assert_eq!(judged(&found), ["top1", "inc"], "as the study of 2012 did");
        assert_eq!(
            found.last().unwrap(),
            &Scope { name: WHOLE.into(), phases: vec![1, 2, 3, 4, 5], judged: false }
        );
        phases[5].primary = true;
        let found = scopes(&phases);
        assert_eq!(judged(&found), ["top2"]);
        assert_eq!(found.len(), 5, "the only primary phase is the whole");
    }

    #[test]
    fn the_whole_is_judged_where_no_phase_stands_out() {
        let phases: Vec<_> = (0..8).map(|n| phase(&n.to_string(), 10, true, false, 1.0)).collect();
        assert_eq!(judged(&scopes(&phases)), [WHOLE]);
        assert_eq!(judged(&scopes(&phases[..1])), ["0"]);
        assert!(scopes(&[]).is_empty());
        let unknown = PhaseInfo { name: "x".into(), log_stats: true, ..PhaseInfo::default() };
        assert_eq!(judged(&scopes(&[unknown.clone(), unknown])), [WHOLE], "lengths are not known");
    }

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
        assert_eq!(disk(&[proxy], &stretch), Disk::default(), "nobody watched");
        assert_eq!(disk(&[], &stretch), Disk::default());
        assert_eq!(Disk { read: Some(1.0), written: None }.both(), Some(1.0));
    }
}
