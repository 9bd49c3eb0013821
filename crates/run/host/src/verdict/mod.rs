//! Judgement of runs: checks each phase for the reasons to doubt its figures.
//!
//! The judgement is a pure function of the run directory: [`judge`] takes its head and the [`Evidence`], which is summed from
//! the measurements in bounded memory. So a run that was killed can be judged by its remains. Each module checks one family of
//! reasons; all thresholds are in [`limits`]. The behaviour of the target, however slow, is never a reason: the report states
//! whether it kept up.
//!
//! # Judging
//!
//! *Judging.* `assay_measurement::doubt::Reason` is the closed list of what Assay and the lab can do to a run; `host::verdict` checks
//! each of them, phase by phase, and states what was observed, why it matters and what to do. A *serious* one disturbs its phases: it
//! explains their intervals. Only a few leave figures unknown (`Doubt::leaves_unknown`): a role that failed, conditions that could not be
//! kept, a kernel out of memory. The target's behaviour (slow, refusing, thousands waiting) is never a reason.

mod evidence;
mod finding;
mod lateness;
pub mod limits;
mod near_limit;
mod network;
mod own_limits;
mod processors;
mod stalled;
#[cfg(test)]
mod testing;

use assay_measurement::doubt::Doubt;
use assay_record::dir::{RunDir, RunDirError};
use assay_record::run::RunInfo;

use evidence::JudgedRun;

pub use evidence::Evidence;

/// Doubts about a run by its measurements, worst first.
pub fn judge(info: &RunInfo, evidence: &Evidence) -> Vec<Doubt> {
    let run = JudgedRun { info, evidence };
    let checks = [
        own_limits::findings,
        stalled::findings,
        processors::findings,
        lateness::findings,
        network::findings,
        near_limit::findings,
    ];
    finding::doubts(checks.iter().flat_map(|check| check(&run)).collect(), &info.phases)
}

/// All doubts about a run, worst first: known ones, and those by the measurements in its directory, which may be incomplete.
pub fn doubts(dir: &RunDir, info: &RunInfo, mut known: Vec<Doubt>) -> Result<Vec<Doubt>, RunDirError> {
    let mut evidence = Evidence::new(&info.phases);
    dir.for_each_measured(|measured| evidence.add(&measured))?;
    known.extend(judge(info, &evidence));
    finding::sort(&mut known);
    Ok(known)
}

/// Stores doubts in the head of a run, and marks phases with serious ones as disturbed.
pub fn apply_doubts(info: &mut RunInfo, doubts: Vec<Doubt>) {
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
        let mut run = Run::new(&["a", "b"]);
        run.times(0, &[900; 100], &[20; 100]);
        run.thread("robots", used(200_000, 4_000));
        run.baseline("robots", 0, 60);
        assert_eq!(run.judge(), []);
    }

    #[test]
    fn a_serious_doubt_disturbs_the_phases_that_it_touches_and_the_run() {
        let mut info = Run::new(&["a", "b"]).info;
        let late = Doubt { phases: vec![1], ..Doubt::serious(Reason::Late, "late") };
        apply_doubts(&mut info, vec![late.clone()]);
        assert_eq!(
            (info.phases[0].disturbed, info.phases[1].disturbed, info.verdict.is_disturbed()),
            (false, true, true)
        );
        apply_doubts(&mut info, vec![Doubt { serious: false, ..late }]);
        assert!(!info.verdict.is_disturbed() && !info.phases[1].disturbed && info.verdict.doubts.len() == 1);
        apply_doubts(&mut info, vec![Doubt::serious(Reason::RoleFailed, "gone")]);
        assert!(info.phases.iter().all(|phase| phase.disturbed));
    }

    #[test]
    fn the_cause_is_named_before_the_effect() {
        let mut run = Run::new(&["a"]);
        run.times(0, &[1_000], &[50_000; 100]);
        run.thread("robots", late_timer(used(200_000, 300_000), 20));
        let reasons: Vec<Reason> = run.judge().iter().map(|doubt| doubt.reason).collect();
        assert_eq!(reasons, [Reason::Starved, Reason::Late]);
    }

    #[test]
    fn a_killed_run_can_be_judged_from_what_it_left() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&tmp.path().join("run")).unwrap();
        let mut info = Run::new(&["a"]).info;
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
