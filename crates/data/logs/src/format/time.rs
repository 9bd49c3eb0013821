//! The time of a request, as a log writes it. Clock times in words, compiled from strftime patterns, and epochs, whole or in
//! parts.

use super::error::SyntaxError;

/// One part of a written time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TimePart {
    Text(u8),
    Year,
    /// Two digits; 69 and later are of the last century.
    ShortYear,
    Month,
    /// `Jan` to `Dec`, or the name in full.
    MonthName,
    /// Two digits, or a blank and one.
    Day,
    Hour,
    /// 1 to 12.
    Hour12,
    /// `AM` or `PM`.
    HalfDay,
    Minute,
    Second,
    /// `13:55:36`, which nearly all times have: read as one.
    TimeOfDay,
    /// Digits of a fraction of a second.
    Fraction,
    /// The same behind a point or a comma, or nothing.
    FractionIfAny,
    /// `+0100`, `+01:00` or `Z`.
    Zone,
    /// The same, or nothing: UTC.
    ZoneIfAny,
    Epoch,
    /// Letters that say nothing new: a weekday, the name of a zone.
    Letters,
    /// Digits that say nothing new.
    Digits,
}

/// Notation of a time, compiled from a strftime pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimePattern {
    parts: Vec<TimePart>,
}

/// Parts of a line's time, as they are read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock {
    pub epoch_us: Option<i64>,
    pub fraction_us: i64,
    /// End of the response, where a field of its own says it.
    pub end_us: Option<i64>,
    /// A part of how long the request took is not known, and so is the whole.
    pub lacks_part: bool,
    date: Option<i64>,
    year: i64,
    month: i64,
    day: i64,
    second_of_day: Option<i64>,
    half_day_s: i64,
    offset_s: i64,
}

impl Clock {
    /// Microseconds since 1970; none when the line does not say enough.
    #[inline]
    pub(crate) fn unix_us(&self) -> Option<i64> {
        if let Some(epoch_us) = self.epoch_us {
            return Some(epoch_us + self.fraction_us);
        }
        let seconds = self.date? * 86_400 + self.second_of_day? + self.half_day_s - self.offset_s;
        Some(seconds * 1_000_000 + self.fraction_us)
    }
}

impl Clock {
    /// An instant, in microseconds since 1970.
    pub(crate) fn at(epoch_us: i64) -> Self {
        Self { epoch_us: Some(epoch_us), ..Self::default() }
    }

    /// Microseconds from the time to the end of the response; none when the line does not say both.
    pub(crate) fn duration_us(&self) -> Option<u64> {
        u64::try_from(self.end_us?.checked_sub(self.unix_us()?)?).ok()
    }

    /// Takes a day (since 1970) where the line does not say one.
    pub(crate) fn set_day_if_unknown(&mut self, day: Option<i64>) {
        self.date = self.date.or(day);
    }

    /// The day of a time, since 1970.
    pub(crate) fn day(&self) -> Option<i64> {
        self.date
    }

    /// Takes the time of another one.
    pub(crate) fn set_time(&mut self, other: &Clock) {
        *self = Clock { lacks_part: self.lacks_part, end_us: self.end_us, ..*other };
    }
}

impl TimePattern {
    /// `10/Oct/2000:13:55:36 -0700`, without brackets.
    pub(crate) fn common() -> Self {
        Self::known("%d/%b/%Y:%H:%M:%S %z")
    }

    /// `2000-10-10T13:55:36-07:00`, with a fraction of the second or without.
    pub(crate) fn iso8601() -> Self {
        let mut pattern = Self::known("%Y-%m-%dT%H:%M:%S");
        pattern.parts.extend([TimePart::FractionIfAny, TimePart::Zone]);
        pattern
    }

    /// The ways in which JSON has times, if not as a number.
    pub(crate) fn from_json_lines() -> [Self; 3] {
        let date_first = |between| {
            let mut pattern = Self::known("%Y-%m-%d");
            pattern.parts.push(TimePart::Text(between));
            pattern.parts.extend(Self::known("%H:%M:%S").parts);
            pattern.parts.extend([TimePart::FractionIfAny, TimePart::ZoneIfAny]);
            pattern
        };
        [date_first(b'T'), date_first(b' '), Self::common()]
    }

    /// A pattern of our own.
    pub(crate) fn known(pattern: &str) -> Self {
        // What strptime would not know is taken for text, so there is nothing to fail for patterns of our own.
        Self::compile(pattern).unwrap_or(Self { parts: Vec::new() })
    }

    /// Reads a strftime pattern.
    pub(crate) fn compile(pattern: &str) -> Result<Self, SyntaxError> {
        let mut parts = Vec::new();
        let mut rest = pattern.as_bytes();
        while let [byte, more @ ..] = rest {
            rest = more;
            if *byte != b'%' {
                parts.push(TimePart::Text(*byte));
                continue;
            }
            // Modifiers that change how a number is written, and not which.
            while let [b'E' | b'O' | b'-', more @ ..] = rest {
                rest = more;
            }
            let Some((letter, more)) = rest.split_first() else {
                return Err(SyntaxError::TimeEndsInPercent);
            };
            rest = more;
            let whole = |pattern: &str| Self::compile(pattern).map(|pattern| pattern.parts);
            match letter {
                b'Y' => parts.push(TimePart::Year),
                b'y' => parts.push(TimePart::ShortYear),
                b'm' => parts.push(TimePart::Month),
                b'b' | b'B' | b'h' => parts.push(TimePart::MonthName),
                b'd' | b'e' => parts.push(TimePart::Day),
                // One step instead of five for the usual time of day.
                b'H' if let Some(more) = rest.strip_prefix(b":%M:%S") => {
                    parts.push(TimePart::TimeOfDay);
                    rest = more;
                }
                b'H' | b'k' => parts.push(TimePart::Hour),
                b'I' | b'l' => parts.push(TimePart::Hour12),
                b'p' => parts.push(TimePart::HalfDay),
                b'M' => parts.push(TimePart::Minute),
                b'S' => parts.push(TimePart::Second),
                b'f' => parts.push(TimePart::Fraction),
                b'z' => parts.push(TimePart::Zone),
                b's' => parts.push(TimePart::Epoch),
                b'a' | b'A' | b'Z' => parts.push(TimePart::Letters),
                b'j' | b'u' | b'w' => parts.push(TimePart::Digits),
                b'T' => parts.push(TimePart::TimeOfDay),
                b'R' => parts.extend(whole("%H:%M")?),
                b'F' => parts.extend(whole("%Y-%m-%d")?),
                b'D' => parts.extend(whole("%m/%d/%y")?),
                b'c' => parts.extend(whole("%a %b %e %T %Y")?),
                b'%' => parts.push(TimePart::Text(b'%')),
                other => {
                    return Err(SyntaxError::TimePart(char::from(*other)));
                }
            }
        }
        Ok(Self { parts })
    }

    /// True when a time says by itself which instant it is.
    pub(crate) fn knows_zone(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TimePart::Zone | TimePart::Epoch))
    }

    /// True when a day of the calendar is in it.
    pub(crate) fn has_date(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TimePart::Day | TimePart::Epoch))
    }

    /// True when a time of day is in it.
    pub(crate) fn has_time_of_day(&self) -> bool {
        let is_time_of_day = |part: &TimePart| {
            matches!(part, TimePart::Hour | TimePart::Hour12 | TimePart::TimeOfDay | TimePart::Epoch)
        };
        self.parts.iter().any(is_time_of_day)
    }

    /// True when it says day and time of day.
    pub(crate) fn is_whole(&self) -> bool {
        self.has_date() && self.has_time_of_day()
    }

    /// True when it has fractions of seconds.
    pub(crate) fn has_fraction(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TimePart::Fraction | TimePart::FractionIfAny))
    }

    /// Reads a time at the beginning of `text`; what is behind it.
    #[inline(always)]
    pub(crate) fn read<'a>(&self, text: &'a [u8], clock: &mut Clock) -> Option<&'a [u8]> {
        let mut rest = text;
        for part in &self.parts {
            rest = part.read(rest, clock)?;
        }
        // A date may come from another field than this time.
        if clock.year > 0 {
            clock.date = Some(days_since_1970(clock.year, clock.month, clock.day)?);
        }
        Some(rest)
    }
}

impl TimePart {
    #[inline(always)]
    fn read<'a>(&self, text: &'a [u8], clock: &mut Clock) -> Option<&'a [u8]> {
        match self {
            TimePart::Text(byte) => return text.strip_prefix(std::slice::from_ref(byte)),
            TimePart::Year => clock.year = number(text, 4)?,
            TimePart::ShortYear => {
                let year = two_digits(text)?;
                clock.year = if year < 69 { 2000 } else { 1900 } + year;
            }
            TimePart::Month => clock.month = two_digits(text)?,
            TimePart::MonthName => {
                clock.month = month(text.get(..3)?)?;
                let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                return text.get(letters..);
            }
            TimePart::Day => clock.day = two_digits(text)?,
            TimePart::Hour | TimePart::Hour12 => {
                let hour = at_most(two_digits(text)?, 23)?;
                // Twelve is the hour 0 of its half of the day.
                let hour = if *self == TimePart::Hour12 { hour % 12 } else { hour };
                *clock.second_of_day.get_or_insert(0) += hour * 3600;
            }
            TimePart::HalfDay => match text.get(..2)? {
                b"PM" | b"pm" => clock.half_day_s = 43_200,
                b"AM" | b"am" => clock.half_day_s = 0,
                _ => return None,
            },
            TimePart::Minute => *clock.second_of_day.get_or_insert(0) += at_most(two_digits(text)?, 59)? * 60,
            // A leap second is the first of the next minute.
            TimePart::Second => *clock.second_of_day.get_or_insert(0) += at_most(two_digits(text)?, 60)?,
            TimePart::TimeOfDay => {
                let (text, after) = text.split_first_chunk::<8>()?;
                if (text[2], text[5]) != (b':', b':') {
                    return None;
                }
                let hour = at_most(two_digits(text)?, 23)?;
                let minute = at_most(two_digits(&text[3..])?, 59)?;
                let second = at_most(two_digits(&text[6..])?, 60)?;
                clock.second_of_day = Some(hour * 3600 + minute * 60 + second);
                return Some(after);
            }
            TimePart::Fraction => return fraction(text, clock),
            TimePart::FractionIfAny => {
                let [b'.' | b',', rest @ ..] = text else { return Some(text) };
                return fraction(rest, clock);
            }
            TimePart::ZoneIfAny if text.is_empty() => return Some(text),
            TimePart::Zone | TimePart::ZoneIfAny => return zone(text, clock),
            TimePart::Epoch => {
                let digits = digits(text).filter(|digits| *digits < 12)?;
                clock.epoch_us = Some(number(text, digits)?.checked_mul(1_000_000)?);
                return Some(&text[digits..]);
            }
            TimePart::Letters => {
                return text.get(text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count()..);
            }
            TimePart::Digits => return Some(&text[digits(text)?..]),
        }
        text.get(if *self == TimePart::Year { 4 } else { 2 }..)
    }
}

/// Digits of a fraction of a second; what is behind them.
fn fraction<'a>(text: &'a [u8], clock: &mut Clock) -> Option<&'a [u8]> {
    let digits = digits(text)?;
    clock.fraction_us = fraction_us(&text[..digits]);
    Some(&text[digits..])
}

/// A number with exactly this number of digits.
#[inline]
fn number(text: &[u8], length: usize) -> Option<i64> {
    let digits = text.get(..length)?.iter();
    digits
        .copied()
        .try_fold(0i64, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

/// A number of two digits, of which the first may be a blank.
#[inline(always)]
fn two_digits(text: &[u8]) -> Option<i64> {
    let [first, second, ..] = text else { return None };
    let tens = if *first == b' ' { 0 } else { first.wrapping_sub(b'0') };
    let ones = second.wrapping_sub(b'0');
    (tens < 10 && ones < 10).then(|| i64::from(tens * 10 + ones))
}

fn at_most(value: i64, most: i64) -> Option<i64> {
    (value <= most).then_some(value)
}

/// Number of digits at the beginning; none: no digit at all.
fn digits(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then_some(digits)
}

/// Ticks in a second, from the digits before the point: seconds have eleven at most until the year 5138, and Windows
/// counts steps of 100 nanoseconds since 1601, which have eighteen.
#[inline]
pub fn ticks_in_second(digits: usize) -> Option<u32> {
    match digits {
        ..12 => Some(1),
        12..15 => Some(1000),
        15..18 => Some(1_000_000),
        18 => Some(10_000_000),
        19 => Some(1_000_000_000),
        _ => None,
    }
}

/// Digits behind a point of seconds, in microseconds.
pub(crate) fn fraction_us(digits: &[u8]) -> i64 {
    let mut unit = 100_000;
    let mut value = 0;
    for digit in digits.iter().take(6) {
        value += i64::from(digit.wrapping_sub(b'0')) * unit;
        unit /= 10;
    }
    value
}

fn month(name: &[u8]) -> Option<i64> {
    Some(match &[name[0] | 32, name[1] | 32, name[2] | 32] {
        b"jan" => 1,
        b"feb" => 2,
        b"mar" => 3,
        b"apr" => 4,
        b"may" => 5,
        b"jun" => 6,
        b"jul" => 7,
        b"aug" => 8,
        b"sep" => 9,
        b"oct" => 10,
        b"nov" => 11,
        b"dec" => 12,
        _ => return None,
    })
}

fn zone<'a>(text: &'a [u8], clock: &mut Clock) -> Option<&'a [u8]> {
    let sign = match text.first()? {
        b'Z' => {
            clock.offset_s = 0;
            return Some(&text[1..]);
        }
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    // The farthest zone is 14 hours from UTC.
    let hours = at_most(two_digits(text.get(1..)?)?, 14)?;
    let colon = usize::from(text.get(3) == Some(&b':'));
    let minutes = at_most(two_digits(text.get(3 + colon..)?)?, 59)?;
    clock.offset_s = sign * (hours * 3600 + minutes * 60);
    text.get(5 + colon..)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar; none when there is no such day.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    const LENGTHS: [i64; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = LENGTHS.get(usize::try_from(month - 1).ok()?)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if !(1..=*length).contains(&day) || (month == 2 && day == 29 && !is_leap) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str, text: &str) -> Option<i64> {
        let mut clock = Clock::default();
        let rest = TimePattern::compile(pattern).unwrap().read(text.as_bytes(), &mut clock)?;
        rest.is_empty().then(|| clock.unix_us()).flatten()
    }

    #[test]
    fn the_same_instant_is_read_from_every_way_to_write_it() {
        let expected = Some(971_211_336_000_000);
        for (pattern, text) in [
            ("%d/%b/%Y:%H:%M:%S %z", "10/Oct/2000:13:55:36 -0700"),
            ("%Y-%m-%dT%H:%M:%S%z", "2000-10-10T20:55:36+00:00"),
            ("%Y-%m-%dT%H:%M:%S%z", "2000-10-10T20:55:36Z"),
            ("%F %T", "2000-10-10 20:55:36"),
            ("%a %b %e %H:%M:%S %Y", "Tue Oct 10 20:55:36 2000"),
            ("%D %I:%M:%S %p", "10/10/00 08:55:36 PM"),
            ("%s", "971211336"),
        ] {
            assert_eq!(read(pattern, text), expected, "{pattern}");
        }
        assert_eq!(read("%d/%b/%Y:%H:%M:%S.%f", "10/Oct/2000:20:55:36.25"), Some(971_211_336_250_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "10/Oct/2000",
            "10/Okt/2000:13:55:36 -0700",
            "99/Oct/2000:13:55:36 -0700",
            "00/Oct/2000:13:55:36 -0700",
            "31/Apr/2000:13:55:36 -0700",
            "30/Feb/2000:13:55:36 -0700",
            "29/Feb/2100:13:55:36 -0700",
            "29/Feb/2026:13:55:36 -0700",
            "10/Oct/2000:24:00:00 -0700",
            "10/Oct/2000:13:60:00 -0700",
            "10/Oct/2000:13:55:61 -0700",
            "10/Oct/2000:13:55:36 +9999",
            "10/Oct/2000:13:55:36 +0060",
            "10/Oct/2000:13:55:36 -1500",
        ] {
            assert_eq!(read("%d/%b/%Y:%H:%M:%S %z", text), None, "{text}");
        }
        assert!(TimePattern::compile("%Q").unwrap_err().to_string().contains("%Q"));
    }

    #[test]
    fn an_iso_time_may_have_a_fraction_and_any_zone() {
        for (text, expected_us) in [
            ("2000-10-10T20:55:36Z", 971_211_336_000_000),
            ("2000-10-10T20:55:36.156000Z", 971_211_336_156_000),
            ("2000-10-10T20:55:36.489000082Z", 971_211_336_489_000),
            ("2000-10-10T22:55:36,5+02:00", 971_211_336_500_000),
            ("2000-10-11T10:55:36+1400", 971_211_336_000_000),
        ] {
            let mut clock = Clock::default();
            assert_eq!(TimePattern::iso8601().read(text.as_bytes(), &mut clock), Some(&b""[..]), "{text}");
            assert_eq!(clock.unix_us(), Some(expected_us), "{text}");
        }
    }

    #[test]
    fn leap_days_are_where_they_belong() {
        assert_eq!(read("%F %T", "2024-03-01 00:00:00"), Some(1_709_251_200_000_000));
        assert_eq!(read("%F %T", "1969-12-31 23:59:59"), Some(-1_000_000));
    }
}
