//! Time of policies and nodes: an argument, in the clock of the caller.

/// Nanoseconds in a second.
const NANOS: f64 = 1e9;

/// Nanoseconds since an instant that the caller chose. 584 years fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The instant that the caller chose.
    pub const START: Self = Self(0);

    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// This many seconds after the start, rounded up to a nanosecond.
    pub fn from_secs(seconds: f64) -> Self {
        Self::START.plus_secs(seconds)
    }

    /// Nanoseconds since the start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    pub fn secs(self) -> f64 {
        self.0 as f64 / NANOS
    }

    /// This many seconds later, rounded up, so that work never ends early.
    pub fn plus_secs(self, seconds: f64) -> Self {
        // A float too large for the integer saturates, and one below zero becomes zero.
        Self(self.0.saturating_add(libm::ceil(seconds * NANOS) as u64))
    }

    /// This many nanoseconds later.
    pub const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// Nanoseconds since an earlier moment; 0 if it is not earlier.
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Seconds since an earlier moment; 0 if it is not earlier.
    pub fn secs_since(self, earlier: Self) -> f64 {
        self.nanos_since(earlier) as f64 / NANOS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward_only() {
        let moment = Moment::from_secs(1.5);
        assert_eq!(moment.nanos(), 1_500_000_000);
        assert_eq!(moment.plus_secs(-1.0), moment);
        assert_eq!(Moment::START.nanos_since(moment), 0);
        assert_eq!(moment.plus_nanos(5).nanos_since(moment), 5);
        assert_eq!(moment.plus_secs(f64::MAX).plus_nanos(1), Moment(u64::MAX));
    }

    #[test]
    fn a_part_of_a_nanosecond_counts_as_a_whole_one() {
        assert_eq!(Moment::START.plus_secs(1.2e-9).nanos(), 2);
    }
}
