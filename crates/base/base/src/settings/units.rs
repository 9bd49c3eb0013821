//! Durations, sizes and rates, as they are written. Always with their unit.

use std::time::Duration;

/// Splits `12.5MB` into its number and its unit.
pub fn split(text: &str) -> Result<(f64, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    match digits.parse::<f64>() {
        Ok(number) => Ok((number, unit.trim())),
        Err(_) => Err(format!("`{text}` does not begin with a number")),
    }
}

/// Reads `500ms`, `30s`, `1.5m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let examples = "write it like 500ms, 30s, 5m or 1h";
    let (number, unit) = split(text).map_err(|error| format!("{error}; {examples}"))?;
    let factor_s = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        "" => return Err(format!("`{text}` has no unit; write {text}s for seconds or {text}m for minutes")),
        other => return Err(format!("`{other}` is not a unit of time; {examples}")),
    };
    let duration =
        Duration::try_from_secs_f64(number * factor_s).map_err(|_| format!("`{text}` is too long"))?;
    if duration.is_zero() {
        return Err(format!("`{text}` is no time at all; {examples}"));
    }
    Ok(duration)
}

/// Reads `64KB`, `1.5GB`: powers of 1024, in bytes. Nothing at all may be said with a unit or without one.
pub fn size(text: &str) -> Result<u64, String> {
    let examples = "write it like 64MB or 1GB (1 KB is 1024 bytes)";
    let (number, unit) = split(text).map_err(|error| format!("{error}; {examples}"))?;
    if number == 0.0 && unit.is_empty() {
        return Ok(0);
    }
    let factor = match unit {
        "B" => 1.0,
        "KB" | "KiB" => 1024.0,
        "MB" | "MiB" => 1024f64.powi(2),
        "GB" | "GiB" => 1024f64.powi(3),
        "TB" | "TiB" => 1024f64.powi(4),
        "" => return Err(format!("`{text}` has no unit; write {text}MB for megabytes or {text}B for bytes")),
        "Kb" | "Mb" | "Gb" | "Tb" => {
            return Err(format!("`{unit}` would be bits; write {}B for bytes", &unit[..1]));
        }
        other => return Err(format!("`{other}` is not a unit of size; {examples}")),
    };
    let bytes = number * factor;
    if (bytes < 1.0 && number != 0.0) || bytes >= u64::MAX as f64 {
        return Err(format!("`{text}` is not a possible size; {examples}"));
    }
    Ok(bytes as u64)
}

/// Reads `100Mbit/s`, `1Gbit/s`: powers of 1000, in bits a second.
pub fn bit_rate(text: &str) -> Result<f64, String> {
    let examples = "write it like 100Mbit/s or 1Gbit/s";
    let (number, unit) = split(text).map_err(|error| format!("{error}; {examples}"))?;
    let factor = match unit {
        "kbit/s" | "Kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        "Gbit/s" => 1e9,
        other => return Err(format!("`{other}` is not a unit of bits a second; {examples}")),
    };
    if number <= 0.0 {
        return Err(format!("`{text}` is no rate at all; {examples}"));
    }
    Ok(number * factor)
}

/// Reads `20MB/s`: powers of 1024, in bytes a second.
pub fn byte_rate(text: &str) -> Result<f64, String> {
    let examples = "write it like 20MB/s";
    let per_second =
        text.strip_suffix("/s").ok_or_else(|| format!("`{text}` is not per second; {examples}"))?;
    match size(per_second)? {
        0 => Err(format!("`{text}` is no rate at all; {examples}")),
        bytes => Ok(bytes as f64),
    }
}

/// Reads `120/s`, `90/min`: how often, in a second.
pub fn rate(text: &str) -> Result<f64, String> {
    let examples = "write it like 120/s";
    let (number, unit) = split(text).map_err(|error| format!("{error}; {examples}"))?;
    let per_s = match unit {
        "/s" => number,
        "/min" | "/m" => number / 60.0,
        other => return Err(format!("`{other}` is not a unit of rates; {examples}")),
    };
    if per_s > 0.0 { Ok(per_s) } else { Err(format!("`{text}` is never; {examples}")) }
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
