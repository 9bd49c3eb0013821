//! Durations, sizes and rates, as they are written. Always with their unit.

use std::time::Duration;

use thiserror::Error;

const DURATIONS: &str = "write it like 500ms, 30s, 5m or 1h";
const SIZES: &str = "write it like 64MB or 1GB (1 KB is 1024 bytes)";
const BIT_RATES: &str = "write it like 100Mbit/s or 1Gbit/s";
const BYTE_RATES: &str = "write it like 20MB/s";
const RATES: &str = "write it like 120/s";

/// A text that does not begin with a number.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` does not begin with a number")]
pub struct NumberError(String);

/// A duration, a size or a rate that cannot be read. Most texts end with examples of those that can.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuantityError {
    #[error("{cause}; {examples}")]
    Number { cause: NumberError, examples: &'static str },
    #[error("`{unit}` is not a unit of {quantity}; {examples}")]
    Unit { unit: String, quantity: &'static str, examples: &'static str },
    #[error("`{0}` has no unit; write {0}s for seconds or {0}m for minutes")]
    NoDurationUnit(String),
    #[error("`{0}` has no unit; write {0}MB for megabytes or {0}B for bytes")]
    NoSizeUnit(String),
    #[error("`{0}` is too long")]
    LongDuration(String),
    #[error("`{0}` is no time at all; {DURATIONS}")]
    ZeroDuration(String),
    #[error("`{unit}` would be bits; write {}B for bytes", &unit[..1])]
    Bits { unit: String },
    #[error("`{0}` is not a possible size; {SIZES}")]
    Size(String),
    #[error("`{0}` is not per second; {BYTE_RATES}")]
    NotPerSecond(String),
    #[error("`{text}` is no rate at all; {examples}")]
    ZeroTransferRate { text: String, examples: &'static str },
    #[error("`{0}` is never; {RATES}")]
    ZeroRate(String),
}

impl QuantityError {
    fn unit(unit: &str, quantity: &'static str, examples: &'static str) -> Self {
        Self::Unit { unit: unit.to_owned(), quantity, examples }
    }
}

/// Splits `12.5MB` into its number and its unit.
pub fn split(text: &str) -> Result<(f64, &str), NumberError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    match digits.parse::<f64>() {
        Ok(number) => Ok((number, unit.trim())),
        Err(_) => Err(NumberError(text.to_owned())),
    }
}

fn split_like<'t>(text: &'t str, examples: &'static str) -> Result<(f64, &'t str), QuantityError> {
    split(text).map_err(|cause| QuantityError::Number { cause, examples })
}

/// Reads `500ms`, `30s`, `1.5m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let (number, unit) = split_like(text, DURATIONS)?;
    let factor_s = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        "" => return Err(QuantityError::NoDurationUnit(text.to_owned())),
        other => return Err(QuantityError::unit(other, "time", DURATIONS)),
    };
    let duration = Duration::try_from_secs_f64(number * factor_s)
        .map_err(|_| QuantityError::LongDuration(text.to_owned()))?;
    if duration.is_zero() {
        return Err(QuantityError::ZeroDuration(text.to_owned()));
    }
    Ok(duration)
}

/// Reads `64KB`, `1.5GB`: powers of 1024, in bytes. Nothing at all may be said with a unit or without one.
pub fn size(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split_like(text, SIZES)?;
    if number == 0.0 && unit.is_empty() {
        return Ok(0);
    }
    let factor = match unit {
        "B" => 1.0,
        "KB" | "KiB" => 1024.0,
        "MB" | "MiB" => 1024f64.powi(2),
        "GB" | "GiB" => 1024f64.powi(3),
        "TB" | "TiB" => 1024f64.powi(4),
        "" => return Err(QuantityError::NoSizeUnit(text.to_owned())),
        "Kb" | "Mb" | "Gb" | "Tb" => return Err(QuantityError::Bits { unit: unit.to_owned() }),
        other => return Err(QuantityError::unit(other, "size", SIZES)),
    };
    let bytes = number * factor;
    if (bytes < 1.0 && number != 0.0) || bytes >= u64::MAX as f64 {
        return Err(QuantityError::Size(text.to_owned()));
    }
    Ok(bytes as u64)
}

/// Reads `100Mbit/s`, `1Gbit/s`: powers of 1000, in bits a second.
pub fn bit_rate(text: &str) -> Result<f64, QuantityError> {
    let (number, unit) = split_like(text, BIT_RATES)?;
    let factor = match unit {
        "kbit/s" | "Kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        "Gbit/s" => 1e9,
        other => return Err(QuantityError::unit(other, "bits a second", BIT_RATES)),
    };
    if number <= 0.0 {
        return Err(QuantityError::ZeroTransferRate { text: text.to_owned(), examples: BIT_RATES });
    }
    Ok(number * factor)
}

/// Reads `20MB/s`: powers of 1024, in bytes a second.
pub fn byte_rate(text: &str) -> Result<f64, QuantityError> {
    let per_second = text.strip_suffix("/s").ok_or_else(|| QuantityError::NotPerSecond(text.to_owned()))?;
    match size(per_second)? {
        0 => Err(QuantityError::ZeroTransferRate { text: text.to_owned(), examples: BYTE_RATES }),
        bytes => Ok(bytes as f64),
    }
}

/// Reads `120/s`, `90/min`: how often, in a second.
pub fn rate(text: &str) -> Result<f64, QuantityError> {
    let (number, unit) = split_like(text, RATES)?;
    let per_s = match unit {
        "/s" => number,
        "/min" | "/m" => number / 60.0,
        other => return Err(QuantityError::unit(other, "rates", RATES)),
    };
    if per_s > 0.0 { Ok(per_s) } else { Err(QuantityError::ZeroRate(text.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_their_unit() {
        assert_eq!((bit_rate("100Mbit/s"), byte_rate("20MB/s")), (Ok(1e8), Ok((20 << 20) as f64)));
        assert_eq!((rate("120/s"), rate("90/min")), (Ok(120.0), Ok(1.5)));
        for text in ["100", "100MB", "0Mbit/s", "x/s", "0/s", "0B/s"] {
            assert!(bit_rate(text).is_err() && byte_rate(text).is_err() && rate(text).is_err(), "{text}");
        }
    }
}
