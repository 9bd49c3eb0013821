//! Counts and times of one worker of the origins, and their merging into intervals.
//!
//! At every full second of the run, a worker sends a snapshot of what it counted, phase by phase; when all workers have
//! done so, their snapshots add up to the intervals of that second.

use std::collections::BTreeMap;

use assay_measurement::counts::OriginCounts;
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::OriginInterval;
use assay_workload::Universe;
use thiserror::Error;

use super::request::{OriginRequest, RequestTarget};
use crate::tally::method_name;

/// Upper bound on the examples of each kind of error that a worker keeps in a run.
const MOST_EXAMPLES: u32 = 3;

/// Error in a request that only its origin can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestError {
    #[error("the request body that reached the origin differs from byte {at} of {size_bytes} on")]
    WrongByte { at: u64, size_bytes: u64 },
    #[error("{received} bytes of the request body reached the origin, not {size_bytes}")]
    WrongLength { received: u64, size_bytes: u64 },
    #[error(
        "the robot sent it once, and it reached the origin again {after_ms} ms later: a proxy must not repeat a POST on its own (RFC 9110, 9.2.2)"
    )]
    RepeatedPost { after_ms: u64 },
}

impl RequestError {
    fn kind(self) -> ErrorKind {
        match self {
            RequestError::WrongByte { .. } | RequestError::WrongLength { .. } => ErrorKind::WrongUpload,
            RequestError::RepeatedPost { .. } => ErrorKind::RepeatedPost,
        }
    }
}

/// Counts and times of one phase in the current interval.
#[derive(Debug, Default)]
pub struct OriginRecorder {
    pub counts: OriginCounts,
    /// Last byte written − request complete, in microseconds.
    pub service: Histogram,
    /// Lateness of the ends of think times, in microseconds.
    pub lateness: Histogram,
}

/// One worker's counts, by phase.
#[derive(Debug)]
pub struct OriginTally {
    phases: Vec<Option<Box<OriginRecorder>>>,
    /// The phase of the latest request that named one: what names none is counted there.
    current: u16,
    /// Errors of requests in the current interval, as examples.
    examples: Vec<ErrorExample>,
    /// Examples so far.
    example_counts: BTreeMap<ErrorKind, u32>,
}

impl OriginTally {
    pub fn new(phases: usize) -> Self {
        let phases = (0..phases.max(1)).map(|_| None).collect();
        Self { phases, current: 0, examples: Vec::new(), example_counts: BTreeMap::new() }
    }

    /// True when the schedule has this phase.
    pub fn has_phase(&self, phase: u16) -> bool {
        usize::from(phase) < self.phases.len()
    }

    pub fn current(&self) -> u16 {
        self.current
    }

    /// Moves on. Requests of an earlier phase that still arrive do not move back.
    #[inline]
    pub fn enter(&mut self, phase: u16) {
        if phase > self.current && self.has_phase(phase) {
            self.current = phase;
        }
    }

    /// Recorder of a phase.
    #[inline]
    pub fn recorder(&mut self, phase: u16) -> &mut OriginRecorder {
        let last = self.phases.len() - 1;
        self.phases[usize::from(phase).min(last)].get_or_insert_default()
    }

    /// Recorder of what belongs to no request.
    pub fn current_recorder(&mut self) -> &mut OriginRecorder {
        self.recorder(self.current)
    }

    /// Counts an error of a request, and keeps the first ones of its kind for people to look at.
    #[cold]
    pub fn count_error(
        &mut self,
        universe: &Universe,
        request: &OriginRequest,
        error: &RequestError,
        at_ms: u64,
    ) {
        let phase = request.phase(self);
        let counts = &mut self.recorder(phase).counts;
        match error {
            RequestError::WrongByte { .. } | RequestError::WrongLength { .. } => counts.wrong_uploads += 1,
            RequestError::RepeatedPost { .. } => counts.repeated_posts += 1,
        }
        let kind = error.kind();
        let example_count = self.example_counts.entry(kind).or_default();
        if *example_count == MOST_EXAMPLES {
            return;
        }
        *example_count += 1;
        let xact = request.xact();
        let workload = universe.workload();
        let host = workload.origins.get(usize::from(request.origin)).map_or("", |origin| &origin.authority);
        let path = match &request.target {
            RequestTarget::Object { object, .. } => universe.path(object),
            RequestTarget::Health | RequestTarget::Plain(_) => String::new(),
        };
        self.examples.push(ErrorExample {
            kind,
            at_ms,
            phase: workload.schedule.phases.get(usize::from(phase)).map_or(String::new(), |p| p.name.clone()),
            xact: format!("{}.{}.{}", xact.robot, xact.number, xact.place),
            request: format!("{} http://{host}{path}", method_name(request.method)),
            detail: error.to_string(),
        });
    }

    /// Takes the examples in the current interval.
    pub fn take_examples(&mut self) -> Vec<ErrorExample> {
        std::mem::take(&mut self.examples)
    }

    /// Takes what was counted in the current interval.
    pub fn take_phases(&mut self) -> Vec<(u16, Box<OriginRecorder>)> {
        let phases = self.phases.iter_mut().zip(0u16..);
        phases.filter_map(|(recorder, phase)| Some((phase, recorder.take()?))).collect()
    }

    /// Forgets everything: the run starts now.
    pub fn reset(&mut self) {
        self.phases.iter_mut().for_each(|recorder| *recorder = None);
        self.current = 0;
        self.examples.clear();
        self.example_counts.clear();
    }
}

/// Counts of one worker in one second.
#[derive(Debug)]
pub struct OriginSnapshot {
    /// Number of the second, from 0.
    pub number: u64,
    /// End of the second, in milliseconds since the start of the run.
    pub end_ms: u64,
    pub phases: Vec<(u16, Box<OriginRecorder>)>,
    /// Errors that only origins see, as examples.
    pub examples: Vec<ErrorExample>,
    /// The worker's latest phase.
    pub current: u16,
    pub connections: u64,
    /// The worker sends nothing after this.
    pub last: bool,
}

/// Interval that some workers have not ended yet.
#[derive(Debug, Default)]
struct PendingSecond {
    end_ms: u64,
    phases: BTreeMap<u16, Box<OriginRecorder>>,
    current: u16,
    connections: u64,
    workers_reported: usize,
}

/// Adds up the workers' counts.
#[derive(Debug)]
pub struct OriginMerger {
    workers: usize,
    pending: BTreeMap<u64, PendingSecond>,
    /// For each worker that is done: the number of its last interval.
    ended_at: Vec<u64>,
}

impl OriginMerger {
    pub fn new(workers: usize) -> Self {
        Self { workers, pending: BTreeMap::new(), ended_at: Vec::new() }
    }

    /// Adds a worker's snapshot; returns the intervals that are complete now.
    pub fn add(&mut self, snapshot: OriginSnapshot) -> Vec<OriginInterval> {
        if snapshot.last {
            self.ended_at.push(snapshot.number);
        }
        let pending = self.pending.entry(snapshot.number).or_default();
        pending.end_ms = pending.end_ms.max(snapshot.end_ms);
        pending.current = pending.current.max(snapshot.current);
        pending.connections += snapshot.connections;
        pending.workers_reported += 1;
        for (phase, recorder) in snapshot.phases {
            let sum = pending.phases.entry(phase).or_default();
            sum.counts.merge(&recorder.counts);
            sum.service.merge(&recorder.service);
            sum.lateness.merge(&recorder.lateness);
        }
        let mut complete = Vec::new();
        while let Some((&number, pending)) = self.pending.first_key_value() {
            let ended_before = self.ended_at.iter().filter(|&&last| last < number).count();
            if pending.workers_reported + ended_before < self.workers {
                break;
            }
            let Some(pending) = self.pending.remove(&number) else { break };
            complete.extend(pending.into_intervals(number));
        }
        complete
    }

    /// True when some worker has sent its last snapshot.
    pub fn has_ended(&self) -> bool {
        !self.ended_at.is_empty()
    }

    /// True when every worker has sent its last snapshot.
    pub fn is_done(&self) -> bool {
        self.ended_at.len() == self.workers && self.pending.is_empty()
    }
}

impl PendingSecond {
    fn into_intervals(mut self, number: u64) -> impl Iterator<Item = OriginInterval> {
        self.phases.entry(self.current).or_default();
        let start_ms = number * 1000;
        self.phases.into_iter().map(move |(phase, recorder)| OriginInterval {
            start_ms,
            length_ms: self.end_ms - start_ms,
            phase,
            counts: recorder.counts,
            service: recorder.service.to_sparse(),
            lateness: recorder.lateness.to_sparse(),
            // Connections belong to no phase: they stand once.
            connections: if phase == self.current { self.connections } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(number: u64, requests: &[(u16, u64)], last: bool) -> OriginSnapshot {
        let mut tally = OriginTally::new(3);
        for &(phase, count) in requests {
            tally.enter(phase);
            tally.recorder(phase).counts.requests += count;
        }
        let end_ms = if last { number * 1000 + 10 } else { number * 1000 + 1000 };
        let (phases, current) = (tally.take_phases(), tally.current());
        OriginSnapshot { number, end_ms, phases, examples: Vec::new(), current, connections: 2, last }
    }

    fn seen(intervals: &[OriginInterval]) -> Vec<(u64, u16, u64, u64)> {
        intervals.iter().map(|i| (i.start_ms, i.phase, i.counts.requests, i.connections)).collect()
    }

    #[test]
    fn an_interval_is_complete_when_all_workers_have_made_the_cut() {
        let mut merger = OriginMerger::new(2);
        assert!(merger.add(snapshot(0, &[(0, 1)], false)).is_empty());
        assert!(merger.add(snapshot(1, &[(1, 1)], false)).is_empty());
        assert_eq!(seen(&merger.add(snapshot(0, &[(0, 2), (1, 5)], false))), [(0, 0, 3, 0), (0, 1, 5, 4)]);
        let last = merger.add(snapshot(1, &[], false));
        assert_eq!(seen(&last), [(1000, 1, 1, 4)]);
        assert_eq!(last[0].length_ms, 1000);
    }

    #[test]
    fn a_worker_that_has_ended_is_not_waited_for() {
        let mut merger = OriginMerger::new(2);
        assert!(merger.add(snapshot(0, &[], true)).is_empty());
        assert_eq!(merger.add(snapshot(0, &[], false)).len(), 1);
        assert!(!merger.is_done());
        let last = merger.add(snapshot(1, &[(0, 1)], true));
        assert_eq!((seen(&last), last[0].length_ms), (vec![(1000, 0, 1, 2)], 10));
        assert!(merger.is_done());
    }

    #[test]
    fn late_requests_of_an_earlier_phase_do_not_move_back() {
        let mut tally = OriginTally::new(2);
        tally.enter(1);
        tally.enter(0);
        tally.enter(7);
        assert_eq!(tally.current(), 1);
        tally.current_recorder().counts.refused += 1;
        tally.recorder(9).counts.refused += 1;
        let cut = tally.take_phases();
        assert_eq!((cut.len(), cut[0].0, cut[0].1.counts.refused), (1, 1, 2));
        assert!(tally.take_phases().is_empty());
    }
}
