//! Judgement of a window of constant rate: whether the promise was kept, was broken, or is undecided.

use assay_host::verdict::{self, Evidence};
use assay_measurement::counts::RobotCounts;
use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::histogram::{Histogram, MAX_US};
use assay_measurement::measured::Measured;
use assay_measurement::ratios::ratio;
use assay_record::peak::{Check, Step, StepOutcome};
use assay_record::run::{PhaseInfo, RunInfo};

use super::{MeasurementWindow, PromiseJudge, SEARCH_PHASE, backlog};

/// Share of the requested rate that must come due, …
const OFFERED_SHARE: f64 = 0.95;
/// … less so many standard deviations of chance.
const CHANCE: f64 = 4.0;
/// A second in which robots and origins were later than this together is left out: that is the shortest stall that is kept.
const LATE_US: u64 = 10_000;
const SECOND_MS: u64 = 1000;

/// Measurements since the last step.
#[derive(Debug, Default)]
pub(super) struct RecentMeasurements {
    all: Vec<Measured>,
}

impl RecentMeasurements {
    /// Keeps what a step is judged by.
    pub(super) fn keep(&mut self, measured: &Measured) {
        let counts = matches!(
            measured,
            Measured::Robots(_)
                | Measured::Origins(_)
                | Measured::Host(_)
                | Measured::Thread(_)
                | Measured::Stall(_)
                | Measured::Baseline(_)
                | Measured::Network(_)
                | Measured::Processors(_)
        );
        if counts {
            self.all.push(measured.clone());
        }
    }

    /// Forgets what was before a step, but for how quiet the machine was.
    pub(super) fn forget(&mut self) {
        self.all.retain(|measured| matches!(measured, Measured::Baseline(_)));
    }

    /// Measurements between two moments of a run.
    pub(super) fn window<'a>(&'a self, run: &'a RunInfo, from_ms: u64, to_ms: u64) -> MeasurementWindow<'a> {
        let within = |start_ms: u64, length_ms: u64| start_ms >= from_ms && start_ms + length_ms <= to_ms;
        let robots = self.all.iter().filter_map(|measured| match measured {
            Measured::Robots(i) if i.phase == SEARCH_PHASE && within(i.start_ms, i.length_ms) => Some(&**i),
            _ => None,
        });
        let origins = self.all.iter().filter_map(|measured| match measured {
            Measured::Origins(i) if within(i.start_ms, i.length_ms) => Some(&**i),
            _ => None,
        });
        MeasurementWindow {
            robots: robots.collect(),
            origins: origins.collect(),
            length_s: to_ms.saturating_sub(from_ms) as f64 / 1e3,
            parts: vec![(from_ms, to_ms)],
            beside: &self.all,
            run,
        }
    }

    /// The most that a response between two moments was delayed by robots that came late to it or to its request, and by origins.
    pub(super) fn late_us(&self, from_ms: u64, to_ms: u64) -> u64 {
        let touches = |start_ms: u64, length_ms: u64| start_ms < to_ms && start_ms + length_ms > from_ms;
        let (mut robots_us, mut origins_us) = (0, 0);
        for measured in &self.all {
            let (role, us) = match measured {
                Measured::Robots(i) if touches(i.start_ms, i.length_ms) => {
                    ("robots", i.times.lateness.max_us)
                }
                Measured::Origins(i) if touches(i.start_ms, i.length_ms) => ("origins", i.lateness.max_us),
                Measured::Thread(i) if touches(i.start_ms, i.length_ms) => {
                    (i.role.as_str(), i.longest_lag_us)
                }
                Measured::Stall(s) if touches(s.at_ms, s.length_us.div_ceil(1000)) => {
                    (s.role.as_str(), s.length_us)
                }
                _ => continue,
            };
            let most_us = if role == "origins" { &mut origins_us } else { &mut robots_us };
            *most_us = us.max(*most_us);
        }
        robots_us + origins_us
    }

    /// The seconds of a stretch in which Assay was in time, and how late it was in those, going by what it did and not by the
    /// responses. A second after a late one may still hold what it left. Where few are in time, all of them.
    pub(super) fn in_time<'a>(
        &'a self,
        run: &'a RunInfo,
        from_ms: u64,
        to_ms: u64,
    ) -> (MeasurementWindow<'a>, u64) {
        let mut window = self.window(run, from_ms, to_ms);
        let starts = (from_ms.saturating_sub(SECOND_MS)..to_ms).step_by(SECOND_MS as usize);
        let late: Vec<(u64, u64)> =
            starts.map(|start_ms| (start_ms, self.late_us(start_ms, start_ms + SECOND_MS))).collect();
        let is_fine = |pair: &&[(u64, u64)]| pair.iter().all(|(_, late_us)| *late_us <= LATE_US);
        let fine: Vec<(u64, u64)> = late.windows(2).filter(is_fine).map(|pair| pair[1]).collect();
        let all_us = late.iter().map(|(_, late_us)| *late_us).max().unwrap_or(0);
        if (fine.len() as u64) < (to_ms - from_ms).div_ceil(2 * SECOND_MS) {
            return (window, all_us);
        }
        let is_in =
            |at_ms: u64| fine.iter().any(|(start_ms, _)| (*start_ms..start_ms + SECOND_MS).contains(&at_ms));
        window.robots.retain(|interval| is_in(interval.start_ms));
        window.origins.retain(|interval| is_in(interval.start_ms));
        window.length_s = (fine.len() as u64 * SECOND_MS) as f64 / 1e3;
        window.parts = parts(fine.iter().map(|(start_ms, _)| *start_ms));
        (window, fine.iter().map(|(_, late_us)| *late_us).max().unwrap_or(0))
    }

    /// Doubts about the numbers of a window, as it would those of a phase.
    pub(super) fn doubts(&self, info: &RunInfo, from_ms: u64, to_ms: u64) -> Vec<Doubt> {
        let step = PhaseInfo {
            name: "step".into(),
            start_ms: Some(from_ms),
            end_ms: Some(to_ms),
            ..PhaseInfo::default()
        };
        let info = RunInfo { phases: vec![step], ..info.clone() };
        let mut evidence = Evidence::new(&info.phases);
        let of_machine =
            |measured: &&Measured| !matches!(measured, Measured::Robots(_) | Measured::Origins(_));
        self.all.iter().filter(of_machine).for_each(|measured| evidence.add(measured));
        let window = self.window(&info, from_ms, to_ms);
        for interval in window.robots {
            let mut interval = interval.clone();
            interval.phase = 0;
            evidence.add(&Measured::Robots(interval.into()));
        }
        for interval in window.origins {
            let mut interval = interval.clone();
            interval.phase = 0;
            evidence.add(&Measured::Origins(interval.into()));
        }
        let mut doubts = verdict::judge(&info, &evidence);
        doubts.retain(|doubt| doubt.serious);
        doubts
    }
}

/// Seconds that follow each other, together.
fn parts(starts_ms: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for start_ms in starts_ms {
        match parts.last_mut() {
            Some((_, end_ms)) if *end_ms == start_ms => *end_ms += SECOND_MS,
            _ => parts.push((start_ms, start_ms + SECOND_MS)),
        }
    }
    parts
}

/// Evidence of a step.
pub(super) struct StepEvidence<'a> {
    /// Rate that was requested.
    pub rate_per_s: f64,
    pub from_ms: u64,
    pub all: MeasurementWindow<'a>,
    /// All of it with the second before, in which the rate was the same.
    pub with_before: MeasurementWindow<'a>,
    /// The seconds in which Assay was in time, …
    pub in_time: MeasurementWindow<'a>,
    /// … within this, robots and origins together.
    pub late_us: u64,
    /// The most that they were late in any second, and so by how much what waits at the end can be theirs.
    pub most_late_us: u64,
    /// Doubts about its numbers.
    pub doubts: &'a [Doubt],
    /// Number of the repetition.
    pub repeats: u32,
}

/// Requests that were to be sent did not reach the target, or nobody knows whether they did.
const NOT_REQUESTED: [Reason; 4] =
    [Reason::RoleFailed, Reason::LabFailed, Reason::Descriptors, Reason::Ports];
/// Requests waited for something else than the target, and nothing says for how long.
const WAITED: [Reason; 4] =
    [Reason::AcceptBacklog, Reason::SocketMemory, Reason::Retransmissions, Reason::Stolen];

fn find<'a>(doubts: &'a [Doubt], reasons: &[Reason]) -> Option<&'a Doubt> {
    doubts.iter().find(|doubt| reasons.contains(&doubt.reason))
}

/// The step that a stretch makes.
pub(super) fn step(measured: &StepEvidence<'_>, judge: &mut PromiseJudge) -> Step {
    let window = &measured.all;
    let (mut counts, mut times) = (RobotCounts::default(), Histogram::new());
    for interval in &window.robots {
        counts.merge(&interval.counts);
        let all = interval.times.completed().into_iter().chain([&interval.times.timed_out]);
        all.for_each(|class| times.merge_sparse(&class.response));
        times.merge_sparse(&interval.times.unsent_wait);
    }
    let length_s = window.length_s.max(1e-3);
    let errors = counts.error_total();
    let ended = counts.completed + errors;
    let StepJudgement { outcome, checks, why } = judge_evidence(measured, counts.due, judge);
    let quantile_ms = |share| times.quantile_us(share).map(|us| us as f64 / 1e3);
    Step {
        rate_per_s: measured.rate_per_s,
        from_ms: measured.from_ms,
        to_ms: measured.from_ms + (window.length_s * 1e3).round() as u64,
        // Objects that no page led to were never requested.
        offered_per_s: counts.due.saturating_sub(counts.not_reached) as f64 / length_s,
        completed_per_s: counts.completed as f64 / length_s,
        error_share: ratio(errors, ended).unwrap_or(0.0),
        mean_ms: times.mean_us().map(|us| us / 1e3),
        p50_ms: quantile_ms(0.5),
        p99_ms: quantile_ms(0.99),
        late_ms: measured.late_us as f64 / 1e3,
        repeats: measured.repeats,
        outcome,
        checks,
        why,
    }
}

/// Judgement of a step.
struct StepJudgement {
    outcome: StepOutcome,
    checks: Vec<Check>,
    /// Reason why it was not kept.
    why: String,
}

/// Holds what was measured against the promise.
///
/// Every number has the interval within which it lies, whatever Assay and the machine did. A step is *broken* if a part of the
/// promise holds nowhere in that interval, *kept* if all hold everywhere in theirs, and *undecided* in between. Times are judged
/// over the seconds in which Assay was in time, where intervals are narrow; which seconds these are depends on nothing that the
/// target did. What holds nowhere over all seconds is broken as well, and so is a target that fell behind by more than Assay was
/// late.
fn judge_evidence(measured: &StepEvidence<'_>, due: u64, judge: &mut PromiseJudge) -> StepJudgement {
    let (checks, over_all) = (judge(&measured.in_time), judge(&measured.all));
    let undecided = |checks, why| StepJudgement { outcome: StepOutcome::Undecided, checks, why };
    // Whether it was kept or not: errors of Assay's own are among those that are counted.
    if let Some(doubt) = find(measured.doubts, &NOT_REQUESTED) {
        return undecided(checks, doubt.seen.clone());
    }
    if due == 0 {
        return undecided(checks, "no request came due".into());
    }
    let waited = find(measured.doubts, &WAITED);
    let late_us = if waited.is_some() { MAX_US } else { measured.most_late_us };
    let behind = |late_us| backlog::fell_behind(&measured.with_before, late_us);
    // The seconds in which Assay was in time first: their numbers are more telling.
    for checks in [checks.clone(), over_all.clone()] {
        let broken = outcome_texts(&checks, StepOutcome::Broken);
        if !broken.is_empty() {
            return StepJudgement {
                outcome: StepOutcome::Broken,
                why: broken.into_iter().chain(behind(late_us)).collect::<Vec<_>>().join("; "),
                checks,
            };
        }
    }
    if let Some(why) = behind(late_us) {
        return StepJudgement { outcome: StepOutcome::Broken, checks, why };
    }
    // What is no time is judged over all seconds: errors of a late second are the target's as well.
    let (times, _): (Vec<Check>, Vec<Check>) = checks.iter().cloned().partition(|check| check.unit == "ms");
    let (_, no_times): (Vec<Check>, Vec<Check>) = over_all.into_iter().partition(|check| check.unit == "ms");
    let mut open = outcome_texts(&times, StepOutcome::Undecided);
    open.extend(outcome_texts(&no_times, StepOutcome::Undecided));
    if let Some(words) = behind(0) {
        let excuse = waited.map_or_else(
            || format!("Assay was late by up to {:.1} ms", measured.most_late_us as f64 / 1e3),
            |doubt| doubt.seen.clone(),
        );
        open.push(format!("{words}, for which Assay or the machine can be the reason: {excuse}"));
    }
    let requested = measured.rate_per_s * measured.all.length_s;
    if (due as f64) < requested * OFFERED_SHARE - CHANCE * requested.sqrt() {
        // What the target did not keep even so is broken.
        open.push(format!("only {due} of {requested:.0} requests came due"));
    }
    let outcome = if open.is_empty() { StepOutcome::Kept } else { StepOutcome::Undecided };
    StepJudgement { outcome, checks, why: open.join("; ") }
}

/// Values of the promise's parts with this outcome, in words.
fn outcome_texts(checks: &[Check], outcome: StepOutcome) -> Vec<String> {
    let of_it = checks.iter().filter(|check| check.outcome == outcome);
    of_it.map(|check| format!("{}: {}", check.text, check.seen)).collect()
}

#[cfg(test)]
mod tests {
    use assay_measurement::error_kind::ErrorKind;
    use assay_measurement::health::{Stall, ThreadInterval};
    use assay_measurement::interval::RobotInterval;

    use super::*;

    fn second(start_s: u64, phase: u16, due: u64, completed: u64, us: u64) -> Measured {
        let mut interval =
            RobotInterval { start_ms: start_s * 1000, length_ms: 1000, phase, ..RobotInterval::default() };
        (interval.counts.due, interval.counts.completed) = (due, completed);
        interval.levels.in_flight = due.saturating_sub(completed);
        let mut times = Histogram::new();
        (0..completed).for_each(|_| times.record(us));
        interval.times.miss.response = times.to_sparse();
        Measured::Robots(Box::new(interval))
    }

    /// A step of which the 99th percentile is to be less than 5 ms, while Assay was late by so much.
    fn of(events: &[Measured], late_us: u64, doubts: Vec<Doubt>) -> Step {
        let mut recent = RecentMeasurements::default();
        events.iter().for_each(|event| recent.keep(event));
        let mut judge: PromiseJudge = Box::new(move |window: &MeasurementWindow<'_>| {
            let (mut times, mut errors) = (Histogram::new(), 0);
            for interval in &window.robots {
                times.merge_sparse(&interval.times.miss.response);
                errors += interval.counts.error_total();
            }
            let us = times.quantile_us(0.99).unwrap_or(0);
            let check = |text: &str, unit: &str, [least, most]: [u64; 2], limit| {
                let outcome = match () {
                    () if most < limit => StepOutcome::Kept,
                    () if least >= limit => StepOutcome::Broken,
                    () => StepOutcome::Undecided,
                };
                let seen = format!("{least}–{most}");
                Check { text: text.into(), seen, outcome, unit: unit.into(), ..Check::default() }
            };
            let p99 = check("p99 < 5ms", "ms", [us.saturating_sub(late_us), us], 5000);
            vec![p99, check("errors < 1", "count", [errors, errors], 1)]
        });
        let run = RunInfo::default();
        let measured = StepEvidence {
            rate_per_s: 100.0,
            from_ms: 2000,
            all: recent.window(&run, 2000, 4000),
            with_before: recent.window(&run, 1000, 4000),
            in_time: recent.window(&run, 2000, 4000),
            late_us,
            most_late_us: late_us,
            doubts: &doubts,
            repeats: 0,
        };
        step(&measured, &mut judge)
    }

    fn failing(start_s: u64, errors: u64) -> Measured {
        let Measured::Robots(mut interval) = second(start_s, 1, 100, 100 - errors, 2000) else {
            unreachable!()
        };
        interval.counts.errors.insert(ErrorKind::ErrorStatus, errors);
        Measured::Robots(interval)
    }

    #[test]
    fn only_the_seconds_of_the_step_count() {
        let events = [
            second(0, 0, 9, 9, 1),
            second(1, 1, 999, 0, 1),
            second(2, 1, 100, 99, 2000),
            second(3, 1, 104, 103, 2000),
            second(4, 1, 9, 9, 1),
        ];
        let step = of(&events, 0, Vec::new());
        assert_eq!(
            (step.offered_per_s, step.completed_per_s, step.outcome),
            (102.0, 101.0, StepOutcome::Kept)
        );
        assert_eq!((step.from_ms, step.to_ms, step.p50_ms.map(f64::round)), (2000, 4000, Some(2.0)));
    }

    #[test]
    fn a_target_that_falls_behind_breaks_every_promise() {
        let events = [second(2, 1, 100, 90, 2000), second(3, 1, 100, 90, 2000)];
        let step = of(&events, 0, Vec::new());
        assert_eq!(step.outcome, StepOutcome::Broken);
        assert!(step.why.contains("90.0 % of what came due"), "{}", step.why);
    }

    #[test]
    fn a_number_on_both_sides_of_its_limit_leaves_a_step_undecided_and_one_on_one_side_does_not() {
        let slow = |us| [second(2, 1, 100, 100, us), second(3, 1, 100, 100, us)];
        let outcome = |us, late_us| of(&slow(us), late_us, Vec::new()).outcome;
        assert_eq!(outcome(7000, 0), StepOutcome::Broken);
        assert_eq!(outcome(7000, 1500), StepOutcome::Broken, "5.5 ms would have been too long as well");
        assert_eq!(outcome(7000, 2500), StepOutcome::Undecided);
        assert_eq!(outcome(4000, 2500), StepOutcome::Kept, "with all lateness in it");
        let step = of(&slow(7000), 2500, Vec::new());
        assert!(
            step.why.starts_with("p99 < 5ms: 4") && step.checks[1].outcome == StepOutcome::Kept,
            "{}",
            step.why
        );
        assert_eq!(of(&slow(4000), 0, Vec::new()).why, "");
    }

    #[test]
    fn a_queue_that_lateness_explains_leaves_a_step_undecided() {
        let events = [second(2, 1, 100, 100, 2000), second(3, 1, 100, 80, 2000)];
        let outcome = |late_us| of(&events, late_us, Vec::new()).outcome;
        assert_eq!(
            [0, 50_000, 300_000].map(outcome),
            [StepOutcome::Broken, StepOutcome::Broken, StepOutcome::Undecided]
        );
        assert!(of(&events, 300_000, Vec::new()).why.contains("late by up to 300.0 ms"));
        let stolen = vec![Doubt::serious(Reason::Stolen, "the hypervisor took it")];
        let step = of(&events, 0, stolen);
        assert!(
            step.outcome == StepOutcome::Undecided && step.why.contains("the hypervisor took it"),
            "{}",
            step.why
        );
    }

    #[test]
    fn errors_of_the_target_are_never_excused_by_lateness() {
        let late = || vec![Doubt::serious(Reason::Late, "late"), Doubt::serious(Reason::Starved, "starved")];
        let step = of(&[failing(2, 38), failing(3, 38)], 3_000_000, late());
        assert_eq!((step.outcome, step.error_share), (StepOutcome::Broken, 0.38));
        assert_eq!(of(&[failing(2, 1), failing(3, 0)], 500_000, late()).outcome, StepOutcome::Broken);
        let stolen = vec![Doubt::serious(Reason::Stolen, "stolen")];
        assert_eq!(of(&[failing(2, 38), failing(3, 38)], 0, stolen).outcome, StepOutcome::Broken);
    }

    #[test]
    fn a_load_that_was_not_given_is_no_load_that_was_kept() {
        let fine = [second(2, 1, 100, 100, 2000), second(3, 1, 100, 100, 2000)];
        let ports = || vec![Doubt::serious(Reason::Ports, "no port was left")];
        assert_eq!(of(&fine, 0, ports()).outcome, StepOutcome::Undecided);
        assert_eq!(of(&[failing(2, 38), failing(3, 38)], 0, ports()).outcome, StepOutcome::Undecided);
        let half = [second(2, 1, 30, 30, 2000), second(3, 1, 30, 30, 2000)];
        assert_eq!(of(&half, 0, Vec::new()).why, "only 60 of 200 requests came due");
        assert_eq!(
            of(&[failing(2, 40)], 0, Vec::new()).outcome,
            StepOutcome::Broken,
            "less was too much already"
        );
        assert_eq!(of(&[], 0, Vec::new()).why, "no request came due");
    }

    #[test]
    fn how_late_assay_was_is_the_most_of_robots_and_of_origins() {
        let mut recent = RecentMeasurements::default();
        let thread = |start_ms, role: &str, longest_lag_us| {
            Measured::Thread(Box::new(ThreadInterval {
                start_ms,
                length_ms: 1000,
                role: role.into(),
                longest_lag_us,
                ..ThreadInterval::default()
            }))
        };
        let stall = |at_ms, length_us| {
            Measured::Stall(Box::new(Stall { role: "robots".into(), at_ms, length_us, ..Stall::default() }))
        };
        let events = [
            thread(0, "robots", 900_000),
            thread(3000, "robots", 20_000),
            thread(4000, "origins", 7_000),
            stall(1900, 45_000),
            stall(9000, 800_000),
        ];
        events.iter().for_each(|event| recent.keep(event));
        assert_eq!(recent.late_us(1000, 2000), 45_000);
        assert_eq!(recent.late_us(2000, 5000), 20_000 + 7_000);
    }

    #[test]
    fn seconds_in_which_assay_was_late_are_left_out_whatever_they_showed() {
        for us in [1, 900_000] {
            let mut recent = RecentMeasurements::default();
            for start_s in 0..10 {
                let Measured::Robots(mut interval) = second(start_s, 1, 100, 100, us) else { unreachable!() };
                interval.times.lateness.max_us = if start_s == 5 { 10_001 } else { 10 * start_s };
                recent.keep(&Measured::Robots(interval));
            }
            let run = RunInfo::default();
            let seconds = |window: &MeasurementWindow<'_>| -> Vec<u64> {
                window.robots.iter().map(|interval| interval.start_ms / 1000).collect()
            };
            let (window, late_us) = recent.in_time(&run, 2000, 10_000);
            assert_eq!(window.parts, [(2000, 5000), (7000, 10_000)]);
            assert_eq!((seconds(&window), window.length_s, late_us), (vec![2, 3, 4, 7, 8, 9], 6.0, 90));
            // The one before the step counts, too; and where too few remain, all do.
            let (window, late_us) = recent.in_time(&run, 6000, 9000);
            assert_eq!((seconds(&window), late_us), (vec![7, 8], 80));
            let (window, late_us) = recent.in_time(&run, 5000, 7000);
            assert_eq!((seconds(&window), late_us), (vec![5, 6], 10_001));
        }
    }
}
