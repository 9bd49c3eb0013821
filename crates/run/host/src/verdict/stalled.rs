//! Stalls of threads of robots and origins.

use assay_measurement::doubt::Reason;
use assay_measurement::health::Stall;

use super::evidence::{JudgedRun, PhaseEvidence, StallSum, WatchedRole, share};
use super::finding::{Finding, format_percent, format_time};
use super::limits::{STALL_SERIOUS_US, STALLS_SHARE};

/// A finding per phase and role.
pub fn findings(run: &JudgedRun<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, phase) in run.phases() {
        for (role, stalls) in &phase.stalls {
            found.extend(judge(index, phase, *role, stalls));
        }
    }
    found
}

fn judge(index: u16, phase: &PhaseEvidence, role: WatchedRole, stalls: &StallSum) -> Option<Finding> {
    let (longest, others) = stalls.longest.split_first()?;
    let serious = longest.length_us >= STALL_SERIOUS_US;
    // As a share of the time of all threads of the role.
    let threads = phase.threads.keys().filter(|(of, _)| *of == role).count().max(1) as u64;
    let lost = share(stalls.total_us, phase.length_ms() * 1000 * threads);
    if !serious && lost < STALLS_SHARE {
        return None;
    }
    let mut seen = format!(
        "thread {} of {} stood still for {} at {:.3} s: {}",
        longest.thread,
        role.name(),
        format_time(longest.length_us),
        longest.at_ms as f64 / 1e3,
        thread_activity(longest)
    );
    let long: Vec<String> = others
        .iter()
        .filter(|stall| stall.length_us >= STALL_SERIOUS_US)
        .map(|stall| format!("{} at {:.3} s", format_time(stall.length_us), stall.at_ms as f64 / 1e3))
        .collect();
    if !long.is_empty() {
        seen = format!("{seen}; also for {}", long.join(", "));
    }
    if stalls.count > 1 {
        seen =
            format!("{seen}; all {} stalls together were {} of the time", stalls.count, format_percent(lost));
    }
    Some(Finding {
        reason: Reason::Stalled,
        serious,
        role: role.name(),
        phase: Some(index),
        weight: longest.length_us as f64,
        at_ms: Some(longest.at_ms),
        seen,
    })
}

/// Activity of the thread during a stall, as far as it is known.
fn thread_activity(stall: &Stall) -> String {
    let (busy_us, waited_us) = (stall.cpu_us, stall.run_delay_us);
    let half = stall.length_us / 2;
    if busy_us >= half && busy_us >= waited_us {
        format!("it had its processor for {} of it: it was busy, or the hypervisor was", format_time(busy_us))
    } else if waited_us >= half {
        format!("it was ready to run and had no processor for {} of it", format_time(waited_us))
    } else {
        "it, or the machine, was stopped".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::testing::Run;

    fn stall(at_ms: u64, length_ms: u64, cpu_ms: u64, waited_ms: u64) -> Stall {
        Stall {
            role: "robots".into(),
            thread: 1,
            at_ms,
            length_us: length_ms * 1000,
            cpu_us: cpu_ms * 1000,
            run_delay_us: waited_ms * 1000,
        }
    }

    #[test]
    fn a_long_stall_is_serious_and_says_when_and_why() {
        for (cpu_ms, waited_ms, words) in [
            (0, 0, "it, or the machine, was stopped"),
            (290, 5, "it had its processor for 290.0 ms of it: it was busy, or the hypervisor was"),
            (5, 250, "it was ready to run and had no processor for 250.0 ms of it"),
        ] {
            let mut run = Run::new(&["a", "b"]);
            run.stall(stall(12_345, 300, cpu_ms, waited_ms));
            let doubts = run.judge();
            assert_eq!(doubts.len(), 1);
            let doubt = &doubts[0];
            assert_eq!((doubt.reason, doubt.serious, doubt.at_ms), (Reason::Stalled, true, Some(12_345)));
            assert_eq!((doubt.phases.as_slice(), doubt.role.as_str()), (&[1][..], "robots"));
            assert_eq!(
                doubt.seen,
                format!("in phase b, thread 1 of robots stood still for 300.0 ms at 12.345 s: {words}")
            );
        }
    }

    #[test]
    fn all_long_stalls_are_told_with_their_times() {
        let mut run = Run::new(&["a"]);
        for (at_ms, length_ms) in [(2_000, 150), (4_000, 400), (6_000, 20)] {
            run.stall(stall(at_ms, length_ms, 0, 0));
        }
        let seen = &run.judge()[0].seen;
        assert!(seen.contains("stood still for 400.0 ms at 4.000 s"), "{seen}");
        assert!(
            seen.ends_with("; also for 150.0 ms at 2.000 s; all 3 stalls together were 6 % of the time"),
            "{seen}"
        );
    }

    #[test]
    fn short_stalls_are_worth_knowing_when_they_add_up() {
        let judge = |count: u64| {
            let mut run = Run::new(&["a"]);
            (0..count).for_each(|i| run.stall(stall(i * 100, 20, 20, 0)));
            run.judge()
        };
        assert_eq!(judge(4), [], "80 ms of ten seconds");
        let doubts = judge(6);
        assert_eq!((doubts[0].reason, doubts[0].serious), (Reason::Stalled, false));
        assert!(doubts[0].seen.ends_with("all 6 stalls together were 1 % of the time"), "{}", doubts[0].seen);
    }
}
