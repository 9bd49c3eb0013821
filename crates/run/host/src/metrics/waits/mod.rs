//! For how long the threads of a role waited for a processor in each stretch of two milliseconds, and when that can be felt.
//!
//! What the kernel counts tells how long all waits were together, and neither how long each was nor when: ten waits of a tenth
//! of a millisecond touch other figures than one of a millisecond, and none of them touches a request that came later. So a
//! thread of the lab's own reads the counts often.
//!
//! Without records of switches ([`switches`]), waiting for others cannot be told from waiting for threads of the same role.

mod felt;
mod idle;
mod placed;
mod records;
mod switches;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::own_error::WAIT_WINDOW;
use assay_measurement::waits::{Wait, WaitReport};
use rustix::thread::{CpuSet, Pid, sched_getaffinity};

use super::kept::{Kept, Room};
use super::pace::own_time;
use felt::Felt;
use idle::Processor;
use placed::{Placed, Runs};
use switches::Switches;

/// Threads that are watched at most; of more, those that have waited most.
pub const THREADS: usize = 32;
/// A thread has surely slept once so much of the time is left over by what it ran and waited, in nanoseconds: the kernel
/// adds up what a running thread has had once a tick, of which there are 250 a second or more.
const SURELY_SLEPT_NS: u64 = 5_000_000;
/// After a reading, so many times as long as it took passes before the next, which is 1 % of a processor.
const PASSES: u32 = 100;
/// But no longer than this, however long it took: what is not read for seconds is known too late.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// Waits that are reported at most at a time: whoever does not ask for them has no use for more.
const MOST_WAITS: usize = 100_000;

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
    /// Processors that some of them are bound to, as far as the kernel lets us watch them.
    processors: Vec<Processor>,
    waits: Histogram,
    /// All of it together.
    watched_ns: u64,
    /// What was seen of it that others will count in the next stretch only.
    ahead_us: u64,
    /// When waits could be felt, since the last report.
    felt: Vec<Wait>,
    /// When the threads had processors, as far as the kernel tells.
    runs: Runs,
    /// Up to when that was reported.
    reported_ns: u64,
    /// When the counts were read last.
    read_ns: u64,
    /// What reading took of a processor, since that was last asked for.
    cost: Duration,
}

/// A thread that is watched.
#[derive(Debug)]
struct Thread {
    id: u32,
    schedstat: Kept,
    /// The processor that it is bound to; none: it may run on several.
    processor: Option<u32>,
    last: Counts,
    felt: Felt,
    /// None where the kernel gives no records of its switches: then a wait lies somewhere in its window.
    exact: Option<Exact>,
}

/// What tells where the waits of a thread lie.
#[derive(Debug)]
struct Exact {
    switches: Switches,
    placed: Placed,
    /// Of the switches since the last reading, none were lost.
    is_complete: bool,
}

/// What a thread has had since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    ran_ns: u64,
    waited_ns: u64,
    /// How often it got a processor.
    times: u64,
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
            state.threads.push(Thread::of(*id, schedstat));
        }
        state.watch_processors();
    }

    /// How long they waited in each stretch since the last call, in microseconds. Nothing, where that is not nearly all of
    /// what all threads of the role waited meanwhile, as was counted a moment ago: it would tell nothing of how that was spread.
    pub fn take(&self, of_all_us: u64, room: &mut Room) -> SparseHistogram {
        let mut state = self.shared.lock();
        // The last reading may be many milliseconds ago, if the watcher had to wait itself.
        let before_ns = state.watched_ns;
        state.read(room);
        let last_us = (state.watched_ns - before_ns) / 1_000;
        let waits = state.waits.to_sparse();
        state.waits.clear();
        let watched_us = state.ahead_us + std::mem::take(&mut state.watched_ns) / 1_000;
        state.ahead_us = ahead_us(watched_us, of_all_us, last_us);
        if is_nearly_all(watched_us, of_all_us) { waits } else { SparseHistogram::default() }
    }

    /// When waits could be felt since the last call. None as long as nothing was read.
    pub fn report(&self) -> Option<WaitReport> {
        let mut state = self.shared.lock();
        let State { threads, felt, reported_ns, read_ns, .. } = &mut *state;
        if *read_ns == *reported_ns {
            return None;
        }
        threads.iter_mut().for_each(|thread| thread.felt.report(*read_ns, felt));
        let from_ns = std::mem::replace(reported_ns, *read_ns);
        Some(WaitReport { from_ns, until_ns: *read_ns, waits: std::mem::take(felt) })
    }

    /// Processor time of its thread since the last call.
    pub fn cost(&self) -> Duration {
        std::mem::take(&mut self.shared.lock().cost)
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

impl Counts {
    /// Of `schedstat`: what it ran, what it waited, and how often.
    fn parse(schedstat: &str) -> Option<Self> {
        let mut numbers = schedstat.split_whitespace().map(|number| number.parse().ok());
        Some(Self { ran_ns: numbers.next()??, waited_ns: numbers.next()??, times: numbers.next()?? })
    }

    fn since(self, before: Counts) -> Self {
        Self {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
            times: self.times.saturating_sub(before.times),
        }
    }
}

impl Thread {
    fn of(id: u32, schedstat: Kept) -> Self {
        // First, so that no switch is counted without a record.
        let exact = Switches::of(id).ok();
        let exact = exact.map(|switches| Exact { switches, placed: Placed::default(), is_complete: true });
        let (last, felt) = (Counts::default(), Felt::default());
        let mut thread = Self { id, schedstat, processor: None, last, felt, exact };
        thread.since(&mut Room::default());
        thread
    }

    /// What it has had since the last time; nothing once it has ended.
    fn since(&mut self, room: &mut Room) -> Counts {
        let Some(now) = self.schedstat.read(room).and_then(|text| Counts::parse(&text)) else {
            return Counts::default();
        };
        now.since(std::mem::replace(&mut self.last, now))
    }

    /// Reads its switches since the last time, and adds when it ran.
    fn read_switches(&mut self, runs: &mut Runs) {
        if let Some(Exact { switches, placed, is_complete }) = &mut self.exact {
            *is_complete = switches.take(&mut placed.switches);
            placed.add_runs(runs);
        }
    }

    /// Finds when what it waited in a window can be felt.
    fn place(
        &mut self,
        window: [u64; 2],
        had: &Counts,
        (runs, processors): (&Runs, &[Processor]),
        waits: &mut Vec<Wait>,
    ) {
        if let Some(Exact { placed, is_complete, .. }) = &mut self.exact {
            let own = processors.iter().find(|processor| Some(processor.number()) == self.processor);
            let known = (&mut self.felt, runs, own.map(Processor::ends));
            return placed.place(window, had, *is_complete, known, waits);
        }
        let slept_ns = (window[1] - window[0]).saturating_sub(had.ran_ns + had.waited_ns);
        // What it slept in the window of a wait may have been before that.
        self.felt.sleep(window[1], slept_ns, SURELY_SLEPT_NS, waits);
        if had.waited_ns > 0 {
            self.felt.wait(window, had.waited_ns, waits);
        }
    }
}

impl State {
    /// Watches the processors that threads are bound to now, and no others.
    fn watch_processors(&mut self) {
        for thread in &mut self.threads {
            thread.processor = bound_to(thread.id);
        }
        let bound: BTreeSet<u32> = self.threads.iter().filter_map(|thread| thread.processor).collect();
        self.processors.retain(|known| bound.contains(&known.number()));
        for number in bound {
            if self.processors.iter().all(|known| known.number() != number) {
                self.processors.extend(Processor::watch(number));
            }
        }
    }

    /// Reads what all threads have had since the last time.
    fn read(&mut self, room: &mut Room) {
        let now_ns = monotonic_ns();
        let window = [self.read_ns, now_ns];
        self.read_ns = now_ns;
        if window[0] == 0 {
            // The first time, there is nothing to compare with.
            for thread in &mut self.threads {
                thread.since(room);
            }
            self.reported_ns = now_ns;
            return;
        }
        let State { threads, processors, felt, runs, .. } = self;
        let had: Vec<Counts> = threads.iter_mut().map(|thread| thread.since(room)).collect();
        threads.iter_mut().for_each(|thread| thread.read_switches(runs));
        processors.iter_mut().for_each(|processor| processor.read(now_ns));
        for (thread, had) in threads.iter_mut().zip(&had) {
            thread.place(window, had, (runs, processors), felt);
        }
        runs.forget(now_ns);
        let waited_ns: u64 = had.iter().map(|had| had.waited_ns).sum();
        if felt.len() > MOST_WAITS {
            felt.clear();
            self.reported_ns = now_ns;
        }
        self.watched_ns += waited_ns;
        if !self.threads.is_empty() {
            let length = Duration::from_nanos(now_ns - window[0]);
            self.waits.record_many(waited_ns / 1_000, windows(length));
        }
    }
}

/// The only processor that a thread may run on.
fn bound_to(thread: u32) -> Option<u32> {
    let id = Pid::from_raw(thread.cast_signed())?;
    let allowed = sched_getaffinity(Some(id)).ok()?;
    let mut all = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    all.next().filter(|_| all.next().is_none()).map(|cpu| cpu as u32)
}

fn watch(shared: &Shared) {
    let mut room = Room::default();
    let mut pause = WAIT_WINDOW;
    while !shared.ends.load(Relaxed) {
        std::thread::sleep(pause);
        let before = own_time();
        let mut state = shared.lock();
        state.read(&mut room);
        let cost = own_time().saturating_sub(before);
        state.cost += cost;
        pause = (cost * PASSES).clamp(WAIT_WINDOW, LONGEST_PAUSE);
    }
}

/// Nine tenths are nearly all; and so is all but a millisecond, which may have been waited between two readings.
fn is_nearly_all(watched_us: u64, of_all_us: u64) -> bool {
    watched_us + (of_all_us / 10).max(1_000) >= of_all_us
}

/// How much of what was watched others will count in the next stretch: no more than the last reading had, which came after their count.
fn ahead_us(watched_us: u64, of_all_us: u64, last_us: u64) -> u64 {
    watched_us.saturating_sub(of_all_us).min(last_us)
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
        let windows = [100, 1_800, 2_200, 4_800, 5_200, 60_000].map(|us| windows(Duration::from_micros(us)));
        assert_eq!(windows, [1, 1, 1, 2, 3, 30]);
    }

    #[test]
    fn a_part_of_all_waiting_tells_nothing_of_how_all_was_spread() {
        let seen = [(0, 0), (90_000, 100_000), (89_000, 100_000), (0, 900), (0, 5_000)];
        assert_eq!(seen.map(|(watched, all)| is_nearly_all(watched, all)), [true, true, false, true, false]);
    }

    #[test]
    fn what_was_read_after_it_was_counted_is_watched_in_the_next_stretch_too() {
        // 8 ms were waited between the count and the last reading: of the next stretch, they are counted and not watched.
        let ahead_us = ahead_us(28_000, 20_000, 8_000);
        assert_eq!(ahead_us, 8_000);
        assert!(is_nearly_all(ahead_us + 2_000, 10_000) && !is_nearly_all(2_000, 10_000));
        // What never was counted hides nothing later.
        assert_eq!(
            [super::ahead_us(28_000, 20_000, 3_000), super::ahead_us(20_000, 28_000, 3_000)],
            [3_000, 0]
        );
    }

    /// Reads what the kernel tells of threads while they wait.
    mod real_tests {
        use super::*;

        /// Pins the calling thread to the first processor that it may use.
        fn pin() {
            let may = rustix::thread::sched_getaffinity(None).expect("is known");
            let first =
                (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| may.is_set(*cpu)).expect("there is one");
            let mut one = rustix::thread::CpuSet::new();
            one.set(first);
            rustix::thread::sched_setaffinity(None, &one).expect("one of those that it may use");
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
            let ids: Vec<(u32, u32)> = listed
                .filter_map(|entry| Some((pid, entry.ok()?.file_name().to_str()?.parse().ok()?)))
                .collect();
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
        fn a_thread_that_shares_its_processor_waits_and_it_is_reported_when() {
            let waits = Waits::begin().expect("a thread can be started");
            let ends = Arc::new(AtomicBool::new(false));
            let (say, ids) = std::sync::mpsc::channel();
            let busy: Vec<_> = (0..2)
                .map(|_| {
                    let (ends, say) = (Arc::clone(&ends), say.clone());
                    std::thread::spawn(move || {
                        pin();
                        say.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned())
                            .expect("is read");
                        while !ends.load(Relaxed) {
                            std::hint::spin_loop();
                        }
                    })
                })
                .collect();
            // One of the two is watched: what the other has of the processor is taken from it.
            let id = ids.recv().expect("it runs");
            let begun_ns = monotonic_ns();
            waits.follow(&[(std::process::id(), id)]);
            let (mut waited_us, mut until_ns) = (0, None);
            while waited_us < 20_000 {
                std::thread::sleep(WAIT_WINDOW);
                let Some(report) = waits.report() else { continue };
                assert!(until_ns.is_none_or(|until_ns| until_ns == report.from_ns), "no gaps");
                until_ns = Some(report.until_ns);
                for wait in report.waits {
                    assert!(
                        wait.to_ns >= wait.from_ns && wait.to_ns > begun_ns && wait.from_ns <= monotonic_ns()
                    );
                    waited_us += wait.wait_us;
                }
            }
            ends.store(true, Relaxed);
            busy.into_iter().for_each(|thread| thread.join().expect("it ends"));
            assert!(waits.cost() > Duration::ZERO);
        }

        #[test]
        fn the_stretches_of_a_thread_that_is_watched_are_counted() {
            let waits = Waits::begin().expect("a thread can be started");
            let mut room = Room::default();
            assert_eq!(waits.take(0, &mut room).buckets, [], "nothing is watched");
            let pid = std::process::id();
            waits.follow(&[(pid, pid), (pid, u32::MAX)]);
            let mut count = 0;
            while count < 3 {
                std::thread::sleep(WAIT_WINDOW);
                count += waits.take(0, &mut room).count();
            }
            waits.follow(&[]);
            waits.take(0, &mut room);
            assert_eq!(waits.shared.lock().threads.len(), 0);
        }
    }
}
