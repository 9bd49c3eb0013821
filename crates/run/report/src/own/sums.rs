//! Health of Assay, added up: from the records of threads and the machine to the numbers of the document.

use std::collections::BTreeMap;

use assay_measurement::health::{Baseline, NetworkInterval, Stall, ThreadInterval};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::machine::MachineInterval;
use assay_measurement::measured::Series;
use assay_record::run::RunInfo;

use super::health::{Health, Lags, NetworkHealth, RoleHealth, StallCause, StallHealth, ThreadHealth};
use crate::document::PhaseFigures;
use crate::figures::round;
use crate::tally::Tally;

/// Roles whose counters Assay is responsible for.
pub(crate) const ROLES: [&str; 2] = ["robots", "origins"];

/// The health of a run.
pub(crate) fn health(info: &RunInfo, series: &Series, total: &Tally, phases: &[PhaseFigures]) -> Health {
    let mut threads: BTreeMap<(&str, u32), ThreadTotals<'_>> = BTreeMap::new();
    let mut roles: BTreeMap<&str, ThreadTotals<'_>> = BTreeMap::new();
    for interval in &series.threads {
        threads.entry((&interval.role, interval.thread)).or_default().interval(interval);
        roles.entry(&interval.role).or_default().interval(interval);
    }
    for stall in &series.stalls {
        threads.entry((&stall.role, stall.thread)).or_default().stall(stall);
        roles.entry(&stall.role).or_default().stall(stall);
    }
    for baseline in &series.baselines {
        threads.entry((&baseline.role, baseline.thread)).or_default().baseline(baseline);
        roles.entry(&baseline.role).or_default().baseline(baseline);
    }
    for role in ROLES.into_iter().filter(|role| total.resources.contains_key(*role)) {
        roles.entry(role).or_default();
    }
    Health {
        roles: roles.iter().map(|(role, sum)| ((*role).to_owned(), role_health(role, sum, total))).collect(),
        threads: threads.iter().map(|((role, thread), sum)| thread_health(role, *thread, sum)).collect(),
        longest_stall: series
            .stalls
            .iter()
            .max_by_key(|stall| stall.length_us)
            .map(|stall| stall_health(stall, phases)),
        processor_share: processor_share(info, total),
        stolen_share: stolen_share(info, total),
        metering_share: metering_share(&series.machine),
        network: network(&series.network),
    }
}

/// A thread, or all threads of a role.
#[derive(Default)]
struct ThreadTotals<'a> {
    cpu: Option<u32>,
    watched_us: u64,
    used_us: u64,
    run_delay_us: u64,
    used_peak: f64,
    run_delay_peak: f64,
    /// Added up one thread at a time, when all are known: a fleet has hundreds of threads, and a histogram takes some 200 KB.
    lags: Vec<&'a SparseHistogram>,
    baselines: Vec<&'a SparseHistogram>,
    stalls: u64,
    stalled_us: u64,
    longest_stall_us: Option<u64>,
    accept_queue_peak: u32,
    accept_queue_limit: u32,
}

/// Intervals shorter than this are no good for a peak: a few ticks of the kernel's clock make it.
const PEAK_MS: u64 = 500;

impl<'a> ThreadTotals<'a> {
    fn interval(&mut self, interval: &'a ThreadInterval) {
        self.cpu = interval.cpu.or(self.cpu);
        self.watched_us += interval.length_ms * 1000;
        self.used_us += interval.cpu_us;
        self.run_delay_us += interval.run_delay_us;
        if interval.length_ms >= PEAK_MS {
            let share = |us: u64| us as f64 / (interval.length_ms as f64 * 1000.0);
            self.used_peak = self.used_peak.max(share(interval.cpu_us));
            self.run_delay_peak = self.run_delay_peak.max(share(interval.run_delay_us));
        }
        self.lags.push(&interval.timer_lag);
        self.accept_queue_peak = self.accept_queue_peak.max(interval.accept_queue);
        self.accept_queue_limit = self.accept_queue_limit.max(interval.accept_queue_limit);
    }

    fn stall(&mut self, stall: &Stall) {
        self.stalls += 1;
        self.stalled_us += stall.length_us;
        self.longest_stall_us = self.longest_stall_us.max(Some(stall.length_us));
    }

    fn baseline(&mut self, baseline: &'a Baseline) {
        self.baselines.push(&baseline.lag);
        self.cpu = baseline.cpu.or(self.cpu);
    }

    /// Part of the watched time.
    fn share(&self, us: u64) -> Option<f64> {
        (self.watched_us > 0).then(|| round(us as f64 / self.watched_us as f64, 4))
    }

    /// The highest part of an interval; none: nothing was watched.
    fn peak(&self, share: f64) -> Option<f64> {
        (self.watched_us > 0).then(|| round(share, 4))
    }
}

fn role_health(role: &str, sum: &ThreadTotals<'_>, total: &Tally) -> RoleHealth {
    let lateness = if role == "robots" { &total.times.lateness } else { &total.origin_lateness };
    let listens = sum.accept_queue_limit > 0;
    RoleHealth {
        lateness_us: lags(lateness),
        timer_lag_us: lags(&merged(&sum.lags)),
        baseline_us: lags(&merged(&sum.baselines)),
        stalls: sum.stalls,
        stalled_ms: round(sum.stalled_us as f64 / 1000.0, 3),
        processor_share: sum.share(sum.used_us),
        processor_share_peak: sum.peak(sum.used_peak),
        run_delay_share: sum.share(sum.run_delay_us),
        run_delay_share_peak: sum.peak(sum.run_delay_peak),
        descriptors_peak: total.resources.get(role).map_or(0, |used| used.descriptors_peak),
        accept_queue_peak: listens.then_some(sum.accept_queue_peak.into()),
        accept_queue_limit: listens.then_some(sum.accept_queue_limit.into()),
    }
}

fn thread_health(role: &str, thread: u32, sum: &ThreadTotals<'_>) -> ThreadHealth {
    ThreadHealth {
        role: role.to_owned(),
        thread: thread.into(),
        cpu: sum.cpu.map(u64::from),
        baseline_us: lags(&merged(&sum.baselines)),
        timer_lag_us: lags(&merged(&sum.lags)),
        processor_share: sum.share(sum.used_us),
        run_delay_share: sum.share(sum.run_delay_us),
        stalls: sum.stalls,
        longest_stall_us: sum.longest_stall_us,
    }
}

pub(crate) fn stall_health(stall: &Stall, phases: &[PhaseFigures]) -> StallHealth {
    let on = |phase: &&PhaseFigures| {
        phase.start_ms.is_some_and(|start| start <= stall.at_ms)
            && phase.end_ms.is_some_and(|end| stall.at_ms < end)
    };
    StallHealth {
        role: stall.role.clone(),
        thread: stall.thread.into(),
        at_ms: stall.at_ms,
        length_us: stall.length_us,
        phase: phases.iter().find(on).map(|phase| phase.name.clone()),
        cause: cause(stall),
    }
}

/// Cause of a stall: whatever took most of the time. If neither the processor nor the wait for one explains it, the
/// process was stopped.
fn cause(stall: &Stall) -> StallCause {
    let most = |us: u64| us.saturating_mul(2) >= stall.length_us;
    if most(stall.cpu_us) && stall.cpu_us >= stall.run_delay_us {
        StallCause::Busy
    } else if most(stall.run_delay_us) {
        StallCause::NoProcessor
    } else {
        StallCause::Stopped
    }
}

fn merged(all: &[&SparseHistogram]) -> Histogram {
    let mut sum = Histogram::new();
    all.iter().for_each(|part| sum.merge_sparse(part));
    sum
}

fn lags(histogram: &Histogram) -> Lags {
    Lags {
        count: histogram.count(),
        p50: histogram.quantile_us(0.5),
        p90: histogram.quantile_us(0.9),
        p99: histogram.quantile_us(0.99),
        p999: histogram.quantile_us(0.999),
        max: histogram.max_us(),
    }
}

/// Share that robots and origins used of the processors that they may run on.
fn processor_share(info: &RunInfo, total: &Tally) -> Option<f64> {
    let own = || info.placement.iter().filter(|placed| ROLES.contains(&placed.role.as_str()));
    let mut processors: Vec<u32> = own().flat_map(|placed| placed.cpus.iter().copied()).collect();
    processors.sort_unstable();
    processors.dedup();
    // One that is pinned to none may use them all.
    let count = match own().all(|placed| !placed.cpus.is_empty()) {
        true => processors.len(),
        false => info.host.cpus as usize,
    };
    let used = ROLES.iter().filter_map(|role| total.resources.get(*role));
    let shares = used.filter(|used| used.watched_ms > 0.0).map(|used| used.cpu_us / 1000.0 / used.watched_ms);
    let (mut any, mut sum) = (false, 0.0);
    for share in shares {
        (any, sum) = (true, sum + share);
    }
    (any && count > 0).then(|| round(sum / count as f64, 4))
}

fn stolen_share(info: &RunInfo, total: &Tally) -> Option<f64> {
    let host = total.resources.get("host").filter(|host| host.watched_ms > 0.0)?;
    (info.host.cpus > 0)
        .then(|| round(host.steal_us / 1000.0 / host.watched_ms / f64::from(info.host.cpus), 4))
}

fn metering_share(intervals: &[MachineInterval]) -> Option<f64> {
    let length_ms: u64 = intervals.iter().map(|interval| interval.length_ms).sum();
    let took_us: u64 = intervals.iter().map(|interval| interval.metering_us).sum();
    (length_ms > 0).then(|| round(took_us as f64 / 1000.0 / length_ms as f64, 5))
}

fn network(intervals: &[NetworkInterval]) -> Option<NetworkHealth> {
    let mut sum = NetworkHealth::default();
    // Namespaces are measured side by side: what there was at the same time is added up.
    let mut levels: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for interval in intervals {
        sum.segments_out += interval.segments_out;
        sum.retransmitted += interval.retransmitted;
        sum.listen_overflows += interval.listen_overflows;
        sum.listen_drops += interval.listen_drops;
        sum.backlog_drops += interval.backlog_drops;
        sum.receive_drops += interval.receive_drops;
        sum.memory_pressures += interval.memory_pressures;
        let level = levels.entry(interval.start_ms).or_default();
        for (level, new) in
            level.iter_mut().zip([interval.sockets, interval.time_wait, interval.buffer_bytes])
        {
            *level += new;
        }
    }
    for [sockets, time_wait, buffer_bytes] in levels.into_values() {
        sum.sockets_peak = sum.sockets_peak.max(sockets);
        sum.time_wait_peak = sum.time_wait_peak.max(time_wait);
        sum.buffer_bytes_peak = sum.buffer_bytes_peak.max(buffer_bytes);
    }
    (!intervals.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(thread: u32, cpu_us: u64, length_ms: u64) -> ThreadInterval {
        let role = "robots".to_owned();
        ThreadInterval { role, thread, cpu_us, length_ms, run_delay_us: 1000, ..ThreadInterval::default() }
    }

    #[test]
    fn a_role_is_the_sum_of_its_threads_and_peaks_are_of_one() {
        let threads = vec![second(0, 300_000, 1000), second(1, 900_000, 1000), second(1, 10_000, 10)];
        let series = Series { threads, ..Series::default() };
        let health = health(&RunInfo::default(), &series, &Tally::default(), &[]);
        let robots = &health.roles["robots"];
        assert_eq!(robots.processor_share, Some(0.602));
        assert_eq!(robots.processor_share_peak, Some(0.9), "a hundredth of a second is no peak");
        assert_eq!(health.threads.iter().map(|thread| thread.thread).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(health.threads[0].processor_share, Some(0.3));
        assert_eq!(robots.accept_queue_peak, None);
    }

    #[test]
    fn nothing_watched_is_null() {
        let health = health(&RunInfo::default(), &Series::default(), &Tally::default(), &[]);
        assert_eq!(health, Health::default());
    }

    #[test]
    fn a_stall_is_explained_by_what_took_most_of_it() {
        let stall = |cpu_us, run_delay_us| Stall { length_us: 100, cpu_us, run_delay_us, ..Stall::default() };
        assert_eq!(cause(&stall(60, 40)), StallCause::Busy);
        assert_eq!(cause(&stall(10, 80)), StallCause::NoProcessor);
        assert_eq!(cause(&stall(2, 3)), StallCause::Stopped);
    }
}
