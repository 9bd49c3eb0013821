//! Worker threads: started, pinned, prioritised, and joined.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use thiserror::Error;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use assay_base::clock::SECOND_NS;

/// Above everything that has no real-time priority, below most that has.
pub const REALTIME_PRIORITY: libc::c_int = 10;
/// Gives child processes no real-time priority; `sched.h` has this, `libc` does not on every system.
const SCHED_RESET_ON_FORK: libc::c_int = 0x4000_0000;
/// Descriptors for which room is made in advance: a megabyte of the system's memory.
const RESERVED_DESCRIPTORS: u64 = 1 << 17;
/// Time without sleep after which the system ends a process that has real-time priority, in microseconds.
const MAX_RUN_US: u64 = 5_000_000;

/// Failure of a worker. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The thread could not be tied to its processors.
    #[error(
        "cannot pin to processors {cpus:?}: {cause}; give processors that exist and that this process may use"
    )]
    Pin { cpus: Vec<u32>, cause: io::Error },
    /// The system does not let it have real-time priority.
    #[error(
        "worker {name} cannot have real-time priority (--realtime): {cause}; run as root, grant the program \
         CAP_SYS_NICE, or allow it with `ulimit -r {REALTIME_PRIORITY}`"
    )]
    Realtime { name: String, cause: io::Error },
    /// No thread, or no runtime in it.
    #[error("cannot start worker {name}: {cause}")]
    Start { name: String, cause: io::Error },
    /// The worker panicked; the message is on standard error.
    #[error("worker {name} panicked: this is a bug of Assay")]
    Panicked { name: String },
}

/// Ties the calling thread, and those it starts from now on, to `cpus`; empty: leaves it as it is.
pub fn pin(cpus: &[u32]) -> Result<(), WorkerError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let failed = |cause| WorkerError::Pin { cpus: cpus.to_vec(), cause };
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(failed(io::Error::from(io::ErrorKind::InvalidInput)));
        }
        set.set(cpu as usize);
    }
    sched_setaffinity(None, &set).map_err(|errno| failed(errno.into()))
}

/// Raises the descriptor limit as far as the system allows; a process that may not stays as it is, and reports when it runs out. Call it
/// before there are threads.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    make_room_for_descriptors();
}

/// Limit on the descriptors of this process.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Has the system grow the descriptor table now. It doubles the table when that is full, and when the process has threads, whoever opened
/// one too many then stands still for 10 ms and more, waiting for all processors to have seen it.
fn make_room_for_descriptors() {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let last = limit.min(RESERVED_DESCRIPTORS).saturating_sub(1);
    // A place that cannot be had is not made room for; whoever needs it finds out.
    drop(rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), last as i32));
}

/// The processor of worker `index`, round robin; none when there is nothing to choose from.
pub fn cpu_of(cpus: &[u32], index: usize) -> Option<u32> {
    (!cpus.is_empty()).then(|| cpus[index % cpus.len()])
}

/// Gives the calling thread real-time priority over everything else on its processor. Threads that it starts do not inherit it.
fn run_in_real_time() -> io::Result<()> {
    // A bug must not take a processor away from everybody for good: the system ends a process whose real-time thread
    // has not slept for so long. One that has too much to do sleeps before that, see `Yielder`.
    let limit = getrlimit(Resource::Rttime);
    let most_us = limit.maximum.unwrap_or(u64::MAX).min(MAX_RUN_US);
    setrlimit(Resource::Rttime, Rlimit { current: Some(most_us), maximum: limit.maximum })?;
    let parameters = libc::sched_param { sched_priority: REALTIME_PRIORITY };
    // SAFETY: the parameters live as long as the call; thread 0 is the calling one.
    match unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | SCHED_RESET_ON_FORK, &raw const parameters)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Time slice that workers ask for, the shortest that the system grants.
const SLICE: Duration = Duration::from_micros(100);

/// Asks for short time slices: so the calling thread need not wait, when it wakes up, until another program's slice of some milliseconds is
/// over. It gets no more time by it than others. Needs no right; systems without it (Linux before 6.12) change nothing.
fn ask_for_short_slices() {
    let Some(mut attributes) = scheduling() else { return };
    // Another policy has been chosen by whoever started the process.
    if attributes.sched_policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.sched_runtime = SLICE.as_nanos() as u64;
    // SAFETY: the attributes live as long as the call, and say their size; thread 0 is the calling one.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Scheduling attributes of the calling thread; none: the system does not say.
fn scheduling() -> Option<libc::sched_attr> {
    // SAFETY: `sched_attr` is plain numbers, for which zero is a value; it lives as long as the call, which is told its size.
    unsafe {
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        let size = size_of_val(&attributes);
        let outcome = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0);
        (outcome == 0).then_some(attributes)
    }
}

/// Makes a real-time thread yield its processor to others now and then.
#[derive(Debug)]
pub struct Yielder {
    is_realtime: bool,
    /// Time of the last call, and the thread's number of sleeps at its end.
    last: Option<(u64, i64)>,
}

impl Yielder {
    pub fn new(is_realtime: bool) -> Self {
        Self { is_realtime, last: None }
    }

    /// Call now and then: sleeps a little when the thread has real-time priority and has not slept at all since the
    /// last call. That is a twentieth of the time, as much as the system would take from such a thread in one piece.
    pub fn yield_if_due(&mut self, now_ns: u64) {
        if !self.is_realtime {
            return;
        }
        if let Some((before_ns, slept_before)) = self.last
            && times_slept() == slept_before
        {
            let passed_ns = now_ns.saturating_sub(before_ns).min(SECOND_NS);
            std::thread::sleep(Duration::from_nanos(passed_ns / 20));
        }
        self.last = Some((now_ns, times_slept()));
    }
}

/// Number of times that the calling thread has given up its processor by itself.
fn times_slept() -> i64 {
    // SAFETY: `rusage` is plain numbers, for which zero is a value, and lives as long as the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nvcsw
    }
}

/// Processor and priority of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuPlacement {
    /// Processor to which the worker is pinned; none: any.
    pub cpu: Option<u32>,
    pub realtime: bool,
}

/// A thread with a runtime of its own.
#[derive(Debug)]
pub struct Worker<R> {
    name: String,
    thread: JoinHandle<Result<R, WorkerError>>,
}

impl<R: Send + 'static> Worker<R> {
    /// Starts a thread named `name` at its placement, and runs the future that `body` makes there on a current-thread runtime, with local
    /// tasks (`spawn_local`) allowed.
    pub fn start<B, F>(name: String, seat: CpuPlacement, body: B) -> Result<Self, WorkerError>
    where
        B: FnOnce() -> F + Send + 'static,
        F: Future<Output = R>,
    {
        let inner_name = name.clone();
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || run_here(inner_name, seat, body))
            .map_err(|cause| WorkerError::Start { name: name.clone(), cause })?;
        Ok(Self { name, thread })
    }

    /// True once its future has ended, or it has failed.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    pub fn join(self) -> Result<R, WorkerError> {
        self.thread.join().map_err(|_| WorkerError::Panicked { name: self.name })?
    }
}

fn run_here<B, F, R>(name: String, seat: CpuPlacement, body: B) -> Result<R, WorkerError>
where
    B: FnOnce() -> F,
    F: Future<Output = R>,
{
    pin(seat.cpu.as_slice())?;
    if seat.realtime {
        run_in_real_time().map_err(|cause| WorkerError::Realtime { name: name.clone(), cause })?;
    } else {
        ask_for_short_slices();
    }
    // Sockets only: tokio's timers are too coarse for anything here, and cost something whenever the thread sleeps.
    let runtime = Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(|cause| WorkerError::Start { name, cause })?;
    Ok(LocalSet::new().block_on(&runtime, async { body().await }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_gives_back_what_its_future_gives() {
        let worker = Worker::start("w".into(), CpuPlacement::default(), || async {
            tokio::task::spawn_local(async { 7 }).await.expect("does not panic")
        });
        assert_eq!(worker.expect("starts").join().expect("ends"), 7);
    }

    #[test]
    fn a_panic_is_an_error_that_names_the_worker() {
        let worker: Worker<()> =
            Worker::start("w3".into(), CpuPlacement::default(), || async { panic!("on purpose") })
                .expect("starts");
        let error = worker.join().expect_err("panicked");
        assert!(error.to_string().contains("w3"), "{error}");
    }

    #[test]
    fn a_processor_that_does_not_exist_is_an_error() {
        for cpu in [1023, 1_000_000] {
            let seat = CpuPlacement { cpu: Some(cpu), realtime: false };
            let worker: Worker<()> = Worker::start("w".into(), seat, || async {}).expect("starts");
            assert!(matches!(worker.join(), Err(WorkerError::Pin { .. })), "{cpu}");
        }
        assert!(pin(&[]).is_ok());
    }

    #[test]
    fn room_for_descriptors_is_made_once() {
        make_room_for_descriptors();
        let status = std::fs::read_to_string("/proc/self/status").expect("is there");
        let room = status.lines().find_map(|line| line.strip_prefix("FDSize:")).expect("is told");
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).min(RESERVED_DESCRIPTORS);
        assert!(room.trim().parse::<u64>().expect("is a number") >= limit, "{room}");
    }

    #[test]
    fn real_time_priority_is_had_or_its_refusal_says_what_to_do() {
        let seat = CpuPlacement { cpu: None, realtime: true };
        let worker = Worker::start("w5".into(), seat, || async {
            // SAFETY: it takes a thread, 0 for the calling one.
            let inherited = std::thread::spawn(|| unsafe { libc::sched_getscheduler(0) });
            // SAFETY: as above.
            (unsafe { libc::sched_getscheduler(0) }, inherited.join().expect("ends"))
        });
        match worker.expect("starts").join() {
            Ok((own, inherited)) => {
                assert_eq!(own & !SCHED_RESET_ON_FORK, libc::SCHED_FIFO);
                assert_eq!(inherited & !SCHED_RESET_ON_FORK, libc::SCHED_OTHER);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("w5") && text.contains("ulimit -r 10"), "{text}");
            }
        }
    }

    #[test]
    fn a_worker_asks_for_short_slices_and_keeps_the_rest_of_its_scheduling() {
        let before = scheduling().expect("is told");
        let worker =
            Worker::start("w6".into(), CpuPlacement::default(), || async { scheduling().expect("is told") });
        let of_worker = worker.expect("starts").join().expect("ends");
        assert_eq!(
            (of_worker.sched_policy, of_worker.sched_nice),
            (before.sched_policy, before.sched_nice),
            "it gets no more than others"
        );
        // A system without slices tells none.
        let slice_ns = if before.sched_runtime == 0 { 0 } else { SLICE.as_nanos() as u64 };
        assert_eq!(of_worker.sched_runtime, slice_ns);
    }

    #[test]
    fn a_real_time_thread_that_does_not_sleep_is_made_to() {
        let mut breather = Yielder::new(true);
        for at_ms in 0..3 {
            breather.yield_if_due(at_ms * 2_000_000);
            let (_, slept) = breather.last.expect("it was asked");
            assert!(slept >= at_ms as i64, "every time but the first");
        }
        let mut other = Yielder::new(false);
        other.yield_if_due(SECOND_NS);
        assert_eq!(other.last, None, "it is asked for nothing");
    }

    #[test]
    fn workers_take_processors_in_turn() {
        assert_eq!((0..5).map(|i| cpu_of(&[2, 3], i)).collect::<Vec<_>>(), [2, 3, 2, 3, 2].map(Some));
        assert_eq!(cpu_of(&[], 1), None);
    }
}
