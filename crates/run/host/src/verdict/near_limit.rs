//! Rates near the calibrated capacity of the machine.

use assay_measurement::doubt::Reason;

use super::evidence::JudgedRun;
use super::finding::{Finding, format_percent};
use super::limits::NEAR_LIMIT_SHARE;

/// Findings of phases, if the machine was calibrated.
pub fn findings(run: &JudgedRun<'_>) -> Vec<Finding> {
    let Some(limit) = run.info.calibration.as_ref().map(|found| found.requests_per_s) else {
        return Vec::new();
    };
    if limit <= 0.0 {
        return Vec::new();
    }
    let near = run.phases().filter_map(|(index, phase)| {
        // The rate of a phase of less than a second means nothing.
        let length_s = phase.length_ms() as f64 / 1e3;
        let rate = if length_s >= 1.0 { phase.robots.completed as f64 / length_s } else { 0.0 };
        let weight = rate / limit;
        (weight > NEAR_LIMIT_SHARE).then(|| Finding {
            reason: Reason::NearLimit,
            serious: false,
            role: "",
            phase: Some(index),
            weight,
            at_ms: None,
            seen: format!(
                "{rate:.0} requests completed per second, {} of the {limit:.0} that this machine can offer",
                format_percent(weight)
            ),
        })
    });
    near.collect()
}

#[cfg(test)]
mod tests {
    use assay_measurement::health::Calibration;

    use super::*;
    use crate::verdict::testing::Run;

    #[test]
    fn a_run_near_the_limit_of_the_machine_is_told() {
        let judge = |completed| {
            let mut run = Run::new(&["a"]);
            run.counts(0, |counts| counts.completed = completed);
            assert_eq!(run.judge(), [], "nobody knows the limit");
            run.info.calibration = Some(Calibration { requests_per_s: 1000.0, ..Calibration::default() });
            run.judge()
        };
        assert_eq!(judge(7_900), []);
        let doubts = judge(8_100);
        assert_eq!((doubts[0].reason, doubts[0].serious), (Reason::NearLimit, false));
        assert_eq!(
            doubts[0].seen,
            "in phase a, 810 requests completed per second, 81 % of the 1000 that this machine can offer"
        );
    }
}
