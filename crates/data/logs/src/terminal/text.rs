//! How numbers, times and texts are written.

use assay_base::settings::show::count;

use crate::document::{Count, Slots};

/// Characters of a bar that stands for everything.
pub(super) const BAR_WIDTH: usize = 12;

pub(crate) fn estimate(estimated: &Count) -> String {
    let text = count(estimated.count as u64);
    if estimated.standard_error > 0.0 {
        format!("about {text} (± {:.1} %)", estimated.standard_error * 100.0)
    } else {
        text
    }
}

pub(crate) fn lines(number: u64) -> String {
    if number == 1 { "1 line".into() } else { format!("{} lines", count(number)) }
}

/// So many of something, whose name takes an s.
pub(crate) fn plural(estimated: &Count, what: &str) -> String {
    let text = estimate(estimated);
    if text == "1" { format!("{text} {what}") } else { format!("{text} {what}s") }
}

pub(crate) fn percent(share: Option<f64>) -> String {
    match share {
        None => "–".into(),
        Some(share) if share >= 0.9995 => "100 %".into(),
        Some(share) => format!("{:.1} %", share * 100.0),
    }
}

/// A time in milliseconds, with the unit people would use.
pub(crate) fn ms(ms: f64) -> String {
    match ms {
        ms if ms < 0.9995 => format!("{:.0} µs", ms * 1e3),
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

/// A time of a log whose times are multiples of `resolution_ms`: 0 is anything below that.
pub(crate) fn logged_ms(value_ms: f64, resolution_ms: Option<f64>) -> String {
    match resolution_ms {
        Some(unit_ms) if unit_ms >= 1.0 && value_ms < unit_ms => format!(
            "< {:.0} {}",
            if unit_ms < 1e3 { unit_ms } else { unit_ms / 1e3 },
            if unit_ms < 1e3 { "ms" } else { "s" }
        ),
        _ => ms(value_ms),
    }
}

pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 => format!("{} s", (seconds * 1e3).round() / 1e3),
        0..120 => format!("{whole} s"),
        120..7200 => format!("{} min {} s", whole / 60, whole % 60),
        7200..172_800 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// An instant as `2026-11-20 20:34:40`, UTC.
pub(crate) fn date(unix_ms: f64) -> String {
    let seconds = (unix_ms / 1e3).floor() as i64;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Gregorian date of a number of days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

pub(super) fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

/// Shortens a text to a number of characters by omitting its middle.
pub(super) fn shorten(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let tail = width / 3;
    let head = width.saturating_sub(tail + 1);
    let end: String = text.chars().skip(length - tail).collect();
    text.chars().take(head).chain(['…']).collect::<String>() + &end
}

pub(super) fn bar(share: f64) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (BAR_WIDTH * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

/// Rates over time in at most so many characters: the highest is a full block, and 0 is a blank. What the log covers less than
/// half of, at its ends, is left out: a count of so little says nothing of a rate.
pub(crate) fn sparkline(counts: &[u64], slots: &Slots, width: usize) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let together = counts.len().div_ceil(width.max(1)).max(1);
    let whole_ms = slots.every_ms * together as f64;
    let parts = counts.chunks(together).zip(slots.covered_ms.chunks(together));
    let parts =
        parts.map(|(counts, covered)| (counts.iter().sum::<u64>() as f64, covered.iter().sum::<f64>()));
    let rates: Vec<f64> = parts
        .filter(|(_, covered_ms)| *covered_ms * 2.0 >= whole_ms || counts.len() == 1)
        .map(|(sum, covered_ms)| sum / covered_ms.max(1.0))
        .collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let shown = rates.iter().map(|rate| match *rate {
        0.0 => ' ',
        rate => EIGHTHS[((rate / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
    });
    shown.collect()
}

/// Wraps words into lines of a maximum number of characters; colours do not count.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let visible = |text: &str| {
        let mut inside = false;
        text.chars()
            .filter(|c| {
                let colour = inside || *c == '\x1b';
                inside = colour && *c != 'm';
                !colour
            })
            .count()
    };
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if visible(line) + 1 + visible(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_write_them() {
        assert_eq!(
            (ms(0.25), ms(12.34), ms(12_345.0)),
            ("250 µs".into(), "12.3 ms".into(), "12.35 s".into())
        );
        assert_eq!(date(971_211_336_000.0), "2000-10-10 20:55:36");
        assert_eq!(date(-1.0), "1969-12-31 23:59:59");
        assert_eq!((duration(0.5), duration(3723.0)), ("0.5 s".into(), "62 min 3 s".into()));
        assert_eq!((logged_ms(0.0, Some(1.0)), logged_ms(0.0, Some(1e3))), ("< 1 ms".into(), "< 1 s".into()));
        assert_eq!(
            (logged_ms(2.0, Some(1.0)), logged_ms(0.0, Some(0.001))),
            ("2.0 ms".into(), "0 µs".into())
        );
        assert_eq!(shorten("http://example/abcdefghij", 12), "http://…ghij");
    }

    #[test]
    fn a_course_over_time_shows_rates_and_no_fall_where_the_log_ends() {
        let slots = |covered: &[f64]| Slots {
            from_unix_ms: 0.0,
            every_ms: 1000.0,
            covered_ms: covered.iter().map(|share| share * 1000.0).collect(),
        };
        assert_eq!(sparkline(&[0, 1, 4, 8], &slots(&[1.0; 4]), 16), " ▁▄█");
        assert_eq!(sparkline(&[1, 0, 0, 0, 2, 2], &slots(&[1.0; 6]), 3), "▂ █");
        // The same rate all the time: half of the last slot is enough to have it, a tenth is not.
        assert_eq!(sparkline(&[8, 8, 4], &slots(&[1.0, 1.0, 0.5]), 16), "███");
        assert_eq!(sparkline(&[8, 8, 1], &slots(&[1.0, 1.0, 0.1]), 16), "██");
        assert_eq!(sparkline(&[3], &slots(&[0.0]), 16), "█");
    }
}
