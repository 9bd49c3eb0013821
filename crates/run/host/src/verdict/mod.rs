//! Looks for each of the reasons there are to doubt a run, phase by phase.
//!
//! The judge is a pure function of what the run directory holds: [`judge`] takes its head and the [`Evidence`], which
//! is added up from the measurements in bounded memory. So a run that was killed can be judged from what it left.
//! A file here looks for one family of reasons; every threshold is in [`limits`]. What the target does, however slow,
//! is never a reason; whether the target kept up is seen in the numbers, and the report says it.
//!
//! # Judging
//!
//! *Judging.* `assay_measurement::doubt::Reason` is the closed list of what Assay and the lab can do to a run; `host::verdict` checks
//! each of them, phase by phase, and states what was observed, why it matters and what to do. A *serious* one disturbs its phases: it
//! explains their intervals. Only a few leave figures unknown (`Doubt::leaves_unknown`): a role that failed, conditions that could not be
//! kept, a kernel out of memory. The target's behaviour (slow, refusing, thousands waiting) is never a reason.

mod case;
mod evidence;
mod finding;
pub mod limits;
mod near_limit;
mod network;
mod own_limits;
mod pace;
mod processors;
mod stalled;
#[cfg(test)]
mod testing;

use assay_measurement::doubt::Doubt;
use assay_record::dir::{RunDir, RunDirError};
use assay_record::run::RunInfo;

use case::Case;

pub use evidence::Evidence;

/// Every reason to doubt a run that is found in what was measured, worst first.
pub fn judge(info: &RunInfo, evidence: &Evidence) -> Vec<Doubt> {
    let case = Case { info, evidence };
    let looks =
        [own_limits::look, stalled::look, processors::look, pace::look, network::look, near_limit::look];
    finding::doubts(looks.iter().flat_map(|look| look(&case)).collect(), &info.phases)
}

/// Everything that speaks against a run, worst first: what is known to be wrong, and what is found in what its directory
/// holds, also where it was killed.
pub fn doubts(dir: &RunDir, info: &RunInfo, mut known: Vec<Doubt>) -> Result<Vec<Doubt>, RunDirError> {
    let mut evidence = Evidence::new(&info.phases);
    dir.for_each_measured(|measured| evidence.take(&measured))?;
    known.extend(judge(info, &evidence));
    finding::sort(&mut known);
    Ok(known)
}

/// Writes doubts into the head of a run: the phases that serious ones touch are disturbed.
pub fn settle(info: &mut RunInfo, doubts: Vec<Doubt>) {
    for (index, phase) in info.phases.iter_mut().enumerate() {
        phase.disturbed = doubts.iter().any(|doubt| doubt.serious && doubt.touches(index));
    }
    info.verdict.doubts = doubts;
}

#[cfg(test)]
mod tests {
    use assay_measurement::doubt::Reason;
    use assay_measurement::interval::RobotInterval;
    use assay_measurement::measured::Measured;

    use super::testing::{Run, late_timer, used};
    use super::*;

    #[test]
    fn a_quiet_run_leaves_nothing_to_doubt() {
        let mut run = Run::of(&["a", "b"]);
        run.times(0, &[900; 100], &[20; 100]);
        run.thread("robots", used(200_000, 4_000));
        run.baseline("robots", 0, 60);
        assert_eq!(run.judge(), []);
    }

    #[test]
    fn a_serious_doubt_disturbs_the_phases_that_it_touches_and_the_run() {
        let mut info = Run::of(&["a", "b"]).info;
        let late = Doubt { phases: vec![1], ..Doubt::serious(Reason::Late, "late") };
        settle(&mut info, vec![late.clone()]);
        assert_eq!(
            (info.phases[0].disturbed, info.phases[1].disturbed, info.verdict.is_disturbed()),
            (false, true, true)
        );
        settle(&mut info, vec![Doubt { serious: false, ..late }]);
        assert!(!info.verdict.is_disturbed() && !info.phases[1].disturbed && info.verdict.doubts.len() == 1);
        settle(&mut info, vec![Doubt::serious(Reason::RoleFailed, "gone")]);
        assert!(info.phases.iter().all(|phase| phase.disturbed));
    }

    #[test]
    fn the_cause_is_named_before_the_effect() {
        let mut run = Run::of(&["a"]);
        run.times(0, &[1_000], &[50_000; 100]);
        run.thread("robots", late_timer(used(200_000, 300_000), 20));
        let reasons: Vec<Reason> = run.judge().iter().map(|doubt| doubt.reason).collect();
        assert_eq!(reasons, [Reason::Starved, Reason::Late]);
    }

    #[test]
    fn a_killed_run_can_be_judged_from_what_it_left() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&tmp.path().join("run")).unwrap();
        let mut info = Run::of(&["a"]).info;
        info.phases[0].end_ms = None;
        let mut writer = assay_record::series::SeriesWriter::create(&dir).unwrap();
        let mut interval = RobotInterval::default();
        interval.counts.dropped_samples = 3;
        writer.keep(&Measured::Robots(interval.into())).unwrap();
        drop(writer);
        let known = vec![Doubt::serious(Reason::LabFailed, "before")];
        let found = doubts(&dir, &info, known).unwrap();
        let reasons: Vec<Reason> = found.iter().map(|doubt| doubt.reason).collect();
        assert_eq!(reasons, [Reason::LabFailed, Reason::SamplesDropped]);
    }
}
