//! The counts of workers, merged into the intervals of the run.

use std::collections::BTreeMap;

use assay_measurement::histogram::Histogram;
use assay_measurement::interval::{RobotInterval, RobotLevels};
use assay_measurement::times::TimesRecorder;
use assay_workload::model::RobotIndex;

use super::RobotRecorder;
use super::ideal::{IdealEvent, IdealFeed};

/// End of an interval: a full second, or the end of a phase. All workers end the same intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalEnd {
    /// Beginning of the interval, in microseconds since the start of the run.
    pub from_us: u64,
    pub to_us: u64,
    /// The phase that it lies in.
    pub phase: u16,
    /// The phase ends here.
    pub ends_phase: bool,
}

/// Counts of one worker in one interval.
#[derive(Debug)]
pub struct WorkerSnapshot {
    /// Number of the interval, from 0.
    pub number: u64,
    pub interval_end: IntervalEnd,
    pub phases: Vec<(u16, Box<RobotRecorder>)>,
    /// Levels at the end of the interval.
    pub levels: RobotLevels,
    /// Events for the ideal cache, up to its end or a little beyond.
    pub ideal_events: Vec<IdealEvent>,
    /// Requests that each best-effort robot launched in a phase that ends here.
    pub launched: Vec<(RobotIndex, u32)>,
    /// The worker has nothing under way any more and sends nothing after this.
    pub last: bool,
}

/// Interval that some workers have not ended yet.
#[derive(Debug)]
struct PendingInterval {
    interval_end: IntervalEnd,
    phases: BTreeMap<u16, Box<RobotRecorder>>,
    levels: RobotLevels,
    launched: Vec<(RobotIndex, u32)>,
    workers_reported: usize,
}

/// Interval that all workers have ended.
#[derive(Debug)]
pub struct MergedInterval {
    pub interval_end: IntervalEnd,
    /// One interval for each phase that had something to count.
    pub intervals: Vec<RobotInterval>,
    /// Requests that each best-effort robot launched in a phase that ends here, in the order of robots.
    pub launched: Vec<u32>,
}

/// Adds up the workers' counts.
#[derive(Debug)]
pub struct SnapshotMerger {
    workers: usize,
    pending: BTreeMap<u64, PendingInterval>,
    ideal: IdealFeed,
    /// For each worker that is done: the number of its last interval.
    last_intervals: Vec<u64>,
}

impl SnapshotMerger {
    pub fn new(workers: usize, ideal: IdealFeed) -> Self {
        Self { workers, pending: BTreeMap::new(), ideal, last_intervals: Vec::new() }
    }

    /// Adds a worker's snapshot; returns the intervals that are complete now.
    pub fn add(&mut self, mut snapshot: WorkerSnapshot) -> Vec<MergedInterval> {
        self.ideal.add(&mut snapshot.ideal_events);
        if snapshot.last {
            self.last_intervals.push(snapshot.number);
        }
        let pending = self.pending.entry(snapshot.number).or_insert_with(|| PendingInterval {
            interval_end: snapshot.interval_end,
            phases: BTreeMap::new(),
            levels: RobotLevels::default(),
            launched: Vec::new(),
            workers_reported: 0,
        });
        pending.workers_reported += 1;
        // Only a worker's last interval ends when it likes; the others' may go on.
        pending.interval_end.to_us = pending.interval_end.to_us.max(snapshot.interval_end.to_us);
        pending.launched.append(&mut snapshot.launched);
        pending.levels.waiting += snapshot.levels.waiting;
        pending.levels.in_flight += snapshot.levels.in_flight;
        pending.levels.connections += snapshot.levels.connections;
        for (phase, recorder) in snapshot.phases {
            match pending.phases.entry(phase) {
                std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(recorder)),
                std::collections::btree_map::Entry::Occupied(mut entry) => entry.get_mut().merge(&recorder),
            }
        }
        let mut complete = Vec::new();
        while let Some((&number, pending)) = self.pending.first_key_value()
            // Workers that have finished report no later intervals.
            && pending.workers_reported == self.workers - self.finished_before(number)
        {
            let Some(pending) = self.pending.remove(&number) else { break };
            complete.push(self.finish(pending));
        }
        complete
    }

    /// True when every worker has sent its last snapshot.
    pub fn is_done(&self) -> bool {
        self.last_intervals.len() == self.workers && self.pending.is_empty()
    }

    /// Number of workers that have sent their last snapshot.
    pub fn finished_workers(&self) -> usize {
        self.last_intervals.len()
    }

    fn finished_before(&self, number: u64) -> usize {
        self.last_intervals.iter().filter(|&&last| last < number).count()
    }

    fn finish(&mut self, pending: PendingInterval) -> MergedInterval {
        let PendingInterval { interval_end, mut phases, levels, mut launched, .. } = pending;
        phases.entry(interval_end.phase).or_default();
        // After the last interval nothing more comes: what ended at that very instant belongs to it.
        let until_us = if self.is_done() { u64::MAX } else { interval_end.to_us };
        self.ideal.feed(until_us, |phase, add| add(&mut phases.entry(phase).or_default().counts));
        // Rounded once, so that intervals neither overlap nor leave gaps.
        let (start_ms, end_ms) = (interval_end.from_us / 1_000, interval_end.to_us / 1_000);
        let interval = |(phase, recorder): (u16, Box<RobotRecorder>)| RobotInterval {
            start_ms,
            length_ms: end_ms - start_ms,
            phase,
            counts: recorder.counts(),
            times: recorder.times.map(TimesRecorder::to_times, Histogram::to_sparse),
            // Levels are of all robots, whatever phase their xacts belong to: they stand once.
            levels: if phase == interval_end.phase { levels } else { RobotLevels::default() },
        };
        let intervals = phases.into_iter().map(interval).collect();
        launched.sort_unstable();
        MergedInterval {
            interval_end,
            intervals,
            launched: launched.into_iter().map(|(_, number)| number).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_cache::behaviour::CacheBehaviour;
    use assay_cache::ideal::{FOREVER, Lookup, RequestClass};
    use assay_workload::XactId;

    use crate::tally::ideal::ReceivedBody;

    use super::*;

    const CUT: IntervalEnd = IntervalEnd { from_us: 0, to_us: 1_000_000, phase: 1, ends_phase: false };

    fn merger(workers: usize) -> SnapshotMerger {
        SnapshotMerger::new(workers, IdealFeed::new(CacheBehaviour::default()))
    }

    /// Intervals by phase that this snapshot completes.
    fn intervals(merger: &mut SnapshotMerger, snapshot: WorkerSnapshot) -> Vec<RobotInterval> {
        let mut complete = merger.add(snapshot);
        assert_eq!(complete.len(), 1);
        complete.remove(0).intervals
    }

    fn snapshot(number: u64, due_by_phase: &[(u16, u64)]) -> WorkerSnapshot {
        let interval_end =
            IntervalEnd { from_us: number * 1_000_000, to_us: (number + 1) * 1_000_000, ..CUT };
        let phases = due_by_phase.iter().map(|&(phase, due)| {
            let mut recorder = Box::<RobotRecorder>::default();
            recorder.counts.due = due;
            (phase, recorder)
        });
        let levels = RobotLevels { waiting: 1, in_flight: 2, connections: 3 };
        WorkerSnapshot {
            number,
            interval_end,
            phases: phases.collect(),
            levels,
            ideal_events: Vec::new(),
            launched: Vec::new(),
            last: false,
        }
    }

    #[test]
    fn an_interval_is_complete_when_all_workers_have_made_the_cut() {
        let mut merger = merger(2);
        assert!(merger.add(snapshot(0, &[(1, 5)])).is_empty());
        assert!(merger.add(snapshot(1, &[(1, 7)])).is_empty(), "the first worker may run ahead");
        let first = intervals(&mut merger, snapshot(0, &[(1, 6)]));
        assert_eq!((first[0].start_ms, first[0].length_ms, first[0].counts.due), (0, 1_000, 11));
        assert_eq!(first[0].levels, RobotLevels { waiting: 2, in_flight: 4, connections: 6 });
    }

    #[test]
    fn stragglers_stay_in_intervals_of_their_own_phase() {
        let intervals = intervals(&mut merger(1), snapshot(0, &[(0, 2), (1, 5)]));
        let seen: Vec<_> = intervals.iter().map(|i| (i.phase, i.counts.due, i.levels.connections)).collect();
        assert_eq!(seen, [(0, 2, 0), (1, 5, 3)]);
    }

    #[test]
    fn an_idle_phase_has_an_interval_all_the_same() {
        let intervals = intervals(&mut merger(1), snapshot(0, &[]));
        assert_eq!(intervals.iter().map(|i| i.phase).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_worker_that_has_ended_is_not_waited_for() {
        let mut merger = merger(2);
        assert!(merger.add(WorkerSnapshot { last: true, ..snapshot(0, &[]) }).is_empty());
        assert_eq!(merger.add(snapshot(0, &[])).len(), 1);
        assert_eq!(merger.add(WorkerSnapshot { last: true, ..snapshot(1, &[]) }).len(), 1);
        assert!(merger.is_done());
    }

    #[test]
    fn ideal_hits_are_counted_across_workers_in_the_phase_of_the_request() {
        let ideal_events = |at_us, phase| {
            let lookup = Lookup {
                key: 1,
                object: 1,
                request: RequestClass::Get,
                cachable: true,
                at_us,
                fresh_until_ms: FOREVER,
            };
            let xact = XactId { robot: 0, number: at_us, place: 0 };
            let counted = Some(ReceivedBody { phase, body_bytes: 10, stored_us: None });
            let ended = IdealEvent::Ended { xact, at_us: at_us + 10, counted };
            vec![IdealEvent::Sent { lookup, xact }, ended]
        };
        let mut merger = merger(2);
        merger.add(WorkerSnapshot { ideal_events: ideal_events(500, 1), ..snapshot(0, &[]) });
        let last = WorkerSnapshot { ideal_events: ideal_events(400, 0), ..snapshot(0, &[]) };
        let intervals = intervals(&mut merger, last);
        let seen: Vec<_> =
            intervals.iter().map(|i| (i.phase, i.counts.ideal_basic, i.counts.ideal_hits)).collect();
        assert_eq!(seen, [(0, 1, 0), (1, 1, 1)]);
    }

    #[test]
    fn what_ends_at_the_instant_of_the_last_cut_is_counted() {
        let lookup = Lookup {
            key: 1,
            object: 1,
            request: RequestClass::Get,
            cachable: true,
            at_us: 5,
            fresh_until_ms: FOREVER,
        };
        let xact = XactId { robot: 0, number: 0, place: 0 };
        let counted = Some(ReceivedBody { phase: 1, body_bytes: 10, stored_us: None });
        let ideal_events =
            vec![IdealEvent::Sent { lookup, xact }, IdealEvent::Ended { xact, at_us: CUT.to_us, counted }];
        let intervals =
            intervals(&mut merger(1), WorkerSnapshot { ideal_events, last: true, ..snapshot(0, &[(1, 1)]) });
        assert_eq!(intervals[0].counts.ideal_basic, 1);
    }
}
