//! Numbers and times as they stand in traces.

use crate::format::{instant_us, ticks_in_second};

use crate::size::requests::LARGEST_BYTES;

/// Defect of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueError {
    /// There is nothing in it.
    Empty,
    NoNumber,
    /// Bytes with a fraction, or with points or commas for thousands: nobody can tell which.
    Fraction,
    /// Below 0.
    Negative,
    /// More than any object has.
    TooLarge,
    NoTime,
    /// A number of requests that no line stands for.
    NoCount,
}

/// A number of bytes; `unit_bytes`: of what is counted. Only of a unit above bytes can there be a fraction.
pub fn size(field: &[u8], has_decimal_comma: bool, unit_bytes: f64) -> Result<u64, ValueError> {
    // Tables that had holes once write whole numbers as `100.0`.
    let whole = field.strip_suffix(b".0").or(field.strip_suffix(b",0").filter(|_| has_decimal_comma));
    let bytes = match (digits(whole.unwrap_or(field)), decimal(field, has_decimal_comma)) {
        (Some(count), _) => count as f64 * unit_bytes,
        (None, _) if field.is_empty() => return Err(ValueError::Empty),
        (None, Some(number)) if number < 0.0 => return Err(ValueError::Negative),
        // More than 64 bits.
        (None, _) if field.iter().all(u8::is_ascii_digit) => return Err(ValueError::TooLarge),
        (None, Some(number)) if unit_bytes > 1.0 => number * unit_bytes,
        (None, _) if field.iter().all(|byte| byte.is_ascii_digit() || b".,' ".contains(byte)) => {
            return Err(ValueError::Fraction);
        }
        _ => return Err(ValueError::NoNumber),
    };
    if bytes > LARGEST_BYTES as f64 { Err(ValueError::TooLarge) } else { Ok(bytes.round() as u64) }
}

/// Digits alone, as a number.
pub fn digits(field: &[u8]) -> Option<u64> {
    let next = |number: u64, byte: &u8| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    if field.is_empty() { None } else { field.iter().try_fold(0, next) }
}

/// A number that may have a fraction.
pub fn decimal(field: &[u8], has_decimal_comma: bool) -> Option<f64> {
    if let Some(number) = digits(field) {
        return Some(number as f64);
    }
    let text = std::str::from_utf8(field).ok()?;
    let number = if has_decimal_comma && text.contains(',') {
        text.replace(',', ".").parse::<f64>()
    } else {
        text.parse::<f64>()
    };
    number.ok().filter(|number| number.is_finite())
}

/// A time in milliseconds of any epoch; without a unit, its digits say what it counts.
pub fn time_ms(field: &[u8], has_decimal_comma: bool, unit_ms: Option<f64>) -> Result<i64, ValueError> {
    let Some(time) = decimal(field, has_decimal_comma) else {
        let date = std::str::from_utf8(field).ok().and_then(date_ms);
        return date.ok_or(if field.is_empty() { ValueError::Empty } else { ValueError::NoTime });
    };
    if let Some(date_ms) = compact_ms(field).filter(|_| unit_ms.is_none()) {
        return Ok(date_ms);
    }
    let digits = 1 + time.abs().max(1.0).log10() as usize;
    let unit_ms = match unit_ms {
        Some(unit_ms) => unit_ms,
        None => 1e3 / f64::from(ticks_in_second(digits).ok_or(ValueError::NoTime)?),
    };
    Ok((time * unit_ms).round() as i64)
}

/// A date with a time of day, which may have a fraction of its last second.
fn date_ms(text: &str) -> Option<i64> {
    let Some((before, after)) = text.split_once('.') else { return Some(instant_us(text)?.div_euclid(1000)) };
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let (fraction, zone) = after.split_at(end);
    let fraction_s: f64 = format!("0.{fraction}").parse().ok()?;
    Some(instant_us(&format!("{before}{zone}"))?.div_euclid(1000) + (fraction_s * 1000.0) as i64)
}

/// A date and time without marks between: `20160201164604`.
fn compact_ms(field: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(field).ok().filter(|text| text.len() == 14)?;
    let part = |from: usize, to: usize| text.get(from..to);
    let [year, month, day] = [part(0, 4)?, part(4, 6)?, part(6, 8)?];
    let [hour, minute, second] = [part(8, 10)?, part(10, 12)?, part(12, 14)?];
    date_ms(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_whole_number_of_bytes_and_nothing_that_could_be_another_one() {
        let bytes = |text: &str| size(text.as_bytes(), true, 1.0);
        assert_eq!(["0", "700", "100.0", "100,0"].map(bytes), [Ok(0), Ok(700), Ok(100), Ok(100)]);
        for text in ["1.000", "1,000", "700.5", "1.000.000", "1'000", "1 000", "1.00"] {
            assert_eq!(bytes(text), Err(ValueError::Fraction), "{text}");
        }
        for text in ["x", "1e3", "inf", "nan", "0x10", "5B", "-"] {
            assert_eq!(bytes(text), Err(ValueError::NoNumber), "{text}");
        }
        assert_eq!(
            ["", "-1", "-0.5"].map(bytes),
            [ValueError::Empty, ValueError::Negative, ValueError::Negative].map(Err)
        );
        assert_eq!(
            ["281474976710656", "281474976710657"].map(bytes),
            [Ok(1 << 48), Err(ValueError::TooLarge)]
        );
        assert_eq!(bytes("99999999999999999999"), Err(ValueError::TooLarge));
        let kilobytes = |text: &str| size(text.as_bytes(), false, 1024.0);
        assert_eq!(["2", "1.5", "0.001"].map(kilobytes), [Ok(2048), Ok(1536), Ok(1)]);
    }

    #[test]
    fn a_time_counts_what_its_column_says_or_what_its_size_says() {
        let guessed = |text: &str| time_ms(text.as_bytes(), true, None);
        for (text, ms) in [
            ("3.25", 3250),
            ("0,33", 330),
            ("1678900000", 1_678_900_000_000),
            ("1678900000123", 1_678_900_000_123),
            ("1678900000123456", 1_678_900_000_123),
            ("1678900000123456789", 1_678_900_000_123),
            // MSR's first: 2007, counted from 1601.
            ("128166372003061629", 12_816_637_200_306),
            ("20160201164604", 1_454_345_164_000),
            ("2016-02-01 16:46:04", 1_454_345_164_000),
            ("2016-02-01T16:46:04.250Z", 1_454_345_164_250),
        ] {
            assert_eq!(guessed(text), Ok(ms), "{text}");
        }
        assert_eq!(["soon", "99999999999999999999"].map(guessed), [Err(ValueError::NoTime); 2]);
        assert_eq!(guessed(""), Err(ValueError::Empty));
        assert_eq!(time_ms(b"182", false, Some(1.0)), Ok(182));
        assert_eq!(time_ms(b"0,33", false, None), Err(ValueError::NoTime));
    }
}
