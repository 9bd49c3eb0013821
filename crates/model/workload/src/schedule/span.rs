//! A phase in time, and what is to be expected of it.

use std::time::Duration;

use crate::model::Goal;

/// End of the growth of the working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeze {
    /// Never within the schedule.
    Never,
    /// This long after the start.
    At(Duration),
    /// At a count of fill objects that only the run can tell (best-effort robots).
    Live { fill_objects: u64 },
}

/// Expected size of the working set when it is frozen, or at the end of the schedule if it never is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WorkingSetSize {
    /// Objects that can be requested, embedded ones included; all robots' private worlds together.
    pub objects: f64,
    pub bytes: f64,
}

/// One phase in time.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseSpan {
    pub name: String,
    /// Start of the phase in the run; none if it depends on live counts.
    pub start: Option<Duration>,
    /// End of the phase; none if it depends on live counts: some robot is best effort and the phase has a goal other than time (or waits for
    /// a freeze that does). Then the phase ends at the first of its goals that is reached, time included.
    pub end: Option<Duration>,
    /// Expected numbers; none if some robot is best effort.
    pub expected: Option<Expected>,
}

impl PhaseSpan {
    /// True for a phase that goes on until the run is stopped: its end and its expected numbers are those of
    /// [`Goal::ENDLESS`], and only the expected rates mean something.
    pub fn is_endless(&self) -> bool {
        self.start.zip(self.end).is_some_and(|(start, end)| end - start == Goal::ENDLESS)
    }
}

/// Expected numbers of one phase.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Expected {
    /// Requests that robots launch (pages count once).
    pub launches: f64,
    /// All requests, embedded objects included.
    pub requests: f64,
    pub basic: f64,
    /// Basic first visits of cachable objects.
    pub fill_objects: f64,
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
