//! Formatting of counts, numbers and sizes for people.
//!
//! Three significant digits; thousands are set apart by commas; a unit stands behind a space. What is measured keeps its
//! zeros (`3.10`), because they say how exact it is. Sizes, most of which somebody chose, go without them (`64 MB`). Units
//! of size are powers of 1024 and are called KB, MB, …, as where sizes are read ([`crate::settings::units::size`]) and in workloads.
//! Nothing here is read back: a value that is written to be typed again is exact and has no space.

/// A whole number: `1,234,567`.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A number of things: `1 request`, `1,234 requests`.
pub fn several(value: u64, one: &str) -> String {
    format!("{} {one}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Things in a row: `one`, `one and two`, `one, two and three`.
pub fn series(items: &[impl AsRef<str>]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => items.concat(),
    }
}

/// The form of a verb that goes with a number of things: `is`, `are`.
pub fn verb<'a>(number: u64, one: &'a str, more: &'a str) -> &'a str {
    if number == 1 { one } else { more }
}

/// Digits with their thousands set apart; a sign before them and a fraction behind them stay as they are.
pub fn grouped(number: &str) -> String {
    let start = number.find(|c: char| c.is_ascii_digit()).unwrap_or(number.len());
    let end = number.find('.').unwrap_or(number.len());
    let mut text = String::with_capacity(number.len() + number.len() / 3);
    for (at, c) in number.char_indices() {
        if at > start && at < end && (end - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// Something measured: `0.123`, `9.95`, `12.0`, `41,203`. At most three digits stand behind the point.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => grouped(&format!("{value:.0}")),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Something chosen: `0.0125`, `9.95`, `12`, `41,203`; without zeros at the end.
pub fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.abs().to_string();
    }
    // As many digits behind the point as make three significant ones, of the number as it is after rounding to three.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let digits = 2 - libm::floor(libm::log10(rounded.abs())) as i32;
    let text = grouped(&format!("{value:.*}", usize::try_from(digits).unwrap_or(0)));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Bytes: `999 B`, `1.2 GB`, `64 MB`.
pub fn bytes(value: u64) -> String {
    if value < 1024 {
        return format!("{} B", count(value));
    }
    let (mut size, mut units) = (value as f64 / 1024.0, ["KB", "MB", "GB", "TB", "PB"].into_iter());
    let mut unit = units.next().unwrap_or_default();
    while size >= 999.5 {
        let Some(larger) = units.next() else { break };
        (size, unit) = (size / 1024.0, larger);
    }
    format!("{} {unit}", plain(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_separators() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 0.1234, 9.999, 123.4, 999.6, -41_203.4].map(number),
            ["0.00", "0.123", "10.0", "123", "1,000", "-41,203"]
        );
        assert_eq!(
            [0.0, 0.4, 0.012_345, 9.999, 99.96, 123.4, 999.6, -41_203.4].map(plain),
            ["0", "0.4", "0.0123", "10", "100", "123", "1,000", "-41,203"]
        );
        assert_eq!(["-1234.5678", "−100", "12", ""].map(grouped), ["-1,234.5678", "−100", "12", ""]);
    }

    #[test]
    fn one_of_something_is_not_called_several() {
        assert_eq!([0, 1, 1234].map(|number| several(number, "hit")), ["0 hits", "1 hit", "1,234 hits"]);
    }

    #[test]
    fn only_the_last_of_a_series_follows_an_and() {
        let items = ["one", "two", "three"];
        assert_eq!(
            [0, 1, 2, 3].map(|count| series(&items[..count])),
            ["", "one", "one and two", "one, two and three"]
        );
    }

    #[test]
    fn sizes_have_the_unit_that_leaves_fewer_than_a_thousand() {
        assert_eq!(
            [0, 999, 1023, 1024, 1010 << 10, 64 << 20, 1_288_490_189, 1 << 30, u64::MAX].map(bytes),
            ["0 B", "999 B", "1,023 B", "1 KB", "0.986 MB", "64 MB", "1.2 GB", "1 GB", "16,384 PB"]
        );
    }
}
