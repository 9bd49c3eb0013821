//! Whether threads of ours may have real-time priority. Found out before the run, by trying it on a thread of no
//! use.

use assay_net::worker::REALTIME_PRIORITY;

/// Reason why threads of this process may not run under `SCHED_FIFO`, and what to do; none: they may.
pub fn refused() -> Option<String> {
    let tried = std::thread::spawn(|| {
        let wanted = libc::sched_param { sched_priority: REALTIME_PRIORITY };
        // SAFETY: a plain system call on the calling thread, which ends right after it; `wanted` outlives the call.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const wanted) } {
            0 => None,
            _ => Some(std::io::Error::last_os_error()),
        }
    });
    // A thread that could not even be tried says nothing against it.
    let error = tried.join().ok().flatten()?;
    Some(format!(
        "--realtime: the kernel does not let Assay use SCHED_FIFO ({error}; RLIMIT_RTPRIO is {}); run it with \
         CAP_SYS_NICE, raise the limit (`ulimit -r {REALTIME_PRIORITY}`, or rtprio in limits.conf), or leave \
         --realtime out",
        limit()
    ))
}

/// The highest real-time priority that the limit allows.
fn limit() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Rtprio);
    limit.current.map_or_else(|| "unlimited".into(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_would_help_and_leaves_this_thread_as_it_was() {
        if let Some(words) = refused() {
            assert!(words.contains("CAP_SYS_NICE") && words.contains("RLIMIT_RTPRIO"), "{words}");
        }
        // SAFETY: a plain system call without arguments that point anywhere.
        assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_OTHER);
    }
}
