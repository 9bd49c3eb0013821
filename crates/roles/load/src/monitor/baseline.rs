//! Lateness of a bare timer on a processor: what the machine itself adds, before anything else does.

use std::io;

use assay_measurement::health::Baseline;
use rustix::io::retry_on_intr;
use rustix::time::TimerfdFlags;

use super::Identity;
use assay_base::clock::monotonic_ns;
use assay_net::timer::lag::LagHistogram;
use assay_net::timer::{arm, create};

/// Time from deadline to deadline. Not a round number: timers that others have set for whole milliseconds do not fall
/// in step.
const STEP_NS: u64 = 1_013_000;

/// Measures it in the calling thread, from `begin_ns` on for so long. Nothing else runs in this thread meanwhile.
pub fn measure(identity: Identity, begin_ns: u64, length_ms: u64) -> io::Result<Baseline> {
    let timer = create(TimerfdFlags::CLOEXEC)?;
    let mut lags = LagHistogram::default();
    let begin_ns = begin_ns.max(monotonic_ns());
    let end_ns = begin_ns + length_ms * 1_000_000;
    let mut deadline_ns = begin_ns + STEP_NS;
    while deadline_ns <= end_ns {
        arm(&timer, deadline_ns)?;
        retry_on_intr(|| rustix::io::read(&timer, &mut [0; 8]))?;
        let now_ns = monotonic_ns();
        lags.record(now_ns.saturating_sub(deadline_ns));
        // Deadlines that have passed meanwhile are left out: they would be the same delay once more.
        let steps = now_ns.saturating_sub(deadline_ns) / STEP_NS + 1;
        deadline_ns += steps * STEP_NS;
    }
    Ok(Baseline {
        role: identity.role.to_owned(),
        thread: identity.thread,
        cpu: identity.cpu,
        length_ms,
        lag: lags.take(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_timer_fires_about_once_a_millisecond() {
        let identity = Identity { role: "origins", thread: 2, cpu: None };
        let baseline = measure(identity, 0, 20).expect("timers work");
        let fired: u64 = baseline.lag.count();
        assert!((1..=20).contains(&fired), "{fired}");
        assert_eq!((baseline.role.as_str(), baseline.thread, baseline.length_ms), ("origins", 2, 20));
    }
}
