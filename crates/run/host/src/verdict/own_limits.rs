//! Exhausted resources of Assay: descriptors, ports, buffers of samples.

use assay_measurement::doubt::Reason;
use assay_measurement::error_kind::ErrorKind;

use super::evidence::JudgedRun;
use super::finding::Finding;

/// A finding per phase and resource.
pub fn findings(run: &JudgedRun<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, phase) in run.phases() {
        let errors = |kind| phase.robots.errors.get(&kind).copied().unwrap_or(0);
        let counts = [
            (
                Reason::Descriptors,
                errors(ErrorKind::DescriptorsExhausted),
                "requests found no free file descriptor",
            ),
            (Reason::Ports, errors(ErrorKind::PortsExhausted), "requests found no free source port"),
            (Reason::SamplesDropped, phase.robots.dropped_samples, "samples were dropped"),
        ];
        for (reason, count, words) in counts.into_iter().filter(|(_, count, _)| *count > 0) {
            found.push(Finding {
                reason,
                serious: true,
                role: "robots",
                phase: Some(index),
                weight: count as f64,
                at_ms: None,
                seen: format!("{count} {words}"),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use assay_measurement::doubt::Blame;

    use super::*;
    use crate::verdict::testing::Run;

    #[test]
    fn what_assay_ran_out_of_is_serious() {
        let mut run = Run::new(&["a", "b"]);
        run.counts(1, |counts| {
            counts.dropped_samples = 1;
            counts.errors.insert(ErrorKind::PortsExhausted, 2);
            counts.errors.insert(ErrorKind::DescriptorsExhausted, 3);
        });
        let doubts = run.judge();
        let reasons: Vec<Reason> = doubts.iter().map(|doubt| doubt.reason).collect();
        assert_eq!(reasons, [Reason::Descriptors, Reason::Ports, Reason::SamplesDropped]);
        for doubt in &doubts {
            assert_eq!((doubt.serious, doubt.blame, doubt.phases.as_slice()), (true, Blame::Assay, &[1][..]));
        }
        assert_eq!(doubts[0].seen, "in phase b, 3 requests found no free file descriptor");
    }

    #[test]
    fn errors_of_the_target_are_results() {
        let mut run = Run::new(&["a"]);
        run.counts(0, |counts| {
            for kind in
                [ErrorKind::WrongBytes, ErrorKind::Stale, ErrorKind::ConnectFailed, ErrorKind::TimedOut]
            {
                counts.errors.insert(kind, 7);
            }
        });
        assert_eq!(run.judge(), []);
    }
}
