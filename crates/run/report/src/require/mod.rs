//! Requirements: what a run must show. Requirements such as `top1.p99(hit) < 5ms`: read, judged at the end, watched on the
//! way.
//!
//! ```text
//! [PHASE.][KIND.]METRIC[(CLASS)] [/ ideal] OP NUMBER[UNIT]
//! ```
//!
//! Without a phase, a requirement is about the phases that belong into the statistics (those the workload marks with
//! `log_stats` or `primary`; all, where it marks none); `run.` is about everything. Pure: text and measurements go in.
//!
//! # Requirements
//!
//! `report::require` reads a requirement's text, judges it (`Summary::requirements`) and watches it live (`RequirementTracker`). `pgl`
//! passes texts of `require()` on without parsing them, with their positions; `assay` parses them before anything starts;
//! `RunInfo::requirements` keeps all. *Failed* is shown live only if nothing that is still to come can change it, based on
//! `expected_requests` of a phase. Observers of a run's events register with `Listeners` in `assay`, optionally on their own thread.

mod judge;
mod metric;
mod parse;
mod promise;
mod tracker;

use std::str::FromStr;

use assay_measurement::error_kind::ErrorKind;
use assay_measurement::own_error::{Certainty, OwnInterval};
use assay_record::run::PhaseInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::FigureEstimate;

pub use judge::RequirementResult;
pub(crate) use judge::{Gap, finding, judge};
pub use parse::RequirementError;
pub use promise::Promise;
pub use tracker::{RequirementState, RequirementStatus, RequirementTracker};

use metric::{RequestCounter, RequiredMetric};

/// The whole run, in place of a phase.
const RUN: &str = "run";

/// One requirement, read from its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// As it was written.
    text: String,
    /// The phase it is about, and where its name stands in the text.
    phase: Option<(String, (usize, usize))>,
    metric: RequiredMetric,
    op: Comparator,
    /// In microseconds, requests, requests per second, or as a share.
    limit: f64,
    /// The limit was written with a percent sign.
    percent: bool,
}

impl Requirement {
    /// The kind of wrong content that it says how much of there may be in the whole run; none: it is about something else.
    pub fn allows(&self) -> Option<ErrorKind> {
        match self.metric {
            RequiredMetric::Count { of: RequestCounter::Errors(kind), share: false } if self.is_of_run() => {
                kind.filter(|kind| kind.is_wrong_content())
            }
            _ => None,
        }
    }

    /// True if it says how many requests of the whole run must get a correct response, and so how many may get none.
    pub fn allows_shortfall(&self) -> bool {
        self.is_of_run() && matches!(self.metric, RequiredMetric::Count { of: RequestCounter::Completed, .. })
    }

    /// True if it is decided by what robots and the proxy's log say of each request.
    pub fn needs_logs(&self) -> bool {
        matches!(self.metric, RequiredMetric::Misreported { .. })
    }

    fn counts_errors(&self) -> bool {
        matches!(self.metric, RequiredMetric::Count { of: RequestCounter::Errors(_), .. })
    }

    fn is_of_run(&self) -> bool {
        self.phase.as_ref().is_some_and(|(phase, _)| phase == RUN)
    }
}

/// Comparison of a value with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparator {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    NotEqual,
}

/// What became of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It holds, whatever Assay and the lab did to the value.
    Held,
    /// It fails, whatever they did; or there was nothing to measure.
    Failed,
    /// Within its interval, the value can be on either side.
    Undecided,
    /// The run ended before there was anything to measure.
    TooEarly,
}

impl Comparator {
    fn compare(self, value: f64, limit: f64) -> bool {
        match self {
            Comparator::Less => value < limit,
            Comparator::AtMost => value <= limit,
            Comparator::More => value > limit,
            Comparator::AtLeast => value >= limit,
            Comparator::Equal => value == limit,
            Comparator::NotEqual => value != limit,
        }
    }

    /// Held if every value in the interval satisfies the comparison, failed if none does. Requests that the target
    /// itself kept waiting count against it: the comparison must hold for every value that they can have come to, or
    /// it fails. Where the figure is not known by itself, Assay or the lab can have kept these requests waiting, and
    /// nothing is decided.
    fn decide(self, stated: &FigureEstimate, limit: f64) -> Decision {
        let OwnInterval { low, high, certainty } = stated.own;
        let (Some(low), false) = (low, certainty == Certainty::Unknown) else { return Decision::Undecided };
        let without_bound = |high: Option<f64>| high.unwrap_or(f64::INFINITY);
        let high = without_bound(high).max(without_bound(stated.open_to));
        let is_between = low < limit && limit < high;
        let (every, none) = match (self, self.compare(low, limit), self.compare(high, limit)) {
            (Comparator::NotEqual, true, true) if is_between => (false, false),
            (Comparator::Equal, false, false) if is_between => (false, false),
            (_, at_low, at_high) => (at_low && at_high, !at_low && !at_high),
        };
        match (every, none) {
            (true, _) => Decision::Held,
            (_, true) => Decision::Failed,
            _ if stated.is_at_least() && certainty == Certainty::Known => Decision::Failed,
            _ => Decision::Undecided,
        }
    }

    /// True where a value that only grows can grow out of it.
    fn is_upper(self) -> bool {
        matches!(self, Comparator::Less | Comparator::AtMost | Comparator::Equal)
    }
}

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::parse(text)
    }
}

impl Requirement {
    /// As it was written, without spaces around it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Says what is wrong when it names a phase that the schedule does not have.
    pub fn check_phase<'a>(
        &self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), RequirementError> {
        match &self.phase {
            Some((name, span)) if name != RUN && !names.clone().any(|known| known == name) => {
                Err(parse::no_such_phase(&self.text, *span, name, names))
            }
            _ => Ok(()),
        }
    }

    /// Says what is wrong when it names a phase although there is none; the whole run may be named.
    pub(crate) fn check_no_phase(&self) -> Result<(), RequirementError> {
        match &self.phase {
            Some((name, span)) if name != RUN => Err(parse::no_phases(&self.text, *span, name)),
            _ => Ok(()),
        }
    }

    /// Indices of the phases it is about. The index after the last stands for what belongs to no phase; only the
    /// whole run has that.
    fn phases(&self, schedule: &[PhaseInfo]) -> Vec<usize> {
        let all = 0..schedule.len();
        match &self.phase {
            Some((name, _)) => {
                let named: Vec<usize> = all.clone().filter(|index| schedule[*index].name == *name).collect();
                if named.is_empty() && name == RUN { (0..=schedule.len()).collect() } else { named }
            }
            None => {
                let wanted = |index: &usize| schedule[*index].log_stats || schedule[*index].primary;
                let marked: Vec<usize> = all.clone().filter(wanted).collect();
                if marked.is_empty() { all.collect() } else { marked }
            }
        }
    }

    fn decide(&self, value: &FigureEstimate) -> Decision {
        self.op.decide(value, self.limit)
    }

    /// A value as people read it, in the manner in which the limit was written.
    fn value_text(&self, value: Option<FigureEstimate>) -> String {
        value.map_or_else(|| "nothing to measure".into(), |value| self.metric.value_text(value, self.percent))
    }
}

#[cfg(test)]
mod tests;
