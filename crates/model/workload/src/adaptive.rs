//! The place in the schedule of a run whose load is being adapted. A mapping from real time to schedule time, in straight
//! pieces.
//!
//! A change of load moves the clock and never the stream: at a multiple of 2, what the schedule puts into two
//! seconds comes due in one. Ramps and everything else that is a place in the schedule go along with it; a
//! phase's own duration is real time ([`AdaptiveClock::schedule_length`] says how much of the schedule fits
//! into it, and [`crate::Timeline::adapted`] makes the phase that long).
//!
//! # Load that adapts
//!
//! *Load that adapts* (thermostat, scripts) moves the clock and never the stream: between two changes, schedule time runs at a
//! multiple of real time; the conductor announces a change 100 ms ahead, and all workers apply it at the same instant. A worker
//! takes no launch from the stream that is due more than 30 ms ahead, and checks for changes before it does. An adapted
//! phase lasts its duration in real time, while its ramps are positions in the schedule and move with it; counts end it where
//! the schedule expects them. Sessions are positions in the schedule too. The end of an adapted phase is announced 300 ms ahead; until then
//! streams treat the phase as endless, so that a change of load costs them nothing. The decisions are in `adapted.parquet`, which defines the
//! actual schedule.

use std::time::Duration;

/// From nanoseconds since the start of the run to nanoseconds of the schedule, and back. Both only go forward.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptiveClock {
    pieces: Vec<ClockPiece>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct ClockPiece {
    real_ns: u64,
    schedule_ns: u64,
    multiple: f64,
}

impl Default for AdaptiveClock {
    fn default() -> Self {
        Self::new()
    }
}

impl AdaptiveClock {
    /// Schedule time is real time, until the first change.
    pub fn new() -> Self {
        Self { pieces: vec![ClockPiece { real_ns: 0, schedule_ns: 0, multiple: 1.0 }] }
    }

    /// From a moment on, schedule time runs at this multiple of real time; 0 stops it. A moment before the
    /// last change is taken for that change's; a multiple that is no number, or negative, for 0.
    pub fn change(&mut self, real_ns: u64, multiple: f64) {
        let last = self.last();
        let real_ns = real_ns.max(last.real_ns);
        let multiple = if multiple.is_finite() { multiple.max(0.0) } else { 0.0 };
        let piece = ClockPiece { real_ns, schedule_ns: last.schedule(real_ns), multiple };
        if real_ns == last.real_ns {
            self.pieces.pop();
        }
        self.pieces.push(piece);
    }

    /// The multiple after the last change.
    pub fn multiple(&self) -> f64 {
        self.last().multiple
    }

    /// The moment of the schedule at a moment of the run.
    #[inline]
    pub fn schedule_ns(&self, real_ns: u64) -> u64 {
        let after = self.pieces.partition_point(|piece| piece.real_ns <= real_ns);
        self.pieces[after.saturating_sub(1)].schedule(real_ns)
    }

    /// The moment of the run at which the schedule reaches a moment; none: never, as things are (the clock is
    /// stopped).
    #[inline]
    pub fn real_ns(&self, schedule_ns: u64) -> Option<u64> {
        // A piece that stands still ends where it begins: the one before it reaches that moment first.
        let after = self.pieces.partition_point(|piece| piece.schedule_ns < schedule_ns);
        self.pieces[after.saturating_sub(1)].real(schedule_ns)
    }

    /// Length in the schedule of a phase that began at a moment of the schedule and ends at a moment of the run, at the present
    /// multiple.
    pub fn schedule_length(&self, began_schedule_ns: u64, ends_real_ns: u64) -> Duration {
        Duration::from_nanos(self.schedule_ns(ends_real_ns).saturating_sub(began_schedule_ns))
    }

    fn last(&self) -> ClockPiece {
        self.pieces[self.pieces.len() - 1]
    }
}

impl ClockPiece {
    fn schedule(&self, real_ns: u64) -> u64 {
        let passed_ns = real_ns.saturating_sub(self.real_ns);
        // As it was: no rounding where nothing is adapted.
        let moved_ns =
            if self.multiple == 1.0 { passed_ns } else { (passed_ns as f64 * self.multiple) as u64 };
        self.schedule_ns.saturating_add(moved_ns)
    }

    fn real(&self, schedule_ns: u64) -> Option<u64> {
        let left_ns = schedule_ns.saturating_sub(self.schedule_ns);
        if self.multiple == 1.0 {
            return Some(self.real_ns.saturating_add(left_ns));
        }
        if left_ns == 0 {
            return Some(self.real_ns);
        }
        let passed = libm::ceil(left_ns as f64 / self.multiple);
        if passed >= u64::MAX as f64 {
            return None;
        }
        let mut real_ns = self.real_ns.saturating_add(passed as u64);
        // Rounding may be a nanosecond or two off, either way.
        for _ in 0..4 {
            if real_ns > self.real_ns && self.schedule(real_ns - 1) >= schedule_ns {
                real_ns -= 1;
            } else if self.schedule(real_ns) < schedule_ns {
                real_ns = real_ns.saturating_add(1);
            }
        }
        Some(real_ns)
    }
}
