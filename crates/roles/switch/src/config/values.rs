//! Parses plain values of a switch file: times, sizes, addresses, lists.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use assay_base::settings::{Fields, Mistake, Value, units};
use assay_protocol::network::{Network, NotANetwork};

pub(super) fn time(fields: &Fields<'_>, key: &str) -> Result<Option<Duration>, Mistake> {
    fields.get(key).map(|value| value.read(units::duration)).transpose()
}

pub(super) fn time_or(fields: &Fields<'_>, key: &str, usual: Duration) -> Result<Duration, Mistake> {
    Ok(time(fields, key)?.unwrap_or(usual))
}

pub(super) fn whole_or(
    fields: &Fields<'_>,
    key: &str,
    usual: u64,
    bounds: RangeInclusive<u64>,
) -> Result<u64, Mistake> {
    fields.get(key).map_or(Ok(usual), |value| value.whole(*bounds.start(), *bounds.end()))
}

pub(super) fn size(
    fields: &Fields<'_>,
    key: &str,
    bounds: RangeInclusive<u64>,
) -> Result<Option<u64>, Mistake> {
    let Some(value) = fields.get(key) else { return Ok(None) };
    let bytes = value.read(units::size)?;
    if !bounds.contains(&bytes) {
        return Err(value.wrong(&format!("it can be {} to {} bytes", bounds.start(), bounds.end())));
    }
    Ok(Some(bytes))
}

pub(super) fn texts<'a>(fields: &Fields<'a>, key: &str) -> Result<Vec<Value<'a>>, Mistake> {
    fields.get(key).map_or(Ok(Vec::new()), |value| value.list())
}

pub(super) fn address(value: &Value<'_>) -> Result<SocketAddr, Mistake> {
    let read = |text: &str| {
        text.parse()
            .map_err(|_| format!("`{text}` is no address and port, such as 127.0.0.1:8080 or [::1]:80"))
    };
    value.read(read)
}

/// Parses `10.0.0.0/8`, or a single address.
pub(super) fn network(value: &Value<'_>) -> Result<Network, Mistake> {
    value.read(|text| text.parse().map_err(|wrong: NotANetwork| wrong.to_string()))
}

/// Parses `200` or `"200-299"` into the first and last status.
pub(super) fn statuses(value: &Value<'_>) -> Result<(u16, u16), Mistake> {
    let text = value.plain()?;
    let mut ends = text.splitn(2, '-').map(|end| end.trim().parse::<u16>().ok());
    let first = ends.next().flatten();
    let last = ends.next().unwrap_or(first);
    match (first, last) {
        (Some(first), Some(last)) if 100 <= first && first <= last && last <= 999 => Ok((first, last)),
        _ => Err(value.wrong(&format!("`{text}` is no status, such as 200 or \"200-399\""))),
    }
}

/// Parses a name that can stand in logs, labels and fields without quotes.
pub(super) fn name<'a>(value: &Value<'a>) -> Result<&'a str, Mistake> {
    let text = value.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
        return Err(value.wrong("a name has 1 to 64 letters, digits, hyphens, dots, colons or underscores"));
    }
    Ok(text)
}

/// Parses a path that can stand in a request line.
pub(super) fn target(value: &Value<'_>) -> Result<String, Mistake> {
    let text = value.text()?;
    if !text.starts_with('/') || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(value.wrong("it begins with a slash and has no blanks, like /health"));
    }
    Ok(text.to_owned())
}
