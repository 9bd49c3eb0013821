//! Adds up intervals: of a phase, or of the whole run.

use std::collections::BTreeMap;

use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval, RobotLevels};
use assay_measurement::machine::{BlockInterval, DiskInterval};
use assay_measurement::measured::Series;
use assay_measurement::ratios::Offload;
use assay_measurement::robot_times::RobotTimes;
use assay_measurement::times::TimesSum;
use assay_record::caches::CacheLogs;
use assay_record::missing::Missing;
use assay_record::run::RunInfo;

use crate::disturbance::Disturbance;
use crate::gaps;
use crate::log_agreement::LogAgreement;

/// A stretch of the run, in milliseconds since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub start_ms: u64,
    pub end_ms: u64,
}

impl Span {
    pub fn length_s(self) -> f64 {
        self.end_ms.saturating_sub(self.start_ms) as f64 / 1000.0
    }

    /// The share of an interval that lies in this stretch.
    pub(crate) fn share(self, start_ms: u64, length_ms: u64) -> f64 {
        let (start, end) = (start_ms.max(self.start_ms), (start_ms + length_ms).min(self.end_ms));
        if length_ms == 0 { 0.0 } else { end.saturating_sub(start) as f64 / length_ms as f64 }
    }
}

/// Actual time of each phase; none: it never ran.
///
/// A run that was killed may not have written when its last phase began or ended: then its intervals say it.
pub fn spans(info: &RunInfo, series: &Series) -> Vec<Option<Span>> {
    (0..info.phases.len())
        .map(|index| {
            let phase = &info.phases[index];
            let busy = series.robots.iter().filter(|interval| {
                usize::from(interval.phase) == index && (interval.counts.due > 0 || interval.counts.sent > 0)
            });
            let (mut first, mut last) = (None, None);
            for interval in busy {
                first = Some(first.unwrap_or(u64::MAX).min(interval.start_ms));
                last = Some(last.unwrap_or(0).max(interval.start_ms + interval.length_ms));
            }
            let start_ms = phase.start_ms.or(first)?;
            let next = info.phases.get(index + 1).and_then(|next| next.start_ms);
            let end_ms = phase.end_ms.or(next).or(last).unwrap_or(start_ms);
            Some(Span { start_ms, end_ms: end_ms.max(start_ms) })
        })
        .collect()
}

/// From the start of the first phase that ran to the end of the last; none: nothing ran.
pub fn whole(spans: &[Option<Span>]) -> Option<Span> {
    let ran = || spans.iter().flatten();
    Some(Span {
        start_ms: ran().map(|span| span.start_ms).min()?,
        end_ms: ran().map(|span| span.end_ms).max()?,
    })
}

/// Usage of a role's processes.
#[derive(Default, Clone)]
pub struct ProcessUsage {
    pub(crate) cpu_us: f64,
    pub(crate) run_delay_us: f64,
    pub(crate) steal_us: f64,
    pub(crate) rss_peak_bytes: u64,
    pub(crate) descriptors_peak: u64,
    /// Time that was watched, in milliseconds.
    pub watched_ms: f64,
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
    pub switches: [f64; 2],
    /// Threads were seen, so what is theirs was counted.
    pub has_threads: bool,
    pub(crate) pss_peak_bytes: Option<u64>,
    pub(crate) cache_peak_bytes: Option<u64>,
    pub(crate) disk_read_bytes: Option<f64>,
    pub(crate) disk_written_bytes: Option<f64>,
}

/// Activity of the disk of the proxy's store.
#[derive(Default, Clone)]
pub struct DiskUsage {
    pub(crate) device: String,
    pub(crate) watched_ms: f64,
    /// Reads, bytes read, writes, bytes written, ms busy, ms of all requests.
    pub sums: [f64; 6],
    pub(crate) traced: Option<TracedRequests>,
}

/// Requests that were traced.
#[derive(Default, Clone)]
pub struct TracedRequests {
    pub(crate) requests: u64,
    pub(crate) sequential: u64,
    pub(crate) lost: u64,
    pub(crate) distances: BTreeMap<u64, u64>,
}

impl ProcessUsage {
    fn watch(&mut self, interval: &HostInterval, share: f64) {
        let part = |value: u64| value as f64 * share;
        self.cpu_us += part(interval.cpu_us);
        self.run_delay_us += part(interval.run_delay_us);
        self.steal_us += part(interval.steal_us);
        self.watched_ms += part(interval.length_ms);
        self.user_us += part(interval.user_us);
        self.system_us += part(interval.system_us);
        self.switches[0] += part(interval.voluntary_switches);
        self.switches[1] += part(interval.involuntary_switches);
        self.has_threads |= interval.threads > 0;
        self.rss_peak_bytes = self.rss_peak_bytes.max(interval.rss_bytes);
        self.descriptors_peak = self.descriptors_peak.max(interval.descriptors);
        self.pss_peak_bytes = self.pss_peak_bytes.max(interval.pss_bytes);
        self.cache_peak_bytes = self.cache_peak_bytes.max(interval.cache_bytes);
        for (sum, bytes) in [
            (&mut self.disk_read_bytes, interval.disk_read_bytes),
            (&mut self.disk_written_bytes, interval.disk_written_bytes),
        ] {
            bytes.into_iter().for_each(|bytes| *sum.get_or_insert_default() += part(bytes));
        }
    }
}

impl ProcessUsage {
    fn add(&mut self, other: &ProcessUsage) {
        self.cpu_us += other.cpu_us;
        self.run_delay_us += other.run_delay_us;
        self.steal_us += other.steal_us;
        self.watched_ms += other.watched_ms;
        self.user_us += other.user_us;
        self.system_us += other.system_us;
        for (sum, more) in self.switches.iter_mut().zip(other.switches) {
            *sum += more;
        }
        self.has_threads |= other.has_threads;
        self.rss_peak_bytes = self.rss_peak_bytes.max(other.rss_peak_bytes);
        self.descriptors_peak = self.descriptors_peak.max(other.descriptors_peak);
        self.pss_peak_bytes = self.pss_peak_bytes.max(other.pss_peak_bytes);
        self.cache_peak_bytes = self.cache_peak_bytes.max(other.cache_peak_bytes);
        for (sum, bytes) in [
            (&mut self.disk_read_bytes, other.disk_read_bytes),
            (&mut self.disk_written_bytes, other.disk_written_bytes),
        ] {
            bytes.into_iter().for_each(|bytes| *sum.get_or_insert_default() += bytes);
        }
    }
}

impl DiskUsage {
    fn add(&mut self, other: &DiskUsage) {
        self.device.clone_from(&other.device);
        self.watched_ms += other.watched_ms;
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum += more;
        }
        if let Some(more) = &other.traced {
            let traced = self.traced.get_or_insert_default();
            traced.requests += more.requests;
            traced.sequential += more.sequential;
            traced.lost += more.lost;
            for (low, count) in &more.distances {
                *traced.distances.entry(*low).or_default() += count;
            }
        }
    }

    fn watch(&mut self, disk: &DiskInterval, share: f64) {
        self.device.clone_from(&disk.device);
        self.watched_ms += disk.length_ms as f64 * share;
        let counts =
            [disk.reads, disk.read_bytes, disk.writes, disk.written_bytes, disk.busy_ms, disk.queue_ms];
        for (sum, count) in self.sums.iter_mut().zip(counts) {
            *sum += count as f64 * share;
        }
    }
}

impl TracedRequests {
    fn add(&mut self, block: &BlockInterval) {
        self.requests += block.requests;
        self.sequential += block.sequential;
        self.lost += block.lost;
        for (low, count) in &block.distances {
            *self.distances.entry(*low).or_default() += count;
        }
    }
}

#[derive(Default)]
pub struct Tally {
    pub(crate) span: Option<Span>,
    pub robots: RobotCounts,
    pub origins: OriginCounts,
    pub times: RobotTimes<TimesSum, Histogram>,
    pub(crate) origin_service: Histogram,
    pub(crate) origin_lateness: Histogram,
    pub(crate) peaks: RobotLevels,
    pub(crate) origin_connections_peak: u64,
    /// Origins were measured, so that no request at them means that they got none.
    pub(crate) origins_seen: bool,
    /// Agreement between the logs of caches and robots; none: their requests were not joined one by one.
    pub(crate) log_agreement: Option<LogAgreement>,
    pub(crate) resources: BTreeMap<String, ProcessUsage>,
    pub(crate) disk: Option<DiskUsage>,
    /// Effects of Assay and the lab, beyond those that are in the times.
    pub(crate) disturbance: Disturbance,
}

impl Tally {
    /// Each phase of the run, and what belongs to none of them (the last); `missing` is what could not be read of it.
    pub fn of_phases(
        info: &RunInfo,
        series: &Series,
        spans: &[Option<Span>],
        missing: &[Missing],
    ) -> Vec<Tally> {
        let mut tallies: Vec<Tally> =
            spans.iter().map(|span| Tally { span: *span, ..Tally::default() }).collect();
        tallies.push(Tally::default());
        let last = spans.len();
        for interval in &series.origins {
            tallies[usize::from(interval.phase).min(last)].add_origins(interval);
        }
        let has_validated = tallies.iter().any(|tally| tally.origins.validations > 0);
        // Of a part of a run, or after the last interval that its origins reported, confirmations are not known.
        let are_origins_whole = info.part.is_none() && !gaps::is_lost(missing, "origins.parquet");
        let origins_until_ms = series.origins.iter().map(|interval| interval.start_ms).max();
        let known_until_ms = origins_until_ms.filter(|_| are_origins_whole && !has_validated);
        for interval in &series.robots {
            let tally = &mut tallies[usize::from(interval.phase).min(last)];
            tally.add_robots(interval);
            if known_until_ms.is_some_and(|until_ms| interval.start_ms <= until_ms) {
                tally.call_stale(interval.counts.unconfirmed_hits);
            }
        }
        for (index, tally) in tallies.iter_mut().enumerate() {
            // Robots get right responses to these.
            tally.robots.add_errors(ErrorKind::WrongUpload, tally.origins.wrong_uploads);
            tally.robots.add_errors(ErrorKind::RepeatedPost, tally.origins.repeated_posts);
            // Of a part of a run, requests at its origins are not those of its robots.
            tally.origins_seen = !series.origins.is_empty() && are_origins_whole;
            tally.add_host(series);
            if let Some(span) = tally.span {
                tally.disturbance = Disturbance::of_phase(info, series, index, span);
            }
        }
        tallies
    }

    /// Adds to each of [`Tally::of_phases`] how far logs and robots agree; nothing, where requests were not put together one by one.
    pub(crate) fn add_log_agreement(parts: &mut [Tally], logs: Option<&CacheLogs>) {
        let Some(logs) = logs.filter(|logs| logs.joined) else { return };
        let last = parts.len().saturating_sub(1);
        for (index, part) in parts.iter_mut().enumerate() {
            let rows = logs.responses.iter().filter(|row| usize::from(row.phase).min(last) == index);
            part.log_agreement = Some(LogAgreement::from_rows(rows));
        }
    }

    /// The whole run from its parts.
    pub fn of_run(parts: &[Tally], span: Option<Span>, series: &Series) -> Tally {
        let mut total = Tally { span, ..Tally::default() };
        for part in parts {
            total.merge(part);
        }
        total.add_host(series);
        total
    }

    /// Some phases together, which need not follow each other: as long as all of them.
    pub fn of_some<'a>(parts: impl Iterator<Item = &'a Tally>) -> Tally {
        let mut total = Tally::default();
        let mut length_ms = None;
        for part in parts {
            total.merge(part);
            if let Some(span) = part.span {
                *length_ms.get_or_insert(0) += span.end_ms.saturating_sub(span.start_ms);
            }
            for (role, used) in &part.resources {
                total.resources.entry(role.clone()).or_default().add(used);
            }
            if let Some(disk) = &part.disk {
                total.disk.get_or_insert_default().add(disk);
            }
        }
        total.span = length_ms.map(|end_ms| Span { start_ms: 0, end_ms });
        total
    }

    /// Adds everything that another one counted; not its length, nor what processes used, which can overlap.
    fn merge(&mut self, part: &Tally) {
        self.robots.merge(&part.robots);
        self.origins.merge(&part.origins);
        self.origins_seen |= part.origins_seen;
        self.times.add(&part.times, TimesSum::merge, Histogram::merge);
        self.origin_service.merge(&part.origin_service);
        self.origin_lateness.merge(&part.origin_lateness);
        self.raise_peaks(part.peaks);
        self.disturbance.merge(&part.disturbance);
        match (&mut self.log_agreement, part.log_agreement) {
            (Some(all), Some(more)) => all.add(more),
            (all, more) => *all = all.or(more),
        }
        self.origin_connections_peak = self.origin_connections_peak.max(part.origin_connections_peak);
    }

    /// Offload of the origins; none where they were not measured, as in a part of a run that has only robots.
    pub(crate) fn offload(&self) -> Offload {
        if self.origins_seen { Offload::of(&self.robots, &self.origins) } else { Offload::default() }
    }

    /// Counts hits as stale that had expired, of a target that has validated nothing.
    fn call_stale(&mut self, hits: u64) {
        self.robots.unconfirmed_hits -= hits;
        self.robots.add_errors(ErrorKind::Stale, hits);
    }

    pub(crate) fn add_robots(&mut self, interval: &RobotInterval) {
        self.robots.merge(&interval.counts);
        self.times.add(&interval.times, TimesSum::add, Histogram::merge_sparse);
        self.raise_peaks(interval.levels);
    }

    fn raise_peaks(&mut self, levels: RobotLevels) {
        self.peaks.waiting = self.peaks.waiting.max(levels.waiting);
        self.peaks.in_flight = self.peaks.in_flight.max(levels.in_flight);
        self.peaks.connections = self.peaks.connections.max(levels.connections);
    }

    pub(crate) fn add_origins(&mut self, interval: &OriginInterval) {
        self.origins.merge(&interval.counts);
        self.origins_seen = true;
        self.origin_service.merge_sparse(&interval.service);
        self.origin_lateness.merge_sparse(&interval.lateness);
        self.origin_connections_peak = self.origin_connections_peak.max(interval.connections);
    }

    /// Seconds that reach over the ends of the stretch count with the share that lies in it.
    fn add_host(&mut self, series: &Series) {
        let Some(span) = self.span else { return };
        for interval in &series.host {
            let share = span.share(interval.start_ms, interval.length_ms);
            if share > 0.0 {
                self.resources.entry(interval.role.clone()).or_default().watch(interval, share);
            }
        }
        for disk in series.disks.iter().filter(|disk| disk.holds == "store") {
            let share = span.share(disk.start_ms, disk.length_ms);
            if share > 0.0 {
                self.disk.get_or_insert_default().watch(disk, share);
            }
        }
        // A request belongs to the stretch that its second began in.
        let within = |block: &&BlockInterval| (span.start_ms..span.end_ms).contains(&block.start_ms);
        for block in series.blocks.iter().filter(within) {
            if let Some(disk) = &mut self.disk {
                disk.traced.get_or_insert_default().add(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_record::caches::{Responses, Seen, Source};
    use assay_record::run::PhaseInfo;

    fn busy(phase: u16, start_ms: u64) -> RobotInterval {
        let counts = RobotCounts { due: 1, ..RobotCounts::default() };
        RobotInterval { start_ms, length_ms: 1000, phase, counts, ..RobotInterval::default() }
    }

    #[test]
    fn what_belongs_to_no_phase_has_its_log_agreement_too() {
        let counted = |phases: [u16; 2], joined| {
            let rows = phases.map(|phase| Responses {
                cache: String::new(),
                phase,
                basic: true,
                seen: Seen::Hit,
                source: Source::Origin,
                requests: 1,
                other_status: 0,
                body_bytes: 0,
                logged_bytes: 0,
                response: Histogram::new().to_sparse(),
                duration: Histogram::new().to_sparse(),
            });
            let logs = CacheLogs { joined, responses: rows.to_vec(), ..CacheLogs::default() };
            let mut parts = [Tally::default(), Tally::default(), Tally::default()];
            Tally::add_log_agreement(&mut parts, Some(&logs));
            parts.map(|part| part.log_agreement.map(|agreement| agreement.misreported))
        };
        assert_eq!(counted([1, u16::MAX], true), [Some(0), Some(1), Some(1)]);
        assert_eq!(counted([1, u16::MAX], false), [None; 3]);
    }

    #[test]
    fn what_origins_were_spared_is_known_only_where_they_were_measured() {
        let mut interval = busy(0, 0);
        (interval.counts.sent, interval.counts.body_bytes_in) = (10, 100);
        let mut series = Series { robots: vec![interval], ..Series::default() };
        let offload = |series: &Series| {
            let parts = Tally::of_phases(&RunInfo::default(), series, &[None], &[]);
            [parts[0].offload(), Tally::of_run(&parts, None, series).offload()]
        };
        assert_eq!(offload(&series), [Offload::default(); 2]);
        series.origins.push(OriginInterval::default());
        let all = Offload { requests: Some(1.0), bytes: Some(1.0) };
        assert_eq!(offload(&series), [all; 2], "they got none");
    }

    #[test]
    fn requests_changed_or_repeated_on_the_way_are_errors_of_their_phase_and_of_the_run() {
        let mut changed = OriginInterval::default();
        (changed.counts.wrong_uploads, changed.counts.repeated_posts) = (2, 3);
        let series = Series { robots: vec![busy(0, 0)], origins: vec![changed], ..Series::default() };
        let parts = Tally::of_phases(&RunInfo::default(), &series, &[None], &[]);
        for tally in [&parts[0], &Tally::of_run(&parts, None, &series)] {
            let errors = [(ErrorKind::WrongUpload, 2), (ErrorKind::RepeatedPost, 3)];
            assert_eq!(tally.robots.errors, BTreeMap::from(errors));
        }
    }

    #[test]
    fn expired_hits_are_stale_if_the_target_has_validated_nothing() {
        let mut hits = busy(0, 1_000);
        hits.counts.unconfirmed_hits = 3;
        let (mut origins, mut later) = (OriginInterval::default(), hits.clone());
        (origins.start_ms, later.start_ms) = (1_500, 2_000);
        let mut series = Series { robots: vec![hits, later], origins: vec![origins], ..Series::default() };
        let figures = |series: &Series, info: &RunInfo| {
            let parts = Tally::of_phases(info, series, &[None], &[]);
            let robots = &parts[0].robots;
            (robots.errors.get(&ErrorKind::Stale).copied(), robots.unconfirmed_hits)
        };
        let whole = RunInfo::default();
        assert_eq!(figures(&series, &whole), (Some(3), 3), "origins have not reported so far");
        series.origins[0].start_ms = 2_000;
        assert_eq!(figures(&series, &whole), (Some(6), 0));
        series.origins[0].counts.validations = 1;
        assert_eq!(figures(&series, &whole), (None, 6), "any of them can have been confirmed");
        series.origins.clear();
        assert_eq!(figures(&series, &whole), (None, 6), "origins were not measured");
    }

    #[test]
    fn a_phase_without_an_end_goes_as_far_as_its_intervals() {
        let began = PhaseInfo { start_ms: Some(0), end_ms: Some(1500), ..PhaseInfo::default() };
        let cut = PhaseInfo { start_ms: Some(1500), ..PhaseInfo::default() };
        let info = RunInfo { phases: vec![began, cut, PhaseInfo::default()], ..RunInfo::default() };
        let series = Series { robots: vec![busy(0, 0), busy(1, 1500), busy(1, 2500)], ..Series::default() };
        let spans = spans(&info, &series);
        assert_eq!(spans[1], Some(Span { start_ms: 1500, end_ms: 3500 }));
        assert_eq!(spans[2], None);
        assert_eq!(whole(&spans), Some(Span { start_ms: 0, end_ms: 3500 }));
    }

    #[test]
    fn processor_time_of_a_second_is_shared_by_the_phases_in_it() {
        let span = |start_ms, end_ms| Some(Span { start_ms, end_ms });
        let second = HostInterval {
            length_ms: 1000,
            role: "proxy".into(),
            cpu_us: 400_000,
            ..HostInterval::default()
        };
        let series = Series { host: vec![second], ..Series::default() };
        let parts = Tally::of_phases(&RunInfo::default(), &series, &[span(0, 250), span(250, 1000)], &[]);
        assert_eq!(parts[0].resources["proxy"].cpu_us, 100_000.0);
        assert_eq!(parts[1].resources["proxy"].cpu_us, 300_000.0);
        let total = Tally::of_run(&parts, span(0, 1000), &series);
        assert_eq!(total.resources["proxy"].cpu_us, 400_000.0);
    }
}
