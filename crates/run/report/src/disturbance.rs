//! Effects of Assay and the lab on a stretch of a run, beyond what robots recorded with each request: processors that
//! others took from the target, segments that were lost on the way, requests that Assay itself lost, and what nothing
//! bounds.

use std::collections::BTreeMap;

use assay_measurement::doubt::{Doubt, Extent, Reason};
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::HostInterval;
use assay_measurement::measured::Series;
use assay_record::run::RunInfo;

use crate::tally::{Span, Tally};

/// Longest wait of a thread for a processor that others use, in microseconds: a time slice of the kernel's scheduler
/// (EEVDF's base slice, 3 ms on two to seven processors) and a tick.
const SLICE_US: f64 = 4_000.0;

/// And at most so long: a machine where it takes longer was not quiet before the run.
const QUIET_US: f64 = 50.0;

/// Share of the requests of a stretch that must have been joined with the waits of the target, for what was joined to count.
const MOSTLY: f64 = 0.9;

/// Share of the time that a thread runs or is ready to run above which it falls behind now and then.
const NO_TIME_LEFT: f64 = 0.9;

/// Reasons why robots or origins can have been late.
const LATE: [Reason; 4] = [Reason::Stalled, Reason::Starved, Reason::Saturated, Reason::Late];

/// Effects of Assay and the lab on a stretch of the run.
#[derive(Debug, Clone, Default)]
pub struct Disturbance {
    /// Time in which others had processors that the target wanted, in microseconds.
    taken_us: f64,
    /// Mean length of the target's waits, in microseconds.
    wait_us: f64,
    /// The hypervisor's part of `taken_us`.
    stolen_us: f64,
    /// Time that the target waited in each window.
    waits: Histogram,
    /// Sum of the lengths of these windows, in microseconds.
    watched_us: f64,
    /// Requests that completed in seconds in which it waited, and that was not watched in windows; none: there were no such seconds.
    unwatched: Option<u64>,
    /// Time that all threads of the target waited.
    waited_us: f64,
    /// Segments that were sent again, and connections that origins were too slow to accept: each can have made a request
    /// longer by any amount.
    delayed: f64,
    /// Processor time of the target, and of all processors that it could use, in microseconds; none: it was not watched.
    busy_us: Option<[f64; 2]>,
    /// The run was made before own errors were recorded: nothing is said of them.
    pub(crate) is_not_recorded: bool,
    /// Extent of the numbers of which nothing is known.
    pub(crate) unknown: Extent,
    /// Robots that send their next request when the last is complete: their rate depends on Assay's own delays.
    pub(crate) is_closed: bool,
    /// The origins had more to do than their processors let them: what their queues made of a time has no bound.
    pub(crate) are_origins_behind: bool,
    /// Robots or origins were at their limit.
    pub(crate) is_saturated: bool,
    /// Robots or origins were late: pages can have come too late for their embedded objects because of that.
    pub(crate) is_late: bool,
}

impl Disturbance {
    /// On the stretch `span`, the phase of this index.
    pub(crate) fn of_phase(info: &RunInfo, series: &Series, index: usize, span: Span) -> Self {
        let doubts: Vec<&Doubt> = info.verdict.doubts.iter().filter(|doubt| doubt.touches(index)).collect();
        let has = |reason: Reason| doubts.iter().any(|doubt| doubt.reason == reason && doubt.serious);
        let TakenTime { taken_us, stolen_us, wait_us } = time_taken(info, series, span);
        let (mut waits, mut watched_us, mut waited_us, mut unwatched) = (Histogram::new(), 0.0, 0.0, None);
        // A second belongs to the stretch that it began in.
        let within = |start_ms: u64| (span.start_ms..span.end_ms).contains(&start_ms);
        for interval in
            series.host.iter().filter(|interval| interval.role == "proxy" && within(interval.start_ms))
        {
            waits.merge_sparse(&interval.waits);
            if !interval.waits.buckets.is_empty() {
                watched_us += interval.length_ms as f64 * 1_000.0;
            }
            waited_us += interval.run_delay_us as f64;
            if interval.run_delay_us > 0 && interval.waits.buckets.is_empty() {
                *unwatched.get_or_insert(0) += completed_within(series, index, interval);
            }
        }
        Self {
            taken_us,
            wait_us,
            stolen_us,
            waits,
            watched_us,
            waited_us,
            unwatched,
            busy_us: busy(info, series, span),
            delayed: delayed(series, span, has(Reason::Retransmissions), has(Reason::AcceptBacklog)),
            is_not_recorded: !info.own_errors,
            unknown: doubts.iter().map(|doubt| doubt.leaves_unknown()).max().unwrap_or_default(),
            is_closed: info.phases.get(index).is_some_and(|phase| phase.expected_requests.is_none()),
            are_origins_behind: are_origins_behind(series, span),
            is_saturated: has(Reason::Saturated),
            is_late: doubts.iter().any(|doubt| LATE.contains(&doubt.reason)),
        }
    }

    /// Adds what was done to another stretch.
    pub(crate) fn merge(&mut self, other: &Disturbance) {
        let all_us = self.taken_us + other.taken_us;
        if all_us > 0.0 {
            self.wait_us = (self.wait_us * self.taken_us + other.wait_us * other.taken_us) / all_us;
        }
        self.taken_us = all_us;
        self.stolen_us += other.stolen_us;
        self.waits.merge(&other.waits);
        self.watched_us += other.watched_us;
        self.waited_us += other.waited_us;
        self.unwatched = match (self.unwatched, other.unwatched) {
            (Some(one), Some(two)) => Some(one + two),
            (one, two) => one.or(two),
        };
        self.delayed += other.delayed;
        self.busy_us = match (self.busy_us, other.busy_us) {
            (Some(one), Some(two)) => Some([one[0] + two[0], one[1] + two[1]]),
            (one, two) => one.or(two),
        };
        self.unknown = self.unknown.max(other.unknown);
        self.is_not_recorded |= other.is_not_recorded;
        self.is_closed |= other.is_closed;
        self.are_origins_behind |= other.are_origins_behind;
        self.is_saturated |= other.is_saturated;
        self.is_late |= other.is_late;
    }

    /// Mean by which times can be longer because others had the target's processors. `needs`: how often a request of
    /// theirs needed the target, of `all_needs` in all requests of the stretch, which lasted for `length_s`.
    ///
    /// While a thread of the target waits for time w, one need waits for all of it (without it, the thread would not want to
    /// run), and those that arise meanwhile, of which there are as many as usual in that time, wait for half of it.
    pub(crate) fn spread_us(&self, length_s: f64, needs: f64, all_needs: f64) -> f64 {
        if length_s <= 0.0 || self.taken_us <= 0.0 || all_needs <= 0.0 {
            return 0.0;
        }
        let delays = |wait_us: f64| delays_us(wait_us, length_s, all_needs);
        let (waits, _) = self.waits();
        let sum_us: f64 = if waits.count() > 0 {
            // What the target waited for its own threads is its own.
            let of_others = (self.taken_us / self.waited_us.max(1.0)).min(1.0);
            let delay = |(us, count)| delays(waits.bucket_high_us(us) as f64) * count as f64;
            waits.buckets().map(delay).sum::<f64>() * of_others
        } else {
            let wait_us = self.wait_us.max(SLICE_US);
            delays(wait_us) * self.taken_us / wait_us
        };
        sum_us * needs / all_needs
    }

    /// The same of what the hypervisor took alone: the kernel does not count that as waiting.
    pub(crate) fn stolen_spread_us(&self, length_s: f64, needs: f64, all_needs: f64) -> f64 {
        if length_s <= 0.0 || self.stolen_us <= 0.0 || all_needs <= 0.0 {
            return 0.0;
        }
        delays_us(SLICE_US, length_s, all_needs) * self.stolen_us / SLICE_US * needs / all_needs
    }

    /// Waits of the target by window, and the sum of the lengths of these windows in microseconds; empty where not
    /// all of the target was watched.
    pub(crate) fn waits(&self) -> (Histogram, f64) {
        if self.unwatched.is_some() { (Histogram::new(), 0.0) } else { (self.waits.clone(), self.watched_us) }
    }

    /// Share of the completed requests that were joined with the waits of the target, nearly all of which were
    /// watched then, so that their recorded times allow for these; none where all of them have to be allowed for.
    pub(crate) fn joined_share(&self, joined: u64, completed: u64) -> Option<f64> {
        let joined = joined.saturating_sub(self.unwatched.unwrap_or(0));
        let share = joined as f64 / completed.max(1) as f64;
        (share >= MOSTLY).then_some(share.min(1.0))
    }

    /// The share of the time in which the target had something to do: twice that of its processors, because not all work is theirs,
    /// and a twentieth beside; all of it, if it was not watched.
    pub(crate) fn busy(&self) -> f64 {
        match self.busy_us {
            Some([used_us, all_us]) if all_us > 0.0 => (2.0 * used_us / all_us + 0.05).min(1.0),
            _ => 1.0,
        }
    }

    /// The share of so many times that was touched.
    pub(crate) fn delayed_share(&self, count: u64) -> f64 {
        if count == 0 { 0.0 } else { (self.delayed / count as f64).min(1.0) }
    }
}

/// Requests of a phase that completed while a second of the target's, or a part of it, went by.
fn completed_within(series: &Series, phase: usize, second: &HostInterval) -> u64 {
    let overlaps = |start_ms: u64, length_ms: u64| {
        start_ms < second.start_ms + second.length_ms && second.start_ms < start_ms + length_ms
    };
    let robots = series.robots.iter().filter(|interval| usize::from(interval.phase) == phase);
    let during = robots.filter(|interval| overlaps(interval.start_ms, interval.length_ms));
    during.map(|interval| interval.counts.completed).sum()
}

/// Requests that Assay lost: they were due, and never reached the target or were never sent.
pub(crate) fn lost(tally: &Tally) -> u64 {
    let own = tally.robots.errors.iter().filter(|(kind, _)| kind.is_own());
    own.map(|(_, count)| count).sum::<u64>() + tally.robots.unsent_late
}

/// Processor time that others took from the target, in microseconds.
struct TakenTime {
    taken_us: f64,
    /// The hypervisor's share of it.
    stolen_us: f64,
    /// Mean length of a wait.
    wait_us: f64,
}

/// By how much a wait delays requests, all together. `all_needs`: how often they need the target in `length_s`.
fn delays_us(wait_us: f64, length_s: f64, all_needs: f64) -> f64 {
    wait_us * (1.0 + all_needs / (length_s * 1e6) * wait_us / 2.0)
}

/// Processor time that others took from the target while it wanted it, and how long it waited each time, in microseconds.
///
/// The threads of the target waited for processors; others than the target had those for so long; it cannot have waited for
/// them longer than either. What it waited for its own threads is its own. What the hypervisor took, everybody missed.
fn time_taken(info: &RunInfo, series: &Series, span: Span) -> TakenTime {
    let Some(placed) = info.placement.iter().find(|placed| placed.role == "proxy") else {
        return TakenTime { taken_us: 0.0, stolen_us: 0.0, wait_us: 0.0 };
    };
    let (mut waited_us, mut had_us, mut switches) = (0.0, 0.0, 0.0);
    for interval in series.host.iter().filter(|interval| interval.role == "proxy") {
        let share = span.share(interval.start_ms, interval.length_ms);
        waited_us += interval.run_delay_us as f64 * share;
        had_us += interval.cpu_us as f64 * share;
        switches += (interval.voluntary_switches + interval.involuntary_switches) as f64 * share;
    }
    let (mut busy_us, mut stolen_us) = (0.0, 0.0);
    for interval in &series.processors {
        if placed.cpus.is_empty() || placed.cpus.contains(&interval.cpu) {
            let share = span.share(interval.start_ms, interval.length_ms);
            busy_us += interval.busy_us as f64 * share;
            stolen_us += interval.steal_us as f64 * share;
        }
    }
    let others_us = (busy_us - had_us).max(0.0);
    // A thread that is woken starts a moment later also where nobody else wants its processor.
    let waited_us = (waited_us - switches * wakeup_latency_us(series)).max(0.0);
    let stolen_us = if busy_us > 0.0 { stolen_us * (had_us / busy_us).min(1.0) } else { 0.0 };
    let wait_us = if switches > 0.0 { waited_us / switches } else { 0.0 };
    TakenTime { taken_us: waited_us.min(others_us) + stolen_us, stolen_us, wait_us }
}

/// Wake-up latency of an idle processor of this machine, in microseconds: the median lag of bare timers before the
/// run, on the quietest processor.
fn wakeup_latency_us(series: &Series) -> f64 {
    let medians = series.baselines.iter().filter_map(|baseline| {
        let mut lag = Histogram::new();
        lag.merge_sparse(&baseline.lag);
        lag.quantile_us(0.5)
    });
    medians.min().map_or(0.0, |us| (us as f64).min(QUIET_US))
}

/// A thread of the origins was running, or ready to run, nearly all the time.
fn are_origins_behind(series: &Series, span: Span) -> bool {
    let mut threads: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
    for interval in series.threads.iter().filter(|interval| interval.role == "origins") {
        let share = span.share(interval.start_ms, interval.length_ms);
        let sum = threads.entry(interval.thread).or_default();
        sum[0] += (interval.cpu_us + interval.run_delay_us) as f64 * share;
        sum[1] += interval.length_ms as f64 * 1_000.0 * share;
    }
    threads.values().any(|[wanted_us, wall_us]| *wanted_us > wall_us * NO_TIME_LEFT)
}

/// Processor time of the target and of the processors that it could use. Without anything in between, the origins are the target.
fn busy(info: &RunInfo, series: &Series, span: Span) -> Option<[f64; 2]> {
    let role = if info.target.mode == "direct" { "origins" } else { "proxy" };
    let placed = info.placement.iter().find(|placed| placed.role == role)?;
    let processors = if placed.cpus.is_empty() { info.host.cpus as usize } else { placed.cpus.len() };
    let mut used_us = None;
    for interval in series.host.iter().filter(|interval| interval.role == role) {
        *used_us.get_or_insert(0.0) +=
            interval.cpu_us as f64 * span.share(interval.start_ms, interval.length_ms);
    }
    Some([used_us?, span.length_s() * 1e6 * processors.max(1) as f64])
}

/// Requests that something on the way can have made longer.
fn delayed(series: &Series, span: Span, sent_again: bool, not_accepted: bool) -> f64 {
    let counts = series.network.iter().map(|interval| {
        let share = span.share(interval.start_ms, interval.length_ms);
        let of = |counts: bool, count: u64| if counts { count as f64 * share } else { 0.0 };
        of(sent_again, interval.retransmitted) + of(not_accepted, interval.listen_overflows)
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use assay_measurement::counts::RobotCounts;
    use assay_measurement::health::ProcessorInterval;
    use assay_measurement::interval::{HostInterval, RobotInterval};
    use assay_record::run::{PhaseInfo, PlacementInfo};

    use super::*;

    const SPAN: Span = Span { start_ms: 0, end_ms: 1000 };

    /// A second in which the target's processor was busy for so long, and the target had it, and waited, for so long.
    fn second(busy_us: u64, cpu_us: u64, run_delay_us: u64) -> (RunInfo, Series) {
        let placed = PlacementInfo { role: "proxy".into(), cpus: vec![1], ..PlacementInfo::default() };
        let phases = vec![PhaseInfo { expected_requests: Some(10.0), ..PhaseInfo::default() }];
        let info = RunInfo { placement: vec![placed], phases, ..RunInfo::default() };
        let host = HostInterval {
            length_ms: 1000,
            role: "proxy".into(),
            cpu_us,
            run_delay_us,
            voluntary_switches: 10,
            ..HostInterval::default()
        };
        let processor =
            |cpu, busy_us| ProcessorInterval { length_ms: 1000, cpu, busy_us, ..Default::default() };
        let processors = vec![processor(0, 900_000), processor(1, busy_us)];
        (info, Series { host: vec![host], processors, ..Series::default() })
    }

    fn taken_us((info, series): (RunInfo, Series)) -> f64 {
        Disturbance::of_phase(&info, &series, 0, SPAN).taken_us
    }

    #[test]
    fn what_the_target_waits_for_its_own_threads_is_its_own() {
        assert_eq!(taken_us(second(500_000, 500_000, 300_000)), 0.0);
    }

    #[test]
    fn others_cannot_have_taken_more_than_they_had_nor_than_was_waited_for() {
        assert_eq!(taken_us(second(600_000, 500_000, 300_000)), 100_000.0);
        assert_eq!(taken_us(second(900_000, 200_000, 50_000)), 50_000.0);
    }

    #[test]
    fn times_are_longer_by_what_was_taken_when_the_target_was_needed() {
        let (info, series) = second(900_000, 200_000, 100_000);
        let influence = Disturbance::of_phase(&info, &series, 0, SPAN);
        // Ten waits of 10 ms: each holds up the need that began it, and half of the four that arise meanwhile for 10 ms.
        let spread_us = influence.spread_us(1.0, 2.0, 400.0);
        assert!((spread_us - 10.0 * 10_000.0 * 3.0 * 2.0 / 400.0).abs() < 1e-6, "{spread_us}");
        assert_eq!(Disturbance::default().spread_us(1.0, 2.0, 400.0), 0.0);
    }

    #[test]
    fn waits_that_were_watched_in_windows_count_with_their_lengths() {
        let (info, mut series) = second(900_000, 200_000, 100_000);
        let mut waits = Histogram::new();
        waits.record_many(1_000, 100);
        series.host[0].waits = waits.to_sparse();
        let influence = Disturbance::of_phase(&info, &series, 0, SPAN);
        let spread_us = influence.spread_us(1.0, 2.0, 400.0);
        assert!((spread_us - 100.0 * 1_000.0 * 1.2 * 2.0 / 400.0).abs() < 1.0, "{spread_us}");
        series.host.push(HostInterval { waits: Default::default(), start_ms: 500, ..series.host[0].clone() });
        let influence = Disturbance::of_phase(&info, &series, 0, SPAN);
        assert_eq!(influence.waits().0.count(), 0, "a second of it was not watched");
    }

    #[test]
    fn requests_of_a_second_that_was_not_watched_were_joined_with_nothing() {
        let (info, mut series) = second(900_000, 200_000, 100_000);
        let completed = |start_ms, completed| RobotInterval {
            start_ms,
            length_ms: 1000,
            counts: RobotCounts { completed, ..RobotCounts::default() },
            ..RobotInterval::default()
        };
        series.robots = vec![completed(0, 95), completed(1000, 5)];
        series.host.push(HostInterval { start_ms: 1000, ..series.host[0].clone() });
        let mut waits = Histogram::new();
        waits.record_many(1_000, 100);
        series.host[0].waits = waits.to_sparse();
        let span = Span { start_ms: 0, end_ms: 2000 };
        let share = |series: &Series| Disturbance::of_phase(&info, series, 0, span).joined_share(100, 100);
        assert_eq!(share(&series), Some(0.95));
        series.host.swap(0, 1);
        (series.host[0].start_ms, series.host[1].start_ms) = (0, 1000);
        assert_eq!(share(&series), None, "nearly all of them");
    }

    #[test]
    fn a_run_whose_role_failed_leaves_everything_unknown() {
        let (mut info, series) = second(0, 0, 0);
        info.verdict.doubts = vec![Doubt::serious(Reason::RoleFailed, "gone")];
        assert_eq!(Disturbance::of_phase(&info, &series, 0, SPAN).unknown, Extent::Everything);
        info.verdict.doubts = vec![Doubt::serious(Reason::Late, "late")];
        assert_eq!(Disturbance::of_phase(&info, &series, 0, SPAN).unknown, Extent::Nothing);
    }
}
