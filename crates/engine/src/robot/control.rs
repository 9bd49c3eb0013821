//! What do the workers and the conductor tell each other while a run goes on? A few shared numbers.
//!
//! Workers read when phases end, and publish how far they are, on a tick of their own: nothing here is touched for each
//! xact. A decision takes effect a little later than it is made ([`LEAD_NS`]), so that every worker has seen it
//! by then, and all make the same cuts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use assay_workload::Timeline;

use crate::clock::RunClock;

/// How far ahead a decision of the conductor lies.
pub const LEAD_NS: u64 = 30_000_000;
/// An end that is not known yet.
const OPEN: u64 = u64::MAX;

/// Numbers that all threads of a run share.
#[derive(Debug)]
pub struct Control {
    /// The clock of the run.
    pub clock: RunClock,
    /// When each phase ends, in nanoseconds of `CLOCK_MONOTONIC`.
    ends_ns: Vec<AtomicU64>,
    /// When everything stops.
    stop_ns: AtomicU64,
    /// The working set has stopped growing (best-effort robots have to be told).
    frozen: AtomicBool,
    /// How far each worker is.
    progress: Vec<Progress>,
}

/// How far one worker is in the current phase; the whole run's fill objects.
#[derive(Debug, Default)]
// A cache line of its own: workers write without disturbing each other.
#[repr(align(128))]
pub struct Progress {
    /// Phase that the other numbers are of.
    pub phase: AtomicU64,
    /// Xacts that have ended.
    pub ended: AtomicU64,
    /// Bytes of fill.
    pub fill_bytes: AtomicU64,
    /// Objects of fill since the start of the run.
    pub fill_objects: AtomicU64,
}

/// Sums over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Xacts that have ended in the phase.
    pub ended: u64,
    /// Bytes of fill in the phase.
    pub fill_bytes: u64,
    /// Objects of fill since the start of the run.
    pub fill_objects: u64,
}

impl Control {
    /// For a run that starts at the clock's start.
    pub fn new(clock: RunClock, timeline: &Timeline, workers: usize) -> Self {
        let end =
            |end: Option<std::time::Duration>| end.map_or(OPEN, |end| clock.start_ns + end.as_nanos() as u64);
        Self {
            clock,
            ends_ns: timeline.phases().iter().map(|span| AtomicU64::new(end(span.end))).collect(),
            stop_ns: AtomicU64::new(OPEN),
            frozen: AtomicBool::new(false),
            progress: (0..workers).map(|_| Progress::default()).collect(),
        }
    }

    /// When a phase ends, as far as is known.
    pub fn end_ns(&self, phase: u16) -> u64 {
        self.ends_ns[usize::from(phase)].load(Relaxed).min(self.stop_ns.load(Relaxed))
    }

    /// True when nothing follows a phase that ends at `end_ns`.
    pub fn is_over(&self, phase: u16, end_ns: u64) -> bool {
        usize::from(phase) + 1 >= self.ends_ns.len() || self.stop_ns.load(Relaxed) <= end_ns
    }

    /// True while a phase's end is not known.
    pub fn is_open(&self, phase: u16) -> bool {
        self.ends_ns[usize::from(phase)].load(Relaxed) == OPEN
    }

    /// Ends an open phase.
    pub fn end_phase(&self, phase: u16, at_ns: u64) {
        self.ends_ns[usize::from(phase)].store(at_ns, Relaxed);
    }

    /// Stops everything; the first call counts.
    pub fn stop(&self, at_ns: u64) {
        self.stop_ns.fetch_min(at_ns, Relaxed);
    }

    /// True once a stop was asked for.
    pub fn is_stopping(&self) -> bool {
        self.stop_ns.load(Relaxed) != OPEN
    }

    /// The working set stops growing.
    pub fn freeze(&self) {
        self.frozen.store(true, Relaxed);
    }

    /// True once the working set was told to stop growing.
    pub fn is_frozen(&self) -> bool {
        self.frozen.load(Relaxed)
    }

    /// A worker's own numbers.
    pub fn progress(&self, worker: usize) -> &Progress {
        &self.progress[worker]
    }

    /// Sums over all workers; those that are not in `phase` yet have done nothing in it.
    pub fn totals(&self, phase: u16) -> Totals {
        let mut totals = Totals::default();
        for progress in &self.progress {
            if progress.phase.load(Relaxed) == u64::from(phase) {
                totals.ended += progress.ended.load(Relaxed);
                totals.fill_bytes += progress.fill_bytes.load(Relaxed);
            }
            totals.fill_objects += progress.fill_objects.load(Relaxed);
        }
        totals
    }
}
