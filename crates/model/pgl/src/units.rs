//! Units of time and size, which follow a number or stand alone.

/// A unit, with its size in seconds or bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    /// Seconds.
    Time(f64),
    /// Bytes.
    Size(f64),
}

const KB: f64 = 1024.0;
const DAY: f64 = 86_400.0;

/// Units by name, each with whether it may stand alone.
const UNITS: [(&str, Unit, bool); 17] = [
    ("msec", Unit::Time(0.001), true),
    ("ms", Unit::Time(0.001), false),
    ("sec", Unit::Time(1.0), true),
    ("s", Unit::Time(1.0), false),
    ("min", Unit::Time(60.0), true),
    ("hour", Unit::Time(3600.0), true),
    ("hr", Unit::Time(3600.0), false),
    ("day", Unit::Time(DAY), true),
    ("year", Unit::Time(365.0 * DAY), true),
    ("bit", Unit::Size(0.125), true),
    ("Byte", Unit::Size(1.0), true),
    ("Kb", Unit::Size(KB / 8.0), true),
    ("KB", Unit::Size(KB), true),
    ("Mb", Unit::Size(KB * KB / 8.0), true),
    ("MB", Unit::Size(KB * KB), true),
    ("Gb", Unit::Size(KB * KB * KB / 8.0), true),
    ("GB", Unit::Size(KB * KB * KB), true),
];

/// The unit behind a number.
pub(crate) fn unit(name: &str) -> Option<Unit> {
    UNITS.iter().find(|(n, ..)| *n == name).map(|(_, unit, _)| *unit)
}

/// The unit that a word alone stands for.
pub(crate) fn bare_unit(name: &str) -> Option<Unit> {
    UNITS.iter().find(|(n, _, bare)| *n == name && *bare).map(|(_, unit, _)| *unit)
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    UNITS.iter().map(|(name, ..)| *name)
}

/// Names of units that may stand alone.
pub(crate) fn bare_names() -> impl Iterator<Item = &'static str> {
    UNITS.iter().filter(|(.., bare)| *bare).map(|(name, ..)| *name)
}

impl Unit {
    /// Converts a number of this unit to seconds or bytes.
    pub fn times(self, number: f64) -> f64 {
        match self {
            // 300.0 / 1000.0 is 0.3; 300.0 * 0.001 is not.
            Unit::Time(0.001) => number / 1000.0,
            Unit::Time(one) | Unit::Size(one) => number * one,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_powers_of_1024_and_a_small_b_means_bits() {
        assert_eq!(unit("GB").map(|u| u.times(2.0)), Some(2.0 * 1_073_741_824.0));
        assert_eq!(unit("Kb").map(|u| u.times(8.0)), Some(1024.0));
        assert_eq!(unit("year").map(|u| u.times(1.0)), Some(31_536_000.0));
        assert_eq!(unit("msec").map(|u| u.times(300.0)), Some(0.3));
    }

    #[test]
    fn short_forms_need_a_number() {
        assert_eq!(bare_unit("s"), None);
        assert!(bare_unit("min").is_some());
    }
}
