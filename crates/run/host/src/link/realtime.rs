//! Real-time priority of a thread. A link that waits for a processor is late.

/// Above robots and origins (10): what they wait for must not wait for them.
const PRIORITY: libc::c_int = 20;

/// Requests `SCHED_FIFO` from the kernel; false: it refuses, and the thread goes on as it is.
pub fn request() -> bool {
    let wanted = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: a plain system call on the calling thread; `wanted` outlives it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const wanted) == 0 }
}
