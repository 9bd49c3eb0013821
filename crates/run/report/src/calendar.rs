//! Days and times of Unix time. In UTC, on the Gregorian calendar.

/// A date and a time of day in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utc {
    pub year: u64,
    /// Month, 1 to 12.
    pub month: u64,
    /// Day of the month, from 1.
    pub day: u64,
    /// Hour, 0 to 23.
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
}

impl Utc {
    /// The date and time of a Unix time.
    pub fn from_unix_s(unix_s: u64) -> Self {
        let (days, time) = (unix_s / 86_400, unix_s % 86_400);
        let (year, month, day) = civil(days);
        Self { year, month, day, hour: time / 3600, minute: time % 3600 / 60, second: time % 60 }
    }
}

/// Days since 1970-01-01 as year, month and day of the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Counted from March of year 0, so that the leap day is the last of a year; 719,468 days earlier.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(unix_s: u64) -> String {
        let Utc { year, month, day, hour, minute, second } = Utc::from_unix_s(unix_s);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }

    #[test]
    fn days_follow_the_calendar() {
        assert_eq!(text(0), "1970-01-01 00:00:00");
        assert_eq!(text(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(text(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(text(1_769_864_709), "2026-01-31 13:05:09");
        assert_eq!(text(4_107_542_399), "2100-02-28 23:59:59");
    }
}
