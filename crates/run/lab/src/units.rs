//! Durations, sizes, processors, modes and links as they are written on the command line and in settings files.

use std::time::Duration;

use assay_base::settings::suggest::nearest;
use assay_base::settings::units::split;
pub use assay_base::settings::units::{duration, size};
use assay_host::link::{LinkSettings, SettingsError};

use crate::cgroup::Limits;
use crate::mode::Mode;
use crate::plan::MOST_SPIN;

/// A value that cannot be read, with examples of those that can.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UnitError {
    #[error("{cause}; write it like 50us or 0.2ms; {MOST_SPIN:?} is the most")]
    Spin { cause: String },
    #[error("`{0}` has no unit; write {0}us for microseconds")]
    NoSpinUnit(String),
    #[error("`{0}` is too long a unit, or none; write it like 50us or 0.2ms; {MOST_SPIN:?} is the most")]
    SpinUnit(String),
    #[error("`{0}` would leave a processor no rest; write it like 50us or 0.2ms; {MOST_SPIN:?} is the most")]
    LongSpin(String),
    #[error("`{text}` is neither \"reverse\" nor \"forward\"{}", near.as_ref().map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default())]
    Mode { text: String, near: Option<String> },
    #[error("{0}; or `off`")]
    Link(SettingsError),
    #[error("`{0}` is no processor; write processors like 0,2-3")]
    Processor(String),
    #[error("`{0}` goes backwards; write processors like 0,2-3")]
    Backwards(String),
    #[error("`{0}` is no number of processors; write it like 0.5 or 2")]
    Processors(String),
    #[error("{cause}")]
    Size { cause: String },
    #[error("no proxy starts in `{text}`; give it at least {least}MB", least = Limits::LEAST_MEMORY_BYTES >> 20)]
    LittleMemory { text: String },
}

/// Reads `50us`, `0.5ms`: how long to poll before a deadline.
pub fn spin(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text).map_err(|cause| UnitError::Spin { cause: cause.to_string() })?;
    let factor_s = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" => return Err(UnitError::NoSpinUnit(text.to_owned())),
        other => return Err(UnitError::SpinUnit(other.to_owned())),
    };
    match Duration::try_from_secs_f64(number * factor_s) {
        Ok(spin) if spin <= MOST_SPIN => Ok(spin),
        _ => Err(UnitError::LongSpin(text.to_owned())),
    }
}

/// `reverse` or `forward`.
pub fn mode(text: &str) -> Result<Mode, UnitError> {
    let modes = [Mode::Reverse, Mode::Forward];
    let unknown = || {
        let near = nearest(text, modes.map(Mode::name)).map(str::to_owned);
        UnitError::Mode { text: text.to_owned(), near }
    };
    modes.into_iter().find(|mode| mode.name() == text).ok_or_else(unknown)
}

/// A link, as `delay 5ms, loss 1%` writes it.
pub fn link(text: &str) -> Result<LinkSettings, SettingsError> {
    text.parse()
}

/// Link on a way to or from the target, whatever the workload says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkChoice {
    /// None.
    Off,
    As(LinkSettings),
}

/// Reads a link, or `off`.
pub fn link_choice(text: &str) -> Result<LinkChoice, UnitError> {
    match text.trim() {
        "off" => Ok(LinkChoice::Off),
        text => link(text).map(LinkChoice::As).map_err(UnitError::Link),
    }
}

/// Processors, as `0,2-3` names them: in order, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpus(pub Vec<u32>);

/// Reads `0,2-3`.
pub fn cpus(text: &str) -> Result<Cpus, UnitError> {
    /// No machine has more.
    const MOST: u32 = 65_536;
    let number = |text: &str| match text.trim().parse::<u32>() {
        Ok(number) if number < MOST => Ok(number),
        _ => Err(UnitError::Processor(text.to_owned())),
    };
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(UnitError::Backwards(part.to_owned()));
        }
        found.extend(first..=last);
    }
    found.sort_unstable();
    found.dedup();
    Ok(Cpus(found))
}

/// Reads `0.5` or `2`: processor time, in processors.
pub fn processors(text: &str) -> Result<f64, UnitError> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= 4096.0);
    number.ok_or_else(|| UnitError::Processors(text.to_owned()))
}

/// Reads a size that a proxy can start in.
pub fn memory_limit(text: &str) -> Result<u64, UnitError> {
    let bytes = size(text).map_err(|cause| UnitError::Size { cause: cause.to_string() })?;
    if bytes < Limits::LEAST_MEMORY_BYTES {
        return Err(UnitError::LittleMemory { text: text.to_owned() });
    }
    Ok(bytes)
}

/// Writes a duration as people say it: `850ms`, `1.4s`, `25s`, `4m 10s`, `2h 15m`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 if duration.is_zero() => "0s".into(),
        0 => format!("{}ms", duration.as_millis()),
        1..60 if duration.subsec_millis() >= 50 => format!("{:.1}s", duration.as_secs_f64()),
        1..60 => format!("{seconds}s"),
        60..3600 if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ if seconds % 3600 < 60 => format!("{}h", seconds / 3600),
        _ => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
    }

    #[test]
    fn a_bare_number_is_refused_and_the_mend_is_shown() {
        assert!(duration("30").unwrap_err().to_string().contains("30s"));
        assert!(size("64").unwrap_err().to_string().contains("64MB"));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "s", "-5s", "1e9s", "0s", "99999999999999999999999999999h", "1..2s", "3 weeks"] {
            assert!(duration(text).is_err(), "{text} was read as a duration");
        }
        for text in ["", "MB", "-5MB", "0.1B", "1Mb", "99999999999999999999999TB", "1PB"] {
            assert!(size(text).is_err(), "{text} was read as a size");
        }
    }

    #[test]
    fn a_time_to_spin_is_short_and_has_a_unit() {
        assert_eq!(spin("50us"), Ok(Duration::from_micros(50)));
        assert_eq!(spin("0.2ms"), Ok(Duration::from_micros(200)));
        assert_eq!((spin("0us"), spin("1ms")), (Ok(Duration::ZERO), Ok(Duration::from_millis(1))));
        assert!(spin("50").unwrap_err().to_string().contains("50us"));
        for text in ["1.1ms", "1s", "-5us", "", "9e9us", "us"] {
            assert!(spin(text).is_err(), "{text} was read as a time to spin");
        }
    }

    #[test]
    fn processors_are_read_one_by_one_and_in_ranges() {
        assert_eq!(cpus("0"), Ok(Cpus(vec![0])));
        assert_eq!(cpus("3,0,2-4"), Ok(Cpus(vec![0, 2, 3, 4])));
        for text in ["", ",", "1-", "-1", "3-2", "a", "0,,1", "0-99999999999", "0-4000000000"] {
            assert!(cpus(text).is_err(), "{text} was read as processors");
        }
    }

    #[test]
    fn limits_are_more_than_nothing() {
        assert_eq!((processors("0.5"), memory_limit("64MB")), (Ok(0.5), Ok(64 << 20)));
        assert!(["0", "-1", "x", "nan", "1e9"].iter().all(|text| processors(text).is_err()));
        assert!(memory_limit("1MB").unwrap_err().to_string().contains("at least 16MB"));
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(size("1KB"), Ok(1024));
        assert_eq!(size("64MB"), Ok(64 << 20));
        assert_eq!(size("1.5GB"), Ok(3 << 29));
        assert_eq!(size("17B"), Ok(17));
        assert_eq!((size("0"), size("0MB"), size("0B")), (Ok(0), Ok(0), Ok(0)));
    }

    #[test]
    fn durations_are_shown_as_people_say_them() {
        let shown: Vec<_> = [0, 850, 1_360, 25_000, 250_000, 300_000, 8_100_000]
            .map(Duration::from_millis)
            .map(show_duration)
            .into();
        assert_eq!(shown, ["0s", "850ms", "1.4s", "25s", "4m 10s", "5m", "2h 15m"]);
    }
}
