//! Verdicts of cases: what the findings of their steps come to, and what becomes of cases that depend on others.

use std::collections::BTreeMap;
use std::ops::Add;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::case::{Case, Level};
use crate::check::Finding;

/// What a case has shown of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(VariantArray)]
pub enum Verdict {
    /// The requirement (MUST or SHOULD) is met.
    Pass,
    /// It is not met.
    Fail,
    /// Tries of it contradict each other: it holds in some of them, and in others not.
    Sometimes,
    /// The target does what the case describes (MAY or behaviour).
    Yes,
    /// It does not; that is no failure.
    No,
    /// The case cannot be tried on this target.
    NotApplicable,
    /// The target does not do what the case relies on.
    DependencyMissing,
    /// Nothing was found out: a step came too late, or no response came.
    Inconclusive,
}

impl Verdict {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Verdict; 8] = [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::Sometimes,
        Verdict::Yes,
        Verdict::No,
        Verdict::NotApplicable,
        Verdict::DependencyMissing,
        Verdict::Inconclusive,
    ];

    /// Name in tables.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
            Verdict::Sometimes => "sometimes",
            Verdict::Yes => "behaves so",
            Verdict::No => "behaves otherwise",
            Verdict::NotApplicable => "not applicable",
            Verdict::DependencyMissing => "dependency missing",
            Verdict::Inconclusive => "inconclusive",
        }
    }

    /// One or two characters for a cell of a matrix.
    pub fn mark(self) -> &'static str {
        match self {
            Verdict::Pass => "ok",
            Verdict::Fail => "FAIL",
            Verdict::Sometimes => "some",
            Verdict::Yes => "yes",
            Verdict::No => "no",
            Verdict::NotApplicable => "–",
            Verdict::DependencyMissing => "dep",
            Verdict::Inconclusive => "?",
        }
    }

    /// True where the target does what the case describes.
    pub fn holds(self) -> bool {
        matches!(self, Verdict::Pass | Verdict::Yes)
    }

    /// True where something was found out.
    pub fn is_decided(self) -> bool {
        matches!(self, Verdict::Pass | Verdict::Fail | Verdict::Sometimes | Verdict::Yes | Verdict::No)
    }
}

/// How often a case came to what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Times")]
pub struct TryCounts {
    /// It held.
    pub held: usize,
    /// It did not.
    pub unheld: usize,
    /// Nothing was found out.
    pub open: usize,
}

impl TryCounts {
    /// Once.
    pub fn of(verdict: Verdict) -> Self {
        let is_decided = verdict.is_decided();
        Self {
            held: usize::from(verdict.holds()),
            unheld: usize::from(is_decided && !verdict.holds()),
            open: usize::from(!is_decided),
        }
    }

    /// True if it held, and did not.
    pub fn contradict(self) -> bool {
        self.held > 0 && self.unheld > 0
    }
}

impl Add for TryCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            held: self.held + other.held,
            unheld: self.unheld + other.unheld,
            open: self.open + other.open,
        }
    }
}

/// A verdict and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// Observation with its step; empty where everything was as expected.
    pub reason: String,
    /// All that was seen is that the target fetched again what it was to have in its store.
    pub is_refetch: bool,
    /// The expected response did not come, or not from the store: in a crowd it may have been late, or have been
    /// evicted.
    pub is_absence: bool,
    /// Held because a connection ended, which may have had another reason: the case is tried once more.
    pub is_doubtful: bool,
    /// Assay itself stood still meanwhile: it is tried again, as if it had not been tried.
    pub is_disturbed: bool,
}

impl Judgement {
    pub fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            reason: reason.into(),
            is_refetch: false,
            is_absence: false,
            is_doubtful: false,
            is_disturbed: false,
        }
    }
}

/// Judgement of a case by the findings of its steps.
pub fn judge(case: &Case, findings: &[Finding]) -> Judgement {
    for ((step, finding), number) in case.steps.iter().zip(findings).zip(1..) {
        let judgement = match finding {
            Finding::Met => continue,
            Finding::Inconclusive(why) => {
                Judgement::new(Verdict::Inconclusive, format!("step {number}: {why}"))
            }
            Finding::Refused(why) => Judgement::new(
                Verdict::DependencyMissing,
                format!("step {number}: the target refuses the request by itself: {why}"),
            ),
            Finding::Unmet(why) | Finding::Fetched(why) | Finding::Absent(why) if step.is_setup => {
                Judgement::new(
                    Verdict::DependencyMissing,
                    format!("step {number}, which the case relies on: {why}"),
                )
            }
            Finding::Unmet(why) | Finding::Fetched(why) | Finding::Absent(why) => Judgement {
                is_refetch: matches!(finding, Finding::Fetched(_)),
                is_absence: !matches!(finding, Finding::Unmet(_)),
                ..Judgement::new(unmet(case.level), format!("step {number}: {why}"))
            },
        };
        return judgement;
    }
    let held = if case.level.binds() { Verdict::Pass } else { Verdict::Yes };
    Judgement::new(held, String::new())
}

fn unmet(level: Level) -> Verdict {
    if level.binds() { Verdict::Fail } else { Verdict::No }
}

/// Gives the cases whose dependencies did not hold the verdict that says so. `judged` has all cases of a target.
pub fn resolve(cases: &[Case], judged: &mut BTreeMap<String, Judgement>) {
    // Dependencies have no circles, so a chain is followed in at most as many rounds as there are cases.
    for _ in 0..cases.len() {
        let mut changed = false;
        for case in cases {
            let is_open = judged
                .get(&case.name)
                .is_some_and(|own| own.verdict.is_decided() || own.verdict == Verdict::Inconclusive);
            let missing = case
                .depends
                .iter()
                .find(|name| judged.get(*name).is_some_and(|other| !other.verdict.holds()));
            if let (true, Some(missing)) = (is_open, missing) {
                let reason = format!("the case relies on `{missing}`, which does not hold");
                judged.insert(case.name.clone(), Judgement::new(Verdict::DependencyMissing, reason));
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(text: &str) -> Vec<Case> {
        crate::read::read("t.toml", text).unwrap().cases
    }

    const TWO: &str = r#"
topic = "t"
[[case]]
name = "stores"
level = "behaviour"
section = "x"
rule = "r"
steps = [{}, { expect = { served = "store" } }]
[[case]]
name = "fresh"
level = "MUST"
section = "x"
rule = "r"
depends = ["stores"]
steps = [{ setup = true, expect = { status = 200 } }, { expect = { served = "store" } }]
"#;

    #[test]
    fn a_failure_is_one_only_where_the_level_binds() {
        let cases = cases(TWO);
        let unmet = [Finding::Met, Finding::Unmet("seen".into())];
        assert_eq!(judge(&cases[0], &unmet), Judgement::new(Verdict::No, "step 2: seen"));
        assert_eq!(judge(&cases[1], &unmet).verdict, Verdict::Fail);
        let met = [Finding::Met, Finding::Met];
        assert_eq!(
            [judge(&cases[0], &met).verdict, judge(&cases[1], &met).verdict],
            [Verdict::Yes, Verdict::Pass]
        );
    }

    #[test]
    fn a_setup_step_that_is_not_met_is_a_missing_dependency() {
        let judged = judge(&cases(TWO)[1], &[Finding::Unmet("status 500".into()), Finding::Met]);
        assert_eq!(judged.verdict, Verdict::DependencyMissing);
        assert!(judged.reason.contains("step 1, which the case relies on: status 500"));
    }

    #[test]
    fn a_case_whose_dependency_does_not_hold_says_nothing() {
        let cases = cases(TWO);
        let mut judged = BTreeMap::from([
            ("stores".to_owned(), Judgement::new(Verdict::No, "")),
            ("fresh".to_owned(), Judgement::new(Verdict::Fail, "")),
        ]);
        resolve(&cases, &mut judged);
        assert_eq!(judged["fresh"].verdict, Verdict::DependencyMissing);
        assert_eq!(judged["stores"].verdict, Verdict::No);
    }
}
