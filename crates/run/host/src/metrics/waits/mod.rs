//! Waits of a role's threads for processors, in windows of two milliseconds, and the backlog after them.
//!
//! The kernel counts the sum of all waits, but neither their lengths nor their times: ten waits of a tenth of a millisecond
//! affect other figures than one of a millisecond, and none of them affects a later request. So a thread of the lab reads the
//! counters often.
//!
//! Without records of switches ([`switches`]), waits for other programs cannot be told from waits for threads of the same role.

mod backlog;
mod idle;
mod locator;
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

use super::pacer::thread_cpu_time;
use super::proc_file::{ProcFile, ReadBuffer};
use backlog::Backlog;
use idle::IdleMonitor;
use locator::{LocatorContext, RunIntervals, WaitLocator};
use switches::SwitchRecords;

/// Upper bound on monitored threads; of more, those are selected that have waited most.
pub const MAX_THREADS: usize = 32;
/// Time neither run nor waited, in nanoseconds, after which a thread has certainly slept: the kernel updates the counters of a
/// running thread once per tick, of which there are at least 250 per second.
const CERTAIN_SLEEP_NS: u64 = 5_000_000;
/// Pause after a reading, as a multiple of its cost: 1 % of a processor.
const COST_FACTOR: u32 = 100;
/// Upper bound on the pause, however long a reading took, so that waits are known in time.
const MAX_PAUSE: Duration = Duration::from_millis(20);
/// Upper bound on unreported waits, for callers that never request a report.
const MAX_WAITS: usize = 100_000;

/// Monitors threads from a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct WaitMonitor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    ends: AtomicBool,
    state: Mutex<WaitState>,
}

#[derive(Debug, Default)]
struct WaitState {
    threads: Vec<WatchedThread>,
    /// Processors to which threads are pinned, as far as the kernel permits records of them.
    processors: Vec<IdleMonitor>,
    waits: Histogram,
    /// Sum of the waits of monitored threads, since it was last taken.
    watched_ns: u64,
    /// Part of `watched_ns` that the role's total will include in the next interval only.
    counted_early_us: u64,
    /// Backlog since the last report.
    backlog: Vec<Wait>,
    /// Times for which the threads had processors.
    runs: RunIntervals,
    /// End of the last report.
    reported_ns: u64,
    /// Time of the last reading.
    read_ns: u64,
    /// Processor time of readings, since it was last taken.
    cost: Duration,
}

#[derive(Debug)]
struct WatchedThread {
    id: u32,
    schedstat: ProcFile,
    /// The processor to which the thread is pinned; none if it may run on several.
    processor: Option<u32>,
    last: SchedCounters,
    backlog: Backlog,
    /// None if the kernel permits no records of its switches; then waits are located to the window.
    tracker: Option<SwitchTracker>,
}

/// Locates the waits of a thread by its switches.
#[derive(Debug)]
struct SwitchTracker {
    switches: SwitchRecords,
    locator: WaitLocator,
    /// No record since the last reading was lost.
    is_complete: bool,
}

/// Counters of a thread since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SchedCounters {
    ran_ns: u64,
    waited_ns: u64,
    /// Number of times it got a processor.
    times: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WaitState> {
        // Every state in which a panic can leave the counters is valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitMonitor {
    /// Starts without threads to monitor; none if the monitoring thread cannot be started.
    pub fn start() -> Option<Self> {
        let shared = Arc::new(Shared::default());
        let thread_shared = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("waits".into()).spawn(move || run(&thread_shared)).ok()?;
        Some(Self { shared, thread: Some(thread) })
    }

    /// Sets the threads to monitor (process id, thread id), of which the first [`MAX_THREADS`] count.
    pub fn watch(&self, threads: &[(u32, u32)]) {
        let mut state = self.shared.lock();
        let threads = &threads[..threads.len().min(MAX_THREADS)];
        state.threads.retain(|known| threads.iter().any(|(_, id)| *id == known.id));
        for (pid, id) in threads {
            if state.threads.iter().any(|known| known.id == *id) {
                continue;
            }
            let Some(schedstat) = ProcFile::open(format!("/proc/{pid}/task/{id}/schedstat")) else {
                continue;
            };
            state.threads.push(WatchedThread::new(*id, schedstat));
        }
        state.watch_processors();
    }

    /// Histogram of the waits per window since the last call, in microseconds. Empty if the monitored threads have not waited
    /// nearly as long as all threads of the role, `of_all_us`, because it would not be representative.
    pub fn take(&self, of_all_us: u64, buffer: &mut ReadBuffer) -> SparseHistogram {
        let mut state = self.shared.lock();
        // The last reading may be many milliseconds ago, if the monitoring thread had to wait itself.
        let before_ns = state.watched_ns;
        state.read(buffer);
        let last_us = (state.watched_ns - before_ns) / 1_000;
        let waits = state.waits.to_sparse();
        state.waits.clear();
        let watched_us = state.counted_early_us + std::mem::take(&mut state.watched_ns) / 1_000;
        state.counted_early_us = counted_early_us(watched_us, of_all_us, last_us);
        if is_nearly_all(watched_us, of_all_us) { waits } else { SparseHistogram::default() }
    }

    /// Backlog since the last call; none before the first reading.
    pub fn report(&self) -> Option<WaitReport> {
        let mut state = self.shared.lock();
        let WaitState { threads, backlog, reported_ns, read_ns, .. } = &mut *state;
        if *read_ns == *reported_ns {
            return None;
        }
        threads.iter_mut().for_each(|thread| thread.backlog.report(*read_ns, backlog));
        let from_ns = std::mem::replace(reported_ns, *read_ns);
        Some(WaitReport { from_ns, until_ns: *read_ns, waits: std::mem::take(backlog) })
    }

    /// Processor time of the monitoring thread since the last call.
    pub fn cost(&self) -> Duration {
        std::mem::take(&mut self.shared.lock().cost)
    }
}

impl Drop for WaitMonitor {
    fn drop(&mut self) {
        self.shared.ends.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl SchedCounters {
    /// Parses `schedstat`: run time, wait time, and number of time slices.
    fn parse(schedstat: &str) -> Option<Self> {
        let mut numbers = schedstat.split_whitespace().map(|number| number.parse().ok());
        Some(Self { ran_ns: numbers.next()??, waited_ns: numbers.next()??, times: numbers.next()?? })
    }

    fn since(self, before: SchedCounters) -> Self {
        Self {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
            times: self.times.saturating_sub(before.times),
        }
    }
}

impl WatchedThread {
    fn new(id: u32, schedstat: ProcFile) -> Self {
        // Before the counters are read, so that every counted switch has a record.
        let tracker = SwitchRecords::open(id).ok();
        let tracker = tracker.map(|switches| SwitchTracker {
            switches,
            locator: WaitLocator::default(),
            is_complete: true,
        });
        let (last, backlog) = (SchedCounters::default(), Backlog::default());
        let mut thread = Self { id, schedstat, processor: None, last, backlog, tracker };
        thread.since(&mut ReadBuffer::default());
        thread
    }

    /// Counters since the last call; zero after the end of the thread.
    fn since(&mut self, buffer: &mut ReadBuffer) -> SchedCounters {
        let Some(now) = self.schedstat.read(buffer).and_then(|text| SchedCounters::parse(&text)) else {
            return SchedCounters::default();
        };
        now.since(std::mem::replace(&mut self.last, now))
    }

    /// Reads new switches, and adds the run intervals to `runs`.
    fn read_switches(&mut self, runs: &mut RunIntervals) {
        if let Some(SwitchTracker { switches, locator, is_complete }) = &mut self.tracker {
            *is_complete = switches.take(&mut locator.switches);
            locator.add_runs(runs);
        }
    }

    /// Locates the waits of a window, and adds the backlog to `waits`.
    fn locate(
        &mut self,
        window: [u64; 2],
        used: &SchedCounters,
        runs: &RunIntervals,
        processors: &[IdleMonitor],
        waits: &mut Vec<Wait>,
    ) {
        if let Some(SwitchTracker { locator, is_complete, .. }) = &mut self.tracker {
            let own = processors.iter().find(|processor| Some(processor.number()) == self.processor);
            let context = LocatorContext { runs, idle: own.map(IdleMonitor::ends) };
            return locator.locate(window, used, *is_complete, &mut self.backlog, context, waits);
        }
        let slept_ns = (window[1] - window[0]).saturating_sub(used.ran_ns + used.waited_ns);
        // Sleep in the window of a wait may have been before it, so it is added before the wait.
        self.backlog.sleep(window[1], slept_ns, CERTAIN_SLEEP_NS, waits);
        if used.waited_ns > 0 {
            self.backlog.wait(window, used.waited_ns, waits);
        }
    }
}

impl WaitState {
    /// Monitors exactly the processors to which threads are pinned.
    fn watch_processors(&mut self) {
        for thread in &mut self.threads {
            thread.processor = pinned_processor(thread.id);
        }
        let bound: BTreeSet<u32> = self.threads.iter().filter_map(|thread| thread.processor).collect();
        self.processors.retain(|known| bound.contains(&known.number()));
        for number in bound {
            if self.processors.iter().all(|known| known.number() != number) {
                self.processors.extend(IdleMonitor::open(number));
            }
        }
    }

    fn read(&mut self, buffer: &mut ReadBuffer) {
        let now_ns = monotonic_ns();
        let window = [self.read_ns, now_ns];
        self.read_ns = now_ns;
        if window[0] == 0 {
            // The first reading has no predecessor to compare with.
            for thread in &mut self.threads {
                thread.since(buffer);
            }
            self.reported_ns = now_ns;
            return;
        }
        let WaitState { threads, processors, backlog, runs, .. } = self;
        let used: Vec<SchedCounters> = threads.iter_mut().map(|thread| thread.since(buffer)).collect();
        threads.iter_mut().for_each(|thread| thread.read_switches(runs));
        processors.iter_mut().for_each(|processor| processor.read(now_ns));
        for (thread, used) in threads.iter_mut().zip(&used) {
            thread.locate(window, used, runs, processors, backlog);
        }
        runs.forget(now_ns);
        let waited_ns: u64 = used.iter().map(|used| used.waited_ns).sum();
        if backlog.len() > MAX_WAITS {
            backlog.clear();
            self.reported_ns = now_ns;
        }
        self.watched_ns += waited_ns;
        if !self.threads.is_empty() {
            let length = Duration::from_nanos(now_ns - window[0]);
            self.waits.record_many(waited_ns / 1_000, windows(length));
        }
    }
}

/// The processor to which a thread is pinned.
fn pinned_processor(thread: u32) -> Option<u32> {
    let id = Pid::from_raw(thread.cast_signed())?;
    let allowed = sched_getaffinity(Some(id)).ok()?;
    let mut all = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    all.next().filter(|_| all.next().is_none()).map(|cpu| cpu as u32)
}

fn run(shared: &Shared) {
    let mut buffer = ReadBuffer::default();
    let mut pause = WAIT_WINDOW;
    while !shared.ends.load(Relaxed) {
        std::thread::sleep(pause);
        let before = thread_cpu_time();
        let mut state = shared.lock();
        state.read(&mut buffer);
        let cost = thread_cpu_time().saturating_sub(before);
        state.cost += cost;
        pause = (cost * COST_FACTOR).clamp(WAIT_WINDOW, MAX_PAUSE);
    }
}

/// True for nine tenths, and for all but a millisecond, which may fall between two readings.
fn is_nearly_all(watched_us: u64, of_all_us: u64) -> bool {
    watched_us + (of_all_us / 10).max(1_000) >= of_all_us
}

/// Part of the monitored waits that the total of all threads will include in the next interval only: at most that of the last
/// reading, which came after the total was read.
fn counted_early_us(watched_us: u64, of_all_us: u64, last_us: u64) -> u64 {
    watched_us.saturating_sub(of_all_us).min(last_us)
}

/// Number of windows for a reading: one that came late counts as several, each with the whole wait.
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
        let counted_early_us = counted_early_us(28_000, 20_000, 8_000);
        assert_eq!(counted_early_us, 8_000);
        assert!(is_nearly_all(counted_early_us + 2_000, 10_000) && !is_nearly_all(2_000, 10_000));
        // What never was counted hides nothing later.
        assert_eq!(
            [super::counted_early_us(28_000, 20_000, 3_000), super::counted_early_us(20_000, 28_000, 3_000)],
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
            let waits = WaitMonitor::start().expect("a thread can be started");
            let pid = std::process::id();
            let ends = Arc::new(AtomicBool::new(false));
            let others: Vec<_> = (0..2 * MAX_THREADS)
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
            assert!(ids.len() > 2 * MAX_THREADS);
            waits.watch(&ids);
            let reversed: Vec<_> = ids.iter().rev().copied().collect();
            waits.watch(&reversed);
            assert!(waits.shared.lock().threads.len() <= MAX_THREADS);
            ends.store(true, Relaxed);
            for other in others {
                other.thread().unpark();
                other.join().expect("it ends");
            }
        }

        #[test]
        fn a_thread_that_shares_its_processor_waits_and_it_is_reported_when() {
            let waits = WaitMonitor::start().expect("a thread can be started");
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
            waits.watch(&[(std::process::id(), id)]);
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
            let waits = WaitMonitor::start().expect("a thread can be started");
            let mut buffer = ReadBuffer::default();
            assert_eq!(waits.take(0, &mut buffer).buckets, [], "nothing is watched");
            let pid = std::process::id();
            waits.watch(&[(pid, pid), (pid, u32::MAX)]);
            let mut count = 0;
            while count < 3 {
                std::thread::sleep(WAIT_WINDOW);
                count += waits.take(0, &mut buffer).count();
            }
            waits.watch(&[]);
            waits.take(0, &mut buffer);
            assert_eq!(waits.shared.lock().threads.len(), 0);
        }
    }
}
