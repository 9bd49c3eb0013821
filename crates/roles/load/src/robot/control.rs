//! Numbers that the workers and the coordinator share while a run goes on.
//!
//! Workers read when phases end, and publish how far they are, on a tick of their own: nothing here is touched for each
//! xact. A decision takes effect a little later than it is made ([`LEAD_NS`]), so that every worker has seen it
//! by then, and all end the same intervals. Changes of load that adapts are announced further ahead, and no worker may miss one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::backlog::Backlog;
use super::schedule::{LOOKAHEAD_NS, LoadChange};
use assay_base::clock::monotonic_ns;
use assay_protocol::clock::RunClock;

/// Time from a decision of the coordinator to its effect.
pub const LEAD_NS: u64 = 30_000_000;
/// An end that is not known yet.
const OPEN: u64 = u64::MAX;

/// Numbers that all threads of a run share.
#[derive(Debug)]
pub struct RunControl {
    /// The clock of the run.
    pub clock: RunClock,
    /// End of each phase, in nanoseconds of `CLOCK_MONOTONIC`.
    ends_ns: Vec<AtomicU64>,
    stop_ns: AtomicU64,
    /// The working set has stopped growing: best-effort robots learn of it here.
    frozen: AtomicBool,
    /// Changes of load that adapts, in order.
    changes: Mutex<Vec<Arc<LoadChange>>>,
    /// Share of best-effort robots alive, as the bits of a number; [`OPEN`]: as the phase says.
    alive: AtomicU64,
    /// One for each worker.
    progress: Vec<WorkerProgress>,
    /// Bursts that follow the delays of any worker.
    pub backlog: Backlog,
}

/// Progress of one worker in the current phase, and its fill objects since the start of the run.
#[derive(Debug, Default)]
// A cache line of its own: workers write without disturbing each other.
#[repr(align(128))]
pub struct WorkerProgress {
    /// Phase that the other numbers are of.
    pub phase: AtomicU64,
    /// Xacts that have ended.
    pub ended: AtomicU64,
    pub fill_bytes: AtomicU64,
    /// Objects of fill since the start of the run.
    pub fill_objects: AtomicU64,
}

/// Sums over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgressTotals {
    /// Xacts that have ended in the phase.
    pub ended: u64,
    /// Bytes of fill in the phase.
    pub fill_bytes: u64,
    /// Objects of fill since the start of the run.
    pub fill_objects: u64,
}

impl RunControl {
    /// For a run that starts at the clock's start. `ends_ns` are the ends of its phases since then; none: not known
    /// yet.
    pub fn new(clock: RunClock, ends_ns: &[Option<u64>], workers: usize) -> Self {
        let end = |end: &Option<u64>| AtomicU64::new(end.map_or(OPEN, |end_ns| clock.start_ns + end_ns));
        Self {
            clock,
            ends_ns: ends_ns.iter().map(end).collect(),
            stop_ns: AtomicU64::new(OPEN),
            frozen: AtomicBool::new(false),
            changes: Mutex::new(Vec::new()),
            alive: AtomicU64::new(OPEN),
            progress: (0..workers).map(|_| WorkerProgress::default()).collect(),
            backlog: Backlog::default(),
        }
    }

    /// End of a phase, as far as it is known.
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

    /// True once a stop has been requested.
    pub fn is_stopping(&self) -> bool {
        self.stop_ns.load(Relaxed) != OPEN
    }

    /// Stops the growth of the working set.
    pub fn freeze(&self) {
        self.frozen.store(true, Relaxed);
    }

    /// True once the working set has stopped growing.
    pub fn is_frozen(&self) -> bool {
        self.frozen.load(Relaxed)
    }

    /// Announces a change of load that adapts; false where that is too late for all workers to apply it.
    pub fn announce(&self, change: LoadChange) -> bool {
        let mut changes = self.lock();
        // A worker that does not see it has looked at the clock, and at the changes, before this.
        if monotonic_ns() + LOOKAHEAD_NS > self.clock.start_ns + change.at_ns {
            return false;
        }
        for (end, end_ns) in self.ends_ns.iter().zip(&change.ends_ns) {
            end.store(end_ns.map_or(OPEN, |end_ns| self.clock.start_ns + end_ns), Relaxed);
        }
        changes.push(Arc::new(change));
        true
    }

    /// Changes after the first `from`. Look at the clock before, and not again before applying them.
    pub fn changes_after(&self, from: usize) -> Vec<Arc<LoadChange>> {
        self.lock().get(from..).unwrap_or_default().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<LoadChange>>> {
        // Whoever panicked while holding it has taken the run down with it.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the share of best-effort robots that are alive.
    pub fn set_alive(&self, share: f64) {
        self.alive.store(share.to_bits(), Relaxed);
    }

    /// Returns to the population of the phase.
    pub fn reset_alive(&self) {
        self.alive.store(OPEN, Relaxed);
    }

    /// Share of best-effort robots alive; none: as the phase says.
    pub fn alive(&self) -> Option<f64> {
        let bits = self.alive.load(Relaxed);
        (bits != OPEN).then(|| f64::from_bits(bits))
    }

    /// Numbers of one worker.
    pub fn progress(&self, worker: usize) -> &WorkerProgress {
        &self.progress[worker]
    }

    /// Sums over all workers; those that are not in `phase` yet have done nothing in it.
    pub fn totals(&self, phase: u16) -> ProgressTotals {
        let mut totals = ProgressTotals::default();
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
