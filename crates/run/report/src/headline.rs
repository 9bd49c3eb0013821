//! Headline of a run: the numbers of the phases that measure, how well each is known, and the conclusion.

use assay_measurement::doubt::Extent;
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::own_error::Certainty;
use assay_record::run::PhaseInfo;

use crate::document::{Figures, Headline, Percentiles, Summary};
use crate::failed_requests;
use crate::figures::figures;
use crate::format::count;
use crate::origins_only;
use crate::require::{Decision, Requirement, RequirementResult};
use crate::speed::{self, KeepUp};
use crate::tally::Tally;

/// Loads this close to the highest count as the highest.
const SAME_LOAD: f64 = 0.99;

/// Conclusion from a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunConclusion {
    /// All that was required holds, and nothing is wrong.
    Fine,
    /// A requirement cannot be decided; or nothing was required, and a headline number or whether the target kept up is not known.
    Undecided,
    /// A requirement failed, or the run has a [fault](Summary::fault).
    Failed,
    /// The target served nothing at all.
    ServedNothing,
    /// No request was sent, or none came to its end: there is nothing to conclude from.
    NothingMeasured,
}

impl Summary {
    /// Conclusion from the run, as far as the target is concerned.
    pub fn conclusion(&self) -> RunConclusion {
        let total = &self.total;
        let decided = |decision| self.requirements.iter().any(|one| one.decision == Some(decision));
        let has_nothing = total.counts.completed == 0 && !origins_only::is_origins_only(self);
        if has_nothing && self.is_counted() && served_nothing(total) {
            RunConclusion::ServedNothing
        } else if has_nothing && !self.is_own_fault() {
            RunConclusion::NothingMeasured
        } else if decided(Decision::Failed) || self.fault().is_some() {
            RunConclusion::Failed
        } else if has_nothing || decided(Decision::Undecided) || (self.requires_nothing() && self.is_open()) {
            RunConclusion::Undecided
        } else {
            RunConclusion::Fine
        }
    }

    /// Faults of the target, whatever was required of it; none: it has none.
    pub fn fault(&self) -> Option<String> {
        let wrong = self.wrong_responses();
        if !self.is_counted() {
            return wrong;
        }
        let mut faults: Vec<String> = wrong.into_iter().collect();
        if speed::keep_up(self) == KeepUp::No && !self.requirements.iter().any(allows_shortfall) {
            faults.push(speed::fell_behind(self));
        }
        if failed_requests::most_failed(&self.total) {
            faults.push("most of the requests sent ended in errors".to_owned());
        }
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    /// Number of wrong responses, by kind, without the kinds that the run allows; none: no response was wrong.
    pub fn wrong_responses(&self) -> Option<String> {
        let allowed: Vec<ErrorKind> = self.requirements.iter().filter_map(allowed_error).collect();
        let is_wrong = |kind: ErrorKind| kind.is_wrong_content() && !allowed.contains(&kind);
        let all = self.total.errors.of(is_wrong);
        let wrong = self.total.errors.by_kind.iter().filter(|(kind, _)| is_wrong(**kind));
        let kinds: Vec<String> = wrong.map(|(kind, number)| format!("{kind} {}", count(*number))).collect();
        let were = if all == 1 { "response was" } else { "responses were" };
        (all > 0).then(|| format!("{} {were} wrong ({})", count(all), kinds.join(", ")))
    }

    /// A headline number is not known, or whether the target kept up.
    fn is_open(&self) -> bool {
        !self.headline.unknown.is_empty() || !matches!(speed::keep_up(self), KeepUp::Yes | KeepUp::No)
    }

    /// True without requirements other than allowances.
    pub fn requires_nothing(&self) -> bool {
        self.requirements.iter().all(|judged| allowed_error(judged).is_some())
    }

    /// Assay itself lost requests, or did not report all that became of them.
    fn is_own_fault(&self) -> bool {
        let total = &self.total;
        let lost = total.errors.of(ErrorKind::is_own) + total.counts.unsent_late;
        lost > 0 || !self.is_counted()
    }

    /// All that became of requests was reported.
    fn is_counted(&self) -> bool {
        !self.headline.unknown.iter().any(|name| name == "errors")
    }
}

/// Requests came due, and all ended in errors that are not Assay's own.
fn served_nothing(figures: &Figures) -> bool {
    figures.errors.total > figures.errors.of(ErrorKind::is_own)
}

/// The kind of wrong content that a requirement is about, for the whole run: it says how much of that there may be.
fn allowed_error(judged: &RequirementResult) -> Option<ErrorKind> {
    judged.text.parse::<Requirement>().ok()?.allows()
}

/// A requirement says how many requests of the whole run may get no correct response.
fn allows_shortfall(judged: &RequirementResult) -> bool {
    judged.text.parse().is_ok_and(|requirement: Requirement| requirement.allows_shortfall())
}

/// The phases that measure, by index: those that are marked as primary, else those of constant full load that are in the
/// statistics, else all; only such as ran.
pub(crate) fn measured_phases(planned: &[PhaseInfo], ran: impl Fn(usize) -> bool) -> Vec<usize> {
    let of = |wanted: &dyn Fn(&PhaseInfo) -> bool| -> Vec<usize> {
        let numbered = planned.iter().enumerate();
        numbered.filter(|(index, phase)| ran(*index) && wanted(phase)).map(|(index, _)| index).collect()
    };
    let primary = of(&|phase| phase.primary);
    if !primary.is_empty() {
        return primary;
    }
    let highest = of(&|phase| phase.log_stats)
        .into_iter()
        .map(|index| planned[index].load)
        .filter(|load| load.0 == load.1)
        .fold(0.0, |highest: f64, load| highest.max(load.0));
    let full = |phase: &PhaseInfo| {
        phase.log_stats
            && phase.load.0 == phase.load.1
            && phase.load.0 >= highest * SAME_LOAD
            && highest > 0.0
    };
    match of(&full) {
        full if full.is_empty() => of(&|_| true),
        full => full,
    }
}

/// The headline of a run, from its phases.
pub(crate) fn headline(planned: &[PhaseInfo], parts: &[Tally], are_errors_lost: bool) -> Headline {
    let due = |index: usize| parts.get(index).is_some_and(|part| part.robots.due > 0);
    let indices = measured_phases(planned, due);
    if indices.is_empty() {
        return Headline::default();
    }
    let tally = Tally::of_some(indices.iter().filter_map(|index| parts.get(*index)));
    let figures = figures(&tally);
    let mut headline = Headline {
        phases: indices.iter().map(|index| planned[*index].name.clone()).collect(),
        ..Headline::default()
    };
    let errors = match are_errors_lost || tally.disturbance.unknown == Extent::Everything {
        true => Certainty::Unknown,
        false => Certainty::Known,
    };
    for (name, certainty) in certainties(&figures, errors) {
        let list = match certainty {
            Certainty::Known => &mut headline.known,
            Certainty::Roughly => &mut headline.roughly,
            Certainty::Unknown => &mut headline.unknown,
        };
        list.push(name.to_owned());
    }
    headline.figures = Some(figures);
    headline
}

/// Certainty of each headline number; those without anything to measure are left out.
fn certainties(figures: &Figures, errors: Certainty) -> Vec<(&'static str, Certainty)> {
    let number = |name: &str, value: Option<f64>| match figures.own.get(name) {
        Some(own) => Some(own.certainty),
        None => value.map(|_| Certainty::Known),
    };
    let median = |times: &Percentiles| times.own.get("p50").map(|own| own.certainty);
    let times = &figures.response_time_ms;
    [
        ("dhr", number("dhr.measured", figures.dhr.measured)),
        ("bhr", number("bhr.measured", figures.bhr.measured)),
        ("rate", number("rate.measured", figures.rate.measured)),
        ("errors", Some(errors)),
        ("p50(hit)", median(&times.hit)),
        ("p50(miss)", median(&times.miss)),
    ]
    .into_iter()
    .filter_map(|(name, certainty)| Some((name, certainty?)))
    .collect()
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use assay_measurement::doubt::Extent;
    use assay_measurement::times::TimesRecorder;

    use super::*;
    use crate::document::{PhaseFigures, RequirementResult};
    use crate::tally::Span;

    /// A requirement that held.
    fn held(text: &&str) -> RequirementResult {
        RequirementResult {
            text: (*text).to_owned(),
            decision: Some(Decision::Held),
            ..RequirementResult::default()
        }
    }

    fn planned(name: &str, load: (f64, f64), log_stats: bool, primary: bool) -> PhaseInfo {
        PhaseInfo { name: name.into(), load, log_stats, primary, ..PhaseInfo::default() }
    }

    #[test]
    fn the_phases_that_measure_are_the_primary_ones_or_those_of_constant_full_load() {
        let mut phases = vec![
            planned("fill", (2.0, 2.0), false, false),
            planned("inc", (0.1, 1.0), true, false),
            planned("top1", (1.0, 1.0), true, false),
            planned("top2", (0.995, 0.995), true, false),
            planned("idle", (0.1, 0.1), true, false),
            planned("cool", (1.0, 0.0), true, false),
        ];
        assert_eq!(measured_phases(&phases, |_| true), [2, 3]);
        assert_eq!(measured_phases(&phases, |index| index < 3), [2], "top2 never ran");
        assert_eq!(measured_phases(&phases, |_| false), [] as [usize; 0]);
        phases[4].primary = true;
        assert_eq!(measured_phases(&phases, |_| true), [4]);
        assert_eq!(
            measured_phases(&[planned("a", (1.0, 0.0), true, false)], |_| true),
            [0],
            "there is no other"
        );
    }

    fn tally() -> Tally {
        let mut tally = Tally { span: Some(Span { start_ms: 0, end_ms: 1000 }), ..Tally::default() };
        (0..100).for_each(|_| tally.times.miss.response.record(10_000));
        (0..100).for_each(|_| tally.times.hit.response.record(500));
        (tally.robots.due, tally.robots.sent, tally.robots.completed, tally.robots.basic) =
            (200, 200, 200, 200);
        tally.robots.hits = 100;
        tally
    }

    #[test]
    fn each_headline_number_is_known_or_not_by_itself() {
        let of = |tally: Tally| headline(&[planned("a", (1.0, 1.0), true, false)], &[tally], false);
        let quiet = of(tally());
        assert_eq!(quiet.known, ["dhr", "rate", "errors", "p50(hit)", "p50(miss)"]);
        let mut late = tally();
        let mut recorder = TimesRecorder::default();
        (0..120).for_each(|_| recorder.record_disturbed([500, 100], [0; 2], [0; 2], None));
        late.times.hit.add(&recorder.to_times());
        let late = of(late);
        assert_eq!(late.roughly, ["p50(hit)"]);
        assert_eq!(late.known, ["dhr", "rate", "errors", "p50(miss)"]);
        let mut gone = tally();
        gone.disturbance.unknown = Extent::Times;
        assert_eq!(of(gone).unknown, ["rate", "p50(hit)", "p50(miss)"]);
        assert_eq!(headline(&[], &[], false), Headline::default());
    }

    #[test]
    fn what_follows_from_a_run_is_seen_fine_undecided_failed_and_served_nothing() {
        let run = |errors: &[(&str, u64)], decision: Option<Decision>, unknown: &[&str]| {
            let mut summary = Summary::default();
            (summary.total.counts.due, summary.total.counts.requests) = (1_000, 1_000);
            summary.total.counts.completed = 1_000 - errors.iter().map(|(_, count)| count).sum::<u64>();
            for (kind, count) in errors {
                summary.total.errors.by_kind.insert(kind.parse().expect("a kind"), *count);
                summary.total.errors.total += count;
            }
            summary.requirements = decision
                .map(|one| RequirementResult { decision: Some(one), ..RequirementResult::default() })
                .into_iter()
                .collect();
            summary.headline.unknown = unknown.iter().map(|name| (*name).to_owned()).collect();
            summary.conclusion()
        };
        assert_eq!(run(&[], None, &[]), RunConclusion::Fine);
        assert_eq!(run(&[("timed_out", 10), ("error_status", 90)], None, &[]), RunConclusion::Fine);
        assert_eq!(run(&[("timed_out", 11)], None, &[]), RunConclusion::Failed);
        assert_eq!(run(&[("stale", 1)], None, &["rate"]), RunConclusion::Failed);
        assert_eq!(run(&[], None, &["rate"]), RunConclusion::Undecided);
        assert_eq!(run(&[], Some(Decision::Held), &["rate"]), RunConclusion::Fine, "it was not required");
        assert_eq!(run(&[], Some(Decision::Undecided), &[]), RunConclusion::Undecided);
        assert_eq!(run(&[], Some(Decision::Failed), &[]), RunConclusion::Failed);
        assert_eq!(run(&[("connect_failed", 1_000)], None, &[]), RunConclusion::ServedNothing);
        assert_eq!(run(&[("ports_exhausted", 1_000)], None, &["rate"]), RunConclusion::Undecided);
        assert_eq!(run(&[("connection_lost", 10)], Some(Decision::Held), &[]), RunConclusion::Fine);
        assert_eq!(run(&[("connection_lost", 11)], Some(Decision::Held), &[]), RunConclusion::Failed);
        assert_eq!(run(&[("error_status", 500)], Some(Decision::Held), &[]), RunConclusion::Fine);
        assert_eq!(run(&[("error_status", 501)], Some(Decision::Held), &[]), RunConclusion::Failed);
        assert_eq!(Summary::default().conclusion(), RunConclusion::NothingMeasured);
        let mut unreported = Summary::default();
        unreported.headline.unknown = vec!["errors".to_owned()];
        assert_eq!(unreported.conclusion(), RunConclusion::Undecided, "requests may have come to their end");
        unreported.total.counts.due = 1_000;
        unreported.total.errors.by_kind.insert(ErrorKind::TimedOut, 1_000);
        unreported.total.errors.total = 1_000;
        assert_eq!(unreported.conclusion(), RunConclusion::Undecided, "the origins may have stood still");
    }

    #[test]
    fn a_target_that_did_not_keep_up_fails_a_run_that_does_not_say_how_much_may_be_missing() {
        let run = |change: &dyn Fn(&mut Summary), required: &[&str]| {
            let mut summary = Summary::default();
            (summary.total.counts.due, summary.total.counts.requests) = (1_000, 870);
            summary.total.counts.completed = 870;
            summary.requirements = required.iter().map(held).collect();
            change(&mut summary);
            summary.phases = vec![PhaseFigures { figures: summary.total.clone(), ..PhaseFigures::default() }];
            (summary.conclusion(), summary.fault())
        };
        let never_sent = |summary: &mut Summary| summary.total.counts.unsent = 130;
        let (conclusion, fault) = run(&never_sent, &[]);
        assert_eq!(conclusion, RunConclusion::Failed);
        assert!(fault.is_some_and(|fault| fault.contains("130 of 1,000")));
        assert_eq!(run(&never_sent, &["dhr > 0.5"]).0, RunConclusion::Failed);
        assert_eq!(run(&never_sent, &["run.completed >= 80%"]), (RunConclusion::Fine, None));
        assert_eq!(
            run(&never_sent, &["completed >= 80%"]).0,
            RunConclusion::Failed,
            "other phases may lose more"
        );
        let disturbed = |summary: &mut Summary| {
            summary.total.counts.unsent = 130;
            summary.disturbance = Some("Assay stood still for a while".to_owned());
        };
        assert_eq!(run(&disturbed, &[]), (RunConclusion::Undecided, None));
        assert_eq!(run(&disturbed, &["dhr > 0.5"]).0, RunConclusion::Fine, "it was not required");
        let timed_out = |summary: &mut Summary| {
            disturbed(summary);
            summary.total.errors.by_kind.insert(ErrorKind::TimedOut, 11);
        };
        assert_eq!(
            run(&timed_out, &[]).0,
            RunConclusion::Failed,
            "nothing short makes a request wait that long"
        );
    }

    #[test]
    fn one_wrong_response_of_each_kind_fails_a_run_that_does_not_allow_it() {
        for &kind in ErrorKind::VARIANTS {
            let conclusion = |requirements: &[&str]| {
                let mut summary = Summary::default();
                (summary.total.counts.due, summary.total.counts.requests) = (1_000, 1_000);
                summary.total.counts.completed = 999;
                summary.total.errors.by_kind.insert(kind, 1);
                summary.total.errors.total = 1;
                summary.requirements = requirements.iter().map(held).collect();
                (summary.conclusion(), summary.requires_nothing())
            };
            let name = kind.name();
            let by_default =
                if kind.is_wrong_content() { RunConclusion::Failed } else { RunConclusion::Fine };
            assert_eq!(conclusion(&[]), (by_default, true), "{name}");
            let allowance = format!("run.errors({name}) <= 1");
            assert_eq!(conclusion(&[&allowance]), (RunConclusion::Fine, kind.is_wrong_content()), "{name}");
            assert_eq!(conclusion(&["run.errors <= 1"]).0, by_default, "{name}: it names no kind");
            let of_phase = format!("errors({name}) <= 1");
            assert_eq!(conclusion(&[&of_phase]).0, by_default, "{name}: other phases may have some");
        }
    }
}
