//! The phases of a workload: a picture of the time line and a table. A part of `assay check`.

use std::fmt::Write;
use std::time::Duration;

use assay_base::settings::show::bytes;
use assay_workload::model::{Phase, Ramp};
use assay_workload::{PhaseSpan, Timeline};

use crate::prepared::PreparedWorkload;
use crate::units::show_duration;

/// Columns of the picture.
const COLUMNS: usize = 72;
/// Heights of a column.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The schedule as a picture, where its times are known, and as a table.
pub fn text(prepared: &PreparedWorkload) -> String {
    let phases: Vec<_> = prepared.timeline.phases().iter().zip(&prepared.workload.schedule.phases).collect();
    picture(&phases).unwrap_or_default() + &table(prepared)
}

/// Load and recurrence over time, with the phases below; none when a length is not known before the run, or
/// there is only one phase that stays as it is.
fn picture(phases: &[(&PhaseSpan, &Phase)]) -> Option<String> {
    let last = phases.last()?.0;
    let total = last.end.filter(|_| !last.is_endless())?.as_secs_f64();
    let moves = |(_, phase): &(&PhaseSpan, &Phase)| factors(phase).iter().any(|(_, f)| f(0.0) != f(1.0));
    if total <= 0.0 || (phases.len() == 1 && !phases.iter().any(moves)) {
        return None;
    }
    let mut text = String::new();
    for row in 0..factors(phases[0].1).len() {
        let name = factors(phases[0].1)[row].0;
        let columns: Vec<f64> = (0..COLUMNS)
            .map(|column| {
                let at = (column as f64 + 0.5) / COLUMNS as f64 * total;
                let (span, phase) = at_time(phases, at);
                factors(phase)[row].1(progress(span, at))
            })
            .collect();
        text.push_str(&line(name, &columns));
    }
    Some(text + &names(phases, total) + "\n")
}

/// A factor of a phase, as its share of the phase goes from 0 to 1.
type Factor<'a> = Box<dyn Fn(f64) -> f64 + 'a>;

/// Factors of a phase that are drawn.
fn factors(phase: &Phase) -> [(&'static str, Factor<'_>); 2] {
    let on = |ramp: Ramp, share: f64| ramp.begin + (ramp.end - ramp.begin) * share;
    [
        ("load", Box::new(move |share| on(phase.load, share) * on(phase.population, share))),
        ("recurrence", Box::new(move |share| on(phase.recurrence, share))),
    ]
}

fn at_time<'a>(phases: &[(&'a PhaseSpan, &'a Phase)], at: f64) -> (&'a PhaseSpan, &'a Phase) {
    let ended = phases.partition_point(|(span, _)| span.end.is_some_and(|end| end.as_secs_f64() <= at));
    phases[ended.min(phases.len() - 1)]
}

fn progress(span: &PhaseSpan, at: f64) -> f64 {
    let seconds = |time: Option<Duration>| time.map_or(0.0, |time| time.as_secs_f64());
    let (start, end) = (seconds(span.start), seconds(span.end));
    ((at - start) / (end - start).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
}

/// One row: blocks up to the largest value, which stands behind them.
fn line(name: &str, columns: &[f64]) -> String {
    let most = columns.iter().copied().fold(0.0, f64::max);
    let block = |value: &f64| match *value {
        value if value <= 0.0 || most <= 0.0 => ' ',
        value => BLOCKS[((value / most * 8.0).ceil() as usize).clamp(1, 8)],
    };
    let bars: String = columns.iter().map(block).collect();
    format!("{name:<10} {bars} {}\n", number(most))
}

/// Names at the beginnings of the phases; a name that has no room for itself is cut.
fn names(phases: &[(&PhaseSpan, &Phase)], total: f64) -> String {
    let column = |time: Option<Duration>| {
        let share = time.map_or(0.0, |time| time.as_secs_f64()) / total;
        ((share * COLUMNS as f64).round() as usize).min(COLUMNS)
    };
    let mut text = format!("{:<10} ", "");
    for (span, _) in phases {
        let width = column(span.end).saturating_sub(column(span.start));
        if width > 0 {
            let name: String = span.name.chars().take(width - 1).collect();
            text.push_str(&format!("│{name:<width$}", width = width - 1));
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// The schedule as a table.
fn table(prepared: &PreparedWorkload) -> String {
    let timeline: &Timeline = &prepared.timeline;
    let mut text = format!(
        "{:<10} {:>8} {:>8}  {:<10} {:<10} {:>10} {:>8} {:>9}\n",
        "phase", "begins", "lasts", "load", "recurrence", "requests", "hits", "fill"
    );
    for (span, phase) in timeline.phases().iter().zip(&prepared.workload.schedule.phases) {
        text.push_str(&row(span, phase));
    }
    let length = match timeline.total() {
        Some(total) => show_duration(total),
        None if timeline.is_endless() => "until it is stopped".into(),
        None => "as long as the proxy takes".into(),
    };
    let scale = prepared.scale.map_or(String::new(), |scale| {
        format!(" (rehearsal: durations and volumes are 1/{:.0} of the original)", 1.0 / scale)
    });
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{:<10} {:>8} {length:>8}{scale}", "all", "");
    text
}

fn row(span: &PhaseSpan, phase: &Phase) -> String {
    // Of a phase without an end, the rate is all that can be said.
    let lasts = span.start.zip(span.end).map(|(start, end)| end.saturating_sub(start));
    let lasts = lasts.filter(|_| !span.is_endless());
    let time = |time: Option<Duration>| time.map_or("–".into(), show_duration);
    let expected = span.expected.as_ref();
    let whole = expected.filter(|_| !span.is_endless());
    let figure = |text: Option<String>| text.unwrap_or("–".into());
    let row = format!(
        "{:<10} {:>8} {:>8}  {:<10} {:<10} {:>10} {:>8} {:>9}",
        span.name,
        time(span.start),
        time(lasts),
        ramp(phase.load),
        ramp(phase.recurrence),
        figure(match whole {
            Some(whole) => Some(format!("{:.0}", whole.requests)),
            None => expected.map(|e| format!("{}/s", number(e.peak_request_rate))),
        }),
        figure(expected.map(|e| format!("{:.1} %", e.offered_dhr() * 100.0))),
        figure(whole.map(|e| bytes(e.fill_bytes as u64))),
    );
    row.trim_end().to_owned() + "\n"
}

/// `0.1→1`, or one number when it does not move.
fn ramp(ramp: Ramp) -> String {
    let (begin, end) = (number(ramp.begin), number(ramp.end));
    if begin == end { begin } else { format!("{begin}→{end}") }
}

/// At most two decimals.
fn number(value: f64) -> String {
    format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(load: (f64, f64), from_s: u64, to_s: u64, name: &str) -> (PhaseSpan, Phase) {
        let span = PhaseSpan {
            name: name.into(),
            start: Some(Duration::from_secs(from_s)),
            end: Some(Duration::from_secs(to_s)),
            expected: None,
        };
        let phase = Phase { load: Ramp { begin: load.0, end: load.1 }, ..Phase::default() };
        (span, phase)
    }

    fn drawn(phases: &[(PhaseSpan, Phase)]) -> Option<String> {
        picture(&phases.iter().map(|(span, phase)| (span, phase)).collect::<Vec<_>>())
    }

    #[test]
    fn a_ramp_rises_and_phases_stand_where_they_begin() {
        let text = drawn(&[phase((0.0, 1.0), 0, 50, "inc"), phase((1.0, 1.0), 50, 100, "top")]).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[0].starts_with("load       ▁") && lines[0].ends_with(&("█".repeat(36) + " 1")),
            "{text}"
        );
        let place = lines[2].chars().position(|c| c == 't').unwrap();
        assert_eq!(place, 11 + COLUMNS / 2 + 1, "{text}");
    }

    #[test]
    fn one_steady_phase_needs_no_picture() {
        assert_eq!(drawn(&[phase((1.0, 1.0), 0, 50, "all")]), None);
        assert!(drawn(&[phase((0.5, 1.0), 0, 50, "all")]).is_some());
    }

    #[test]
    fn a_length_that_is_not_known_before_the_run_has_no_picture() {
        let (mut span, phase) = phase((0.1, 1.0), 0, 50, "open");
        span.end = None;
        assert_eq!(drawn(&[(span, phase)]), None);
    }

    #[test]
    fn a_phase_too_short_for_a_column_is_left_out_and_the_rest_keep_their_places() {
        let text = drawn(&[phase((1.0, 1.0), 0, 1, "blink"), phase((0.5, 1.0), 1, 10_000, "long")]).unwrap();
        assert!(!text.contains("blink") && text.contains("│long"), "{text}");
    }
}
