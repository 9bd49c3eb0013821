//! When each phase begins and ends, and what is to be expected of it.

use std::time::Duration;

use crate::density::Densities;
use crate::model::Workload;
pub use crate::schedule::{Adaptation, Expected, Freeze, PhaseSpan, ScheduleError, WorkingSetSize};
use crate::schedule::{Segment, SolvedSchedule, solve};
use crate::universe::UniverseOptions;
use crate::validate::validate;

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
        let SolvedSchedule { spans, segments, freeze, working_set } =
            solve(workload, &densities, adaptations)?;
        Ok(Self { phases: spans, freeze, segments, working_set })
    }

    /// Expected size of the working set; none if it depends on live counts (some robot is best effort).
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

    pub fn freeze(&self) -> Freeze {
        self.freeze
    }

    /// Length of the whole schedule; none when it depends on live counts, or when it has no end.
    pub fn total(&self) -> Option<Duration> {
        self.phases.last().and_then(|phase| phase.end).filter(|_| !self.is_endless())
    }

    /// True when the last phase goes on until the run is stopped.
    pub fn is_endless(&self) -> bool {
        self.phases.last().is_some_and(PhaseSpan::is_endless)
    }

    /// The phase at a moment since the start; none before an open phase's successors and after the end.
    pub fn phase_at(&self, at: Duration) -> Option<u16> {
        self.phases
            .iter()
            .position(|p| p.start.is_some_and(|s| s <= at) && p.end.is_none_or(|e| at < e))
            .and_then(|index| u16::try_from(index).ok())
    }
}
