//! For how long the threads of a role waited for a processor in each stretch of ten milliseconds.
//!
//! What the kernel counts tells how long all waits were together, and not how long each was: ten waits of a tenth of a
//! millisecond touch other figures than one of a millisecond. So a thread of the lab's own reads the counts often.
//!
//! *Does not:* tell waiting for others from waiting for threads of the same role; see who had the processors for that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::own_error::WAIT_WINDOW;

use super::kept::{Kept, Room};
use super::processes::parse_run_delay_ns;

/// Threads that are watched at most; of more, those that have waited most.
pub const THREADS: usize = 32;

/// Watches threads from a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Waits {
    shared: Arc<Shared>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    ends: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    threads: Vec<Thread>,
    waits: Histogram,
    /// All of it together.
    watched_ns: u64,
}

/// A thread that is watched.
#[derive(Debug)]
struct Thread {
    id: u32,
    schedstat: Kept,
    waited_ns: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panicked while holding it left counts that are as good as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waits {
    /// Watches nothing yet. None where no thread can be started for it.
    pub fn begin() -> Option<Self> {
        let shared = Arc::new(Shared::default());
        let its_own = Arc::clone(&shared);
        let watcher = std::thread::Builder::new().name("waits".into()).spawn(move || watch(&its_own)).ok()?;
        Some(Self { shared, watcher: Some(watcher) })
    }

    /// Watches these threads from now on: process and thread, each.
    pub fn follow(&self, threads: &[(u32, u32)]) {
        let mut state = self.shared.lock();
        let threads = &threads[..threads.len().min(THREADS)];
        state.threads.retain(|known| threads.iter().any(|(_, id)| *id == known.id));
        for (pid, id) in threads {
            if state.threads.iter().any(|known| known.id == *id) {
                continue;
            }
            let Some(schedstat) = Kept::open(format!("/proc/{pid}/task/{id}/schedstat")) else { continue };
            let mut thread = Thread { id: *id, schedstat, waited_ns: 0 };
            thread.waited_since(&mut Room::default());
            state.threads.push(thread);
        }
    }

    /// How long they waited in each stretch since the last call, in microseconds. Nothing, where that is not nearly all of
    /// what all threads of the role waited meanwhile: it would tell nothing of how that was spread.
    pub fn take(&self, of_all_us: u64) -> SparseHistogram {
        let mut state = self.shared.lock();
        let waits = state.waits.to_sparse();
        state.waits.clear();
        let watched_us = std::mem::take(&mut state.watched_ns) / 1_000;
        if is_nearly_all(watched_us, of_all_us) { waits } else { SparseHistogram::default() }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.shared.ends.store(true, Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

impl Thread {
    /// How long it has waited since the last time, in nanoseconds; nothing once it has ended.
    fn waited_since(&mut self, room: &mut Room) -> u64 {
        let Some(waited_ns) = self.schedstat.read(room).map(|text| parse_run_delay_ns(&text)) else {
            return 0;
        };
        waited_ns.saturating_sub(std::mem::replace(&mut self.waited_ns, waited_ns))
    }
}

fn watch(shared: &Shared) {
    let mut room = Room::default();
    let mut last = Instant::now();
    while !shared.ends.load(Relaxed) {
        std::thread::sleep(WAIT_WINDOW.saturating_sub(last.elapsed()));
        let mut state = shared.lock();
        let waited_ns: u64 = state.threads.iter_mut().map(|thread| thread.waited_since(&mut room)).sum();
        let length = last.elapsed();
        last += length;
        state.watched_ns += waited_ns;
        if !state.threads.is_empty() {
            state.waits.record_many(waited_ns / 1_000, windows(length));
        }
    }
}

/// Nine tenths are nearly all; and so is all but a millisecond, which may have been waited between two readings.
fn is_nearly_all(watched_us: u64, of_all_us: u64) -> bool {
    watched_us + (of_all_us / 10).max(1_000) >= of_all_us
}

/// A stretch that was longer than meant counts as several, in each of which all of it was waited.
fn windows(length: Duration) -> u64 {
    let windows = length.as_secs_f64() / WAIT_WINDOW.as_secs_f64();
    (windows.round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_that_was_longer_than_meant_counts_as_several() {
        let windows = [1, 9, 11, 24, 26, 300].map(|ms| windows(Duration::from_millis(ms)));
        assert_eq!(windows, [1, 1, 1, 2, 3, 30]);
    }

    #[test]
    fn a_part_of_all_waiting_tells_nothing_of_how_all_was_spread() {
        let seen = [(0, 0), (90_000, 100_000), (89_000, 100_000), (0, 900), (0, 5_000)];
        assert_eq!(seen.map(|(watched, all)| is_nearly_all(watched, all)), [true, true, false, true, false]);
    }

    #[test]
    fn no_more_threads_are_watched_than_there_is_room_for() {
        let waits = Waits::begin().expect("a thread can be started");
        let pid = std::process::id();
        let ends = Arc::new(AtomicBool::new(false));
        let others: Vec<_> = (0..2 * THREADS)
            .map(|_| {
                let ends = Arc::clone(&ends);
                std::thread::spawn(move || {
                    while !ends.load(Relaxed) {
                        std::thread::park();
                    }
                })
            })
            .collect();
        let listed = std::fs::read_dir("/proc/self/task").expect("is there");
        let ids: Vec<(u32, u32)> =
            listed.filter_map(|entry| Some((pid, entry.ok()?.file_name().to_str()?.parse().ok()?))).collect();
        assert!(ids.len() > 2 * THREADS);
        waits.follow(&ids);
        let reversed: Vec<_> = ids.iter().rev().copied().collect();
        waits.follow(&reversed);
        assert!(waits.shared.lock().threads.len() <= THREADS);
        ends.store(true, Relaxed);
        for other in others {
            other.thread().unpark();
            other.join().expect("it ends");
        }
    }

    #[test]
    fn the_stretches_of_a_thread_that_is_watched_are_counted() {
        let waits = Waits::begin().expect("a thread can be started");
        assert_eq!(waits.take(0).buckets, [], "nothing is watched");
        let pid = std::process::id();
        waits.follow(&[(pid, pid), (pid, u32::MAX)]);
        let mut count = 0;
        while count < 3 {
            std::thread::sleep(WAIT_WINDOW);
            count += waits.take(0).count();
        }
        waits.follow(&[]);
        waits.take(0);
        assert_eq!(waits.shared.lock().threads.len(), 0);
    }
}
