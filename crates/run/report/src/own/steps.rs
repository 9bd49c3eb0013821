//! Health of Assay in each step of a chart's time axis.

use std::collections::BTreeMap;

use assay_measurement::health::{NetworkInterval, ProcessorInterval, ThreadInterval};
use assay_measurement::histogram::SparseHistogram;
use assay_measurement::measured::Series;

/// Activity of Assay and the machine in one step.
#[derive(Default)]
pub(crate) struct OwnStep<'a> {
    /// Lags of the timers of a role's threads.
    pub timer_lag: BTreeMap<&'a str, Vec<&'a SparseHistogram>>,
    /// The longest stall of a role, in microseconds.
    pub stall_us: BTreeMap<&'a str, u64>,
    pub threads: BTreeMap<(&'a str, u32), ProcessorTime>,
    pub processors: BTreeMap<u32, ProcessorTime>,
    pub accept_queue: Option<u32>,
    pub network: Option<NetworkStep>,
}

/// Use of a thread's or a processor's time.
#[derive(Default, Clone, Copy)]
pub(crate) struct ProcessorTime {
    pub used_us: u64,
    /// Threads: ready to run, without a processor. Processors: taken by the hypervisor.
    pub lost_us: u64,
    pub watched_us: u64,
}

impl ProcessorTime {
    fn add(&mut self, used_us: u64, lost_us: u64, length_ms: u64) {
        self.used_us += used_us;
        self.lost_us += lost_us;
        self.watched_us += length_ms * 1000;
    }

    pub(crate) fn used_percent(self) -> Option<f64> {
        (self.watched_us > 0).then(|| self.used_us as f64 * 100.0 / self.watched_us as f64)
    }

    pub(crate) fn lost_percent(self) -> Option<f64> {
        (self.watched_us > 0).then(|| self.lost_us as f64 * 100.0 / self.watched_us as f64)
    }
}

/// Counters of the network stack, and its highest levels.
#[derive(Default)]
pub(crate) struct NetworkStep {
    /// Length of what was measured, by the start of the interval: namespaces are measured side by side.
    lengths: BTreeMap<u64, u64>,
    levels: BTreeMap<u64, (u64, u64)>,
    pub retransmitted: u64,
    pub listen_drops: u64,
    pub backlog_drops: u64,
    pub receive_drops: u64,
}

impl NetworkStep {
    pub(crate) fn per_second(&self, count: u64) -> Option<f64> {
        let length_ms: u64 = self.lengths.values().sum();
        (length_ms > 0).then(|| count as f64 * 1000.0 / length_ms as f64)
    }

    /// Most sockets in use in all namespaces together.
    pub(crate) fn sockets(&self) -> u64 {
        self.levels.values().map(|level| level.0).max().unwrap_or(0)
    }

    /// Most connections in TIME_WAIT in all namespaces together.
    pub(crate) fn time_wait(&self) -> u64 {
        self.levels.values().map(|level| level.1).max().unwrap_or(0)
    }
}

impl<'a> OwnStep<'a> {
    fn thread(&mut self, interval: &'a ThreadInterval) {
        let role = interval.role.as_str();
        self.timer_lag.entry(role).or_default().push(&interval.timer_lag);
        let thread = self.threads.entry((role, interval.thread)).or_default();
        thread.add(interval.cpu_us, interval.run_delay_us, interval.length_ms);
        if interval.accept_queue_limit > 0 {
            self.accept_queue = self.accept_queue.max(Some(interval.accept_queue));
        }
    }

    fn network(&mut self, interval: &NetworkInterval) {
        let sum = self.network.get_or_insert_default();
        let length_ms = sum.lengths.entry(interval.start_ms).or_default();
        *length_ms = (*length_ms).max(interval.length_ms);
        let level = sum.levels.entry(interval.start_ms).or_default();
        *level = (level.0 + interval.sockets, level.1 + interval.time_wait);
        sum.retransmitted += interval.retransmitted;
        // A full queue is one of the reasons to drop, and counted among them.
        sum.listen_drops += interval.listen_drops.max(interval.listen_overflows);
        sum.backlog_drops += interval.backlog_drops;
        sum.receive_drops += interval.receive_drops;
    }

    fn processor(&mut self, interval: &ProcessorInterval) {
        let processor = self.processors.entry(interval.cpu).or_default();
        processor.add(interval.busy_us, interval.steal_us, interval.length_ms);
    }
}

/// Puts everything that began in the same step together.
pub(crate) fn own_steps(series: &Series, step_ms: u64, count: usize) -> Vec<OwnStep<'_>> {
    let mut steps: Vec<OwnStep<'_>> = (0..count).map(|_| OwnStep::default()).collect();
    let index = |at_ms: u64| usize::try_from(at_ms / step_ms).unwrap_or(usize::MAX);
    for interval in &series.threads {
        if let Some(step) = steps.get_mut(index(interval.start_ms)) {
            step.thread(interval);
        }
    }
    for interval in &series.network {
        if let Some(step) = steps.get_mut(index(interval.start_ms)) {
            step.network(interval);
        }
    }
    for interval in &series.processors {
        if let Some(step) = steps.get_mut(index(interval.start_ms)) {
            step.processor(interval);
        }
    }
    for stall in &series.stalls {
        if let Some(step) = steps.get_mut(index(stall.at_ms)) {
            let longest = step.stall_us.entry(stall.role.as_str()).or_default();
            *longest = (*longest).max(stall.length_us);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measurement::health::Stall;

    #[test]
    fn seconds_of_a_step_are_put_together_and_the_longest_stall_is_kept() {
        let thread = |start_ms, cpu_us| ThreadInterval {
            start_ms,
            length_ms: 1000,
            role: "robots".into(),
            cpu_us,
            ..ThreadInterval::default()
        };
        let stall = |at_ms, length_us| Stall { role: "robots".into(), at_ms, length_us, ..Stall::default() };
        let series = Series {
            threads: vec![thread(0, 200_000), thread(1000, 600_000), thread(9000, 1)],
            stalls: vec![stall(100, 20_000), stall(1900, 300_000), stall(2100, 12_000)],
            ..Series::default()
        };
        let steps = own_steps(&series, 2000, 2);
        assert_eq!(steps[0].threads[&("robots", 0)].used_percent(), Some(40.0));
        assert_eq!(steps[0].stall_us["robots"], 300_000);
        assert_eq!(steps[1].stall_us["robots"], 12_000);
        assert!(steps[1].threads.is_empty() && steps[1].network.is_none());
    }
}
