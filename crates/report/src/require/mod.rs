//! Requirements: what a run must show. Requirements such as `top1.p99(hit) < 5ms`: read, judged at the end, watched on the
//! way.
//!
//! ```text
//! [PHASE.][KIND.]METRIC[(CLASS)] [/ ideal] OP NUMBER[UNIT]
//! ```
//!
//! Without a phase, a requirement is about the phases that belong into the statistics (those the workload marks with
//! `log_stats` or `primary`; all, where it marks none); `run.` is about everything. Pure: text and measurements go in.

mod judge;
mod metric;
mod parse;
mod promise;
mod watch;

use std::str::FromStr;

use assay_record::run::PhaseInfo;

pub use judge::Judged;
pub(crate) use judge::{finding, judge};
pub use parse::RequirementError;
pub use promise::Promise;
pub use watch::{Standing, State, Watch};

use metric::{Metric, Reading};

/// The whole run, in place of a phase.
const RUN: &str = "run";

/// One requirement, read from its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// As it was written.
    text: String,
    /// The phase it is about, and where its name stands in the text.
    phase: Option<(String, (usize, usize))>,
    metric: Metric,
    op: Op,
    /// In microseconds, requests, requests per second, or as a share.
    limit: f64,
    /// The limit was written with a percent sign.
    percent: bool,
}

/// How a value is compared with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    NotEqual,
}

impl Op {
    /// True where it holds whatever the value is within its bounds.
    fn holds(self, value: Reading, limit: f64) -> bool {
        let Reading { low, high } = value;
        let ends_below = |holds: fn(&f64, &f64) -> bool| high.is_some_and(|high| holds(&high, &limit));
        match self {
            Op::Less => ends_below(f64::lt),
            Op::AtMost => ends_below(f64::le),
            Op::More => low > limit,
            Op::AtLeast => low >= limit,
            Op::Equal => low == limit && high == Some(limit),
            Op::NotEqual => low > limit || ends_below(f64::lt),
        }
    }

    /// True where a value that only grows can grow out of it.
    fn is_upper(self) -> bool {
        matches!(self, Op::Less | Op::AtMost | Op::Equal)
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

    fn holds(&self, value: Reading) -> bool {
        self.op.holds(value, self.limit)
    }

    /// A value as people read it, in the manner in which the limit was written.
    fn words(&self, value: Option<Reading>) -> String {
        value.map_or_else(|| "nothing to measure".into(), |value| self.metric.words(value, self.percent))
    }
}

#[cfg(test)]
mod tests;
