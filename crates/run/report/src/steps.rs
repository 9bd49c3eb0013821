//! Measurements in each step of a chart's time axis.
//!
//! Intervals that begin in the same second are put together over phases. A long run is shown in coarser
//! steps; a percentile of a step is that of its merged histograms.

use std::collections::BTreeMap;

use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::RobotLevels;
use assay_measurement::measured::Series;

/// Measurements of one step.
#[derive(Default)]
pub struct Step<'a> {
    /// The schedule is over and only what was under way still ends: ratios and means would be of stragglers.
    pub after_the_end: bool,
    /// Length of what was measured in it, by the start of the interval.
    pub lengths: BTreeMap<u64, u64>,
    pub robots: RobotCounts,
    pub origins: OriginCounts,
    /// Response times of hits.
    pub hit: Vec<&'a SparseHistogram>,
    /// Response times of misses.
    pub miss: Vec<&'a SparseHistogram>,
    /// Response times of all, and how long requests had waited that were given up or never sent.
    pub all: Vec<&'a SparseHistogram>,
    pub(crate) lateness: Vec<&'a SparseHistogram>,
    /// Service times of origins, think time included.
    pub origin_service: Vec<&'a SparseHistogram>,
    pub(crate) origin_lateness: Vec<&'a SparseHistogram>,
    /// The highest levels of robots.
    pub levels: RobotLevels,
    /// The most connections that origins had open.
    pub origin_connections: u64,
    /// Bytes read from and written to the disk that the target's files are on; none: nobody watched it.
    pub store_disk_bytes: Option<u64>,
    /// Usage of roles, by their names.
    pub roles: BTreeMap<&'a str, StepUsage>,
}

/// Usage of a role's processes in a step.
#[derive(Default)]
pub struct StepUsage {
    /// Processor time, in microseconds.
    pub cpu_us: u64,
    /// Time that threads waited for a processor, in microseconds.
    pub run_delay_us: u64,
    /// Time that was watched, in microseconds.
    pub watched_us: u64,
    /// Most resident memory, in bytes.
    pub rss_bytes: u64,
}

impl Step<'_> {
    fn seconds(&self) -> f64 {
        self.lengths.values().sum::<u64>() as f64 / 1000.0
    }

    /// A count of the step as a rate; none of a step without length.
    pub fn per_second(&self, count: u64) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| count as f64 / seconds)
    }
}

/// Puts everything that began in the same step together.
pub fn steps(series: &Series, step_ms: u64, count: u64, end_ms: u64) -> Vec<Step<'_>> {
    let step = |index| Step { after_the_end: index * step_ms >= end_ms, ..Step::default() };
    let mut steps: Vec<Step<'_>> = (0..count).map(step).collect();
    let index = |start_ms: u64| usize::try_from(start_ms / step_ms).unwrap_or(usize::MAX);
    for interval in &series.robots {
        let Some(step) = steps.get_mut(index(interval.start_ms)) else { continue };
        let length = step.lengths.entry(interval.start_ms).or_default();
        *length = (*length).max(interval.length_ms);
        step.robots.merge(&interval.counts);
        step.hit.push(&interval.times.hit.response);
        step.miss.push(&interval.times.miss.response);
        step.all.extend(interval.times.completed().map(|times| &times.response));
        step.all.extend([&interval.times.timed_out.response, &interval.times.unsent_wait]);
        step.lateness.push(&interval.times.lateness);
        let levels = &mut step.levels;
        levels.waiting = levels.waiting.max(interval.levels.waiting);
        levels.in_flight = levels.in_flight.max(interval.levels.in_flight);
        levels.connections = levels.connections.max(interval.levels.connections);
    }
    for interval in &series.origins {
        let Some(step) = steps.get_mut(index(interval.start_ms)) else { continue };
        step.origins.merge(&interval.counts);
        step.origin_service.push(&interval.service);
        step.origin_lateness.push(&interval.lateness);
        step.origin_connections = step.origin_connections.max(interval.connections);
    }
    for disk in series.disks.iter().filter(|disk| disk.holds == "store") {
        let Some(step) = steps.get_mut(index(disk.start_ms)) else { continue };
        *step.store_disk_bytes.get_or_insert_default() += disk.read_bytes + disk.written_bytes;
    }
    for interval in &series.host {
        let Some(step) = steps.get_mut(index(interval.start_ms)) else { continue };
        let role = step.roles.entry(interval.role.as_str()).or_default();
        role.cpu_us += interval.cpu_us;
        role.run_delay_us += interval.run_delay_us;
        role.watched_us += interval.length_ms * 1000;
        role.rss_bytes = role.rss_bytes.max(interval.rss_bytes);
    }
    steps
}

/// Some merged histograms: what a chart needs of them.
pub struct MergedTimes {
    pub(crate) count: u64,
    sum_us: u64,
    max_us: u64,
    /// (lowest value of the bucket, count), ascending.
    buckets: Vec<(u64, u64)>,
}

impl MergedTimes {
    pub fn new<'a>(histograms: impl Iterator<Item = &'a SparseHistogram>) -> Self {
        let (mut sum_us, mut max_us) = (0, 0);
        let mut all: Vec<(u64, u64)> = Vec::new();
        for histogram in histograms {
            sum_us += histogram.sum_us;
            max_us = max_us.max(histogram.max_us);
            all.extend_from_slice(&histogram.buckets);
        }
        // Stable, which merges what is ascending already.
        all.sort_by_key(|(low_us, _)| *low_us);
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        Self { count: all.iter().map(|bucket| bucket.1).sum(), sum_us, max_us, buckets: all }
    }

    /// The mean, in microseconds; none of nothing.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_us as f64 / self.count as f64)
    }

    /// The largest value, in microseconds; none of nothing.
    pub fn max_us(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max_us as f64)
    }

    /// A quantile (0 to 1), in microseconds; none of nothing. `ruler` has the bounds of the buckets.
    pub fn quantile_us(&self, quantile: f64, ruler: &Histogram) -> Option<f64> {
        let wanted = ((self.count as f64 * quantile).ceil() as u64).max(1);
        let mut upto = 0;
        for (low_us, count) in &self.buckets {
            upto += count;
            if upto >= wanted {
                return Some(ruler.bucket_high_us(*low_us).min(self.max_us) as f64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_percentiles_are_those_of_the_histogram() {
        let (mut one, mut other) = (Histogram::new(), Histogram::new());
        for value in 0..5000u64 {
            if value % 3 == 0 { one.record(value * value) } else { other.record(value * 7) }
        }
        let (first, second) = (one.to_sparse(), other.to_sparse());
        let merged = MergedTimes::new([&first, &second].into_iter());
        one.merge(&other);
        assert_eq!(merged.count, one.count());
        assert_eq!(merged.mean_us(), one.mean_us());
        for quantile in [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let expected = one.quantile_us(quantile).map(|us| us as f64);
            assert_eq!(merged.quantile_us(quantile, &one), expected, "{quantile}");
        }
        assert_eq!(MergedTimes::new(std::iter::empty()).quantile_us(0.5, &one), None);
    }
}
