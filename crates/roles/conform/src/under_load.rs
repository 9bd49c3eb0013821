//! Cases tried on a target while something else puts load on it: one now and then, over and over, until the load ends.
//!
//! What a cache does when it is busy (collapsing requests, serving what is stale, evicting) shows only then. A case that fails once under
//! load does not hold, however often it held (*sometimes*); one that finds nothing stored any more says nothing, since a busy cache may evict.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::case::Case;
use crate::document::{CaseResult, Document, TargetInfo};
use crate::origin::Origin;
use crate::retries::Contradiction;
use crate::run::{Outcome, Target, resolve_dependencies};
use crate::schedule::{TryLimits, run_cases};
use crate::verdict::{Judgement, TryCounts, Verdict};

/// Time between the beginnings of two cases. A case is three exchanges in most cases, so this adds about twelve requests a second.
const EVERY: Duration = Duration::from_millis(250);
/// Cases that are under way at the same time; most of their time is waiting for lifetimes to end.
const AT_ONCE: usize = 32;
/// Reason of a case of which no try came to its end.
const CUT_SHORT: &str = "the load ended before a try of it did";
/// A case is tried over and over, and its tries are counted here.
const EFFORT: TryLimits = TryLimits { at_once: 1, contradiction: Contradiction::Outvoted };

/// True if a case can be tried beside other requests: it upsets no connection, is sent over HTTP/1.1, and no request of it may lead to an origin of others.
pub fn is_applicable(case: &Case) -> bool {
    let is_ordinary = |step: &crate::case::Step| {
        step.request.raw.is_none() && step.request.host.is_none() && !step.request.is_http2()
    };
    !case.isolated && case.steps.iter().all(is_ordinary)
}

/// Tries cases in turn until `stop` is ready. The document has all of them; those of which no try came to its end are inconclusive. `info`
/// describes the target. Call it in a `LocalSet`.
pub async fn run_under_load(
    cases: &[Rc<Case>],
    target: &Target,
    info: TargetInfo,
    origin: &Rc<Origin>,
    mut document: Document,
    stop: impl Future<Output = ()>,
) -> Document {
    let mut tries_by_case: BTreeMap<String, TriesSoFar> = BTreeMap::new();
    let mut under_way = JoinSet::new();
    let mut next = cases.iter().cycle();
    let mut ticker = interval(EVERY);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(ended) = under_way.join_next() => {
                for outcome in ended.into_iter().flatten() {
                    let outcome = excuse_eviction(outcome);
                    tries_by_case.entry(outcome.case.name.clone()).or_default().add(outcome);
                }
            }
            _ = ticker.tick(), if under_way.len() < AT_ONCE => {
                let Some(case) = next.next().map(Rc::clone) else { break };
                let (target, origin) = (target.clone(), Rc::clone(origin));
                under_way.spawn_local(async move { run_cases(vec![case], &target, &origin, EFFORT, || ()).await });
            }
        }
    }
    // What is under way was cut short by the end, and says nothing.
    under_way.shutdown().await;
    let mut ended = |case: &Rc<Case>| tries_by_case.remove(&case.name).and_then(TriesSoFar::ended);
    let (times, mut outcomes): (Vec<TryCounts>, Vec<Outcome>) =
        cases.iter().map(|case| ended(case).unwrap_or_else(|| untried(case))).unzip();
    resolve_dependencies(&mut outcomes);
    document.add(info, &outcomes);
    let counted = document.results.iter_mut().zip(times);
    counted.for_each(|(result, times): (&mut CaseResult, TryCounts)| result.under_load = Some(times));
    document
}

/// The load was too short for a case, or for as many cases as there are.
fn untried(case: &Rc<Case>) -> (TryCounts, Outcome) {
    let judgement = Judgement::new(Verdict::Inconclusive, CUT_SHORT);
    let times = TryCounts::default();
    (times, Outcome { case: Rc::clone(case), judgement, observations: Vec::new(), tries: 0, times })
}

/// A busy cache may have evicted what a requirement was to be tried on.
fn excuse_eviction(mut outcome: Outcome) -> Outcome {
    if outcome.judgement.is_refetch && outcome.judgement.verdict == Verdict::Fail {
        let reason = format!("the response was stored no longer: {}", outcome.judgement.reason);
        outcome.judgement = Judgement::new(Verdict::DependencyMissing, reason);
    }
    outcome
}

/// Tries of a case so far.
#[derive(Default)]
struct TriesSoFar {
    times: TryCounts,
    worst: Option<Outcome>,
}

impl TriesSoFar {
    /// Result of the tries. A requirement that was met sometimes is not met.
    fn ended(self) -> Option<(TryCounts, Outcome)> {
        let mut worst = self.worst?;
        if worst.judgement.verdict == Verdict::Fail && self.times.contradict() {
            worst.judgement.verdict = Verdict::Sometimes;
        }
        Some((self.times, worst))
    }

    fn add(&mut self, outcome: Outcome) {
        self.times = self.times + TryCounts::of(outcome.judgement.verdict);
        if self.worst.as_ref().is_none_or(|worst| weight(&outcome) > weight(worst)) {
            self.worst = Some(outcome);
        }
    }
}

/// A failure says more than that the case held, and that more than nothing. What is no requirement was seen if it was seen once.
fn weight(outcome: &Outcome) -> u8 {
    match outcome.judgement.verdict {
        Verdict::Fail => 3,
        Verdict::Pass | Verdict::Yes => 2,
        Verdict::No => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Suite;

    fn outcome(verdict: Verdict) -> Outcome {
        let case = Rc::clone(Suite::bundled().unwrap().find("stores").unwrap());
        Outcome {
            case,
            judgement: Judgement::new(verdict, ""),
            observations: Vec::new(),
            tries: 1,
            times: TryCounts::of(verdict),
        }
    }

    #[test]
    fn a_failure_once_is_none_that_holds_and_what_is_seen_once_is_behaviour() {
        let worst = |verdicts: &[Verdict]| {
            let mut tries_so_far = TriesSoFar::default();
            verdicts.iter().for_each(|verdict| tries_so_far.add(outcome(*verdict)));
            let (times, worst) = tries_so_far.ended().unwrap();
            (worst.judgement.verdict, times)
        };
        let (verdict, times) = worst(&[Verdict::Pass, Verdict::Fail, Verdict::Pass, Verdict::Inconclusive]);
        assert_eq!((verdict, times), (Verdict::Sometimes, TryCounts { held: 2, unheld: 1, open: 1 }));
        assert_eq!(worst(&[Verdict::Inconclusive, Verdict::Fail]).0, Verdict::Fail);
        assert_eq!(worst(&[Verdict::No, Verdict::Yes]).0, Verdict::Yes);
        assert_eq!(worst(&[Verdict::Inconclusive, Verdict::No]).0, Verdict::No);
    }

    #[test]
    fn a_case_without_a_whole_try_is_inconclusive() {
        let case = Rc::clone(Suite::bundled().unwrap().find("age-sent").unwrap());
        let (times, outcome) = untried(&case);
        assert_eq!((times, outcome.tries), (TryCounts::default(), 0));
        assert_eq!(outcome.judgement.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_requirement_on_what_was_evicted_says_nothing() {
        let mut refetch = outcome(Verdict::Fail);
        refetch.judgement.is_refetch = true;
        assert_eq!(excuse_eviction(refetch).judgement.verdict, Verdict::DependencyMissing);
        assert_eq!(excuse_eviction(outcome(Verdict::Fail)).judgement.verdict, Verdict::Fail);
    }

    #[test]
    fn cases_that_upset_connections_or_lead_elsewhere_are_not_fit() {
        let suite = Suite::bundled().unwrap();
        let fit = suite.cases.iter().filter(|case| is_applicable(case)).count();
        assert!(fit > 500 && fit < suite.cases.len(), "{fit}");
        assert!(suite.cases.iter().filter(|case| case.topic == "framing").all(|case| !is_applicable(case)));
    }
}
