//! Why a schedule cannot be run.

use crate::model::Phase;
use crate::validate::UniverseError;

/// A schedule that cannot be run: which phase, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    #[error("the schedule is empty; schedule() at least one Phase")]
    Empty,
    /// No goal, or one that cannot be reached.
    #[error("phase {phase:?} never ends: {why}")]
    NeverEnds { phase: String, why: String },
    /// Scheduled robots beside best-effort ones need phases that end at a known time.
    #[error(
        "phase {phase:?} ends at a count, and some robots are best effort while others have a rate; \
         give it only `goal.duration`"
    )]
    Mixed { phase: String },
    /// Only time can freeze a working set that both kinds of robots share.
    #[error(
        "some robots are best effort while others have a rate, and the working set is frozen at a count; \
         use working_set_length() instead of working_set_cap()"
    )]
    MixedFreeze,
    /// A number in the schedule makes no sense.
    #[error("`{field}` of phase {phase:?} is {seen}; it must be finite, not negative, and a share at most 1")]
    Factor { phase: String, field: &'static str, seen: f64 },
    /// A thermostat that cannot work.
    #[error("the thermostat of phase {phase:?} cannot work: {why}")]
    Thermostat { phase: String, why: &'static str },
    /// Longer than time can be counted.
    #[error("phase {phase:?} would end {years:.0} years after the start; at most 100 are possible")]
    TooLong { phase: String, years: f64 },
    /// A rehearsal of nothing, or of what has no length.
    #[error("cannot rehearse {wanted}: {why}")]
    Rehearsal {
        /// Requested rehearsal, like `in 10s`.
        wanted: String,
        why: String,
    },
    /// The workload itself cannot be run.
    #[error(transparent)]
    Workload(#[from] UniverseError),
}

impl ScheduleError {
    /// A phase has no goal, or one that it cannot reach.
    pub(super) fn never(phase: &Phase, why: impl Into<String>) -> Self {
        Self::NeverEnds { phase: phase.name.clone(), why: why.into() }
    }
}
