//! HTTP dates, read and written.
//!
//! Written as IMF-fixdate (`Sun, 06 Nov 1994 08:49:37 GMT`); read in all three forms of RFC 9110, 5.6.7. Instants are
//! Unix seconds.

/// Bytes of a written date.
pub const DATE_BYTES: usize = 29;
/// 1970-01-01 to 9999-12-31: what four digits of a year can say, from the epoch on.
const LAST_SECOND: u64 = 253_402_300_799;
const DAY_S: i64 = 86_400;

const WEEKDAYS: &[u8; 21] = b"ThuFriSatSunMonTueWed";
const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// Writes an instant as IMF-fixdate. Instants after the year 9999 are written as its last second.
pub fn write_date(unix_s: u64, out: &mut [u8; DATE_BYTES]) {
    let unix_s = unix_s.min(LAST_SECOND);
    let (days, second) = (unix_s / DAY_S as u64, (unix_s % DAY_S as u64) as u32);
    let (year, month, day) = civil_from_days(days);
    let weekday = 3 * (days % 7) as usize;
    let month_at = 3 * (month as usize - 1);
    out.copy_from_slice(b"Day, 00 Mon 0000 00:00:00 GMT");
    out[..3].copy_from_slice(&WEEKDAYS[weekday..weekday + 3]);
    two_digits(&mut out[5..7], day);
    out[8..11].copy_from_slice(&MONTHS[month_at..month_at + 3]);
    two_digits(&mut out[12..14], year / 100);
    two_digits(&mut out[14..16], year % 100);
    two_digits(&mut out[17..19], second / 3600);
    two_digits(&mut out[20..22], second / 60 % 60);
    two_digits(&mut out[23..25], second % 60);
}

fn two_digits(out: &mut [u8], value: u32) {
    out[0] = b'0' + (value / 10) as u8;
    out[1] = b'0' + (value % 10) as u8;
}

/// Remembers the last date it wrote: most calls are for the same second again.
#[derive(Debug, Clone)]
pub struct DateCache {
    unix_s: u64,
    text: [u8; DATE_BYTES],
}

impl Default for DateCache {
    fn default() -> Self {
        let mut text = [0; DATE_BYTES];
        write_date(0, &mut text);
        Self { unix_s: 0, text }
    }
}

impl DateCache {
    /// The date of this second.
    #[inline]
    pub fn at(&mut self, unix_s: u64) -> &[u8; DATE_BYTES] {
        if unix_s != self.unix_s {
            self.unix_s = unix_s;
            write_date(unix_s, &mut self.text);
        }
        &self.text
    }
}

/// Reads a date in any of the three forms; none when it is no date. Dates before 1970 count as 1970, since the only
/// question about a date here is whether it lies before another one.
///
/// A year of two digits (RFC 850 form) means 1970 to 2069.
pub fn parse_date(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    // The fixed form is what is sent today; telling the forms apart by the comma is enough for the others.
    let (date, clock) = match memchr::memchr(b',', text) {
        Some(comma) => {
            let rest = text.get(comma + 1..)?.strip_prefix(b" ")?.strip_suffix(b" GMT")?;
            let (date, clock) = rest.split_at_checked(rest.len().checked_sub(9)?)?;
            if !is_weekday(&text[..comma], date.contains(&b'-')) {
                return None;
            }
            (day_month_year(date)?, clock.strip_prefix(b" ")?)
        }
        None => asctime(text)?,
    };
    let (year, month, day) = date;
    let seconds = second_of_day(clock)?;
    let days = days_from_civil(year, month, day)?;
    Some((days * DAY_S + i64::from(seconds)).max(0) as u64)
}

type Civil = (u32, u32, u32);

/// `06 Nov 1994` or `06-Nov-94`.
fn day_month_year(date: &[u8]) -> Option<Civil> {
    let day = number(date.get(..2)?)?;
    let month = month_number(date.get(3..6)?)?;
    let year = match (date.get(2)?, date.get(6)?, date.get(7..)?) {
        (b' ', b' ', year) if year.len() == 4 => number(year)?,
        (b'-', b'-', year) if year.len() == 2 => {
            let short = number(year)?;
            if short < 70 { 2000 + short } else { 1900 + short }
        }
        _ => return None,
    };
    Some((year, month, day))
}

/// `Sun Nov  6 08:49:37 1994`: the date, and the time of day as text.
fn asctime(text: &[u8]) -> Option<(Civil, &[u8])> {
    let spaced = text.len() == 24 && [3, 7, 10, 19].iter().all(|&at| text[at] == b' ');
    if !spaced || !is_weekday(&text[..3], false) {
        return None;
    }
    let day = if text[8] == b' ' { number(&text[9..10])? } else { number(&text[8..10])? };
    Some(((number(&text[20..])?, month_number(&text[4..7])?, day), &text[11..19]))
}

/// `08:49:37`; a leap second counts as the second before it.
fn second_of_day(clock: &[u8]) -> Option<u32> {
    if clock.len() != 8 || clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (number(&clock[..2])?, number(&clock[3..5])?, number(&clock[6..])?);
    (hour < 24 && minute < 60 && second <= 60).then(|| hour * 3600 + minute * 60 + second.min(59))
}

fn number(digits: &[u8]) -> Option<u32> {
    let mut value = 0;
    for &byte in digits {
        value = value * 10 + u32::from(byte.checked_sub(b'0').filter(|d| *d <= 9)?);
    }
    (!digits.is_empty()).then_some(value)
}

fn month_number(name: &[u8]) -> Option<u32> {
    MONTHS.chunks(3).zip(1..).find(|(month, _)| *month == name).map(|(_, number)| number)
}

/// Whether this is the name of a weekday. It is not compared with the date: senders are known to get it wrong, and it adds nothing.
fn is_weekday(name: &[u8], long: bool) -> bool {
    const LONG: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    LONG.iter().any(|day| if long { day.as_bytes() == name } else { &day.as_bytes()[..3] == name })
}

/// Days since 1970-01-01 to (year, month, day). Years are counted from March, so that the leap day comes last.
fn civil_from_days(days: u64) -> Civil {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year as u32, month as u32, day as u32)
}

/// The way back; none when there is no such day.
fn days_from_civil(year: u32, month: u32, day: u32) -> Option<i64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let month_days = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if day == 0 || day > *month_days.get(month.checked_sub(1)? as usize)? {
        return None;
    }
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(unix_s: u64) -> String {
        let mut out = [0; DATE_BYTES];
        write_date(unix_s, &mut out);
        String::from_utf8(out.to_vec()).expect("is ASCII")
    }

    #[test]
    fn all_three_forms_name_the_same_instant() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse_date(text.as_bytes()), Some(784_111_777), "{text}");
        }
        assert_eq!(parse_date(b"Wed Nov 16 08:49:37 1994"), Some(784_975_777));
    }

    #[test]
    fn known_instants_are_written_as_they_must_be() {
        assert_eq!(written(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(written(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(written(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(written(LAST_SECOND), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(written(u64::MAX), written(LAST_SECOND));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "0",
            "-1",
            ",",
            ", GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Son, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:3 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06 Nov +994 08:49:37 GMT",
        ] {
            assert_eq!(parse_date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn dates_before_the_epoch_count_as_the_epoch() {
        assert_eq!(parse_date(b"Sat, 01 Jan 0000 00:00:00 GMT"), Some(0));
        assert_eq!(parse_date(b"Wed, 31 Dec 1969 23:59:59 GMT"), Some(0));
    }

    #[test]
    fn a_cache_gives_what_writing_gives() {
        let mut cache = DateCache::default();
        for second in [0, 5, 5, 784_111_777, 5] {
            assert_eq!(&cache.at(second)[..], written(second).as_bytes());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(unix_s in 0..=LAST_SECOND) {
            prop_assert_eq!(parse_date(written(unix_s).as_bytes()), Some(unix_s));
        }

        #[test]
        fn any_bytes_give_a_result(text in prop::collection::vec(any::<u8>(), 0..40)) {
            parse_date(&text);
        }

        #[test]
        fn a_broken_date_gives_a_result(unix_s in 0..=LAST_SECOND, at in 0usize..29, byte: u8) {
            let mut text = written(unix_s).into_bytes();
            text[at] = byte;
            parse_date(&text);
            text.remove(at);
            parse_date(&text);
        }
    }
}
