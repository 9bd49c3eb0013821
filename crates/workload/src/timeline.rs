//! When each phase begins and ends, and what is to be expected of it.

use std::time::Duration;

use crate::density::Densities;
use crate::model::Workload;
pub use crate::schedule::Adaptation;
use crate::schedule::{Segment, Solved, solve};
use crate::universe::UniverseOptions;
use crate::validate::{UniverseError, validate};

/// A schedule that cannot be run: which phase, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// No phases.
    #[error("the schedule is empty; schedule() at least one Phase")]
    Empty,
    /// No goal, or one that cannot be reached.
    #[error("phase {phase:?} never ends: {why}")]
    NeverEnds {
        /// The phase.
        phase: String,
        /// What is missing.
        why: String,
    },
    /// Scheduled robots beside best-effort ones need phases that end at a known time.
    #[error(
        "phase {phase:?} ends at a count, and some robots are best effort while others have a rate; \
         give it only `goal.duration`"
    )]
    Mixed {
        /// The phase.
        phase: String,
    },
    /// Only time can freeze a working set that both kinds of robots share.
    #[error(
        "some robots are best effort while others have a rate, and the working set is frozen at a count; \
         use working_set_length() instead of working_set_cap()"
    )]
    MixedFreeze,
    /// A number in the schedule makes no sense.
    #[error("`{field}` of phase {phase:?} is {seen}; it must be finite, not negative, and a share at most 1")]
    Factor {
        /// The phase.
        phase: String,
        /// Which factor.
        field: &'static str,
        /// Its value.
        seen: f64,
    },
    /// A thermostat that cannot work.
    #[error("the thermostat of phase {phase:?} cannot work: {why}")]
    Thermostat {
        /// The phase.
        phase: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Longer than time can be counted.
    #[error("phase {phase:?} would end {years:.0} years after the start; at most 100 are possible")]
    TooLong {
        /// The phase.
        phase: String,
        /// When it would end.
        years: f64,
    },
    /// A rehearsal of nothing, or of what has no length.
    #[error("cannot rehearse in {total:?}: {why}")]
    Rehearsal {
        /// The length that was asked for.
        total: Duration,
        /// What stands in the way.
        why: String,
    },
    /// The workload itself cannot be run.
    #[error(transparent)]
    Workload(#[from] UniverseError),
}

/// When the working set stops growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeze {
    /// Never within the schedule.
    Never,
    /// That long after the start.
    At(Duration),
    /// At a count of fill objects that only the run can tell (best-effort robots).
    Live {
        /// The count.
        fill_objects: u64,
    },
}

/// How large the working set is expected to be when it is frozen, or at the end of the schedule if it never is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WorkingSetSize {
    /// Objects that can be asked for, embedded ones included; all robots' private worlds together.
    pub objects: f64,
    /// Their volume.
    pub bytes: f64,
}

/// One phase in time.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseSpan {
    /// Its name.
    pub name: String,
    /// When it begins, since the start of the run; none when that depends on live counts.
    pub start: Option<Duration>,
    /// When it ends; none when that depends on live counts: some robot is best effort and the phase has a goal
    /// other than time (or waits for a freeze that does). Then it ends at the first of its goals that is
    /// reached, time included.
    pub end: Option<Duration>,
    /// What is to be expected; none when some robot is best effort.
    pub expected: Option<Expected>,
}

/// Expected numbers of one phase.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Expected {
    /// Requests that robots launch (pages count once).
    pub launches: f64,
    /// All requests, embedded objects included.
    pub requests: f64,
    /// Basic requests.
    pub basic: f64,
    /// Basic first visits of cachable objects.
    pub fill_objects: f64,
    /// Their volume.
    pub fill_bytes: f64,
    /// Bytes of bodies that robots receive.
    pub body_bytes: f64,
    /// Basic revisits of cachable objects.
    pub offered_hits: f64,
    /// Bytes of basic requests, and of the offered hits among them.
    pub basic_bytes: f64,
    /// Bytes of offered hits.
    pub offered_hit_bytes: f64,
    /// Largest request rate, per second.
    pub peak_request_rate: f64,
    /// Largest rate of new connections, per second, if every one is used to its limit.
    pub peak_new_connections: f64,
}

impl Expected {
    /// Offered document hit ratio.
    pub fn offered_dhr(&self) -> f64 {
        if self.basic > 0.0 { self.offered_hits / self.basic } else { 0.0 }
    }

    /// Offered byte hit ratio.
    pub fn offered_bhr(&self) -> f64 {
        if self.basic_bytes > 0.0 { self.offered_hit_bytes / self.basic_bytes } else { 0.0 }
    }
}

/// The schedule in time. Ramps are straight lines in time; counts end a phase where their expected value is
/// reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    phases: Vec<PhaseSpan>,
    freeze: Freeze,
    segments: Vec<Segment>,
    working_set: Option<WorkingSetSize>,
}

impl Timeline {
    /// Solves the schedule of a workload.
    pub fn new(workload: &Workload) -> Result<Self, ScheduleError> {
        Self::adapted(workload, &[])
    }

    /// Solves the schedule as it was adapted: phases of another length, or with another population, than was
    /// planned. Phases without an entry are as planned. Where two timelines have been adapted alike, streams
    /// of them are alike as well: so a change that is announced ahead goes into the stream by
    /// [`crate::Stream::retime`].
    pub fn adapted(workload: &Workload, adaptations: &[Adaptation]) -> Result<Self, ScheduleError> {
        Self::with(workload, UniverseOptions::default(), adaptations)
    }

    /// The same for a universe with options: they do not move phases, but change what is to be expected of them.
    pub fn with(
        workload: &Workload,
        options: UniverseOptions,
        adaptations: &[Adaptation],
    ) -> Result<Self, ScheduleError> {
        validate(workload)?;
        let densities = Densities::new(workload, options);
        let Solved { spans, segments, freeze, working_set } = solve(workload, &densities, adaptations)?;
        Ok(Self { phases: spans, freeze, segments, working_set })
    }

    /// How large the working set will be; none when that depends on live counts (some robot is best effort).
    pub fn working_set(&self) -> Option<WorkingSetSize> {
        self.working_set
    }

    /// The load factor that is planned for a moment of the schedule; none before the start of a phase whose
    /// place is not known, and after the end.
    pub fn load_at(&self, at: Duration) -> Option<f64> {
        let at_ns = u64::try_from(at.as_nanos()).ok()?;
        let after = self.segments.partition_point(|segment| segment.end_ns <= at_ns);
        let segment = self.segments.get(after).filter(|segment| segment.start_ns <= at_ns)?;
        Some(segment.shape.load.at(segment.place_of(at_ns)))
    }

    /// The pieces of all phases whose place in time is known, without gaps.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The phases in order.
    pub fn phases(&self) -> &[PhaseSpan] {
        &self.phases
    }

    /// When the working set stops growing.
    pub fn freeze(&self) -> Freeze {
        self.freeze
    }

    /// Length of the whole schedule; none when it depends on live counts.
    pub fn total(&self) -> Option<Duration> {
        self.phases.last().and_then(|phase| phase.end)
    }

    /// The phase at a moment since the start; none before an open phase's successors and after the end.
    pub fn phase_at(&self, at: Duration) -> Option<u16> {
        self.phases
            .iter()
            .position(|p| p.start.is_some_and(|s| s <= at) && p.end.is_none_or(|e| at < e))
            .and_then(|index| u16::try_from(index).ok())
    }
}
