//! Real-time priority of a link's thread, which would be late if it waited for a processor.

/// Above robots and origins (10), which wait for the link.
const PRIORITY: libc::c_int = 20;

/// Requests `SCHED_FIFO` for the calling thread; false if the kernel refuses.
pub fn request() -> bool {
    let wanted = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: a plain system call on the calling thread; `wanted` outlives it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const wanted) == 0 }
}
