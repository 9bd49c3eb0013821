//! Lateness of requests and of the ends of think times.

use assay_measurement::doubt::Reason;
use assay_measurement::histogram::Histogram;
use strum::VariantArray;

use super::evidence::{JudgedRun, PhaseEvidence, WatchedRole, share};
use super::finding::{Finding, format_percent, format_time};
use super::limits::{
    LATE_CEILING_US, LATE_COUNT, LATE_FLOOR_US, LATE_QUANTILE, LATE_SHARE, UNQUIET_US, UNSENT_LATE_SHARE,
};

/// Upper bound, in microseconds, on lateness in a phase.
pub fn late_limit_us(phase: &PhaseEvidence) -> u64 {
    // Without any response or wait, there are no times that lateness could distort.
    let Some(median_us) = phase.response.quantile_us(0.5) else { return LATE_CEILING_US };
    ((median_us as f64 * LATE_SHARE) as u64).clamp(LATE_FLOOR_US, LATE_CEILING_US)
}

/// The judged lateness: the 99th percentile, or a lower one so that at least [`LATE_COUNT`] requests are that late.
fn judged_us(lateness: &Histogram) -> Option<u64> {
    let count = lateness.count();
    if count < LATE_COUNT {
        return None;
    }
    // The rank of the value with LATE_COUNT values at or above it, lowered by half a rank against rounding.
    let few = (count as f64 - LATE_COUNT as f64 + 0.5) / count as f64;
    lateness.quantile_us(LATE_QUANTILE.min(few))
}

/// Findings of lateness in both roles, and of requests that were not sent.
pub fn findings(run: &JudgedRun<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, phase) in run.phases() {
        for &role in WatchedRole::VARIANTS {
            found.extend(late(run, index, phase, role));
        }
        found.extend(unsent_late(index, phase));
    }
    found
}

fn late(run: &JudgedRun<'_>, index: u16, phase: &PhaseEvidence, role: WatchedRole) -> Option<Finding> {
    let (lateness, events) = match role {
        WatchedRole::Robots => (&phase.lateness, "requests were sent"),
        WatchedRole::Origins => (&phase.origin_lateness, "think times ended"),
    };
    let late_us = judged_us(lateness)?;
    let limit_us = late_limit_us(phase);
    if late_us <= LATE_FLOOR_US {
        return None;
    }
    let of_all = format_percent(1.0 - LATE_QUANTILE);
    let mut seen = format!(
        "{of_all} of {events} more than {} later than they could be; here, {} is too much",
        format_time(late_us),
        format_time(limit_us)
    );
    if let Some(bare_us) = run.baseline_us(role).filter(|bare_us| *bare_us > UNQUIET_US) {
        seen = format!("{seen} (a bare timer was late by {} before the run already)", format_time(bare_us));
    }
    Some(Finding {
        reason: Reason::Late,
        serious: late_us > limit_us,
        role: role.name(),
        phase: Some(index),
        weight: late_us as f64 / limit_us as f64,
        at_ms: None,
        seen,
    })
}

fn unsent_late(index: u16, phase: &PhaseEvidence) -> Option<Finding> {
    let (due, late) = (phase.robots.due, phase.robots.unsent_late);
    let weight = share(late, due);
    (weight > UNSENT_LATE_SHARE).then(|| Finding {
        reason: Reason::UnsentLate,
        serious: true,
        role: WatchedRole::Robots.name(),
        phase: Some(index),
        weight,
        at_ms: None,
        seen: format!(
            "{late} of {due} requests were not sent because Assay came to them after their phase had ended"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::testing::Run;

    /// A phase of so many requests, some of them late, with responses after `response_ms`.
    fn phase(late: usize, of: usize, late_us: u64, response_ms: u64) -> Run {
        let mut run = Run::new(&["top1"]);
        let lateness: Vec<u64> = (0..of).map(|i| if i < late { late_us } else { 20 }).collect();
        run.times(0, &[response_ms * 1000], &lateness);
        run
    }

    fn judged(run: &Run) -> Vec<(Reason, bool)> {
        run.judge().iter().map(|doubt| (doubt.reason, doubt.serious)).collect()
    }

    #[test]
    fn a_hundredth_of_all_requests_may_not_be_late() {
        assert_eq!(judged(&phase(9, 1000, 50_000, 1)), []);
        let run = phase(11, 1000, 50_000, 1);
        let doubts = run.judge();
        assert_eq!(
            (doubts[0].reason, doubts[0].serious, doubts[0].role.as_str()),
            (Reason::Late, true, "robots")
        );
        assert!(
            doubts[0].seen.starts_with("in phase top1, 1 % of requests were sent more than 50.0 ms later")
        );
        assert_eq!(judged(&phase(1000, 1000, 900, 1)), []);
    }

    #[test]
    fn a_slow_target_is_not_shaped_by_a_little_lateness() {
        assert_eq!(judged(&phase(50, 1000, 2_000, 5)), [(Reason::Late, true)]);
        assert_eq!(judged(&phase(50, 1000, 2_000, 50)), [(Reason::Late, false)]);
        assert_eq!(judged(&phase(50, 1000, 99_000, 60_000)), [(Reason::Late, false)]);
        assert_eq!(judged(&phase(50, 1000, 101_000, 60_000)), [(Reason::Late, true)]);
    }

    #[test]
    fn what_waited_and_was_never_sent_counts_as_slow_too() {
        let mut run = phase(50, 1000, 2_000, 1);
        run.unsent_wait(0, &[10_000_000; 2]);
        assert_eq!(judged(&run), [(Reason::Late, false)]);
    }

    #[test]
    fn where_nothing_was_due_nothing_can_be_shaped() {
        let mut run = Run::new(&["a"]);
        run.origin_lateness(0, &[20_000; 100]);
        assert_eq!(judged(&run), [(Reason::Late, false)]);
    }

    #[test]
    fn few_accidents_are_no_pattern() {
        assert_eq!(judged(&phase(4, 50, 50_000, 1)), []);
        assert_eq!(judged(&phase(5, 50, 50_000, 1)), [(Reason::Late, true)]);
        assert_eq!(judged(&phase(4, 4, 50_000, 1)), []);
        assert_eq!(judged(&phase(5, 5, 50_000, 1)), [(Reason::Late, true)]);
    }

    #[test]
    fn think_times_that_end_late_are_the_origins_lateness() {
        let mut run = Run::new(&["a"]);
        run.times(0, &[1_000], &[]);
        run.origin_lateness(0, &[20_000; 100]);
        let doubts = run.judge();
        assert_eq!((doubts[0].reason, doubts[0].role.as_str()), (Reason::Late, "origins"));
        assert!(doubts[0].seen.contains("think times ended"), "{}", doubts[0].seen);
    }

    #[test]
    fn a_machine_that_was_not_quiet_before_is_named_beside_the_lateness() {
        let mut run = phase(100, 100, 5_000, 1);
        run.baseline("robots", 0, 3_000);
        let doubts = run.judge();
        assert_eq!(doubts[0].reason, Reason::Late);
        assert!(doubts[0].seen.contains("a bare timer was late by 3.0 ms"), "{}", doubts[0].seen);
        assert_eq!((doubts[1].reason, doubts[1].serious), (Reason::Unquiet, false));
    }

    #[test]
    fn what_assay_itself_was_too_late_for_is_its_own_fault() {
        let judge = |unsent_late| {
            let mut run = Run::new(&["a"]);
            run.counts(0, |counts| {
                (counts.due, counts.unsent, counts.unsent_late) = (10_000, 100, unsent_late);
            });
            judged(&run)
        };
        assert_eq!(judge(10), []);
        assert_eq!(judge(11), [(Reason::UnsentLate, true)]);
    }
}
