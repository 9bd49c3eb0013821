//! Judgement of requirements when a run has ended, from everything that was added up.

use assay_measurement::own_error::{Certainty, OwnInterval};
use assay_record::run::RunInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::RequiredMetric;
use super::{Decision, Requirement};
use crate::document::{Finding, Mood, Topic};
use crate::estimate::FigureEstimate;
use crate::tally::{Span, Tally};

/// A requirement, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Requirement")]
pub struct RequirementResult {
    /// As it was written.
    pub text: String,
    /// What became of it; null: this version cannot read it.
    #[serde(default)]
    pub decision: Option<Decision>,
    /// True: it held. False: it failed. Null: neither.
    pub held: Option<bool>,
    /// What was measured, in `unit`; null: nothing, or it is not known.
    pub value: Option<f64>,
    /// Within which interval it lies, whatever Assay and the lab did; null: there was nothing to measure.
    #[serde(default)]
    pub own: Option<OwnInterval>,
    /// `value` is a lower bound: requests that were never sent or timed out could have raised it. Below a limit it holds
    /// only if they could not have raised it so far.
    #[serde(default)]
    pub at_least: bool,
    /// `ms`, `ratio` (0 to 1), `per_second` or `count`.
    pub unit: String,
    /// What was measured, in words.
    pub seen: String,
    /// The phases that were looked at.
    pub phases: Vec<String>,
}

/// What a run lacks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gap {
    /// It ended before its schedule did.
    pub(crate) is_partial: bool,
    /// A file with errors cannot be read.
    pub(crate) lacks_errors: bool,
    /// What robots counted cannot be read.
    pub(crate) lacks_counts: bool,
}

/// Judges everything that was required of a run. `parts` are its phases, and what belongs to none of them.
pub(crate) fn judge(
    info: &RunInfo,
    parts: &[Tally],
    whole: Option<Span>,
    gap: Gap,
) -> Vec<RequirementResult> {
    info.requirements.iter().map(|text| one(text, info, parts, whole, gap)).collect()
}

fn one(text: &str, info: &RunInfo, parts: &[Tally], whole: Option<Span>, gap: Gap) -> RequirementResult {
    let Ok(requirement) = text.parse::<Requirement>() else {
        // It was written by a version that knows more than this one.
        let seen = "this version of Assay cannot read it".to_owned();
        return RequirementResult {
            text: text.to_owned(),
            decision: None,
            held: None,
            value: None,
            own: None,
            at_least: false,
            unit: String::new(),
            seen,
            phases: Vec::new(),
        };
    };
    let indices = requirement.phases(&info.phases);
    let tally = Tally::of_some(indices.iter().filter_map(|index| parts.get(*index)));
    // The whole run is as long as it took, also where phases have pauses between them.
    let span = if indices.len() > info.phases.len() { whole } else { tally.span };
    let mut value = requirement.metric.read(&tally, span.map(Span::length_s));
    let is_lost = (gap.lacks_errors && requirement.counts_errors())
        || (gap.lacks_counts && !matches!(requirement.metric, RequiredMetric::Time { .. }));
    if let Some(value) = value.as_mut().filter(|_| is_lost) {
        value.own.certainty = Certainty::Unknown;
    }
    let decision = match &value {
        Some(value) => requirement.decide(value),
        None if gap.is_partial => Decision::TooEarly,
        None if gap.lacks_errors => Decision::Undecided,
        None => Decision::Failed,
    };
    let in_unit = |value: FigureEstimate| value.map(|value| requirement.metric.in_unit(value));
    let is_known = |value: &FigureEstimate| value.own.certainty != Certainty::Unknown;
    RequirementResult {
        text: requirement.text().to_owned(),
        decision: Some(decision),
        held: match decision {
            Decision::Held => Some(true),
            Decision::Failed => Some(false),
            Decision::Undecided | Decision::TooEarly => None,
        },
        value: value.filter(is_known).map(|value| in_unit(value).value),
        own: value.map(|value| in_unit(value).own),
        at_least: value.is_some_and(|value| value.is_at_least()),
        unit: requirement.metric.unit().to_owned(),
        seen: requirement.value_text(value),
        phases: indices
            .iter()
            .filter_map(|index| info.phases.get(*index))
            .map(|phase| phase.name.clone())
            .collect(),
    }
}

/// All requirements in one sentence of the verdict; none: nothing was required.
pub(crate) fn finding(judged: &[RequirementResult]) -> Option<Finding> {
    let of = |decision| judged.iter().filter(move |one| one.decision == Some(decision));
    let told = |decision| -> String {
        let each: Vec<String> = of(decision).map(|one| format!("{} ({})", one.text, one.seen)).collect();
        each.join("; ")
    };
    let (failed, held) = (of(Decision::Failed).count(), of(Decision::Held).count());
    let undecided = of(Decision::Undecided).count();
    let all = judged.len();
    let left = if undecided > 0 {
        format!(" {undecided} of {all} cannot be decided: {}.", told(Decision::Undecided))
    } else {
        String::new()
    };
    let (mood, text) = match (all, failed) {
        (0, _) => return None,
        (_, 1..) => {
            (Mood::Bad, format!("{failed} of {all} requirements failed: {}.{left}", told(Decision::Failed)))
        }
        _ if undecided > 0 => (Mood::Doubtful, format!("{held} of {all} requirements held.{left}")),
        _ if held < all => {
            (Mood::Plain, format!("{held} of {all} requirements held; the run ended too early for the rest."))
        }
        (1, _) => (Mood::Good, format!("What was required held: {} ({}).", judged[0].text, judged[0].seen)),
        _ => (Mood::Good, format!("All {all} requirements held.")),
    };
    Some(Finding { about: Topic::Requirements, mood, text })
}
