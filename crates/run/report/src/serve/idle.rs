//! Work in the background, kept out of the way. It gets the processor time that is left over.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Lets the calling thread run only when a processor has nothing else to do (`SCHED_IDLE`). Without effect where
/// the kernel refuses that.
pub(crate) fn run_when_idle() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: a plain system call on the calling thread; `parameters` outlives it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

/// Processor time that the calling thread has used.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_gives_way() {
        // SAFETY: it takes a thread, 0 for the calling one, and no pointer.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let other = std::thread::spawn(move || {
            run_when_idle();
            policy()
        });
        assert_eq!(other.join().unwrap(), libc::SCHED_IDLE);
        assert_eq!(policy(), before);
        let used = cpu_time();
        assert!(cpu_time() >= used);
    }
}
