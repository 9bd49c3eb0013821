//! What did a stretch of constant rate show?

use assay_record::counts::RobotCounts;
use assay_record::doubt::Doubt;
use assay_record::histogram::Histogram;
use assay_record::peak::{Check, Outcome, Step};
use assay_record::run::{PhaseInfo, RunInfo};
use assay_record::series::Entry;
use std::borrow::Cow;

use super::{SEARCH_PHASE, Stretch};
use crate::event::LabEvent;
use crate::verdict::{self, Evidence};

/// A rate counts as carried when so much of what came due ended, answered or as an error.
const ENDED_SHARE: f64 = 0.98;
/// So many requests more or less are under way by chance.
const UNDER_WAY: f64 = 2.0;

/// What was heard lately.
#[derive(Debug, Default)]
pub(super) struct Lately {
    events: Vec<LabEvent>,
}

impl Lately {
    /// Keeps what a step is judged by.
    pub(super) fn keep(&mut self, event: &LabEvent) {
        let counts = matches!(
            event,
            LabEvent::Robots(_)
                | LabEvent::Origins(_)
                | LabEvent::Host(_)
                | LabEvent::Thread(_)
                | LabEvent::Stall(_)
                | LabEvent::Baseline(_)
                | LabEvent::Network(_)
        );
        if counts {
            self.events.push(event.clone());
        }
    }

    /// Forgets what was before a step, but for how quiet the machine was.
    pub(super) fn forget(&mut self) {
        self.events.retain(|event| matches!(event, LabEvent::Baseline(_)));
    }

    /// What was measured between two moments.
    pub(super) fn stretch(&self, from_ms: u64, to_ms: u64) -> Stretch<'_> {
        let within = |start_ms: u64, length_ms: u64| start_ms >= from_ms && start_ms + length_ms <= to_ms;
        let robots = self.events.iter().filter_map(|event| match event {
            LabEvent::Robots(i) if i.phase == SEARCH_PHASE && within(i.start_ms, i.length_ms) => Some(&**i),
            _ => None,
        });
        let origins = self.events.iter().filter_map(|event| match event {
            LabEvent::Origins(i) if within(i.start_ms, i.length_ms) => Some(&**i),
            _ => None,
        });
        Stretch {
            robots: robots.collect(),
            origins: origins.collect(),
            length_s: to_ms.saturating_sub(from_ms) as f64 / 1e3,
        }
    }

    /// What makes the numbers of a stretch doubtful, as it would those of a phase.
    pub(super) fn doubts(&self, info: &RunInfo, from_ms: u64, to_ms: u64) -> Vec<Doubt> {
        let step = PhaseInfo {
            name: "step".into(),
            start_ms: Some(from_ms),
            end_ms: Some(to_ms),
            ..PhaseInfo::default()
        };
        let info = RunInfo { phases: vec![step], ..info.clone() };
        let mut evidence = Evidence::new(&info.phases);
        for event in &self.events {
            match event {
                LabEvent::Robots(_) | LabEvent::Origins(_) => {}
                LabEvent::Host(interval) => evidence.take(&Entry::Host(Cow::Borrowed(interval))),
                LabEvent::Thread(interval) => evidence.take(&Entry::Thread(Cow::Borrowed(interval))),
                LabEvent::Stall(stall) => evidence.take(&Entry::Stall(Cow::Borrowed(stall))),
                LabEvent::Baseline(baseline) => evidence.take(&Entry::Baseline(Cow::Borrowed(baseline))),
                LabEvent::Network(interval) => evidence.take(&Entry::Network(Cow::Borrowed(interval))),
                _ => {}
            }
        }
        let stretch = self.stretch(from_ms, to_ms);
        for interval in stretch.robots {
            let mut interval = interval.clone();
            interval.phase = 0;
            evidence.take(&Entry::Robots(Cow::Owned(interval)));
        }
        for interval in stretch.origins {
            let mut interval = interval.clone();
            interval.phase = 0;
            evidence.take(&Entry::Origins(Cow::Owned(interval)));
        }
        let mut doubts = verdict::judge(&info, &evidence);
        doubts.retain(|doubt| doubt.invalidates);
        doubts
    }
}

/// The step that a stretch makes. What Assay itself may have spoiled counts against nobody: a promise that was kept all the
/// same is kept.
pub(super) fn step(
    rate_per_s: f64,
    from_ms: u64,
    stretch: &Stretch<'_>,
    checks: Vec<Check>,
    doubts: &[Doubt],
) -> Step {
    let (mut counts, mut times) = (RobotCounts::default(), Histogram::new());
    for interval in &stretch.robots {
        counts.merge(&interval.counts);
        let all = interval.completed().into_iter().chain([&interval.timed_out]);
        all.for_each(|class| times.merge_sparse(&class.response));
        times.merge_sparse(&interval.unsent_wait);
    }
    let length_s = stretch.length_s.max(1e-3);
    // What no page led to was never asked for.
    let due = counts.due.saturating_sub(counts.not_reached);
    let errors = counts.error_total();
    let ended = counts.completed + errors;
    let missed: Vec<String> = checks
        .iter()
        .filter(|check| !check.held)
        .map(|check| format!("{}: {}", check.text, check.seen))
        .collect();
    let fell_behind = (ended as f64) < due as f64 * ENDED_SHARE - UNDER_WAY;
    let mut why = missed.join("; ");
    if fell_behind {
        let behind = format!("{:.1} % of what came due ended in time", ended as f64 * 100.0 / due as f64);
        why = if why.is_empty() { behind } else { format!("{why}; {behind}") };
    }
    let kept = missed.is_empty() && !fell_behind && due > 0;
    if due == 0 {
        why = "no request came due".into();
    }
    let outcome = match (kept, doubts.first()) {
        (true, _) => Outcome::Kept,
        (false, Some(doubt)) => {
            why = format!("{why}; but {}", doubt.seen);
            Outcome::Invalid
        }
        (false, None) => Outcome::Broken,
    };
    let quantile_ms = |share| times.quantile_us(share).map(|us| us as f64 / 1e3);
    Step {
        rate_per_s,
        from_ms,
        to_ms: from_ms + (stretch.length_s * 1e3).round() as u64,
        offered_per_s: due as f64 / length_s,
        completed_per_s: counts.completed as f64 / length_s,
        error_share: if ended > 0 { errors as f64 / ended as f64 } else { 0.0 },
        mean_ms: times.mean_us().map(|us| us / 1e3),
        p50_ms: quantile_ms(0.5),
        p99_ms: quantile_ms(0.99),
        outcome,
        checks,
        why,
    }
}

#[cfg(test)]
mod tests {
    use assay_record::doubt::Reason;
    use assay_record::interval::RobotInterval;

    use super::*;

    fn second(start_s: u64, phase: u16, due: u64, completed: u64, us: u64) -> LabEvent {
        let mut interval =
            RobotInterval { start_ms: start_s * 1000, length_ms: 1000, phase, ..RobotInterval::default() };
        (interval.counts.due, interval.counts.completed) = (due, completed);
        let mut times = Histogram::new();
        (0..completed).for_each(|_| times.record(us));
        interval.miss.response = times.to_sparse();
        LabEvent::Robots(Box::new(interval))
    }

    fn of(events: &[LabEvent], held: bool, doubts: &[Doubt]) -> Step {
        let mut lately = Lately::default();
        events.iter().for_each(|event| lately.keep(event));
        let check = Check { text: "p99 < 5ms".into(), seen: "7 ms".into(), held };
        step(100.0, 2000, &lately.stretch(2000, 4000), vec![check], doubts)
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
        let step = of(&events, true, &[]);
        assert_eq!((step.offered_per_s, step.completed_per_s, step.outcome), (102.0, 101.0, Outcome::Kept));
        assert_eq!((step.from_ms, step.to_ms, step.p50_ms.map(f64::round)), (2000, 4000, Some(2.0)));
    }

    #[test]
    fn a_target_that_falls_behind_breaks_every_promise() {
        let events = [second(2, 1, 100, 90, 2000), second(3, 1, 100, 90, 2000)];
        let step = of(&events, true, &[]);
        assert_eq!(step.outcome, Outcome::Broken);
        assert!(step.why.contains("90.0 % of what came due"), "{}", step.why);
    }

    #[test]
    fn what_assay_may_have_spoiled_speaks_against_nobody() {
        let events = [second(2, 1, 100, 100, 2000), second(3, 1, 100, 100, 2000)];
        let late = [Doubt::invalid(Reason::Late, "late")];
        assert_eq!(of(&events, false, &[]).outcome, Outcome::Broken);
        assert_eq!(of(&events, false, &late).outcome, Outcome::Invalid);
        assert_eq!(of(&events, true, &late).outcome, Outcome::Kept);
        assert_eq!(of(&[], true, &[]).why, "no request came due");
    }
}
