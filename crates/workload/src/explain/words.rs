//! Numbers, shares, sizes and times as people write them.

use std::time::Duration;

use crate::model::{ContentIndex, Distribution, Extent, RandomExtent, Weighted, Workload};

/// Content types by their labels.
pub(super) fn kinds(workload: &Workload, contents: &Weighted<ContentIndex>) -> String {
    mix(contents, |content| {
        workload.contents.get(usize::from(*content)).map_or("?", |c| c.kind.as_str()).to_string()
    })
}

/// The mean of a random variable, and how far it scatters.
pub(super) fn draws(law: &Distribution, unit: &str) -> String {
    let scatter = law.deviation();
    let around = if scatter > 0.0 { format!(" ± {}", number(scatter)) } else { String::new() };
    format!("{}{around} {unit}", number(law.mean()))
}

/// A position or a length.
pub(super) fn extent(extent: Extent) -> String {
    match extent {
        Extent::Bytes(size) => bytes(size as f64),
        Extent::Share(share) => percent(share),
    }
}

/// A random one.
pub(super) fn random_extent(extent: &RandomExtent) -> String {
    match extent {
        RandomExtent::Bytes(size) => bytes(size.mean_count()),
        RandomExtent::Share(share) => percent(share.mean()),
    }
}

/// What there is, with commas.
pub(super) fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Items with their shares, the likely ones first.
pub(super) fn mix<T>(weighted: &Weighted<T>, name: impl Fn(&T) -> String) -> String {
    let mut items: Vec<_> = weighted.items().iter().filter(|(_, share)| *share > 0.0).collect();
    items.sort_by(|a, b| b.1.total_cmp(&a.1));
    match items.as_slice() {
        [only] => name(&only.0),
        _ => items
            .iter()
            .map(|(i, share)| format!("{} {}", name(i), percent(*share)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

pub(super) fn several(number: usize, what: &str) -> String {
    format!("{} {what}{}", count(number as f64), if number == 1 { "" } else { "s" })
}

pub(super) fn percent(share: f64) -> String {
    format!("{}%", number(share * 100.0))
}

/// Three significant digits, without trailing zeros.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = libm::floor(libm::log10(libm::fabs(value))) as i32;
    let text = format!("{value:.*}", usize::try_from(2 - magnitude).unwrap_or(0).min(9));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A whole number with its thousands marked.
pub(super) fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(super) fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["bytes", "KB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (value, 0);
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", number(value), UNITS[unit])
}

pub(super) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = match seconds {
        s if s < 120.0 => (s, "s"),
        s if s < 2.0 * 3600.0 => (s / 60.0, "min"),
        s if s < 2.0 * 86_400.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    format!("{} {unit}", number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        let numbers = [0.0, 0.4, 1600.0, 0.123_456, 99.96, 1234.6, 4.0];
        let texts: Vec<_> = numbers.into_iter().map(number).collect();
        assert_eq!(texts, ["0", "0.4", "1600", "0.123", "100", "1235", "4"]);
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(count(123.0), "123");
        assert_eq!(bytes(9216.0), "9 KB");
        assert_eq!(bytes(12.0), "12 bytes");
        assert_eq!(time(Duration::from_secs(90)), "90 s");
        assert_eq!(time(Duration::from_secs(3600)), "60 min");
        assert_eq!(time(Duration::from_secs(7 * 86_400)), "7 days");
    }
}
